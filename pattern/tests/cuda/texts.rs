//! Texts and programs: of every kind of operation, frozen, and random.

use crate::drawn::Random;
use crate::leaves::{patterns, LEAVES};
use lightfoot_pattern::compile::{compile, CompileOptions};
use lightfoot_pattern::program::BitProgram;
use proptest::prelude::*;

/// A text of about so many bytes: lines of words, some longer than a step and some than a segment,
/// and stretches of other scripts.
pub(crate) fn text(bytes: usize, seed: u64) -> Vec<u8> {
    const PIECES: &[&str] = &[
        "a",
        "b",
        "ab",
        "aab",
        "x",
        "y",
        "sing ",
        "dancing ",
        " ",
        "the ",
        "10.0.0.1 ",
        "me@here ",
        "12/31/99 ",
        "0x1f ",
        "_",
        "K",
        "é",
        "Я",
        "яя",
        "漢字",
        "😀",
        "Word Word ",
        "\r",
        "deadbeef ",
        "cat",
    ];
    let mut random = Random(seed);
    let mut text = Vec::new();
    while text.len() < bytes {
        match random.below(40) {
            0 => (0..random.below(9000)).for_each(|_| text.push(b"ab "[random.below(3)])),
            1 => text.extend(std::iter::repeat_n(b'a', random.below(5000))),
            2 => text.extend((0..random.below(40)).map(|_| random.below(256) as u8)),
            3..8 => text.extend_from_slice(b"\n"),
            _ => (0..random.below(8))
                .for_each(|_| text.extend_from_slice(PIECES[random.below(PIECES.len())].as_bytes())),
        }
    }
    text
}

/// Patterns of every kind of operation: advances of all distances, stars, nested stars, classes of
/// all scripts, looks.
pub(crate) const PATTERNS: &[&str] = &[
    "sing",
    "[a-z]+ing",
    "^a*b?$",
    "x[^y]*y",
    "x(?:a|bc)*y",
    "(?:a(?:ab|b)*x)+y",
    "a{40}b",
    "a{1,300}b",
    "[ab].{20}[xy].{20}[a-c]",
    r"(?-u:\b)a+(?-u:\b)",
    r"\p{Lu}\w+ \p{Lu}\w+",
    r"[а-я]+\s",
    "漢.*😀",
    r"\bяя\b$",
    "(?i:k)at",
    "$",
    r"^[^\n]*cat[^\n]*sing",
];

pub(crate) fn program(pattern: &str) -> BitProgram {
    let hir = regex_syntax::ParserBuilder::new().utf8(false).build().parse(pattern).unwrap();
    compile(&hir, &CompileOptions::default()).unwrap_or_else(|error| panic!("{pattern}: {error}"))
}

/// The list that the studies race.
pub(crate) fn frozen() -> Vec<String> {
    #[derive(serde::Deserialize)]
    struct List {
        pattern: Vec<One>,
    }
    #[derive(serde::Deserialize)]
    struct One {
        pattern: String,
    }
    let list: List = toml::from_str(include_str!("../../data/patterns.toml")).unwrap();
    list.pattern.into_iter().map(|one| one.pattern).collect()
}

/// The program of a pattern, where it has one of moderate size.
pub(crate) fn moderate(pattern: &str, operations: usize) -> Option<BitProgram> {
    let hir = regex_syntax::ParserBuilder::new().utf8(false).build().parse(pattern).ok()?;
    compile(&hir, &CompileOptions { operations, ..CompileOptions::default() }).ok()
}

pub(crate) fn random_pattern() -> impl Strategy<Value = String> {
    let more = [r"(?-u:\s)", "Я", "^", "$", r"(?-u:\b)", r"(?-u:\B)", "x", "y", " "];
    let leaves: Vec<&str> = LEAVES.iter().copied().chain(more).collect();
    let leaf = prop::sample::select(leaves).prop_map(str::to_string);
    patterns(leaf, 16, &["*", "+", "?", "{2}", "{0,3}", "{3,}", "{7}", "{35}"])
}
