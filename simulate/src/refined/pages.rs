//! Translations of one TLB level: a buffer for each group of page sizes.

use super::cache::PolicyCache;
use crate::{Geometry, LargePages, PageBuffer};

/// The buffers of a level.
pub(super) struct Buffers {
    buffers: Vec<(Vec<u64>, PolicyCache)>,
    /// Bytes of the smallest page.
    smallest: u64,
}

/// The outcome of a look-up of a translation in a level.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Translation {
    Hit,
    Miss,
}

impl Buffers {
    /// The TLB level that `base` describes when all pages are small; `None` without it.
    pub(super) fn new(base: Option<Geometry>, large: Option<&[PageBuffer]>) -> Option<Buffers> {
        let base = base?;
        let one = [PageBuffer { page_bytes: vec![base.line_bytes.into()], geometry: base }];
        let buffers = large.unwrap_or(&one).iter();
        let buffers = buffers.map(|buffer| (buffer.page_bytes.clone(), PolicyCache::new(buffer.geometry)));
        Some(Buffers { buffers: buffers.collect(), smallest: base.line_bytes.into() })
    }

    /// Looks up the translation of `address` on a page of `page_bytes`, and enters it if it is
    /// missing.
    pub(super) fn translate(&mut self, address: u64, page_bytes: u64) -> Translation {
        if let [(sizes, cache)] = &mut self.buffers[..] {
            if let &[size] = &sizes[..] {
                // The usual case. Whatever the page, its only size is taken.
                return look_up(cache, address, size);
            }
        }
        // The largest size that the level holds and that is not larger than the page. If it holds
        // none, its smallest size.
        let taken = |page_bytes: u64| {
            let sizes = self
                .buffers
                .iter()
                .enumerate()
                .flat_map(|(place, (sizes, _))| sizes.iter().zip([place].into_iter().cycle()));
            sizes
                .filter(move |(size, _)| **size <= page_bytes)
                .map(|(size, place)| (*size, place))
                .max_by_key(|(size, _)| *size)
        };
        let Some((size, place)) = taken(page_bytes.max(self.smallest)) else { return Translation::Hit };
        look_up(&mut self.buffers[place].1, address, size)
    }
}

/// Looks up the translation of a page of `size` bytes in the buffer that takes it.
fn look_up(cache: &mut PolicyCache, address: u64, size: u64) -> Translation {
    let number = address >> size.trailing_zeros();
    let sets = cache.geometry.sets;
    let set = if sets.is_power_of_two() { number & (sets - 1) } else { number % sets };
    // The size is part of the tag, because pages of two sizes may have one number.
    let tag = number << 6 | u64::from(size.trailing_zeros());
    if cache.touch_tag(set as usize, tag).is_some() {
        return Translation::Hit;
    }
    cache.fill_tag(set as usize, tag);
    Translation::Miss
}

/// The number of bytes of the page that holds `address`.
pub(super) fn page_bytes(large: Option<&LargePages>, base: Geometry, address: u64) -> u64 {
    large.and_then(|large| large.page_bytes(address)).unwrap_or(base.line_bytes.into())
}
