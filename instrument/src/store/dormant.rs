//! What was restored sleeps by module, and wakes when the module is executed for the first time and still holds what was translated.
//!
//! All mappings of one file wake together: direct branches lead from one to the other. Between files there are none.

use super::hash;
use crate::decode::CodeReader;
use crate::memory;
use crate::translate::{Modules, Translator};
use std::collections::BTreeMap;

pub(crate) const PAGE: u64 = 4096;

/// A page of code and the hash of what it held.
pub(crate) type PageHash = (u64, u64);

/// Sleeping translations, by number of the module.
#[derive(Default)]
pub(crate) struct Dormant {
    /// Pages that were translated, in order; of modules that are awake too.
    pub(crate) pages: Vec<Vec<PageHash>>,
    /// Fragments; none of a module that is awake.
    pub(crate) live: Vec<Vec<u32>>,
    /// Fragments restored, awake or not.
    pub(crate) fragments: usize,
    /// Exits restored.
    pub(crate) exits: usize,
    /// A module held something else than what was translated.
    pub(crate) mismatch: bool,
}

impl Dormant {
    fn sleeps(&self, module: u32) -> bool {
        self.live.get(module as usize).is_some_and(|live| !live.is_empty())
    }
}

impl Translator {
    /// Wakes what sleeps of `module`, which is about to be executed; whether anything woke.
    pub(crate) fn awaken(&mut self, module: u32, modules: &impl Modules) -> bool {
        if !self.dormant.sleeps(module) {
            return false;
        }
        let path = |number: u32| modules.module(number).map(|module| &module.path);
        let own = path(module);
        let group: Vec<u32> = (0..self.dormant.live.len() as u32)
            .filter(|&n| self.dormant.sleeps(n) && path(n) == own)
            .collect();
        let same = group.iter().all(|&n| holds(self.reader.pid, &self.dormant.pages[n as usize]));
        for &n in &group {
            let live = std::mem::take(&mut self.dormant.live[n as usize]);
            if same {
                self.enter(&live);
            }
        }
        self.dormant.mismatch |= !same;
        if same {
            self.link_new_exits();
        }
        same
    }

    /// Fragments can be found again, and those that were looked up will be.
    fn enter(&mut self, live: &[u32]) {
        self.cache.map.reserve(live.len());
        for &f in live {
            let fragment = &self.cache.fragments[f as usize];
            let (pc, published) = (fragment.pc, fragment.entry.is_some());
            // What was translated in this run stays.
            if *self.cache.map.entry(pc).or_insert(f) == f && published {
                self.cache.publish(pc, f as usize);
            }
        }
    }

    /// Exits of this run may wait for what has just woken.
    fn link_new_exits(&mut self) {
        for n in self.dormant.exits..self.cache.exits.len() {
            let target = self.cache.exits[n].target;
            if let Some(f) = self.cache.find(target).filter(|_| self.cache.pending.contains_key(&target)) {
                self.cache.link_pending(f);
            }
        }
    }
}

/// Whether process `pid` holds these pages.
fn holds(pid: i32, pages: &[PageHash]) -> bool {
    const RUN_PAGES: usize = 16;
    let mut buffer = vec![0u8; RUN_PAGES * PAGE as usize];
    let mut rest = pages;
    while let Some(&(start, _)) = rest.first() {
        let run = rest
            .iter()
            .zip(0u64..)
            .take(RUN_PAGES)
            .take_while(|((page, _), n)| *page == start + n * PAGE)
            .count();
        let bytes = &mut buffer[..run * PAGE as usize];
        if memory::read_target(pid, start, bytes) != bytes.len() {
            return false;
        }
        let same = |(bytes, (_, expected)): (&[u8], &PageHash)| hash(bytes, 0) == *expected;
        if !bytes.chunks_exact(PAGE as usize).zip(&rest[..run]).all(same) {
            return false;
        }
        rest = &rest[run..];
    }
    true
}

/// The hashes of the pages that the blocks of some fragments lie in, by module; fragments whose pages are not known any more are left out.
pub(super) fn pages_of(
    translator: &Translator,
    live: &[u32],
    modules: usize,
) -> (Vec<Vec<PageHash>>, Vec<Vec<u32>>) {
    let mut known: Vec<BTreeMap<u64, Option<u64>>> = vec![BTreeMap::new(); modules];
    let mut by_module = vec![Vec::new(); modules];
    for &f in live {
        let fragment = &translator.cache.fragments[f as usize];
        let blocks = &translator.blocks[fragment.first_block as usize..][..fragment.blocks as usize];
        let module = blocks[0].module as usize;
        let mut whole = true;
        for block in blocks {
            let mut page = block.ip & !(PAGE - 1);
            while page < block.ip + u64::from(block.len.max(1)) {
                let found = *known[module]
                    .entry(page)
                    .or_insert_with(|| page_hash(&translator.reader, &translator.dormant, module, page));
                whole &= found.is_some();
                page += PAGE;
            }
        }
        if whole {
            by_module[module].push(f);
        }
    }
    let pages = known
        .into_iter()
        .map(|pages| pages.into_iter().filter_map(|(page, hash)| Some((page, hash?))).collect());
    (pages.collect(), by_module)
}

fn page_hash(reader: &CodeReader, dormant: &Dormant, module: usize, page: u64) -> Option<u64> {
    if let Some(bytes) = reader.known_page(page) {
        return Some(hash(bytes, 0));
    }
    let pages = dormant.pages.get(module)?;
    let n = pages.binary_search_by_key(&page, |known| known.0).ok()?;
    Some(pages[n].1)
}
