//! Groups the modules of an image that belong together, and selects those whose translations can be
//! kept.
//!
//! # The problem
//!
//! Fragments are found by address, modules by what is mapped. A library that moved or was rebuilt
//! is another module, and its former translations may claim addresses that hold other code now. If
//! both stood in one file, a later run would take one for the other.
//!
//! # The idea
//!
//! Modules form *groups*: modules of one path, and modules between which a direct branch leads,
//! because a linked branch enters its target's code without a look-up. A group wakes as a whole and
//! is given up as a whole. The groups that are kept are disjoint in address space.
//!
//! ```text
//!                       this run executed it?    and another group claims the address?
//!    awake  ── yes ───────────────────────────▶  the other one awake too: drop both
//!    asleep ── no  ───────────────────────────▶  the other one awake: drop this one
//!                  its path is mapped elsewhere, or from another file: it has moved, drop it
//! ```
//!
//! **Leaves out** the content of pages, which decides when a group wakes (`translate::unverified`).

use crate::code::hash::hash;
use crate::profile::{Block, Module};
use crate::target::modules::Maps;
use crate::translate::unverified::{PageHash, PAGE};
use crate::translate::Translator;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The parts of an image that can be kept.
pub(crate) struct Parts {
    /// Pages that were translated, in order, by module.
    pub(super) pages: Vec<Vec<PageHash>>,
    /// Fragments that can be used again, by module.
    pub(super) live: Vec<Vec<u32>>,
    /// Whether something that the file holds is not kept.
    pub(crate) gave_up: bool,
}

impl Parts {
    /// Fragments that can be used again.
    pub(crate) fn fragments(&self) -> usize {
        self.live.iter().map(Vec::len).sum()
    }

    /// The number of those fragments whose index is `first` or higher.
    pub(crate) fn fragments_from(&self, first: usize) -> usize {
        self.live.iter().flatten().filter(|&&f| f as usize >= first).count()
    }
}

/// The group of each module: the number of its first member. A module that `sleeps` is in no group
/// with one that does not: a library's former part and its present one have one path, and nothing
/// leads from what this run executed to what slept.
pub(super) fn groups(
    modules: &[Module],
    strays: impl Iterator<Item = (u32, u64)>,
    sleeps: impl Fn(u32) -> bool,
) -> Vec<u32> {
    let mut first: Vec<u32> = (0..modules.len() as u32).collect();
    // One path, one group.
    let mut by_path = HashMap::new();
    for (n, module) in (0u32..).zip(modules) {
        let leader = *by_path.entry((&module.path, sleeps(n))).or_insert(n);
        join(&mut first, leader, n);
    }
    // A branch ties the module that it leaves to all that hold its target.
    let mut by_start: Vec<u32> = (0..modules.len() as u32).collect();
    by_start.sort_by_key(|&n| modules[n as usize].start);
    for (from, target) in strays {
        // Modules of different times may overlap: each one that holds the target is joined.
        let before = by_start.partition_point(|&n| modules[n as usize].start <= target);
        let holds = |n: &&u32| modules[**n as usize].end > target && sleeps(**n) == sleeps(from);
        by_start[..before].iter().filter(holds).for_each(|&to| join(&mut first, from, to));
    }
    (0..modules.len() as u32).map(|n| find(&mut first, n)).collect()
}

fn find(first: &mut [u32], mut n: u32) -> u32 {
    while first[n as usize] != n {
        first[n as usize] = first[first[n as usize] as usize];
        n = first[n as usize];
    }
    n
}

fn join(first: &mut [u32], one: u32, other: u32) {
    let (one, other) = (find(first, one), find(first, other));
    first[one.max(other) as usize] = one.min(other);
}

/// Whether two modules, of those `taken`, hold the same address.
pub(super) fn overlap(modules: &[Module], taken: impl Iterator<Item = usize>) -> Vec<(usize, usize)> {
    let mut order: Vec<usize> = taken.collect();
    order.sort_by_key(|&n| modules[n].start);
    let mut pairs = Vec::new();
    // In the order of their starts, the modules that overlap one come directly behind it.
    for (at, &n) in order.iter().enumerate() {
        let behind = order[at + 1..].iter().take_while(|&&other| modules[other].start < modules[n].end);
        pairs.extend(behind.map(|&other| (n, other)));
    }
    pairs
}

/// The pages that a block lies in.
pub(super) fn pages_of(block: &Block) -> impl Iterator<Item = u64> {
    let end = block.ip + u64::from(block.len.max(1));
    (block.ip & !(PAGE - 1)..end).step_by(PAGE as usize)
}

/// Chooses what of an image that has ended can be kept.
pub(crate) fn choose(translator: &Translator, maps: &Maps) -> Parts {
    let mut choice = Choice::new(translator, maps);
    choice.enter_fragments();
    choice.drop_moved();
    choice.drop_overlapping();
    choice.parts()
}

/// Modules that slept all the run while their path was mapped at other addresses or from another
/// file.
pub(super) fn moved(translator: &Translator, maps: &Maps) -> Vec<usize> {
    let current: HashSet<u32> = maps.current().collect();
    let paths: HashSet<_> = current.iter().map(|&n| &maps.modules[n as usize].path).collect();
    let away = |n: &usize| !current.contains(&(*n as u32)) && paths.contains(&maps.modules[*n].path);
    translator.unverified.sleeping().map(|(n, _)| n).filter(away).collect()
}

/// A choice in progress.
struct Choice<'i> {
    translator: &'i Translator,
    maps: &'i Maps,
    groups: Vec<u32>,
    /// Groups that are dropped.
    dropped: HashSet<u32>,
    /// By module: fragments that this run may execute, and fragments that slept all the run.
    awake: Vec<Vec<u32>>,
    asleep: Vec<Vec<u32>>,
    pages: Vec<BTreeMap<u64, u64>>,
    /// Hashes of pages as this run read them, where it did.
    read: HashMap<u64, Option<u64>>,
}

impl<'i> Choice<'i> {
    fn new(translator: &'i Translator, maps: &'i Maps) -> Choice<'i> {
        let (modules, unverified) = (maps.modules.len(), &translator.unverified);
        Choice {
            translator,
            maps,
            groups: groups(&maps.modules, translator.strays.iter().copied(), |n| unverified.sleeps(n)),
            dropped: HashSet::new(),
            awake: vec![Vec::new(); modules],
            asleep: vec![Vec::new(); modules],
            pages: vec![BTreeMap::new(); modules],
            read: HashMap::new(),
        }
    }

    fn is_dropped(&self, module: usize) -> bool {
        self.dropped.contains(&self.groups[module])
    }

    fn drop_group(&mut self, module: usize) {
        self.dropped.insert(self.groups[module]);
    }

    fn enter_fragments(&mut self) {
        let unverified = &self.translator.unverified;
        for (module, asleep) in unverified.sleeping() {
            self.asleep[module].extend(asleep);
            // Other code may lie at these addresses now. A module that sleeps keeps the hashes of
            // the run that translated it.
            self.pages[module].extend(unverified.pages[module].iter().copied());
        }
        // Fragments in the map are those that this run may execute.
        let Translator { cache, strays, .. } = self.translator;
        let stale: HashSet<u32> =
            cache.exits.iter().filter(|exit| exit.stale).map(|exit| exit.patch).collect();
        // Fragments of code that may change, and retired ones, have a stale exit. They are no
        // translations of text and are not kept.
        let mut awake: Vec<u32> = cache.map.values().copied().filter(|f| !stale.contains(f)).collect();
        awake.sort_unstable();
        awake.into_iter().for_each(|f| self.enter_awake(f));
        for &(module, target) in strays {
            if cache.find(target).is_some_and(|f| stale.contains(&(f as u32))) {
                self.drop_group(module as usize);
            }
        }
    }

    /// Enters a fragment that this run may execute; a group of which a page is not known, or is
    /// known as two things, is dropped.
    fn enter_awake(&mut self, f: u32) {
        let Translator { cache, blocks, .. } = self.translator;
        let fragment = &cache.fragments[f as usize];
        let blocks = &blocks[fragment.first_block as usize..][..fragment.blocks as usize];
        let module = blocks[0].module as usize;
        let inside = |block: &Block| {
            let Module { start, end, .. } = self.maps.modules[module];
            block.module as usize == module && block.ip >= start && block.ip < end
        };
        if !blocks.iter().all(inside) {
            return self.drop_group(module);
        }
        self.awake[module].push(f);
        // A page whose bytes are unknown, or were seen with two contents, cannot be compared later.
        for page in blocks.iter().flat_map(pages_of) {
            let Some(hash) = self.page_hash(f, module, page) else {
                return self.drop_group(module);
            };
            if *self.pages[module].entry(page).or_insert(hash) != hash {
                return self.drop_group(module);
            }
        }
    }

    /// The hash that a page had when fragment `f` was translated, in this run or in the run that
    /// wrote the file.
    fn page_hash(&mut self, f: u32, module: usize, page: u64) -> Option<u64> {
        let Translator { unverified, reader, .. } = self.translator;
        if (f as usize) < unverified.fragments {
            let pages = unverified.pages.get(module)?;
            let n = pages.binary_search_by_key(&page, |known| known.0).ok()?;
            return Some(pages[n].1);
        }
        // This run translated it: the reader knows the page's bytes if they never changed.
        let read = || reader.known_page(page).map(|bytes| hash(bytes, 0));
        *self.read.entry(page).or_insert_with(read)
    }

    fn drop_moved(&mut self) {
        moved(self.translator, self.maps).into_iter().for_each(|n| self.drop_group(n));
    }

    /// Drops groups until no two of those that are left hold the same address.
    fn drop_overlapping(&mut self) {
        let of = |fragments: &[Vec<u32>]| -> Vec<usize> {
            (0..fragments.len()).filter(|&n| !fragments[n].is_empty()).collect()
        };
        // If both ran at one address, a later run cannot know which one it has.
        for (one, other) in overlap(&self.maps.modules, of(&self.awake).into_iter()) {
            self.drop_group(one);
            self.drop_group(other);
        }
        let left: Vec<usize> = (0..self.groups.len()).filter(|&n| !self.is_dropped(n)).collect();
        let used = |n: &usize| !self.awake[*n].is_empty() || !self.asleep[*n].is_empty();
        for (one, other) in overlap(&self.maps.modules, left.into_iter().filter(used)) {
            // At most one of the two is awake now; the one that this run executed stays.
            let asleep = if self.awake[one].is_empty() { one } else { other };
            self.drop_group(asleep);
        }
    }

    fn parts(mut self) -> Parts {
        let before = self.translator.unverified.fragments as u32;
        let mut parts =
            Parts { pages: Vec::new(), live: Vec::new(), gave_up: self.translator.unverified.gave_up };
        for n in 0..self.groups.len() {
            let mut live = std::mem::take(&mut self.awake[n]);
            live.append(&mut self.asleep[n]);
            live.sort_unstable();
            // A fragment that woke is in the map and was asleep before: it counts once.
            live.dedup();
            // If the file holds fragments of a dropped group, the file must be written again.
            if self.is_dropped(n) {
                parts.gave_up |= live.first().is_some_and(|&f| f < before);
                live.clear();
            }
            let pages = if live.is_empty() { BTreeMap::new() } else { std::mem::take(&mut self.pages[n]) };
            parts.live.push(live);
            parts.pages.push(pages.into_iter().collect());
        }
        parts
    }
}
