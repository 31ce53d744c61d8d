//! AVX-512: tiles of 48×8 sums, three registers of 16 words by eight repeated words.
//!
//! 24 sums, three vectors of `A` and one repeated word of `B` fill 28 of the 32 registers. A step
//! of `depth` numbers is 24 multiply-adds, three loads and eight broadcasts. A tile of which 16 or
//! 32 rows exist uses one or two registers for each column.

use super::tile::Tile;
use crate::mixed::narrow::Sum;
#[cfg(feature = "half")]
use std::arch::asm;
use std::arch::x86_64::*;
use std::mem::MaybeUninit;
#[cfg(feature = "half")]
use std::sync::OnceLock;
#[cfg(feature = "half")]
use std::time::Instant;

/// Rows of a panel.
const ROWS: usize = 48;
/// Columns of a tile.
const COLUMNS: usize = 8;
/// Rows of a register.
const LANES: usize = 16;

pub(in crate::mixed) fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
}

pub(in crate::mixed) fn has_vnni() -> bool {
    has_avx512() && is_x86_feature_detected!("avx512vnni")
}

#[cfg(feature = "half")]
pub(in crate::mixed) fn has_bf16() -> bool {
    has_avx512() && is_x86_feature_detected!("avx512bf16")
}

/// Adds the sums of a tile to columns of contiguous rows: its name, the type of sums and of
/// vectors, and the instructions that load, store, repeat, multiply and add.
macro_rules! store {
    ($name:ident, $sum:ty, $load:ident, $store:ident, $set:ident, $mul:ident, $add:ident) => {
        /// # Safety
        /// The requirements of [`Run`](super::Run); the rows of `C` are contiguous; the sums of
        /// existing entries are readable, column after column of `ROWS`.
        #[inline]
        #[target_feature(enable = "avx512f")]
        pub(super) unsafe fn $name<const ROWS: usize>(tile: &Tile<$sum>, sums: *const $sum) {
            let (zero, one) = (<$sum as Sum>::ZERO, <$sum as Sum>::ONE);
            let (alpha, beta) = ($set(tile.alpha), $set(tile.beta));
            for first in (0..tile.rows).step_by(LANES) {
                // The rows of this register that exist.
                let mask = u16::MAX >> (LANES - (tile.rows - first).min(LANES));
                for j in 0..tile.columns {
                    let place = tile.c.wrapping_offset(j as isize * tile.col_stride).wrapping_add(first);
                    // SAFETY: the mask has existing rows only, and they are initialised if β is not
                    // 0.
                    unsafe {
                        let mut sum = $load(mask, sums.add(j * ROWS + first));
                        if tile.alpha != one {
                            sum = $mul(sum, alpha);
                        }
                        if tile.beta == one {
                            sum = $add(sum, $load(mask, place));
                        } else if tile.beta != zero {
                            sum = $add(sum, $mul($load(mask, place), beta));
                        }
                        $store(place, mask, sum);
                    }
                }
            }
        }
    };
}
store!(
    store_integers,
    i32,
    _mm512_maskz_loadu_epi32,
    _mm512_mask_storeu_epi32,
    _mm512_set1_epi32,
    _mm512_mullo_epi32,
    _mm512_add_epi32
);
#[cfg(feature = "half")]
store!(
    store_floats,
    f32,
    _mm512_maskz_loadu_ps,
    _mm512_mask_storeu_ps,
    _mm512_set1_ps,
    _mm512_mul_ps,
    _mm512_add_ps
);

/// Fetches the lines of the tile of `C` while its sums are computed.
#[inline(always)]
fn prefetch<const PANELS: usize, S>(tile: &Tile<S>) {
    for j in 0..tile.columns as isize {
        for p in 0..PANELS {
            let place = tile.c.wrapping_offset(j * tile.col_stride).wrapping_add(p * LANES);
            // SAFETY: a prefetch of any address is harmless.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) };
        }
    }
}

/// A kernel: its features, its type of sums, its vector of sums, and its step.
macro_rules! tile {
    ($name:ident, $features:literal, $sum:ty, $zero:ident, $load:ident, $store:ident, $add:ident, $contiguous:ident, ($acc:ident, $a:ident, $b:ident) => $step:expr) => {
        /// # Safety
        /// The requirements of [`Run`](super::Run).
        #[target_feature(enable = $features)]
        pub(in crate::mixed) unsafe fn $name<const PANELS: usize>(tile: &Tile<$sum>) {
            // Registers that hold no existing row need no sums.
            match tile.rows.div_ceil(LANES) {
                // SAFETY: the caller's promise.
                1 => unsafe { part::<1>(tile) },
                // SAFETY: the caller's promise.
                2 => unsafe { part::<2>(tile) },
                // SAFETY: the caller's promise.
                _ => unsafe { part::<PANELS>(tile) },
            }

            #[inline]
            #[target_feature(enable = $features)]
            unsafe fn part<const PANELS: usize>(tile: &Tile<$sum>) {
                let mut sums = [[$zero(); PANELS]; COLUMNS];
                let columns = tile.columns::<COLUMNS>();
                prefetch::<PANELS, $sum>(tile);
                for group in 0..tile.groups {
                    // SAFETY: group `group` of both operands is readable.
                    unsafe {
                        let at = tile.a.add(group * ROWS);
                        let a: [__m512i; PANELS] =
                            std::array::from_fn(|p| _mm512_loadu_si512(at.add(p * LANES).cast()));
                        for j in 0..COLUMNS {
                            let $b = _mm512_set1_epi32(tile.word(columns[j], group) as i32);
                            for p in 0..PANELS {
                                let ($acc, $a) = (sums[j][p], a[p]);
                                sums[j][p] = $step;
                            }
                        }
                    }
                }
                // Whole tiles of contiguous rows go straight from registers to `C`.
                let is_whole = tile.row_stride == 1 && tile.rows == PANELS * LANES && tile.columns == COLUMNS;
                if is_whole && tile.alpha == <$sum as Sum>::ONE {
                    let is_added = tile.beta == <$sum as Sum>::ONE;
                    if is_added || tile.beta == <$sum as Sum>::ZERO {
                        for j in 0..COLUMNS {
                            let column = tile.c.wrapping_offset(j as isize * tile.col_stride);
                            for p in 0..PANELS {
                                // SAFETY: these rows of column `j` exist, and are initialised if β
                                // is not 0.
                                unsafe {
                                    let place = column.add(p * LANES);
                                    let old = if is_added { $load(place.cast()) } else { $zero() };
                                    $store(place.cast(), $add(sums[j][p], old));
                                }
                            }
                        }
                        return;
                    }
                }
                // Registers are stored by loops that are written out: a loop with an exit would
                // keep the sums in memory all along.
                let mut stored = MaybeUninit::<[[$sum; ROWS]; COLUMNS]>::uninit();
                let start = stored.as_mut_ptr().cast::<$sum>();
                for j in 0..COLUMNS {
                    for p in 0..PANELS {
                        // SAFETY: column `j` of the array has 48 places.
                        unsafe { $store(start.add(j * ROWS + p * LANES).cast(), sums[j][p]) };
                    }
                }
                // SAFETY: the caller's promise; the array holds the existing rows.
                unsafe {
                    if tile.row_stride == 1 {
                        $contiguous::<ROWS>(tile, start)
                    } else {
                        tile.store::<ROWS>(start)
                    }
                }
            }
        }
    };
}

tile!(
    unsigned_signed, "avx512f,avx512vnni", i32, _mm512_setzero_si512, _mm512_loadu_si512,
    _mm512_storeu_si512, _mm512_add_epi32, store_integers,
    (acc, a, b) => _mm512_dpbusd_epi32(acc, a, b)
);
tile!(
    signed_unsigned, "avx512f,avx512vnni", i32, _mm512_setzero_si512, _mm512_loadu_si512,
    _mm512_storeu_si512, _mm512_add_epi32, store_integers,
    (acc, a, b) => _mm512_dpbusd_epi32(acc, b, a)
);
tile!(
    pairs, "avx512f,avx512vnni", i32, _mm512_setzero_si512, _mm512_loadu_si512,
    _mm512_storeu_si512, _mm512_add_epi32, store_integers,
    (acc, a, b) => _mm512_dpwssd_epi32(acc, a, b)
);
#[cfg(feature = "half")]
tile!(
    bf16, "avx512f,avx512bf16", f32, _mm512_setzero_ps, _mm512_loadu_ps, _mm512_storeu_ps,
    _mm512_add_ps, store_floats,
    (acc, a, b) => _mm512_dpbf16_ps(acc, halves(a), halves(b))
);
#[cfg(feature = "half")]
tile!(
    floats, "avx512f", f32, _mm512_setzero_ps, _mm512_loadu_ps, _mm512_storeu_ps,
    _mm512_add_ps, store_floats,
    (acc, a, b) => _mm512_fmadd_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), acc)
);

/// A register as 32 numbers of 16 bits.
#[cfg(feature = "half")]
#[inline]
#[target_feature(enable = "avx512f,avx512bf16")]
fn halves(words: __m512i) -> __m512bh {
    // SAFETY: both types are 64 bytes of which any are a value.
    unsafe { std::mem::transmute(words) }
}

/// Whether the instruction for `bf16` is worth using, measured once. It does the work of two for
/// `f32`, and saves packing half of the bytes. It takes as long as one on Zen 5, and four times
/// as long on Emerald Rapids; three times is far from both.
#[cfg(feature = "half")]
pub(in crate::mixed) fn is_bf16_fast() -> bool {
    static FAST: OnceLock<bool> = OnceLock::new();
    *FAST.get_or_init(|| {
        if !has_bf16() {
            return false;
        }
        let (mut pairs, mut singles) = (u128::MAX, u128::MAX);
        for _ in 0..ROUNDS {
            // SAFETY: the processor has the features.
            unsafe {
                pairs = pairs.min(nanoseconds(|| pair_chains()));
                singles = singles.min(nanoseconds(|| single_chains()));
            }
        }
        pairs < 3 * singles
    })
}

/// The shortest of so many runs counts: the others may have been interrupted.
#[cfg(feature = "half")]
const ROUNDS: usize = 8;
/// Steps of the chains that are measured: a microsecond or a few.
#[cfg(feature = "half")]
const CHAIN: usize = 400;

#[cfg(feature = "half")]
fn nanoseconds(run: impl FnOnce()) -> u128 {
    let start = Instant::now();
    run();
    start.elapsed().as_nanos()
}

/// Eight independent chains of an instruction on zeros, in registers.
#[cfg(feature = "half")]
macro_rules! chains {
    ($name:ident, $features:literal, $instruction:literal) => {
        #[target_feature(enable = $features)]
        fn $name() {
            let zero = _mm512_setzero_ps();
            // SAFETY: the instructions use registers only.
            unsafe {
                asm!(
                    "2:",
                    concat!($instruction, " {0}, {8}, {8}"), concat!($instruction, " {1}, {8}, {8}"),
                    concat!($instruction, " {2}, {8}, {8}"), concat!($instruction, " {3}, {8}, {8}"),
                    concat!($instruction, " {4}, {8}, {8}"), concat!($instruction, " {5}, {8}, {8}"),
                    concat!($instruction, " {6}, {8}, {8}"), concat!($instruction, " {7}, {8}, {8}"),
                    "dec {steps}", "jnz 2b",
                    inout(zmm_reg) zero => _, inout(zmm_reg) zero => _, inout(zmm_reg) zero => _,
                    inout(zmm_reg) zero => _, inout(zmm_reg) zero => _, inout(zmm_reg) zero => _,
                    inout(zmm_reg) zero => _, inout(zmm_reg) zero => _, in(zmm_reg) zero,
                    steps = inout(reg) CHAIN => _,
                    options(nostack, nomem),
                );
            }
        }
    };
}
#[cfg(feature = "half")]
chains!(pair_chains, "avx512f,avx512bf16", "vdpbf16ps");
#[cfg(feature = "half")]
chains!(single_chains, "avx512f", "vfmadd231ps");
