//! What `lightfoot grep` prints of texts that are large, dense, long or cut short, against lines
//! formatted one by one.

mod bench;

use bench::interruptible;
use std::fmt::Write as _;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

fn grep(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lightfoot"));
    command.arg("grep").arg("--no-config").args(words).current_dir(folder).stdin(Stdio::null());
    command
}

fn place(files: &[(&str, &[u8])]) -> TempDir {
    let folder = TempDir::new().unwrap();
    for (name, content) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    folder
}

fn printed(folder: &Path, words: &[&str]) -> String {
    let output = grep(folder, words).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{words:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Lines of which most hold an `x`, in stretches that begin and end anywhere, the last one without
/// a line feed.
fn dense(lines: usize) -> String {
    let mut text = String::new();
    let mut seed = 7_u64;
    for number in 0..lines {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(number as u64);
        let roll = (seed >> 40) as usize;
        let length = if roll.is_multiple_of(500) { 3000 } else { roll % 90 };
        text.extend(std::iter::repeat_n(if roll.is_multiple_of(7) { '-' } else { 'x' }, length));
        text.push('\n');
    }
    text.push_str("the last one, x");
    text
}

/// The lines with (or without) an `x`, behind what `head` makes of line number and offset.
fn expected(text: &str, with: bool, head: impl Fn(usize, usize) -> String) -> String {
    let mut out = String::new();
    let mut offset = 0;
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        if line.contains('x') == with {
            writeln!(out, "{}{}", head(number, offset), line.trim_end_matches('\n')).unwrap();
        }
        offset += line.len();
    }
    out
}

#[test]
fn dense_texts_are_printed_as_lines_are() {
    let text = dense(120_000);
    let folder = place(&[("a", text.as_bytes())]);
    let same = |words: &[&str], with: bool, head: &dyn Fn(usize, usize) -> String| {
        let wanted = expected(&text, with, head);
        for threads in ["-j1", "-j3"] {
            let words = [words, &[threads, "x", "a"]].concat();
            assert!(printed(folder.path(), &words) == wanted, "{words:?}");
        }
    };
    same(&[], true, &|_, _| String::new());
    same(&["-v"], false, &|_, _| String::new());
    same(&["-n"], true, &|number, _| format!("{number}:"));
    same(&["-vn"], false, &|number, _| format!("{number}:"));
    same(&["-b"], true, &|_, offset| format!("{offset}:"));
    same(&["-nbH"], true, &|number, offset| format!("a:{number}:{offset}:"));
    same(&["-H"], true, &|_, _| String::from("a:"));
    same(&["-n", "--field-match-separator", " <- "], true, &|number, _| format!("{number} <- "));
    same(&["-n", "--field-match-separator", "a long separator"], true, &|number, _| {
        format!("{number}a long separator")
    });
    let first: String =
        expected(&text, true, |number, _| format!("{number}:")).split_inclusive('\n').take(70_000).collect();
    assert!(printed(folder.path(), &["-n", "-m70000", "x", "a"]) == first);
}

#[test]
fn a_nul_byte_far_into_a_dense_text_ends_its_printing() {
    let mut text = "x and more\n".repeat(100_000);
    let at = text.len() + 2;
    text += "x \0\nx\n";
    let folder = place(&[("a", text.as_bytes())]);
    for threads in ["-j1", "-j2"] {
        let out = printed(folder.path(), &["-n", threads, "x", "a"]);
        let (lines, last) = out.split_at(out.rfind("binary").unwrap());
        assert_eq!(lines.lines().count(), 100_000);
        assert_eq!(last, format!("binary file matches (found \"\\0\" byte around offset {at})\n"));
    }
}

#[test]
fn files_in_folders_end_at_their_first_nul_byte() {
    let late = ["some line\n".repeat(20_000).as_bytes(), b"\0needle\n"].concat();
    let folder = place(&[
        ("f/behind", b"a\0needle\n"),
        ("f/late", &late),
        ("f/before", b"needle\n\0\n"),
        ("f/empty", b""),
        ("f/text", b"needle\n"),
    ]);
    let sorted = |words: &[&str]| {
        let mut lines: Vec<String> = printed(folder.path(), words).lines().map(String::from).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&["-c", "needle", "f"]), ["f/text:1"]);
    assert_eq!(sorted(&["-l", "needle", "f"]), ["f/text"]);
    assert_eq!(sorted(&["needle", "f"]), ["f/text:needle"]);
    assert_eq!(sorted(&["-c", "--include-zero", "needle", "f"]), ["f/empty:0", "f/text:1"]);
    assert_eq!(sorted(&["-ac", "needle", "f"]), ["f/before:1", "f/behind:1", "f/late:1", "f/text:1"]);
}

/// Runs a command with at most so much private memory.
fn bounded(folder: &Path, memory_kib: usize, words: &str) -> std::process::Output {
    let lightfoot = env!("CARGO_BIN_EXE_lightfoot");
    let script = format!("ulimit -d {memory_kib} && exec '{lightfoot}' grep --no-config {words}");
    Command::new("sh").args(["-c", &script]).current_dir(folder).output().unwrap()
}

#[test]
fn a_long_line_needs_little_more_memory_than_its_length() {
    let text = ["short\n".as_bytes(), &b"ab ".repeat(16 << 20), b"needle\nshort\n"].concat();
    let memory_kib = (48 << 10) + (24 << 10);
    let folder = place(&[("a", &text)]);
    for words in ["needle a", "-j2 needle a", "'n[a-e]+le' a", "-v short a"] {
        let output = bounded(folder.path(), memory_kib, words);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{words}");
        assert!(output.stdout == text[6..text.len() - 6], "{words}: {} bytes", output.stdout.len());
    }
    for (words, wanted) in
        [("-c needle a", "1\n"), ("-c 'n[a-e]+le' a", "1\n"), ("-no 'n[a-e]+le' a", "2:needle\n")]
    {
        let output = bounded(folder.path(), memory_kib, words);
        assert_eq!(String::from_utf8_lossy(&output.stdout), wanted, "{words}");
    }
}

#[test]
fn long_lines_are_counted_wherever_they_match() {
    let letters = "q".repeat(1_500_000);
    let with = |at: usize, word: &str| format!("{}{word}{}\n", &letters[..at], &letters[at..]);
    let places = [0, 1, 60_000, 65_530, 65_533, 65_536, 70_000, 1_000_000, 1_500_000];
    let text: String = places.iter().flat_map(|&at| [with(at, " sing "), String::from("x\n")]).collect();
    let folder = place(&[("a", format!("{text}{}", with(7, "no")).as_bytes())]);
    for (pattern, lines) in
        [("sing", 9), (r"ing\b", 9), ("s[a-z]ng", 9), ("ing $", 1), ("^ sing", 1), ("^q+$", 0), ("x", 9)]
    {
        for threads in ["-j1", "-j2"] {
            let out = printed(folder.path(), &["-c", threads, "--include-zero", pattern, "a"]);
            assert_eq!(out, format!("{lines}\n"), "{pattern}");
        }
    }
}

/// Ends a search whose reader is slow; what it printed, and the signal that it died of.
fn interrupted(folder: &Path, words: &[&str]) -> (String, Option<i32>) {
    use std::os::unix::process::ExitStatusExt;
    let mut command = interruptible(&grep(folder, words));
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    let mut some = vec![0; 100_000];
    out.read_exact(&mut some).unwrap();
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    let mut text = some;
    out.read_to_end(&mut text).unwrap();
    (String::from_utf8(text).unwrap(), child.wait().unwrap().signal())
}

#[test]
fn an_interruption_leaves_no_half_line() {
    let line = "x, and a number of other letters that make a line of odd length\n";
    let text = line.repeat(300_000);
    let folder = place(&[("a", text.as_bytes()), ("f/b", text.as_bytes())]);
    for words in [&["x", "a"][..], &["-j2", "x", "a"], &["-j1", "-o", ".+", "a"], &["-Ij2", "x", "f"]] {
        let (out, signal) = interrupted(folder.path(), words);
        assert_eq!(signal, Some(2), "{words:?}");
        assert!(out.len() < text.len(), "{words:?}: it was not interrupted");
        assert!(out.len() % line.len() == 0 && out.ends_with('\n'), "{words:?}: {} bytes", out.len());
    }
}
