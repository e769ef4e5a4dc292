//! Reads `java.util.regex` and writes `fancy-regex`.
//!
//! Flags are resolved while reading: the result holds no flags, every class is spelled out, every
//! letter that may differ in case is a class of two. So the engine's own flags and shorthands,
//! which go by Unicode, never come into play.

use super::PatternError;
use super::class;
use super::reader::{Flags, Reader};

/// Translates a pattern.
pub(super) fn translate(pattern: &str) -> Result<String, PatternError> {
    let mut translator = Translator {
        reader: Reader::new(pattern),
        out: String::new(),
        groups: 0,
        names: Vec::new(),
        depth: 0,
    };
    translator.alternation()?;
    if translator.reader.next().is_some() {
        return Err(translator.reader.error("`)` without `(`"));
    }
    Ok(translator.out)
}

/// What was read, as far as a repetition after it is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Atom {
    /// Something that matches characters, or may.
    Text,
    /// Something that only looks.
    Assertion,
    /// A switch of flags.
    Nothing,
}

struct Translator {
    reader: Reader,
    out: String,
    /// Capturing groups begun so far.
    groups: usize,
    /// Names of groups with their numbers.
    names: Vec<(String, usize)>,
    depth: usize,
}

/// `\b` by ASCII words; the engine knows only Unicode's where it backtracks.
const WORD_BOUNDARY: &str =
    "(?:(?<=[0-9A-Z_a-z])(?![0-9A-Z_a-z])|(?<![0-9A-Z_a-z])(?=[0-9A-Z_a-z]))";
const NO_WORD_BOUNDARY: &str =
    "(?:(?<=[0-9A-Z_a-z])(?=[0-9A-Z_a-z])|(?<![0-9A-Z_a-z])(?![0-9A-Z_a-z]))";

/// Groups within groups; more would be nonsense, and the engine recurses as deep.
const DEPTH_MAX: usize = 100;

impl Translator {
    /// Sequences between `|`, up to a `)` or the end.
    fn alternation(&mut self) -> Result<(), PatternError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self
                .reader
                .error("more than 100 groups within each other are not supported"));
        }
        while let Some(token) = self.reader.peek() {
            if token.is(')') {
                break;
            }
            if token.is('|') {
                self.reader.next();
                self.out.push('|');
                continue;
            }
            let start = self.out.len();
            match self.atom()? {
                Atom::Nothing => {}
                atom => self.quantifier(atom, start)?,
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// One thing and what it is to a repetition.
    fn atom(&mut self) -> Result<Atom, PatternError> {
        let Some(token) = self.reader.next() else {
            return Ok(Atom::Nothing);
        };
        if token.quoted {
            self.literal(token.char);
            return Ok(Atom::Text);
        }
        match token.char {
            '(' => return self.group(),
            '\\' => return self.escape(),
            '[' => {
                let class = class::class(&mut self.reader)?;
                self.out.push_str(&class);
            }
            '.' => self.dot(),
            '^' => {
                self.refuse_multiline()?;
                self.out.push_str(r"\A");
                return Ok(Atom::Assertion);
            }
            '$' => {
                self.refuse_multiline()?;
                self.end_of_input();
                return Ok(Atom::Assertion);
            }
            '*' | '+' | '?' => {
                let reason = format!("nothing for `{}` to repeat", token.char);
                return Err(self.reader.error(reason));
            }
            '{' => {
                return Err(self
                    .reader
                    .error("`{` with nothing to repeat is not supported"));
            }
            char => self.literal(char),
        }
        Ok(Atom::Text)
    }

    fn literal(&mut self, char: char) {
        self.out.push_str(&class::single(char, self.reader.flags));
    }

    fn dot(&mut self) {
        let flags = self.reader.flags;
        self.out.push_str(match (flags.dot_all, flags.unix_lines) {
            (true, _) => r"[\x{0}-\x{10FFFF}]",
            (false, true) => r"[^\x{A}]",
            (false, false) => r"[^\x{A}\x{D}\x{85}\x{2028}\x{2029}]",
        });
    }

    fn refuse_multiline(&self) -> Result<(), PatternError> {
        if self.reader.flags.multiline {
            return Err(self
                .reader
                .error("`^` and `$` under the flag `m` are not supported"));
        }
        Ok(())
    }

    /// `$` and `\Z`: the end, or before a line end that ends the name.
    ///
    /// At the end of an alternative that is the same as the end alone, since the whole name must
    /// match; and the linear engine can do that.
    fn end_of_input(&mut self) {
        let last = match self.reader.peek() {
            None => true,
            Some(token) => token.is('|') && self.depth == 1,
        };
        self.out
            .push_str(match (last, self.reader.flags.unix_lines) {
                (true, _) => r"\z",
                (false, true) => r"(?=\x{A}?\z)",
                // Not between the two characters of `\r\n`.
                (false, false) => {
                    r"(?=(?:\x{D}\x{A}|[\x{A}\x{D}\x{85}\x{2028}\x{2029}])?\z)(?!(?<=\x{D})\x{A})"
                }
            });
    }

    /// After `(`. A group's flags end with it.
    fn group(&mut self) -> Result<Atom, PatternError> {
        let start = self.out.len();
        let mut atom = Atom::Text;
        let saved = self.reader.flags;
        if !self.reader.take("?") {
            self.groups += 1;
            self.out.push('(');
        } else if let Some(open) = ["?:", "?=", "?!", "?>", "?<=", "?<!"]
            .into_iter()
            .find(|open| self.reader.take(&open[1..]))
        {
            self.out.push('(');
            self.out.push_str(open);
            if open.contains(['=', '!']) {
                atom = Atom::Assertion;
            }
        } else if self.reader.take("<") {
            self.groups += 1;
            let name = self.group_name()?;
            if self.names.iter().any(|(known, _)| *known == name) {
                return Err(self.reader.error(format!("two groups are named `{name}`")));
            }
            self.names.push((name, self.groups));
            self.out.push('(');
        } else {
            let flags = self.inline_flags()?;
            self.reader.flags = flags;
            if self.reader.take(")") {
                return Ok(Atom::Nothing);
            }
            self.reader.take(":");
            self.out.push_str("(?:");
        }
        if self.reader.peek().is_none() {
            return Err(self.reader.error_at_end("a group isn't closed"));
        }
        self.alternation()?;
        if !self.reader.take(")") {
            return Err(self.reader.error_at_end("a group isn't closed"));
        }
        self.out.push(')');
        self.reader.flags = saved;
        if self.out.ends_with("(?:)") && self.out.len() == start + 4 {
            atom = Atom::Assertion;
        }
        Ok(atom)
    }

    /// A group's name up to its `>`.
    fn group_name(&mut self) -> Result<String, PatternError> {
        let mut name = String::new();
        while let Some(token) = self.reader.next() {
            if token.is('>') && !name.is_empty() {
                return Ok(name);
            }
            let fits = token.char.is_ascii_alphabetic()
                || (token.char.is_ascii_digit() && !name.is_empty());
            if !fits {
                return Err(self
                    .reader
                    .error("a group's name is made of letters and digits"));
            }
            name.push(token.char);
        }
        Err(self.reader.error_at_end("a group's name isn't closed"))
    }

    /// `i`, `s`, `d`, `m`, `-`, up to `:` or `)`.
    fn inline_flags(&mut self) -> Result<Flags, PatternError> {
        let mut flags = self.reader.flags;
        let mut on = true;
        loop {
            if self.reader.sees(')') || self.reader.sees(':') {
                return Ok(flags);
            }
            let Some(token) = self.reader.next() else {
                return Err(self.reader.error_at_end("a group isn't closed"));
            };
            match token.char {
                '-' if on => on = false,
                'i' => flags.any_case = on,
                's' => flags.dot_all = on,
                'd' => flags.unix_lines = on,
                'm' => flags.multiline = on,
                flag @ ('c' | 'u' | 'U' | 'x') => {
                    return Err(self
                        .reader
                        .error(format!("the flag `{flag}` is not supported")));
                }
                other => return Err(self.reader.error(format!("`{other}` is no flag"))),
            }
        }
    }

    /// After `\`, outside of classes.
    fn escape(&mut self) -> Result<Atom, PatternError> {
        let Some(token) = self.reader.peek() else {
            return Err(self.reader.error_at_end(r"`\` at the end"));
        };
        match token.char {
            'A' | 'z' => {
                self.reader.next();
                self.out.push('\\');
                self.out.push(token.char);
                return Ok(Atom::Assertion);
            }
            'Z' => {
                self.reader.next();
                self.end_of_input();
                return Ok(Atom::Assertion);
            }
            'b' | 'B' => {
                self.reader.next();
                if self.reader.sees('{') {
                    return Err(self.reader.error(r"`\b{..}` is not supported"));
                }
                self.out.push_str(if token.char == 'b' {
                    WORD_BOUNDARY
                } else {
                    NO_WORD_BOUNDARY
                });
                return Ok(Atom::Assertion);
            }
            'R' => {
                self.reader.next();
                self.out
                    .push_str(r"(?:\x{D}\x{A}|[\x{A}-\x{D}\x{85}\x{2028}\x{2029}])");
            }
            'G' | 'X' | 'N' => {
                self.reader.next();
                let reason = format!(r"`\{}` is not supported", token.char);
                return Err(self.reader.error(reason));
            }
            'k' => {
                self.reader.next();
                self.named_reference()?;
            }
            '1'..='9' => self.numbered_reference()?,
            _ => {
                let class = class::escape(&mut self.reader)?;
                self.out.push_str(&class.into_text(self.reader.flags));
            }
        }
        Ok(Atom::Text)
    }

    fn named_reference(&mut self) -> Result<(), PatternError> {
        if !self.reader.take("<") {
            return Err(self.reader.error(r"`\k` must be followed by `<name>`"));
        }
        let name = self.group_name()?;
        match self.names.iter().find(|(known, _)| *known == name) {
            Some((_, number)) => self.reference(*number),
            None => Err(self
                .reader
                .error(format!("no group before this is named `{name}`"))),
        }
    }

    /// As many digits as make the number of a group that exists by now (`Pattern.ref`).
    fn numbered_reference(&mut self) -> Result<(), PatternError> {
        let mut number = 0;
        while let Some(digit) = self
            .reader
            .peek()
            .filter(|t| !t.quoted)
            .and_then(|t| t.char.to_digit(10))
        {
            let longer = number * 10 + digit as usize;
            if number > 0 && longer > self.groups {
                break;
            }
            number = longer;
            self.reader.next();
        }
        if number > self.groups {
            let reason =
                format!("a reference to group {number}, which isn't before it, is not supported");
            return Err(self.reader.error(reason));
        }
        self.reference(number)
    }

    fn reference(&mut self, group: usize) -> Result<(), PatternError> {
        if self.reader.flags.any_case {
            return Err(self
                .reader
                .error("a back-reference under the flag `i` is not supported"));
        }
        self.out.push_str(&format!(r"(?:\{group})"));
        Ok(())
    }

    /// What follows an atom that begins at `start` of the output.
    fn quantifier(&mut self, atom: Atom, start: usize) -> Result<(), PatternError> {
        let count = if self.reader.take("*") {
            "*".to_owned()
        } else if self.reader.take("+") {
            "+".to_owned()
        } else if self.reader.take("?") {
            "?".to_owned()
        } else if self.reader.take("{") {
            self.counts()?
        } else {
            return Ok(());
        };
        let mut text = self.out.split_off(start);
        let mut count = count.as_str();
        if atom == Atom::Assertion {
            // Holding twice is holding once; the engine repeats nothing without characters.
            text = match count {
                "*" | "?" => format!("(?:{text}|)"),
                "+" => text,
                _ => {
                    return Err(self
                        .reader
                        .error("counting what has no characters is not supported"));
                }
            };
            count = "";
        }
        let translated = if self.reader.take("+") {
            format!("(?>{text}{count})")
        } else if self.reader.take("?") && !count.is_empty() {
            format!("{text}{count}?")
        } else {
            format!("{text}{count}")
        };
        self.out.push_str(&translated);
        if self.reader.sees('{') {
            self.reader.next();
            return Err(self
                .reader
                .error("a repetition of a repetition is not supported"));
        }
        Ok(())
    }

    /// `{2}`, `{2,}` or `{2,3}` after the brace.
    fn counts(&mut self) -> Result<String, PatternError> {
        let Some(min) = self.count()? else {
            return Err(self.reader.error("`{` must be followed by a number"));
        };
        let mut counts = format!("{{{min}");
        if self.reader.take(",") {
            counts.push(',');
            if let Some(max) = self.count()? {
                if max < min {
                    return Err(self
                        .reader
                        .error("the second number is smaller than the first"));
                }
                counts.push_str(&max.to_string());
            }
        }
        if !self.reader.take("}") {
            return Err(self.reader.error("`{` isn't closed after its numbers"));
        }
        counts.push('}');
        Ok(counts)
    }

    fn count(&mut self) -> Result<Option<u32>, PatternError> {
        let mut digits = String::new();
        while let Some(token) = self
            .reader
            .peek()
            .filter(|t| !t.quoted && t.char.is_ascii_digit())
        {
            digits.push(token.char);
            self.reader.next();
        }
        if digits.is_empty() {
            return Ok(None);
        }
        match digits.parse() {
            Ok(count) if count <= 100_000 => Ok(Some(count)),
            _ => Err(self
                .reader
                .error("more than 100000 repetitions are not supported")),
        }
    }
}
