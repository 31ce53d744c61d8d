//! Counts in a large file by several threads.
//!
//! A thread takes a *stretch* of the file, and counts the lines that begin in it. Four things make
//! two threads take half of the time of one, where a search is as fast as memory:
//!
//! - A stretch is as large as what one page table maps, and begins where one begins: threads that
//!   load pages of one table wait for each other at each page. Within a stretch, a thread goes
//!   from piece to piece, so that its text stays in a cache.
//! - The calling thread alone tries whether reading or mapping is quicker; others map until it is
//!   known. So there is one trial, and one answer.
//! - Whether the file was cut is asked once a stretch, whose count is thrown away if so.
//! - Each thread gives its part of the pages back when nothing is left to take: the process would
//!   do that alone at its end.
//!
//! Lines of a megabyte lie in larger stretches, which are cut where lines begin. The line end
//! behind a stretch is looked for once, for the two threads that want to know it. A file whose
//! first line is too long for that is left to one thread.

use super::large::{Large, Lines};
use super::mapped::{Pace, Way};
use super::print::ThreadScratch;
use super::searcher::Direct;
use super::spread::Spread;
use super::turn::lock;
use crate::arguments::Mapping;
use mapped_file::MappedFile;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

/// The stretches of a file, in the order in which they are taken.
#[derive(Debug)]
pub(super) struct Stretches {
    /// Where the next one begins.
    next: AtomicUsize,
    /// Bytes of each one but the last ones.
    bytes: usize,
    /// Bytes of the last ones, so that threads end together.
    last_bytes: usize,
    /// Where those begin.
    last: usize,
    end: usize,
}

impl Stretches {
    fn new(end: usize, bytes: usize, last_bytes: usize, threads: usize) -> Stretches {
        let last = end.saturating_sub(threads.saturating_mul(bytes)) / bytes * bytes;
        Stretches { next: AtomicUsize::new(0), bytes, last_bytes, last, end }
    }

    /// The next stretch; `None` at the end.
    fn take(&self) -> Option<Range<usize>> {
        let bytes = |start| if start < self.last { self.bytes } else { self.last_bytes };
        let behind = |start: usize| start.saturating_add(bytes(start)).min(self.end);
        let next = |start| (start < self.end).then(|| behind(start));
        let taken = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        taken.ok().map(|start| start..behind(start))
    }
}

/// How the threads of a count get their text.
struct Shared<'f> {
    large: &'f Large<'f>,
    mapped: Option<&'f MappedFile>,
    mapping: Mapping,
    stretches: Stretches,
    /// The way that was found to be quicker.
    chosen: OnceLock<Way>,
    /// The number of threads, and of those that found nothing left to take.
    threads: usize,
    ended: AtomicUsize,
    /// Where lines begin, by the places from which they were looked for; `None` where lines are
    /// short, and all threads look for themselves.
    starts: Option<Mutex<Vec<(usize, usize)>>>,
}

/// What a thread keeps from piece to piece.
struct Thread {
    scratch: ThreadScratch,
    buffer: Vec<u8>,
    /// The trial of the calling thread, and the bytes of its last piece.
    trial: Option<Pace>,
    bytes: usize,
}

impl Direct {
    pub(super) fn count_shared(
        &self,
        large: &Large<'_>,
        mapped: Option<&MappedFile>,
        threads: usize,
        long_line: Option<usize>,
    ) -> io::Result<u64> {
        let end = usize::try_from(large.bytes).unwrap_or(usize::MAX);
        let stretches = match long_line {
            // What is looked through twice, half of a line, is a small part of a stretch.
            Some(line) => {
                let bytes = (end / (8 * threads)).max(2 * line);
                Stretches::new(end, bytes, bytes, threads)
            }
            None => Stretches::new(end, self.sizes.stretch, self.sizes.piece, threads),
        };
        let shared = &Shared {
            large,
            mapped,
            mapping: self.mapping,
            stretches,
            chosen: OnceLock::new(),
            threads,
            ended: AtomicUsize::new(0),
            starts: long_line.map(|_| Mutex::default()),
        };
        let spread = Spread::default();
        spread.take_processor();
        let other = || {
            spread.take_processor();
            self.count_stretches(shared, None)
        };
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(other)).collect();
            let own = self.count_stretches(shared, Some(Pace::new(self.mapping)));
            let sums = others.into_iter().filter_map(|other| other.join().ok());
            sums.chain([own]).sum()
        })
    }

    /// Counts in stretches until none is left.
    fn count_stretches(&self, shared: &Shared<'_>, trial: Option<Pace>) -> io::Result<u64> {
        let mut thread = Thread { scratch: ThreadScratch::default(), buffer: Vec::new(), trial, bytes: 0 };
        let mut sum = 0;
        while let Some(stretch) = shared.stretches.take() {
            let (mut count, end) = self.count_stretch(shared, &stretch, None, &mut thread)?;
            let is_gone = |mapped: &MappedFile| !mapped.still_has(shared.large.file, end);
            if end > 0 && shared.mapped.is_some_and(is_gone) {
                (count, _) = self.count_stretch(shared, &stretch, Some(Way::Read), &mut thread)?;
            }
            sum += count;
        }
        let part = shared.ended.fetch_add(1, Ordering::Relaxed);
        if let Some(mapped) = shared.mapped {
            mapped.give_back(part, shared.threads);
        }
        Ok(sum)
    }

    /// The count of a stretch, and where the last line ends that was mapped.
    fn count_stretch(
        &self,
        shared: &Shared<'_>,
        stretch: &Range<usize>,
        way: Option<Way>,
        thread: &mut Thread,
    ) -> io::Result<(u64, usize)> {
        let (mut sum, mut end) = (0, 0);
        let bytes = if shared.starts.is_some() { stretch.len() } else { self.sizes.piece };
        for start in stretch.clone().step_by(bytes) {
            let piece = start..stretch.end.min(start + bytes);
            let way = way.unwrap_or_else(|| shared.way_of(&piece, thread));
            let lines = shared.lines(way, &piece, &mut thread.buffer)?;
            sum += self.count_piece(lines.only(&thread.buffer, shared.mapped), &mut thread.scratch);
            end = end.max(lines.mapped_end());
        }
        Ok((sum, end))
    }
}

impl Shared<'_> {
    /// How the next piece comes into memory.
    fn way_of(&self, piece: &Range<usize>, thread: &mut Thread) -> Way {
        match (&mut thread.trial, self.chosen.get()) {
            (_, Some(&way)) => way,
            _ if self.starts.is_some() => Way::Mapped,
            (Some(trial), None) => {
                let way = trial.next(std::mem::replace(&mut thread.bytes, piece.len()));
                if trial.is_decided() {
                    let _ = self.chosen.set(way);
                }
                way
            }
            (None, None) => {
                if self.mapping == Mapping::Never {
                    Way::Read
                } else {
                    Way::Mapped
                }
            }
        }
    }

    /// The lines that begin in a piece.
    fn lines(&self, way: Way, piece: &Range<usize>, buffer: &mut Vec<u8>) -> io::Result<Lines> {
        match (&self.starts, self.mapped) {
            (Some(starts), Some(mapped)) if way == Way::Mapped => {
                let start = |from| long_line_start(&mut lock(starts), mapped.bytes(), from);
                let place = start(piece.start)..start(piece.end);
                // Pages that are gone fault, and the stretch is read.
                mapped.load(place.clone());
                Ok(Lines::mapped(place))
            }
            (_, mapped) => self.large.lines_by(way, piece, mapped, buffer),
        }
    }
}

/// Where the first line begins that begins at a place or behind it, which is noted.
fn long_line_start(starts: &mut Vec<(usize, usize)>, text: &[u8], from: usize) -> usize {
    if let Some(&(_, start)) = starts.iter().find(|known| known.0 == from) {
        return start;
    }
    let start = match from {
        0 => 0,
        _ => memchr::memchr(b'\n', &text[from - 1..]).map_or(text.len(), |at| from + at),
    };
    starts.push((from, start));
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_cover_a_file_and_are_short_at_its_end() {
        for (end, bytes, last_bytes, threads) in
            [(0, 4, 1, 2), (1, 4, 1, 2), (100, 8, 3, 2), (64, 8, 8, 1), (7, 100, 2, 3), (1000, 10, 3, 99)]
        {
            let stretches = Stretches::new(end, bytes, last_bytes, threads);
            let mut at = 0;
            while let Some(stretch) = stretches.take() {
                assert_eq!(stretch.start, at);
                assert!(!stretch.is_empty());
                let is_last = end - at < (threads + 1) * bytes;
                assert!(stretch.len() == bytes && at % bytes == 0 || is_last && stretch.len() <= last_bytes);
                assert!(stretch.len() <= last_bytes || end - at > threads * bytes);
                at = stretch.end;
            }
            assert_eq!(at, end);
            assert_eq!(stretches.take(), None);
        }
    }

    #[test]
    fn each_line_begins_once() {
        let text = b"one\ntwo\n\nfour";
        let mut starts = Vec::new();
        let found: Vec<usize> =
            (0..=text.len()).map(|from| long_line_start(&mut starts, text, from)).collect();
        assert_eq!(found, [0, 4, 4, 4, 4, 8, 8, 8, 8, 9, 13, 13, 13, 13]);
        assert_eq!(starts.len(), found.len());
    }
}
