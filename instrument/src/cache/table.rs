//! The lookup table: the targets of indirect transfers and the entries of their fragments.
//!
//! Slots are written code first, tag second, so that a thread that finds a tag finds its code. The
//! table grows once (`code::lookup` has the sizes); behind that, a target of a program with threads
//! that finds no slot asks the host at each transfer. **Leaves out** the code of lookups.

use super::link::JumpForm;
use super::CodeCache;
use crate::code::assembler::Assembler;
use crate::code::lookup::{self, Hash, TableSize};
use crate::target::layout::{context, LOOKUP_BYTES, LOOKUP_PROBES};
use crate::target::memory::HUGE_BYTES;

/// When the lookup table gets this target, it is moved onto huge pages, and with it the often used
/// parts of the first thread's context.
const HUGE_TARGETS: usize = 4096;

/// A table that is to have more targets than this has its second size from the beginning: a quarter
/// of the slots of the first size.
const GROWN_TARGETS: usize = 1 << 16;

/// A tag that no target has: the address whose tag it is belongs to the kernel.
const NO_TAG: u64 = 1;

impl CodeCache {
    /// The address at which lookups enter the fragment. The first call for a fragment writes the
    /// entry.
    pub(crate) fn entry(&mut self, fragment_index: usize) -> u64 {
        if let Some(entry) = self.fragments[fragment_index].entry {
            return entry;
        }
        let zone_index = self.fragments[fragment_index].zone as usize;
        let here = self.zones[zone_index].address + self.zones[zone_index].hot_used;
        // A lookup arrives with rax, rcx and rdx saved in their slots, so the entry loads them
        // first.
        let mut code = Assembler::default();
        lookup::entry(&mut code);
        code.align_patch(here, 1);
        let from = here + code.len() as u64 + 5;
        code.code().jump_by(self.fragments[fragment_index].body.wrapping_sub(from) as i32);
        self.arrives_by_stub(fragment_index, zone_index, here, JumpForm::Near(code.len() - 4));
        self.copy_in(zone_index, code.bytes(), &[]);
        self.fragments[fragment_index].entry = Some(here);
        here
    }

    /// Enters `pc` into the lookup table, in the first of its slots that is free or already holds
    /// `pc`. If there is none, the table grows, once.
    pub(crate) fn publish(&mut self, pc: u64, fragment_index: usize) {
        self.published += 1;
        if self.published == HUGE_TARGETS {
            self.request_huge_pages();
            for at in context::OFTEN_USED {
                let at = self.layout.contexts_offset() as usize + at as usize;
                self.huge_pages.request(&self.shared, at);
            }
        }
        let entry = self.entry(fragment_index);
        if self.enter(pc, entry) || self.grow_table() && self.enter(pc, entry) {
            return;
        }
        // All slots are taken, so the new target replaces the one in the last slot. But in a
        // program with threads, another thread may have read that slot's tag and not yet its code,
        // so the slot must stay.
        if self.parallel {
            return;
        }
        let at = self.slot_offset(pc, LOOKUP_PROBES - 1);
        self.shared.write64(at, 0);
        self.shared.write64(at + 8, entry);
        self.shared.write64(at, pc.wrapping_neg());
    }

    /// Writes a target and its entry into the first slot that is free or already holds the target;
    /// returns whether there is one.
    fn enter(&mut self, pc: u64, entry: u64) -> bool {
        for probe in 0..LOOKUP_PROBES {
            let at = self.slot_offset(pc, probe);
            let tag = self.shared.read64(at);
            if tag == pc.wrapping_neg() || tag == 0 {
                // Code first, tag second: a thread that finds the tag finds the code.
                self.shared.write64(at + 8, entry);
                self.shared.write64(at, pc.wrapping_neg());
                return true;
            }
        }
        false
    }

    /// Prepares an empty table for this number of targets. Where they are many, the table would
    /// grow while they are entered, and have most of them twice.
    pub(crate) fn expect(&mut self, targets: usize) {
        if targets > GROWN_TARGETS {
            self.grow_table();
        }
    }

    /// Whether the table has this target, as lookups of its present size find it.
    fn is_entered(&self, pc: u64) -> bool {
        (0..LOOKUP_PROBES).any(|probe| self.shared.read64(self.slot_offset(pc, probe)) == pc.wrapping_neg())
    }

    /// Makes the table larger; returns whether it could. Large programs have more targets than the
    /// first size has slots, and in a program with threads a target without a slot asks the host at
    /// each transfer. Slots that are taken stay as they are, because a thread may be reading them;
    /// their targets are entered once more, or each of them would ask the host again.
    fn grow_table(&mut self) -> bool {
        if self.hash != Hash::Extract || self.table_size == TableSize::Grown {
            return false;
        }
        let entry = |index: &u32| self.fragments[*index as usize].entry;
        let entries = self.map.iter().filter_map(|(&pc, index)| Some((pc, entry(index)?)));
        // Not in the table is what threads must not reach by themselves.
        let entered: Vec<(u64, u64)> = entries.filter(|(pc, _)| self.is_entered(*pc)).collect();
        self.table_size = TableSize::Grown;
        for (pc, entry) in entered {
            self.enter(pc, entry);
        }
        if self.published >= HUGE_TARGETS {
            self.request_huge_pages();
        }
        true
    }

    /// Moves the slots that most targets have onto huge pages: lookups of a full table touch all of
    /// its pages.
    fn request_huge_pages(&mut self) {
        let base = self.layout.low_offset() as usize;
        let slots = self.table_size.busy_slots();
        for at in (16 * slots.start as usize..16 * slots.end as usize).step_by(HUGE_BYTES) {
            self.huge_pages.request(&self.shared, base + at);
        }
    }

    /// Where a slot of a target stands in the shared file: the one after `probe` others.
    fn slot_offset(&self, pc: u64, probe: u32) -> usize {
        let slot = self.hash.slot(pc, self.table_size) + u64::from(probe);
        self.layout.low_offset() as usize + 16 * slot as usize
    }

    /// Removes all fragments of the map from the lookup table. A full table is cleared, which takes
    /// less time than looking for its targets one by one.
    pub(super) fn empty_table(&mut self) {
        if self.published >= HUGE_TARGETS {
            let base = self.layout.low_offset() as usize;
            for part in self.shared.present(base..base + LOOKUP_BYTES as usize) {
                self.shared.write(part.start, &vec![0u8; part.len()]);
            }
            return;
        }
        let published = |fragment_index: &u32| self.fragments[*fragment_index as usize].entry.is_some();
        let targets: Vec<u64> =
            self.map.iter().filter(|(_, index)| published(index)).map(|(&pc, _)| pc).collect();
        targets.into_iter().for_each(|pc| self.unpublish(pc));
    }

    /// Makes lookups of `pc` ask the host. In a program with threads the slot is not used again,
    /// because another thread may stand between reading the slot's tag and its code.
    pub(crate) fn hide(&mut self, pc: u64) {
        let tag = if self.parallel { NO_TAG } else { 0 };
        self.replace_tag(pc, tag);
    }

    /// Removes `pc` from the lookup table.
    pub(super) fn unpublish(&mut self, pc: u64) {
        self.replace_tag(pc, 0);
    }

    fn replace_tag(&mut self, pc: u64, tag: u64) {
        // A target may stand where the table had it before it grew.
        let base = self.layout.low_offset() as usize;
        let grown = (self.table_size != TableSize::First).then_some(self.table_size);
        for size in std::iter::once(TableSize::First).chain(grown) {
            for probe in 0..u64::from(LOOKUP_PROBES) {
                let at = base + 16 * (self.hash.slot(pc, size) + probe) as usize;
                if self.shared.read64(at) == pc.wrapping_neg() {
                    self.shared.write64(at, tag);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::fragment::Fragment;
    use crate::target::layout::{Layout, ZonePlace};
    use crate::target::memory::Shared;
    use std::sync::Arc;

    /// The distance of targets that have one slot as long as the table has its first size.
    const ONE_SLOT: u64 = 1 << 20;

    /// A cache whose fragments are the targets of lookups; no address has code.
    fn cache(targets: &[u64]) -> CodeCache {
        let zone = ZonePlace { address: 0x10_0000, hot_bytes: 4 << 20, cold_bytes: 4 << 20 };
        let layout = Layout { zones: vec![zone], low: 0x6000_0000 };
        let bytes = layout.contexts_offset() + context::BYTES;
        let mut cache = CodeCache::new(Arc::new(Shared::new(bytes as usize).unwrap()), layout, None);
        cache.hash = Hash::Extract;
        for (&pc, index) in targets.iter().zip(0u32..) {
            cache.fragments.push(Fragment { pc, entry: Some(pc + 7), ..Fragment::default() });
            cache.map.insert(pc, index);
        }
        cache
    }

    #[test]
    fn a_table_that_grows_has_the_targets_that_it_had() {
        let colliding: Vec<u64> = (0..=u64::from(LOOKUP_PROBES)).map(|k| 0x40_0000 + k * ONE_SLOT).collect();
        let others = [0x7fff_f000_1234, 0x5555_5555_4000, 0x12_3456];
        let (hidden, asked) = (0x20_0004, 0x30_0008);
        let targets = [&others[..], &[hidden, asked], &colliding].concat();
        let mut cache = cache(&targets);
        // All but one are published, and one is hidden again.
        for (index, &pc) in targets.iter().enumerate().filter(|(_, pc)| **pc != asked) {
            if pc == colliding[0] {
                cache.hide(hidden);
            }
            assert_eq!(cache.table_size, TableSize::First);
            cache.publish(pc, index);
        }
        assert_eq!(cache.table_size, TableSize::Grown, "the last one found no slot");
        for &pc in &targets {
            assert_eq!(cache.is_entered(pc), pc != hidden && pc != asked, "{pc:x}");
        }
        // The code that stands beside the tag is that of the target.
        for &pc in &colliding {
            let slots = (0..LOOKUP_PROBES).map(|probe| cache.slot_offset(pc, probe));
            let own = slots.filter(|&at| cache.shared.read64(at) == pc.wrapping_neg());
            assert!(own.map(|at| cache.shared.read64(at + 8)).all(|code| code == pc + 7));
        }
        cache.hide(colliding[3]);
        assert!(!cache.is_entered(colliding[3]));
    }
}
