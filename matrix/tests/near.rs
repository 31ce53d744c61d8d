//! Triangular solves and products of up to some hundred rows against plain loops, at the edges of
//! panels, of vectors and of strips, for every order of entries in memory.

mod support;

use lightfoot_matrix::{Factor, Kernel, Side, Strided, StridedMut, Triangle, Triangular};
use support::{every_kernel, Number, Random};

const SIZES: [usize; 14] = [5, 9, 15, 16, 17, 24, 31, 33, 48, 64, 65, 100, 128, 129];
const COLS: [usize; 14] = [1, 2, 7, 8, 9, 15, 17, 23, 25, 31, 48, 49, 73, 97];

/// The places of an n×k array: strides, and the place of the first entry.
fn places(n: usize, k: usize) -> [(isize, isize, usize); 6] {
    let (rows, cols) = (n as isize, k as isize);
    let far = 1024;
    [
        (1, rows + 3, 1),
        (cols + 1, 1, 0),
        (far, 1, 5),
        (-1, rows, n - 1),
        (cols, -1, k - 1),
        (-far, 1, (n - 1) * far as usize),
    ]
}

/// An array whose entries outside of the view are a number that nothing computes.
fn spread<T: Number>(
    n: usize,
    k: usize,
    place: (isize, isize, usize),
    entry: impl Fn(usize, usize) -> T,
) -> Vec<T> {
    let at = |i: usize, j: usize| (place.2 as isize + i as isize * place.0 + j as isize * place.1) as usize;
    let last = [at(0, 0), at(n - 1, 0), at(0, k - 1), at(n - 1, k - 1)].into_iter().max().unwrap();
    let mut data = vec![T::from_parts(12345.0, 0.0); last + 3];
    for j in 0..k {
        (0..n).for_each(|i| data[at(i, j)] = entry(i, j));
    }
    data
}

fn view<T>(data: &mut [T], n: usize, k: usize, place: (isize, isize, usize)) -> StridedMut<'_, T>
where
    T: Number,
{
    StridedMut::with_origin(data, place.2, n, k, place.0, place.1).unwrap()
}

/// Substitution in double precision with the lower or upper triangle of `a`, column by column.
fn substitute(a: &[f64], n: usize, (lower, unit): (bool, bool), b: &mut [f64]) {
    for step in 0..n {
        let i = if lower { step } else { n - 1 - step };
        let known = if lower { 0..i } else { i + 1..n };
        let sum = known.fold(b[i], |sum, k| sum - a[i + k * n] * b[k]);
        b[i] = if unit { sum } else { sum / a[i + i * n] };
    }
}

/// The product in double precision with the lower or upper triangle of `a`.
fn multiply(a: &[f64], n: usize, (lower, unit): (bool, bool), b: &mut [f64]) {
    for step in 0..n {
        let i = if lower { n - 1 - step } else { step };
        let others = if lower { 0..i } else { i + 1..n };
        let own = if unit { b[i] } else { a[i + i * n] * b[i] };
        b[i] = others.fold(own, |sum, k| sum + a[i + k * n] * b[k]);
    }
}

fn apply<T: Number>(options: &Factor, is_product: bool, matrix: Triangular<'_, T>, b: StridedMut<'_, T>) {
    match is_product {
        true => options.multiply_triangular(Side::Left, T::ONE, matrix, b),
        false => options.solve_triangular(Side::Left, T::ONE, matrix, b),
    }
    .unwrap();
}

fn check<T: Number>(kernel: &'static Kernel) {
    let mut random = Random(41);
    let options = Factor::new().kernel(kernel);
    for (at, &n) in SIZES.iter().enumerate() {
        let wide: Vec<f64> =
            (0..n * n)
                .map(|at| {
                    if at % (n + 1) == 0 {
                        1.5 + random.unit() / 4.0
                    } else {
                        4.0 * random.unit() / n as f64
                    }
                })
                .collect();
        let entry = |i: usize, j: usize| T::from_parts(wide[i + j * n], 0.0);
        let exact: Vec<f64> = (0..n * n).map(|at| entry(at % n, at / n).widen()[0]).collect();
        for (case, &k) in COLS.iter().chain(&COLS).enumerate() {
            let is_product = case >= COLS.len();
            let (lower, unit) = ((at + case) % 2 == 0, case % 3 == 0);
            // The other triangle, and a diagonal of ones, must not be read.
            let is_read = |i: usize, j: usize| if i == j { !unit } else { (i > j) == lower };
            let given = |i, j| if is_read(i, j) { entry(i, j) } else { T::nan() };
            for (which, place) in places(n, k).into_iter().enumerate() {
                let square = places(n, n)[(which + case) % 6];
                let a_data = spread(n, n, square, given);
                let a = Strided::with_origin(&a_data, square.2, n, n, square.0, square.1).unwrap();
                let triangle = if lower { Triangle::Lower } else { Triangle::Upper };
                let matrix = Triangular::new(triangle, a);
                let matrix = if unit { matrix.unit() } else { matrix };
                let right: Vec<T> = (0..n * k).map(|_| T::random(&mut random)).collect();
                let mut data = spread(n, k, place, |i, j| right[i + j * n]);
                let before = data.clone();
                apply(&options, is_product, matrix, view(&mut data, n, k, place));
                let context =
                    format!("{} {n}×{k} {which} {lower} {unit} {is_product} {}", kernel.name(), T::NAME);
                let got = |i: usize, j: usize| {
                    data[(place.2 as isize + i as isize * place.0 + j as isize * place.1) as usize]
                };
                let mut inside = vec![false; data.len()];
                for j in 0..k {
                    let mut want: Vec<f64> = (0..n).map(|i| right[i + j * n].widen()[0]).collect();
                    match is_product {
                        true => multiply(&exact, n, (lower, unit), &mut want),
                        false => substitute(&exact, n, (lower, unit), &mut want),
                    }
                    let largest = want.iter().fold(1.0, |most: f64, x| most.max(x.abs()));
                    // The same column on its own has the same bits.
                    let mut alone: Vec<T> = right[j * n..(j + 1) * n].to_vec();
                    let one = StridedMut::col_major(&mut alone, n, 1).unwrap();
                    apply(&options, is_product, matrix, one);
                    for i in 0..n {
                        inside[(place.2 as isize + i as isize * place.0 + j as isize * place.1) as usize] =
                            true;
                        let off = (got(i, j).widen()[0] - want[i]).abs();
                        let bound = 4.0 * (n + 4) as f64 * T::ROUNDOFF * largest;
                        assert!(off <= bound, "{context} ({i}, {j}): {:?} {}", got(i, j), want[i]);
                        if (17..=128).contains(&n) {
                            assert_eq!(got(i, j).bits(), alone[i].bits(), "{context} ({i}, {j}) alone");
                        }
                    }
                }
                for (at, inside) in inside.into_iter().enumerate() {
                    assert!(inside || data[at].bits() == before[at].bits(), "{context}: wrote at {at}");
                }
            }
        }
    }
}

#[test]
fn small_triangles_agree_with_plain_loops() {
    every_kernel(|kernel| {
        check::<f64>(kernel);
        check::<f32>(kernel);
    });
}
