//! Streams over arrays: sums with strides from one line to several pages, copies and triads.

use super::{Pass, Variant};
use std::hint::black_box;

/// Elements of the array that is read with a stride.
const COUNT: usize = 1 << 22;

/// Elements that a pass reads.
const READ: usize = 1 << 18;

pub(super) fn variants() -> Vec<Variant> {
    let strided = [1, 2, 4, 8, 16, 64, 512, 1032].map(strided);
    let copies = [1 << 10, 1 << 15, 1 << 20].map(copied);
    let triads = [1 << 10, 1 << 15, 1 << 20].map(triad);
    strided.into_iter().chain(copies).chain(triads).chain([backwards()]).collect()
}

fn array() -> Vec<u64> {
    (0..COUNT as u64).collect()
}

/// Reads every `stride`-th element, and begins again a little further on at the end.
fn strided(stride: usize) -> Variant {
    Variant::new("stream", &format!("stride {} bytes", 8 * stride), READ, move || -> Pass {
        let values = array();
        Box::new(move || {
            let per_walk = (COUNT / stride).min(READ);
            let walks = READ / per_walk;
            (0..walks).fold(0, |sum: u64, walk| {
                let part = &values[walk * 8 % stride..];
                sum.wrapping_add(sum_by(black_box(part), black_box(stride), per_walk - 1))
            })
        })
    })
}

#[inline(never)]
fn sum_by(values: &[u64], stride: usize, count: usize) -> u64 {
    let (mut sum, mut place) = (0u64, 0);
    for _ in 0..count {
        sum = sum.wrapping_add(values[place]);
        place += stride;
    }
    sum
}

fn backwards() -> Variant {
    Variant::new("stream", "backwards", READ, move || -> Pass {
        let values = array();
        Box::new(move || sum_backwards(black_box(&values[..READ])))
    })
}

#[inline(never)]
fn sum_backwards(values: &[u64]) -> u64 {
    let (mut sum, mut place) = (0u64, values.len());
    while place > 0 {
        place -= 1;
        sum = sum.rotate_left(1) ^ values[place];
    }
    sum
}

fn copied(count: usize) -> Variant {
    let repeats = (1 << 20) / count;
    Variant::new("stream", &format!("copy of {} KiB", count / 128), count * repeats, move || -> Pass {
        let (from, mut to) = (vec![1u64; count], vec![0u64; count]);
        Box::new(move || {
            (0..repeats).for_each(|_| black_box(&mut to).copy_from_slice(black_box(&from)));
            to[count / 2]
        })
    })
}

fn triad(count: usize) -> Variant {
    let repeats = (1 << 20) / count;
    Variant::new("stream", &format!("triad of {} KiB", count / 128), count * repeats, move || -> Pass {
        let (a, b, mut c) = (vec![1.0; count], vec![2.0; count], vec![0.0; count]);
        Box::new(move || {
            (0..repeats).for_each(|_| add_scaled(black_box(&a), black_box(&b), black_box(&mut c)));
            c[count / 2].to_bits()
        })
    })
}

#[inline(never)]
fn add_scaled(a: &[f64], b: &[f64], c: &mut [f64]) {
    for ((c, a), b) in c.iter_mut().zip(a).zip(b) {
        *c = *a + 3.0 * *b;
    }
}
