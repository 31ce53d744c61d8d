//! The slow twins of factorisations: unblocked textbook loops on dense arrays by columns, entry
//! (i, j) of an m×n array at `a[i + j·m]`.
//!
//! Source: Golub and Van Loan 2013, algorithms 3.4.1 (LU), 4.2.1 (Cholesky), 5.2.1 (QR), 3.1.1
//! (substitution).

use crate::{Element, Real};

fn size<T: Element>(value: T) -> T::Real {
    value.re().abs() + value.im().abs()
}

/// LU with partial pivoting of an m×n array in place. Returns the pivots and the first column
/// without one.
pub fn lu<T: Element>(a: &mut [T], (m, n): (usize, usize)) -> (Vec<usize>, Option<usize>) {
    let (mut pivots, mut singular) = (Vec::new(), None);
    for j in 0..m.min(n) {
        let mut pivot = j;
        for i in j + 1..m {
            if size(a[i + j * m]) > size(a[pivot + j * m]) {
                pivot = i;
            }
        }
        pivots.push(pivot);
        if a[pivot + j * m] == T::ZERO {
            singular = singular.or(Some(j));
            continue;
        }
        for c in 0..n {
            a.swap(j + c * m, pivot + c * m);
        }
        for i in j + 1..m {
            a[i + j * m] = a[i + j * m] / a[j + j * m];
            for c in j + 1..n {
                a[i + c * m] = a[i + c * m] - a[i + j * m] * a[j + c * m];
            }
        }
    }
    (pivots, singular)
}

/// The lower Cholesky factor of a Hermitian n×n array in place, or the column whose pivot is not
/// positive.
pub fn cholesky<T: Element>(a: &mut [T], n: usize) -> Result<(), usize> {
    for j in 0..n {
        let mut pivot = a[j + j * n].re();
        for k in 0..j {
            pivot = pivot - (a[j + k * n] * a[j + k * n].conj()).re();
        }
        let is_positive = pivot > T::Real::ZERO;
        if !is_positive {
            return Err(j);
        }
        let root = T::from_re_im(pivot.sqrt(), T::Real::ZERO);
        a[j + j * n] = root;
        for i in j + 1..n {
            let mut sum = a[i + j * n];
            for k in 0..j {
                sum = sum - a[i + k * n] * a[j + k * n].conj();
            }
            a[i + j * n] = sum / root;
        }
    }
    Ok(())
}

/// The upper triangle R of a QR factorisation of an m×n array, m ≥ n, as n×n, by reflections of
/// whole columns. Diagonal entries have LAPACK's sign: opposite to that of the entry they replace.
pub fn qr_upper<T: Element>(a: &mut [T], (m, n): (usize, usize)) -> Vec<T> {
    for j in 0..n {
        let below = (j + 1..m).map(|i| (a[i + j * m] * a[i + j * m].conj()).re());
        let below = below.fold(T::Real::ZERO, |sum, square| sum + square);
        let alpha = a[j + j * m];
        if below == T::Real::ZERO && alpha.im() == T::Real::ZERO {
            continue;
        }
        let norm = (below + (alpha * alpha.conj()).re()).sqrt();
        let beta = if alpha.re() < T::Real::ZERO { norm } else { T::Real::ZERO - norm };
        let beta = T::from_re_im(beta, T::Real::ZERO);
        let (tau, divisor) = ((beta - alpha) / beta, alpha - beta);
        let v: Vec<T> = (j..m).map(|i| if i == j { T::ONE } else { a[i + j * m] / divisor }).collect();
        for c in j..n {
            let dot = v.iter().zip(j..m).fold(T::ZERO, |sum, (v, i)| sum + v.conj() * a[i + c * m]);
            let factor = tau.conj() * dot;
            v.iter().zip(j..m).for_each(|(&v, i)| a[i + c * m] = a[i + c * m] - v * factor);
        }
    }
    let upper = |i: usize, j: usize| if i <= j { a[i + j * m] } else { T::ZERO };
    (0..n).flat_map(|j| (0..n).map(move |i| (i, j))).map(|(i, j)| upper(i, j)).collect()
}

/// `B ← L⁻¹·B` for a lower triangle of n×n, `B` n×k.
pub fn solve_lower<T: Element>(l: &[T], b: &mut [T], (n, k): (usize, usize)) {
    for j in 0..k {
        for i in 0..n {
            let mut sum = b[i + j * n];
            for p in 0..i {
                sum = sum - l[i + p * n] * b[p + j * n];
            }
            b[i + j * n] = sum / l[i + i * n];
        }
    }
}
