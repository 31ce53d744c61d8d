//! Gathers and scatters: places that another array names, in tables of many sizes.

use super::{Pass, Variant};
use search::sample::Random;
use std::hint::black_box;

/// Elements of a pass.
const COUNT: usize = 1 << 18;

pub(super) fn variants() -> Vec<Variant> {
    let gathers = [11, 14, 17, 20, 22].map(|bits| gather(bits, Places::Random));
    let others = [gather(20, Places::Ascending), twice(18), scatter(14), scatter(20), histogram(8)];
    gathers.into_iter().chain(others).collect()
}

#[derive(Clone, Copy)]
enum Places {
    Random,
    Ascending,
}

fn places(bits: u32, order: Places) -> Vec<u32> {
    let mut random = Random::new(13);
    let place = |at: usize| match order {
        Places::Random => random.below(1 << bits) as u32,
        Places::Ascending => (at % (1 << bits)) as u32,
    };
    (0..COUNT).map(place).collect()
}

fn gather(bits: u32, order: Places) -> Variant {
    let name = match order {
        Places::Random => "random",
        Places::Ascending => "ascending",
    };
    Variant::new("gather", &format!("{name} of 2^{bits}"), COUNT, move || -> Pass {
        let (table, places) = (vec![1u64; 1 << bits], places(bits, order));
        Box::new(move || pick(black_box(&table), black_box(&places)))
    })
}

#[inline(never)]
fn pick(table: &[u64], places: &[u32]) -> u64 {
    places.iter().fold(0u64, |sum, &place| sum.wrapping_add(table[place as usize]))
}

/// A gather through two tables.
fn twice(bits: u32) -> Variant {
    Variant::new("gather", &format!("through two tables of 2^{bits}"), COUNT, move || -> Pass {
        let (table, places) = (vec![1u64; 1 << bits], places(bits, Places::Random));
        let mut random = Random::new(17);
        let middle: Vec<u32> = (0..1 << bits).map(|_| random.below(1 << bits) as u32).collect();
        Box::new(move || pick_twice(black_box(&table), black_box(&middle), black_box(&places)))
    })
}

#[inline(never)]
fn pick_twice(table: &[u64], middle: &[u32], places: &[u32]) -> u64 {
    places.iter().fold(0u64, |sum, &place| sum.wrapping_add(table[middle[place as usize] as usize]))
}

fn scatter(bits: u32) -> Variant {
    Variant::new("gather", &format!("scatter to 2^{bits}"), COUNT, move || -> Pass {
        let (mut table, places) = (vec![0u64; 1 << bits], places(bits, Places::Random));
        Box::new(move || {
            put(black_box(&mut table), black_box(&places));
            table[places[0] as usize] & 1
        })
    })
}

#[inline(never)]
fn put(table: &mut [u64], places: &[u32]) {
    for &place in places {
        table[place as usize] = u64::from(place);
    }
}

fn histogram(bits: u32) -> Variant {
    Variant::new("gather", &format!("histogram of 2^{bits}"), COUNT, move || -> Pass {
        let places = places(bits, Places::Random);
        let mut table = vec![0u64; 1 << bits];
        Box::new(move || {
            table.fill(0);
            count(black_box(&mut table), black_box(&places));
            table[3]
        })
    })
}

#[inline(never)]
fn count(table: &mut [u64], places: &[u32]) {
    for &place in places {
        table[place as usize] += 1;
    }
}
