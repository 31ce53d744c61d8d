//! Traces of a program that runs already: it is entered, traced for a while, and left as it was.
//!
//! Under the engine (`--engine simulated` and `jit`) that is one more option of a run. Natively the
//! kernel counts the process's threads and what they start ([`RunningProcess`]): nothing stops, and
//! the program does not notice. **Leaves out** probes, uprobes and handlers in the program, which
//! are written before its first instruction, and natively intervals in instructions.

use super::launch::chosen;
use super::partial::Partial;
use super::request::{Collector, Engine, Request};
use anyhow::{anyhow, bail, Result};
use instrument::{EndRequests, Running, Standstill};
use measure::collector::{Collector as HostCollector, Ended, Pace};
use measure::counter::{Event, RunningProcess};
use measure::trace::{Header, Metric, Trace, Unit};
use present::number::seconds;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

/// The system's number for more descriptors than are allowed.
const TOO_MANY_FILES: i32 = rustix::io::Errno::MFILE.raw_os_error();

/// Refuses what cannot be counted in a process that runs already.
pub(super) fn check(request: &Request) -> Result<()> {
    let under_engine = matches!(request.engine, Engine::Simulated | Engine::Jit);
    if matches!(request.engine, Engine::Probe | Engine::Uprobe) {
        bail!("probes are written before a program starts: trace a running process with --engine jit, native or simulated");
    }
    if request.engine == Engine::Simulated && !request.software.is_empty() {
        bail!("--software of a simulated run adds code to the program before it starts: with --pid give them as --uncharged, or count them with --engine jit");
    }
    if request.collector != Collector::Host && !under_engine {
        bail!("with --pid lightfoot reads the counters: leave --collector out");
    }
    if request.interval.unit != Unit::Nanoseconds && !under_engine {
        bail!("the counters of a running process have a clock: give a time, as --every 10ms, or count with --engine jit or simulated");
    }
    Ok(())
}

/// Traces a process natively.
pub(super) fn run(
    request: &Request,
    running: Running,
    header: impl FnOnce(Vec<Metric>) -> Header,
) -> Result<Trace> {
    let pid = u32::try_from(running.pid).ok().filter(|&pid| pid > 0);
    let pid = pid.ok_or_else(|| anyhow!("there is no process {}: list them with ps -e", running.pid))?;
    let explained = |error: measure::Error| {
        match error {
        measure::Error::NotAllowed { .. } if is_of_another(pid) => {
            anyhow!("process {pid} belongs to another user: trace it as that user, or as root")
        }
        measure::Error::Io { error, .. } if error.raw_os_error() == Some(TOO_MANY_FILES) => anyhow!(
            "process {pid} has too many threads, each of which takes a descriptor for each event: raise 'ulimit -n', or name fewer events with --hardware"
        ),
        error => anyhow!("process {pid}: {error}"),
    }
    };
    let ends = EndRequests::noted();
    let open = |events: &[&'static Event]| RunningProcess::open(events, pid).map_err(explained);
    let (mut counters, notes) = chosen(&request.hardware, open)?;
    let pace = Pace::Time(Duration::from_nanos(request.interval.length));
    let window = running.window.unwrap_or(Duration::MAX);
    let mut collector = HostCollector::new(vec![&mut counters], pace).map_err(explained)?.for_time(window);
    let mut header = header(collector.metrics().to_vec());
    header.notes.extend(notes);
    let mut partial = Partial::new(request.partial.as_deref(), &header)?;
    let mut records = Vec::new();
    let take = |record| {
        partial.record(&record);
        records.push(record);
        Ok(())
    };
    let (ended, mut end) = collector.run(pid, || ends.arrived(), take).map_err(explained)?;
    header.notes.extend(partial.complaint());
    end.interrupted = false;
    end.exit_status = Some(0);
    if ended == Ended::Program {
        header.notes.push(format!("process {pid} has ended"));
    }
    Ok(Trace { records, end: Some(end), ..Trace::new(header) })
}

/// Whether a process belongs to another user than this one.
fn is_of_another(pid: u32) -> bool {
    let owner = std::fs::metadata(format!("/proc/{pid}")).map(|about| about.uid());
    owner.is_ok_and(|owner| owner != rustix::process::geteuid().as_raw())
}

/// What a trace says about a process that stood still while it was entered and left.
pub(super) fn note(running: Running, still: Standstill) -> String {
    let [begin, end] = [still.at_begin, still.at_end].map(|time| seconds(time.as_secs_f64()));
    format!("process {} stood still for {begin} at the beginning and {end} at the end", running.pid)
}

/// Size in bytes of the environment with which a process was started, with terminating zeros.
pub(super) fn environment_bytes(running: Running) -> Option<u64> {
    let read = std::fs::read(format!("/proc/{}/environ", running.pid)).ok()?;
    Some(read.len() as u64)
}
