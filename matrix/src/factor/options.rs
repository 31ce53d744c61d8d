//! How to factorise: threads, kernel, block size; and the division of right-hand sides among
//! threads.

use crate::gemm::{pool, Gemm};
use crate::kernel::Kernel;
use crate::strided::StridedMut;
use crate::{Element, Error};
use std::sync::Mutex;

/// How to factorise and solve: threads and kernel. The default is one thread and the best kernel.
///
/// ```
/// use lightfoot_matrix::{Factor, StridedMut};
/// let mut a = [4.0, 2.0, 2.0, 3.0];
/// let mut b = [8.0, 7.0];
/// let lu = Factor::new().lu(StridedMut::col_major(&mut a, 2, 2)?)?;
/// lu.solve(StridedMut::col_major(&mut b, 2, 1)?)?;
/// assert_eq!((b, lu.determinant()), ([1.25, 1.5], 8.0));
/// # Ok::<(), lightfoot_matrix::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Factor {
    pub(super) gemm: Gemm,
    pub(super) kernel: &'static Kernel,
    pub(super) threads: usize,
    pub(super) block: Option<usize>,
    /// The fewest multiply-adds for which a thread is used.
    pub(super) worth: usize,
}

impl Default for Factor {
    fn default() -> Self {
        Factor::new()
    }
}

impl Factor {
    /// One thread and the best kernel.
    pub fn new() -> Factor {
        Factor { gemm: Gemm::new(), kernel: Kernel::best(), threads: 1, block: None, worth: WORTH_A_THREAD }
    }

    /// Allows up to `threads` threads; 0 counts as 1. Results do not depend on the number.
    #[must_use]
    pub fn threads(self, threads: usize) -> Factor {
        Factor { gemm: self.gemm.threads(threads), threads: threads.max(1), ..self }
    }

    /// Sets the kernel.
    #[must_use]
    pub fn kernel(self, kernel: &'static Kernel) -> Factor {
        Factor { gemm: self.gemm.kernel(kernel), kernel, ..self }
    }

    /// Sets the columns of a block. [`Factor::lu`] then factorises that many columns at a time in
    /// place of half of them, and the blocks of reflectors of [`Factor::qr`] have this width. 0
    /// counts as 1.
    #[must_use]
    pub fn block(self, columns: usize) -> Factor {
        Factor { block: Some(columns.max(1)), ..self }
    }

    /// These options for the steps of a factorisation.
    pub(super) fn inside(&self) -> Factor {
        Factor { worth: WORTH_INSIDE, ..*self }
    }

    /// These options for one thread.
    pub(super) fn single(&self) -> Factor {
        self.threads(1)
    }
}

/// With fewer multiply-adds a second thread costs more than it gains.
pub(super) const WORTH_A_THREAD: usize = 1 << 18;
/// With fewer multiply-adds, a step inside of a factorisation stays on one thread. This is more
/// than [`WORTH_A_THREAD`]: the next step is another thread's, which must fetch what this one wrote
/// from the caches of another core, at a tenth of the speed of its own.
pub(super) const WORTH_INSIDE: usize = 1 << 22;

/// Calls `run` with parts of the columns of `b`, each on a thread of its own, if `work`
/// multiply-adds are worth it. Parts begin at multiples of `unit`.
pub(super) fn on_columns<T: Element>(
    options: &Factor,
    work: usize,
    unit: usize,
    b: StridedMut<'_, T>,
    run: impl Fn(StridedMut<'_, T>, usize) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    let cols = b.cols();
    let parts = options.threads.min(work / options.worth).min(cols.div_ceil(unit)).max(1);
    if parts == 1 {
        return run(b, 0);
    }
    let mut rest = b;
    let mut pieces = Vec::with_capacity(parts);
    let edge = |part: usize| (cols.div_ceil(unit) * part / parts * unit).min(cols);
    for part in 0..parts {
        let (own, others) = rest.split_cols(edge(part + 1) - edge(part));
        rest = others;
        pieces.push(Mutex::new(Some((own, edge(part)))));
    }
    pool::try_run(parts, parts, &|index| {
        let piece = pieces[index].lock().unwrap_or_else(|broken| broken.into_inner()).take();
        piece.map_or(Ok(()), |(own, first)| run(own, first))
    })
}
