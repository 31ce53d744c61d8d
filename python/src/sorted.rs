//! `searchsorted`: binary searches in a sorted array as it is, many of them abreast.
//!
//! A search in an array beyond the caches waits for memory at every step, and the next step needs
//! the answer. Searches do not need each other, though: a group of them takes each step together,
//! so that their misses overlap, and no step has a branch to mispredict. Where queries are many,
//! the first steps are saved: an index over every k-th key, made during the call, leads each query
//! to k keys in memory. **Leaves out** a check that the array is sorted, as NumPy does: of another
//! array the answers are positions within it. **Source**: Khuong and Morin, Array layouts for
//! comparison-based searching, 2017; the index is crate `search`.

use crate::buffer::Buffer;
use crate::guard::released;
use crate::order::{for_key_type, Ordered, Side};
use lightfoot_search::Index;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::hint::select_unpredictable;

/// Searches that take their steps together: enough to fill the queue of misses of a core.
const ABREAST: usize = 32;
/// Keys between two of the sample: what a query reads behind the index is some lines side by side.
const SAMPLE_STRIDE: usize = 64;
/// An array is sampled when it has this many keys: a smaller one lies in the caches.
const SAMPLED_KEYS: usize = 1 << 18;
/// A sample pays when its keys are at most this many times the queries.
const SAMPLES_PER_QUERY: usize = 2;
/// The fewest queries for which a thread pays.
const WORTH_A_THREAD: usize = 4096;

/// Writes to `out` the rank of each query of `v` among the sorted keys `a`.
///
/// # Errors
/// `TypeError` for element types that differ or are not supported, `ValueError` for lengths that
/// differ, arrays with gaps or of several dimensions.
#[pyfunction]
pub(crate) fn searchsorted(
    py: Python<'_>,
    a: &Bound<'_, PyAny>,
    v: &Bound<'_, PyAny>,
    side: &str,
    out: &Bound<'_, PyAny>,
    threads: usize,
) -> PyResult<()> {
    let (a, v) = (Buffer::of("a", a)?, Buffer::of("v", v)?);
    let mut out = Buffer::of("out", out)?;
    let side = side_named(side)?;
    for_key_type!(a, keys => {
        let queries = same_type(keys, &v)?;
        let ranks = out.ranks_mut(queries.len(), &[&a, &v])?;
        released(py, || search(keys, queries, side, ranks, threads))
    }, else Err(unsupported("a", &a)))
}

/// The side of that name.
pub(crate) fn side_named(side: &str) -> PyResult<Side> {
    match side {
        "left" => Ok(Side::Left),
        "right" => Ok(Side::Right),
        _ => Err(PyValueError::new_err(format!("side: expected 'left' or 'right', got {side:?}"))),
    }
}

/// The refusal of an element type.
pub(crate) fn unsupported(name: &str, buffer: &Buffer) -> PyErr {
    let supported = "uint32, int32, uint64, int64, float32 or float64 of this machine's byte order";
    PyTypeError::new_err(format!("{name}: expected {supported}, got {}", buffer.kind()))
}

fn same_type<'a, K: Ordered>(_keys: &[K], v: &'a Buffer) -> PyResult<&'a [K]> {
    queries_like::<K>(v)
}

/// Queries of the type that the keys have.
pub(crate) fn queries_like<K: Ordered>(v: &Buffer) -> PyResult<&[K]> {
    let message = || format!("v: expected elements of the type that the keys have, got {}", v.kind());
    v.elements::<K>().ok_or_else(|| PyTypeError::new_err(message()))
}

/// Ranks of queries, on up to `threads` threads.
fn search<K: Ordered>(keys: &[K], queries: &[K], side: Side, ranks: &mut [usize], threads: usize) {
    let sample = Sample::of(keys, queries.len());
    let chunk = queries.len().div_ceil(threads.max(1)).max(WORTH_A_THREAD);
    let work = |queries: &[K], ranks: &mut [usize]| search_chunk(keys, sample.as_ref(), queries, side, ranks);
    if chunk >= queries.len() {
        return work(queries, ranks);
    }
    std::thread::scope(|scope| {
        for (queries, ranks) in queries.chunks(chunk).zip(ranks.chunks_mut(chunk)) {
            scope.spawn(move || work(queries, ranks));
        }
    });
}

fn search_chunk<K: Ordered>(
    keys: &[K],
    sample: Option<&Sample<K>>,
    queries: &[K],
    side: Side,
    ranks: &mut [usize],
) {
    for (queries, ranks) in queries.chunks(ABREAST).zip(ranks.chunks_mut(ABREAST)) {
        let mut group = [queries[0]; ABREAST];
        group[..queries.len()].copy_from_slice(queries);
        let found = match (sample, side) {
            (Some(sample), _) => sample.steps(keys, &group, side),
            (None, Side::Left) => steps(keys, &[0; ABREAST], keys.len(), &group, |key, query| key < query),
            (None, Side::Right) => steps(keys, &[0; ABREAST], keys.len(), &group, |key, query| key <= query),
        };
        ranks.copy_from_slice(&found[..queries.len()]);
        // No comparison with NaN holds: such queries are answered apart.
        for (rank, _) in ranks.iter_mut().zip(queries).filter(|(_, query)| query.is_nan()) {
            *rank = match side {
                Side::Left => keys.partition_point(|key| !key.is_nan()),
                Side::Right => keys.len(),
            };
        }
    }
}

/// For each query the number of keys before `first + length` that `passes`, where those before
/// `first` are known to. All windows have the same length and lie within the keys.
#[inline(always)]
fn steps<K: Ordered>(
    keys: &[K],
    first: &[usize; ABREAST],
    length: usize,
    queries: &[K; ABREAST],
    passes: impl Fn(K, K) -> bool,
) -> [usize; ABREAST] {
    let mut base = *first;
    let mut left = length;
    while left > 1 {
        let half = left / 2;
        for (base, query) in base.iter_mut().zip(queries) {
            // A branch, which compilers make even of masks, would be mispredicted at every other
            // key.
            let passed = passes(keys[*base + half - 1], *query);
            *base = select_unpredictable(passed, *base + half, *base);
        }
        left -= half;
    }
    if left == 1 {
        for (base, query) in base.iter_mut().zip(queries) {
            *base += usize::from(passes(keys[*base], *query));
        }
    }
    base
}

/// An index over every k-th key of an array, the last of which is k keys before the array's end.
struct Sample<K: Ordered> {
    index: Index<K>,
    /// The position of the first key that is sampled.
    first: usize,
}

impl<K: Ordered> Sample<K> {
    /// A sample, where it pays and the array is sorted.
    fn of(keys: &[K], queries: usize) -> Option<Sample<K>> {
        let samples = keys.len() / SAMPLE_STRIDE;
        if keys.len() < SAMPLED_KEYS || samples / SAMPLES_PER_QUERY > queries {
            return None;
        }
        let first = keys.len() % SAMPLE_STRIDE;
        let sampled = keys[first..].chunks_exact(SAMPLE_STRIDE).map(|chunk| chunk[0].canonical());
        Some(Sample { index: Index::build(&sampled.collect::<Vec<_>>()).ok()?, first })
    }

    /// Ranks of a group of queries.
    fn steps(&self, keys: &[K], queries: &[K; ABREAST], side: Side) -> [usize; ABREAST] {
        let mut moved = *queries;
        for query in &mut moved {
            *query = match side {
                Side::Left => query.first_equal(),
                Side::Right => query.behind_equal().unwrap_or(*query),
            };
        }
        let mut start = [0; ABREAST];
        self.index.batch(&moved, &mut start);
        for (start, query) in start.iter_mut().zip(queries) {
            if side == Side::Right && query.behind_equal().is_none() {
                *start = self.index.len();
            }
            // The last sample that passes is the first key of the window, and the window ends where
            // the next sample, which does not pass, stands; without one before it stands at
            // `first`.
            *start = start.checked_sub(1).map_or(0, |sample| self.first + sample * SAMPLE_STRIDE);
        }
        match side {
            Side::Left => steps(keys, &start, SAMPLE_STRIDE, queries, |key, query| key < query),
            Side::Right => steps(keys, &start, SAMPLE_STRIDE, queries, |key, query| key <= query),
        }
    }
}
