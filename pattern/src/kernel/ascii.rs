//! Whether bytes are ASCII: asked once for every window of a text whose expression has a twin.
//!
//! One loop, translated for each width of vectors, as the baseline's is a third of a scan.

use crate::vectors::{allows, Vectors};

/// Bytes that are united before any is looked at.
const GROUP_BYTES: usize = 1 << 10;

/// Fewer bytes are looked at by the baseline's instructions.
const SHORT_BYTES: usize = 256;

/// Whether every byte is ASCII. Cost: one pass, which ends about a kilobyte behind another byte.
pub(crate) fn is_ascii(bytes: &[u8]) -> bool {
    // A line is shorter than the way to the right instructions.
    match bytes.len() < SHORT_BYTES {
        true => bytes.is_ascii(),
        false => whole_groups(bytes) == bytes.len(),
    }
}

/// The number of bytes in front of the first one that is not ASCII.
pub(crate) fn ascii_prefix(bytes: &[u8]) -> usize {
    let group = whole_groups(bytes);
    let vectors = bytes[group..].as_chunks::<64>().0.iter().take_while(|vector| vector.is_ascii()).count();
    let start = group + 64 * vectors;
    start + bytes[start..].iter().position(|byte| !byte.is_ascii()).unwrap_or(bytes.len() - start)
}

/// The number of bytes in front of the first group with a byte that is not ASCII.
fn whole_groups(bytes: &[u8]) -> usize {
    #[cfg(target_arch = "x86_64")]
    {
        if allows(Vectors::Avx512) && is_x86_feature_detected!("avx512bw") {
            // SAFETY: the instructions were asked for just now.
            return unsafe { with_512_bits(bytes) };
        }
        if allows(Vectors::Avx2) && is_x86_feature_detected!("avx2") {
            // SAFETY: the instructions were asked for just now.
            return unsafe { with_256_bits(bytes) };
        }
    }
    plain(bytes)
}

#[inline(always)]
fn plain(bytes: &[u8]) -> usize {
    let mut start = 0;
    for group in bytes.chunks(GROUP_BYTES) {
        let (vectors, rest) = group.as_chunks::<64>();
        let mut union = [0u8; 64];
        for vector in vectors {
            union.iter_mut().zip(vector).for_each(|(union, byte)| *union |= byte);
        }
        if !(union.is_ascii() && rest.is_ascii()) {
            return start;
        }
        start += group.len();
    }
    start
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw")]
fn with_512_bits(bytes: &[u8]) -> usize {
    plain(bytes)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn with_256_bits(bytes: &[u8]) -> usize {
    plain(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_finds_the_one_other_byte() {
        for length in [0, 1, 63, 64, 65, 1023, 1024, 1025, 5000] {
            let mut bytes = vec![b'a'; length];
            assert!(is_ascii(&bytes) && plain(&bytes) == length);
            for at in (0..length).step_by(37).chain(length.checked_sub(1)) {
                bytes[at] = 0x80;
                assert!(!is_ascii(&bytes) && plain(&bytes) <= at, "{at} of {length}");
                assert_eq!(ascii_prefix(&bytes), at);
                bytes[at] = b'a';
            }
        }
    }
}
