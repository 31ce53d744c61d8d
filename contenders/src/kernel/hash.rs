//! Hash tables of many sizes: probing linearly, and with chains.

use super::{Pass, Variant};
use search::sample::Random;
use std::hint::black_box;

/// Look-ups of a pass.
const LOOKUPS: usize = 1 << 17;

/// What the probing tables multiply keys with.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

pub(super) fn variants() -> Vec<Variant> {
    let probed = [10, 13, 16, 19, 21].map(probing);
    let chained = [10, 15, 19].map(chaining);
    let standard = [10, 16, 19].map(standard);
    probed.into_iter().chain(chained).chain(standard).collect()
}

/// Keys that the tables hold, and those that are looked up, all of them present.
fn keys(count: usize) -> (Vec<u64>, Vec<u64>) {
    let mut random = Random::new(5);
    let held: Vec<u64> = (0..count).map(|_| random.bits() | 1).collect();
    let sought = (0..LOOKUPS).map(|_| held[random.below(count as u64) as usize]).collect();
    (held, sought)
}

fn probing(bits: u32) -> Variant {
    Variant::new("hash", &format!("probing 2^{bits}"), LOOKUPS, move || -> Pass {
        let (held, sought) = keys(1 << (bits - 1));
        let mut table = vec![(0u64, 0u64); 1 << bits];
        let mask = table.len() - 1;
        for (value, key) in held.into_iter().enumerate() {
            let mut place = (key.wrapping_mul(FACTOR) >> (64 - bits)) as usize;
            while table[place].0 != 0 {
                place = (place + 1) & mask;
            }
            table[place] = (key, value as u64);
        }
        Box::new(move || probe(black_box(&table), bits, black_box(&sought)))
    })
}

#[inline(never)]
fn probe(table: &[(u64, u64)], bits: u32, sought: &[u64]) -> u64 {
    let mask = table.len() - 1;
    let mut sum = 0u64;
    for key in sought {
        let mut place = (key.wrapping_mul(FACTOR) >> (64 - bits)) as usize;
        loop {
            let (held, value) = table[place & mask];
            if held == *key {
                sum = sum.wrapping_add(value);
                break;
            }
            if held == 0 {
                break;
            }
            place += 1;
        }
    }
    sum
}

/// An entry of a chain; `next` is 0 at its end.
#[derive(Clone, Copy, Default)]
struct Entry {
    key: u64,
    value: u64,
    next: u32,
}

fn chaining(bits: u32) -> Variant {
    Variant::new("hash", &format!("chains 2^{bits}"), LOOKUPS, move || -> Pass {
        let (held, sought) = keys(1 << bits);
        let mut heads = vec![0u32; 1 << bits];
        let mut entries = vec![Entry::default()];
        for (value, key) in held.into_iter().enumerate() {
            let head = &mut heads[(key.wrapping_mul(FACTOR) >> (64 - bits)) as usize];
            entries.push(Entry { key, value: value as u64, next: *head });
            *head = entries.len() as u32 - 1;
        }
        Box::new(move || follow(black_box(&heads), black_box(&entries), bits, black_box(&sought)))
    })
}

#[inline(never)]
fn follow(heads: &[u32], entries: &[Entry], bits: u32, sought: &[u64]) -> u64 {
    let mut sum = 0u64;
    for key in sought {
        let mut place = heads[(key.wrapping_mul(FACTOR) >> (64 - bits)) as usize];
        while place != 0 {
            let entry = &entries[place as usize];
            if entry.key == *key {
                sum = sum.wrapping_add(entry.value);
                break;
            }
            place = entry.next;
        }
    }
    sum
}

fn standard(bits: u32) -> Variant {
    let lookups = LOOKUPS / 2;
    Variant::new("hash", &format!("standard library 2^{bits}"), lookups, move || -> Pass {
        let (held, sought) = keys(1 << bits);
        // A fixed state of the hash function gives every process the same table.
        type Fixed = std::hash::BuildHasherDefault<std::hash::DefaultHasher>;
        let table: std::collections::HashMap<u64, u64, Fixed> = held.into_iter().zip(0..).collect();
        let sum = move |sought: &[u64]| {
            let found = sought.iter().filter_map(|key| table.get(key));
            found.fold(0u64, |sum, value| sum.wrapping_add(*value))
        };
        Box::new(move || sum(black_box(&sought[..lookups])))
    })
}
