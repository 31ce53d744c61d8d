//! The two innermost loops: register tiles over one block of `A` and one block of `B`.
//!
//! Full tiles go straight to `C` when its rows are adjacent; edges of plain arrays, other strides and complex
//! numbers pass through a tile on the stack, by the same kernel and the same arithmetic, so that an entry does not
//! depend on the way it was written.

use crate::kernel::{Micro, MicroKernel, Reach, RealKernel, MAX_PANELS};
use crate::panel::Panels;
use crate::Element;

/// Where a block of `C` lies. Entry (i, j) is at
/// `start + (i / panel)·panel_stride + (i % panel)·row_stride + j·col_stride`.
#[derive(Clone, Copy)]
pub(super) struct Target<T> {
    pub(super) start: *mut T,
    pub(super) panel_stride: isize,
    pub(super) row_stride: isize,
    pub(super) col_stride: isize,
    /// Whether whole panels and column groups may be written beyond the edge.
    pub(super) edge: Edge,
}

/// What lies beyond the last row and column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edge {
    /// Padding of our own.
    Padded,
    /// Somebody else's memory.
    Foreign,
}

/// One block product: `C ← β·C + α·A·Bᵀ`, `A` of `rows`×`depth`, `B` of `cols`×`depth`.
#[derive(Clone, Copy)]
pub(super) struct BlockProduct<T: Element> {
    pub(super) kernel: &'static RealKernel<T::Real>,
    pub(super) rows: usize,
    pub(super) cols: usize,
    pub(super) depth: usize,
    pub(super) alpha: T,
    pub(super) beta: T,
    pub(super) a: Panels<*const T>,
    pub(super) b: Panels<*const T>,
    pub(super) c: Target<T>,
    pub(super) reach: Reach,
}

/// Most reals in a register tile of any kernel: 48×8.
const TILE_REALS: usize = 384;

#[repr(align(64))]
struct TileBuffer<R>([R; TILE_REALS]);

impl<T: Element> BlockProduct<T> {
    /// Column group of the kernel, in elements.
    fn group(&self) -> usize {
        self.kernel.columns / T::PARTS
    }

    /// Runs over all register tiles.
    ///
    /// # Safety
    /// The kernel's features are there; the panels hold `rows`, `cols` rows and `depth` columns; the block of `C` is
    /// writable by this thread alone, up to whole panels and column groups when its edge is `Padded`.
    pub(super) unsafe fn run(&self) {
        let (panel, most) = (self.a.panel, self.kernel.run.len());
        let panels = (self.rows + panel - 1) >> panel.trailing_zeros();
        let mut first = 0;
        while first < panels {
            let count = take(panels - first, most);
            // SAFETY: panels `first..first + count` are among those of the block.
            unsafe { self.run_row(first, count) };
            first += count;
        }
    }

    /// All column groups against `count` panels of `A`, which stay in the first-level cache meanwhile.
    ///
    /// # Safety
    /// As for [`Self::run`].
    unsafe fn run_row(&self, first: usize, count: usize) {
        let (panel, group) = (self.a.panel, self.group());
        let shift = panel.trailing_zeros();
        let a = self.a.start.wrapping_add(first * self.a.stride);
        let mut next = a.wrapping_add(count * self.a.stride);
        let rows = (self.rows - first * panel).min(count * panel);
        for col in (0..self.cols).step_by(group) {
            let cols = group.min(self.cols - col);
            let b = self.b.start.wrapping_add((col >> shift) * self.b.stride + (col & (panel - 1)));
            let c = self
                .c
                .start
                .wrapping_offset(first as isize * self.c.panel_stride + col as isize * self.c.col_stride);
            let whole = rows == count * panel && cols == group;
            let direct = T::PARTS == 1 && self.c.row_stride == 1 && (whole || self.c.edge == Edge::Padded);
            // SAFETY: pointers to this tile of the block; direct only where a whole tile may be written.
            unsafe {
                if direct {
                    let (panel_stride, column) = (self.c.panel_stride as usize, self.c.col_stride as usize);
                    let run = self.runs(count, cols);
                    self.micro(run, a, b, c.cast(), (panel_stride, column), (self.alpha, self.beta), next);
                } else {
                    self.by_way_of_stack(count, a, b, c, (rows, cols), next);
                }
            }
            next = next.wrapping_add(self.depth / 4 * panel);
        }
    }

    /// The kernel for `count` panels and `cols` columns of a group: half a group has kernels of its own.
    #[inline]
    fn runs(&self, count: usize, cols: usize) -> MicroKernel<T::Real> {
        match self.kernel.half.get(count - 1) {
            Some(&half) if 2 * cols <= self.group() => half,
            _ => self.kernel.run[count - 1],
        }
    }

    /// One call of the kernel, on reals.
    ///
    /// # Safety
    /// As for [`crate::kernel::MicroKernel`].
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the inner loop hands over one register tile")]
    unsafe fn micro(
        &self,
        run: MicroKernel<T::Real>,
        a: *const T,
        b: *const T,
        c: *mut T::Real,
        (c_panel, c_column): (usize, usize),
        (alpha, beta): (T, T),
        next: *const T,
    ) {
        let micro = Micro {
            k: self.depth,
            a: a.cast::<T::Real>(),
            a_panel: self.a.stride * T::PARTS,
            b: b.cast::<T::Real>(),
            c,
            c_panel,
            c_column,
            alpha: alpha.re(),
            beta: beta.re(),
            next: next.cast::<T::Real>(),
            reach: self.reach,
        };
        // SAFETY: the caller vouches for the pointers; a `Kernel` is chosen only where its features are present.
        unsafe { run(&micro) }
    }

    /// The product of one tile on the stack, and from there into `C`.
    ///
    /// # Safety
    /// As for [`Self::run`].
    unsafe fn by_way_of_stack(
        &self,
        count: usize,
        a: *const T,
        b: *const T,
        c: *mut T,
        shape: (usize, usize),
        next: *const T,
    ) {
        let mut tile = TileBuffer([T::Real::ZERO; TILE_REALS]);
        debug_assert!(
            count <= MAX_PANELS && MAX_PANELS * self.kernel.panel * self.kernel.columns <= TILE_REALS
        );
        let strides = (self.kernel.panel * self.kernel.columns, self.kernel.panel);
        let (out, run) = (tile.0.as_mut_ptr(), self.runs(count, shape.1));
        // SAFETY: the tile on the stack is as large as the largest register tile; `shape` lies within `C`.
        unsafe {
            if T::PARTS == 1 {
                let real = out.cast::<T>();
                if self.beta != T::ZERO {
                    self.each(c, shape, |at, place| *real.add(place.on_stack(strides)) = *at);
                }
                self.micro(run, a, b, out, strides, (self.alpha, self.beta), next);
                self.each(c, shape, |at, place| *at = *real.add(place.on_stack(strides)));
            } else {
                self.micro(run, a, b, out, strides, (T::ONE, T::ZERO), next);
                self.each(c, shape, |at, place| {
                    let product = self.alpha * T::from_products(place.products(out, strides));
                    *at = if self.beta == T::ZERO { product } else { product + self.beta * *at };
                });
            }
        }
    }

    /// Calls `f` with every entry of a tile of `C` and its place.
    #[inline]
    fn each(&self, c: *mut T, (rows, cols): (usize, usize), mut f: impl FnMut(*mut T, Place)) {
        for col in 0..cols {
            let column = c.wrapping_offset(col as isize * self.c.col_stride);
            let mut left = rows;
            let mut panel = 0;
            while left > 0 {
                let top = column.wrapping_offset(panel as isize * self.c.panel_stride);
                for row in 0..left.min(self.a.panel) {
                    f(top.wrapping_offset(row as isize * self.c.row_stride), Place { panel, row, col });
                }
                left = left.saturating_sub(self.a.panel);
                panel += 1;
            }
        }
    }
}

/// An entry of a register tile: its panel, its row there, its column.
#[derive(Clone, Copy)]
struct Place {
    panel: usize,
    row: usize,
    col: usize,
}

impl Place {
    /// Index of a real entry of the tile on the stack; `strides` from panel to panel and column to column.
    #[inline]
    fn on_stack(self, strides: (usize, usize)) -> usize {
        self.panel * strides.0 + self.col * strides.1 + self.row
    }

    /// The four sums of a complex entry.
    ///
    /// # Safety
    /// `out` is a tile on the stack that a kernel has written.
    #[inline]
    unsafe fn products<R: Copy>(self, out: *const R, strides: (usize, usize)) -> [R; 4] {
        let first = out.wrapping_add(self.panel * strides.0 + 2 * self.col * strides.1 + 2 * self.row);
        let second = first.wrapping_add(strides.1);
        // SAFETY: two rows in each of two columns of the tile.
        unsafe { [*first, *first.wrapping_add(1), *second, *second.wrapping_add(1)] }
    }
}

/// How many of `left` panels the next row of tiles takes: `most`, but never leaving a single one where two and two
/// would do (a lone panel is bound by loads, not by multiplications).
fn take(left: usize, most: usize) -> usize {
    if left == most + 1 && most > 2 {
        left.div_ceil(2)
    } else {
        left.min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::take;

    #[test]
    fn panels_are_dealt_without_leaving_single_ones() {
        let deal = |mut left: usize| {
            let mut counts = Vec::new();
            while left > 0 {
                counts.push(take(left, 3));
                left -= counts[counts.len() - 1];
            }
            counts
        };
        assert_eq!(deal(4), [2, 2]);
        assert_eq!(deal(7), [3, 2, 2]);
        assert_eq!(deal(8), [3, 3, 2]);
        assert_eq!(deal(1), [1]);
    }
}
