//! Every kernel, every shape, every way in, against three loops in double-double.

mod support;

use lightfoot_matrix::{multiply_vector, BlockedMatrix, Gemm, Kernel, Op, Operand, Strided, StridedMut};
use num_complex::Complex;
use support::agreement::{blocked, blocked_products_agree, plain_products_agree, stored};
use support::{every_kernel, Number, Problem, Random};

#[test]
fn blocked_products_agree_with_the_reference() {
    every_kernel(blocked_products_agree::<f64>);
    every_kernel(blocked_products_agree::<f32>);
    every_kernel(blocked_products_agree::<Complex<f64>>);
    every_kernel(blocked_products_agree::<Complex<f32>>);
}

#[test]
fn plain_products_agree_with_the_reference() {
    every_kernel(plain_products_agree::<f64>);
    every_kernel(plain_products_agree::<f32>);
    every_kernel(plain_products_agree::<Complex<f64>>);
    every_kernel(plain_products_agree::<Complex<f32>>);
}

#[test]
fn larger_products_agree_at_sampled_entries() {
    let mut random = Random(3);
    for (m, n, k) in [(500, 300, 700), (257, 513, 255), (1000, 24, 1000)] {
        let problem = Problem::<f64>::random(m, n, k, &mut random);
        let (a, b) =
            (stored(Kernel::best(), &problem.a, m, k, 256), stored(Kernel::best(), &problem.b, k, n, 256));
        let mut c = stored(Kernel::best(), &problem.c, m, n, 256);
        Gemm::new().multiply(problem.alpha, &a, &b, problem.beta, &mut c).unwrap();
        let mut plain = problem.c.clone();
        let ld = |rows: usize| rows as isize;
        let (alpha, beta) = (problem.alpha, problem.beta);
        lightfoot_matrix::gemm(
            m,
            n,
            k,
            alpha,
            &problem.a,
            1,
            ld(m),
            &problem.b,
            1,
            ld(k),
            beta,
            &mut plain,
            1,
            ld(m),
        )
        .unwrap();
        for _ in 0..300 {
            let (i, j) = (random.below(m), random.below(n));
            let terms = (0..k).map(|p| (problem.a[i + p * m], problem.b[p + j * k]));
            let want = lightfoot_matrix::reference::entry(alpha, terms, beta, problem.c[i + j * m]);
            support::assert_entry(c.get(i, j), want, k, "blocked");
            support::assert_entry(plain[i + j * m], want, k, "plain");
        }
    }
}

fn check_threads<T: Number>() {
    let mut random = Random(5);
    for (m, n, k) in [(200, 150, 130), (90, 333, 120), (1, 3000, 900), (130, 130, 130)] {
        let problem = Problem::<T>::random(m, n, k, &mut random);
        for ops in [(Op::Plain, Op::Transposed), (Op::Transposed, Op::Plain)] {
            let bits = |threads| -> Vec<_> {
                blocked(&problem, Kernel::best(), 64, ops, threads).into_iter().map(Number::bits).collect()
            };
            let one = bits(1);
            assert!((2..=8).all(|threads| bits(threads) == one), "{m}×{n}×{k} {ops:?}");
        }
        let plain = |threads| -> Vec<_> {
            let (a, b) = (
                Strided::col_major(&problem.a, m, k).unwrap(),
                Strided::row_major(&problem.b, k, n).unwrap(),
            );
            let mut c = problem.c.clone();
            let view = StridedMut::col_major(&mut c, m, n).unwrap();
            Gemm::new().threads(threads).multiply_strided(problem.alpha, a, b, problem.beta, view).unwrap();
            c.into_iter().map(Number::bits).collect()
        };
        let one = plain(1);
        assert!((2..=8).all(|threads| plain(threads) == one), "{m}×{n}×{k} plain");
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    check_threads::<f64>();
    check_threads::<f32>();
    check_threads::<Complex<f64>>();
}

#[test]
fn results_do_not_depend_on_the_place_of_an_entry() {
    // The same row of A and column of B in every position of a register tile, at edges and inside.
    every_kernel(|kernel| {
        let (m, n, k) = (61, 43, 57);
        let a: Vec<f64> = (0..m * k).map(|at| 1.0 / (3.0 + (at / m) as f64)).collect();
        let b: Vec<f64> = (0..k * n).map(|at| 1.0 / (7.0 + (at % k) as f64)).collect();
        let mut c = vec![0.25; m * n];
        let gemm = Gemm::new().kernel(kernel);
        let (a, b) = (Strided::col_major(&a, m, k).unwrap(), Strided::col_major(&b, k, n).unwrap());
        gemm.multiply_strided(0.7, a, b, 0.3, StridedMut::col_major(&mut c, m, n).unwrap()).unwrap();
        assert!(c.iter().all(|v| v.to_bits() == c[0].to_bits()), "{}", kernel.name());
    });
}

/// Deep products of columns that are pages apart copy their panels at once, others row by row.
#[test]
fn pages_between_columns_change_no_bits() {
    fn check<T: Number>(kernel: &'static Kernel) {
        let (m, n, k, ld) = (61, 9, 1500, 1100);
        let mut random = Random(11);
        let b: Vec<T> = (0..k * n).map(|_| T::random(&mut random)).collect();
        let near: Vec<T> = (0..m * k).map(|_| T::random(&mut random)).collect();
        let far: Vec<T> =
            (0..ld * k).map(|i| if i % ld < m { near[i / ld * m + i % ld] } else { T::nan() }).collect();
        let product = |a: Strided<'_, T>| {
            let mut c = vec![T::nan(); m * n];
            let b = Strided::col_major(&b, k, n).unwrap();
            let to = StridedMut::col_major(&mut c, m, n).unwrap();
            Gemm::new().kernel(kernel).multiply_strided(T::ONE, a, b, T::ZERO, to).unwrap();
            c.into_iter().map(T::bits).collect::<Vec<_>>()
        };
        let apart = product(Strided::new(&far, m, k, 1, ld as isize).unwrap());
        assert_eq!(apart, product(Strided::col_major(&near, m, k).unwrap()), "{} {}", kernel.name(), T::NAME);
    }
    every_kernel(|kernel| {
        check::<f64>(kernel);
        check::<f32>(kernel);
        check::<Complex<f64>>(kernel);
    });
}

#[test]
fn identity_leaves_every_kernel_operand_alone() {
    fn check<T: Number>(kernel: &'static Kernel) {
        let n = 50;
        let mut random = Random(13);
        let data: Vec<T> = (0..n * n).map(|_| T::random(&mut random)).collect();
        let eye: Vec<T> = (0..n * n).map(|at| if at % (n + 1) == 0 { T::ONE } else { T::ZERO }).collect();
        for (a, b) in [(&data, &eye), (&eye, &data)] {
            let (a, b) = (stored(kernel, a, n, n, 32), stored(kernel, b, n, n, 32));
            let mut c = stored(kernel, &vec![T::nan(); n * n], n, n, 32);
            Gemm::new().multiply(T::ONE, &a, &b, T::ZERO, &mut c).unwrap();
            assert_eq!(c.to_col_major(), data, "{}", kernel.name());
        }
    }
    every_kernel(|kernel| {
        check::<f32>(kernel);
        check::<f64>(kernel);
        check::<Complex<f32>>(kernel);
        check::<Complex<f64>>(kernel);
    });
}

/// The problem's result on dense arrays by columns: small enough to be used in place.
fn plain<T: Number>(problem: &Problem<T>, kernel: &'static Kernel) -> Vec<T> {
    let &Problem { m, n, k, alpha, beta, .. } = problem;
    let a = Strided::col_major(&problem.a, m, k).unwrap();
    let b = Strided::col_major(&problem.b, k, n).unwrap();
    let mut c = problem.c.clone();
    let view = StridedMut::col_major(&mut c, m, n).unwrap();
    Gemm::new().kernel(kernel).multiply_strided(alpha, a, b, beta, view).unwrap();
    c
}

fn check_special<T: Number>() {
    let mut random = Random(17);
    let specials = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 1e-310, 5e-324, 1e300, -1e300];
    for (m, n, k) in [(9, 10, 11), (26, 9, 5), (3, 50, 8)] {
        for round in 0..8 {
            let mut problem = Problem::<T>::random(m, n, k, &mut random);
            for _ in 0..3 {
                let special = |random: &mut Random| T::from_parts(specials[random.below(8)], random.unit());
                let at = random.below(m * k);
                problem.a[at] = special(&mut random);
                let at = random.below(k * n);
                problem.b[at] = special(&mut random);
                let at = random.below(m * n);
                problem.c[at] = special(&mut random);
            }
            problem.alpha = [T::ONE, T::ZERO, problem.alpha, T::from_parts(-1.0, 0.0)][round % 4];
            problem.beta = [T::ONE, T::ZERO, problem.beta][round % 3];
            every_kernel(|kernel| {
                let got = blocked(&problem, kernel, 16, (Op::Plain, Op::Transposed), 1);
                compare_special(&problem, &got, kernel.name());
                compare_special(&problem, &plain(&problem, kernel), kernel.name());
            });
        }
    }
}

/// NaN where the reference has NaN, the same infinity, finite within the bound; overflow on the way
/// to a finite result may show as infinity or NaN only where the magnitude overflows.
fn compare_special<T: Number>(problem: &Problem<T>, got: &[T], name: &str) {
    let expected = problem.expected();
    for i in 0..problem.m {
        for j in 0..problem.n {
            let want = expected[i * problem.n + j];
            let limit = if T::ROUNDOFF > 1e-10 { f64::from(f32::MAX) } else { f64::MAX };
            if want.magnitude.is_finite() && want.magnitude < limit {
                let context = format!("{name} {} entry ({i}, {j}) of {}", T::NAME, problem.k);
                support::assert_entry(got[i + j * problem.m], want, problem.k, &context);
            } else if has_nan(problem, i, j) {
                assert!(got[i + j * problem.m].widen()[0].is_nan(), "{name} lost a NaN");
            }
        }
    }
}

/// Whether a NaN takes part in an entry. (NaN from ∞ − ∞ does not count: a fused operation whose
/// product overflows only when rounded keeps the infinity, the reference does not.)
fn has_nan<T: Number>(problem: &Problem<T>, i: usize, j: usize) -> bool {
    let is_nan = |value: T| value.widen().iter().any(|part| part.is_nan());
    let mut terms = (0..problem.k).map(|p| (problem.a[i + p * problem.m], problem.b[p + j * problem.k]));
    let product = problem.alpha != T::ZERO && terms.any(|(a, b)| is_nan(a) || is_nan(b));
    T::PARTS == 1 && (product || problem.beta != T::ZERO && is_nan(problem.c[i + j * problem.m]))
}

#[test]
fn special_values_follow_the_arithmetic() {
    check_special::<f64>();
    check_special::<f32>();
    check_special::<Complex<f64>>();
}

#[test]
fn negative_zero_survives() {
    // The sum starts at +0, as in every BLAS: (−0)·1 + 0 = +0, and β·C keeps the sign of C when the
    // product is −0.
    every_kernel(|kernel| {
        let a = stored::<f64>(kernel, &[-0.0], 1, 1, 8);
        let b = stored::<f64>(kernel, &[1.0], 1, 1, 8);
        let mut c = stored::<f64>(kernel, &[-0.0], 1, 1, 8);
        Gemm::new().multiply(0.0, &a, &b, 1.0, &mut c).unwrap();
        assert_eq!(c.get(0, 0).to_bits(), (-0.0f64).to_bits());
    });
}

#[test]
fn alpha_zero_reads_nothing_and_beta_zero_forgets() {
    every_kernel(|kernel| {
        let nan = vec![f64::NAN; 30 * 30];
        let (a, b) = (stored(kernel, &nan, 30, 30, 16), stored(kernel, &nan, 30, 30, 16));
        let mut c = stored(kernel, &vec![2.0; 900], 30, 30, 16);
        Gemm::new().multiply(0.0, &a, &b, 0.5, &mut c).unwrap();
        assert!(c.iter().all(|(_, _, v)| v == 1.0));
        let ones = vec![1.0; 900];
        let (a, b) = (stored(kernel, &ones, 30, 30, 16), stored(kernel, &ones, 30, 30, 16));
        let mut c = stored(kernel, &nan, 30, 30, 16);
        Gemm::new().multiply(1.0, &a, &b, 0.0, &mut c).unwrap();
        assert!(c.iter().all(|(_, _, v)| v == 30.0));
        let (a, b) = (stored(kernel, &[], 30, 0, 16), stored(kernel, &[], 0, 30, 16));
        let mut c = stored(kernel, &nan, 30, 30, 16);
        Gemm::new().multiply(1.0, &a, &b, 0.0, &mut c).unwrap();
        assert!(c.iter().all(|(_, _, v)| v == 0.0), "K = 0");
    });
}

/// Fills everything that is not an entry.
fn fill_padding<T: Number>(matrix: &mut BlockedMatrix<T>, value: T) {
    let layout = *matrix.layout();
    let mut is_entry = vec![false; layout.len()];
    for i in 0..layout.rows() {
        for j in 0..layout.cols() {
            is_entry[layout.offset(i, j)] = true;
        }
    }
    let padding = matrix.storage_mut().iter_mut().zip(is_entry).filter(|(_, is_entry)| !is_entry);
    padding.for_each(|(place, _)| *place = value);
}

#[test]
fn nan_in_the_padding_never_leaks() {
    fn check<T: Number>() {
        let mut random = Random(23);
        for (m, n, k) in [(1, 1, 1), (7, 9, 11), (25, 17, 13), (50, 50, 50), (13, 70, 3)] {
            let problem = Problem::<T>::random(m, n, k, &mut random);
            every_kernel(|kernel| {
                for (op_a, op_b) in [(Op::Plain, Op::Transposed), (Op::Transposed, Op::Plain)] {
                    let of = |data: &[T], rows, cols, op| {
                        let matrix = stored(kernel, data, rows, cols, 16);
                        let mut matrix = if op == Op::Plain { matrix } else { matrix.transposed().unwrap() };
                        fill_padding(&mut matrix, T::nan());
                        matrix
                    };
                    let (a, b) = (of(&problem.a, m, k, op_a), of(&problem.b, k, n, op_b));
                    let mut c = of(&problem.c, m, n, Op::Plain);
                    let (a, b) = (Operand::new(&a, op_a), Operand::new(&b, op_b));
                    Gemm::new().multiply(problem.alpha, a, b, problem.beta, &mut c).unwrap();
                    problem.assert_result(&c.to_col_major(), kernel.name());
                    assert!(c.transposed().unwrap().iter().all(|(_, _, v)| v == v));
                }
            });
        }
    }
    check::<f64>();
    check::<f32>();
    check::<Complex<f32>>();
}

#[test]
fn views_of_tiles_multiply_in_place() {
    let mut random = Random(29);
    let (m, n, k, tile) = (70, 52, 45, 16);
    let problem = Problem::<f64>::random(m, n, k, &mut random);
    every_kernel(|kernel| {
        let (a, b) = (stored(kernel, &problem.a, m, k, tile), stored(kernel, &problem.b, k, n, tile));
        let bt = b.transposed().unwrap();
        let mut c = stored(kernel, &problem.c, m, n, tile);
        // C = α·A·B + β·C, one tile of C and one strip of K at a time.
        for row in 0..c.layout().tiles().0 {
            for col in 0..c.layout().tiles().1 {
                for step in 0..a.layout().tiles().1 {
                    let beta = if step == 0 { problem.beta } else { 1.0 };
                    let part = c.tiles_mut(row..row + 1, col..col + 1).unwrap();
                    let (left, right) = (a.tile(row, step).unwrap(), bt.tile(col, step).unwrap());
                    let right = Operand::new(right, Op::Transposed);
                    Gemm::new().multiply(problem.alpha, left, right, beta, part).unwrap();
                }
            }
        }
        problem.assert_result(&c.to_col_major(), kernel.name());
    });
}

#[test]
fn vectors_agree_with_the_reference() {
    fn check<T: Number>() {
        let mut random = Random(31);
        for (m, k) in [(1, 1), (5, 9), (33, 70), (64, 3), (0, 4), (4, 0), (50, 130)] {
            let problem = Problem::<T>::random(m, 1, k, &mut random);
            every_kernel(|kernel| {
                let a = stored(kernel, &problem.a, m, k, 32);
                let mut y = problem.c.clone();
                multiply_vector(problem.alpha, &a, Op::Plain, &problem.b, problem.beta, &mut y).unwrap();
                problem.assert_result(&y, "vector");
                let a = a.transposed().unwrap();
                let mut y = problem.c.clone();
                multiply_vector(problem.alpha, &a, Op::Transposed, &problem.b, problem.beta, &mut y).unwrap();
                problem.assert_result(&y, "vector, transposed");
            });
        }
    }
    check::<f64>();
    check::<Complex<f32>>();
    check::<f32>();
}

#[test]
fn batches_are_single_products() {
    let mut random = Random(37);
    let problems: Vec<_> = (0..17).map(|i| Problem::<f64>::random(5 + i, 7, 9, &mut random)).collect();
    let of = |data: &[f64], rows, cols| stored(Kernel::best(), data, rows, cols, 16);
    let a: Vec<_> = problems.iter().map(|p| of(&p.a, p.m, p.k)).collect();
    let b: Vec<_> = problems.iter().map(|p| of(&p.b, p.k, p.n)).collect();
    let operands = |all: &'static [BlockedMatrix<f64>]| all.iter().map(Operand::from).collect::<Vec<_>>();
    let (a, b) = (operands(a.leak()), operands(b.leak()));
    for threads in [1, 2, 5, 40] {
        let mut c: Vec<_> = problems.iter().map(|p| of(&p.c, p.m, p.n)).collect();
        lightfoot_matrix::multiply_batch(&Gemm::new().threads(threads), 1.5, &a, &b, 0.5, &mut c).unwrap();
        for (problem, c) in problems.iter().zip(&c) {
            let problem = Problem { alpha: 1.5, beta: 0.5, ..problem.clone() };
            problem.assert_result(&c.to_col_major(), "batch");
        }
    }
    assert!(lightfoot_matrix::multiply_batch(&Gemm::new(), 1.0, &a[1..], &b, 0.0, &mut []).is_err());
}

#[test]
fn shapes_that_do_not_fit_are_named() {
    let zeros = |rows, cols| BlockedMatrix::<f64>::zeros(rows, cols).unwrap();
    let error = Gemm::new().multiply(1.0, &zeros(2, 3), &zeros(4, 5), 0.0, &mut zeros(2, 5)).unwrap_err();
    assert_eq!(error.to_string(), "columns of op(A) and rows of op(B) differ: 2×3 against 4×5");
    let error = Gemm::new().multiply(1.0, &zeros(2, 3), &zeros(3, 5), 0.0, &mut zeros(2, 6)).unwrap_err();
    assert_eq!(error.to_string(), "the shapes of op(A)·op(B) and of C differ: 2×5 against 2×6");
    let scalar = BlockedMatrix::<f64>::with(Kernel::named("scalar").unwrap(), 2, 3, 8).unwrap();
    if scalar.layout().panel() != zeros(2, 3).layout().panel() {
        let error = Gemm::new().multiply(1.0, &scalar, &zeros(3, 5), 0.0, &mut zeros(2, 5)).unwrap_err();
        assert!(error.to_string().contains("panels of 4"), "{error}");
    }
    assert!(lightfoot_matrix::gemm(2, 2, 2, 1.0, &[0.0; 3], 2, 1, &[0.0; 4], 2, 1, 0.0, &mut [0.0; 4], 2, 1)
        .is_err());
    assert!(lightfoot_matrix::gemm(2, 2, 2, 1.0, &[0.0; 4], 2, 1, &[0.0; 4], 2, 1, 0.0, &mut [0.0; 4], 1, 1)
        .is_err());
    assert!(BlockedMatrix::<f64>::zeros(usize::MAX, usize::MAX).is_err());
}
