//! Matrix–vector products `y ← α·op(A)·x + β·y` on blocked storage.
//!
//! **Cost.** Every entry of `A` is read once, four panels side by side, so bandwidth is the bound.
//! Four panels of `A` keep their rows of `y` in registers; if `A` is transposed, every column has a
//! vector of sums, one for each row of a panel, which are added up at the end. The loops are
//! compiled for AVX-512 and AVX2 too. **Why this way.** Sums run in the order of the columns, or of
//! the panels and then of the rows of a panel if `A` is transposed, and no operation is fused, so
//! every processor with panels of one height gives the same bits. **Leaves out** threads.

use crate::column_sums;
use crate::gemm::Op;
use crate::view::View;
use crate::{Element, Error};

/// Computes `y ← α·op(A)·x + β·y`. If α = 0, neither `A` nor `x` is read; if β = 0, `y` is not.
///
/// ```
/// use lightfoot_matrix::{multiply_vector, BlockedMatrix, Op};
/// let a = BlockedMatrix::from_fn(2, 3, |i, j| (3 * i + j) as f64)?;
/// let mut y = [f64::NAN; 2];
/// multiply_vector(1.0, &a, Op::Plain, &[1.0, 1.0, 1.0], 0.0, &mut y)?;
/// assert_eq!(y, [3.0, 12.0]);
/// # Ok::<(), lightfoot_matrix::Error>(())
/// ```
///
/// # Errors
/// [`Error::Shape`] when the vectors do not fit.
pub fn multiply_vector<'a, T: Element>(
    alpha: T,
    a: impl Into<View<'a, T>>,
    op: Op,
    x: &[T],
    beta: T,
    y: &mut [T],
) -> Result<(), Error> {
    let a = a.into();
    let shape = op.shape((a.rows(), a.cols()));
    if shape.1 != x.len() {
        return Err(Error::Shape {
            what: "columns of op(A) and rows of x",
            left: shape,
            right: (x.len(), 1),
        });
    }
    if shape.0 != y.len() {
        return Err(Error::Shape { what: "rows of op(A) and of y", left: shape, right: (y.len(), 1) });
    }
    // β is applied once, before the sums. For β = 0, `y` is overwritten and not multiplied, so that
    // a NaN in it does not survive.
    if beta == T::ZERO {
        y.fill(T::ZERO);
    } else if beta != T::ONE {
        y.iter_mut().for_each(|y| *y = beta * *y);
    }
    if alpha == T::ZERO {
        return Ok(());
    }
    // A strip holds some columns of `A`. Untransposed, it adds to all of `y`; transposed, it owns
    // its part of `y`.
    let mut sums = Vec::new();
    for strip in strips(&a) {
        let columns = strip.first_col..strip.first_col + strip.cols;
        match op {
            Op::Plain => strip.add_product(alpha, op, &x[columns], y, &mut sums),
            Op::Transposed => strip.add_product(alpha, op, x, &mut y[columns], &mut sums),
        }
    }
    Ok(())
}

/// The part of a view that lies in one strip.
struct Strip<'a, T> {
    first_col: usize,
    cols: usize,
    rows: usize,
    panel: usize,
    stride: usize,
    storage: &'a [T],
}

fn strips<'a, T: Element>(view: &View<'a, T>) -> impl Iterator<Item = Strip<'a, T>> {
    let (part, storage) = (view.part, view.storage);
    (0..part.cols).step_by(part.layout.tile()).map(move |first_col| {
        let col = part.first_col + first_col;
        Strip {
            first_col,
            cols: part.layout.tile().min(part.cols - first_col),
            rows: part.rows,
            panel: part.layout.panel(),
            stride: part.layout.panel_stride(part.layout.strip_of(col).0),
            storage: if part.rows == 0 { &[] } else { &storage[part.layout.offset(part.first_row, col)..] },
        }
    })
}

impl<T: Element> Strip<'_, T> {
    /// Computes `y += α·op(A)·x` with the vectors of this processor.
    fn add_product(&self, alpha: T, op: Op, x: &[T], y: &mut [T], sums: &mut Vec<T>) {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has the feature.
            return unsafe { self.add_product_avx512(alpha, op, x, y, sums) };
        }
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has the feature.
            return unsafe { self.add_product_avx2(alpha, op, x, y, sums) };
        }
        self.add_product_inline(alpha, op, x, y, sums);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    fn add_product_avx512(&self, alpha: T, op: Op, x: &[T], y: &mut [T], sums: &mut Vec<T>) {
        self.add_product_inline(alpha, op, x, y, sums);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn add_product_avx2(&self, alpha: T, op: Op, x: &[T], y: &mut [T], sums: &mut Vec<T>) {
        self.add_product_inline(alpha, op, x, y, sums);
    }

    #[inline(always)]
    fn add_product_inline(&self, alpha: T, op: Op, x: &[T], y: &mut [T], sums: &mut Vec<T>) {
        match (op, self.panel) {
            (Op::Plain, 2) => self.times::<2>(alpha, x, y),
            (Op::Plain, 4) => self.times::<4>(alpha, x, y),
            (Op::Plain, 8) => self.times::<8>(alpha, x, y),
            (Op::Plain, _) => self.times::<16>(alpha, x, y),
            (Op::Transposed, 2) => self.transposed_times::<2>(alpha, x, y, sums),
            (Op::Transposed, 4) => self.transposed_times::<4>(alpha, x, y, sums),
            (Op::Transposed, 8) => self.transposed_times::<8>(alpha, x, y, sums),
            (Op::Transposed, _) => self.transposed_times::<16>(alpha, x, y, sums),
        }
    }

    /// The columns of panel `index`.
    #[inline(always)]
    fn columns<const P: usize>(&self, index: usize) -> &[[T; P]] {
        let at = index * self.stride;
        self.storage[at..at + P * self.cols].as_chunks().0
    }

    /// Computes `y += α·A·x`, four panels at a time, so that four chains of additions run side by
    /// side.
    #[inline(always)]
    fn times<const P: usize>(&self, alpha: T, x: &[T], y: &mut [T]) {
        let whole = self.rows / P / 4 * 4;
        for first in (0..whole).step_by(4) {
            let [a, b, c, d] = [0, 1, 2, 3].map(|i| self.columns::<P>(first + i));
            let mut sums = [[T::ZERO; P]; 4];
            for ((((a, b), c), d), &x) in a.iter().zip(b).zip(c).zip(d).zip(x) {
                for row in 0..P {
                    sums[0][row] = sums[0][row] + a[row] * x;
                    sums[1][row] = sums[1][row] + b[row] * x;
                    sums[2][row] = sums[2][row] + c[row] * x;
                    sums[3][row] = sums[3][row] + d[row] * x;
                }
            }
            let y = &mut y[first * P..(first + 4) * P];
            y.iter_mut().zip(sums.as_flattened()).for_each(|(y, &sum)| *y = *y + alpha * sum);
        }
        for index in whole..self.rows.div_ceil(P) {
            let mut sums = [T::ZERO; P];
            for (column, &x) in self.columns::<P>(index).iter().zip(x) {
                (0..P).for_each(|row| sums[row] = sums[row] + column[row] * x);
            }
            let y = &mut y[index * P..];
            y.iter_mut().zip(sums).for_each(|(y, sum)| *y = *y + alpha * sum);
        }
    }

    /// Computes `y += α·Aᵀ·x`; `x` runs over the rows of the view. Each row of a panel has its own
    /// sum for every column, in `sums`; these are added up at the end, so storage is read in order
    /// and no vector is added up before. Some columns at a time, so that their sums stay near.
    #[inline(always)]
    fn transposed_times<const P: usize>(&self, alpha: T, x: &[T], y: &mut [T], sums: &mut Vec<T>) {
        let (x, rest) = x.as_chunks::<P>();
        let whole = x.len() / column_sums::PANELS * column_sums::PANELS;
        let chunk = (NEAR_BYTES / size_of::<[T; P]>()).max(1);
        for (at, y) in (0..).step_by(chunk).zip(y.chunks_mut(chunk)) {
            let columns = |index: usize| &self.columns::<P>(index)[at..at + y.len()];
            sums.clear();
            sums.resize(P * y.len(), T::ZERO);
            let sums: &mut [[T; P]] = sums.as_chunks_mut().0;
            let (groups, _) = x.as_chunks::<{ column_sums::PANELS }>();
            for (first, x) in (0..).step_by(column_sums::PANELS).zip(groups) {
                column_sums::add(sums, [0, 1, 2, 3].map(|i| columns(first + i)), x);
            }
            for (index, x) in x.iter().enumerate().skip(whole) {
                for (column, sums) in columns(index).iter().zip(sums.iter_mut()) {
                    (0..P).for_each(|row| sums[row] = sums[row] + column[row] * x[row]);
                }
            }
            // Of the last panel, only the rows that exist are read.
            if !rest.is_empty() {
                for (column, sums) in columns(x.len()).iter().zip(sums.iter_mut()) {
                    for ((sum, &a), &x) in sums.iter_mut().zip(column).zip(rest) {
                        *sum = *sum + a * x;
                    }
                }
            }
            for (y, sums) in y.iter_mut().zip(sums) {
                *y = *y + alpha * sums.iter().fold(T::ZERO, |sum, &part| sum + part);
            }
        }
    }
}

/// Bytes of the sums of columns that are computed at a time: a third of a first-level cache.
const NEAR_BYTES: usize = 16 << 10;
