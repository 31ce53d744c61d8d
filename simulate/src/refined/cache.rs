//! A cache, or a buffer of translations, with any replacement policy: tags by set and way, dirty
//! bits, and the policy's state.
//!
//! **Invariants.** A set holds a tag at most once. A policy is asked for a victim only if a set has
//! no empty way. `recent` is the place that its set used last: where the policy does not count
//! repeats, using that line again changes nothing, so the search is skipped. Large caches have no
//! such table, because it would cost more misses of the host than it saves.
//!
//! **Shapes.** An entry is a tag, shifted up by one above its dirty bit, so that a set's tags and
//! dirty bits are in the same lines of the host. Tags have at most 63 bits.

use crate::policy::{Fill, Repeats, Replacement, Shape};
use crate::Geometry;

/// The entry of an empty way.
const EMPTY: u64 = u64::MAX;

/// The most sets with a table of their last places.
const RECENT_SETS_MAX: usize = 4096;

/// The entries of all sets, way by way.
pub(super) struct PolicyCache {
    pub(super) geometry: Geometry,
    line_shift: u32,
    /// Sets of a slice.
    slice_sets: u64,
    entries: Vec<u64>,
    /// Touches so far, and for each line the last touch for which it is late; empty where
    /// prefetched lines arrive at once.
    touches: u64,
    late_until: Vec<u64>,
    /// The place that each set used last; empty where it is not kept.
    recent: Vec<usize>,
    replacement: Box<dyn Replacement>,
}

/// What a look-up does with the line.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Read,
    Write,
}

/// The outcome of a look-up.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    Miss,
    Hit,
    /// The line is there, but was fetched too late to have arrived.
    Late,
}

/// When a line that enters is there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    Now,
    /// After the level's declared number of touches.
    Later,
}

/// A line that was replaced.
#[derive(Clone, Copy)]
pub(super) struct Victim {
    pub(super) line: u64,
    pub(super) dirty: bool,
}

impl PolicyCache {
    pub(super) fn new(geometry: Geometry) -> PolicyCache {
        let sets = geometry.sets as usize;
        let lines = sets * geometry.ways as usize;
        let shape = Shape { sets, ways: geometry.ways, variant: geometry.policy.variant };
        let keeps = geometry.policy.repeats == Repeats::ChangeNothing && sets <= RECENT_SETS_MAX;
        let late = if geometry.prefetch.late_touches > 0 { lines } else { 0 };
        PolicyCache {
            geometry,
            line_shift: geometry.line_bytes.trailing_zeros(),
            slice_sets: geometry.sets / geometry.slices.slices(),
            entries: vec![EMPTY; lines],
            touches: 0,
            late_until: vec![0; late],
            recent: vec![usize::MAX; if keeps { sets } else { 0 }],
            replacement: (geometry.policy.new)(shape),
        }
    }

    /// The number of the line that holds `address`.
    pub(super) fn line(&self, address: u64) -> u64 {
        address >> self.line_shift
    }

    /// The first byte of a line.
    pub(super) fn address(&self, line: u64) -> u64 {
        line << self.line_shift
    }

    fn set(&self, line: u64) -> usize {
        let sets = self.slice_sets;
        let within = if sets.is_power_of_two() { line & (sets - 1) } else { line % sets };
        if self.geometry.slices.masks().is_empty() {
            return within as usize;
        }
        (self.geometry.slices.slice(line << self.line_shift) * sets + within) as usize
    }

    /// The place of `tag` in the columns, if the set holds it.
    fn find(&self, set: usize, tag: u64) -> Option<usize> {
        let ways = self.geometry.ways as usize;
        let clean = tag << 1;
        let place = self.entries[set * ways..(set + 1) * ways].iter().position(|&other| other & !1 == clean);
        place.map(|way| set * ways + way)
    }

    /// Whether a line is in the cache. Nothing changes.
    pub(super) fn holds(&self, line: u64) -> bool {
        self.find(self.set(line), line).is_some()
    }

    /// Looks a line up for a reference.
    pub(super) fn touch(&mut self, line: u64, purpose: Use) -> Look {
        self.touches += 1;
        let Some(place) = self.touch_tag(self.set(line), line) else { return Look::Miss };
        self.entries[place] |= u64::from(purpose == Use::Write);
        let Some(until) = self.late_until.get_mut(place) else { return Look::Hit };
        // Whoever asks first finds the line late; then it is there.
        if std::mem::take(until) >= self.touches {
            Look::Late
        } else {
            Look::Hit
        }
    }

    /// Uses a line for a prefetch, or as a victim of the level inside, if it is there.
    pub(super) fn pass(&mut self, line: u64) -> bool {
        self.touch_tag(self.set(line), line).is_some()
    }

    /// Makes a line dirty if it is there; for the policy this is no use.
    pub(super) fn mark_dirty(&mut self, line: u64) -> bool {
        let place = self.find(self.set(line), line);
        place.map(|place| self.entries[place] |= 1).is_some()
    }

    /// Enters a missing line, and returns the line that is replaced, if any.
    pub(super) fn fill(&mut self, line: u64, purpose: Use, arrival: Arrival) -> Option<Victim> {
        let (place, former) = self.fill_tag(self.set(line), line);
        self.entries[place] |= u64::from(purpose == Use::Write);
        if let Some(until) = self.late_until.get_mut(place) {
            let late = u64::from(self.geometry.prefetch.late_touches);
            *until = if arrival == Arrival::Later { self.touches + late } else { 0 };
        }
        (former != EMPTY).then_some(Victim { line: former >> 1, dirty: former & 1 == 1 })
    }

    /// Removes a line. Returns whether it was dirty, if it was there.
    pub(super) fn remove(&mut self, line: u64) -> Option<bool> {
        let place = self.find(self.set(line), line)?;
        Some(std::mem::replace(&mut self.entries[place], EMPTY) & 1 == 1)
    }

    /// Uses `tag` of set `set` if the set holds it, and returns its place.
    pub(super) fn touch_tag(&mut self, set: usize, tag: u64) -> Option<usize> {
        let recent = self.recent.get(set).copied().unwrap_or(usize::MAX);
        if self.entries.get(recent).is_some_and(|entry| entry & !1 == tag << 1) {
            return Some(recent);
        }
        let place = self.find(set, tag)?;
        self.note(set, place);
        self.replacement.used(set, place - set * self.geometry.ways as usize);
        Some(place)
    }

    fn note(&mut self, set: usize, place: usize) {
        if let Some(recent) = self.recent.get_mut(set) {
            *recent = place;
        }
    }

    /// Enters a missing tag in set `set`. Returns its place, and the entry that was there.
    pub(super) fn fill_tag(&mut self, set: usize, tag: u64) -> (usize, u64) {
        let first = set * self.geometry.ways as usize;
        let entries = &self.entries[first..first + self.geometry.ways as usize];
        let empty = |entry: &u64| *entry == EMPTY;
        // An empty way, if there is one; only a full set loses a line.
        let way = match self.replacement.missed(set) {
            Fill::Lowest => entries.iter().position(empty),
            Fill::Highest => entries.iter().rposition(empty),
        };
        let way = way.unwrap_or_else(|| self.replacement.victim(set));
        let place = first + way;
        let former = std::mem::replace(&mut self.entries[place], tag << 1);
        self.note(set, place);
        self.replacement.entered(set, way);
        (place, former)
    }
}
