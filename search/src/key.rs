//! The public trait of key types; `column` defines how each is searched.
//!
//! The trait is sealed, because an order that disagrees with the lanes would give wrong answers.
//! Byte strings have no fixed size, so they have an index of their own: see `strings`.

use core::cmp::Ordering;
use core::fmt::Debug;

use crate::column::Column;
use crate::format::KeyType;
use crate::lane::Exact;

/// A type of fixed-size keys: integers of 8, 16, 32, 64 and 128 bits with and without sign, `f32`
/// and `f64` in total order, and tuples of two to four [`Field`](crate::Field)s of together at most
/// 16 bytes, ordered by their first field, then by the next. Sealed.
///
/// ```
/// let index = lightfoot_search::Index::build(&[(1u16, -5i32), (1, 7), (2, 0)])?;
/// assert_eq!(index.lower_bound((1, 0)), 1);
/// assert_eq!(index.range_ranks((1, i32::MIN)..(2, i32::MIN)), 0..2);
/// # Ok::<(), lightfoot_search::Error>(())
/// ```
#[allow(private_bounds, reason = "sealed: its workings are the crate's own")]
pub trait Key: Copy + Debug + Send + Sync + 'static + Column {
    /// The type's number and name in files.
    const TYPE: KeyType;
    /// Compares two keys in the order that the index keeps: total order for floats.
    fn compare(&self, other: &Self) -> Ordering;
    /// The key of the next higher rank position possible, `None` for the last key of the type.
    fn successor(self) -> Option<Self>;
}

macro_rules! define_key {
    ($key:ty, $kind:ident) => {
        impl Key for $key {
            const TYPE: KeyType = KeyType::$kind;

            #[inline(always)]
            fn compare(&self, other: &Self) -> Ordering {
                self.to_lane().cmp(&other.to_lane())
            }

            #[inline(always)]
            fn successor(self) -> Option<Self> {
                self.to_lane().checked_add(1).map(Self::from_lane)
            }
        }
    };
}

define_key!(u32, U32);
define_key!(i32, I32);
define_key!(u64, U64);
define_key!(i64, I64);
define_key!(f32, F32);
define_key!(f64, F64);

impl Key for u128 {
    const TYPE: KeyType = KeyType::U128;

    fn compare(&self, other: &Self) -> Ordering {
        self.cmp(other)
    }

    fn successor(self) -> Option<Self> {
        self.checked_add(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_compare_in_total_order() {
        let ascending = [-f64::NAN, -1.0, -0.0, 0.0, 1.0, f64::INFINITY, f64::NAN];
        for pair in ascending.windows(2) {
            assert_eq!(pair[0].compare(&pair[1]), Ordering::Less, "{pair:?}");
            assert_eq!(pair[0].compare(&pair[1]), pair[0].total_cmp(&pair[1]));
        }
    }
}
