//! The keys that two indexes share.
//!
//! The keys of the smaller index are decoded in order and asked for in the larger one as batches,
//! once themselves and once their successors: where the two ranks differ, the larger one has the
//! key. Misses of a batch overlap, and ascending queries read neighbouring lines, so a key costs
//! some ten nanoseconds whatever the sizes are. A galloping merge pays two mispredicted branches
//! for each doubling of the distance to the next key. No branch here depends on a key, and the code
//! of one way serves all ratios of sizes; a merge of decoded keys was slower even at equal sizes.
//!
//! A key that repeats is given once.

use alloc::vec::Vec;

use crate::index::Index;
use crate::key::Key;

/// Keys that are decoded and asked for at a time.
const CHUNK: usize = 1024;

impl<K: Key> Index<K> {
    /// The keys that both indexes hold, each once, in order. Cost: some 10 ns for each key of the
    /// smaller one.
    ///
    /// ```
    /// use lightfoot_search::Index;
    /// let (a, b) = (Index::build(&[1u32, 3, 3, 9])?, Index::build(&[3u32, 4, 9])?);
    /// assert_eq!(a.intersection(&b), [3, 9]);
    /// # Ok::<(), lightfoot_search::Error>(())
    /// ```
    pub fn intersection(&self, other: &Index<K>) -> Vec<K> {
        let (small, large) = if self.len() <= other.len() { (self, other) } else { (other, self) };
        let (mut common, mut keys) = (Vec::new(), Vec::with_capacity(CHUNK));
        let mut asked = Asked { large, after: Vec::new(), starts: [0; CHUNK], ends: [0; CHUNK] };
        let mut last = None;
        for first in (0..small.len()).step_by(CHUNK) {
            keys.clear();
            small.read(first..small.len().min(first + CHUNK), &mut keys);
            // Equal neighbours are dropped, also across chunks.
            keys.dedup_by(|b, a| a.compare(b).is_eq());
            let repeated = last.is_some_and(|last: K| keys[0].compare(&last).is_eq());
            last = keys.last().copied();
            asked.append_found(&keys[usize::from(repeated)..], &mut common);
        }
        common
    }
}

/// An index that is asked for keys, and memory for a chunk of them.
struct Asked<'a, K: Key> {
    large: &'a Index<K>,
    after: Vec<K>,
    starts: [usize; CHUNK],
    ends: [usize; CHUNK],
}

impl<K: Key> Asked<'_, K> {
    /// Appends those of at most [`CHUNK`] different `keys` that the index has.
    fn append_found(&mut self, keys: &[K], common: &mut Vec<K>) {
        let (starts, ends) = (&mut self.starts[..keys.len()], &mut self.ends[..keys.len()]);
        self.after.clear();
        // The last key of the type has no successor; all ranks from its own on are its.
        self.after.extend(keys.iter().map(|&key| key.successor().unwrap_or(key)));
        self.large.batch(keys, starts);
        self.large.batch(&self.after, ends);
        if let (Some(end), Some(key)) = (ends.last_mut(), keys.last()) {
            if key.successor().is_none() {
                *end = self.large.len();
            }
        }
        // Every key is written to the next free place, and stays there if it was found.
        let Some(&any) = keys.first() else { return };
        let mut count = common.len();
        common.resize(count + keys.len(), any);
        for (&key, (start, end)) in keys.iter().zip(starts.iter().zip(&*ends)) {
            common[count] = key;
            count += usize::from(start < end);
        }
        common.truncate(count);
    }
}
