//! Products of one shape, prepared once: shapes, strides, α and β are checked and the kernels are
//! chosen when the value is made, so that a call has three addresses left to look at.
//!
//! **Why.** A product of 4×4×4 takes 4 ns; checking three arrays takes as long. **Leaves out**
//! blocked operands, whose shapes are checked already ([`super::Gemm::multiply`]).

use super::direct::{roles, Plan, Roles};
use super::multiplication::{check_shapes, Gemm};
use super::pool;
use super::threads::WORTH_A_THREAD;
use crate::strided::{Strided, StridedMut, StridedShape};
use crate::{Element, Error};
use std::ops::Range;
use std::sync::Mutex;

/// `C ← α·A·B + β·C` on plain arrays of fixed shapes and strides, made by [`Gemm::prepare`].
///
/// ```
/// use lightfoot_matrix::{Gemm, StridedShape};
/// let square = StridedShape::col_major(2, 2)?;
/// let product = Gemm::new().prepare(1.0, square, square, 0.0, square)?;
/// let (a, b, mut c) = ([1.0, 3.0, 2.0, 4.0], [5.0, 7.0, 6.0, 8.0], [f64::NAN; 4]);
/// product.multiply(&a, &b, &mut c)?;
/// assert_eq!(c, [19.0, 43.0, 22.0, 50.0]);
/// # Ok::<(), lightfoot_matrix::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Prepared<T: Element> {
    /// The tiles, if the product is a small one.
    plan: Option<Plan<T::Real>>,
    /// The lengths that the three slices need.
    lengths: [usize; 3],
    /// Whether Cᵀ = Bᵀ·Aᵀ is computed.
    roles: Roles,
    gemm: Gemm,
    alpha: T,
    beta: T,
    a: StridedShape,
    b: StridedShape,
    c: StridedShape,
}

/// How the products of a batch lie in three slices: product `i` starts at `i` times a distance in
/// each. Distances count elements; that of an operand may be 0, so that all products share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The number of products.
    pub count: usize,
    /// The distance from one `A` to the next.
    pub a: usize,
    /// The distance from one `B` to the next.
    pub b: usize,
    /// The distance from one `C` to the next.
    pub c: usize,
}

impl Gemm {
    /// Prepares `C ← α·A·B + β·C` for arrays of these shapes and strides. Results have the bits of
    /// [`Gemm::multiply_strided`].
    ///
    /// # Errors
    /// [`Error::Shape`] when shapes do not fit, [`Error::Overlap`] when entries of `C` share a
    /// place, [`Error::OutOfBounds`] when a negative stride reaches before the start of a slice,
    /// [`Error::TooLarge`] when no slice is large enough.
    pub fn prepare<T: Element>(
        &self,
        alpha: T,
        a: StridedShape,
        b: StridedShape,
        beta: T,
        c: StridedShape,
    ) -> Result<Prepared<T>, Error> {
        check_shapes((a.rows(), a.cols()), (b.rows(), b.cols()), (c.rows(), c.cols()))?;
        let lengths = [a.length()?, b.length()?, c.length()?];
        c.check_injective()?;
        let roles = roles(c.strides());
        let strides = [a.strides(), b.strides(), c.strides()];
        let plan = self.plan((c.rows(), c.cols(), a.cols()), (alpha, beta), strides);
        Ok(Prepared { plan, lengths, roles, gemm: *self, alpha, beta, a, b, c })
    }
}

impl<T: Element> Prepared<T> {
    /// Computes the product of slices that begin with the arrays of the prepared shapes.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`] when a slice is shorter than its array.
    #[inline]
    pub fn multiply(&self, a: &[T], b: &[T], c: &mut [T]) -> Result<(), Error> {
        let [needs_a, needs_b, needs_c] = self.lengths;
        if a.len() < needs_a || b.len() < needs_b || c.len() < needs_c {
            return Err(self.short([a.len(), b.len(), c.len()]));
        }
        match &self.plan {
            // SAFETY: the slices are as long as the arrays, `c` is borrowed mutably, and a `Kernel`
            // exists only if the processor has its features.
            Some(plan) => unsafe { self.run(plan, a.as_ptr(), b.as_ptr(), c.as_mut_ptr()) },
            None => self.general(&self.gemm, a, b, c)?,
        }
        Ok(())
    }

    /// Computes the products of a batch on the threads of the [`Gemm`]; each product is computed by
    /// one thread. Results have the bits of [`Self::multiply`].
    ///
    /// # Errors
    /// [`Error::OutOfBounds`] when the last array of a slice ends beyond it, [`Error::Invalid`] when
    /// results would overlap, [`Error::TooLarge`] when a place overflows.
    pub fn multiply_batch(&self, batch: Batch, a: &[T], b: &[T], c: &mut [T]) -> Result<(), Error> {
        if batch.count == 0 {
            return Ok(());
        }
        self.check_batch(&batch, [a.len(), b.len(), c.len()])?;
        let work = [self.c.rows(), self.c.cols(), self.a.cols(), batch.count];
        let work = work.into_iter().fold(1, usize::saturating_mul);
        let threads = self.gemm.threads.min(work / WORTH_A_THREAD).min(batch.count).max(1);
        if threads == 1 {
            return self.part(&batch, 0..batch.count, a, b, c);
        }
        // Every part gets its own piece of C.
        let mut rest = c;
        let mut parts = Vec::with_capacity(threads);
        for part in 0..threads {
            let range = batch.count * part / threads..batch.count * (part + 1) / threads;
            let len = if part + 1 == threads { rest.len() } else { range.len() * batch.c };
            let (own, others) = rest.split_at_mut(len);
            rest = others;
            parts.push(Mutex::new((range, own)));
        }
        pool::try_run(threads, threads, &|index| {
            let mut part = parts[index].lock().unwrap_or_else(|broken| broken.into_inner());
            let (range, c) = &mut *part;
            self.part(&batch, range.clone(), a, b, c)
        })
    }

    /// A batch of `count` products whose arrays follow each other without gaps.
    pub fn contiguous(&self, count: usize) -> Batch {
        let [a, b, c] = self.lengths;
        Batch { count, a, b, c }
    }

    /// Computes products `range` of a checked batch; `c` begins with the first of their results.
    fn part(&self, batch: &Batch, range: Range<usize>, a: &[T], b: &[T], c: &mut [T]) -> Result<(), Error> {
        let (a, b) = (&a[range.start * batch.a..], &b[range.start * batch.b..]);
        let Some(plan) = &self.plan else {
            let single = self.gemm.threads(1);
            return (0..range.len()).try_for_each(|i| {
                self.general(&single, &a[i * batch.a..], &b[i * batch.b..], &mut c[i * batch.c..])
            });
        };
        let (mut a, mut b, mut c) = (a.as_ptr(), b.as_ptr(), c.as_mut_ptr());
        for _ in range {
            // SAFETY: `check_batch` found all arrays of the batch inside the slices, and results
            // do not overlap.
            unsafe { self.run(plan, a, b, c) };
            (a, b, c) = (a.wrapping_add(batch.a), b.wrapping_add(batch.b), c.wrapping_add(batch.c));
        }
        Ok(())
    }

    /// Runs the plan on slices that start at these addresses.
    ///
    /// # Safety
    /// The arrays of the prepared shapes are readable at `a` and `b`, writable at `c`, and nothing
    /// else touches that one.
    #[inline(always)]
    unsafe fn run(&self, plan: &Plan<T::Real>, a: *const T, b: *const T, c: *mut T) {
        let (a, b) = (a.wrapping_add(self.a.origin()).cast(), b.wrapping_add(self.b.origin()).cast());
        let c = c.wrapping_add(self.c.origin()).cast();
        // SAFETY: the caller's promise.
        unsafe {
            match self.roles {
                Roles::Kept => plan.run(a, b, c),
                Roles::Exchanged => plan.run(b, a, c),
            }
        }
    }

    /// Computes a product that has no plan.
    fn general(&self, gemm: &Gemm, a: &[T], b: &[T], c: &mut [T]) -> Result<(), Error> {
        let (a, b) = (Strided::with_shape(a, self.a)?, Strided::with_shape(b, self.b)?);
        gemm.multiply_strided(self.alpha, a, b, self.beta, StridedMut::with_shape(c, self.c)?)
    }

    /// Refuses batches that reach outside of slices of these lengths, or whose results overlap.
    fn check_batch(&self, batch: &Batch, lens: [usize; 3]) -> Result<(), Error> {
        if batch.count > 1 && batch.c < self.lengths[2] {
            return Err(Error::Invalid {
                field: "distance from one result of the batch to the next",
                value: batch.c,
                expected: "at least the length of a result",
            });
        }
        let distances = [batch.a, batch.b, batch.c];
        for ((length, distance), len) in self.lengths.into_iter().zip(distances).zip(lens) {
            let end = (batch.count - 1).checked_mul(distance).and_then(|at| at.checked_add(length));
            let end = end.and_then(|end| isize::try_from(end).ok());
            let end = end.ok_or(Error::TooLarge { rows: batch.count, cols: distance })?;
            if end as usize > len {
                return Err(Error::OutOfBounds { reach: (0, end - 1), len });
            }
        }
        Ok(())
    }

    /// The error for slices of which one is too short.
    #[cold]
    fn short(&self, lens: [usize; 3]) -> Error {
        let pairs = self.lengths.into_iter().zip(lens);
        let mut short = pairs.filter(|(needs, len)| len < needs);
        let (needs, len) = short.next().expect("called for a short slice");
        Error::OutOfBounds { reach: (0, needs as isize - 1), len }
    }
}
