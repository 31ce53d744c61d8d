//! One cache or buffer of any policy: tags by set and way, and what the policy remembers.
//!
//! **Invariants.** A set holds a tag at most once. A policy is asked for a victim only where a set
//! has no empty way. `recent` names the tag that its set used last, or nothing: using that tag
//! again changes nothing, whatever the policy, so the search is skipped.

use crate::policy::Replacement;
use crate::Geometry;

/// No line has this tag.
const EMPTY: u64 = u64::MAX;

/// Tags of all sets, way by way.
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

    /// Number of the line that holds `address`.
    pub(super) fn line(&self, address: u64) -> u64 {
        address >> self.line_shift
    }

    /// First byte of a line.
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

    /// Whether a line is there; nothing changes.
    pub(super) fn holds(&self, line: u64) -> bool {
        self.find(self.set(line), line).is_some()
    }

    /// Uses a line if it is there, and returns whether it was.
    pub(super) fn touch(&mut self, line: u64) -> bool {
        self.touch_tag(self.set(line), line)
    }

    /// Enters a line that is missing, and returns the line that leaves for it.
    pub(super) fn fill(&mut self, line: u64) -> Option<u64> {
        self.fill_tag(self.set(line), line)
    }

    /// Takes a line out, and returns whether it was there.
    pub(super) fn remove(&mut self, line: u64) -> bool {
        let set = self.set(line);
        let way = self.find(set, line);
        let ways = self.geometry.ways as usize;
        self.recent[set] = EMPTY;
        way.map(|way| self.tags[set * ways + way] = EMPTY).is_some()
    }

    /// Uses `tag` of set `set` if it is there, and returns whether it was.
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

    /// Enters a tag that is missing in set `set`, and returns the one that leaves for it.
    pub(super) fn fill_tag(&mut self, set: usize, tag: u64) -> Option<u64> {
        // An empty way, the lowest first; only a full set gives a line up.
        let way = self.find(set, EMPTY).unwrap_or_else(|| self.replacement.victim(set));
        let place = set * self.geometry.ways as usize + way;
        let victim = std::mem::replace(&mut self.tags[place], tag);
        self.recent[set] = tag;
        self.replacement.entered(set, way);
        (victim != EMPTY).then_some(victim)
    }
}
