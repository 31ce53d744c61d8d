//! Random bytes that are equal in every run.
//!
//! Each thread has a generator of its own, which its maker's generator begins, so the bytes do not
//! depend on the order in which threads run. Source: Steele, Lea and Flood 2014 (SplitMix).

/// The beginning of every run.
const SEED: u64 = 0x6c69_6768_7466_6f74;

/// The generator of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Random {
    state: u64,
}

impl Default for Random {
    fn default() -> Random {
        Random { state: SEED }
    }
}

impl Random {
    /// The generator with this number.
    pub(crate) fn numbered(number: u64) -> Random {
        Random { state: SEED ^ number }
    }

    /// The next 64 bits.
    pub(crate) fn word(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ self.state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// Fills `bytes`.
    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        for part in bytes.chunks_mut(8) {
            let word = self.word().to_le_bytes();
            part.copy_from_slice(&word[..part.len()]);
        }
    }

    /// The generator of a task that this one makes.
    pub(crate) fn child(&mut self) -> Random {
        Random { state: self.word() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_agree_and_threads_differ() {
        let mut bytes = [[0u8; 11]; 3];
        let (mut first, mut second) = (Random::default(), Random::default());
        first.fill(&mut bytes[0]);
        second.fill(&mut bytes[1]);
        first.child().fill(&mut bytes[2]);
        assert_eq!(bytes[0], bytes[1]);
        assert_ne!(bytes[0], bytes[2]);
        assert_ne!(first.word(), second.word(), "a child takes a word");
    }
}
