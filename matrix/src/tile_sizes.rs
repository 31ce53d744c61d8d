//! Tile sizes, and the problems for which they are chosen.

/// Tile sizes of a multiplication, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiling {
    /// T: depth of a block (kc) and width of a strip of blocked storage.
    pub tile: usize,
    /// Rows of a block of `A` that is copied (mc).
    pub rows: usize,
    /// Columns of a block of `C` (nc).
    pub cols: usize,
}

/// The tile sizes to choose from: powers of two from 8 to 2048, and one and a half times each.
pub const GRID: &[usize] = &[8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048];

/// A problem for which tile sizes are planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Rows of C.
    pub m: usize,
    /// Columns of C.
    pub n: usize,
    /// Columns of A, rows of B.
    pub k: usize,
    /// Bytes of an element.
    pub element_bytes: usize,
}

impl Problem {
    /// N×N matrices.
    pub fn square(n: usize, element_bytes: usize) -> Problem {
        Problem { m: n, n, k: n, element_bytes }
    }
}

impl Tiling {
    /// Rounds the sizes up to whole panels of `panel` rows and to the widest column group.
    pub(crate) fn fitted(self, panel: usize) -> Tiling {
        // All are powers of two: a division would be noticeable, because a whole product may take
        // 50 ns.
        let unit = panel.max(crate::layout::COLUMN_UNIT) - 1;
        let up = |size: usize| size.clamp(1, usize::MAX / 2).saturating_add(unit) & !unit;
        Tiling { tile: up(self.tile), rows: up(self.rows), cols: up(self.cols) }
    }
}
