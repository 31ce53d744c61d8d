//! An exact implementation of the paper: blocked array layouts with mask-based fast indexing, the
//! tiled multiplication, and the miss model.
//!
//! Athanasaki, Kourtis, Anastopoulos and Koziris 2006, *Tuning Blocked Array Layouts to Exploit
//! Memory Hierarchy in SMT Architectures*. Read [`mask`] for the addressing, [`storage`] for
//! `MBaLt`, [`multiply`] for the loops of section 3.1 and the threads of section 4, [`miss`] for
//! sections 3.2 to 3.4, [`mod@cost`] for section 3.5.
//!
//! **Conventions.** Sizes count *elements* as in the paper: its T = 64 for a first level of 16 KB
//! means 4-byte data.
//!
//! **Gaps of the paper, and how they are closed here.**
//! - Table 2 leaves T² = E·P without a row, though the text puts the optimum there (T = 256): here
//!   T² ≤ E·P. Rows for 3T² ≤ E·P ≤ T·N are missing: here the case of section 3.2 with three whole
//!   tiles applies.
//! - N² < C ignores that three arrays share the cache: it is used as printed.
//! - T ≥ C has no case for caches: here Table 2's last row applies.
//! - Labels: `c_L3` in Table 1 is the penalty of the second level, the rows "total L1 misses" are
//!   M₂ and M_TLB, Figure 4 shows the total cost, and the conclusion's "direct mapped" contradicts
//!   section 3.
//! - The branch term is in a companion paper that is not available: here it is p·N³/T mispredicted
//!   exits of the innermost loop, with p declared by the caller (see [`cost::Branches`]).

pub mod cost;
pub mod mask;
pub mod miss;
pub mod multiply;
pub mod storage;

pub use cost::{cost, Branches, Cost};
pub use mask::Masks;
pub use miss::{cache_misses, tlb_misses, Level, Misses};
pub use multiply::{Loop, LOOPS};
pub use storage::Mbalt;
