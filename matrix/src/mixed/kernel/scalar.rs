//! Plain Rust, for any processor: tiles of 8×4 sums of widened numbers.

use super::tile::Tile;
#[cfg(feature = "half")]
use crate::mixed::narrow::Sum;

/// Rows of a panel.
const ROWS: usize = 8;
/// Columns of a tile.
const COLUMNS: usize = 4;

/// A kernel: its type of sums and its step.
macro_rules! tile {
    ($name:ident, $sum:ty, ($acc:ident, $a:ident, $b:ident) => $step:expr) => {
        /// # Safety
        /// The requirements of [`Run`](super::Run).
        pub(in crate::mixed) unsafe fn $name(tile: &Tile<$sum>) {
            let mut sums = [[<$sum>::default(); ROWS]; COLUMNS];
            let columns = tile.columns::<COLUMNS>();
            for group in 0..tile.groups {
                for (j, column) in sums.iter_mut().enumerate() {
                    // SAFETY: group `group` of `B` is readable.
                    let $b = unsafe { tile.word(columns[j], group) };
                    for (i, $acc) in column.iter_mut().enumerate() {
                        // SAFETY: group `group` of the panel of `A` is readable.
                        let $a = unsafe { *tile.a.add(group * ROWS + i) };
                        *$acc = $step;
                    }
                }
            }
            // SAFETY: the caller's promise.
            unsafe { tile.store::<ROWS>(sums.as_ptr().cast()) }
        }
    };
}

tile!(integers, i32, (acc, a, b) => acc.wrapping_add((a as i32).wrapping_mul(b as i32)));
#[cfg(feature = "half")]
tile!(floats, f32, (acc, a, b) => f32::from_bits(a).times(f32::from_bits(b)).plus(*acc));
