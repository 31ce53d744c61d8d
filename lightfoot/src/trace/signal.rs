//! The paper's collector: a timer's signal handler in the program reads the counters and writes
//! them to a file, from which the host makes records.
//!
//! It exists for comparison: it interrupts the program's system calls, uses its stack and caches,
//! and takes its threads' time, which metric `collector:handler-ns` counts. The file is in memory,
//! and the host reads it regularly; the events behind the last tick come from one read by the host
//! after the program's end. A program that executes another one loses the timer, so its last record
//! is long.

use super::partial::Partial;
use super::summed::Shape;
use anyhow::{anyhow, Context, Result};
use instrument::probe::{Held, Running};
use measure::collector::signal::{Ticks, Totals};
use measure::counter::{Counters, Group};
use measure::trace::{End, Interval, Record};
use present::exit::{self, Failure};
use rustix::event::{poll, PollFd, PollFlags};
use rustix::fd::OwnedFd;
use rustix::fs::MemfdFlags;
use rustix::io::{fcntl_setfd, FdFlags};
use rustix::time::{clock_gettime, ClockId, Timespec};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

/// Time between two readings of the file.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Sets whether the program inherits the descriptor of the group.
pub(super) fn inherited(group: &Group, flags: FdFlags) -> Result<()> {
    fcntl_setfd(group.descriptor(), flags).context("cannot pass the counters on to the program")
}

/// The ticks of a program.
pub(super) struct Handler {
    file: File,
    ticks: Ticks,
    interval_ns: u64,
    began_ns: u64,
}

impl Handler {
    /// Sets the handler and starts the timer; `words` are the counters of probes.
    pub(super) fn new(
        held: &mut Held,
        interval: Interval,
        group: &mut Group,
        probes: Option<&mut dyn Counters>,
        words: &[usize],
    ) -> Result<Handler> {
        let file = rustix::fs::memfd_create("lightfoot-ticks", MemfdFlags::CLOEXEC);
        let file = File::from(file.context("cannot make a file in memory for ticks")?);
        let group_bytes = Group::bytes(group.metrics().len()) as u32;
        let descriptor = group.descriptor().as_raw_fd();
        let wanted = instrument::probe::Ticks {
            interval_ns: interval.length,
            group: descriptor,
            group_bytes,
            words,
            output: file.as_raw_fd(),
        };
        held.tick(&wanted).map_err(crate::run::engine::failure)?;
        // The program is stopped: the cost of the setup is counted before its first record.
        let first = totals(group, probes)?;
        let (began_ns, interval_ns) = (now_ns(), interval.length);
        Ok(Handler { file, ticks: Ticks::new(began_ns, first), interval_ns, began_ns })
    }

    /// Makes records until the program ends.
    pub(super) fn collect(
        mut self,
        running: &Running,
        group: &mut Group,
        probes: Option<&mut dyn Counters>,
        shape: &Shape,
        partial: &mut Partial,
    ) -> Result<(Vec<Record>, End)> {
        let process = pidfd(running.pid())?;
        let (mut records, mut at, mut ended) = (Vec::new(), 0, false);
        while !ended {
            let mut on = [PollFd::new(&process, PollFlags::IN)];
            // A signal does not end the run: the program gets it too.
            let ready = poll(&mut on, Some(&LOOK_EVERY)).unwrap_or(0);
            ended = ready > 0;
            at += self.drain(at, |record| {
                let record = Record { values: shape.values(record.values), ..record };
                partial.record(&record);
                records.push(record);
            })?;
        }
        let last = totals(group, probes)?;
        let (record, end) = self.ticks.finish(now_ns(), last);
        records.push(Record { values: shape.values(record.values), ..record });
        Ok((records, End { totals: shape.totals(end.totals), ..end }))
    }

    /// Reads the ticks from byte `at` on, and returns how many bytes were read. The file is never
    /// emptied: a minute at a millisecond is 6 MB. The program has it open and could make it longer
    /// than any timer would, so the length is bounded.
    fn drain(&mut self, at: u64, mut take: impl FnMut(Record)) -> Result<u64> {
        let (size, now) = (self.ticks.bytes() as u64, now_ns());
        let unread = self.file.metadata()?.len().saturating_sub(at) / size;
        let ticks = (at / size).saturating_add(unread);
        let most = ticks_max(now.saturating_sub(self.began_ns), self.interval_ns);
        if ticks > most {
            let sentence = format!(
                "the program changed the file that its timer writes ticks to: {ticks} of them, and there was time for {most}, so nothing in it can be \
                 trusted and there is no trace: use --collector host"
            );
            return Err(Failure { status: exit::NEGATIVE, sentence }.into());
        }
        let mut bytes = vec![0; (unread * size) as usize];
        self.file.read_exact_at(&mut bytes, at).context("cannot read the ticks")?;
        bytes.chunks_exact(size as usize).filter_map(|tick| self.ticks.record(tick, now)).for_each(&mut take);
        Ok(unread * size)
    }
}

/// The most ticks of a timer in `elapsed_ns`. Each of several threads may write a tick that another
/// thread has begun.
fn ticks_max(elapsed_ns: u64, interval_ns: u64) -> u64 {
    const BESIDE: u64 = 1024;
    (elapsed_ns / interval_ns.max(1)).saturating_mul(2).saturating_add(BESIDE)
}

fn totals(group: &mut Group, probes: Option<&mut dyn Counters>) -> Result<Totals> {
    let mut totals = Totals { group: vec![0; group.metrics().len()], ..Totals::default() };
    totals.times = group.read(&mut totals.group).map_err(|error| anyhow!("{error}"))?;
    if let Some(probes) = probes {
        totals.words = vec![0; probes.metrics().len()];
        probes.read(&mut totals.words).map_err(|error| anyhow!("{error}"))?;
    }
    Ok(totals)
}

fn pidfd(pid: i32) -> Result<OwnedFd> {
    let pid = rustix::process::Pid::from_raw(pid).context("the program has no number")?;
    rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).context("cannot watch the program")
}

fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}
