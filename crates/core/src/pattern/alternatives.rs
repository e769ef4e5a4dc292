//! What can be told cheaply about the names a pattern matches: how they begin.

/// One alternative of a list of patterns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Alternative {
    /// How every name that it matches begins.
    start: String,
    /// Whether it matches no other name than `start`.
    pub(super) whole: bool,
    /// The name that somebody meant who wrote nothing but a name, with dots that are not escaped.
    pub(super) name: Option<String>,
}

impl Alternative {
    /// Whether there may be a name that both match; it is said too often rather than not at all.
    pub(super) fn may_share(&self, other: &Alternative) -> bool {
        let (a, b) = (self.start.as_str(), other.start.as_str());
        (a.starts_with(b) && !(other.whole && a != b))
            || (b.starts_with(a) && !(self.whole && a != b))
    }
}

/// The alternatives of a joined pattern. One with groups, classes or quotes is not looked into: it
/// may match anything.
pub(super) fn of(pattern: &str) -> Vec<Alternative> {
    if pattern.contains(['(', '[']) || [r"\|", r"\Q", r"\\"].iter().any(|s| pattern.contains(s)) {
        return vec![Alternative {
            start: String::new(),
            whole: false,
            name: None,
        }];
    }
    pattern.split('|').map(alternative).collect()
}

fn alternative(text: &str) -> Alternative {
    let mut start = String::new();
    let mut name = Some(String::new());
    let mut whole = true;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let literal = match c {
            '\\' => chars.next().filter(|c| !c.is_alphanumeric()),
            '.' | '*' | '+' | '?' | '{' | '}' | '^' | '$' => None,
            other => Some(other),
        };
        match literal {
            Some(_) | None if !whole => {}
            Some(c) => start.push(c),
            None => {
                whole = false;
                // What may stand there no times begins no name.
                if matches!(c, '*' | '?' | '{') {
                    start.pop();
                }
            }
        }
        match literal.or((c == '.').then_some('.')) {
            Some(c) => name.iter_mut().for_each(|name| name.push(c)),
            None => name = None,
        }
    }
    Alternative { start, whole, name }
}

#[cfg(test)]
mod tests {
    use crate::pattern::JavaPattern;

    #[test]
    fn patterns_that_begin_differently_share_no_name() {
        let pattern = |text: &str| JavaPattern::of_list(&[text]).expect("a pattern");
        for (a, b, disjoint) in [
            ("orders", "payments", true),
            ("orders", "orders", false),
            ("orders", "ord.*", false),
            ("orders.*", "order", true),
            ("orders.*", "orders", false),
            ("orders?.*", "order", false),
            ("orders?.*", "bills", true),
            ("a+b", "ab", false),
            ("orders|a.*", "b.*|ac", false),
            (r"us\.a.*", r"us\.b.*", true),
            (".*", "a", false),
            ("a", "(?i)A", false),
            ("[ab]", "c", false),
        ] {
            let (a, b) = (pattern(a), pattern(b));
            assert_eq!(a.is_disjoint(&b), disjoint, "{a:?} {b:?}");
            assert_eq!(b.is_disjoint(&a), disjoint, "{b:?} {a:?}");
        }
    }

    #[test]
    fn names_are_told_from_patterns() {
        let pattern = JavaPattern::of_list(&["a", "b.c", r"d\.e", "f.*", "g?"]).expect("a list");

        assert_eq!(pattern.names(), ["a", "b.c", "d.e"]);
        assert!(JavaPattern::nothing().names().is_empty());
    }
}
