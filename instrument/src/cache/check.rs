//! The consistency check of a code cache, for debug builds.

use super::CodeCache;
use crate::code::fragment::Incoming;

impl CodeCache {
    /// The first violated invariant, as a sentence. Debug builds check these when an image ends:
    ///
    /// - Every fragment in the map starts at the address that leads to it, and lies in the used
    ///   part of its zone.
    /// - Every place in a fragment's list leads to the fragment.
    /// - No exit waits for an address that has code.
    /// - State maps are in order.
    pub(crate) fn inconsistency(&self) -> Option<String> {
        for (&pc, &fragment_index) in &self.map {
            let Some(fragment) = self.fragments.get(fragment_index as usize) else {
                return Some(format!("{pc:#x} is no fragment"));
            };
            // The fragment starts at the map's address, and lies in code that was placed.
            let zone = &self.zones[fragment.zone as usize];
            let inside = |at: u64| at >= zone.address && at < zone.address + zone.hot_used;
            if fragment.pc != pc || !inside(fragment.body) || !fragment.entry.is_none_or(inside) {
                return Some(format!("fragment {fragment_index} is not that of {pc:#x}"));
            }
            if self.pending.contains_key(&pc) {
                return Some(format!("exits wait for {pc:#x}, which is there"));
            }
            // Each place in the fragment's list, an address or a displacement, leads to its body.
            let mut place = fragment.incoming;
            while place != 0 {
                let Incoming { offset, from, next } = self.incoming[place as usize];
                let leads_to = match from {
                    0 => self.shared.read64(offset),
                    _ => from.wrapping_add(self.shared.displacement(offset)),
                };
                if leads_to != fragment.body {
                    return Some(format!("a place that leads to {leads_to:#x} is noted for {pc:#x}"));
                }
                place = next;
            }
        }
        let disordered =
            self.zones.iter().find(|zone| !zone.state_map.iter().is_sorted_by_key(|entry| entry.at));
        disordered.map(|zone| format!("the state map of the zone at {:#x} is out of order", zone.address))
    }
}
