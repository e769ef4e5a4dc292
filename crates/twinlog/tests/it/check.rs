//! `twinlog check` on a page of wrong files, whose reports are kept beside them.
//!
//! `UPDATE_GOLDEN=1` writes the reports anew.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::{env, fs};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/wrong");

fn twinlog(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_twinlog"))
        .args(words)
        .current_dir(DATA)
        .output()
        .expect("the binary under test was built")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The wrong files by name, in order.
fn files() -> Vec<PathBuf> {
    let entries = fs::read_dir(DATA).expect("the folder of wrong files");
    let mut files: Vec<_> = entries
        .map(|entry| entry.expect("an entry of the folder").path())
        .filter(|path| path.extension().is_some_and(|end| end == "properties"))
        .collect();
    files.sort();
    files
}

fn name(file: &Path) -> &str {
    file.file_name()
        .and_then(|name| name.to_str())
        .expect("a file of the folder has a name")
}

#[test]
fn each_wrong_file_is_reported_with_line_key_and_remedy() {
    let files = files();
    assert!(files.len() > 15, "only {} files", files.len());
    for file in files {
        let output = twinlog(&["check", name(&file)]);
        let report = text(&output.stdout);
        let golden = file.with_extension("txt");
        if env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&golden, &report).expect("write the report");
        }

        let expected = fs::read_to_string(&golden).unwrap_or_default();

        assert_eq!(report, expected, "{}", file.display());
        let failed = expected.contains("error: ");
        assert_eq!(
            output.status.code(),
            Some(i32::from(failed)),
            "{}",
            file.display()
        );
    }
}

#[test]
fn a_run_with_a_wrong_file_is_refused_with_the_same_report() {
    for file in files() {
        let report = fs::read_to_string(file.with_extension("txt")).unwrap_or_default();
        if !report.contains("error: ") {
            continue;
        }

        let output = twinlog(&["run", name(&file)]);

        assert_eq!(output.status.code(), Some(2), "{}", file.display());
        assert_eq!(text(&output.stdout), "", "{}", file.display());
        let told = text(&output.stderr);
        assert!(told.starts_with(&report), "{}: {told}", file.display());
    }
}

#[test]
fn a_file_that_is_not_there_is_a_problem_like_any_other() {
    let output = twinlog(&["check", "not-there.properties", "no-effect.properties"]);

    let report = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        report.starts_with("error: not-there.properties: read the file: "),
        "{report}"
    );
    assert!(report.contains("\nno-effect.properties: "), "{report}");
}

#[test]
fn secrets_are_shown_nowhere() {
    for words in [
        &["check", "security.properties", "--explain"][..],
        &["check", "security.properties", "--explain", "--json"],
        &["run", "security.properties"],
    ] {
        let output = twinlog(words);

        let all = text(&output.stdout) + &text(&output.stderr);
        assert!(all.contains("security.properties"), "{all}");
        assert!(
            !all.contains("hunter2") && !all.contains("hunter3"),
            "{all}"
        );
    }
}

#[test]
fn an_explanation_names_the_line_that_won() {
    let output = twinlog(&["check", "no-effect.properties", "--explain"]);

    let report = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{report}");
    let enabled = report
        .lines()
        .find(|line| line.trim_start().starts_with("enabled "));
    assert!(
        enabled.is_some_and(|line| line.ends_with("= true    # no-effect.properties:6 us->eu.enabled")),
        "{enabled:?}"
    );
    assert!(report.contains("tasks.max "), "{report}");
    assert!(report.contains("# default"), "{report}");
}

#[test]
fn json_holds_the_same_as_the_text() {
    let output = twinlog(&[
        "check",
        "typos.properties",
        "booleans.properties",
        "--json",
        "--explain",
    ]);

    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(output.status.code(), Some(1));
    let files = report["files"].as_array().expect("a list of files");
    assert_eq!(files.len(), 2);
    assert_eq!(files[0]["ok"], true);
    assert_eq!(files[0]["flows"][0]["flow"], "us->eu");
    assert_eq!(files[0]["explained"][0]["sections"][0]["name"], "flow");
    assert_eq!(files[1]["ok"], false);
    let yes = &files[1]["problems"][0];
    assert_eq!(yes["severity"], "error");
    assert_eq!(yes["line"], 5);
    assert_eq!(yes["key"], "us->eu.enabled");
}

#[test]
fn only_flows_into_the_named_clusters_are_checked() {
    let some = twinlog(&["check", "traps.properties", "--clusters", "eu", "us"]);
    let none = twinlog(&["check", "traps.properties", "--clusters", "moon"]);

    let report = text(&some.stdout);
    assert!(report.contains("  us->eu: replicates\n"), "{report}");
    assert!(report.contains("  eu->us: "), "{report}");
    assert!(!report.contains("->us.east: "), "{report}");
    assert_eq!(none.status.code(), Some(1));
    assert!(
        text(&none.stdout).contains("error: traps.properties: `--clusters moon`: no such cluster")
    );
}

#[test]
fn a_file_on_standard_input_is_checked_and_only_its_first_hundred_warnings_are_shown() {
    let head = "clusters = a, b\na.bootstrap.servers = a:1\nb.bootstrap.servers = b:1\na->b.enabled = true\n";
    let unknown: String = (0..1000)
        .map(|n| format!("nobody{n}.knows = 1\n"))
        .collect();
    let mut check = Command::new(env!("CARGO_BIN_EXE_twinlog"))
        .args(["check", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary under test was built");

    let mut stdin = check.stdin.take().expect("standard input is piped");
    write!(stdin, "{head}{unknown}").expect("the check reads all of it");
    drop(stdin);
    let output = check.wait_with_output().expect("the check ends");

    let report = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{report}");
    assert_eq!(report.matches("warning: ").count(), 100);
    assert!(
        report.contains("standard input: and 900 more warnings\nstandard input: 1000 warnings\n"),
        "{report}"
    );
}
