//! Factorisations of hard inputs: NaN, zeros, no rows, bad scales, dependent columns, Hilbert's
//! matrix; and LAPACK's results, where a library is there.

mod support;

use lightfoot_matrix::race::Lapack;
use lightfoot_matrix::{
    BlockedMatrix, Diagonal, Error, Factor, Gemm, Side, Strided, StridedMut, StridedShape, Triangle,
    Triangular,
};
use proptest::prelude::*;
use support::Random;

fn lu(a: &mut [f64], m: usize, n: usize) -> (Vec<usize>, Option<usize>) {
    let lu = Factor::new().lu(StridedMut::col_major(a, m, n).unwrap()).unwrap();
    (lu.pivots().to_vec(), lu.singular_column())
}

#[test]
fn singular_matrices_are_factorised_and_not_solved() {
    for n in [2, 9, 40] {
        // The last two columns are equal: the last pivot is exactly zero.
        let column = |j: usize| if j + 1 == n { n - 2 } else { j };
        let mut a: Vec<f64> = (0..n * n).map(|at| if at % n == column(at / n) { 1.0 } else { 0.0 }).collect();
        let before = a.clone();
        let lu = Factor::new().lu(StridedMut::col_major(&mut a, n, n).unwrap()).unwrap();
        assert_eq!((lu.singular_column(), lu.determinant()), (Some(n - 1), 0.0));
        let mut b = vec![1.0; n];
        let error = lu.solve(StridedMut::col_major(&mut b, n, 1).unwrap()).unwrap_err();
        assert_eq!(error, Error::Singular { column: n - 1 });
        assert!(error.to_string().contains(&format!("column {}", n - 1)), "{error}");
        assert!(b.iter().all(|&value| value == 1.0));
        let mut inverse = before.clone();
        let view = StridedMut::col_major(&mut inverse, n, n).unwrap();
        assert_eq!(Factor::new().invert(view), Err(Error::Singular { column: n - 1 }));
    }
    // A zero column in the middle does not stop the others.
    let mut a = vec![0.0; 100];
    (0..10).filter(|&j| j != 4).for_each(|j| a[j * 11] = 2.0);
    let (pivots, singular) = lu(&mut a, 10, 10);
    assert_eq!((pivots, singular), ((0..10).collect(), Some(4)));
}

#[test]
fn matrices_that_are_not_positive_definite_are_refused() {
    for (n, bad) in [(3, 0), (9, 8), (40, 23), (100, 99)] {
        for value in [0.0, -1.0, f64::NAN] {
            for triangle in [Triangle::Lower, Triangle::Upper] {
                let mut a = vec![0.0; n * n];
                (0..n).for_each(|i| a[i * (n + 1)] = if i == bad { value } else { 4.0 });
                let view = StridedMut::col_major(&mut a, n, n).unwrap();
                let error = Factor::new().cholesky_in_place(triangle, view).unwrap_err();
                assert_eq!(error, Error::NotPositiveDefinite { column: bad });
                assert!((0..bad).all(|i| a[i * (n + 1)] == 2.0), "columns before it are the factor's");
            }
        }
    }
}

#[test]
fn empty_matrices_are_fine_and_shapes_are_named() {
    let options = Factor::new();
    for (m, n) in [(0, 0), (0, 5), (5, 0)] {
        let mut data = [1.0f64; 0];
        let view = || StridedShape::col_major(m, n).unwrap();
        assert_eq!(options.lu_batch(view(), 0, &mut data, &mut [], &mut []), Ok(()));
        let lu = options.lu(StridedMut::col_major(&mut data, m, n).unwrap()).unwrap();
        assert_eq!((lu.pivots().len(), lu.singular_column()), (0, None));
        let qr = options.qr(StridedMut::col_major(&mut data, m, n).unwrap()).unwrap();
        assert_eq!(qr.taus().len(), 0);
    }
    let mut empty = [0.0f64; 0];
    let lu = options.lu(StridedMut::col_major(&mut empty, 0, 0).unwrap()).unwrap();
    assert_eq!(lu.determinant(), 1.0);
    lu.solve(StridedMut::col_major(&mut [0.0; 0], 0, 3).unwrap()).unwrap();
    let mut data = [1.0; 6];
    let wide = StridedMut::col_major(&mut data, 2, 3).unwrap();
    let error = options.cholesky(Triangle::Lower, wide).map(drop).unwrap_err();
    assert!(error.to_string().contains("2×3"), "{error}");
    let (a, mut b) = ([1.0; 4], [1.0; 3]);
    let a = Triangular::lower(Strided::col_major(&a, 2, 2).unwrap());
    let b = StridedMut::col_major(&mut b, 3, 1).unwrap();
    let error = options.solve_triangular(Side::Left, 1.0, a, b).unwrap_err();
    assert!(error.to_string().contains("2×2 against 3×2"), "{error}");
    let mut wide = [1.0; 6];
    let qr = options.qr(StridedMut::col_major(&mut wide, 2, 3).unwrap()).unwrap();
    assert!(qr.solve_least_squares(StridedMut::col_major(&mut [0.0; 2], 2, 1).unwrap()).is_err());
}

#[test]
fn nan_stays_where_lapack_leaves_it() {
    // NaN in the last row and column reaches nothing before it.
    let n = 30;
    let mut random = Random(5);
    let mut a: Vec<f64> = (0..n * n).map(|_| random.unit()).collect();
    (0..n).for_each(|i| a[i * (n + 1)] += 30.0);
    let clean = a.clone();
    a[n * n - 1] = f64::NAN;
    let mut other = clean.clone();
    lu(&mut a, n, n);
    lu(&mut other, n, n);
    assert!(a[n * n - 1].is_nan());
    let differences = (0..n * n - 1).filter(|&at| a[at].to_bits() != other[at].to_bits()).count();
    assert_eq!(differences, 0);
    // α = 0 sets the result without reading the triangle.
    let triangle = [f64::NAN; 4];
    let mut b = [f64::NAN, 2.0];
    let a = Triangular::lower(Strided::col_major(&triangle, 2, 2).unwrap());
    Factor::new().solve_triangular(Side::Left, 0.0, a, StridedMut::col_major(&mut b, 2, 1).unwrap()).unwrap();
    assert_eq!(b, [0.0, 0.0]);
    // β = 0 does not read the result.
    let (a, mut c) = ([1.0, 2.0, 3.0], [f64::NAN; 9]);
    let view = StridedMut::col_major(&mut c, 3, 3).unwrap();
    let a = Strided::col_major(&a, 3, 1).unwrap();
    Factor::new().rank_k_update(Triangle::Lower, 1.0, a, 0.0, view).unwrap();
    assert_eq!((c[0], c[1], c[2], c[4], c[5], c[8]), (1.0, 2.0, 3.0, 4.0, 6.0, 9.0));
    assert!(c[3].is_nan() && c[6].is_nan() && c[7].is_nan());
}

/// The residual ‖A − Q·R‖ / (n·‖A‖·ε) and ‖Qᵀ·Q − I‖ / (n·ε), by columns.
fn qr_residuals(a: &[f64], m: usize, n: usize) -> (f64, f64) {
    let mut factors = a.to_vec();
    let qr = Factor::new().qr(StridedMut::col_major(&mut factors, m, n).unwrap()).unwrap();
    let mut product: Vec<f64> = vec![0.0; m * n];
    for j in 0..n {
        (0..=j.min(m - 1)).for_each(|i| product[i + j * m] = qr.factors().get(i, j));
    }
    qr.apply_q(StridedMut::col_major(&mut product, m, n).unwrap()).unwrap();
    let norm = |data: &[f64]| data.chunks(m).map(|c| c.iter().map(|x| x.abs()).sum()).fold(0.0, f64::max);
    let difference: Vec<f64> = product.iter().zip(a).map(|(x, y)| x - y).collect();
    let mut q: Vec<f64> = (0..m * m).map(|at| if at % (m + 1) == 0 { 1.0 } else { 0.0 }).collect();
    qr.apply_q(StridedMut::col_major(&mut q, m, m).unwrap()).unwrap();
    let mut worst = 0.0f64;
    for i in 0..m {
        let sum: f64 = (0..m)
            .map(|j| {
                let dot: f64 = (0..m).map(|k| q[k + i * m] * q[k + j * m]).sum();
                (dot - if i == j { 1.0 } else { 0.0 }).abs()
            })
            .sum();
        worst = worst.max(sum);
    }
    let unit = m as f64 * f64::EPSILON;
    let size = norm(a);
    (if size > 0.0 { norm(&difference) / (size * unit) } else { 0.0 }, worst / unit)
}

#[test]
fn hard_matrices_have_small_residuals() {
    let n = 60;
    let hilbert: Vec<f64> = (0..n * n).map(|at| 1.0 / ((at % n + at / n) as f64 + 1.0)).collect();
    let mut random = Random(8);
    let plain: Vec<f64> = (0..n * n).map(|_| random.unit()).collect();
    let scaled = |by: &dyn Fn(usize) -> f64| -> Vec<f64> {
        plain.iter().enumerate().map(|(at, x)| x * by(at / n)).collect()
    };
    let cases = [
        ("Hilbert", hilbert),
        ("huge", scaled(&|_| 1e300)),
        ("tiny", scaled(&|_| 1e-300)),
        ("columns of all scales", scaled(&|j| 10f64.powi((j as i32 - 30) * 10))),
        ("dependent", plain.iter().enumerate().map(|(at, _)| plain[at % n + at / n % 5 * n]).collect()),
        ("zero", vec![0.0; n * n]),
    ];
    for (name, a) in cases {
        let (residual, orthogonality) = qr_residuals(&a, n, n);
        assert!(residual < 30.0 && orthogonality < 30.0, "{name}: {residual} {orthogonality}");
        let mut factors = a.clone();
        let (pivots, _) = lu(&mut factors, n, n);
        let mut permuted = a.clone();
        for (j, &pivot) in pivots.iter().enumerate() {
            (0..n).for_each(|c| permuted.swap(j + c * n, pivot + c * n));
        }
        for j in 0..n {
            let size: f64 = (0..n).map(|i| a[i + j * n].abs()).sum();
            for i in 0..n {
                let product: f64 = (0..=i.min(j))
                    .map(
                        |k| if k == i { factors[i + j * n] } else { factors[i + k * n] * factors[k + j * n] },
                    )
                    .sum();
                let error = (product - permuted[i + j * n]).abs();
                assert!(
                    error <= 30.0 * n as f64 * f64::EPSILON * size,
                    "{name} ({i}, {j}): {error:e} of {size:e}"
                );
            }
        }
    }
}

#[test]
fn triangles_with_tiny_and_huge_pivots_are_solved() {
    for n in [3, 8, 20] {
        for pivot in [1e-310, 5e-324, 1e300, 1e308] {
            let a: Vec<f64> = (0..n * n).map(|at| if at % (n + 1) == 0 { pivot } else { 0.0 }).collect();
            for triangle in [Triangle::Lower, Triangle::Upper] {
                let mut b = vec![pivot; n * 2];
                let a = Triangular::new(triangle, Strided::col_major(&a, n, n).unwrap());
                let view = StridedMut::col_major(&mut b, n, 2).unwrap();
                Factor::new().solve_triangular(Side::Left, 1.0, a, view).unwrap();
                assert!(b.iter().all(|&x| x == 1.0), "{pivot:e} {b:?}");
            }
        }
    }
}

#[test]
fn batches_have_the_bits_of_single_calls() {
    let mut random = Random(3);
    for (n, distance, threads) in [(1, 1, 1), (4, 20, 1), (8, 64, 2), (17, 300, 2), (32, 1024, 2)] {
        let count = 70;
        let mut data: Vec<f64> = (0..distance * count).map(|_| random.unit()).collect();
        let shape = StridedShape::col_major(n, n).unwrap();
        let options = Factor::new().threads(threads);
        let mut single = data.clone();
        let (mut pivots, mut outcomes) = (vec![0; n * count], vec![Some(9); count]);
        options.lu_batch(shape, distance, &mut data, &mut pivots, &mut outcomes).unwrap();
        for i in 0..count {
            let (found, singular) = lu(&mut single[i * distance..], n, n);
            assert_eq!((&pivots[i * n..][..n], outcomes[i]), (&found[..], singular));
        }
        assert_eq!(data, single);
        // Diagonally dominant matrices, of which one is not positive.
        let mut data = vec![0.01; distance * count];
        for i in 0..count {
            (0..n).for_each(|j| data[i * distance + j * (n + 1)] = if i == 5 { -1.0 } else { 1.0 });
        }
        let mut single = data.clone();
        options.cholesky_batch(Triangle::Lower, shape, distance, &mut data, &mut outcomes).unwrap();
        for (i, outcome) in outcomes.iter().enumerate() {
            assert_eq!(*outcome, (i == 5).then_some(0));
            let view = StridedMut::col_major(&mut single[i * distance..], n, n).unwrap();
            let _ = Factor::new().cholesky_in_place(Triangle::Lower, view);
        }
        assert_eq!(data, single);
        let short = options.lu_batch(shape, distance, &mut data[1..], &mut pivots, &mut outcomes);
        assert!(distance > n * n || matches!(short, Err(Error::OutOfBounds { .. })));
    }
    let shape = StridedShape::col_major(3, 3).unwrap();
    let overlapping = Factor::new().lu_batch(shape, 8, &mut [0.0; 20], &mut [0; 6], &mut [None; 2]);
    assert!(matches!(overlapping, Err(Error::Invalid { value: 8, .. })));
}

#[test]
fn blocked_matrices_have_the_bits_of_plain_ones() {
    let mut random = Random(4);
    for n in [1, 5, 33, 130] {
        let a: Vec<f64> = (0..n * n).map(|_| random.unit()).collect();
        let mut stored = BlockedMatrix::from_strided(Strided::col_major(&a, n, n).unwrap()).unwrap();
        let mut pivots = vec![0; n];
        Factor::new().lu_blocked(&mut stored, &mut pivots).unwrap();
        let mut plain = a.clone();
        assert_eq!(lu(&mut plain, n, n).0, pivots);
        let got = stored.to_col_major();
        let close = got.iter().zip(&plain).all(|(x, y)| (x - y).abs() < 1e-10 * n as f64);
        assert!(close, "{n}");
    }
}

#[test]
fn any_number_of_threads_gives_the_same_factors() {
    // The largest uses threads inside of factorisations, the smallest between columns only.
    [130, 300, 530].into_iter().for_each(threads_agree);
}

/// Compares the bits of all operations on one and on more threads.
fn threads_agree(n: usize) {
    let mut random = Random(6);
    let a: Vec<f64> = (0..n * n).map(|_| random.unit()).collect();
    let run = |threads: usize| {
        let options = Factor::new().threads(threads);
        let (mut factors, mut reflectors, mut inverse) = (a.clone(), a.clone(), a.clone());
        options.lu(StridedMut::col_major(&mut factors, n, n).unwrap()).unwrap();
        options.qr(StridedMut::col_major(&mut reflectors, n, n).unwrap()).unwrap();
        options.invert(StridedMut::col_major(&mut inverse, n, n).unwrap()).unwrap();
        let mut square = vec![0.0; n * n];
        let (view, source) =
            (StridedMut::col_major(&mut square, n, n).unwrap(), Strided::col_major(&a, n, n).unwrap());
        options.rank_k_update(Triangle::Lower, 1.0, source, 0.0, view).unwrap();
        (0..n).for_each(|i| square[i * (n + 1)] += 1.0);
        options
            .cholesky_in_place(Triangle::Lower, StridedMut::col_major(&mut square, n, n).unwrap())
            .unwrap();
        let (mut solution, mut product, mut symmetric) = (a.clone(), a.clone(), vec![0.0; n * n]);
        let lower = Triangular::lower(source).unit();
        let view = StridedMut::row_major(&mut solution, n, n).unwrap();
        options.solve_triangular(Side::Left, 1e-3, lower, view).unwrap();
        let view = StridedMut::col_major(&mut product, n, n).unwrap();
        options.multiply_triangular(Side::Right, 2.0, Triangular::upper(source), view).unwrap();
        let view = StridedMut::col_major(&mut symmetric, n, n).unwrap();
        options.multiply_symmetric(Side::Right, Triangle::Upper, 1.0, source, source, 0.0, view).unwrap();
        [factors, reflectors, inverse, square, solution, product, symmetric]
    };
    let one = run(1);
    for threads in [2, 3, 5] {
        let many = run(threads);
        for (one, many) in one.iter().zip(&many) {
            let differing = one.iter().zip(many).filter(|(x, y)| x.to_bits() != y.to_bits()).count();
            assert_eq!(differing, 0, "{threads} threads, {n} columns");
        }
    }
}

#[test]
fn blocks_of_columns_find_the_pivots_of_halves() {
    let mut random = Random(12);
    for (m, n) in [(50, 50), (70, 33), (33, 70), (8, 8)] {
        let a: Vec<f64> = (0..m * n).map(|_| random.unit()).collect();
        let mut halves = a.clone();
        let found = lu(&mut halves, m, n);
        for columns in [1, 8, 13, 32, 100] {
            let mut blocks = a.clone();
            let options = Factor::new().block(columns);
            let lu = options.lu(StridedMut::col_major(&mut blocks, m, n).unwrap()).unwrap();
            assert_eq!((lu.pivots().to_vec(), lu.singular_column()), found, "{columns}");
            assert!(blocks.iter().zip(&halves).all(|(x, y)| (x - y).abs() < 1e-9));
            let (mut one, mut other) = (a.clone(), a.clone());
            Factor::new().qr(StridedMut::col_major(&mut one, m, n).unwrap()).unwrap();
            options.qr(StridedMut::col_major(&mut other, m, n).unwrap()).unwrap();
            assert!(one.iter().zip(&other).all(|(x, y)| (x - y).abs() < 1e-9));
        }
    }
}

/// A matrix whose pivots are far apart has LAPACK's pivots, and its factors within rounding.
#[test]
fn lapack_finds_the_same_pivots_and_factors() {
    let libraries = Lapack::<f64>::found('d', 1);
    if libraries.is_empty() {
        println!("skipping: no library with LAPACK's symbols was found");
    }
    for lapack in libraries {
        let mut random = Random(11);
        for n in [1, 5, 8, 20, 64, 100, 257] {
            let a: Vec<f64> = (0..n * n).map(|_| random.unit()).collect();
            let (mut ours, mut theirs, mut pivots) = (a.clone(), a.clone(), vec![0; n]);
            let found = lu(&mut ours, n, n).0;
            lapack.lu(n, &mut theirs, &mut pivots);
            let shifted: Vec<i32> = found.iter().map(|&pivot| pivot as i32 + 1).collect();
            assert_eq!(shifted, pivots, "{} {n}", lapack.name);
            let close =
                |x: &[f64], y: &[f64]| x.iter().zip(y).all(|(x, y)| (x - y).abs() < 1e-8 * (1.0 + y.abs()));
            assert!(close(&ours, &theirs), "{} LU {n}", lapack.name);
            let (mut ours, mut theirs) = (a.clone(), a.clone());
            let (mut taus, mut work, mut own) = (vec![0.0; n], vec![0.0; 64 * n], vec![0.0; n]);
            lapack.qr(n, &mut theirs, &mut taus, &mut work);
            Factor::new().qr_with(StridedMut::col_major(&mut ours, n, n).unwrap(), &mut own).unwrap();
            // The last reflector of a square matrix is the identity in LAPACK, and here.
            assert!(close(&ours, &theirs) && close(&own, &taus), "{} QR {n}", lapack.name);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Solves undo products, whatever the shape, the strides and the triangle.
    #[test]
    fn solves_undo_products(
        n in 1usize..70,
        k in 1usize..40,
        gap in 0usize..3,
        by_rows in any::<bool>(),
        upper in any::<bool>(),
        right in any::<bool>(),
        unit in any::<bool>(),
        seed in 1u64..1000,
    ) {
        let mut random = Random(seed);
        let a: Vec<f64> = (0..n * n)
            .map(|at| if at % (n + 1) == 0 { 2.0 + random.unit() } else { random.unit() / n as f64 })
            .collect();
        let triangle = if upper { Triangle::Upper } else { Triangle::Lower };
        let side = if right { Side::Right } else { Side::Left };
        let mut matrix = Triangular::new(triangle, Strided::row_major(&a, n, n).unwrap());
        if unit {
            matrix = matrix.unit();
        }
        let (rows, cols) = if right { (k, n) } else { (n, k) };
        let (row, col) = match by_rows {
            true => ((cols + gap) as isize, 1),
            false => (1, (rows + gap) as isize),
        };
        let mut b: Vec<f64> = (0..(rows + gap) * (cols + gap)).map(|_| random.unit()).collect();
        let before = b.clone();
        let options = Factor::new();
        options.multiply_triangular(side, 1.0, matrix, StridedMut::new(&mut b, rows, cols, row, col).unwrap()).unwrap();
        options.solve_triangular(side, 1.0, matrix, StridedMut::new(&mut b, rows, cols, row, col).unwrap()).unwrap();
        for (x, y) in b.iter().zip(&before) {
            prop_assert!((x - y).abs() < 1e-11, "{x} {y}");
        }
    }

    /// The inverse of a triangle times the triangle is the identity.
    #[test]
    fn triangular_inverses_invert(n in 1usize..60, upper in any::<bool>(), seed in 1u64..1000) {
        let mut random = Random(seed);
        let a: Vec<f64> = (0..n * n)
            .map(|at| if at % (n + 1) == 0 { 2.0 + random.unit() } else { random.unit() / n as f64 })
            .collect();
        let triangle = if upper { Triangle::Upper } else { Triangle::Lower };
        let mut inverse = a.clone();
        let view = StridedMut::col_major(&mut inverse, n, n).unwrap();
        Factor::new().invert_triangular(triangle, Diagonal::Stored, view).unwrap();
        let mut product: Vec<f64> = (0..n * n).map(|at| if at % (n + 1) == 0 { 1.0 } else { 0.0 }).collect();
        let view = || Strided::col_major(&a, n, n).unwrap();
        let options = Factor::new();
        for matrix in [Triangular::new(triangle, view()), Triangular::new(triangle, Strided::col_major(&inverse, n, n).unwrap())] {
            let view = StridedMut::col_major(&mut product, n, n).unwrap();
            options.multiply_triangular(Side::Left, 1.0, matrix, view).unwrap();
        }
        for (at, value) in product.iter().enumerate() {
            let want = if at % (n + 1) == 0 { 1.0 } else { 0.0 };
            prop_assert!((value - want).abs() < 1e-12, "{at}: {value}");
        }
    }
}

/// Both operands are one array, whose rows are copied once.
#[test]
fn large_symmetric_products_have_the_bits_of_whole_ones() {
    let mut random = Random(77);
    for (n, k, beta) in [(610usize, 733usize, 0.0), (600, 530, 0.5), (701, 1100, 0.0)] {
        let a: Vec<f64> = (0..n * k).map(|_| random.unit()).collect();
        let old: Vec<f64> = (0..n * n).map(|_| random.unit()).collect();
        let source = Strided::col_major(&a, n, k).unwrap();
        let mut whole = old.clone();
        let view = StridedMut::col_major(&mut whole, n, n).unwrap();
        Gemm::new().multiply_strided(-1.5, source, source.transposed(), beta, view).unwrap();
        for (triangle, threads) in
            [(Triangle::Lower, 1), (Triangle::Lower, 2), (Triangle::Lower, 3), (Triangle::Upper, 2)]
        {
            let mut part = old.clone();
            let view = StridedMut::col_major(&mut part, n, n).unwrap();
            Factor::new().threads(threads).rank_k_update(triangle, -1.5, source, beta, view).unwrap();
            for (at, (&part, (&whole, &old))) in part.iter().zip(whole.iter().zip(&old)).enumerate() {
                let (i, j) = (at % n, at / n);
                let is_given = i == j || (i > j) == (triangle == Triangle::Lower);
                let want = if is_given { whole } else { old };
                assert_eq!(part.to_bits(), want.to_bits(), "{n} {k} {triangle:?} {threads} ({i}, {j})");
            }
        }
    }
}
