//! Strings of which every match of an expression holds one: the places where it is worth looking.
//!
//! `session (opened|closed) for \w+` cannot match without ` for `, nor without `session opened` or
//! `session closed`. [`needles`] lists such alternatives; a sample of the text decides which is
//! rarest. Small classes are spelled out, and both cases of an ASCII letter are one string.
//! **Leaves out** letters with a third form beyond ASCII (`k` and the Kelvin sign), which end a
//! string.

use crate::words::{spelled, Spelled};
use regex_syntax::hir::{Hir, HirKind};

/// Most strings of one alternative.
const MOST_WORDS: usize = 16;
/// Shorter strings stand everywhere.
const FEWEST_BYTES: usize = 3;

/// Where a string lies in a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It is the match.
    Whole,
    /// Matches begin with it.
    Start,
    /// Somewhere in the match.
    Inside,
}

/// Strings of which every match holds one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Needle {
    pub(super) words: Vec<Spelled>,
    pub(super) place: Place,
}

/// The needles of an expression; none where nothing long enough is in every match.
pub(super) fn needles(hir: &Hir) -> Vec<Needle> {
    if let Some(words) = words_of(hir) {
        return vec![Needle { words, place: Place::Whole }];
    }
    match hir.kind() {
        HirKind::Capture(capture) => needles(&capture.sub),
        HirKind::Repetition(repetition) if repetition.min > 0 => inside(needles(&repetition.sub)),
        HirKind::Concat(parts) => of_concatenation(parts),
        HirKind::Alternation(parts) => of_alternation(parts).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// The strings that an expression is an alternation of.
fn words_of(hir: &Hir) -> Option<Vec<Spelled>> {
    let words = spelled(hir, MOST_WORDS)?;
    words.iter().all(|word| word.bytes.len() >= FEWEST_BYTES).then_some(words)
}

fn inside(needles: Vec<Needle>) -> Vec<Needle> {
    needles.into_iter().map(|needle| Needle { place: Place::Inside, ..needle }).collect()
}

fn of_concatenation(parts: &[Hir]) -> Vec<Needle> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < parts.len() {
        // The longest run of parts that can be spelled out together.
        let run = |length: usize| words_of(&Hir::concat(parts[at..at + length].to_vec()));
        let is_spelled = |part: &&Hir| spelled(part, MOST_WORDS).is_some();
        let most = parts[at..].iter().take_while(is_spelled).count();
        let longest = (1..=most).rev().find_map(|length| Some((length, run(length)?)));
        match longest {
            Some((length, words)) => {
                let is_start = parts[..at].iter().all(|part| matches!(part.kind(), HirKind::Look(_)));
                let place = if is_start { Place::Start } else { Place::Inside };
                found.push(Needle { words, place });
                at += length;
            }
            None => {
                found.append(&mut inside(needles(&parts[at])));
                at += 1;
            }
        }
    }
    found
}

/// One needle for an alternation: the longest of each branch.
fn of_alternation(parts: &[Hir]) -> Option<Needle> {
    let mut union = Needle { words: Vec::new(), place: Place::Start };
    for part in parts {
        let shortest = |needle: &Needle| needle.words.iter().map(|word| word.bytes.len()).min();
        let best = needles(part).into_iter().max_by_key(shortest)?;
        if best.place == Place::Inside {
            union.place = Place::Inside;
        }
        union.words.extend(best.words);
    }
    (union.words.len() <= MOST_WORDS).then_some(union)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pattern: &str) -> Vec<(Place, Vec<String>)> {
        let hir = regex_syntax::ParserBuilder::new().utf8(false).build().parse(pattern).unwrap();
        let words = |needle: &Needle| {
            needle.words.iter().map(|word| String::from_utf8_lossy(&word.bytes).into_owned()).collect()
        };
        needles(&hir).iter().map(|needle| (needle.place, words(needle))).collect()
    }

    #[test]
    fn every_match_holds_a_needle() {
        use Place::{Inside, Start, Whole};
        let one = |place, words: &[&str]| (place, words.iter().map(|word| word.to_string()).collect());
        assert_eq!(shown("error"), [one(Whole, &["error"])]);
        assert_eq!(shown("(?i)ask"), []);
        assert_eq!(shown("(?i)denied"), [one(Whole, &["denied"])]);
        assert_eq!(shown(r"user=\w+ by"), [one(Start, &["user="]), one(Inside, &[" by"])]);
        assert_eq!(shown(r"\bwarn\d"), [one(Start, &["warn"])]);
        assert_eq!(shown(r"\d+(foo|bar) x+"), [one(Inside, &["foo ", "bar "])]);
        assert_eq!(shown(r"abc\d|x+def"), [one(Inside, &["abc", "def"])]);
        assert_eq!(shown(r"abc\d|def\w"), [one(Start, &["abc", "def"])]);
        assert_eq!(shown(r"(?:abc\d)+"), [one(Inside, &["abc"])]);
        for none in ["a*", "ab", "[a-z]+ing|x", r"(?:abc)?\d", r"\d\d"] {
            assert_eq!(shown(none), [], "{none}");
        }
    }
}
