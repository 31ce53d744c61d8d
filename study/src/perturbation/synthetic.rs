//! Tests the statistics themselves, on runs whose truth is known. The seed comes from the clock, so
//! nobody can have tried it before.
//!
//! Autoregressive series stand for metrics, because successive intervals of a program resemble each
//! other. The first two series have a correlation of .8. Without an effect, at most a twentieth of
//! the families may be flagged. A correlation that falls to .2 in a third of the records must be
//! found; one of .78 in all records must not be flagged.

use anyhow::Result;
use measure::perturb::{perturb, Options, Scope, Verdict};
use measure::random::Random;
use measure::trace::{Header, Interval, Metric, Record, Source, Trace, Unit, Value};
use serde::{Deserialize, Serialize};
use std::time::{SystemTime, UNIX_EPOCH};

/// How often five runs were called disturbed beside five baselines.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Flagged {
    /// Of the generator: a run can be repeated by it.
    pub(super) seed: u64,
    pub(super) experiments: usize,
    pub(super) without_effect: usize,
    pub(super) planted: usize,
    pub(super) small: usize,
}

/// As in the paper's traces.
const RECORDS: usize = 3000;
const PERSISTENCE: f64 = 0.8;

/// A seed that nobody has tried before.
pub(super) fn fresh_seed() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}

/// Runs `experiments` of each kind.
///
/// # Errors
/// None in practice: the traces are comparable.
pub(super) fn flagged(experiments: usize, seed: u64) -> Result<Flagged> {
    let mut random = Random::new(seed);
    let mut count = |rho: fn(usize) -> f64| -> Result<usize> {
        let mut flagged = 0;
        for _ in 0..experiments {
            let mut side =
                |rho: fn(usize) -> f64| (0..5).map(|_| trace(rho, &mut random)).collect::<Vec<_>>();
            let (baseline, mut run) = (side(|_| 0.8), side(rho));
            // Another build, as instrumentation in the source makes one.
            run.iter_mut().for_each(|trace| trace.header.build_id = Some("instrumented".into()));
            let options = Options { scope: Scope::Inner, ..Options::default() };
            flagged += usize::from(perturb(&baseline, &run, &options)?.verdict() == Verdict::Disturbed);
        }
        Ok(flagged)
    };
    let without_effect = count(|_| 0.8)?;
    let planted = count(|record| if record % RECORDS < RECORDS / 3 { 0.2 } else { 0.8 })?;
    let small = count(|_| 0.78)?;
    Ok(Flagged { seed, experiments, without_effect, planted, small })
}

/// A trace of three metrics.
pub(super) fn trace(rho: fn(usize) -> f64, random: &mut Random) -> Trace {
    let metrics = ["first", "second", "third"].map(|name| Metric::new(name, Source::Simulated, "synthetic"));
    let interval = Interval { length: 1, unit: Unit::Cycles };
    let mut trace = Trace::new(Header::new(vec!["synthetic".into()], interval, metrics.to_vec()));
    trace.header.build_id = Some("plain".into());
    let fresh = (1.0 - PERSISTENCE * PERSISTENCE).sqrt();
    let mut state = [random.normal(), random.normal(), random.normal()];
    for index in 0..RECORDS {
        state = state.map(|x| PERSISTENCE * x + fresh * random.normal());
        let rho = rho(index);
        let second = rho * state[0] + (1.0 - rho * rho).sqrt() * state[1];
        let values = [state[0], second, state[2]].map(|x| Value::whole((1e6 + 1e5 * x) as u64)).to_vec();
        let (sequence, start) = (index as u64, index as u64);
        trace.records.push(Record { sequence, start, dt: 1, missed_ticks: 0, threads: 1, values });
    }
    trace
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effects_are_told_from_none() {
        let found = flagged(12, 7).unwrap();
        assert!(found.planted >= 10 && found.small <= 3 && found.without_effect <= 4, "{found:?}");
    }
}
