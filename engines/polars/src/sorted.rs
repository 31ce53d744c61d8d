//! Sorted columns with an index: many look-ups of where a key belongs.
//!
//! An index of the crate `lightfoot-search` reads one or two lines of memory for a key, a binary
//! search as many as the logarithm of the rows. It is worth building where about as many look-ups
//! follow as there are rows, or where the column stays. Results are those of Polars'
//! `search_sorted`, whose order of floats it takes: zeros are equal, NaN is equal to NaN and
//! greater than all numbers.
//!
//! **Leaves out** descending columns, strings, and numbers of 8, 16 and 128 bits.

use lightfoot_search::{Index, Key};
use polars_core::chunked_array::ops::search_sorted::SearchSortedSide;
use polars_core::prelude::{
    polars_bail, polars_ensure, polars_err, ChunkedArray, DataType, IdxCa, IdxSize, PolarsNumericType,
    PolarsResult, Series,
};

/// An index over an ascending column of numbers of 32 or 64 bits, dates, times or durations; nulls
/// stand at its beginning or at its end.
///
/// ```
/// use lightfoot_polars::{SearchSortedSide, SortedIndex};
/// use polars_core::prelude::*;
///
/// let index = SortedIndex::build(&Series::new("a".into(), [-5i64, 0, 0, 8]))?;
/// let keys = Series::new("k".into(), [0i64, 9]);
/// assert_eq!(index.search_sorted(&keys, SearchSortedSide::Left)?.to_vec(), [Some(1), Some(4)]);
/// assert_eq!(index.search_sorted(&keys, SearchSortedSide::Right)?.to_vec(), [Some(3), Some(4)]);
/// # Ok::<(), PolarsError>(())
/// ```
#[derive(Clone, Debug)]
pub struct SortedIndex {
    dtype: DataType,
    keys: Keys,
    nulls: usize,
    has_nulls_last: bool,
}

/// An index by the type that the keys have in memory.
#[derive(Clone, Debug)]
enum Keys {
    UInt32(Index<u32>),
    Int32(Index<i32>),
    UInt64(Index<u64>),
    Int64(Index<i64>),
    Float32(Index<f32>),
    Float64(Index<f64>),
}

impl SortedIndex {
    /// An index over an ascending column; it copies the keys. Cost: one pass, some 5 ns a key.
    ///
    /// # Errors
    /// A key is smaller than the one before it, nulls stand in the middle, or keys of the type have
    /// no index.
    pub fn build(sorted: &Series) -> PolarsResult<SortedIndex> {
        let nulls = sorted.null_count();
        let has_nulls_last = nulls > 0 && !sorted.get(0)?.is_null();
        let ends = if has_nulls_last { sorted.tail(Some(nulls)) } else { sorted.head(Some(nulls)) };
        polars_ensure!(
            ends.null_count() == nulls,
            ComputeError: "the column '{}' has nulls among its keys: sort it first", sorted.name()
        );
        let physical = sorted.to_physical_repr();
        let keys = match physical.dtype() {
            DataType::UInt32 => Keys::UInt32(build(physical.u32()?)?),
            DataType::Int32 => Keys::Int32(build(physical.i32()?)?),
            DataType::UInt64 => Keys::UInt64(build(physical.u64()?)?),
            DataType::Int64 => Keys::Int64(build(physical.i64()?)?),
            DataType::Float32 => Keys::Float32(build(physical.f32()?)?),
            DataType::Float64 => Keys::Float64(build(physical.f64()?)?),
            other => polars_bail!(
                ComputeError: "no index over {other}: cast the column to Int64, Float64 or another number of 32 or 64 bits"
            ),
        };
        Ok(SortedIndex { dtype: sorted.dtype().clone(), keys, nulls, has_nulls_last })
    }

    /// Where each key would be inserted so that the column stays sorted: before the keys equal to
    /// it (`Left`, and `Any`) or behind them. Null keys belong to nulls.
    ///
    /// # Errors
    /// The keys have another type than the column.
    pub fn search_sorted(&self, keys: &Series, side: SearchSortedSide) -> PolarsResult<IdxCa> {
        polars_ensure!(
            *keys.dtype() == self.dtype,
            SchemaMismatch: "keys are {}, the indexed column is {}: cast the keys", keys.dtype(), self.dtype
        );
        let physical = keys.to_physical_repr();
        let ranks = match &self.keys {
            Keys::UInt32(index) => self.ranks(index, physical.u32()?, side),
            Keys::Int32(index) => self.ranks(index, physical.i32()?, side),
            Keys::UInt64(index) => self.ranks(index, physical.u64()?, side),
            Keys::Int64(index) => self.ranks(index, physical.i64()?, side),
            Keys::Float32(index) => self.ranks(index, physical.f32()?, side),
            Keys::Float64(index) => self.ranks(index, physical.f64()?, side),
        };
        Ok(IdxCa::from_vec(keys.name().clone(), ranks))
    }

    /// The number of rows, nulls included.
    pub fn len(&self) -> usize {
        let keys = match &self.keys {
            Keys::UInt32(index) => index.len(),
            Keys::Int32(index) => index.len(),
            Keys::UInt64(index) => index.len(),
            Keys::Int64(index) => index.len(),
            Keys::Float32(index) => index.len(),
            Keys::Float64(index) => index.len(),
        };
        keys + self.nulls
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn ranks<T>(
        &self,
        index: &Index<T::Native>,
        keys: &ChunkedArray<T>,
        side: SearchSortedSide,
    ) -> Vec<IdxSize>
    where
        T: PolarsNumericType,
        T::Native: Canonical,
    {
        let nulls_before = if self.has_nulls_last { 0 } else { self.nulls };
        let place_of_null = match (self.has_nulls_last, side) {
            (false, SearchSortedSide::Right) => self.nulls,
            (false, _) => 0,
            (true, SearchSortedSide::Right) => self.len(),
            (true, _) => index.len(),
        };
        let mut all = Vec::with_capacity(keys.len());
        let mut ranks = Vec::new();
        for chunk in keys.downcast_iter() {
            let values = chunk.values().as_slice();
            // Keys not greater than one are less than the next; behind the last key lies nothing.
            let next = |key: &T::Native| match side {
                SearchSortedSide::Right => key.canonical().successor(),
                _ => Some(key.canonical()),
            };
            let wanted: Vec<T::Native> =
                values.iter().map(|key| next(key).unwrap_or(key.canonical())).collect();
            ranks.clear();
            ranks.resize(values.len(), 0);
            index.batch(&wanted, &mut ranks);
            for (at, &rank) in ranks.iter().enumerate() {
                let is_null = chunk.validity().is_some_and(|validity| !validity.get_bit(at));
                let place = match next(&values[at]) {
                    _ if is_null => place_of_null,
                    Some(_) => nulls_before + rank,
                    None => nulls_before + index.len(),
                };
                all.push(place as IdxSize);
            }
        }
        all
    }
}

fn build<T>(sorted: &ChunkedArray<T>) -> PolarsResult<Index<T::Native>>
where
    T: PolarsNumericType,
    T::Native: Canonical,
{
    let keys: Vec<T::Native> = sorted.iter().flatten().map(Canonical::canonical).collect();
    Index::build(&keys).map_err(|error| polars_err!(ComputeError: "{error}"))
}

/// Keys of which equal ones have the same bits.
trait Canonical: Key {
    fn canonical(self) -> Self;
}

macro_rules! integers_are_canonical {
    ($($key:ty),*) => {
        $(impl Canonical for $key {
            fn canonical(self) -> Self {
                self
            }
        })*
    };
}

macro_rules! floats_are_made_canonical {
    ($($key:ty),*) => {
        $(impl Canonical for $key {
            fn canonical(self) -> Self {
                // A negative zero and zero are zero.
                if self.is_nan() { <$key>::NAN } else { self + 0.0 }
            }
        })*
    };
}

integers_are_canonical!(u32, i32, u64, i64);
floats_are_made_canonical!(f32, f64);
