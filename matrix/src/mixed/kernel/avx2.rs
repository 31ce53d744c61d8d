//! AVX2, with VNNI where the processor has it at this width: tiles of 16×6 sums.
//!
//! Twelve sums, two vectors of `A` and one repeated word of `B` fill 15 of the 16 registers.

use super::tile::Tile;
use std::arch::x86_64::*;

/// Rows of a panel.
const ROWS: usize = 16;
/// Columns of a tile.
const COLUMNS: usize = 6;
/// Rows of a register.
const LANES: usize = 8;
/// Registers of a column.
const PANELS: usize = ROWS / LANES;

pub(in crate::mixed) fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2")
}

#[cfg(feature = "half")]
pub(in crate::mixed) fn has_fma() -> bool {
    has_avx2() && is_x86_feature_detected!("fma")
}

pub(in crate::mixed) fn has_vnni() -> bool {
    has_avx2() && is_x86_feature_detected!("avxvnni")
}

/// A kernel: its features, its type of sums, its vector of sums, and its step.
macro_rules! tile {
    ($name:ident, $features:literal, $sum:ty, $zero:ident, $store:ident, ($acc:ident, $a:ident, $b:ident) => $step:expr) => {
        /// # Safety
        /// The requirements of [`Run`](super::Run).
        #[target_feature(enable = $features)]
        pub(in crate::mixed) unsafe fn $name(tile: &Tile<$sum>) {
            let mut sums = [[$zero(); PANELS]; COLUMNS];
            let columns = tile.columns::<COLUMNS>();
            for group in 0..tile.groups {
                // SAFETY: group `group` of both operands is readable.
                unsafe {
                    let at = tile.a.add(group * ROWS);
                    let a: [__m256i; PANELS] =
                        std::array::from_fn(|p| _mm256_loadu_si256(at.add(p * LANES).cast()));
                    for j in 0..COLUMNS {
                        let $b = _mm256_set1_epi32(tile.word(columns[j], group) as i32);
                        for p in 0..PANELS {
                            let ($acc, $a) = (sums[j][p], a[p]);
                            sums[j][p] = $step;
                        }
                    }
                }
            }
            let mut stored = [[<$sum>::default(); ROWS]; COLUMNS];
            for (column, sums) in stored.iter_mut().zip(&sums) {
                for (p, &sum) in sums.iter().enumerate() {
                    // SAFETY: a column has 16 places.
                    unsafe { $store(column.as_mut_ptr().add(p * LANES).cast(), sum) };
                }
            }
            // SAFETY: the caller's promise.
            unsafe { tile.store::<ROWS>(stored.as_ptr().cast()) }
        }
    };
}

tile!(
    unsigned_signed, "avx2,avxvnni", i32, _mm256_setzero_si256, _mm256_storeu_si256,
    (acc, a, b) => _mm256_dpbusd_avx_epi32(acc, a, b)
);
tile!(
    signed_unsigned, "avx2,avxvnni", i32, _mm256_setzero_si256, _mm256_storeu_si256,
    (acc, a, b) => _mm256_dpbusd_avx_epi32(acc, b, a)
);
tile!(
    pairs, "avx2", i32, _mm256_setzero_si256, _mm256_storeu_si256,
    (acc, a, b) => _mm256_add_epi32(acc, _mm256_madd_epi16(a, b))
);
#[cfg(feature = "half")]
tile!(
    floats, "avx2,fma", f32, _mm256_setzero_ps, _mm256_storeu_ps,
    (acc, a, b) => _mm256_fmadd_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), acc)
);
