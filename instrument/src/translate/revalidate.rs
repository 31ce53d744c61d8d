//! Revalidation: checks restored translations when one of their modules is first executed.

use super::unverified::{holds_of_file, UnverifiedModules, Verification};
use super::Translator;
use crate::cache::CodeCache;
use crate::code::fragment::Fragment;
use crate::target::trust::{Modules, Trust};

impl Translator {
    /// Checks the restored part of `module`, which is about to be executed, and those of the other
    /// modules of its group. Returns whether the group may be used.
    pub(crate) fn revalidate(&mut self, module: u32, modules: &impl Modules) -> bool {
        if !self.unverified.is_unverified(module) {
            return false;
        }
        let UnverifiedModules { groups, states, pages, of_files, .. } = &mut self.unverified;
        let own = groups[module as usize];
        let group: Vec<usize> = (0..groups.len())
            .filter(|&member| groups[member] == own && states[member] != Verification::Absent)
            .collect();
        // Linked branches lead from one member to another without a check, so all members must be
        // unchanged.
        let same = group.iter().all(|&member| {
            let number = member as u32;
            if states[member] != Verification::Unverified || !modules.is_text(number) {
                return false;
            }
            let mut known = of_files.remove(&number);
            let same = holds_of_file(self.reader.pid, &pages[member], modules.file_state(number), &mut known);
            of_files.extend(known.map(|known| (number, known)));
            same
        });
        for member in group {
            let live = std::mem::take(&mut self.unverified.live[member]);
            self.unverified.states[member] =
                if same { Verification::Verified } else { Verification::GivenUp };
            if same {
                self.watch.meets((Trust::Text, member as u32), modules);
                self.note_marks(&live);
                self.note_restored_targets(member as u32);
                self.enter(&live);
            }
            // If the image rests, the next process verifies the module again.
            self.unverified.live[member] = live;
        }
        self.unverified.gave_up |= !same;
        same
    }

    /// Notes the marks in restored fragments, so that no exit is linked to them.
    fn note_marks(&mut self, live: &[u32]) {
        if !self.watch.has_marker() {
            return;
        }
        for &fragment_index in live {
            let Fragment { first_block, blocks, .. } = self.cache.fragments[fragment_index as usize];
            for block in first_block..first_block + blocks {
                let block = &self.blocks[block as usize];
                let (first, count) = (block.first as usize, block.count as usize);
                let last: Vec<_> =
                    self.instructions.range(first + count.saturating_sub(2)..first + count).collect();
                self.watch.notes_restored(&last, block.ip, &mut self.reader);
            }
        }
    }

    /// Enters fragments into the map, links the exits that wait for them, and enters those that
    /// were in the lookup table into this run's table.
    fn enter(&mut self, live: &[u32]) {
        let CodeCache { map, fragments, pending, .. } = &mut self.cache;
        map.reserve(live.len());
        // Each table in a loop of its own: the processor then looks up several addresses at once,
        // where a loop over all tables would wait for each.
        for &fragment_index in live {
            // A translation of this run takes precedence.
            map.entry(fragments[fragment_index as usize].pc).or_insert(fragment_index);
        }
        let waits = |index: &&u32| pending.contains_key(&fragments[**index as usize].pc);
        let waiting: Vec<u32> = live.iter().filter(waits).copied().collect();
        for fragment_index in waiting {
            if let Some(pc) = self.entered(fragment_index) {
                debug_assert!(self.cache.pending.contains_key(&pc));
                self.cache.link_pending(fragment_index as usize);
            }
        }
        for &fragment_index in live {
            // A fragment with an entry was an indirect target in the run that wrote the file.
            if self.cache.fragments[fragment_index as usize].entry.is_none() {
                continue;
            }
            if let Some(pc) = self.entered(fragment_index) {
                self.cache.publish(pc, fragment_index as usize);
            }
        }
    }

    /// The address of a fragment to which threads may be led: the map finds it there, and nobody
    /// watches the address, where threads must stop.
    fn entered(&self, fragment_index: u32) -> Option<u64> {
        let pc = self.cache.fragments[fragment_index as usize].pc;
        (self.cache.find(pc) == Some(fragment_index as usize) && !self.watch.has(pc)).then_some(pc)
    }
}
