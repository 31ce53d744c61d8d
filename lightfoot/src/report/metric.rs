//! The metrics of a row: their fields, their names for people, and their values.

use crate::run::tally::Counts;
use serde::Serialize;

/// The command that made a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// `lightfoot count`
    Count,
    /// `lightfoot cache`
    Cache,
}

/// A metric of a row.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its field in JSON and CSV.
    pub field: &'static str,
    /// Its name for people.
    pub label: &'static str,
    /// Returns its value.
    pub value: fn(&Counts) -> Option<u64>,
}

const fn metric(field: &'static str, label: &'static str, value: fn(&Counts) -> Option<u64>) -> Metric {
    Metric { field, label, value }
}

/// The metrics that `count` reports.
pub const COUNT_METRICS: &[Metric] = &[
    metric("instructions", "instructions", |counts| Some(counts.instructions)),
    metric("blocks", "blocks", |counts| Some(counts.blocks)),
    metric("loads", "loads", |counts| Some(counts.loads)),
    metric("stores", "stores", |counts| Some(counts.stores)),
];

/// The metrics that `cache` reports in addition.
pub const CACHE_METRICS: &[Metric] = &[
    metric("l1i_misses", "L1I misses", |counts| counts.misses?.l1i_misses),
    metric("l1d_load_misses", "L1D load misses", |counts| counts.misses?.l1d_load_misses),
    metric("l1d_store_misses", "L1D store misses", |counts| counts.misses?.l1d_store_misses),
    metric("l2_misses", "L2 misses", |counts| counts.misses?.l2_misses),
    metric("l3_misses", "L3 misses", |counts| counts.misses?.l3_misses),
    metric("dtlb_misses", "dTLB misses", |counts| counts.misses?.dtlb_misses),
    metric("branch_mispredictions", "mispredictions", |counts| counts.misses?.branch_mispredictions),
    metric("estimated_cycles", "estimated cycles", |counts| Some(counts.misses?.cycles?.total())),
];

/// First-level data misses of reads and writes together, because a table has no room for both.
pub const L1D: Metric = metric("l1d_misses", "L1D misses", |counts| counts.misses.map(|misses| misses.l1d()));

/// The metric that `column` names, by its field or by its heading in the table.
///
/// # Errors
/// One sentence with the columns that exist.
pub fn sortable(kind: Kind, column: &str) -> anyhow::Result<&'static Metric> {
    let of_cache = CACHE_METRICS.iter().chain([&L1D]).filter(|_| kind == Kind::Cache);
    let metrics: Vec<&'static Metric> = COUNT_METRICS.iter().chain(of_cache).collect();
    let wanted = |metric: &&&'static Metric| {
        [metric.field, short(metric), metric.label].iter().any(|name| name.eq_ignore_ascii_case(column))
    };
    metrics.iter().find(wanted).copied().ok_or_else(|| {
        let fields: Vec<&str> = metrics.iter().map(|metric| metric.field).collect();
        anyhow::anyhow!("there is no column {column} to sort by: the columns are {}", fields.join(", "))
    })
}

/// The heading of a column; in a `cache` table every number but the first is a number of misses.
pub(super) fn short(metric: &Metric) -> &'static str {
    match metric.field {
        "instructions" => "instr",
        "l1i_misses" => "L1I",
        "l1d_misses" => "L1D",
        "l2_misses" => "L2",
        "l3_misses" => "L3",
        "dtlb_misses" => "dTLB",
        "branch_mispredictions" => "branch",
        "estimated_cycles" => "cycles",
        _ => metric.label,
    }
}
