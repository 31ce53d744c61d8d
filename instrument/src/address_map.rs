//! A hash map whose keys are addresses.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A hasher for addresses: one multiplication and a rotation. Addresses are not chosen by an
/// adversary, so it need not resist collisions.
#[derive(Default, Clone)]
pub(crate) struct AddressHasher(u64);

impl AddressHasher {
    /// The hash of an address.
    pub(crate) fn of(address: u64) -> u64 {
        let mut hasher = AddressHasher::default();
        hasher.write_u64(address);
        hasher.finish()
    }
}

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }
    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }
    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(26);
    }
}

/// A map keyed by addresses.
pub(crate) type AddressMap<V> = HashMap<u64, V, BuildHasherDefault<AddressHasher>>;

/// A map keyed by an address or an offset and what it belongs to.
pub(crate) type PlaceMap<V> = HashMap<(u32, u64), V, BuildHasherDefault<AddressHasher>>;
