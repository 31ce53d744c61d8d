//! Misses of the structure alone: only what a search reads of its structure goes through the cache
//! of Figure 4.8.
//!
//! A program also reads its queries and its stack, which share the cache. The words come from the
//! code of the lookups themselves (`Lookup::find_touching`), in their order, and count from the
//! start of a block. Where a structure lies turns the sets of a direct-mapped cache and changes no
//! count, so these figures have no layouts.

use super::counted::lookups_of;
use super::lookup::{items, queries, TRIALS, TRIALS_MAX};
use super::simulated::SIMULATED;
use crate::race::median;
use anyhow::{anyhow, Result};
use event::{Record, RecordKind};
use machine::Machine;
use search::paper::{Lookup, ALGORITHMS};
use serde::{Deserialize, Serialize};
use simulate::{Hierarchy, Modelled};

/// One point.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Structural {
    pub(super) algorithm: String,
    pub(super) items: usize,
    pub(super) block_bytes: usize,
    /// Words of the structure that are read, per lookup.
    pub(super) touches: f64,
    /// Median of the trials, per lookup.
    pub(super) misses: f64,
}

/// Where the structure starts: a multiple of every block size.
const BASE: u64 = 1 << 20;

/// All algorithms at one number of items.
pub(super) fn measure(n: usize, block_bytes: usize) -> Result<Vec<Structural>> {
    let (items, lookups) = (items(n), lookups_of(n));
    let queries = queries(n, TRIALS_MAX * lookups);
    let machine = Machine::preset(SIMULATED)?.with_override("l1d", &format!("8192,1,{block_bytes}"))?;
    let modelled = Modelled::of(&machine).map_err(|error| anyhow!("{error}"))?;
    let levels = modelled.ok_or_else(|| anyhow!("{SIMULATED} has no data cache"))?.levels;
    let point = |algorithm: &search::paper::Algorithm| -> Result<Structural> {
        let structure = (algorithm.build)(&items, block_bytes);
        let mut hierarchy = Hierarchy::new(&levels).map_err(|error| anyhow!("{error}"))?;
        // The first trial warms up.
        let mut trials = Vec::new();
        for trial in queries.chunks(lookups) {
            let before = hierarchy.counts().cache(0).total();
            let loads = loads(structure.as_ref(), trial)?;
            hierarchy.records(0, &loads);
            trials.push((loads.len(), hierarchy.counts().cache(0).total() - before));
        }
        let per_lookup = |of: fn(&(usize, u64)) -> f64| -> f64 {
            let each: Vec<f64> = trials[1..].iter().map(of).collect();
            median(&each).unwrap_or_default() / lookups as f64
        };
        debug_assert_eq!(trials.len(), TRIALS + 1);
        Ok(Structural {
            algorithm: algorithm.name.to_owned(),
            items: n,
            block_bytes,
            touches: per_lookup(|(touches, _)| *touches as f64),
            misses: per_lookup(|(_, misses)| *misses as f64),
        })
    };
    ALGORITHMS.iter().map(point).collect()
}

/// What looking all queries up reads of the structure.
fn loads(structure: &dyn Lookup, queries: &[u32]) -> Result<Vec<Record>> {
    let mut loads = Vec::with_capacity(32 * queries.len());
    for &query in queries {
        let load = |word: usize| Record::new(RecordKind::Load, 4, 0, BASE + 4 * word as u64);
        let found = structure.find_touching(query, &mut |word| loads.extend(load(word)));
        anyhow::ensure!(found.is_some(), "the lookup of {query} failed");
    }
    Ok(loads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_structure_that_fits_the_cache_never_misses_and_a_larger_one_does() {
        for (n, fits) in [(128, true), (1 << 14, false)] {
            for point in measure(n, 32).unwrap() {
                assert_eq!(point.misses == 0.0, fits, "{point:?}");
                assert!(point.touches > point.misses, "{point:?}");
            }
        }
    }

    #[test]
    fn a_binary_search_reads_an_item_a_level() {
        let points = measure(1 << 10, 32).unwrap();
        let touches = |name: &str| points.iter().find(|point| point.algorithm == name).unwrap().touches;
        assert!((touches("classic-implicit") - 9.0).abs() < 0.2, "{}", touches("classic-implicit"));
        // An item and a pointer at each level but the last.
        let explicit = touches("classic-explicit");
        assert!((explicit - (2.0 * touches("classic-implicit") - 1.0)).abs() < 1e-9, "{explicit}");
    }
}
