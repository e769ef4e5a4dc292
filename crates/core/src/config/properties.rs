//! The `.properties` format, exactly as `java.util.Properties.load(InputStream)` reads it, with the
//! line each key stands on.
//!
//! Bytes are ISO-8859-1. A *natural* line ends at `\n`, `\r` or `\r\n`; a *logical* line is one or
//! more natural lines joined where a natural line ends in an odd number of backslashes. Reading
//! never stops: what Java would throw for is collected, so that all mistakes of a file are told at
//! once.

/// What a file holds, in its order; a key may stand in it more than once, and the last one counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Properties {
    /// All keys with their values.
    pub entries: Vec<Property>,
    /// What keeps the file from being read.
    pub errors: Vec<SyntaxError>,
    /// Lines (from 1) whose bytes look like UTF-8, which Java reads as ISO-8859-1.
    pub utf8_lines: Vec<usize>,
}

/// One key with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Property {
    /// The key, without escapes.
    pub key: String,
    /// The value, without escapes; blanks at its end belong to it.
    pub value: String,
    /// The first line it stands on, from 1.
    pub line: usize,
}

/// Something that can't be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct SyntaxError {
    /// The first line of the logical line it is in, from 1.
    pub line: usize,
    /// What is wrong.
    pub reason: SyntaxErrorReason,
}

/// Why an escape can't be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SyntaxErrorReason {
    /// Java: "Malformed \uxxxx encoding".
    #[error("\\u must be followed by four hexadecimal digits")]
    MalformedUnicode,
    /// Half of a surrogate pair: Java keeps it, but no text that Kafka takes can hold it.
    #[error("\\u with half of a surrogate pair")]
    LoneSurrogate,
}

impl Properties {
    /// Reads a file's bytes.
    pub fn parse(bytes: &[u8]) -> Self {
        let mut properties = Properties::default();
        let mut reader = LineReader::new(bytes);
        while let Some(line) = reader.next_line() {
            properties.add(&line);
        }
        properties
    }

    /// The value that counts for `key`: the last one.
    pub fn get(&self, key: &str) -> Option<&Property> {
        self.entries.iter().rev().find(|entry| entry.key == key)
    }

    fn add(&mut self, line: &LogicalLine) {
        let (key, value) = split(&line.bytes);
        match (unescape(key), unescape(value)) {
            (Ok(key), Ok(value)) => self.entries.push(Property {
                key,
                value,
                line: line.number,
            }),
            (Err(reason), _) | (_, Err(reason)) => self.errors.push(SyntaxError {
                line: line.number,
                reason,
            }),
        }
        if !line.bytes.is_ascii() && std::str::from_utf8(&line.bytes).is_ok() {
            self.utf8_lines.push(line.number);
        }
    }
}

/// A logical line without its line ends, comments and leading blanks, and where it began.
struct LogicalLine {
    bytes: Vec<u8>,
    number: usize,
}

struct LineReader<'a> {
    bytes: &'a [u8],
    position: usize,
    line: usize,
}

impl<'a> LineReader<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        LineReader {
            bytes,
            position: 0,
            line: 1,
        }
    }

    /// The next logical line that is neither blank nor a comment.
    ///
    /// Two oddities are Java's: after a line that holds nothing but a backslash a comment is still
    /// a comment; and such a line at the very end of the file is a key of no characters, unless
    /// `\r\n` ends it.
    fn next_line(&mut self) -> Option<LogicalLine> {
        let mut content: Vec<u8> = Vec::new();
        let mut number = self.line;
        let mut continued = false;
        loop {
            self.skip_blanks();
            if content.is_empty() {
                number = if continued { number } else { self.line };
                if matches!(self.peek(), Some(b'#' | b'!')) {
                    self.take_natural_line();
                    if self.at_end() {
                        return None;
                    }
                    continued = false;
                    continue;
                }
            }
            let natural = self.take_natural_line();
            let backslashes = natural.iter().rev().take_while(|b| **b == b'\\').count();
            let joins = backslashes % 2 == 1;
            content.extend_from_slice(&natural[..natural.len() - usize::from(joins)]);
            if joins && !self.at_end() {
                continued = true;
                continue;
            }
            if !content.is_empty() || (joins && !self.bytes.ends_with(b"\r\n")) {
                return Some(LogicalLine {
                    bytes: content,
                    number,
                });
            }
            if self.at_end() {
                return None;
            }
            continued = false;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.position).copied()
    }

    fn at_end(&self) -> bool {
        self.position >= self.bytes.len()
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | 0x0c)) {
            self.position += 1;
        }
    }

    /// The rest of the natural line, leaving the position after its end.
    fn take_natural_line(&mut self) -> &'a [u8] {
        let rest = &self.bytes[self.position..];
        let length = rest
            .iter()
            .position(|b| matches!(b, b'\n' | b'\r'))
            .unwrap_or(rest.len());
        let end = match rest.get(length..) {
            Some([b'\r', b'\n', ..]) => 2,
            Some([_, ..]) => 1,
            _ => 0,
        };
        self.position += length + end;
        self.line += usize::from(end > 0);
        &rest[..length]
    }
}

/// Key and value, still escaped: the key ends at the first unescaped `=`, `:` or blank.
fn split(line: &[u8]) -> (&[u8], &[u8]) {
    let mut escaped = false;
    let key_length = line
        .iter()
        .position(|byte| {
            let ends = !escaped && (is_separator(*byte) || is_blank(*byte));
            escaped = *byte == b'\\' && !escaped;
            ends
        })
        .unwrap_or(line.len());
    let (key, rest) = line.split_at(key_length);
    let rest = trim_start(rest);
    let value = match rest.split_first() {
        Some((first, after)) if is_separator(*first) => trim_start(after),
        _ => rest,
    };
    (key, value)
}

fn is_separator(byte: u8) -> bool {
    matches!(byte, b'=' | b':')
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | 0x0c)
}

fn trim_start(bytes: &[u8]) -> &[u8] {
    let blanks = bytes.iter().take_while(|byte| is_blank(**byte)).count();
    &bytes[blanks..]
}

fn unescape(bytes: &[u8]) -> Result<String, SyntaxErrorReason> {
    let mut units: Vec<u16> = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'\\' {
            units.push(u16::from(*first));
            continue;
        }
        let Some((escape, after)) = rest.split_first() else {
            break;
        };
        rest = after;
        units.push(match escape {
            b'u' => {
                let digits = rest.get(..4).ok_or(SyntaxErrorReason::MalformedUnicode)?;
                rest = &rest[4..];
                hexadecimal(digits).ok_or(SyntaxErrorReason::MalformedUnicode)?
            }
            b't' => u16::from(b'\t'),
            b'r' => u16::from(b'\r'),
            b'n' => u16::from(b'\n'),
            b'f' => 0x0c,
            other => u16::from(*other),
        });
    }
    String::from_utf16(&units).map_err(|_| SyntaxErrorReason::LoneSurrogate)
}

fn hexadecimal(digits: &[u8]) -> Option<u16> {
    digits.iter().try_fold(0u16, |number, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        Some(number << 4 | u16::try_from(digit).ok()?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_key_knows_the_first_line_it_stands_on() {
        let text = b"# comment\r\n\r\na = 1\\\r\n   2\n\n!x\\\nb:3\r\\\n\\\nc 4";

        let entries = Properties::parse(text).entries;

        let found: Vec<_> = entries
            .iter()
            .map(|e| (e.key.as_str(), e.value.as_str(), e.line))
            .collect();
        assert_eq!(found, [("a", "12", 3), ("b", "3", 7), ("c", "4", 8)]);
    }

    #[test]
    fn all_bad_escapes_are_told_with_their_lines() {
        let properties =
            Properties::parse(b"a=\\u12\nb=1\nc\\uzzzz=2\nd=\\ud800\ne=\\ud83d\\ude00");

        let found: Vec<_> = properties
            .errors
            .iter()
            .map(|e| (e.line, e.reason))
            .collect();
        assert_eq!(
            found,
            [
                (1, SyntaxErrorReason::MalformedUnicode),
                (3, SyntaxErrorReason::MalformedUnicode),
                (4, SyntaxErrorReason::LoneSurrogate),
            ]
        );
        assert_eq!(properties.get("e").unwrap().value, "😀");
    }

    #[test]
    fn bytes_are_latin_1_and_what_looks_like_utf_8_is_pointed_out() {
        let properties = Properties::parse(b"a=\xe9\nb=\xc3\xa9\n# \xc3\xa9\n");

        assert_eq!(properties.get("a").unwrap().value, "é");
        assert_eq!(properties.get("b").unwrap().value, "Ã©");
        assert_eq!(properties.utf8_lines, [2]);
    }

    proptest! {
        #[test]
        fn nothing_panics_and_line_numbers_rise(bytes in prop::collection::vec(
            prop::sample::select(b"ab\\\n\r \t=:#!u0d8\xc3\xa9\x0c\x00".to_vec()), 0..200)) {
            let properties = Properties::parse(&bytes);
            prop_assert!(properties.entries.is_sorted_by_key(|entry| entry.line));
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            Properties::parse(&bytes);
        }
    }
}
