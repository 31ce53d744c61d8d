//! `lightfoot grep` on lines and expressions that may cost gigabytes: memory is bounded, and every
//! way of reading gives the same count.

mod bench;

use bench::{unwished, Bench, BINARY};
use std::process::{Command, Output, Stdio};

/// Runs a shell line in which `$GREP` is the command, with at most so much private memory for it.
fn bounded(bench: &Bench, memory_mib: usize, script: &str) -> Output {
    let mut command = Command::new("sh");
    unwished(&mut command);
    let limited = format!("(ulimit -d {} && exec \"$@\")", memory_mib << 10);
    let script =
        format!("grep_() {limited}\nGREP() {{ grep_ '{BINARY}' grep --no-config \"$@\"; }}\n{script}");
    command.args(["-c", &script]).current_dir(bench.path()).stdin(Stdio::null()).output().unwrap()
}

#[track_caller]
fn prints(output: &Output, wanted: &str) {
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(String::from_utf8_lossy(&output.stdout), wanted);
}

#[test]
fn nested_counts_on_one_long_line_cost_no_automaton() {
    let bench = Bench::new();
    bench.file("letters", &b"a".repeat(16 << 20), 0o644);
    for words in ["-c", "--no-mmap -c", "-j1 -c", "-l"] {
        let wanted = if words == "-l" { "letters\n" } else { "1\n" };
        prints(&bounded(&bench, 80, &format!("GREP {words} '(a{{0,100}}){{0,100}}' letters")), wanted);
    }
}

#[test]
fn a_line_with_many_matches_is_printed_as_it_comes() {
    let bench = Bench::new();
    std::fs::create_dir(bench.join("folder")).unwrap();
    let line = [&b"ab ".repeat(8000)[..], b"\n"].concat();
    for name in ["one", "two"] {
        bench.file(&format!("folder/{name}"), &line, 0o644);
    }
    // Path, line, column and the line itself for each match.
    let fields =
        |name: &str| (0..8000).map(|at| format!("folder/{name}:1:{}:", 3 * at + 1).len()).sum::<usize>();
    let whole = fields("one") + fields("two") + 16_000 * line.len();
    for threads in ["-j1", "-j2"] {
        let output = bounded(&bench, 64, &format!("GREP {threads} --vimgrep ab folder | wc -c"));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), whole.to_string(), "{threads}");
    }
    let first = bounded(
        &bench,
        64,
        "GREP -j2 --vimgrep ab folder | head -1 | wc -l; GREP -j2 --vimgrep ab folder | cut -d: -f1 | uniq",
    );
    let said = String::from_utf8_lossy(&first.stdout).into_owned();
    let mut lines: Vec<&str> = said.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["1", "folder/one", "folder/two"], "a file's results stand together");
}

#[test]
fn short_lines_behind_a_long_one_are_counted_however_the_text_is_read() {
    let bench = Bench::new();
    std::fs::create_dir(bench.join("folder")).unwrap();
    let mut text = Vec::new();
    for _ in 0..4 {
        text.extend(b"some x\nnone\n".repeat(30_000));
        text.extend(b"q".repeat(700_000));
        text.extend(b"\nx at the start of it and then ");
        text.extend(b"q".repeat(900_000));
        text.extend(b"\n");
    }
    bench.file("folder/text", &text, 0o644);
    let count = text.split(|&byte| byte == b'\n').filter(|line| line.contains(&b'x')).count();
    for threads in ["-j1", "-j2"] {
        for words in [
            "x folder/text",
            "--no-mmap x folder/text",
            "--mmap x folder/text",
            "-I x folder",
            "x - < folder/text",
            "x < folder/text",
        ] {
            prints(&bounded(&bench, 512, &format!("GREP {threads} -c {words}")), &format!("{count}\n"));
        }
    }
}
