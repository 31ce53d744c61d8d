//! The code cache of one process image: zones, fragments, exits, and how they are linked.
//!
//! A fragment is entered at its head only and left by exits. An exit whose target has no code yet leads through a cold stub to the
//! host; when the target is translated, every exit that waits for it is linked by rewriting one displacement (atomic: it
//! never crosses a line). Table slots are written code first, tag second. Leaves out: eviction; a full zone spills into the far one.

mod routines;

use crate::assemble::Assembler;
use crate::emit::draft::{restore_registers, Bound, Draft};
use crate::emit::lookup::{self, Hash};
use crate::layout::{context, Layout, LOOKUP_BITS, LOOKUP_PROBES};
use crate::memory::{Shared, HUGE_BYTES};
use event::Filter;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

/// A hasher for addresses: one multiplication.
#[derive(Default, Clone)]
pub(crate) struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for &b in bytes {
            self.write_u64(u64::from(b));
        }
    }
    fn write_u64(&mut self, v: u64) {
        self.0 = (self.0 ^ v).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(26);
    }
}

/// A map keyed by addresses.
pub(crate) type AddressMap<V> = HashMap<u64, V, BuildHasherDefault<AddressHasher>>;

/// Exit numbers that are not exits.
pub(crate) const EXIT_LOOKUP: u32 = 0xffff_ffff;
pub(crate) const EXIT_SYSTEM_CALL: u32 = 0xffff_fffe;
pub(crate) const EXIT_RING: u32 = 0xffff_fffd;

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
    pub(crate) bounds: Vec<Bound>,
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
/// Targets in the lookup table from which on it deserves huge pages, and what a program's first thread counts.
const HUGE_TARGETS: usize = 4096;

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

/// A translated superblock.
pub(crate) struct Fragment {
    pub(crate) pc: u64,
    pub(crate) zone: u32,
    /// Address of the first instruction of its code.
    pub(crate) body: u64,
    /// Address of the entry that restores the lookup's registers.
    pub(crate) entry: Option<u64>,
    pub(crate) first_block: u32,
    pub(crate) blocks: u32,
    /// First counter: `blocks` counters of taken side exits, then the last block's.
    pub(crate) counters: u32,
    /// Nothing at its head needs the status flags.
    pub(crate) flags_dead: bool,
    /// Registers (and flags) that whoever goes there need not bring; none where the code may change.
    pub(crate) dead: u16,
    /// How often it was tuned before it became this.
    pub(crate) tunings: u8,
    /// The last place that leads to its body; the others follow by [`Incoming::next`].
    pub(crate) incoming: u32,
}

/// A way of a fragment back to its own head.
struct LoopEdge {
    fragment: usize,
    /// Byte in the shared file of its displacement, and what that is where it leads to its stub.
    offset: usize,
    displacement: i32,
}

/// A way out of a fragment that may be linked.
#[derive(Clone, Copy)]
pub(crate) struct Exit {
    pub(crate) target: u64,
    pub(crate) zone: u32,
    /// Byte in the zone of the displacement to rewrite (stale: the fragment).
    pub(crate) patch: u32,
    /// Counter to increment when taken (side exits).
    pub(crate) counter: Option<u32>,
    /// Registers to restore when taken.
    pub(crate) restore: u16,
    /// The exit that waited for the same target before this one (0: none).
    pub(crate) next: u32,
    /// Not an exit but a check of generated code that failed: translate again.
    pub(crate) stale: bool,
}

/// A place that leads to a fragment's body.
#[derive(Clone, Copy)]
pub(crate) struct Incoming {
    /// Where it is in the shared file.
    pub(crate) offset: usize,
    /// The address behind a displacement; 0 where the place holds the body's address.
    pub(crate) from: u64,
    /// The one noted before it (0: none).
    pub(crate) next: u32,
}

/// Where in a stub the place is that leads on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// A displacement.
    Near(usize),
    /// An address, aligned.
    Far(usize),
}

/// Zones, fragments, exits.
pub(crate) struct CodeCache {
    pub(crate) shared: Arc<Shared>,
    pub(crate) layout: Layout,
    pub(crate) zones: Vec<Zone>,
    pub(crate) fragments: Vec<Fragment>,
    pub(crate) map: AddressMap<u32>,
    pub(crate) exits: Vec<Exit>,
    pub(crate) incoming: Vec<Incoming>,
    /// Ways of fragments back to their own heads, by fragment.
    loops: Vec<LoopEdge>,
    /// For each target without code, the last exit that waits for it; the others follow by [`Exit::next`].
    pub(crate) pending: AddressMap<u32>,
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
            exits: vec![Exit {
                target: 0,
                zone: 0,
                patch: 0,
                counter: None,
                restore: 0,
                next: 0,
                stale: false,
            }],
            incoming: vec![Incoming { offset: 0, from: 0, next: 0 }],
            loops: Vec::new(),
            pending: AddressMap::default(),
            scratch: Assembler::default(),
            hash: Hash::of_host(),
            published: 0,
            parallel: false,
            shared,
            layout,
        };
        for (z, place) in cache.layout.zones.clone().iter().enumerate() {
            let offset = cache.layout.zone_offset(z) as usize;
            cache.zones.push(Zone {
                address: place.address,
                offset,
                hot_bytes: place.hot_bytes,
                cold_bytes: place.cold_bytes,
                hot_used: 0,
                cold_used: 0,
                hot_huge: 0,
                cold_huge: 0,
                bounds: Vec::new(),
                routines: Routines::default(),
                routine_used: 0,
                routines_written: AddressMap::default(),
                use_routines: Vec::new(),
            });
            cache.write_routines(z, filter);
        }
        cache
    }

    /// The zone for code of `pc`: the one within reach that is nearest, the last one where none is.
    pub(crate) fn zone_for(&self, pc: u64) -> usize {
        let reach = |z: &Zone| {
            let (start, end) = (z.address, z.address + z.hot_bytes + z.cold_bytes);
            pc.abs_diff(start).max(pc.abs_diff(end))
        };
        let near = (0..self.zones.len() - 1)
            .filter(|&z| self.zones[z].has_room() && reach(&self.zones[z]) < 0x7f00_0000)
            .min_by_key(|&z| reach(&self.zones[z]));
        near.unwrap_or(self.zones.len() - 1)
    }

    /// The fragment at `pc`, if there is one.
    pub(crate) fn find(&self, pc: u64) -> Option<usize> {
        self.map.get(&pc).map(|&f| f as usize)
    }

    /// Copies finished code into its zone; both parts are rounded up to 16 bytes.
    pub(crate) fn place(&mut self, z: usize, hot: &[u8], cold: &[u8]) {
        let zone = &mut self.zones[z];
        self.shared.write(zone.offset + zone.hot_used as usize, hot);
        self.shared.write(zone.cold_offset() + zone.cold_used as usize, cold);
        zone.hot_used = (zone.hot_used + hot.len() as u64 + 15) & !15;
        zone.cold_used = (zone.cold_used + cold.len() as u64 + 15) & !15;
        self.grow(z);
    }

    /// Puts the part of zone `z` that is in use on huge pages.
    pub(crate) fn grow(&mut self, z: usize) {
        let zone = &mut self.zones[z];
        let (offset, cold_offset) = (zone.offset, zone.cold_offset());
        for (start, used, huge) in
            [(offset, zone.hot_used, &mut zone.hot_huge), (cold_offset, zone.cold_used, &mut zone.cold_huge)]
        {
            while used > *huge + HUGE_WORTHWHILE || *huge > 0 && used > *huge {
                self.shared.collapse(start + *huge as usize);
                *huge += HUGE_BYTES as u64;
            }
        }
    }

    /// Notes the ways back of the fragment that is placed next, in zone `z`.
    pub(crate) fn enter_loops(&mut self, z: usize, draft: &Draft) {
        let (fragment, start) =
            (self.fragments.len(), self.zones[z].offset + self.zones[z].hot_used as usize);
        self.loops.extend(draft.edges.iter().map(|&(at, stub)| LoopEdge {
            fragment,
            offset: start + at,
            displacement: stub as i32 - at as i32 - 4,
        }));
    }

    /// Fragments `from` up to `to` do not turn any more: whoever comes to the end of one goes where everybody goes who wants to its head.
    pub(crate) fn break_loops(&self, from: usize, to: usize) {
        let start = self.loops.partition_point(|edge| edge.fragment < from);
        let broken = self.loops[start..].iter().take_while(|edge| edge.fragment < to);
        broken.for_each(|edge| self.shared.patch32(edge.offset, edge.displacement));
    }

    /// Links every exit that waits for fragment `f`.
    pub(crate) fn link_pending(&mut self, f: usize) {
        let mut waiting = self.pending.remove(&self.fragments[f].pc).unwrap_or(0);
        while waiting != 0 {
            let next = self.exits[waiting as usize].next;
            self.link(waiting, f);
            waiting = next;
        }
    }

    fn link(&mut self, number: u32, f: usize) {
        let exit = self.exits[number as usize];
        let z = exit.zone as usize;
        let body = self.fragments[f].body;
        let at = self.zones[z].address + u64::from(exit.patch);
        let goal = if exit.counter.is_none() && exit.restore == 0 && near(at + 4, body) {
            self.arrives(f, self.zones[z].offset + exit.patch as usize, at + 4);
            body
        } else {
            let mut code = std::mem::take(&mut self.scratch);
            code.bytes.clear();
            let here = self.zones[z].address + self.zones[z].hot_used;
            let at = self.stub(&mut code, here, &exit, f);
            self.arrives_by_stub(f, z, here, at);
            self.place(z, &code.bytes, &[]);
            self.scratch = code;
            here
        };
        let displacement = goal.wrapping_sub(at + 4) as i64;
        self.shared.patch32(self.zones[z].offset + exit.patch as usize, displacement as i32);
    }

    /// Notes a displacement that leads to fragment `f`.
    pub(crate) fn arrives(&mut self, f: usize, offset: usize, from: u64) {
        let next = std::mem::replace(&mut self.fragments[f].incoming, self.incoming.len() as u32);
        self.incoming.push(Incoming { offset, from, next });
    }

    /// The same for a stub that is placed at `here`.
    pub(crate) fn arrives_by_stub(&mut self, f: usize, z: usize, here: u64, way: Way) {
        let offset = |at| self.zones[z].offset + (here - self.zones[z].address) as usize + at;
        match way {
            Way::Near(at) => self.arrives(f, offset(at), here + at as u64 + 4),
            Way::Far(at) => self.arrives(f, offset(at), 0),
        }
    }

    /// The fragment that `block` belongs to, if it is the one in use and can be replaced.
    pub(crate) fn replaceable(&self, block: u32) -> Option<usize> {
        let f = self.fragments.partition_point(|f| f.first_block <= block).checked_sub(1)?;
        (self.find(self.fragments[f].pc) == Some(f)).then_some(f)
    }

    /// Everything that leads to fragment `old` leads to `new` from now on, but for what `new` is too far from. Each place changes at once:
    /// threads may run.
    pub(crate) fn redirect(&mut self, old: usize, new: usize) {
        self.break_loops(old, old + 1);
        let goal = self.fragments[new].body;
        let mut n = std::mem::take(&mut self.fragments[old].incoming);
        while n != 0 {
            let next = self.incoming[n as usize].next;
            let owner = if self.lead(n, goal) { new } else { old };
            let rest = std::mem::replace(&mut self.fragments[owner].incoming, n);
            self.incoming[n as usize].next = rest;
            n = next;
        }
        if let Some(entry) = self.fragments[old].entry.take() {
            self.fragments[new].entry.get_or_insert(entry);
        }
        self.map.insert(self.fragments[new].pc, new as u32);
    }

    /// Makes a place lead to `goal`, if it can.
    fn lead(&self, incoming: u32, goal: u64) -> bool {
        let Incoming { offset, from, .. } = self.incoming[incoming as usize];
        if from == 0 {
            self.shared.write64(offset, goal);
        } else if near(from, goal) {
            self.shared.patch32(offset, goal.wrapping_sub(from) as i32);
        } else {
            return false;
        }
        true
    }

    /// The linked form of an exit: restore, count, jump. `here` is the final address of the code's end so far.
    pub(crate) fn stub(&self, code: &mut Assembler, here: u64, exit: &Exit, f: usize) -> Way {
        let start = code.len();
        restore_registers(code, exit.restore);
        if let Some(counter) = exit.counter {
            count(code, counter, self.fragments[f].flags_dead);
        }
        let body = self.fragments[f].body;
        code.align_patch(here - start as u64, 1);
        let from = here + (code.len() - start) as u64 + 5;
        if near(from, body) {
            code.raw(&[0xe9]);
            code.imm32(body.wrapping_sub(from) as u32);
            return Way::Near(code.len() - 4 - start);
        }
        const JUMP: [u8; 6] = [0xff, 0x25, 0, 0, 0, 0]; // jmp [rip]
        while !(here + (code.len() - start + JUMP.len()) as u64).is_multiple_of(8) {
            code.raw(&[0x90]);
        }
        code.raw(&JUMP);
        code.raw(&body.to_le_bytes());
        Way::Far(code.len() - 8 - start)
    }

    /// The address by which lookups enter fragment `f`; makes an entry where there is none.
    pub(crate) fn entry(&mut self, f: usize) -> u64 {
        if let Some(entry) = self.fragments[f].entry {
            return entry;
        }
        let z = self.fragments[f].zone as usize;
        let here = self.zones[z].address + self.zones[z].hot_used;
        let mut code = Assembler::default();
        lookup::entry(&mut code);
        code.align_patch(here, 1);
        let from = here + code.len() as u64 + 5;
        code.raw(&[0xe9]);
        code.imm32(self.fragments[f].body.wrapping_sub(from) as u32);
        self.arrives_by_stub(f, z, here, Way::Near(code.len() - 4));
        self.place(z, &code.bytes, &[]);
        self.fragments[f].entry = Some(here);
        here
    }

    /// Puts `pc` into the lookup table, where one of its slots is free.
    pub(crate) fn publish(&mut self, pc: u64, f: usize) {
        self.published += 1;
        if self.published == HUGE_TARGETS {
            for part in 0..(16usize << LOOKUP_BITS) / HUGE_BYTES {
                self.shared.collapse(self.layout.low_offset() as usize + part * HUGE_BYTES);
            }
            for at in context::OFTEN_USED {
                self.shared.collapse(self.layout.contexts_offset() as usize + at as usize);
            }
        }
        let entry = self.entry(f);
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
        // All slots are taken: the newest takes the last one, unless another thread may stand between its tag and its code.
        if self.parallel {
            return;
        }
        let at = base + (first + u64::from(LOOKUP_PROBES) - 1) as usize * 16;
        self.shared.write64(at, 0);
        self.shared.write64(at + 8, entry);
        self.shared.write64(at, pc.wrapping_neg());
    }

    /// Takes `pc` out of the lookup table.
    fn unpublish(&mut self, pc: u64) {
        let base = self.layout.low_offset() as usize;
        for probe in 0..u64::from(LOOKUP_PROBES) {
            let at = base + (self.hash.slot(pc) + probe) as usize * 16;
            if self.shared.read64(at) == pc.wrapping_neg() {
                self.shared.write64(at, 0);
            }
        }
    }

    /// Forgets fragment `f`: nothing new leads to it. Where threads run, its slot in the lookup table stays: another one may stand between reading
    /// its tag and its code. What is behind it checks itself, or leads to the host.
    pub(crate) fn forget(&mut self, f: usize) {
        let pc = self.fragments[f].pc;
        if self.map.get(&pc) == Some(&(f as u32)) {
            self.map.remove(&pc);
            if !self.parallel {
                self.unpublish(pc);
            }
        }
    }

    /// Forgets fragment `f` and makes all that leads to it lead to the host, who translates again.
    pub(crate) fn retire(&mut self, f: usize) {
        self.forget(f);
        self.break_loops(f, f + 1);
        let pc = self.fragments[f].pc;
        let exit = self.exits.len() as u32;
        let patch = f as u32;
        self.exits.push(Exit { target: pc, zone: 0, patch, counter: None, restore: 0, next: 0, stale: true });
        let z = self.fragments[f].zone as usize;
        let mut code = Assembler::default();
        lookup::leave(&mut code, exit);
        let stub = self.zones[z].cold_address() + self.zones[z].cold_used;
        self.place(z, &[], &code.bytes);
        if !self.parallel {
            return self.jump_from_head(f, stub);
        }
        let mut n = self.fragments[f].incoming;
        while n != 0 {
            self.lead(n, stub);
            n = self.incoming[n as usize].next;
        }
    }

    /// Rewrites the head of fragment `f`, which is no longer valid, into a jump. No thread may be about to run it.
    pub(crate) fn jump_from_head(&mut self, f: usize, to: u64) {
        let body = self.fragments[f].body;
        let mut jump = Vec::new();
        if near(body + 5, to) {
            jump.push(0xe9);
            jump.extend_from_slice(&(to.wrapping_sub(body + 5) as u32).to_le_bytes());
        } else {
            jump.extend_from_slice(&[0xff, 0x25, 0, 0, 0, 0]);
            jump.extend_from_slice(&to.to_le_bytes());
        }
        let zone = &self.zones[self.fragments[f].zone as usize];
        self.shared.write(zone.offset + (body - zone.address) as usize, &jump);
    }

    /// The bound at or before `rip`, and whether `rip` is exactly where its instruction's translation begins.
    pub(crate) fn bound(&self, rip: u64) -> Option<(Bound, bool)> {
        for zone in &self.zones {
            if rip < zone.address || rip >= zone.address + zone.hot_used {
                continue;
            }
            let at = (rip - zone.address) as u32;
            let k = zone.bounds.partition_point(|b| b.at <= at);
            return (k > 0).then(|| (zone.bounds[k - 1], zone.bounds[k - 1].at == at));
        }
        None
    }

    /// What does not hold together, in debug builds when an image ends: every fragment that can be reached is what it is found as, lies in the used part of
    /// its zone, and every place that leads to it does so; bounds are in order; no exit waits for what is there.
    pub(crate) fn inconsistency(&self) -> Option<String> {
        for (&pc, &f) in &self.map {
            let Some(fragment) = self.fragments.get(f as usize) else {
                return Some(format!("{pc:#x} is no fragment"));
            };
            let zone = &self.zones[fragment.zone as usize];
            let inside = |at: u64| at >= zone.address && at < zone.address + zone.hot_used;
            if fragment.pc != pc || !inside(fragment.body) || !fragment.entry.is_none_or(inside) {
                return Some(format!("fragment {f} is not that of {pc:#x}"));
            }
            if self.pending.contains_key(&pc) {
                return Some(format!("exits wait for {pc:#x}, which is there"));
            }
            let mut n = fragment.incoming;
            while n != 0 {
                let Incoming { offset, from, next } = self.incoming[n as usize];
                let leads_to = match from {
                    0 => self.shared.read64(offset),
                    _ => from.wrapping_add(self.shared.displacement(offset)),
                };
                if leads_to != fragment.body {
                    return Some(format!("a place that leads to {leads_to:#x} is noted for {pc:#x}"));
                }
                n = next;
            }
        }
        let disordered = self.zones.iter().find(|zone| !zone.bounds.is_sorted_by_key(|bound| bound.at));
        disordered.map(|zone| format!("bounds of the zone at {:#x} are out of order", zone.address))
    }

    /// Whether `rip` lies in generated code.
    pub(crate) fn contains(&self, rip: u64) -> bool {
        self.zones.iter().any(|z| rip >= z.address && rip < z.address + z.hot_bytes + z.cold_bytes)
    }
}

/// Whether a 32-bit displacement leads from `from` to `to`.
pub(crate) fn near(from: u64, to: u64) -> bool {
    i32::try_from(to.wrapping_sub(from) as i64).is_ok()
}

/// Context offset of counter `number`.
pub(crate) fn count_address(number: u32) -> u32 {
    context::COUNTERS + 8 * number
}

/// Increments counter `number`; without free flags by way of rax.
pub(crate) fn count(code: &mut Assembler, number: u32, flags_free: bool) {
    let at = count_address(number);
    if flags_free {
        return code.increment(at);
    }
    code.store(0, context::TEMP);
    count_in_rax(code, number);
    code.load(0, context::TEMP);
}

/// Increments counter `number` by way of rax, whose value is saved elsewhere.
pub(crate) fn count_in_rax(code: &mut Assembler, number: u32) {
    let at = count_address(number);
    code.load(0, at);
    code.advance(0, 1);
    code.store(0, at);
}
