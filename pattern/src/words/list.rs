//! The words of an expression that is an alternation of words and nothing else.

use regex_syntax::hir::{Class, Hir, HirKind};

/// The bit in which upper and lower case of a letter differ.
pub(super) const CASE_BIT: u8 = 0x20;
/// A class with more members is not taken for a list of letters.
const MOST_MEMBERS: usize = 32;

/// One word. Shapes: `bytes` and `folds` have one length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Spelling {
    /// The word's bytes; those that fold are in lower case.
    pub(super) bytes: Vec<u8>,
    /// For each byte [`CASE_BIT`] if its case does not matter, else 0.
    pub(super) folds: Vec<u8>,
}

/// The words of an expression.
#[derive(Clone, Debug, Default)]
pub(super) struct List {
    pub(super) words: Vec<Spelling>,
    /// Whether a letter has a third form beyond ASCII: the Kelvin sign for `k`, the long s for `s`.
    pub(super) has_long_forms: bool,
    pub(super) most: usize,
}

impl List {
    /// The words that `hir` is an alternation of. `None` if `hir` is anything else, a word is
    /// empty, or there are more than `most` words: parsers draw common prefixes out of
    /// alternations, and unfolding these and classes multiplies words.
    pub(super) fn of(hir: &Hir, most: usize) -> Option<List> {
        let mut list = List { most, ..List::default() };
        list.words = list.spellings(hir)?;
        let is_empty = |word: &Spelling| word.bytes.is_empty();
        (!list.words.is_empty() && !list.words.iter().any(is_empty)).then_some(list)
    }

    fn spellings(&mut self, hir: &Hir) -> Option<Vec<Spelling>> {
        match hir.kind() {
            HirKind::Literal(literal) => {
                Some(vec![Spelling { bytes: literal.0.to_vec(), folds: vec![0; literal.0.len()] }])
            }
            HirKind::Class(class) => self.letters(class),
            HirKind::Empty => Some(vec![Spelling::default()]),
            HirKind::Capture(capture) => self.spellings(&capture.sub),
            HirKind::Alternation(parts) => {
                let mut all = Vec::with_capacity(parts.len());
                for part in parts {
                    all.append(&mut self.spellings(part)?);
                }
                (all.len() <= self.most).then_some(all)
            }
            HirKind::Concat(parts) => parts.iter().try_fold(vec![Spelling::default()], |heads, part| {
                let tails = self.spellings(part)?;
                (heads.len() * tails.len() <= self.most).then(|| joined(heads, &tails))
            }),
            HirKind::Look(_) | HirKind::Repetition(_) => None,
        }
    }

    /// A one-letter word for each member of a class; both cases of a letter are one word.
    fn letters(&mut self, class: &Class) -> Option<Vec<Spelling>> {
        let members = members(class)?;
        let has = |letter: u8| members.contains(&Letter::Byte(letter));
        let mut words = Vec::new();
        for member in &members {
            match *member {
                Letter::Byte(byte) if byte.is_ascii_uppercase() && has(byte.to_ascii_lowercase()) => (),
                Letter::Byte(byte) => {
                    let folds = byte.is_ascii_lowercase() && has(byte.to_ascii_uppercase());
                    words.push(Spelling { bytes: vec![byte], folds: vec![if folds { CASE_BIT } else { 0 }] });
                }
                Letter::Long(long) if long_form_of(long).is_some_and(has) => {
                    self.has_long_forms = true;
                }
                Letter::Long(long) => {
                    let bytes = long.to_string().into_bytes();
                    words.push(Spelling { folds: vec![0; bytes.len()], bytes });
                }
            }
        }
        Some(words)
    }
}

/// A member of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Letter {
    Byte(u8),
    /// A character of several bytes.
    Long(char),
}

/// The members of a small class.
fn members(class: &Class) -> Option<Vec<Letter>> {
    let mut members = Vec::new();
    match class {
        Class::Unicode(class) => {
            for range in class.iter().filter(|range| range.len() <= MOST_MEMBERS) {
                let member = |character: char| {
                    if character.is_ascii() {
                        Letter::Byte(character as u8)
                    } else {
                        Letter::Long(character)
                    }
                };
                members.extend((range.start()..=range.end()).map(member));
            }
            (class.iter().map(|range| range.len()).sum::<usize>() <= MOST_MEMBERS).then_some(members)
        }
        Class::Bytes(class) => {
            class.iter().for_each(|range| members.extend((range.start()..=range.end()).map(Letter::Byte)));
            (members.len() <= MOST_MEMBERS).then_some(members)
        }
    }
}

/// The lower-case letter that folds to a character beyond ASCII.
fn long_form_of(long: char) -> Option<u8> {
    match long {
        '\u{212a}' => Some(b'k'),
        '\u{17f}' => Some(b's'),
        _ => None,
    }
}

/// Every head joined with every tail.
fn joined(mut heads: Vec<Spelling>, tails: &[Spelling]) -> Vec<Spelling> {
    if let [tail] = tails {
        for head in &mut heads {
            head.bytes.extend_from_slice(&tail.bytes);
            head.folds.extend_from_slice(&tail.folds);
        }
        return heads;
    }
    let pairs = heads.iter().flat_map(|head| tails.iter().map(move |tail| (head, tail)));
    pairs
        .map(|(head, tail)| Spelling {
            bytes: [&head.bytes[..], &tail.bytes].concat(),
            folds: [&head.folds[..], &tail.folds].concat(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(pattern: &str) -> Option<(Vec<String>, bool)> {
        let list = List::of(&regex_syntax::parse(pattern).unwrap(), 3)?;
        let words = list.words.iter().map(|word| {
            let slash = |&fold: &u8| if fold == 0 { &b""[..] } else { b"/" };
            let letters =
                word.bytes.iter().zip(&word.folds).flat_map(|(&byte, fold)| [&[byte], slash(fold)].concat());
            String::from_utf8(letters.collect()).unwrap()
        });
        Some((words.collect(), list.has_long_forms))
    }

    #[test]
    fn words_are_taken_apart_and_other_expressions_are_not() {
        let some = |words: &[&str], long| Some((words.iter().map(|word| word.to_string()).collect(), long));
        assert_eq!(words("foo|bar"), some(&["foo", "bar"], false));
        assert_eq!(words("(foo)|fob"), some(&["foo", "fob"], false));
        assert_eq!(words("(?i:ab)c|d"), some(&["a/b/c", "d"], false));
        assert_eq!(words("(?i:ka|kb)"), some(&["k/a/", "k/b/"], true));
        assert_eq!(words("(?i-u:k)x|y"), some(&["k/x", "y"], false));
        assert_eq!(words("fo|foo|fob"), some(&["fo", "foo", "fob"], false));
        assert_eq!(words("(?i)ab|ac|ad"), some(&["a/b/", "a/c/", "a/d/"], false));
        assert_eq!(words("[ab]c|d"), some(&["ac", "bc", "d"], false));
        assert_eq!(words("(?i:é)b|c"), some(&["Éb", "éb", "c"], false));
        assert_eq!(words("[kK]x|y"), some(&["k/x", "y"], false));
        assert_eq!(words("[k\u{212a}]x|y"), some(&["kx", "y"], true));
        for other in ["a*|b", "[a-d]x", "ab|", "^a|b", r"\pLx|y", r"\bx|y"] {
            assert_eq!(words(other), None, "{other}");
        }
    }
}
