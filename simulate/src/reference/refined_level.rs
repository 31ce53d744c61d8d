//! A level of the slow twin of `refined`: its lines, and what its prefetchers remember.

use crate::policy::{Definition, Shape};
use crate::Geometry;
use std::collections::HashMap;

/// A cache of any policy.
pub(super) struct Cache<T> {
    pub(super) geometry: Geometry,
    /// By set and way, what is there and whether it is dirty.
    sets: Vec<Vec<Option<(T, bool)>>>,
    definition: Box<dyn Definition>,
}

impl<T: Copy + PartialEq> Cache<T> {
    pub(super) fn new(geometry: Geometry) -> Cache<T> {
        let (sets, variant) = (geometry.sets as usize, geometry.policy.variant);
        let shape = Shape { sets, ways: geometry.ways, variant };
        let empty = vec![None; geometry.ways as usize];
        Cache { geometry, sets: vec![empty; sets], definition: (geometry.policy.defined)(shape) }
    }

    /// The set of line or page `number`: the sets of a slice stand side by side.
    fn set(&self, number: u64) -> usize {
        let masks = self.geometry.slices.masks();
        let slice_sets = self.geometry.sets / 2u64.pow(masks.len() as u32);
        let address = number.wrapping_mul(self.geometry.line_bytes.into());
        let mut slice = 0;
        for (bit, mask) in masks.iter().enumerate() {
            let odd = (0..64).filter(|place| mask >> place & 1 == 1 && address >> place & 1 == 1).count() % 2;
            slice += (odd as u64) << bit;
        }
        (slice * slice_sets + number % slice_sets) as usize
    }

    fn find(&self, number: u64, what: T) -> Option<(usize, usize)> {
        let set = self.set(number);
        let is_it = |way: &Option<(T, bool)>| way.is_some_and(|(other, _)| other == what);
        self.sets[set].iter().position(is_it).map(|way| (set, way))
    }

    pub(super) fn holds(&self, number: u64, what: T) -> bool {
        self.find(number, what).is_some()
    }

    pub(super) fn touch(&mut self, number: u64, what: T) -> bool {
        let Some((set, way)) = self.find(number, what) else { return false };
        self.definition.used(set, way);
        true
    }

    pub(super) fn mark_dirty(&mut self, number: u64, what: T) -> bool {
        let Some((set, way)) = self.find(number, what) else { return false };
        self.sets[set][way] = Some((what, true));
        true
    }

    /// Enters what is missing, and returns what it replaces.
    pub(super) fn fill(&mut self, number: u64, what: T, dirty: bool) -> Option<(T, bool)> {
        let set = self.set(number);
        let filled: Vec<bool> = self.sets[set].iter().map(Option::is_some).collect();
        let way = self.definition.place(set, &filled);
        let victim = self.sets[set][way].replace((what, dirty));
        self.definition.entered(set, way);
        victim
    }

    /// Removes something, and returns whether it was dirty if it was there.
    pub(super) fn remove(&mut self, number: u64, what: T) -> Option<bool> {
        let (set, way) = self.find(number, what)?;
        self.sets[set][way].take().map(|(_, dirty)| dirty)
    }

    /// All that is there.
    pub(super) fn contents(&self) -> Vec<T> {
        self.sets.iter().flatten().flatten().map(|(what, _)| *what).collect()
    }
}

/// A level: its lines by number, and the past of its prefetchers.
pub(super) struct Level {
    pub(super) cache: Cache<u64>,
    /// Touches by references so far.
    pub(super) touches: u64,
    /// For a prefetched line that nothing asked for yet, the last touch for which it is late.
    pub(super) late_until: HashMap<u64, u64>,
    sites: HashMap<u32, (u32, Vec<u64>)>,
    /// Pages in the order of their last touch, each with the lines that were touched and how far
    /// ahead each touch has fetched.
    streams: Vec<(u64, Vec<Step>)>,
}

/// A touch of another line of a page than the one before it.
#[derive(Clone, Copy)]
struct Step {
    line: i64,
    /// The furthest line that was fetched then.
    fetched: Option<i64>,
}

impl Level {
    pub(super) fn new(geometry: Geometry) -> Level {
        Level {
            cache: Cache::new(geometry),
            touches: 0,
            late_until: HashMap::new(),
            sites: HashMap::new(),
            streams: Vec::new(),
        }
    }

    pub(super) fn line(&self, address: u64) -> u64 {
        address / u64::from(self.cache.geometry.line_bytes)
    }

    /// The next address, if the last three distances of a site were equal and the site kept its
    /// slot.
    pub(super) fn stride(&mut self, site: u32, address: u64) -> Option<u64> {
        let (owner, past) = self.sites.entry(site % 256).or_default();
        if *owner != site {
            past.clear();
        }
        *owner = site;
        past.push(address);
        let [one, two, three, four] = past[past.len().checked_sub(4)?..] else { return None };
        let distance = four.wrapping_sub(three);
        let same = three.wrapping_sub(two) == distance && two.wrapping_sub(one) == distance;
        (same && distance != 0).then(|| four.wrapping_add(distance))
    }

    /// The addresses that a streamer wants after a touch.
    pub(super) fn stream(&mut self, address: u64) -> Vec<u64> {
        let line_bytes = u64::from(self.cache.geometry.line_bytes);
        if line_bytes >= 4096 {
            return Vec::new();
        }
        let (page, line) = (address / 4096, (address % 4096 / line_bytes) as i64);
        let known = self.streams.iter().position(|(other, _)| *other == page);
        let mut steps = known.map(|place| self.streams.remove(place).1).unwrap_or_default();
        if steps.last().is_none_or(|last| last.line != line) {
            steps.push(Step { line, fetched: None });
            if let Some(wanted) = ahead(&steps) {
                steps.last_mut().expect("just entered").fetched = wanted.last().copied();
                return self.remember(page, steps, wanted);
            }
        }
        self.remember(page, steps, Vec::new())
    }

    fn remember(&mut self, page: u64, steps: Vec<Step>, wanted: Vec<i64>) -> Vec<u64> {
        self.streams.push((page, steps));
        if self.streams.len() > 32 {
            self.streams.remove(0);
        }
        let line_bytes = u64::from(self.cache.geometry.line_bytes);
        let inside = wanted.into_iter().filter(|line| (0..(4096 / line_bytes) as i64).contains(line));
        inside.map(|line| page * 4096 + line as u64 * line_bytes).collect()
    }
}

/// The two lines behind the furthest one of a stream whose last two steps have one direction, as
/// far as they are within 20 lines of the last.
fn ahead(steps: &[Step]) -> Option<Vec<i64>> {
    let [.., one, two, three] = steps else { return None };
    let direction = (three.line - two.line).signum();
    if (two.line - one.line).signum() != direction {
        return None;
    }
    // The stream begins at the first touch after which all steps have this direction; what was
    // fetched before it belongs to another one.
    let turns = steps.windows(2).rposition(|pair| (pair[1].line - pair[0].line).signum() != direction);
    let stream = &steps[turns.map_or(1, |turn| turn + 2)..];
    let seen = stream.iter().flat_map(|step| [Some(step.line), step.fetched]).flatten();
    let furthest = seen.max_by_key(|line| line * direction)?;
    let wanted = (1..=2).map(|steps| furthest + steps * direction);
    Some(wanted.filter(|line| (line - three.line).abs() <= 20).collect())
}
