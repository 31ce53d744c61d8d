//! Whether a code cache holds together.

use super::CodeCache;
use crate::code::fragment::Incoming;

impl CodeCache {
    /// What does not hold together, in debug builds when an image ends: every fragment that can be
    /// reached is what it is found as, lies in the used part of its zone, and every place that
    /// leads to it does so; state maps are in order; no exit waits for what is there.
    pub(crate) fn inconsistency(&self) -> Option<String> {
        for (&pc, &fragment_index) in &self.map {
            let Some(fragment) = self.fragments.get(fragment_index as usize) else {
                return Some(format!("{pc:#x} is no fragment"));
            };
            // What can be found is what it is found as, and lies in code that was placed.
            let zone = &self.zones[fragment.zone as usize];
            let inside = |at: u64| at >= zone.address && at < zone.address + zone.hot_used;
            if fragment.pc != pc || !inside(fragment.body) || !fragment.entry.is_none_or(inside) {
                return Some(format!("fragment {fragment_index} is not that of {pc:#x}"));
            }
            if self.pending.contains_key(&pc) {
                return Some(format!("exits wait for {pc:#x}, which is there"));
            }
            // Every place that is noted for it leads there: an address, or a displacement.
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
        let disordered = self.zones.iter().find(|zone| !zone.state_map.is_sorted_by_key(|entry| entry.at));
        disordered.map(|zone| format!("the state map of the zone at {:#x} is out of order", zone.address))
    }
}
