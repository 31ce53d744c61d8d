//! The three outer loops: blocks of columns, of depth, of rows.
//!
//! ```text
//! operands in place                             A copied
//! for jc in columns by nc                       for kc in depth
//!   for kc in depth by strips                     for ic in rows by mc       A[ic, kc] packed
//!     Bᵀ[jc, kc]: second-level cache                for jc in columns by nc  Bᵀ packed or in place
//!     register tiles (tile.rs)                        register tiles
//! ```
//!
//! A block of C's columns never crosses the end of a strip of a blocked C, and a block of depth
//! never that of an operand in place. Source: Goto and van de Geijn 2008, with storage that already
//! has the packed form.

use super::clip::Clip;
use super::source::{PanelWalk, Plain, Source};
use super::tile::{last_row_of_tiles, BlockProduct, Edge, Left, Pending, Target};
use crate::buffer::Buffer;
use crate::kernel::{Reach, RealKernel, MAX_PANELS};
use crate::layout::COLUMN_UNIT;
use crate::panel::Panels;
use crate::tile_sizes::Tiling;
use crate::tiling::Host;
use crate::view::Part;
use crate::{Element, Error};
use std::ops::Range;

/// Columns that are as far apart lie in pages of their own.
const PAGE_BYTES: usize = 4096;

/// The memory of C.
#[derive(Clone, Copy)]
pub(super) enum Destination<T> {
    /// Blocked.
    Stored { storage: *mut T, part: Part },
    /// A plain array.
    Plain { start: *mut T, row_stride: isize, col_stride: isize },
}

// SAFETY: threads write disjoint rows and columns of C (see `threads.rs`), within the borrow from
// which the job was made.
unsafe impl<T: Send> Sync for Destination<T> {}
// SAFETY: a thread that gets a `Destination` writes its own rows and columns of C only, within that
// borrow.
unsafe impl<T: Send> Send for Destination<T> {}

impl<T: Element> Destination<T> {
    /// The number of columns from `col` on that can be addressed with one stride.
    fn col_limit(&self, col: usize) -> usize {
        match self {
            Destination::Stored { part, .. } => part.layout.tile() - part.layout.strip_of(col).1,
            Destination::Plain { .. } => usize::MAX,
        }
    }

    /// The block that starts at (`row`, `col`).
    fn target(&self, row: usize, col: usize, panel: usize) -> Target<T> {
        match *self {
            Destination::Stored { storage, ref part } => stored(storage, part, (row, col)),
            Destination::Plain { start, row_stride, col_stride } => Target {
                start: start.wrapping_offset(row as isize * row_stride + col as isize * col_stride),
                panel_stride: panel as isize * row_stride,
                row_stride,
                col_stride,
                edge: Edge::Foreign,
            },
        }
    }
}

/// The block of a blocked C that starts at (`row`, `col`) of `part`.
#[inline]
pub(super) fn stored<T: Element>(storage: *mut T, part: &Part, (row, col): (usize, usize)) -> Target<T> {
    let (row, col) = (part.first_row + row, part.first_col + col);
    Target {
        start: storage.wrapping_add(part.layout.offset(row, col)),
        panel_stride: part.layout.panel_stride(part.layout.strip_of(col).0) as isize,
        row_stride: 1,
        col_stride: part.layout.panel() as isize,
        edge: Edge::Padded,
    }
}

/// A whole multiplication `C ← α·A·Bᵀ + β·C`: `A` has m×k entries and `B` n×k after their
/// operators.
#[derive(Clone, Copy)]
pub(super) struct Job<T: Element> {
    pub(super) kernel: &'static RealKernel<T::Real>,
    pub(super) tiling: Tiling,
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) k: usize,
    pub(super) alpha: T,
    pub(super) beta: T,
    pub(super) a: Source<T>,
    pub(super) b: Source<T>,
    pub(super) c: Destination<T>,
    pub(super) reach: Reach,
    pub(super) clip: Clip,
}

/// The cache level in which the operands of C (m×n) ← A (m×k) · B are expected: up to twice the
/// second level in all are in or near it. Their arrays are then multiplied in place, if they can
/// be, and nothing is prefetched: at N = 256, prefetching costs 2 % and gains nothing.
pub(super) fn reach<T>(m: usize, n: usize, k: usize) -> Reach {
    let area = |a: usize, b: usize| a.saturating_mul(b).saturating_mul(size_of::<T>());
    let all = area(m, k).saturating_add(area(k, n)).saturating_add(area(m, n));
    match all <= Host::get().near_bytes {
        true => Reach::Near,
        false => Reach::Far,
    }
}

impl<T: Element> Job<T> {
    /// Rows per panel, in elements.
    pub(super) fn panel(&self) -> usize {
        self.kernel.panel / T::PARTS
    }

    /// The depth of the block that starts at `k`.
    #[inline]
    fn depth(&self, k: usize) -> usize {
        let limit = self.a.depth_limit(k).min(self.b.depth_limit(k));
        if limit == usize::MAX {
            // Blocks get equal depths, so that there is no short last one.
            let left = self.k - k;
            return left.div_ceil(left.div_ceil(self.tiling.tile));
        }
        limit.min(self.tiling.tile.max(1)).min(self.k - k)
    }

    /// Scratch elements that [`Self::run`] needs for `A` and for `B`.
    fn scratch_len(&self, rows: usize, cols: usize) -> (usize, usize) {
        let (panel, depth) = (self.panel(), self.tiling.tile.min(self.k));
        let len = |count: usize| count.next_multiple_of(panel) * depth;
        let a = match self.a {
            Source::Stored { .. } => 0,
            Source::InPlace(_) if rows.is_multiple_of(panel) => 0,
            Source::InPlace(_) => len(MAX_PANELS * panel),
            Source::Copied(_) | Source::Transposed { .. } => len(rows.min(self.tiling.rows)),
        };
        (a, if self.b.copies() { len(cols.min(self.tiling.cols)) } else { 0 })
    }

    /// Whether `depth` columns of an array are in so many pages that prefetching a line of each,
    /// while a row of tiles is multiplied, takes the second-level TLB from the other operands.
    fn is_scattered(&self, plain: &Plain<T>, depth: usize) -> bool {
        let stride = plain.col_stride.unsigned_abs().saturating_mul(size_of::<T>());
        stride >= PAGE_BYTES && depth > Host::get().far_columns
    }

    /// The panels of the rows (start, length) of `A`. Of an array in place, the panels of an
    /// incomplete last row of tiles are copied; those of an array to be copied are pending, unless
    /// it is scattered.
    ///
    /// # Safety
    /// The requirements of [`Source::block`].
    unsafe fn left(&self, (row, rows): (usize, usize), k: (usize, usize), scratch: *mut T) -> Left<T> {
        let panel = self.panel();
        if let Source::Copied(plain) = self.a {
            if !self.is_scattered(&plain, k.1) {
                let walk = PanelWalk::of(Panels { start: scratch, stride: panel * k.1, panel });
                return Left { walk, tail: None, pending: Some(Pending { plain, row, depth: k }) };
            }
        }
        // SAFETY: the caller's promise; the tail lies inside the block.
        unsafe {
            let walk = self.a.block((row, rows), k, panel, scratch);
            let tail = match self.a {
                Source::InPlace(plain) if !rows.is_multiple_of(panel) => {
                    let first = last_row_of_tiles(rows.div_ceil(panel), self.kernel.run.len());
                    let to = Panels { start: scratch, stride: panel * k.1, panel };
                    Some((first, plain.copy((row + first * panel, rows - first * panel), k, to)))
                }
                _ => None,
            };
            Left { walk, tail, pending: None }
        }
    }

    /// Computes rows `rows` and columns `cols` of `C`. Both start at a multiple of the panel.
    ///
    /// # Safety
    /// The operands and `C` are alive and as large as the job says, the processor has the kernel's
    /// features, and nothing else touches these rows and columns of `C` meanwhile.
    pub(super) unsafe fn run(&self, rows: Range<usize>, cols: Range<usize>) -> Result<(), Error> {
        if rows.is_empty() || cols.is_empty() {
            return Ok(());
        }
        if self.is_one_block(&rows, &cols) {
            // Products of a few dozen rows take less time than the loops below.
            let (rows, cols) = ((rows.start, rows.len()), (cols.start, cols.len()));
            let scratch = std::ptr::null_mut();
            // SAFETY: the caller guarantees all ranges; nothing is copied, so scratch memory is not
            // needed.
            unsafe {
                let walk = self.a.block(rows, (0, self.k), self.panel(), scratch);
                self.block(rows, cols, (0, self.k), &Left { walk, tail: None, pending: None }, scratch);
            }
            return Ok(());
        }
        if let Some(plain) = self.own_transpose(rows.end) {
            // SAFETY: the caller's promise.
            return unsafe { self.run_on_own_transpose(plain, rows, cols) };
        }
        let (a_len, b_len) = self.scratch_len(rows.len(), cols.len());
        let mut a_scratch = (a_len > 0).then(|| Buffer::<T>::scratch(a_len)).transpose()?;
        let mut b_scratch = (b_len > 0).then(|| Buffer::<T>::scratch(b_len)).transpose()?;
        let a_scratch = a_scratch.as_mut().map_or(std::ptr::null_mut(), |scratch| scratch.as_mut_ptr());
        let b_scratch = b_scratch.as_mut().map_or(std::ptr::null_mut(), |scratch| scratch.as_mut_ptr());
        let scratch = (a_scratch, b_scratch);
        if !matches!(self.a, Source::Stored { .. }) {
            // Copies of A are made once for all columns.
            for (k, depth) in self.depths(0..self.k) {
                for (row, count) in self.row_blocks(&rows) {
                    // SAFETY: a sub-range of what the caller guarantees; scratch memory was made
                    // for the largest block.
                    let mut a = unsafe { self.left((row, count), (k, depth), scratch.0) };
                    let cols = match self.clip {
                        Clip::None => cols.clone(),
                        clip => clip.reached(row..row + count, cols.clone(), self.panel()),
                    };
                    for cols in self.column_blocks(&cols) {
                        // SAFETY: rows, columns and depth lie in the ranges that the caller
                        // guarantees.
                        unsafe { self.block((row, count), cols, (k, depth), &a, scratch.1) };
                        // The first columns have had all panels copied.
                        a.pending = None;
                    }
                }
            }
        } else {
            // Blocks of columns of C stay near from one depth to the next.
            for cols in self.column_blocks(&cols) {
                for (k, depth) in self.depths(0..self.k) {
                    let rows = (rows.start, rows.len());
                    // SAFETY: rows, columns and depth lie in the ranges that the caller guarantees;
                    // scratch memory fits the block.
                    unsafe {
                        let a = self.left(rows, (k, depth), scratch.0);
                        self.block(rows, cols, (k, depth), &a, scratch.1);
                    }
                }
            }
        }
        Ok(())
    }

    /// The array, if the lower triangle of `A·Aᵀ` is computed, and a copy of its first `rows` rows
    /// may serve as both operands.
    fn own_transpose(&self, rows: usize) -> Option<Plain<T>> {
        match (self.a, self.b, self.clip) {
            (Source::Copied(a), Source::Copied(b), Clip::Lower(0)) if a == b && rows <= self.tiling.rows => {
                Some(a)
            }
            _ => None,
        }
    }

    /// Computes the wanted entries of rows `rows` and columns `cols` of `A·Aᵀ`, whose rows are
    /// copied once. A row of tiles needs no columns beyond its last row, and is copied before it is
    /// computed.
    ///
    /// # Safety
    /// The requirements of [`Self::run`].
    #[inline(never)]
    unsafe fn run_on_own_transpose(
        &self,
        plain: Plain<T>,
        rows: Range<usize>,
        cols: Range<usize>,
    ) -> Result<(), Error> {
        let panel = self.panel();
        let mut scratch =
            Buffer::<T>::scratch(rows.end.next_multiple_of(panel) * self.tiling.tile.min(self.k))?;
        let start = scratch.as_mut_ptr();
        let cols = self.clip.reached(rows.clone(), cols, panel);
        for (k, depth) in self.depths(0..self.k) {
            let panels = Panels { start, stride: panel * depth, panel };
            // SAFETY: these rows lie in the array, and scratch memory was made for all of them up
            // to the last one. Rows begin at a panel. The caller guarantees rows and columns of C.
            unsafe {
                // Rows of other threads, which are columns here.
                plain.copy((0, rows.start), (k, depth), panels);
                let own = start.wrapping_add(rows.start * depth);
                let mut a = self.left((rows.start, rows.len()), (k, depth), own);
                for cols in self.column_blocks(&cols) {
                    let b = PanelWalk::of(Panels { start: start.wrapping_add(cols.0 * depth), ..panels });
                    self.block_of((rows.start, rows.len()), cols, (k, depth), &a, &b);
                    a.pending = None;
                }
            }
        }
        Ok(())
    }

    /// Whether each loop would have one iteration, and nothing is copied.
    #[inline]
    fn is_one_block(&self, rows: &Range<usize>, cols: &Range<usize>) -> bool {
        let a_in_place = match self.a {
            Source::Stored { .. } => true,
            Source::InPlace(_) => rows.len() & (self.panel() - 1) == 0,
            _ => false,
        };
        let width = self.c.col_limit(cols.start).min(self.tiling.cols);
        a_in_place && !self.b.copies() && cols.len() <= width && self.depth(0) == self.k
    }

    /// Blocks of depth, each (start, length).
    fn depths(&self, range: Range<usize>) -> impl Iterator<Item = (usize, usize)> + '_ {
        let mut k = range.start;
        std::iter::from_fn(move || {
            let (at, left) = (k, range.end - k);
            (left > 0).then(|| {
                let depth = self.depth(at);
                k += depth;
                (at, depth)
            })
        })
    }

    /// Blocks of columns, each (start, length); none crosses the end of a strip of C. They get
    /// equal widths, in whole panels: behind a narrow block the next panels of A would not have
    /// arrived.
    fn column_blocks(&self, range: &Range<usize>) -> impl Iterator<Item = (usize, usize)> + '_ {
        let (mut col, end) = (range.start, range.end);
        std::iter::from_fn(move || {
            let at = col;
            (at < end).then(|| {
                let count = even(end - at, self.tiling.cols, self.column_unit());
                let count = self.c.col_limit(at).min(count);
                col += count;
                (at, count)
            })
        })
    }

    /// Blocks of rows of A that are copied, each (start, length), of equal heights.
    fn row_blocks(&self, range: &Range<usize>) -> impl Iterator<Item = (usize, usize)> + '_ {
        let (mut row, end) = (range.start, range.end);
        std::iter::from_fn(move || {
            let at = row;
            (at < end).then(|| {
                let count = even(end - at, self.tiling.rows, self.panel());
                row += count;
                (at, count)
            })
        })
    }

    /// Blocks of columns begin at multiples of this.
    fn column_unit(&self) -> usize {
        self.panel().max(COLUMN_UNIT)
    }

    /// Computes one block of C. Rows and columns are given as (start, length), and `a` has the
    /// panels of these rows.
    ///
    /// # Safety
    /// The requirements of [`Self::run`].
    unsafe fn block(
        &self,
        (row, rows): (usize, usize),
        cols: (usize, usize),
        (k, depth): (usize, usize),
        a: &Left<T>,
        scratch: *mut T,
    ) {
        // SAFETY: the block lies inside the operand, and scratch memory has room for it; the rest
        // is the caller's promise.
        unsafe {
            let b = self.b.block(cols, (k, depth), self.panel(), scratch);
            self.block_of((row, rows), cols, (k, depth), a, &b);
        }
    }

    /// Computes one block of C; `b` has the panels of its columns.
    ///
    /// # Safety
    /// The requirements of [`Self::run`].
    unsafe fn block_of(
        &self,
        (row, rows): (usize, usize),
        (first_col, cols): (usize, usize),
        (k, depth): (usize, usize),
        a: &Left<T>,
        b: &PanelWalk<T>,
    ) {
        let (panel, alpha, kernel, reach) = (self.panel(), self.alpha, self.kernel, self.reach);
        let beta = if k == 0 { self.beta } else { T::ONE };
        let c = &self.c.target(row, first_col, panel);
        let b_edge = match self.b {
            Source::InPlace(_) => Edge::Foreign,
            _ => Edge::Padded,
        };
        let clip = self.clip.at(row, first_col);
        let block =
            BlockProduct { kernel, panel, rows, cols, depth, alpha, beta, a, b, b_edge, c, reach, clip };
        // SAFETY: the panels are there; the block of C is part of this thread's range.
        unsafe { block.run() };
    }
}

/// The length of the next of as few equal pieces of `left` as possible, each a multiple of `unit`
/// and of at most `most`, which is such a multiple itself.
fn even(left: usize, most: usize, unit: usize) -> usize {
    let pieces = left.div_ceil(most);
    left.div_ceil(pieces).next_multiple_of(unit).min(left)
}

#[cfg(test)]
mod tests {
    use super::even;

    #[test]
    fn pieces_are_even_and_fit() {
        for (len, most, unit, expected) in
            [(500, 128, 8, vec![128, 128, 128, 116]), (130, 128, 16, vec![80, 50]), (7, 8, 8, vec![7])]
        {
            let mut left = len;
            let mut pieces = Vec::new();
            while left > 0 {
                pieces.push(even(left, most, unit));
                left -= pieces[pieces.len() - 1];
            }
            assert_eq!(pieces, expected);
        }
        for len in 1..2000 {
            assert!((1..=len.min(128)).contains(&even(len, 128, 16)), "{len}");
        }
    }
}
