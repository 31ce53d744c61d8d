//! Estimated cycles in a report: the estimate with its parts, and beside it the sum of declared costs.

use crate::run::cycles::Parts;
use crate::run::estimate::Estimate;
use serde::Serialize;

/// Estimated cycles.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cycles {
    /// The sum of the parts.
    pub total: u64,
    /// What they are spent on.
    pub parts: Parts,
    /// The declared cost of each event, which every miss pays in full.
    pub declared: Estimate,
}

impl Cycles {
    /// The estimate with these parts.
    pub fn new(parts: Parts, declared: Estimate) -> Cycles {
        Cycles { total: parts.total(), parts, declared }
    }
}
