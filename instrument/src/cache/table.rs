//! The lookup table: the targets of indirect transfers and the entries of their fragments.
//!
//! Slots are written code first, tag second, so that a thread that finds a tag finds its code.

use super::link::JumpForm;
use super::CodeCache;
use crate::code::assembler::Assembler;
use crate::code::lookup;
use crate::target::layout::{context, LOOKUP_BITS, LOOKUP_PROBES};
use crate::target::memory::HUGE_BYTES;

/// When the lookup table gets this target, it is moved onto huge pages, and with it the often used
/// parts of the first thread's context.
const HUGE_TARGETS: usize = 4096;

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
    /// `pc`.
    pub(crate) fn publish(&mut self, pc: u64, fragment_index: usize) {
        self.published += 1;
        if self.published == HUGE_TARGETS {
            // Lookups of a full table touch all of its pages.
            for part in 0..(16usize << LOOKUP_BITS) / HUGE_BYTES {
                let at = self.layout.low_offset() as usize + part * HUGE_BYTES;
                self.huge_pages.request(&self.shared, at);
            }
            for at in context::OFTEN_USED {
                let at = self.layout.contexts_offset() as usize + at as usize;
                self.huge_pages.request(&self.shared, at);
            }
        }
        // Code first, tag second: a thread that finds the tag finds the code.
        let entry = self.entry(fragment_index);
        let base = self.layout.low_offset() as usize;
        let first = self.hash.slot(pc);
        for probe in 0..u64::from(LOOKUP_PROBES) {
            let at = base + (first + probe) as usize * 16;
            let tag = self.shared.read64(at);
            if tag == pc.wrapping_neg() || tag == 0 {
                self.shared.write64(at + 8, entry);
                self.shared.write64(at, pc.wrapping_neg());
                return;
            }
        }
        // All slots are taken, so the new target replaces the one in the last slot. But in a
        // program with threads, another thread may have read that slot's tag and not yet its code,
        // so the slot must stay.
        if self.parallel {
            return;
        }
        let at = base + (first + u64::from(LOOKUP_PROBES) - 1) as usize * 16;
        self.shared.write64(at, 0);
        self.shared.write64(at + 8, entry);
        self.shared.write64(at, pc.wrapping_neg());
    }

    /// Removes all fragments of the map from the lookup table. A full table is cleared, which takes
    /// less time than looking for its targets one by one.
    pub(super) fn empty_table(&mut self) {
        if self.published >= HUGE_TARGETS {
            let slots = (1usize << LOOKUP_BITS) + LOOKUP_PROBES as usize;
            return self.shared.write(self.layout.low_offset() as usize, &vec![0u8; 16 * slots]);
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
        let base = self.layout.low_offset() as usize;
        for probe in 0..u64::from(LOOKUP_PROBES) {
            let at = base + (self.hash.slot(pc) + probe) as usize * 16;
            if self.shared.read64(at) == pc.wrapping_neg() {
                self.shared.write64(at, tag);
            }
        }
    }
}
