//! The program that is measured: builds one structure of the paper, then looks random items up.
//!
//! It runs as `lightfoot lookups`, a process of its own, so that Figures 4.8 and 4.9 count compiled
//! lookups and nothing of the study. All trials' queries are drawn before the first lookup and
//! however many trials are run, so two runs that differ in the number of trials differ in nothing
//! else: their difference is those trials. Trial 0 warms the cache up, as the paper's n unmeasured
//! lookups do; any other trial may follow it.

use anyhow::Result;
use present::exit::{Failure, USAGE};
use search::paper::{algorithm, ALGORITHMS};
use search::sample::Random;
use std::hint::black_box;

/// The algorithm that looks nothing up: its loop is subtracted.
pub(super) const EMPTY: &str = "empty";

/// Most trials that a run may be asked for: the paper's ten and the one that warms up.
pub(super) const TRIALS_MAX: usize = TRIALS + 1;

/// The paper's trials.
pub(super) const TRIALS: usize = 10;

/// `n` items, every third number.
pub(super) fn items(n: usize) -> Vec<u32> {
    (0..n as u32).map(|i| 3 * i + 1).collect()
}

/// Random items to be looked up successfully.
pub(super) fn queries(n: usize, count: usize) -> Vec<u32> {
    let mut random = Random::new(2002);
    (0..count).map(|_| 3 * random.below(n as u64) as u32 + 1).collect()
}

/// What the program is asked for.
#[derive(Clone, Debug)]
pub struct Lookups {
    /// The algorithm; `empty` reads the queries and looks nothing up.
    pub algorithm: String,
    /// Items in the structure.
    pub items: usize,
    /// Memory block the structure is built for.
    pub block_bytes: usize,
    /// Lookups of a trial.
    pub lookups: usize,
    /// Trials to run, the one that warms up among them.
    pub trials: usize,
    /// Trials left out behind the one that warms up.
    pub skip: usize,
}

/// Runs the trials.
///
/// # Errors
/// When there is no such algorithm, or a lookup fails.
pub fn lookups(options: &Lookups) -> Result<()> {
    let items = items(options.items);
    let queries = queries(options.items, TRIALS_MAX * options.lookups);
    let structure = match (options.algorithm.as_str(), algorithm(&options.algorithm)) {
        (EMPTY, _) => None,
        (_, Some(algorithm)) => Some((algorithm.build)(&items, options.block_bytes)),
        (name, None) => {
            let known: Vec<&str> = ALGORITHMS.iter().map(|algorithm| algorithm.name).collect();
            let sentence =
                format!("there is no algorithm {name}: the algorithms are {EMPTY}, {}", known.join(", "));
            return Err(Failure { status: USAGE, sentence }.into());
        }
    };
    let mut found = 0;
    let mut queried = 0;
    let trials = queries.chunks(options.lookups.max(1)).enumerate();
    let wanted = trials.filter(|(trial, _)| *trial == 0 || *trial > options.skip);
    for (_, trial) in wanted.take(options.trials) {
        queried += trial.len();
        found += match &structure {
            Some(structure) => structure.find_all(black_box(trial)),
            None => look_nowhere(black_box(trial)),
        };
    }
    anyhow::ensure!(found == queried, "{} of {queried} lookups failed", queried - found);
    Ok(())
}

/// The loop without a lookup.
#[inline(never)]
fn look_nowhere(queries: &[u32]) -> usize {
    queries.iter().filter(|&&query| black_box(query) != 0).count()
}
