//! The routines that all fragments of a zone share, in the zone's cold part.
//!
//! Routines that every image needs are written when the zone is made. A routine that records a
//! reference, or notes a use of an instruction line, is written when a fragment first needs it.
//! **Leaves out** the code of these: the caller of [`CodeCache::place`](super::CodeCache::place)
//! passes a function that emits it.

use super::{CodeCache, Routines, ROUTINE_BYTES};
use crate::code::assembler::Assembler;
use crate::code::buffer::Routine;
use crate::code::fragment::EXIT_LOOKUP;
use crate::code::hand_over;
use crate::code::lookup;
use crate::target::layout::context;
use event::{Filter, SetFilter};

impl CodeCache {
    /// Writes the routines that every image needs into a new zone.
    pub(super) fn write_routines(&mut self, zone_index: usize, filter: Option<&Filter>) {
        let mut code = Assembler::default();
        let base = self.zones[zone_index].cold_address();
        let mut routines = Routines { hand_over: base, ..Routines::default() };
        hand_over::enter(&mut code);
        routines.trap = base + code.len() as u64;
        hand_over::trap(&mut code);
        routines.post = base + code.len() as u64;
        hand_over::post(&mut code, self.layout.bell());
        routines.post_end = base + code.len() as u64;
        routines.full_ring = routines.post_end;
        hand_over::full_ring(&mut code);
        routines.probe = base + code.len() as u64;
        lookup::probe_routine(&mut code, self.layout.low, EXIT_LOOKUP);
        routines.clear_filter = base + code.len() as u64;
        let sets = |filter: Option<SetFilter>| filter.map_or(0, |filter| filter.sets);
        empty(&mut code, context::DATA_LINES, 8, sets(filter.map(|filter| filter.data)));
        code.jump_context(context::RETURN);
        // Routines that are written later follow; each starts at a line of 64 bytes.
        let zone = &mut self.zones[zone_index];
        zone.routines = routines;
        zone.routine_used = (code.len() as u64 + 63) & !63;
        zone.cold_used = ROUTINE_BYTES;
        self.shared.write(zone.cold_offset(), code.bytes());
    }

    /// Address of a shared routine of the zone; the routine is written at the first request.
    pub(super) fn routine(
        &mut self,
        zone_index: usize,
        routine: &Routine,
        write: &impl Fn(&mut Assembler, &Routine),
    ) -> u64 {
        let zone = &self.zones[zone_index];
        let known = match routine {
            Routine::HandOver => Some(zone.routines.hand_over),
            Routine::Probe => Some(zone.routines.probe),
            Routine::ClearFilter => Some(zone.routines.clear_filter),
            Routine::Record(key) => zone.routines_written.get(&key.key()).copied(),
            Routine::UsePages(key) => zone.routines_written.get(&key.key()).copied(),
            &Routine::UseLine(ways, code) => {
                let known = zone.use_routines.iter().find(|known| known.0 == (ways, code));
                known.map(|known| known.1)
            }
        };
        if let Some(known) = known {
            return known;
        }
        // The first request in this zone: emit the routine and remember it by its key.
        let mut code = Assembler::default();
        write(&mut code, routine);
        let address = self.write_routine(zone_index, &code);
        match routine {
            Routine::Record(key) => _ = self.zones[zone_index].routines_written.insert(key.key(), address),
            Routine::UsePages(key) => {
                _ = self.zones[zone_index].routines_written.insert(key.key(), address);
            }
            &Routine::UseLine(ways, code) => {
                self.zones[zone_index].use_routines.push(((ways, code), address))
            }
            Routine::HandOver | Routine::Probe | Routine::ClearFilter => {}
        }
        address
    }

    /// Copies a routine into the zone's part for routines; returns its address.
    fn write_routine(&mut self, zone_index: usize, code: &Assembler) -> u64 {
        let zone = &mut self.zones[zone_index];
        let address = zone.cold_address() + zone.routine_used;
        // The combinations of registers, sizes and kinds limit the number of routines.
        assert!(
            zone.routine_used + (code.len() as u64) < ROUTINE_BYTES,
            "a few hundred routines of 200 bytes"
        );
        self.shared.write(zone.cold_offset() + zone.routine_used as usize, code.bytes());
        zone.routine_used = (zone.routine_used + code.len() as u64 + 63) & !63;
        address
    }
}

/// Emits code that empties `sets` entries of `bytes` bytes at context offset `at`; it changes no
/// flags.
fn empty(code: &mut Assembler, at: u32, bytes: u32, sets: u32) {
    for word in 0..(sets * bytes).div_ceil(8) {
        code.store_imm64(at + 8 * word, 0);
    }
}
