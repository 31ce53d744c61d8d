//! The places of misses, for consumers that must know which memory a reference missed.
//!
//! **The problem.** Misses are found level by level, and a level knows neither which record made a
//! touch nor what the levels before it found. **The idea.** A reference that misses an outer level
//! has missed the first one. So the misses of a sweep's first level are listed, and each outer
//! level marks those of them that it misses too:
//!
//! ```text
//!   first level misses   references 3 5 5 9        list     3 5 9
//!   second level misses  references 5 9            marks      2 2
//!   third level misses   references 9              marks        3
//! ```
//!
//! TLBs have a list of their own, because a page is missed by references that hit the caches. Both
//! lists are in the order of the records. Levels that are walked touch by touch list each reference
//! with all levels that it missed.

use crate::touch::Touches;
use event::RecordKind;

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

/// A reference that missed at least one level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocatedMiss {
    /// An address in the first of its lines, or pages, that missed: the reference's own where that
    /// is its first one, else where the line or page begins.
    pub address: u64,
    /// Index of its record in the batch; of a group of records, that of its first one.
    pub record: u32,
    what: u32,
    levels: u8,
}

impl LocatedMiss {
    /// The number of its site; of an instruction line, that of its block.
    pub fn site(&self) -> usize {
        (self.what >> 8) as usize
    }

    /// Whether it is a load, a store or an instruction line. Of a TLB, stores are loads.
    #[inline]
    pub fn side(&self) -> MissSide {
        side(self.what)
    }

    /// The levels that it missed, each as a bit.
    #[inline]
    pub fn levels(&self) -> u8 {
        self.levels
    }

    /// Whether it missed this level, counted from 0.
    pub fn missed(&self, level: usize) -> bool {
        self.levels >> level & 1 == 1
    }
}

/// Whether a touch is a load, a store or an instruction line.
#[inline]
pub(crate) fn side(what: u32) -> MissSide {
    match what >> 4 & 15 {
        kind if kind == RecordKind::Store as u32 => MissSide::Store,
        kind if kind == RecordKind::Fetch as u32 => MissSide::Fetch,
        _ => MissSide::Load,
    }
}

/// The references of a batch that missed caches, and those that missed TLBs.
#[derive(Debug, Default)]
pub struct LocatedMisses {
    caches: Located,
    pages: Located,
}

/// Misses of caches, or of TLBs.
#[derive(Debug, Default)]
struct Located {
    misses: Vec<LocatedMiss>,
    /// The references of the misses of the last sweep, and of the one before them.
    references: Vec<u32>,
    /// Where the misses of the last sweep begin.
    sweep: usize,
}

impl LocatedMisses {
    /// References that missed a cache, in the order of their records.
    pub fn caches(&self) -> &[LocatedMiss] {
        &self.caches.misses
    }

    /// References that missed a TLB, in the order of their records.
    pub fn pages(&self) -> &[LocatedMiss] {
        &self.pages.misses
    }

    /// Forgets all misses.
    pub(crate) fn clear(&mut self) {
        for list in [&mut self.caches, &mut self.pages] {
            list.misses.clear();
            list.references.clear();
            list.sweep = 0;
        }
    }

    /// Lists a reference of a record: the caches and the TLBs that it missed, with the first
    /// address that missed the first of them.
    pub(crate) fn add(
        &mut self,
        record: u32,
        (kind, site): (RecordKind, u32),
        caches: (Option<u64>, &[bool]),
        pages: (Option<u64>, &[bool]),
    ) {
        let what = site << 8 | (kind as u32) << 4;
        for (list, (address, missed)) in [(&mut self.caches, caches), (&mut self.pages, pages)] {
            let levels = missed.iter().rev().fold(0, |levels, &missed| levels << 1 | u8::from(missed));
            if let Some(address) = address.filter(|_| levels != 0) {
                list.misses.push(LocatedMiss { address, record, what, levels });
            }
        }
    }

    /// Notes the misses of a cache, of which reference `counted` was counted before.
    pub(crate) fn note(
        &mut self,
        level: usize,
        counted: u32,
        misses: &Touches,
        record: impl FnMut(u32) -> u32,
    ) {
        self.caches.note(level, counted, misses, record);
    }

    /// Notes the misses of a TLB, of which reference `counted` was counted before.
    pub(crate) fn note_pages(
        &mut self,
        level: usize,
        counted: u32,
        misses: &Touches,
        record: impl FnMut(u32) -> u32,
    ) {
        self.pages.note(level, counted, misses, record);
    }
}

impl Located {
    fn note(&mut self, level: usize, counted: u32, touches: &Touches, mut record: impl FnMut(u32) -> u32) {
        if level == 0 {
            self.sweep = self.misses.len();
            self.references.clear();
            return self.note_first(counted, touches, record);
        }
        let (mut last, mut next) = (counted, 0);
        for index in 0..touches.len {
            let reference = touches.reference[index];
            if std::mem::replace(&mut last, reference) == reference {
                continue;
            }
            while self.references.get(next).is_some_and(|&known| known < reference) {
                next += 1;
            }
            if self.references.get(next) == Some(&reference) {
                self.misses[self.sweep + next].levels |= 1 << level;
                continue;
            }
            // Of a reference whose touches two sweeps divide, a later level may miss in the second
            // one alone: it is listed a second time, for that level.
            let (address, what) = (touches.address[index], touches.what[index]);
            let miss = LocatedMiss { address, what, record: record(reference), levels: 1 << level };
            self.misses.insert(self.sweep + next, miss);
            self.references.insert(next, reference);
            next += 1;
        }
    }

    /// Notes the misses of the first level, which stand behind all others.
    fn note_first(&mut self, counted: u32, touches: &Touches, mut record: impl FnMut(u32) -> u32) {
        self.misses.reserve(touches.len);
        self.references.reserve(touches.len);
        let mut last = counted;
        for index in 0..touches.len {
            let reference = touches.reference[index];
            if std::mem::replace(&mut last, reference) != reference {
                let (address, what) = (touches.address[index], touches.what[index]);
                self.misses.push(LocatedMiss { address, what, record: record(reference), levels: 1 });
                self.references.push(reference);
            }
        }
    }
}
