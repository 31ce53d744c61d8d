//! Branches on numbers that are sorted, at random, mostly one way, and periodic; and the same
//! choice without a branch.

use super::{Pass, Variant};
use search::sample::Random;
use std::hint::black_box;

/// Numbers of a pass.
const COUNT: usize = 1 << 18;

pub(super) fn variants() -> Vec<Variant> {
    vec![
        chosen("random, half", |random, _| random.below(256), with_branch),
        chosen("random, an eighth", |random, _| 16 + random.below(128), with_branch),
        chosen("random, one in a hundred", |random, _| 28 + random.below(101), with_branch),
        chosen("sorted", |_, place| (place * 256 / COUNT) as u64, with_branch),
        chosen("alternating", |_, place| (place as u64 % 2) * 255, with_branch),
        chosen("random, without a branch", |random, _| random.below(256), without_branch),
        chosen("random, two branches", |random, _| random.below(256), with_two_branches),
    ]
}

fn chosen(name: &str, number: fn(&mut Random, usize) -> u64, run: fn(&[u64], u64) -> u64) -> Variant {
    Variant::new("branch", name, COUNT, move || -> Pass {
        let mut random = Random::new(11);
        let numbers: Vec<u64> = (0..COUNT).map(|place| number(&mut random, place)).collect();
        Box::new(move || run(black_box(&numbers), black_box(128)))
    })
}

#[inline(never)]
fn with_branch(numbers: &[u64], limit: u64) -> u64 {
    let mut sum = 0u64;
    for &number in numbers {
        if number >= limit {
            sum = black_box(sum.wrapping_add(number));
        }
    }
    sum
}

#[inline(never)]
fn without_branch(numbers: &[u64], limit: u64) -> u64 {
    numbers
        .iter()
        .fold(0u64, |sum, &number| sum.wrapping_add(number & u64::from(number >= limit).wrapping_neg()))
}

#[inline(never)]
fn with_two_branches(numbers: &[u64], limit: u64) -> u64 {
    let mut sum = 0u64;
    for &number in numbers {
        if number >= limit {
            sum = black_box(sum.wrapping_add(number));
        }
        if number & 1 == 1 {
            sum = black_box(sum ^ number);
        }
    }
    sum
}
