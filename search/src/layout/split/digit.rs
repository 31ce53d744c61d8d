//! The digits of a split layout: their widths, and the words of a line. The width is chosen once
//! per index, and code for digits is compiled for each width.

use crate::line::{Line, Plain, LINE_BYTES};
use crate::simd::Simd;

/// Calls `$body` with `$digit` standing for the type of the shape's digits.
macro_rules! with_digit {
    ($width:expr, $digit:ident => $body:expr) => {
        match $width {
            Width::Bits8 => {
                type $digit = u8;
                $body
            }
            Width::Bits16 => {
                type $digit = u16;
                $body
            }
            Width::Bits32 => {
                type $digit = u32;
                $body
            }
            Width::Bits64 => {
                type $digit = u64;
                $body
            }
        }
    };
}
pub(in crate::layout) use with_digit;

/// The number of bits of a key that are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::layout) enum Width {
    Bits8,
    Bits16,
    Bits32,
    Bits64,
}

/// Every width, with the average number of keys in a line: as many as leave few lines crowded.
pub(in crate::layout) const WIDTHS: [(Width, usize); 4] =
    [(Width::Bits8, 36), (Width::Bits16, 17), (Width::Bits32, 7), (Width::Bits64, 4)];

/// The top bit of a line's first rank: the line is a directory.
pub(in crate::layout) const DIRECTORY: u32 = 1 << 31;

impl Width {
    pub(in crate::layout) fn bits(self) -> u32 {
        match self {
            Width::Bits8 => 8,
            Width::Bits16 => 16,
            Width::Bits32 => 32,
            Width::Bits64 => 64,
        }
    }
}

impl Width {
    /// Digits of a line that is not crowded.
    pub(in crate::layout) fn capacity(self) -> usize {
        let bytes = (self.bits() / 8) as usize;
        LINE_BYTES / bytes - 4usize.div_ceil(bytes)
    }

    /// Digits of a block.
    pub(in crate::layout) fn per_line(self) -> usize {
        LINE_BYTES / (self.bits() / 8) as usize
    }

    /// Keys that a directory's blocks hold.
    pub(in crate::layout) fn crowd(self) -> usize {
        with_digit!(self, D => D::CROWD)
    }
}

/// A stored digit: the leading bits of a fraction.
pub(in crate::layout) trait Digit: Plain + Ord {
    /// Digits of a line.
    const PER_LINE: usize = LINE_BYTES / size_of::<Self>();
    /// Lanes that hold the first rank. In a directory as many lanes hold the number of its first
    /// block.
    const HEAD: usize;
    /// Keys that a line holds.
    const CAPACITY: usize = Self::PER_LINE - Self::HEAD;
    /// Keys that a directory's blocks hold.
    const CROWD: usize = (Self::PER_LINE - 2 * Self::HEAD + 1) * Self::PER_LINE;
    /// The digit 0.
    const ZERO: Self;
    /// The digit that is used as padding: none is larger.
    const LARGEST: Self;
    /// The leading bits of a left-aligned fraction.
    fn of(fraction: u64) -> Self;
    /// The digit as a left-aligned fraction.
    fn left(self) -> u64;
    /// The number of digits of `line` that are less than `query`, without the first rank.
    fn less_in_line<S: Simd>(simd: S, line: &Line, query: Self) -> usize;
    /// The number of digits of a directory that are less than `query`.
    fn less_in_directory<S: Simd>(simd: S, line: &Line, query: Self) -> usize;
    /// The number of digits of a block that are less than `query`.
    fn less_in_block<S: Simd>(simd: S, line: &Line, query: Self) -> usize;
}

macro_rules! define_digit {
    ($digit:ty, $head:literal, $lanes:ident, $less:ident) => {
        impl Digit for $digit {
            const HEAD: usize = $head;
            const ZERO: Self = 0;
            const LARGEST: Self = <$digit>::MAX;

            #[inline(always)]
            fn of(fraction: u64) -> Self {
                (fraction >> (64 - <$digit>::BITS)) as $digit
            }

            #[inline(always)]
            fn left(self) -> u64 {
                (self as u64) << (64 - <$digit>::BITS)
            }

            #[inline(always)]
            fn less_in_line<S: Simd>(simd: S, line: &Line, query: Self) -> usize {
                simd.$less::<$head>(line.$lanes(), query)
            }

            #[inline(always)]
            fn less_in_directory<S: Simd>(simd: S, line: &Line, query: Self) -> usize {
                simd.$less::<{ 2 * $head }>(line.$lanes(), query)
            }

            #[inline(always)]
            fn less_in_block<S: Simd>(simd: S, line: &Line, query: Self) -> usize {
                simd.$less::<0>(line.$lanes(), query)
            }
        }
    };
}

define_digit!(u8, 4, u8s, less_u8);
define_digit!(u16, 2, u16s, less_u16);
define_digit!(u32, 1, u32s, less_u32);
define_digit!(u64, 1, u64s, less_u64);

/// The first rank in a line's head; its top bit marks a directory.
#[inline(always)]
pub(in crate::layout) fn head(line: &Line) -> u32 {
    line.u32s()[0]
}

/// The rank of a line's first key.
pub(in crate::layout) fn first_rank(line: &Line) -> usize {
    (head(line) & !DIRECTORY) as usize
}

/// The number of a directory's first block.
pub(in crate::layout) fn first_block<D: Digit>(line: &Line) -> usize {
    line.u32s()[block_word::<D>()] as usize
}

/// The 32-bit word of a directory that holds the number of its first block.
pub(in crate::layout) const fn block_word<D: Digit>() -> usize {
    D::HEAD * size_of::<D>() / 4
}
