//! The caches against their slow twin, and programs whose numbers follow from their definition.

use crate::ask::{ATOMIC, LOCK};
use crate::caches::{Access, CoherentCaches, PrivateLevels};
use crate::counts::Results;
use crate::naive::{Counted, Naive};
use crate::rounds::{Rounds, Simulates};
use crate::tool::Simulation;
use crate::turn::Turn;
use event::{Complex, Direction, Record, RecordKind, Shape};
use instrument::TurnStart;
use proptest::prelude::*;
use simulate::Geometry;

fn counted(results: &Results) -> Counted {
    let total = results.total;
    let mut pairs = std::collections::BTreeMap::new();
    for pair in &results.pairs {
        let line = results.lines[pair.line as usize].address / u64::from(results.line_bytes);
        let counts: &mut (u64, u64) = pairs.entry((line, pair.missed, pair.took)).or_default();
        counts.0 += pair.true_sharing;
        counts.1 += pair.false_sharing;
    }
    Counted {
        misses: [total.cold, total.capacity, total.conflict, total.true_sharing, total.false_sharing],
        private_misses: total.private_misses,
        moves: [total.upgrades, total.invalidations, total.dirty_transfers, total.write_backs],
        atomic_transfers: total.atomic_transfers,
        pairs,
    }
}

fn levels() -> impl Strategy<Value = PrivateLevels> {
    let first = (1u64..5, 1u32..4, prop::sample::select(vec![16u32, 32, 64]));
    (first, prop::option::of((1u64..8, 1u32..4))).prop_map(|((sets, ways, line_bytes), second)| {
        let geometry = |sets: u64, ways: u32| {
            let line = u64::from(line_bytes);
            Geometry::cache(sets * u64::from(ways) * line, ways, line_bytes)
        };
        let second = second.map(|(sets, ways)| geometry(sets, ways));
        PrivateLevels { first: geometry(sets, ways), second }
    })
}

fn reference() -> impl Strategy<Value = (usize, u64, u32, Access, u32)> {
    let access =
        prop::sample::select(vec![Access::Load, Access::Load, Access::Store, Access::Modify, Access::Atomic]);
    (0..4usize, 0..600u64, prop::sample::select(vec![1u32, 2, 4, 8, 16, 40]), access, 0..5u32)
}

proptest! {
    #[test]
    fn any_interleaving_counts_what_the_slow_twin_counts(
        levels in levels(),
        references in prop::collection::vec(reference(), 1..400),
    ) {
        let (mut caches, mut naive) = (CoherentCaches::new(levels), Naive::new(levels, 4));
        for &(core, address, size_bytes, access, site) in &references {
            caches.access(core, 0x1000 + address, size_bytes, access, site);
            naive.access(core, 0x1000 + address, size_bytes, access, site);
        }
        prop_assert_eq!(counted(&caches.finish()), naive.finish());
    }
}

/// The slow twin of the simulation: one record after the other, none in the loop of hits.
struct Singly(Simulation);

impl Simulates for Singly {
    fn joins(&mut self, thread: u32) -> bool {
        self.0.joins(thread)
    }

    fn round_over(&mut self) {
        self.0.round_over();
    }

    fn simulate(
        &mut self,
        thread: u32,
        records: &[Record],
        from: usize,
        most: usize,
        may_lock: &mut impl FnMut(u64) -> bool,
    ) -> usize {
        let who = (thread as usize, self.0.core_of(thread));
        let (mut at, mut made) = (from, 0);
        while at < records.len() && made < most {
            let Some(plain) = self.0.one(who, records, at, may_lock) else { break };
            (at, made) = (at + 1, made + usize::from(plain));
        }
        at
    }

    fn core_for_steps(&mut self, _thread: u32) -> Option<usize> {
        None
    }

    fn steps(&mut self, _turns: &mut [Turn], from: usize) -> (usize, usize) {
        (from, 0)
    }
}

/// What a thread does: plain references, locked and other atomic ones, and such of many bytes. Some
/// lines are the thread's own, some are those of all threads.
fn deed() -> impl Strategy<Value = (u8, bool, u64, u32)> {
    (0..20u8, prop::bool::weighted(0.7), 0..500u64, prop::sample::select(vec![1u32, 4, 8, 16, 32]))
}

fn records(thread: u32, deeds: &[(u8, bool, u64, u32)]) -> Vec<Record> {
    let mut all = Vec::new();
    for (site, &(kind, is_own, offset, size_bytes)) in deeds.iter().enumerate() {
        let address = if is_own { 0x10_0000 * u64::from(thread + 1) + 37 * offset } else { 0x1000 + offset };
        let plain = |kind| Record::new(kind, size_bytes, site as u32, address).unwrap();
        let tool = |extra, address| Record { address, what: (RecordKind::Tool as u32) << 4, extra };
        match kind {
            0 => all.extend([tool(LOCK, address), plain(RecordKind::Modify)]),
            1 => all.extend([tool(ATOMIC, 1), plain(RecordKind::Modify)]),
            2 => {
                let direction = if offset % 2 == 0 { Direction::Store } else { Direction::Load };
                let shape = Shape::Sized { direction, size_bytes: 200 };
                Complex::new(shape, &[address]).encode(site as u32, &mut all);
            }
            3..6 => all.push(plain(RecordKind::Store)),
            6..8 => all.push(plain(RecordKind::Modify)),
            _ => all.push(plain(RecordKind::Load)),
        }
    }
    all
}

fn simulated<S: Simulates>(mut caches: S, turns: &[(u32, bool, Vec<Record>)]) -> S {
    let mut rounds = Rounds::default();
    for (thread, waited, records) in turns {
        let start = if *waited { TurnStart::Waited } else { TurnStart::GoesOn };
        rounds.turn(*thread, start, &mut caches);
        rounds.records(*thread, records, &mut caches);
    }
    rounds.end(&mut caches);
    caches
}

proptest! {
    #[test]
    fn the_loop_of_hits_counts_what_single_references_count(
        levels in levels(),
        turns in prop::collection::vec(
            (0..20u32, prop::bool::weighted(0.1), prop::collection::vec(deed(), 0..120)),
            1..12,
        ),
        few in any::<bool>(),
    ) {
        let turn = |(thread, waited, deeds): &(u32, bool, Vec<_>)| {
            let thread = if few { thread % 4 } else { *thread };
            (thread, *waited, records(thread, deeds))
        };
        let turns: Vec<_> = turns.iter().map(turn).collect();
        let fast = simulated(Simulation::new(levels, None), &turns).caches.finish();
        let slow = simulated(Singly(Simulation::new(levels, None)), &turns).0.caches.finish();
        prop_assert_eq!(fast, slow);
    }
}

const LEVELS: PrivateLevels =
    PrivateLevels { first: Geometry::cache(32 << 10, 8, 64), second: Some(Geometry::cache(1 << 20, 16, 64)) };

/// Each of two cores makes `times` references in turn, the second one `distance` bytes behind.
fn in_turn(times: u64, distance: u64, access: Access) -> Results {
    let mut caches = CoherentCaches::new(LEVELS);
    for _ in 0..times {
        caches.access(0, 0x1000, 8, access, 1);
        caches.access(1, 0x1000 + distance, 8, access, 2);
    }
    caches.finish()
}

#[test]
fn adjacent_words_are_shared_falsely_and_padded_ones_are_not() {
    let near = in_turn(100, 8, Access::Modify);
    // The first reference of each core is cold; all others find the line taken.
    assert_eq!((near.total.cold, near.total.false_sharing, near.total.true_sharing), (2, 198, 0));
    assert_eq!((near.total.invalidations, near.total.dirty_transfers), (199, 199));
    let sides: Vec<(u32, u32, u64)> =
        near.pairs.iter().map(|pair| (pair.missed, pair.took, pair.false_sharing)).collect();
    assert_eq!(sides, [(1, 2, 99), (2, 1, 99)]);
    let touched = &near.lines[0].touched;
    assert_eq!(touched.iter().map(|core| core.written).collect::<Vec<_>>(), [0xff, 0xff00]);
    let far = in_turn(100, 64, Access::Modify);
    assert_eq!((far.total.misses(), far.total.invalidations, far.lines.len()), (2, 0, 0));
}

#[test]
fn a_word_that_goes_to_and_fro_is_shared_truly() {
    let same = in_turn(100, 0, Access::Atomic);
    assert_eq!((same.total.true_sharing, same.total.false_sharing), (198, 0));
    assert_eq!((same.total.atomics, same.total.atomic_transfers), (200, 199));
    let blind = in_turn(100, 0, Access::Store);
    assert_eq!((blind.total.true_sharing, blind.total.false_sharing), (198, 0), "padding is no remedy");
}

#[test]
fn a_line_that_is_mostly_read_costs_a_miss_for_each_write_and_reader() {
    let mut caches = CoherentCaches::new(LEVELS);
    for round in 0..10 {
        caches.access(0, 0x1000, 8, Access::Store, 0);
        for _ in 0..50 {
            (1..4).for_each(|core| caches.access(core, 0x1000, 8, Access::Load, 1));
        }
        assert_eq!(caches.met().0, 1, "in round {round}");
    }
    let total = caches.finish().total;
    assert_eq!((total.cold, total.true_sharing, total.false_sharing), (4, 9 * 3, 0));
    // The writer's copy becomes shared, so that its next write fetches the right to write.
    assert_eq!((total.upgrades, total.invalidations, total.dirty_transfers), (9, 27, 10));
}

#[test]
fn room_that_is_missing_is_told_from_sets_that_are_full() {
    let first = Geometry::cache(4 * 64, 1, 64);
    let mut caches = CoherentCaches::new(PrivateLevels { first, second: None });
    // Two lines of one set take turns: a fully associative cache would hold both.
    for _ in 0..5 {
        caches.access(0, 0, 8, Access::Load, 0);
        caches.access(0, 4 * 64, 8, Access::Load, 1);
    }
    let total = caches.clone().finish().total;
    assert_eq!((total.cold, total.conflict, total.capacity), (2, 8, 0));
    // Eight lines in turn fit no cache of four.
    for line in (8..16).chain(8..16) {
        caches.access(0, line * 64, 8, Access::Load, 2);
    }
    let total = caches.finish().total;
    assert_eq!((total.cold, total.conflict, total.capacity), (10, 8, 8));
}
