//! The two innermost loops: register tiles over one block of `A` and one block of `B`.
//!
//! ```text
//!              columns of C, a group of `kernel.columns` at a time
//!             +--------+--------+--------+---+
//!   1 to 3    |  tile  |  tile  |  tile  | . |   each tile: one call of a microkernel
//!   panels    +--------+--------+--------+---+
//!   of A      |        |        |        |   |   panels of A stay in L1, B's pass by
//!             +--------+--------+--------+---+
//!   last row  | narrower panels of C, fewer rows written
//! ```
//!
//! **The problem.** Full tiles run at the machine's limit; edges could cost more than the rest of a
//! small product.
//!
//! **The idea.** If the rows of `C` are adjacent, kernels write tiles straight to `C`, and edges
//! have kernels of their width. Panels are distributed so that no single one is left over. Few last
//! rows are computed with the operands' roles exchanged, a lone last column by kernels that take
//! more panels. Other strides of `C`, and complex numbers, pass through a tile on the stack.
//!
//! **Invariant.** Every entry is summed by one chain of multiply-adds in the order of `k`, however
//! it is written, so results do not depend on the place of an entry.

use super::clip::Clip;
use super::source::{PanelWalk, Plain};
use crate::kernel::{MicroKernel, MicrokernelArguments, Reach, RealKernel, MAX_PANELS};
use crate::panel::Panels;
use crate::Element;
use std::ops::Range;

/// The place of a block of `C`. Entry (i, j) is at
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

/// The memory beyond the last row and column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edge {
    /// Padding of this library's storage.
    Padded,
    /// Memory of another owner.
    Foreign,
}

/// Panels of `A`.
#[derive(Clone, Copy)]
pub(super) struct Left<T> {
    pub(super) walk: PanelWalk<T>,
    /// If the last row of tiles is stored elsewhere: its first panel and its address.
    pub(super) tail: Option<(usize, PanelWalk<T>)>,
    /// If the panels have not been copied yet: the array from which they are.
    pub(super) pending: Option<Pending<T>>,
}

/// Panels that are copied one row of tiles at a time, just before their first use: they are then
/// in the second-level cache, and not written to memory and read back.
#[derive(Clone, Copy)]
pub(super) struct Pending<T> {
    pub(super) plain: Plain<T>,
    /// The first row of the block.
    pub(super) row: usize,
    /// First step and number of steps of `k`.
    pub(super) depth: (usize, usize),
}

/// One block product: `C ← β·C + α·A·Bᵀ`, where `A` has `rows`×`depth` entries and `B`
/// `cols`×`depth`. The operands' descriptions are borrowed, because copying what was written just
/// before, in larger pieces, stalls for as long as a small product takes.
#[derive(Clone, Copy)]
pub(super) struct BlockProduct<'a, T: Element> {
    pub(super) kernel: &'static RealKernel<T::Real>,
    /// Rows of a panel, in elements.
    pub(super) panel: usize,
    pub(super) rows: usize,
    pub(super) cols: usize,
    pub(super) depth: usize,
    pub(super) alpha: T,
    pub(super) beta: T,
    pub(super) a: &'a Left<T>,
    pub(super) b: &'a PanelWalk<T>,
    /// Whether whole panels of `b` may be read beyond its last row.
    pub(super) b_edge: Edge,
    pub(super) c: &'a Target<T>,
    pub(super) reach: Reach,
    /// The entries that are wanted, by their place in this block.
    pub(super) clip: Clip,
}

/// Bytes of a cache line.
const LINE_BYTES: isize = 64;

/// The most reals in a register tile of any kernel: 48×8.
const TILE_REALS: usize = 384;

#[repr(align(64))]
struct TileBuffer<R>([R; TILE_REALS]);

impl<T: Element> BlockProduct<'_, T> {
    /// Column group of the kernel, in elements.
    #[inline]
    fn group(&self) -> usize {
        self.kernel.columns / T::PARTS
    }

    /// Runs over all register tiles.
    ///
    /// # Safety
    /// The processor has the kernel's features; the panels hold `rows` and `cols` rows and `depth`
    /// columns; only this thread writes the block of `C`, up to whole panels and column groups if
    /// its edge is `Padded`.
    #[inline(always)]
    pub(super) unsafe fn run(mut self) {
        // A few last rows come first, with the roles exchanged. All panels that are left are whole,
        // except the last.
        let last = if self.clip == Clip::None { self.rows_with_exchanged_roles() } else { 0 };
        if last > 0 {
            // SAFETY: the caller's promise.
            unsafe { self.run_last_rows(last) };
            self.rows -= last;
        }
        let panels = (self.rows + self.panel - 1) >> self.panel.trailing_zeros();
        let (tall, direct) = (self.kernel.tall, self.is_direct());
        // A single last column gets kernels of its own, which take more panels at once.
        let lone = direct && !tall.is_empty() && self.cols % self.group() == 1 && self.clip == Clip::None;
        let most = self.kernel.run.len();
        // SAFETY: the caller's promise; panels and columns are among those of the block.
        unsafe {
            // Rows of tiles are the outer loop and column groups the inner one, so the panels of A
            // stay in the first level.
            let cols = self.cols - usize::from(lone);
            self.deal(
                panels,
                |left| take(left, most),
                |first, count| {
                    self.copy_pending(first, count);
                    if self.clip == Clip::None {
                        self.run_row((first, count), 0..cols, self.kernel.run[count - 1], direct);
                    } else {
                        self.run_clipped_row((first, count), cols, direct);
                    }
                },
            );
            if lone {
                self.deal(
                    panels,
                    |left| left.min(tall.len()),
                    |first, count| {
                        self.run_row(
                            (first, count),
                            cols..cols + 1,
                            std::slice::from_ref(&tall[count - 1]),
                            direct,
                        );
                    },
                );
            }
        }
    }

    /// How many rows of the last panel are computed with the operands' roles exchanged: all of them
    /// if they fill at most half of it, otherwise none. A register then holds entries of a row, and
    /// nothing is computed for the padding, which saves 7 % at N = 97. The sums have the same terms
    /// in the same order.
    #[inline]
    fn rows_with_exchanged_roles(&self) -> usize {
        let in_panels = self.b_edge == Edge::Padded && self.b.row_stride == 1;
        let copied = self.a.tail.is_some() || self.a.pending.is_some();
        let last = self.rows & (self.panel - 1);
        let few = last <= (self.panel / 2).min(self.group()) && (last <= 1 || self.cols >= self.panel);
        match T::PARTS == 1 && in_panels && !copied && few {
            true => last,
            false => 0,
        }
    }

    /// Computes the last `count` rows, with panels of `B` as the left operand.
    ///
    /// # Safety
    /// The requirements of [`Self::run`]; `count` is [`Self::rows_with_exchanged_roles`], not 0.
    #[inline(never)]
    unsafe fn run_last_rows(&self, count: usize) {
        let (panel, walk, kernel) = (self.panel, &self.a.walk, self.kernel);
        // The rows lie alone in their panel. Panels of B are the left operand.
        let at = ((self.rows - count) >> panel.trailing_zeros()) as isize;
        let rows = walk.start.wrapping_offset(at * walk.panel_stride);
        let most = if count == 1 { kernel.tall.len().max(kernel.run.len()) } else { kernel.run.len() };
        let mut tile = TileBuffer([T::Real::ZERO; TILE_REALS]);
        debug_assert!(most * panel * count <= TILE_REALS);
        let out = tile.0.as_mut_ptr();
        for first in (0..self.cols).step_by(most * panel) {
            let cols = (self.cols - first).min(most * panel);
            let panels = cols.div_ceil(panel);
            let start = self.b.start.wrapping_offset((first / panel) as isize * self.b.panel_stride);
            // The rows serve as columns of B; the numbers of a row lie `step` apart. The tile has
            // one panel after the other, and in each a column for every row.
            let micro = MicrokernelArguments {
                k: self.depth,
                a: start.cast::<T::Real>(),
                a_panel: self.b.panel_stride,
                a_step: self.b.step,
                b: rows.cast::<T::Real>(),
                b_column: 1,
                b_step: walk.step,
                c: out,
                c_panel: (panel * count) as isize,
                c_column: panel as isize,
                last_rows: panel,
                alpha: self.alpha.re(),
                beta: self.beta.re(),
                next: start.cast::<T::Real>(),
                ahead: LINE_BYTES,
                reach: self.reach,
            };
            let run = match kernel.tall.get(panels - 1) {
                Some(tall) if count == 1 => tall,
                _ => &kernel.run[panels - 1][count - 1],
            };
            let c =
                self.c.start.wrapping_offset(at * self.c.panel_stride + first as isize * self.c.col_stride);
            let entry = |row: usize, col: usize| {
                c.wrapping_offset(row as isize * self.c.row_stride + col as isize * self.c.col_stride)
            };
            let tile = out.cast::<T>();
            let shift = panel.trailing_zeros();
            let place =
                |row: usize, col: usize| ((((col >> shift) * count) + row) << shift) + (col & (panel - 1));
            // SAFETY: whole panels of `B` are readable, and the tile has room for them; the caller
            // guarantees the entries of `C`.
            unsafe {
                // The kernel adds to what C holds, so C comes into the tile first, unless β is 0.
                if self.beta != T::ZERO {
                    each_entry((count, cols), |row, col| *tile.add(place(row, col)) = *entry(row, col));
                }
                run(&micro);
                each_entry((count, cols), |row, col| *entry(row, col) = *tile.add(place(row, col)));
            }
        }
    }

    /// Copies the panels of a row of tiles, if they are not copied yet.
    ///
    /// # Safety
    /// The requirements of [`Self::run`]; the array has the rows and the depth of this block, and
    /// nothing else uses the memory of the panels.
    #[inline]
    unsafe fn copy_pending(&self, first: usize, count: usize) {
        let Some(Pending { plain, row, depth }) = self.a.pending else { return };
        let (walk, panel) = (&self.a.walk, self.panel);
        let rows = (self.rows - first * panel).min(count * panel);
        let start = walk.start.wrapping_offset(first as isize * walk.panel_stride).cast_mut();
        let to = Panels { start, stride: walk.panel_stride as usize, panel };
        // SAFETY: these rows lie in the array, and these panels in the scratch memory of the block.
        unsafe { plain.copy((row + first * panel, rows), depth, to) };
    }

    /// Calls `row` with the first and the number of panels of every row of tiles. No row of tiles
    /// crosses the start of the tail.
    #[inline(always)]
    fn deal(&self, panels: usize, take: impl Fn(usize) -> usize, mut row: impl FnMut(usize, usize)) {
        let mut first = 0;
        while first < panels {
            // A row of tiles must not begin before the tail and end in it, because the tail's
            // panels are stored elsewhere.
            let most = match self.a.tail {
                Some((tail, _)) if first < tail => tail - first,
                _ => panels - first,
            };
            let count = take(panels - first).min(most);
            row(first, count);
            first += count;
        }
    }

    /// Whether kernels write to `C` directly.
    #[inline]
    fn is_direct(&self) -> bool {
        T::PARTS == 1 && self.c.row_stride == 1
    }

    /// Computes the wanted columns of a row of tiles: tiles that the diagonal crosses by way of the
    /// stack, the others as usual.
    ///
    /// # Safety
    /// The requirements of [`Self::run`].
    unsafe fn run_clipped_row(&self, (first, count): (usize, usize), cols: usize, direct: bool) {
        let top = first * self.panel;
        let rows = top..self.rows.min((first + count) * self.panel);
        let (whole, crossed) = self.clip.columns(rows, cols, self.group());
        let runs = self.kernel.run[count - 1];
        // SAFETY: the caller's promise; both ranges are columns of the block, and begin at a group.
        unsafe {
            if !whole.is_empty() {
                self.run_row((first, count), whole, runs, direct);
            }
            if !crossed.is_empty() {
                self.run_row((first, count), crossed, runs, false);
            }
        }
    }

    /// Multiplies `count` panels of `A`, which stay in the first-level cache, by the column groups
    /// `cols`.
    ///
    /// # Safety
    /// The requirements of [`Self::run`].
    #[inline(always)]
    unsafe fn run_row(
        &self,
        (first, count): (usize, usize),
        cols: Range<usize>,
        runs: &[MicroKernel<T::Real>],
        direct: bool,
    ) {
        // These panels lie in the operand, or in the copied tail.
        let (walk, at) = match &self.a.tail {
            Some((tail, walk)) if first >= *tail => (walk, first - tail),
            _ => (&self.a.walk, first),
        };
        let a = walk.start.wrapping_offset(at as isize * walk.panel_stride);
        let (panel, group) = (self.panel, self.group());
        let shift = panel.trailing_zeros();
        let parts = T::PARTS as isize;
        // The number of existing rows: whole panels except for the last one of the block.
        let rows = (self.rows - first * panel).min(count * panel);
        let here = rows - (count - 1) * panel;
        let c = self.c.start.wrapping_offset(first as isize * self.c.panel_stride);
        // The arguments that are equal for all column groups.
        let mut micro = MicrokernelArguments {
            k: self.depth,
            a: a.cast::<T::Real>(),
            a_panel: walk.panel_stride * parts,
            a_step: walk.step * parts,
            b: self.b.start.cast::<T::Real>(),
            b_column: if parts == 1 { self.b.row_stride } else { 1 },
            b_step: self.b.step * parts,
            c: c.cast::<T::Real>(),
            c_panel: self.c.panel_stride,
            c_column: self.c.col_stride,
            last_rows: if self.c.edge == Edge::Padded { panel } else { here },
            alpha: self.alpha.re(),
            beta: self.beta.re(),
            next: a.wrapping_offset(count as isize * walk.panel_stride).cast::<T::Real>(),
            ahead: LINE_BYTES,
            reach: self.reach,
        };
        // A kernel prefetches one line of the next panels per four steps; the next call continues
        // from there. If those panels are still to be copied, the array's columns are prefetched: a
        // call fetches one line of some columns, and several calls all lines of them.
        let ahead = self.depth / 4 * self.kernel.panel;
        let source = self.a.pending.filter(|pending| pending.plain.row_stride == 1).map(|pending| {
            let Pending { plain, row, depth } = pending;
            let start = (row + (first + count) * panel) as isize + depth.0 as isize * plain.col_stride;
            micro.ahead = plain.col_stride * size_of::<T>() as isize;
            (plain.start.wrapping_offset(start), self.depth as isize / 4 * plain.col_stride)
        });
        // A row of tiles is this many lines high, and not aligned.
        let lines = (count * self.panel * size_of::<T>()) as isize / LINE_BYTES + 1;
        let mut call = 0;
        let Range { start: mut col, end } = cols;
        while col < end {
            let cols = group.min(end - col);
            // A column of C is a row of Bᵀ: its panel, and its row there.
            let (high, low) = ((col >> shift) as isize, (col & (panel - 1)) as isize);
            let b = self.b.start.wrapping_offset(high * self.b.panel_stride + low * self.b.row_stride);
            let c = c.wrapping_offset(col as isize * self.c.col_stride);
            micro.b = b.cast::<T::Real>();
            micro.c = c.cast::<T::Real>();
            if let Some((start, columns)) = source {
                // Each line of all columns takes four calls. Later ones would ask for columns that
                // are not part of this block, and may lie outside of the array.
                if call < 4 * lines {
                    let line = start.wrapping_offset(call / lines * columns);
                    micro.next = line.wrapping_byte_offset(call % lines * LINE_BYTES).cast::<T::Real>();
                } else {
                    (micro.next, micro.ahead) = (micro.b, 0);
                }
                call += 1;
            }
            // Complex columns are two real ones each.
            let run = runs[cols * T::PARTS - 1];
            // SAFETY: the pointers are those of this tile of the block; a `Kernel` is chosen only
            // if the processor has its features.
            unsafe {
                if direct {
                    run(&micro);
                } else {
                    self.by_way_of_stack(run, micro, c, (rows, cols), (first * self.panel, col));
                }
            }
            micro.next = micro.next.wrapping_add(ahead);
            col += group;
        }
    }

    /// Computes the product of one tile on the stack, and adds it to `C` from there.
    ///
    /// # Safety
    /// The requirements of [`Self::run`].
    unsafe fn by_way_of_stack(
        &self,
        run: MicroKernel<T::Real>,
        mut micro: MicrokernelArguments<T::Real>,
        c: *mut T,
        shape: (usize, usize),
        corner: (usize, usize),
    ) {
        let is_wanted = |place: TileEntry| {
            let row = corner.0 + place.panel * self.panel + place.row;
            self.clip == Clip::None || self.clip.wants(row, corner.1 + place.col)
        };
        let mut tile = TileBuffer([T::Real::ZERO; TILE_REALS]);
        debug_assert!(MAX_PANELS * self.kernel.panel * self.kernel.columns <= TILE_REALS);
        // The tile on the stack: panel after panel, column after column.
        let strides = (self.kernel.panel * self.kernel.columns, self.kernel.panel);
        let out = tile.0.as_mut_ptr();
        (micro.c, micro.c_panel, micro.c_column) = (out, strides.0 as isize, strides.1 as isize);
        micro.last_rows = self.kernel.panel;
        // SAFETY: the tile on the stack is as large as the largest register tile; `shape` lies
        // within `C`.
        unsafe {
            if T::PARTS == 1 {
                let real = out.cast::<T>();
                if self.beta != T::ZERO {
                    self.each(c, shape, |at, place| *real.add(place.on_stack(strides)) = *at);
                }
                run(&micro);
                self.each(c, shape, |at, place| {
                    if is_wanted(place) {
                        *at = *real.add(place.on_stack(strides));
                    }
                });
            } else {
                // Four real sums make a complex entry; α and β are applied to the entry.
                (micro.alpha, micro.beta) = (T::Real::ONE, T::Real::ZERO);
                run(&micro);
                self.each(c, shape, |at, place| {
                    if !is_wanted(place) {
                        return;
                    }
                    let product = self.alpha * T::from_products(place.products(out, strides));
                    *at = if self.beta == T::ZERO { product } else { product + self.beta * *at };
                });
            }
        }
    }

    /// Calls `visit` with every entry of a tile of `C` and its place.
    #[inline]
    fn each(&self, c: *mut T, (rows, cols): (usize, usize), mut visit: impl FnMut(*mut T, TileEntry)) {
        for col in 0..cols {
            let column = c.wrapping_offset(col as isize * self.c.col_stride);
            // Goes down the column, panel by panel.
            let mut left = rows;
            let mut panel = 0;
            while left > 0 {
                let top = column.wrapping_offset(panel as isize * self.c.panel_stride);
                for row in 0..left.min(self.panel) {
                    visit(
                        top.wrapping_offset(row as isize * self.c.row_stride),
                        TileEntry { panel, row, col },
                    );
                }
                left = left.saturating_sub(self.panel);
                panel += 1;
            }
        }
    }
}

/// An entry of a register tile: its panel, its row there, its column.
#[derive(Clone, Copy)]
struct TileEntry {
    panel: usize,
    row: usize,
    col: usize,
}

impl TileEntry {
    /// The index of a real entry of the tile on the stack; `strides` are the distances from panel
    /// to panel and from column to column.
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

/// Calls `visit` with every row and column, column by column.
#[inline(always)]
fn each_entry((rows, cols): (usize, usize), mut visit: impl FnMut(usize, usize)) {
    (0..cols).for_each(|col| (0..rows).for_each(|row| visit(row, col)));
}

/// How many of the `left` panels the next row of tiles takes: `most`, unless that leaves a single
/// panel where two and two are possible. (A lone panel is bound by loads, not by multiplications.)
fn take(left: usize, most: usize) -> usize {
    if left == most + 1 && most > 2 {
        left.div_ceil(2)
    } else {
        left.min(most)
    }
}

/// The first of the panels in the last row of tiles.
pub(super) fn last_row_of_tiles(panels: usize, most: usize) -> usize {
    let mut first = 0;
    while panels - first > take(panels - first, most) {
        first += take(panels - first, most);
    }
    first
}

#[cfg(test)]
mod tests {
    use super::{last_row_of_tiles, take};

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
        assert_eq!([1, 3, 4, 7, 8].map(|panels| last_row_of_tiles(panels, 3)), [0, 0, 2, 5, 6]);
    }
}
