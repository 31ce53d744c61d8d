//! Sorted arrays with an index: many look-ups of where a key belongs.
//!
//! An index of the crate `lightfoot-search` reads one or two lines of memory for a key, a binary
//! search as many as the logarithm of the rows. It is worth building where about as many look-ups
//! follow as there are rows, or where the array stays. **Leaves out** keys of floats with NaNs of
//! several kinds, decimals and strings.

use arrow::array::{Array, ArrowPrimitiveType, PrimitiveArray, UInt64Array};
use datafusion::common::{exec_datafusion_err, exec_err, Result};
use lightfoot_search::{Index, Key};
use std::ops::{Range, RangeBounds};

/// An index over a sorted array of integers, dates, times or floats without nulls.
///
/// ```
/// use arrow::array::{Int64Array, UInt64Array};
/// use lightfoot_datafusion::SortedIndex;
///
/// let index = SortedIndex::build(&Int64Array::from(vec![-5, 0, 0, 8]))?;
/// let ranks = index.ranks(&Int64Array::from(vec![Some(0), None, Some(9)]));
/// assert_eq!(ranks, UInt64Array::from(vec![Some(1), None, Some(4)]));
/// assert_eq!(index.range(0..8), 1..3);
/// # Ok::<(), datafusion::common::DataFusionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct SortedIndex<T: ArrowPrimitiveType>
where
    T::Native: Key,
{
    index: Index<T::Native>,
}

impl<T: ArrowPrimitiveType> SortedIndex<T>
where
    T::Native: Key,
{
    /// An index over an array in ascending order; it copies the keys. Cost: one pass, 1 to 2 ns a
    /// key in caches.
    ///
    /// # Errors
    /// The array holds nulls, or a key is smaller than the one before it.
    pub fn build(sorted: &PrimitiveArray<T>) -> Result<SortedIndex<T>> {
        if sorted.null_count() > 0 {
            return exec_err!(
                "{} of {} keys are null: an index is over keys; filter them out first",
                sorted.null_count(),
                sorted.len()
            );
        }
        let index = Index::build(sorted.values()).map_err(|error| exec_datafusion_err!("{error}"))?;
        Ok(SortedIndex { index })
    }

    /// How many keys of the array are less than each of `keys`: where it would be inserted, before
    /// equal ones (NumPy's `searchsorted`). Null stays null.
    pub fn ranks(&self, keys: &PrimitiveArray<T>) -> UInt64Array {
        let mut ranks = vec![0; keys.len()];
        self.index.batch(keys.values(), &mut ranks);
        let ranks: Vec<u64> = ranks.into_iter().map(|rank| rank as u64).collect();
        UInt64Array::new(ranks.into(), keys.nulls().cloned())
    }

    /// The rows whose keys lie within bounds.
    pub fn range(&self, bounds: impl RangeBounds<T::Native>) -> Range<usize> {
        self.index.range_ranks(bounds)
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }
}
