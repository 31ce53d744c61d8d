//! Sorted keys that are added to: a large index, small sorted deltas beside it, and rebuilding in
//! the background.
//!
//! An [`Index`] never changes, so a set that grows is several of them, and a rank is the sum of the
//! ranks in each:
//!
//! ```text
//! insert ─▶ recent ─────▶ delta ───────▶ frozen ────────────▶ main
//!           at most 512   an index that  an index that a      an index of nearly
//!           sorted keys   is built anew  thread is merging    all keys
//! ```
//!
//! A [`Snapshot`] is the state after an insertion. It never changes. Insertions publish a new one
//! in the next of four slots, and then its number; a reader takes the slot of the number that it
//! reads. Only a writer that is three insertions ahead of that number could hold the slot's lock,
//! or have put another snapshot into it. The reader then reads the number again, so it waits for
//! nobody, and somebody always makes progress. A [`Reader`] keeps a snapshot and looks at the
//! number alone until that changes.
//!
//! How long the delta grows balances two costs of an insertion among n keys: building a delta of d
//! keys anew for every 512 insertions, and merging n keys for every d insertions. Their sum is
//! least where d is about the root of 512 · n.
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

const LIMITS: Limits = Limits { recent: 512, delta: 4096 };

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
    /// search of at most 512 keys.
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

/// `many` and `few`, which are sorted, as one sorted vector. Cost: a search in `many` for each of
/// the few, and copies of what is between.
fn merged<K: Key>(many: &[K], few: &[K]) -> Vec<K> {
    let mut keys = Vec::with_capacity(many.len() + few.len());
    let mut rest = many;
    for &key in few {
        let (before, after) = rest.split_at(rest.partition_point(|other| other.compare(&key).is_le()));
        keys.extend_from_slice(before);
        keys.push(key);
        rest = after;
    }
    keys.extend_from_slice(rest);
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
        let mut keys = Vec::with_capacity(self.main.len());
        self.main.read(0..self.main.len(), &mut keys);
        let few: Vec<K> = self.frozen.iter().collect();
        Index::build(&merged(&keys, &few)).expect("merged keys are sorted")
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
        let recent = merged(&self.parts.recent, sorted);
        if recent.len() <= self.limits.recent {
            self.parts.recent = Arc::new(recent);
            return;
        }
        self.delta = merged(&self.delta, &recent);
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
/// the background. Insertions wait for each other. An insertion is visible to every snapshot that
/// is taken after it returned. Memory: two copies of all keys while a merge runs.
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
mod tests;
