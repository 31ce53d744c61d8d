//! Hash tables whose keys are numbers that this program assigns.
//!
//! Every instruction of a profile is looked up a few times, and the standard library's hash
//! function, which resists keys chosen by an adversary, would take most of that time. Nobody
//! chooses these keys, so one multiplication for each number is enough. Source: Wang Yi 2019,
//! wyhash: both halves of a product, combined by exclusive or.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A hash table whose keys are numbers.
pub type ByNumber<K, V> = HashMap<K, V, BuildHasherDefault<Multiply>>;

/// The hasher.
#[derive(Clone, Copy, Debug)]
pub struct Multiply(u64);

impl Default for Multiply {
    fn default() -> Multiply {
        Multiply(0x243f_6a88_85a3_08d3)
    }
}

impl Hasher for Multiply {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u16(&mut self, number: u16) {
        self.write_u64(u64::from(number));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        let product = u128::from(self.0 ^ number) * 0x9e37_79b9_7f4a_7c15;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::{BuildHasher, Hash};

    #[test]
    fn near_numbers_are_spread_over_both_ends_of_the_hash() {
        let build = BuildHasherDefault::<Multiply>::default();
        let hashes: Vec<u64> = (0..4096_u64).map(|number| build.hash_one((3_usize, number * 4))).collect();
        for part in [|hash: &u64| hash & 0xfff, |hash: &u64| hash >> 52] {
            let different: std::collections::HashSet<u64> = hashes.iter().map(part).collect();
            assert!(different.len() > 2300, "random ones would be 2,590: {}", different.len());
        }
        assert_ne!(build.hash_one(Some(0_u32)), build.hash_one(None::<u32>));
    }

    #[test]
    fn bytes_count_too() {
        let mut hashers = [Multiply::default(); 2];
        "ab".hash(&mut hashers[0]);
        "ba".hash(&mut hashers[1]);
        assert_ne!(hashers[0].finish(), hashers[1].finish());
    }
}
