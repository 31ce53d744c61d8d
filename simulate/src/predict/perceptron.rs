//! A branch predictor that learns which outcomes go together: perceptrons.
//!
//! **What.** A table of perceptrons by branch address; each has a weight per outcome of the last
//! branches, and a bias. The branch is expected to be taken where the sum of weights, each with the
//! sign of its outcome, is not negative; after a misprediction, or a sum that was not sure, the
//! weights that agreed with the outcome grow, the others shrink. **Why this way.** It learns
//! correlations over longer histories than gshare, which needs a counter for every combination;
//! what it cannot learn, as an exclusive-or of outcomes, is known. **Leaves out** what processors
//! add since. Source: Jiménez and Lin 2001, "Dynamic Branch Prediction with Perceptrons", section
//! 3. Its twin is `reference::NaivePerceptron`.

use super::outcome::{Outcome, Prediction};

/// Outcomes that a perceptron looks at.
pub(crate) const HISTORY: usize = 32;
/// Perceptrons of the default table.
const PERCEPTRONS: usize = 1 << 9;

/// A sum at least this far from 0 is sure: 1.93 · history + 14, as the source found.
pub(crate) const SURE: i32 = (193 * HISTORY as i32) / 100 + 14;

/// Weights of a perceptron; the outcome of the branch before stands first.
#[derive(Clone, Debug)]
struct Weights {
    bias: i8,
    of: [i8; HISTORY],
}

/// A perceptron predictor. Memory: 33 bytes per perceptron.
#[derive(Clone, Debug)]
pub struct Perceptron {
    table: Vec<Weights>,
    /// 1 for a branch that was taken, −1 for one that was not.
    history: [i8; HISTORY],
}

impl Perceptron {
    /// A predictor of 2^`bits` perceptrons.
    ///
    /// # Panics
    /// When `bits` is above 20.
    pub fn new(bits: u32) -> Perceptron {
        assert!(bits <= 20);
        Perceptron { table: vec![Weights { bias: 0, of: [0; HISTORY] }; 1 << bits], history: [-1; HISTORY] }
    }

    /// The conditional branch at `ip` is executed. Cost: a few nanoseconds.
    pub fn branch(&mut self, ip: u64, outcome: Outcome) -> Prediction {
        let index = ip as usize & (self.table.len() - 1);
        let Weights { bias, of } = &mut self.table[index];
        let terms = of.iter().zip(&self.history).map(|(&weight, &sign)| i32::from(weight) * i32::from(sign));
        let sum = i32::from(*bias) + terms.sum::<i32>();
        let right = (sum >= 0) == (outcome == Outcome::Taken);
        let step: i8 = if outcome == Outcome::Taken { 1 } else { -1 };
        if !right || sum.abs() <= SURE {
            *bias = bias.saturating_add(step);
            for (weight, &sign) in of.iter_mut().zip(&self.history) {
                *weight = weight.saturating_add(step * sign);
            }
        }
        self.history.copy_within(..HISTORY - 1, 1);
        self.history[0] = step;
        if right {
            Prediction::Right
        } else {
            Prediction::Wrong
        }
    }
}

impl Default for Perceptron {
    /// 2^9 perceptrons.
    fn default() -> Perceptron {
        Perceptron::new(PERCEPTRONS.trailing_zeros())
    }
}
