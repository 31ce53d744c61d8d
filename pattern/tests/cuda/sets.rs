//! Sets of patterns: the lines that any of them matches, whatever way the set goes.

use crate::cards::{cards, line_ends, shapes, turn};
use crate::drawn::Random;
use crate::missing::sentence;
use crate::texts::{program, text};
use lightfoot_pattern::compile::{CompileOptions, Haystack, Lines};
use lightfoot_pattern::kernel::cuda::{Cuda, CudaOptions, GpuSet, GpuText};
use regex_syntax::hir::Hir;
use std::sync::Arc;

fn parsed(patterns: &[String]) -> Vec<Hir> {
    let parse = |pattern: &String| {
        regex_syntax::ParserBuilder::new().utf8(false).build().parse(pattern).expect("patterns parse")
    };
    patterns.iter().map(parse).collect()
}

/// A set finds what its patterns find one by one; what the set was made to.
fn check(cuda: &Arc<Cuda>, patterns: &[String], text: &[u8], what: &str) -> String {
    let mut expected: Vec<u64> =
        patterns.iter().flat_map(|pattern| line_ends(&program(pattern), text)).collect();
    expected.sort_unstable();
    expected.dedup();
    let set = GpuSet::new(cuda, &parsed(patterns), &CompileOptions::default()).unwrap();
    let resident = GpuText::upload(cuda, text, b'\n').unwrap();
    let found = set.line_ends(&resident).unwrap();
    assert!(
        found == expected,
        "{what}: {} for {} lines, first difference at {:?}",
        found.len(),
        expected.len(),
        found.iter().zip(&expected).find(|(a, b)| a != b)
    );
    assert_eq!(set.count_lines(&resident).unwrap(), expected.len() as u64, "{what}: count");
    assert_eq!(set.count_lines_timed(&resident).unwrap().0, expected.len() as u64, "{what}: timed");
    set.explain()
}

/// Words of a text, some of them changed so that it lacks them, written in several ways.
fn words(text: &[u8], count: usize, random: &mut Random) -> Vec<String> {
    let mut words = Vec::new();
    while words.len() < count {
        let length = 5 + random.below(6);
        let at = random.below(text.len() - length);
        let mut word = text[at..at + length].to_vec();
        if !word.iter().all(u8::is_ascii_graphic) {
            continue;
        }
        if random.below(3) > 0 {
            word[random.below(length)] = b'#';
        }
        let escaped = |word: &[u8]| regex_syntax::escape(std::str::from_utf8(word).expect("ASCII"));
        let (first, second) = word.split_at(length / 2);
        words.push(match random.below(4) {
            0 => format!("{}[^\\n]*{}", escaped(first), escaped(second)),
            1 => format!("{}[a-m ]{}", escaped(first), escaped(second)),
            2 => format!("^.?{}$|{}", escaped(second), escaped(&word)),
            _ => escaped(&word),
        });
    }
    words
}

/// A text whose lines are mostly short, so that few are found.
fn sparse(bytes: usize, seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let mut text = Vec::new();
    while text.len() < bytes {
        let length = match random.below(60) {
            0 => random.below(7000),
            _ => random.below(60),
        };
        text.extend(
            (0..length).map(|_| {
                b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_ "[random.below(64)]
            }),
        );
        text.push(b'\n');
    }
    text.truncate(bytes);
    text
}

#[test]
fn sets_find_what_their_patterns_find() {
    let _turn = turn();
    for cuda in cards(&shapes()[0]) {
        let mut ways = Vec::new();
        for seed in 0..6 {
            let text = sparse(100_000 + 7 * seed as usize, 40 + seed);
            let mut random = Random(70 + seed);
            let patterns = words(&text, [3, 40, 70][seed as usize % 3], &mut random);
            ways.push(check(&cuda, &patterns, &text, &format!("seed {seed}")));
        }
        assert!(ways.iter().any(|way| way.contains("filter")), "{ways:?}");
        assert!(ways.iter().any(|way| !way.contains("filter")), "{ways:?}");
    }
}

#[test]
fn patterns_without_four_bytes_are_searched_beside_the_filter() {
    let _turn = turn();
    for cuda in cards(&shapes()[0]) {
        let text = sparse(60_000, 5);
        let mut patterns = words(&text, 50, &mut Random(6));
        patterns.extend([r"^(?-u:\d\d)[a-c]", r"x.+q$", "^$"].map(str::to_owned));
        let way = check(&cuda, &patterns, &text, "mixed");
        assert!(!way.starts_with('0') && way.contains("filter"), "{way}");
    }
}

/// Texts of many matches, of few and long lines, and of nothing.
#[test]
fn texts_of_all_kinds_are_searched_with_a_filter() {
    let _turn = turn();
    for cuda in cards(&shapes()[0]) {
        let some = text(50_000, 12);
        let mut patterns = words(&sparse(20_000, 8), 60, &mut Random(9));
        for frequent in [false, true] {
            if frequent {
                patterns.push("sing dancing ".to_owned());
                patterns.push(" the .*Word".to_owned());
            }
            for (name, text) in [
                ("mixed", &some[..]),
                ("one line", &vec![b'a'; 30_000][..]),
                ("matches only", &b"sing dancing \n".repeat(3000)[..]),
                ("empty lines", &[b'\n'; 5000][..]),
                ("a byte", &b"a"[..]),
                ("nothing", &b""[..]),
                (
                    "at the ends",
                    &[b"sing dancing ".as_slice(), &vec![b'\n'; 5000], b" the Word"].concat()[..],
                ),
            ] {
                check(&cuda, &patterns, text, &format!("{name}, {frequent}"));
            }
        }
    }
}

#[test]
fn windows_of_one_byte_classes_and_bytes_beyond_ascii() {
    let _turn = turn();
    for cuda in cards(&shapes()[0]) {
        let mut text = sparse(40_000, 3);
        for (at, piece) in [(0, "漢字\n"), (2047, "яяя"), (32_766, "éclair"), (39_000, "K2 deadbeef")] {
            text.splice(at..at, piece.bytes());
        }
        let mut patterns = words(&text, 60, &mut Random(21));
        patterns.extend(["漢字", "яя", "(?-u:[\\xc3\\xd0]\\xa9cl)", "(?i)k2 DEADBEEF"].map(str::to_owned));
        check(&cuda, &patterns, &text, "bytes");
    }
}

#[test]
fn sets_of_other_kinds_are_refused() {
    let _turn = turn();
    for cuda in cards(&CudaOptions::default()) {
        let zero = CompileOptions { terminator: 0, ..CompileOptions::default() };
        let set = GpuSet::new(&cuda, &parsed(&["abc".to_owned()]), &zero).unwrap();
        let resident = GpuText::upload(&cuda, b"abc\n", b'\n').unwrap();
        assert!(set.count_lines(&resident).unwrap_err().to_string().contains("end with"));
        let refusal = |pattern: &str, options: &CompileOptions| {
            let error = GpuSet::new(&cuda, &parsed(&[pattern.to_owned()]), options).unwrap_err();
            assert!(sentence(&error).len() > 20);
            error.to_string()
        };
        assert!(refusal(r"x\b.", &CompileOptions::default()).contains("word character"));
        let others = CompileOptions { lines: Lines::Others, ..CompileOptions::default() };
        assert!(refusal("abc", &others).contains("neither other lines nor rows"));
        let rows = Haystack::MarkedRow { line_end: b'\n' };
        let rows = CompileOptions { haystack: rows, ..CompileOptions::default() };
        assert!(refusal("abc", &rows).contains("neither other lines nor rows"));
    }
}
