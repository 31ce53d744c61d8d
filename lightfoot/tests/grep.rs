//! `lightfoot grep` as a user meets it: output, exit status, bad input. Each test makes its own
//! folder.

mod bench;

use bench::unwished;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

struct Place(TempDir);

impl Place {
    fn new(files: &[(&str, &[u8])]) -> Place {
        let place = TempDir::new().unwrap();
        for (name, content) in files {
            let path = place.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        Place(place)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lightfoot"));
        unwished(&mut command).arg("grep").args(words).current_dir(self.path()).stdin(Stdio::null());
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    #[track_caller]
    fn prints(&self, words: &[&str], expected: &str) {
        let output = self.run(words);
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{}", errors(&output));
        assert_eq!(output.status.code(), Some(i32::from(expected.is_empty())), "{}", errors(&output));
    }
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn sorted(output: &Output) -> Vec<String> {
    let mut lines: Vec<String> = String::from_utf8_lossy(&output.stdout).lines().map(String::from).collect();
    lines.sort();
    lines
}

const TEXT: &[u8] = b"one two\nthree\n\nfour two two\nFive";

#[test]
fn a_file_is_searched() {
    let place = Place::new(&[("a", TEXT)]);
    place.prints(&["two", "a"], "one two\nfour two two\n");
    place.prints(&["-n", "two", "a"], "1:one two\n4:four two two\n");
    place.prints(&["-b", "two", "a"], "0:one two\n15:four two two\n");
    place.prints(&["-Hc", "two", "a"], "a:2\n");
    place.prints(&["--count-matches", "two", "a"], "3\n");
    place.prints(&["-on", "t[a-z]+", "a"], "1:two\n2:three\n4:two\n4:two\n");
    place.prints(&["-vn", "two", "a"], "2:three\n3:\n5:Five\n");
    place.prints(&["-vc", "two", "a"], "3\n");
    place.prints(&["-m1", "two", "a"], "one two\n");
    place.prints(&["-l", "two", "a"], "a\n");
    place.prints(&["--files-without-match", "two", "a"], "");
    place.prints(&["-i", "five", "a"], "Five\n");
    place.prints(&["-x", "three", "a"], "three\n");
    place.prints(&["-w", "tw", "a"], "");
    place.prints(&["-F", ".", "a"], "");
    place.prints(&["-r", "<$0>", "-o", "t(w)o", "a"], "<two>\n<two>\n<two>\n");
    place.prints(&["-A1", "three", "a"], "three\n\n");
}

#[test]
fn conditions_are_combined() {
    let place = Place::new(&[("a", TEXT)]);
    place.prints(&["two", "--and", "four", "a"], "four two two\n");
    place.prints(&["two", "--not", "four", "a"], "one two\n");
    place.prints(&["-c", "o", "--and", "n", "--not", "x", "a"], "1\n");
    place.prints(&["-n", "-C1", "two", "--and", "one", "a"], "1:one two\n2-three\n");
    let refused = place.run(&["-U", "a", "--and", "b", "a"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(errors(&refused).contains("--multiline"));
}

#[test]
fn folders_are_walked_with_their_ignore_files() {
    let place = Place::new(&[
        ("a.txt", b"x\n"),
        ("sub/b.rs", b"x\n"),
        ("sub/skipped.log", b"x\n"),
        (".hidden", b"x\n"),
        (".ignore", b"*.log\n"),
    ]);
    assert_eq!(sorted(&place.run(&["x"])), ["a.txt:x", "sub/b.rs:x"]);
    assert_eq!(sorted(&place.run(&["x", "."])), ["./a.txt:x", "./sub/b.rs:x"]);
    assert_eq!(sorted(&place.run(&["-l", "-t", "rust", "x"])), ["sub/b.rs"]);
    assert_eq!(sorted(&place.run(&["-l", "-g", "!*.rs", "x"])), ["a.txt"]);
    assert_eq!(sorted(&place.run(&["-l", "-uu", "^x"])), [".hidden", "a.txt", "sub/b.rs", "sub/skipped.log"]);
    assert_eq!(sorted(&place.run(&["--files"])), ["a.txt", "sub/b.rs"]);
    place.prints(&["--sort", "path", "-c", "x"], "a.txt:1\nsub/b.rs:1\n");
}

#[test]
fn binary_files_are_not_printed() {
    let place = Place::new(&[("bin", b"match\nx\0y match\n"), ("folder/bin", b"match\nx\0y match\n")]);
    place.prints(&["match", "bin"], "binary file matches (found \"\\0\" byte around offset 7)\n");
    place.prints(&["-a", "match", "bin"], "match\nx\0y match\n");
    place.prints(&["-c", "match", "folder"], "");
    let late = [&b"line\n".repeat(20_000)[..], b"match\nx\0y match\n"].concat();
    let place = Place::new(&[("late", &late)]);
    place
        .prints(&["match", "late"], "match\nbinary file matches (found \"\\0\" byte around offset 100007)\n");
}

#[test]
fn encodings_are_seen() {
    let place =
        Place::new(&[("u16", b"\xff\xfea\0b\0\n\0"), ("u8", b"\xef\xbb\xbfab\n"), ("latin", b"\xe9t\xe9\n")]);
    place.prints(&["^ab$", "u16"], "ab\n");
    place.prints(&["^ab$", "u8"], "ab\n");
    place.prints(&["-E", "latin1", "été", "latin"], "été\n");
}

#[test]
fn large_files_are_searched_by_several_threads_in_order() {
    let mut text = Vec::new();
    for number in 0..900_000 {
        writeln!(text, "line {number}{}", if number % 1000 == 7 { " here" } else { "" }).unwrap();
    }
    let place = Place::new(&[("large", &text)]);
    let expected: String =
        (0..900).map(|k| format!("{}:line {} here\n", 1000 * k + 8, 1000 * k + 7)).collect();
    place.prints(&["-n", "-j4", "here", "large"], &expected);
    place.prints(&["-n", "-j1", "h[e-r]+e$", "large"], &expected);
    place.prints(&["-c", "-j3", "h[e-r]+e$", "large"], "900\n");
    place.prints(&["-vc", "-j3", "here", "large"], "899100\n");
}

#[test]
fn words_come_from_a_file() {
    let words: Vec<String> = (0..600).map(|n| format!("word{}x", n * 7)).collect();
    let place =
        Place::new(&[("words", words.join("\n").as_bytes()), ("a", b"a word14x b\nword15x\nword4193x\n")]);
    place.prints(&["-n", "-f", "words", "a"], "1:a word14x b\n3:word4193x\n");
    place.prints(&["-f", "/dev/null", "a"], "");
}

#[test]
fn bad_input_is_said_in_one_sentence() {
    let place = Place::new(&[("a", TEXT)]);
    let said = |words: &[&str], status: i32| {
        let output = place.run(words);
        assert_eq!(output.status.code(), Some(status), "{}", errors(&output));
        errors(&output)
    };
    assert_eq!(
        said(&["ab(c", "a"], 2),
        "lightfoot grep: regex parse error:\n    ab(c\n      ^\nerror: unclosed group\n"
    );
    assert!(said(&[r"a\nb", "a"], 2).contains("--multiline"));
    assert!(said(&[r"(a)\1", "a"], 2).contains("--pcre2"));
    assert!(said(&["--regex-size-limit=1K", r"\w{100}", "a"], 2).contains("--regex-size-limit"));
    assert!(said(&["--no-such-flag", "x"], 2).contains("unrecognized flag --no-such-flag"));
    assert!(said(&[], 2).contains("no pattern was given"));
    assert!(said(&["-t", "nothing", "x"], 2).contains("nothing"));
    assert!(said(&["-f", "absent", "a"], 2).contains("absent"));
}

#[test]
fn a_file_that_cannot_be_read_does_not_end_the_search() {
    let place = Place::new(&[("a", TEXT)]);
    let output = place.run(&["-h", "--no-filename", "three", "absent", "a"]);
    assert_eq!(output.status.code(), Some(0), "-h is help");
    let output = place.run(&["-I", "three", "absent", "a"]);
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), &b"three\n"[..]));
    assert_eq!(errors(&output).lines().count(), 1, "{}", errors(&output));
    assert_eq!(place.run(&["-q", "three", "absent", "a"]).status.code(), Some(0));
}

#[test]
fn a_closed_pipe_is_no_error() {
    let text = b"some line\n".repeat(600_000);
    let place = Place::new(&[("a", &text)]);
    let mut child =
        place.command(&["line", "a"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(errors(&output), "");
    assert_ne!(output.status.code(), Some(2));
}

#[test]
fn standard_input_is_searched() {
    let place = Place::new(&[]);
    let mut child = place.command(&["-n", "b"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"a\nb\n").unwrap();
    assert_eq!(child.wait_with_output().unwrap().stdout, b"2:b\n");
}

#[test]
fn pcre2_has_back_references() {
    let place = Place::new(&[("a", b"abab\nabba\n")]);
    place.prints(&["-P", r"^(ab)\1", "a"], "abab\n");
    place.prints(&["-P", "b(?=b)", "a"], "abba\n");
    place.prints(&["--auto-hybrid-regex", r"(b)\1", "a"], "abba\n");
}

#[test]
fn lines_may_be_joined_in_multiline_mode() {
    let place = Place::new(&[("a", TEXT)]);
    place.prints(&["-U", "two\nthree", "a"], "one two\nthree\n");
}

#[test]
fn json_is_json() {
    let place = Place::new(&[("a", TEXT)]);
    let output = place.run(&["--json", "three", "a"]);
    let kinds: Vec<String> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["type"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(kinds, ["begin", "match", "end", "summary"]);
}

#[test]
fn a_configuration_file_is_read() {
    let place = Place::new(&[("a", TEXT), ("config", b"# numbers\n-n\n")]);
    let output = place.command(&["two", "a"]).env("LIGHTFOOT_GREP_CONFIG_PATH", "config").output().unwrap();
    assert_eq!(output.stdout, b"1:one two\n4:four two two\n");
    let output = place
        .command(&["--no-config", "two", "a"])
        .env("LIGHTFOOT_GREP_CONFIG_PATH", "config")
        .output()
        .unwrap();
    assert_eq!(output.stdout, b"one two\nfour two two\n");
}

#[test]
fn the_plan_is_explained() {
    let place = Place::new(&[]);
    let said = |words: &[&str]| String::from_utf8(place.run(words).stdout).unwrap();
    assert!(said(&["--explain", "needle"]).starts_with("engine: literal"));
    assert!(said(&["--explain", "[a-z]+ing"]).starts_with("engine: streams"));
    assert!(said(&["--explain", r"\w+://"]).contains("looked for: \"://\""));
    assert!(said(&["--explain", "-U", "a.b"]).starts_with("engine: streams"));
    assert!(said(&["--explain", "-U", r"a\nb"]).starts_with("engine: text"));
    assert!(said(&["--explain", "-P", "a"]).starts_with("engine: pcre2"));
}

/// With a card the same lines, without one a sentence and the status of an error; `auto` never
/// needs one.
#[test]
fn a_graphics_card_is_used_or_its_absence_said() {
    let place = Place::new(&[("a", TEXT)]);
    let output = place.run(&["--engine", "cuda", "t[w]o", "a"]);
    match pattern::kernel::cuda::Cuda::shared() {
        Ok(_) => assert_eq!(output.stdout, b"one two\nfour two two\n"),
        Err(error) => {
            assert_eq!(output.status.code(), Some(2));
            assert_eq!(errors(&output), format!("lightfoot grep: {error}\n"));
        }
    }
    place.prints(&["--engine", "auto", "t[w]o", "a"], "one two\nfour two two\n");
    let said = String::from_utf8(place.run(&["--engine", "auto", "--explain", "t[w]o", "a"]).stdout).unwrap();
    let why = format!("\ngraphics card: {} bytes in files that were named", TEXT.len());
    assert!(said.contains(&why), "{said}");
}

#[test]
fn programs_are_printed_and_parse_again() {
    let place = Place::new(&[]);
    let output = place.run(&["--debug-program", "program", "[a-z]+ing"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let program = pattern::program::BitProgram::parse(&text).unwrap();
    assert_eq!(program.to_string(), text);
    let refused = place.run(&["--debug-program", "nothing", "a"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(errors(&refused).contains("hir"), "{}", errors(&refused));
}

#[test]
fn help_and_completions_name_every_flag() {
    let place = Place::new(&[]);
    let text = |words: &[&str]| String::from_utf8(place.run(words).stdout).unwrap();
    for words in [
        &["--help"][..],
        &["-h"],
        &["--generate", "man"],
        &["--generate", "complete-bash"],
        &["--generate", "complete-zsh"],
        &["--generate", "complete-fish"],
        &["--generate", "complete-powershell"],
    ] {
        let text = text(words).replace('\\', "");
        for flag in ["max-count", "hidden", "passthru", "stats", "type-add", "and", "explain"] {
            assert!(text.contains(flag), "{words:?} does not name {flag}");
        }
    }
    assert!(text(&["--version"]).starts_with("lightfoot grep "));
}
