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

use super::narrow::Word;
use super::source::Source;
use std::ops::Range;

/// Words of a row that are read together: a cache line.
const PIECE: usize = 16;
/// Rows that are read together at an edge.
const EDGE: usize = 8;

/// A packing function: its name and the features that it is compiled with.
macro_rules! packing {
    ($name:ident $(, $features:literal)?) => {
        /// Packs steps `ks` of the rows `rows` into panels of `ROWS` rows and `groups` groups,
        /// which are at least those of the steps.
        ///
        /// # Safety
        /// These entries of the source are readable, and the processor has the function's features.
        ///
        /// # Panics
        /// When `panels` is shorter than the panels of all rows.
        $(#[cfg(target_arch = "x86_64")] #[target_feature(enable = $features)])?
        pub(super) unsafe fn $name<T: Word<DEPTH>, const ROWS: usize, const DEPTH: usize>(
            source: &Source<T>,
            rows: Range<usize>,
            ks: Range<usize>,
            groups: usize,
            panels: &mut [u32],
        ) {
            // SAFETY: the caller's promise.
            unsafe { all::<T, ROWS, DEPTH>(source, rows, ks, groups, panels) }
        }
    };
}
packing!(plain);
packing!(avx2, "avx2");
packing!(avx512, "avx512f,avx512bw,avx512vl");

/// Packs the words of each row side by side, `groups` of them, with zeros behind the last step:
/// rows whose steps are contiguous and whose words are their own bytes are copied.
///
/// # Safety
/// The requirements of [`avx512`], which packs all others.
///
/// # Panics
/// When `panels` is shorter than all rows.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(super) unsafe fn rows<T: Word<DEPTH>, const DEPTH: usize>(
    source: &Source<T>,
    rows: Range<usize>,
    ks: Range<usize>,
    groups: usize,
    panels: &mut [u32],
) {
    let is_copied = source.strides().1 == 1 && DEPTH * size_of::<T>() == size_of::<u32>();
    if !is_copied || groups == 0 {
        // SAFETY: the caller's promise.
        return unsafe { avx512::<T, 1, DEPTH>(source, rows, ks, groups, panels) };
    }
    for (row, words) in rows.zip(panels.chunks_exact_mut(groups)) {
        // Steps of a word that lacks some, and words behind them.
        words[ks.len() / DEPTH..].fill(0);
        // SAFETY: the steps of this row are contiguous and readable, and fit into its words.
        unsafe { source.place(row, ks.start).copy_to_nonoverlapping(words.as_mut_ptr().cast(), ks.len()) };
    }
}

/// The body of the packing functions, which is compiled into each.
///
/// # Safety
/// These entries of the source are readable.
#[inline(always)]
unsafe fn all<T: Word<DEPTH>, const ROWS: usize, const DEPTH: usize>(
    source: &Source<T>,
    rows: Range<usize>,
    ks: Range<usize>,
    groups: usize,
    panels: &mut [u32],
) {
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
                _ => part.one_by_one::<ROWS, DEPTH>(panel),
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
        // SAFETY: the steps of row `i` from `step` on are contiguous and readable.
        let steps = |i: usize, step: usize, count: usize| unsafe {
            std::slice::from_raw_parts(self.source.place(self.first + i, self.k + step), count)
        };
        // Pieces of one line, all rows of a piece before the next piece.
        let (pieces, rest) = panel.as_chunks_mut::<PIECE>();
        for (piece, groups) in pieces.iter_mut().enumerate() {
            let first = piece * PIECE * DEPTH;
            if first + PIECE * DEPTH > self.steps {
                self.line::<ROWS, DEPTH>(groups, |i| steps(i, first, self.steps.saturating_sub(first)));
                continue;
            }
            for i in 0..self.rows {
                let (line, _) = steps(i, first, PIECE * DEPTH).as_chunks::<DEPTH>();
                let line: &[[T; DEPTH]; PIECE] = line.try_into().expect("a whole piece");
                for (group, &parts) in groups.iter_mut().zip(line) {
                    group[i] = T::word(parts);
                }
            }
            self.clear_missing_rows(groups);
        }
        let first = pieces.len() * PIECE * DEPTH;
        self.line::<ROWS, DEPTH>(rest, |i| steps(i, first, self.steps.saturating_sub(first)));
    }

    /// Packs groups from the contiguous steps of each row, of which the last group may lack some.
    #[inline(always)]
    fn line<'a, const ROWS: usize, const DEPTH: usize>(
        &self,
        groups: &mut [[u32; ROWS]],
        steps: impl Fn(usize) -> &'a [T],
    ) where
        T: Word<DEPTH> + 'a,
    {
        for i in 0..self.rows {
            let (whole, last) = steps(i).as_chunks::<DEPTH>();
            for (group, &parts) in groups.iter_mut().zip(whole) {
                group[i] = T::word(parts);
            }
            for (at, group) in groups.iter_mut().enumerate().skip(whole.len()) {
                let mut parts = [T::default(); DEPTH];
                if at == whole.len() {
                    parts[..last.len()].copy_from_slice(last);
                }
                group[i] = T::word(parts);
            }
        }
        self.clear_missing_rows(groups);
    }

    /// Makes the words of rows that do not exist zeros.
    #[inline(always)]
    fn clear_missing_rows<const ROWS: usize>(&self, groups: &mut [[u32; ROWS]]) {
        if self.rows < ROWS {
            groups.iter_mut().for_each(|group| group[self.rows..].iter_mut().for_each(|word| *word = 0));
        }
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
        for (group, words) in panel.iter_mut().enumerate() {
            let step = group * DEPTH;
            let place = |part: usize| self.source.place(self.first, self.k + step + part);
            if self.rows == ROWS && step + DEPTH <= self.steps {
                // SAFETY: the rows of these columns are contiguous and readable.
                let columns: [[T; ROWS]; DEPTH] =
                    std::array::from_fn(|part| unsafe { *place(part).cast::<[T; ROWS]>() });
                T::words(&columns, words);
                continue;
            }
            // Eight rows at a time, whose copies have zeros for what does not exist.
            let (eights, few) = words.as_chunks_mut::<EDGE>();
            for (first, words) in eights.iter_mut().enumerate().map(|(at, words)| (at * EDGE, words)) {
                let mut columns = [[T::default(); EDGE]; DEPTH];
                for (part, column) in columns.iter_mut().enumerate().take(self.steps.saturating_sub(step)) {
                    let start = place(part).wrapping_add(first);
                    if first + EDGE <= self.rows {
                        // SAFETY: eight rows of this column are contiguous and readable.
                        *column = unsafe { *start.cast::<[T; EDGE]>() };
                        continue;
                    }
                    for (i, entry) in column.iter_mut().enumerate().take(self.rows.saturating_sub(first)) {
                        // SAFETY: this row of this column exists.
                        *entry = unsafe { *start.add(i) };
                    }
                }
                T::words(&columns, words);
            }
            let first = ROWS - few.len();
            few.iter_mut().enumerate().for_each(|(i, word)| {
                // SAFETY: the caller's promise.
                *word = unsafe { self.word(first + i, step) }
            });
        }
    }

    /// The word of row `i` from step `step` on, with zeros for what does not exist.
    ///
    /// # Safety
    /// The entries of the part are readable.
    #[inline(always)]
    unsafe fn word<const DEPTH: usize>(&self, i: usize, step: usize) -> u32
    where
        T: Word<DEPTH>,
    {
        T::word(std::array::from_fn(|part| {
            if i >= self.rows || step + part >= self.steps {
                return T::default();
            }
            // SAFETY: this row and this step exist.
            unsafe { *self.source.place(self.first + i, self.k + step + part) }
        }))
    }

    /// Packs a source with any strides, entry by entry.
    ///
    /// # Safety
    /// The entries of the part are readable.
    #[inline(always)]
    unsafe fn one_by_one<const ROWS: usize, const DEPTH: usize>(&self, panel: &mut [[u32; ROWS]])
    where
        T: Word<DEPTH>,
    {
        for (group, words) in panel.iter_mut().enumerate() {
            for (i, word) in words.iter_mut().enumerate() {
                // SAFETY: the caller's promise.
                *word = unsafe { self.word(i, group * DEPTH) };
            }
        }
    }
}
