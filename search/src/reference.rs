//! The slow twin: uses only the standard library's `partition_point`, so it is obviously right.
#![forbid(unsafe_code)]

use core::cmp::Ordering;
use core::ops::Range;

use crate::key::Key;

/// The number of keys less than `key`.
///
/// ```
/// assert_eq!(lightfoot_search::reference::lower_bound(&[2u32, 3, 3, 7], 3), 1);
/// ```
pub fn lower_bound<K: Key>(sorted: &[K], key: K) -> usize {
    sorted.partition_point(|other| other.compare(&key) == Ordering::Less)
}

/// The number of keys not greater than `key`.
pub fn upper_bound<K: Key>(sorted: &[K], key: K) -> usize {
    sorted.partition_point(|other| other.compare(&key) != Ordering::Greater)
}

/// The positions of all keys equal to `key`.
pub fn equal_range<K: Key>(sorted: &[K], key: K) -> Range<usize> {
    lower_bound(sorted, key)..upper_bound(sorted, key)
}
