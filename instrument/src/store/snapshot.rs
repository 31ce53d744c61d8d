//! An image's code cache as bytes: how it is written when an image ends, and how it is put into an
//! image that begins.
//!
//! # The problem
//!
//! Generated code names blocks, sites, counters, lines and exits by number, and tables by address.
//! A file that is read back must restore all of these exactly, and must not be believed before it
//! was checked: a wrong index in it could make the host write outside its tables.
//!
//! # The idea
//!
//! Everything that the code names keeps its number, so no byte of the code changes. The file is a
//! sequence of tables followed by the bytes of each zone, and [`Snapshot::decode`] compares every
//! number with the size of the table that it counts. A file with other bytes than ours is refused,
//! or it restores something that cannot lead the host astray.
//!
//! ```text
//!    modules    kept ones, then one for everything else      numbered anew, without gaps
//!    by module  pages with hashes; fragments that can be used again
//!    strays     direct branches from module to module        they tie modules into groups
//!    program    blocks, instructions, sites, counters, lines
//!    cache      fragments, exits, incoming places, pending exits
//!    zones      routines by key, state map, then code: hot, routines, cold
//! ```
//!
//! # Invariants
//!
//! - Chains of exits lead backwards, and each incoming place is in one list only, so every walk
//!   ends.
//! - Each field that the host may rewrite lies in code, and within a line or aligned.
//! - A fragment that can be used again lies, with all its blocks, in its module and in pages whose
//!   hashes are compared before the fragment is used.

use super::form::{Reader, Writer};
use super::parts::{groups, overlap, pages_of, Parts};
use crate::cache::{CodeCache, Zone, ROUTINE_BYTES};
use crate::code::fragment::{CodeExit, Fragment, Incoming};
use crate::code::state_map::StateMapEntry;
use crate::profile::{Block, Instruction, Module, Site};
use crate::target::layout::{context, SITES_MAX};
use crate::target::mappings::FileNumber;
use crate::target::modules::Maps;
use crate::translate::unverified::{PageHash, UnverifiedModules};
use crate::translate::Translator;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// One zone's code and what the host knows of it.
struct ZonePart<'a> {
    routine_used: u64,
    routines_written: Vec<(u64, u64)>,
    use_routines: Vec<((u32, u8), u64)>,
    state_map: Vec<StateMapEntry>,
    hot: &'a [u8],
    routines: &'a [u8],
    cold: &'a [u8],
}

/// A file's content, decoded and checked; code is borrowed from the file's bytes.
pub(crate) struct Snapshot<'a> {
    modules: Vec<(Module, FileNumber)>,
    pages: Vec<Vec<PageHash>>,
    live: Vec<Vec<u32>>,
    strays: Vec<(u32, u64)>,
    blocks: Vec<Block>,
    instructions: Vec<Instruction>,
    sites: Vec<Site>,
    counters: u32,
    lines: [Vec<(u64, u32)>; 4],
    fragments: Vec<Fragment>,
    exits: Vec<CodeExit>,
    incoming: Vec<Incoming>,
    pending: Vec<(u64, u32)>,
    zones: Vec<ZonePart<'a>>,
}

/// The code cache of an image that has ended, of which these parts can be used again.
pub(crate) fn encode(translator: &Translator, maps: &Maps, parts: &Parts) -> Vec<u8> {
    let cache = &translator.cache;
    let mut w = Writer::default();
    let numbers = ModuleNumbers::of(parts);
    // Modules that are kept, then one for all others, which claims no address.
    let modules: Vec<_> = numbers.kept.iter().map(|&n| (&maps.modules[n], maps.files[n])).collect();
    let rest = Module { path: GIVEN_UP.into(), ..Module::default() };
    w.list(&[modules, vec![(&rest, FileNumber::default())]].concat(), |w, (module, file)| {
        w.blob(module.path.as_os_str().as_bytes());
        let numbers = [module.start, module.end, module.file_offset, file.device, file.inode];
        numbers.into_iter().for_each(|n| w.u64(n));
    });
    let (no_pages, no_live) = (Vec::new(), Vec::new());
    // By module: the pages that must still read the same, and the fragments that may then be used.
    let pages = numbers.kept.iter().map(|&n| &parts.pages[n]).chain([&no_pages]);
    w.list(&pages.collect::<Vec<_>>(), |w, pages| {
        w.list(pages, |w, &(page, hash)| [page, hash].into_iter().for_each(|n| w.u64(n)))
    });
    let live = numbers.kept.iter().map(|&n| &parts.live[n]).chain([&no_live]);
    w.list(&live.collect::<Vec<_>>(), |w, live| w.list(live, |w, &f| w.u32(f)));
    // Branches between modules, which tie them into groups; in order, so that the same image gives
    // the same bytes.
    let strays = translator.strays.iter().map(|&(module, target)| (target, numbers.of_module(module)));
    let mut strays: Vec<_> = strays.filter(|stray| stray.1 != numbers.rest()).collect();
    strays.sort_unstable();
    w.list(&strays, put_pair);
    // The program as it was translated: numbers of blocks and sites are in the code.
    w.list(&translator.blocks, |w, block| {
        w.u64(block.ip);
        let module = numbers.of_module(block.module);
        [block.len, module, block.first, block.count].into_iter().for_each(|n| w.u32(n));
    });
    w.list(&translator.instructions, |w, i| {
        w.u16(i.offset);
        [i.len, i.loads, i.stores].into_iter().for_each(|n| w.u8(n));
        w.u16(i.code);
    });
    w.list(&translator.sites, |w, site| {
        w.u64(site.ip);
        [site.block, site.index].into_iter().for_each(|n| w.u32(n));
    });
    w.u32(translator.counters);
    for numbers in translator.lines.numbered() {
        w.list(&numbers, put_pair);
    }
    // The code cache's own tables, then code.
    w.list(&cache.fragments, put_fragment);
    w.list(&cache.exits, put_exit);
    w.list(&cache.incoming, |w, incoming| {
        w.u64(incoming.offset as u64);
        w.u64(incoming.from);
        w.u32(incoming.next);
    });
    let pending: Vec<(u64, u32)> = cache.pending.iter().map(|(&pc, &exit)| (pc, exit)).collect();
    w.list(&pending, put_pair);
    w.list(&cache.zones, |w, zone| put_zone(w, zone, cache));
    w.bytes
}

/// The module of all blocks that cannot be used again.
const GIVEN_UP: &str = "[given up]";

/// Modules by their numbers in the file: those that can be used again in order, then one for all
/// others. It claims no address, so whatever is mapped where they were is another module.
struct ModuleNumbers {
    kept: Vec<usize>,
    new: Vec<u32>,
}

impl ModuleNumbers {
    fn of(parts: &Parts) -> ModuleNumbers {
        let kept: Vec<usize> = (0..parts.live.len()).filter(|&n| !parts.live[n].is_empty()).collect();
        let mut new = vec![kept.len() as u32; parts.live.len()];
        kept.iter().zip(0..).for_each(|(&old, number)| new[old] = number);
        ModuleNumbers { kept, new }
    }

    fn of_module(&self, old: u32) -> u32 {
        self.new[old as usize]
    }

    fn rest(&self) -> u32 {
        self.kept.len() as u32
    }
}

fn put_pair(w: &mut Writer, &(long, short): &(u64, u32)) {
    w.u64(long);
    w.u32(short);
}

fn put_fragment(w: &mut Writer, fragment: &Fragment) {
    [fragment.pc, fragment.body, fragment.entry.unwrap_or(0)].into_iter().for_each(|n| w.u64(n));
    [fragment.zone, fragment.first_block, fragment.blocks, fragment.counters, fragment.incoming]
        .into_iter()
        .for_each(|n| w.u32(n));
    w.u16(fragment.dead);
    [u8::from(fragment.flags_dead), fragment.tunings].into_iter().for_each(|n| w.u8(n));
}

fn put_exit(w: &mut Writer, exit: &CodeExit) {
    w.u64(exit.target);
    [exit.zone, exit.patch, exit.counter.unwrap_or(u32::MAX), exit.next].into_iter().for_each(|n| w.u32(n));
    w.u16(exit.restore);
    w.u8(u8::from(exit.stale));
}

fn put_entry(w: &mut Writer, entry: &StateMapEntry) {
    [entry.at, entry.block].into_iter().for_each(|n| w.u32(n));
    [entry.spilled, entry.executing].into_iter().for_each(|n| w.u16(n));
    let flags =
        u8::from(entry.counted) | u8::from(entry.counted_executing) << 1 | u8::from(entry.retreat) << 2;
    [entry.index, flags, entry.pending, entry.pending_executing].into_iter().for_each(|n| w.u8(n));
}

fn put_zone(w: &mut Writer, zone: &Zone, cache: &CodeCache) {
    w.u64(zone.routine_used);
    let routines: Vec<(u64, u64)> = zone.routines_written.iter().map(|(&key, &at)| (key, at)).collect();
    w.list(&routines, |w, &(key, at)| [key, at].into_iter().for_each(|n| w.u64(n)));
    w.list(&zone.use_routines, |w, &((ways, code), at)| {
        w.u32(ways);
        w.u8(code);
        w.u64(at);
    });
    w.list(&zone.state_map, put_entry);
    // Hot code; routines, which lie at the beginning of the cold part; cold code.
    w.blob(&cache.shared.read(zone.offset, zone.hot_used as usize));
    w.blob(&cache.shared.read(zone.cold_offset(), zone.routine_used as usize));
    let cold = (zone.cold_used - ROUTINE_BYTES) as usize;
    w.blob(&cache.shared.read(zone.cold_offset() + ROUTINE_BYTES as usize, cold));
}

impl<'a> Snapshot<'a> {
    /// Reads a snapshot for a code cache of the same layout; `None` where anything does not fit.
    pub(crate) fn decode(bytes: &'a [u8], cache: &CodeCache) -> Option<Snapshot<'a>> {
        let r = &mut Reader::new(bytes);
        // In the order in which they were written.
        let snapshot = Snapshot {
            modules: r.list(48, get_module)?,
            pages: r.list(8, |r| r.rows::<16, _>(|r| Some((r.u64()?, r.u64()?))))?,
            live: r.list(8, |r| r.rows::<4, _>(Reader::u32))?,
            strays: pairs(r)?.into_iter().map(|(target, module)| (module, target)).collect(),
            blocks: r.rows::<24, _>(get_block)?,
            instructions: r.rows::<7, _>(get_instruction)?,
            sites: r.rows::<16, _>(|r| Some(Site { ip: r.u64()?, block: r.u32()?, index: r.u32()? }))?,
            counters: r.u32()?,
            lines: [pairs(r)?, pairs(r)?, pairs(r)?, pairs(r)?],
            fragments: r.rows::<48, _>(get_fragment)?,
            exits: r.rows::<27, _>(get_exit)?,
            incoming: r.rows::<20, _>(|r| {
                Some(Incoming { offset: r.u64()? as usize, from: r.u64()?, next: r.u32()? })
            })?,
            pending: pairs(r)?,
            zones: r.list(40, get_zone)?,
        };
        (r.is_empty() && snapshot.fits(cache)).then_some(snapshot)
    }

    fn fits(&self, cache: &CodeCache) -> bool {
        self.zones_fit(cache)
            && self.program_fits()
            && self.modules_fit()
            && self.fragments.iter().all(|f| self.fragment_fits(f, cache))
            && self.fragments.is_sorted_by_key(|f| f.first_block)
            && self.exits_fit(cache)
            && self.incoming_fit(cache)
            && self.live_fit()
    }

    /// No two modules hold the same address.
    fn modules_fit(&self) -> bool {
        let modules: Vec<Module> = self.modules.iter().map(|(module, _)| module.clone()).collect();
        let fits = |m: &Module| m.start <= m.end && m.end < 1 << 63;
        // No module lies in the kernel's half of the address space.
        modules.iter().all(fits)
            && overlap(&modules, 0..modules.len()).is_empty()
            && self.strays.iter().all(|&(module, _)| (module as usize) < modules.len())
    }

    /// Every block of a fragment that can be used again lies in the fragment's module, and in pages
    /// that are compared before it is.
    fn live_fit(&self) -> bool {
        let fits = |(n, live): (usize, &Vec<u32>)| {
            let (Module { start, end, .. }, pages) = (&self.modules[n].0, &self.pages[n]);
            // Blocks of a fragment mostly lie in one page, which was looked up just before.
            // No page begins at 1, so the first block is looked up.
            let mut last = 1;
            let mut known = |page: u64| {
                let same = page == last;
                last = page;
                same || pages.binary_search_by_key(&page, |known| known.0).is_ok()
            };
            let mut block_fits = |block: &Block| {
                block.module as usize == n
                    && (*start..*end).contains(&block.ip)
                    && pages_of(block).all(&mut known)
            };
            live.iter().all(|&f| {
                let fragment = &self.fragments[f as usize];
                let blocks = &self.blocks[fragment.first_block as usize..][..fragment.blocks as usize];
                fragment.pc == blocks[0].ip && blocks.iter().all(&mut block_fits)
            })
        };
        self.live.iter().enumerate().all(fits)
    }

    fn zones_fit(&self, cache: &CodeCache) -> bool {
        let fits = |(part, zone): (&ZonePart, &Zone)| {
            let inside = |at: u64| at >= zone.cold_address() && at < zone.cold_address() + ROUTINE_BYTES;
            // The code must leave room for more, and every routine that is found by its key must
            // lie in the part of the zone for routines.
            (part.hot.len() as u64) < zone.hot_bytes
                && part.cold.len() as u64 + ROUTINE_BYTES < zone.cold_bytes
                && part.routine_used == part.routines.len() as u64
                && part.routine_used <= ROUTINE_BYTES
                && part.routine_used >= zone.routine_used
                && part.routines_written.iter().all(|routine| inside(routine.1))
                && part.use_routines.iter().all(|routine| inside(routine.1))
                && part.state_map.iter().all(|entry| (entry.block as usize) < self.blocks.len())
                && part.state_map.is_sorted_by_key(|entry| entry.at)
        };
        self.zones.len() == cache.zones.len() && self.zones.iter().zip(&cache.zones).all(fits)
    }

    fn program_fits(&self) -> bool {
        let (blocks, modules) = (self.blocks.len(), self.modules.len());
        let block_fits = |b: &Block| {
            (b.module as usize) < modules && b.first as usize + b.count as usize <= self.instructions.len()
        };
        // At most half of each numbering may be used up, because the run goes on numbering.
        let room = [self.sites.len(), blocks].into_iter().all(|n| n < SITES_MAX / 2)
            && (self.counters as usize) < context::COUNTERS_MAX / 2
            && self.lines.iter().all(|list| list.len() < context::NUMBERS_MAX / 4);
        // A fragment belongs to the module of its first block, and only that module may list it.
        let live_fits = |(module, live): (usize, &Vec<u32>)| {
            live.iter().all(|&f| {
                let fragment = self.fragments.get(f as usize);
                let block = fragment.and_then(|fragment| self.blocks.get(fragment.first_block as usize));
                block.is_some_and(|block| block.module as usize == module)
            })
        };
        room && self.blocks.iter().all(block_fits)
            && self.sites.iter().all(|site| (site.block as usize) < blocks)
            && self.sites.is_sorted_by_key(|site| (site.block, site.index))
            && self.pages.len() == modules
            && self.pages.iter().all(|pages| {
                pages.is_sorted() && pages.iter().all(|page| page.0.is_multiple_of(4096) && page.0 < 1 << 47)
            })
            && self.live.len() == modules
            && self.live.iter().enumerate().all(live_fits)
            && self.fragments.first().is_none_or(|f| f.first_block == 0)
            && (self.fragments.is_empty() == self.blocks.is_empty())
    }

    fn fragment_fits(&self, fragment: &Fragment, cache: &CodeCache) -> bool {
        let Some((zone, part)) =
            cache.zones.get(fragment.zone as usize).zip(self.zones.get(fragment.zone as usize))
        else {
            return false;
        };
        let inside = |at: u64| at >= zone.address && at < zone.address + part.hot.len() as u64;
        // Both entries lie in the zone's code, and every counter of the fragment exists.
        inside(fragment.body)
            && fragment.entry.is_none_or(inside)
            && fragment.blocks > 0
            && u64::from(fragment.first_block) + u64::from(fragment.blocks) <= self.blocks.len() as u64
            && u64::from(fragment.counters) + 2 * u64::from(fragment.blocks) < context::COUNTERS_MAX as u64
            && u64::from(fragment.counters) + u64::from(fragment.blocks) < u64::from(self.counters)
            && (fragment.incoming as usize) < self.incoming.len()
    }

    fn exits_fit(&self, cache: &CodeCache) -> bool {
        let fits = |(n, e): (usize, &CodeExit)| {
            let zone = cache.zones.get(e.zone as usize);
            let patch = e.patch as usize;
            // A field that linking rewrites lies in code and within a line. A stale exit names a
            // fragment that exists.
            let place = match e.stale {
                true => patch < self.fragments.len(),
                false => zone.is_some_and(|zone| in_code(zone.offset + patch, cache)) && patch % 64 <= 60,
            };
            // Chains lead backwards, so they end.
            place
                && ((e.next as usize) < n || e.next == 0)
                && e.counter.is_none_or(|counter| counter < self.counters)
        };
        !self.exits.is_empty()
            && self.exits.iter().enumerate().all(fits)
            && self.pending.iter().all(|&(_, exit)| (exit as usize) < self.exits.len())
    }

    /// Each place stands in one list only, so that every list ends.
    fn incoming_fit(&self, cache: &CodeCache) -> bool {
        let mut seen = vec![false; self.incoming.len()];
        let heads = self.fragments.iter().map(|f| f.incoming);
        // Heads of lists and links within lists: if no element is named twice, no walk meets an
        // element twice.
        let once = heads
            .chain(self.incoming.iter().map(|i| i.next))
            .all(|n| n == 0 || seen.get_mut(n as usize).is_some_and(|seen| !std::mem::replace(seen, true)));
        let fits = |i: &Incoming| {
            in_code(i.offset, cache)
                && if i.from == 0 { i.offset.is_multiple_of(8) } else { i.offset % 64 <= 60 }
        };
        once && !self.incoming.is_empty() && self.incoming[1..].iter().all(fits)
    }

    /// Puts everything into an image that has translated nothing yet.
    pub(crate) fn restore(self, translator: &mut Translator, maps: &mut Maps) {
        (maps.modules, maps.files) = self.modules.into_iter().unzip();
        let fragments = self.fragments.len();
        // Every fragment sleeps until its group of modules was verified.
        let groups = groups(&maps.modules, self.strays.iter().copied(), |_| true);
        translator.unverified = UnverifiedModules::new(groups, self.pages, self.live, fragments);
        translator.strays.extend(self.strays);
        (translator.blocks, translator.instructions, translator.sites) =
            (self.blocks, self.instructions, self.sites);
        // This run gives out the numbers behind those of the file.
        translator.counters = self.counters;
        translator.renumber(&self.lines);
        let cache = &mut translator.cache;
        (cache.fragments, cache.exits, cache.incoming) = (self.fragments, self.exits, self.incoming);
        cache.pending.extend(self.pending);
        // Then the code, zone by zone.
        for (zone_index, part) in self.zones.into_iter().enumerate() {
            let zone = &mut cache.zones[zone_index];
            zone.hot_used = part.hot.len() as u64;
            zone.cold_used = ROUTINE_BYTES + part.cold.len() as u64;
            zone.routine_used = part.routine_used;
            zone.routines_written.extend(part.routines_written);
            zone.use_routines = part.use_routines;
            zone.state_map = part.state_map;
            let (hot, cold) = (zone.offset, zone.cold_offset());
            // Huge pages first: small ones would be filled, copied and given back.
            cache.grow(zone_index);
            cache.shared.fill(hot, part.hot);
            cache.shared.fill(cold, part.routines);
            cache.shared.fill(cold + ROUTINE_BYTES as usize, part.cold);
        }
    }
}

/// Whether eight bytes at `offset` of the shared file are code.
fn in_code(offset: usize, cache: &CodeCache) -> bool {
    offset.checked_add(8).is_some_and(|end| end as u64 <= cache.layout.low_offset())
}

fn pairs(r: &mut Reader) -> Option<Vec<(u64, u32)>> {
    r.rows::<12, _>(|r| Some((r.u64()?, r.u32()?)))
}

fn get_module(r: &mut Reader) -> Option<(Module, FileNumber)> {
    let path = PathBuf::from(OsString::from_vec(r.blob()?.to_vec()));
    let module = Module { path, start: r.u64()?, end: r.u64()?, file_offset: r.u64()? };
    Some((module, FileNumber { device: r.u64()?, inode: r.u64()? }))
}

fn get_block(r: &mut Reader) -> Option<Block> {
    Some(Block {
        ip: r.u64()?,
        len: r.u32()?,
        module: r.u32()?,
        first: r.u32()?,
        count: r.u32()?,
        executions: 0,
        taken: 0,
    })
}

fn get_instruction(r: &mut Reader) -> Option<Instruction> {
    Some(Instruction { offset: r.u16()?, len: r.u8()?, loads: r.u8()?, stores: r.u8()?, code: r.u16()? })
}

fn get_fragment(r: &mut Reader) -> Option<Fragment> {
    let (pc, body, entry) = (r.u64()?, r.u64()?, r.u64()?);
    Some(Fragment {
        pc,
        body,
        entry: (entry != 0).then_some(entry),
        zone: r.u32()?,
        first_block: r.u32()?,
        blocks: r.u32()?,
        counters: r.u32()?,
        incoming: r.u32()?,
        dead: r.u16()?,
        flags_dead: r.u8()? != 0,
        tunings: r.u8()?,
    })
}

fn get_exit(r: &mut Reader) -> Option<CodeExit> {
    let (target, zone, patch, counter, next) = (r.u64()?, r.u32()?, r.u32()?, r.u32()?, r.u32()?);
    let counter = (counter != u32::MAX).then_some(counter);
    Some(CodeExit { target, zone, patch, counter, next, restore: r.u16()?, stale: r.u8()? != 0 })
}

fn get_entry(r: &mut Reader) -> Option<StateMapEntry> {
    let (at, block, spilled, executing) = (r.u32()?, r.u32()?, r.u16()?, r.u16()?);
    let (index, flags, pending, pending_executing) = (r.u8()?, r.u8()?, r.u8()?, r.u8()?);
    let flag = |n: u8| flags >> n & 1 != 0;
    let (counted, counted_executing, retreat) = (flag(0), flag(1), flag(2));
    Some(StateMapEntry {
        at,
        block,
        index,
        counted,
        counted_executing,
        spilled,
        executing,
        retreat,
        pending,
        pending_executing,
    })
}

fn get_zone<'a>(r: &mut Reader<'a>) -> Option<ZonePart<'a>> {
    Some(ZonePart {
        routine_used: r.u64()?,
        routines_written: r.rows::<16, _>(|r| Some((r.u64()?, r.u64()?)))?,
        use_routines: r.rows::<13, _>(|r| Some(((r.u32()?, r.u8()?), r.u64()?)))?,
        state_map: r.rows::<16, _>(get_entry)?,
        hot: r.blob()?,
        routines: r.blob()?,
        cold: r.blob()?,
    })
}
