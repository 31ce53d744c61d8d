//! Collects a trace of a command, every millisecond, and writes it to a file:
//! `cargo run --example collect -- FILE COMMAND [ARGUMENT...]`.

use lightfoot_measure::collector::{Collector, Pace};
use lightfoot_measure::counter::{find, Group, Whose};
use lightfoot_measure::trace::{check, Header, Interval, Trace, Unit};
use std::process::Command;
use std::time::Duration;

/// Software events of the kernel, which every machine has.
const EVENTS: [&str; 3] = ["task-clock", "page-faults", "context-switches"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [file, command, arguments @ ..] = &words[..] else {
        return Err("usage: collect FILE COMMAND [ARGUMENT...]".into());
    };
    let events = EVENTS.iter().map(|name| find(name)).collect::<Result<Vec<_>, _>>()?;
    let mut counters = Group::open(&events, Whose::Children)?;
    let mut collector = Collector::new(vec![&mut counters], Pace::Time(Duration::from_millis(1)))?;
    let interval = Interval { length: 1_000_000, unit: Unit::Nanoseconds };
    let mut trace = Trace::new(Header::new(words[1..].to_vec(), interval, collector.metrics().to_vec()));

    let mut program = Command::new(command).args(arguments).spawn()?;
    let (_, end) = collector.run(
        program.id(),
        || false,
        |record| {
            trace.records.push(record);
            Ok(())
        },
    )?;
    trace.end = Some(end);
    program.wait()?;

    for (index, metric) in trace.header.metrics.iter().enumerate() {
        let total = trace.sum(index).map_or("not counted".into(), |total| total.to_string());
        println!("{:<20} {total:>15} in {} records", metric.name, trace.records.len());
    }
    assert!(check(&trace).is_empty(), "deltas add up to the totals");
    Ok(std::fs::write(file, trace.encode())?)
}
