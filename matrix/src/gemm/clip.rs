//! Products of which only one triangle is wanted, for symmetric results.
//!
//! **What.** A block of `C` computes the tiles that hold wanted entries. Tiles that the diagonal
//! crosses are computed whole and written in part. **Cost.** About half of the product's. Source:
//! the BLAS extension `gemmt`.

use std::ops::Range;

/// The wanted entries of a block of `C`. The number is the row minus the column of the block's
/// first entry in the whole of `C`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clip {
    /// All entries.
    None,
    /// Those on and below the diagonal.
    Lower(isize),
    /// Those on and above it.
    Upper(isize),
}

impl Clip {
    /// The clip of the block that begins at `row` and `col` of this one.
    #[inline]
    pub(super) fn at(self, row: usize, col: usize) -> Clip {
        let moved = row as isize - col as isize;
        match self {
            Clip::None => Clip::None,
            Clip::Lower(by) => Clip::Lower(by + moved),
            Clip::Upper(by) => Clip::Upper(by + moved),
        }
    }

    /// The clip of the transposed block.
    pub(super) fn transposed(self) -> Clip {
        match self {
            Clip::None => Clip::None,
            Clip::Lower(by) => Clip::Upper(-by),
            Clip::Upper(by) => Clip::Lower(-by),
        }
    }

    /// Whether an entry of the block is wanted.
    #[inline]
    pub(super) fn wants(self, row: usize, col: usize) -> bool {
        let distance = row as isize - col as isize;
        match self {
            Clip::None => true,
            Clip::Lower(by) => distance + by >= 0,
            Clip::Upper(by) => distance + by <= 0,
        }
    }

    /// The columns of some rows whose entries are all wanted, and those that have wanted entries
    /// and others; both begin at multiples of `group`, and those that are left out have none.
    pub(super) fn columns(
        self,
        rows: Range<usize>,
        cols: usize,
        group: usize,
    ) -> (Range<usize>, Range<usize>) {
        let inside = |col: isize| col.clamp(0, cols as isize) as usize;
        let down = |col: usize| col / group * group;
        let (first, last) = (rows.start as isize, rows.end as isize - 1);
        match self {
            Clip::None => (0..cols, 0..0),
            Clip::Lower(by) => {
                let (whole, end) = (inside(first + by + 1), inside(last + by + 1));
                let whole = if whole == cols { cols } else { down(whole) };
                (0..whole, whole..end.max(whole))
            }
            Clip::Upper(by) => {
                let (start, whole) = (down(inside(first + by)), inside(last + by));
                let whole = whole.next_multiple_of(group).min(cols);
                (whole..cols, start.min(whole)..whole)
            }
        }
    }

    /// The columns of some rows that have wanted entries; the first is a multiple of `unit`.
    pub(super) fn reached(self, rows: Range<usize>, cols: Range<usize>, unit: usize) -> Range<usize> {
        let (whole, crossed) = self.columns(rows, cols.end, unit);
        let range = match self {
            Clip::Upper(_) => crossed.start..whole.end,
            _ => whole.start..crossed.end.max(whole.end),
        };
        range.start.max(cols.start)..range.end.max(range.start.max(cols.start))
    }
}

/// `len` rows cut into at most `parts` ranges with about as many wanted entries each, at multiples
/// of `unit`.
pub(super) fn cut(clip: Clip, len: usize, parts: usize, unit: usize) -> Vec<Range<usize>> {
    let units = len.div_ceil(unit);
    let parts = parts.min(units).max(1);
    let edge = |part: usize| {
        if part == parts {
            return len;
        }
        // The share of a triangle above a height is its square.
        let share = part as f64 / parts as f64;
        let height = if matches!(clip, Clip::Upper(_)) { 1.0 - (1.0 - share).sqrt() } else { share.sqrt() };
        ((len as f64 * height / unit as f64).round() as usize * unit).min(len)
    };
    (0..parts).map(|part| edge(part)..edge(part + 1)).filter(|range| !range.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wanted_entry_is_in_one_range_and_whole_columns_are_wanted() {
        for by in -20isize..20 {
            for clip in [Clip::Lower(by), Clip::Upper(by)] {
                for (rows, cols) in [(0..8, 30), (8..24, 30), (24..30, 8), (3..4, 17)] {
                    let (whole, crossed) = clip.columns(rows.clone(), cols, 8);
                    assert!(whole.is_empty() || whole.start % 8 == 0);
                    assert!(crossed.is_empty() || crossed.start % 8 == 0);
                    for col in 0..cols {
                        let wanted = rows.clone().filter(|&row| clip.wants(row, col)).count();
                        let (in_whole, in_crossed) = (whole.contains(&col), crossed.contains(&col));
                        assert!(!(in_whole && in_crossed));
                        assert!(!in_whole || wanted == rows.len(), "{clip:?} {rows:?} {col}");
                        assert!(in_whole || in_crossed || wanted == 0, "{clip:?} {rows:?} {col}");
                    }
                }
            }
        }
    }

    #[test]
    fn parts_cover_all_rows() {
        for clip in [Clip::Lower(0), Clip::Upper(0)] {
            for len in [1, 100, 513] {
                let cuts = cut(clip, len, 3, 24);
                assert_eq!((cuts[0].start, cuts[cuts.len() - 1].end), (0, len));
                assert!(cuts.windows(2).all(|pair| pair[0].end == pair[1].start));
            }
        }
    }
}
