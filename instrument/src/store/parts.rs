//! Groups the modules of an image that belong together, and selects those whose translations can be
//! kept.
//!
//! # The problem
//!
//! A fragment is found by its address, and a module by its mapping. A library that moved or was
//! rebuilt is another module, and its former translations may claim addresses that hold other code
//! now. If one file held both, a later run could use the wrong one.
//!
//! # The idea
//!
//! Modules form *groups*: modules of one path with different parts of its file, and modules between
//! which a direct branch leads, because a linked branch enters its target's code without a look-up.
//! A group is verified as a whole and given up as a whole. The groups that are kept are disjoint in
//! address space:
//!
//! - If two groups hold a common address and this run executed both, both are dropped.
//! - If this run executed one of the two, the other one is dropped.
//! - A second mapping of a file is not kept: its addresses seldom come again.
//! - If this run did not execute a group, and the path of one of its modules is mapped at other
//!   addresses or from another file, the group has moved and is dropped.
//!
//! **Leaves out** comparing the content of pages, which decides whether a group is verified
//! (`translate::unverified`).

use crate::address_map::AddressMap;
use crate::code::hash::hash;
use crate::profile::{Block, Module};
use crate::target::modules::Maps;
use crate::translate::unverified::{PageHash, UnverifiedModules, PAGE};
use crate::translate::Translator;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hash;

/// The parts of an image that can be kept.
pub(crate) struct Parts {
    /// For each module, the pages that were translated, in order.
    pub(super) pages: Vec<Vec<PageHash>>,
    /// For each module, the fragments that can be used again.
    pub(crate) live: Vec<Vec<u32>>,
    /// Whether the file holds fragments that are not kept.
    pub(crate) gave_up: bool,
}

impl Parts {
    /// These parts as unverified ones of an image with this number of fragments, whose modules are
    /// `modules`.
    pub(crate) fn unverified(
        self,
        modules: &[Module],
        cross_branches: &HashSet<(u32, u64)>,
        fragments: usize,
    ) -> UnverifiedModules {
        let groups = groups(modules, cross_branches.iter().copied(), |_| true);
        UnverifiedModules::new(groups, self.pages, self.live, fragments)
    }

    /// The number of fragments that can be used again.
    pub(crate) fn fragments(&self) -> usize {
        self.live.iter().map(Vec::len).sum()
    }

    /// The number of fragments that can be used again and whose index is `first` or higher.
    pub(crate) fn fragments_from(&self, first: usize) -> usize {
        self.live.iter().flatten().filter(|&&fragment_index| fragment_index as usize >= first).count()
    }
}

/// The group of each module, named by the index of the group's first member. An unverified module
/// and a verified one are never in one group: the former and the present mapping of a library have
/// one path, and nothing leads from code that this run executed to unverified code.
///
/// Groups are a disjoint-set forest: `first[index]` is another member of the same group with a
/// lower index, or the index itself.
pub(super) fn groups(
    modules: &[Module],
    cross_branches: impl Iterator<Item = (u32, u64)>,
    is_unverified: impl Fn(u32) -> bool,
) -> Vec<u32> {
    let mut first: Vec<u32> = (0..modules.len() as u32).collect();
    let second = second_mappings(modules, |module_index| is_unverified(module_index as u32));
    // Modules of one path are in one group, but for those that show a part of the file again.
    let mut by_path = HashMap::new();
    for (module_index, module) in (0u32..).zip(modules) {
        if second[module_index as usize] {
            continue;
        }
        let leader = *by_path.entry((&module.path, is_unverified(module_index))).or_insert(module_index);
        join(&mut first, leader, module_index);
    }
    // A branch joins the module that it leaves with every module that holds its target.
    let mut by_start: Vec<u32> = (0..modules.len() as u32).collect();
    by_start.sort_unstable_by_key(|&module_index| (modules[module_index as usize].start, module_index));
    for (from, target) in cross_branches {
        // Modules that were mapped at different times may overlap, so several may hold the target.
        let before = by_start.partition_point(|&module_index| modules[module_index as usize].start <= target);
        let holds = |module_index: &&u32| {
            modules[**module_index as usize].end > target
                && is_unverified(**module_index) == is_unverified(from)
        };
        by_start[..before].iter().filter(holds).for_each(|&to| join(&mut first, from, to));
    }
    (0..modules.len() as u32).map(|module_index| find(&mut first, module_index)).collect()
}

/// For each module, whether an earlier one of its kind has a common part of its file. Runtimes map
/// their own code again at addresses of their choice (V8: near the code that it generates).
fn second_mappings<K: Eq + Hash>(modules: &[Module], kind: impl Fn(usize) -> K) -> Vec<bool> {
    let mut of_path: HashMap<_, Vec<(u64, u64)>> = HashMap::new();
    let mut second = Vec::new();
    for (module_index, module) in modules.iter().enumerate() {
        let parts = of_path.entry((&module.path, kind(module_index))).or_default();
        let (start, end) = (module.file_offset, module.file_offset + (module.end - module.start));
        second.push(parts.iter().any(|part| start < part.1 && end > part.0));
        parts.push((start, end));
    }
    second
}

fn find(first: &mut [u32], mut module_index: u32) -> u32 {
    while first[module_index as usize] != module_index {
        first[module_index as usize] = first[first[module_index as usize] as usize];
        module_index = first[module_index as usize];
    }
    module_index
}

fn join(first: &mut [u32], one: u32, other: u32) {
    let (one, other) = (find(first, one), find(first, other));
    first[one.max(other) as usize] = one.min(other);
}

/// The pairs of modules among `taken` that hold a common address.
pub(super) fn overlap(modules: &[Module], taken: impl Iterator<Item = usize>) -> Vec<(usize, usize)> {
    let mut order: Vec<usize> = taken.collect();
    order.sort_unstable_by_key(|&module_index| (modules[module_index].start, module_index));
    let mut pairs = Vec::new();
    // If modules are sorted by their starts, those that overlap a module follow it directly.
    for (at, &module_index) in order.iter().enumerate() {
        let behind =
            order[at + 1..].iter().take_while(|&&other| modules[other].start < modules[module_index].end);
        pairs.extend(behind.map(|&other| (module_index, other)));
    }
    pairs
}

/// The addresses of the pages in which a block lies.
pub(super) fn pages_of(block: &Block) -> impl Iterator<Item = u64> {
    let end = block.ip + u64::from(block.len.max(1));
    (block.ip & !(PAGE - 1)..end).step_by(PAGE as usize)
}

/// Chooses the parts of an ended image that can be kept.
pub(crate) fn choose(translator: &Translator, maps: &Maps) -> Parts {
    let mut choice = Choice::new(translator, maps);
    choice.enter_fragments();
    choice.drop_second_mappings();
    choice.drop_moved();
    choice.drop_overlapping();
    choice.parts()
}

/// The unverified modules whose path is now mapped at other addresses or from another file.
pub(crate) fn moved(translator: &Translator, maps: &Maps) -> Vec<usize> {
    let current: HashSet<u32> = maps.current().collect();
    let paths: HashSet<_> =
        current.iter().map(|&module_index| &maps.modules[module_index as usize].path).collect();
    let away = |module_index: &usize| {
        !current.contains(&(*module_index as u32)) && paths.contains(&maps.modules[*module_index].path)
    };
    translator.unverified.modules().map(|(module_index, _)| module_index).filter(away).collect()
}

/// A choice in progress.
struct Choice<'i> {
    translator: &'i Translator,
    maps: &'i Maps,
    groups: Vec<u32>,
    /// Groups that are dropped.
    dropped: HashSet<u32>,
    /// For each module, the fragments that this run may execute: verified or new ones.
    verified: Vec<Vec<u32>>,
    /// For each module, the restored fragments that this run has not verified.
    unverified: Vec<Vec<u32>>,
    /// For each module, the pages that were translated and the hashes of their bytes.
    pages: Vec<BTreeMap<u64, u64>>,
    /// Hashes of pages as this run has read them; `None` for a page whose bytes have changed.
    read: AddressMap<Option<u64>>,
    /// The module and the page that were entered last.
    entered: Option<(usize, u64)>,
}

impl<'i> Choice<'i> {
    fn new(translator: &'i Translator, maps: &'i Maps) -> Choice<'i> {
        let (modules, unverified) = (maps.modules.len(), &translator.unverified);
        Choice {
            translator,
            maps,
            groups: groups(&maps.modules, translator.cross_branches.iter().copied(), |module_index| {
                unverified.is_unverified(module_index)
            }),
            dropped: HashSet::new(),
            verified: vec![Vec::new(); modules],
            unverified: vec![Vec::new(); modules],
            pages: vec![BTreeMap::new(); modules],
            read: AddressMap::default(),
            entered: None,
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
        for (module, fragments) in unverified.modules() {
            self.unverified[module].extend(fragments);
            // Other code may lie at these addresses now. So an unverified module keeps the hashes
            // of the run that translated it.
            self.pages[module].extend(unverified.pages[module].iter().copied());
        }
        // The map holds exactly the fragments that this run may execute.
        let Translator { cache, cross_branches, .. } = self.translator;
        // A stale exit belongs to code that may change, or to a retired fragment. Such fragments
        // are no translations of text, so they are not kept.
        let mut stale = vec![false; cache.fragments.len()];
        cache.exits.iter().filter(|exit| exit.stale).for_each(|exit| stale[exit.patch as usize] = true);
        let mut used = vec![false; cache.fragments.len()];
        cache.map.values().for_each(|&fragment_index| used[fragment_index as usize] = true);
        for (fragment_index, (used, stale)) in (0..).zip(used.iter().zip(&stale)) {
            match (used, stale) {
                (true, false) if fragment_index < unverified.fragments as u32 => {
                    self.enter_restored(fragment_index);
                }
                (true, false) => self.enter_new(fragment_index),
                _ => {}
            }
        }
        for &(module, target) in cross_branches {
            if cache.find(target).is_some_and(|fragment_index| stale[fragment_index]) {
                self.drop_group(module as usize);
            }
        }
    }

    /// Enters a fragment that was restored and that this run may execute. Its blocks lie in its
    /// module, and its pages are among those of the module that were compared.
    fn enter_restored(&mut self, fragment_index: u32) {
        let Translator { cache, blocks, unverified, .. } = self.translator;
        let module = blocks[cache.fragments[fragment_index as usize].first_block as usize].module as usize;
        if self.verified[module].is_empty() {
            self.pages[module].extend(unverified.pages[module].iter().copied());
        }
        self.verified[module].push(fragment_index);
    }

    /// Enters a fragment that this run has translated. If the bytes of one of its pages are
    /// unknown, or were seen with two contents, its group is dropped.
    fn enter_new(&mut self, fragment_index: u32) {
        let Translator { cache, blocks, .. } = self.translator;
        let fragment = &cache.fragments[fragment_index as usize];
        let blocks = &blocks[fragment.first_block as usize..][..fragment.blocks as usize];
        let module = blocks[0].module as usize;
        let inside = |block: &Block| {
            let Module { start, end, .. } = self.maps.modules[module];
            block.module as usize == module && block.ip >= start && block.ip < end
        };
        if !blocks.iter().all(inside) {
            return self.drop_group(module);
        }
        self.verified[module].push(fragment_index);
        // A page needs one known content, with which a later run compares it. Code that was
        // translated together mostly lies in the page that was entered last.
        for page in blocks.iter().flat_map(pages_of) {
            if self.entered == Some((module, page)) {
                continue;
            }
            let Some(hash) = self.page_hash(page) else {
                return self.drop_group(module);
            };
            if *self.pages[module].entry(page).or_insert(hash) != hash {
                return self.drop_group(module);
            }
            self.entered = Some((module, page));
        }
    }

    /// The hash that a page had when this run translated it: the reader has the page's bytes if
    /// they never changed.
    fn page_hash(&mut self, page: u64) -> Option<u64> {
        let reader = &self.translator.reader;
        let read = || reader.known_page(page).map(|bytes| hash(bytes, 0));
        *self.read.entry(page).or_insert_with(read)
    }

    fn drop_second_mappings(&mut self) {
        // An earlier mapping that this run has not executed is a former one, which is gone.
        let was_executed = |module_index: usize| !self.verified[module_index].is_empty();
        let second = second_mappings(&self.maps.modules, was_executed);
        let dropped =
            (0..second.len()).filter(|&module_index| second[module_index] && was_executed(module_index));
        dropped.collect::<Vec<_>>().into_iter().for_each(|module_index| self.drop_group(module_index));
    }

    fn drop_moved(&mut self) {
        moved(self.translator, self.maps).into_iter().for_each(|module_index| self.drop_group(module_index));
    }

    /// Drops groups until no two remaining groups hold the same address.
    fn drop_overlapping(&mut self) {
        let of = |fragments: &[Vec<u32>]| -> Vec<usize> {
            (0..fragments.len()).filter(|&module_index| !fragments[module_index].is_empty()).collect()
        };
        // If this run executed both modules at one address, a later run cannot know which of the
        // two is mapped.
        for (one, other) in overlap(&self.maps.modules, of(&self.verified).into_iter()) {
            self.drop_group(one);
            self.drop_group(other);
        }
        let left: Vec<usize> =
            (0..self.groups.len()).filter(|&module_index| !self.is_dropped(module_index)).collect();
        let used = |module_index: &usize| {
            !self.verified[*module_index].is_empty() || !self.unverified[*module_index].is_empty()
        };
        for (one, other) in overlap(&self.maps.modules, left.into_iter().filter(used)) {
            // This run executed at most one of the two modules, and that one stays.
            let unverified = if self.verified[one].is_empty() { one } else { other };
            self.drop_group(unverified);
        }
    }

    fn parts(mut self) -> Parts {
        let before = self.translator.unverified.fragments as u32;
        let mut parts =
            Parts { pages: Vec::new(), live: Vec::new(), gave_up: self.translator.unverified.gave_up };
        for module_index in 0..self.groups.len() {
            let mut live = std::mem::take(&mut self.verified[module_index]);
            live.append(&mut self.unverified[module_index]);
            live.sort_unstable();
            // A restored fragment that was verified may be in both lists; it counts once.
            live.dedup();
            // If the file holds fragments of a dropped group, the file must be written again.
            if self.is_dropped(module_index) {
                parts.gave_up |= live.first().is_some_and(|&fragment_index| fragment_index < before);
                live.clear();
            }
            let pages =
                if live.is_empty() { BTreeMap::new() } else { std::mem::take(&mut self.pages[module_index]) };
            parts.live.push(live);
            parts.pages.push(pages.into_iter().collect());
        }
        parts
    }
}
