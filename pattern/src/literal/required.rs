//! Lines that contain a string without which nothing matches, to be confirmed by the whole
//! expression.
//!
//! `[а-яё]+ость\b` cannot match without `ость`: looking for that string costs less than computing
//! Unicode classes for every byte, as long as it is rare. [`Required::of`] reads the string off the
//! expression: a literal on the way through all concatenations, captures and repetitions of at
//! least once. Of several it is the one that is likely to be rarest ([`estimate`], by a rough table
//! in place of statistics of a text that is not known yet). Where another string stands before it
//! in every match, lines whose beginning lacks that one are passed over. Others are confirmed in
//! groups: few by an automaton, many by the program, which runs over copies of them side by side at
//! a tenth of the cost. Where the string is all of the expression but assertions about words
//! (`\bname\b`, and `-w` of a grep), the two bytes beside it tell at once, unless they are beyond
//! ASCII. Where a text shows more than one hit in [`Required::sparse_bytes`] bytes the search is
//! given up, for this text and the next few, and bit streams go on. Left out: sets of strings, one
//! of which every match contains.

use super::commonness::commonness;
use super::finder::Finder;
use crate::line::{self, Push, Wanted};
use regex_syntax::hir::{Hir, HirKind, Look};
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// So many hits more than the text so far allows are let pass: to compile a program costs more than
/// to confirm them.
const SLACK_HITS: usize = 64;
/// A line with the string once, where two are needed, costs this part of one to be confirmed.
const ONCE_PART: usize = 4;
/// Longer lines are left to the streams.
const LONG_LINE_BYTES: usize = 16 << 10;
/// This many texts after a dense one are assumed to be dense.
const DENSE_TEXTS: u32 = 31;
/// Lines of the first group to be confirmed: few, so that a caller that stops at a match has not
/// searched far beyond, and of the others.
const GROUP_LINES: [usize; 2] = [16, 256];
/// A group with more bytes is confirmed at once.
const GROUP_BYTES: usize = 64 << 10;

/// Pushes those of a group of lines that match.
pub(crate) type Confirm<'c> = dyn FnMut(&[Range<usize>], &mut Push<'_>) -> ControlFlow<()> + 'c;

/// What streams cost over the whole text, as bytes of it and lines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    /// With fewer bytes to a hit they are faster.
    pub(crate) sparse_bytes: usize,
    /// Confirming this many lines by the automaton costs as much as compiling the program.
    pub(crate) patience_lines: u32,
}

/// A search for a string that all matches contain.
#[derive(Debug)]
pub(crate) struct Required {
    finder: Finder,
    /// Whether every match holds the string twice.
    twice: bool,
    /// What stands before the string in every match.
    before: Option<Before>,
    cost: Cost,
    /// What stands beside the string, where that decides.
    edges: Option<Edges>,
    /// Texts that are still taken for dense.
    dense_texts: AtomicU32,
    /// Lines that were confirmed without a program, as far as they are counted.
    confirmed: AtomicU32,
}

impl Required {
    /// A string that each match contains, where the expression has one.
    pub(crate) fn of(hir: &Hir, cost: Cost) -> Option<Required> {
        let string = rarest(hir)?;
        let (finder, twice) = (Finder::new(string), times(hir, string) > 1);
        let (before, edges) = (Before::of(hir, string), Edges::of(hir));
        let (dense_texts, confirmed) = Default::default();
        Some(Required { finder, twice, before, cost, edges, dense_texts, confirmed })
    }

    /// The string.
    pub(crate) fn string(&self) -> &[u8] {
        self.finder.string()
    }

    /// The name of the kernel that looks for it.
    pub(crate) fn kernel(&self) -> &'static str {
        self.finder.kernel()
    }

    /// With fewer bytes to a hit the search is given up.
    pub(crate) fn sparse_bytes(&self) -> usize {
        self.cost.sparse_bytes
    }

    /// Whether a program would by now have repaid itself by confirming these lines and those
    /// before.
    pub(crate) fn repays_program(&self, lines: usize) -> bool {
        let confirmed = self.confirmed.load(Relaxed);
        if confirmed < self.cost.patience_lines {
            // Threads that overwrite each other's sums only compile later.
            self.confirmed.store(confirmed.saturating_add(lines as u32), Relaxed);
        }
        confirmed >= self.cost.patience_lines
    }

    /// Hands groups of lines that contain the string to `confirm`, and pushes what is wanted of
    /// those that need no confirmation. Answers where it stopped because
    /// the string is dense: at the start of a line, or at the end of the text when it did not.
    pub(crate) fn lines(
        &self,
        text: &[u8],
        terminator: u8,
        wanted: Wanted,
        confirm: &mut Confirm<'_>,
        push: &mut Push<'_>,
    ) -> ControlFlow<(), usize> {
        if self.dense_texts.load(Relaxed) > 0 {
            // Several threads may count one text twice or not at all: that changes speed only.
            let _ = self.dense_texts.fetch_update(Relaxed, Relaxed, |texts| texts.checked_sub(1));
            return ControlFlow::Continue(0);
        }
        let sparse_bytes = self.cost.sparse_bytes;
        let (mut at, mut spent, mut group) = (0, 0, LineGroup::default());
        let mut next = self.finder.find(text, at);
        while let Some(found) = next {
            let behind = found + self.string().len();
            if self.twice {
                next = self.finder.find(text, behind);
                let once = next.is_none_or(|next| memchr::memchr(terminator, &text[behind..next]).is_some());
                spent += if once { sparse_bytes / ONCE_PART } else { 0 };
                if once && spent <= found + SLACK_HITS * sparse_bytes {
                    continue;
                }
            }
            let verdict = self.edges.map_or(Verdict::Unsure, |edges| edges.hold(text, found..behind));
            let is_sparse = spent <= found + SLACK_HITS * sparse_bytes;
            if verdict == Verdict::Fails && is_sparse {
                spent += sparse_bytes / ONCE_PART;
                next = self.finder.find(text, found + 1);
                continue;
            }
            let is_sure = verdict == Verdict::Holds && is_sparse;
            let wanted = if is_sure { wanted } else { Wanted::Lines };
            let start = wanted.start(text, at, found, terminator);
            if is_sparse && self.before.as_ref().is_some_and(|before| !before.stands_in(&text[start..found]))
            {
                spent += sparse_bytes / ONCE_PART;
                next = self.finder.find(text, found + 1);
                continue;
            }
            let line = start..line::end_of(text, found, terminator);
            if is_sure {
                spent += sparse_bytes / ONCE_PART;
                at = line.end;
                // Lines are pushed in order.
                if !group.lines.is_empty() {
                    confirm(&group.lines, push)?;
                    group = LineGroup::default();
                }
                push(line)?;
                next = self.finder.find(text, at);
                continue;
            }
            spent += sparse_bytes + line.len();
            if line.len() > LONG_LINE_BYTES || spent > line.end + SLACK_HITS * sparse_bytes {
                self.dense_texts.store(DENSE_TEXTS, Relaxed);
                confirm(&group.lines, push)?;
                return ControlFlow::Continue(start);
            }
            at = line.end;
            if group.is_full_with(line) {
                confirm(&group.lines, push)?;
                group = LineGroup { lines: group.lines, bytes: 0, number: 1 };
                group.lines.clear();
            }
            next = self.finder.find(text, at);
        }
        confirm(&group.lines, push)?;
        ControlFlow::Continue(text.len())
    }
}

/// A string that stands before another one in every match, so that lines with the other one alone
/// need no more than a look at their beginning.
#[derive(Debug)]
struct Before {
    string: Box<[u8]>,
    /// Where its rarest byte is.
    rarest: usize,
}

impl Before {
    /// The rarest string of the parts in front of the one that has `string`.
    fn of(hir: &Hir, string: &[u8]) -> Option<Before> {
        let parts = match hir.kind() {
            HirKind::Capture(capture) => return Before::of(&capture.sub, string),
            HirKind::Concat(parts) => parts,
            _ => return None,
        };
        let place = parts.iter().position(|part| rarest(part) == Some(string))?;
        let Some(before) = parts[..place].iter().filter_map(rarest).min_by_key(|before| rank(before)) else {
            return Before::of(&parts[place], string);
        };
        let rarest = (0..before.len()).min_by_key(|&at| commonness(before[at]))?;
        Some(Before { string: before.into(), rarest })
    }

    /// Whether it stands in the beginning of a line.
    fn stands_in(&self, beginning: &[u8]) -> bool {
        let places = memchr::memchr_iter(self.string[self.rarest], beginning);
        let starts = places.filter_map(|at| at.checked_sub(self.rarest));
        starts.into_iter().any(|start| beginning[start..].starts_with(&self.string))
    }
}

/// Which sides of a string must not have a character of a word, where an expression is the string
/// and assertions that say so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Edges {
    before: bool,
    after: bool,
}

/// Whether the bytes beside a string are as they must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Holds,
    Fails,
    /// A character beyond ASCII decides.
    Unsure,
}

impl Edges {
    fn of(hir: &Hir) -> Option<Edges> {
        let HirKind::Concat(parts) = hir.kind() else { return None };
        let (before, literal, after) = match &parts[..] {
            [before, literal, after] => (Some(before), literal, Some(after)),
            [one, other] if matches!(one.kind(), HirKind::Look(_)) => (Some(one), other, None),
            [one, other] => (None, one, Some(other)),
            _ => return None,
        };
        let HirKind::Literal(literal) = literal.kind() else { return None };
        let asks = |part: &Hir, half: [Look; 2], whole: [Look; 4], byte: u8| match part.kind() {
            HirKind::Look(look) if half.contains(look) => Some(()),
            // Where the string's own character is of a word, the other one must not be.
            HirKind::Look(look) if whole.contains(look) && is_of_word(byte) => Some(()),
            _ => None,
        };
        if let Some(part) = before {
            let half = [Look::WordStartHalfAscii, Look::WordStartHalfUnicode];
            let whole = [Look::WordAscii, Look::WordUnicode, Look::WordStartAscii, Look::WordStartUnicode];
            asks(part, half, whole, *literal.0.first()?)?;
        }
        if let Some(part) = after {
            let half = [Look::WordEndHalfAscii, Look::WordEndHalfUnicode];
            let whole = [Look::WordAscii, Look::WordUnicode, Look::WordEndAscii, Look::WordEndUnicode];
            asks(part, half, whole, *literal.0.last()?)?;
        }
        Some(Edges { before: before.is_some(), after: after.is_some() })
    }

    /// Whether the string at this place is an expression's match. The ends of a text, and of its
    /// lines, are not of a word.
    #[inline]
    fn hold(self, text: &[u8], place: Range<usize>) -> Verdict {
        let before = place.start.checked_sub(1).filter(|_| self.before).map(|at| text[at]);
        let after = text.get(place.end).copied().filter(|_| self.after);
        let sides = [before, after].into_iter().flatten();
        let (mut holds, mut is_ascii) = (true, true);
        for byte in sides {
            holds &= !is_of_word(byte);
            is_ascii &= byte.is_ascii();
        }
        match (holds, is_ascii) {
            (false, _) => Verdict::Fails,
            (true, true) => Verdict::Holds,
            (true, false) => Verdict::Unsure,
        }
    }
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Lines to be confirmed.
#[derive(Debug, Default)]
struct LineGroup {
    lines: Vec<Range<usize>>,
    bytes: usize,
    /// The first one is small.
    number: usize,
}

impl LineGroup {
    /// Adds a line; whether there is no room for another one.
    fn is_full_with(&mut self, line: Range<usize>) -> bool {
        self.bytes += line.len();
        self.lines.push(line);
        self.bytes > GROUP_BYTES || self.lines.len() >= GROUP_LINES[self.number]
    }
}

/// The string of the expression that is likely to be rarest in a text.
pub(crate) fn rarest(hir: &Hir) -> Option<&[u8]> {
    match hir.kind() {
        HirKind::Literal(literal) => Some(&literal.0),
        HirKind::Capture(capture) => rarest(&capture.sub),
        HirKind::Repetition(repetition) if repetition.min > 0 => rarest(&repetition.sub),
        HirKind::Concat(subs) => subs.iter().filter_map(rarest).min_by_key(|string| rank(string)),
        _ => None,
    }
}

/// How often, at least, a string stands in every match, without overlaps.
fn times(hir: &Hir, string: &[u8]) -> usize {
    match hir.kind() {
        HirKind::Literal(literal) => memchr::memmem::find_iter(&literal.0, string).count(),
        HirKind::Capture(capture) => times(&capture.sub, string),
        HirKind::Repetition(repetition) if repetition.min > 0 => times(&repetition.sub, string),
        HirKind::Concat(subs) => subs.iter().map(|sub| times(sub, string)).sum(),
        _ => 0,
    }
}

/// Less is rarer; of equals the longer one.
fn rank(string: &[u8]) -> (u32, usize) {
    (estimate(string), usize::MAX - string.len())
}

/// How common a string is: its rarest two neighbouring bytes, from 4 to 18, and one less for each
/// byte besides; more than that for a single byte. So `return` is rarer than `if`, whose letters
/// are.
pub(crate) fn estimate(string: &[u8]) -> u32 {
    let pairs = string.windows(2).map(|pair| commonness(pair[0]) + commonness(pair[1]));
    pairs.min().map_or(u32::MAX, |pair| pair.saturating_sub(string.len() as u32 - 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string_of(pattern: &str) -> Option<String> {
        let hir = regex_syntax::parse(pattern).unwrap();
        Required::of(&hir, Cost { sparse_bytes: 1024, patience_lines: 0 })
            .map(|required| String::from_utf8_lossy(required.string()).into_owned())
    }

    #[test]
    fn every_match_contains_the_string() {
        for (pattern, string) in [
            (r"[а-яё]+ость\b", Some("ость")),
            (r"\w+ing", Some("ing")),
            (r"(\w+zoo)+\d", Some("zoo")),
            (r"the .* quiz", Some(" quiz")),
            (r"a+://b", Some("://b")),
            (r"if.{0,30}return", Some("return")),
            (r"return\s+-E[A-Z]+;", Some("-E")),
            (r"(?:ab)*c", Some("c")),
            (r"ab|cd", None),
            (r"(?:ab){0,3}\w", None),
            (r"(?i)привет", None),
            ("", None),
        ] {
            assert_eq!(string_of(pattern).as_deref(), string, "{pattern}");
        }
    }

    #[test]
    fn bytes_beside_a_string_decide() {
        let edges = |pattern: &str| Edges::of(&regex_syntax::parse(pattern).unwrap());
        let both = Edges { before: true, after: true };
        for (pattern, found) in [
            (r"\bname\b", Some(both)),
            (r"\b{start-half}->\b{end-half}", Some(both)),
            (r"(?-u)\b{start}n\b{end}", Some(both)),
            (r"\bname", Some(Edges { after: false, ..both })),
            (r"name\b", Some(Edges { before: false, ..both })),
            // Beside what is not of a word, `\b` asks for a word.
            (r"\b->\b", None),
            (r"\bé", None),
            (r"\b{end}name", None),
            (r"\Bname", None),
            (r"name\w", None),
            (r"^name$", None),
            ("name", None),
        ] {
            assert_eq!(edges(pattern), found, "{pattern}");
        }
        let text = "name namen _name.name\nname ·name name·".as_bytes();
        let verdicts: Vec<Verdict> =
            memchr::memmem::find_iter(text, "name").map(|at| both.hold(text, at..at + 4)).collect();
        use Verdict::{Fails, Holds, Unsure};
        assert_eq!(verdicts, [Holds, Fails, Fails, Holds, Holds, Unsure, Unsure]);
    }

    #[test]
    fn a_string_that_is_needed_twice_is_looked_for_twice() {
        let hir = regex_syntax::parse(r"\w+->\w+(?:->)+x").unwrap();
        let required = Required::of(&hir, Cost { sparse_bytes: 40, patience_lines: 0 }).unwrap();
        assert!(required.twice && times(&regex_syntax::parse("(?:ab)?abaxb+ab").unwrap(), b"ab") == 2);
        let candidates = |text: &[u8]| {
            let mut candidates = Vec::new();
            let mut confirm = |lines: &[Range<usize>], push: &mut Push<'_>| {
                lines.iter().try_for_each(|line| push(line.clone()))
            };
            let flow = required.lines(text, b'\n', Wanted::Lines, &mut confirm, &mut |line| {
                candidates.push(line);
                ControlFlow::Continue(())
            });
            (candidates, flow)
        };
        let text = b"a->b\n->->\n\n->b\n-\n>->a->->\n->";
        assert_eq!(candidates(text), (vec![5..10, 17..26], ControlFlow::Continue(text.len())));
        let (lines, flow) = candidates(&b"a->b\n".repeat(10_000));
        assert!(lines.is_empty() && matches!(flow, ControlFlow::Continue(at) if at % 5 == 0 && at < 50_000));
    }

    #[test]
    fn lines_without_the_string_before_are_passed_over() {
        let before = |pattern: &str| {
            let hir = regex_syntax::parse(pattern).unwrap();
            let required = Required::of(&hir, Cost { sparse_bytes: 1024, patience_lines: 0 }).unwrap();
            let before = required.before.map(|before| String::from_utf8(before.string.into()).unwrap());
            (String::from_utf8_lossy(required.finder.string()).into_owned(), before)
        };
        for (pattern, string, string_before) in [
            ("if.{0,30}return", "return", Some("if")),
            ("(fn .*(in)+ .*mutex_unlock)x", "mutex_unlock", Some("fn ")),
            ("return.*if", "return", None),
            ("(?:if)?.*return", "return", None),
            ("a+b?mutex.*at", "mutex", Some("a")),
            ("xq.*xq", "xq", None),
        ] {
            let expected = (string.to_owned(), string_before.map(str::to_owned));
            assert_eq!(before(pattern), expected, "{pattern}");
        }
        let hir = regex_syntax::parse("if.{0,30}return").unwrap();
        let required = Required::of(&hir, Cost { sparse_bytes: 40, patience_lines: 0 }).unwrap();
        let text =
            b"if return\nfi return\ni\nf return if return\nreturn if\nreturn if iif return\nif\nreturn";
        let mut candidates = Vec::new();
        let mut confirm = |lines: &[Range<usize>], push: &mut Push<'_>| {
            lines.iter().try_for_each(|line| push(line.clone()))
        };
        let _ = required.lines(text, b'\n', Wanted::Lines, &mut confirm, &mut |line| {
            candidates.push(String::from_utf8_lossy(&text[line]).into_owned());
            ControlFlow::Continue(())
        });
        assert_eq!(candidates, ["if return\n", "f return if return\n", "return if iif return\n"]);
    }

    #[test]
    fn a_dense_string_is_given_up_for_some_texts() {
        let hir = regex_syntax::parse(r"\w+ab").unwrap();
        let required = Required::of(&hir, Cost { sparse_bytes: 100, patience_lines: 0 }).unwrap();
        let lines = |text: &[u8]| {
            let mut count = 0;
            let mut confirm = |lines: &[Range<usize>], push: &mut Push<'_>| {
                lines.iter().filter(|line| line.len() > 3).try_for_each(|line| push(line.clone()))
            };
            let flow = required.lines(text, b'\n', Wanted::Lines, &mut confirm, &mut |_| {
                count += 1;
                ControlFlow::Continue(())
            });
            (count, flow)
        };
        let rare = [&b"ab\n"[..], &b"-\n".repeat(1000), b"xxab"].concat();
        assert_eq!(lines(&rare), (1, ControlFlow::Continue(rare.len())));
        let (count, at) = lines(&b"xxab\n".repeat(1000));
        assert!(count > 0 && count <= SLACK_HITS, "{count}");
        assert_eq!(at, ControlFlow::Continue(5 * count));
        for _ in 0..DENSE_TEXTS {
            assert_eq!(lines(&rare), (0, ControlFlow::Continue(0)));
        }
        assert_eq!(lines(&rare), (1, ControlFlow::Continue(rare.len())));
        let long = [&b"ab xx\n"[..], &b"x".repeat(LONG_LINE_BYTES), b"ab"].concat();
        assert_eq!(lines(&long), (1, ControlFlow::Continue(6)));
    }
}
