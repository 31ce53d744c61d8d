//! The model's functions against counts by brute force, under the assumptions the paper makes.
//!
//! Two counters. `reloads` follows the loops tile by tile and counts a load whenever a tile (or row
//! of one) is entered whose reuse the case says is lost: that must equal the formulas exactly.
//! `lru` replays every access through a fully associative cache with true LRU replacement: that
//! must agree within 10 % away from the capacities where cases change.

use lightfoot_matrix::paper::miss::Case;
use lightfoot_matrix::paper::{cache_misses, tlb_misses, Level, Masks};
use std::collections::HashMap;

/// Loads of lines by the six loops when `case` says what stays in the cache. N, T and L divide each
/// other.
fn reloads(case: Case, n: usize, t: usize, line: usize) -> [usize; 3] {
    let tiles = n / t;
    let tile_lines = t * t / line;
    let mut loads = [0; 3];
    let first = |fits: bool, new: bool| usize::from(new || !fits);
    let (arrays, tile_row) = (case == Case::Arrays, matches!(case, Case::Arrays | Case::TileRow));
    let three = tile_row || case == Case::ThreeTiles;
    for ii in 0..tiles {
        for jj in 0..tiles {
            for kk in 0..tiles {
                // A[ii, jj] is reused along kk, B[jj, kk] along ii, C[ii, kk] along jj.
                loads[0] += first(three, kk == 0) * tile_lines;
                loads[2] += match case {
                    // Rows of C reused along j within the tile, unless not even a row fits.
                    Case::Nothing => t * t * t / line,
                    _ => first(tile_row, jj == 0) * tile_lines,
                };
                loads[1] += match case {
                    // B reused along i within the tile, unless it does not fit.
                    Case::RowOfTile | Case::Nothing => t * t * t / line,
                    _ => first(arrays, ii == 0) * tile_lines,
                };
            }
        }
    }
    loads
}

#[test]
fn formulas_equal_the_tile_by_tile_count() {
    for (n, t, capacity, line) in [
        (16, 4, 300, 4),
        (64, 8, 1024, 4),
        (64, 16, 800, 8),
        (128, 16, 512, 4),
        (64, 32, 512, 8),
        (64, 32, 32, 4),
        (64, 64, 2048, 4),
    ] {
        let level = Level { capacity: capacity as f64, line: line as f64 };
        let got = cache_misses(level, n, t);
        let want = reloads(got.case, n, t, line).map(|loads| loads as f64);
        assert_eq!([got.a, got.b, got.c], want, "N {n} T {t} C {capacity} L {line}: {:?}", got.case);
        let tlb = tlb_misses(level, n, t);
        let want = reloads(tlb.case, n, t, line).map(|loads| loads as f64);
        assert_eq!([tlb.a, tlb.b, tlb.c], want, "TLB, N {n} T {t}: {:?}", tlb.case);
    }
}

/// Misses of a fully associative LRU cache of `capacity / line` lines under the tiled loops on
/// blocked arrays.
fn lru(n: usize, t: usize, capacity: usize, line: usize) -> f64 {
    let masks = Masks::new(t, n / t).unwrap();
    let (lines, mut clock, mut misses) = (capacity / line, 0u64, 0u64);
    let mut last: HashMap<usize, u64> = HashMap::new();
    let mut order = std::collections::BTreeMap::new();
    let mut touch = |array: usize, at: usize| {
        let key = (array * n * n + at) / line;
        clock += 1;
        match last.insert(key, clock) {
            Some(before) => drop(order.remove(&before)),
            None => {
                misses += 1;
                if order.len() == lines {
                    let (_, oldest) = order.pop_first().unwrap();
                    last.remove(&oldest);
                }
            }
        }
        order.insert(clock, key);
    };
    for ii in (0..n).step_by(t) {
        for jj in (0..n).step_by(t) {
            for kk in (0..n).step_by(t) {
                for i in ii..ii + t {
                    for j in jj..jj + t {
                        touch(0, masks.offset(i, j));
                        for k in kk..kk + t {
                            touch(1, masks.offset(j, k));
                            touch(2, masks.offset(i, k));
                        }
                    }
                }
            }
        }
    }
    misses as f64
}

#[test]
fn replaying_the_loops_through_lru_agrees_away_from_the_boundaries() {
    // Capacity well above the reused set of the case and well below that of the next.
    for (case, n, t, capacity, line) in [
        (Case::Arrays, 32, 8, 4096, 8),
        (Case::TileRow, 96 / 3 * 4, 4, 2560, 4),
        (Case::ThreeTiles, 128, 8, 512, 4),
        (Case::OneTile, 64, 16, 384, 4),
        (Case::RowOfTile, 64, 32, 256, 4),
    ] {
        let level = Level { capacity: capacity as f64, line: line as f64 };
        let model = cache_misses(level, n, t);
        let counted = lru(n, t, capacity, line);
        assert_eq!(model.case, case, "N {n} T {t}");
        let error = (model.total() - counted) / counted;
        println!("{case:?}: model {}, LRU {counted}, error {:.1} %", model.total(), 100.0 * error);
        assert!(error.abs() < 0.10, "{case:?}: model {}, LRU {counted}", model.total());
    }
}
