//! A sorted map: an [`Index`] of keys, and a vector of values in the keys' order.

use alloc::vec::Vec;
use core::ops::RangeBounds;

use crate::error::Error;
use crate::index::{Index, Iter};
use crate::key::Key;

/// A static sorted map. Keys may repeat; their values stand in the order in which they were given.
///
/// ```
/// let map = lightfoot_search::Map::build_unsorted(vec![(7u64, "seven"), (2, "two")])?;
/// assert_eq!(map.get(7), Some(&"seven"));
/// assert_eq!(map.range(3..).next(), Some((7, &"seven")));
/// # Ok::<(), lightfoot_search::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Map<K: Key, V> {
    index: Index<K>,
    values: Vec<V>,
}

impl<K: Key, V> Map<K, V> {
    /// Builds from sorted keys and equally many values.
    ///
    /// # Errors
    /// [`Error::Unsorted`] with the first offending position.
    ///
    /// # Panics
    /// If the numbers of keys and values differ.
    pub fn build(sorted: &[K], values: Vec<V>) -> Result<Map<K, V>, Error> {
        assert_eq!(sorted.len(), values.len(), "as many values as keys");
        Ok(Map { index: Index::build(sorted)?, values })
    }

    /// Sorts the pairs by key, equal keys in the order given, then builds.
    ///
    /// # Errors
    /// None that depend on the keys.
    pub fn build_unsorted(mut pairs: Vec<(K, V)>) -> Result<Map<K, V>, Error> {
        pairs.sort_by(|a, b| a.0.compare(&b.0));
        let keys: Vec<K> = pairs.iter().map(|pair| pair.0).collect();
        Self::build(&keys, pairs.into_iter().map(|pair| pair.1).collect())
    }

    /// The keys' index.
    pub fn index(&self) -> &Index<K> {
        &self.index
    }

    /// Number of pairs.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// True without pairs.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// The first value of `key`.
    #[inline]
    pub fn get(&self, key: K) -> Option<&V> {
        self.get_all(key).first()
    }

    /// All values of `key`.
    ///
    /// ```
    /// let map = lightfoot_search::Map::build(&[1u32, 2, 2], vec!["a", "b", "c"])?;
    /// assert_eq!(map.get_all(2), ["b", "c"]);
    /// assert!(map.get_all(3).is_empty());
    /// # Ok::<(), lightfoot_search::Error>(())
    /// ```
    #[inline]
    pub fn get_all(&self, key: K) -> &[V] {
        &self.values[self.index.equal_range(key)]
    }

    /// All values, in the keys' order.
    pub fn values(&self) -> &[V] {
        &self.values
    }

    /// The pairs whose keys are inside `bounds`, in order, from both ends.
    pub fn range(
        &self,
        bounds: impl RangeBounds<K>,
    ) -> impl DoubleEndedIterator<Item = (K, &V)> + ExactSizeIterator {
        let ranks = self.index.range_ranks(bounds);
        Iter::new(&self.index, ranks.clone()).zip(&self.values[ranks])
    }

    /// All pairs, in order, from both ends.
    ///
    /// ```
    /// let map = lightfoot_search::Map::build(&[1u32, 2, 2], vec!["a", "b", "c"])?;
    /// assert_eq!(map.iter().next_back(), Some((2, &"c")));
    /// # Ok::<(), lightfoot_search::Error>(())
    /// ```
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (K, &V)> + ExactSizeIterator {
        self.index.iter().zip(&self.values)
    }
}
