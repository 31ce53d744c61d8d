//! A row: the tags of a set.
//!
//! Rows of narrow tags are empty where all bytes are zero. The system clears memory page by page,
//! when it is first used, so a last level of hundreds of megabytes takes only the rows that a
//! program touches. The allocator clears memory with the alignment of a row by itself, at once;
//! therefore [`RowVec`] asks for words and leaves some of them out.

use bytemuck::{Pod, Zeroable};
use std::marker::PhantomData;
use std::ops::Range;

/// The tag of an empty lane. No line has this number, because the smallest line has 4 bytes.
pub(crate) const EMPTY: u64 = u64::MAX;

/// A set's tags, most recent first.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Row<T, const LANES: usize>(pub(crate) [T; LANES]);

#[allow(unsafe_code, reason = "the trait has no other implementation")]
// SAFETY: a row is its array of tags. Its alignment adds no bytes.
unsafe impl<T: Zeroable, const LANES: usize> Zeroable for Row<T, LANES> {}
#[allow(unsafe_code, reason = "the trait has no other implementation")]
// SAFETY: sixteen words of 4 bytes are 64 bytes: no byte of a row lies outside of its tags.
unsafe impl Pod for Row<u32, 16> {}
#[allow(unsafe_code, reason = "the trait has no other implementation")]
// SAFETY: eight words of 8 bytes are 64 bytes: no byte of a row lies outside of its tags.
unsafe impl Pod for Row<u64, 8> {}
#[allow(unsafe_code, reason = "the trait has no other implementation")]
// SAFETY: sixteen words of 8 bytes are 128 bytes: no byte of a row lies outside of its tags.
unsafe impl Pod for Row<u64, 16> {}

/// Rows of zeros at first, in memory that is used when a row is.
pub(crate) struct RowVec<T, const LANES: usize> {
    words: Vec<u128>,
    /// The words of the rows: the first row begins a line of the host's cache.
    used: Range<usize>,
    tags: PhantomData<T>,
}

impl<T, const LANES: usize> RowVec<T, LANES>
where
    Row<T, LANES>: Pod,
{
    pub(crate) fn zeroed(rows: usize) -> RowVec<T, LANES> {
        let align_bytes = align_of::<Row<T, LANES>>();
        let len = rows * size_of::<Row<T, LANES>>() / size_of::<u128>();
        // The next multiple of the alignment is fewer words away than a row's alignment has.
        let words = vec![0_u128; len + align_bytes / size_of::<u128>()];
        let first = words.as_ptr().align_offset(align_bytes);
        RowVec { words, used: first..first + len, tags: PhantomData }
    }

    pub(crate) fn rows(&self) -> &[Row<T, LANES>] {
        bytemuck::cast_slice(&self.words[self.used.clone()])
    }

    pub(crate) fn rows_mut(&mut self) -> &mut [Row<T, LANES>] {
        bytemuck::cast_slice_mut(&mut self.words[self.used.clone()])
    }
}
