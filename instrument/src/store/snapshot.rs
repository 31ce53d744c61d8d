//! An image's code cache as bytes: how it is written when an image ends, and how it is put into an
//! image that begins.
//!
//! # The problem
//!
//! Generated code names blocks, sites, counters, lines and exits by number, and tables by address.
//! A file must restore all of these exactly. It must also be checked before use: a wrong index in
//! it could make the host write outside its tables.
//!
//! # The idea
//!
//! Everything that the code names keeps its number, so no byte of the code changes. The file is a
//! sequence of tables followed by the bytes of each zone, and [`Snapshot::decode`] compares every
//! number with the size of the table that it indexes. A damaged or forged file is refused, or it
//! restores tables in which every index is valid and every list ends.
//!
//! ```text
//!    modules    kept ones, then one for everything else      numbered anew, without gaps
//!    by module  pages with hashes; fragments that can be used again
//!    branches   direct branches from module to module        they join modules into groups
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

use super::form::{Reader, Row, Writer};
use super::parts::{groups, overlap, pages_of, Parts};
use crate::cache::{CodeCache, Zone, ROUTINE_BYTES};
use crate::code::fragment::{CodeExit, Fragment, Incoming};
use crate::code::kept_table::{EncodedRows, KeptRow, KeptTable, SharedBytes};
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

/// One zone: its code, its routines and its state map.
struct ZonePart<'a> {
    routine_used: u64,
    routines_written: Vec<(u64, u64)>,
    use_routines: Vec<((u32, u8), u64)>,
    state_map: EncodedRows<'a, StateMapEntry>,
    hot: &'a [u8],
    routines: &'a [u8],
    cold: &'a [u8],
}

/// A file's content, decoded and checked; code is borrowed from the file's bytes.
pub(crate) struct Snapshot<'a> {
    modules: Vec<(Module, FileNumber)>,
    pages: Vec<Vec<PageHash>>,
    live: Vec<Vec<u32>>,
    cross_branches: Vec<(u32, u64)>,
    blocks: Vec<Block>,
    instructions: EncodedRows<'a, Instruction>,
    sites: Vec<Site>,
    counters: u32,
    lines: [Vec<(u64, u32)>; 4],
    fragments: Vec<Fragment>,
    exits: Vec<CodeExit>,
    incoming: Vec<Incoming>,
    pending: Vec<(u64, u32)>,
    zones: Vec<ZonePart<'a>>,
}

/// Encodes the code cache of an image that has ended. `parts` can be used again; the rest is
/// written too, because numbers must stay.
pub(crate) fn encode(translator: &Translator, maps: &Maps, parts: &Parts) -> Vec<u8> {
    let cache = &translator.cache;
    let mut writer = Writer::default();
    let numbers = ModuleNumbers::of(parts);
    // First the modules that are kept, then one module for all others, which holds no address.
    let modules: Vec<_> = numbers
        .kept
        .iter()
        .map(|&module_index| (&maps.modules[module_index], maps.files[module_index]))
        .collect();
    let rest = Module { path: GIVEN_UP.into(), ..Module::default() };
    writer.list(&[modules, vec![(&rest, FileNumber::default())]].concat(), |writer, (module, file)| {
        writer.blob(module.path.as_os_str().as_bytes());
        let numbers = [module.start, module.end, module.file_offset, file.device, file.inode];
        numbers.into_iter().for_each(|number| writer.u64(number));
    });
    let (no_pages, no_live) = (Vec::new(), Vec::new());
    // For each module: the pages whose bytes must not have changed, and the fragments that may be
    // used if they have not.
    let pages = numbers.kept.iter().map(|&module_index| &parts.pages[module_index]).chain([&no_pages]);
    writer.list(&pages.collect::<Vec<_>>(), |writer, pages| {
        writer.rows::<16, _>(pages, |row, &(page, hash)| {
            [page, hash].into_iter().for_each(|number| row.u64(number))
        })
    });
    let live = numbers.kept.iter().map(|&module_index| &parts.live[module_index]).chain([&no_live]);
    writer.list(&live.collect::<Vec<_>>(), |writer, live| {
        writer.rows::<4, _>(live, |row, &fragment_index| row.u32(fragment_index))
    });
    // Branches between modules, which join the modules into groups. They are sorted, so that equal
    // images give equal bytes.
    let cross_branches =
        translator.cross_branches.iter().map(|&(module, target)| (target, numbers.of_module(module)));
    let mut cross_branches: Vec<_> = cross_branches.filter(|stray| stray.1 != numbers.rest()).collect();
    cross_branches.sort_unstable();
    writer.rows::<12, _>(&cross_branches, put_pair);
    // The translated program: the code names blocks and sites by their numbers.
    writer.rows::<24, _>(&translator.blocks, |row, block| {
        row.u64(block.ip);
        let module = numbers.of_module(block.module);
        [block.len, module, block.first, block.count].into_iter().for_each(|number| row.u32(number));
    });
    writer.table::<7, _>(&translator.instructions, |row, instruction| {
        row.u16(instruction.offset);
        [instruction.len, instruction.loads, instruction.stores]
            .into_iter()
            .for_each(|number| row.u8(number));
        row.u16(instruction.code);
    });
    writer.rows::<16, _>(&translator.sites, |row, site| {
        row.u64(site.ip);
        [site.block, site.index].into_iter().for_each(|number| row.u32(number));
    });
    writer.u32(translator.counters);
    for numbers in translator.lines.numbered() {
        writer.rows::<12, _>(&numbers, put_pair);
    }
    // The code cache: its tables, then its code.
    writer.rows::<48, _>(&cache.fragments, put_fragment);
    writer.rows::<27, _>(&cache.exits, put_exit);
    writer.rows::<20, _>(&cache.incoming, |row, incoming| {
        row.u64(incoming.offset as u64);
        row.u64(incoming.from);
        row.u32(incoming.next);
    });
    let pending: Vec<(u64, u32)> = cache.pending.iter().map(|(&pc, &exit)| (pc, exit)).collect();
    writer.rows::<12, _>(&pending, put_pair);
    writer.list(&cache.zones, |writer, zone| put_zone(writer, zone, cache));
    writer.bytes
}

/// The path of the module that stands for all modules that are not kept.
const GIVEN_UP: &str = "[given up]";

/// The numbers of modules in the file: first those that can be used again, in order, then one
/// number for all others. That last module holds no address, so it never matches a mapping.
struct ModuleNumbers {
    /// The image's index of each module that can be used again.
    kept: Vec<usize>,
    /// For each module of the image, its number in the file.
    new: Vec<u32>,
}

impl ModuleNumbers {
    fn of(parts: &Parts) -> ModuleNumbers {
        let kept: Vec<usize> =
            (0..parts.live.len()).filter(|&module_index| !parts.live[module_index].is_empty()).collect();
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

fn put_pair(row: &mut Row, &(long, short): &(u64, u32)) {
    row.u64(long);
    row.u32(short);
}

fn put_fragment(row: &mut Row, fragment: &Fragment) {
    [fragment.pc, fragment.body, fragment.entry.unwrap_or(0)].into_iter().for_each(|number| row.u64(number));
    [fragment.zone, fragment.first_block, fragment.blocks, fragment.counters, fragment.incoming]
        .into_iter()
        .for_each(|number| row.u32(number));
    row.u16(fragment.dead);
    [u8::from(fragment.flags_dead), fragment.tunings].into_iter().for_each(|number| row.u8(number));
}

fn put_exit(row: &mut Row, exit: &CodeExit) {
    row.u64(exit.target);
    [exit.zone, exit.patch, exit.counter.unwrap_or(u32::MAX), exit.next]
        .into_iter()
        .for_each(|number| row.u32(number));
    row.u16(exit.restore);
    row.u8(u8::from(exit.stale));
}

fn put_entry(row: &mut Row, entry: &StateMapEntry) {
    [entry.at, entry.block].into_iter().for_each(|number| row.u32(number));
    [entry.spilled, entry.executing].into_iter().for_each(|number| row.u16(number));
    let flags =
        u8::from(entry.counted) | u8::from(entry.counted_executing) << 1 | u8::from(entry.retreat) << 2;
    [entry.index, flags, entry.pending, entry.pending_executing]
        .into_iter()
        .for_each(|number| row.u8(number));
}

fn put_zone(writer: &mut Writer, zone: &Zone, cache: &CodeCache) {
    writer.u64(zone.routine_used);
    let routines: Vec<(u64, u64)> = zone.routines_written.iter().map(|(&key, &at)| (key, at)).collect();
    writer
        .rows::<16, _>(&routines, |row, &(key, at)| [key, at].into_iter().for_each(|number| row.u64(number)));
    writer.rows::<13, _>(&zone.use_routines, |row, &((ways, code), at)| {
        row.u32(ways);
        row.u8(code);
        row.u64(at);
    });
    writer.table::<16, _>(&zone.state_map, put_entry);
    // Hot code, then the cold part: its routines, which come first, and its other code.
    writer.blob(&cache.shared.read(zone.offset, zone.hot_used as usize));
    writer.blob(&cache.shared.read(zone.cold_offset(), zone.routine_used as usize));
    let cold = (zone.cold_used - ROUTINE_BYTES) as usize;
    writer.blob(&cache.shared.read(zone.cold_offset() + ROUTINE_BYTES as usize, cold));
}

impl<'a> Snapshot<'a> {
    /// Reads a snapshot for a code cache of the same layout; `None` if anything in it is wrong.
    pub(crate) fn decode(bytes: &'a [u8], cache: &CodeCache) -> Option<Snapshot<'a>> {
        let reader = &mut Reader::new(bytes);
        // The fields follow the order in which `encode` writes them.
        let snapshot = Snapshot {
            modules: reader.list(48, get_module)?,
            pages: reader
                .list(8, |reader| reader.rows::<16, _>(|reader| Some((reader.u64()?, reader.u64()?))))?,
            live: reader.list(8, |reader| reader.rows::<4, _>(Reader::u32))?,
            cross_branches: pairs(reader)?.into_iter().map(|(target, module)| (module, target)).collect(),
            blocks: reader.rows::<24, _>(get_block)?,
            instructions: reader.table()?,
            sites: reader.rows::<16, _>(|reader| {
                Some(Site { ip: reader.u64()?, block: reader.u32()?, index: reader.u32()? })
            })?,
            counters: reader.u32()?,
            lines: [pairs(reader)?, pairs(reader)?, pairs(reader)?, pairs(reader)?],
            fragments: reader.rows::<48, _>(get_fragment)?,
            exits: reader.rows::<27, _>(get_exit)?,
            incoming: reader.rows::<20, _>(|reader| {
                Some(Incoming { offset: reader.u64()? as usize, from: reader.u64()?, next: reader.u32()? })
            })?,
            pending: pairs(reader)?,
            zones: reader.list(40, get_zone)?,
        };
        (reader.is_empty() && snapshot.fits(cache)).then_some(snapshot)
    }

    /// Whether every index in the snapshot is valid for `cache`, and every list in it ends.
    fn fits(&self, cache: &CodeCache) -> bool {
        self.zones_fit(cache)
            && self.program_fits()
            && self.modules_fit()
            && self.fragments.iter().all(|fragment| self.fragment_fits(fragment, cache))
            && self.fragments.is_sorted_by_key(|fragment| fragment.first_block)
            && self.fragments.is_sorted_by_key(|fragment| fragment.counters)
            && self.exits_fit(cache)
            && self.incoming_fit(cache)
            && self.live_fit()
    }

    /// Whether modules lie in the program's address space and no two of them overlap.
    fn modules_fit(&self) -> bool {
        let modules: Vec<Module> = self.modules.iter().map(|(module, _)| module.clone()).collect();
        let fits = |module: &Module| module.start <= module.end && module.end < 1 << 63;
        // The upper half of the address space belongs to the kernel.
        modules.iter().all(fits)
            && overlap(&modules, 0..modules.len()).is_empty()
            && self.cross_branches.iter().all(|&(module, _)| (module as usize) < modules.len())
    }

    /// Whether every block of a fragment that can be used again lies in the fragment's module, and
    /// in pages that are compared before the fragment is used.
    fn live_fit(&self) -> bool {
        let fits = |(module_index, live): (usize, &Vec<u32>)| {
            let (Module { start, end, .. }, pages) =
                (&self.modules[module_index].0, &self.pages[module_index]);
            // Consecutive blocks mostly lie in one page, so the last page is not looked up again.
            // No page begins at address 1, so the first page is always looked up.
            let mut last = 1;
            let mut known = |page: u64| {
                let same = page == last;
                last = page;
                same || pages.binary_search_by_key(&page, |known| known.0).is_ok()
            };
            let mut block_fits = |block: &Block| {
                block.module as usize == module_index
                    && (*start..*end).contains(&block.ip)
                    && pages_of(block).all(&mut known)
            };
            live.iter().all(|&fragment_index| {
                let fragment = &self.fragments[fragment_index as usize];
                let blocks = &self.blocks[fragment.first_block as usize..][..fragment.blocks as usize];
                fragment.pc == blocks[0].ip && blocks.iter().all(&mut block_fits)
            })
        };
        self.live.iter().enumerate().all(fits)
    }

    /// Whether each zone's code, routines and state map fit into the zone of `cache`.
    fn zones_fit(&self, cache: &CodeCache) -> bool {
        let fits = |(part, zone): (&ZonePart, &Zone)| {
            let inside = |at: u64| at >= zone.cold_address() && at < zone.cold_address() + ROUTINE_BYTES;
            // The code must leave some free room, and every routine must lie in the part of the
            // zone for routines.
            (part.hot.len() as u64) < zone.hot_bytes
                && part.cold.len() as u64 + ROUTINE_BYTES < zone.cold_bytes
                && part.routine_used == part.routines.len() as u64
                && part.routine_used <= ROUTINE_BYTES
                && part.routine_used >= zone.routine_used
                && part.routines_written.iter().all(|routine| inside(routine.1))
                && part.use_routines.iter().all(|routine| inside(routine.1))
                && self.states_fit(&part.state_map)
        };
        self.zones.len() == cache.zones.len() && self.zones.iter().zip(&cache.zones).all(fits)
    }

    /// Whether the entries of a state map are in order, and belong to blocks that exist.
    fn states_fit(&self, entries: &EncodedRows<'_, StateMapEntry>) -> bool {
        let mut last = 0;
        entries.iter().all(|entry| {
            let in_order = last <= entry.at;
            last = entry.at;
            in_order && (entry.block as usize) < self.blocks.len()
        })
    }

    /// Whether blocks, sites, pages and lists of fragments name only entries that exist, and leave
    /// enough numbers for this run.
    fn program_fits(&self) -> bool {
        let (blocks, modules) = (self.blocks.len(), self.modules.len());
        let block_fits = |block: &Block| {
            (block.module as usize) < modules
                && block.first as usize + block.count as usize <= self.instructions.len()
        };
        // The run will give out more numbers, so the file may use only a part of each range.
        let room = [self.sites.len(), blocks].into_iter().all(|count| count < SITES_MAX / 2)
            && (self.counters as usize) < context::COUNTERS_MAX / 2
            && self.lines.iter().all(|list| list.len() < context::NUMBERS_MAX / 4);
        // A fragment belongs to the module of its first block; only that module may list it.
        let live_fits = |(module, live): (usize, &Vec<u32>)| {
            live.iter().all(|&fragment_index| {
                let fragment = self.fragments.get(fragment_index as usize);
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
            && self.fragments.first().is_none_or(|fragment| fragment.first_block == 0)
            && (self.fragments.is_empty() == self.blocks.is_empty())
    }

    /// Whether a fragment's addresses lie in its zone's code, and its blocks and counters exist.
    fn fragment_fits(&self, fragment: &Fragment, cache: &CodeCache) -> bool {
        let Some((zone, part)) =
            cache.zones.get(fragment.zone as usize).zip(self.zones.get(fragment.zone as usize))
        else {
            return false;
        };
        let inside = |at: u64| at >= zone.address && at < zone.address + part.hot.len() as u64;
        // The body and the entry lie in the zone's code, and every counter of the fragment exists.
        inside(fragment.body)
            && fragment.entry.is_none_or(inside)
            && fragment.blocks > 0
            && u64::from(fragment.first_block) + u64::from(fragment.blocks) <= self.blocks.len() as u64
            && u64::from(fragment.counters) + 2 * u64::from(fragment.blocks) < context::COUNTERS_MAX as u64
            && u64::from(fragment.counters) + u64::from(fragment.blocks) < u64::from(self.counters)
            && (fragment.incoming as usize) < self.incoming.len()
    }

    /// Whether each exit's field lies in code, and each chain of exits ends.
    fn exits_fit(&self, cache: &CodeCache) -> bool {
        let fits = |(index, exit): (usize, &CodeExit)| {
            let zone = cache.zones.get(exit.zone as usize);
            let patch = exit.patch as usize;
            // The field that linking rewrites must lie in code and within one line of 64 bytes. A
            // stale exit has no such field, but names a fragment, which must exist.
            let place = match exit.stale {
                true => patch < self.fragments.len(),
                false => zone.is_some_and(|zone| in_code(zone.offset + patch, cache)) && patch % 64 <= 60,
            };
            // Chains lead to lower numbers, so they end.
            place
                && ((exit.next as usize) < index || exit.next == 0)
                && exit.counter.is_none_or(|counter| counter < self.counters)
        };
        !self.exits.is_empty()
            && self.exits.iter().enumerate().all(fits)
            && self.pending.iter().all(|&(_, exit)| (exit as usize) < self.exits.len())
    }

    /// Whether each incoming place is in one list only, so that every list ends, and lies in code.
    fn incoming_fit(&self, cache: &CodeCache) -> bool {
        let mut seen = vec![false; self.incoming.len()];
        let heads = self.fragments.iter().map(|fragment| fragment.incoming);
        // Heads of lists and links within lists name elements. If none is named twice, no walk
        // meets an element twice.
        let once = heads.chain(self.incoming.iter().map(|incoming| incoming.next)).all(|place| {
            place == 0 || seen.get_mut(place as usize).is_some_and(|seen| !std::mem::replace(seen, true))
        });
        let fits = |incoming: &Incoming| {
            in_code(incoming.offset, cache)
                && if incoming.from == 0 {
                    incoming.offset.is_multiple_of(8)
                } else {
                    incoming.offset % 64 <= 60
                }
        };
        once && !self.incoming.is_empty() && self.incoming[1..].iter().all(fits)
    }

    /// Moves everything into an image that has translated nothing yet. Rows that lie in `file` stay
    /// there.
    pub(crate) fn restore(self, translator: &mut Translator, maps: &mut Maps, file: &SharedBytes) {
        (maps.modules, maps.files) = self.modules.into_iter().unzip();
        let fragments = self.fragments.len();
        // No fragment is used before its group of modules has been verified.
        let groups = groups(&maps.modules, self.cross_branches.iter().copied(), |_| true);
        translator.unverified = UnverifiedModules::new(groups, self.pages, self.live, fragments);
        translator.cross_branches.extend(self.cross_branches);
        (translator.blocks, translator.sites) = (self.blocks, self.sites);
        translator.instructions = KeptTable::of(self.instructions, file);
        // This run continues the numbering of the file.
        translator.counters = self.counters;
        translator.renumber(&self.lines);
        let cache = &mut translator.cache;
        cache.expect(self.fragments.iter().filter(|fragment| fragment.entry.is_some()).count());
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
            zone.state_map = KeptTable::of(part.state_map, file);
            let (hot, cold) = (zone.offset, zone.cold_offset());
            // Huge pages are requested before they are filled: otherwise the kernel would fill
            // small pages and copy them.
            cache.grow(zone_index);
            cache.shared.fill(hot, part.hot);
            cache.shared.fill(cold, part.routines);
            cache.shared.fill(cold + ROUTINE_BYTES as usize, part.cold);
        }
        translator.weigh_restored();
    }
}

/// Whether eight bytes at `offset` of the shared file are code.
fn in_code(offset: usize, cache: &CodeCache) -> bool {
    offset.checked_add(8).is_some_and(|end| end as u64 <= cache.layout.low_offset())
}

fn pairs(reader: &mut Reader) -> Option<Vec<(u64, u32)>> {
    reader.rows::<12, _>(|reader| Some((reader.u64()?, reader.u32()?)))
}

fn get_module(reader: &mut Reader) -> Option<(Module, FileNumber)> {
    let path = PathBuf::from(OsString::from_vec(reader.blob()?.to_vec()));
    let module =
        Module { path, start: reader.u64()?, end: reader.u64()?, file_offset: reader.u64()?, process: None };
    Some((module, FileNumber { device: reader.u64()?, inode: reader.u64()? }))
}

fn get_block(reader: &mut Reader) -> Option<Block> {
    Some(Block {
        ip: reader.u64()?,
        len: reader.u32()?,
        module: reader.u32()?,
        first: reader.u32()?,
        count: reader.u32()?,
        executions: 0,
        taken: 0,
    })
}

impl KeptRow for Instruction {
    const BYTES: usize = 7;

    fn decoded(row: &[u8]) -> Instruction {
        Instruction {
            offset: u16::from_le_bytes([row[0], row[1]]),
            len: row[2],
            loads: row[3],
            stores: row[4],
            code: u16::from_le_bytes([row[5], row[6]]),
        }
    }
}

fn get_fragment(reader: &mut Reader) -> Option<Fragment> {
    let (pc, body, entry) = (reader.u64()?, reader.u64()?, reader.u64()?);
    Some(Fragment {
        pc,
        body,
        entry: (entry != 0).then_some(entry),
        zone: reader.u32()?,
        first_block: reader.u32()?,
        blocks: reader.u32()?,
        counters: reader.u32()?,
        incoming: reader.u32()?,
        dead: reader.u16()?,
        flags_dead: reader.u8()? != 0,
        tunings: reader.u8()?,
    })
}

fn get_exit(reader: &mut Reader) -> Option<CodeExit> {
    let (target, zone, patch, counter, next) =
        (reader.u64()?, reader.u32()?, reader.u32()?, reader.u32()?, reader.u32()?);
    let counter = (counter != u32::MAX).then_some(counter);
    Some(CodeExit { target, zone, patch, counter, next, restore: reader.u16()?, stale: reader.u8()? != 0 })
}

fn get_zone<'a>(reader: &mut Reader<'a>) -> Option<ZonePart<'a>> {
    Some(ZonePart {
        routine_used: reader.u64()?,
        routines_written: reader.rows::<16, _>(|reader| Some((reader.u64()?, reader.u64()?)))?,
        use_routines: reader.rows::<13, _>(|reader| Some(((reader.u32()?, reader.u8()?), reader.u64()?)))?,
        state_map: reader.table()?,
        hot: reader.blob()?,
        routines: reader.blob()?,
        cold: reader.blob()?,
    })
}
