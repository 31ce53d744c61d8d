//! A checksum of code and of files that hold code.

/// A hash of 64 bits. Four independent chains of multiplications keep the multiplier busy, so that
/// about ten gigabytes a second are hashed. It does not resist deliberate collisions: a user who
/// can write these files can run any program as the same user anyway.
pub(crate) fn hash(bytes: &[u8], seed: u64) -> u64 {
    const FACTORS: [u64; 4] =
        [0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f, 0xd6e8_feb8_6659_fd93, 0xa076_1d64_78bd_642f];
    let mix = |left: u64, right: u64| {
        let product = u128::from(left) * u128::from(right);
        product as u64 ^ (product >> 64) as u64
    };
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    let mut lanes = FACTORS.map(|factor| factor ^ seed.wrapping_mul(FACTORS[1]));
    let mut chunks = bytes.chunks_exact(32);
    for chunk in &mut chunks {
        for (index, lane) in lanes.iter_mut().enumerate() {
            *lane = mix(*lane ^ word(&chunk[8 * index..8 * index + 8]), FACTORS[index])
                .wrapping_add(lane.rotate_left(23));
        }
    }
    let mut last = [0u8; 32];
    last[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
    let mut all = bytes.len() as u64;
    for (index, lane) in lanes.iter().enumerate() {
        all = mix(all ^ lane ^ word(&last[8 * index..8 * index + 8]), FACTORS[index])
            .wrapping_add(lane.rotate_left(31));
    }
    all
}
