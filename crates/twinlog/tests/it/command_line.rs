//! Exit codes, and who is told what on which stream.

use std::process::{Command, Output};

/// What `twinlog` answers to these words.
pub fn twinlog(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_twinlog"));
    command
        .args(words)
        .output()
        .expect("the binary under test was built")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn misuse_ends_with_2_and_help_on_standard_error() {
    for words in [
        &[][..],
        &["mirror"],
        &["run"],
        &["run", "--cluster", "a"],
        &["run", "mm2.properties", "--clusters"],
        &["run", "mm2.properties", "--status-interval", "5 parsecs"],
        &["run", "mm2.properties", "--log-format", "xml"],
        &["run", "--clusters", "a", "mm2.properties"],
        &["demo", "--seconds", "long"],
    ] {
        let output = twinlog(words);

        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert_eq!(text(&output.stdout), "", "{words:?}");
        let told = text(&output.stderr);
        assert!(
            told.contains("--help") || told.contains("Usage:"),
            "{words:?}: {told}"
        );
    }
}

#[test]
fn help_and_version_end_with_0_on_standard_output() {
    for (words, expected) in [
        (
            &["--help"][..],
            "1 failed (`check`: a file has errors), 2 misused (`run`: the file has errors)",
        ),
        (&["run", "--help"], "--clusters <ALIAS>..."),
        (&["help", "demo"], "--seconds <SECONDS>"),
        (&["--version"], env!("CARGO_PKG_VERSION")),
    ] {
        let output = twinlog(words);

        assert_eq!(output.status.code(), Some(0), "{words:?}");
        assert_eq!(text(&output.stderr), "", "{words:?}");
        assert!(
            text(&output.stdout).contains(expected),
            "{words:?}: {}",
            text(&output.stdout)
        );
    }
}

#[test]
fn a_file_that_is_not_there_is_an_error_with_a_hint() {
    let output = twinlog(&["run", "missing.properties"]);

    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.starts_with("error: missing.properties: "), "{told}");
    assert!(told.contains("\nhint: "), "{told}");
}

#[test]
fn a_log_level_that_is_none_is_told_before_anything_starts() {
    let output = twinlog(&["demo", "--log-level", "twinlog=loud"]);

    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(
        told.contains("twinlog=loud") && told.contains("hint: "),
        "{told}"
    );
}

#[test]
fn a_word_that_is_no_log_level_is_refused_with_the_levels_there_are() {
    for (word, meant) in [
        ("warning", "did you mean warn?"),
        ("inof", "did you mean info?"),
        ("bogus", "error, warn, info, debug, trace, off"),
        ("info,twinlog", "\"twinlog\" is none of"),
    ] {
        let output = twinlog(&["demo", "--log-level", word]);

        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains(meant), "{told}");
    }
}
