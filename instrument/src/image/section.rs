//! What each thread of an image counts between marks.
//!
//! **The problem.** Counters in a thread's context only grow, and several threads of an image open
//! and close what they count at any time. **The idea.** A thread that begins to count notes its
//! counters; when it stops, the differences are added to its sums. A cut turns the sums into a
//! part:
//!
//! ```text
//!   counter   0 ──── 5 ═════ 9 ──── 12 ═════ 20 ──▶        open between the double lines
//!   sums                     4                12           at the cut: a part
//! ```
//!
//! Executions that no counter has counted, because the host ended the traversal, are noted beside.
//! **Cost.** A pass over the thread's counters at each opening, closing and cut. **Leaves out**
//! what is recorded: the observer is told of the same deeds in the order of the records.

use super::Image;
use crate::code::counter::count_address;
use crate::mark::PartCounts;
use std::collections::{BTreeMap, HashMap};

/// The sections of an image's threads, by the threads' numbers.
#[derive(Default)]
pub(super) struct Sections {
    threads: BTreeMap<u32, Section>,
    /// The counters of a thread that stops counting; the allocation is reused.
    now: Vec<u64>,
    cuts: u32,
    parts: Vec<CountedPart>,
}

/// The section of one thread.
#[derive(Default)]
struct Section {
    /// The thread's context; `None` after its end.
    context: Option<usize>,
    /// Whether the thread counts.
    open: bool,
    /// The counters at the opening.
    from: Vec<u64>,
    sums: SectionCounts,
}

/// What was counted in a section.
#[derive(Clone, Default)]
struct SectionCounts {
    /// By number of the counter.
    counters: Vec<u64>,
    /// Executions of each block that no counter has counted, less those that count elsewhere.
    extra: HashMap<u32, i64>,
    /// Executions of blocks that a request has behind it, which closed the section.
    aside: HashMap<u32, u64>,
    /// Executions that ended within a block.
    left_early: HashMap<(u32, u32), u64>,
}

struct CountedPart {
    thread: u32,
    cut: u32,
    counts: SectionCounts,
}

impl SectionCounts {
    /// Adds what counters have counted since they were `from`. Sums wrap, so that the loop is one
    /// of vectors: it passes over all counters at each mark. Counters only grow, and a program that
    /// forged one has no true sum.
    fn add(&mut self, from: &[u64], now: &[u64]) {
        self.counters.resize(self.counters.len().max(now.len()), 0);
        let (old, young) = now.split_at(from.len().min(now.len()));
        let (old_sums, young_sums) = self.counters.split_at_mut(old.len());
        for ((sum, now), before) in old_sums.iter_mut().zip(old).zip(from) {
            *sum = sum.wrapping_add(now.wrapping_sub(*before));
        }
        // A counter that is younger than the opening began at 0.
        for (sum, now) in young_sums.iter_mut().zip(young) {
            *sum = sum.wrapping_add(*now);
        }
    }
}

impl Sections {
    pub(super) fn clear(&mut self) {
        *self = Sections::default();
    }

    /// The counts of the thread in `context`, while it counts.
    fn open_in(&mut self, context: usize) -> Option<&mut SectionCounts> {
        let mut sections = self.threads.values_mut();
        let own = sections.find(|section| section.context == Some(context))?;
        own.open.then_some(&mut own.sums)
    }

    /// Notes an execution of a block that no counter counts.
    pub(super) fn ran(&mut self, context: usize, block: u32) {
        if let Some(sums) = self.open_in(context) {
            *sums.extra.entry(block).or_default() += 1;
        }
    }

    /// Notes that an execution of a block ended before instruction `index`.
    pub(super) fn left_early(&mut self, context: usize, block: u32, index: u32) {
        if let Some(sums) = self.open_in(context) {
            *sums.left_early.entry((block, index)).or_default() += 1;
        }
    }
}

impl Image {
    /// Takes one execution of a block away from what the thread counts; returns whether it counts.
    pub(crate) fn section_lacks(&mut self, context: usize, block: u32) -> bool {
        let Some(sums) = self.sections.open_in(context) else { return false };
        *sums.extra.entry(block).or_default() -= 1;
        true
    }

    /// Adds the execution of a block that was taken away, or notes it beside if the thread no
    /// longer counts.
    pub(crate) fn section_regains(&mut self, thread: u32, block: u32) {
        let Some(section) = self.sections.threads.get_mut(&thread) else { return };
        match section.open {
            true => *section.sums.extra.entry(block).or_default() += 1,
            false => *section.sums.aside.entry(block).or_default() += 1,
        }
    }

    /// The block behind which exit `exit` leaves, and the address behind that block.
    pub(crate) fn block_of_exit(&self, exit: u32) -> Option<(u32, u64)> {
        let cache = &self.translator.cache;
        let exit = cache.exits.get(exit as usize).filter(|exit| !exit.stale)?;
        let zone = cache.zones.get(exit.zone as usize)?;
        let (entry, _) = cache.state_at(zone.address + u64::from(exit.patch))?;
        let block = &self.translator.blocks[entry.block as usize];
        Some((entry.block, block.ip + u64::from(block.len)))
    }

    /// Copies the counters of the thread in `context`.
    fn copy_counters(&self, context: usize, into: &mut Vec<u64>) {
        into.resize(self.translator.counters as usize, 0);
        self.shared.copy_words(self.context(context) + count_address(0) as usize, into);
    }

    /// A thread begins in `context`; it does not count yet.
    pub(crate) fn section_starts(&mut self, thread: u32, context: usize) {
        let section = Section { context: Some(context), ..Section::default() };
        self.sections.threads.insert(thread, section);
    }

    /// The thread counts from here on.
    pub(crate) fn section_opens(&mut self, thread: u32) {
        // The section is taken out while counters are read; its memory is used again and again.
        let Some(mut section) = self.sections.threads.remove(&thread) else { return };
        if let Some(context) = section.context.filter(|_| !section.open) {
            section.open = true;
            self.copy_counters(context, &mut section.from);
        }
        self.sections.threads.insert(thread, section);
    }

    /// The thread counts no longer.
    pub(crate) fn section_closes(&mut self, thread: u32) {
        self.section_pauses(thread);
    }

    /// The thread has ended.
    pub(crate) fn section_ends(&mut self, thread: u32) {
        self.section_pauses(thread);
        if let Some(section) = self.sections.threads.get_mut(&thread) {
            section.context = None;
        }
    }

    /// Adds what a thread has counted to its sums and stops counting; returns whether it counted.
    fn section_pauses(&mut self, thread: u32) -> bool {
        let Some(mut section) = self.sections.threads.remove(&thread) else { return false };
        let counted = std::mem::take(&mut section.open);
        if let Some(context) = section.context.filter(|_| counted) {
            let mut now = std::mem::take(&mut self.sections.now);
            self.copy_counters(context, &mut now);
            section.sums.add(&section.from, &now);
            self.sections.now = now;
        }
        self.sections.threads.insert(thread, section);
        counted
    }

    /// Makes what `thread`, or every thread, has counted a part of its own, or forgets it.
    pub(crate) fn sections_cut(&mut self, thread: Option<u32>, keeps: Keeps) {
        let wanted: Vec<u32> = self
            .sections
            .threads
            .keys()
            .copied()
            .filter(|&own| thread.is_none_or(|one| one == own))
            .collect();
        for thread in wanted {
            let counted = self.section_pauses(thread);
            let Some(section) = self.sections.threads.get_mut(&thread) else { continue };
            let counts = std::mem::take(&mut section.sums);
            if keeps == Keeps::Part {
                let cut = self.sections.cuts;
                self.sections.parts.push(CountedPart { thread, cut, counts });
            }
            if counted {
                self.section_opens(thread);
            }
        }
        if keeps == Keeps::Part {
            self.sections.cuts += 1;
        }
    }

    /// The parts of the image, which has ended; the last part of each thread is what it counted
    /// behind the last cut.
    pub(crate) fn parts(&mut self) -> Vec<PartCounts> {
        self.sections_cut(None, Keeps::Part);
        let parts = std::mem::take(&mut self.sections.parts);
        parts.into_iter().map(|part| self.part(part)).collect()
    }

    /// Turns counters into executions of blocks: a block runs when the traversal leaves by its own
    /// exit or by a later one.
    fn part(&self, part: CountedPart) -> PartCounts {
        let CountedPart { thread, cut, counts: SectionCounts { counters, extra, aside, left_early } } = part;
        let counter = |number: u32| counters.get(number as usize).copied().unwrap_or(0);
        let mut all: BTreeMap<u32, u64> = BTreeMap::new();
        let mut taken: BTreeMap<u32, u64> = BTreeMap::new();
        for fragment in &self.translator.cache.fragments {
            let mut executions = counter(fragment.counters + fragment.blocks);
            for index in (0..fragment.blocks).rev() {
                let (block, left) = (fragment.first_block + index, counter(fragment.counters + index));
                if index + 1 < fragment.blocks {
                    executions = executions.saturating_add(left);
                }
                if executions > 0 {
                    *all.entry(block).or_default() += executions;
                }
                if left > 0 {
                    *taken.entry(block).or_default() += left;
                }
            }
        }
        for (block, more) in extra {
            let executions = all.entry(block).or_default();
            *executions = executions.saturating_add_signed(more);
        }
        all.retain(|_, executions| *executions > 0);
        let mut aside: Vec<(u32, u64)> = aside.into_iter().collect();
        aside.sort_unstable();
        let mut left_early: Vec<(u32, u32, u64)> =
            left_early.into_iter().map(|((block, index), times)| (block, index, times)).collect();
        left_early.sort_unstable();
        let (executions, taken) = (all.into_iter().collect(), taken.into_iter().collect());
        PartCounts { thread, cut, executions, taken, left_early, aside }
    }
}

/// What becomes of the counts at a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeps {
    /// They become a part.
    Part,
    /// They are forgotten.
    Nothing,
}
