//! Write-backs: which dirty lines each level gives up.
//!
//! **What.** The cache levels once more, with a dirty bit per line, walked touch by touch: a store
//! makes its line dirty where it is entered; a dirty victim is counted, then makes its line dirty
//! in the next outer level that holds it, before the missing line is asked for there. **Why this
//! way.** The sweeps of `bank` know no victims and stay as fast as they are; counting traffic costs
//! a second simulation. Touches are those of `stage`, one line each. **Leaves out**
//! write-through, and attribution: a victim is not the doing of the instruction that evicts it.
//!
//! **Cost.** A search over the ways for each level that is reached; 8 bytes per way. Its twin is in
//! `reference`.

use crate::touch::{Side, Touches};
use crate::{Geometry, Levels, Sharing, StoreMiss, CACHES_MAX};
use event::{Code, RecordKind};

const EMPTY: u64 = u64::MAX;

/// One cache: rows of line numbers, most recent first, each shifted up by one above its dirty bit.
struct DirtyCache {
    geometry: Geometry,
    line_shift: u32,
    rows: Vec<u64>,
}

/// What a touch found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lookup {
    Hit,
    /// Not there, and it does not enter.
    Passed,
    /// Not there; it entered for this line, if it was dirty.
    Entered(Option<u64>),
}

/// How a touch arrives at a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrival {
    Read,
    Write,
}

impl DirtyCache {
    fn new(geometry: Geometry) -> DirtyCache {
        let lines = geometry.sets as usize * geometry.ways as usize;
        DirtyCache { geometry, line_shift: geometry.line_bytes.trailing_zeros(), rows: vec![EMPTY; lines] }
    }

    /// The row of `address`, and the line's entry without its bit.
    fn row(&mut self, address: u64) -> (&mut [u64], u64) {
        let (line, ways) = (address >> self.line_shift, self.geometry.ways as usize);
        let start = (line % self.geometry.sets) as usize * ways;
        (&mut self.rows[start..start + ways], line << 1)
    }

    fn touch(&mut self, address: u64, arrival: Arrival) -> Lookup {
        let (store_miss, shift) = (self.geometry.store_miss, self.line_shift);
        let dirty = u64::from(arrival == Arrival::Write);
        let (row, line) = self.row(address);
        if let Some(way) = row.iter().position(|&entry| entry & !1 == line) {
            let entry = row[way] | dirty;
            row.copy_within(..way, 1);
            row[0] = entry;
            return Lookup::Hit;
        }
        if arrival == Arrival::Write && store_miss == StoreMiss::Bypass {
            return Lookup::Passed;
        }
        let last = row.len() - 1;
        let victim = row[last];
        row.copy_within(..last, 1);
        row[0] = line | dirty;
        Lookup::Entered((victim != EMPTY && victim & 1 != 0).then(|| (victim >> 1) << shift))
    }

    /// Makes a line dirty, if it is there; its place in the row stays.
    fn mark_dirty(&mut self, address: u64) -> bool {
        let (row, line) = self.row(address);
        let entry = row.iter_mut().find(|entry| **entry & !1 == line);
        entry.map(|entry| *entry |= 1).is_some()
    }
}

/// What one thread has of its own.
pub(crate) struct Traffic {
    data: DirtyCache,
    instruction: Option<DirtyCache>,
    outer: Vec<Option<DirtyCache>>,
}

/// What threads share, and what was counted.
pub(crate) struct SharedTraffic {
    outer: Vec<Option<DirtyCache>>,
    pub(crate) write_backs: [u64; CACHES_MAX],
}

/// The outer levels that are shared as asked, `None` in the others' places.
fn outer(levels: &Levels, sharing: Sharing) -> Vec<Option<DirtyCache>> {
    let one = |outer: &crate::Outer| (outer.sharing == sharing).then(|| DirtyCache::new(outer.geometry));
    levels.outer.iter().map(one).collect()
}

impl SharedTraffic {
    pub(crate) fn new(levels: &Levels) -> SharedTraffic {
        SharedTraffic { outer: outer(levels, Sharing::AllThreads), write_backs: [0; CACHES_MAX] }
    }
}

impl Traffic {
    pub(crate) fn new(levels: &Levels) -> Traffic {
        Traffic {
            data: DirtyCache::new(levels.data),
            instruction: levels.instruction.map(DirtyCache::new),
            outer: outer(levels, Sharing::PerThread),
        }
    }

    /// Takes touches in program order.
    pub(crate) fn sweep(&mut self, shared: &mut SharedTraffic, touches: &Touches) {
        for (&address, &what) in touches.address.iter().zip(&touches.what).take(touches.len) {
            match Code(what as u8).kind() {
                RecordKind::Fetch => self.walk(shared, Side::Instruction, address, Arrival::Read),
                RecordKind::Store => self.walk(shared, Side::Data, address, Arrival::Write),
                RecordKind::Modify => {
                    self.walk(shared, Side::Data, address, Arrival::Read);
                    self.data.mark_dirty(address);
                }
                _ => self.walk(shared, Side::Data, address, Arrival::Read),
            }
        }
    }

    /// One line through the levels, until it is found.
    fn walk(&mut self, shared: &mut SharedTraffic, side: Side, address: u64, mut arrival: Arrival) {
        for level in 0..=self.outer.len() {
            let Some(cache) = self.level(shared, side, level) else { return };
            match cache.touch(address, arrival) {
                Lookup::Hit => return,
                Lookup::Passed => {}
                Lookup::Entered(victim) => {
                    // Behind a level that has entered the line, a store is a fill.
                    arrival = Arrival::Read;
                    if let Some(victim) = victim {
                        self.write_back(shared, level, victim);
                    }
                }
            }
        }
    }

    fn level<'a>(
        &'a mut self,
        shared: &'a mut SharedTraffic,
        side: Side,
        level: usize,
    ) -> Option<&'a mut DirtyCache> {
        match (level.checked_sub(1), side) {
            (None, Side::Data) => Some(&mut self.data),
            (None, Side::Instruction) => self.instruction.as_mut(),
            (Some(outer), _) => self.outer[outer].as_mut().or(shared.outer[outer].as_mut()),
        }
    }

    fn write_back(&mut self, shared: &mut SharedTraffic, level: usize, victim: u64) {
        shared.write_backs[level] += 1;
        for outer in level + 1..=self.outer.len() {
            if self.level(shared, Side::Data, outer).is_some_and(|cache| cache.mark_dirty(victim)) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dirty_line_leaves_once() {
        // One set of two ways of 64 bytes, nothing behind it.
        let levels = Levels::data_only(Geometry::cache(128, 2, 64));
        let (mut traffic, mut shared) = (Traffic::new(&levels), SharedTraffic::new(&levels));
        let mut sweep = |deeds: &[(RecordKind, u64)]| {
            let mut touches = Touches::empty();
            deeds.iter().for_each(|&(kind, line)| touches.push(line * 64, (kind as u32) << 4, 0));
            traffic.sweep(&mut shared, &touches);
            shared.write_backs
        };
        let (load, store) = (RecordKind::Load, RecordKind::Store);
        assert_eq!(sweep(&[(store, 0), (store, 0), (load, 1), (load, 2)]), [1, 0, 0]);
        let clean = sweep(&[(load, 0), (load, 1), (RecordKind::Modify, 2)]);
        assert_eq!(clean, [1, 0, 0], "clean victims cost nothing");
        assert_eq!(sweep(&[(load, 3), (load, 4)]), [2, 0, 0], "what a modification made dirty");
    }
}
