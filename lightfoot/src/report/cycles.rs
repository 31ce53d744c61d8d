//! Estimated cycles in a report: the estimate with its parts, and beside it the sum of declared
//! costs.

use crate::run::estimate::Estimate;
use cycles::{Parts, KNOWN_ERROR_PERCENT, PART_NAMES};
use present::number::percent;
use present::order::SortRows;
use serde::Serialize;

/// Estimated cycles.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cycles {
    /// The sum of the parts.
    pub total: u64,
    /// What they are spent on.
    pub parts: Parts,
    /// The middle of the errors against measured times, over the variants of `lightfoot study
    /// cycles` that nothing was fitted to.
    pub known_error_percent: f64,
    /// The declared cost of each event, which every miss pays in full.
    pub declared: Estimate,
}

impl Cycles {
    /// The estimate with these parts.
    pub fn new(parts: Parts, declared: Estimate) -> Cycles {
        Cycles { total: parts.total(), parts, known_error_percent: KNOWN_ERROR_PERCENT, declared }
    }

    /// The shares of the parts as text, the largest first, without those that are next to nothing.
    pub fn spent(&self, branches: Branches) -> String {
        let mut parts: Vec<(&str, u64)> = PART_NAMES.into_iter().zip(self.parts.values()).collect();
        parts.sort_rows_by_key(|(_, cycles)| std::cmp::Reverse(*cycles));
        let shown = parts.iter().filter(|(_, cycles)| 1000 * cycles >= self.total.max(1));
        let shown = shown.map(|(name, cycles)| format!("{name} {}", percent(*cycles, self.total)));
        let left_out = match branches {
            Branches::Predicted => None,
            Branches::LeftOut => Some("branches not predicted".to_owned()),
        };
        shown.chain(left_out).collect::<Vec<_>>().join(", ")
    }
}

/// Whether branches are among the parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Branches {
    /// A predictor was run.
    Predicted,
    /// None was.
    LeftOut,
}

impl Branches {
    /// By the number of branches that a predictor saw.
    pub fn of(predicted: Option<u64>) -> Branches {
        match predicted {
            Some(_) => Branches::Predicted,
            None => Branches::LeftOut,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_told_from_the_largest_on() {
        let parts = Parts { base: 600, memory: 300, tlb: 99, l2: 1, ..Parts::default() };
        let cycles = Cycles::new(parts, Estimate { total: 1, terms: Vec::new() });
        assert_eq!(cycles.total, 1000);
        let spent = cycles.spent(Branches::LeftOut);
        assert_eq!(spent, "base 60.0 %, memory 30.0 %, TLB 9.9 %, L2 0.1 %, branches not predicted");
        assert!(!cycles.spent(Branches::Predicted).contains("branches"));
    }
}
