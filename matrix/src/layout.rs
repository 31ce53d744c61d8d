//! The place of each element of a blocked matrix.
//!
//! ```text
//!            strip 0        strip 1     (width T, the last one narrower)
//!         +------------+------------+---
//! panel 0 |1 4 7 …     |            |      a panel: `panel` rows, column after column,
//!         |2 5 8       |            |      one or two vector registers per column
//!         |3 6 9       |            |
//!         +------------+------------+---
//! panel 1 |            |            |      storage order: all panels of strip 0, top to bottom,
//!         +------------+------------+---   then those of strip 1, …
//! ```
//!
//! A *tile* is the crossing of a strip with T rows: one contiguous piece of memory, as in the paper
//! (Athanasaki et al. 2006, section 3). Any other run of panels is contiguous too, so a
//! multiplication may cut rows between any two panels. Offsets are separable into a row part and a
//! column part; if T is a power of two, both are bit fields of the indices (`paper::mask` has the
//! pure form).
//!
//! Padding fills rows up to a whole panel, and the last strip up to a multiple of 8 columns. It may
//! hold anything.

use crate::Error;

/// Widths of strips are multiples of this, which is the widest column group of a kernel.
pub(crate) const COLUMN_UNIT: usize = 8;

/// Shape and addressing of a blocked matrix. All numbers count elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    rows: usize,
    cols: usize,
    panel: usize,
    tile: usize,
    rows_padded: usize,
    /// The distance from one panel of strip 0 to the next, which small products ask for.
    first_stride: usize,
}

impl Layout {
    /// `rows`×`cols` in panels of `panel` rows and strips of `tile` columns (rounded up to whole
    /// panels and to the widest column group, 8).
    ///
    /// # Errors
    /// [`Error::TooLarge`] when the padded size overflows, [`Error::Invalid`] for a tile or panel
    /// of 0.
    pub fn new(rows: usize, cols: usize, panel: usize, tile: usize) -> Result<Layout, Error> {
        if !panel.is_power_of_two() {
            return Err(Error::Invalid { field: "panel", value: panel, expected: "a power of two" });
        }
        if tile == 0 {
            return Err(Error::Invalid { field: "tile", value: tile, expected: "at least 1" });
        }
        let too_large = Error::TooLarge { rows, cols };
        let tile = tile.checked_next_multiple_of(COLUMN_UNIT.max(panel)).ok_or(too_large.clone())?;
        let rows_padded = rows.checked_next_multiple_of(panel).ok_or(too_large.clone())?;
        let cols_padded = cols.checked_next_multiple_of(COLUMN_UNIT).ok_or(too_large.clone())?;
        match rows_padded.checked_mul(cols_padded) {
            Some(len) if len <= isize::MAX as usize / 16 => {
                let first_stride = panel * cols_padded.min(tile);
                Ok(Layout { rows, cols, panel, tile, rows_padded, first_stride })
            }
            _ => Err(too_large),
        }
    }

    /// The number of rows.
    #[inline]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns.
    #[inline]
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Rows per panel.
    #[inline]
    pub fn panel(&self) -> usize {
        self.panel
    }

    /// T, the columns per strip and rows per tile: a multiple of the panel.
    #[inline]
    pub fn tile(&self) -> usize {
        self.tile
    }

    /// The number of tiles downwards and across.
    pub fn tiles(&self) -> (usize, usize) {
        (self.rows.div_ceil(self.tile), self.cols.div_ceil(self.tile))
    }

    /// The number of stored elements, including padding.
    pub fn len(&self) -> usize {
        self.rows_padded * self.cols.next_multiple_of(COLUMN_UNIT)
    }

    /// Whether there is nothing to store.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of columns of strip `strip`, including padding.
    #[inline]
    pub fn strip_width(&self, strip: usize) -> usize {
        (self.cols - strip * self.tile).next_multiple_of(COLUMN_UNIT).min(self.tile)
    }

    /// The distance in elements from one panel of strip `strip` to the next.
    #[inline]
    pub fn panel_stride(&self, strip: usize) -> usize {
        self.panel * self.strip_width(strip)
    }

    /// The strip that holds column `col`, and the column's place in it; computed by shift and mask
    /// if T is a power of two.
    #[inline]
    pub fn strip_of(&self, col: usize) -> (usize, usize) {
        if self.tile.is_power_of_two() {
            (col >> self.tile.trailing_zeros(), col & (self.tile - 1))
        } else {
            (col / self.tile, col % self.tile)
        }
    }

    /// The distance in elements from one panel of strip 0 to the next.
    #[inline]
    pub(crate) fn first_panel_stride(&self) -> usize {
        self.first_stride
    }

    /// The index in the storage of element (`row`, `col`). It is meaningful for `row` below the
    /// padded number of rows and `col` below the number of columns.
    #[inline]
    pub fn offset(&self, row: usize, col: usize) -> usize {
        let (strip, in_strip) = self.strip_of(col);
        let (panel, in_panel) = (row >> self.panel.trailing_zeros(), row & (self.panel - 1));
        strip * self.tile * self.rows_padded
            + panel * self.panel_stride(strip)
            + in_strip * self.panel
            + in_panel
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_has_its_own_place() {
        for (rows, cols, panel, tile) in [(1, 1, 4, 8), (17, 29, 8, 8), (40, 50, 16, 24), (5, 64, 4, 64)] {
            let layout = Layout::new(rows, cols, panel, tile).unwrap();
            let mut seen = vec![false; layout.len()];
            for row in 0..rows {
                for col in 0..cols {
                    assert!(!std::mem::replace(&mut seen[layout.offset(row, col)], true));
                }
            }
            assert_eq!(layout.first_panel_stride(), layout.panel_stride(0));
        }
    }

    #[test]
    fn sizes_that_overflow_are_refused() {
        assert!(matches!(Layout::new(usize::MAX, 2, 8, 8), Err(Error::TooLarge { .. })));
        assert!(matches!(Layout::new(1 << 40, 1 << 40, 8, 8), Err(Error::TooLarge { .. })));
        assert!(matches!(Layout::new(1, 1, 8, 0), Err(Error::Invalid { .. })));
    }
}
