//! Random patterns from leaves that tests of all kernels draw from.

use proptest::prelude::*;

/// Leaves of patterns, which each test adds its own to.
pub(crate) const LEAVES: &[&str] = &[
    "a",
    "b",
    "ab",
    "[ab]",
    "[^a]",
    ".",
    "[a-c0-9]",
    r"\d",
    r"(?-u:\w)",
    "é",
    "[а-я]",
    "漢",
    "😀",
    r"(?-u:\xff)",
    "[é-漢]",
    "",
];

/// Patterns of these leaves and times, of about so many parts.
pub(crate) fn patterns(
    leaf: impl Strategy<Value = String> + 'static,
    parts: u32,
    times: &'static [&'static str],
) -> impl Strategy<Value = String> {
    leaf.prop_recursive(4, parts, 4, move |inner| {
        prop_oneof![
            4 => prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
            2 => prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| format!("(?:{})", parts.join("|"))),
            3 => (inner, prop::sample::select(times)).prop_map(|(part, times)| format!("(?:{part}){times}")),
        ]
    })
}
