//! Four bytes in a row of which every match of an expression holds one: what the filter looks for.
//!
//! A literal is a row of bytes, a class of ASCII a row of one set of bytes. Of all fours of a row
//! the one is taken that a text holds least often by the commonness of its bytes; a row of three
//! has any byte in front, a terminator at the beginning of the text. An alternation needs one of
//! each branch. Assertions have no width, and rows go on over them. **Leaves out** classes of
//! characters beyond ASCII, which end a row, and shorter rows.

use crate::literal::commonness::commonness;
use regex_syntax::hir::{Class, Hir, HirKind};

/// Bytes of a window.
pub(super) const WINDOW_BYTES: usize = 4;

/// Most fours of bytes that an expression's windows stand for together.
pub(super) const MOST_VARIANTS: usize = 4096;

/// What a variant costs beside the hits that it has in a text: its bits in the table, which other
/// fours hit as well.
const VARIANT_COST: f64 = 1e-6;

/// A place of a row: the bytes that may stand there, ascending.
type Letters = Vec<u8>;

/// A set of fours: all that take a byte of each place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Window([Letters; WINDOW_BYTES]);

impl Window {
    /// How many fours it has.
    fn variants(&self) -> usize {
        self.0.iter().map(Vec::len).product()
    }

    /// Its fours, each as the little-endian number of its bytes.
    pub(super) fn fours(&self) -> Vec<u32> {
        self.0.iter().enumerate().fold(vec![0], |fours, (at, letters)| {
            let with = |four: u32| letters.iter().map(move |&byte| four | u32::from(byte) << (8 * at));
            fours.into_iter().flat_map(with).collect()
        })
    }

    /// What looking for it costs: about the share of a text's places that it hits, and its bits.
    fn cost(&self) -> f64 {
        // Commonness is a logarithm; the commonest bytes are about a twelfth of a text.
        let share = |byte: &u8| 0.08 / f64::from(1u32 << (9 - commonness(*byte)));
        let hits: f64 =
            self.0.iter().map(|letters| letters.iter().map(share).sum::<f64>().min(1.0)).product();
        hits + VARIANT_COST * self.variants() as f64
    }
}

/// Windows of which every match has one, and their cost.
#[derive(Clone, Debug)]
struct Choice {
    windows: Vec<Window>,
    cost: f64,
}

/// The windows to look for in place of an expression; `None` where a match may lack any four.
pub(super) fn windows(hir: &Hir, terminator: u8) -> Option<Vec<Window>> {
    let choice = best(std::slice::from_ref(hir), terminator)?;
    let variants: usize = choice.windows.iter().map(Window::variants).sum();
    (variants <= MOST_VARIANTS).then_some(choice.windows)
}

/// The cheapest choice of a concatenation.
fn best(parts: &[Hir], terminator: u8) -> Option<Choice> {
    let mut rows = Rows { terminator, row: Vec::new(), best: None };
    rows.concatenation(parts);
    rows.end_of_row();
    rows.best
}

/// A walk along a concatenation, which collects rows.
struct Rows {
    terminator: u8,
    /// The row so far.
    row: Vec<Letters>,
    best: Option<Choice>,
}

impl Rows {
    fn concatenation(&mut self, parts: &[Hir]) {
        parts.iter().for_each(|part| self.part(part));
    }

    fn part(&mut self, part: &Hir) {
        match part.kind() {
            HirKind::Empty | HirKind::Look(_) => {}
            HirKind::Literal(literal) => literal.0.iter().for_each(|&byte| self.letter(vec![byte])),
            HirKind::Class(class) => match letters(class) {
                Some(letters) => self.letter(letters),
                None => self.end_of_row(),
            },
            HirKind::Capture(capture) => self.part(&capture.sub),
            HirKind::Concat(parts) => self.concatenation(parts),
            HirKind::Repetition(repetition) => {
                // What must come stands in the row once for each time; what may follow ends it.
                for _ in 0..repetition.min.min(WINDOW_BYTES as u32) {
                    self.part(&repetition.sub);
                }
                if repetition.max != Some(repetition.min) || repetition.min > WINDOW_BYTES as u32 {
                    self.end_of_row();
                }
            }
            HirKind::Alternation(branches) => {
                self.end_of_row();
                let choices =
                    branches.iter().map(|branch| best(std::slice::from_ref(branch), self.terminator));
                if let Some(choices) = choices.collect::<Option<Vec<Choice>>>() {
                    self.offer(Choice {
                        cost: choices.iter().map(|choice| choice.cost).sum(),
                        windows: choices.into_iter().flat_map(|choice| choice.windows).collect(),
                    });
                }
            }
        }
    }

    fn letter(&mut self, mut letters: Letters) {
        // No match goes over a line's end.
        letters.retain(|&byte| byte != self.terminator);
        if letters.is_empty() {
            return self.end_of_row();
        }
        self.row.push(letters);
    }

    fn end_of_row(&mut self) {
        let mut row = std::mem::take(&mut self.row);
        if row.len() == WINDOW_BYTES - 1 {
            row.insert(0, (0..=u8::MAX).collect());
        }
        for four in row.windows(WINDOW_BYTES) {
            let window = Window([four[0].clone(), four[1].clone(), four[2].clone(), four[3].clone()]);
            let cost = window.cost();
            if window.variants() <= MOST_VARIANTS {
                self.offer(Choice { windows: vec![window], cost });
            }
        }
    }

    fn offer(&mut self, choice: Choice) {
        if self.best.as_ref().is_none_or(|best| choice.cost < best.cost) {
            self.best = Some(choice);
        }
    }
}

/// The bytes of a class of single bytes.
fn letters(class: &Class) -> Option<Letters> {
    match class {
        Class::Bytes(bytes) => Some(bytes.iter().flat_map(|range| range.start()..=range.end()).collect()),
        Class::Unicode(characters) if characters.is_ascii() => {
            Some(characters.iter().flat_map(|range| range.start() as u8..=range.end() as u8).collect())
        }
        Class::Unicode(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pattern: &str) -> Option<Vec<String>> {
        let hir = regex_syntax::ParserBuilder::new().utf8(false).build().parse(pattern).unwrap();
        let text = |window: &Window| {
            let place = |letters: &Letters| match &letters[..] {
                [one] => char::from(*one).to_string(),
                many => format!("[{}]", String::from_utf8_lossy(many)),
            };
            window.0.iter().map(place).collect::<String>()
        };
        windows(&hir, b'\n').map(|windows| windows.iter().map(text).collect())
    }

    #[test]
    fn the_rarest_four_of_each_expression() {
        let is = |windows: &[&str]| Some(windows.iter().map(|&one| one.to_owned()).collect::<Vec<_>>());
        assert_eq!(shown("the_jazz_age"), is(&["jazz"]));
        assert_eq!(shown("rate[0-3]"), is(&["ate[0123]"]));
        assert_eq!(shown(r"^\bquiz(z|es)$"), is(&["quiz"]));
        assert_eq!(shown("(abcd|xqzj)+"), is(&["abcd", "xqzj"]));
        assert_eq!(shown(r"xqzj[^\n]*the "), is(&["xqzj"]));
        assert_eq!(shown("(?:ab){2}"), is(&["abab"]));
        assert_eq!(shown("q{3}z"), is(&["qqqz"]));
        assert_eq!(shown("q{9}"), is(&["qqqq"]));
        assert_eq!(shown("(?-u:[jJ])q(?i)zz"), is(&["[Jj]q[Zz][Zz]"]));
        for none in
            ["abc", "abc|defgh", "a?b?c?d?", "ab.cd", "[а-я]{4}", r"\w{4}", "(abcd)?", "abc\ndef", "(?i)kkkk"]
        {
            assert_eq!(shown(none), None, "{none}");
        }
    }

    #[test]
    fn fours_are_little_endian() {
        let hir = regex_syntax::parse("a[bc]de").unwrap();
        let windows = windows(&hir, b'\n').unwrap();
        let fours: Vec<[u8; 4]> = windows[0].fours().into_iter().map(u32::to_le_bytes).collect();
        assert_eq!(fours, [*b"abde", *b"acde"]);
        let hir = regex_syntax::parse(r"abc.*\bde").unwrap();
        let windows = super::windows(&hir, b'\n').unwrap();
        let fours: Vec<[u8; 4]> = windows[0].fours().into_iter().map(u32::to_le_bytes).collect();
        assert!(fours.len() == 256 && fours[10] == *b"\nabc" && fours[255] == *b"\xffabc");
    }
}
