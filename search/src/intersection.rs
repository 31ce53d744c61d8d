//! The keys that two indexes share.
//!
//! Two ways, of which the sizes decide. Where one index has many more keys, those of the smaller
//! one are asked for in the larger one as batches: their cache misses overlap, and a key costs a few
//! nanoseconds whatever the larger one's size, while a galloping merge pays two mispredicted
//! branches for each doubling of the distance. Otherwise both are decoded in order and merged
//! without branches that depend on keys.
//!
//! A key that repeats is given once.

use alloc::vec::Vec;

use crate::index::Index;
use crate::key::Key;

/// The larger index has at least so many times the smaller one's keys where it is asked.
const ASKING_FROM: usize = 6;

/// Keys that are decoded or asked for at a time.
const CHUNK: usize = 1024;

impl<K: Key> Index<K> {
    /// The keys that both indexes hold, each once, in order. Cost: a batch of twice the smaller
    /// one's queries where the other has six times as many keys or more; else a few nanoseconds for
    /// each key of both.
    ///
    /// ```
    /// use lightfoot_search::Index;
    /// let (a, b) = (Index::build(&[1u32, 3, 3, 9])?, Index::build(&[3u32, 4, 9])?);
    /// assert_eq!(a.intersection(&b), [3, 9]);
    /// # Ok::<(), lightfoot_search::Error>(())
    /// ```
    pub fn intersection(&self, other: &Index<K>) -> Vec<K> {
        let (small, large) = if self.len() <= other.len() { (self, other) } else { (other, self) };
        let mut common = Vec::new();
        if small.len().saturating_mul(ASKING_FROM) <= large.len() {
            ask(small, large, &mut common);
        } else {
            merge(small, large, &mut common);
        }
        common
    }
}

/// Decodes keys of an index, a chunk at a time; `chunk` holds the next ones.
struct Chunks<'a, K: Key> {
    index: &'a Index<K>,
    next: usize,
    chunk: Vec<K>,
}

impl<'a, K: Key> Chunks<'a, K> {
    fn new(index: &'a Index<K>) -> Chunks<'a, K> {
        Chunks { index, next: 0, chunk: Vec::with_capacity(CHUNK) }
    }

    /// Decodes the next chunk in place of the last one; false behind the last key.
    fn advance(&mut self) -> bool {
        let end = self.index.len().min(self.next + CHUNK);
        self.chunk.clear();
        self.index.read(self.next..end, &mut self.chunk);
        self.next = end;
        !self.chunk.is_empty()
    }
}

/// Asks `large` for every key of `small`.
fn ask<K: Key>(small: &Index<K>, large: &Index<K>, common: &mut Vec<K>) {
    let mut keys = Chunks::new(small);
    let (mut after, mut starts, mut ends) = (Vec::with_capacity(CHUNK), [0; CHUNK], [0; CHUNK]);
    let mut last = None;
    while keys.advance() {
        let chunk = &mut keys.chunk;
        // Equal neighbours are dropped, also across chunks.
        chunk.dedup_by(|b, a| a.compare(b).is_eq());
        if last.is_some_and(|last: K| chunk[0].compare(&last).is_eq()) {
            chunk.remove(0);
        }
        last = chunk.last().copied().or(last);
        // The last key of the type has no successor: its own rank stands in, and all keys from
        // there on are equal to it.
        after.clear();
        after.extend(chunk.iter().map(|&key| key.successor().unwrap_or(key)));
        let (starts, ends) = (&mut starts[..chunk.len()], &mut ends[..chunk.len()]);
        large.batch(chunk, starts);
        large.batch(&after, ends);
        if let (Some(end), Some(key)) = (ends.last_mut(), chunk.last()) {
            if key.successor().is_none() {
                *end = large.len();
            }
        }
        let found = chunk.iter().zip(starts.iter().zip(&*ends));
        common.extend(found.filter(|(_, (start, end))| start < end).map(|(&key, _)| key));
    }
}

/// Merges both.
fn merge<K: Key>(a: &Index<K>, b: &Index<K>, common: &mut Vec<K>) {
    let (mut a, mut b) = (Chunks::new(a), Chunks::new(b));
    let (mut i, mut j) = (0, 0);
    let mut found = Vec::with_capacity(CHUNK);
    loop {
        // Whichever chunk is used up is decoded anew.
        if i == a.chunk.len() {
            i = 0;
            if !a.advance() {
                break;
            }
        }
        if j == b.chunk.len() {
            j = 0;
            if !b.advance() {
                break;
            }
        }
        found.clear();
        merge_chunks(&a.chunk, &b.chunk, (&mut i, &mut j), &mut found);
        let repeated = match (common.last(), found.first()) {
            (Some(last), Some(first)) => usize::from(last.compare(first).is_eq()),
            _ => 0,
        };
        found.dedup_by(|b, a| a.compare(b).is_eq());
        common.extend_from_slice(&found[repeated..]);
    }
}

/// Appends what two chunks share from the places `i` and `j` on, and moves these to where one of
/// the chunks ends. Each step moves one place or both, without a branch that depends on keys.
#[inline]
fn merge_chunks<K: Key>(a: &[K], b: &[K], (i, j): (&mut usize, &mut usize), found: &mut Vec<K>) {
    let (mut at, mut other) = (*i, *j);
    // A place in `found` is written at each step, and kept where the keys are equal.
    let steps = a.len().min(b.len());
    found.resize(steps, a[0]);
    let mut count = 0;
    while at < a.len() && other < b.len() {
        let order = a[at].compare(&b[other]);
        found[count.min(steps - 1)] = a[at];
        count += usize::from(order.is_eq());
        at += usize::from(order.is_le());
        other += usize::from(order.is_ge());
    }
    found.truncate(count);
    (*i, *j) = (at, other);
}
