//! Random patterns and texts of what is delicate: characters of all lengths, bytes that are no
//! UTF-8, line ends of all kinds, NUL, and every assertion.

use crate::leaves::{patterns, LEAVES};
use proptest::prelude::*;

fn piece() -> impl Strategy<Value = String> {
    let more = [
        r"\w",
        r"\W",
        r"\s",
        r"\S",
        "я",
        r"\p{Lu}",
        "(?i:k)",
        "(?i:ß)",
        r"(?-u:[^a])",
        r"(?-u:\xC3)",
        r"\x00",
        r"\r",
        "[^é]",
        "[😀-😂]",
    ];
    let leaves: Vec<&str> = LEAVES.iter().copied().chain(more).collect();
    prop::sample::select(leaves).prop_map(str::to_string)
}

fn look() -> impl Strategy<Value = String> {
    let looks = vec![
        "^",
        "$",
        r"\A",
        r"\z",
        "(?m:^)",
        "(?m:$)",
        r"(?-u:\b)",
        r"(?-u:\B)",
        r"\b",
        r"\B",
        r"\b{start}",
        r"\b{end}",
        r"\b{start-half}",
        r"\b{end-half}",
        r"(?-u:\b{start})",
        r"(?-u:\b{end-half})",
    ];
    prop::sample::select(looks).prop_map(str::to_string)
}

pub(crate) fn pattern() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![6 => piece(), 2 => look()];
    patterns(leaf, 24, &["*", "+", "?", "{2}", "{0,3}", "{2,5}", "{3,}", "*?", "{7}"])
}

pub(crate) fn text() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        &b"a"[..],
        b"b",
        b"ab",
        b"aab",
        b"c",
        b" ",
        b"0",
        b"_",
        b"k",
        b"K",
        b"\n",
        b"\n",
        b"\n",
        b"\r\n",
        b"\r",
        b"\0",
        "é".as_bytes(),
        "я".as_bytes(),
        "Я".as_bytes(),
        "漢".as_bytes(),
        "😀".as_bytes(),
        "\u{212a}".as_bytes(),
        "ß".as_bytes(),
        b"\xff",
        b"\xc3",
        b"\xa9",
        b"\xe6\xbc",
        b"\xf0\x9f\x98",
        b"\xed\xa0\x80",
        b"\xc0\x80",
        b"\xe0\x80\x80",
        b"\xf4\x90\x80\x80",
    ]);
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}
