//! What somebody else put where lightfoot writes, or into the names that it prints: links under
//! names that can be guessed, pipes, escape sequences.
//!
//! A folder may be one that others write to, and a program chooses the names of its functions and
//! files.

mod bench;

use bench::{compile, lightfoot, Bench};
use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::Path;

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o7777
}

#[test]
fn a_link_in_the_place_of_an_unfinished_file_is_refused_and_stays() {
    let bench = Bench::new();
    let other = bench.file("other", b"kept", 0o644);
    let (trace, references) = (bench.join("t.lft"), bench.join("references"));
    for link in ["t.lft.partial", "references.part"] {
        symlink(&other, bench.join(link)).unwrap();
    }
    let traced = lightfoot().args(["trace", "--every", "1000instructions", "-o"]).arg(&trace);
    let traced = traced.args(["--", "/bin/true"]).run();
    traced.ends_with(125).says("t.lft.partial").says("move it away").in_one_line();
    let tool =
        lightfoot().args(["tool", "memory-trace", "-o"]).arg(&references).args(["--", "/bin/true"]).run();
    tool.ends_with(125).says("references").says("move it away").in_one_line();
    assert_eq!(std::fs::read(&other).unwrap(), b"kept");
    for link in ["t.lft.partial", "references.part"] {
        assert!(bench.join(link).symlink_metadata().unwrap().is_symlink(), "{link}");
        std::fs::remove_file(bench.join(link)).unwrap();
        bench.file(link, b"left by an earlier run", 0o644);
    }
    let traced = lightfoot().args(["trace", "--every", "1000instructions", "-o"]).arg(&trace);
    traced.args(["--", "/bin/true"]).run().ends_with(0);
    assert!(trace.is_file() && !bench.join("t.lft.partial").exists());
}

#[test]
fn a_memory_trace_takes_the_place_of_no_device() {
    let bench = Bench::new();
    let link = bench.join("link");
    symlink("/dev/full", &link).unwrap();
    let ran = lightfoot().args(["tool", "memory-trace", "-o"]).arg(&link).args(["--", "/bin/true"]).run();
    ran.ends_with(125).says("no file").in_one_line();
    assert!(link.symlink_metadata().unwrap().is_symlink());
}

#[test]
fn an_instrumented_program_may_do_no_more_than_its_original() {
    let bench = Bench::new();
    let program = std::fs::read("/bin/ls").unwrap();
    let out = bench.join("instrumented");
    let instrument = |original: &Path| {
        lightfoot().args(["instrument", "--tool", "count"]).arg(original).arg("-o").arg(&out).run()
    };
    for (given, wanted) in [(0o500, 0o500), (0o6755, 0o755)] {
        let original = bench.file("original", &program, given);
        instrument(&original).ends_with(0);
        assert_eq!(mode(&out), wanted, "from {given:o}");
        std::fs::remove_file(&original).unwrap();
    }
    let data = bench.file("data", &program, 0o644);
    instrument(&data).ends_with(2).says("not executable").in_one_line();
}

#[test]
fn a_program_that_is_carried_runs_from_a_folder_of_its_user_alone() {
    let bench = Bench::new();
    let (out, folder) = (bench.join("instrumented"), bench.join("tmp"));
    std::fs::create_dir(&folder).unwrap();
    let original = bench.file("ls", &std::fs::read("/bin/ls").unwrap(), 0o755);
    lightfoot().args(["instrument", "--tool", "count"]).arg(&original).arg("-o").arg(&out).run().ends_with(0);
    std::fs::remove_file(original).unwrap();
    let ran =
        std::process::Command::new(&out).args(["-l"]).arg(&folder).env("TMPDIR", &folder).output().unwrap();
    let listed = String::from_utf8_lossy(&ran.stdout).into_owned();
    let made: Vec<&str> = listed.lines().filter(|line| line.contains("lightfoot-")).collect();
    assert!(
        made.len() == 1 && made[0].starts_with("drwx------"),
        "{listed}{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    assert!(!made[0].contains(&format!("lightfoot-{}", std::process::id())), "{listed}");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "it is gone afterwards");
}

#[test]
fn names_steer_no_terminal() {
    let bench = Bench::new();
    let name = "\x1b]0;owned\x07\u{9b}31m";
    for words in [
        &["grep", "x"][..],
        &["diff", "/dev/null"],
        &["merge", "/dev/null"],
        &["index", "inspect"],
        &["count", "--"],
        &["instrument", "-o", "/dev/null"],
        &["align", "/dev/null"],
        &["perturb", "/dev/null"],
    ] {
        let ran = lightfoot().args(words).arg(bench.join(name)).run();
        let said = ran.said();
        assert!(said.contains("owned") || said.contains("/dev/null"), "{words:?}: {said}");
        assert!(!said.contains(['\x1b', '\x07', '\u{9b}']), "{words:?}: {said:?}");
    }
}

#[test]
fn names_of_functions_steer_neither_terminal_nor_spreadsheet() {
    let bench = Bench::new();
    // No assembler takes such a name, so it is put into the table of names afterwards.
    let (given, wanted) = (&b"work_that_takes_long"[..], &b"=cmd(1)\x1b[31mat_work_"[..]);
    let source = "__attribute__((noinline)) int work_that_takes_long(int n) {\n\
        volatile int s = 0; for (int i = 0; i < n; i++) s += i; return s; }\n\
        int main(void) { return work_that_takes_long(100000) == 1; }\n";
    let Some(built) = compile(&bench, "built", &[], source) else { return };
    let mut bytes = std::fs::read(built).unwrap();
    let at = bytes.windows(given.len()).position(|name| name == given).unwrap();
    bytes[at..at + wanted.len()].copy_from_slice(wanted);
    assert_eq!(given.len(), wanted.len());
    let program = bench.file("program", &bytes, 0o755);
    let text = lightfoot().args(["count", "--"]).arg(&program).run();
    text.ends_with(0).says("=cmd(1)");
    assert!(!text.said().contains('\x1b'), "{:?}", text.said());
    let csv = bench.join("out.csv");
    lightfoot().args(["count", "--format", "csv", "-o"]).arg(&csv).arg("--").arg(&program).run().ends_with(0);
    let csv = std::fs::read_to_string(csv).unwrap();
    let row = csv.lines().find(|line| line.contains("=cmd")).unwrap();
    assert!(row.starts_with("\"'=cmd(1)"), "{row}");
}

#[test]
fn an_index_is_no_pipe() {
    let bench = Bench::new();
    let pipe = bench.join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for action in ["inspect", "query"] {
        // Whoever waited for the pipe's other end would wait for ever.
        let ran = std::process::Command::new("timeout")
            .args(["120", bench::BINARY, "index", action])
            .arg(&pipe)
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(said.contains("not a regular file") && said.lines().count() == 1, "{action}: {said}");
    }
}
