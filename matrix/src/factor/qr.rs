//! QR by Householder reflections: `A = Q·R` in place, with `Q = H₁·H₂⋯` kept as its reflectors.
//!
//! **The compact form.** The product of reflectors is `I − V·T·Vᴴ` with a small triangle `T`, so
//! that a block of them is applied by products: `C ← C − V·(Tᴴ·(Vᴴ·C))`. **The recursion** halves
//! the columns of a block: the left half is factorised, applied to the right half, which is
//! factorised in turn, and the two triangles are joined: `Tᴴ₂₁ = −Tᴴ₂₂·(V₂ᴴ·V₁)·Tᴴ₁₁`. Blocks of
//! [`block_columns`] are applied to all columns right of them.
//!
//! **Why copies.** `V` shares its array with `R`. A copy with zeros and ones in the place of `R`,
//! and its conjugate transpose, make every step a plain product whose left operand has adjacent
//! rows. They are as large as one block of columns.
//!
//! **Leaves out** pivoting of columns: a rank-deficient matrix has a small or zero diagonal entry
//! in `R`. Source: Schreiber and Van Loan 1989 (compact form); Elmroth and Gustavson 2000
//! (recursion); Golub and Van Loan 2013, section 5.2.

use super::block::{self, PANEL};
use super::options::Factor;
use super::product::product;
use super::shape::{same, Side, Triangular};
use super::solve::half;
use crate::buffer::{Buffer, Scratch};
use crate::strided::{Strided, StridedMut};
use crate::{Element, Error};
use std::ops::Range;

/// A matrix that was factorised in place: `A = Q·R`.
#[derive(Debug)]
pub struct Qr<'a, T: Element> {
    options: Factor,
    factors: Strided<'a, T>,
    taus: Vec<T>,
}

/// The columns of a block of reflectors of an m×n matrix. Wide blocks make products deeper, and
/// cost more in their own columns; `docs/matrix.md` has a sweep.
fn block_columns(options: &Factor, rows: usize, cols: usize) -> usize {
    if let Some(columns) = options.block {
        return columns;
    }
    match rows.min(cols) {
        0..=48 => 16,
        49..=768 => 32,
        _ => 64,
    }
}

/// A block of reflectors: `V`, its conjugate transpose, and `Tᴴ`.
struct Reflectors<'a, T> {
    v: StridedMut<'a, T>,
    adjoint: StridedMut<'a, T>,
    t: StridedMut<'a, T>,
}

/// Memory of a block, and of the products with it.
struct Memory<T: Element> {
    v: Scratch<T>,
    adjoint: Scratch<T>,
    t: Scratch<T>,
    products: Scratch<T>,
    /// The distance between columns of `v`.
    stride: usize,
    width: usize,
}

impl<T: Element> Memory<T> {
    /// Memory for blocks of `width` columns and `rows` rows that are applied to `cols` columns.
    fn new(rows: usize, width: usize, cols: usize) -> Result<Memory<T>, Error> {
        // A stride that is a multiple of a page would put all columns into the same sets.
        let stride = rows.next_multiple_of(8) + 8;
        Ok(Memory {
            v: Buffer::scratch(stride * width)?,
            adjoint: Buffer::scratch(rows * width)?,
            t: Buffer::scratch(width * width)?,
            products: Buffer::scratch(2 * width * cols.max(width))?,
            stride,
            width,
        })
    }

    /// The views of a block of `rows`×`width`, and the memory for products.
    fn views(&mut self, rows: usize, width: usize) -> Result<(Reflectors<'_, T>, &mut [T]), Error> {
        debug_assert!(width <= self.width);
        let v = StridedMut::new(&mut self.v, rows, width, 1, self.stride as isize)?;
        let adjoint = StridedMut::col_major(&mut self.adjoint, width, rows)?;
        let t = StridedMut::col_major(&mut self.t, width, width)?;
        Ok((Reflectors { v, adjoint, t }, &mut self.products))
    }
}

impl<'a, T: Element> Reflectors<'a, T> {
    /// The reflectors left and right of column `at`, and the rectangle of `Tᴴ` that joins them.
    fn split(self, at: usize) -> (Reflectors<'a, T>, Reflectors<'a, T>, StridedMut<'a, T>) {
        let (left_v, right_v) = self.v.split_cols(at);
        let (upper, lower) = self.adjoint.split_rows(at);
        let [left_t, mut above, joint, right_t] = self.t.quarters(at, at);
        block::fill(&mut above, T::ZERO);
        let left = Reflectors { v: left_v, adjoint: upper, t: left_t };
        (left, Reflectors { v: right_v, adjoint: lower, t: right_t }, joint)
    }

    fn reborrow(&mut self) -> Reflectors<'_, T> {
        let Reflectors { v, adjoint, t } = self;
        Reflectors { v: v.reborrow(), adjoint: adjoint.reborrow(), t: t.reborrow() }
    }

    /// The reflectors from row `at` on, of which those above are set to zero.
    fn below(self, at: usize) -> Reflectors<'a, T> {
        let (mut above, v) = self.v.split_rows(at);
        block::fill(&mut above, T::ZERO);
        let (mut left, adjoint) = self.adjoint.split_cols(at);
        block::fill(&mut left, T::ZERO);
        Reflectors { v, adjoint, t: self.t }
    }

    /// `C ← C − V·M·(Vᴴ·C)`, where `M` is `Tᴴ` or `T`.
    fn apply(
        &self,
        options: &Factor,
        middle: Strided<'_, T>,
        c: StridedMut<'_, T>,
        products: &mut [T],
    ) -> Result<(), Error> {
        let (width, cols, gemm) = (self.v.cols(), c.cols(), &options.gemm);
        if cols == 0 || width == 0 {
            return Ok(());
        }
        let (first, second) = products.split_at_mut(width * cols);
        let mut dots = StridedMut::col_major(first, width, cols)?;
        product(gemm, T::ONE, self.adjoint.as_ref(), c.as_ref(), T::ZERO, dots.reborrow())?;
        let mut factors = StridedMut::col_major(second, width, cols)?;
        product(gemm, T::ONE, middle, dots.as_ref(), T::ZERO, factors.reborrow())?;
        product(gemm, T::ZERO - T::ONE, self.v.as_ref(), factors.as_ref(), T::ONE, c)
    }
}

impl Factor {
    /// Factorises an m×n matrix in place: on and above the diagonal it then has `R`, and below it
    /// the reflectors of `Q`, whose first entries, which are 1, are not stored. Cost: mn²
    /// multiply-adds for m ≥ n, less n³/3.
    ///
    /// # Errors
    /// [`Error::TooLarge`] when scratch memory cannot be addressed.
    pub fn qr<'a, T: Element>(&self, mut a: StridedMut<'a, T>) -> Result<Qr<'a, T>, Error> {
        let mut taus = vec![T::ZERO; a.rows().min(a.cols())];
        self.qr_with(a.reborrow(), &mut taus)?;
        Ok(Qr { options: *self, factors: a.into_shared(), taus })
    }

    /// Factorises a matrix in place, as [`Self::qr`] does, into factors τ of the caller's:
    /// reflector `j` is `I − τ·v·vᴴ`.
    ///
    /// # Errors
    /// [`Error::Shape`] when the number of factors is not the smaller side, [`Error::TooLarge`]
    /// when scratch memory cannot be addressed.
    pub fn qr_with<T: Element>(&self, mut a: StridedMut<'_, T>, taus: &mut [T]) -> Result<(), Error> {
        let (rows, cols) = (a.rows(), a.cols());
        let steps = rows.min(cols);
        same("the number of factors and the smaller side of the matrix", (taus.len(), 1), (steps, 1))?;
        if steps == 0 {
            return Ok(());
        }
        let width = block_columns(self, rows, cols).min(steps);
        let mut memory = Memory::new(rows, width, cols)?;
        for first in (0..steps).step_by(width) {
            let last = steps.min(first + width);
            let rest = a.reborrow().part(first..rows, first..cols);
            let (mut block, right) = rest.split_cols(last - first);
            let (mut reflectors, products) = memory.views(rows - first, last - first)?;
            factorise(self, block.reborrow(), reflectors.reborrow(), &mut taus[first..last], products)?;
            reflectors.apply(self, reflectors.t.as_ref(), right, products)?;
        }
        Ok(())
    }
}

/// Factorises a block with at least as many rows as columns, and makes its compact form.
fn factorise<T: Element>(
    options: &Factor,
    mut a: StridedMut<'_, T>,
    mut reflectors: Reflectors<'_, T>,
    taus: &mut [T],
    products: &mut [T],
) -> Result<(), Error> {
    let (rows, cols) = (a.rows(), a.cols());
    if cols <= PANEL {
        block::qr_panel(options.kernel, a.reborrow(), reflectors.v.reborrow(), reflectors.t.reborrow(), taus);
        block::copy_reflectors(a.as_ref(), reflectors.v.reborrow(), reflectors.adjoint.reborrow());
        return Ok(());
    }
    let at = half(cols, PANEL);
    let (left, mut right) = a.split_cols(at);
    let (mut first, second, joint) = reflectors.split(at);
    let (left_taus, right_taus) = taus.split_at_mut(at);
    factorise(options, left, first.reborrow(), left_taus, products)?;
    first.apply(options, first.t.as_ref(), right.reborrow(), products)?;
    let mut second = second.below(at);
    factorise(options, right.part(at..rows, 0..cols - at), second.reborrow(), right_taus, products)?;
    // Tᴴ₂₁ = −Tᴴ₂₂·(V₂ᴴ·V₁)·Tᴴ₁₁; above row `at`, V₂ is zero.
    let (width, gemm) = (cols - at, &options.gemm);
    let (dots, half_done) = products.split_at_mut(width * at);
    let mut dots = StridedMut::col_major(dots, width, at)?;
    let lower = first.v.as_ref().part(at..rows, 0..at);
    product(gemm, T::ONE, second.adjoint.as_ref(), lower, T::ZERO, dots.reborrow())?;
    let mut half_done = StridedMut::col_major(half_done, width, at)?;
    product(gemm, T::ONE, second.t.as_ref(), dots.as_ref(), T::ZERO, half_done.reborrow())?;
    product(gemm, T::ZERO - T::ONE, half_done.as_ref(), first.t.as_ref(), T::ZERO, joint)
}

/// Which of the two is applied.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Q,
    Adjoint,
}

impl<'a, T: Element> Qr<'a, T> {
    /// A factorisation that [`Factor::qr_with`] left in an array: its first columns, as many as
    /// there are factors τ, hold the reflectors.
    ///
    /// # Errors
    /// [`Error::Shape`] when there are more factors than rows or columns.
    pub fn from_factors(options: Factor, factors: Strided<'a, T>, taus: Vec<T>) -> Result<Self, Error> {
        let (rows, cols) = (factors.rows(), factors.cols());
        if taus.len() > rows.min(cols) {
            let what = "the number of factors, which must not exceed the smaller side of the matrix,";
            return Err(Error::Shape { what, left: (taus.len(), 1), right: (rows, cols) });
        }
        Ok(Qr { options, factors, taus })
    }

    /// The array with `R` and the reflectors.
    pub fn factors(&self) -> Strided<'_, T> {
        self.factors
    }

    /// The factors of the reflectors.
    pub fn taus(&self) -> &[T] {
        &self.taus
    }

    /// The upper triangle `R` of a matrix with at least as many rows as columns.
    ///
    /// # Panics
    /// When the matrix has fewer rows than columns.
    pub fn r(&self) -> Triangular<'_, T> {
        let cols = self.factors.cols();
        Triangular::upper(self.factors.part(0..cols, 0..cols))
    }

    /// `B ← Q·B` with the square `Q` of m rows. Cost: 2mnk multiply-adds for k columns of `B`.
    ///
    /// # Errors
    /// [`Error::Shape`] when `B` has not as many rows as the matrix.
    pub fn apply_q(&self, b: StridedMut<'_, T>) -> Result<(), Error> {
        self.apply(Form::Q, b)
    }

    /// `B ← Qᴴ·B` with the square `Q` of m rows; for real types `Qᵀ·B`. Cost: 2mnk multiply-adds
    /// for k columns of `B`.
    ///
    /// # Errors
    /// [`Error::Shape`] when `B` has not as many rows as the matrix.
    pub fn apply_q_adjoint(&self, b: StridedMut<'_, T>) -> Result<(), Error> {
        self.apply(Form::Adjoint, b)
    }

    /// The least-squares solution of `A·X ≈ B` for m ≥ n, in the first n rows of `B`. The other
    /// rows become `Qᴴ·B` there, whose norm is that of the residual.
    ///
    /// # Errors
    /// [`Error::Shape`] when the matrix has fewer rows than columns or shapes differ,
    /// [`Error::Singular`] when the diagonal of `R` has a zero.
    pub fn solve_least_squares(&self, mut b: StridedMut<'_, T>) -> Result<(), Error> {
        let (rows, cols) = (self.factors.rows(), self.factors.cols());
        if rows < cols {
            let what = "the columns of a least-squares problem, which must not exceed its rows,";
            return Err(Error::Shape { what, left: (rows, cols), right: (rows, rows) });
        }
        if let Some(column) = (0..cols).find(|&j| self.factors.get(j, j) == T::ZERO) {
            return Err(Error::Singular { column });
        }
        self.apply_q_adjoint(b.reborrow())?;
        let count = b.cols();
        self.options.solve_triangular(Side::Left, T::ONE, self.r(), b.part(0..cols, 0..count))
    }

    fn apply(&self, form: Form, mut b: StridedMut<'_, T>) -> Result<(), Error> {
        let (rows, steps) = (self.factors.rows(), self.taus.len());
        same("rows of the factorised matrix and of the other one", (rows, 0), (b.rows(), 0))?;
        if steps == 0 || b.cols() == 0 {
            return Ok(());
        }
        let width = block_columns(&self.options, rows, steps).min(steps);
        let mut memory = Memory::new(rows, width, b.cols())?;
        let mut blocks: Vec<_> =
            (0..steps).step_by(width).map(|first| first..steps.min(first + width)).collect();
        if form == Form::Q {
            blocks.reverse();
        }
        for block in blocks {
            let cols = b.cols();
            let below = b.reborrow().part(block.start..rows, 0..cols);
            self.apply_block(form, block, below, &mut memory)?;
        }
        Ok(())
    }

    /// Applies the reflectors of some columns to the rows from the first of them on.
    fn apply_block(
        &self,
        form: Form,
        block: Range<usize>,
        b: StridedMut<'_, T>,
        memory: &mut Memory<T>,
    ) -> Result<(), Error> {
        let (rows, width) = (self.factors.rows(), block.len());
        let (mut reflectors, products) = memory.views(rows - block.start, width)?;
        let columns = self.factors.part(block.start..rows, block.clone());
        block::copy_reflectors(columns, reflectors.v.reborrow(), reflectors.adjoint.reborrow());
        let mut dots = StridedMut::col_major(products, width, width)?;
        let (adjoint, v) = (reflectors.adjoint.as_ref(), reflectors.v.as_ref());
        product(&self.options.gemm, T::ONE, adjoint, v, T::ZERO, dots.reborrow())?;
        for j in 0..width {
            let dots: Vec<T> = (0..j).map(|i| dots.get(i, j)).collect();
            block::extend_triangle(&mut reflectors.t, j, self.taus[block.start + j], &dots);
        }
        if form == Form::Adjoint {
            return reflectors.apply(&self.options, reflectors.t.as_ref(), b, products);
        }
        let mut plain = Buffer::<T>::scratch(width * width)?;
        let mut plain = StridedMut::col_major(&mut plain, width, width)?;
        for j in 0..width {
            (0..width).for_each(|i| plain.set(i, j, reflectors.t.get(j, i).conj()));
        }
        reflectors.apply(&self.options, plain.as_ref(), b, products)
    }
}
