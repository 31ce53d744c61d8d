//! Factorisations and triangular operations against the definition: residuals within the bounds of
//! LAPACK's tests, pivots and factors of the slow twins, nothing written beside the result.

mod support;

use lightfoot_matrix::reference::factor as twin;
use lightfoot_matrix::{Diagonal, Factor, Kernel, Side, Strided, StridedMut, Triangle, Triangular};
use num_complex::Complex;
use support::agreement::spread;
use support::{every_kernel, Number, Random};

/// LAPACK's tests accept residuals below this, in units of n·‖A‖·ε.
const BOUND: f64 = 30.0;

/// A dense array by columns.
#[derive(Clone, Debug)]
struct Dense<T> {
    rows: usize,
    cols: usize,
    data: Vec<T>,
}

impl<T: Number> Dense<T> {
    fn new(rows: usize, cols: usize, entry: impl Fn(usize, usize) -> T) -> Dense<T> {
        let places = (0..cols).flat_map(|j| (0..rows).map(move |i| (i, j)));
        Dense { rows, cols, data: places.map(|(i, j)| entry(i, j)).collect() }
    }

    fn random(rows: usize, cols: usize, random: &mut Random) -> Dense<T> {
        Dense { rows, cols, data: (0..rows * cols).map(|_| T::random(random)).collect() }
    }

    /// `A·Aᴴ + n·I`, which is positive definite.
    fn positive(size: usize, random: &mut Random) -> Dense<T> {
        let a = Dense::<T>::random(size, size, random);
        let mut product = a.times(&a.adjoint());
        for i in 0..size {
            let at = i + i * size;
            let value: f64 = product.data[at].widen()[0];
            product.data[at] = T::from_parts(value + 0.5f64, 0.0);
        }
        product
    }

    fn at(&self, i: usize, j: usize) -> T {
        self.data[i + j * self.rows]
    }

    fn adjoint(&self) -> Dense<T> {
        Dense::new(self.cols, self.rows, |i, j| self.at(j, i).conj())
    }

    fn transposed(&self) -> Dense<T> {
        Dense::new(self.cols, self.rows, |i, j| self.at(j, i))
    }

    /// The product, summed in double precision.
    fn times(&self, other: &Dense<T>) -> Dense<T> {
        assert_eq!(self.cols, other.rows);
        Dense::new(self.rows, other.cols, |i, j| {
            let mut sum = [0.0; 2];
            for k in 0..self.cols {
                let ([a, b], [c, d]) = (self.at(i, k).widen(), other.at(k, j).widen());
                sum[0] += a * c - b * d;
                sum[1] += a * d + b * c;
            }
            T::from_parts(sum[0], sum[1])
        })
    }

    fn lower(&self, unit: bool) -> Dense<T> {
        Dense::new(self.rows, self.rows.min(self.cols), |i, j| match i.cmp(&j) {
            std::cmp::Ordering::Less => T::ZERO,
            std::cmp::Ordering::Equal if unit => T::ONE,
            _ => self.at(i, j),
        })
    }

    fn upper(&self) -> Dense<T> {
        let rows = self.rows.min(self.cols);
        Dense::new(rows, self.cols, |i, j| if i <= j { self.at(i, j) } else { T::ZERO })
    }

    /// The one-norm: the largest sum of a column.
    fn norm(&self) -> f64 {
        let sum =
            |j| (0..self.rows).map(|i| self.at(i, j).widen().iter().map(|x| x.abs()).sum::<f64>()).sum();
        (0..self.cols).map(sum).fold(0.0, f64::max)
    }

    fn minus(&self, other: &Dense<T>) -> Dense<T> {
        Dense::new(self.rows, self.cols, |i, j| self.at(i, j) - other.at(i, j))
    }

    /// Runs `change` on a copy of this array that is spread over memory with random strides, and
    /// returns the result. The gaps must not change.
    fn change<R>(&mut self, random: &mut Random, change: impl FnOnce(StridedMut<'_, T>) -> R) -> R {
        let filler = T::from_parts(77.0, 77.0);
        let shape = (self.rows, self.cols);
        let (mut data, origin, row, col) = spread(&self.data, shape, random, filler);
        let before = data.iter().filter(|&&value| value == filler).count();
        let view = StridedMut::with_origin(&mut data, origin, shape.0, shape.1, row, col).unwrap();
        let result = change(view);
        assert_eq!(before, data.iter().filter(|&&value| value == filler).count(), "gaps changed");
        let view = Strided::with_origin(&data, origin, shape.0, shape.1, row, col).unwrap();
        *self = Dense::new(shape.0, shape.1, |i, j| view.get(i, j));
        result
    }

    fn view(&self) -> Strided<'_, T> {
        Strided::col_major(&self.data, self.rows, self.cols).unwrap()
    }

    fn view_mut(&mut self) -> StridedMut<'_, T> {
        StridedMut::col_major(&mut self.data, self.rows, self.cols).unwrap()
    }
}

/// Asserts that `got` is `want` within the bound for sums of `n` terms of this magnitude.
fn assert_close<T: Number>(got: &Dense<T>, want: &Dense<T>, n: usize, scale: f64, context: &str) {
    let residual = got.minus(want).norm();
    let limit = BOUND * n.max(1) as f64 * scale * 2.0 * T::ROUNDOFF;
    let context = format!("{context} {}×{} {}", got.rows, got.cols, T::NAME);
    assert!(residual <= limit + f64::from(f32::MIN_POSITIVE), "{context}: {residual:e} > {limit:e}");
}

/// Asserts that `factors` and `pivots` are a factorisation of `a`.
fn assert_lu<T: Number>(a: &Dense<T>, factors: &Dense<T>, pivots: &[usize], context: &str) {
    let mut permuted = a.clone();
    for (j, &pivot) in pivots.iter().enumerate() {
        assert!(pivot >= j && pivot < a.rows, "{context}: pivot {pivot} of column {j}");
        for c in 0..a.cols {
            permuted.data.swap(j + c * a.rows, pivot + c * a.rows);
        }
    }
    let product = factors.lower(true).times(&factors.upper());
    assert_close(&product, &permuted, a.rows.max(a.cols), a.norm(), context);
}

const SHAPES: &[(usize, usize)] = &[
    (1, 1),
    (2, 2),
    (3, 5),
    (5, 3),
    (7, 7),
    (8, 8),
    (9, 9),
    (16, 16),
    (17, 17),
    (31, 33),
    (33, 31),
    (40, 40),
    (64, 64),
    (1, 9),
    (9, 1),
    (100, 7),
    (7, 100),
    (65, 63),
    (100, 100),
    (130, 70),
    (70, 130),
    (200, 200),
];

fn lu_agrees<T: Number>(kernel: &'static Kernel) {
    let mut random = Random(3);
    for &(m, n) in SHAPES {
        for threads in [1, 2] {
            let a = Dense::<T>::random(m, n, &mut random);
            let mut factors = a.clone();
            let options = Factor::new().kernel(kernel).threads(threads);
            let mut pivots = vec![0; m.min(n)];
            let singular = factors.change(&mut random, |view| options.lu_with(view, &mut pivots)).unwrap();
            assert_eq!(singular, None);
            assert_lu(&a, &factors, &pivots, kernel.name());
            // Random pivots are far apart, so both find the same ones.
            let mut slow = a.clone();
            assert_eq!(pivots, twin::lu(&mut slow.data, (m, n)).0, "{m}×{n}");
        }
    }
}

fn cholesky_agrees<T: Number>(kernel: &'static Kernel) {
    let mut random = Random(4);
    for size in [1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 64, 70, 100, 129, 200] {
        let a = Dense::<T>::positive(size, &mut random);
        for triangle in [Triangle::Lower, Triangle::Upper] {
            let is_given = |i: usize, j: usize| if triangle == Triangle::Lower { i >= j } else { i <= j };
            // The other triangle must neither be read nor written.
            let mut factor =
                Dense::new(size, size, |i, j| if is_given(i, j) { a.at(i, j) } else { T::nan() });
            let options = Factor::new().kernel(kernel).threads(1 + size % 2);
            factor.change(&mut random, |view| options.cholesky_in_place(triangle, view)).unwrap();
            for (i, j) in (0..size).flat_map(|j| (0..size).map(move |i| (i, j))) {
                assert!(is_given(i, j) || factor.at(i, j) != factor.at(i, j), "({i}, {j}) was written");
            }
            let lower = match triangle {
                Triangle::Lower => factor.lower(false),
                Triangle::Upper => factor.upper().adjoint(),
            };
            assert_close(&lower.times(&lower.adjoint()), &a, size, a.norm(), kernel.name());
            let mut slow = a.clone();
            twin::cholesky(&mut slow.data, size).unwrap();
            assert_close(&lower, &slow.lower(false), size, 20.0 * a.norm().sqrt(), "twin");
        }
    }
}

fn solves_agree<T: Number>(kernel: &'static Kernel) {
    let mut random = Random(5);
    for &(n, k) in &SHAPES[..19] {
        // A triangle with a dominant diagonal, so that errors do not grow.
        let a = Dense::<T>::new(n, n, |i, j| {
            let small = ((i * 7 + j * 3) % 11) as f64 / 11.0 - 0.5;
            let value = if i == j { 1.5 + small } else { small / n as f64 };
            T::from_parts(value, small / n as f64)
        });
        for (triangle, unit, form, side) in every_system().step_by(if n > 40 { 5 } else { 1 }) {
            let mut matrix = Triangular::new(triangle, a.view());
            let mut dense = match triangle {
                Triangle::Lower => a.lower(false),
                Triangle::Upper => a.upper(),
            };
            if unit {
                matrix = matrix.unit();
                (0..n).for_each(|i| dense.data[i + i * n] = T::ONE);
            }
            (matrix, dense) = match form {
                0 => (matrix, dense),
                1 => (matrix.transposed(), dense.transposed()),
                _ => (matrix.adjoint(), dense.adjoint()),
            };
            let shape = if side == Side::Left { (n, k) } else { (k, n) };
            let b = Dense::<T>::random(shape.0, shape.1, &mut random);
            let alpha = T::random(&mut random);
            let mut x = b.clone();
            let options = Factor::new().kernel(kernel).threads(1 + n % 2);
            x.change(&mut random, |view| options.solve_triangular(side, alpha, matrix, view)).unwrap();
            let back = if side == Side::Left { dense.times(&x) } else { x.times(&dense) };
            let want = Dense::new(shape.0, shape.1, |i, j| alpha * b.at(i, j));
            let scale = dense.norm() * x.norm() + 1e-3;
            assert_close(&back, &want, n, scale, &format!("{} {triangle:?} {form} {side:?}", kernel.name()));
        }
    }
}

/// Triangle, whether the diagonal is ones, transposition and side of every system.
fn every_system() -> impl Iterator<Item = (Triangle, bool, usize, Side)> {
    (0..24).map(|at| {
        let triangle = if at % 2 == 0 { Triangle::Lower } else { Triangle::Upper };
        let side = if at / 4 % 2 == 0 { Side::Left } else { Side::Right };
        (triangle, at / 2 % 2 == 1, at / 8, side)
    })
}

fn rank_updates_agree<T: Number>(kernel: &'static Kernel) {
    let mut random = Random(6);
    for &(n, k) in SHAPES {
        for (triangle, hermitian) in [
            (Triangle::Lower, false),
            (Triangle::Upper, false),
            (Triangle::Lower, true),
            (Triangle::Upper, true),
        ] {
            let a = Dense::<T>::random(n, k, &mut random);
            let c = Dense::<T>::random(n, n, &mut random);
            let (alpha, beta) = match hermitian {
                true => (T::from_parts(-0.75, 0.0), T::from_parts(0.5, 0.0)),
                false => (T::random(&mut random), T::random(&mut random)),
            };
            let mut got = c.clone();
            let options = Factor::new().kernel(kernel).threads(1 + n % 2);
            got.change(&mut random, |view| match hermitian {
                true => options.hermitian_rank_k_update(triangle, alpha.re(), a.view(), beta.re(), view),
                false => options.rank_k_update(triangle, alpha, a.view(), beta, view),
            })
            .unwrap();
            let other = if hermitian { a.adjoint() } else { a.transposed() };
            let product = a.times(&other);
            let want = Dense::new(n, n, |i, j| {
                let is_given = if triangle == Triangle::Lower { i >= j } else { i <= j };
                let value = alpha * product.at(i, j) + beta * c.at(i, j);
                match (is_given, hermitian && i == j) {
                    (false, _) => c.at(i, j),
                    (true, true) => T::from_parts(value.widen()[0], 0.0),
                    (true, false) => value,
                }
            });
            assert_close(&got, &want, k + 2, a.norm() * other.norm() + c.norm(), kernel.name());
        }
    }
}

fn qr_agrees<T: Number>(kernel: &'static Kernel) {
    let mut random = Random(7);
    for &(m, n) in SHAPES {
        let a = Dense::<T>::random(m, n, &mut random);
        let mut factors = a.clone();
        let mut taus = vec![T::ZERO; m.min(n)];
        let options = Factor::new().kernel(kernel).threads(1 + m % 2);
        factors.change(&mut random, |view| options.qr_with(view, &mut taus)).unwrap();
        let mut again = a.clone();
        let qr = options.qr(again.view_mut()).unwrap();
        // Q·R is A.
        let mut product = Dense::new(m, n, |i, j| if i <= j { factors.at(i, j) } else { T::ZERO });
        product.change(&mut random, |view| qr.apply_q(view)).unwrap();
        assert_close(&product, &a, m.max(n), a.norm(), &format!("{} Q·R", kernel.name()));
        // Qᴴ·A is R, and Qᴴ·Q is the identity.
        let mut upper = a.clone();
        upper.change(&mut random, |view| qr.apply_q_adjoint(view)).unwrap();
        let want = Dense::new(m, n, |i, j| if i <= j { factors.at(i, j) } else { T::ZERO });
        assert_close(&upper, &want, m.max(n), a.norm(), "Qᴴ·A");
        let eye = Dense::<T>::new(m, m, |i, j| if i == j { T::ONE } else { T::ZERO });
        let mut q = eye.clone();
        qr.apply_q(q.view_mut()).unwrap();
        assert_close(&q.adjoint().times(&q), &eye, m, 1.0, "Qᴴ·Q");
        if m >= n {
            let mut slow = a.clone();
            let slow = Dense { rows: n, cols: n, data: twin::qr_upper(&mut slow.data, (m, n)) };
            assert_close(&factors.upper(), &slow, m, 20.0 * a.norm(), "twin");
        }
    }
}

fn products_agree<T: Number>(kernel: &'static Kernel) {
    let mut random = Random(8);
    for &(n, k) in &SHAPES[..16] {
        let a = Dense::<T>::random(n, n, &mut random);
        for (triangle, unit, form, side) in every_system().step_by(if n > 40 { 5 } else { 1 }) {
            let mut matrix = Triangular::new(triangle, a.view());
            let mut dense = if triangle == Triangle::Lower { a.lower(false) } else { a.upper() };
            if unit {
                matrix = matrix.unit();
                (0..n).for_each(|i| dense.data[i + i * n] = T::ONE);
            }
            (matrix, dense) = match form {
                0 => (matrix, dense),
                1 => (matrix.transposed(), dense.transposed()),
                _ => (matrix.adjoint(), dense.adjoint()),
            };
            let shape = if side == Side::Left { (n, k) } else { (k, n) };
            let b = Dense::<T>::random(shape.0, shape.1, &mut random);
            let (alpha, beta) = (T::random(&mut random), T::random(&mut random));
            let options = Factor::new().kernel(kernel).threads(1 + n % 2);
            let mut got = b.clone();
            got.change(&mut random, |view| options.multiply_triangular(side, alpha, matrix, view)).unwrap();
            let product = if side == Side::Left { dense.times(&b) } else { b.times(&dense) };
            let want = Dense::new(shape.0, shape.1, |i, j| alpha * product.at(i, j));
            let scale = dense.norm() * b.norm() + 1e-3;
            assert_close(&got, &want, n, scale, &format!("{} {triangle:?} {form} {side:?}", kernel.name()));
            if unit || form == 1 {
                continue;
            }
            // The symmetric or Hermitian matrix with this triangle.
            let whole = Dense::new(n, n, |i, j| {
                let is_given = if triangle == Triangle::Lower { i >= j } else { i <= j };
                match (form, is_given) {
                    (2, _) if i == j => T::from_parts(a.at(i, i).widen()[0], 0.0),
                    (_, true) => a.at(i, j),
                    (0, false) => a.at(j, i),
                    _ => a.at(j, i).conj(),
                }
            });
            let c = Dense::<T>::random(shape.0, shape.1, &mut random);
            let mut got = c.clone();
            got.change(&mut random, |view| match form {
                0 => options.multiply_symmetric(side, triangle, alpha, a.view(), b.view(), beta, view),
                _ => options.multiply_hermitian(side, triangle, alpha, a.view(), b.view(), beta, view),
            })
            .unwrap();
            let product = if side == Side::Left { whole.times(&b) } else { b.times(&whole) };
            let want = Dense::new(shape.0, shape.1, |i, j| alpha * product.at(i, j) + beta * c.at(i, j));
            assert_close(&got, &want, n, whole.norm() * b.norm() + c.norm(), "symmetric");
        }
    }
}

fn systems_and_inverses_agree<T: Number>(kernel: &'static Kernel) {
    let mut random = Random(9);
    for n in [1, 2, 5, 8, 9, 17, 33, 64, 100] {
        let options = Factor::new().kernel(kernel).threads(1 + n % 2);
        // A dominant diagonal, rows in another order: pivots are needed.
        let a = Dense::<T>::new(n, n, |i, j| {
            let place = if (i + 1) % n == j { n as f64 } else { 0.0 };
            let small = ((i * 5 + j * 11) % 13) as f64 / 13.0 - 0.5;
            T::from_parts(place + small, 0.25 * small)
        });
        let x = Dense::<T>::random(n, 3, &mut random);
        let scale = a.norm() * x.norm();
        let mut factors = a.clone();
        let lu = options.lu(factors.view_mut()).unwrap();
        for (form, matrix) in [(0, a.clone()), (1, a.transposed()), (2, a.adjoint())] {
            let mut b = matrix.times(&x);
            b.change(&mut random, |view| match form {
                0 => lu.solve(view),
                1 => lu.solve_transposed(view),
                _ => lu.solve_adjoint(view),
            })
            .unwrap();
            assert_close(&b, &x, n, 4.0 * scale, &format!("LU {form}"));
        }
        let mut inverse = a.clone();
        inverse.change(&mut random, |view| options.invert(view)).unwrap();
        let eye = Dense::<T>::new(n, n, |i, j| if i == j { T::ONE } else { T::ZERO });
        assert_close(&inverse.times(&a), &eye, n, 4.0 * a.norm(), "inverse");
        let mut tall = Dense::<T>::random(n + 20, n, &mut random);
        let least = tall.times(&x);
        let qr_scale = tall.norm() * x.norm() * 4.0;
        let qr = options.qr(tall.view_mut()).unwrap();
        let mut b = least.clone();
        b.change(&mut random, |view| qr.solve_least_squares(view)).unwrap();
        let (top, rest) = (Dense::new(n, 3, |i, j| b.at(i, j)), Dense::new(20, 3, |i, j| b.at(n + i, j)));
        assert_close(&top, &x, n, qr_scale, "least squares");
        assert_close(&rest, &Dense::new(20, 3, |_, _| T::ZERO), n, qr_scale, "residual");
        for triangle in [Triangle::Lower, Triangle::Upper] {
            let mut positive = Dense::<T>::positive(n, &mut random);
            for i in 0..n {
                let value: f64 = positive.at(i, i).widen()[0];
                positive.data[i + i * n] = T::from_parts(value + n as f64, 0.0);
            }
            let mut b = positive.times(&x);
            let scale = positive.norm() * x.norm();
            let cholesky = options.cholesky(triangle, positive.view_mut()).unwrap();
            b.change(&mut random, |view| cholesky.solve(view)).unwrap();
            assert_close(&b, &x, n, 4.0 * scale, "Cholesky");
        }
        for (triangle, unit) in [(Triangle::Lower, true), (Triangle::Upper, false), (Triangle::Lower, false)]
        {
            let mut dense = if triangle == Triangle::Lower { a.lower(unit) } else { a.upper() };
            for i in 0..n {
                let small = T::from_parts(1.0 / n as f64, 0.0);
                (0..n).filter(|&j| i != j).for_each(|j| dense.data[i + j * n] = small * dense.at(i, j));
                dense.data[i + i * n] = if unit { T::ONE } else { T::from_parts(1.5, 0.5) };
            }
            let mut inverse = dense.clone();
            let diagonal = if unit { Diagonal::Unit } else { Diagonal::Stored };
            inverse.change(&mut random, |view| options.invert_triangular(triangle, diagonal, view)).unwrap();
            let scale = dense.norm() * inverse.norm();
            assert_close(&inverse.times(&dense), &eye, n, scale, "triangular inverse");
        }
    }
}

macro_rules! every_type {
    ($($test:ident: $check:ident),* $(,)?) => {
        $(#[test]
        fn $test() {
            every_kernel(|kernel| {
                $check::<f64>(kernel);
                $check::<f32>(kernel);
                $check::<Complex<f64>>(kernel);
                $check::<Complex<f32>>(kernel);
            });
        })*
    };
}

every_type! {
    lu_is_a_factorisation_with_the_twin_s_pivots: lu_agrees,
    cholesky_is_a_factorisation_and_leaves_the_other_triangle: cholesky_agrees,
    triangular_systems_are_solved: solves_agree,
    rank_k_updates_touch_one_triangle: rank_updates_agree,
    qr_is_a_factorisation_with_an_orthogonal_factor: qr_agrees,
    triangular_and_symmetric_products_agree: products_agree,
    systems_are_solved_and_matrices_inverted: systems_and_inverses_agree,
}
