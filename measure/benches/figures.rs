//! `cargo bench -p lightfoot-measure [-- NAME]`: what aligning, ranking and reading counters cost,
//! beside the figures that were aimed at.
//!
//! Each figure is the least of several runs, as nothing makes a computation faster than it is.
//! Peers (scipy, dtaidistance) are timed on the same shapes by their own users;
//! `measure/tests/fixtures/README.md` says how the shapes are made.

use lightfoot_measure::align::{align, cost, Band};
use lightfoot_measure::collector::{Collector, Pace};
use lightfoot_measure::counter::{find, Counters, Group, Whose};
use lightfoot_measure::perturb::{perturb, Options};
use lightfoot_measure::random::Random;
use lightfoot_measure::rank;
use lightfoot_measure::trace::{Header, Interval, Metric, Record, Source, Trace, Unit, Value};
use std::hint::black_box;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Everything that can be measured, by name.
const FIGURES: &[(&str, fn())] =
    &[("spearman", spearman), ("dtw", dtw), ("outer", outer), ("read", read), ("collector", collector)];

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    for (name, run) in FIGURES {
        if wanted.is_empty() || wanted.iter().any(|word| word == name) {
            run();
        }
    }
}

/// Least seconds of at least five runs and a tenth of a second.
fn least(mut run: impl FnMut()) -> f64 {
    let (begin, mut least, mut runs) = (Instant::now(), f64::INFINITY, 0);
    while runs < 5 || (begin.elapsed() < Duration::from_millis(300) && runs < 10_000) {
        let start = Instant::now();
        run();
        least = least.min(start.elapsed().as_secs_f64());
        runs += 1;
    }
    least
}

fn say(what: &str, seconds: f64, aim: &str) {
    let shown = match seconds {
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 1e-3 => format!("{:.2} ms", s * 1e3),
        s => format!("{:.2} µs", s * 1e6),
    };
    println!("{what:<58} {shown:>12}   {aim}");
}

fn series(n: usize, seed: u64) -> Vec<f64> {
    let mut random = Random::new(seed);
    let mut x = 0.0;
    (0..n)
        .map(|_| {
            x = 0.95 * x + random.normal();
            x
        })
        .collect()
}

fn spearman() {
    let columns: Vec<Vec<f64>> = (0..20).map(|seed| series(3000, seed)).collect();
    let pair = least(|| {
        black_box(rank::spearman(&columns[0], &columns[1]));
    });
    say("Spearman, one pair, n = 3000", pair, "aim 0.15 ms");
    let all = least(|| {
        black_box(rank::matrix(&columns));
    });
    say("Spearman, 20 columns, n = 3000", all, "aim 3 ms");
}

fn dtw() {
    for (n, dimensions, band, aim) in [
        (3000, 1, Band::Whole, "aim 15 ms"),
        (3000, 5, Band::Whole, ""),
        (10_000, 1, Band::Whole, "aim 200 ms"),
        (10_000, 5, Band::Whole, ""),
        (10_000, 1, Band::Slanted(0.1), "aim 40 ms"),
        (10_000, 5, Band::Slanted(0.1), ""),
    ] {
        let side = |salt: u64| (0..dimensions).map(|d: u64| series(n, d + salt)).collect::<Vec<_>>();
        let (a, b) = (side(0), side(100));
        let seconds = least(|| {
            black_box(align(&a, &b, band));
        });
        say(&format!("DTW with path, n = {n}, {dimensions} metrics, {band:?}"), seconds, aim);
        let seconds = least(|| {
            black_box(cost(&a, &b, band));
        });
        say("  the cost alone", seconds, "");
    }
    println!("peak memory of this process: {} MB (aim 25 for n = 10000 with its path)", peak_kib() / 1000);
}

fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn outer() {
    let metrics = ["instructions", "L1D", "L2", "LLC", "TLB", "branches"];
    let trace = |seed: u64| {
        let columns: Vec<Vec<f64>> = (0..6).map(|metric| series(3000, seed * 10 + metric)).collect();
        let named = metrics.map(|name| Metric::new(name, Source::Simulated, "bench"));
        let interval = Interval { length: 1, unit: Unit::Cycles };
        let mut trace = Trace::new(Header::new(vec!["bench".into()], interval, named.to_vec()));
        for i in 0..3000 {
            let values = columns.iter().map(|c| Value::whole((1e6 + 1e4 * c[i]) as u64)).collect();
            let (sequence, start) = (i as u64, i as u64);
            trace.records.push(Record { sequence, start, dt: 1, missed_ticks: 0, threads: 1, values });
        }
        trace
    };
    let traces: Vec<Trace> = (0..26).map(trace).collect();
    let start = Instant::now();
    black_box(perturb(&traces[..21], &traces[21..], &Options::default()).expect("comparable"));
    say(
        "325 outer pairs of 26 traces, n = 3000, 6 metrics, 10 % band",
        start.elapsed().as_secs_f64(),
        "aim 10 s",
    );
}

const EVENTS: [&str; 6] =
    ["task-clock", "page-faults", "context-switches", "cpu-migrations", "minor-faults", "major-faults"];

fn group() -> Option<Group> {
    let events: Vec<_> = EVENTS.iter().filter_map(|name| find(name).ok()).collect();
    Group::open(&events, Whose::Children).map_err(|error| println!("skipped: {error}")).ok()
}

fn read() {
    let Some(mut group) = group() else { return };
    let mut totals = [0; 6];
    let mut reads = |what: &str, aim| {
        let mut times: Vec<f64> = (0..20_000)
            .map(|_| {
                let start = Instant::now();
                // A failure would show as a time of nothing.
                let _ = black_box(group.read(&mut totals));
                start.elapsed().as_secs_f64()
            })
            .collect();
        times.sort_by(f64::total_cmp);
        say(what, times[times.len() / 2], aim);
    };
    reads("group read of 6 kernel events, no child", "");
    let Ok(mut child) = Command::new("sleep").arg("5").spawn() else { return };
    std::thread::sleep(Duration::from_millis(50));
    reads("the same, child idle", "264 ns on the reference machine");
    let _ = (child.kill(), child.wait());
    let Ok(mut child) = Command::new("sh").args(["-c", "while :; do :; done"]).spawn() else { return };
    std::thread::sleep(Duration::from_millis(50));
    reads("the same, child running", "3.0 to 3.5 µs on the reference machine");
    let _ = (child.kill(), child.wait());
}

fn collector() {
    for (ms, aim) in [(1, "aim 2 %"), (10, "aim 0.5 %")] {
        let Some(mut group) = group() else { return };
        let Ok(mut collector) = Collector::new(vec![&mut group], Pace::Time(Duration::from_millis(ms)))
        else {
            return;
        };
        let mut command = Command::new("sh");
        command.args(["-c", "i=0; while [ $i -lt 2000000 ]; do i=$((i+1)); done"]).stdin(Stdio::null());
        let Ok(mut child) = command.spawn() else { return };
        let (mut records, mut missed, mut ns) = (0, 0, 0);
        let ended = collector.run(
            child.id(),
            || false,
            |record| {
                records += 1;
                missed += record.missed_ticks;
                ns += record.dt;
                Ok(())
            },
        );
        let _ = child.wait();
        let Ok((_, end)) = ended else { continue };
        let own = end.totals[6].unwrap_or(0) as f64 / ns as f64 * 100.0;
        println!(
            "{:<58} {own:>10.2} %   {aim}; {records} records, {missed} ticks missed",
            format!("collector every {ms} ms, of a CPU")
        );
    }
}
