//! Fast indexing: an index is spread over the bits that a mask selects, and incremented in that
//! form.
//!
//! ```text
//! element (i, j) of an array of tiles T×T:     bits from high to low
//!   | tile row i/T | tile column j/T | row in tile i mod T | column in tile j mod T |
//!   row mask    1…1            0…0                   1…1                      0…0
//!   column mask 0…0            1…1                   0…0                      1…1
//! ```
//!
//! `offset = row(i) | column(j)`. The next row is `((row | !mask) + 1) & mask`: the bits of the
//! other index are set, so the carry runs through them.
//!
//! Source: Athanasaki and Koziris 2004 (INTERACT-8), as used in section 1 of the paper; dilated
//! integers.

/// The masks of an array of `2^b` × `2^b` tiles of T×T elements, T a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Masks {
    /// log₂ T.
    tile_bits: u32,
    /// log₂ of the tiles in a row of tiles.
    grid_bits: u32,
}

impl Masks {
    /// Masks for `tiles` tiles across (rounded up to a power of two) of `tile` columns; `None`
    /// unless `tile` is a power of two and the offsets fit a `usize`.
    pub fn new(tile: usize, tiles: usize) -> Option<Masks> {
        let grid = tiles.checked_next_power_of_two()?;
        let masks = Masks { tile_bits: tile.trailing_zeros(), grid_bits: grid.trailing_zeros() };
        let bits = 2 * (masks.tile_bits + masks.grid_bits);
        (tile.is_power_of_two() && bits < usize::BITS).then_some(masks)
    }

    /// The tile size T.
    pub fn tile(self) -> usize {
        1 << self.tile_bits
    }

    /// The number of elements of the whole array.
    pub fn len(self) -> usize {
        1 << (2 * (self.tile_bits + self.grid_bits))
    }

    /// Whether the array is empty, which it never is: it has at least one tile.
    pub fn is_empty(self) -> bool {
        false
    }

    /// The mask of the bits that hold the row.
    #[inline]
    pub fn rows(self) -> usize {
        let (t, g) = (self.tile_bits, self.grid_bits);
        ones(t) << t | ones(g) << (2 * t + g)
    }

    /// The mask of the bits that hold the column.
    #[inline]
    pub fn columns(self) -> usize {
        let (t, g) = (self.tile_bits, self.grid_bits);
        ones(t) | ones(g) << (2 * t)
    }

    /// Row `i`, spread over [`Self::rows`].
    #[inline]
    pub fn row(self, i: usize) -> usize {
        let t = self.tile_bits;
        (i & ones(t)) << t | (i >> t) << (2 * t + self.grid_bits)
    }

    /// Column `j`, spread over [`Self::columns`].
    #[inline]
    pub fn column(self, j: usize) -> usize {
        let t = self.tile_bits;
        j & ones(t) | (j >> t) << (2 * t)
    }

    /// The place of element (i, j).
    #[inline]
    pub fn offset(self, i: usize, j: usize) -> usize {
        self.row(i) | self.column(j)
    }

    /// The row after a spread row.
    #[inline]
    pub fn next_row(self, row: usize) -> usize {
        step(row, self.rows())
    }

    /// The column after a spread column.
    #[inline]
    pub fn next_column(self, column: usize) -> usize {
        step(column, self.columns())
    }
}

fn ones(bits: u32) -> usize {
    (1 << bits) - 1
}

/// The successor of `value` within the bits of `mask`.
#[inline]
pub fn step(value: usize, mask: usize) -> usize {
    (value | !mask).wrapping_add(1) & mask
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_visit_every_row_and_column_in_order() {
        for (tile, tiles) in [(1, 1), (1, 8), (4, 1), (4, 4), (8, 3), (16, 2)] {
            let masks = Masks::new(tile, tiles).unwrap();
            assert_eq!(masks.rows() & masks.columns(), 0);
            assert_eq!(masks.rows() | masks.columns(), masks.len() - 1);
            let (mut row, mut column) = (masks.row(0), masks.column(0));
            for i in 0..tile * tiles {
                assert_eq!((row, column), (masks.row(i), masks.column(i)), "tile {tile}, {i}");
                (row, column) = (masks.next_row(row), masks.next_column(column));
            }
        }
    }

    #[test]
    fn tiles_are_contiguous() {
        let masks = Masks::new(4, 4).unwrap();
        assert_eq!(masks.offset(0, 0), 0);
        assert_eq!(masks.offset(3, 3), 15);
        assert_eq!(masks.offset(0, 4), 16);
        assert_eq!(masks.offset(4, 0), 64);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert_eq!(Masks::new(3, 4), None);
        assert_eq!(Masks::new(0, 4), None);
        assert_eq!(Masks::new(1 << 20, 1 << 20), None);
    }
}
