//! The slow twin of the caches: lists of lines and sets of bytes, by the definitions.

use crate::caches::{Access, PrivateLevels};
use simulate::Geometry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Shared,
    Exclusive,
    Modified,
}

/// What is counted, in the order of the fields of `Counts` from `cold` on, then upgrades,
/// invalidations, dirty transfers, write-backs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) misses: [u64; 5],
    pub(crate) private_misses: u64,
    pub(crate) moves: [u64; 4],
    pub(crate) atomic_transfers: u64,
    /// (line, site that missed, site that took) to (true, false).
    pub(crate) pairs: BTreeMap<(u64, u32, u32), (u64, u64)>,
}

/// Sets of lines in the order of their last use, the most recent one first.
struct Lists {
    geometry: Geometry,
    sets: HashMap<u64, Vec<u64>>,
}

impl Lists {
    fn new(geometry: Geometry) -> Lists {
        Lists { geometry, sets: HashMap::new() }
    }

    fn has(&self, line: u64) -> bool {
        self.sets.values().any(|set| set.contains(&line))
    }

    fn remove(&mut self, line: u64) {
        self.sets.values_mut().for_each(|set| set.retain(|&other| other != line));
    }

    /// Uses a line; returns the one that had to leave.
    fn take(&mut self, line: u64) -> Option<u64> {
        self.remove(line);
        let set = self.sets.entry(line % self.geometry.sets).or_default();
        set.insert(0, line);
        if set.len() > self.geometry.ways as usize {
            set.pop()
        } else {
            None
        }
    }
}

struct Core {
    first: Lists,
    second: Option<Lists>,
    twin: Lists,
    states: HashMap<u64, State>,
    ever: HashSet<u64>,
    /// Lines that a write took, and its site.
    taken: HashMap<u64, u32>,
    stale: BTreeSet<(u64, u64)>,
    /// Sharing misses that are not decided: by line the sites.
    open: HashMap<u64, (u32, u32)>,
}

pub(crate) struct Naive {
    line_bytes: u64,
    cores: Vec<Core>,
    pub(crate) counted: Counted,
}

impl Naive {
    pub(crate) fn new(levels: PrivateLevels, cores: usize) -> Naive {
        let lines = levels.first.sets as u32 * levels.first.ways;
        let core = || Core {
            first: Lists::new(levels.first),
            second: levels.second.map(Lists::new),
            twin: Lists::new(Geometry { sets: 1, ways: lines, ..levels.first }),
            states: HashMap::new(),
            ever: HashSet::new(),
            taken: HashMap::new(),
            stale: BTreeSet::new(),
            open: HashMap::new(),
        };
        let cores = (0..cores).map(|_| core()).collect();
        Naive { line_bytes: levels.first.line_bytes.into(), cores, counted: Counted::default() }
    }

    pub(crate) fn access(&mut self, core: usize, address: u64, size_bytes: u32, access: Access, site: u32) {
        let bytes = address..address + u64::from(size_bytes);
        let lines: BTreeSet<u64> = bytes.clone().map(|byte| byte / self.line_bytes).collect();
        let mut transfers = false;
        for line in lines {
            let of_line: Vec<u64> = bytes.clone().filter(|byte| byte / self.line_bytes == line).collect();
            transfers |= self.touch(core, line, &of_line, access, site);
        }
        self.counted.atomic_transfers += u64::from(transfers && access == Access::Atomic);
    }

    fn holders(&self, line: u64, but: usize) -> Vec<usize> {
        (0..self.cores.len())
            .filter(|&core| core != but && self.cores[core].states.contains_key(&line))
            .collect()
    }

    fn touch(&mut self, core: usize, line: u64, bytes: &[u64], access: Access, site: u32) -> bool {
        let writes = access != Access::Load;
        let others = self.holders(line, core);
        let mut transfers = false;
        if !self.cores[core].first.has(line) {
            self.classify(core, line, site);
            if !self.cores[core].states.contains_key(&line) {
                self.counted.private_misses += 1;
                transfers = !others.is_empty();
                for &other in &others {
                    let was = self.cores[other].states.insert(line, State::Shared);
                    self.counted.moves[2] += u64::from(was == Some(State::Modified));
                }
                if writes {
                    self.take(line, &others, site);
                }
                let state = if others.is_empty() || writes { State::Exclusive } else { State::Shared };
                self.cores[core].states.insert(line, state);
            }
            self.enter(core, line);
        }
        self.cores[core].twin.take(line);
        self.cores[core].first.take(line);
        // Touches of stale bytes.
        if bytes.iter().any(|&byte| self.cores[core].stale.contains(&(line, byte))) {
            self.cores[core].stale.retain(|stale| stale.0 != line);
            self.decide(core, line, |pair| pair.0 += 1, 3);
        }
        if writes {
            if self.cores[core].states[&line] == State::Shared {
                let others = self.holders(line, core);
                self.take(line, &others, site);
                self.counted.moves[0] += 1;
                transfers |= !others.is_empty();
            }
            self.cores[core].states.insert(line, State::Modified);
            for (_, other) in self.cores.iter_mut().enumerate().filter(|(other, _)| *other != core) {
                other.stale.extend(bytes.iter().map(|&byte| (line, byte)));
            }
        }
        transfers
    }

    fn classify(&mut self, core: usize, line: u64, site: u32) {
        let own = &mut self.cores[core];
        if own.ever.insert(line) {
            self.counted.misses[0] += 1;
            own.stale.retain(|stale| stale.0 != line);
        } else if let Some(took) = own.taken.remove(&line) {
            own.open.insert(line, (site, took));
        } else if own.twin.has(line) {
            self.counted.misses[2] += 1;
        } else {
            self.counted.misses[1] += 1;
        }
    }

    fn decide(&mut self, core: usize, line: u64, add: impl Fn(&mut (u64, u64)), column: usize) {
        if let Some((missed, took)) = self.cores[core].open.remove(&line) {
            add(self.counted.pairs.entry((line, missed, took)).or_default());
            self.counted.misses[column] += 1;
        }
    }

    fn take(&mut self, line: u64, others: &[usize], site: u32) {
        for &other in others {
            self.counted.moves[1] += 1;
            self.decide(other, line, |pair| pair.1 += 1, 4);
            let lost = &mut self.cores[other];
            lost.states.remove(&line);
            lost.first.remove(line);
            lost.twin.remove(line);
            lost.second.iter_mut().for_each(|second| second.remove(line));
            lost.taken.insert(line, site);
        }
    }

    fn enter(&mut self, core: usize, line: u64) {
        let own = &mut self.cores[core];
        let left = [own.first.take(line), own.second.as_mut().and_then(|second| second.take(line))];
        for gone in left.into_iter().flatten() {
            let own = &mut self.cores[core];
            if own.first.has(gone) || own.second.as_ref().is_some_and(|second| second.has(gone)) {
                continue;
            }
            let was = own.states.remove(&gone);
            self.counted.moves[3] += u64::from(was == Some(State::Modified));
            self.decide(core, gone, |pair| pair.1 += 1, 4);
        }
    }

    pub(crate) fn finish(mut self) -> Counted {
        for core in 0..self.cores.len() {
            let open: Vec<u64> = self.cores[core].open.keys().copied().collect();
            open.into_iter().for_each(|line| self.decide(core, line, |pair| pair.1 += 1, 4));
        }
        self.counted
    }
}
