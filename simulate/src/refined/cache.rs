//! One cache or buffer of any policy: tags by set and way, and what the policy remembers.

use crate::policy::Draw;
use crate::{Geometry, Policy};

/// No line has this tag.
const EMPTY: u64 = u64::MAX;

/// Tags of all sets, way by way.
pub(super) struct PolicyCache {
    pub(super) geometry: Geometry,
    line_shift: u32,
    tags: Vec<u64>,
    /// The tag that each set used last: to use it again changes nothing, whatever the policy.
    recent: Vec<u64>,
    /// When a way was used (LRU) or entered (FIFO) last.
    stamps: Vec<u64>,
    clock: u64,
    /// Tree-PLRU, a word per set: bit n is node n, the root is node 1, and a set bit points to the upper half.
    trees: Vec<u64>,
    draw: Draw,
}

impl PolicyCache {
    pub(super) fn new(geometry: Geometry) -> PolicyCache {
        let lines = geometry.sets as usize * geometry.ways as usize;
        let stamped = matches!(geometry.policy, Policy::Lru | Policy::Fifo);
        let planted = geometry.policy == Policy::TreePlru;
        PolicyCache {
            geometry,
            line_shift: geometry.line_bytes.trailing_zeros(),
            tags: vec![EMPTY; lines],
            recent: vec![EMPTY; geometry.sets as usize],
            stamps: vec![0; if stamped { lines } else { 0 }],
            clock: 0,
            trees: vec![0; if planted { geometry.sets as usize } else { 0 }],
            draw: Draw::new(),
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

    /// Uses a line, if it is there.
    pub(super) fn touch(&mut self, line: u64) -> bool {
        self.touch_tag(self.set(line), line)
    }

    /// Enters a line that is missing; the line that leaves for it.
    pub(super) fn fill(&mut self, line: u64) -> Option<u64> {
        self.fill_tag(self.set(line), line)
    }

    /// Takes a line out.
    pub(super) fn remove(&mut self, line: u64) -> bool {
        let set = self.set(line);
        let way = self.find(set, line);
        let ways = self.geometry.ways as usize;
        self.recent[set] = EMPTY;
        way.map(|way| self.tags[set * ways + way] = EMPTY).is_some()
    }

    /// Uses `tag` of set `set`, if it is there.
    pub(super) fn touch_tag(&mut self, set: usize, tag: u64) -> bool {
        if self.recent[set] == tag {
            return true;
        }
        let found = self.find(set, tag);
        if let Some(way) = found {
            self.recent[set] = tag;
            self.used(set, way);
        }
        found.is_some()
    }

    /// Enters a tag that is missing in set `set`; the one that leaves for it.
    pub(super) fn fill_tag(&mut self, set: usize, tag: u64) -> Option<u64> {
        let way = self.find(set, EMPTY).unwrap_or_else(|| self.victim(set));
        let place = set * self.geometry.ways as usize + way;
        let victim = std::mem::replace(&mut self.tags[place], tag);
        if self.geometry.policy == Policy::Fifo {
            self.stamp(place);
        }
        self.recent[set] = tag;
        self.used(set, way);
        (victim != EMPTY).then_some(victim)
    }

    fn stamp(&mut self, place: usize) {
        self.clock += 1;
        self.stamps[place] = self.clock;
    }

    fn used(&mut self, set: usize, way: usize) {
        match self.geometry.policy {
            Policy::Lru => self.stamp(set * self.geometry.ways as usize + way),
            Policy::TreePlru => {
                // From the leaf to the root, each node points to the half where the way is not.
                let leaves = (self.geometry.ways as usize).next_power_of_two();
                let mut node = leaves + way;
                while node > 1 {
                    let lower = node & 1 == 0;
                    node >>= 1;
                    self.trees[set] = self.trees[set] & !(1 << node) | u64::from(lower) << node;
                }
            }
            Policy::Fifo | Policy::Random => {}
        }
    }

    fn victim(&mut self, set: usize) -> usize {
        let ways = self.geometry.ways as usize;
        match self.geometry.policy {
            Policy::Lru | Policy::Fifo => {
                let stamps = &self.stamps[set * ways..(set + 1) * ways];
                stamps.iter().enumerate().min_by_key(|(_, stamp)| **stamp).map_or(0, |(way, _)| way)
            }
            Policy::Random => self.draw.below(self.geometry.ways) as usize,
            Policy::TreePlru => {
                let (mut node, mut first, mut count) = (1, 0, ways.next_power_of_two());
                while count > 1 {
                    count /= 2;
                    let upper = self.trees[set] >> node & 1 != 0 && first + count < ways;
                    first += if upper { count } else { 0 };
                    node = 2 * node + usize::from(upper);
                }
                first
            }
        }
    }
}
