//! Threads: `C` is cut into rectangles, and each thread computes one independently of the others.
//!
//! No entry is touched by two threads and no sum is split, so the bits do not depend on the number
//! of threads. The longer side of `C` is cut, at multiples of a full register tile; the calling
//! thread takes the first part.

use super::clip::{self, Clip};
use super::job::Job;
use super::pool;
use crate::kernel::MAX_PANELS;
use crate::{Element, Error};
use std::ops::Range;

/// With fewer multiply-adds a second thread costs more than it gains: to offer a call to a thread
/// that watches for it, and to wait for its end, takes 1 to 2 µs, the time of 2^17 multiply-adds.
pub(super) const WORTH_A_THREAD: usize = 1 << 18;

/// Runs the whole job on up to `threads` threads.
pub(super) fn run<T: Element>(job: &Job<T>, threads: usize) -> Result<(), Error> {
    let work = job.m.saturating_mul(job.n).saturating_mul(job.k);
    let threads = threads.min(work / WORTH_A_THREAD).max(1);
    if threads == 1 {
        // SAFETY: a `Job` is made from borrows that its creator holds during this call.
        return unsafe { job.run(0..job.m, 0..job.n) };
    }
    let by_rows = job.m >= job.n || job.clip != Clip::None;
    let unit = job.panel() * if by_rows { MAX_PANELS } else { 1 };
    let parts = match job.clip {
        Clip::None => cut(if by_rows { job.m } else { job.n }, threads, unit),
        clip => clip::cut(clip, job.m, threads, job.panel()),
    };
    let part = |range: Range<usize>| match by_rows {
        true => (range, 0..job.n),
        false => (0..job.m, range),
    };
    pool::try_run(threads, parts.len(), &|index| {
        let (rows, cols) = part(parts[index].clone());
        // SAFETY: a `Job` is made from borrows that its creator holds during this call; the parts
        // are disjoint.
        unsafe { job.run(rows, cols) }
    })
}

/// `len` cut into at most `parts` ranges of nearly equal size, at multiples of `unit`.
pub(crate) fn cut(len: usize, parts: usize, unit: usize) -> Vec<Range<usize>> {
    let units = len.div_ceil(unit);
    let parts = parts.min(units).max(1);
    let edge = |part: usize| (units * part / parts * unit).min(len);
    (0..parts).map(|part| edge(part)..edge(part + 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn parts_cover_everything_once() {
        for len in [1, 7, 24, 25, 100, 513] {
            for parts in 1..9 {
                let cuts = cut(len, parts, 8);
                assert_eq!((cuts[0].start, cuts[cuts.len() - 1].end), (0, len));
                assert!(cuts.windows(2).all(|w| w[0].end == w[1].start && w[0].end % 8 == 0));
                assert!(cuts.iter().all(|range| !range.is_empty()));
            }
        }
    }
}
