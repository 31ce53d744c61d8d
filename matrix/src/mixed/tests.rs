//! The loops around kernels that want whole tiles, with a kernel in plain Rust: no such processor
//! is needed.

use super::kernel::Tile;
use super::product::{Around, Blocks, RightWords, TileKernel};
use super::{pack, reference, Mixed};
use crate::{Strided, StridedMut};
use std::cell::Cell;

thread_local! {
    /// How many parts have been begun and not been ended.
    static PREPARED: Cell<usize> = const { Cell::new(0) };
}

unsafe fn before() {
    PREPARED.set(PREPARED.get() + 1);
}

unsafe fn behind() {
    PREPARED.set(PREPARED.get() - 1);
}

/// A tile of 32×32 sums that reads all of its words, as tile registers do.
unsafe fn whole_tile(tile: &Tile<i32>) {
    assert!(PREPARED.get() == 1 && tile.groups.is_multiple_of(16));
    let mut sums = [[0_i32; 32]; 32];
    for (j, column) in sums.iter_mut().enumerate() {
        let words = tile.b.wrapping_offset(j as isize * tile.b_column);
        for group in 0..tile.groups {
            // SAFETY: tiles are whole, by the loops under test.
            let b = unsafe { words.add(4 * group).cast::<u32>().read_unaligned() }.to_le_bytes();
            for (i, sum) in column.iter_mut().enumerate() {
                // SAFETY: the panel has 32 words of each group.
                let a = unsafe { *tile.a.add(32 * group + i) }.to_le_bytes();
                *sum += a.iter().zip(b).map(|(&a, b)| i32::from(a) * i32::from(b as i8)).sum::<i32>();
            }
        }
    }
    // SAFETY: the caller's promise.
    unsafe { tile.store::<32>(sums.as_ptr().cast()) }
}

unsafe fn pack_left(
    source: &super::source::Source<u8>,
    rows: std::ops::Range<usize>,
    ks: std::ops::Range<usize>,
    groups: usize,
    panels: &mut [u32],
) {
    // SAFETY: the caller's promise.
    unsafe { pack::plain::<u8, 32, 4>(source, rows, ks, groups, panels) }
}

static WHOLE_TILES: TileKernel<(u8, i8)> = TileKernel {
    name: "whole tiles",
    is_available: || true,
    is_fast: || true,
    rows: 32,
    columns: 32,
    depth: 4,
    pack_left,
    pack_right: pack::plain::<i8, 1, 4>,
    run: whole_tile,
    blocks: Blocks {
        words: 48,
        rows: 64,
        unit: 16,
        right: RightWords::ByColumn,
        least: 0,
        around: Some(Around { before, behind }),
    },
};

#[test]
fn tiles_are_whole() {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1664525).wrapping_add(1013904223);
        (state >> 24) as u8
    };
    let sizes =
        [(1, 1, 1), (32, 32, 64), (33, 31, 63), (64, 64, 192), (70, 65, 200), (100, 96, 449), (5, 40, 0)];
    for (m, n, k) in sizes {
        let a: Vec<u8> = (0..m * k).map(|_| next()).collect();
        let b: Vec<i8> = (0..k * n).map(|_| next() as i8).collect();
        for by_columns in [true, false] {
            let left = Strided::col_major(&a, m, k).unwrap();
            let of = if by_columns { Strided::col_major } else { Strided::row_major };
            let right = of(&b, k, n).unwrap();
            let mut c = vec![7; m * n];
            let view = StridedMut::col_major(&mut c, m, n).unwrap();
            Mixed::<(u8, i8)>::new().kernel(&WHOLE_TILES).multiply(1, left, right, 1, view).unwrap();
            assert_eq!(PREPARED.get(), 0);
            let want = reference::multiply::<(u8, i8)>(left, right).unwrap();
            for (at, entry) in want.iter().enumerate() {
                assert_eq!(c[at % n * m + at / n], 7 + entry.value as i32, "{m}×{n}×{k} entry {at}");
            }
        }
    }
}

/// The packing of rows by copies, against the one that goes word by word.
#[cfg(target_arch = "x86_64")]
#[test]
fn rows_are_copied() {
    if !super::kernel::avx512::has_avx512() {
        println!("no AVX-512: not run");
        return;
    }
    let bytes: Vec<u8> = (0..=255).collect();
    let source = super::source::Source::of(&Strided::row_major(&bytes, 8, 32).unwrap());
    for steps in 1..=32 {
        let groups = usize::div_ceil(steps, 4).next_multiple_of(16);
        let (mut copied, mut packed) = (vec![u32::MAX; 8 * groups], vec![u32::MAX; 8 * groups]);
        // SAFETY: the processor has AVX-512, and the source 32 steps of eight rows.
        unsafe {
            pack::rows::<u8, 4>(&source, 0..8, 0..steps, groups, &mut copied);
            pack::plain::<u8, 1, 4>(&source, 0..8, 0..steps, groups, &mut packed);
        }
        assert_eq!(copied, packed, "{steps} steps");
    }
}
