//! Misses of the tiled multiplication, case by case (sections 3.2 to 3.4).
//!
//! **Shapes.** N×N arrays in square tiles T×T (T > N counts as T = N: there is no tiling then).
//! **Units.** Capacity and line of a level, and so the misses, count elements; see [`Level`].
//! **Leaves out** conflicts: blocked layouts have none within an array, and alignment is assumed to
//! keep the arrays apart.

use crate::Error;
use machine::Machine;

/// A cache, or a TLB with its pages as lines. All numbers count elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// C: the number of elements that a cache holds, or that a TLB reaches (E·P).
    pub capacity: f64,
    /// L: elements of a line (P for a TLB).
    pub line: f64,
}

impl Level {
    /// The data cache of `level` (1 is innermost), for elements of `element_bytes`.
    ///
    /// # Errors
    /// [`Error::Machine`] when the description has no such cache.
    pub fn cache(machine: &Machine, level: u8, element_bytes: usize) -> Result<Level, Error> {
        let field = match level {
            1 => "first-level data cache (cache.L1D)",
            2 => "second-level cache (cache.L2)",
            _ => "third-level cache (cache.L3)",
        };
        let cache = machine.data_cache(level).ok_or(Error::Machine { field })?;
        let of = |bytes: u64| bytes as f64 / element_bytes as f64;
        Ok(Level { capacity: of(cache.size_bytes), line: of(cache.line_bytes.into()) })
    }

    /// The first data TLB with pages of the base size.
    ///
    /// # Errors
    /// [`Error::Machine`] when the description has none.
    pub fn tlb(machine: &Machine, element_bytes: usize) -> Result<Level, Error> {
        let tlb =
            machine.data_tlb(1).ok_or(Error::Machine { field: "first-level data TLB (tlb.L1 DTLB)" })?;
        let page = machine.base_page_bytes() as f64 / element_bytes as f64;
        Ok(Level { capacity: f64::from(tlb.entries) * page, line: page })
    }
}

/// The reuse that a level can hold. Cases are named after the largest part that fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// N² < C: whole arrays.
    Arrays,
    /// N² = C and T = N: the whole of B, except for the two rows that A and C displace.
    ArrayExactly,
    /// T·N < C ≤ N²: a row of tiles.
    TileRow,
    /// 3T² ≤ C ≤ T·N: three tiles.
    ThreeTiles,
    /// T² ≤ C < 3T²: one tile.
    OneTile,
    /// T < C < T²: a row of a tile.
    RowOfTile,
    /// C ≤ T: less than a row of a tile.
    Nothing,
}

/// Misses by array.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Misses {
    /// The case that applies.
    pub case: Case,
    /// M_A.
    pub a: f64,
    /// M_B.
    pub b: f64,
    /// M_C.
    pub c: f64,
}

impl Misses {
    /// M = M_A + M_B + M_C.
    pub fn total(&self) -> f64 {
        self.a + self.b + self.c
    }
}

/// The terms of which numbers of misses are sums.
struct Terms {
    /// N²/L: every line once.
    once: f64,
    /// N³/(T·L): every line once per tile of another index.
    per_tile: f64,
    /// N³/L: every line once per row.
    per_row: f64,
}

fn terms(level: Level, n: f64, t: f64) -> Terms {
    let cube = n * n * n;
    Terms { once: n * n / level.line, per_tile: cube / (t * level.line), per_row: cube / level.line }
}

/// Misses of a cache: section 3.2 for the first level, 3.3 for the second.
pub fn cache_misses(level: Level, n: usize, t: usize) -> Misses {
    let (n, t, c) = (n as f64, t.min(n) as f64, level.capacity);
    let Terms { once, per_tile, per_row } = terms(level, n, t);
    let misses = |case, a, b, c| Misses { case, a, b, c };
    if n * n < c {
        misses(Case::Arrays, once, once, once)
    } else if n * n == c && t == n {
        misses(Case::ArrayExactly, once, once + (n - 1.0) * 2.0 * n / level.line, once)
    } else if t * n < c {
        misses(Case::TileRow, once, per_tile, once)
    } else if 3.0 * t * t <= c {
        misses(Case::ThreeTiles, once, per_tile, per_tile)
    } else if t * t <= c {
        misses(Case::OneTile, per_tile, per_tile, per_tile)
    } else if t < c {
        misses(Case::RowOfTile, per_tile, per_row, per_tile)
    } else {
        misses(Case::Nothing, per_tile, per_row, per_row)
    }
}

/// Misses of a TLB: Table 2, with its gaps closed as described in [`crate::paper`]. The table gives
/// totals; they are divided among the arrays as in section 3.2.
pub fn tlb_misses(level: Level, n: usize, t: usize) -> Misses {
    let (n, t, reach) = (n as f64, t.min(n) as f64, level.capacity);
    let Terms { once, per_tile, per_row } = terms(level, n, t);
    let misses = |case, a, b, c| Misses { case, a, b, c };
    if n * n < reach {
        misses(Case::Arrays, once, once, once)
    } else if 3.0 * t * n <= reach {
        misses(Case::TileRow, once, per_tile, once)
    } else if t * n < reach || 3.0 * t * t <= reach {
        misses(Case::ThreeTiles, once, per_tile, per_tile)
    } else if t * t <= reach {
        misses(Case::OneTile, per_tile, per_tile, per_tile)
    } else if t < reach {
        misses(Case::RowOfTile, per_tile, per_row, per_tile)
    } else {
        misses(Case::Nothing, per_tile, per_row, per_row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const XEON_L1: Level = Level { capacity: 4096.0, line: 16.0 };

    fn case(level: Level, n: usize, t: usize) -> Case {
        cache_misses(level, n, t).case
    }

    #[test]
    fn cases_of_section_3_2() {
        assert_eq!(case(XEON_L1, 63, 8), Case::Arrays);
        assert_eq!(case(XEON_L1, 64, 64), Case::ArrayExactly);
        assert_eq!(case(XEON_L1, 64, 32), Case::TileRow);
        assert_eq!(case(XEON_L1, 1024, 2), Case::TileRow);
        assert_eq!(case(XEON_L1, 1024, 4), Case::ThreeTiles);
        assert_eq!(case(XEON_L1, 1024, 32), Case::ThreeTiles);
        assert_eq!(case(XEON_L1, 1024, 64), Case::OneTile);
        assert_eq!(case(XEON_L1, 1024, 65), Case::RowOfTile);
        assert_eq!(case(XEON_L1, 8192, 4096), Case::Nothing);
    }

    #[test]
    fn the_exact_case_counts_two_rows_per_step() {
        let misses = cache_misses(XEON_L1, 64, 64);
        assert_eq!((misses.a, misses.b, misses.c), (256.0, 256.0 + 63.0 * 128.0 / 16.0, 256.0));
    }

    #[test]
    fn the_optima_of_the_text() {
        let machine = Machine::preset("xeon-dp").unwrap();
        let best = |misses: &dyn Fn(usize) -> f64| {
            (3..13).map(|bits| 1 << bits).min_by(|&s, &t| misses(s).total_cmp(&misses(t))).unwrap()
        };
        let (l1, l2) = (Level::cache(&machine, 1, 4).unwrap(), Level::cache(&machine, 2, 4).unwrap());
        let tlb = Level::tlb(&machine, 4).unwrap();
        assert_eq!(l1, XEON_L1);
        for n in [2048, 4096] {
            assert_eq!(best(&|t| cache_misses(l1, n, t).total()), 64, "section 3.2");
            assert_eq!(best(&|t| cache_misses(l2, n, t).total()), 512, "section 3.3: T² = C");
            assert_eq!(best(&|t| tlb_misses(tlb, n, t).total()), 256, "section 3.4");
        }
    }

    #[test]
    fn a_missing_level_is_named() {
        let machine = Machine::preset("ladner2002").unwrap();
        let error = Level::cache(&machine, 2, 8).unwrap_err().to_string();
        assert_eq!(error, "the machine description has no second-level cache (cache.L2)");
        assert!(Level::tlb(&machine, 8).unwrap_err().to_string().contains("TLB"));
    }
}
