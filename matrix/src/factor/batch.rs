//! Many small matrices at once: each is factorised by one thread, neighbours by the same one.
//!
//! Matrix `i` begins at element `i·distance` of a slice; if the distance is the length of one, they
//! follow each other without gaps. Results have the bits of single calls. **Leaves out** kernels
//! that put one matrix into each lane of a vector, which would pay below about 8 rows.

use super::options::{Factor, WORTH_A_THREAD};
use super::shape::{same, Triangle};
use crate::gemm::pool;
use crate::strided::{StridedMut, StridedShape};
use crate::{Element, Error};
use std::sync::Mutex;

/// The part of a batch that one thread gets: matrices, pivots, and outcomes.
type Part<'a, T> = (&'a mut [T], &'a mut [usize], &'a mut [Option<usize>]);

impl Factor {
    /// Factorises `outcomes.len()` matrices of one shape as [`Factor::lu`] does. `pivots` has those
    /// of one matrix after the other; an outcome is the first column without a pivot.
    ///
    /// ```
    /// use lightfoot_matrix::{Factor, StridedShape};
    /// // Two matrices of 2×2, one after the other; the second is singular.
    /// let mut data = [4.0, 2.0, 2.0, 3.0, 1.0, 1.0, 1.0, 1.0];
    /// let (mut pivots, mut outcomes) = ([0; 4], [None; 2]);
    /// let shape = StridedShape::col_major(2, 2)?;
    /// Factor::new().lu_batch(shape, 4, &mut data, &mut pivots, &mut outcomes)?;
    /// assert_eq!((data[3], outcomes), (2.0, [None, Some(1)]));
    /// # Ok::<(), lightfoot_matrix::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfBounds`] when the last matrix ends beyond the slice, [`Error::Overlap`] or
    /// [`Error::Invalid`] when entries or matrices share places, [`Error::Shape`] when the number
    /// of pivots does not fit.
    pub fn lu_batch<T: Element>(
        &self,
        shape: StridedShape,
        distance: usize,
        data: &mut [T],
        pivots: &mut [usize],
        outcomes: &mut [Option<usize>],
    ) -> Result<(), Error> {
        let steps = shape.rows().min(shape.cols());
        let what = "the number of pivots and that of all smaller sides";
        same(what, (pivots.len(), 1), (steps * outcomes.len(), 1))?;
        self.each(shape, distance, steps, (data, pivots, outcomes), |options, view, pivots, outcome| {
            *outcome = options.lu_with(view, pivots)?;
            Ok(())
        })
    }

    /// Factorises `outcomes.len()` matrices of one shape as [`Factor::cholesky`] does. An outcome
    /// is the first column whose pivot is not positive.
    ///
    /// # Errors
    /// [`Error::Shape`] when the shape is not square, [`Error::OutOfBounds`] when the last matrix
    /// ends beyond the slice, [`Error::Overlap`] or [`Error::Invalid`] when entries or matrices
    /// share places.
    pub fn cholesky_batch<T: Element>(
        &self,
        triangle: Triangle,
        shape: StridedShape,
        distance: usize,
        data: &mut [T],
        outcomes: &mut [Option<usize>],
    ) -> Result<(), Error> {
        self.each(shape, distance, 0, (data, &mut [], outcomes), |options, view, _, outcome| {
            *outcome = match options.cholesky_in_place(triangle, view) {
                Ok(()) => None,
                Err(Error::NotPositiveDefinite { column }) => Some(column),
                Err(error) => return Err(error),
            };
            Ok(())
        })
    }

    /// Calls `run` with every matrix, its pivots, and its outcome, on threads.
    fn each<T: Element>(
        &self,
        shape: StridedShape,
        distance: usize,
        steps: usize,
        (data, pivots, outcomes): Part<'_, T>,
        run: impl Fn(&Factor, StridedMut<'_, T>, &mut [usize], &mut Option<usize>) -> Result<(), Error> + Sync,
    ) -> Result<(), Error> {
        let (length, count) = (shape.length()?, outcomes.len());
        if count == 0 {
            return Ok(());
        }
        if count > 1 && distance < length {
            let (field, expected) =
                ("distance from one matrix of the batch to the next", "at least its length");
            return Err(Error::Invalid { field, value: distance, expected });
        }
        let end = (count - 1).checked_mul(distance).and_then(|at| at.checked_add(length));
        let end = end.ok_or(Error::TooLarge { rows: count, cols: distance })?;
        if end > data.len() {
            return Err(Error::OutOfBounds { reach: (0, end as isize - 1), len: data.len() });
        }
        let single = self.single();
        let chain = |(data, pivots, outcomes): Part<'_, T>| -> Result<(), Error> {
            for (i, outcome) in outcomes.iter_mut().enumerate() {
                let view = StridedMut::with_shape(&mut data[i * distance..], shape)?;
                run(&single, view, &mut pivots[i * steps..][..steps], outcome)?;
            }
            Ok(())
        };
        let work =
            [shape.rows(), shape.cols(), shape.cols(), count].into_iter().fold(1, usize::saturating_mul);
        let threads = self.threads.min(work / WORTH_A_THREAD).min(count).max(1);
        if threads == 1 {
            return chain((data, pivots, outcomes));
        }
        let parts = split((data, pivots, outcomes), threads, distance, steps);
        let result = Mutex::new(Ok(()));
        pool::run(threads, threads, &|index| {
            let part = parts[index].lock().unwrap_or_else(|broken| broken.into_inner()).take();
            let Some(part) = part else { return };
            if let Err(error) = chain(part) {
                *result.lock().unwrap_or_else(|broken| broken.into_inner()) = Err(error);
            }
        });
        result.into_inner().unwrap_or_else(|broken| broken.into_inner())
    }
}

/// Cuts a batch into nearly equal parts.
fn split<T>(
    whole: Part<'_, T>,
    threads: usize,
    distance: usize,
    steps: usize,
) -> Vec<Mutex<Option<Part<'_, T>>>> {
    let (mut data, mut pivots, mut outcomes) = whole;
    let count = outcomes.len();
    let mut parts = Vec::with_capacity(threads);
    for part in 0..threads {
        let own = count * (part + 1) / threads - count * part / threads;
        let len = if part + 1 == threads { data.len() } else { own * distance };
        let (own_data, rest) = data.split_at_mut(len);
        let (own_pivots, rest_pivots) = pivots.split_at_mut(own * steps);
        let (own_outcomes, rest_outcomes) = outcomes.split_at_mut(own);
        (data, pivots, outcomes) = (rest, rest_pivots, rest_outcomes);
        parts.push(Mutex::new(Some((own_data, own_pivots, own_outcomes))));
    }
    parts
}
