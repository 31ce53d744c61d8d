//! The plan: tile sizes.

use crate::Element;

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

impl Tiling {
    /// default
    pub fn default_for<T: Element>(_k: usize) -> Tiling {
        let tile = std::env::var("TT").ok().and_then(|v| v.parse().ok()).unwrap_or(256);
        let cols = std::env::var("NC").ok().and_then(|v| v.parse().ok()).unwrap_or(128);
        Tiling { tile, rows: 480, cols }
    }
    /// copies
    pub fn for_copies<T: Element>(_k: usize) -> Tiling {
        Tiling { tile: 256, rows: 480, cols: 4096 }
    }
    pub(crate) fn fitted(self, panel: usize) -> Tiling {
        let up = |v: usize| v.max(1).next_multiple_of(panel.max(8));
        Tiling { tile: up(self.tile), rows: up(self.rows), cols: up(self.cols) }
    }
}
