//! What the paper's algorithms share: the question that is asked of them, words that start on a
//! block boundary, which they are laid out in, and the one way in which a search reads a word.

use alloc::vec::Vec;

/// A stored pointer to nothing.
pub(crate) const NIL: u32 = u32::MAX;

/// One built search structure of the paper.
pub trait Lookup: Send + Sync {
    /// The slot that holds `item`, or `None` when no slot does.
    fn find(&self, item: u32) -> Option<u32>;
    /// Looks `item` up by the code of `find` and names each word of the structure that it reads, in
    /// order. Tables that only depend on the number of items are no words of the structure.
    fn find_touching(&self, item: u32, touched: &mut dyn FnMut(usize)) -> Option<u32>;
    /// The item in a slot that `find` returned.
    fn item(&self, slot: u32) -> u32;
    /// Bytes of the structure, padding included.
    fn bytes(&self) -> usize;
    /// Looks every query up in one loop without indirect calls; returns how many were found. This
    /// is what is measured.
    fn find_all(&self, queries: &[u32]) -> usize {
        queries.iter().filter(|&&query| self.find(query).is_some()).count()
    }
}

/// Who is told of the words that a search reads: nobody in a search that is measured.
pub(super) trait Touch {
    /// The word numbered `at` is read.
    fn word(&mut self, at: usize);
}

/// Nobody: no instruction.
impl Touch for () {
    #[inline(always)]
    fn word(&mut self, _: usize) {}
}

impl Touch for &mut dyn FnMut(usize) {
    fn word(&mut self, at: usize) {
        self(at);
    }
}

/// The word numbered `at`, without a comparison with the number of words.
///
/// # Safety
/// `at` must be less than `words.len()`.
#[inline(always)]
pub(super) unsafe fn read<T: Touch>(words: &[u32], at: usize, touch: &mut T) -> u32 {
    debug_assert!(at < words.len(), "word {at} of {}", words.len());
    touch.word(at);
    // SAFETY: the caller says that the word exists.
    unsafe { *words.get_unchecked(at) }
}

/// Words that start on a block boundary.
#[derive(Debug)]
pub(crate) struct Words {
    /// The words, with room in front for alignment.
    storage: Vec<u32>,
    /// Where the first word of the first block stands.
    start: usize,
    pub(super) len: usize,
}

impl Words {
    /// `len` words, all `NIL`, the first of them at a multiple of `block_bytes`.
    pub(crate) fn new(len: usize, block_bytes: usize) -> Words {
        let block_words = (block_bytes / 4).max(1);
        let storage = alloc::vec![NIL; len + block_words];
        let start =
            (storage.as_ptr() as usize / 4).next_multiple_of(block_words) - storage.as_ptr() as usize / 4;
        Words { storage, start, len }
    }

    /// The words.
    #[inline(always)]
    pub(crate) fn get(&self) -> &[u32] {
        &self.storage[self.start..self.start + self.len]
    }

    /// The words, to be filled.
    pub(crate) fn get_mut(&mut self) -> &mut [u32] {
        &mut self.storage[self.start..self.start + self.len]
    }
}
