//! Native runs that the kernel samples: it records the counters in the program's own threads, and
//! the host turns these samples into records ten times a second.
//!
//! This avoids an interrupt of another processor and a wake-up for each interval, which are nearly
//! all the cost of the host's collector. Samples do not contain software metrics, so those need the
//! host's collector. The events of threads behind their last samples are in the last record; a note
//! says so if they are many.

use super::launch::{chosen, finish, launch};
use super::partial::Partial;
use super::request::Request;
use anyhow::{anyhow, Result};
use measure::collector::Sampling;
use measure::counter::{Samples, Whose};
use measure::trace::{Header, Metric, Trace};
use std::time::Duration;

/// The clock by which threads are sampled, if it is a column.
const CLOCK: &str = "task-clock";
/// A note is made if the last record has more than one part in this many of the whole run, and more
/// than this many intervals.
const REST_MAX: (u64, u64) = (20, 2);

pub(super) fn run(request: &Request, header: impl FnOnce(Vec<Metric>) -> Header) -> Result<Trace> {
    let length = request.interval.length;
    let open =
        |events: &[_]| Samples::open(events, Whose::Children, length).map_err(|error| anyhow!("{error}"));
    let (mut samples, mut notes) = chosen(&request.hardware, open)?;
    let held = launch(request, None, None)?;
    let mut sampling = Sampling::new(&mut samples, Duration::from_nanos(length));
    let header = header(sampling.metrics().to_vec());
    let mut partial = Partial::new(request.partial.as_deref(), &header)?;
    let running = held.release();
    let mut records = Vec::new();
    let take = |record| {
        partial.record(&record);
        records.push(record);
        Ok(())
    };
    let ended = sampling.run(running.pid().unsigned_abs(), || false, take);
    let ended = ended.map(|(_, end)| (records, end)).map_err(|error| anyhow!("{error}"));
    let (mut trace, _) = finish(header, running, ended, &partial)?;
    trace.header.notes.append(&mut notes);
    trace.header.notes.extend(rest(&trace));
    Ok(trace)
}

/// The note about a large last record.
fn rest(trace: &Trace) -> Option<String> {
    let clock = trace.position(CLOCK)?;
    let total = trace.end.as_ref()?.totals[clock]?;
    let rest = trace.records.last()?.values[clock].delta?;
    let (part, intervals) = REST_MAX;
    let much = rest > total / part && rest > intervals * trace.header.interval.length;
    much.then(|| {
        let percent = rest * 100 / total.max(1);
        format!("{percent} % of {CLOCK} was in threads that ended between two samples, and is in the last record: see --collector host")
    })
}
