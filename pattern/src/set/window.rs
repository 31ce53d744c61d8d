//! A piece of a text that is searched at a time: whole lines, where they end, and how many lie
//! before each word of positions.

use crate::bits::BitKernel;
use crate::line;
use std::ops::Range;

/// The usual size of a window: it and the streams of its programs stay in the second-level cache.
pub(crate) const WINDOW_BYTES: usize = 256 << 10;

/// Whole lines of a text.
pub(super) struct Window<'t> {
    pub(super) text: &'t [u8],
    pub(super) terminator: u8,
    /// Bit `i % 64` of word `i / 64` is set where byte `i` ends a line, or the text does.
    pub(super) ends: Vec<u64>,
    /// The number of lines that end before each word.
    pub(super) before: Vec<u32>,
    pub(super) lines: usize,
}

impl<'t> Window<'t> {
    pub(super) fn new(text: &'t [u8], terminator: u8, bits: &BitKernel) -> Window<'t> {
        let mut ends = vec![0; text.len() / 64 + 1];
        let (whole, rest) = text.split_at(text.len() / 64 * 64);
        (bits.equal)(whole, terminator, &mut ends[..whole.len() / 64]);
        let mut padded = [!terminator; 64];
        padded[..rest.len()].copy_from_slice(rest);
        (bits.equal)(&padded, terminator, &mut ends[whole.len() / 64..]);
        // The end of the text ends a last line that lacks its terminator.
        if text.last().is_some_and(|&last| last != terminator) {
            ends[text.len() / 64] |= 1 << (text.len() % 64);
        }
        let mut before = vec![0; ends.len()];
        let lines = (bits.count)(&ends, &mut before) as usize;
        Window { text, terminator, ends, before, lines }
    }

    /// The number of the line that holds byte `at`.
    pub(super) fn line_number(&self, at: usize) -> usize {
        let below = self.ends[at / 64] & ((1 << (at % 64)) - 1);
        (self.before[at / 64] + below.count_ones()) as usize
    }

    /// The line that holds byte `at`, without its terminator.
    pub(super) fn line(&self, at: usize) -> Range<usize> {
        let line = line::around(self.text, at, self.terminator);
        line.start..line.start + line::content(&self.text[line.clone()], self.terminator)
    }
}

/// The end of the window that begins at `from`, behind a line's terminator or at the text's end.
pub(super) fn end_of(text: &[u8], from: usize, terminator: u8) -> usize {
    match text.len() - from {
        ..=WINDOW_BYTES => text.len(),
        _ => line::end_of(text, from + WINDOW_BYTES - 1, terminator),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_numbered() {
        let bits = BitKernel::detect();
        for text in [&b""[..], b"a", b"\n", b"a\n\nbc", b"\n\n", &[b'x'; 64], &b"ab\n".repeat(100)] {
            let window = Window::new(text, b'\n', bits);
            let lines: Vec<Range<usize>> = line::each(text, b'\n').collect();
            assert_eq!(window.lines, lines.len(), "{text:?}");
            for (number, line) in lines.into_iter().enumerate() {
                for at in line.clone() {
                    assert_eq!(window.line_number(at), number, "{at} of {text:?}");
                    assert_eq!(window.line(at).start, line.start);
                }
            }
        }
    }
}
