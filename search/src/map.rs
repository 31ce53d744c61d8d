//! A sorted map: an [`Index`] of keys, and a vector of values in the keys' order; in a file the
//! values stand behind the keys.

use alloc::vec::Vec;
use core::ops::RangeBounds;

use crate::error::Error;
use crate::file;
use crate::index::{Index, Iter};
use crate::key::Key;
use crate::memory::Memory;
use crate::value::{self, Value};

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

impl<K: Key, V: Value> Map<K, V> {
    /// The header and the values' lines of a file.
    fn encoded(&self) -> (file::Header, Vec<crate::line::Line>) {
        let (description, lines) = value::encode(&self.values);
        let mut header = self.index.header();
        description.describe(&mut header);
        (header, lines)
    }

    /// The map as the bytes of a file.
    ///
    /// ```
    /// use lightfoot_search::{Index, Map};
    /// let map = Map::build(&[1u32, 2], vec![String::from("one"), String::from("two")])?;
    /// let bytes = map.to_bytes();
    /// let again = Map::<u32, String>::from_bytes(&bytes)?;
    /// assert_eq!(again.get(2).map(String::as_str), Some("two"));
    /// assert!(Map::<u32, u64>::from_bytes(&bytes).is_err(), "these values are strings");
    /// assert!(Index::<u32>::from_bytes(&bytes)?.contains(1), "an index takes the keys alone");
    /// # Ok::<(), lightfoot_search::Error>(())
    /// ```
    pub fn to_bytes(&self) -> Vec<u8> {
        let (header, values) = self.encoded();
        let [core, full] = self.index.parts();
        file::encode(&header, &[core, full, &values])
    }

    /// Reads a map from the bytes of a file.
    ///
    /// # Errors
    /// The bytes are no index, of a newer format, of other types of keys or values, truncated or
    /// damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Map<K, V>, Error> {
        Self::from_memory(&file::copied(bytes), bytes.len())
    }

    fn from_memory(memory: &Memory, bytes: usize) -> Result<Map<K, V>, Error> {
        let (index, header, lines) = Index::with_values(memory, bytes)?;
        Ok(Map { index, values: value::decode(&header, lines.lines())? })
    }

    /// Writes the map's file at `path`, whole or not at all.
    ///
    /// # Errors
    /// The system's, when the file cannot be written.
    #[cfg(feature = "std")]
    pub fn save(&self, path: impl AsRef<std::path::Path>) -> Result<(), Error> {
        let (header, values) = self.encoded();
        let [core, full] = self.index.parts();
        file::save(path.as_ref(), &header, &[core, full, &values])
    }

    /// Reads the map's file at `path` and verifies it, as [`Index::open`] does; the values are
    /// copied.
    ///
    /// # Errors
    /// The system's error; or the file is no index, of a newer format, of other types of keys or
    /// values, truncated or damaged.
    #[cfg(feature = "std")]
    pub fn open(path: impl AsRef<std::path::Path>) -> Result<Map<K, V>, Error> {
        let (memory, bytes) = file::read(path.as_ref())?;
        Self::from_memory(&memory, bytes)
    }
}
