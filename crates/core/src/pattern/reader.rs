//! The characters of a pattern, one after the other, with the flags that hold for them.

use super::PatternError;

/// A character of the pattern; between `\Q` and `\E` it means itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token {
    pub(super) char: char,
    pub(super) quoted: bool,
    position: usize,
}

/// Flags that inline groups switch.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Flags {
    /// `i`: ASCII letters match in both cases.
    pub(super) any_case: bool,
    /// `s`: a dot matches line ends as well.
    pub(super) dot_all: bool,
    /// `d`: only `\n` ends a line.
    pub(super) unix_lines: bool,
    /// `m`: `^` and `$` match at lines.
    pub(super) multiline: bool,
}

/// A reader over the pattern's characters.
pub(super) struct Reader {
    tokens: Vec<Token>,
    at: usize,
    end: usize,
    pub(super) flags: Flags,
}

impl Reader {
    pub(super) fn new(pattern: &str) -> Self {
        Reader {
            tokens: tokens(pattern),
            at: 0,
            end: pattern.chars().count(),
            flags: Flags::default(),
        }
    }

    pub(super) fn peek(&self) -> Option<Token> {
        self.tokens.get(self.at).copied()
    }

    pub(super) fn peek_second(&self) -> Option<Token> {
        self.tokens.get(self.at + 1).copied()
    }

    pub(super) fn next(&mut self) -> Option<Token> {
        let token = self.peek()?;
        self.at += 1;
        Some(token)
    }

    /// Whether `char` comes next as an operator.
    pub(super) fn sees(&self, char: char) -> bool {
        self.peek().is_some_and(|token| token.is(char))
    }

    /// Takes `text` if it comes next, unquoted.
    pub(super) fn take(&mut self, text: &str) -> bool {
        let count = text.chars().count();
        let comes = self
            .tokens
            .get(self.at..self.at + count)
            .is_some_and(|tokens| {
                tokens
                    .iter()
                    .zip(text.chars())
                    .all(|(token, char)| token.is(char))
            });
        if comes {
            self.at += count;
        }
        comes
    }

    /// An error at the character that was taken last.
    pub(super) fn error(&self, reason: impl Into<String>) -> PatternError {
        let last = self.tokens.get(self.at.saturating_sub(1));
        PatternError {
            reason: reason.into(),
            position: Some(last.map_or(0, |token| token.position)),
        }
    }

    /// An error because the pattern ended.
    pub(super) fn error_at_end(&self, reason: impl Into<String>) -> PatternError {
        PatternError {
            reason: reason.into(),
            position: Some(self.end),
        }
    }
}

impl Token {
    pub(super) fn is(self, char: char) -> bool {
        !self.quoted && self.char == char
    }
}

/// The characters of a pattern with `\Q..\E` resolved (`Pattern.RemoveQEQuoting`).
fn tokens(pattern: &str) -> Vec<Token> {
    let mut chars = pattern.chars().enumerate().peekable();
    let mut tokens = Vec::new();
    let mut quoted = false;
    while let Some((position, char)) = chars.next() {
        let follows = chars.peek().map(|(_, next)| *next);
        match (char, follows) {
            ('\\', Some('E')) if quoted => {
                quoted = false;
                chars.next();
            }
            ('\\', Some('Q')) if !quoted => {
                quoted = true;
                chars.next();
            }
            // What is escaped can't begin a quote.
            ('\\', Some(next)) if !quoted => {
                tokens.push(Token {
                    char,
                    quoted,
                    position,
                });
                tokens.push(Token {
                    char: next,
                    quoted,
                    position: position + 1,
                });
                chars.next();
            }
            _ => tokens.push(Token {
                char,
                quoted,
                position,
            }),
        }
    }
    tokens
}
