//! Lines of a text: where they begin and end.
//!
//! A line ends with its terminator byte; the last one may lack it. All functions are pure and
//! scalar, except that `memchr` is used, and the substring search for the ends of long lines.

use crate::literal::finder::Finder;
use std::ops::{ControlFlow, Range};

/// Receives lines until it breaks.
pub(crate) type Push<'p> = dyn FnMut(Range<usize>) -> ControlFlow<()> + 'p;

/// What is asked of matching lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Where they lie.
    Lines,
    /// Where they end. Nobody looks for the start of a line: what is pushed may begin in front of
    /// it, behind the line that was pushed before.
    Ends,
}

impl Wanted {
    /// Where what is pushed begins, for a line that holds byte `at`; the one before ends at `past`.
    #[inline]
    pub(crate) fn start(self, text: &[u8], past: usize, at: usize, terminator: u8) -> usize {
        match self {
            Wanted::Lines => past + start_of(&text[past..], at - past, terminator),
            Wanted::Ends => past,
        }
    }
}

/// A line's end within this many bytes is found fastest by `memchr`, which needs no preparation.
const NEAR_BYTES: usize = 4 << 10;

/// The end of the line that holds byte `at`, terminator included.
pub fn end_of(text: &[u8], at: usize, terminator: u8) -> usize {
    let near = text.len().min(at.saturating_add(NEAR_BYTES));
    match memchr::memchr(terminator, &text[at..near]) {
        Some(offset) => at + offset + 1,
        None => far_end_of(text, near, terminator),
    }
}

/// The end of a line that goes on behind `from`, terminator included.
#[cold]
fn far_end_of(text: &[u8], from: usize, terminator: u8) -> usize {
    Finder::new(&[terminator]).find(text, from).map_or(text.len(), |at| at + 1)
}

/// The start of the line that holds byte `at`.
pub fn start_of(text: &[u8], at: usize, terminator: u8) -> usize {
    memchr::memrchr(terminator, &text[..at]).map_or(0, |before| before + 1)
}

/// The line that holds byte `at`, terminator included.
pub fn around(text: &[u8], at: usize, terminator: u8) -> Range<usize> {
    start_of(text, at, terminator)..end_of(text, at, terminator)
}

/// Length of a line without its terminator.
pub fn content(line: &[u8], terminator: u8) -> usize {
    line.len() - usize::from(line.last() == Some(&terminator))
}

/// The lines of a text, terminators included.
///
/// ```
/// let lines: Vec<_> = lightfoot_pattern::line::each(b"one\ntwo", b'\n').collect();
/// assert_eq!(lines, [0..4, 4..7]);
/// ```
pub fn each(text: &[u8], terminator: u8) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut start = 0;
    std::iter::from_fn(move || {
        (start < text.len()).then(|| {
            let line = start..end_of(text, start, terminator);
            start = line.end;
            line
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_cover_the_text() {
        for text in [&b""[..], b"a", b"a\n", b"\n", b"\n\na\n", b"ab\ncd"] {
            let lines: Vec<_> = each(text, b'\n').collect();
            assert_eq!(lines.iter().map(Range::len).sum::<usize>(), text.len());
            for line in lines {
                for at in line.clone() {
                    assert_eq!(around(text, at, b'\n'), line);
                }
            }
        }
    }

    #[test]
    fn ends_of_long_lines_are_found() {
        for length in [0, 1, NEAR_BYTES - 1, NEAR_BYTES, NEAR_BYTES + 1, 3 * NEAR_BYTES + 77] {
            let text = [&b"-".repeat(length)[..], b"\n", &b"-".repeat(length)].concat();
            assert_eq!((end_of(&text, 0, b'\n'), end_of(&text, length, b'\n')), (length + 1, length + 1));
            assert_eq!(end_of(&text, length + 1, b'\n'), text.len());
        }
    }

    #[test]
    fn content_leaves_the_terminator_out() {
        assert_eq!((content(b"ab\n", b'\n'), content(b"ab", b'\n'), content(b"\n", b'\n')), (2, 2, 0));
    }
}
