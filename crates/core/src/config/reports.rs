//! What [`super::check`] says about files of a few lines; whole reports are golden files of the
//! program.

use super::{Problem, check};

/// What is said about these lines behind the head of a file that is right, each problem with its
/// hint.
fn said(lines: &str) -> Vec<String> {
    said_of(&format!(
        "clusters = a, b\na.bootstrap.servers = a:1\nb.bootstrap.servers = b:1\n\
         a->b.enabled = true\n{lines}"
    ))
}

fn said_of(text: &str) -> Vec<String> {
    let hinted = |problem: &Problem| match &problem.hint {
        Some(hint) => format!("{problem} ({hint})"),
        None => problem.to_string(),
    };
    let problems = check(text.as_bytes(), None).problems;
    problems.iter().map(hinted).collect()
}

/// The only thing that is said must hold these parts.
#[track_caller]
fn says(lines: &str, parts: &[&str]) {
    let said = said(lines);
    assert_eq!(said.len(), 1, "{lines}: {said:#?}");
    for part in parts {
        assert!(said[0].contains(part), "{lines}: `{part}` in {said:#?}");
    }
}

#[test]
fn what_would_break_a_promise_is_refused_until_it_is_there() {
    for line in ["transforms = mask", "a->b.transforms = mask"] {
        says(
            line,
            &["error: line 5", "transforms are not supported so far"],
        );
    }
    says(
        "b.exactly.once.source.support = Enabled",
        &["error: line 5", "exactly-once", "remove the line"],
    );
    for line in [
        "b.exactly.once.source.support = preparing",
        "a->b.predicates = p",
        "config.providers = file",
    ] {
        says(line, &["warning: line 5", "no effect so far"]);
    }
    assert_eq!(
        said("transforms =\nb.exactly.once.source.support = disabled"),
        [""; 0]
    );
}

/// What is said of a pair of flows that keep names, with these topics.
fn said_of_pair(there: &str, back: &str) -> Vec<String> {
    said(&format!(
        "b->a.enabled = true\n\
         replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n\
         a->b.topics = {there}\nb->a.topics = {back}\n"
    ))
}

#[test]
fn a_circle_is_an_error_where_it_is_certain_and_a_warning_where_it_may_be() {
    for (there, back, expected) in [
        ("a.*", "a.*", "error: line 8: b->a.topics: every topic"),
        ("x, y", "z, y", "error: line 8: b->a.topics: `y` would"),
        ("x", ".*", "error: line 8: b->a.topics: `x` would"),
        (
            "idb.*",
            "idboth.*",
            "warning: line 8: b->a.topics: a->b, b->a",
        ),
        (".*a", "a.*", "warning: line 8: b->a.topics: a->b, b->a"),
    ] {
        let said = said_of_pair(there, back);
        assert_eq!(said.len(), 1, "{there} and {back}: {said:#?}");
        assert!(
            said[0].starts_with(expected),
            "{there} and {back}: {said:#?}"
        );
    }
    for (there, back) in [("x", "y"), ("x.*", "y.*, z"), ("x, __y", "__y")] {
        assert_eq!(said_of_pair(there, back), [""; 0], "{there} and {back}");
    }
}
