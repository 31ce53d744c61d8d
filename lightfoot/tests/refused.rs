//! What cannot be measured is refused in one sentence, which names what is missing: interpreters,
//! rights, address space.

mod bench;

use bench::{compile, lightfoot, Bench, BINARY};
use std::os::unix::fs::{chown, PermissionsExt};
use std::path::Path;
use std::process::Command;

const MEASURING: [&[&str]; 4] =
    [&["count"], &["cache"], &["tool", "opcode-mix"], &["trace", "--engine", "native", "-o", "/dev/null"]];

#[test]
fn a_missing_interpreter_is_named() {
    let bench = Bench::new();
    let script = bench.file("script", b"#!/no/such/interpreter -w\n", 0o755);
    let windows = bench.file("windows", b"#!/bin/sh\r\necho\r\n", 0o755);
    let through = format!("#!{}\n", script.display());
    let through = bench.file("through", through.as_bytes(), 0o755);
    for words in MEASURING {
        let said = |file: &Path| lightfoot().args(words).arg("--").arg(file).run();
        said(&script).fails_with(127).says("'/no/such/interpreter'").in_one_line();
        said(&windows).fails_with(127).says("'/bin/sh\\r'").says("carriage return").in_one_line();
        said(&through).fails_with(127).says("'/no/such/interpreter'").says("script'").in_one_line();
    }
    let source = "int main(){return 0;}";
    let linker = ["-Wl,--dynamic-linker=/no/such/linker"];
    let Some(program) = compile(&bench, "linked", &linker, source) else { return };
    for words in MEASURING {
        let ran = lightfoot().args(words).arg("--").arg(&program).run();
        ran.fails_with(127).says("'/no/such/linker'").in_one_line();
    }
}

#[test]
fn an_interpreter_that_cannot_be_executed_is_named() {
    let bench = Bench::new();
    let plain = bench.file("plain", b"echo\n", 0o644);
    let script = bench.file("script", format!("#!{}\n", plain.display()).as_bytes(), 0o755);
    lightfoot()
        .arg("count")
        .arg(&script)
        .run()
        .fails_with(126)
        .says("plain")
        .says("not executable")
        .in_one_line();
}

#[test]
fn little_address_space_is_a_sentence() {
    for kilobytes in ["20000", "60000", "400000", "8000000"] {
        for words in [&["count"][..], &["cache"], &["tool", "opcode-mix"]] {
            let line = format!("ulimit -v {kilobytes}; exec \"$@\"");
            let mut command = Command::new("sh");
            command.args(["-c", &line, "sh", BINARY]).args(words).arg("true");
            let out = bench::unwished(&mut command).output().unwrap();
            let said = String::from_utf8_lossy(&out.stderr);
            assert_eq!(out.status.code(), Some(125), "{kilobytes} {words:?}: {said}");
            assert!(said.contains("ulimit -v") && said.lines().count() == 1, "{kilobytes} {words:?}: {said}");
        }
    }
}

/// A copy of `true` with the attribute that `setcap cap_net_raw+ep` writes; only root can make one.
fn with_capabilities(bench: &Bench, name: &str) -> Option<std::path::PathBuf> {
    const ATTRIBUTE: [u8; 20] = [1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let path = bench.file(name, &std::fs::read("/bin/true").unwrap(), 0o755);
    let set = rustix::fs::setxattr(&path, "security.capability", &ATTRIBUTE, rustix::fs::XattrFlags::CREATE);
    if let Err(error) = set {
        eprintln!("skipped: no capabilities can be given to a file here ({error})");
        return None;
    }
    std::fs::set_permissions(bench.path(), PermissionsExt::from_mode(0o755)).unwrap();
    Some(path)
}

/// The words of a command as another user; `None`, and said, where that cannot be.
fn as_nobody(bench: &Bench) -> Option<Vec<String>> {
    // Where that user may execute it.
    let copy = bench.file("lightfoot", &std::fs::read(BINARY).unwrap(), 0o755);
    std::fs::set_permissions(bench.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let words = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];
    let can = Command::new(words[0]).args(&words[1..]).arg("true").output();
    if !can.is_ok_and(|out| out.status.success()) {
        eprintln!("skipped: no other user to be here (setpriv)");
        return None;
    }
    Some(words.iter().map(|word| word.to_string()).chain([copy.display().to_string()]).collect())
}

fn nobody_runs(words: &[String], rest: &[&str], program: &Path) -> (Option<i32>, String) {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).args(rest).arg(program).env("LIGHTFOOT_TRANSLATIONS", "off");
    let out = bench::unwished(&mut command).output().unwrap();
    (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
}

#[test]
fn a_file_with_capabilities_is_refused_to_who_lacks_them() {
    let bench = Bench::new();
    let Some(program) = with_capabilities(&bench, "capable") else { return };
    // Who has them already runs it as natively.
    lightfoot().arg("count").arg(&program).run().ends_with(0);
    let Some(nobody) = as_nobody(&bench) else { return };
    for words in MEASURING {
        let (status, said) = nobody_runs(&nobody, words, &program);
        assert_eq!(status, Some(126), "{words:?}: {said}");
        assert!(said.contains("capabilities") && said.lines().count() == 1, "{words:?}: {said}");
    }
    let interpreted = bench.file("interpreted", format!("#!{}\n", program.display()).as_bytes(), 0o755);
    let (status, said) = nobody_runs(&nobody, &["count"], &interpreted);
    assert_eq!(status, Some(126), "{said}");
    assert!(said.contains("capabilities"), "{said}");
}

#[test]
fn a_set_user_id_program_of_the_callers_own_runs_as_natively() {
    let bench = Bench::new();
    let Some(nobody) = as_nobody(&bench) else { return };
    let program = bench.file("own", &std::fs::read("/bin/true").unwrap(), 0o755);
    if chown(&program, Some(65534), Some(65534)).is_err() {
        return eprintln!("skipped: only root can give a file to another user");
    }
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o6755)).unwrap();
    for words in MEASURING {
        let (status, said) = nobody_runs(&nobody, words, &program);
        assert_eq!(status, Some(0), "{words:?}: {said}");
    }
    // Another's is refused, and so is another group's.
    lightfoot().arg("count").arg(&program).run().fails_with(126).says("setuid").in_one_line();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o2755)).unwrap();
    lightfoot().arg("count").arg(&program).run().fails_with(126).says("setgid").in_one_line();
}

#[test]
fn rights_that_the_system_ignores_are_no_reason_to_refuse() {
    let bench = Bench::new();
    let Some(program) = bench.setuid_copy("/bin/true") else { return };
    let out = Command::new("setpriv").args(["--no-new-privs", BINARY, "count"]).arg(&program).output();
    let Ok(out) = out else { return eprintln!("skipped: no setpriv here") };
    assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
    // A script's own bits mean nothing to the kernel.
    let script = bench.file("script", b"#!/bin/sh\nexit 3\n", 0o755);
    chown(&script, Some(65534), None).unwrap();
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o4755)).unwrap();
    lightfoot().arg("count").arg(&script).run().ends_with(3);
}
