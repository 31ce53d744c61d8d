//! gshare: two-bit counters indexed by address and history.
//!
//! **What.** `2^bits` two-bit counters, indexed by the branch's address exclusive-or the outcomes
//! of the last `history` conditional branches. **Why this way.** It is the simplest predictor whose
//! misses fall where a modern one's do (correlated branches are learnt, random ones are not), and
//! its result depends on nothing undocumented. Source: McFarling 1993, "Combining Branch
//! Predictors".

use super::outcome::{Outcome, Prediction};

/// A gshare predictor. Memory: 2^bits bytes.
#[derive(Clone, Debug)]
pub struct Gshare {
    counters: Vec<u8>,
    history: u64,
    history_mask: u64,
}

impl Gshare {
    /// A predictor of 2^`bits` counters, all weakly not taken, that looks at `history` outcomes.
    ///
    /// # Panics
    /// When `bits` is above 28 or `history` above 63.
    pub fn new(bits: u32, history: u32) -> Gshare {
        assert!(bits <= 28 && history <= 63);
        Gshare { counters: vec![1; 1 << bits], history: 0, history_mask: (1 << history) - 1 }
    }

    /// The conditional branch at `ip` is executed. Cost: a few nanoseconds.
    pub fn branch(&mut self, ip: u64, outcome: Outcome) -> Prediction {
        let index = (ip ^ self.history) as usize & (self.counters.len() - 1);
        let counter = &mut self.counters[index];
        let expected = if *counter >= 2 { Outcome::Taken } else { Outcome::NotTaken };
        let taken = outcome == Outcome::Taken;
        *counter = if taken { (*counter + 1).min(3) } else { counter.saturating_sub(1) };
        self.history = (self.history << 1 | u64::from(taken)) & self.history_mask;
        if expected == outcome {
            Prediction::Right
        } else {
            Prediction::Wrong
        }
    }
}

impl Default for Gshare {
    /// 2^14 counters and 12 outcomes.
    fn default() -> Gshare {
        Gshare::new(14, 12)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(predictor: &mut Gshare, outcomes: impl Iterator<Item = bool>) -> usize {
        let branch = |taken: bool| {
            let outcome = if taken { Outcome::Taken } else { Outcome::NotTaken };
            predictor.branch(0x1234, outcome) == Prediction::Wrong
        };
        outcomes.map(branch).filter(|&wrong| wrong).count()
    }

    #[test]
    fn a_period_within_the_history_is_learnt() {
        let mut predictor = Gshare::default();
        wrong(&mut predictor, (0..2000).map(|round| round % 7 == 0));
        assert_eq!(wrong(&mut predictor, (2000..4000).map(|round| round % 7 == 0)), 0);
    }

    #[test]
    fn without_history_a_loop_costs_one_miss_per_exit() {
        // Ten taken, one not: the two-bit counter stays on taken.
        let mut predictor = Gshare::new(4, 0);
        wrong(&mut predictor, (0..11).map(|round| round % 11 != 10));
        assert_eq!(wrong(&mut predictor, (0..110).map(|round| round % 11 != 10)), 10);
    }

    #[test]
    fn random_outcomes_are_not_predicted() {
        let mut state = 1u64;
        let outcomes = (0..10_000).map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 63 != 0
        });
        let wrong = wrong(&mut Gshare::default(), outcomes.collect::<Vec<_>>().into_iter());
        assert!((4_500..5_500).contains(&wrong), "{wrong}");
    }
}
