//! Counts records by kind while they are screened.
//!
//! **Problem.** A report tells how many records of each kind the observer's side received. A pass
//! of its own over all records took as long as their screen, and additions to one table wait for
//! each other.
//!
//! **Idea.** The screen has each record's kind in a register anyway. A lane of a vector has one
//! byte for each kind: a look-up by the kind gives the word in which that kind's byte is 1, and one
//! addition counts it.
//!
//! ```text
//! kind of a lane ─▶ Load 00000001, Store 00000100, Modify 00010000, …  ─▶ added to the lane's sums
//! ```
//!
//! **Invariant.** No lane counts more than [`COUNT_MAX`] records before its bytes are added to the
//! totals.

use event::Record;

/// Kinds that a code can name, and lanes of a vector.
pub(super) const KINDS: usize = 16;

/// Kinds whose bytes share a word.
const KINDS_OF_WORD: usize = size_of::<u32>();

/// Words of a lane: enough for every code.
const WORDS: usize = KINDS / KINDS_OF_WORD;

/// The most records that a lane counts between two flushes.
const COUNT_MAX: usize = u8::MAX as usize;

/// The sums of sixteen lanes, word by word: byte `k % 4` of `[k / 4][lane]` counts kind `k`.
pub(super) type Sums = [[u32; KINDS]; WORDS];

/// For each word, by kind, what one record adds to it.
pub(super) const ADDENDS: Sums = addends();

const fn addends() -> Sums {
    let mut addends = [[0; KINDS]; WORDS];
    let mut kind = 0;
    while kind < KINDS {
        addends[kind / KINDS_OF_WORD][kind] = 1 << (8 * (kind % KINDS_OF_WORD));
        kind += 1;
    }
    addends
}

/// Records so far, by the upper four bits of their codes.
#[derive(Clone, Default)]
pub(super) struct KindCounts {
    totals: [u64; KINDS],
    sums: Sums,
    /// The most that a lane has counted since the last flush.
    pending: usize,
}

impl KindCounts {
    /// Counts records one by one, each in a lane of its own; they must not be more than lanes.
    pub(super) fn add(&mut self, step: &[Record]) {
        debug_assert!(step.len() <= KINDS);
        if self.pending == COUNT_MAX {
            self.flush();
        }
        self.pending += 1;
        for (lane, record) in step.iter().enumerate().take(KINDS) {
            let kind = usize::from(record.what as u8 >> 4);
            self.sums[kind / KINDS_OF_WORD][lane] += ADDENDS[kind / KINDS_OF_WORD][kind];
        }
    }

    /// Lets `count` add to the sums: at most one record to each lane in each of `steps` steps.
    pub(super) fn add_steps<R>(&mut self, steps: usize, count: impl FnOnce(&mut Sums) -> R) -> R {
        assert!(steps <= COUNT_MAX);
        if self.pending > COUNT_MAX - steps {
            self.flush();
        }
        self.pending += steps;
        count(&mut self.sums)
    }

    /// Adds what the lanes have counted to the totals.
    pub(super) fn flush(&mut self) {
        self.pending = 0;
        for (word, totals) in self.sums.iter_mut().zip(self.totals.as_chunks_mut::<KINDS_OF_WORD>().0) {
            // Sixteen bytes of at most 255 fit in 16 bits, so two kinds are added at once.
            const EVEN: u32 = 0x00ff_00ff;
            let even: u32 = word.iter().map(|sums| sums & EVEN).sum();
            let odd: u32 = word.iter().map(|sums| sums >> 8 & EVEN).sum();
            for (total, count) in totals.iter_mut().zip([even, odd, even >> 16, odd >> 16]) {
                *total += u64::from(count & 0xffff);
            }
            *word = [0; KINDS];
        }
    }

    /// The counts as of the last flush, by the upper four bits of the code.
    pub(super) fn totals(&self) -> &[u64; KINDS] {
        &self.totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_counted_however_many_there_are() {
        let mut counts = KindCounts::default();
        let step: Vec<Record> = (0..KINDS as u32)
            .map(|kind| Record { what: 0x700 | kind << 4 | 3, ..Record::default() })
            .collect();
        for round in 0..1000 {
            counts.add(&step[round % KINDS..]);
            counts.add(&vec![step[9]; KINDS]);
        }
        counts.flush();
        let expected = |kind: usize| {
            let in_steps = (0..1000).filter(|round| round % KINDS <= kind).count();
            (in_steps + if kind == 9 { 1000 * KINDS } else { 0 }) as u64
        };
        assert_eq!(*counts.totals(), std::array::from_fn(expected));
    }
}
