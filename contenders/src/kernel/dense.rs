//! Dense matrices: the six loop orders of a product, its blockings, and transposes.

use super::{Pass, Variant};
use std::hint::black_box;

/// Rows of the matrices of a product.
const SIDE: usize = 200;

/// Rows of a matrix that is transposed: one whose columns fall on few sets, and a prime.
const TRANSPOSED: [usize; 2] = [1024, 1031];

fn matrix(side: usize) -> Vec<f64> {
    (0..side * side).map(|place| (place % 17) as f64 * 0.25).collect()
}

type Product = fn(&[f64], &[f64], &mut [f64], usize);

fn product(name: &'static str, run: Product) -> Variant {
    Variant::new("product-order", name, SIDE * SIDE * SIDE, move || {
        let (a, b, mut c) = (matrix(SIDE), matrix(SIDE), vec![0.0; SIDE * SIDE]);
        Box::new(move || {
            c.fill(0.0);
            run(black_box(&a), black_box(&b), &mut c, black_box(SIDE));
            c[SIDE + 1].to_bits()
        })
    })
}

/// Every order of the three loops of a product.
pub(super) fn orders() -> Vec<Variant> {
    vec![
        product("ijk", ijk),
        product("ikj", ikj),
        product("jik", jik),
        product("jki", jki),
        product("kij", kij),
        product("kji", kji),
    ]
}

#[inline(never)]
fn ijk(a: &[f64], b: &[f64], c: &mut [f64], n: usize) {
    for i in 0..n {
        for j in 0..n {
            for k in 0..n {
                c[i * n + j] += a[i * n + k] * b[k * n + j];
            }
        }
    }
}

#[inline(never)]
fn ikj(a: &[f64], b: &[f64], c: &mut [f64], n: usize) {
    for i in 0..n {
        for k in 0..n {
            for j in 0..n {
                c[i * n + j] += a[i * n + k] * b[k * n + j];
            }
        }
    }
}

#[inline(never)]
fn jik(a: &[f64], b: &[f64], c: &mut [f64], n: usize) {
    for j in 0..n {
        for i in 0..n {
            let mut sum = 0.0;
            for k in 0..n {
                sum += a[i * n + k] * b[k * n + j];
            }
            c[i * n + j] = sum;
        }
    }
}

#[inline(never)]
fn jki(a: &[f64], b: &[f64], c: &mut [f64], n: usize) {
    for j in 0..n {
        for k in 0..n {
            let factor = b[k * n + j];
            for i in 0..n {
                c[i * n + j] += a[i * n + k] * factor;
            }
        }
    }
}

#[inline(never)]
fn kij(a: &[f64], b: &[f64], c: &mut [f64], n: usize) {
    for k in 0..n {
        for i in 0..n {
            let factor = a[i * n + k];
            for (c, b) in c[i * n..(i + 1) * n].iter_mut().zip(&b[k * n..(k + 1) * n]) {
                *c += factor * b;
            }
        }
    }
}

#[inline(never)]
fn kji(a: &[f64], b: &[f64], c: &mut [f64], n: usize) {
    for k in 0..n {
        for j in 0..n {
            for i in 0..n {
                c[i * n + j] += a[i * n + k] * b[k * n + j];
            }
        }
    }
}

/// Products in blocks of several sizes.
pub(super) fn blockings() -> Vec<Variant> {
    let side = 384;
    let blocked = |block: usize| {
        let name = format!("block {block}");
        Variant::new("product-block", &name, side * side * side / 4, move || {
            let (a, b, mut c) = (matrix(side), matrix(side), vec![0.0; side * side]);
            Box::new(move || {
                c.fill(0.0);
                in_blocks(black_box(&a), black_box(&b), &mut c, black_box(side), black_box(block));
                c[side + 1].to_bits()
            })
        })
    };
    [4, 8, 16, 32, 96, 384].map(blocked).into_iter().collect()
}

/// A quarter of the rows of a product, in blocks.
#[inline(never)]
fn in_blocks(a: &[f64], b: &[f64], c: &mut [f64], n: usize, block: usize) {
    for j0 in (0..n).step_by(block) {
        for k0 in (0..n).step_by(block) {
            for i in 0..n / 4 {
                for j in j0..(j0 + block).min(n) {
                    let mut sum = 0.0;
                    for k in k0..(k0 + block).min(n) {
                        sum += a[i * n + k] * b[k * n + j];
                    }
                    c[i * n + j] += sum;
                }
            }
        }
    }
}

/// Transposes by rows, by columns and by blocks.
pub(super) fn transposes() -> Vec<Variant> {
    let plain = TRANSPOSED.into_iter().flat_map(|side| {
        [
            transpose(&format!("{side} reads by row"), side, by_row),
            transpose(&format!("{side} writes by row"), side, by_column),
        ]
    });
    let blocked = [4, 16, 64].map(|block| {
        let side = TRANSPOSED[0];
        transpose(&format!("{side} block {block}"), side, move |a, b, n| by_block(a, b, n, block))
    });
    plain.chain(blocked).collect()
}

fn transpose(name: &str, side: usize, run: impl Fn(&[f64], &mut [f64], usize) + Copy + 'static) -> Variant {
    Variant::new("transpose", name, side * side, move || -> Pass {
        let (a, mut b) = (matrix(side), vec![0.0; side * side]);
        Box::new(move || {
            run(black_box(&a), &mut b, black_box(side));
            b[side + 1].to_bits()
        })
    })
}

#[inline(never)]
fn by_row(a: &[f64], b: &mut [f64], n: usize) {
    for i in 0..n {
        for j in 0..n {
            b[j * n + i] = a[i * n + j];
        }
    }
}

#[inline(never)]
fn by_column(a: &[f64], b: &mut [f64], n: usize) {
    for i in 0..n {
        for j in 0..n {
            b[i * n + j] = a[j * n + i];
        }
    }
}

#[inline(never)]
fn by_block(a: &[f64], b: &mut [f64], n: usize, block: usize) {
    for i0 in (0..n).step_by(block) {
        for j0 in (0..n).step_by(block) {
            for i in i0..(i0 + block).min(n) {
                for j in j0..(j0 + block).min(n) {
                    b[j * n + i] = a[i * n + j];
                }
            }
        }
    }
}
