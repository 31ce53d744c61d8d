//! Programs that carry their measurement with them, and crates of one's own tools.

mod bench;

use bench::{compile, json, lightfoot, Bench, BINARY};
use std::path::Path;
use std::process::Command;

const PROGRAM: &str = "\
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv)
{
    const char *name = strrchr(argv[0], '/');
    printf(\"%s\", name ? name + 1 : argv[0]);
    for (int i = 1; i < argc; i++)
        printf(\" %s\", argv[i]);
    printf(\"\\n\");
    return 7;
}
";

#[test]
fn an_instrumented_program_runs_by_itself() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "prog", &["-g"], PROGRAM) else { return };
    let (file, report) = (bench.join("prog.counted"), bench.join("report.json"));
    let with = [
        format!("--with=--output={}", report.display()),
        "--with=--format=json".into(),
        "--with=--by=line".into(),
    ];
    let made = lightfoot().arg("instrument").arg(&program).args(with).arg("-o").arg(&file).run();
    made.ends_with(0);
    let run = || Command::new(&file).args(["--version", "count"]).output().unwrap();
    let out = run();
    assert_eq!((out.stdout.as_slice(), out.status.code()), (&b"prog --version count\n"[..], Some(7)));
    let lines = |bytes: Vec<u8>| json(&bytes)["rows"].as_array().unwrap().iter().any(|row| row["line"] == 6);
    assert!(lines(std::fs::read(&report).unwrap()));
    // Elsewhere the program is not where it was: the file brings it along.
    std::fs::remove_file(&program).unwrap();
    std::fs::remove_file(&report).unwrap();
    let out = run();
    assert_eq!((out.stdout.as_slice(), out.status.code()), (&b"prog --version count\n"[..], Some(7)));
    assert!(lines(std::fs::read(&report).unwrap()));
}

#[test]
fn what_is_no_file_keeps_its_place() {
    use std::os::unix::fs::FileTypeExt;
    let bench = Bench::new();
    let pipe = bench.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let made = lightfoot().args(["instrument", "true", "-o"]).arg(&pipe).run();
    made.fails_with(2).says("is no file").in_one_line();
    assert!(pipe.symlink_metadata().unwrap().file_type().is_fifo());
}

#[test]
fn an_instrumented_program_that_is_stripped_still_runs() {
    let bench = Bench::new();
    let file = bench.join("true.mix");
    let made = lightfoot().args(["instrument", "true", "--tool", "opcode-mix", "-o"]).arg(&file).run();
    made.ends_with(0);
    for tool in [&["strip"][..], &["strip", "--strip-all"], &["objcopy", "--strip-debug"]] {
        let stripped = Command::new(tool[0]).args(&tool[1..]).arg(&file).status();
        assert!(stripped.expect("binutils are installed").success());
        let out = Command::new(&file).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success() && said.contains("lightfoot tool opcode-mix"), "{tool:?}: {said}");
    }
}

/// The most bytes of the installed program, on which every instrumented program is built.
const INSTALLED_BYTES_MAX: u64 = 16_000_000;
/// The most bytes that an instrumented program has beyond lightfoot's and the program's own: the
/// options, and a second section table with its names.
const CARRIED_BYTES_MAX: u64 = 8192;

#[test]
fn the_release_and_what_it_instruments_are_small() {
    let bytes = |path: &Path| std::fs::metadata(path).unwrap().len();
    let (bench, own) = (Bench::new(), bytes(Path::new(BINARY)));
    let program = Path::new("/bin/true");
    let file = bench.join("true.counted");
    lightfoot().arg("instrument").arg(program).arg("-o").arg(&file).run().ends_with(0);
    let most = own + bytes(program) + CARRIED_BYTES_MAX;
    assert!(bytes(&file) <= most, "{} bytes of at most {most}", bytes(&file));
    // Other profiles keep debug information, and the libraries of the peers are large.
    let profile = Path::new(BINARY).parent().and_then(Path::file_name);
    if profile == Some("release".as_ref()) && !cfg!(feature = "peers") {
        assert!(own <= INSTALLED_BYTES_MAX, "lightfoot has {own} bytes");
    }
}

#[test]
fn an_instrumented_program_that_is_damaged_says_so() {
    let bench = Bench::new();
    let file = bench.join("true.mix");
    let made = lightfoot().args(["instrument", "true", "--tool", "opcode-mix", "-o"]).arg(&file).run();
    made.ends_with(0);
    let out = Command::new(&file).output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && said.contains("lightfoot tool opcode-mix"), "{said}");
    let own = std::fs::metadata(BINARY).unwrap().len() as usize;
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[own + 1000] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let out = Command::new(&file).output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.code() == Some(126) && said.contains("damaged"), "{said}");
}

#[test]
fn what_cannot_be_instrumented_is_named() {
    let bench = Bench::new();
    let script = bench.file("script", b"#!/bin/sh\n", 0o755);
    let out = bench.join("out");
    let instrument = || lightfoot().arg("instrument").arg("-o").arg(&out);
    instrument().arg(&script).run().fails_with(2).says("script").says("interpreter").in_one_line();
    instrument().arg("no-such-program").run().fails_with(2).says("no-such-program").in_one_line();
    instrument()
        .args(["true", "--tool", "mind-reader"])
        .run()
        .fails_with(2)
        .says("mind-reader")
        .says("coverage");
    instrument().args(["true", "--with=--no-such"]).run().fails_with(2).says("--no-such");
    assert!(!out.exists());
}

#[test]
fn a_new_tool_builds_and_runs() {
    let bench = Bench::new();
    let folder = bench.join("my-tool");
    let make = || lightfoot().args(["new-tool", "my-tool", "-o"]).arg(&folder).run();
    make().ends_with(0);
    make().fails_with(2).says("exists already").in_one_line();
    lightfoot().args(["new-tool", "My Tool"]).run().fails_with(2).says("My Tool").in_one_line();
    // The versions that this workspace uses are there; others would have to be fetched.
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    std::fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let ran = Command::new(cargo)
        .args(["run", "--quiet", "--offline", "--manifest-path"])
        .arg(folder.join("Cargo.toml"))
        .args(["--", "/bin/true"])
        .env("CARGO_TARGET_DIR", std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("new-tool"))
        .output();
    let Ok(ran) = ran else {
        eprintln!("skipped: there is no cargo here");
        return;
    };
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && said.contains("loads") && said.contains("libc"), "{said}");
}
