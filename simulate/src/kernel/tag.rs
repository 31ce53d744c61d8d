//! Tags of two widths, so that one sweep is compiled for both.
//!
//! Wide tags are line numbers of 8 bytes. Narrow ones are quotients of the line number by the
//! number of sets, in 4 bytes with all bits inverted: what is left out is the row itself, and zero
//! is the tag of an empty lane. A narrow row of 16 ways is one line of the host's cache.

use super::row::EMPTY;
use super::vectors::{Located, Vectors};
use crate::touch::STEP;

/// A tag, of a width that rows have. Wide tags are line numbers; narrow ones leave the set's bits
/// out.
pub(crate) trait Tag: Copy + Eq {
    /// The tag of an empty lane, which no line has.
    const EMPTY: Self;
    /// Writes the tags of lines to `tags`; returns 0 if all of them fit, and another number
    /// otherwise.
    fn keep<K: Vectors>(kernel: K, located: &Located, tags: &mut [Self; STEP]) -> u32;
    /// A mask of the tags that differ.
    fn differ<K: Vectors>(kernel: K, tags: &[Self; STEP], others: &[Self; STEP]) -> u32;
    /// The one of two columns that holds such tags.
    fn column<'a, const LEN: usize>(
        wide: &'a mut [u64; LEN],
        narrow: &'a mut [u32; LEN],
    ) -> &'a mut [Self; LEN];
}

impl Tag for u64 {
    const EMPTY: u64 = EMPTY;

    #[inline(always)]
    fn keep<K: Vectors>(_kernel: K, located: &Located, tags: &mut [u64; STEP]) -> u32 {
        *tags = located.line;
        0
    }

    #[inline(always)]
    fn differ<K: Vectors>(kernel: K, tags: &[u64; STEP], others: &[u64; STEP]) -> u32 {
        kernel.long_differ(tags, others)
    }

    #[inline(always)]
    fn column<'a, const LEN: usize>(
        wide: &'a mut [u64; LEN],
        _narrow: &'a mut [u32; LEN],
    ) -> &'a mut [u64; LEN] {
        wide
    }
}

impl Tag for u32 {
    const EMPTY: u32 = 0;

    #[inline(always)]
    fn keep<K: Vectors>(kernel: K, located: &Located, tags: &mut [u32; STEP]) -> u32 {
        kernel.narrow(&located.quotient, tags)
    }

    #[inline(always)]
    fn differ<K: Vectors>(kernel: K, tags: &[u32; STEP], others: &[u32; STEP]) -> u32 {
        kernel.differ(tags, others)
    }

    #[inline(always)]
    fn column<'a, const LEN: usize>(
        _wide: &'a mut [u64; LEN],
        narrow: &'a mut [u32; LEN],
    ) -> &'a mut [u32; LEN] {
        narrow
    }
}
