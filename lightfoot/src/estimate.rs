//! Estimated cycles: what a machine's description declares for each event, times how often the event happened.
//!
//! The model is `simulate::CycleModel`'s; here it becomes a report's terms, each with its constant, so that a reader can object to it. A penalty
//! that the machine does not declare gives no term. **Leaves out** overlap: see LIMITS.md.

use serde::Serialize;
use simulate::{Counts, CycleModel};

/// Cycles, and what they are made of.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The sum of all terms.
    pub total: u64,
    /// The terms.
    pub terms: Vec<Term>,
}

/// `count * cycles_each`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Term {
    /// Of what.
    pub of: String,
    /// How often it happened.
    pub count: u64,
    /// The declared constant.
    pub cycles_each: f64,
}

/// The estimate for `instructions` that missed as `counts` says; `numbers` are the machine's numbers of the simulated levels. Without
/// `mispredictions` there is no term for them.
pub fn estimate(
    model: &CycleModel,
    instructions: u64,
    counts: &Counts,
    numbers: &[u8],
    mispredictions: Option<u64>,
) -> Estimate {
    let term = |of: String, count: u64, cycles_each: f64| Term { of, count, cycles_each };
    let mut terms = vec![term("instructions".into(), instructions, model.per_instruction)];
    for (level, number) in numbers.iter().enumerate() {
        terms.push(term(format!("L{number} misses"), counts.cache(level).total(), model.cache_miss[level]));
    }
    for (level, each) in model.tlb_miss.into_iter().enumerate() {
        terms.push(term(format!("TLB{} misses", level + 1), counts.tlb(level).total(), each));
    }
    if let Some(mispredictions) = mispredictions {
        terms.push(term("mispredictions".into(), mispredictions, model.misprediction));
    }
    terms.retain(|term| term.cycles_each > 0.0);
    let total = model.estimate(instructions, counts, mispredictions.unwrap_or(0)).total();
    Estimate { total: total.round() as u64, terms }
}

impl Estimate {
    /// The constants in a line: `0.5 an instruction, L1 14, L2 50`.
    pub fn constants(&self) -> String {
        let each = |term: &Term| match term.of.split_once(' ') {
            Some((level, _)) => format!("{level} {}", term.cycles_each),
            None if term.of == "instructions" => format!("{} an instruction", term.cycles_each),
            None => format!("branch {}", term.cycles_each),
        };
        self.terms.iter().map(each).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use simulate::SiteMisses;

    #[test]
    fn the_terms_add_up() {
        let model = CycleModel {
            per_instruction: 0.5,
            cache_miss: [10.0, 100.0, 0.0],
            tlb_miss: [7.0, 0.0],
            misprediction: 20.0,
        };
        let sites = vec![SiteMisses { loads: [3, 2, 0], stores: [1, 0, 0], tlbs: [2, 0] }];
        let counts = Counts { sites, ..Counts::default() };
        for mispredictions in [None, Some(4)] {
            let estimate = estimate(&model, 1000, &counts, &[1, 3], mispredictions);
            let sum: f64 = estimate.terms.iter().map(|term| term.count as f64 * term.cycles_each).sum();
            assert_eq!(estimate.total as f64, sum);
            assert_eq!(estimate.terms.len(), if mispredictions.is_some() { 5 } else { 4 });
        }
        let said = estimate(&model, 1000, &counts, &[1, 3], Some(4)).constants();
        assert_eq!(said, "0.5 an instruction, L1 10, L3 100, TLB1 7, branch 20");
    }
}
