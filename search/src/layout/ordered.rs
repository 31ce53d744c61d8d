//! Four layouts store keys in sorted order from the first lane on, with padding behind the last
//! key. This is their common part.

use crate::lane::{Exact, Lane};
use crate::line::{lanes, lanes_mut, Line};

/// Writes keys in order, and fills the rest of the last line with padding.
pub(super) fn fill_sorted<K: Exact>(keys: &[K], lines: &mut [Line], threads: usize) {
    let flat = lanes_mut::<K::As>(lines);
    let (head, tail) = flat.split_at_mut(keys.len());
    crate::parallel::zip_chunks(keys, head, threads, |keys, head| match K::as_lanes(keys) {
        Some(own) => head.copy_from_slice(own),
        None => head.iter_mut().zip(keys).for_each(|(lane, key)| *lane = key.to_lane()),
    });
    tail.fill(K::As::MAX);
}

/// Whether lines hold n sorted keys and padding behind them.
pub(super) fn holds_sorted<L: Lane>(n: usize, lines: &[Line]) -> bool {
    let flat = lanes::<L>(lines);
    n <= flat.len() && flat[..n].is_sorted() && flat[n..].iter().all(|&lane| lane == L::MAX)
}
