//! Matrix–vector products `y ← α·op(A)·x + β·y` on blocked storage.
//!
//! **Cost.** Every entry of `A` is read once, in storage order, so bandwidth is the bound. A panel
//! of `A` keeps its rows of `y` in registers; if `A` is transposed, a panel gives `panel` products
//! for each column, which are summed. **Why this way.** Sums run in the order of the columns, or of
//! the panels if `A` is transposed, so results are reproducible.

use crate::gemm::Op;
use crate::view::View;
use crate::{Element, Error};

/// The largest panel of any kernel.
const MAX_PANEL: usize = 16;

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
    for strip in strips(&a) {
        match op {
            Op::Plain => strip.times(alpha, &x[strip.first_col..][..strip.cols], y),
            Op::Transposed => strip.transposed_times(alpha, x, &mut y[strip.first_col..][..strip.cols]),
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
    /// The rows of each panel, with the panel's storage.
    fn panels(&self) -> impl Iterator<Item = (std::ops::Range<usize>, &[T])> {
        (0..self.rows).step_by(self.panel).map(|first| {
            let at = first / self.panel * self.stride;
            let rows = first..(first + self.panel).min(self.rows);
            (rows, &self.storage[at..at + self.panel * self.cols])
        })
    }

    /// Computes `y += α·A·x`.
    fn times(&self, alpha: T, x: &[T], y: &mut [T]) {
        for (rows, panel) in self.panels() {
            let mut sums = [T::ZERO; MAX_PANEL];
            match self.panel {
                2 => add_columns::<T, 2>(&mut sums, panel, x),
                4 => add_columns::<T, 4>(&mut sums, panel, x),
                8 => add_columns::<T, 8>(&mut sums, panel, x),
                _ => add_columns::<T, 16>(&mut sums, panel, x),
            }
            for (y, sum) in y[rows].iter_mut().zip(sums) {
                *y = *y + alpha * sum;
            }
        }
    }

    /// Computes `y += α·Aᵀ·x`; `x` runs over the rows of the view.
    fn transposed_times(&self, alpha: T, x: &[T], y: &mut [T]) {
        for (rows, panel) in self.panels() {
            let x = &x[rows];
            for (y, column) in y.iter_mut().zip(panel.chunks_exact(self.panel)) {
                let sum = column.iter().zip(x).fold(T::ZERO, |sum, (&a, &x)| sum + a * x);
                *y = *y + alpha * sum;
            }
        }
    }
}

/// Computes `sums[..P] += Σ column·x`.
fn add_columns<T: Element, const P: usize>(sums: &mut [T; MAX_PANEL], panel: &[T], x: &[T]) {
    let mut own = [T::ZERO; P];
    for (column, &x) in panel.chunks_exact(P).zip(x) {
        for (sum, &a) in own.iter_mut().zip(column) {
            *sum = *sum + a * x;
        }
    }
    sums[..P].copy_from_slice(&own);
}
