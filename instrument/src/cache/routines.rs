//! The routines that all fragments of a zone share, in its cold half.
//!
//! Those that every image needs are written when the zone is made; those that record, or use a first level, when a fragment first asks for one of their
//! kind. **Leaves out** what they do: that is `emit::routine`, `emit::lookup` and `emit::kept`.

use super::{CodeCache, Routines, EXIT_LOOKUP, ROUTINE_BYTES};
use crate::assemble::Assembler;
use crate::emit::kept;
use crate::emit::lookup;
use crate::emit::routine::{self, RecordRoutine};
use crate::layout::context;
use event::{Filter, SetFilter};

impl CodeCache {
    pub(super) fn write_routines(&mut self, z: usize, filter: Option<&Filter>) {
        let mut code = Assembler::default();
        let base = self.zones[z].cold_address();
        let mut routines = Routines { hand_over: base, ..Routines::default() };
        code.raw(&[0xcc]);
        code.jump_context(context::CONTINUE);
        routines.probe = base + code.len() as u64;
        lookup::probe_routine(&mut code, self.layout.low, EXIT_LOOKUP);
        routines.clear_filter = base + code.len() as u64;
        let sets = |filter: Option<SetFilter>| filter.map_or(0, |f| f.sets);
        empty(&mut code, context::DATA_LINES, 8, sets(filter.map(|f| f.data)));
        code.jump_context(context::RETURN);
        let zone = &mut self.zones[z];
        zone.routines = routines;
        zone.routine_used = (code.len() as u64 + 63) & !63;
        zone.cold_used = ROUTINE_BYTES;
        self.shared.write(zone.cold_offset(), &code.bytes);
    }

    /// Address of the routine that records a data reference as `key` says, made when first asked for.
    pub(crate) fn routine(&mut self, z: usize, key: RecordRoutine) -> u64 {
        if let Some(&known) = self.zones[z].routines_written.get(&key.key()) {
            return known;
        }
        let mut code = Assembler::default();
        routine::record(&mut code, &key);
        let address = self.write_routine(z, &code);
        self.zones[z].routines_written.insert(key.key(), address);
        address
    }

    /// Address of the routine of uses of a first level of so many `ways`, whose misses are recorded as `code`; made when first asked for.
    pub(crate) fn use_routine(&mut self, z: usize, ways: u32, code: u8) -> u64 {
        let key = (ways, code);
        if let Some(&(_, known)) = self.zones[z].use_routines.iter().find(|routine| routine.0 == key) {
            return known;
        }
        let mut routine = Assembler::default();
        kept::routine(&mut routine, ways, code);
        let address = self.write_routine(z, &routine);
        self.zones[z].use_routines.push((key, address));
        address
    }

    fn write_routine(&mut self, z: usize, code: &Assembler) -> u64 {
        let zone = &mut self.zones[z];
        let address = zone.cold_address() + zone.routine_used;
        assert!(
            zone.routine_used + (code.len() as u64) < ROUTINE_BYTES,
            "a few hundred routines of 200 bytes"
        );
        self.shared.write(zone.cold_offset() + zone.routine_used as usize, &code.bytes);
        zone.routine_used = (zone.routine_used + code.len() as u64 + 63) & !63;
        address
    }
}

/// Empties `sets` entries of `bytes` bytes; touches no flags.
fn empty(code: &mut Assembler, at: u32, bytes: u32, sets: u32) {
    for word in 0..(sets * bytes).div_ceil(8) {
        code.store_imm64(at + 8 * word, 0);
    }
}
