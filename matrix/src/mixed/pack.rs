//! Copies blocks of an operand to panels of words.
//!
//! **What.** A panel holds `ROWS` rows: for each group of `DEPTH` steps of `k` one word for each
//! row, in the order of rows. Rows and steps that do not exist are zeros, so kernels know no edges.
//!
//! ```text
//! DEPTH = 4, ROWS = 3:   k=0123  k=4567        row 0: abcd efgh
//!                        abcd    efgh          row 1: ijkl mnop   →  abcd ijkl qrst  efgh mnop uvwx
//!                        ijkl …                row 2: qrst uvwx
//! ```
//!
//! **Why this way.** Where steps of `k` are contiguous, a row is read in pieces of one cache line,
//! and the pieces of all rows are written before the next ones are read, so that the written part
//! of the panel stays in the first level. Where rows are contiguous, `DEPTH` columns are read side
//! by side and interleaved, which compilers turn into vector code.

use super::blocks::Source;
use super::product::Word;
use std::ops::Range;

/// Words of a row that are read together: a cache line.
const PIECE: usize = 16;

/// Packs steps `ks` of the rows `rows` into panels of `ROWS` rows.
///
/// # Safety
/// These entries of the source are readable.
///
/// # Panics
/// When `panels` is shorter than the panels of all rows.
pub(super) unsafe fn panels<T: Word<DEPTH>, const ROWS: usize, const DEPTH: usize>(
    source: &Source<T>,
    rows: Range<usize>,
    ks: Range<usize>,
    panels: &mut [u32],
) {
    let groups = ks.len().div_ceil(DEPTH);
    if groups == 0 {
        return;
    }
    let firsts = rows.clone().step_by(ROWS);
    for (first, panel) in firsts.zip(panels.chunks_exact_mut(groups * ROWS)) {
        let (panel, _) = panel.as_chunks_mut::<ROWS>();
        let part = Part { source, first, rows: ROWS.min(rows.end - first), k: ks.start, steps: ks.len() };
        // SAFETY: the caller's promise, for the rows of this panel.
        unsafe {
            match source.strides() {
                (_, 1) => part.along_steps::<ROWS, DEPTH>(panel),
                (1, _) => part.along_rows::<ROWS, DEPTH>(panel),
                _ => part.one_by_one::<ROWS, DEPTH>(panel, 0),
            }
        }
    }
}

/// The entries of one panel.
struct Part<'a, T> {
    source: &'a Source<T>,
    first: usize,
    rows: usize,
    k: usize,
    steps: usize,
}

impl<T> Part<'_, T> {
    /// Packs a source whose steps of `k` are contiguous.
    ///
    /// # Safety
    /// The entries of the part are readable.
    #[inline(always)]
    unsafe fn along_steps<const ROWS: usize, const DEPTH: usize>(&self, panel: &mut [[u32; ROWS]])
    where
        T: Word<DEPTH>,
    {
        // Pieces of one line, all rows of a piece before the next piece.
        let whole = self.steps / (PIECE * DEPTH);
        for (piece, groups) in panel.as_chunks_mut::<PIECE>().0[..whole].iter_mut().enumerate() {
            for i in 0..self.rows {
                let start = self.source.place(self.first + i, self.k + piece * PIECE * DEPTH);
                // SAFETY: these steps of row `i` are contiguous and readable.
                let line = unsafe { &*start.cast::<[[T; DEPTH]; PIECE]>() };
                for (group, &parts) in groups.iter_mut().zip(line) {
                    group[i] = T::word(parts);
                }
            }
            // Rows that do not exist.
            groups.iter_mut().for_each(|group| group[self.rows..].fill(0));
        }
        // SAFETY: the caller's promise.
        unsafe { self.one_by_one::<ROWS, DEPTH>(panel, whole * PIECE) }
    }

    /// Packs a source whose rows are contiguous.
    ///
    /// # Safety
    /// The entries of the part are readable.
    #[inline(always)]
    unsafe fn along_rows<const ROWS: usize, const DEPTH: usize>(&self, panel: &mut [[u32; ROWS]])
    where
        T: Word<DEPTH>,
    {
        if self.rows < ROWS {
            // SAFETY: the caller's promise.
            return unsafe { self.one_by_one::<ROWS, DEPTH>(panel, 0) };
        }
        let whole = self.steps / DEPTH;
        for (group, words) in panel[..whole].iter_mut().enumerate() {
            // SAFETY: the rows of these columns are contiguous and readable.
            let columns: [&[T; ROWS]; DEPTH] = std::array::from_fn(|step| unsafe {
                &*self.source.place(self.first, self.k + group * DEPTH + step).cast::<[T; ROWS]>()
            });
            for (i, word) in words.iter_mut().enumerate() {
                *word = T::word(columns.map(|column| column[i]));
            }
        }
        // SAFETY: the caller's promise.
        unsafe { self.one_by_one::<ROWS, DEPTH>(panel, whole) }
    }

    /// Packs the groups from `from` on, entry by entry.
    ///
    /// # Safety
    /// The entries of the part are readable.
    unsafe fn one_by_one<const ROWS: usize, const DEPTH: usize>(&self, panel: &mut [[u32; ROWS]], from: usize)
    where
        T: Word<DEPTH>,
    {
        for (group, words) in panel.iter_mut().enumerate().skip(from) {
            for (i, word) in words.iter_mut().enumerate() {
                *word = T::word(std::array::from_fn(|step| {
                    let step = group * DEPTH + step;
                    if i >= self.rows || step >= self.steps {
                        return T::default();
                    }
                    // SAFETY: this row and this step exist.
                    unsafe { *self.source.place(self.first + i, self.k + step) }
                }));
            }
        }
    }
}
