//! `\p{..}`: classes by name.

use super::PatternError;
use super::reader::Reader;

/// After `\p` or `\P`: the name, in braces or one letter.
pub(super) fn property(reader: &mut Reader, negated: bool) -> Result<String, PatternError> {
    let mut name = String::new();
    if reader.take("{") {
        loop {
            match reader.next() {
                Some(token) if token.is('}') => break,
                Some(token) => name.push(token.char),
                None => return Err(reader.error_at_end(r"`\p{` isn't closed")),
            }
        }
    } else {
        match reader.next() {
            Some(token) => name.push(token.char),
            None => return Err(reader.error_at_end(r"`\p` must be followed by a name")),
        }
    }
    let Some(found) = find(&name) else {
        return Err(reader.error(format!(r"the class `\p{{{name}}}` is not supported")));
    };
    if reader.flags.any_case && found.by_case {
        return Err(reader.error(format!(
            r"`\p{{{name}}}` under the flag `i` is not supported"
        )));
    }
    let not = if negated { "^" } else { "" };
    Ok(format!("[{not}{}]", found.members))
}

struct Property {
    members: String,
    /// Whether it tells cases apart, which the flag `i` changes.
    by_case: bool,
}

fn find(name: &str) -> Option<Property> {
    let explicit = |table: &[(&str, &str)]| {
        table
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, members)| (*members).to_owned())
    };
    let members = explicit(POSIX)
        .or_else(|| explicit(JAVA))
        .or_else(|| general_category(name))
        .or_else(|| binary(name))
        .or_else(|| script(name))?;
    let lower = name.to_ascii_lowercase();
    let by_case = ["lower", "upper", "title", "lu", "ll", "lt", "lc"]
        .iter()
        .any(|case| lower.contains(case));
    Some(Property { members, by_case })
}

/// POSIX classes, which are ASCII in Java.
const POSIX: &[(&str, &str)] = &[
    ("Lower", "a-z"),
    ("Upper", "A-Z"),
    ("ASCII", r"\x{0}-\x{7F}"),
    ("Alpha", "A-Za-z"),
    ("Digit", "0-9"),
    ("Alnum", "0-9A-Za-z"),
    (
        "Punct",
        r"\x{21}-\x{2F}\x{3A}-\x{40}\x{5B}-\x{60}\x{7B}-\x{7E}",
    ),
    ("Graph", r"\x{21}-\x{7E}"),
    ("Print", r"\x{20}-\x{7E}"),
    ("Blank", r"\x{9}\x{20}"),
    ("Cntrl", r"\x{0}-\x{1F}\x{7F}"),
    ("XDigit", "0-9A-Fa-f"),
    ("Space", r"\x{9}-\x{D}\x{20}"),
    ("L1", r"\x{0}-\x{FF}"),
    ("all", r"\x{0}-\x{10FFFF}"),
];

/// Methods of `java.lang.Character`.
const JAVA: &[(&str, &str)] = &[
    ("javaLowerCase", r"\p{Lowercase}"),
    ("javaUpperCase", r"\p{Uppercase}"),
    ("javaTitleCase", r"\p{Lt}"),
    ("javaAlphabetic", r"\p{Alphabetic}"),
    ("javaIdeographic", r"\p{Ideographic}"),
    ("javaLetter", r"\p{L}"),
    ("javaDigit", r"\p{Nd}"),
    ("javaLetterOrDigit", r"\p{L}\p{Nd}"),
    ("javaDefined", r"\P{Cn}"),
    ("javaISOControl", r"\x{0}-\x{1F}\x{7F}-\x{9F}"),
    ("javaSpaceChar", r"\p{Z}"),
    (
        "javaWhitespace",
        r"\x{9}-\x{D}\x{1C}-\x{1F}[\p{Z}&&[^\x{A0}\x{2007}\x{202F}]]",
    ),
];

/// `L`, `Lu`, `IsLu`, `general_category=Lu`, `gc=Lu`.
fn general_category(name: &str) -> Option<String> {
    const CATEGORIES: [&str; 38] = [
        "C", "Cc", "Cf", "Cn", "Co", "L", "LC", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me",
        "Mn", "N", "Nd", "Nl", "No", "P", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc",
        "Sk", "Sm", "So", "Z", "Zl", "Zp", "Zs", "LD",
    ];
    let category = ["general_category=", "gc=", "Is"]
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix))
        .unwrap_or(name);
    if !CATEGORIES.contains(&category) {
        return None;
    }
    Some(match category {
        "LD" => r"\p{L}\p{Nd}".to_owned(),
        "LC" => r"\p{Lu}\p{Ll}\p{Lt}".to_owned(),
        other => format!(r"\p{{{other}}}"),
    })
}

/// `IsAlphabetic` and its like, whose names may be in any case.
fn binary(name: &str) -> Option<String> {
    let name = name.strip_prefix("Is")?.to_ascii_uppercase();
    let members = match name.as_str() {
        "ALPHABETIC" => r"\p{Alphabetic}",
        "LETTER" => r"\p{L}",
        "IDEOGRAPHIC" => r"\p{Ideographic}",
        "LOWERCASE" => r"\p{Lowercase}",
        "UPPERCASE" => r"\p{Uppercase}",
        "TITLECASE" => r"\p{Lt}",
        "WHITE_SPACE" | "WHITESPACE" => r"\p{White_Space}",
        "CONTROL" => r"\p{Cc}",
        "PUNCTUATION" => r"\p{P}",
        "DIGIT" => r"\p{Nd}",
        _ => return None,
    };
    Some(members.to_owned())
}

/// `IsLatin`, `script=Latin`, `sc=Latin`: scripts in common use.
fn script(name: &str) -> Option<String> {
    const SCRIPTS: [&str; 14] = [
        "Latin",
        "Greek",
        "Cyrillic",
        "Armenian",
        "Hebrew",
        "Arabic",
        "Devanagari",
        "Thai",
        "Georgian",
        "Hangul",
        "Hiragana",
        "Katakana",
        "Han",
        "Common",
    ];
    let script = ["script=", "sc=", "Is"]
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix))?;
    let known = SCRIPTS
        .iter()
        .find(|known| known.eq_ignore_ascii_case(script))?;
    Some(format!(r"\p{{{known}}}"))
}
