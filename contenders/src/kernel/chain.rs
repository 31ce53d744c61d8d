//! Arithmetic that waits for its own results, and arithmetic that does not.

use super::{Pass, Variant};
use std::hint::black_box;

/// Operations of a pass.
const COUNT: usize = 1 << 18;

/// Numbers in the array that is read again and again.
const NUMBERS: usize = 1 << 10;

pub(super) fn variants() -> Vec<Variant> {
    vec![
        summed("sum of floats, one chain", one_chain),
        summed("sum of floats, four chains", four_chains),
        summed("products of floats", products),
        summed("quotients of floats", quotients),
        summed("quotients in a chain", quotient_chain),
        summed("square roots", roots),
        summed("polynomial after Horner", horner),
        summed("polynomial in halves", halves),
        whole("products of integers in a chain", |number, sum| (sum ^ number).wrapping_mul(0x9E37_79B9)),
        whole("remainders", |number, sum| sum + (number + 1000) % (number | 3)),
        whole("shifts and xors", |number, sum| {
            let sum = sum ^ number;
            let sum = sum ^ (sum << 13);
            sum ^ (sum >> 7)
        }),
        whole("bits", |number, sum| sum + u64::from(number.count_ones())),
    ]
}

fn summed(name: &str, run: fn(&[f64]) -> f64) -> Variant {
    Variant::new("arithmetic", name, COUNT, move || -> Pass {
        let numbers: Vec<f64> = (0..NUMBERS).map(|at| 1.0 + at as f64 / 4096.0).collect();
        Box::new(move || (0..COUNT / NUMBERS).map(|_| run(black_box(&numbers))).sum::<f64>().to_bits())
    })
}

fn whole(name: &str, step: impl Fn(u64, u64) -> u64 + Copy + 'static) -> Variant {
    Variant::new("arithmetic", name, COUNT, move || -> Pass {
        let numbers: Vec<u64> = (0..NUMBERS as u64).map(|at| at * 77 + 5).collect();
        Box::new(move || {
            let mut sum = 1u64;
            for _ in 0..COUNT / NUMBERS {
                sum = black_box(&numbers).iter().fold(sum, |sum, &number| step(number, sum));
            }
            sum
        })
    })
}

#[inline(never)]
fn one_chain(numbers: &[f64]) -> f64 {
    numbers.iter().sum()
}

#[inline(never)]
fn four_chains(numbers: &[f64]) -> f64 {
    let mut sums = [0.0; 4];
    for four in numbers.chunks_exact(4) {
        sums.iter_mut().zip(four).for_each(|(sum, number)| *sum += number);
    }
    sums.iter().sum()
}

#[inline(never)]
fn products(numbers: &[f64]) -> f64 {
    numbers.iter().fold(1.0, |product, number| product * number * 0.9)
}

#[inline(never)]
fn quotients(numbers: &[f64]) -> f64 {
    let mut least = f64::MAX;
    for number in numbers {
        least = f64::min(least, 3.0 / number);
    }
    least
}

#[inline(never)]
fn quotient_chain(numbers: &[f64]) -> f64 {
    numbers.iter().fold(1.0, |quotient, number| number / (quotient + 1.0))
}

#[inline(never)]
fn roots(numbers: &[f64]) -> f64 {
    numbers.iter().fold(0.0, |most, number| f64::max(most, number.sqrt()))
}

#[inline(never)]
fn horner(numbers: &[f64]) -> f64 {
    let value = |x: f64| ((((((0.1 * x + 0.2) * x + 0.3) * x + 0.4) * x + 0.5) * x + 0.6) * x) + 0.7;
    // Each value begins where the last one ended, so that they form one chain.
    numbers.iter().fold(0.0, |last, number| value(number + last * 1e-9))
}

#[inline(never)]
fn halves(numbers: &[f64]) -> f64 {
    let value = |x: f64| {
        let square = x * x;
        let even = (0.1 * square + 0.3) * square + 0.5;
        let odd = (0.2 * square + 0.4) * square + 0.6;
        even * x + odd
    };
    numbers.iter().fold(0.0, |last, number| f64::max(last, value(*number)))
}
