//! The narrow types and their sums, and how narrow numbers fill 32-bit words.

use std::fmt::Debug;

pub(super) mod sealed {
    pub trait Sealed {}
    impl Sealed for i32 {}
    impl Sealed for f32 {}
    impl<L, R> Sealed for (L, R) {}
}

/// The type of a product's sums: `i32`, which wraps around, or `f32`.
pub trait Sum: sealed::Sealed + Copy + Send + Sync + Debug + PartialEq + Default + 'static {
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// `self · factor`.
    fn times(self, factor: Self) -> Self;
    /// `self + other`.
    fn plus(self, other: Self) -> Self;
}

impl Sum for i32 {
    const ZERO: i32 = 0;
    const ONE: i32 = 1;
    #[inline(always)]
    fn times(self, factor: i32) -> i32 {
        self.wrapping_mul(factor)
    }
    #[inline(always)]
    fn plus(self, other: i32) -> i32 {
        self.wrapping_add(other)
    }
}

impl Sum for f32 {
    const ZERO: f32 = 0.0;
    const ONE: f32 = 1.0;
    #[inline(always)]
    fn times(self, factor: f32) -> f32 {
        self * factor
    }
    #[inline(always)]
    fn plus(self, other: f32) -> f32 {
        self + other
    }
}

/// A narrow type. Zero is its default.
pub trait Narrow: Copy + Default + Send + Sync + Debug + 'static {}

/// A type of which a 32-bit word holds `DEPTH`.
pub(super) trait Word<const DEPTH: usize>: Narrow {
    /// The word of parts that follow each other along `k`, the first in the lowest bits. Two parts
    /// are widened to 16 bits, and one to 32.
    fn word(parts: [Self; DEPTH]) -> u32;
    /// The words of the rows of `DEPTH` columns.
    fn words<const ROWS: usize>(columns: &[[Self; ROWS]; DEPTH], words: &mut [u32; ROWS]);
}

/// [`Word::words`] with its parts written out, so that compilers make vector code of the loop.
macro_rules! words {
    ($depth:literal: $($part:literal)*) => {
        #[inline(always)]
        fn words<const ROWS: usize>(columns: &[[Self; ROWS]; $depth], words: &mut [u32; ROWS]) {
            for i in 0..ROWS {
                words[i] = Self::word([$(columns[$part][i]),*]);
            }
        }
    };
}

macro_rules! integers {
    ($($narrow:ty),*) => {$(
        impl Narrow for $narrow {}
        impl Word<2> for $narrow {
            #[inline(always)]
            fn word(parts: [$narrow; 2]) -> u32 {
                u32::from(i16::from(parts[0]) as u16) | u32::from(i16::from(parts[1]) as u16) << 16
            }
            words!(2: 0 1);
        }
        impl Word<1> for $narrow {
            #[inline(always)]
            fn word(parts: [$narrow; 1]) -> u32 {
                i32::from(parts[0]) as u32
            }
            words!(1: 0);
        }
    )*};
}
integers!(u8, i8, i16);

impl Word<4> for u8 {
    #[inline(always)]
    fn word(parts: [u8; 4]) -> u32 {
        u32::from_le_bytes(parts)
    }
    words!(4: 0 1 2 3);
}

impl Word<4> for i8 {
    #[inline(always)]
    fn word(parts: [i8; 4]) -> u32 {
        u32::from_le_bytes(parts.map(|part| part as u8))
    }
    words!(4: 0 1 2 3);
}

#[cfg(feature = "half")]
mod halves {
    use crate::mixed::narrow::{Narrow, Word};
    use half::{bf16, f16};

    impl Narrow for bf16 {}
    impl Narrow for f16 {}
    impl Word<2> for bf16 {
        #[inline(always)]
        fn word(parts: [bf16; 2]) -> u32 {
            u32::from(parts[0].to_bits()) | u32::from(parts[1].to_bits()) << 16
        }
        words!(2: 0 1);
    }
    impl Word<1> for bf16 {
        #[inline(always)]
        fn word(parts: [bf16; 1]) -> u32 {
            u32::from(parts[0].to_bits()) << 16
        }
        words!(1: 0);
    }
    impl Word<1> for f16 {
        #[inline(always)]
        fn word(parts: [f16; 1]) -> u32 {
            widened(parts[0].to_bits()).to_bits()
        }
        words!(1: 0);
    }

    /// The `f32` of an `f16`'s bits, without branches, so that loops of it become vector code.
    #[inline(always)]
    fn widened(bits: u16) -> f32 {
        /// What the exponents of the two formats differ by, as a factor: 2¹¹².
        const REBIAS: f32 = f32::from_bits((127 + 112) << 23);
        /// The smallest magnitude, widened and scaled, that stands for infinity or NaN.
        const INFINITE: u32 = (127 + 16) << 23;
        // The magnitude's bits moved to the place of f32's, times 2¹¹²: exact for subnormal
        // numbers too, because their products are normal.
        let magnitude = f32::from_bits((u32::from(bits) & 0x7FFF) << 13) * REBIAS;
        let special = if magnitude.to_bits() >= INFINITE { 0x7F80_0000 } else { 0 };
        f32::from_bits(magnitude.to_bits() | special | (u32::from(bits) & 0x8000) << 16)
    }

    #[test]
    fn every_f16_is_widened_as_by_its_crate() {
        for bits in 0..=u16::MAX {
            let (ours, theirs) = (widened(bits), f16::from_bits(bits).to_f32());
            assert!(ours == theirs || ours.is_nan() && theirs.is_nan(), "{bits:#06x}: {ours} {theirs}");
            assert_eq!(ours.is_sign_negative(), theirs.is_sign_negative(), "{bits:#06x}");
        }
    }
}
