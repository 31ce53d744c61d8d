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

/// Places of a row that the card compares, at most; a longer row is cut.
pub(super) const ROW_BYTES_MAX: usize = 32;

/// A place of a row: the bytes that may stand there, ascending.
pub(super) type Letters = Vec<u8>;

/// A row of which every match has a text, and the four places of it that the filter looks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// All places, the four and those around them.
    pub(super) row: Vec<Letters>,
    /// The first of the four; a row of three has any byte in front of it, which is no place.
    first: isize,
    /// Whether a text of the row is a match of the expression.
    pub(crate) is_match: bool,
}

impl Window {
    /// The letters of the four.
    fn four(&self) -> [Letters; WINDOW_BYTES] {
        std::array::from_fn(|at| match usize::try_from(self.first + at as isize) {
            Ok(at) => self.row[at].clone(),
            Err(_) => (0..=u8::MAX).collect(),
        })
    }

    /// The place of the four's last byte.
    pub(super) fn last(&self) -> usize {
        (self.first + WINDOW_BYTES as isize - 1) as usize
    }

    /// How many fours it has.
    fn variants(&self) -> usize {
        self.four().iter().map(Vec::len).product()
    }

    /// Its fours, each as the little-endian number of its bytes.
    pub(super) fn fours(&self) -> Vec<u32> {
        self.four().iter().enumerate().fold(vec![0], |fours, (at, letters)| {
            let with = |four: u32| letters.iter().map(move |&byte| four | u32::from(byte) << (8 * at));
            fours.into_iter().flat_map(with).collect()
        })
    }

    /// What looking for it costs: about the share of a text's places that it hits, and its bits.
    fn cost(&self) -> f64 {
        // Commonness is a logarithm; the commonest bytes are about a twelfth of a text.
        let share = |byte: &u8| 0.08 / f64::from(1u32 << (9 - commonness(*byte)));
        let letters = |letters: &Letters| letters.iter().map(share).sum::<f64>().min(1.0);
        self.four().iter().map(letters).product::<f64>() + VARIANT_COST * self.variants() as f64
    }

    /// The cheapest window of a row.
    fn of(row: &[Letters], is_match: bool) -> Option<Window> {
        let firsts = match row.len() {
            0..3 => return None,
            3 => -1..=-1,
            length => 0..=length as isize - WINDOW_BYTES as isize,
        };
        let window = |first| Window { row: row.to_vec(), first, is_match };
        let cheapest = firsts.map(window).min_by(|a, b| a.cost().total_cmp(&b.cost()))?;
        Some(cheapest.cut()).filter(|window| window.variants() <= MOST_VARIANTS)
    }

    /// The window with as many places of its row as are compared.
    fn cut(mut self) -> Window {
        if self.row.len() > ROW_BYTES_MAX {
            let first = (self.last() + 1).saturating_sub(ROW_BYTES_MAX);
            self.row = self.row[first..].iter().take(ROW_BYTES_MAX).cloned().collect();
            self.first -= first as isize;
            self.is_match = false;
        }
        self
    }
}

/// Windows of which every match has one, and their cost.
#[derive(Clone, Debug)]
struct Choice {
    windows: Vec<Window>,
    cost: f64,
}

/// The windows to look for in place of an expression; `None` where a match may lack any four.
pub(crate) fn windows(hir: &Hir, terminator: u8) -> Option<Vec<Window>> {
    let branches = match hir.kind() {
        HirKind::Alternation(branches) => &branches[..],
        _ => std::slice::from_ref(hir),
    };
    let mut windows = Vec::new();
    for branch in branches {
        match row(branch, terminator).and_then(|row| Window::of(&row, true)) {
            Some(window) => windows.push(window),
            None => windows.extend(best(std::slice::from_ref(branch), terminator)?.windows),
        }
    }
    let variants: usize = windows.iter().map(Window::variants).sum();
    (variants <= MOST_VARIANTS).then_some(windows)
}

/// The row that an expression is, if it is one.
fn row(hir: &Hir, terminator: u8) -> Option<Vec<Letters>> {
    let within = |letters: Letters| (!letters.contains(&terminator)).then_some(letters);
    match hir.kind() {
        HirKind::Literal(literal) => literal.0.iter().map(|&byte| within(vec![byte])).collect(),
        HirKind::Class(class) => Some(vec![within(letters(class)?)?]),
        HirKind::Capture(capture) => row(&capture.sub, terminator),
        HirKind::Concat(parts) => {
            let rows: Option<Vec<_>> = parts.iter().map(|part| row(part, terminator)).collect();
            Some(rows?.concat())
        }
        HirKind::Repetition(repetition)
            if repetition.max == Some(repetition.min) && repetition.min <= ROW_BYTES_MAX as u32 =>
        {
            Some(vec![row(&repetition.sub, terminator)?; repetition.min as usize].concat())
        }
        _ => None,
    }
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
        let row = std::mem::take(&mut self.row);
        if let Some(window) = Window::of(&row, false) {
            self.offer(Choice { cost: window.cost(), windows: vec![window] });
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
            window.four().iter().map(place).collect::<String>()
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
        for none in [
            "ab",
            "ab|defgh",
            "a?b?c?d?",
            "ab.cd",
            "[а-я]{4}",
            r"\w{4}",
            "(abcd)?",
            "ab\nef",
            "(?i)kkkk",
            "[a-z]{3}",
        ] {
            assert_eq!(shown(none), None, "{none}");
        }
    }

    #[test]
    fn rows_that_are_matches_are_told() {
        let of = |pattern: &str| {
            let hir = regex_syntax::ParserBuilder::new().utf8(false).build().parse(pattern).unwrap();
            windows(&hir, b'\n').map(|windows| {
                let row = |window: &Window| (window.row.len(), window.last(), window.is_match);
                windows.iter().map(row).collect::<Vec<_>>()
            })
        };
        assert_eq!(of("the_jazz_age"), Some(vec![(12, 7, true)]));
        assert_eq!(of("(ab[cd]){2}|xyz|pq.*rstu"), Some(vec![(6, 4, true), (3, 2, true), (4, 3, false)]));
        assert_eq!(of(r"quiz\b"), Some(vec![(4, 3, false)]));
        assert_eq!(of(r"quiz+"), Some(vec![(4, 3, false)]));
        let long = "a".repeat(20) + "zzqj" + &"a".repeat(30);
        assert_eq!(of(&long), Some(vec![(32, 23, false)]));
        assert_eq!(of(&("b".repeat(40) + "qqqq")), Some(vec![(32, 31, false)]));
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
