//! The nearest thing that exists to what somebody wrote.

/// The candidate nearest to `written`, if one is near enough to be what was meant.
pub(super) fn nearest<S: AsRef<str>>(
    written: &str,
    candidates: impl IntoIterator<Item = S>,
) -> Option<S> {
    let length = written.chars().count();
    let limit = ((length + 1) / 4).min(4);
    candidates
        .into_iter()
        // Files may hold any number of keys of any length: only what can be near is compared.
        .filter(|candidate| candidate.as_ref().chars().count().abs_diff(length) <= limit)
        .map(|candidate| (distance(written, candidate.as_ref()), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Letters to insert, remove, change or swap with their neighbour to get from `a` to `b`; a change
/// of case, or of `_` and `-` to a dot, costs nothing (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = normalized(a);
    let b: Vec<char> = normalized(b);
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let changed = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = changed.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

fn normalized(text: &str) -> Vec<char> {
    text.chars()
        .map(|c| {
            if matches!(c, '_' | '-') {
                '.'
            } else {
                c.to_ascii_lowercase()
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_finds_what_was_meant_and_nonsense_finds_nothing() {
        let known = ["topics", "topics.exclude", "tasks.max", "bootstrap.servers"];

        assert_eq!(nearest("topic", known), Some("topics"));
        assert_eq!(nearest("boostrap.server", known), Some("bootstrap.servers"));
        assert_eq!(nearest("task_max", known), Some("tasks.max"));
        assert_eq!(nearest("tasks.mxa", known), Some("tasks.max"));
        assert_eq!(nearest("consumer.group", known), None);
    }
}
