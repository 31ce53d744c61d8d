//! However a text is read, the results are the same bytes: held for lengths so small that every
//! boundary of pieces, ranges, lines and matches is met.

use super::piece::Sizes;
use super::{Direct, Streamed};
use crate::arguments::{Arguments, Mapping};
use crate::flag::{self, FLAGS};
use crate::matching::Matching;
use crate::settings::Settings;
use crate::walk::Haystack;
use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The direct path of a command line.
fn direct(words: &[&str], path: &Path) -> Direct {
    let all: Vec<OsString> = words.iter().map(OsString::from).chain([path.as_os_str().to_owned()]).collect();
    let arguments: Arguments = flag::parse(FLAGS, all).unwrap();
    let settings = Settings::new(arguments).unwrap();
    let matching = Matching::new(&settings).unwrap();
    Direct::new(&settings, &matching).expect("the direct path takes these flags")
}

/// What a file's search prints, and whether anything matched.
fn searched(mut direct: Direct, path: &Path, named: bool) -> Option<(String, bool)> {
    let haystack = Haystack { path: path.to_owned(), named, stdin: false };
    let mut out = Vec::new();
    let outcome = direct.search(&haystack, &mut out)?.unwrap();
    Some((String::from_utf8_lossy(&out).into_owned(), outcome.any))
}

/// A reader of a few bytes at a time.
struct Drops<'t>(&'t [u8], usize);

impl Read for Drops<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let wish = buffer.len().min(self.1);
        self.0.read(&mut buffer[..wish])
    }
}

/// What a stream's search prints.
fn streamed(direct: &Direct, text: &[u8], drop_bytes: usize) -> Option<String> {
    let haystack = Haystack { path: PathBuf::from("-"), named: true, stdin: true };
    let mut out = Vec::new();
    match direct.stream(&haystack, Drops(text, drop_bytes), &mut out) {
        Streamed::Searched(outcome) => {
            outcome.unwrap();
            Some(String::from_utf8_lossy(&out).into_owned())
        }
        Streamed::Left(_) => None,
    }
}

/// Lengths that cut every text in many places.
fn tiny() -> Vec<Sizes> {
    let sizes = |probe, first, piece, beyond, front, early| Sizes {
        probe,
        large: 1,
        shared: 1,
        first,
        piece,
        beyond,
        early,
        front,
        stretch: 3 * piece,
        mapped: piece,
        // Some long lines are searched whole, others in parts.
        whole: 2 * piece,
    };
    vec![
        sizes(1, 1, 1, 1, 0, 1),
        sizes(2, 3, 5, 1, 1, 3),
        sizes(8, 7, 16, 2, 0, 8),
        sizes(64, 61, 64, 16, 70, 64),
        sizes(4, 200, 130, 3, 3, 5),
    ]
}

fn texts() -> Vec<Vec<u8>> {
    let mut seed = 7u64;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let words = ["foo", "bar", "sing", "é", "", "7 of 12", "foofoo", "naïve", "if (a) return", "x"];
    let mut texts: Vec<Vec<u8>> = vec![b"foo".to_vec(), b"\n".to_vec(), b"foo\n\n\nbar".to_vec()];
    for longest in [3, 8, 60] {
        for lines in [3, 40] {
            let mut text = Vec::new();
            for _ in 0..lines {
                for _ in 0..random(longest) {
                    text.extend_from_slice(words[random(words.len() as u64) as usize].as_bytes());
                    text.push(b' ');
                }
                text.push(b'\n');
            }
            if random(2) == 0 {
                text.pop();
            }
            texts.push(text);
        }
    }
    texts
}

/// Numbers of threads, and whether they map.
const WAYS: [(usize, Mapping); 4] =
    [(1, Mapping::Never), (1, Mapping::Always), (2, Mapping::Never), (2, Mapping::Always)];

const PATTERNS: [&str; 6] = ["foo", r"\bsing\b", r"[a-z]+ [0-9]", "if.{0,30}return", r"\w{4}", "^$"];

#[test]
fn every_way_to_read_a_text_prints_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text");
    let flags: [&[&str]; 11] = [
        &[],
        &["-n"],
        &["-c"],
        &["-nb"],
        &["-v"],
        &["-vc"],
        &["-m2", "-n"],
        &["-l"],
        &["-q"],
        &["-a", "-C1", "-nb"],
        &["-a", "-B3", "-A1"],
    ];
    let spans: [&[&str]; 5] =
        [&["-o"], &["-onb"], &["--count-matches"], &["--column", "-n"], &["--color=always", "-n"]];
    for text in texts() {
        fs::write(&path, &text).unwrap();
        for pattern in PATTERNS {
            let of_spans = spans.iter().filter(|_| pattern != "^$");
            for words in flags.iter().chain(of_spans) {
                let command = [*words, &[pattern]].concat();
                let usual = direct(&command, &path);
                let expected = searched(usual.clone(), &path, true).unwrap();
                for (threads, sizes) in [1, 2, 3]
                    .into_iter()
                    .flat_map(|threads| tiny().into_iter().map(move |sizes| (threads, sizes)))
                {
                    let own = Direct { sizes, threads: Some(threads), ..usual.clone() };
                    let shown =
                        format!("{command:?} {sizes:?} {threads} {:?}", String::from_utf8_lossy(&text));
                    for mapping in [Mapping::Always, Mapping::Never] {
                        let own = Direct { mapping, ..own.clone() };
                        assert_eq!(searched(own, &path, true).unwrap(), expected, "{mapping:?} {shown}");
                    }
                    assert_eq!(searched(own.clone(), &path, true).unwrap(), expected, "{shown}");
                    if threads == 1 {
                        let found = streamed(&own, &text, 1 + text.len() % 7);
                        let expected = expected.0.replace(path.to_str().unwrap(), "<stdin>");
                        assert_eq!(found, Some(expected), "{shown}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_late_nul_byte_is_met_in_whatever_piece_it_stands() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text");
    for place in [70, 150, 400, 900] {
        let mut text = b"foo bar\nother line\n".repeat(60);
        text[place] = 0;
        fs::write(&path, &text).unwrap();
        for words in [&["foo"][..], &["-n", "foo"], &["-c", "foo"], &["-n", "line"]] {
            // As a mapped file is in ripgrep: text until a line to be printed has the byte. Only
            // the first bytes decide before, so they are the same in all cases.
            let usual = direct(words, &path);
            let sizes = |piece, first| Sizes { probe: 64, large: 1, shared: 1, first, piece, ..Sizes::USUAL };
            let whole = Direct { sizes: sizes(1 << 20, 1 << 20), threads: Some(1), ..usual.clone() };
            let expected = searched(whole, &path, true).unwrap();
            for (piece, first) in [(16, 16), (100, 30), (64, 512)] {
                for (threads, mapping) in WAYS {
                    let sizes = sizes(piece, first);
                    let own = Direct { sizes, threads: Some(threads), mapping, ..usual.clone() };
                    assert_eq!(searched(own, &path, true).unwrap(), expected, "{words:?} {place} {piece}");
                }
            }
        }
    }
}

#[test]
fn a_file_that_changes_while_it_is_read_ends_where_it_ends() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text");
    let text = b"foo bar\nother line\n".repeat(30_000);
    for (threads, mapping) in WAYS {
        for kept in [0, 1, 70_000, 300_000] {
            fs::write(&path, &text).unwrap();
            let mut own = direct(&["-c", "foo"], &path);
            (own.threads, own.mapping) = (Some(threads), mapping);
            own.sizes = Sizes { large: 1, shared: 1, ..Sizes::USUAL };
            // The file was opened and its length asked for; then it is cut, and later gone.
            let haystack = Haystack { path: path.clone(), named: true, stdin: false };
            let file = fs::File::open(&path).unwrap();
            fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(kept).unwrap();
            fs::remove_file(&path).unwrap();
            let large =
                super::large::Large { file: &file, bytes: text.len() as u64, read: 0, sizes: own.sizes };
            let mut out = Vec::new();
            own.large(&haystack, large, &mut Vec::new(), &mut out).unwrap().unwrap();
            let left = &text[..kept as usize];
            let count = left.split(|&byte| byte == b'\n').filter(|line| line.starts_with(b"foo")).count();
            let expected = if count == 0 { String::new() } else { format!("{count}\n") };
            assert_eq!(String::from_utf8_lossy(&out), expected, "{threads} {mapping:?} {kept}");
        }
    }
}

/// Cuts a file at some moment of a search: no search dies, and none reports a line that never was.
#[test]
fn a_file_may_shrink_under_a_search() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text");
    let text = b"foo bar\nother line\n".repeat(60_000);
    let (all, kept) = (60_000, 15_790);
    for (round, (threads, mapping)) in WAYS.into_iter().cycle().take(100).enumerate() {
        for words in [&["-c", "foo"][..], &["foo"], &["-n", "^foo bar$"]] {
            fs::write(&path, &text).unwrap();
            let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
            let mut own = direct(words, &path);
            (own.threads, own.mapping) = (Some(threads), mapping);
            own.sizes = Sizes { large: 1, shared: 1, ..Sizes::USUAL };
            let (out, any) = std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(std::time::Duration::from_micros(7 * round as u64));
                    // Inside of a page, and of a line that does not match.
                    file.set_len(300_000).unwrap();
                });
                searched(own, &path, true).unwrap()
            });
            let lines = match words[0] {
                "-c" => out.trim().parse().unwrap(),
                _ => out.lines().filter(|line| line.ends_with("foo bar")).count(),
            };
            // What was read up to the cut may end inside of a line.
            let others = if words[0] == "-c" { 0 } else { out.lines().count() - lines };
            assert!(
                any && (kept..=all).contains(&lines) && others <= 1,
                "{words:?} {mapping:?} {lines} {others}"
            );
        }
    }
}
