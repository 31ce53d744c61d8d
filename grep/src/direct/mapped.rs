//! Large files that are mapped, piece by piece, and the choice between mapping and reading.
//!
//! A read copies each byte. What that costs beside the pages that a mapping has to load depends on
//! the processor, the system, and how the file lies in memory: on some machines a search that maps
//! takes two thirds of the time, on others it takes longer. So the first pieces of a file are read
//! and mapped in turn, and what took less time goes on. The results are the same.
//!
//! Where the file becomes shorter, what was computed from the piece is thrown away, and the rest of
//! the file is read.

use super::piece::{Sizes, LINE_BYTES};
use crate::arguments::Mapping;
use mapped_file::MappedFile;
use std::fs::File;
use std::ops::Range;
use std::time::Instant;

/// Pieces that are read, and pieces that are mapped, before one of both is chosen.
const TRIALS: u32 = 6;

/// The quickest of them, which count: the first pieces of a search are slow in either way, and one
/// piece that has few lines to print is quick in either way.
const COUNTED: usize = 3;

/// Shorter pieces say nothing about either.
const LEAST_BYTES: usize = 1024 * LINE_BYTES;

/// How a piece comes into memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Read,
    Mapped,
}

/// The choice between both ways, by their times.
#[derive(Debug)]
pub(super) struct Pace {
    mapping: Mapping,
    way: Way,
    since: Option<Instant>,
    /// The least nanoseconds for a byte in ascending order, and the number of pieces, of each way.
    least: [[f64; COUNTED]; 2],
    pieces: [u32; 2],
}

impl Pace {
    pub(super) fn new(mapping: Mapping) -> Pace {
        Pace { mapping, way: Way::Read, since: None, least: [[f64::INFINITY; COUNTED]; 2], pieces: [0; 2] }
    }

    /// The way for the next piece. The one before had so many bytes, and ends now.
    pub(super) fn next(&mut self, bytes: usize) -> Way {
        match self.mapping {
            Mapping::Always => return Way::Mapped,
            Mapping::Never => return Way::Read,
            Mapping::Auto if self.pieces == [TRIALS; 2] => return self.way,
            Mapping::Auto => {}
        }
        let now = Instant::now();
        if let Some(since) = self.since.filter(|_| bytes >= LEAST_BYTES) {
            self.tell(now.duration_since(since).as_nanos() as f64 / bytes as f64);
        }
        self.since = Some(now);
        self.way
    }

    /// Whether the way stays the same from now on.
    pub(super) fn is_decided(&self) -> bool {
        self.mapping != Mapping::Auto || self.pieces == [TRIALS; 2]
    }

    /// Notes what a byte took, and chooses the next way.
    fn tell(&mut self, nanoseconds: f64) {
        let at = usize::from(self.way == Way::Mapped);
        let least = &mut self.least[at];
        least[COUNTED - 1] = least[COUNTED - 1].min(nanoseconds);
        least.sort_unstable_by(f64::total_cmp);
        self.pieces[at] += 1;
        let [read, mapped] = self.pieces;
        let is_mapped = match read.cmp(&mapped) {
            std::cmp::Ordering::Greater => true,
            std::cmp::Ordering::Less => false,
            std::cmp::Ordering::Equal => read == TRIALS && self.all(1) < self.all(0),
        };
        self.way = if is_mapped { Way::Mapped } else { Way::Read };
    }

    /// What counts of one way.
    fn all(&self, at: usize) -> f64 {
        self.least[at].iter().sum()
    }
}

/// A large file that is mapped, and its current piece.
#[derive(Debug)]
pub(super) struct Map<'f> {
    file: &'f File,
    mapped: MappedFile,
    pace: Pace,
    /// Where the piece before this one began.
    before: usize,
    /// Bytes of the next piece, without what follows its last line end: more where lines are long.
    bytes: usize,
    /// The piece, unless it was read.
    pub(super) piece: Option<Range<usize>>,
}

impl<'f> Map<'f> {
    pub(super) fn new(file: &'f File, mapped: MappedFile, mapping: Mapping) -> Map<'f> {
        Map { file, mapped, pace: Pace::new(mapping), before: 0, bytes: 0, piece: None }
    }

    pub(super) fn file(&self) -> &'f File {
        self.file
    }

    pub(super) fn text(&self) -> &[u8] {
        self.mapped.bytes()
    }

    /// The way for the piece that begins at a place of the file.
    #[inline(never)]
    pub(super) fn way_at(&mut self, at: usize) -> Way {
        let before = std::mem::replace(&mut self.before, at);
        self.pace.next(at.saturating_sub(before))
    }

    /// Whole lines from a place on; `None` if they have to be read: there is no line end near, or
    /// the file is not what it was.
    ///
    /// The last line end is looked for from the back. Where that takes long, because lines are
    /// long, pieces become larger: what is looked through twice becomes a small part of them.
    #[inline(never)]
    pub(super) fn lines_from(&mut self, start: usize, sizes: &Sizes) -> Option<Range<usize>> {
        let text = self.mapped.bytes();
        let mut bytes = self.bytes.clamp(sizes.mapped, sizes.whole.max(sizes.mapped));
        let mut from = start;
        loop {
            let end = text.len().min(start.saturating_add(bytes));
            if from >= end || !self.mapped.load(from..end) {
                return None;
            }
            if let Some(last) = memchr::memrchr(b'\n', &text[from..end]) {
                let line_end = from + last + 1;
                self.bytes = match end - line_end {
                    _ if from > start => 4 * bytes,
                    behind if behind > bytes / 4 => 2 * bytes,
                    behind if behind < bytes / 64 => bytes / 2,
                    _ => bytes,
                };
                return Some(start..line_end);
            }
            if bytes >= sizes.whole {
                return None;
            }
            (from, bytes) = (end, sizes.whole.min(2 * bytes));
        }
    }

    /// Whether the file is what it was up to the end of the piece.
    #[inline(never)]
    pub(super) fn stands(&self) -> bool {
        self.piece.as_ref().is_none_or(|piece| self.mapped.still_has(self.file, piece.end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ways that are taken where a byte takes these times.
    fn ways(read: f64, mapped: f64) -> Vec<Way> {
        let mut pace = Pace::new(Mapping::Auto);
        let ways = (0..3 * TRIALS).map(|_| {
            let way = pace.next(0);
            if pace.pieces != [TRIALS; 2] {
                pace.tell(if way == Way::Read { read } else { mapped });
            }
            way
        });
        ways.collect()
    }

    #[test]
    fn both_ways_are_tried_and_the_quicker_one_goes_on() {
        for (read, mapped, chosen) in [(2.0, 1.0, Way::Mapped), (1.0, 2.0, Way::Read), (1.0, 1.0, Way::Read)]
        {
            let ways = ways(read, mapped);
            let (tried, rest) = ways.split_at(2 * TRIALS as usize);
            assert!(tried.chunks(2).all(|two| two == [Way::Read, Way::Mapped]));
            assert!(!rest.is_empty() && rest.iter().all(|&way| way == chosen));
        }
    }

    #[test]
    fn flags_choose_without_a_trial() {
        for (mapping, way) in [(Mapping::Always, Way::Mapped), (Mapping::Never, Way::Read)] {
            let mut pace = Pace::new(mapping);
            assert!((0..20).all(|_| pace.next(1 << 20) == way));
        }
    }

    /// The pieces of a text up to where it has to be read.
    fn pieces(text: &[u8], sizes: &Sizes) -> Vec<Range<usize>> {
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, text).unwrap();
        let mapped = MappedFile::new(&file, text.len() as u64).unwrap();
        let mut map = Map::new(&file, mapped, Mapping::Always);
        let mut next = 0;
        std::iter::from_fn(|| map.lines_from(next, sizes).inspect(|piece| next = piece.end)).collect()
    }

    #[test]
    fn pieces_are_whole_lines_and_grow_where_lines_are_long() {
        let sizes = Sizes { mapped: 64, whole: 1024, ..Sizes::USUAL };
        let lines = |lengths: &[usize]| -> Vec<u8> {
            lengths.iter().flat_map(|&length| [&b"x".repeat(length - 1)[..], b"\n"].concat()).collect()
        };
        // (the lengths of lines, the bytes at their end that have to be read, the longest piece)
        for (lengths, unread, longest) in [
            (vec![10; 1000], 0, 64),
            (vec![300; 40], 0, 1024),
            (vec![1024; 9], 0, 1024),
            ([vec![300; 40], vec![5; 2000]].concat(), 0, 1024),
            (vec![1025], 1025, 0),
            (vec![10, 2000, 10], 2010, 10),
        ] {
            let text = lines(&lengths);
            let pieces = pieces(&text, &sizes);
            let ends = pieces.iter().map(|piece| piece.end);
            let starts = std::iter::once(0).chain(ends.clone());
            assert!(pieces.iter().map(|piece| piece.start).eq(starts.take(pieces.len())), "{lengths:?}");
            assert!(ends.clone().all(|end| text[end - 1] == b'\n'), "{lengths:?}");
            assert_eq!(text.len() - pieces.last().map_or(0, |piece| piece.end), unread, "{lengths:?}");
            let most = pieces.iter().map(Range::len).max().unwrap_or(0);
            assert!(most <= longest && 2 * most >= longest, "{most} {longest}");
        }
        // Where lines are short again, so are pieces.
        let text = lines(&[vec![300; 40], vec![5; 2000]].concat());
        assert!(pieces(&text, &sizes).last().unwrap().len() <= 128);
    }
}
