//! NumPy's order of keys on top of the index's: −0 equals 0, and NaNs are one value behind all
//! others.
//!
//! The index keeps floats in total order, where −0 lies before 0 and each NaN has a place of its
//! own. A query is therefore moved to the first key that it equals, or behind the last one; and
//! sorted keys that are not in total order (0 before −0, a negative NaN at the end) are built from
//! their canonical values.

use lightfoot_search::Key;

/// Where equal keys are passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The rank is the number of keys before the query.
    Left,
    /// The rank is the number of keys before or equal to the query.
    Right,
}

/// A key type with NumPy's order.
pub(crate) trait Ordered: Key + Default + PartialOrd + pyo3::buffer::Element {
    /// The key whose lower bound in total order is the left rank.
    fn first_equal(self) -> Self;
    /// The key whose lower bound in total order is the right rank; `None` behind all keys.
    fn behind_equal(self) -> Option<Self>;
    /// The value that stands for all that equal it.
    fn canonical(self) -> Self;
    /// Whether the key is NaN.
    fn is_nan(self) -> bool;
}

macro_rules! ordered_integer {
    ($($key:ty)*) => {$(
        impl Ordered for $key {
            #[inline(always)]
            fn first_equal(self) -> Self {
                self
            }
            #[inline(always)]
            fn behind_equal(self) -> Option<Self> {
                self.checked_add(1)
            }
            fn canonical(self) -> Self {
                self
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                false
            }
        }
    )*};
}

macro_rules! ordered_float {
    ($($key:ty)*) => {$(
        impl Ordered for $key {
            #[inline(always)]
            fn first_equal(self) -> Self {
                if self.is_nan() {
                    // The first NaN is the number behind infinity.
                    return <$key>::from_bits(<$key>::INFINITY.to_bits() + 1);
                }
                if self == 0.0 { -0.0 } else { self }
            }
            #[inline(always)]
            fn behind_equal(self) -> Option<Self> {
                if self.is_nan() {
                    return None;
                }
                (if self == 0.0 { 0.0 } else { self }).successor()
            }
            fn canonical(self) -> Self {
                match () {
                    _ if self.is_nan() => <$key>::NAN.abs(),
                    _ if self == 0.0 => 0.0,
                    _ => self,
                }
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                <$key>::is_nan(self)
            }
        }
    )*};
}

ordered_integer!(u32 i32 u64 i64);
ordered_float!(f32 f64);

/// Calls a function that is generic over the key type with the elements of a buffer.
macro_rules! for_key_type {
    ($buffer:expr, $keys:ident => $work:expr, else $other:expr) => {
        if let Some($keys) = $buffer.elements::<u32>() {
            $work
        } else if let Some($keys) = $buffer.elements::<i32>() {
            $work
        } else if let Some($keys) = $buffer.elements::<u64>() {
            $work
        } else if let Some($keys) = $buffer.elements::<i64>() {
            $work
        } else if let Some($keys) = $buffer.elements::<f32>() {
            $work
        } else if let Some($keys) = $buffer.elements::<f64>() {
            $work
        } else {
            $other
        }
    };
}
pub(crate) use for_key_type;
