//! Prepared and batched products, and the direct kernels under them: every shape, stride and factor
//! against three loops in double-double, and bit for bit against packed operands.

mod support;

use lightfoot_matrix::{Batch, Error, Gemm, Kernel, Op, Strided, StridedMut, StridedShape};
use num_complex::Complex;
use support::agreement::blocked;
use support::{every_kernel, Number, Problem, Random};

/// An array in gaps of another owner: the shape, and the numbers with `filler` in the gaps.
fn spread<T: Number>(
    data: &[T],
    (rows, cols): (usize, usize),
    order: Order,
    gap: usize,
    filler: T,
) -> (Vec<T>, StridedShape) {
    let (row, col) = match order {
        Order::Columns => (1, rows.max(1) + gap),
        Order::Rows => (cols.max(1) + gap, 1),
        Order::Backwards => (1, rows.max(1) + gap),
    };
    let last = rows.saturating_sub(1) * row + cols.saturating_sub(1) * col;
    let mut out = vec![filler; last + 1 + gap];
    let shape = match order {
        // Columns in reverse order, for a negative stride.
        Order::Backwards => StridedShape::new(rows, cols, row as isize, -(col as isize))
            .with_origin(cols.saturating_sub(1) * col),
        _ => StridedShape::new(rows, cols, row as isize, col as isize),
    };
    for i in 0..rows {
        for j in 0..cols {
            let place = if order == Order::Backwards { cols - 1 - j } else { j };
            out[i * row + place * col] = data[i + j * rows];
        }
    }
    (out, shape)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Columns,
    Rows,
    Backwards,
}

const ORDERS: [Order; 3] = [Order::Columns, Order::Rows, Order::Backwards];

/// The column-major result of a prepared product; asserts that gaps are as they were, and that
/// `multiply_strided` gives the same bits.
fn prepared<T: Number>(
    problem: &Problem<T>,
    kernel: &'static Kernel,
    orders: [Order; 3],
    gap: usize,
) -> Vec<T> {
    let &Problem { m, n, k, alpha, beta, .. } = problem;
    let filler = T::from_parts(-77.0, 55.0);
    let (a, a_shape) = spread(&problem.a, (m, k), orders[0], gap, T::nan());
    let (b, b_shape) = spread(&problem.b, (k, n), orders[1], gap, T::nan());
    let (mut c, c_shape) = spread(&problem.c, (m, n), orders[2], gap, filler);
    let (mut other, before) = (c.clone(), c.clone());
    let gemm = Gemm::new().kernel(kernel);
    let product = gemm.prepare(alpha, a_shape, b_shape, beta, c_shape).unwrap();
    product.multiply(&a, &b, &mut c).unwrap();
    let (places, origin) = (c_shape.strides(), |shape: StridedShape, cols: usize| {
        if shape.strides().1 < 0 {
            cols.saturating_sub(1) * shape.strides().1.unsigned_abs()
        } else {
            0
        }
    });
    let view = |data, shape: StridedShape, cols| {
        let (row, col) = shape.strides();
        Strided::with_origin(data, origin(shape, cols), shape.rows(), shape.cols(), row, col).unwrap()
    };
    let out = StridedMut::with_origin(&mut other, origin(c_shape, n), m, n, places.0, places.1).unwrap();
    gemm.multiply_strided(alpha, view(&a, a_shape, k), view(&b, b_shape, n), beta, out).unwrap();
    let bits = |data: &[T]| data.iter().map(|v| v.bits()).collect::<Vec<_>>();
    assert_eq!(bits(&c), bits(&other), "{m}×{n}×{k} {orders:?}");
    let mut is_entry = vec![false; c.len()];
    let mut result = Vec::new();
    for j in 0..n {
        for i in 0..m {
            let at = origin(c_shape, n) as isize + i as isize * places.0 + j as isize * places.1;
            is_entry[at as usize] = true;
            result.push(c[at as usize]);
        }
    }
    let gaps = (0..c.len()).filter(|&at| !is_entry[at]);
    gaps.for_each(|at| assert_eq!(c[at].bits(), before[at].bits(), "a gap of C was written"));
    result
}

fn check<T: Number>(kernel: &'static Kernel) {
    let mut random = Random(41);
    let mut shapes: Vec<_> = (1..=36).map(|n| (n, n, n)).collect();
    shapes.extend([
        (48, 48, 48),
        (64, 64, 64),
        (65, 3, 9),
        (3, 65, 2),
        (81, 80, 79),
        (127, 16, 128),
        (100, 99, 101),
        (127, 126, 125),
    ]);
    // A few rows behind the last whole panel, with every number of them, of columns that make no
    // square, and of steps.
    shapes.extend((1..=4).map(|rest| (48 + rest, 12 + rest, 9 + rest)));
    shapes.extend((1..=4).map(|rest| (64 + rest, 40 - rest, 30 + rest)));
    shapes.extend([(0, 3, 4), (3, 0, 4), (3, 4, 0), (1, 1, 129), (129, 1, 3), (1, 129, 3)]);
    shapes.extend((0..80).map(|_| (1 + random.below(40), 1 + random.below(40), 1 + random.below(40))));
    for (at, (m, n, k)) in shapes.into_iter().enumerate() {
        let mut problem = Problem::<T>::random(m, n, k, &mut random);
        problem.alpha = [T::ONE, problem.alpha, T::ONE, T::ZERO][at % 4];
        problem.beta = [T::ZERO, problem.beta, T::ONE][at % 3];
        if problem.beta == T::ZERO {
            problem.c.fill(T::nan());
        }
        let orders = match at % 5 {
            0 | 1 => [Order::Columns; 3],
            2 => [Order::Rows; 3],
            _ => [(); 3].map(|()| ORDERS[random.below(3)]),
        };
        let got = prepared(&problem, kernel, orders, random.below(3));
        problem.assert_result(&got, &format!("{} {orders:?}", kernel.name()));
        // One chain in the order of k: packed operands in one strip have the same bits.
        if T::PARTS == 1 {
            let packed = blocked(&problem, kernel, 256, (Op::Plain, Op::Transposed), 1);
            // What is not equal to itself is no number; the bits of such values may differ.
            let is_nan = |value: &T| value.ne(value);
            let same = |(a, b): (&T, &T)| a.bits() == b.bits() || is_nan(a) && is_nan(b);
            let same = got.iter().zip(&packed).all(same);
            assert!(same, "{} {m}×{n}×{k} differs from packed operands", kernel.name());
        }
    }
}

#[test]
fn prepared_products_agree_with_the_reference_and_with_packed_operands() {
    every_kernel(check::<f64>);
    every_kernel(check::<f32>);
    every_kernel(check::<Complex<f64>>);
}

#[test]
fn small_blocked_products_have_the_bits_of_plain_ones() {
    fn check<T: Number>(kernel: &'static Kernel) {
        let mut random = Random(43);
        for m in 1..=30 {
            for n in 1..=30 {
                let k = 1 + random.below(30);
                let mut problem = Problem::<T>::random(m, n, k, &mut random);
                problem.alpha = T::ONE;
                let plain = prepared(&problem, kernel, [Order::Columns; 3], 0);
                // Without tile sizes, so that the small path is taken.
                let a = support::agreement::stored(kernel, &problem.a, m, k, 64);
                let bt = support::agreement::stored(kernel, &problem.b, k, n, 64).transposed().unwrap();
                let mut c = support::agreement::stored(kernel, &problem.c, m, n, 64);
                let right = lightfoot_matrix::Operand::new(&bt, Op::Transposed);
                Gemm::new().multiply(problem.alpha, &a, right, problem.beta, &mut c).unwrap();
                let bits = |data: &[T]| data.iter().map(|v| v.bits()).collect::<Vec<_>>();
                assert_eq!(bits(&plain), bits(&c.to_col_major()), "{} {m}×{n}×{k}", kernel.name());
            }
        }
    }
    every_kernel(check::<f64>);
    every_kernel(check::<f32>);
}

#[test]
fn batches_are_single_products_on_any_number_of_threads() {
    let mut random = Random(47);
    for (m, n, k, count) in [(5, 7, 9, 40), (24, 24, 24, 300), (90, 80, 100, 7)] {
        let mut numbers = |len: usize| (0..len).map(|_| random.unit()).collect::<Vec<f64>>();
        let shapes = [(m, k), (k, n), (m, n)].map(|(r, c)| StridedShape::col_major(r, c).unwrap());
        let [a_shape, b_shape, c_shape] = shapes;
        let product = Gemm::new().prepare(1.5, a_shape, b_shape, 0.5, c_shape).unwrap();
        let contiguous = product.contiguous(count);
        assert_eq!(contiguous, Batch { count, a: m * k, b: k * n, c: m * n });
        // Every product of the second batch has the first B, and gaps between the results.
        for batch in [contiguous, Batch { b: 0, c: m * n + 3, ..contiguous }] {
            let (a, b) = (numbers(count * batch.a), numbers(count * k * n));
            let c = numbers(count * batch.c);
            let mut expected = c.clone();
            for i in 0..count {
                let out = &mut expected[i * batch.c..];
                product.multiply(&a[i * batch.a..], &b[i * batch.b..], out).unwrap();
            }
            for threads in [1, 2, 3, 8] {
                let gemm = Gemm::new().threads(threads);
                let product = gemm.prepare(1.5, a_shape, b_shape, 0.5, c_shape).unwrap();
                let mut got = c.clone();
                product.multiply_batch(batch, &a, &b, &mut got).unwrap();
                assert!(got.iter().zip(&expected).all(|(a, b)| a.to_bits() == b.to_bits()), "{threads}");
            }
        }
    }
}

#[test]
fn what_does_not_fit_is_named() {
    let square = StridedShape::col_major(4, 4).unwrap();
    let product = Gemm::new().prepare(1.0, square, square, 0.0, square).unwrap();
    let (full, mut c) = ([1.0; 16], [0.0; 16]);
    let error = product.multiply(&full[..15], &full, &mut c).unwrap_err();
    assert_eq!(error.to_string(), "the strides reach from index 0 to 15, the slice has 15 elements");
    assert!(product.multiply(&full, &full[..3], &mut c).is_err());
    assert!(product.multiply(&full, &full, &mut c[..0]).is_err());
    assert!(c.iter().all(|&v| v == 0.0), "a refused product wrote");
    let batch = Batch { count: 2, a: 0, b: 0, c: 15 };
    let error = product.multiply_batch(batch, &full, &full, &mut [0.0; 40]).unwrap_err();
    assert!(error.to_string().contains("is 15, expected at least the length of a result"), "{error}");
    let batch = Batch { c: 16, ..batch };
    assert!(product.multiply_batch(batch, &full, &full, &mut [0.0; 31]).is_err());
    assert!(product.multiply_batch(Batch { a: usize::MAX, ..batch }, &full, &full, &mut [0.0; 32]).is_err());
    product.multiply_batch(batch, &full, &full, &mut [0.0; 32]).unwrap();
    let shape = StridedShape::new(4, 4, 0, 1);
    assert!(matches!(
        Gemm::new().prepare(1.0, square, square, 0.0, shape),
        Err(Error::Overlap { shape: (4, 4), strides: (0, 1) })
    ));
    let before = StridedShape::new(4, 4, -1, 4);
    assert!(Gemm::new().prepare(1.0, before, square, 0.0, square).is_err());
    let other = StridedShape::col_major(3, 4).unwrap();
    assert!(Gemm::new().prepare(1.0, other, square, 0.0, square).is_err());
    let huge = StridedShape::new(usize::MAX, 2, 1, isize::MAX);
    assert!(Gemm::new().prepare(1.0, huge, StridedShape::new(2, 1, 1, 1), 0.0, huge).is_err());
    // `gemm` refuses what its quick check does not understand in the same words.
    let call = |rsc, csc| {
        lightfoot_matrix::gemm(4, 4, 4, 1.0, &full, 1, 4, &full, 1, 4, 0.0, &mut [0.0; 16], rsc, csc)
    };
    assert!(matches!(call(1, 3), Err(Error::Overlap { .. })));
    assert!(matches!(call(1, 5), Err(Error::OutOfBounds { .. })));
    assert!(matches!(call(-1, 4), Err(Error::OutOfBounds { .. })));
    call(4, 1).unwrap();
}
