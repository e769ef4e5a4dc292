//! JSON text exactly as Jackson's `UTF8JsonGenerator` writes it, which is what Java's workers
//! compare keys by.

use std::fmt::Write as _;

/// Appends `text` as a JSON string: control characters as Jackson's short escapes or upper-case
/// `\u00XX`, characters outside the basic plane as a pair of `\uXXXX` surrogates, everything else
/// as it is (`/` and DEL included).
pub(super) fn push_string(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..='\u{1f}' | '\u{10000}'.. => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04X}");
                }
            }
            _ => out.push(character),
        }
    }
    out.push('"');
}
