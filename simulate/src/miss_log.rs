//! Notes which record of a batch missed where, for consumers that divide misses by the order of
//! records.
//!
//! **The problem.** Misses are found sweep by sweep, where only numbers of references are known.
//! **The idea.** Each stretch of records that is staged notes the number of its first reference:
//!
//! ```text
//!   records     10 11 12   13 (a group)    14 15        staged at once, apart, at once
//!   references   1  2  3    4  5  6  7      8  9
//!   starts      (1, 10)    (4, 13)         (8, 14)
//! ```
//!
//! A miss of reference 6 is one of record 13. **Leaves out** TLBs.

use crate::touch::Touches;
use event::RecordKind;

/// A miss of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordMiss {
    /// Index of the record in its batch.
    pub record: u32,
    /// The level of caches, from 0.
    pub level: u8,
    /// What missed.
    pub side: MissSide,
}

/// The kind of a reference that missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MissSide {
    /// An instruction line.
    Fetch,
    /// Data that was read.
    Load,
    /// Data that was written.
    Store,
}

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

/// The misses of one batch.
#[derive(Default)]
pub(crate) struct MissLog {
    /// Whether misses are noted.
    pub(crate) is_on: bool,
    starts: Vec<Start>,
    /// The misses of references since numbers began anew.
    open: Vec<(u32, u8, MissSide)>,
    pub(crate) misses: Vec<RecordMiss>,
}

impl MissLog {
    /// Record `record` of the batch is staged next, as reference `reference`.
    pub(crate) fn starts(&mut self, reference: u32, record: usize, stretch: Stretch) {
        if self.is_on {
            self.starts.push(Start { reference, record: record as u32, stretch });
        }
    }

    /// Notes the misses of a level, of which reference `counted` was counted before.
    pub(crate) fn note(&mut self, level: usize, counted: u32, misses: &Touches) {
        if !self.is_on {
            return;
        }
        let mut last = counted;
        for index in 0..misses.len {
            let reference = misses.reference[index];
            if std::mem::replace(&mut last, reference) == reference {
                continue;
            }
            let kind = misses.what[index] >> 4 & 15;
            let side = match kind {
                _ if kind == RecordKind::Store as u32 => MissSide::Store,
                _ if kind == RecordKind::Fetch as u32 => MissSide::Fetch,
                _ => MissSide::Load,
            };
            self.open.push((reference, level as u8, side));
        }
    }

    /// Numbers of references begin anew at `first`.
    pub(crate) fn renumber(&mut self, first: u32) {
        if !self.is_on {
            return;
        }
        for (reference, level, side) in self.open.drain(..) {
            let behind = self.starts.partition_point(|start| start.reference <= reference);
            let Some(start) = behind.checked_sub(1).map(|index| &self.starts[index]) else { continue };
            let more = if start.stretch == Stretch::Each { reference - start.reference } else { 0 };
            self.misses.push(RecordMiss { record: start.record + more, level, side });
        }
        // A record whose references go on keeps its place.
        let last = self.starts.pop();
        self.starts.clear();
        self.starts.extend(last.map(|start| Start { reference: first, ..start }));
    }

    /// Ends the batch; its misses are in the order of its records.
    pub(crate) fn end(&mut self) {
        self.is_on = false;
        self.starts.clear();
        self.open.clear();
        self.misses.sort_unstable();
    }
}
