//! Many small products at once.

use super::multiplication::Gemm;
use super::operand::Operand;
use crate::{BlockedMatrix, Element, Error};

/// `Cᵢ ← α·op(Aᵢ)·op(Bᵢ) + β·Cᵢ` for every item of a batch, on the threads of `gemm`; each product
/// runs on one thread, so the results are those of single calls.
///
/// # Errors
/// [`Error::Invalid`] when the three slices differ in length; otherwise the first error of
/// [`Gemm::multiply`]. Items before the failing one have been computed.
pub fn multiply_batch<T: Element>(
    gemm: &Gemm,
    alpha: T,
    a: &[Operand<'_, T>],
    b: &[Operand<'_, T>],
    beta: T,
    c: &mut [BlockedMatrix<T>],
) -> Result<(), Error> {
    for (field, value) in [("length of the batch of A", a.len()), ("length of the batch of B", b.len())] {
        if value != c.len() {
            return Err(Error::Invalid { field, value, expected: "as many as there are results" });
        }
    }
    let single = gemm.threads(1);
    // Neighbouring items go to one thread.
    let chunk = c.len().div_ceil(gemm.threads).max(1);
    let run = |a: &[Operand<'_, T>], b: &[Operand<'_, T>], c: &mut [BlockedMatrix<T>]| {
        let mut items = a.iter().zip(b).zip(c);
        items.try_for_each(|((a, b), c)| single.multiply(alpha, *a, *b, beta, c))
    };
    std::thread::scope(|scope| {
        let parts = a.chunks(chunk).zip(b.chunks(chunk)).zip(c.chunks_mut(chunk));
        let mut parts = parts.map(|((a, b), c)| (a, b, c));
        // The calling thread takes the first part.
        let first = parts.next();
        let others: Vec<_> = parts.map(|(a, b, c)| scope.spawn(move || run(a, b, c))).collect();
        let own = first.map_or(Ok(()), |(a, b, c)| run(a, b, c));
        let others: Vec<_> =
            others.into_iter().map(|thread| thread.join().expect("a part panicked")).collect();
        others.into_iter().fold(own, Result::and)
    })
}
