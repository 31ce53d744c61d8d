//! The entry points: options of a multiplication, and the conversion of operands to a job.

use super::clip::Clip;
use super::direct::{self, roles, Roles};
use super::job::{self, Destination, Job};
use super::operand::{Op, Operand};
use super::source::Plain;
use super::{scale, small, threads};
use crate::kernel::Kernel;
use crate::strided::{Strided, StridedMut};
use crate::tile_sizes::Tiling;
use crate::view::ViewMut;
use crate::{blocked, Element, Error, Real};

/// How to multiply: threads, kernel, tile sizes. The default is one thread, the best kernel and the
/// default tiling.
///
/// ```
/// use lightfoot_matrix::{BlockedMatrix, Gemm, Op, Operand};
/// let a = BlockedMatrix::<f64>::from_fn(3, 4, |i, j| (i + j) as f64)?;
/// let b = BlockedMatrix::<f64>::from_fn(5, 4, |i, j| (i * j) as f64)?;
/// let mut c = BlockedMatrix::zeros(3, 5)?;
/// Gemm::new().multiply(1.0, &a, Operand::new(&b, Op::Transposed), 0.0, &mut c)?;
/// assert_eq!(c.get(2, 4), (0..4).map(|k| ((2 + k) * 4 * k) as f64).sum::<f64>());
/// # Ok::<(), lightfoot_matrix::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Gemm {
    kernel: &'static Kernel,
    tiling: Option<Tiling>,
    pub(super) threads: usize,
}

impl Default for Gemm {
    fn default() -> Self {
        Gemm::new()
    }
}

impl Gemm {
    /// One thread, the best kernel, the default tiling.
    #[inline]
    pub fn new() -> Gemm {
        Gemm { kernel: Kernel::best(), tiling: None, threads: 1 }
    }

    /// Allows up to `threads` threads; 0 counts as 1. Results do not depend on the number.
    #[inline]
    pub fn threads(self, threads: usize) -> Gemm {
        Gemm { threads: threads.max(1), ..self }
    }

    /// Sets the kernel for plain arrays. Blocked operands use the kernel that they are stored for.
    #[inline]
    pub fn kernel(self, kernel: &'static Kernel) -> Gemm {
        Gemm { kernel, ..self }
    }

    /// Sets the tile sizes.
    #[inline]
    pub fn tiling(self, tiling: Tiling) -> Gemm {
        Gemm { tiling: Some(tiling), ..self }
    }

    /// `C ← α·op(A)·op(B) + β·C` on blocked operands. It is fastest with `B` transposed, which is
    /// then used in place. If `B` is plain or `A` transposed, blocks are transposed into scratch
    /// memory.
    ///
    /// # Errors
    /// [`Error::Shape`] when shapes do not fit, [`Error::Panels`] when operands were stored for
    /// different kernels.
    #[inline]
    pub fn multiply<'a, T: Element>(
        &self,
        alpha: T,
        a: impl Into<Operand<'a, T>>,
        b: impl Into<Operand<'a, T>>,
        beta: T,
        c: impl Into<ViewMut<'a, T>>,
    ) -> Result<(), Error> {
        // Views stay in registers until `multiply_stored` gets them: to write their forty words and
        // read them back takes as long as a small product.
        let (a, b, mut c) = (a.into(), b.into(), c.into());
        check_shapes(a.shape(), b.shape(), (c.rows(), c.cols()))?;
        // All three must have panels of one height.
        let panel = c.part.layout.panel();
        for other in [a.view.part.layout.panel(), b.view.part.layout.panel()] {
            if other != panel {
                return Err(Error::Panels { left: other, right: panel });
            }
        }
        // Products of one block need no job, whose description would take longer than the product.
        if small::run((self.tiling, self.threads), alpha, &a, &b, beta, &mut c) {
            return Ok(());
        }
        self.multiply_stored(alpha, a, b, beta, c)
    }

    /// Multiplies views whose shapes and panels fit.
    #[inline(never)]
    fn multiply_stored<T: Element>(
        &self,
        alpha: T,
        a: Operand<'_, T>,
        b: Operand<'_, T>,
        beta: T,
        c: ViewMut<'_, T>,
    ) -> Result<(), Error> {
        let panel = c.part.layout.panel();
        // The job uses Bᵀ as its right operand, so its operator is the opposite one.
        let exchanged = match b.op {
            Op::Plain => Op::Transposed,
            Op::Transposed => Op::Plain,
        };
        let (k, b) = (a.shape().1, Operand { op: exchanged, ..b });
        // The default is the one of this processor, whose caches were read once.
        let tiling = self.tiling.unwrap_or_else(|| Tiling::default_for::<T>(k));
        let part = c.part;
        self.run(&Job {
            kernel: <T::Real as Real>::kernel(c.kernel),
            tiling: tiling.fitted(panel),
            m: part.rows,
            n: part.cols,
            k,
            alpha,
            beta,
            a: a.source(),
            b: b.source(),
            c: Destination::Stored { storage: c.storage.as_mut_ptr(), part },
            reach: job::reach::<T>(part.rows, part.cols, k),
            clip: Clip::None,
        })
    }

    /// `C ← α·A·B + β·C` on plain arrays of any strides. It converts them to panels block by block.
    /// Use [`Strided::transposed`] for transposed operands.
    ///
    /// # Errors
    /// [`Error::Shape`] when shapes do not fit.
    #[inline]
    pub fn multiply_strided<T: Element>(
        &self,
        alpha: T,
        a: Strided<'_, T>,
        b: Strided<'_, T>,
        beta: T,
        mut c: StridedMut<'_, T>,
    ) -> Result<(), Error> {
        check_shapes((a.rows(), a.cols()), (b.rows(), b.cols()), (c.rows(), c.cols()))?;
        let (m, n, k) = (c.rows(), c.cols(), a.cols());
        if m != 0 && n != 0 && k != 0 && alpha != T::ZERO && self.is_direct((m, n, k)) {
            let kernel = <T::Real as Real>::kernel(self.kernel);
            let (shape, strides, roles) = direct::form((m, n, k), [a.strides(), b.strides(), c.strides()]);
            let addresses = match roles {
                Roles::Kept => (a.raw().0, b.raw().0, c.raw().0),
                Roles::Exchanged => (b.raw().0, a.raw().0, c.raw().0),
            };
            // SAFETY: the views have these shapes and strides, and that of `C` stands for a mutable
            // borrow; a `Kernel` exists only if the processor has its features.
            if unsafe { direct::attempt(kernel, shape, (alpha, beta), strides, addresses) } {
                return Ok(());
            }
        }
        self.multiply_by_blocks(Clip::None, alpha, a, b, beta, c)
    }

    /// Whether direct kernels, which run on one thread, may compute a product.
    #[inline]
    fn is_direct(&self, shape: direct::Shape) -> bool {
        self.tiling.is_none() && (self.threads == 1 || direct::is_for_one_thread(shape))
    }

    /// The plan of a small product, if it is one that direct kernels compute best.
    pub(super) fn plan<T: Element>(
        &self,
        shape: (usize, usize, usize),
        factors: (T, T),
        strides: [(isize, isize); 3],
    ) -> Option<direct::Plan<T::Real>> {
        let (m, n, k) = shape;
        if m == 0 || n == 0 || k == 0 || factors.0 == T::ZERO || !self.is_direct(shape) {
            return None;
        }
        let (shape, strides, _) = direct::form(shape, strides);
        direct::Plan::new(<T::Real as Real>::kernel(self.kernel), shape, factors, strides)
    }

    /// The lower triangle of `C ← α·A·B + β·C` for a square `C`, with its diagonal. No number of
    /// the shape may be zero, nor α. The other triangle keeps its entries.
    ///
    /// # Errors
    /// [`Error::Shape`] when shapes do not fit.
    pub(crate) fn multiply_lower<T: Element>(
        &self,
        alpha: T,
        a: Strided<'_, T>,
        b: Strided<'_, T>,
        beta: T,
        c: StridedMut<'_, T>,
    ) -> Result<(), Error> {
        check_shapes((a.rows(), a.cols()), (b.rows(), b.cols()), (c.rows(), c.cols()))?;
        self.multiply_by_blocks(Clip::Lower(0), alpha, a, b, beta, c)
    }

    /// Multiplies block by block, on threads if there are some.
    fn multiply_by_blocks<T: Element>(
        &self,
        clip: Clip,
        alpha: T,
        a: Strided<'_, T>,
        b: Strided<'_, T>,
        beta: T,
        c: StridedMut<'_, T>,
    ) -> Result<(), Error> {
        // Panels need adjacent rows in C. If its columns are adjacent, compute Cᵀ = Bᵀ·Aᵀ instead.
        let (a, b, mut c, clip) = match roles(c.strides()) {
            Roles::Exchanged => (b.transposed(), a.transposed(), c.transposed(), clip.transposed()),
            Roles::Kept => (a, b, c, clip),
        };
        let (m, n, k) = (a.rows(), b.cols(), a.cols());
        let reach = job::reach::<T>(m, n, k);
        let (start, row_stride, col_stride) = c.raw();
        let tiling = self.tiling.unwrap_or_else(|| Tiling::default_for::<T>(k));
        self.run(&Job {
            kernel: <T::Real as Real>::kernel(self.kernel),
            tiling: tiling.fitted(blocked::panel_rows::<T>(self.kernel)),
            m,
            n,
            k,
            alpha,
            beta,
            a: plain(&a).left(reach),
            b: plain(&b.transposed()).right(reach),
            c: Destination::Plain { start, row_stride, col_stride },
            reach,
            clip,
        })
    }

    fn run<T: Element>(&self, job: &Job<T>) -> Result<(), Error> {
        if job.m == 0 || job.n == 0 {
            return Ok(());
        }
        // Nothing to multiply: the operands are not read.
        if job.k == 0 || job.alpha == T::ZERO {
            // SAFETY: the caller of this function borrows all of `C` mutably.
            unsafe { scale::scale(&job.c, job.m, job.n, job.beta) };
            return Ok(());
        }
        threads::run(job, self.threads)
    }
}

/// A view as the source of an operand.
#[inline]
fn plain<T: Element>(view: &Strided<'_, T>) -> Plain<T> {
    let (start, row_stride, col_stride) = view.raw();
    Plain { start, row_stride, col_stride }
}

#[inline]
pub(super) fn check_shapes(a: (usize, usize), b: (usize, usize), c: (usize, usize)) -> Result<(), Error> {
    match a.1 == b.0 && (a.0, b.1) == c {
        true => Ok(()),
        false => Err(misfit(a, b, c)),
    }
}

/// The error with the shapes that do not fit.
#[cold]
fn misfit(a: (usize, usize), b: (usize, usize), c: (usize, usize)) -> Error {
    if a.1 != b.0 {
        return Error::Shape { what: "columns of op(A) and rows of op(B)", left: a, right: b };
    }
    Error::Shape { what: "the shapes of op(A)·op(B) and of C", left: (a.0, b.1), right: c }
}

/// `C ← α·A·B + β·C` on plain arrays: `C` is m×n, `A` m×k, `B` k×n; `rs…` and `cs…` are row and
/// column strides.
///
/// ```
/// let (a, b, mut c) = ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0], [f64::NAN; 4]);
/// lightfoot_matrix::gemm(2, 2, 2, 1.0, &a, 2, 1, &b, 2, 1, 0.0, &mut c, 2, 1)?;
/// assert_eq!(c, [19.0, 22.0, 43.0, 50.0]);
/// # Ok::<(), lightfoot_matrix::Error>(())
/// ```
///
/// # Errors
/// [`Error::OutOfBounds`] when strides reach outside a slice, [`Error::Overlap`] when entries of
/// `C` coincide.
#[allow(clippy::too_many_arguments, reason = "the signature that callers of a BLAS know")]
#[inline]
pub fn gemm<T: Element>(
    m: usize,
    n: usize,
    k: usize,
    alpha: T,
    a: &[T],
    rsa: isize,
    csa: isize,
    b: &[T],
    rsb: isize,
    csb: isize,
    beta: T,
    c: &mut [T],
    rsc: isize,
    csc: isize,
) -> Result<(), Error> {
    // Small products with strides that are usual for a BLAS are checked in a few instructions: each
    // of the general checks below takes as long as a product of 4×4×4.
    let strides = [(rsa, csa), (rsb, csb), (rsc, csc)];
    let fits = |(row, col): (isize, isize), rows: usize, cols: usize, len: usize| {
        len > (rows - 1) * row as usize + (cols - 1) * col as usize
    };
    if direct::are_usual((m, n, k), strides)
        && alpha != T::ZERO
        && fits(strides[0], m, k, a.len())
        && fits(strides[1], k, n, b.len())
        && fits(strides[2], m, n, c.len())
    {
        let kernel = <T::Real as Real>::kernel(Kernel::best());
        let (shape, strides, roles) = direct::form((m, n, k), strides);
        let addresses = match roles {
            Roles::Kept => (a.as_ptr(), b.as_ptr(), c.as_mut_ptr()),
            Roles::Exchanged => (b.as_ptr(), a.as_ptr(), c.as_mut_ptr()),
        };
        // SAFETY: all entries lie in the slices, no two of `C` share a place, and `c` is borrowed
        // mutably; a `Kernel` exists only if the processor has its features.
        if unsafe { direct::attempt(kernel, shape, (alpha, beta), strides, addresses) } {
            return Ok(());
        }
    }
    let a = Strided::new(a, m, k, rsa, csa)?;
    let b = Strided::new(b, k, n, rsb, csb)?;
    Gemm::new().multiply_strided(alpha, a, b, beta, StridedMut::new(c, m, n, rsc, csc)?)
}
