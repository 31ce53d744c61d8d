//! The counts in all tables of a report.

use cycles::Parts;
use serde::{Serialize, Serializer};

/// The counts of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Instructions retired.
    pub instructions: u64,
    /// Blocks entered.
    #[serde(skip_serializing_if = "is_zero")]
    pub blocks: u64,
    /// Reading references.
    pub loads: u64,
    /// Writing references.
    pub stores: u64,
    /// Misses, if a hierarchy was simulated.
    #[serde(flatten)]
    pub misses: Option<Misses>,
}

/// Misses by level; `None` for a level that the machine lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Misses {
    /// First-level instruction cache.
    pub l1i_misses: Option<u64>,
    /// First-level data cache, reads.
    pub l1d_load_misses: Option<u64>,
    /// First-level data cache, writes.
    pub l1d_store_misses: Option<u64>,
    /// Second level.
    pub l2_misses: Option<u64>,
    /// Third level.
    pub l3_misses: Option<u64>,
    /// Data TLB.
    pub dtlb_misses: Option<u64>,
    /// Conditional branches that the predictor got wrong.
    pub branch_mispredictions: Option<u64>,
    /// Estimated cycles, by what they are spent on.
    #[serde(flatten, serialize_with = "cycle_fields")]
    pub cycles: Option<Parts>,
}

/// The fields of estimated cycles: the sum, which tables show, and its parts.
fn cycle_fields<S: Serializer>(parts: &Option<Parts>, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Fields<'a> {
        estimated_cycles: u64,
        cycle_parts: &'a Parts,
    }
    let fields = |parts| Fields { estimated_cycles: Parts::total(parts), cycle_parts: parts };
    parts.as_ref().map(fields).serialize(serializer)
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Misses {
    /// Adds the misses of `other`.
    pub fn add(&mut self, other: &Misses) {
        let add = |to: &mut Option<u64>, from: Option<u64>| {
            if let Some(from) = from {
                *to.get_or_insert(0) += from;
            }
        };
        add(&mut self.l1i_misses, other.l1i_misses);
        add(&mut self.l1d_load_misses, other.l1d_load_misses);
        add(&mut self.l1d_store_misses, other.l1d_store_misses);
        add(&mut self.l2_misses, other.l2_misses);
        add(&mut self.l3_misses, other.l3_misses);
        add(&mut self.dtlb_misses, other.dtlb_misses);
        add(&mut self.branch_mispredictions, other.branch_mispredictions);
        if let Some(parts) = &other.cycles {
            self.cycles.get_or_insert_default().add(parts);
        }
    }

    /// First-level data misses, reads and writes.
    pub fn l1d(&self) -> u64 {
        self.l1d_load_misses.unwrap_or(0) + self.l1d_store_misses.unwrap_or(0)
    }
}

impl Counts {
    /// Adds estimated cycles.
    pub fn add_cycles(&mut self, parts: &Parts) {
        self.misses.get_or_insert_default().cycles.get_or_insert_default().add(parts);
    }

    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &Counts) {
        self.instructions += other.instructions;
        self.blocks += other.blocks;
        self.loads += other.loads;
        self.stores += other.stores;
        if let Some(misses) = &other.misses {
            self.misses.get_or_insert_default().add(misses);
        }
    }
}
