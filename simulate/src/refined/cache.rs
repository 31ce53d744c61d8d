//! A cache, or a buffer of translations, with any replacement policy: tags by set and way, and the
//! policy's state.
//!
//! **Invariants.** A set holds a tag at most once. A policy is asked for a victim only if a set has
//! no empty way. `recent` is the tag that its set used last, or `EMPTY`: using that tag again
//! changes nothing, whatever the policy, so the search is skipped.

use crate::policy::Replacement;
use crate::Geometry;

/// No line has this tag.
const EMPTY: u64 = u64::MAX;

/// The tags of all sets, way by way.
pub(super) struct PolicyCache {
    pub(super) geometry: Geometry,
    line_shift: u32,
    tags: Vec<u64>,
    /// The tag that each set used last.
    recent: Vec<u64>,
    replacement: Box<dyn Replacement>,
}

impl PolicyCache {
    pub(super) fn new(geometry: Geometry) -> PolicyCache {
        let sets = geometry.sets as usize;
        PolicyCache {
            geometry,
            line_shift: geometry.line_bytes.trailing_zeros(),
            tags: vec![EMPTY; sets * geometry.ways as usize],
            recent: vec![EMPTY; sets],
            replacement: (geometry.policy.new)(sets, geometry.ways),
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
        let sets = self.geometry.sets;
        (if sets.is_power_of_two() { line & (sets - 1) } else { line % sets }) as usize
    }

    fn find(&self, set: usize, tag: u64) -> Option<usize> {
        let ways = self.geometry.ways as usize;
        self.tags[set * ways..(set + 1) * ways].iter().position(|&other| other == tag)
    }

    /// Whether a line is in the cache. Nothing changes.
    pub(super) fn holds(&self, line: u64) -> bool {
        self.find(self.set(line), line).is_some()
    }

    /// Uses a line if it is in the cache, and returns whether it was.
    pub(super) fn touch(&mut self, line: u64) -> bool {
        self.touch_tag(self.set(line), line)
    }

    /// Enters a missing line, and returns the line that is replaced, if any.
    pub(super) fn fill(&mut self, line: u64) -> Option<u64> {
        self.fill_tag(self.set(line), line)
    }

    /// Removes a line, and returns whether it was in the cache.
    pub(super) fn remove(&mut self, line: u64) -> bool {
        let set = self.set(line);
        let way = self.find(set, line);
        let ways = self.geometry.ways as usize;
        self.recent[set] = EMPTY;
        way.map(|way| self.tags[set * ways + way] = EMPTY).is_some()
    }

    /// Uses `tag` of set `set` if the set holds it, and returns whether it did.
    pub(super) fn touch_tag(&mut self, set: usize, tag: u64) -> bool {
        if self.recent[set] == tag {
            return true;
        }
        let found = self.find(set, tag);
        if let Some(way) = found {
            self.recent[set] = tag;
            self.replacement.used(set, way);
        }
        found.is_some()
    }

    /// Enters a missing tag in set `set`, and returns the tag that is replaced, if any.
    pub(super) fn fill_tag(&mut self, set: usize, tag: u64) -> Option<u64> {
        // The lowest empty way; only a full set loses a line.
        let way = self.find(set, EMPTY).unwrap_or_else(|| self.replacement.victim(set));
        let place = set * self.geometry.ways as usize + way;
        let victim = std::mem::replace(&mut self.tags[place], tag);
        self.recent[set] = tag;
        self.replacement.entered(set, way);
        (victim != EMPTY).then_some(victim)
    }
}
