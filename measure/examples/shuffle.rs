//! How often labels that mean nothing are found: the error of a family, on traces of one's own.
//!
//! `cargo run --release -p lightfoot-measure --example shuffle -- SHUFFLES TRACE...` takes
//! baselines only, calls five of them instrumented at random, compares these with five others,
//! inner and outer, and says in how many shuffles some comparison was significant at 5 %. A right
//! test says at most about 5 %.

use lightfoot_measure::perturb::{perturb, Kind, Options, Report, Verdict};
use lightfoot_measure::random::Random;
use lightfoot_measure::trace::{decode, Trace};

/// Traces on each side.
const SIDE: usize = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let shuffles: usize = words.next().ok_or("give a number of shuffles, then traces")?.parse()?;
    let read =
        |path: String| -> Result<Trace, Box<dyn std::error::Error>> { Ok(decode(&std::fs::read(path)?)?) };
    let mut traces = words.map(read).collect::<Result<Vec<Trace>, _>>()?;
    if traces.len() < 2 * SIDE {
        return Err(format!("{} traces are too few: give {} or more", traces.len(), 2 * SIDE).into());
    }
    let mut random = Random::new(830);
    let found = |report: &Report, kind: Kind| {
        let significant = |p: f64| p <= 0.05;
        report.comparisons.iter().any(|one| one.kind == kind && one.p.is_some_and(significant))
    };
    let (mut inner, mut outer, mut either, mut disturbed) = (0, 0, 0, 0);
    for _ in 0..shuffles {
        random.shuffle(&mut traces);
        let mut run = traces[SIDE..2 * SIDE].to_vec();
        // Without instrumentation nothing would be called disturbed, whatever the numbers.
        run.iter_mut().for_each(|trace| trace.header.build_id = Some("instrumented".into()));
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let report = perturb(&traces[..SIDE], &run, &Options { threads, ..Options::default() })?;
        let (of_pairs, of_metrics) = (found(&report, Kind::Inner), found(&report, Kind::Outer));
        inner += usize::from(of_pairs);
        outer += usize::from(of_metrics);
        either += usize::from(of_pairs || of_metrics);
        disturbed += usize::from(report.verdict() == Verdict::Disturbed);
    }
    let percent = |count: usize| 100.0 * count as f64 / shuffles.max(1) as f64;
    println!(
        "{shuffles} shuffles of {} traces: p at most .05 in {either} ({:.1} %; inner {inner}, outer {outer}), \
         called disturbed {disturbed} ({:.1} %)",
        traces.len(),
        percent(either),
        percent(disturbed)
    );
    Ok(())
}
