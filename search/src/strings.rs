//! Byte strings: eight bytes behind the common prefix are searched as a lane, and ties are resolved
//! by comparing the strings.
//!
//! The bytes that all strings share are removed once. The next eight bytes, big endian and padded
//! with zeros, have the order of the strings, up to ties. A tie costs a binary search among the
//! strings that share those bytes. The strings are stored end to end, with their ends in an array,
//! so an index consists of three slices.
//!
//! Leaves out: front coding, and deeper prefixes for sets whose strings share long middles.

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use crate::column::{ranks_converted, settle};
use crate::error::Error;
use crate::file::{self, Header};
use crate::format::KeyType;
use crate::lane::Frame;
use crate::layout::Layout;
use crate::line::{lanes, lanes_mut, lines_for};
use crate::memory::{Draft, Memory};
use crate::plan::{Core, Options};

/// A static index over sorted byte strings.
///
/// ```
/// let index = lightfoot_search::BytesIndex::build(&["/a", "/ab", "/b"])?;
/// assert_eq!(index.lower_bound(b"/ab"), 1);
/// assert_eq!(index.get(2), Some(&b"/b"[..]));
/// # Ok::<(), lightfoot_search::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct BytesIndex {
    core: Core<u64>,
    /// Ends of the strings, then the strings.
    full: Memory,
    /// Lines of the ends.
    ends_lines: usize,
    /// Bytes of all strings.
    total: usize,
    /// Bytes that all strings share.
    common: usize,
}

/// Eight bytes of `string` from `skip` on as a big-endian number, zeros behind its end.
fn prefix(string: &[u8], skip: usize) -> u64 {
    let rest = string.get(skip..).unwrap_or(&[]);
    match rest.first_chunk::<8>() {
        Some(eight) => u64::from_be_bytes(*eight),
        None => {
            rest.iter().enumerate().fold(0, |number, (i, &byte)| number | u64::from(byte) << (56 - 8 * i))
        }
    }
}

impl BytesIndex {
    /// Builds from strings in lexicographic order.
    ///
    /// # Errors
    /// [`Error::Unsorted`] with the first offending position.
    pub fn build<S: AsRef<[u8]>>(sorted: &[S]) -> Result<BytesIndex, Error> {
        Self::build_with(sorted, &Options::default())
    }

    /// Builds with a layout or kernel of the caller's choice.
    ///
    /// # Errors
    /// [`Error::Unsorted`], [`Error::Refused`] or [`Error::NoSuchIsa`].
    pub fn build_with<S: AsRef<[u8]>>(sorted: &[S], options: &Options) -> Result<BytesIndex, Error> {
        if let Some(at) = sorted.windows(2).position(|pair| pair[0].as_ref() > pair[1].as_ref()) {
            return Err(Error::Unsorted { position: at + 1 });
        }
        let common = match (sorted.first(), sorted.last()) {
            (Some(first), Some(last)) => {
                first.as_ref().iter().zip(last.as_ref()).take_while(|(a, b)| a == b).count()
            }
            _ => 0,
        };
        let prefixes: Vec<u64> = sorted.iter().map(|string| prefix(string.as_ref(), common)).collect();
        let total = sorted.iter().map(|string| string.as_ref().len()).sum();
        let ends_lines = lines_for::<u64>(sorted.len() + 1);
        let lines = ends_lines + lines_for::<u8>(total);
        let mut full = Draft::new(lines);
        let (ends, bytes) = full.lines_mut().split_at_mut(ends_lines);
        let (ends, bytes) = (lanes_mut::<u64>(ends), lanes_mut::<u8>(bytes));
        let mut end = 0;
        for (string, slot) in sorted.iter().zip(&mut ends[1..]) {
            let string = string.as_ref();
            bytes[end..end + string.len()].copy_from_slice(string);
            end += string.len();
            *slot = end as u64;
        }
        let core = Core::build_whole(&prefixes, options)?;
        Ok(BytesIndex { core, full: full.finish(lines), ends_lines, total, common })
    }

    /// Sorts the strings, then builds.
    ///
    /// # Errors
    /// None that depend on the strings.
    pub fn build_unsorted<S: AsRef<[u8]>>(mut strings: Vec<S>) -> Result<BytesIndex, Error> {
        strings.sort_unstable_by(|a, b| a.as_ref().cmp(b.as_ref()));
        Self::build(&strings)
    }

    /// Number of strings.
    pub fn len(&self) -> usize {
        self.core.n
    }

    /// True without strings.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    fn string(&self, rank: usize) -> &[u8] {
        let (ends, bytes) = self.full.lines().split_at(self.ends_lines);
        let ends = lanes::<u64>(ends);
        &lanes::<u8>(bytes)[ends[rank] as usize..ends[rank + 1] as usize]
    }

    /// The string at position `rank`.
    pub fn get(&self, rank: usize) -> Option<&[u8]> {
        (rank < self.len()).then(|| self.string(rank))
    }

    /// The lane by which `query` is searched; a query that differs in the common bytes maps to the
    /// smallest or the largest lane.
    fn lane(&self, query: &[u8]) -> u64 {
        if self.core.n == 0 {
            return 0;
        }
        let common = &self.string(0)[..self.common];
        match query[..query.len().min(common.len())].cmp(common) {
            core::cmp::Ordering::Less => 0,
            core::cmp::Ordering::Equal => prefix(query, self.common),
            core::cmp::Ordering::Greater => u64::MAX,
        }
    }

    fn settled(&self, query: &[u8], first: usize, also: impl Fn(&[u8], &[u8]) -> bool) -> usize {
        settle(&self.core, self.lane(query), first, |rank| also(self.string(rank), query))
    }

    /// The number of strings less than `query`.
    pub fn lower_bound(&self, query: &[u8]) -> usize {
        self.settled(query, self.core.rank(self.lane(query)), |string, query| string < query)
    }

    /// The number of strings not greater than `query`.
    pub fn upper_bound(&self, query: &[u8]) -> usize {
        self.settled(query, self.core.rank(self.lane(query)), |string, query| string <= query)
    }

    /// The positions of all strings equal to `query`.
    pub fn equal_range(&self, query: &[u8]) -> Range<usize> {
        self.lower_bound(query)..self.upper_bound(query)
    }

    /// True when some string equals `query`.
    pub fn contains(&self, query: &[u8]) -> bool {
        self.get(self.lower_bound(query)) == Some(query)
    }

    /// The positions of all strings that begin with `start`.
    ///
    /// ```
    /// let index = lightfoot_search::BytesIndex::build(&["/etc", "/usr/bin", "/usr/lib"])?;
    /// assert_eq!(index.starting_with(b"/usr"), 1..3);
    /// # Ok::<(), lightfoot_search::Error>(())
    /// ```
    pub fn starting_with(&self, start: &[u8]) -> Range<usize> {
        let low = self.lower_bound(start);
        let end = match start.iter().rposition(|&byte| byte < u8::MAX) {
            None => self.len(),
            Some(last) => {
                let mut after = start[..=last].to_vec();
                after[last] += 1;
                self.lower_bound(&after)
            }
        };
        low..end
    }

    /// All strings, in order, from both ends.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &[u8]> + ExactSizeIterator {
        (0..self.len()).map(|rank| self.string(rank))
    }

    /// `ranks[i]` becomes `lower_bound(queries[i])`.
    ///
    /// # Panics
    /// When the lengths differ.
    pub fn batch<S: AsRef<[u8]> + Copy>(&self, queries: &[S], ranks: &mut [usize]) {
        ranks_converted(&self.core, queries, ranks, |query| self.lane(query.as_ref()));
        for (query, rank) in queries.iter().zip(ranks) {
            *rank = self.settled(query.as_ref(), *rank, |string, query| string < query);
        }
    }

    /// The plan in words.
    pub fn explain(&self) -> String {
        self.core.explain()
    }

    /// The layout of the prefixes.
    pub fn layout(&self) -> Layout {
        self.core.shape.layout()
    }

    /// Bytes that the index takes.
    pub fn bytes(&self) -> usize {
        size_of_val(self.core.memory.lines()) + size_of_val(self.full.lines())
    }

    fn header(&self) -> Header {
        let mut header = Header::of(
            KeyType::Bytes,
            (self.core.n, self.core.reason),
            &self.core.shape,
            self.full.lines().len(),
            Frame::default(),
        );
        header.extra[0] = self.total as u64;
        header.extra[1] = self.common as u64;
        header
    }

    /// The index as the bytes of a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        file::encode(&self.header(), &[self.core.memory.lines(), self.full.lines()])
    }

    /// Reads an index from the bytes of a file.
    ///
    /// # Errors
    /// The bytes are no index, of a newer format, of another type, truncated or damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<BytesIndex, Error> {
        Self::from_memory(&file::copied(bytes), bytes.len())
    }

    fn from_memory(memory: &Memory, file_bytes: usize) -> Result<BytesIndex, Error> {
        const DAMAGED: Error = Error::Damaged { what: "the strings' ends do not fit the strings" };
        let opened = file::open(memory, file_bytes, KeyType::Bytes)?;
        let n = opened.header.n;
        let ends_lines = lines_for::<u64>(n + 1);
        let total = usize::try_from(opened.header.extra[0]).map_err(|_| DAMAGED)?;
        let common = usize::try_from(opened.header.extra[1]).map_err(|_| DAMAGED)?;
        if opened.full.lines().len() != ends_lines.saturating_add(lines_for::<u8>(total)) {
            return Err(DAMAGED);
        }
        let ends = &lanes::<u64>(&opened.full.lines()[..ends_lines])[..n + 1];
        let ordered = ends.windows(2).all(|pair| pair[0] <= pair[1]);
        let first_bytes = ends.get(1).copied().unwrap_or(0);
        if ends[0] != 0 || !ordered || ends[n] != total as u64 || (n > 0 && common as u64 > first_bytes) {
            return Err(DAMAGED);
        }
        let shape = opened.header.shape()?;
        let core = Core::from_parts(n, shape, opened.core, opened.header.reason, opened.header.copies)?;
        let index = BytesIndex { core, full: opened.full, ends_lines, total, common };
        let shared = index.get(0).map(|first| &first[..common]);
        let alike = shared.is_none_or(|shared| index.get(n - 1).is_some_and(|last| last.starts_with(shared)));
        let prefixes = index.iter().map(|string| prefix(string, common));
        if !alike || !index.iter().is_sorted() || !index.core.has_lanes(prefixes) {
            return Err(Error::Damaged { what: "the strings are not those of the prefixes" });
        }
        Ok(index)
    }

    /// Writes the index file at `path`, whole or not at all.
    ///
    /// # Errors
    /// The system's error.
    #[cfg(feature = "std")]
    pub fn save(&self, path: impl AsRef<std::path::Path>) -> Result<(), Error> {
        file::save(path.as_ref(), &self.header(), &[self.core.memory.lines(), self.full.lines()])
    }

    /// Reads the index file at `path`; see [`crate::Index::open`].
    ///
    /// # Errors
    /// The system's, or how the file is foreign, newer, of another type, truncated or damaged.
    #[cfg(feature = "std")]
    pub fn open(path: impl AsRef<std::path::Path>) -> Result<BytesIndex, Error> {
        let (memory, bytes) = file::read(path.as_ref())?;
        Self::from_memory(&memory, bytes)
    }
}
