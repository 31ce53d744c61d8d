//! Stride prefetchers: they find the distance that an instruction keeps between its references.
//!
//! A table has 256 entries, chosen by the low bits of the site; another site takes an entry over at
//! once. Source: Chen and Baer 1995, without their transient states.

use crate::Prefetch;

/// Entries of a table.
const ENTRIES: usize = 256;

/// The number of equal distances in a row before a line is fetched.
const STEADY: u8 = 2;

#[derive(Clone, Copy)]
pub(super) struct Entry {
    site: u32,
    last: u64,
    stride: u64,
    equal: u8,
}

/// The prefetcher of a level.
pub(super) enum Prefetcher {
    None,
    NextLine,
    Stride(Vec<Entry>),
}

impl Prefetcher {
    pub(super) fn new(prefetch: Prefetch) -> Prefetcher {
        match prefetch {
            Prefetch::None => Prefetcher::None,
            Prefetch::NextLine => Prefetcher::NextLine,
            Prefetch::Stride => {
                Prefetcher::Stride(vec![Entry { site: u32::MAX, last: 0, stride: 0, equal: 0 }; ENTRIES])
            }
        }
    }

    /// Records that the site refers to `address`. Returns the next address once the distance is
    /// steady.
    pub(super) fn train(&mut self, site: u32, address: u64) -> Option<u64> {
        let Prefetcher::Stride(table) = self else { return None };
        let entry = &mut table[site as usize % ENTRIES];
        if entry.site != site {
            *entry = Entry { site, last: address, stride: 0, equal: 0 };
            return None;
        }
        let stride = address.wrapping_sub(std::mem::replace(&mut entry.last, address));
        if stride == entry.stride {
            entry.equal = (entry.equal + 1).min(STEADY);
        } else {
            (entry.stride, entry.equal) = (stride, 0);
        }
        (entry.equal == STEADY && stride != 0).then(|| address.wrapping_add(stride))
    }
}
