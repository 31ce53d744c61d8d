//! Simulates the noise of an operating system: interrupts whose handlers displace lines of the
//! caches.
//!
//! After exponentially distributed numbers of instructions, a handler reads random lines of the
//! kernel's memory on the thread's core. Its own misses are not charged to the program, but the
//! program misses the lines that it displaced. A seed determines times and lines, so that runs
//! repeat. **Leaves out** the instruction side and the time that a handler takes. Source: Mytkowicz
//! et al. 2007, section 3.3, on non-determinism of the system.

use event::{Record, RecordKind};

/// The amount of noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noise {
    /// The seed of times and lines.
    pub seed: u64,
    /// Mean number of instructions between interrupts.
    pub period_instructions: u64,
    /// Number of lines that a handler reads.
    pub lines: u32,
}

impl Noise {
    /// An interrupt in about a million instructions, which reads 64 lines.
    pub fn seeded(seed: u64) -> Noise {
        Noise { seed, period_instructions: 1_000_000, lines: 64 }
    }
}

/// The address at which a kernel maps memory, and the number of lines that handlers use.
const KERNEL: u64 = 0xffff_8880_0000_0000;
const KERNEL_LINES: u64 = 4096;
const LINE_BYTES: u64 = 64;

/// A source of interrupts.
#[derive(Clone, Debug)]
pub(super) struct Source {
    noise: Noise,
    state: u64,
    /// The number of instructions at which the next interrupt occurs.
    pub(super) next: u64,
}

impl Source {
    pub(super) fn new(noise: Noise) -> Source {
        let mut source = Source { noise, state: noise.seed, next: 0 };
        source.next = source.stretch();
        source
    }

    /// The references of the handler; also schedules the next interrupt after `now`.
    pub(super) fn interrupt(&mut self, now: u64) -> Vec<Record> {
        self.next = now + self.stretch();
        let lines = self.noise.lines;
        let read = |_| {
            let line = self.random() % KERNEL_LINES;
            Record::new(RecordKind::Load, 8, 0, KERNEL + line * LINE_BYTES)
        };
        (0..lines).filter_map(read).collect()
    }

    fn stretch(&mut self) -> u64 {
        let uniform = ((self.random() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        1 + (-uniform.ln() * self.noise.period_instructions as f64) as u64
    }

    /// SplitMix64. Source: Steele, Lea, Flood 2014.
    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_and_the_mean_is_the_period() {
        let times = |seed| {
            let mut source = Source::new(Noise::seeded(seed));
            (0..2000).map(|_| (source.interrupt(source.next).len(), source.next).1).collect::<Vec<u64>>()
        };
        assert_eq!(times(7), times(7));
        assert_ne!(times(7), times(8));
        let mean = times(7)[1999] / 2000;
        assert!((900_000..1_100_000).contains(&mean), "{mean}");
    }
}
