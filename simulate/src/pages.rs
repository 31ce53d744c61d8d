//! Where pages lie in physical memory.
//!
//! **What.** First levels are indexed by virtual addresses, the levels behind them by physical
//! ones. [`Pages`] maps one to the other. **Why this way.** A page's frame is its number under a
//! permutation that depends on a seed alone: nothing is remembered, equal seeds give equal frames
//! in every run, and each frame has one page, so that a line can be followed back inwards.
//!
//! ```text
//! number ─▶ + key ─▶ fold ─▶ × odd ─▶ fold ─▶ × odd ─▶ fold ─▶ frame     all modulo 2^bits
//! ```
//!
//! A fold adds the upper half of the bits to the lower half without carries; each step can be
//! undone. **Leaves out** what an allocator does: neighbours in physical memory, colours, pages
//! that are shared or swapped. Source: Kessler and Hill 1992 for why it matters; Appleby 2011 for
//! the mixing.

use crate::LargePages;

/// The place of pages in physical memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Pages {
    /// Each page lies where the program sees it.
    #[default]
    Virtual,
    /// Pages lie anywhere, by a permutation of all page numbers. A large page is one page.
    Random {
        /// Which permutation.
        seed: u64,
        /// Bytes of a base page.
        page_bytes: u32,
    },
}

impl Pages {
    /// The physical address of `address`.
    #[inline]
    pub fn physical(self, large: Option<&LargePages>, address: u64) -> u64 {
        let Pages::Random { seed, page_bytes } = self else { return address };
        let large = large.and_then(|large| large.page_bytes(address));
        let bytes = large.unwrap_or(page_bytes.into()).max(page_bytes.into());
        Permutation::new(seed, bytes).forwards(address)
    }

    /// The virtual addresses that lie at the physical `address`. With pages of several sizes their
    /// frames may overlap, so there can be more than one.
    pub fn virtuals(self, large: Option<&LargePages>, address: u64) -> impl Iterator<Item = u64> {
        let (same, base) = match self {
            Pages::Virtual => (Some(address), None),
            Pages::Random { page_bytes, .. } => (None, Some(u64::from(page_bytes))),
        };
        let mut sizes: Vec<u64> = base.into_iter().collect();
        if let (Some(base), Some(large)) = (base, large) {
            sizes.extend(large.ranges.iter().map(|range| range.page_bytes).filter(|bytes| *bytes > base));
            sizes.sort_unstable();
            sizes.dedup();
        }
        let seed = if let Pages::Random { seed, .. } = self { seed } else { 0 };
        let back = move |bytes: u64| Permutation::new(seed, bytes).backwards(address);
        // An address belongs to a size only if its own page has that size.
        let found: Vec<u64> =
            sizes.into_iter().map(back).filter(|&one| self.physical(large, one) == address).collect();
        same.into_iter().chain(found)
    }

    /// Why levels with lines of at most `line_bytes` cannot have these pages.
    pub(crate) fn fault(self, line_bytes: u32) -> Option<&'static str> {
        let Pages::Random { page_bytes, .. } = self else { return None };
        if !page_bytes.is_power_of_two() || !(4096..=1 << 30).contains(&page_bytes) {
            Some("pages in physical memory are powers of two from 4096 bytes on")
        } else {
            (line_bytes > page_bytes).then_some("a line is longer than a page in physical memory")
        }
    }
}

/// A permutation of page numbers of `bits` bits.
struct Permutation {
    shift: u32,
    mask: u64,
    half: u32,
    key: u64,
    factors: [u64; 2],
}

impl Permutation {
    fn new(seed: u64, page_bytes: u64) -> Permutation {
        let shift = page_bytes.trailing_zeros();
        let bits = 64 - shift;
        // Seeds that differ in one bit should differ in all factors.
        let mix = |number: u64| {
            let word =
                (seed ^ u64::from(shift) << 56).wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            word ^ word >> 31
        };
        let (key, factors) = (mix(1), [mix(2) | 1, mix(3) | 1]);
        Permutation { shift, mask: u64::MAX >> shift, half: bits.div_ceil(2), key, factors }
    }

    fn fold(&self, number: u64) -> u64 {
        number ^ number >> self.half
    }

    fn forwards(&self, address: u64) -> u64 {
        let offset = address & ((1 << self.shift) - 1);
        let mut number = self.fold((address >> self.shift).wrapping_add(self.key) & self.mask);
        for factor in self.factors {
            number = self.fold(number.wrapping_mul(factor) & self.mask);
        }
        number << self.shift | offset
    }

    fn backwards(&self, address: u64) -> u64 {
        let offset = address & ((1 << self.shift) - 1);
        let mut number = address >> self.shift;
        // A fold undoes itself, a product with the inverse factor undoes a product.
        for factor in self.factors.into_iter().rev() {
            number = self.fold(number).wrapping_mul(inverse(factor)) & self.mask;
        }
        let number = self.fold(number).wrapping_sub(self.key) & self.mask;
        number << self.shift | offset
    }
}

/// The number whose product with an odd `factor` is 1 modulo 2^64, by Newton's iteration.
fn inverse(factor: u64) -> u64 {
    // Three bits are right at the start, and twice as many after each step.
    (0..5).fold(factor, |inverse, _| inverse.wrapping_mul(2u64.wrapping_sub(factor.wrapping_mul(inverse))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PageRange;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_address_has_its_own_place(seed: u64, address: u64, shift in 12u32..20) {
            let pages = Pages::Random { seed, page_bytes: 1 << shift };
            let range = PageRange { start: 1 << 32, last: (1 << 40) - 1, page_bytes: 2 << 20 };
            let large = LargePages { ranges: vec![range], ..LargePages::default() };
            for large in [None, Some(&large)] {
                let physical = pages.physical(large, address);
                prop_assert_eq!(physical & ((1 << shift) - 1), address & ((1 << shift) - 1));
                prop_assert!(pages.virtuals(large, physical).any(|one| one == address));
            }
            prop_assert_eq!(pages.virtuals(None, pages.physical(None, address)).count(), 1);
        }
    }

    /// Neighbouring pages spread evenly over the sets of a cache whose ways span 64 pages.
    #[test]
    fn neighbours_lie_anywhere() {
        let pages = Pages::Random { seed: 1, page_bytes: 4096 };
        let mut colours = [0u32; 64];
        (0..6400).for_each(|page| colours[(pages.physical(None, page << 12) >> 12 & 63) as usize] += 1);
        let square: f64 = colours.iter().map(|&count| (f64::from(count) - 100.0).powi(2) / 100.0).sum();
        assert!((30.0..105.0).contains(&square), "chi square of 63 degrees of freedom: {square}");
        let other = Pages::Random { seed: 2, page_bytes: 4096 };
        assert_ne!(pages.physical(None, 0x5000), other.physical(None, 0x5000));
    }
}
