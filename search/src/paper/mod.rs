//! The six algorithms of Ladner, Fortna and Nguyen (2002), and the pointer calculation that the
//! paper wished it had used.
//!
//! Classic binary search, cache-aware k-ary search and cache-oblivious (van Emde Boas) search, each
//! with implicit pointers (children are calculated) and with explicit ones (children are stored).
//! Items and pointers are four bytes, the block size is a parameter, and n is any number: the
//! paper's formulas assume complete trees, ours say what they do at the ragged edge. These are the
//! algorithms *to be measured*, written as the paper describes them, with early exit on equality;
//! the searches to be *used* are in [`crate::Index`].
//!
//! Slots and block numbers are `u32`, as the paper's four-byte pointers are. Source: the paper,
//! sections 4.3 and 4.4; Brodal, Fagerberg and Jacob 2002.

mod aware;
mod brodal;
mod classic;
mod cuts;
mod lookup;
mod oblivious;

pub use aware::{AwareExplicit, AwareImplicit};
pub use brodal::ObliviousBrodal;
pub use classic::{BinaryExplicit, ClassicImplicit};
pub use cuts::{Cuts, Walk};
pub use lookup::Lookup;
pub use oblivious::ObliviousImplicit;

use alloc::boxed::Box;

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
///
/// ```
/// use lightfoot_search::paper::ALGORITHMS;
/// for algorithm in ALGORITHMS {
///     let lookup = (algorithm.build)(&[2, 3, 5, 7], 64);
///     assert_eq!(lookup.find(5).map(|slot| lookup.item(slot)), Some(5), "{}", algorithm.title);
///     assert_eq!(lookup.find(4), None);
/// }
/// ```
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
