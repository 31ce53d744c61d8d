//! The steps between a program's output and bits of rows: where separators stand, and the output's
//! bits at these places side by side.
//!
//! A kernel of [`KERNELS`] does them; the last one is plain Rust and the slow twin of the others.
//! Cost: 64 bytes of text take some four instructions for the first step and five for the second.

/// Bits in the order of rows, as they are found.
#[derive(Debug, Default)]
pub(crate) struct BitWriter {
    words: Vec<u64>,
    /// Bits that do not fill a word yet, lowest first, and their number.
    last: u64,
    count: u32,
}

impl BitWriter {
    pub(crate) fn with_room_for(bits: usize) -> BitWriter {
        BitWriter { words: Vec::with_capacity(bits / 64 + 2), ..BitWriter::default() }
    }

    /// Appends the lowest `count` of some bits, 64 at most; the others are 0.
    #[inline(always)]
    pub(crate) fn push(&mut self, bits: u64, count: u32) {
        self.last |= bits << self.count;
        let filled = self.count + count;
        if filled >= 64 {
            self.words.push(self.last);
            // A shift by 64 would be by 0: nothing is left where the word was empty before.
            self.last = if self.count == 0 { 0 } else { bits >> (64 - self.count) };
        }
        self.count = filled % 64;
    }

    /// Appends the first `count` bits of some words; bits behind them are 0.
    pub(crate) fn push_rows(&mut self, words: &[u64], count: usize) {
        for (number, &word) in words.iter().enumerate() {
            self.push(word, (count - 64 * number).min(64) as u32);
        }
    }

    /// The words, the last one filled up with zeros.
    pub(crate) fn finish(mut self) -> Vec<u64> {
        if self.count > 0 {
            self.words.push(self.last);
        }
        self.words
    }
}

/// Deposits the bits of some words at the places of others, given the number of places before each
/// word and before all, in a bitmap.
type Deposit = fn(&[u64], &[u64], &[u32], usize, &mut [u64]);

/// A way to do these steps.
#[derive(Debug)]
pub(crate) struct BitKernel {
    #[cfg_attr(not(test), allow(dead_code, reason = "tests name the kernel that differs"))]
    pub(crate) name: &'static str,
    is_available: fn() -> bool,
    /// Bit `i % 64` of mask `i / 64` says whether byte `i` is the given one. Shapes: 64 bytes a
    /// mask.
    pub(crate) equal: fn(&[u8], u8, &mut [u64]),
    /// Bit `i % 64` of mask `i / 64` says whether byte `i` is not 0, and all bytes become 0; how
    /// many bits are set. Shapes: 64 bytes a mask.
    pub(crate) take: fn(&mut [u8], &mut [u64]) -> u32,
    /// Appends the bits of the first words at the places that the second have.
    pub(crate) append: fn(&[u64], &[u64], &mut BitWriter),
    /// Sets the bits of the first words at the places that the second have in a bitmap: the bit at
    /// a place of word `i` belongs to the number of places before it, of which the third say how
    /// many lie before word `i`; bit 0 of the bitmap is that many lines back.
    pub(crate) deposit: Deposit,
    /// Fills the second with how many bits are set before each word, and answers how many in all.
    pub(crate) count: fn(&[u64], &mut [u32]) -> u32,
}

/// All kernels, the fastest first.
pub(super) const KERNELS: &[BitKernel] = &[
    #[cfg(target_arch = "x86_64")]
    BitKernel {
        name: "avx512",
        is_available: x86::has_avx512,
        equal: x86::equal_64,
        take: x86::take_64,
        append: x86::append,
        deposit: x86::deposit,
        count: x86::count,
    },
    #[cfg(target_arch = "x86_64")]
    BitKernel {
        name: "avx2",
        is_available: x86::has_avx2,
        equal: x86::equal_32,
        take: x86::take_32,
        append: x86::append,
        deposit: x86::deposit,
        count: x86::count,
    },
    BitKernel { name: "plain", is_available: || true, equal, take, append, deposit, count },
];

impl BitKernel {
    /// The fastest that this machine has.
    pub(crate) fn detect() -> &'static BitKernel {
        KERNELS.iter().find(|kernel| (kernel.is_available)()).unwrap_or(&KERNELS[KERNELS.len() - 1])
    }
}

fn equal(bytes: &[u8], byte: u8, masks: &mut [u64]) {
    assert_eq!(bytes.len(), 64 * masks.len());
    for (bytes, mask) in bytes.chunks_exact(64).zip(masks) {
        *mask = bytes.iter().enumerate().fold(0, |mask, (at, &found)| mask | u64::from(found == byte) << at);
    }
}

fn take(bytes: &mut [u8], masks: &mut [u64]) -> u32 {
    assert_eq!(bytes.len(), 64 * masks.len());
    let mut count = 0;
    for (bytes, mask) in bytes.chunks_exact_mut(64).zip(masks) {
        *mask = bytes.iter().enumerate().fold(0, |mask, (at, &found)| mask | u64::from(found != 0) << at);
        bytes.fill(0);
        count += mask.count_ones();
    }
    count
}

fn append(bits: &[u64], places: &[u64], out: &mut BitWriter) {
    for (&bits, &places) in bits.iter().zip(places) {
        let (mut left, mut found, mut count) = (places, 0, 0);
        while left != 0 {
            found |= (bits >> left.trailing_zeros() & 1) << count;
            count += 1;
            left &= left - 1;
        }
        out.push(found, count);
    }
}

fn deposit(bits: &[u64], places: &[u64], before: &[u32], base: usize, out: &mut [u64]) {
    for ((&bits, &places), &before) in bits.iter().zip(places).zip(before) {
        let mut left = bits & places;
        while left != 0 {
            let below = places & ((left & left.wrapping_neg()) - 1);
            let at = base + before as usize + below.count_ones() as usize;
            out[at / 64] |= 1 << (at % 64);
            left &= left - 1;
        }
    }
}

#[inline(always)]
fn count(words: &[u64], before: &mut [u32]) -> u32 {
    words.iter().zip(before).fold(0, |sum, (word, before)| {
        *before = sum;
        sum + word.count_ones()
    })
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::BitWriter;
    use std::arch::x86_64::*;

    pub(super) fn has_avx512() -> bool {
        has_avx2() && is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw")
    }

    pub(super) fn has_avx2() -> bool {
        is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("popcnt")
    }

    pub(super) fn equal_64(bytes: &[u8], byte: u8, masks: &mut [u64]) {
        // SAFETY: the table of kernels hands this out where `has_avx512` holds.
        unsafe { equal_by_masks(bytes, byte, masks) }
    }

    pub(super) fn equal_32(bytes: &[u8], byte: u8, masks: &mut [u64]) {
        // SAFETY: the table of kernels hands this out where `has_avx2` holds.
        unsafe { equal_by_signs(bytes, byte, masks) }
    }

    pub(super) fn take_64(bytes: &mut [u8], masks: &mut [u64]) -> u32 {
        // SAFETY: the table of kernels hands this out where `has_avx512` holds.
        unsafe { take_by_masks(bytes, masks) }
    }

    pub(super) fn take_32(bytes: &mut [u8], masks: &mut [u64]) -> u32 {
        // SAFETY: the table of kernels hands this out where `has_avx2` holds.
        unsafe { take_by_signs(bytes, masks) }
    }

    pub(super) fn append(bits: &[u64], places: &[u64], out: &mut BitWriter) {
        // SAFETY: the table of kernels hands this out where `has_avx2` holds.
        unsafe { append_extracted(bits, places, out) }
    }

    pub(super) fn deposit(bits: &[u64], places: &[u64], before: &[u32], base: usize, out: &mut [u64]) {
        // SAFETY: the table of kernels hands this out where `has_avx2` holds.
        unsafe { deposit_extracted(bits, places, before, base, out) }
    }

    pub(super) fn count(words: &[u64], before: &mut [u32]) -> u32 {
        // SAFETY: the table of kernels hands this out where `has_avx2` holds.
        unsafe { count_by_instruction(words, before) }
    }

    #[target_feature(enable = "avx512f,avx512bw")]
    fn equal_by_masks(bytes: &[u8], byte: u8, masks: &mut [u64]) {
        assert_eq!(bytes.len(), 64 * masks.len());
        let wanted = _mm512_set1_epi8(byte.cast_signed());
        for (bytes, mask) in bytes.as_chunks::<64>().0.iter().zip(masks) {
            // SAFETY: `bytes` is 64 readable bytes and the load needs no alignment.
            let vector = unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) };
            *mask = _mm512_cmpeq_epi8_mask(vector, wanted);
        }
    }

    #[target_feature(enable = "avx2")]
    fn equal_by_signs(bytes: &[u8], byte: u8, masks: &mut [u64]) {
        assert_eq!(bytes.len(), 64 * masks.len());
        let wanted = _mm256_set1_epi8(byte.cast_signed());
        for (bytes, mask) in bytes.as_chunks::<64>().0.iter().zip(masks) {
            let half = |half: &[u8; 32]| {
                // SAFETY: `half` is 32 readable bytes and the load needs no alignment.
                let vector = unsafe { _mm256_loadu_si256(half.as_ptr().cast()) };
                u64::from(_mm256_movemask_epi8(_mm256_cmpeq_epi8(vector, wanted)).cast_unsigned())
            };
            let halves = bytes.as_chunks::<32>().0;
            *mask = half(&halves[0]) | half(&halves[1]) << 32;
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,popcnt")]
    fn take_by_masks(bytes: &mut [u8], masks: &mut [u64]) -> u32 {
        assert_eq!(bytes.len(), 64 * masks.len());
        let mut count = 0;
        for (bytes, mask) in bytes.as_chunks_mut::<64>().0.iter_mut().zip(masks) {
            // SAFETY: `bytes` is 64 readable bytes and the load needs no alignment.
            let vector = unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) };
            *mask = _mm512_test_epi8_mask(vector, vector);
            *bytes = [0; 64];
            count += mask.count_ones();
        }
        count
    }

    #[target_feature(enable = "avx2,popcnt")]
    fn take_by_signs(bytes: &mut [u8], masks: &mut [u64]) -> u32 {
        equal_by_signs(bytes, 0, masks);
        bytes.fill(0);
        let mut count = 0;
        for mask in masks {
            *mask = !*mask;
            count += mask.count_ones();
        }
        count
    }

    #[target_feature(enable = "bmi2,popcnt")]
    fn append_extracted(bits: &[u64], places: &[u64], out: &mut BitWriter) {
        // Each push waits for the one before: four words are put together first, if they fit.
        let (quads, rest) = bits.as_chunks::<4>();
        let (quad_places, rest_places) = places.as_chunks::<4>();
        for (bits, places) in quads.iter().zip(quad_places) {
            // Without closures: theirs would be instructions that `array::from_fn` lacks, which
            // would call them.
            let mut found = [0; 4];
            let mut count = [0; 4];
            for at in 0..4 {
                found[at] = _pext_u64(bits[at], places[at]);
                count[at] = places[at].count_ones();
            }
            let (first, second) = (count[0] + count[1], count[2] + count[3]);
            if first + second < 64 {
                let low = found[0] | found[1] << count[0];
                let high = found[2] | found[3] << count[2];
                out.push(low | high << first, first + second);
            } else {
                found.iter().zip(count).for_each(|(&found, count)| out.push(found, count));
            }
        }
        for (&bits, &places) in rest.iter().zip(rest_places) {
            out.push(_pext_u64(bits, places), places.count_ones());
        }
    }

    #[target_feature(enable = "bmi2,popcnt")]
    fn deposit_extracted(bits: &[u64], places: &[u64], before: &[u32], base: usize, out: &mut [u64]) {
        for ((&bits, &places), &before) in bits.iter().zip(places).zip(before) {
            if bits == 0 {
                continue;
            }
            // The lines of a word lie side by side, in one word of the bitmap or in two.
            let (found, at) = (_pext_u64(bits, places), base + before as usize);
            out[at / 64] |= found << (at % 64);
            if at % 64 != 0 {
                out[at / 64 + 1] |= found >> (64 - at % 64);
            }
        }
    }

    #[target_feature(enable = "popcnt")]
    fn count_by_instruction(words: &[u64], before: &mut [u32]) -> u32 {
        super::count(words, before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_agree() {
        let mut random = 2026u64;
        let mut next = || {
            random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
            random ^ random >> 29
        };
        for words in [0, 1, 2, 7, 64, 65] {
            for density in 0..4 {
                let places: Vec<u64> = (0..words)
                    .map(|_| match density {
                        0 => 0,
                        1 => next() & next() & next() & next(),
                        2 => next(),
                        _ => u64::MAX,
                    })
                    .collect();
                let bits: Vec<u64> = (0..words).map(|_| next()).collect();
                let text: Vec<u8> =
                    (0..64 * words)
                        .map(|at| {
                            if places[at / 64] >> (at % 64) & 1 == 1 {
                                0x1e
                            } else {
                                b'a' + (at % 23) as u8
                            }
                        })
                        .collect();
                let expected: Vec<u64> = (0..64 * words)
                    .filter(|at| places[at / 64] >> (at % 64) & 1 == 1)
                    .map(|at| bits[at / 64] >> (at % 64) & 1)
                    .collect();
                for kernel in KERNELS.iter().filter(|kernel| (kernel.is_available)()) {
                    let mut masks = vec![!0; words];
                    (kernel.equal)(&text, 0x1e, &mut masks);
                    assert_eq!(masks, places, "{}", kernel.name);
                    let mut bytes: Vec<u8> =
                        text.iter().map(|&byte| if byte == 0x1e { byte } else { 0 }).collect();
                    let mut masks = vec![!0; words];
                    let sum = (kernel.take)(&mut bytes, &mut masks);
                    assert_eq!((&masks, sum as usize), (&places, expected.len()), "{}", kernel.name);
                    assert!(bytes.iter().all(|&byte| byte == 0), "{}", kernel.name);
                    let mut out = BitWriter::with_room_for(0);
                    // In two pieces, so that words are filled from the middle on.
                    let half = words / 2;
                    (kernel.append)(&bits[..half], &places[..half], &mut out);
                    (kernel.append)(&bits[half..], &places[half..], &mut out);
                    let found = out.finish();
                    assert_eq!(found.len(), expected.len().div_ceil(64), "{}", kernel.name);
                    let found: Vec<u64> =
                        (0..expected.len()).map(|at| found[at / 64] >> (at % 64) & 1).collect();
                    assert_eq!(found, expected, "{}", kernel.name);
                    let mut before = vec![0; words];
                    let sum = (kernel.count)(&places, &mut before);
                    assert_eq!(sum as usize, expected.len(), "{}", kernel.name);
                    for base in [0, 1, 63, 64, 100] {
                        let mut out = vec![0; (base + expected.len()) / 64 + 2];
                        (kernel.deposit)(&bits, &places, &before, base, &mut out);
                        let all = (0..64 * out.len()).map(|at| out[at / 64] >> (at % 64) & 1);
                        let padded = std::iter::repeat_n(0, base).chain(expected.iter().copied());
                        assert!(
                            all.eq(padded.chain(std::iter::repeat(0)).take(64 * out.len())),
                            "{}",
                            kernel.name
                        );
                    }
                }
            }
        }
    }
}
