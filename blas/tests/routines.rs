//! Every routine, in both orders, with every form, against loops of its definition.
#![allow(clippy::too_many_arguments, reason = "routines of the BLAS")]

use lightfoot_blas::*;
use num_complex::Complex64;
use proptest::prelude::*;
use std::ffi::{c_char, c_int, c_void};

const ORDERS: [c_int; 2] = [101, 102];
const FORMS: [(c_int, u8); 3] = [(111, b'N'), (112, b'T'), (113, b'C')];

/// A matrix of complex numbers with an order and a leading dimension; real routines see its real
/// parts.
#[derive(Clone)]
struct Matrix {
    rows: usize,
    cols: usize,
    order: c_int,
    leading: usize,
    data: Vec<Complex64>,
}

impl Matrix {
    fn random(rows: usize, cols: usize, order: c_int, state: &mut u64) -> Matrix {
        let (long, short) = if order == 101 { (rows, cols) } else { (cols, rows) };
        let leading = short.max(1) + 2;
        let mut unit = || {
            *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (*state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
        };
        let data = (0..leading * long.max(1)).map(|_| Complex64::new(unit(), unit())).collect();
        Matrix { rows, cols, order, leading, data }
    }

    fn place(&self, i: usize, j: usize) -> usize {
        if self.order == 101 {
            i * self.leading + j
        } else {
            j * self.leading + i
        }
    }

    fn get(&self, i: usize, j: usize) -> Complex64 {
        self.data[self.place(i, j)]
    }

    fn real(&self) -> Vec<f64> {
        self.data.iter().map(|z| z.re).collect()
    }

    /// This matrix without imaginary parts.
    fn into_real(mut self) -> Matrix {
        self.data.iter_mut().for_each(|z| z.im = 0.0);
        self
    }

    fn ld(&self) -> c_int {
        self.leading as c_int
    }
}

/// Entry (i, j) of op(A).
fn formed(a: &Matrix, form: u8, i: usize, j: usize) -> Complex64 {
    match form {
        b'N' => a.get(i, j),
        b'T' => a.get(j, i),
        _ => a.get(j, i).conj(),
    }
}

/// op(A)·op(B) at (i, j).
fn product(a: &Matrix, fa: u8, b: &Matrix, fb: u8, k: usize, i: usize, j: usize) -> Complex64 {
    (0..k).map(|p| formed(a, fa, i, p) * formed(b, fb, p, j)).sum()
}

/// Compares every number of an array, also those between the matrix's entries, which must stay.
fn assert_matrix(got: &[Complex64], before: &Matrix, want: impl Fn(usize, usize) -> Option<Complex64>) {
    let mut expected = before.data.clone();
    for i in 0..before.rows {
        for j in 0..before.cols {
            if let Some(value) = want(i, j) {
                expected[before.place(i, j)] = value;
            }
        }
    }
    for (got, want) in got.iter().zip(&expected) {
        assert!((got - want).l1_norm() < 1e-9 * (1.0 + want.l1_norm()), "{got} against {want}");
    }
}

fn complex(real: &[f64]) -> Vec<Complex64> {
    real.iter().map(|&re| Complex64::new(re, 0.0)).collect()
}

fn pointer(data: &[Complex64]) -> *const c_void {
    data.as_ptr().cast()
}

fn letter(letter: u8) -> c_char {
    letter as c_char
}

fn check_gemm(m: usize, n: usize, k: usize, seed: u64) {
    let mut state = seed;
    let (alpha, beta) = (Complex64::new(0.5, -2.0), Complex64::new(-1.0, 0.25));
    for order in ORDERS {
        for (number_a, form_a) in FORMS {
            for (number_b, form_b) in FORMS {
                let shape = |form: u8, rows: usize, cols: usize| {
                    if form == b'N' {
                        (rows, cols)
                    } else {
                        (cols, rows)
                    }
                };
                let (a_rows, a_cols) = shape(form_a, m, k);
                let (b_rows, b_cols) = shape(form_b, k, n);
                let a = Matrix::random(a_rows, a_cols, order, &mut state);
                let b = Matrix::random(b_rows, b_cols, order, &mut state);
                let before = Matrix::random(m, n, order, &mut state);
                let mut c = before.clone();
                let sizes = [m, n, k].map(|size| size as c_int);
                // SAFETY: the arrays have these sizes.
                unsafe {
                    cblas_zgemm(
                        order,
                        number_a,
                        number_b,
                        sizes[0],
                        sizes[1],
                        sizes[2],
                        (&raw const alpha).cast(),
                        pointer(&a.data),
                        a.ld(),
                        pointer(&b.data),
                        b.ld(),
                        (&raw const beta).cast(),
                        c.data.as_mut_ptr().cast(),
                        c.ld(),
                    );
                }
                assert_matrix(&c.data, &before, |i, j| {
                    Some(alpha * product(&a, form_a, &b, form_b, k, i, j) + beta * before.get(i, j))
                });
                // Real types, from C and, where columns are contiguous, from Fortran.
                let (a, b, before) = (a.into_real(), b.into_real(), before.into_real());
                let want = |i: usize, j: usize| {
                    Some(0.5 * product(&a, form_a, &b, form_b, k, i, j) - 3.0 * before.get(i, j))
                };
                let (ar, br) = (a.real(), b.real());
                let mut c = before.real();
                // SAFETY: the arrays have these sizes.
                unsafe {
                    cblas_dgemm(
                        order,
                        number_a,
                        number_b,
                        sizes[0],
                        sizes[1],
                        sizes[2],
                        0.5,
                        ar.as_ptr(),
                        a.ld(),
                        br.as_ptr(),
                        b.ld(),
                        -3.0,
                        c.as_mut_ptr(),
                        before.ld(),
                    );
                }
                assert_matrix(&complex(&c), &before, want);
                if order == 102 {
                    let mut c = before.real();
                    let (letters, lds) = ((letter(form_a), letter(form_b)), (a.ld(), b.ld(), before.ld()));
                    // SAFETY: the arrays have these sizes.
                    unsafe {
                        dgemm_(
                            &letters.0,
                            &letters.1,
                            &sizes[0],
                            &sizes[1],
                            &sizes[2],
                            &0.5,
                            ar.as_ptr(),
                            &lds.0,
                            br.as_ptr(),
                            &lds.1,
                            &-3.0,
                            c.as_mut_ptr(),
                            &lds.2,
                        );
                    }
                    assert_matrix(&complex(&c), &before, want);
                }
            }
        }
    }
}

/// Entry (i, j) of the symmetric or Hermitian matrix of which `triangle` is given.
fn mirrored(a: &Matrix, upper: bool, hermitian: bool, i: usize, j: usize) -> Complex64 {
    if i == j {
        return if hermitian { Complex64::new(a.get(i, i).re, 0.0) } else { a.get(i, i) };
    }
    match (i < j) == upper {
        true => a.get(i, j),
        false if hermitian => a.get(j, i).conj(),
        false => a.get(j, i),
    }
}

fn check_symmetric(m: usize, n: usize, seed: u64) {
    let mut state = seed;
    let (alpha, beta) = (Complex64::new(0.5, -2.0), Complex64::new(-1.0, 0.25));
    for order in ORDERS {
        for (side, upper) in [(141, true), (141, false), (142, true), (142, false)] {
            let size = if side == 141 { m } else { n };
            let a = Matrix::random(size, size, order, &mut state);
            let (b, before) =
                (Matrix::random(m, n, order, &mut state), Matrix::random(m, n, order, &mut state));
            for hermitian in [false, true] {
                let mut c = before.clone();
                let call = if hermitian { cblas_zhemm } else { cblas_zsymm };
                // SAFETY: the arrays have these sizes.
                unsafe {
                    call(
                        order,
                        side,
                        if upper { 121 } else { 122 },
                        m as c_int,
                        n as c_int,
                        (&raw const alpha).cast(),
                        pointer(&a.data),
                        a.ld(),
                        pointer(&b.data),
                        b.ld(),
                        (&raw const beta).cast(),
                        c.data.as_mut_ptr().cast(),
                        c.ld(),
                    );
                }
                assert_matrix(&c.data, &before, |i, j| {
                    let sum: Complex64 = match side {
                        141 => (0..m).map(|p| mirrored(&a, upper, hermitian, i, p) * b.get(p, j)).sum(),
                        _ => (0..n).map(|p| b.get(i, p) * mirrored(&a, upper, hermitian, p, j)).sum(),
                    };
                    Some(alpha * sum + beta * before.get(i, j))
                });
            }
        }
    }
}

fn check_updates(n: usize, k: usize, seed: u64) {
    let mut state = seed;
    let (alpha, beta) = (Complex64::new(0.5, -2.0), Complex64::new(-1.0, 0.25));
    for order in ORDERS {
        for (upper, plain) in [(true, true), (true, false), (false, true), (false, false)] {
            let (rows, cols) = if plain { (n, k) } else { (k, n) };
            let a = Matrix::random(rows, cols, order, &mut state);
            let before = Matrix::random(n, n, order, &mut state);
            let triangle = if upper { 121 } else { 122 };
            let inside = |i: usize, j: usize| if upper { i <= j } else { i >= j };
            let (sizes, entry) = (
                (n as c_int, k as c_int),
                |i: usize, p: usize| {
                    if plain {
                        a.get(i, p)
                    } else {
                        a.get(p, i)
                    }
                },
            );
            let mut c = before.clone();
            // SAFETY: the arrays have these sizes.
            unsafe {
                cblas_zsyrk(
                    order,
                    triangle,
                    if plain { 111 } else { 112 },
                    sizes.0,
                    sizes.1,
                    (&raw const alpha).cast(),
                    pointer(&a.data),
                    a.ld(),
                    (&raw const beta).cast(),
                    c.data.as_mut_ptr().cast(),
                    c.ld(),
                );
            }
            assert_matrix(&c.data, &before, |i, j| {
                let sum: Complex64 = (0..k).map(|p| entry(i, p) * entry(j, p)).sum();
                inside(i, j).then(|| alpha * sum + beta * before.get(i, j))
            });
            let mut c = before.clone();
            // SAFETY: the arrays have these sizes.
            unsafe {
                cblas_zherk(
                    order,
                    triangle,
                    if plain { 111 } else { 113 },
                    sizes.0,
                    sizes.1,
                    0.5,
                    pointer(&a.data),
                    a.ld(),
                    -3.0,
                    c.data.as_mut_ptr().cast(),
                    c.ld(),
                );
            }
            assert_matrix(&c.data, &before, |i, j| {
                let term = |p: usize| match plain {
                    true => a.get(i, p) * a.get(j, p).conj(),
                    false => a.get(p, i).conj() * a.get(p, j),
                };
                let old = if i == j { Complex64::new(before.get(i, i).re, 0.0) } else { before.get(i, j) };
                inside(i, j).then(|| (0..k).map(term).sum::<Complex64>() * 0.5 - old * 3.0)
            });
        }
    }
}

fn check_triangles(m: usize, n: usize, seed: u64) {
    let mut state = seed;
    let alpha = Complex64::new(0.5, -2.0);
    for order in ORDERS {
        for (side, upper, unit) in (0..8).map(|bits| (141 + (bits & 1), bits & 2 == 0, bits & 4 == 0)) {
            for (number, form) in FORMS {
                let size = if side == 141 { m } else { n };
                let mut a = Matrix::random(size, size, order, &mut state);
                // Systems of well-conditioned triangles: small entries beside the diagonal.
                for i in 0..size {
                    for j in 0..size {
                        let place = a.place(i, j);
                        a.data[place] =
                            if i == j { a.data[place] + 3.0 } else { a.data[place] / size as f64 };
                    }
                }
                let stored = |i: usize, j: usize| match (i == j, (i < j) == upper) {
                    (true, _) if unit => Complex64::ONE,
                    (true, _) | (_, true) => a.get(i, j),
                    _ => Complex64::ZERO,
                };
                let op = |i: usize, j: usize| match form {
                    b'N' => stored(i, j),
                    b'T' => stored(j, i),
                    _ => stored(j, i).conj(),
                };
                let before = Matrix::random(m, n, order, &mut state);
                let times = |b: &Matrix, i: usize, j: usize| -> Complex64 {
                    match side {
                        141 => (0..m).map(|p| op(i, p) * b.get(p, j)).sum(),
                        _ => (0..n).map(|p| b.get(i, p) * op(p, j)).sum(),
                    }
                };
                let call = |routine: unsafe extern "C" fn(
                    c_int,
                    c_int,
                    c_int,
                    c_int,
                    c_int,
                    c_int,
                    c_int,
                    *const c_void,
                    *const c_void,
                    c_int,
                    *mut c_void,
                    c_int,
                )| {
                    let mut b = before.clone();
                    let codes = (if upper { 121 } else { 122 }, if unit { 132 } else { 131 });
                    // SAFETY: the arrays have these sizes.
                    unsafe {
                        routine(
                            order,
                            side,
                            codes.0,
                            number,
                            codes.1,
                            m as c_int,
                            n as c_int,
                            (&raw const alpha).cast(),
                            pointer(&a.data),
                            a.ld(),
                            b.data.as_mut_ptr().cast(),
                            b.ld(),
                        );
                    }
                    b
                };
                let product = call(cblas_ztrmm);
                assert_matrix(&product.data, &before, |i, j| Some(alpha * times(&before, i, j)));
                // op(A)·X = α·B, for X that the routine gives.
                let solution = call(cblas_ztrsm);
                let mut again = before.clone();
                for i in 0..m {
                    for j in 0..n {
                        let place = again.place(i, j);
                        again.data[place] = times(&solution, i, j);
                    }
                }
                assert_matrix(&again.data, &before, |i, j| Some(alpha * before.get(i, j)));
            }
        }
    }
}

/// ‖A·X − B‖ in the largest entry.
fn residual(a: &Matrix, form: u8, x: &[Complex64], b: &Matrix) -> f64 {
    let entry = |i: usize, j: usize| {
        let sum: Complex64 = (0..a.rows).map(|p| formed(a, form, i, p) * x[b.place(p, j)]).sum();
        (sum - b.get(i, j)).l1_norm()
    };
    (0..b.rows).flat_map(|i| (0..b.cols).map(move |j| (i, j))).map(|(i, j)| entry(i, j)).fold(0.0, f64::max)
}

fn check_systems(n: usize, count: usize, seed: u64) {
    let mut state = seed;
    let mut a = Matrix::random(n, n, 102, &mut state);
    (0..n).for_each(|i| {
        let place = a.place(i, i);
        a.data[place] += 2.0 * n as f64;
    });
    let b = Matrix::random(n, count, 102, &mut state);
    let (sizes, lds, mut info) = ((n as c_int, count as c_int), (a.ld(), b.ld()), 7);
    let (mut factors, mut pivots, mut x) = (a.data.clone(), vec![0; n], b.data.clone());
    // SAFETY: the arrays have these sizes.
    unsafe {
        let pivots = pivots.as_mut_ptr();
        zgesv_(&sizes.0, &sizes.1, factors.as_mut_ptr(), &lds.0, pivots, x.as_mut_ptr(), &lds.1, &mut info);
    }
    assert_eq!(info, 0);
    assert!(residual(&a, b'N', &x, &b) < 1e-9);
    for (_, form) in FORMS {
        let mut x = b.data.clone();
        // SAFETY: the arrays have these sizes.
        unsafe {
            zgetrs_(
                &letter(form),
                &sizes.0,
                &sizes.1,
                factors.as_ptr(),
                &lds.0,
                pivots.as_ptr(),
                x.as_mut_ptr(),
                &lds.1,
                &mut info,
            );
        }
        assert_eq!(info, 0);
        assert!(residual(&a, form, &x, &b) < 1e-9, "{}", char::from(form));
    }
    // A Hermitian matrix with a heavy diagonal is positive definite.
    for upper in [true, false] {
        let mut whole = a.clone();
        for i in 0..n {
            for j in 0..n {
                let place = whole.place(i, j);
                whole.data[place] = mirrored(&a, upper, true, i, j);
            }
        }
        let (mut factor, mut x) = (a.data.clone(), b.data.clone());
        let uplo = letter(if upper { b'U' } else { b'L' });
        // SAFETY: the arrays have these sizes.
        unsafe {
            let (a, x) = (factor.as_mut_ptr(), x.as_mut_ptr());
            zposv_(&uplo, &sizes.0, &sizes.1, a, &lds.0, x, &lds.1, &mut info);
        }
        assert_eq!(info, 0);
        assert!(residual(&whole, b'N', &x, &b) < 1e-9);
    }
}

fn check_qr(m: usize, n: usize, seed: u64) {
    let mut state = seed;
    let a = Matrix::random(m, n, 102, &mut state);
    let steps = m.min(n);
    let (sizes, ld, mut info) = ((m as c_int, n as c_int, steps as c_int), a.ld(), 7);
    let (mut factors, mut taus, mut work) = (a.data.clone(), vec![Complex64::ZERO; steps], [Complex64::ZERO]);
    // SAFETY: the arrays have these sizes.
    unsafe {
        let (a, taus, work) = (factors.as_mut_ptr(), taus.as_mut_ptr(), work.as_mut_ptr());
        zgeqrf_(&sizes.0, &sizes.1, a, &ld, taus, work, &1, &mut info);
    }
    assert_eq!(info, 0);
    let mut q = factors.clone();
    // SAFETY: the arrays have these sizes.
    unsafe {
        let (q, work) = (q.as_mut_ptr(), work.as_mut_ptr());
        zungqr_(&sizes.0, &sizes.2, &sizes.2, q, &ld, taus.as_ptr(), work, &1, &mut info);
    }
    assert_eq!(info, 0);
    for i in 0..m {
        for j in 0..n {
            let entry = |p: usize| q[a.place(i, p)] * factors[a.place(p, j)];
            let sum: Complex64 = (0..steps.min(j + 1)).map(entry).sum();
            assert!((sum - a.get(i, j)).l1_norm() < 1e-9, "({i}, {j})");
        }
    }
    for (i, j) in (0..steps).flat_map(|i| (0..steps).map(move |j| (i, j))) {
        let dot: Complex64 = (0..m).map(|p| q[a.place(p, i)].conj() * q[a.place(p, j)]).sum();
        let want = if i == j { 1.0 } else { 0.0 };
        assert!((dot - want).l1_norm() < 1e-9, "columns {i} and {j}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn products_are_those_of_the_definition(m in 0_usize..40, n in 0_usize..40, k in 0_usize..40, seed in any::<u64>()) {
        check_gemm(m, n, k, seed);
        check_symmetric(m, n, seed);
        check_updates(n, k, seed);
    }

    #[test]
    fn triangles_are_multiplied_and_solved(m in 0_usize..40, n in 0_usize..40, seed in any::<u64>()) {
        check_triangles(m, n, seed);
    }

    #[test]
    fn systems_are_solved(n in 0_usize..60, count in 0_usize..5, seed in any::<u64>()) {
        check_systems(n, count, seed);
    }

    #[test]
    fn orthogonal_factors_give_the_matrix_back(m in 1_usize..60, n in 1_usize..60, seed in any::<u64>()) {
        check_qr(m, n, seed);
    }
}

#[test]
fn what_a_factorisation_cannot_do_is_told_by_info() {
    let (n, ld, mut info, mut pivots) = (2, 2, 7, [0; 2]);
    let mut singular = [1.0, 2.0, 2.0, 4.0];
    // SAFETY: the arrays have these sizes.
    unsafe { dgetrf_(&n, &n, singular.as_mut_ptr(), &ld, pivots.as_mut_ptr(), &mut info) };
    assert_eq!((info, pivots), (2, [2, 2]));
    let mut indefinite = [1.0, 2.0, 2.0, 1.0];
    // SAFETY: the arrays have these sizes.
    unsafe { dpotrf_(&letter(b'l'), &n, indefinite.as_mut_ptr(), &ld, &mut info) };
    assert_eq!(info, 2);
    // The room for work is asked for first.
    let (mut a, mut taus, mut work) = ([1.0; 4], [0.0; 2], [0.0]);
    // SAFETY: the arrays have these sizes.
    unsafe { dgeqrf_(&n, &n, a.as_mut_ptr(), &ld, taus.as_mut_ptr(), work.as_mut_ptr(), &-1, &mut info) };
    assert_eq!((info, work[0], a), (0, 1.0, [1.0; 4]));
}

#[test]
fn parameters_that_are_not_allowed_change_nothing() {
    let (a, mut c, mut info) = ([1.0; 4], [7.0; 4], 0);
    let mut pivots = [0; 2];
    // SAFETY: the arrays have these sizes; a call that is refused reads none.
    unsafe {
        let (a, c) = (a.as_ptr(), c.as_mut_ptr());
        cblas_dgemm(99, 111, 111, 2, 2, 2, 1.0, a, 2, a, 2, 0.0, c, 2);
        cblas_dgemm(102, 110, 111, 2, 2, 2, 1.0, a, 2, a, 2, 0.0, c, 2);
        cblas_dgemm(102, 111, 111, -2, 2, 2, 1.0, a, 2, a, 2, 0.0, c, 2);
        cblas_dgemm(102, 111, 111, 2, 2, 2, 1.0, a, 1, a, 2, 0.0, c, 2);
        dgetrf_(&2, &2, c, &1, pivots.as_mut_ptr(), &mut info);
    }
    assert_eq!((c, info), ([7.0; 4], -4));
}
