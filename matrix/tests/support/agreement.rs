//! The agreement of one kernel with the reference: what every member of the family must pass,
//! listed or not.

use super::{Number, Problem, Random};
use lightfoot_matrix::{BlockedMatrix, Gemm, Kernel, Op, Operand, Strided, StridedMut, Tiling};

/// Sizes around every register tile (4, 8, 12, 16, 24, 48) and around the strips that the tests
/// use.
pub(crate) const SIZES: &[usize] =
    &[0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 23, 24, 25, 31, 33, 40, 47, 49, 65];

/// Shapes m, n, k: cubes of every size, then tall, flat, deep and shallow ones, and random ones.
pub(crate) fn shapes(random: &mut Random) -> Vec<(usize, usize, usize)> {
    let mut shapes: Vec<_> = SIZES.iter().map(|&n| (n, n, n)).collect();
    shapes.extend([(100, 1, 7), (1, 100, 7), (1, 1, 300), (97, 3, 1), (3, 97, 2), (24, 8, 500), (50, 9, 0)]);
    shapes.extend((0..40).map(|_| {
        let mut size = || SIZES[random.below(SIZES.len())];
        (size(), size(), size())
    }));
    shapes
}

pub(crate) fn stored<T: Number>(
    kernel: &'static Kernel,
    data: &[T],
    rows: usize,
    cols: usize,
    tile: usize,
) -> BlockedMatrix<T> {
    let mut matrix = BlockedMatrix::with(kernel, rows, cols, tile).unwrap();
    matrix.copy_from(Strided::col_major(data, rows, cols).unwrap()).unwrap();
    matrix
}

/// The problem's result by blocked operands, with every combination of operators; bitwise the same
/// for all threads.
pub(crate) fn blocked<T: Number>(
    problem: &Problem<T>,
    kernel: &'static Kernel,
    tile: usize,
    ops: (Op, Op),
    threads: usize,
) -> Vec<T> {
    let &Problem { m, n, k, alpha, beta, .. } = problem;
    let operand = |data: &[T], rows: usize, cols: usize, op: Op| match op {
        Op::Plain => stored(kernel, data, rows, cols, tile),
        Op::Transposed => stored(kernel, data, rows, cols, tile).transposed().unwrap(),
    };
    let (a, b) = (operand(&problem.a, m, k, ops.0), operand(&problem.b, k, n, ops.1));
    let mut c = stored(kernel, &problem.c, m, n, tile);
    let gemm = Gemm::new().threads(threads).tiling(Tiling { tile, rows: 48, cols: 32 });
    gemm.multiply(alpha, Operand::new(&a, ops.0), Operand::new(&b, ops.1), beta, &mut c).unwrap();
    c.to_col_major()
}

/// Holds blocked products of every shape and operator against the reference.
pub(crate) fn blocked_products_agree<T: Number>(kernel: &'static Kernel) {
    let mut random = Random(7);
    for (m, n, k) in shapes(&mut random) {
        let problem = Problem::<T>::random(m, n, k, &mut random);
        for ops in [(Op::Plain, Op::Transposed), (Op::Plain, Op::Plain), (Op::Transposed, Op::Transposed)] {
            let tile = [16, 24, 64][(m + n + k) % 3];
            let got = blocked(&problem, kernel, tile, ops, 1);
            problem.assert_result(&got, &format!("{} blocked {ops:?} tile {tile}", kernel.name()));
        }
    }
}

/// A dense array spread over memory: (data, origin, row stride, column stride); gaps hold `filler`.
pub(crate) fn spread<T: Number>(
    data: &[T],
    (rows, cols): (usize, usize),
    random: &mut Random,
    filler: T,
) -> (Vec<T>, usize, isize, isize) {
    let (fine, gap) = (1 + random.below(3) as isize, random.below(5) as isize);
    let (mut row, mut col) = match random.below(2) {
        0 => (fine, fine * rows.max(1) as isize + gap),
        _ => (fine * cols.max(1) as isize + gap, fine),
    };
    row *= if random.below(3) == 0 { -1 } else { 1 };
    col *= if random.below(3) == 0 { -1 } else { 1 };
    let (high, wide) = ((rows.max(1) - 1) as isize * row, (cols.max(1) - 1) as isize * col);
    let origin = (-(high.min(0) + wide.min(0))) as usize;
    let mut out = vec![filler; origin + (high.max(0) + wide.max(0)) as usize + 1];
    for i in 0..rows {
        for j in 0..cols {
            out[(origin as isize + i as isize * row + j as isize * col) as usize] = data[i + j * rows];
        }
    }
    (out, origin, row, col)
}

/// Holds products of plain arrays of any strides against the reference; nothing beside the result
/// may change.
pub(crate) fn plain_products_agree<T: Number>(kernel: &'static Kernel) {
    let mut random = Random(11);
    for (m, n, k) in shapes(&mut random) {
        let problem = Problem::<T>::random(m, n, k, &mut random);
        let (a, oa, rsa, csa) = spread(&problem.a, (m, k), &mut random, T::nan());
        let (b, ob, rsb, csb) = spread(&problem.b, (k, n), &mut random, T::nan());
        let (mut c, oc, rsc, csc) = spread(&problem.c, (m, n), &mut random, T::from_parts(77.0, 77.0));
        let before = c.clone();
        let a = Strided::with_origin(&a, oa, m, k, rsa, csa).unwrap();
        let b = Strided::with_origin(&b, ob, k, n, rsb, csb).unwrap();
        let view = StridedMut::with_origin(&mut c, oc, m, n, rsc, csc).unwrap();
        let gemm = Gemm::new().kernel(kernel).tiling(Tiling { tile: 16, rows: 32, cols: 48 });
        gemm.multiply_strided(problem.alpha, a, b, problem.beta, view).unwrap();
        let view = Strided::with_origin(&c, oc, m, n, rsc, csc).unwrap();
        let got: Vec<_> = (0..n).flat_map(|j| (0..m).map(move |i| view.get(i, j))).collect();
        problem.assert_result(&got, &format!("{} plain strides {rsc} {csc}", kernel.name()));
        let (sevens, changed) = (T::from_parts(77.0, 77.0), before.iter().zip(&c));
        assert!(changed.filter(|(b, a)| b.bits() != a.bits()).count() <= m * n, "wrote into gaps");
        assert_eq!(
            before.iter().filter(|&&v| v == sevens).count(),
            c.iter().filter(|&&v| v == sevens).count(),
            "gaps of C changed"
        );
    }
}
