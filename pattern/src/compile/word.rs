//! Word assertions as what they demand of the characters on both sides.

use regex_syntax::hir::Look;

/// What a word assertion demands of one side.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Demand {
    Word,
    /// Not of a word, or not a character at all.
    NotWord,
    /// Not of a word, and a character or the line's end.
    OtherCharacter,
    Anything,
}

use Demand::{Anything, NotWord, OtherCharacter, Word};

/// A word assertion as the pairs of demands that satisfy it, before and after.
pub(super) fn word_pairs(look: Look) -> &'static [(Demand, Demand)] {
    match look {
        Look::WordAscii | Look::WordUnicode => &[(Word, NotWord), (NotWord, Word)],
        Look::WordAsciiNegate => &[(Word, Word), (NotWord, NotWord)],
        Look::WordUnicodeNegate => &[(Word, Word), (OtherCharacter, OtherCharacter)],
        Look::WordStartAscii | Look::WordStartUnicode => &[(NotWord, Word)],
        Look::WordEndAscii | Look::WordEndUnicode => &[(Word, NotWord)],
        Look::WordStartHalfAscii => &[(NotWord, Anything)],
        Look::WordStartHalfUnicode => &[(OtherCharacter, Anything)],
        Look::WordEndHalfAscii => &[(Anything, NotWord)],
        Look::WordEndHalfUnicode => &[(Anything, OtherCharacter)],
        _ => &[],
    }
}

/// Whether the assertion is about words of Unicode.
pub(super) fn is_unicode_word(look: Look) -> bool {
    matches!(
        look,
        Look::WordUnicode
            | Look::WordUnicodeNegate
            | Look::WordStartUnicode
            | Look::WordEndUnicode
            | Look::WordStartHalfUnicode
            | Look::WordEndHalfUnicode
    )
}

/// Whether the assertion distinguishes characters that are not of words from bytes that are no
/// characters.
pub(super) fn asks_for_other_characters(look: Look) -> bool {
    word_pairs(look).iter().any(|&(before, after)| before == OtherCharacter || after == OtherCharacter)
}

/// How a word assertion is written.
pub(super) fn written(look: Look) -> &'static str {
    match look {
        Look::WordUnicode => r"\b",
        Look::WordUnicodeNegate => r"\B",
        Look::WordStartUnicode => r"\b{start}",
        Look::WordEndUnicode => r"\b{end}",
        Look::WordStartHalfUnicode => r"\b{start-half}",
        _ => r"\b{end-half}",
    }
}
