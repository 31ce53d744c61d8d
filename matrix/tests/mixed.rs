//! Mixed products: every pair of types, every kernel, against three loops.

mod support;

use half::{bf16, f16};
use lightfoot_matrix::mixed::{reference, Mixed, Product, Sum, TileKernel};
use lightfoot_matrix::reference::gamma;
use lightfoot_matrix::{Error, Strided, StridedMut, StridedShape};
use proptest::prelude::*;
use support::Random;

/// A sum under test.
trait Checked: Sum {
    fn of(value: f64) -> Self;
    /// A value that may stand in `C` where it is not read.
    fn unread() -> Self;
    fn bits(self) -> u32;
    /// Whether `got` is α·sum + β·old, for sums of `terms` products.
    fn agrees(got: Self, alpha: Self, entry: reference::Entry, beta: Self, old: Self, terms: usize) -> bool;
}

impl Checked for i32 {
    fn of(value: f64) -> i32 {
        value as i32
    }
    fn unread() -> i32 {
        i32::MIN + 1
    }
    fn bits(self) -> u32 {
        self as u32
    }
    fn agrees(got: i32, alpha: i32, entry: reference::Entry, beta: i32, old: i32, _: usize) -> bool {
        let sum = entry.value as i64 as i32;
        got == alpha.wrapping_mul(sum).wrapping_add(beta.wrapping_mul(old))
    }
}

impl Checked for f32 {
    fn of(value: f64) -> f32 {
        value as f32
    }
    fn unread() -> f32 {
        f32::NAN
    }
    fn bits(self) -> u32 {
        self.to_bits()
    }
    fn agrees(got: f32, alpha: f32, entry: reference::Entry, beta: f32, old: f32, terms: usize) -> bool {
        let (alpha, beta) = (f64::from(alpha), f64::from(beta));
        let old = if beta == 0.0 { 0.0 } else { f64::from(old) };
        let want = alpha * entry.value + beta * old;
        let magnitude = alpha.abs() * entry.magnitude + (beta * old).abs();
        let bound = gamma(terms + 3, f64::from(f32::EPSILON) / 2.0) * magnitude;
        (f64::from(got) - want).abs() <= bound
    }
}

/// A narrow number from the generator: extremes are frequent.
trait Drawn {
    fn draw(random: &mut Random) -> Self;
}

macro_rules! drawn_integers {
    ($($narrow:ty),*) => {$(
        impl Drawn for $narrow {
            fn draw(random: &mut Random) -> $narrow {
                match random.below(4) {
                    0 => <$narrow>::MIN,
                    1 => <$narrow>::MAX,
                    _ => random.next() as $narrow,
                }
            }
        }
    )*};
}
drawn_integers!(u8, i8, i16);

impl Drawn for bf16 {
    fn draw(random: &mut Random) -> bf16 {
        bf16::from_f64(random.unit())
    }
}

impl Drawn for f16 {
    fn draw(random: &mut Random) -> f16 {
        f16::from_f64(random.unit())
    }
}

/// The ways in which an array can lie in memory.
#[derive(Clone, Copy, Debug)]
enum Order {
    Rows,
    Columns,
    /// Every second number of every third column, from the end.
    Spread,
}

const ORDERS: [Order; 3] = [Order::Rows, Order::Columns, Order::Spread];

impl Order {
    fn shape(self, rows: usize, cols: usize) -> (StridedShape, usize) {
        match self {
            Order::Rows => (StridedShape::row_major(rows, cols).unwrap(), rows * cols),
            Order::Columns => (StridedShape::col_major(rows, cols).unwrap(), rows * cols),
            Order::Spread => {
                let column = 2 * rows + 1;
                let shape = StridedShape::new(rows, cols, -2, 3 * column as isize);
                (shape.with_origin(2 * rows), 3 * column * cols + 2 * rows + 1)
            }
        }
    }
}

fn view<T>(data: &[T], order: Order, rows: usize, cols: usize) -> Strided<'_, T> {
    let shape = order.shape(rows, cols).0;
    let (row, col) = shape.strides();
    let origin = if matches!(order, Order::Spread) { 2 * rows } else { 0 };
    Strided::with_origin(data, origin, rows, cols, row, col).unwrap()
}

fn view_mut<T>(data: &mut [T], order: Order, rows: usize, cols: usize) -> StridedMut<'_, T> {
    let (row, col) = order.shape(rows, cols).0.strides();
    let origin = if matches!(order, Order::Spread) { 2 * rows } else { 0 };
    StridedMut::with_origin(data, origin, rows, cols, row, col).unwrap()
}

/// Multiplies with every kernel and every order of `C`, on one thread and on three, and compares.
fn check<P>(m: usize, n: usize, k: usize, orders: (Order, Order), factors: (f64, f64), seed: u64)
where
    P: Product<Sum: Checked, Left: Drawn, Right: Drawn>,
{
    let mut random = Random(seed | 1);
    let a: Vec<P::Left> = (0..orders.0.shape(m, k).1).map(|_| Drawn::draw(&mut random)).collect();
    let b: Vec<P::Right> = (0..orders.1.shape(k, n).1).map(|_| Drawn::draw(&mut random)).collect();
    let (a, b) = (view(&a, orders.0, m, k), view(&b, orders.1, k, n));
    let want = reference::multiply::<P>(a, b).unwrap();
    let (alpha, beta) = (P::Sum::of(factors.0), P::Sum::of(factors.1));
    for kernel in TileKernel::<P>::available() {
        for order in ORDERS {
            let old = if beta == P::Sum::ZERO { P::Sum::unread() } else { P::Sum::of(3.0) };
            let fresh = vec![old; order.shape(m, n).1];
            let run = |threads: usize| {
                let mut c = fresh.clone();
                let gemm = Mixed::<P>::new().kernel(kernel).threads(threads);
                gemm.multiply(alpha, a, b, beta, view_mut(&mut c, order, m, n)).unwrap();
                c
            };
            let c = run(1);
            let got = view(&c, order, m, n);
            for (at, &entry) in want.iter().enumerate() {
                let (i, j) = (at / n, at % n);
                let got = got.get(i, j);
                assert!(
                    P::Sum::agrees(got, alpha, entry, beta, old, k),
                    "{} {m}×{n}×{k} {orders:?} {order:?} ({i}, {j}): {got:?}, expected {entry:?}",
                    kernel.name()
                );
            }
            // Neighbours of the array's entries stay as they were, and threads change nothing.
            let mut mine = vec![false; c.len()];
            let places = order.shape(m, n).0;
            for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                let (row, col) = places.strides();
                let origin = if matches!(order, Order::Spread) { 2 * m } else { 0 };
                mine[(origin as isize + i as isize * row + j as isize * col) as usize] = true;
            }
            let same = |x: P::Sum, y: P::Sum| x.bits() == y.bits();
            assert!(c.iter().zip(&mine).all(|(&now, &mine)| mine || same(now, old)), "{}", kernel.name());
            assert!(run(3).iter().zip(&c).all(|(&x, &y)| same(x, y)), "{} on threads", kernel.name());
        }
    }
}

/// Calls a function for every pair.
macro_rules! every_pair {
    ($check:ident($($argument:expr),*)) => {
        $check::<(u8, i8)>($($argument),*);
        $check::<(i8, u8)>($($argument),*);
        $check::<(u8, u8)>($($argument),*);
        $check::<(i8, i8)>($($argument),*);
        $check::<(i16, i16)>($($argument),*);
        $check::<(bf16, bf16)>($($argument),*);
        $check::<(f16, f16)>($($argument),*);
    };
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn every_kernel_agrees_with_three_loops(
        m in 0_usize..70, n in 0_usize..40, k in 0_usize..150,
        orders in (0_usize..3, 0_usize..3),
        factors in prop::sample::select(vec![(1.0, 0.0), (1.0, 1.0), (-2.0, 3.0), (0.0, 2.0), (0.0, 0.0)]),
        seed in any::<u64>(),
    ) {
        let orders = (ORDERS[orders.0], ORDERS[orders.1]);
        every_pair!(check(m, n, k, orders, factors, seed));
    }
}

#[test]
fn blocks_of_every_dimension_are_joined() {
    // More than one block of rows, of columns and of k, and enough work for threads.
    for (m, n, k) in [(250, 20, 2100), (20, 1100, 30), (500, 130, 70)] {
        every_pair!(check(m, n, k, (Order::Rows, Order::Columns), (1.0, 1.0), 7));
    }
}

#[test]
fn sums_of_extremes_wrap_and_do_not_saturate() {
    // 255·127·2 does not fit in 16 bits, and 70,000 such products do not fit in 32.
    let k = 70_000;
    let (a, b) = (vec![255_u8; k], vec![127_i8; k]);
    let want = (255_i64 * 127 * k as i64) as i32;
    for kernel in TileKernel::<(u8, i8)>::available() {
        let mut c = [0];
        let (a, b) = (Strided::row_major(&a, 1, k).unwrap(), Strided::row_major(&b, k, 1).unwrap());
        let c_view = StridedMut::row_major(&mut c, 1, 1).unwrap();
        Mixed::<(u8, i8)>::new().kernel(kernel).multiply(1, a, b, 0, c_view).unwrap();
        assert_eq!(c, [want], "{}", kernel.name());
    }
}

#[test]
fn infinities_and_nan_reach_the_result() {
    fn special<P: Product<Sum = f32>>(infinity: P::Left, nan: P::Left, one: P::Right) {
        for kernel in TileKernel::<P>::available() {
            let (a, b, mut c) = ([infinity, nan], [one], [0.0_f32; 2]);
            let (a, b) = (Strided::row_major(&a, 2, 1).unwrap(), Strided::row_major(&b, 1, 1).unwrap());
            let view = StridedMut::row_major(&mut c, 2, 1).unwrap();
            Mixed::<P>::new().kernel(kernel).multiply(1.0, a, b, 0.0, view).unwrap();
            assert!(c[0] == f32::INFINITY && c[1].is_nan(), "{}: {c:?}", kernel.name());
        }
    }
    special::<(bf16, bf16)>(bf16::INFINITY, bf16::NAN, bf16::ONE);
    special::<(f16, f16)>(f16::INFINITY, f16::NAN, f16::ONE);
}

#[test]
fn lists_of_exchanged_pairs_have_the_same_members() {
    fn names<P: Product>() -> Vec<&'static str> {
        TileKernel::<P>::available().map(TileKernel::name).collect()
    }
    assert_eq!(names::<(u8, i8)>(), names::<(i8, u8)>());
    assert_eq!(TileKernel::<(u8, i8)>::best().name(), names::<(u8, i8)>()[0]);
    // Measured once, so the choice never changes.
    let best = TileKernel::<(bf16, bf16)>::best;
    assert!(names::<(bf16, bf16)>()[..2].contains(&best().name()) && best().name() == best().name());
    assert!(TileKernel::<(u8, i8)>::named("scalar").is_some());
    assert!(TileKernel::<(u8, i8)>::named("abacus").is_none());
}

#[test]
fn shapes_that_do_not_fit_are_named() {
    let (a, b, mut c) = ([0_u8; 6], [0_i8; 6], [7; 4]);
    let multiply = |rows: usize, (k, cols): (usize, usize), shape: (usize, usize), c: &mut [i32]| {
        let a = Strided::row_major(&a, rows, 3).unwrap();
        let b = Strided::row_major(&b, k, cols).unwrap();
        let c = StridedMut::row_major(c, shape.0, shape.1).unwrap();
        Mixed::<(u8, i8)>::new().multiply(1, a, b, 0, c).unwrap_err()
    };
    let inner = multiply(2, (2, 3), (2, 2), &mut c);
    assert_eq!(inner, Error::Shape { what: "columns of A and rows of B", left: (2, 3), right: (2, 3) });
    let outer = multiply(2, (3, 2), (1, 4), &mut c);
    assert_eq!(outer, Error::Shape { what: "the shapes of A·B and of C", left: (2, 2), right: (1, 4) });
    assert_eq!(c, [7; 4]);
}
