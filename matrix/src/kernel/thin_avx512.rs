//! The last few rows of a small product in `f32`, with AVX-512.
//!
//! **The problem.** Four rows fill a quarter of a register, and cost as much as sixteen. **The
//! idea.** A register holds a square of four rows by four columns, a column in each quarter:
//!
//! ```text
//! four columns of B, four steps     a step of them               a column of A, everywhere
//! [b00 b10 b20 b30 | b01 b11 …]  →  [b00 b00 b00 b00 | b01 …]  ×  [a0 a1 a2 a3 | a0 a1 …]
//! ```
//!
//! So a step takes one operation to spread `B` and one multiply-add for sixteen entries, and three
//! operations to load the next four steps: eleven for what took sixteen. Entries are the same chain
//! of operations as in [`super::direct_avx512`], so their bits are the same.

use super::direct::{row_mask, DirectTile, Update};
use std::arch::x86_64::*;
use std::ops::Range;

/// Rows and columns of a square.
const SIDE: usize = 4;
/// Squares that are computed together: their sums, steps and addresses fit the registers, and
/// three are enough to wait for no sum.
const MOST: usize = 5;

/// Computes `cols` columns of the rows in the tile's mask, at most four. Of four squares and more,
/// each part has three to five.
///
/// # Safety
/// The processor has AVX-512F. There are at least thirteen columns. All of them, and four rows up
/// to the last one of the mask, are readable in `A` and `B` and belong to `C`, whose rows in the
/// mask are writable, and initialised unless `beta` is 0; entries of a column of `B` are adjacent.
pub(super) unsafe fn rows(tile: &DirectTile<f32>, cols: usize, a: *const f32, b: *const f32, c: *mut f32) {
    let all = cols.div_ceil(SIDE);
    let parts = all.div_ceil(MOST);
    let mut first = 0;
    for part in 0..parts {
        let count = (all - first).div_ceil(parts - part);
        debug_assert!((3..=MOST).contains(&count), "{cols} columns");
        let at = (first, cols);
        // SAFETY: the caller's promise.
        unsafe {
            match count {
                3 => squares::<3>(tile, at, a, b, c),
                4 => squares::<4>(tile, at, a, b, c),
                _ => squares::<MOST>(tile, at, a, b, c),
            }
        }
        first += count;
    }
}

/// Computes `S` squares from number `first` on. The last one of all begins earlier, so that it is
/// whole.
///
/// # Safety
/// The requirements of [`rows`].
#[target_feature(enable = "avx512f")]
unsafe fn squares<const S: usize>(
    tile: &DirectTile<f32>,
    (first, cols): (usize, usize),
    a: *const f32,
    b: *const f32,
    c: *mut f32,
) {
    let count = tile.mask.count_ones() as usize;
    let back = ((SIDE - count) * size_of::<f32>()) as isize;
    let start = |s: usize| ((first + s) * SIDE).min(cols - SIDE);
    let mut right: [isize; S] = std::array::from_fn(|s| b as isize + start(s) as isize * tile.b_column);
    let mut left = a as isize - back;
    let mut sums = [_mm512_setzero_ps(); S];
    // SAFETY: four rows of each step of A are readable.
    let column = |at: isize| unsafe { _mm512_broadcast_f32x4(_mm_loadu_ps(at as *const f32)) };
    for _ in 0..tile.k / SIDE {
        let step = |i: isize| column(left + i * tile.a_step);
        let columns = [step(0), step(1), step(2), step(3)];
        for s in 0..S {
            // SAFETY: four more steps of four columns of B are readable.
            let some =
                unsafe { quarters(|l| _mm_loadu_ps((right[s] + l as isize * tile.b_column) as *const f32)) };
            sums[s] = _mm512_fmadd_ps(columns[0], _mm512_permute_ps::<0x00>(some), sums[s]);
            sums[s] = _mm512_fmadd_ps(columns[1], _mm512_permute_ps::<0x55>(some), sums[s]);
            sums[s] = _mm512_fmadd_ps(columns[2], _mm512_permute_ps::<0xaa>(some), sums[s]);
            sums[s] = _mm512_fmadd_ps(columns[3], _mm512_permute_ps::<0xff>(some), sums[s]);
            right[s] += (SIDE * size_of::<f32>()) as isize;
        }
        left += SIDE as isize * tile.a_step;
    }
    for i in 0..tile.k % SIDE {
        let at = column(left + i as isize * tile.a_step);
        for s in 0..S {
            // SAFETY: this step of four columns of B is readable.
            let some = unsafe {
                quarters(|l| {
                    let number = right[s] + (i * size_of::<f32>()) as isize + l as isize * tile.b_column;
                    _mm_set1_ps(*(number as *const f32))
                })
            };
            sums[s] = _mm512_fmadd_ps(at, some, sums[s]);
        }
    }
    let mask = (row_mask(count) << (SIDE - count)) as __mmask16;
    for (s, &sums) in sums.iter().enumerate() {
        let at = c as isize - back + start(s) as isize * tile.c_column;
        // Columns that the square before has too are written by that one.
        let new = (first + s) * SIDE - start(s)..SIDE;
        // SAFETY: the rows of the mask are writable, and initialised where β is not 0.
        unsafe { write(tile, mask, sums, at, new) };
    }
}

/// Writes some columns of a square that begins at `at`. One function for all: it is called once a
/// square, and copies of it would take ten kilobytes.
///
/// # Safety
/// The rows of the mask are writable in these columns, and initialised where `beta` is not 0.
#[target_feature(enable = "avx512f")]
#[inline(never)]
unsafe fn write(tile: &DirectTile<f32>, mask: __mmask16, sums: __m512, at: isize, columns: Range<usize>) {
    let (alpha, beta) = (_mm512_set1_ps(tile.alpha), _mm512_set1_ps(tile.beta));
    let sums = [
        _mm512_castps512_ps128(sums),
        _mm512_extractf32x4_ps::<1>(sums),
        _mm512_extractf32x4_ps::<2>(sums),
        _mm512_extractf32x4_ps::<3>(sums),
    ];
    for l in columns {
        let sum = _mm512_castps128_ps512(sums[l]);
        let at = (at + l as isize * tile.c_column) as *mut f32;
        // SAFETY: the caller's promise.
        unsafe {
            let value = match tile.update {
                Update::Set => sum,
                Update::Scale => _mm512_mul_ps(alpha, sum),
                Update::Add => {
                    let old = _mm512_maskz_loadu_ps(mask, at);
                    _mm512_fmadd_ps(alpha, sum, _mm512_mul_ps(beta, old))
                }
            };
            _mm512_mask_storeu_ps(at, mask, value);
        }
    }
}

/// The register whose quarters are what `load` has for 0 to 3.
#[target_feature(enable = "avx512f")]
#[inline]
unsafe fn quarters(load: impl Fn(usize) -> __m128) -> __m512 {
    let first = _mm512_castps128_ps512(load(0));
    let two = _mm512_insertf32x4::<1>(first, load(1));
    let three = _mm512_insertf32x4::<2>(two, load(2));
    _mm512_insertf32x4::<3>(three, load(3))
}
