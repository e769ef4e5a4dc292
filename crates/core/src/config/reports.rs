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

#[test]
fn memory_for_records_has_a_default_and_a_least_value() {
    let bytes = |lines: &str| {
        let text = format!(
            "clusters = a, b\na.bootstrap.servers = a:1\nb.bootstrap.servers = b:1\n\
             a->b.enabled = true\n{lines}"
        );
        let config = check(text.as_bytes(), None).config;
        config.map(|config| config.buffer_memory_bytes)
    };

    assert_eq!(bytes(""), Some(64 << 20));
    assert_eq!(bytes("twinlog.buffer.memory = 8388608"), Some(8 << 20));
    assert_eq!(bytes("twinlog.buffer.memory = 4194303"), None);
    says(
        "twinlog.buffer.memory = 4194303",
        &["error: line 5", "the smallest value is 4194304"],
    );
    says(
        "twinlog.buffer.memory = 64 MB",
        &["write the number without a unit"],
    );
    says(
        "twinlog.bufer.memory = 8388608",
        &[
            "nobody knows this key",
            "did you mean `twinlog.buffer.memory`?",
        ],
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

#[test]
fn a_file_that_enables_no_flow_is_refused() {
    let said = said_of("clusters = a, b\na.bootstrap.servers = a:1\nb.bootstrap.servers = b:1\n");

    assert!(
        said.iter()
            .any(|said| said.starts_with("error: no flow is enabled")),
        "{said:#?}"
    );
}

#[test]
fn names_and_separators_that_no_topic_can_hold_are_refused() {
    for alias in ["a/b", "x>y", "\u{e9}"] {
        let said = said_of(&format!(
            "clusters = {alias}, b\nb.bootstrap.servers = b:1\n"
        ));
        assert!(
            said.iter()
                .any(|said| said.starts_with("error: line 1: clusters: `")),
            "{said:#?}"
        );
    }
    let blank = said_of("clusters = us west, b\nb.bootstrap.servers = b:1\n");
    assert!(
        blank[0].contains("`us west`") && blank[0].contains("blank"),
        "{blank:#?}"
    );
    for separator in ["/", "\"-\""] {
        let line = format!("replication.policy.separator = {separator}");
        says(
            &line,
            &["error: line 5", "no topic can hold", "without quotes"],
        );
    }
    assert_eq!(said("replication.policy.separator = _-"), [""; 0]);
}

#[test]
fn a_flow_written_with_blanks_or_another_arrow_is_recognised() {
    for line in [
        "a -> b.topics = x",
        "a=>b.topics = x",
        "a-> b.topics = x",
        "a-b.topics = x",
    ] {
        says(line, &["warning: line 5", "did you mean `a->b.topics`?"]);
    }
}

#[test]
fn security_that_nobody_asked_for_is_told() {
    for name in [
        "sasl.mechanism",
        "sasl.jaas.config",
        "ssl.truststore.location",
    ] {
        let parts = ["warning: line 5", "PLAINTEXT", "`a.security.protocol`"];
        says(&format!("a.{name} = x"), &parts);
    }
}

#[test]
fn old_names_are_answered_with_the_whole_new_ones() {
    says(
        "a->b.topics.blacklist = x",
        &["write `a->b.topics.exclude`"],
    );
    says("topics.whitelist = x", &["did you mean `topics`?"]);
    says(
        "a->b.groups.whitelist = x",
        &["did you mean `a->b.groups`?"],
    );
}

#[test]
fn a_byte_order_mark_is_named_and_nothing_else() {
    let rest = "clusters = a, b\na.bootstrap.servers = a:1\nb.bootstrap.servers = b:1\n\
                a->b.enabled = true\n";

    let before_a_key = said_of(&format!("\u{feff}{rest}"));
    let before_a_comment = said_of(&format!("\u{feff}# comment\n{rest}"));

    assert_eq!(before_a_key.len(), 1, "{before_a_key:#?}");
    assert!(before_a_key[0].starts_with("error: the file begins with a byte order mark"));
    assert_eq!(before_a_comment.len(), 1, "{before_a_comment:#?}");
    assert!(before_a_comment[0].starts_with("warning: the file begins with a byte order mark"));
}

#[test]
fn what_is_no_text_is_one_problem_and_control_characters_are_escaped() {
    let binary = said_of("a\u{0}b\nc\nd\n");

    assert_eq!(binary.len(), 1, "{binary:#?}");
    assert!(binary[0].starts_with("error: this is not a properties file"));
    says("\u{1b}[31mx = 1", &[r"\u{1b}[31mx: nobody knows"]);
}

#[test]
fn aliases_of_a_flow_are_those_in_its_name() {
    says(
        "source.cluster.alias = x",
        &["warning: line 5", "has no effect"],
    );
}
