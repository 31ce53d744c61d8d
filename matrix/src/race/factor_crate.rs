//! Crate `faer`'s factorisations, behind feature `peers`.

use super::contest::Run;
use super::operation::Operation;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::matmul::triangular::{matmul, BlockStructure};
use faer::linalg::{cholesky, lu, qr, triangular_solve};
use faer::{Accum, Mat, MatMut, MatRef, Par};

/// A run of `operation` on copies of column-major n×n arrays.
pub(super) fn run<T: faer::traits::RealField + Copy + 'static>(
    operation: Operation,
    n: usize,
    threads: usize,
    one: T,
    (a, b): (Vec<T>, Vec<T>),
) -> Option<Run> {
    let par = if threads == 1 { Par::Seq } else { Par::rayon(threads) };
    let mut copy = b.clone();
    Some(match operation {
        Operation::Lu => {
            let (mut perm, mut inverse) = (vec![0usize; n], vec![0usize; n]);
            let params = Default::default();
            let mut memory = MemBuffer::new(lu::partial_pivoting::factor::lu_in_place_scratch::<usize, T>(
                n, n, par, params,
            ));
            Box::new(move || {
                copy.copy_from_slice(&a);
                let view = MatMut::from_column_major_slice_mut(&mut copy, n, n);
                let stack = MemStack::new(&mut memory);
                lu::partial_pivoting::factor::lu_in_place(view, &mut perm, &mut inverse, par, stack, params);
            })
        }
        Operation::Cholesky => {
            let params = Default::default();
            let mut memory =
                MemBuffer::new(cholesky::llt::factor::cholesky_in_place_scratch::<T>(n, par, params));
            Box::new(move || {
                copy.copy_from_slice(&a);
                let view = MatMut::from_column_major_slice_mut(&mut copy, n, n);
                let stack = MemStack::new(&mut memory);
                cholesky::llt::factor::cholesky_in_place(view, Default::default(), par, stack, params)
                    .expect("positive definite");
            })
        }
        Operation::Qr => {
            let block = qr::no_pivoting::factor::recommended_block_size::<T>(n, n);
            let params = Default::default();
            let mut memory =
                MemBuffer::new(qr::no_pivoting::factor::qr_in_place_scratch::<T>(n, n, block, par, params));
            let mut coefficients = Mat::<T>::zeros(block, n);
            Box::new(move || {
                copy.copy_from_slice(&a);
                let view = MatMut::from_column_major_slice_mut(&mut copy, n, n);
                let stack = MemStack::new(&mut memory);
                qr::no_pivoting::factor::qr_in_place(view, coefficients.as_mut(), par, stack, params);
            })
        }
        Operation::Solve => Box::new(move || {
            copy.copy_from_slice(&b);
            let view = MatMut::from_column_major_slice_mut(&mut copy, n, n);
            let a = MatRef::from_column_major_slice(&a, n, n);
            triangular_solve::solve_lower_triangular_in_place(a, view, par);
        }),
        // The crate has no product with a symmetric matrix.
        Operation::Symmetric => return None,
        Operation::Inverse => {
            let (mut perm, mut backward) = (vec![0usize; n], vec![0usize; n]);
            let params = Default::default();
            let factor_scratch =
                lu::partial_pivoting::factor::lu_in_place_scratch::<usize, T>(n, n, par, params);
            let scratch =
                factor_scratch.or(lu::partial_pivoting::inverse::inverse_scratch::<usize, T>(n, par));
            let (mut memory, mut factors) = (MemBuffer::new(scratch), a.clone());
            Box::new(move || {
                factors.copy_from_slice(&a);
                let view = MatMut::from_column_major_slice_mut(&mut factors, n, n);
                let stack = MemStack::new(&mut memory);
                let (_, rows) = lu::partial_pivoting::factor::lu_in_place(
                    view,
                    &mut perm,
                    &mut backward,
                    par,
                    stack,
                    params,
                );
                let factors = MatRef::from_column_major_slice(&factors, n, n);
                let inverse = MatMut::from_column_major_slice_mut(&mut copy, n, n);
                lu::partial_pivoting::inverse::inverse(inverse, factors, factors, rows, par, stack);
            })
        }
        Operation::RankUpdate | Operation::Multiply => Box::new(move || {
            let view = MatMut::from_column_major_slice_mut(&mut copy, n, n);
            let a = MatRef::from_column_major_slice(&a, n, n);
            let whole = BlockStructure::Rectangular;
            let half = BlockStructure::TriangularLower;
            if operation == Operation::RankUpdate {
                matmul(view, half, Accum::Replace, a, whole, a.transpose(), whole, one, par);
            } else {
                let b = MatRef::from_column_major_slice(&b, n, n);
                matmul(view, whole, Accum::Replace, a, half, b, whole, one, par);
            }
        }),
    })
}
