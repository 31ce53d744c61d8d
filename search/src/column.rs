//! How keys of a type are searched: exactly, by their lanes; or by a prefix, with a comparison of
//! the keys themselves for ties.
//!
//! This is the internal interface behind [`Key`](crate::Key): the index calls it, and each key type
//! implements it in one of the two ways.

use alloc::vec::Vec;
use core::ops::Range;

use crate::error::Error;
use crate::lane::{Exact, Frame, Lane};
use crate::line::{lanes, lanes_mut, lines_for};
use crate::memory::{Draft, Memory};
use crate::plan::{Core, Options};

/// Number of queries that are converted at a time: few enough for the stack and the first-level
/// cache, many enough to keep the pipeline full.
const CHUNK: usize = 1024;

/// The searchable form of the keys of an index. `core` holds lanes; `full` holds the keys if lanes
/// are only prefixes of them.
#[derive(Clone, Debug)]
pub(crate) struct Stored<L: Lane> {
    pub(crate) core: Core<L>,
    pub(crate) full: Memory,
    pub(crate) frame: Frame,
}

/// The operations that an index needs of a key type.
pub(crate) trait Column: Copy {
    /// The lane type.
    type Lane: Lane;
    /// Plans a layout and builds it; checks that `keys` are sorted.
    fn build(keys: &[Self], options: &Options) -> Result<Stored<Self::Lane>, Error>;
    /// The number of keys less than `query`.
    fn rank(stored: &Stored<Self::Lane>, query: Self) -> usize;
    /// Many ranks.
    fn ranks(stored: &Stored<Self::Lane>, queries: &[Self], out: &mut [usize]);
    /// The key of rank `rank`.
    fn key(stored: &Stored<Self::Lane>, rank: usize) -> Self;
    /// Appends the keys of a range of ranks.
    fn read(stored: &Stored<Self::Lane>, ranks: Range<usize>, out: &mut Vec<Self>);
    /// Lines of full keys that a file holds for `n` keys.
    fn full_lines(n: usize) -> usize;
    /// Whether the full keys are sorted and agree with the lanes; true if there are no full keys.
    fn agrees(stored: &Stored<Self::Lane>) -> bool;
    /// Sorts keys in the index's order.
    fn sort(keys: &mut [Self]);
}

macro_rules! define_exact_column {
    ($key:ty, $lane:ty) => {
        impl Column for $key {
            type Lane = $lane;

            fn build(keys: &[Self], options: &Options) -> Result<Stored<$lane>, Error> {
                // Layouts are built from lanes alone, so that their code exists once for a lane and
                // not for each type of keys. Keys that are no lanes are copied.
                let core = match Self::as_lanes(keys) {
                    Some(own) => Core::build(own, options)?,
                    None => {
                        let converted: Vec<$lane> = keys.iter().map(|key| key.to_lane()).collect();
                        Core::build(&converted, options)?
                    }
                };
                Ok(Stored { core, full: Memory::empty(), frame: Frame::default() })
            }

            #[inline(always)]
            fn rank(stored: &Stored<$lane>, query: Self) -> usize {
                stored.core.rank(query.to_lane())
            }

            #[inline]
            fn ranks(stored: &Stored<$lane>, queries: &[Self], out: &mut [usize]) {
                match Self::as_lanes(queries) {
                    Some(own) => stored.core.ranks(own, out),
                    None => ranks_converted(&stored.core, queries, out, |key| key.to_lane()),
                }
            }

            fn key(stored: &Stored<$lane>, rank: usize) -> Self {
                Self::from_lane(stored.core.key(rank))
            }

            fn read(stored: &Stored<$lane>, ranks: Range<usize>, out: &mut Vec<Self>) {
                stored.core.read(ranks, &mut |lane| out.push(Self::from_lane(lane)));
            }

            fn full_lines(_n: usize) -> usize {
                0
            }

            fn agrees(_stored: &Stored<$lane>) -> bool {
                true
            }

            fn sort(keys: &mut [Self]) {
                keys.sort_unstable_by_key(|key| key.to_lane());
            }
        }
    };
}

define_exact_column!(u32, u32);
define_exact_column!(i32, u32);
define_exact_column!(f32, u32);
define_exact_column!(u64, u64);
define_exact_column!(i64, u64);
define_exact_column!(f64, u64);

/// Converted queries at the start of a line of memory: vectors read and write them.
#[repr(align(64))]
struct Converted<L>([L; CHUNK]);

/// The ranks of keys that must be converted to lanes first.
pub(crate) fn ranks_converted<L: Lane, K: Copy>(
    core: &Core<L>,
    queries: &[K],
    out: &mut [usize],
    lane: impl Fn(K) -> L,
) {
    assert_eq!(queries.len(), out.len(), "as many answers as queries");
    let mut buffer = Converted([L::MIN; CHUNK]);
    for (queries, out) in queries.chunks(CHUNK).zip(out.chunks_mut(CHUNK)) {
        let converted = &mut buffer.0[..queries.len()];
        converted.iter_mut().zip(queries).for_each(|(to, &query)| *to = lane(query));
        core.ranks(converted, out);
    }
}

/// Resolves a tie of prefixes: `first` is the rank of the prefix, and `less(rank)` returns whether
/// the full key at that rank is less than the query.
pub(crate) fn settle(core: &Core<u64>, prefix: u64, first: usize, less: impl Fn(usize) -> bool) -> usize {
    if first >= core.n || !less(first) {
        return first;
    }
    let (mut low, mut high) = (first + 1, core.rank_after(prefix));
    while low < high {
        let middle = low + (high - low) / 2;
        if less(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

impl Column for u128 {
    type Lane = u64;

    fn build(keys: &[Self], options: &Options) -> Result<Stored<u64>, Error> {
        if let Some(at) = keys.windows(2).position(|pair| pair[0] > pair[1]) {
            return Err(Error::Unsorted { position: at + 1 });
        }
        let (min, max) = (keys.first().copied().unwrap_or(0), keys.last().copied().unwrap_or(0));
        let frame = Frame::new(min, max);
        let prefixes: Vec<u64> = keys.iter().map(|&key| frame.lane(key)).collect();
        let lines = lines_for::<u128>(keys.len());
        let mut full = Draft::new(lines);
        lanes_mut::<u128>(full.lines_mut())[..keys.len()].copy_from_slice(keys);
        Ok(Stored { core: Core::build_whole(&prefixes, options)?, full: full.finish(lines), frame })
    }

    fn rank(stored: &Stored<u64>, query: Self) -> usize {
        let prefix = stored.frame.lane(query);
        let keys = lanes::<u128>(stored.full.lines());
        settle(&stored.core, prefix, stored.core.rank(prefix), |rank| keys[rank] < query)
    }

    fn ranks(stored: &Stored<u64>, queries: &[Self], out: &mut [usize]) {
        ranks_converted(&stored.core, queries, out, |query| stored.frame.lane(query));
        let keys = lanes::<u128>(stored.full.lines());
        for (&query, rank) in queries.iter().zip(out) {
            *rank = settle(&stored.core, stored.frame.lane(query), *rank, |rank| keys[rank] < query);
        }
    }

    fn key(stored: &Stored<u64>, rank: usize) -> Self {
        lanes::<u128>(stored.full.lines())[rank]
    }

    fn read(stored: &Stored<u64>, ranks: Range<usize>, out: &mut Vec<Self>) {
        out.extend_from_slice(&lanes(stored.full.lines())[ranks]);
    }

    fn full_lines(n: usize) -> usize {
        lines_for::<u128>(n)
    }

    fn agrees(stored: &Stored<u64>) -> bool {
        let keys = &lanes::<u128>(stored.full.lines())[..stored.core.n];
        keys.is_sorted() && stored.core.has_lanes(keys.iter().map(|&key| stored.frame.lane(key)))
    }

    fn sort(keys: &mut [Self]) {
        keys.sort_unstable();
    }
}
