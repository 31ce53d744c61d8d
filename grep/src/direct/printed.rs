//! The results of one piece: formatted bytes, and stretches of the text itself that are too long to
//! copy.
//!
//! Short copies have a constant size and are cut back afterwards, which saves a call for each line.
//! So the buffer is longer than its valid bytes. A long line is not copied, which bounds the buffer
//! for lines of any length.

use super::format::Counter;
use std::io::{self, Write};
use std::ops::Range;

/// Lines of this length and more are written from the text.
const STRETCH_BYTES: usize = 64 << 10;

/// Bytes of a copy of constant size.
const COPY_BYTES: usize = 64;

/// The results of one piece.
#[derive(Debug, Default)]
pub(super) struct Printed {
    bytes: Vec<u8>,
    /// The number of valid bytes of `bytes`.
    filled: usize,
    /// Stretches of the text, each with the number of `bytes` to be written before it.
    stretches: Vec<(usize, Range<usize>)>,
    /// The number of reported lines.
    pub(super) lines: u64,
    /// The number of reported matches, where those are printed: a line may have many.
    pub(super) reported: u64,
    /// The place, in the whole text, of the NUL byte of the first line that was not printed because
    /// of it.
    pub(super) binary: Option<u64>,
    /// A buffer with the text of the stretches, and where the text begins in it, if its reader has
    /// continued with another text.
    kept: Option<(Vec<u8>, usize)>,
}

impl Printed {
    pub(super) fn clear(&mut self) {
        self.filled = 0;
        self.stretches.clear();
        (self.lines, self.reported, self.binary, self.kept) = (0, 0, None, None);
    }

    /// Takes the buffer whose text begins at `start` if it is still needed; its owner gets an empty
    /// one.
    pub(super) fn keep(&mut self, buffer: &mut Vec<u8>, start: usize) {
        if !self.stretches.is_empty() {
            self.kept = Some((std::mem::take(buffer), start));
        }
    }

    /// Copies the text of the stretches, if there are any, where its owner keeps it. Nothing else
    /// is copied: the text may be a whole file, of which this is a piece.
    pub(super) fn keep_copy(&mut self, text: &[u8]) {
        let mut copy = Vec::with_capacity(self.stretches.iter().map(|(_, stretch)| stretch.len()).sum());
        for (_, stretch) in &mut self.stretches {
            let start = copy.len();
            copy.extend_from_slice(&text[stretch.clone()]);
            *stretch = start..copy.len();
        }
        if !copy.is_empty() {
            self.kept = Some((copy, 0));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.filled == 0 && self.stretches.is_empty()
    }

    /// Makes room for `more` bytes, and for a copy of constant size behind them.
    #[inline]
    fn reserve(&mut self, more: usize) {
        let wanted = self.filled + more + COPY_BYTES;
        if self.bytes.len() < wanted {
            self.bytes.resize(wanted.max(2 * self.bytes.len()), 0);
        }
    }

    /// Appends bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.reserve(bytes.len());
        self.bytes[self.filled..self.filled + bytes.len()].copy_from_slice(bytes);
        self.filled += bytes.len();
    }

    /// Appends a stretch of the text.
    #[inline]
    pub(super) fn stretch(&mut self, text: &[u8], stretch: Range<usize>) {
        if stretch.len() >= STRETCH_BYTES {
            return self.stretches.push((self.filled, stretch));
        }
        let length = stretch.len();
        self.reserve(length);
        let out = &mut self.bytes[self.filled..];
        match (out.first_chunk_mut::<COPY_BYTES>(), text[stretch.start..].first_chunk()) {
            (Some(out), Some(block)) if length <= COPY_BYTES => *out = *block,
            _ => out[..length].copy_from_slice(&text[stretch]),
        }
        self.filled += length;
    }

    /// Appends a stretch of the text, and a line feed.
    #[inline]
    pub(super) fn content(&mut self, text: &[u8], content: Range<usize>) {
        let length = content.len();
        if length >= STRETCH_BYTES {
            self.stretches.push((self.filled, content));
            return self.push(b"\n");
        }
        self.reserve(length + 1);
        let out = &mut self.bytes[self.filled..];
        match (out.first_chunk_mut::<COPY_BYTES>(), text[content.start..].first_chunk()) {
            (Some(out), Some(block)) if length <= COPY_BYTES => *out = *block,
            _ => out[..length].copy_from_slice(&text[content]),
        }
        out[length] = b'\n';
        self.filled += length + 1;
    }

    /// Appends stretches of the text from `base` on, each with a line feed.
    pub(super) fn contents(&mut self, text: &[u8], base: usize, contents: &[Range<usize>]) {
        contents.iter().for_each(|content| self.content(text, base + content.start..base + content.end));
    }

    /// Appends a line with its number.
    #[inline]
    pub(super) fn numbered(&mut self, counter: &Counter, text: &[u8], content: Range<usize>) {
        self.reserve(Counter::BYTES);
        if let Some(out) = self.bytes[self.filled..].first_chunk_mut() {
            self.filled += counter.put(out);
        }
        self.content(text, content);
        self.lines += 1;
    }

    /// Writes everything in order. Stretches come from the kept text, or else from `text`.
    pub(super) fn write(&self, text: &[u8], out: &mut impl Write) -> io::Result<()> {
        let text = self.kept.as_ref().map_or(text, |(buffer, start)| &buffer[*start..]);
        let mut written = 0;
        for (before, stretch) in &self.stretches {
            out.write_all(&self.bytes[written..*before])?;
            out.write_all(&text[stretch.clone()])?;
            written = *before;
        }
        out.write_all(&self.bytes[written..self.filled])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_comes_out_in_order() {
        let long = STRETCH_BYTES;
        let text: Vec<u8> = (0..2 * long).map(|at| b'a' + (at % 26) as u8).collect();
        let mut printed = Printed::default();
        let mut expected = Vec::new();
        let mut counter = Counter::new(1, 100, b":").unwrap();
        let ranges = [0..1, 5..5, 7..100, 0..long, 3..long + 9, 2 * long - 3..2 * long, 9..73, 10..75];
        for (number, range) in (1..).zip(ranges) {
            counter.set(number);
            printed.numbered(&counter, &text, range.clone());
            printed.push(b"-");
            expected.extend_from_slice(format!("{number}:").as_bytes());
            expected.extend_from_slice(&text[range]);
            expected.extend_from_slice(b"\n-");
        }
        let mut out = Vec::new();
        printed.write(&text, &mut out).unwrap();
        assert!(out == expected);
        assert!(printed.stretches.len() == 2 && printed.bytes.len() < long / 4, "long lines are not copied");
        let (mut owned, mut again) = (text.clone(), Vec::new());
        printed.keep(&mut owned, 0);
        assert!(owned.is_empty());
        printed.write(&owned, &mut again).unwrap();
        assert!(again == expected);
        let mut copied = Vec::new();
        printed.keep_copy(&text);
        printed.write(&[], &mut copied).unwrap();
        assert!(copied == expected);
        let kept = printed.kept.as_ref().map_or(0, |(buffer, _)| buffer.len());
        assert_eq!(kept, long + (long + 6), "only stretches are copied");
        printed.clear();
        assert!(printed.is_empty());
    }
}
