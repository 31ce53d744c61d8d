//! Growing indexes in every order of steps, and with readers on threads of their own.

use super::*;
use crate::reference;
use crate::sample::Random;

const SMALL: Limits = Limits { recent: 3, delta: 5 };

/// Holds a snapshot against its sorted keys.
fn check(snapshot: &Snapshot<u32>, sorted: &[u32], what: &str) {
    assert_eq!(snapshot.len(), sorted.len(), "{what}");
    assert_eq!(snapshot.iter().collect::<Vec<_>>(), sorted, "{what}");
    let queries: Vec<u32> = (0..20).chain([u32::MAX - 1, u32::MAX]).collect();
    let mut ranks = alloc::vec![usize::MAX; queries.len()];
    snapshot.batch(&queries, &mut ranks);
    for (&query, &rank) in queries.iter().zip(&ranks) {
        let expected = reference::equal_range(sorted, query);
        assert_eq!((snapshot.equal_range(query), rank), (expected.clone(), expected.start), "{what}");
        assert_eq!(snapshot.contains(query), !expected.is_empty(), "{what}");
    }
    let ranges = [(3, 9), (0, 20), (9, 3), (7, 7)];
    for (start, end) in ranges {
        let all = |inside: fn(u32, u32, u32) -> bool| -> Vec<u32> {
            sorted.iter().copied().filter(|&key| inside(key, start, end)).collect()
        };
        let half: Vec<u32> = snapshot.range(start..end).collect();
        assert_eq!(half, all(|key, start, end| start <= key && key < end), "{what}");
        let open = (Bound::Excluded(start), Bound::Included(end));
        let other: Vec<u32> = snapshot.range(open).collect();
        assert_eq!(other, all(|key, start, end| start < key && key <= end), "{what}");
    }
}

/// What can happen next to a growing index.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// As many keys are inserted.
    Insert(u32),
    /// The merge that was started ends.
    Merge,
}

/// Does `steps` with merges that end when a step says so, and holds every snapshot, also the
/// earlier ones, against the keys.
fn play(steps: &[Step], first: &[u32]) -> usize {
    let main = Index::build(first).unwrap();
    let shared = Shared::new(State::new(main, SMALL));
    let (mut keys, mut running, mut ended) = (first.to_vec(), None, 0);
    let mut taken = alloc::vec![(shared.snapshot(), keys.clone())];
    for (number, &step) in steps.iter().enumerate() {
        let mut state = shared.state();
        match step {
            Step::Insert(count) => {
                let mut added: Vec<u32> = (0..count).map(|i| (number as u32 * 7 + i * 5 + 3) % 17).collect();
                added.sort_unstable();
                state.insert(&added);
                keys.extend(added);
                keys.sort_unstable();
                running = state.start().or(running);
            }
            Step::Merge => {
                let Some(rebuild) = running.take() else { continue };
                state.finish(rebuild.run());
                running = state.start();
                ended += 1;
            }
        }
        shared.publish(&mut state);
        taken.push((shared.snapshot(), keys.clone()));
    }
    for (snapshot, keys) in &taken {
        check(snapshot, keys, &alloc::format!("{steps:?}"));
    }
    ended
}

#[test]
fn every_order_of_insertions_and_merges_agrees() {
    const STEPS: [Step; 4] = [Step::Insert(1), Step::Insert(4), Step::Insert(9), Step::Merge];
    let length = if cfg!(miri) { 3 } else { 6 };
    let mut ended = 0;
    for order in 0..STEPS.len().pow(length) {
        let steps: Vec<Step> =
            (0..length).map(|at| STEPS[order / STEPS.len().pow(at) % STEPS.len()]).collect();
        ended += play(&steps, if order % 2 == 0 { &[] } else { &[2, 2, 11, 16] });
    }
    assert!(ended > 0, "some merges ended");
}

#[test]
fn a_new_snapshot_is_seen_at_once_and_an_old_one_stays() {
    let growing = GrowingIndex::<u32>::build(&[]).unwrap();
    let mut reader = growing.reader();
    for number in 0..2000u32 {
        let before = reader.now().clone();
        growing.insert(&[number.wrapping_mul(2_654_435_761)]);
        assert_eq!((before.len(), reader.now().len()), (number as usize, number as usize + 1));
        assert_eq!(growing.snapshot().len(), number as usize + 1);
    }
    assert!(alloc::format!("{growing:?} {reader:?}").contains("Growing"));
}

/// Keys in the order of insertion; key `i` is smaller than another in half of all cases.
fn shuffled(n: usize, seed: u64) -> Vec<u64> {
    let mut random = Random::new(seed);
    let mut keys: Vec<u64> = (0..n as u64).collect();
    for last in (1..n).rev() {
        keys.swap(last, random.below(last as u64 + 1) as usize);
    }
    keys
}

#[test]
fn readers_see_what_was_inserted_before_and_never_less() {
    let (n, readers) = if cfg!(miri) { (300, 2) } else { (60_000, 3) };
    for seed in 0..3 {
        let keys = shuffled(n, seed);
        // The time at which each key was inserted: a snapshot of m keys has the keys of the
        // first m times.
        let mut times = alloc::vec![0; n];
        keys.iter().enumerate().for_each(|(time, &key)| times[key as usize] = time);
        let growing = GrowingIndex::build(&[]).unwrap();
        let done = core::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for number in 0..readers {
                let (growing, done, times) = (growing.clone(), &done, &times);
                scope.spawn(move || read(&growing, done, times, seed * 10 + number));
            }
            let mut random = Random::new(seed);
            let mut rest = &keys[..];
            while !rest.is_empty() {
                let size = [1, 3, 40, 700][random.below(4) as usize].min(rest.len());
                growing.insert(&rest[..size]);
                rest = &rest[size..];
            }
            done.store(true, Ordering::Release);
        });
        assert!(growing.snapshot().iter().eq(0..n as u64));
        assert_eq!(growing.snapshot().to_index().len(), n);
    }
}

/// Reads until all is inserted.
fn read(growing: &GrowingIndex<u64>, done: &core::sync::atomic::AtomicBool, times: &[usize], seed: u64) {
    let (mut reader, mut random, mut last) = (growing.reader(), Random::new(seed), 0);
    while !done.load(Ordering::Acquire) {
        let snapshot = if random.below(2) == 0 { reader.now().clone() } else { growing.snapshot() };
        let len = snapshot.len();
        assert!(len >= last, "{len} keys after {last}");
        last = len;
        for _ in 0..4 {
            let key = random.below(times.len() as u64);
            assert_eq!(snapshot.contains(key), times[key as usize] < len, "{key} of {len}");
        }
        let limit = random.below(200);
        let expected = times[..limit as usize].iter().filter(|&&time| time < len).count();
        assert_eq!(snapshot.lower_bound(limit), expected, "rank of {limit} of {len}");
    }
}
