//! How every command behaves towards a terminal, a pipe and the system around it, as one table of
//! commands and one promise a test.
//!
//! The model is ripgrep: a reader that goes away is no error, a device that is full is one, nothing
//! is coloured that must not be, names are bytes, and what the environment lacks is done without.

mod bench;

use bench::{lightfoot, unwished, Bench, BINARY};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Commands that end by themselves, with status 0, wherever they run.
const COMMANDS: &[&[&str]] = &[
    &["--help"],
    &["--version"],
    &["count", "--help"],
    &["cache", "-h"],
    &["index", "build", "--help"],
    &["study", "--list"],
    &["tool"],
    &["doctor"],
    &["machines"],
    &["machines", "zen5"],
    &["machines", "host", "--toml"],
    &["doctor", "--format", "json"],
    &["man"],
    &["man", "cache"],
    &["man", "index", "build"],
    &["completions", "bash"],
    &["completions", "fish"],
    &["grep", "-h"],
    &["grep", "--help"],
    &["grep", "--version"],
    &["grep", "--generate", "man"],
    &["tile", "--no-measure", "--n", "64"],
    &["count", "true"],
    &["count", "--format=csv", "true"],
    &["cache", "--top=3", "true"],
    &["cache", "--format", "json", "true"],
    &["tool", "opcode-mix", "true"],
    &["trace", "--every", "1e5instructions", "-o", "/dev/null", "true"],
];

/// Those that write to standard output.
fn printing() -> impl Iterator<Item = &'static &'static [&'static str]> {
    COMMANDS.iter().filter(|words| words.last() != Some(&"true"))
}

fn command(words: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    unwished(&mut command).args(words).env("LIGHTFOOT_TRANSLATIONS", "off").stdin(Stdio::null());
    command
}

#[track_caller]
fn quiet(words: &[&str], out: &Output) {
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(!said.contains("panicked") && !said.contains("pipe"), "{words:?}: {said}");
}

#[test]
fn a_reader_that_has_gone_is_silence() {
    for words in COMMANDS {
        for closed in ["stdout", "stderr"] {
            let mut child = command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            match closed {
                "stdout" => drop(child.stdout.take()),
                _ => drop(child.stderr.take()),
            }
            let out = child.wait_with_output().unwrap();
            quiet(words, &out);
            assert_eq!(out.status.code(), Some(0), "{words:?} without {closed}: {out:?}");
        }
    }
}

#[test]
fn a_full_device_is_an_error_and_is_said() {
    for words in printing().filter(|words| words.first() != Some(&"trace")) {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let out = command(words).stdout(full).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(matches!(out.status.code(), Some(125 | 2)), "{words:?}: {:?} {said}", out.status);
        assert!(said.contains("cannot write") && !said.contains("panicked"), "{words:?}: {said}");
    }
}

#[test]
fn closed_descriptors_change_nothing() {
    for words in COMMANDS {
        let closing = r#"exec "$@" <&- >&- 2>&-"#;
        let status = Command::new("sh").args(["-c", closing, "sh", BINARY]).args(*words).status().unwrap();
        assert_eq!(status.code(), Some(0), "{words:?}");
    }
}

#[test]
fn no_line_for_people_is_wider_than_80_columns() {
    let for_programs = ["json", "--format=csv", "completions", "man", "--toml"];
    for words in COMMANDS.iter().filter(|words| !words.iter().any(|word| for_programs.contains(word))) {
        let out = command(words).output().unwrap();
        let both = [out.stdout, out.stderr].concat();
        let text = String::from_utf8(both).unwrap();
        // A warning is one line, for whoever looks for it.
        for line in text.lines().filter(|line| !line.starts_with("warning: ")) {
            assert!(line.chars().count() <= 80 || line.split_whitespace().count() == 1, "{words:?}: {line}");
        }
    }
}

#[test]
fn a_pipe_gets_no_escape_sequences() {
    for words in COMMANDS {
        let out = command(words).output().unwrap();
        assert!(![out.stdout, out.stderr].concat().contains(&0x1b), "{words:?}");
    }
}

/// What a command writes on a terminal of 80 columns; `None` where there is no `script` to make
/// one.
fn on_terminal(words: &[&str], variables: &[(&str, &str)]) -> Option<Vec<u8>> {
    let line = format!("stty cols 80; '{BINARY}' {}", words.join(" "));
    let mut script = Command::new("script");
    unwished(&mut script).args(["-qec", &line, "/dev/null"]).env("TERM", "xterm").stdin(Stdio::null());
    // It runs the line by the user's own shell.
    script.env("SHELL", "/bin/sh");
    for (name, value) in variables {
        script.env(name, value);
    }
    script.output().ok().map(|out| out.stdout)
}

#[test]
fn colour_is_for_terminals_that_want_it() {
    let Some(plainly) = on_terminal(&["count", "true"], &[]) else { return eprintln!("skipped: no script") };
    if plainly.is_empty() {
        return eprintln!("skipped: no terminal can be made here");
    }
    assert!(plainly.contains(&0x1b), "{:?}", String::from_utf8_lossy(&plainly));
    for words in COMMANDS {
        for variables in [("NO_COLOR", "1"), ("TERM", "dumb")] {
            let out = on_terminal(words, &[variables]).unwrap();
            assert!(!out.contains(&0x1b), "{words:?} {variables:?}: {:?}", String::from_utf8_lossy(&out));
        }
    }
}

/// A command whose message is longer than a line.
const LONG: &[&str] = &["cache", "--sort", "nothing", "true"];

#[test]
fn sentences_are_broken_for_terminals_and_whole_for_pipes() {
    let out = command(LONG).env("COLUMNS", "60").output().unwrap();
    let said = String::from_utf8(out.stderr).unwrap();
    assert!(said.lines().count() == 1 && said.len() > 100, "{said}");
    for (variables, columns) in [(&[] as &[_], 80), (&[("COLUMNS", "60")], 60), (&[("COLUMNS", "wide")], 80)]
    {
        let Some(out) = on_terminal(LONG, variables) else { return eprintln!("skipped: no script") };
        if out.is_empty() {
            return eprintln!("skipped: no terminal can be made here");
        }
        let said = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = said.lines().collect();
        assert!(lines.len() > 1 && lines.iter().all(|line| line.chars().count() <= columns), "{said}");
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert!(words(&said).join(" ").contains("the columns are instructions, blocks"), "{said}");
    }
}

#[test]
fn colour_may_be_forced_but_not_into_files() {
    let bench = Bench::new();
    let file = bench.join("report");
    let forced = |words: &[&str]| command(words).env("CLICOLOR_FORCE", "1").output().unwrap();
    assert!(forced(&["count", "true"]).stderr.contains(&0x1b));
    forced(&["count", "-o", file.to_str().unwrap(), "true"]);
    assert!(!std::fs::read(&file).unwrap().contains(&0x1b));
    let out =
        command(&["count", "true"]).envs([("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]).output().unwrap();
    assert!(!out.stderr.contains(&0x1b));
}

#[test]
fn an_environment_that_lacks_everything_will_do() {
    let lacking: &[&[(&str, &str)]] = &[
        &[],
        &[("HOME", "/no/such/home"), ("TMPDIR", "/proc/no/such"), ("XDG_CACHE_HOME", "/proc/no/such")],
        &[("HOME", "/proc"), ("TMPDIR", "/proc"), ("XDG_CACHE_HOME", "/proc")],
        &[("HOME", ""), ("TMPDIR", ""), ("XDG_CACHE_HOME", ""), ("COLUMNS", "nonsense"), ("TERM", "")],
    ];
    for words in COMMANDS {
        for variables in lacking {
            let mut command = Command::new(BINARY);
            command.args(*words).env_clear().env("PATH", "/usr/bin:/bin").envs(variables.iter().copied());
            let out = command.stdin(Stdio::null()).output().unwrap();
            quiet(words, &out);
            assert_eq!(out.status.code(), Some(0), "{words:?} {variables:?}: {out:?}");
        }
    }
    // XDG_CACHE_HOME wins, so this is a run without it.
    lightfoot()
        .env("HOME", "/no/such/home")
        .env("XDG_CACHE_HOME", "")
        .args(["count", "true"])
        .run()
        .ends_with(0);
    assert!(!Path::new("/no").exists(), "a home that was not there has been made");
}

#[test]
fn a_folder_that_is_read_only_or_gone_will_do() {
    for words in COMMANDS {
        let out = command(words).current_dir("/proc").output().unwrap();
        quiet(words, &out);
        assert_eq!(out.status.code(), Some(0), "{words:?}: {out:?}");
        let bench = Bench::new();
        let gone = r#"mkdir "$1/gone" && cd "$1/gone" && rmdir "$1/gone" && shift && exec "$@""#;
        let mut shell = Command::new("sh");
        shell.args(["-c", gone, "sh"]).arg(bench.path()).arg(BINARY).args(*words).stdin(Stdio::null());
        let out = shell.output().unwrap();
        quiet(words, &out);
        assert_eq!(out.status.code(), Some(0), "{words:?}: {out:?}");
    }
    let out = command(&["count", "-o", "report", "true"]).current_dir("/proc").output().unwrap();
    assert_eq!(out.status.code(), Some(125));
    assert!(String::from_utf8_lossy(&out.stderr).contains("report"), "{out:?}");
}

#[test]
fn nobody_need_read_what_is_told() {
    let bench = Bench::new();
    let keys = bench.file("keys", b"3\n1\n2\n", 0o644);
    let (index, program) = (bench.join("index"), bench.join("program"));
    let paths = [&keys, &index, &program].map(|path| path.to_str().unwrap());
    let lines: &[&[&str]] = &[
        &["index", "build", paths[0], "-o", paths[1]],
        &["index", "inspect", paths[1]],
        &["instrument", "/bin/true", "-o", paths[2]],
        &["study", "no-such-study"],
        &["count", "--no-such-option"],
        &["diff", paths[0], paths[0]],
        &["merge", paths[0], paths[0]],
    ];
    for words in lines {
        for closed in [[Stdio::piped(), Stdio::null()], [Stdio::null(), Stdio::piped()]] {
            let [stdout, stderr] = closed;
            let mut child = command(words).stdout(stdout).stderr(stderr).spawn().unwrap();
            drop((child.stdout.take(), child.stderr.take()));
            let status = child.wait().unwrap();
            assert!(matches!(status.code(), Some(0 | 2 | 125)), "{words:?}: {status}");
        }
    }
}

fn odd(name: &[u8]) -> OsString {
    OsStr::from_bytes(name).to_owned()
}

#[test]
fn names_are_bytes() {
    let bench = Bench::new();
    let program = bench.path().join(odd(b"prog\xff"));
    std::fs::copy("/bin/true", &program).unwrap();
    let machine = bench.path().join(odd(b"machine\xfe.toml"));
    let presets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../machine/machines");
    std::fs::copy(presets.join("pentium2.toml"), &machine).unwrap();
    for format in ["text", "json", "csv", "cachegrind", "callgrind", "firefox", "html"] {
        let out = bench.path().join(odd(b"out\xfd"));
        let mut attached = odd(b"-o");
        attached.push(&out);
        let ran = lightfoot().args(["cache", "--format", format, "--machine"]).arg(&machine).arg(attached);
        ran.arg(&program).arg(odd(b"\xff=\xfe")).run().ends_with(0);
        let report = std::fs::read(&out).unwrap();
        assert!(std::str::from_utf8(&report).is_ok(), "{format}: other programs read it as UTF-8");
        std::fs::remove_file(&out).unwrap();
    }
    let out = bench.path().join(odd(b"carried\xfc"));
    lightfoot().arg("instrument").arg(&program).arg("-o").arg(&out).run().ends_with(0);
    assert!(Command::new(&out).output().unwrap().status.success());
}

#[test]
fn sources_have_names_of_bytes() {
    let bench = Bench::new();
    let folder = bench.path().join(odd(b"source\xff"));
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(
        folder.join("a.c"),
        "int main(void) { volatile int n = 0; while (n < 9) n++; return 0; }\n",
    )
    .unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-g", "-o"]).arg(folder.join("a")).arg(folder.join("a.c"));
    if !compiler.status().is_ok_and(|status| status.success()) {
        return eprintln!("skipped: no cc");
    }
    for format in ["text", "csv", "html", "cachegrind"] {
        let ran = lightfoot()
            .args(["count", "--by", "line", "--top", "0", "--format", format])
            .arg(folder.join("a"));
        ran.run().ends_with(0).says("a.c");
    }
}

#[test]
fn values_are_attached_or_not() {
    let bench = Bench::new();
    for words in [
        &["-o", "@", "--top", "2"] as &[_],
        &["-o@", "--top=2"],
        &["-o=@", "--top=2"],
        &["--output=@", "--top", "2"],
    ] {
        for kind in ["count", "cache"] {
            let out = bench.join("report");
            let words = words.iter().map(|word| word.replace('@', out.to_str().unwrap()));
            // What follows the program is its own, whatever it looks like.
            lightfoot().arg(kind).args(words).args(["echo", "-oother", "--top=9"]).run().ends_with(0);
            assert!(std::fs::read_to_string(&out).unwrap().contains("2") && out.exists());
            std::fs::remove_file(out).unwrap();
        }
    }
    lightfoot().args(["count", "-x", "true"]).run().fails_with(125).says("-x").in_one_line();
    lightfoot()
        .args(["diff", "--fail-abov", "a", "b"])
        .run()
        .fails_with(2)
        .says("--fail-above")
        .in_one_line();
}
