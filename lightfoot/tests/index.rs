//! `lightfoot index` as a user meets it: files in, pipes through, one sentence when something is
//! wrong.

mod bench;

use bench::unwished;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Runs `lightfoot index` with `input` on its standard input.
fn index(folder: &Path, words: &[&str], input: &[u8]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lightfoot"));
    let mut child = unwished(&mut command)
        .arg("index")
        .args(words)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    std::thread::scope(|scope| {
        // A command that fails early closes the pipe: no failure of the test.
        scope.spawn(move || drop(stdin.write_all(input)));
        child.wait_with_output().expect("the binary ends")
    })
}

fn out(ran: &Output) -> String {
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout.clone()).expect("text")
}

/// The only line of standard error, after checking the exit status.
fn complaint(ran: &Output, status: i32) -> String {
    assert_eq!(ran.status.code(), Some(status), "{ran:?}");
    let said = String::from_utf8(ran.stderr.clone()).expect("text");
    assert_eq!(said.lines().count(), 1, "{said}");
    said
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

#[test]
fn text_keys_of_every_type_are_found() {
    let folder = folder();
    let cases = [
        ("u32", "7\n3\n3\n4294967295\n", "3\n4\n4294967295\n", "0\n2\n3\n"),
        ("i64", "-5\n0\n9\n", "-6\n-5\n-4\n9\n10\n", "0\n0\n1\n2\n3\n"),
        ("f64", "1.5\n-inf\nNaN\n-0.0\n", "-1\n0\n1e9\n", "1\n2\n3\n"),
        ("bytes", "pear\napple\nfig\n", "banana\nfig\nzebra\n", "1\n1\n3\n"),
    ];
    for (kind, keys, queries, ranks) in cases {
        out(&index(folder.path(), &["build", "-", "--type", kind, "-o", "it"], keys.as_bytes()));
        assert_eq!(out(&index(folder.path(), &["query", "it"], queries.as_bytes())), ranks, "{kind}");
        assert!(out(&index(folder.path(), &["inspect", "it"], b"")).contains(&format!("type     {kind}")));
    }
}

#[test]
fn a_range_takes_two_keys_and_contains_says_yes_or_no() {
    let folder = folder();
    out(&index(folder.path(), &["build", "-", "-o", "it"], b"10\n20\n30\n"));
    assert_eq!(out(&index(folder.path(), &["query", "it", "--op", "range"], b"10 30\n0\t5\n")), "0 2\n0 0\n");
    assert_eq!(out(&index(folder.path(), &["query", "it", "--op", "contains"], b"10\n11\n30")), "1\n0\n1\n");
    out(&index(folder.path(), &["build", "-", "--type", "bytes", "-o", "words"], b"b\nd\n"));
    assert_eq!(out(&index(folder.path(), &["query", "words", "--op", "range"], b"a\tc\n")), "0 1\n");
}

#[test]
fn binary_keys_stream_through_a_pipe() {
    let folder = folder();
    let keys: Vec<u8> = (0..100_000u64).flat_map(|i| (i * i).to_le_bytes()).collect();
    std::fs::write(folder.path().join("keys"), &keys).unwrap();
    let build = ["build", "keys", "--input", "binary", "--sorted", "-o", "it"];
    out(&index(folder.path(), &build, b""));
    let ran = index(folder.path(), &["query", "it", "--input", "binary"], &keys);
    assert!(ran.status.success());
    let ranks = ran.stdout.chunks_exact(8).map(|rank| u64::from_le_bytes(rank.try_into().unwrap()));
    assert!(ranks.eq(0..100_000));
}

#[test]
fn what_is_wrong_is_one_sentence() {
    let folder = folder();
    let build = |words: &[&str], keys: &[u8]| index(folder.path(), &[&["build"], words].concat(), keys);
    let said = complaint(&build(&["-", "-o", "it"], b"1\n2x\n"), 125);
    assert!(said.contains("standard input, line 2: \"2x\" is not a u64 key"), "{said}");
    let said = complaint(&build(&["-", "-o", "it", "--sorted"], b"1\n3\n2\n"), 125);
    assert!(said.contains("number 3 is smaller"), "{said}");
    assert!(complaint(&build(&["-", "-o", "it", "--type", "u7"], b""), 2).contains("u32, i32, u64"));
    assert!(complaint(&build(&["none", "-o", "it"], b""), 125).contains("cannot read none"));
    assert!(complaint(&build(&["-", "-o", "no/it"], b""), 125).contains("there is no directory no"));
    assert!(!folder.path().join("it").exists(), "nothing half-made is left");
    std::fs::write(folder.path().join("letter"), "Dear reader").unwrap();
    let said = complaint(&index(folder.path(), &["query", "letter"], b"1\n"), 125);
    assert!(said.contains("letter: not an index file"), "{said}");
}

#[test]
fn a_damaged_file_is_refused() {
    let folder = folder();
    let path = folder.path().join("it");
    out(&index(folder.path(), &["build", "-", "-o", "it"], b"1\n2\n3\n"));
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    assert!(complaint(&index(folder.path(), &["query", "it"], b"1\n"), 125).contains("truncated"));
    let mut flipped = whole;
    *flipped.last_mut().unwrap() ^= 1;
    std::fs::write(&path, &flipped).unwrap();
    assert!(complaint(&index(folder.path(), &["inspect", "it"], b""), 125).contains("damaged"));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = folder();
    out(&index(folder.path(), &["build", "-", "-o", "it"], b"1\n2\n3\n"));
    let line = "yes 2 | \"$0\" index query it | head -1";
    let mut shell = Command::new("sh");
    let ran = shell
        .args(["-c", line, env!("CARGO_BIN_EXE_lightfoot")])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!((ran.stdout.as_slice(), ran.stderr.as_slice()), (&b"1\n"[..], &b""[..]));
}
