//! How many bits are set: once per chunk of every count.
//!
//! The baseline of x86-64 has no instruction for it, and a dozen operations a word are a tenth of a
//! scan, so the same loop is translated for processors that have one.

#[cfg(target_arch = "x86_64")]
use crate::vectors::{allows, Vectors};

/// The bits of `words` that are set.
pub(crate) fn count_ones(words: &[u64]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        if allows(Vectors::Avx512)
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512vpopcntdq")
        {
            // SAFETY: just checked.
            return unsafe { with_vectors(words) };
        }
        if is_x86_feature_detected!("popcnt") {
            // SAFETY: just checked.
            return unsafe { with_instruction(words) };
        }
    }
    plain(words)
}

#[inline(always)]
fn plain(words: &[u64]) -> u64 {
    words.iter().map(|word| u64::from(word.count_ones())).sum()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vpopcntdq,popcnt")]
fn with_vectors(words: &[u64]) -> u64 {
    plain(words)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt")]
fn with_instruction(words: &[u64]) -> u64 {
    plain(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_counts_the_same() {
        let words: Vec<u64> = (0..100u64).map(|at| at.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
        for length in [0, 1, 7, 8, 9, 63, 64, 100] {
            let words = &words[..length];
            let expected = words.iter().map(|word| format!("{word:b}").matches('1').count() as u64).sum();
            assert_eq!(plain(words), expected);
            assert_eq!(count_ones(words), expected);
        }
    }
}
