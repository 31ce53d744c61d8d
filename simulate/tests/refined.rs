//! Policies, prefetchers, inclusion and large pages against their slow twins, and under the stream
//! that is planned for them.

mod common;

use common::{deeds, full, levels};
use event::{Record, RecordKind, Stream};
use lightfoot_simulate::filter::FilterModel;
use lightfoot_simulate::policy::{Draw, Repeats, Replacement, SetHistory, Victim};
use lightfoot_simulate::reference::{Naive, NaivePerceptron, NaiveRefined};
use lightfoot_simulate::*;
use machine::replacement::{Duel, Qlru};
use machine::SliceMasks;
use proptest::prelude::*;

/// A member of the family that no list has: the line that was used last leaves.
const MOST_RECENT: Policy = Policy {
    name: "most-recent",
    variant: 0,
    repeats: Repeats::ChangeNothing,
    fault: |_| None,
    new: |shape| Box::new(LastWay(vec![0; shape.sets])),
    defined: |shape| SetHistory::definition(shape, LAST),
};

const LAST: Victim = |history: &SetHistory, _: &mut Draw| *history.by_use.last().expect("a set has a way");

/// By set, the way that was used last.
struct LastWay(Vec<usize>);

impl Replacement for LastWay {
    fn used(&mut self, set: usize, way: usize) {
        self.0[set] = way;
    }

    fn victim(&mut self, set: usize) -> usize {
        self.0[set]
    }
}

/// Its bookkeeping, with the definition of another.
const WRONG: Policy = Policy { name: "wrong", defined: Policy::LRU.defined, ..MOST_RECENT };

/// The listed policies and the one above.
fn policies() -> Vec<Policy> {
    POLICIES.iter().copied().chain([MOST_RECENT]).collect()
}

/// A listed policy, the one above, or any member of a family.
fn any_policy() -> impl Strategy<Value = Policy> {
    let ages = || (0u16..5 * 19 * 3 * 4 * 2).prop_map(Qlru::of_code);
    let qlru = ages().prop_map(machine::Replacement::Qlru);
    let duel = (ages(), ages(), prop::sample::select(vec![1u32, 2, 4]));
    let duel =
        duel.prop_map(|(first, second, leaders)| machine::Replacement::Duel(Duel { first, second, leaders }));
    let family = prop_oneof![qlru, duel].prop_map(|named| Policy::of(named).expect("it has a file"));
    prop_oneof![2 => prop::sample::select(policies()), 1 => family]
}

fn policy(name: &str) -> Policy {
    Policy::named(name).expect("a listed policy")
}

/// What a description may add to plain levels.
#[derive(Clone, Debug)]
struct Additions {
    policies: [Policy; 8],
    prefetches: [[Prefetch; 2]; 4],
    late_touches: [u32; 4],
    slices: [SliceMasks; 3],
    pages: Pages,
    inclusions: [Inclusion; 2],
    ranges: Vec<PageRange>,
    /// Bits that say which buffers take which sizes.
    buffers: u8,
}

fn additions() -> impl Strategy<Value = Additions> {
    let policies = prop::array::uniform8(any_policy());
    let kind = || prop_oneof![2 => Just(Prefetch::None), 1 => prop::sample::select(PREFETCHES.to_vec())];
    let prefetches = prop::array::uniform4(prop::array::uniform2(kind()));
    let late_touches = prop::array::uniform4(prop::sample::select(vec![0u32, 0, 1, 3, 20]));
    let mask = prop::sample::select(vec![64u64, 192, 0x1b5f_575440, 0x2eb5_faa880, 0x1480]);
    let slices = prop_oneof![Just(Vec::new()), prop::collection::vec(mask, 1..3)];
    let slices = slices.prop_map(|masks| SliceMasks::new(&masks).expect("few masks"));
    let slices = prop::array::uniform3(slices);
    let pages = prop_oneof![
        3 => Just(Pages::Virtual),
        1 => any::<u64>().prop_map(|seed| Pages::Random { seed, page_bytes: 4096 }),
    ];
    let inclusions = prop::array::uniform2(prop::sample::select(INCLUSIONS.to_vec()));
    let range = (0u64..5000, 0u64..4000, prop::sample::select(vec![1024u64, 4096]))
        .prop_map(|(start, len, page_bytes)| PageRange { start, last: start + len, page_bytes });
    let ranges = prop_oneof![Just(Vec::new()), prop::collection::vec(range, 1..4)];
    let geometry = (policies, prefetches, late_touches, slices);
    (geometry, pages, inclusions, ranges, any::<u8>()).prop_map(
        |((policies, prefetches, late_touches, slices), pages, inclusions, ranges, buffers)| Additions {
            policies,
            prefetches,
            late_touches,
            slices,
            pages,
            inclusions,
            ranges,
            buffers,
        },
    )
}

/// One buffer for all sizes, or one for base pages and one for the larger ones.
fn buffers(base: Option<Geometry>, all: bool) -> Vec<PageBuffer> {
    let Some(base) = base else { return Vec::new() };
    let buffer = |sizes: &[u64], geometry: Geometry| PageBuffer { page_bytes: sizes.to_vec(), geometry };
    let small = u64::from(base.line_bytes);
    if all {
        return vec![buffer(&[small, 1024, 4096], base)];
    }
    let large = Geometry { sets: 2, ways: 2, line_bytes: 1024, ..base };
    let large = if Levels::data_only(large).check().is_ok() { large } else { large.with_policy(Policy::LRU) };
    vec![buffer(&[small], base), buffer(&[1024], large)]
}

/// `levels` with what `additions` has; where a combination is impossible the addition is left out.
fn refine(mut levels: Levels, additions: &Additions) -> Levels {
    let with_policy = |geometry: Geometry, number: usize| {
        let with = geometry.with_policy(additions.policies[number]);
        // A policy that cannot work in this shape is left out.
        if Levels::data_only(with).check().is_ok() {
            with
        } else {
            geometry
        }
    };
    let prefetching = |geometry: Geometry, number: usize| {
        let [one, two] = additions.prefetches[number];
        geometry.with_prefetch(one).with_prefetch(two).with_late_touches(additions.late_touches[number])
    };
    let sliced = |geometry: Geometry, number: usize| {
        let with = geometry.with_slices(additions.slices[number]);
        if Levels::data_only(with).check().is_ok() {
            with
        } else {
            geometry
        }
    };
    levels.data = sliced(prefetching(with_policy(levels.data, 0), 0), 0);
    levels.instruction = levels.instruction.map(|first| prefetching(with_policy(first, 1), 1));
    levels.data_tlb = levels.data_tlb.map(|tlb| with_policy(tlb, 2));
    levels.instruction_tlb = levels.instruction_tlb.map(|tlb| with_policy(tlb, 3));
    levels.outer_tlb = levels.outer_tlb.map(|tlb| with_policy(tlb, 4));
    if let FetchTlb::Own(tlb) = levels.outer_fetch_tlb {
        levels.outer_fetch_tlb = FetchTlb::Own(with_policy(tlb, 7));
    }
    for (number, outer) in levels.outer.iter_mut().enumerate() {
        let plain = with_policy(outer.geometry, 5 + number);
        outer.geometry = sliced(prefetching(plain, 2 + number), 1 + number);
    }
    levels.pages = additions.pages;
    for (place, inclusion) in additions.inclusions.into_iter().enumerate().take(levels.outer.len()) {
        let before = levels.outer[place];
        levels.outer[place].inclusion = inclusion;
        if inclusion == Inclusion::Exclusive {
            levels.outer[place].geometry.prefetch = Prefetchers::NONE;
        }
        if levels.check().is_err() {
            levels.outer[place] = before;
        }
    }
    if !additions.ranges.is_empty() && levels.data_tlb.is_some() {
        let bit = |bit: u8| additions.buffers >> bit & 1 != 0;
        levels.large_pages = Some(LargePages {
            ranges: additions.ranges.clone(),
            data: buffers(levels.data_tlb, bit(0)),
            instruction: buffers(levels.instruction_tlb, bit(1)),
            outer: buffers(levels.outer_tlb, bit(2)),
            outer_instruction: buffers(levels.outer_fetch_tlb.own(), bit(3)),
        });
    }
    levels
}

fn any_levels() -> impl Strategy<Value = Levels> {
    (levels(), additions()).prop_map(|(levels, additions)| refine(levels, &additions))
}

/// The twin does not count complex references apart.
fn misses(counts: &Counts) -> Counts {
    Counts { complex: Vec::new(), write_backs: None, traffic: None, ..counts.clone() }
}

fn walked(levels: &Levels, records: &[Record]) -> Counts {
    let mut refined = Refined::new(levels).unwrap();
    refined.records(0, records);
    misses(&refined.counts())
}

/// What the walk and its twin count of two threads, whose batches take turns.
fn both(
    levels: &Levels,
    one: &[Record],
    two: &[Record],
    batch: usize,
) -> ((Counts, Traffic), (Counts, Traffic)) {
    let mut fast = Refined::new(levels).unwrap();
    let mut slow = NaiveRefined::new(levels);
    let (mut first, mut second) = (one.chunks(batch), two.chunks(batch));
    loop {
        let batches = [first.next(), second.next()];
        if batches == [None, None] {
            return ((misses(&fast.counts()), fast.traffic()), (misses(&slow.counts()), slow.traffic()));
        }
        for (thread, batch) in batches.into_iter().enumerate() {
            let batch = batch.unwrap_or_default();
            fast.records(thread as u32, batch);
            slow.records(thread as u32, batch);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(700))]

    #[test]
    fn the_walk_is_the_twin(levels in any_levels(), one in deeds(), two in deeds(), batch in 1usize..200) {
        prop_assert!(levels.check().is_ok());
        let (walked, defined) = both(&levels, &full(&one), &full(&two), batch);
        prop_assert_eq!(walked, defined);
    }

    /// The twin keeps the caches of each thread for ever.
    #[test]
    fn threads_that_end_leave_their_core_to_the_next(levels in any_levels(), one in deeds(), two in deeds()) {
        let streams = [full(&one), full(&two)];
        let (mut fast, mut slow) = (Refined::new(&levels).unwrap(), NaiveRefined::new(&levels));
        for thread in 1..6 {
            // Thread 0 lives on.
            for number in [0, thread] {
                fast.records(number, &streams[thread as usize % 2]);
                slow.records(number, &streams[thread as usize % 2]);
            }
            fast.end_thread(thread);
        }
        prop_assert_eq!(fast.cores(), 2);
        prop_assert_eq!(misses(&fast.counts()), misses(&slow.counts()));
        // What an ended thread leaves dirty is lost with its caches.
        let loaded = |traffic: Traffic| traffic.levels.map(|level| (level.lines_in, level.supplied));
        prop_assert_eq!(loaded(fast.traffic()), loaded(slow.traffic()));
    }

    /// Each miss of the twin is listed under a record of what it is of, and nothing else is.
    #[test]
    fn a_listed_miss_is_one_of_its_record(
        levels in any_levels(), deeds in deeds(), batch in 1usize..200, cut in 0usize..8,
    ) {
        let (mut records, mut ends) = (Vec::new(), Vec::new());
        for deed in &deeds {
            deed.record(&mut records);
            ends.push(records.len());
        }
        // Batches end where they like, within groups of records too.
        let (mut fast, mut slow) = (Refined::new(&levels).unwrap(), NaiveRefined::new(&levels));
        let (mut located, mut listed) = (LocatedMisses::default(), Vec::new());
        let (head, rest) = records.split_at(cut.min(records.len()));
        let mut first = 0;
        for records in std::iter::once(head).chain(rest.chunks(batch)) {
            fast.records_located(0, records, &mut located);
            let lists = [located.caches(), located.pages()];
            for (pages, miss) in lists.iter().enumerate().flat_map(|(pages, list)| list.iter().map(move |miss| (pages, miss))) {
                listed.push((first + miss.record as usize, pages, *miss));
            }
            first += records.len();
        }
        let (mut from, mut total) = (0, 0);
        for &end in &ends {
            let before = slow.counts();
            slow.records(0, &records[from..end]);
            let after = slow.counts();
            let of = |pages, level, side| {
                let own = listed.iter().filter(|(record, list, miss)| {
                    (from..end).contains(record) && *list == pages && miss.missed(level) && miss.side() == side
                });
                own.count() as u64
            };
            for level in 0..CACHES_MAX {
                let (now, then) = (after.cache(level), before.cache(level));
                prop_assert_eq!(of(0, level, MissSide::Load), now.loads - then.loads);
                prop_assert_eq!(of(0, level, MissSide::Store), now.stores - then.stores);
                prop_assert_eq!(of(0, level, MissSide::Fetch), now.instructions - then.instructions);
            }
            for level in 0..TLBS_MAX {
                let (now, then) = (after.tlb(level), before.tlb(level));
                let data = of(1, level, MissSide::Load) + of(1, level, MissSide::Store);
                prop_assert_eq!(data, now.loads + now.stores - then.loads - then.stores);
                prop_assert_eq!(of(1, level, MissSide::Fetch), now.instructions - then.instructions);
            }
            total += listed.iter().filter(|(record, ..)| (from..end).contains(record)).count();
            from = end;
        }
        prop_assert_eq!(total, listed.len());
        prop_assert_eq!(misses(&fast.counts()), misses(&slow.counts()));
    }

    #[test]
    fn plain_levels_walk_as_they_sweep(levels in levels(), deeds in deeds()) {
        let records = full(&deeds);
        let mut naive = Naive::new(&levels);
        naive.records(0, &records);
        prop_assert_eq!(walked(&levels, &records), misses(&naive.counts()));
    }

    /// The rows of the truth table: whatever is planned gives the misses of the full stream.
    #[test]
    fn the_planned_stream_changes_no_miss(levels in any_levels(), deeds in deeds()) {
        let full = full(&deeds);
        let plan = plan_levels(&levels, WriteBacks::Ignored);
        let mut records = Vec::new();
        match plan.stream {
            Stream::Filtered(filter) => FilterModel::new(&filter).apply(&full, &mut records),
            _ => records.clone_from(&full),
        }
        let mut simulator = Simulator::of_stream(&levels, &plan.stream, WriteBacks::Ignored).unwrap();
        simulator.records(0, &records);
        let mut naive = NaiveRefined::new(&levels);
        naive.records(0, &full);
        prop_assert_eq!(misses(&simulator.counts()), misses(&naive.counts()), "{}", plan.why);
    }

    #[test]
    fn perceptrons_agree(bits in 0u32..4, branches in prop::collection::vec((0u64..20, any::<bool>(), 1usize..60), 1..20)) {
        let (mut fast, mut slow) = (Perceptron::new(bits), NaivePerceptron::new(bits));
        for (ip, taken, period) in branches {
            for round in 0..120 {
                let outcome = if (round % period == 0) == taken { Outcome::Taken } else { Outcome::NotTaken };
                let ip = ip + round as u64 % 3;
                prop_assert_eq!(fast.branch(ip, outcome), slow.branch(ip, outcome));
            }
        }
    }
}

/// The agreement can fail: a member whose bookkeeping is not its definition is found.
#[test]
fn a_wrong_policy_is_found() {
    let cycle: Vec<Record> = (0..60).map(|n| load(0, n % 5 * 1024)).collect();
    let agree = |policy| {
        let levels = Levels::data_only(Geometry::cache(4096, 4, 64).with_policy(policy));
        let (walked, defined) = both(&levels, &cycle, &[], 7);
        walked == defined
    };
    assert!(policies().into_iter().all(agree));
    assert!(!agree(WRONG));
}

#[test]
fn names_tell_policies_apart() {
    let names: std::collections::BTreeSet<&str> = policies().iter().map(|policy| policy.name).collect();
    assert_eq!(names.len(), POLICIES.len() + 1);
    assert_eq!(Policy::named("clock"), None);
    let qlru = policy("QLRU_H00_M1_R0_U1");
    assert!(POLICIES.contains(&qlru) && policy("QLRU_H00_M1_R0_U0") != qlru);
    for (name, replacement) in machine::REPLACEMENTS {
        let policy = Policy::named(name).unwrap_or_else(|| panic!("{replacement:?} has no policy"));
        assert_eq!(policy == Policy::default(), replacement == &machine::Replacement::default());
    }
}

/// Which row of the table a machine is in.
#[test]
fn the_stream_follows_the_table() {
    let first = Geometry::cache(1024, 4, 64);
    let outer =
        |inclusion| Outer { inclusion, ..Outer::new(Geometry::cache(8192, 8, 64), Sharing::AllThreads) };
    let with = |data: Geometry, inclusion| Levels {
        instruction: Some(first),
        outer: vec![outer(inclusion)],
        ..Levels::data_only(data)
    };
    let is_full = |levels: &Levels| plan_levels(levels, WriteBacks::Ignored).stream == Stream::Full;
    for &policy in POLICIES {
        let levels = with(first.with_policy(policy), Inclusion::Independent);
        assert_eq!(is_full(&levels), policy.repeats == Repeats::Count, "{policy:?} and repeated uses");
        assert_eq!(levels.is_plain(), policy == Policy::LRU);
    }
    for &prefetch in PREFETCHES {
        let levels = with(first.with_prefetch(prefetch), Inclusion::Independent);
        assert_eq!(is_full(&levels), prefetch != Prefetch::None);
        let mut behind = with(first, Inclusion::Independent);
        behind.outer[0].geometry = behind.outer[0].geometry.with_prefetch(prefetch);
        assert_eq!(
            is_full(&behind),
            prefetch == Prefetch::Stride,
            "what sees misses of the first level needs misses only"
        );
    }
    for &inclusion in INCLUSIONS {
        assert_eq!(is_full(&with(first, inclusion)), inclusion != Inclusion::Independent);
    }
}

fn load(site: u32, address: u64) -> Record {
    Record::new(RecordKind::Load, 8, site, address).unwrap()
}

/// What each thing is for, on a stream that shows it.
#[test]
fn each_does_what_it_is_for() {
    let first = Geometry::cache(4096, 4, 64);
    let loads = |levels: &Levels, records: &[Record]| walked(levels, records).cache(0).loads;
    let scan: Vec<Record> = (0..64).map(|n| load(0, n * 64)).collect();
    assert_eq!(loads(&Levels::data_only(first), &scan), 64);
    // Every second line is there when it is asked for.
    assert_eq!(loads(&Levels::data_only(first.with_prefetch(Prefetch::NextLine)), &scan), 32);
    // Three equal distances are seen by the fourth load.
    assert_eq!(loads(&Levels::data_only(first.with_prefetch(Prefetch::Stride)), &scan), 4);
    // A cycle of five lines in four ways: recency order loses all, chance some.
    let cycle: Vec<Record> = (0..500).map(|n| load(0, n % 5 * 1024)).collect();
    let random = loads(&Levels::data_only(first.with_policy(policy("random"))), &cycle);
    assert_eq!(loads(&Levels::data_only(first), &cycle), 500);
    assert!((100..400).contains(&random), "{random}");
    // A line that is used all the time leaves a first level whose outer level gives it up.
    let behind = |inclusion| Levels {
        outer: vec![Outer { inclusion, ..Outer::new(Geometry::cache(256, 4, 64), Sharing::PerThread) }],
        ..Levels::data_only(Geometry::cache(1024, 16, 64))
    };
    let hot: Vec<Record> = (1..200).flat_map(|n| [load(0, 0), load(1, n % 9 * 64)]).collect();
    let misses = |inclusion| loads(&behind(inclusion), &hot);
    assert_eq!(misses(Inclusion::Independent), 9);
    assert!(misses(Inclusion::Inclusive) > 100);
    // Exclusive levels hold together what neither holds alone.
    let exclusive = |inclusion| Levels {
        outer: vec![Outer { inclusion, ..Outer::new(first, Sharing::PerThread) }],
        ..Levels::data_only(first)
    };
    let sweep: Vec<Record> = (0..10).flat_map(|_| (0..128).map(|n| load(0, n * 64))).collect();
    let memory = |inclusion| walked(&exclusive(inclusion), &sweep).cache(1).loads;
    assert_eq!((memory(Inclusion::Independent), memory(Inclusion::Exclusive)), (1280, 128));
    // One large page in the place of many small ones.
    let tlb = Geometry::tlb(4, 4, 4096);
    let large = |ranges| LargePages {
        ranges,
        data: vec![
            PageBuffer { page_bytes: vec![4096], geometry: tlb },
            PageBuffer { page_bytes: vec![2 << 20], geometry: Geometry::tlb(1, 1, 2 << 20) },
        ],
        ..LargePages::default()
    };
    let pages: Vec<Record> = (0..100).map(|n| load(0, n % 50 * 4096)).collect();
    let tlb_misses = |large_pages| {
        let levels = Levels { data_tlb: Some(tlb), large_pages, ..Levels::data_only(first) };
        walked(&levels, &pages).tlb(0).total()
    };
    let whole = PageRange { start: 0, last: (2 << 20) - 1, page_bytes: 2 << 20 };
    let part = PageRange { last: (2 << 20) - 2, ..whole };
    assert_eq!(tlb_misses(None), 100);
    assert_eq!(tlb_misses(Some(large(vec![part]))), 100, "a page that is not whole is not large");
    assert_eq!(tlb_misses(Some(large(vec![whole]))), 1);
}

#[test]
fn what_cannot_be_simulated_is_said() {
    let first = Geometry::cache(4096, 4, 64);
    let fault = |levels: &Levels| Refined::new(levels).err().expect("refused").to_string();
    let exclusive = |data: Geometry, geometry: Geometry| Levels {
        outer: vec![Outer { inclusion: Inclusion::Exclusive, ..Outer::new(geometry, Sharing::PerThread) }],
        ..Levels::data_only(data)
    };
    assert!(fault(&exclusive(first, Geometry::cache(8192, 4, 128))).contains("lines as long as"));
    assert!(fault(&exclusive(first.bypassing(), first)).contains("allocates for stores"));
    assert!(fault(&exclusive(first, first.with_prefetch(Prefetch::Stride))).contains("no prefetcher"));
    let wide = Geometry::cache(8192, 128, 64).with_policy(policy("plru"));
    assert!(fault(&Levels::data_only(wide)).contains("at most 64 ways"));
    let thirds =
        Geometry::cache(4096, 4, 64).with_policy(policy("duel:QLRU_H00_M1_R0_U0:QLRU_H00_M3_R0_U0:3"));
    assert!(fault(&Levels::data_only(thirds)).contains("leader sets divide the sets"));
    let slices = |masks: &[u64]| Levels::data_only(first.with_slices(SliceMasks::new(masks).unwrap()));
    assert!(fault(&slices(&[0x60])).contains("above those inside a line"));
    assert!(fault(&slices(&[64, 128, 256, 512, 1024])).contains("no multiple of its slices"));
    assert!(SliceMasks::new(&[64; 7]).is_err() && SliceMasks::new(&[0]).is_err());
    let small = Levels { pages: Pages::Random { seed: 0, page_bytes: 512 }, ..Levels::data_only(first) };
    assert!(fault(&small).contains("powers of two from 4096"));
    let levels = Levels::data_only(first.with_policy(policy("random")));
    assert!(Hierarchy::new(&levels).is_err());
}
