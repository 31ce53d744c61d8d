//! One touch on its way through the levels, and the lines that move because of it.
//!
//! **Definitions.** A touch looks its line up from the first level outwards. The line then enters
//! the levels inside the one that had it, the outermost first. A line is *dirty* in the level where
//! a store found or entered it. A dirty line that leaves a level is written to the exclusive level
//! outside, or else to the nearest outer level that holds it, or else to memory. An exclusive level
//! that gives a dirty line away gives the dirt to the next level inside that the line enters. A
//! level that takes lines from inner ones takes their dirt as well.
//!
//! First levels have virtual addresses, all others physical ones ([`crate::Pages`]).

use super::cache::{Arrival, Look, Use, Victim};
use super::prefetch::{Outcome, PREFETCH_PAGE_BYTES};
use super::{CacheLevel, Refined, Touch};
use crate::touch::Side;
use crate::{Inclusion, LevelTraffic, Sharing, StoreMiss, CACHES_MAX};

/// Why a line enters a level.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// A reference missed it.
    Reference,
    /// A prefetcher of this level wants it.
    Prefetch(usize),
    /// The level inside has replaced it.
    Victim,
}

/// A line on its way into a level.
#[derive(Clone, Copy)]
struct Entering {
    core: usize,
    side: Side,
    /// In the level's kind of addresses.
    address: u64,
    purpose: Use,
    origin: Origin,
}

impl Refined {
    /// Takes one line through the levels, and then the lines that their prefetchers fetch.
    pub(super) fn touch(&mut self, touch: Touch, missed: &mut [bool; CACHES_MAX]) {
        // Most touches hit the first level, and it has no prefetcher.
        let hits = self.look(touch, 0, touch.address, touch.store, Origin::Reference);
        if hits && self.level(touch.core, touch.side, 0).prefetching.is_none() {
            return;
        }
        // First the line itself is entered, from the level that has it inwards.
        let reached = if hits { 0 } else { self.bring(touch, 0, Origin::Reference) };
        let levels = self.levels.outer.len() + 1;
        missed[..reached.min(levels)].fill(true);
        // Then the prefetchers of the levels that were reached choose their lines; all choose
        // before any of them fetches.
        let mut wanted = std::mem::take(&mut self.wanted);
        for number in 0..levels.min(reached + 1) {
            let level = self.level(touch.core, touch.side, number);
            if level.prefetching.is_none() {
                continue;
            }
            let outcome = if number == reached { Outcome::Hit } else { Outcome::Miss };
            let site = (touch.side == Side::Data).then_some(touch.site);
            level.prefetching.touched(site, touch.address, outcome, |address| wanted.push((number, address)));
        }
        for (number, address) in wanted.drain(..) {
            if (address ^ touch.address) < PREFETCH_PAGE_BYTES {
                self.prefetch(Touch { address, store: false, ..touch }, number);
            }
        }
        self.wanted = wanted;
    }

    /// Fetches a line into level `number` if the level lacks it.
    fn prefetch(&mut self, touch: Touch, number: usize) {
        let address = self.address_at(number, touch.address);
        let cache = &self.level(touch.core, touch.side, number).cache;
        if !cache.holds(cache.line(address)) {
            self.bring(touch, number, Origin::Prefetch(number));
        }
    }

    /// A virtual address as level `number` sees it.
    fn address_at(&self, number: usize, address: u64) -> u64 {
        match number {
            0 => address,
            _ => self.levels.pages.physical(self.levels.large_pages.as_ref(), address),
        }
    }

    fn level(&mut self, core: usize, side: Side, number: usize) -> &mut CacheLevel {
        let core = &mut self.cores[core];
        match (number.checked_sub(1), side) {
            (None, Side::Data) => &mut core.data,
            (None, Side::Instruction) => core.instruction.as_mut().expect("fetches need a first level"),
            (Some(outer), _) => {
                core.outer[outer].as_mut().or(self.shared[outer].as_mut()).expect("of one or of all")
            }
        }
    }

    fn moved(&mut self, side: Side, number: usize) -> &mut LevelTraffic {
        match (number, side) {
            (0, Side::Instruction) => &mut self.traffic.instruction,
            _ => &mut self.traffic.levels[number],
        }
    }

    fn is(&self, number: usize, inclusion: Inclusion) -> bool {
        let outer = number.checked_sub(1).and_then(|outer| self.levels.outer.get(outer));
        outer.is_some_and(|outer| outer.inclusion == inclusion)
    }

    /// Brings a line into level `from`, which lacks it. Returns the level that had it, or the
    /// number of levels.
    fn bring(&mut self, touch: Touch, from: usize, origin: Origin) -> usize {
        let Touch { core, side, .. } = touch;
        let levels = self.levels.outer.len() + 1;
        let (mut enters, mut dirty) = ([false; CACHES_MAX], [false; CACHES_MAX]);
        let mut store = touch.store;
        let mut reached = from;
        let mut address = self.address_at(from, touch.address);
        while reached < levels {
            if reached == 1 && from == 0 {
                address = self.address_at(1, touch.address);
            }
            // An exclusive level gives its line away instead of keeping it, dirt and all.
            let moves = reached > from && self.is(reached, Inclusion::Exclusive);
            if moves {
                if let Some(was_dirty) = self.take(touch, reached, address) {
                    let inside = enters.iter().rposition(|enters| *enters);
                    inside.into_iter().for_each(|inside| dirty[inside] |= was_dirty);
                    break;
                }
            } else if reached > from && self.look(touch, reached, address, store, origin) {
                break;
            }
            // Behind a level that the line enters, a store counts as a fill.
            let bypasses = self.level(core, side, reached).cache.geometry.store_miss == StoreMiss::Bypass;
            let passes = store && bypasses;
            enters[reached] = !(moves || passes);
            dirty[reached] = store && enters[reached];
            store = passes;
            reached += 1;
        }
        if reached == levels {
            self.traffic.stores_to_memory += u64::from(store);
        } else {
            self.moved(side, reached).supplied += 1;
        }
        // Levels are entered from the outside inwards, so that inclusion holds at each step.
        for number in (from..reached).rev().filter(|&number| enters[number]) {
            let address = if number == 0 { touch.address } else { address };
            let purpose = if dirty[number] { Use::Write } else { Use::Read };
            self.enter(Entering { core, side, address, purpose, origin }, number);
        }
        reached
    }

    /// Takes a line out of an exclusive level. Returns whether it was dirty, if it was there.
    fn take(&mut self, touch: Touch, number: usize, address: u64) -> Option<bool> {
        let cache = &mut self.level(touch.core, touch.side, number).cache;
        cache.remove(cache.line(address))
    }

    /// Looks a line up in level `number`, and returns whether it is there.
    fn look(&mut self, touch: Touch, number: usize, address: u64, store: bool, origin: Origin) -> bool {
        let cache = &mut self.level(touch.core, touch.side, number).cache;
        let line = cache.line(address);
        if origin != Origin::Reference {
            return cache.pass(line);
        }
        let look = cache.touch(line, if store { Use::Write } else { Use::Read });
        if look == Look::Late {
            self.moved(touch.side, number).late += 1;
        }
        look != Look::Miss
    }

    /// Enters a missing line. The line that is replaced leaves the levels inside, or enters the
    /// level outside.
    fn enter(&mut self, line: Entering, number: usize) {
        let Entering { core, side, address, purpose, origin } = line;
        let cache = &mut self.level(core, side, number).cache;
        let arrival = if origin == Origin::Prefetch(number) { Arrival::Later } else { Arrival::Now };
        let victim = cache.fill(cache.line(address), purpose, arrival);
        let moved = self.moved(side, number);
        moved.lines_in += 1;
        moved.prefetched_in += u64::from(matches!(origin, Origin::Prefetch(_)));
        if let Some(victim) = victim {
            self.replaced(core, side, number, victim);
        }
    }

    /// Sends a line that level `number` has replaced where it belongs.
    fn replaced(&mut self, core: usize, side: Side, number: usize, victim: Victim) {
        let cache = &self.level(core, side, number).cache;
        let (address, line_bytes) = (cache.address(victim.line), u64::from(cache.geometry.line_bytes));
        let mut dirty = victim.dirty;
        if self.is(number, Inclusion::Inclusive) {
            dirty |= self.invalidate(core, number, address, line_bytes);
        }
        let exclusive = self.is(number + 1, Inclusion::Exclusive);
        let moved = self.moved(side, number);
        moved.dirty_out += u64::from(dirty);
        moved.clean_out += u64::from(exclusive && !dirty);
        if !(exclusive || dirty) {
            return;
        }
        let address = if number == 0 { self.address_at(1, address) } else { address };
        if !exclusive {
            return self.write_back(core, side, number + 1, address);
        }
        let outside = &mut self.level(core, side, number + 1).cache;
        let line = outside.line(address);
        let purpose = if dirty { Use::Write } else { Use::Read };
        if !outside.pass(line) {
            self.enter(Entering { core, side, address, purpose, origin: Origin::Victim }, number + 1);
        } else if dirty {
            outside.mark_dirty(line);
        }
    }

    /// Writes a line to the nearest level from `number` on that holds it, or to memory.
    fn write_back(&mut self, core: usize, side: Side, number: usize, address: u64) {
        for number in number..=self.levels.outer.len() {
            let cache = &mut self.level(core, side, number).cache;
            if cache.mark_dirty(cache.line(address)) {
                return;
            }
        }
    }

    /// Removes `line_bytes` at the physical `address` from the levels inside `number`: from those
    /// of the core, or of all cores that share the level, and from shared ones. Returns whether one
    /// of them was dirty.
    fn invalidate(&mut self, core: usize, number: usize, address: u64, line_bytes: u64) -> bool {
        let pages = self.levels.pages;
        let virtuals: Vec<u64> = pages.virtuals(self.levels.large_pages.as_ref(), address).collect();
        let shared = self.levels.outer[number - 1].sharing == Sharing::AllThreads;
        let mut dirty = 0;
        let Refined { cores, shared: all, traffic, .. } = self;
        for (_, one) in cores.iter_mut().enumerate().filter(|(other, _)| shared || *other == core) {
            for &address in &virtuals {
                let first = one.instruction.as_mut().map(|level| level.invalidate(address, line_bytes));
                dirty += first.unwrap_or(0);
                let written = one.data.invalidate(address, line_bytes);
                traffic.levels[0].dirty_out += written;
                dirty += written;
            }
            for (level, moved) in one.outer[..number - 1].iter_mut().zip(&mut traffic.levels[1..]) {
                let written = level.as_mut().map_or(0, |level| level.invalidate(address, line_bytes));
                moved.dirty_out += written;
                dirty += written;
            }
        }
        for (level, moved) in all[..number - 1].iter_mut().zip(&mut traffic.levels[1..]) {
            let written = level.as_mut().map_or(0, |level| level.invalidate(address, line_bytes));
            moved.dirty_out += written;
            dirty += written;
        }
        dirty > 0
    }
}

impl CacheLevel {
    /// Removes the lines of `line_bytes` at `address`. Returns how many were dirty.
    fn invalidate(&mut self, address: u64, line_bytes: u64) -> u64 {
        let own_bytes = u64::from(self.cache.geometry.line_bytes);
        let mut dirty = 0;
        for offset in (0..line_bytes).step_by(own_bytes as usize) {
            let line = self.cache.line(address + offset);
            dirty += u64::from(self.cache.remove(line) == Some(true));
        }
        dirty
    }
}
