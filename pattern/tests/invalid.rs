//! Unicode's word assertions on bytes that are no UTF-8: the answer is that of each line by itself,
//! however long the text is.

mod truth;

use lightfoot_pattern::plan::ENGINES;
use lightfoot_pattern::regex::RegexBuilder;
use lightfoot_pattern::Regex;
use truth::{lines, naive};

const PATTERNS: [&str; 14] = [
    r"\B",
    r"\b",
    r"\B\B",
    r"\b{start-half}word",
    r"word\b{end-half}",
    r"\b{start}word",
    r"\bword\b",
    r"\Bword",
    r"word\B",
    r"\b.",
    r"\w\b\W",
    r"^\B",
    r"\B$",
    r"\b\w+\b",
];

/// What lines are made of: words, characters of each length, and parts of characters.
const PARTS: [&[u8]; 16] = [
    b"word",
    b" ",
    b"a",
    b"-",
    b"9",
    b"\x80",
    b"\xa9",
    b"\xc3",
    b"\xff",
    "é".as_bytes(),
    "中".as_bytes(),
    b"\xe4\xb8",
    b"\xf0\x9f\x98",
    "😀".as_bytes(),
    b"\xed\xa0\x80",
    b"\xc0\xaf",
];

/// Lines of these parts, about `bytes` in all; equal for equal seeds.
fn text(mut seed: u64, bytes: usize) -> Vec<u8> {
    let mut next = move |limit: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % limit
    };
    let mut text = Vec::new();
    while text.len() < bytes {
        for _ in 0..next(6) {
            text.extend_from_slice(PARTS[next(PARTS.len())]);
        }
        text.push(b'\n');
    }
    text
}

#[test]
fn word_assertions_answer_alike_in_texts_of_any_size() {
    for (seed, bytes) in [(1, 40), (2, 500), (3, 3000), (4, 3000), (5, 6000), (6, 70_000)] {
        let text = text(seed, bytes);
        for pattern in PATTERNS {
            let (expected, _) = naive(pattern, &text);
            let planned = Regex::new(pattern).unwrap();
            let forced =
                ENGINES.iter().map(|kind| RegexBuilder::new().engine(kind.name).build(pattern).unwrap());
            for regex in forced.chain([planned]) {
                let engine = regex.engine();
                let case = format!("{pattern} by {engine} in {bytes} bytes");
                assert_eq!(lines(&regex, &text), expected, "{case}");
                assert_eq!(regex.count_lines(&text), expected.len() as u64, "{case}");
                assert_eq!(regex.is_match(&text), !expected.is_empty(), "{case}");
                let first = regex.first_line(&text);
                assert_eq!(first.as_ref(), expected.first(), "{case}");
            }
        }
    }
}

/// The text of one stray byte, for whoever wants to see it: alone in its line it is no character,
/// and an assertion that looked behind the line would take the line feed for one.
#[test]
fn a_stray_byte_is_no_character_behind_a_line_feed_either() {
    let regex = Regex::new(r"\B").unwrap();
    assert_eq!(lines(&regex, b"\x80\n"), Vec::<std::ops::Range<usize>>::new());
    assert_eq!(lines(&regex, b"\n\x80\n"), Vec::from_iter(std::iter::once(0..1)));
    assert_eq!(lines(&regex, b"a\n\x80 \n"), Vec::from_iter(std::iter::once(2..5)));
}
