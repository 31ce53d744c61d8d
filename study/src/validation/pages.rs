//! Where pages lie in physical memory, which decides the sets of the second level.
//!
//! A system that has run for a while gives a process pages from anywhere; one that backs arrays
//! with large pages, or that has just started, gives neighbours. Both are simulated: as one
//! contiguous block, and by a permutation of page numbers that a seed chooses. **Why a
//! permutation:** two pages never share a place. **Left out:** the system's own habits between the
//! two, and the hash that spreads addresses over the slices of a last level.

/// How virtual pages become physical ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pages {
    /// One block: every address is its own.
    Contiguous,
    /// Pages of 4 KiB anywhere, chosen by a seed.
    Random(u64),
}

const PAGE_SHIFT: u32 = 12;
/// Page numbers have as many bits.
const PAGE_MASK: u64 = (1 << 32) - 1;

impl Pages {
    /// The physical address of a virtual one below 2^44.
    #[inline]
    pub(super) fn physical(self, address: u64) -> u64 {
        match self {
            Pages::Contiguous => address,
            Pages::Random(seed) => {
                let inside = address & ((1 << PAGE_SHIFT) - 1);
                permuted(address >> PAGE_SHIFT, seed) << PAGE_SHIFT | inside
            }
        }
    }
}

/// A permutation of 32 bits: each step (adding, multiplying by an odd number, folding the upper
/// half onto the lower one) can be undone.
#[inline]
fn permuted(page: u64, seed: u64) -> u64 {
    let mut page = page.wrapping_add(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)) & PAGE_MASK;
    for odd in [0x7FEB_352D, 0x846C_A68B, 0x9E37_79B1] {
        page ^= page >> 16;
        page = page.wrapping_mul(odd) & PAGE_MASK;
    }
    page ^ page >> 15
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_block_is_itself() {
        assert_eq!(Pages::Contiguous.physical(0x1234_5678), 0x1234_5678);
    }

    #[test]
    fn random_pages_never_meet_and_keep_what_is_inside() {
        for seed in [0, 1, 99] {
            let pages = Pages::Random(seed);
            let places: BTreeSet<u64> = (0..20_000).map(|page| pages.physical(page << 12) >> 12).collect();
            assert_eq!(places.len(), 20_000);
            assert_eq!(pages.physical(0x7123) & 0xFFF, 0x123);
        }
        assert_ne!(Pages::Random(1).physical(4096), Pages::Random(2).physical(4096));
    }

    #[test]
    fn random_pages_fill_all_colours_alike() {
        // Eight colours, as the second level's 512 sets have; 8,000 pages.
        let mut colours = [0; 8];
        (0..8000).for_each(|page| colours[(Pages::Random(5).physical(page << 12) >> 12 & 7) as usize] += 1);
        assert!(colours.iter().all(|count| (850..1150).contains(count)), "{colours:?}");
    }
}
