//! AVX-512: tiles of 48×8 sums, three registers of 16 words by eight repeated words.
//!
//! 24 sums, three vectors of `A` and one repeated word of `B` fill 28 of the 32 registers. A step
//! of `depth` numbers is 24 multiply-adds, three loads and eight broadcasts. A tile of which 16 or
//! 32 rows exist uses one or two registers for each column.

use super::Tile;
use std::arch::x86_64::*;

/// Rows of a panel.
const ROWS: usize = 48;
/// Columns of a tile.
const COLUMNS: usize = 8;
/// Rows of a register.
const LANES: usize = 16;

pub(super) fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
}

pub(super) fn has_vnni() -> bool {
    has_avx512() && is_x86_feature_detected!("avx512vnni")
}

#[cfg(feature = "half")]
pub(super) fn has_bf16() -> bool {
    has_avx512() && is_x86_feature_detected!("avx512bf16")
}

/// A kernel: its features, its type of sums, its vector of sums, and its step.
macro_rules! tile {
    ($name:ident, $features:literal, $sum:ty, $zero:ident, $store:ident, |$acc:ident, $a:ident, $b:ident| $step:expr) => {
        /// # Safety
        /// The requirements of [`super::Run`].
        #[target_feature(enable = $features)]
        pub(super) unsafe fn $name<const PANELS: usize>(tile: &Tile<$sum>) {
            // Registers that hold no existing row need no sums.
            match tile.rows.div_ceil(LANES) {
                // SAFETY: the caller's promise, in all three.
                1 => unsafe { part::<1>(tile) },
                // SAFETY: see above.
                2 => unsafe { part::<2>(tile) },
                // SAFETY: see above.
                _ => unsafe { part::<PANELS>(tile) },
            }

            #[inline]
            #[target_feature(enable = $features)]
            unsafe fn part<const PANELS: usize>(tile: &Tile<$sum>) {
                let mut sums = [[$zero(); PANELS]; COLUMNS];
                for group in 0..tile.groups {
                    // SAFETY: group `group` of both panels is readable.
                    unsafe {
                        let at = tile.a.add(group * ROWS);
                        let a: [__m512i; PANELS] =
                            std::array::from_fn(|p| _mm512_loadu_si512(at.add(p * LANES).cast()));
                        for j in 0..COLUMNS {
                            let $b = _mm512_set1_epi32(*tile.b.add(group * COLUMNS + j) as i32);
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
                        // SAFETY: a column has 48 places.
                        unsafe { $store(column.as_mut_ptr().add(p * LANES).cast(), sum) };
                    }
                }
                // SAFETY: the caller's promise.
                unsafe { tile.store(&stored) }
            }
        }
    };
}

tile!(unsigned_signed, "avx512f,avx512vnni", i32, _mm512_setzero_si512, _mm512_storeu_si512, |acc, a, b| {
    _mm512_dpbusd_epi32(acc, a, b)
});
tile!(signed_unsigned, "avx512f,avx512vnni", i32, _mm512_setzero_si512, _mm512_storeu_si512, |acc, a, b| {
    _mm512_dpbusd_epi32(acc, b, a)
});
tile!(pairs, "avx512f,avx512vnni", i32, _mm512_setzero_si512, _mm512_storeu_si512, |acc, a, b| {
    _mm512_dpwssd_epi32(acc, a, b)
});
#[cfg(feature = "half")]
tile!(bf16, "avx512f,avx512bf16", f32, _mm512_setzero_ps, _mm512_storeu_ps, |acc, a, b| {
    _mm512_dpbf16_ps(acc, std::mem::transmute::<__m512i, __m512bh>(a), std::mem::transmute::<__m512i, __m512bh>(b))
});
#[cfg(feature = "half")]
tile!(floats, "avx512f", f32, _mm512_setzero_ps, _mm512_storeu_ps, |acc, a, b| {
    _mm512_fmadd_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), acc)
});
