//! The slow twin of `perceptron`: weights in maps, sums written out.

use crate::predict::perceptron::{HISTORY, SURE};
use crate::{Outcome, Prediction};
use std::collections::HashMap;

/// Weights by branch and distance: 0 is the bias, 1 the outcome of the previous branch.
#[derive(Clone, Debug)]
pub struct NaivePerceptron {
    perceptrons: u64,
    weights: HashMap<(u64, usize), i64>,
    outcomes: Vec<Outcome>,
}

impl NaivePerceptron {
    /// A predictor of 2^`bits` perceptrons.
    pub fn new(bits: u32) -> NaivePerceptron {
        NaivePerceptron { perceptrons: 1 << bits, weights: HashMap::new(), outcomes: Vec::new() }
    }

    /// Predicts the conditional branch at `ip`, and learns its outcome.
    pub fn branch(&mut self, ip: u64, outcome: Outcome) -> Prediction {
        let index = ip % self.perceptrons;
        let input = |distance: usize| match distance {
            0 => 1,
            // Before the first branch, outcomes count as not taken.
            _ if self.outcomes.len() < distance => -1,
            _ if self.outcomes[self.outcomes.len() - distance] == Outcome::Taken => 1,
            _ => -1,
        };
        let inputs: Vec<i64> = (0..=HISTORY).map(input).collect();
        let weight = |distance: usize| self.weights.get(&(index, distance)).copied().unwrap_or(0);
        let sum: i64 = (0..=HISTORY).map(|distance| weight(distance) * inputs[distance]).sum();
        let expected = if sum >= 0 { Outcome::Taken } else { Outcome::NotTaken };
        if expected != outcome || sum.abs() <= i64::from(SURE) {
            for (distance, input) in inputs.into_iter().enumerate() {
                let weight = self.weights.entry((index, distance)).or_default();
                let step = if outcome == Outcome::Taken { input } else { -input };
                *weight = (*weight + step).clamp(-128, 127);
            }
        }
        self.outcomes.push(outcome);
        if expected == outcome {
            Prediction::Right
        } else {
            Prediction::Wrong
        }
    }
}
