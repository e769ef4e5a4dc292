//! Character classes and escapes of single characters (`Pattern.clazz`, `range` and `escape`).

use super::PatternError;
use super::property;
use super::reader::{Flags, Reader};

/// What an escape stands for.
pub(super) enum Escaped {
    /// One character.
    Char(char),
    /// A class, in brackets.
    Class(String),
}

impl Escaped {
    pub(super) fn into_text(self, flags: Flags) -> String {
        match self {
            Escaped::Char(char) => single(char, flags),
            Escaped::Class(class) => class,
        }
    }
}

/// A character as a pattern of its own.
pub(super) fn single(char: char, flags: Flags) -> String {
    if flags.any_case && char.is_ascii_alphabetic() {
        let (lower, upper) = (char.to_ascii_lowercase(), char.to_ascii_uppercase());
        return format!("[{lower}{upper}]");
    }
    if char.is_ascii_alphanumeric() {
        return char.to_string();
    }
    hexadecimal(char)
}

fn hexadecimal(char: char) -> String {
    format!(r"\x{{{:X}}}", u32::from(char))
}

/// A class after its `[`, up to and with its `]`.
pub(super) fn class(reader: &mut Reader) -> Result<String, PatternError> {
    class_within(reader, 0)
}

/// Classes within classes; the engine recurses as deep.
const DEPTH_MAX: usize = 50;

fn class_within(reader: &mut Reader, depth: usize) -> Result<String, PatternError> {
    let negated = reader.take("^");
    let members = members(reader, depth)?;
    reader.next();
    Ok(if negated {
        format!("[^{members}]")
    } else {
        members
    })
}

/// Everything up to the closing `]`, which is left.
///
/// What is on the right of `&&` is read as Java does: classes in brackets are united, and the first
/// thing without brackets takes all that follows, further `&&` included.
fn members(reader: &mut Reader, depth: usize) -> Result<String, PatternError> {
    if depth > DEPTH_MAX {
        return Err(reader.error("more than 50 classes within each other are not supported"));
    }
    let mut union = String::new();
    loop {
        let Some(token) = reader.peek() else {
            return Err(reader.error_at_end("a class isn't closed"));
        };
        if token.is(']') && !union.is_empty() {
            return Ok(format!("[{union}]"));
        }
        if reader.take("[") {
            union.push_str(&class_within(reader, depth + 1)?);
        } else if reader.take("&&") {
            let right = right_of_and(reader, depth)?;
            if union.is_empty() || right.is_empty() {
                return Err(reader.error("`&&` with nothing on one side is not supported"));
            }
            union = format!("[[{union}]&&[{right}]]");
        } else {
            union.push_str(&range(reader)?);
        }
    }
}

fn right_of_and(reader: &mut Reader, depth: usize) -> Result<String, PatternError> {
    let mut right = String::new();
    while let Some(token) = reader.peek().filter(|t| !t.is(']') && !t.is('&')) {
        if token.is('[') {
            reader.next();
            right.push_str(&class_within(reader, depth + 1)?);
        } else {
            right.push_str(&members(reader, depth + 1)?);
        }
    }
    Ok(right)
}

/// One character, one range or one escape of a class.
fn range(reader: &mut Reader) -> Result<String, PatternError> {
    let Escaped::Char(first) = (match element(reader)? {
        Escaped::Class(class) => return Ok(class),
        char => char,
    }) else {
        return Err(reader.error("a class isn't closed"));
    };
    let flags = reader.flags;
    let ends = reader
        .peek_second()
        .is_none_or(|token| token.is(']') || token.is('['));
    if !reader.sees('-') || ends {
        return Ok(spelled(first, first, flags));
    }
    reader.next();
    match element(reader)? {
        Escaped::Char(last) if first <= last => Ok(spelled(first, last, flags)),
        _ => Err(reader.error("the range of a class goes backwards")),
    }
}

fn element(reader: &mut Reader) -> Result<Escaped, PatternError> {
    match reader.next() {
        None => Err(reader.error_at_end("a class isn't closed")),
        Some(token) if token.is('\\') => escape(reader),
        Some(token) => Ok(Escaped::Char(token.char)),
    }
}

/// A range within a class; under the flag `i` with the other case of its ASCII letters.
fn spelled(first: char, last: char, flags: Flags) -> String {
    let mut text = format!("{}-{}", hexadecimal(first), hexadecimal(last));
    if flags.any_case {
        let other_case = ('a'..='z').chain('A'..='Z').filter(|letter| {
            let other = if letter.is_ascii_lowercase() {
                letter.to_ascii_uppercase()
            } else {
                letter.to_ascii_lowercase()
            };
            (first..=last).contains(&other)
        });
        text.extend(other_case);
    }
    text
}

/// After `\`: what stands for one character or a class, inside and outside of brackets.
pub(super) fn escape(reader: &mut Reader) -> Result<Escaped, PatternError> {
    let Some(token) = reader.next() else {
        return Err(reader.error_at_end(r"`\` at the end"));
    };
    let class = |text: &str| Ok(Escaped::Class(text.to_owned()));
    match token.char {
        'd' => class("[0-9]"),
        'D' => class("[^0-9]"),
        'w' => class("[0-9A-Z_a-z]"),
        'W' => class("[^0-9A-Z_a-z]"),
        's' => class(r"[\x{9}-\x{D}\x{20}]"),
        'S' => class(r"[^\x{9}-\x{D}\x{20}]"),
        'h' => class(&format!("[{HORIZONTAL}]")),
        'H' => class(&format!("[^{HORIZONTAL}]")),
        'v' if reader.sees('-') => {
            Err(reader.error(r"a range that begins with `\v` is not supported"))
        }
        'v' => class(&format!("[{VERTICAL}]")),
        'V' => class(&format!("[^{VERTICAL}]")),
        'p' => property::property(reader, false).map(Escaped::Class),
        'P' => property::property(reader, true).map(Escaped::Class),
        't' => Ok(Escaped::Char('\t')),
        'n' => Ok(Escaped::Char('\n')),
        'r' => Ok(Escaped::Char('\r')),
        'f' => Ok(Escaped::Char('\u{c}')),
        'a' => Ok(Escaped::Char('\u{7}')),
        'e' => Ok(Escaped::Char('\u{1b}')),
        '0' => octal(reader),
        'x' => hexadecimal_escape(reader),
        'u' => unicode_escape(reader),
        'c' => match reader.next() {
            Some(control) if control.char.is_ascii() => {
                Ok(Escaped::Char(char::from(control.char as u8 ^ 64)))
            }
            _ => Err(reader.error(r"`\c` must be followed by an ASCII character")),
        },
        letter if letter.is_ascii_alphanumeric() => {
            Err(reader.error(format!(r"`\{letter}` is no escape")))
        }
        char => Ok(Escaped::Char(char)),
    }
}

/// `\h` of Java: blanks within a line.
const HORIZONTAL: &str =
    r"\x{9}\x{20}\x{A0}\x{1680}\x{180E}\x{2000}-\x{200A}\x{202F}\x{205F}\x{3000}";

/// `\v` of Java: what ends a line.
const VERTICAL: &str = r"\x{A}-\x{D}\x{85}\x{2028}\x{2029}";

/// `\0` with up to three octal digits, at most `\0377`.
fn octal(reader: &mut Reader) -> Result<Escaped, PatternError> {
    let mut number = 0;
    let mut digits = 0;
    while let Some(digit) = reader
        .peek()
        .filter(|t| !t.quoted)
        .and_then(|t| t.char.to_digit(8))
    {
        if digits == 3 || number * 8 + digit > 0o377 {
            break;
        }
        number = number * 8 + digit;
        digits += 1;
        reader.next();
    }
    match char::from_u32(number) {
        Some(char) if digits > 0 => Ok(Escaped::Char(char)),
        _ => Err(reader.error(r"`\0` must be followed by an octal number")),
    }
}

/// `\xhh` or `\x{h..h}`.
fn hexadecimal_escape(reader: &mut Reader) -> Result<Escaped, PatternError> {
    if !reader.take("{") {
        let number = digits(reader, 2)?;
        return char::from_u32(number)
            .map(Escaped::Char)
            .ok_or_else(|| reader.error("no character"));
    }
    let mut number: u32 = 0;
    let mut any = false;
    loop {
        let Some(token) = reader.next() else {
            return Err(reader.error_at_end(r"`\x{` isn't closed"));
        };
        if token.is('}') && any {
            break;
        }
        any = true;
        let digit = token.char.to_digit(16).filter(|_| number <= 0x10FFFF);
        let Some(digit) = digit else {
            return Err(reader.error(r"`\x{..}` holds no hexadecimal number of a character"));
        };
        number = number * 16 + digit;
    }
    char::from_u32(number)
        .map(Escaped::Char)
        .ok_or_else(|| reader.error(r"`\x{..}` holds no number of a character"))
}

/// `\uhhhh`, or two of them that make a pair of surrogates.
fn unicode_escape(reader: &mut Reader) -> Result<Escaped, PatternError> {
    let first = digits(reader, 4)?;
    if let Some(char) = char::from_u32(first) {
        return Ok(Escaped::Char(char));
    }
    if first < 0xDC00 && reader.take(r"\u") {
        let second = digits(reader, 4)?;
        let units = [first, second].map(|unit| u16::try_from(unit).unwrap_or_default());
        if let Some(Ok(char)) = char::decode_utf16(units).next() {
            return Ok(Escaped::Char(char));
        }
    }
    Err(reader.error("half of a pair of surrogates is not supported"))
}

fn digits(reader: &mut Reader, count: usize) -> Result<u32, PatternError> {
    let mut number = 0;
    for _ in 0..count {
        let digit = reader
            .next()
            .filter(|t| !t.quoted)
            .and_then(|t| t.char.to_digit(16));
        let Some(digit) = digit else {
            return Err(reader.error(format!("{count} hexadecimal digits are missing")));
        };
        number = number * 16 + digit;
    }
    Ok(number)
}
