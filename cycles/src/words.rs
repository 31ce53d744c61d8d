//! A map whose keys are a few words, with a hash of a multiplication for each.
//!
//! **Why.** An estimate looks up millions of small keys while the user waits for a report, and the
//! standard library's hash, which withstands chosen keys, takes most of that time. Here keys are
//! registers and addresses of the measured program: one that makes them collide slows down its own
//! report. **Leaves out** keys with text. Source: the multiplier is that of Knuth's multiplicative
//! hashing for 64 bits.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map from words.
pub(crate) type WordMap<K, V> = HashMap<K, V, BuildHasherDefault<WordHasher>>;

/// Mixes words by a rotation and a multiplication.
#[derive(Clone, Copy, Default)]
pub(crate) struct WordHasher(u64);

impl WordHasher {
    fn mix(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Hasher for WordHasher {
    fn finish(&self) -> u64 {
        // The map takes its place from the low bits, which a product mixes least.
        self.0.rotate_left(29)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.mix(byte.into()));
    }

    fn write_u8(&mut self, word: u8) {
        self.mix(word.into());
    }

    fn write_u32(&mut self, word: u32) {
        self.mix(word.into());
    }

    fn write_u64(&mut self, word: u64) {
        self.mix(word);
    }

    fn write_usize(&mut self, word: usize) {
        self.mix(word as u64);
    }

    fn write_i64(&mut self, word: i64) {
        self.mix(word as u64);
    }

    fn write_isize(&mut self, word: isize) {
        self.mix(word as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::{BuildHasher, Hash};

    #[test]
    fn neighbouring_keys_have_hashes_of_their_own() {
        let hash = |key: &dyn Fn(&mut WordHasher)| {
            let mut hasher = BuildHasherDefault::<WordHasher>::default().build_hasher();
            key(&mut hasher);
            hasher.finish()
        };
        let mut low: Vec<u64> =
            (0..4096_u64).map(|key| hash(&|hasher| (key * 64, 7_u32).hash(hasher)) & 0xffff).collect();
        low.sort_unstable();
        low.dedup();
        // Of 4,096 draws among 65,536 numbers, about 120 repeat one.
        assert!(low.len() > 3800, "{}", low.len());
        assert_ne!(hash(&|hasher| "ab".hash(hasher)), hash(&|hasher| "ba".hash(hasher)));
    }
}
