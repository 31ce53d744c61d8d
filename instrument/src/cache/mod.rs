//! The code cache of one process image: zones, fragments, exits, and how they are linked.
//!
//! # The problem
//!
//! A thread should go from fragment to fragment without asking the host. But when a fragment is
//! placed, most of the code that it leads to does not exist yet; and code that exists may be tuned
//! or retired later, while threads run it.
//!
//! # The idea
//!
//! Emission delivers code in a buffer ([`CodeBuffer`](crate::code::buffer::CodeBuffer)), in which
//! everything that depends on other code is open. The cache places the buffer (`place`), which
//! gives numbers to exits and addresses to jumps. An exit whose target has no code leads to a cold
//! stub, which hands the exit's number to the host. As soon as the target is translated, every exit
//! that waits for it is linked: one displacement is rewritten (`link`). Indirect transfers find
//! their fragment in a table (`table`). The cache does not know what the code is for.
//!
//! ```text
//!   a zone          address                             cold_address
//!                   ┌───────────────────────────┬───────┬──────────┬─────────────────┬───────┐
//!                   │ fragments, stubs, entries │ free  │ routines │ cold sections   │ free  │
//!                   └───────────────────────────┴───────┴──────────┴─────────────────┴───────┘
//!                   ◀─ hot_used ───────────────▶        ◀─ cold_used ───────────────▶
//!                   ◀─ hot_bytes ──────────────────────▶◀─ cold_bytes ──────────────────────▶
//!
//!   map             pc of a fragment ─▶ its index       incoming: place ─▶ place ─▶ 0
//!                                           └───────────▶         (all that leads to its body)
//!   pending         pc without code ──▶ exit ─▶ exit ─▶ 0         (all that waits for it)
//! ```
//!
//! # Invariants
//!
//! - Between two translations an address is in `map` or in `pending`, never in both.
//! - Every list ends at number 0, which is no exit and no place.
//! - Each place in the list of a fragment holds an address or a displacement that leads to the
//!   fragment's body.
//! - A displacement that may be rewritten lies within one line of 64 bytes, so one store replaces
//!   it while threads run.
//! - A slot of the lookup table is written code first, tag second.
//!
//! In debug builds `check` verifies the first and the third. Nothing is evicted: if a zone is full,
//! new code goes to the zone that is far from everything, and if that one is full too, the run is
//! refused.

mod check;
mod huge_pages;
mod link;
mod place;
mod routines;
mod table;

use crate::address_map::AddressMap;
use crate::code::assembler::Assembler;
use crate::code::counter::Weights;
use crate::code::fragment::{CodeExit, Fragment, Incoming};
use crate::code::kept_table::KeptTable;
use crate::code::lookup::{Hash, TableSize};
use crate::code::state_map::StateMapEntry;
use crate::target::layout::Layout;
use crate::target::memory::{Shared, HUGE_BYTES};
use event::Filter;
use huge_pages::HugePages;
use std::sync::Arc;

/// One zone of code.
pub(crate) struct Zone {
    /// The zone's address in the target.
    pub(crate) address: u64,
    /// The zone's offset in the shared file.
    pub(crate) offset: usize,
    pub(crate) hot_bytes: u64,
    pub(crate) cold_bytes: u64,
    pub(crate) hot_used: u64,
    pub(crate) cold_used: u64,
    /// Bytes of the hot part that lie on huge pages.
    pub(crate) hot_huge: u64,
    /// Bytes of the cold part that lie on huge pages.
    pub(crate) cold_huge: u64,
    pub(crate) state_map: KeptTable<StateMapEntry>,
    pub(crate) routines: Routines,
    /// Bytes of the zone's part for routines that are used.
    pub(crate) routine_used: u64,
    /// Addresses of the routines that record references or use pages, found by
    /// [`RecordRoutine::key`](crate::code::buffer::RecordRoutine::key).
    pub(crate) routines_written: AddressMap<u64>,
    /// Addresses of the routines that use an instruction line, with their ways and record code.
    pub(crate) use_routines: Vec<((u32, u8), u64)>,
}

/// Addresses of a zone's shared routines.
#[derive(Clone, Copy, Default)]
pub(crate) struct Routines {
    /// Hands over to the host by [`Routines::trap`] or [`Routines::post`], as the host has chosen
    /// for the thread.
    pub(crate) hand_over: u64,
    /// Stops by a breakpoint, then jumps to the address that the host has stored.
    pub(crate) trap: u64,
    /// Posts the request and waits, then jumps to the address that the host has stored.
    pub(crate) post: u64,
    /// The end of [`Routines::post`].
    pub(crate) post_end: u64,
    /// Hands a full ring over by [`Routines::hand_over`].
    pub(crate) full_ring: u64,
    /// Tries the slots of the lookup table behind the first one.
    pub(crate) probe: u64,
    /// Empties the data filter and returns through the context.
    pub(crate) clear_filter: u64,
}

/// A part of a zone gets its first huge page when it holds more bytes than this, so small programs
/// never pay for one.
const HUGE_WORTHWHILE: u64 = 700 << 10;
/// Bytes at the beginning of a zone's cold part that are reserved for routines.
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

/// A back edge: an exit of a fragment to its own loop header.
struct BackEdge {
    fragment: usize,
    /// Offset of the back edge's displacement in the shared file.
    offset: usize,
    /// The displacement that leads to the back edge's stub and so breaks the loop.
    displacement: i32,
}

/// The code cache of one process image.
pub(crate) struct CodeCache {
    pub(crate) shared: Arc<Shared>,
    pub(crate) layout: Layout,
    pub(crate) zones: Vec<Zone>,
    pub(crate) fragments: Vec<Fragment>,
    pub(crate) map: AddressMap<u32>,
    pub(crate) exits: Vec<CodeExit>,
    pub(crate) incoming: Vec<Incoming>,
    /// Back edges, in the order of their fragments.
    back_edges: Vec<BackEdge>,
    /// For each target without code, the last exit that waits for it; the others follow by
    /// [`CodeExit::next`].
    pub(crate) pending: AddressMap<u32>,
    /// For the fragment that is being placed: the exits that need stubs, and their target
    /// fragments.
    stubbed: Vec<(usize, usize)>,
    /// Code of the stub that is being written; the allocation is reused.
    scratch: Assembler,
    /// What each exit counter's traversal adds to the running sums; empty where calls are not
    /// recorded.
    pub(crate) weights: Vec<Weights>,
    pub(crate) hash: Hash,
    /// The size of the lookup table. The masks of the contexts follow.
    pub(crate) table_size: TableSize,
    huge_pages: HugePages,
    /// Targets entered into the lookup table so far.
    pub(crate) published: usize,
    /// Whether more than one thread has run. From then on no code or slot that a thread may be
    /// reading is overwritten.
    pub(crate) parallel: bool,
}

impl CodeCache {
    /// What a traversal to the exit with this counter adds to the running sums.
    pub(crate) fn weights_of(&self, counter: u32) -> Weights {
        self.weights.get(counter as usize).copied().unwrap_or_default()
    }

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
            weights: Vec::new(),
            hash: Hash::of_host(),
            table_size: TableSize::First,
            huge_pages: HugePages::new(),
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
                state_map: KeptTable::default(),
                routines: Routines::default(),
                routine_used: 0,
                routines_written: AddressMap::default(),
                use_routines: Vec::new(),
            });
            cache.write_routines(zone_index, filter);
        }
        cache
    }

    /// The zone for the translation of code at `pc`: the nearest one within reach that has room. If
    /// there is none, the last zone, which is far from everything.
    pub(crate) fn zone_for(&self, pc: u64) -> usize {
        // Code may be placed anywhere in the zone, so the farthest byte decides.
        let reach = |zone: &Zone| {
            let (start, end) = (zone.address, zone.address + zone.hot_bytes + zone.cold_bytes);
            pc.abs_diff(start).max(pc.abs_diff(end))
        };
        // A near zone lies within a displacement's reach of the program's code, so that operands
        // relative to `rip` can be copied.
        let near = (0..self.zones.len() - 1)
            .filter(|&zone_index| {
                self.zones[zone_index].has_room() && reach(&self.zones[zone_index]) < 0x7f00_0000
            })
            .min_by_key(|&zone_index| reach(&self.zones[zone_index]));
        near.unwrap_or(self.zones.len() - 1)
    }

    /// Makes no address lead to a fragment, as in a cache that was just restored. No thread runs
    /// its code.
    pub(crate) fn forget_all(&mut self) {
        self.empty_table();
        self.map.clear();
        (self.published, self.parallel) = (0, false);
    }

    /// The fragment at `pc`, if there is one.
    pub(crate) fn find(&self, pc: u64) -> Option<usize> {
        self.map.get(&pc).map(|&fragment_index| fragment_index as usize)
    }

    /// Copies finished code behind the used hot and cold parts of its zone, and rounds both up to
    /// 16 bytes.
    fn copy_in(&mut self, zone_index: usize, hot: &[u8], cold: &[u8]) {
        let zone = &mut self.zones[zone_index];
        // The target maps the same memory, so the code is visible at once; no jump leads to it yet.
        self.shared.write(zone.offset + zone.hot_used as usize, hot);
        self.shared.write(zone.cold_offset() + zone.cold_used as usize, cold);
        zone.hot_used = (zone.hot_used + hot.len() as u64 + 15) & !15;
        zone.cold_used = (zone.cold_used + cold.len() as u64 + 15) & !15;
        self.grow(zone_index);
    }

    /// Moves the used parts of the zone onto huge pages, which save misses of the instruction TLB.
    pub(crate) fn grow(&mut self, zone_index: usize) {
        let zone = &mut self.zones[zone_index];
        let (offset, cold_offset) = (zone.offset, zone.cold_offset());
        for (start, used, huge) in
            [(offset, zone.hot_used, &mut zone.hot_huge), (cold_offset, zone.cold_used, &mut zone.cold_huge)]
        {
            // The first huge page waits until the part is large enough. Later ones are requested as
            // soon as the part reaches into them.
            while used > *huge + HUGE_WORTHWHILE || *huge > 0 && used > *huge {
                self.huge_pages.request(&self.shared, start + *huge as usize);
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
            // Entries are in the order of their positions; find the last one at or before `rip`.
            let at = (rip - zone.address) as u32;
            let behind = zone.state_map.partition_point(|entry| entry.at <= at);
            // Before the first entry there is no state to restore.
            let entry = zone.state_map.get(behind.checked_sub(1)?)?;
            return Some((entry, entry.at == at));
        }
        None
    }

    /// The address behind the system call of a fragment whose first instruction is one: there its
    /// thread stands while it is in the call.
    pub(crate) fn in_call(&self, fragment_index: usize) -> Option<u64> {
        let fragment = &self.fragments[fragment_index];
        let zone = &self.zones[fragment.zone as usize];
        let first =
            zone.state_map.partition_point(|entry| zone.address + u64::from(entry.at) < fragment.body);
        let entries = zone.state_map.range(first..zone.state_map.len());
        let of_block = entries.take_while(|entry| entry.block == fragment.first_block);
        let behind = of_block.into_iter().find(|entry| entry.index == 1)?;
        Some(zone.address + u64::from(behind.at))
    }

    /// The fragment of `block`, if the map still leads to it, so that it can be replaced.
    pub(crate) fn replaceable(&self, block: u32) -> Option<usize> {
        // Blocks are numbered in the order of their fragments.
        let fragment_index =
            self.fragments.partition_point(|fragment| fragment.first_block <= block).checked_sub(1)?;
        (self.find(self.fragments[fragment_index].pc) == Some(fragment_index)).then_some(fragment_index)
    }

    /// Whether `rip` lies in a routine that posts a request, where a thread may sleep.
    pub(crate) fn posts(&self, rip: u64) -> bool {
        self.zones.iter().any(|zone| rip >= zone.routines.post && rip < zone.routines.post_end)
    }

    /// Whether `rip` lies in generated code.
    pub(crate) fn contains(&self, rip: u64) -> bool {
        self.zones
            .iter()
            .any(|zone| rip >= zone.address && rip < zone.address + zone.hot_bytes + zone.cold_bytes)
    }
}
