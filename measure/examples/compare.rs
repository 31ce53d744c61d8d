//! Aligns two traces and says how alike each metric's course is:
//! `cargo run --example compare -- A B`, with files that example `collect` wrote; without files,
//! two made-up runs.

use lightfoot_measure::align::{align, normalised, Band};
use lightfoot_measure::random::Random;
use lightfoot_measure::rank::spearman;
use lightfoot_measure::trace::{
    decode, doubts, Header, Interval, Metric, Record, Source, Trace, Unit, Value,
};

/// A run of two phases, the second of which takes `slow` times as long.
fn made(seed: u64, slow: usize) -> Trace {
    let mut random = Random::new(seed);
    let metrics = ["misses", "faults"].map(|name| Metric::new(name, Source::Simulated, "made up"));
    let interval = Interval { length: 1000, unit: Unit::Cycles };
    let mut trace = Trace::new(Header::new(vec!["made".into()], interval, metrics.to_vec()));
    for sequence in 0..(40 + 40 * slow) as u64 {
        let level = if sequence < 40 { 900 } else { 200 };
        let values = [level, level / 3].map(|about| Value::whole(about + random.below(50) as u64));
        let (start, dt) = (sequence * 1000, 1000);
        trace.records.push(Record {
            sequence,
            start,
            dt,
            missed_ticks: 0,
            threads: 1,
            values: values.to_vec(),
        });
    }
    trace
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files: Vec<String> = std::env::args().skip(1).collect();
    let (first, second) = match &files[..] {
        [a, b] => (decode(&std::fs::read(a)?)?, decode(&std::fs::read(b)?)?),
        _ => (made(1, 1), made(2, 2)),
    };
    for doubt in doubts(&[&first, &second]) {
        println!("note: {doubt}");
    }
    // Metrics that both have, scaled, as columns; a constant one aligns nothing and does no harm.
    let names: Vec<&str> = first.header.metrics.iter().map(|metric| metric.name.as_str()).collect();
    let common: Vec<&str> = names.into_iter().filter(|name| second.position(name).is_some()).collect();
    let columns = |trace: &Trace| -> Vec<Vec<f64>> {
        common.iter().filter_map(|name| Some(trace.series(trace.position(name)?))).collect()
    };
    let (a, b) = (columns(&first), columns(&second));
    let scaled = |columns: &[Vec<f64>]| columns.iter().map(|column| normalised(column)).collect::<Vec<_>>();
    let aligned = align(&scaled(&a), &scaled(&b), Band::Slanted(0.5));
    println!("distance {:.2}, largest warp {:.0} %", aligned.distance(), 100.0 * aligned.warp().0);
    for (name, (a, b)) in common.iter().zip(a.iter().zip(&b)) {
        let (one, other) = aligned.along(a, b);
        match spearman(&one, &other) {
            Some(rho) => println!("{name:<20} correlates {rho:+.2} with itself in the other run"),
            None => println!("{name:<20} is constant in a run"),
        }
    }
    Ok(())
}
