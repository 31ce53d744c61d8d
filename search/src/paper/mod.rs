//! The six algorithms of Ladner, Fortna and Nguyen (2002), and the pointer calculation that the paper wished it had used.
//!
//! Classic binary search, cache-aware k-ary search and cache-oblivious (van Emde Boas) search, each with implicit pointers (children are
//! calculated) and with explicit ones (children are stored). Items and pointers are four bytes, the block size is a parameter, and n is any number:
//! the paper's formulas assume complete trees, ours say what they do at the ragged edge. These are the algorithms *to be measured*, written as the
//! paper describes them, with early exit on equality; the searches to be *used* are in [`crate::Index`].
//!
//! Slots and block numbers are `u32`, as the paper's four-byte pointers are. Source: the paper, sections 4.3 and 4.4; Brodal, Fagerberg and Jacob 2002.

mod aware;
pub mod brodal;
mod classic;
mod oblivious;

pub use aware::{AwareExplicit, AwareImplicit};
pub use brodal::ObliviousBrodal;
pub use classic::{BinaryExplicit, ClassicImplicit};
pub use oblivious::ObliviousImplicit;

use alloc::boxed::Box;
use alloc::vec::Vec;

/// A stored pointer to nothing.
pub(crate) const NIL: u32 = u32::MAX;

/// One built search structure of the paper.
pub trait Lookup: Send + Sync {
    /// The slot that holds `item`, or `None` when no slot does.
    fn find(&self, item: u32) -> Option<u32>;
    /// The item in a slot that `find` returned.
    fn item(&self, slot: u32) -> u32;
    /// Bytes of the structure, padding included.
    fn bytes(&self) -> usize;
    /// Looks every query up in one loop without indirect calls; returns how many were found. This is what is measured.
    fn find_all(&self, queries: &[u32]) -> usize {
        queries.iter().filter(|&&query| self.find(query).is_some()).count()
    }
}

/// One entry of the family.
#[derive(Clone, Copy, Debug)]
pub struct Algorithm {
    /// The name that selects it.
    pub name: &'static str,
    /// The paper's name for it.
    pub title: &'static str,
    /// Builds it from sorted distinct items and the block size in bytes.
    pub build: fn(&[u32], usize) -> Box<dyn Lookup>,
}

/// The six algorithms, and the seventh that repairs one of them.
pub const ALGORITHMS: &[Algorithm] = &[
    Algorithm {
        name: "classic-implicit",
        title: "classic binary search, implicit pointers",
        build: |items, block_bytes| Box::new(ClassicImplicit::build(items, block_bytes)),
    },
    Algorithm {
        name: "classic-explicit",
        title: "classic binary search, explicit pointers",
        build: |items, block_bytes| Box::new(BinaryExplicit::in_order(items, block_bytes)),
    },
    Algorithm {
        name: "aware-implicit",
        title: "cache aware search, implicit pointers",
        build: |items, block_bytes| Box::new(AwareImplicit::build(items, block_bytes)),
    },
    Algorithm {
        name: "aware-explicit",
        title: "cache aware search, explicit pointers",
        build: |items, block_bytes| Box::new(AwareExplicit::build(items, block_bytes)),
    },
    Algorithm {
        name: "oblivious-implicit",
        title: "cache oblivious search, implicit pointers",
        build: |items, block_bytes| Box::new(ObliviousImplicit::build(items, block_bytes)),
    },
    Algorithm {
        name: "oblivious-explicit",
        title: "cache oblivious search, explicit pointers",
        build: |items, block_bytes| Box::new(BinaryExplicit::van_emde_boas(items, block_bytes)),
    },
    Algorithm {
        name: "oblivious-brodal",
        title: "cache oblivious search, implicit pointers after Brodal, Fagerberg and Jacob",
        build: |items, block_bytes| Box::new(ObliviousBrodal::build(items, block_bytes)),
    },
];

/// The algorithm called `name`.
pub fn algorithm(name: &str) -> Option<&'static Algorithm> {
    ALGORITHMS.iter().find(|algorithm| algorithm.name == name)
}

/// Words that start on a block boundary.
#[derive(Debug)]
pub(crate) struct Words {
    /// The words, with room in front for alignment.
    storage: Vec<u32>,
    /// Where the first word of the first block stands.
    start: usize,
    len: usize,
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
