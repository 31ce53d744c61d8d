//! Lines around matches (`-A`, `-B`, `-C`), from piece to piece.
//!
//! What may still be printed in front of a later match are the last lines of a piece: they are
//! copied, as the piece is gone when the match is found.

use std::ops::Range;

/// How many lines are printed around a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) before: usize,
    pub(super) after: usize,
}

/// Where the printing of a text stands at the end of a piece.
#[derive(Debug, Default)]
pub(super) struct Around {
    /// The last lines of earlier pieces that were not printed, as many as may be printed in front
    /// of a match.
    pub(super) tail: Vec<u8>,
    /// Lines that are still to be printed behind the last match.
    pub(super) pending: usize,
    /// Whether any line was printed.
    pub(super) any: bool,
    /// Whether lines between the last printed one and the tail were left out.
    pub(super) skipped: bool,
}

impl Around {
    /// The last lines of the tail, at most `most`; and whether these are all of it.
    pub(super) fn last(&self, most: usize) -> (Range<usize>, bool) {
        let start = starts_back(&self.tail, 0, self.tail.len(), most).0;
        (start..self.tail.len(), start == 0)
    }

    /// A piece is done: its lines from `done` on were not printed.
    pub(super) fn keep(&mut self, part: &[u8], done: usize, limits: Limits) {
        let (start, lines) = starts_back(part, done, part.len(), limits.before);
        if done > 0 {
            (self.skipped, self.tail) = (false, Vec::new());
        }
        if start > done {
            (self.skipped, self.tail) = (true, Vec::new());
        }
        let (older, is_all) = self.last(limits.before - lines);
        self.skipped |= !is_all;
        self.tail.drain(..older.start);
        self.tail.extend_from_slice(&part[start..]);
    }
}

/// Where the last lines of `text[from..to]` begin, at most `most` of them, and how many there are.
/// `to` is the end of a line.
pub(super) fn starts_back(text: &[u8], from: usize, to: usize, most: usize) -> (usize, usize) {
    let (mut start, mut lines) = (to, 0);
    while lines < most && start > from {
        start = memchr::memrchr(b'\n', &text[from..start - 1]).map_or(from, |at| from + at + 1);
        lines += 1;
    }
    (start, lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_of_a_piece_are_kept() {
        let limits = Limits { before: 3, after: 0 };
        let mut around = Around::default();
        let tail = |around: &Around| String::from_utf8(around.tail.clone()).unwrap();
        around.keep(b"a\nb\n", 0, limits);
        assert!(tail(&around) == "a\nb\n" && !around.skipped);
        around.keep(b"c\n", 0, limits);
        assert!(tail(&around) == "a\nb\nc\n" && !around.skipped);
        around.keep(b"\n", 0, limits);
        assert!(tail(&around) == "b\nc\n\n" && around.skipped);
        assert_eq!(around.last(2), (2..5, false));
        assert_eq!(around.last(3), (0..5, true));
        around.keep(b"d\ne\n", 2, limits);
        assert!(tail(&around) == "e\n" && !around.skipped);
        around.keep(b"1\n2\n3\n4\n5", 0, limits);
        assert!(tail(&around) == "3\n4\n5" && around.skipped);
        around.keep(b"x\n", 2, limits);
        assert!(tail(&around).is_empty() && !around.skipped);
        around.keep(b"x\ny\n", 0, Limits { before: 0, after: 1 });
        assert!(tail(&around).is_empty() && around.skipped);
    }
}
