//! The example tools, as programs: each runs, leaves the program what it is, and finds what a
//! program that we know does.

use std::path::PathBuf;
use std::process::Command;

/// An example's program; the build puts it beside the tests.
fn example(name: &str) -> PathBuf {
    let this = std::env::current_exe().expect("this test's own path");
    let profile = this.ancestors().nth(2).expect("the folder of the profile");
    profile.join("examples").join(name)
}

/// What an example says of a shell command.
fn said(name: &str, command: &str) -> String {
    let ran = Command::new(example(name))
        .args(["/bin/sh", "-c", command])
        .output()
        .expect("the example runs; a whole `cargo test` builds examples, `--test` alone does not");
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "hello\n");
    assert_eq!(ran.status.code(), Some(3));
    String::from_utf8_lossy(&ran.stderr).into_owned()
}

/// The number before a total's name.
fn total(said: &str, name: &str) -> u64 {
    let line = said
        .lines()
        .find(|line| line.ends_with(&format!("  {name}")))
        .unwrap_or_else(|| panic!("{name}: {said}"));
    line.split_whitespace().next().unwrap().parse().unwrap()
}

const COMMAND: &str = "echo hello; exit 3";

#[test]
fn branches_are_mostly_predicted() {
    let said = said("branch_prediction", COMMAND);
    let all = total(&said, "taken") + total(&said, "not taken");
    let wrong = total(&said, "mispredicted");
    assert!(all > 1000 && wrong > 0 && wrong < all / 3, "{said}");
}

#[test]
fn system_calls_are_named() {
    let said = said("system_calls", COMMAND);
    assert!(
        total(&said, "system calls") > 5 && said.contains("1 write") && said.contains("231 exit_group"),
        "{said}"
    );
}

#[test]
fn memory_is_asked_for() {
    let said = said("dynamic_memory", COMMAND);
    assert!(total(&said, "bytes mapped") > 4096, "{said}");
}

#[test]
fn few_accesses_are_unaligned() {
    let said = said("unaligned_accesses", COMMAND);
    assert!(total(&said, "accesses") > 10 * total(&said, "unaligned"), "{said}");
}

#[test]
fn output_is_counted() {
    let said = said("input_output", COMMAND);
    assert_eq!((total(&said, "writes"), total(&said, "bytes offered")), (1, 6), "{said}");
}
