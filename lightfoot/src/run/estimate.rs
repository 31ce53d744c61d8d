//! Estimated cycles: for each event the declared cost times the number of events.
//!
//! The model is `simulate::CycleModel`. Here it becomes terms of a report, each with its constant,
//! so that readers can judge it. A penalty that the machine does not declare gives no term.
//! **Leaves out** overlap: see LIMITS.md.

use serde::Serialize;
use simulate::{Counts, CycleModel, Misses};

/// An estimate of cycles, with its terms.
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
    /// Name of the event.
    pub of: String,
    /// How often it happened.
    pub count: u64,
    /// The declared constant.
    pub cycles_each: f64,
}

/// Estimates the cycles of `instructions` with the misses of `counts`; `numbers` are the machine's
/// numbers of the simulated levels. Without `mispredictions` there is no term for them.
pub fn estimate(
    model: &CycleModel,
    instructions: u64,
    counts: &Counts,
    numbers: &[u8],
    mispredictions: Option<u64>,
) -> Estimate {
    let term = |of: String, count: u64, cycles_each: f64| Term { of, count, cycles_each };
    let totals = counts.totals();
    let mut terms = vec![term("instructions".into(), instructions, model.per_instruction)];
    for (level, number) in numbers.iter().enumerate() {
        let data = model.cache_miss[level];
        let fetch = if level == 0 { model.fetch_miss } else { data };
        terms.extend(level_terms(&format!("L{number}"), totals.caches[level], data, fetch));
    }
    for (level, (data, fetch)) in model.tlb_miss.into_iter().zip(model.fetch_tlb_miss).enumerate() {
        terms.extend(level_terms(&format!("TLB{}", level + 1), totals.tlbs[level], data, fetch));
    }
    if let Some(mispredictions) = mispredictions {
        terms.push(term("mispredictions".into(), mispredictions, model.misprediction));
    }
    terms.retain(|term| term.cycles_each > 0.0);
    let total = model.cycles(instructions, &totals, mispredictions.unwrap_or(0)).total();
    Estimate { total: total.round() as u64, terms }
}

/// The terms of a level: one if misses of data and of instructions cost the same, otherwise two.
fn level_terms(level: &str, misses: Misses, data: f64, fetch: f64) -> Vec<Term> {
    let term = |of: String, count: u64, cycles_each: f64| Term { of, count, cycles_each };
    if data == fetch {
        return vec![term(format!("{level} misses"), misses.total(), data)];
    }
    vec![
        term(format!("{level}-data misses"), misses.loads + misses.stores, data),
        term(format!("{level}-instruction misses"), misses.instructions, fetch),
    ]
}

impl Estimate {
    /// The estimate as a formula, such as `0.5 × instructions + 10 × L1 misses`; events with equal
    /// costs for data and instructions are one term.
    pub fn formula(&self) -> String {
        let each = |term: &Term| match term.of.split_once(' ') {
            Some((level, what)) => format!("{} × {level} {what}", term.cycles_each),
            None => format!("{} × {}", term.cycles_each, term.of),
        };
        self.terms.iter().map(each).collect::<Vec<_>>().join(" + ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use simulate::{BlockMisses, SiteMisses};

    #[test]
    fn the_terms_add_up() {
        let model = CycleModel {
            per_instruction: 0.5,
            cache_miss: [10.0, 100.0, 0.0],
            fetch_miss: 10.0,
            tlb_miss: [7.0, 0.0],
            fetch_tlb_miss: [7.0, 0.0],
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
        let said = estimate(&model, 1000, &counts, &[1, 3], Some(4)).formula();
        let formula =
            "0.5 × instructions + 10 × L1 misses + 100 × L3 misses + 7 × TLB1 misses + 20 × mispredictions";
        assert_eq!(said, formula);
    }

    #[test]
    fn sides_of_different_cost_have_a_term_each() {
        let model = CycleModel {
            cache_miss: [10.0, 0.0, 0.0],
            fetch_miss: 10.0,
            tlb_miss: [0.0, 30.0],
            fetch_tlb_miss: [0.0, 50.0],
            ..CycleModel::default()
        };
        let sites = vec![SiteMisses { tlbs: [0, 2], ..SiteMisses::default() }];
        let blocks = vec![BlockMisses { tlbs: [0, 3], ..BlockMisses::default() }];
        let counts = Counts { sites, blocks, ..Counts::default() };
        let estimate = estimate(&model, 0, &counts, &[1], None);
        assert_eq!(estimate.total, 2 * 30 + 3 * 50);
        assert!(estimate.formula().ends_with("30 × TLB2-data misses + 50 × TLB2-instruction misses"));
    }
}
