//! Divides the misses of a batch by the order of its records, for consumers that must know what
//! missed between two of them.
//!
//! **The problem.** Misses are found sweep by sweep, where only numbers of references are known.
//! **The idea.** The consumer says to which interval each record belongs, and each stretch of
//! records that is staged notes the number of its first reference:
//!
//! ```text
//!   records     10 11 12   13 (a group)    14 15        staged at once, apart, at once
//!   references   1  2  3    4  5  6  7      8  9
//!   starts      (1, 10)    (4, 13)         (8, 14)
//!   intervals    0  0  1    1               1  2
//! ```
//!
//! A miss of reference 6 is one of record 13, and counts in interval 1. A count for each interval
//! is cheaper than a list of misses, which would have to be sorted. **Leaves out** TLBs.
//!
//! These numbers also tell the records of located misses (`located`).

use crate::located::{side, LocatedMisses};
use crate::touch::Touches;
use crate::CACHES_MAX;

/// Misses by level of caches and by [`MissSide`](crate::MissSide).
pub type IntervalMisses = [[u32; 3]; CACHES_MAX];

/// A batch of records that is divided into intervals, with the misses of each interval.
#[derive(Debug)]
pub struct MissIntervals {
    /// How many records the batch has before each interval.
    firsts: Vec<u32>,
    misses: Vec<IntervalMisses>,
}

impl Default for MissIntervals {
    fn default() -> MissIntervals {
        MissIntervals { firsts: vec![0], misses: vec![IntervalMisses::default()] }
    }
}

impl MissIntervals {
    /// Forgets all records; one interval is left.
    pub fn clear(&mut self) {
        self.firsts.truncate(1);
        self.misses.clear();
        self.misses.push(IntervalMisses::default());
    }

    /// Begins further intervals, before which the batch has `firsts` records. They have an order.
    pub fn divide(&mut self, firsts: impl Iterator<Item = u32>) {
        self.firsts.extend(firsts);
        debug_assert!(self.firsts.is_sorted(), "intervals follow each other");
        self.misses.resize(self.firsts.len(), IntervalMisses::default());
    }

    /// The misses of each interval.
    pub fn misses(&self) -> &[IntervalMisses] {
        &self.misses
    }

    /// The interval of a record.
    fn of_record(&self, record: u32) -> usize {
        self.firsts.partition_point(|first| *first <= record).saturating_sub(1)
    }

    /// The interval of a record that does not lie before interval `from`. Most misses lie near the
    /// one before.
    #[inline]
    fn of_record_from(&self, from: usize, record: u32) -> usize {
        let behind = self.firsts[from + 1..].iter();
        from + behind.take_while(|first| **first <= record).count()
    }

    /// Adds misses of a level, by side in [`SIDE_BITS`] each.
    fn add(&mut self, interval: usize, level: usize, sides: u64) {
        let sums = &mut self.misses[interval][level];
        for (sum, side) in sums.iter_mut().zip(0..) {
            *sum += (sides >> (SIDE_BITS * side)) as u32 & SIDE_MASK;
        }
    }
}

/// Bits of a count of misses by side, of which a word has three: a sweep has fewer touches.
const SIDE_BITS: u32 = 16;
const SIDE_MASK: u32 = (1 << SIDE_BITS) - 1;

/// How the records of a stretch got the numbers of their references.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stretch {
    /// Each record is one reference.
    Each,
    /// One record is all references.
    One,
}

struct Start {
    reference: u32,
    record: u32,
    stretch: Stretch,
}

/// What is noted of misses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Noted {
    #[default]
    Nothing,
    /// How many there are in each interval.
    Intervals,
    /// Each of them, with its address.
    Places,
}

/// Notes the misses of one batch.
#[derive(Default)]
pub(crate) struct MissLog {
    pub(crate) noted: Noted,
    starts: Vec<Start>,
    pub(crate) intervals: MissIntervals,
    pub(crate) located: LocatedMisses,
}

impl MissLog {
    /// Record `record` of the batch is staged next, as reference `reference`.
    pub(crate) fn starts(&mut self, reference: u32, record: usize, stretch: Stretch) {
        if self.noted != Noted::Nothing {
            self.starts.push(Start { reference, record: record as u32, stretch });
        }
    }

    /// Counts the misses of a level, of which reference `counted` was counted before.
    pub(crate) fn note(&mut self, level: usize, counted: u32, misses: &Touches) {
        match self.noted {
            Noted::Nothing => {}
            Noted::Intervals => self.note_intervals(level, counted, misses),
            Noted::Places => {
                let (starts, mut near) = (&self.starts, 0);
                self.located
                    .note(level, counted, misses, |reference| record_near(starts, &mut near, reference));
            }
        }
    }

    /// Notes the misses of a TLB, of which reference `counted` was counted before.
    pub(crate) fn note_pages(&mut self, level: usize, counted: u32, misses: &Touches) {
        if self.noted == Noted::Places {
            let (starts, mut near) = (&self.starts, 0);
            let record = |reference| record_near(starts, &mut near, reference);
            self.located.note_pages(level, counted, misses, record);
        }
    }

    fn note_intervals(&mut self, level: usize, counted: u32, misses: &Touches) {
        let MissLog { starts, intervals, .. } = self;
        let references = &misses.reference[..misses.len];
        let (mut last, mut interval, mut sides) = (counted, 0, 0u64);
        let one_interval = intervals.misses.len() == 1;
        // Loops without calls fill whole batches, and runs of misses have one interval: counts stay
        // in a register until it ends.
        for (&reference, &what) in references.iter().zip(&misses.what) {
            if std::mem::replace(&mut last, reference) == reference {
                continue;
            }
            if !one_interval {
                let record = record_of(starts, reference);
                let now = match intervals.firsts[interval] <= record {
                    true => intervals.of_record_from(interval, record),
                    false => intervals.of_record(record),
                };
                if now != interval {
                    intervals.add(interval, level, std::mem::take(&mut sides));
                    interval = now;
                }
            }
            sides += 1 << (SIDE_BITS * side(what) as u32);
        }
        intervals.add(interval, level, sides);
    }

    /// Numbers of references begin anew at `first`.
    pub(crate) fn renumber(&mut self, first: u32) {
        if self.noted == Noted::Nothing {
            return;
        }
        // A record whose references go on keeps its place.
        let last = self.starts.pop();
        self.starts.clear();
        self.starts.extend(last.map(|start| Start { reference: first, ..start }));
    }

    /// Ends the batch.
    pub(crate) fn end(&mut self) {
        self.noted = Noted::Nothing;
        self.starts.clear();
    }
}

/// The record of a reference, as [`record_of`] tells it. `near` is a start that may be that of the
/// reference's stretch, or of the one before, as with misses in the order of records; it moves on.
#[inline(always)]
fn record_near(starts: &[Start], near: &mut usize, reference: u32) -> u32 {
    let begins = |index: usize| starts.get(index).is_some_and(|start| start.reference <= reference);
    *near += usize::from(begins(*near + 1));
    if !begins(*near) || begins(*near + 1) {
        *near = starts.partition_point(|start| start.reference <= reference).saturating_sub(1);
    }
    starts
        .get(*near)
        .filter(|start| start.reference <= reference)
        .map_or(0, |start| record_in(start, reference))
}

/// The record of a reference.
fn record_of(starts: &[Start], reference: u32) -> u32 {
    let behind = starts.partition_point(|start| start.reference <= reference);
    behind.checked_sub(1).map_or(0, |index| record_in(&starts[index], reference))
}

/// The record of a reference of a stretch.
fn record_in(start: &Start, reference: u32) -> u32 {
    match start.stretch {
        Stretch::Each => start.record + (reference - start.reference),
        Stretch::One => start.record,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_near_the_last_one_are_those_that_a_search_finds() {
        for seed in 0..200u32 {
            let (mut starts, mut reference, mut record) = (Vec::new(), 1, 0);
            for number in 0..seed % 7 * 3 {
                let stretch = if (number ^ seed).is_multiple_of(3) { Stretch::One } else { Stretch::Each };
                starts.push(Start { reference, record, stretch });
                // Some stretches have no reference.
                reference += (number * seed + number) % 4;
                record += 1 + (number * seed) % 3;
            }
            for step in 1..5 {
                let mut near = 0;
                // Also backwards once, as where numbers begin anew.
                for asked in (0..reference + 3).step_by(step).chain([1, reference, 0]) {
                    let found = record_near(&starts, &mut near, asked);
                    assert_eq!(found, record_of(&starts, asked), "{seed} {step} {asked}");
                }
            }
        }
    }
}
