//! The code cache of one process image: zones, fragments, exits, and how they are linked.
//!
//! Code comes in a buffer ([`CodeBuffer`](crate::code::buffer::CodeBuffer)) and is placed
//! (`place`): what was left open in it gets numbers and addresses. What the code is for, nobody
//! knows here.
//!
//! A fragment is entered at its head only and left by exits. An exit whose target has no code yet
//! leads through a cold stub to the host; when the target is translated, every exit that waits for
//! it is linked by rewriting one displacement (atomic: it never crosses a line). Table slots are
//! written code first, tag second. Leaves out: eviction; a full zone spills into the far one.

mod check;
mod link;
mod place;
mod routines;
mod table;

use crate::code::address_map::AddressMap;
use crate::code::assembler::Assembler;
use crate::code::fragment::{CodeExit, Fragment, Incoming};
use crate::code::lookup::Hash;
use crate::code::state_map::StateMapEntry;
use crate::target::layout::Layout;
use crate::target::memory::{Shared, HUGE_BYTES};
use event::Filter;
use std::sync::Arc;

/// One zone of code.
pub(crate) struct Zone {
    pub(crate) address: u64,
    pub(crate) offset: usize,
    pub(crate) hot_bytes: u64,
    pub(crate) cold_bytes: u64,
    pub(crate) hot_used: u64,
    pub(crate) cold_used: u64,
    /// Bytes of either part that lie in huge pages.
    pub(crate) hot_huge: u64,
    pub(crate) cold_huge: u64,
    pub(crate) state_map: Vec<StateMapEntry>,
    pub(crate) routines: Routines,
    pub(crate) routine_used: u64,
    /// Record routines by what they are for.
    pub(crate) routines_written: AddressMap<u64>,
    /// Routines of uses of the instruction side, by ways and code.
    pub(crate) use_routines: Vec<((u32, u8), u64)>,
}

/// Addresses of a zone's shared routines.
#[derive(Clone, Copy, Default)]
pub(crate) struct Routines {
    /// `int3` and on.
    pub(crate) hand_over: u64,
    /// Further probes of the lookup table.
    pub(crate) probe: u64,
    /// Empties the data filter and returns through the context.
    pub(crate) clear_filter: u64,
}

/// A zone's first huge page is asked for when it holds this much: small programs never pay for one.
const HUGE_WORTHWHILE: u64 = 700 << 10;
/// Bytes at the beginning of a zone's cold part that are kept for routines.
pub(crate) const ROUTINE_BYTES: u64 = 512 << 10;

impl Zone {
    pub(crate) fn cold_address(&self) -> u64 {
        self.address + self.hot_bytes
    }

    pub(crate) fn cold_offset(&self) -> usize {
        self.offset + self.hot_bytes as usize
    }

    pub(crate) fn has_room(&self) -> bool {
        self.hot_used + (64 << 10) < self.hot_bytes && self.cold_used + (256 << 10) < self.cold_bytes
    }
}

/// A way of a fragment back to its own head.
struct BackEdge {
    fragment: usize,
    /// Byte in the shared file of its displacement, and what that is where it leads to its stub.
    offset: usize,
    displacement: i32,
}

/// Zones, fragments, exits.
pub(crate) struct CodeCache {
    pub(crate) shared: Arc<Shared>,
    pub(crate) layout: Layout,
    pub(crate) zones: Vec<Zone>,
    pub(crate) fragments: Vec<Fragment>,
    pub(crate) map: AddressMap<u32>,
    pub(crate) exits: Vec<CodeExit>,
    pub(crate) incoming: Vec<Incoming>,
    /// Back edges, by fragment.
    back_edges: Vec<BackEdge>,
    /// For each target without code, the last exit that waits for it; the others follow by
    /// [`CodeExit::next`].
    pub(crate) pending: AddressMap<u32>,
    /// Exits of the fragment being placed that lead on by stubs, and their target fragments.
    stubbed: Vec<(usize, usize)>,
    /// Code of the stub being written.
    scratch: Assembler,
    pub(crate) hash: Hash,
    /// Targets entered into the lookup table so far.
    pub(crate) published: usize,
    /// More than one thread has run: nothing that a thread may be looking at is replaced.
    pub(crate) parallel: bool,
}

impl CodeCache {
    pub(crate) fn new(shared: Arc<Shared>, layout: Layout, filter: Option<&Filter>) -> CodeCache {
        let mut cache = CodeCache {
            zones: Vec::new(),
            fragments: Vec::new(),
            map: AddressMap::default(),
            // Number 0 is no exit and no place.
            exits: vec![CodeExit {
                target: 0,
                zone: 0,
                patch: 0,
                counter: None,
                restore: 0,
                next: 0,
                stale: false,
            }],
            incoming: vec![Incoming { offset: 0, from: 0, next: 0 }],
            back_edges: Vec::new(),
            pending: AddressMap::default(),
            stubbed: Vec::new(),
            scratch: Assembler::default(),
            hash: Hash::of_host(),
            published: 0,
            parallel: false,
            shared,
            layout,
        };
        // Every zone begins with the routines that all code needs.
        for (zone_index, place) in cache.layout.zones.clone().iter().enumerate() {
            let offset = cache.layout.zone_offset(zone_index) as usize;
            cache.zones.push(Zone {
                address: place.address,
                offset,
                hot_bytes: place.hot_bytes,
                cold_bytes: place.cold_bytes,
                hot_used: 0,
                cold_used: 0,
                hot_huge: 0,
                cold_huge: 0,
                state_map: Vec::new(),
                routines: Routines::default(),
                routine_used: 0,
                routines_written: AddressMap::default(),
                use_routines: Vec::new(),
            });
            cache.write_routines(zone_index, filter);
        }
        cache
    }

    /// The zone for code of `pc`: the one within reach that is nearest, the last one where none is.
    pub(crate) fn zone_for(&self, pc: u64) -> usize {
        let reach = |zone: &Zone| {
            let (start, end) = (zone.address, zone.address + zone.hot_bytes + zone.cold_bytes);
            pc.abs_diff(start).max(pc.abs_diff(end))
        };
        // Within a displacement's reach of the code, so that operands relative to it can be
        // copied.
        let near = (0..self.zones.len() - 1)
            .filter(|&zone_index| {
                self.zones[zone_index].has_room() && reach(&self.zones[zone_index]) < 0x7f00_0000
            })
            .min_by_key(|&zone_index| reach(&self.zones[zone_index]));
        near.unwrap_or(self.zones.len() - 1)
    }

    /// The fragment at `pc`, if there is one.
    pub(crate) fn find(&self, pc: u64) -> Option<usize> {
        self.map.get(&pc).map(|&fragment_index| fragment_index as usize)
    }

    /// Copies finished code into its zone; both parts are rounded up to 16 bytes.
    fn copy_in(&mut self, zone_index: usize, hot: &[u8], cold: &[u8]) {
        let zone = &mut self.zones[zone_index];
        // The program sees it at once; nothing leads there yet.
        self.shared.write(zone.offset + zone.hot_used as usize, hot);
        self.shared.write(zone.cold_offset() + zone.cold_used as usize, cold);
        zone.hot_used = (zone.hot_used + hot.len() as u64 + 15) & !15;
        zone.cold_used = (zone.cold_used + cold.len() as u64 + 15) & !15;
        self.grow(zone_index);
    }

    /// Puts the used part of the zone on huge pages.
    pub(crate) fn grow(&mut self, zone_index: usize) {
        let zone = &mut self.zones[zone_index];
        let (offset, cold_offset) = (zone.offset, zone.cold_offset());
        for (start, used, huge) in
            [(offset, zone.hot_used, &mut zone.hot_huge), (cold_offset, zone.cold_used, &mut zone.cold_huge)]
        {
            // Once it is worth a huge page, all that follows is on huge pages too.
            while used > *huge + HUGE_WORTHWHILE || *huge > 0 && used > *huge {
                self.shared.collapse(start + *huge as usize);
                *huge += HUGE_BYTES as u64;
            }
        }
    }

    /// The entry of the state map at or before `rip`, and whether `rip` is exactly where its
    /// instruction's translation begins.
    pub(crate) fn state_at(&self, rip: u64) -> Option<(StateMapEntry, bool)> {
        for zone in &self.zones {
            if rip < zone.address || rip >= zone.address + zone.hot_used {
                continue;
            }
            let at = (rip - zone.address) as u32;
            let behind = zone.state_map.partition_point(|entry| entry.at <= at);
            let entry = *zone.state_map.get(behind.checked_sub(1)?)?;
            return Some((entry, entry.at == at));
        }
        None
    }

    /// The fragment that `block` belongs to, if it is the one in use and can be replaced.
    pub(crate) fn replaceable(&self, block: u32) -> Option<usize> {
        // Blocks are numbered in the order of their fragments.
        let fragment_index =
            self.fragments.partition_point(|fragment| fragment.first_block <= block).checked_sub(1)?;
        (self.find(self.fragments[fragment_index].pc) == Some(fragment_index)).then_some(fragment_index)
    }

    /// Whether `rip` lies in generated code.
    pub(crate) fn contains(&self, rip: u64) -> bool {
        self.zones
            .iter()
            .any(|zone| rip >= zone.address && rip < zone.address + zone.hot_bytes + zone.cold_bytes)
    }
}
