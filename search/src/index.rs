//! The public index: finds the ranks of queries among sorted keys.
//!
//! A rank is a position in the sorted order, which is what a caller needs to find the value, row or
//! offset that belongs to a key. Everything else (`contains`, `equal_range`, `range`) follows from
//! two ranks. Queries take `&self`, never fail, never allocate (but for the iterators' buffer), and
//! may come from any number of threads.

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::{Bound, Range, RangeBounds};

use crate::column::{Column, Stored};
use crate::cut::Word;
use crate::error::Error;
use crate::file::{self, Header};
use crate::key::Key;
use crate::layout::Layout;
use crate::line::Line;
use crate::memory::Memory;
use crate::plan::{Core, Options};
use crate::value::Description;

/// A static index over sorted keys of a fixed size: integers of 8 to 128 bits, floats, and tuples
/// of them (see [`Key`]).
///
/// ```
/// let index = lightfoot_search::Index::build(&[2u32, 3, 3, 7])?;
/// assert_eq!(index.lower_bound(3), 1);
/// assert_eq!(index.equal_range(3), 1..3);
/// let mut ranks = [0; 3];
/// index.batch(&[0, 5, 9], &mut ranks);
/// assert_eq!(ranks, [0, 3, 4]);
/// # Ok::<(), lightfoot_search::Error>(())
/// ```
///
/// A rank is a position in whatever else is sorted alike: rows, offsets, timestamps.
///
/// ```
/// let started_s = [10u32, 25, 25, 70];
/// let task = ["boot", "login", "sync", "idle"];
/// let index = lightfoot_search::Index::build(&started_s)?;
/// let running_at = |second| index.upper_bound(second).checked_sub(1).map(|rank| task[rank]);
/// assert_eq!(running_at(30), Some("sync"));
/// assert_eq!(running_at(9), None);
/// # Ok::<(), lightfoot_search::Error>(())
/// ```
#[derive(Clone, Debug)]
#[allow(private_bounds, reason = "Key is sealed: its workings are the crate's own")]
pub struct Index<K: Key> {
    stored: Stored<<K as Column>::Lane>,
}

impl<K: Key> Index<K> {
    /// Builds from sorted keys. Cost: about 1 ns per 32-bit key and 2 ns per 64-bit key while keys
    /// and index fit the caches; beyond them the system's clearing of new pages decides (1.5 to 2
    /// ns, and 6 to 7). Memory: 0.4 to 2.2 times the keys' bytes (`explain` tells). The keys may be
    /// dropped afterwards.
    ///
    /// ```
    /// let index = lightfoot_search::Index::build(&[1.5f64, 2.0, 2.0, f64::INFINITY])?;
    /// assert_eq!(index.range(1.0..=2.0).collect::<Vec<_>>(), [1.5, 2.0, 2.0]);
    /// let error = lightfoot_search::Index::build(&[1, 3, 2]).unwrap_err();
    /// assert!(matches!(error, lightfoot_search::Error::Unsorted { position: 2 }));
    /// # Ok::<(), lightfoot_search::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Unsorted`] with the first offending position.
    pub fn build(sorted: &[K]) -> Result<Index<K>, Error> {
        Self::build_with(sorted, &Options::default())
    }

    /// Builds from sorted keys with a layout, kernel or machine of the caller's choice.
    ///
    /// # Errors
    /// [`Error::Unsorted`] with the first offending position; [`Error::Refused`] if the requested
    /// layout cannot hold the keys, [`Error::NoSuchIsa`] if this machine lacks the kernel.
    pub fn build_with(sorted: &[K], options: &Options) -> Result<Index<K>, Error> {
        Ok(Index { stored: K::build(sorted, options)? })
    }

    /// Sorts the keys, then builds.
    ///
    /// # Errors
    /// None that depend on the keys.
    pub fn build_unsorted(mut keys: Vec<K>) -> Result<Index<K>, Error> {
        K::sort(&mut keys);
        Self::build(&keys)
    }

    /// Sorts the keys with `threads` threads, then builds with as many. The index is the same for
    /// any number of threads, to the byte.
    ///
    /// ```
    /// let index = lightfoot_search::Index::build_parallel(vec![7u32, 3, 5], 2)?;
    /// assert_eq!(index.iter().collect::<Vec<_>>(), [3, 5, 7]);
    /// # Ok::<(), lightfoot_search::Error>(())
    /// ```
    ///
    /// # Errors
    /// None that depend on the keys.
    #[cfg(feature = "std")]
    pub fn build_parallel(mut keys: Vec<K>, threads: usize) -> Result<Index<K>, Error> {
        crate::parallel::sort(&mut keys, threads, |chunk| K::sort(chunk), |a, b| a.compare(b));
        Self::build_with(&keys, &Options { threads: Some(threads), ..Options::default() })
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.stored.core.n
    }

    /// True without keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of keys less than `key`: the position of the first key that is not less. Cost:
    /// the lines that `explain` states, one after another: some 10 ns in near caches, one memory
    /// access beyond them. Many queries: [`Index::batch`].
    #[inline]
    pub fn lower_bound(&self, key: K) -> usize {
        K::rank(&self.stored, key)
    }

    /// The number of keys not greater than `key`: the position behind the last of them.
    #[inline]
    pub fn upper_bound(&self, key: K) -> usize {
        key.successor().map_or(self.len(), |next| self.lower_bound(next))
    }

    /// The positions of all keys equal to `key`; empty, but in the right place, when there are
    /// none.
    ///
    /// ```
    /// let index = lightfoot_search::Index::build(&[2u32, 3, 3, 7])?;
    /// assert_eq!(index.equal_range(3), 1..3);
    /// assert_eq!(index.equal_range(5), 3..3);
    /// # Ok::<(), lightfoot_search::Error>(())
    /// ```
    #[inline]
    pub fn equal_range(&self, key: K) -> Range<usize> {
        self.lower_bound(key)..self.upper_bound(key)
    }

    /// True when some key equals `key`.
    #[inline]
    pub fn contains(&self, key: K) -> bool {
        !self.equal_range(key).is_empty()
    }

    /// The key at position `rank`. Cost: one access in most layouts, a short search in `split` and
    /// `k-ary`.
    pub fn get(&self, rank: usize) -> Option<K> {
        (rank < self.len()).then(|| K::key(&self.stored, rank))
    }

    /// The positions of all keys inside `bounds`.
    pub fn range_ranks(&self, bounds: impl RangeBounds<K>) -> Range<usize> {
        let start = match bounds.start_bound() {
            Bound::Included(&key) => self.lower_bound(key),
            Bound::Excluded(&key) => self.upper_bound(key),
            Bound::Unbounded => 0,
        };
        let end = match bounds.end_bound() {
            Bound::Included(&key) => self.upper_bound(key),
            Bound::Excluded(&key) => self.lower_bound(key),
            Bound::Unbounded => self.len(),
        };
        start..end.max(start)
    }

    /// The keys inside `bounds`, in order. Cost: two ranks, then a few nanoseconds a key, 256 keys
    /// decoded at a time.
    ///
    /// ```
    /// let index = lightfoot_search::Index::build(&[10i64, 20, 20, 40])?;
    /// assert_eq!(index.range(15..=40).collect::<Vec<_>>(), [20, 20, 40]);
    /// assert_eq!(index.range(..).len(), 4);
    /// # Ok::<(), lightfoot_search::Error>(())
    /// ```
    pub fn range(&self, bounds: impl RangeBounds<K>) -> Iter<'_, K> {
        Iter::new(self, self.range_ranks(bounds))
    }

    /// The keys of a range of ranks, in order.
    ///
    /// ```
    /// let index = lightfoot_search::Index::build(&[10u32, 20, 40])?;
    /// assert_eq!(index.iter_ranks(1..3).collect::<Vec<_>>(), [20, 40]);
    /// # Ok::<(), lightfoot_search::Error>(())
    /// ```
    ///
    /// # Panics
    /// When the range ends before it starts or behind the last key.
    pub fn iter_ranks(&self, ranks: Range<usize>) -> Iter<'_, K> {
        assert!(ranks.start <= ranks.end && ranks.end <= self.len(), "ranks up to {}", self.len());
        Iter::new(self, ranks)
    }

    /// All keys, in order.
    pub fn iter(&self) -> Iter<'_, K> {
        Iter::new(self, 0..self.len())
    }

    /// `ranks[i]` becomes `lower_bound(keys[i])`. Any length; many queries at once cost a fraction
    /// of one after another, because their cache misses overlap. The answers' memory is the
    /// caller's: a fresh vector costs more in page faults than the search.
    ///
    /// ```
    /// let index = lightfoot_search::Index::build(&[10u64, 20, 40])?;
    /// let mut ranks = [0; 3];
    /// index.batch(&[5, 20, 50], &mut ranks);
    /// assert_eq!(ranks, [0, 1, 3]);
    /// # Ok::<(), lightfoot_search::Error>(())
    /// ```
    ///
    /// # Panics
    /// When the lengths differ.
    #[inline]
    pub fn batch(&self, keys: &[K], ranks: &mut [usize]) {
        K::ranks(&self.stored, keys, ranks);
    }

    /// [`Index::batch`] on `threads` threads. Starting threads costs some 20 µs, so it pays from
    /// about 100,000 queries on.
    ///
    /// # Panics
    /// When the lengths differ.
    #[cfg(feature = "std")]
    pub fn batch_parallel(&self, keys: &[K], ranks: &mut [usize], threads: usize) {
        crate::parallel::zip_chunks(keys, ranks, threads, |keys, ranks| self.batch(keys, ranks));
    }

    /// The plan in words: layout and why, bound, memory, kernel, pages.
    pub fn explain(&self) -> String {
        self.stored.core.explain()
    }

    /// The layout of the index.
    pub fn layout(&self) -> Layout {
        self.stored.core.shape.layout()
    }

    /// The size of the index in bytes.
    pub fn bytes(&self) -> usize {
        size_of_val(self.stored.core.memory.lines()) + size_of_val(self.stored.full.lines())
    }

    /// Appends the keys of a range of ranks.
    pub(crate) fn read(&self, ranks: Range<usize>, out: &mut Vec<K>) {
        K::read(&self.stored, ranks, out);
    }

    /// The lines of a file behind its header.
    pub(crate) fn parts(&self) -> [&[Line]; 2] {
        [self.stored.core.memory.lines(), self.stored.full.lines()]
    }

    pub(crate) fn header(&self) -> Header {
        let core = &self.stored.core;
        let (full_lines, frame) = (self.stored.full.lines().len(), self.stored.frame);
        let header = Header::of(K::TYPE, (core.n, core.reason), &core.shape, full_lines, frame);
        Header { copies: (core.copies.key.widen(), core.copies.count), ..header }
    }

    /// The index as the bytes of a file.
    ///
    /// ```
    /// let index = lightfoot_search::Index::build(&[1u32, 2, 3])?;
    /// let again = lightfoot_search::Index::<u32>::from_bytes(&index.to_bytes())?;
    /// assert_eq!(again.lower_bound(3), 2);
    /// # Ok::<(), lightfoot_search::Error>(())
    /// ```
    pub fn to_bytes(&self) -> Vec<u8> {
        file::encode(&self.header(), &self.parts())
    }

    /// Reads an index from the bytes of a file. Copies them to aligned memory; [`Index::open`] does
    /// not.
    ///
    /// # Errors
    /// The bytes are no index, of a newer format, of another type, truncated or damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Index<K>, Error> {
        Self::from_memory(&file::copied(bytes), bytes.len())
    }

    /// The index that lives in `bytes`, for example an `include_bytes!` aligned to 64. Nothing is
    /// copied.
    ///
    /// # Errors
    /// [`Error::Misaligned`], or how the bytes are foreign, newer, of another type, truncated or
    /// damaged.
    pub fn from_static(bytes: &'static [u8]) -> Result<Index<K>, Error> {
        let memory = Memory::from_static(bytes).ok_or(Error::Misaligned)?;
        Self::from_memory(&memory, bytes.len())
    }

    fn from_memory(memory: &Memory, bytes: usize) -> Result<Index<K>, Error> {
        Ok(Self::with_values(memory, bytes)?.0)
    }

    /// The index in a file's lines, its header, and the lines of values behind the keys.
    pub(crate) fn with_values(memory: &Memory, bytes: usize) -> Result<(Index<K>, Header, Memory), Error> {
        let opened = file::open(memory, bytes, K::TYPE)?;
        let header = opened.header;
        let (full_lines, behind) = (K::full_lines(header.n), opened.full.lines().len());
        let values = Description::of(&header)?.map_or(0, |values| values.lines(header.n));
        if full_lines.saturating_add(values) != behind {
            return Err(Error::Damaged { what: "the full keys and values are not as many as the keys" });
        }
        let shape = header.shape()?;
        let core = Core::from_parts(header.n, shape, opened.core, header.reason, header.copies)?;
        let stored = Stored { core, full: opened.full.part(0..full_lines), frame: header.frame };
        if !K::agrees(&stored) {
            return Err(Error::Damaged { what: "the full keys are not those of the prefixes" });
        }
        Ok((Index { stored }, header, opened.full.part(full_lines..behind)))
    }

    /// Writes the index file at `path`, whole or not at all.
    ///
    /// # Errors
    /// The system's, when the file cannot be written.
    #[cfg(feature = "std")]
    pub fn save(&self, path: impl AsRef<std::path::Path>) -> Result<(), Error> {
        file::save(path.as_ref(), &self.header(), &self.parts())
    }

    /// Reads the index file at `path` and verifies its checksum and its order, which takes some
    /// nanoseconds per key. Later changes of the file do not affect the index. Of a
    /// [`Map`](crate::Map)'s file it takes the keys.
    ///
    /// # Errors
    /// The system's error; or the file is no index, of a newer format, of another type, truncated
    /// or damaged.
    #[cfg(feature = "std")]
    pub fn open(path: impl AsRef<std::path::Path>) -> Result<Index<K>, Error> {
        let (memory, bytes) = file::read(path.as_ref())?;
        Self::from_memory(&memory, bytes)
    }
}

/// Keys decoded at a time while iterating.
const READ_AHEAD: usize = 256;

/// Keys in order, from both ends.
///
/// ```
/// let index = lightfoot_search::Index::build(&[10u32, 20, 20, 40])?;
/// assert_eq!(index.range(..=20).rev().collect::<Vec<_>>(), [20, 20, 10]);
/// assert_eq!(index.iter().next_back(), Some(40));
/// # Ok::<(), lightfoot_search::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Iter<'a, K: Key> {
    index: &'a Index<K>,
    /// The positions of the keys that are still to come.
    ranks: Range<usize>,
    /// Keys of the positions `ranks.start ..`, last first; some may have been given from the back.
    buffer: Vec<K>,
    /// Keys of the positions before `ranks.end`, in order; some may have been given from the front.
    back: Vec<K>,
}

impl<'a, K: Key> Iter<'a, K> {
    pub(crate) fn new(index: &'a Index<K>, ranks: Range<usize>) -> Iter<'a, K> {
        Iter { index, ranks, buffer: Vec::new(), back: Vec::new() }
    }
}

impl<K: Key> Iterator for Iter<'_, K> {
    type Item = K;

    fn next(&mut self) -> Option<K> {
        if self.ranks.is_empty() {
            return None;
        }
        if self.buffer.is_empty() {
            let end = self.ranks.end.min(self.ranks.start + READ_AHEAD);
            K::read(&self.index.stored, self.ranks.start..end, &mut self.buffer);
            self.buffer.reverse();
        }
        let key = self.buffer.pop()?;
        self.ranks.start += 1;
        Some(key)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.ranks.len(), Some(self.ranks.len()))
    }
}

impl<K: Key> DoubleEndedIterator for Iter<'_, K> {
    fn next_back(&mut self) -> Option<K> {
        if self.ranks.is_empty() {
            return None;
        }
        if self.back.is_empty() {
            let start = self.ranks.start.max(self.ranks.end.saturating_sub(READ_AHEAD));
            K::read(&self.index.stored, start..self.ranks.end, &mut self.back);
        }
        let key = self.back.pop()?;
        self.ranks.end -= 1;
        Some(key)
    }
}

impl<K: Key> ExactSizeIterator for Iter<'_, K> {}

impl<K: Key> core::iter::FusedIterator for Iter<'_, K> {}

impl<'a, K: Key> IntoIterator for &'a Index<K> {
    type Item = K;
    type IntoIter = Iter<'a, K>;

    fn into_iter(self) -> Iter<'a, K> {
        self.iter()
    }
}
