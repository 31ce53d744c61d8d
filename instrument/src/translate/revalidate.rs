//! Checks restored translations when a module of theirs is first executed.

use super::unverified::{holds, UnverifiedModules, Verification};
use super::Translator;
use crate::target::trust::Modules;

impl Translator {
    /// Checks the restored part of `module`, which is about to be executed, and of its group;
    /// returns whether the group may be used.
    pub(crate) fn revalidate(&mut self, module: u32, modules: &impl Modules) -> bool {
        if !self.unverified.sleeps(module) {
            return false;
        }
        let UnverifiedModules { groups, states, pages, .. } = &self.unverified;
        let own = groups[module as usize];
        let group: Vec<usize> =
            (0..groups.len()).filter(|&n| groups[n] == own && states[n] != Verification::Absent).collect();
        // Linked branches lead from one member to another without a check, so the group wakes as a
        // whole or not at all.
        let same = group.iter().all(|&n| {
            states[n] == Verification::Asleep
                && modules.is_text(n as u32)
                && holds(self.reader.pid, &pages[n])
        });
        for n in group {
            let live = std::mem::take(&mut self.unverified.live[n]);
            self.unverified.states[n] = if same { Verification::Awake } else { Verification::GivenUp };
            if same {
                self.enter(&live);
            }
        }
        self.unverified.gave_up |= !same;
        same
    }

    /// Enters fragments into the map, links the exits that wait for them, and puts those that had
    /// an entry into the lookup table again.
    fn enter(&mut self, live: &[u32]) {
        self.cache.map.reserve(live.len());
        for &fragment_index in live {
            // A fragment with an entry was an indirect target in the run that wrote the file.
            let fragment = &self.cache.fragments[fragment_index as usize];
            let (pc, published) = (fragment.pc, fragment.entry.is_some());
            // A translation of this run takes precedence.
            if *self.cache.map.entry(pc).or_insert(fragment_index) != fragment_index {
                continue;
            }
            if self.cache.pending.contains_key(&pc) {
                self.cache.link_pending(fragment_index as usize);
            }
            if published {
                self.cache.publish(pc, fragment_index as usize);
            }
        }
    }
}
