//! `twinlog demo` as a process.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::command_line::twinlog;

#[test]
fn the_demo_mirrors_compares_both_sides_and_finds_them_equal() {
    let output = twinlog(&[
        "demo",
        "--seconds",
        "2",
        "--rate",
        "500",
        "--log-format",
        "json",
    ]);

    let told = String::from_utf8_lossy(&output.stdout);
    let log = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{told}\n{log}");
    assert!(told.contains("equal: "), "{told}");
    for line in log.lines() {
        let event: Value = serde_json::from_str(line).expect("every line is JSON");
        assert!(
            event["time"].is_string() && event["message"].is_string(),
            "{line}"
        );
        assert!(event["level"] == "INFO", "{line}");
    }
}

#[test]
fn a_reader_who_has_seen_enough_does_not_end_the_demo() {
    let mut demo = Command::new(env!("CARGO_BIN_EXE_twinlog"))
        .args(["demo", "--seconds", "1", "--rate", "100"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary under test was built");
    drop(demo.stdout.take());

    let output = demo.wait_with_output().expect("it ends");

    let log = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{log}");
}
