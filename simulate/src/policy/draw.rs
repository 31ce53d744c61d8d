//! The numbers by which victims are drawn. Source: Vigna 2016, xorshift64*.

/// The numbers by which victims are drawn: xorshift64*, always from the same start.
#[derive(Clone, Copy, Debug)]
pub struct Draw(u64);

impl Draw {
    /// The generator at its start.
    #[allow(clippy::new_without_default, reason = "a default hides that the start is fixed")]
    pub const fn new() -> Draw {
        Draw(0x9e37_79b9_7f4a_7c15)
    }

    /// The next number, below `limit`.
    pub fn below(&mut self, limit: u32) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        ((number * u64::from(limit)) >> 32) as u32
    }
}

/// Whether the rare one of two outcomes comes at the entry with this number, once in `period`
/// entries on average. Depends on nothing else, so that order and history do not matter. Source:
/// Steele et al. 2014, the last steps of SplitMix64.
pub(super) fn is_rare(number: u64, period: u8) -> bool {
    let mut word = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (word >> 32).is_multiple_of(u64::from(period))
}
