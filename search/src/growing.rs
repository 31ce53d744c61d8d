//! Sorted keys that are added to: a large index, small sorted deltas beside it, and rebuilding in
//! the background.
//!
//! An [`Index`] never changes, so a set that grows is several of them, and a rank is the sum of the
//! ranks in each:
//!
//! ```text
//! insert ─▶ recent ─────▶ delta ───────▶ frozen ────────────▶ main
//!           at most 256   an index that  an index that a      an index of nearly
//!           sorted keys   is built anew  thread is merging    all keys
//! ```
//!
//! A [`Snapshot`] is the state after an insertion. It never changes. Insertions publish a new one in
//! the next of four slots, and then its number; a reader takes the slot of the number that it reads.
//! Only a writer that is three insertions ahead of that number could hold the slot's lock, or have
//! put another snapshot into it. The reader then reads the number again, so it waits for nobody, and
//! somebody always makes progress. A [`Reader`] keeps a snapshot and looks at the number alone until
//! that changes.
//!
//! How long the delta grows balances two costs of an insertion among n keys: building a delta of d
//! keys anew for every 256 insertions, and merging n keys for every d insertions. Their sum is least
//! where d is about the root of 256 · n.
//!
//! Leaves out: removal; waiting for keys to be merged, which no answer depends on.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Ordering as Order;
use core::ops::{Bound, Range, RangeBounds};
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use crate::error::Error;
use crate::index::{Index, Iter};
use crate::key::Key;

/// Slots of snapshots.
const SLOTS: usize = 4;

/// Ranks that are added up at a time.
const CHUNK: usize = 1024;

/// When keys move on.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// The most recent keys, which are copied at each insertion.
    recent: usize,
    /// The fewest keys of a delta that is merged.
    delta: usize,
}

const LIMITS: Limits = Limits { recent: 256, delta: 4096 };

impl Limits {
    /// Keys of a delta that is merged into `n` keys.
    fn delta_of(&self, n: usize) -> usize {
        self.delta.max((n as f64 * self.recent as f64).sqrt() as usize)
    }
}

/// What a snapshot consists of; every part is shared with the snapshots before and after it.
#[derive(Clone, Debug)]
struct Parts<K: Key> {
    main: Index<K>,
    frozen: Option<Index<K>>,
    delta: Option<Index<K>>,
    recent: Arc<Vec<K>>,
}

impl<K: Key> Parts<K> {
    fn indexes(&self) -> impl Iterator<Item = &Index<K>> {
        core::iter::once(&self.main).chain(&self.frozen).chain(&self.delta)
    }
}

/// Sorted keys as they were at one moment.
///
/// ```
/// let growing = lightfoot_search::GrowingIndex::build(&[10u32, 30])?;
/// let before = growing.snapshot();
/// growing.insert(&[20, 20]);
/// let after = growing.snapshot();
/// assert_eq!((before.lower_bound(30), after.lower_bound(30)), (1, 3));
/// assert_eq!(after.range(..30).collect::<Vec<_>>(), [10, 20, 20]);
/// # Ok::<(), lightfoot_search::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Snapshot<K: Key> {
    parts: Arc<Parts<K>>,
}

impl<K: Key> Snapshot<K> {
    /// Number of keys.
    pub fn len(&self) -> usize {
        self.parts.indexes().map(Index::len).sum::<usize>() + self.parts.recent.len()
    }

    /// True without keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of keys less than `key`. Cost: a query of each index, at most three, and a binary
    /// search of at most 256 keys.
    pub fn lower_bound(&self, key: K) -> usize {
        let below = self.parts.recent.partition_point(|other| other.compare(&key) == Order::Less);
        self.parts.indexes().map(|index| index.lower_bound(key)).sum::<usize>() + below
    }

    /// The number of keys not greater than `key`.
    pub fn upper_bound(&self, key: K) -> usize {
        key.successor().map_or(self.len(), |next| self.lower_bound(next))
    }

    /// The positions of all keys equal to `key`.
    pub fn equal_range(&self, key: K) -> Range<usize> {
        self.lower_bound(key)..self.upper_bound(key)
    }

    /// True when some key equals `key`.
    pub fn contains(&self, key: K) -> bool {
        let recent = self.parts.recent.binary_search_by(|other| other.compare(&key)).is_ok();
        recent || self.parts.indexes().any(|index| index.contains(key))
    }

    /// `ranks[i]` becomes `lower_bound(keys[i])`.
    ///
    /// # Panics
    /// When the lengths differ.
    pub fn batch(&self, keys: &[K], ranks: &mut [usize]) {
        self.parts.main.batch(keys, ranks);
        let recent = &self.parts.recent;
        let mut more = [0; CHUNK];
        for (keys, ranks) in keys.chunks(CHUNK).zip(ranks.chunks_mut(CHUNK)) {
            for index in self.parts.indexes().skip(1) {
                index.batch(keys, &mut more[..keys.len()]);
                ranks.iter_mut().zip(&more).for_each(|(rank, more)| *rank += more);
            }
            if !recent.is_empty() {
                for (rank, key) in ranks.iter_mut().zip(keys) {
                    *rank += recent.partition_point(|other| other.compare(key) == Order::Less);
                }
            }
        }
    }

    /// The keys inside `bounds`, in order.
    pub fn range(&self, bounds: impl RangeBounds<K>) -> impl Iterator<Item = K> + '_ {
        let bounds = (bounds.start_bound().cloned(), bounds.end_bound().cloned());
        let below = |bound: &Bound<K>, other: &K, included: bool| match bound {
            Bound::Included(key) => other.compare(key).is_lt() || included && other.compare(key).is_eq(),
            Bound::Excluded(key) => other.compare(key).is_lt() || !included && other.compare(key).is_eq(),
            Bound::Unbounded => included,
        };
        let recent = &self.parts.recent[..];
        let start = recent.partition_point(|other| below(&bounds.0, other, false));
        let end = recent.partition_point(|other| below(&bounds.1, other, true));
        Merged {
            indexes: self.parts.indexes().map(|index| index.range(bounds).peekable()).collect(),
            recent: &recent[start..end.max(start)],
        }
    }

    /// All keys, in order.
    pub fn iter(&self) -> impl Iterator<Item = K> + '_ {
        self.range(..)
    }

    /// All keys as one index, to be saved for example. Cost: a merge and a build.
    pub fn to_index(&self) -> Index<K> {
        let keys: Vec<K> = self.iter().collect();
        Index::build(&keys).expect("merged keys are sorted")
    }
}

/// The keys of several sorted parts, in order.
struct Merged<'a, K: Key> {
    indexes: Vec<core::iter::Peekable<Iter<'a, K>>>,
    recent: &'a [K],
}

impl<K: Key> Iterator for Merged<'_, K> {
    type Item = K;

    fn next(&mut self) -> Option<K> {
        let smallest = self
            .indexes
            .iter_mut()
            .filter_map(|index| index.peek().copied().map(|key| (key, index)))
            .min_by(|(a, _), (b, _)| a.compare(b));
        match (smallest, self.recent.split_first()) {
            (Some((key, index)), first) if first.is_none_or(|(other, _)| key.compare(other).is_le()) => {
                index.next()
            }
            (_, Some((&first, others))) => {
                self.recent = others;
                Some(first)
            }
            _ => None,
        }
    }
}

/// `a` and `b`, which are sorted, as one sorted vector.
fn merged<K: Key>(a: impl Iterator<Item = K>, b: impl Iterator<Item = K>, len: usize) -> Vec<K> {
    let mut keys = Vec::with_capacity(len);
    let mut b = b.peekable();
    for key in a {
        while let Some(other) = b.next_if(|other| other.compare(&key).is_lt()) {
            keys.push(other);
        }
        keys.push(key);
    }
    keys.extend(b);
    keys
}

/// A merge that is to be done: of the main index and the frozen one.
struct Rebuild<K: Key> {
    main: Index<K>,
    frozen: Index<K>,
}

impl<K: Key> Rebuild<K> {
    /// The index of both.
    fn run(self) -> Index<K> {
        let len = self.main.len() + self.frozen.len();
        Index::build(&merged(self.main.iter(), self.frozen.iter(), len)).expect("merged keys are sorted")
    }
}

/// The writers' state, from which snapshots are made.
struct State<K: Key> {
    parts: Parts<K>,
    /// The keys of the delta's index.
    delta: Vec<K>,
    limits: Limits,
    /// The number of the last snapshot.
    number: usize,
}

impl<K: Key> State<K> {
    fn new(main: Index<K>, limits: Limits) -> State<K> {
        let parts = Parts { main, frozen: None, delta: None, recent: Arc::default() };
        State { parts, delta: Vec::new(), limits, number: 0 }
    }

    /// Adds sorted keys.
    fn insert(&mut self, sorted: &[K]) {
        let len = self.parts.recent.len() + sorted.len();
        let recent = merged(self.parts.recent.iter().copied(), sorted.iter().copied(), len);
        if len <= self.limits.recent {
            self.parts.recent = Arc::new(recent);
            return;
        }
        let len = self.delta.len() + recent.len();
        self.delta = merged(self.delta.iter().copied(), recent.into_iter(), len);
        self.parts.delta = Some(Index::build(&self.delta).expect("merged keys are sorted"));
        self.parts.recent = Arc::default();
    }

    /// Freezes a delta that has grown enough, unless one is frozen, and returns its merge.
    fn start(&mut self) -> Option<Rebuild<K>> {
        let enough = self.delta.len() >= self.limits.delta_of(self.parts.main.len());
        if !enough || self.parts.frozen.is_some() {
            return None;
        }
        self.parts.frozen = self.parts.delta.take();
        self.delta = Vec::new();
        let (main, frozen) = (self.parts.main.clone(), self.parts.frozen.clone()?);
        Some(Rebuild { main, frozen })
    }

    /// Puts a merged index in the place of what it was merged from.
    fn finish(&mut self, main: Index<K>) {
        self.parts.main = main;
        self.parts.frozen = None;
    }

    fn snapshot(&self) -> Snapshot<K> {
        Snapshot { parts: Arc::new(self.parts.clone()) }
    }
}

/// What readers, writers and the merging thread share.
struct Shared<K: Key> {
    /// Snapshots with their numbers.
    slots: [RwLock<(usize, Snapshot<K>)>; SLOTS],
    number: AtomicUsize,
    state: Mutex<State<K>>,
}

impl<K: Key> Shared<K> {
    fn new(state: State<K>) -> Shared<K> {
        let first = state.snapshot();
        let slots = [(); SLOTS].map(|()| RwLock::new((0, first.clone())));
        Shared { slots, number: AtomicUsize::new(0), state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The snapshot whose number was the last one at some moment of this call.
    fn snapshot(&self) -> Snapshot<K> {
        loop {
            let number = self.number.load(Ordering::Acquire);
            // A writer holds the lock only if it has published three more snapshots meanwhile. What
            // it has put there already is not given before its number: a later call would find an
            // earlier snapshot.
            if let Ok(slot) = self.slots[number % SLOTS].try_read() {
                if slot.0 == number {
                    return slot.1.clone();
                }
            }
            core::hint::spin_loop();
        }
    }

    /// Makes the state visible to readers.
    fn publish(&self, state: &mut State<K>) {
        state.number = state.number.wrapping_add(1);
        let slot = &self.slots[state.number % SLOTS];
        let mut locked = slot.write().unwrap_or_else(PoisonError::into_inner);
        let old = core::mem::replace(&mut *locked, (state.number, state.snapshot()));
        drop(locked);
        self.number.store(state.number, Ordering::Release);
        // The last owner of an index gives its memory back, which takes time: not under the lock.
        drop(old);
    }

    /// Merges, publishes the result, and goes on while the delta has grown enough meanwhile.
    fn merge(&self, mut rebuild: Rebuild<K>) {
        loop {
            let main = rebuild.run();
            let mut state = self.state();
            state.finish(main);
            let next = state.start();
            self.publish(&mut state);
            match next {
                Some(next) => rebuild = next,
                None => return,
            }
        }
    }
}

/// Sorted keys that are added to while any number of threads search them.
///
/// ```
/// let growing = lightfoot_search::GrowingIndex::build(&[2u64, 3])?;
/// let mut reader = growing.reader();
/// std::thread::scope(|scope| {
///     scope.spawn(|| growing.insert(&[9, 1]));
/// });
/// assert_eq!(reader.now().lower_bound(9), 3);
/// # Ok::<(), lightfoot_search::Error>(())
/// ```
///
/// Readers never wait: neither for an insertion nor for the merge that a thread of its own does in
/// the background. Insertions wait for each other. An insertion is visible to every snapshot that is
/// taken after it returned. Memory: two copies of all keys while a merge runs.
#[derive(Clone)]
pub struct GrowingIndex<K: Key> {
    shared: Arc<Shared<K>>,
}

impl<K: Key> core::fmt::Debug for GrowingIndex<K> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("GrowingIndex").field(&self.snapshot()).finish()
    }
}

impl<K: Key> GrowingIndex<K> {
    /// Begins with sorted keys, of which there may be none.
    ///
    /// # Errors
    /// [`Error::Unsorted`] with the first offending position.
    pub fn build(sorted: &[K]) -> Result<GrowingIndex<K>, Error> {
        Ok(GrowingIndex::from(Index::build(sorted)?))
    }

    /// Adds keys in any order; keys that are there already are there twice afterwards. Cost: some
    /// 0.2 µs a key in small insertions among a million keys, less in large ones.
    pub fn insert(&self, keys: &[K]) {
        let mut sorted = keys.to_vec();
        K::sort(&mut sorted);
        let mut state = self.shared.state();
        state.insert(&sorted);
        let rebuild = state.start();
        self.shared.publish(&mut state);
        drop(state);
        let Some(rebuild) = rebuild else { return };
        let shared = Arc::clone(&self.shared);
        // Only one merge is under way: `start` gives none while there is a frozen delta. Where the
        // system has no thread to give, this one merges; the closure that could not run is lost, so
        // its merge is made again from the state.
        let merging = std::thread::Builder::new().name("lightfoot-merge".into());
        if merging.spawn(move || shared.merge(rebuild)).is_err() {
            let parts = self.shared.state().parts.clone();
            if let Some(frozen) = parts.frozen {
                self.shared.merge(Rebuild { main: parts.main, frozen });
            }
        }
    }

    /// The keys as they are now. Cost: some 20 ns.
    pub fn snapshot(&self) -> Snapshot<K> {
        self.shared.snapshot()
    }

    /// A reader, for a thread that asks often.
    pub fn reader(&self) -> Reader<K> {
        let number = self.shared.number.load(Ordering::Acquire);
        Reader { shared: Arc::clone(&self.shared), snapshot: self.snapshot(), number }
    }
}

impl<K: Key> From<Index<K>> for GrowingIndex<K> {
    fn from(index: Index<K>) -> GrowingIndex<K> {
        GrowingIndex { shared: Arc::new(Shared::new(State::new(index, LIMITS))) }
    }
}

/// A thread's view of a [`GrowingIndex`].
pub struct Reader<K: Key> {
    shared: Arc<Shared<K>>,
    snapshot: Snapshot<K>,
    /// A number that was read before the snapshot was taken.
    number: usize,
}

impl<K: Key> core::fmt::Debug for Reader<K> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Reader").field(&self.snapshot).finish()
    }
}

impl<K: Key> Reader<K> {
    /// The keys as they are now. Cost: one read where nothing was added since the last call.
    #[inline]
    pub fn now(&mut self) -> &Snapshot<K> {
        let number = self.shared.number.load(Ordering::Acquire);
        if number != self.number {
            self.snapshot = self.shared.snapshot();
            self.number = number;
        }
        &self.snapshot
    }
}

#[cfg(test)]
mod tests {
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
                    let mut added: Vec<u32> =
                        (0..count).map(|i| (number as u32 * 7 + i * 5 + 3) % 17).collect();
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
    fn read(
        growing: &GrowingIndex<u64>,
        done: &core::sync::atomic::AtomicBool,
        times: &[usize],
        seed: u64,
    ) {
        let (mut reader, mut random, mut last) = (growing.reader(), Random::new(seed), 0);
        while !done.load(Ordering::Acquire) {
            let snapshot =
                if random.below(2) == 0 { reader.now().clone() } else { growing.snapshot() };
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
}
