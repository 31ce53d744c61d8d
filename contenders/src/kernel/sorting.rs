//! Sorting the same numbers in several ways.

use super::{Pass, Variant};
use search::sample::Random;
use std::collections::BinaryHeap;
use std::hint::black_box;

/// Numbers that are sorted.
const COUNT: usize = 1 << 14;

pub(super) fn variants() -> Vec<Variant> {
    vec![
        sorted("insertion, in runs of 64", |numbers| numbers.chunks_mut(64).for_each(insertion)),
        sorted("insertion, in runs of 1024", |numbers| numbers.chunks_mut(1024).for_each(insertion)),
        sorted("merge", merge),
        sorted("quick", quick),
        sorted("heap", heap),
        sorted("radix", radix),
        sorted("standard library, stable", <[u32]>::sort),
        sorted("standard library, unstable", <[u32]>::sort_unstable),
    ]
}

fn sorted(name: &str, run: fn(&mut [u32])) -> Variant {
    Variant::new("sort", name, COUNT, move || -> Pass {
        let mut random = Random::new(23);
        let given: Vec<u32> = (0..COUNT).map(|_| random.bits() as u32).collect();
        let mut numbers = given.clone();
        Box::new(move || {
            numbers.copy_from_slice(&given);
            run(black_box(&mut numbers));
            u64::from(numbers[COUNT / 2])
        })
    })
}

#[inline(never)]
fn insertion(numbers: &mut [u32]) {
    for next in 1..numbers.len() {
        let number = numbers[next];
        let mut place = next;
        while place > 0 && numbers[place - 1] > number {
            numbers[place] = numbers[place - 1];
            place -= 1;
        }
        numbers[place] = number;
    }
}

#[inline(never)]
fn merge(numbers: &mut [u32]) {
    let mut other = numbers.to_vec();
    let mut run = 1;
    while run < numbers.len() {
        for start in (0..numbers.len()).step_by(2 * run) {
            let middle = (start + run).min(numbers.len());
            let end = (start + 2 * run).min(numbers.len());
            let (mut left, mut right) = (start, middle);
            for place in &mut other[start..end] {
                let from_left = right == end || (left < middle && numbers[left] <= numbers[right]);
                let from = if from_left { &mut left } else { &mut right };
                *place = numbers[*from];
                *from += 1;
            }
        }
        numbers.copy_from_slice(&other);
        run *= 2;
    }
}

#[inline(never)]
fn quick(numbers: &mut [u32]) {
    if numbers.len() <= 16 {
        insertion(numbers);
        return;
    }
    let pivot = numbers[numbers.len() / 2];
    let (mut low, mut high) = (0, numbers.len() - 1);
    loop {
        while numbers[low] < pivot {
            low += 1;
        }
        while numbers[high] > pivot {
            high -= 1;
        }
        if low >= high {
            break;
        }
        numbers.swap(low, high);
        low += 1;
        high -= 1;
    }
    let (left, right) = numbers.split_at_mut(low);
    quick(left);
    quick(right);
}

#[inline(never)]
fn heap(numbers: &mut [u32]) {
    let mut heap: BinaryHeap<u32> = numbers.iter().copied().collect();
    for place in numbers.iter_mut().rev() {
        *place = heap.pop().unwrap_or_default();
    }
}

#[inline(never)]
fn radix(numbers: &mut [u32]) {
    let mut other = vec![0; numbers.len()];
    for shift in [0, 8, 16, 24] {
        let mut starts = [0usize; 257];
        numbers.iter().for_each(|number| starts[(number >> shift & 255) as usize + 1] += 1);
        for digit in 0..256 {
            starts[digit + 1] += starts[digit];
        }
        for &number in numbers.iter() {
            let place = &mut starts[(number >> shift & 255) as usize];
            other[*place] = number;
            *place += 1;
        }
        numbers.copy_from_slice(&other);
    }
}
