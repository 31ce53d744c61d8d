//! Counters that the kernel reads and records by itself, in the program's threads: *samples*.
//!
//! **Problem.** Reading the counters of a running thread interrupts its processor, and so does
//! waking up for it; both cost far more than counting. **Idea.** Each thread's own clock overflows
//! after every interval that it was on a processor. The interrupt, which happens in that thread
//! anyway, writes the time, the thread and its running totals to a ring, one for each processor.
//! The collector reads the rings at any time. A sum over all threads is the sum of their latest
//! samples: it lags behind each by less than an interval of its time on a processor. The events of
//! a thread behind its last sample are only in the totals at the end ([`Counters::read`], exact
//! like that of a [`Group`](super::Group)).
//!
//! Every thread has the counters once for each processor, because the kernel has no ring for
//! inherited events that move between processors. **Leaves out** the instruction at which a sample
//! was taken. Source: perf_event_open(2); inherited counters in samples came with Linux 6.13.

use super::counters::{Counters, Times};
use super::event::{find, Event};
use super::perf::{self, word, Attributes, Period, Whose};
use super::ring::{Ring, RECORD_HEAD_BYTES};
use crate::trace::Metric;
use crate::Error;
use std::collections::HashMap;
use std::ffi::c_int;
use std::fs::File;

/// Kinds of the kernel's records: a thread has ended, a sample.
const EXIT: u32 = 4;
const SAMPLE: u32 = 9;

/// Words of a sample: thread, time, number of values, two times.
const SAMPLE_WORDS: usize = 5;

/// The running totals of a thread on one processor at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Nanoseconds of the monotonic clock.
    pub time_ns: u64,
    pub(crate) thread: u32,
    pub(crate) cpu: u32,
    /// The totals; `None` if the thread has ended, so that another thread may get its number.
    pub(crate) counted: Option<Counted>,
}

/// Running totals of a thread on one processor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) times: Times,
    pub(crate) totals: Vec<u64>,
}

/// Counters, once for each processor.
#[derive(Debug)]
pub struct Samples {
    cpus: Vec<Cpu>,
    metrics: Vec<Metric>,
    _anchor: Option<File>,
}

#[derive(Debug)]
struct Cpu {
    number: u32,
    /// The events of the processor; the first is the clock that sets the pace.
    counters: Vec<File>,
    ring: Ring,
}

impl Samples {
    /// Opens counters for `events`, to be sampled after each `period_ns` that a thread runs.
    ///
    /// # Errors
    /// The first event that cannot be counted, and why; or that the kernel does not sample
    /// inherited counters.
    pub fn open(events: &[&'static Event], whose: Whose, period_ns: u64) -> Result<Samples, Error> {
        let failed = |error| Error::io("have the kernel sample the program, which takes Linux 6.13", error);
        let mut cpus: Vec<Cpu> = Vec::new();
        let mut metrics = Vec::new();
        for number in online_cpus() {
            let (cpu, found) = Cpu::open(number, events, whose, period_ns, &failed)?;
            cpus.push(cpu);
            metrics = found;
        }
        let anchor = perf::anchor(whose).map_err(failed)?;
        Ok(Samples { cpus, metrics, _anchor: anchor })
    }

    /// Appends the samples that are in the rings, in no order.
    pub fn drain(&mut self, samples: &mut Vec<Sample>) {
        let count = self.metrics.len();
        for Cpu { number, ring, .. } in &mut self.cpus {
            ring.drain(|record| samples.extend(parse(record, *number, count)));
        }
    }
}

impl Cpu {
    fn open(
        number: u32,
        events: &[&'static Event],
        whose: Whose,
        period_ns: u64,
        failed: &dyn Fn(std::io::Error) -> Error,
    ) -> Result<(Cpu, Vec<Metric>), Error> {
        let cpu = number as c_int;
        let clock = find("task-clock")?;
        let open = |attributes: Attributes| attributes.open(whose.pid()?, cpu, None);
        let sampled = Attributes::sampled(clock, period_ns);
        let opened = match open(sampled) {
            Err(error) if perf::is_refusal(&error) => open(sampled.of_user()),
            opened => opened,
        };
        let mut counters = vec![opened.map_err(|error| match perf::is_refusal(&error) {
            true => perf::explain(clock, error),
            false => failed(error),
        })?];
        let ring = Ring::new(&counters[0])
            .map_err(|error| Error::io("map the kernel's samples (kernel.perf_event_mlock_kb)", error))?;
        let mut metrics = Vec::new();
        for event in events {
            let (file, reach) = perf::open_event(event, whose, cpu, counters.first(), Period::None)?;
            counters.push(file);
            metrics.push(Metric::new(event.name, event.source, reach));
        }
        Ok((Cpu { number, counters, ring }, metrics))
    }
}

impl Counters for Samples {
    fn metrics(&self) -> &[Metric] {
        &self.metrics
    }

    /// Reads all counters one by one, which is exact and far more expensive than a sample.
    fn read(&mut self, totals: &mut [u64]) -> Result<Times, Error> {
        let mut times = Times::default();
        totals.fill(0);
        for cpu in &mut self.cpus {
            let of_cpu = perf::one_by_one(&mut cpu.counters[1..], |index, value| totals[index] += value)
                .map_err(|error| Error::io("read the counters", error))?;
            // Events are enabled on all processors while a thread runs on one.
            times.enabled_ns = times.enabled_ns.max(of_cpu.enabled_ns);
            times.running_ns += of_cpu.running_ns;
        }
        Ok(times)
    }
}

/// Parses a record of the kernel; `None` if it is neither a sample nor the end of a thread.
fn parse(record: &[u8], cpu: u32, count: usize) -> Option<Sample> {
    let kind = u32::from_ne_bytes(record[..4].try_into().ok()?);
    let body = &record[RECORD_HEAD_BYTES..];
    match kind {
        SAMPLE if body.len() >= 8 * (SAMPLE_WORDS + 1 + count) && word(body, 2) == count as u64 + 1 => {
            let totals = (0..count).map(|index| word(body, SAMPLE_WORDS + 1 + index)).collect();
            let times = Times { enabled_ns: word(body, 3), running_ns: word(body, 4) };
            let counted = Some(Counted { times, totals });
            Some(Sample { time_ns: word(body, 1), thread: (word(body, 0) >> 32) as u32, cpu, counted })
        }
        // Process and its parent, thread and its parent, time.
        EXIT if body.len() >= 24 => {
            Some(Sample { time_ns: word(body, 2), thread: word(body, 1) as u32, cpu, counted: None })
        }
        _ => None,
    }
}

/// Sums over threads and processors, updated by samples in the order of their times.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    latest: HashMap<(u32, u32), Counted>,
    pub(crate) all: Counted,
}

impl Sums {
    pub(crate) fn new(first: Counted) -> Sums {
        Sums { latest: HashMap::new(), all: first }
    }

    pub(crate) fn add(&mut self, sample: &Sample) {
        let Some(now) = &sample.counted else {
            self.latest.retain(|&(thread, _), _| thread != sample.thread);
            return;
        };
        let latest = self.latest.entry((sample.thread, sample.cpu)).or_default();
        let is_another = now.times.enabled_ns < latest.times.enabled_ns;
        if is_another || latest.totals.is_empty() {
            *latest = Counted { times: Times::default(), totals: vec![0; now.totals.len()] };
        }
        for ((sum, now), last) in self.all.totals.iter_mut().zip(&now.totals).zip(&latest.totals) {
            *sum += now.saturating_sub(*last);
        }
        // A thread's counters are enabled on all processors while it runs on one.
        let ran_ns = now.times.running_ns.saturating_sub(latest.times.running_ns);
        self.all.times.enabled_ns += ran_ns;
        self.all.times.running_ns += ran_ns;
        latest.clone_from(now);
    }
}

/// The numbers of the processors that are online.
fn online_cpus() -> Vec<u32> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let ranges = text.trim().split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?)
    });
    let cpus: Vec<u32> = ranges.flatten().collect();
    if cpus.is_empty() {
        vec![0]
    } else {
        cpus
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(thread: u32, cpu: u32, ns: u64, total: u64) -> Sample {
        let times = Times { enabled_ns: ns, running_ns: ns };
        Sample { time_ns: ns, thread, cpu, counted: Some(Counted { times, totals: vec![total] }) }
    }

    #[test]
    fn sums_follow_each_thread_on_each_processor() {
        let mut sums = Sums::new(Counted { times: Times::default(), totals: vec![100] });
        let total = |sums: &Sums| sums.all.totals[0];
        sums.add(&sample(7, 0, 10, 5));
        sums.add(&sample(7, 1, 10, 3));
        sums.add(&sample(8, 0, 10, 1));
        assert_eq!(total(&sums), 109);
        sums.add(&sample(7, 0, 20, 9));
        assert_eq!((total(&sums), sums.all.times.enabled_ns), (113, 40));
        // It ends, and another thread gets its number.
        sums.add(&Sample { time_ns: 25, thread: 7, cpu: 1, counted: None });
        sums.add(&sample(7, 0, 30, 20));
        assert_eq!(total(&sums), 133);
        // A thread gets the number of one that ended, and no record says so.
        sums.add(&sample(8, 0, 5, 4));
        assert_eq!(total(&sums), 137);
    }

    #[test]
    fn records_are_read_and_others_left_out() {
        let record = |kind: u32, words: &[u64]| {
            let head = u64::from(kind) | ((8 + 8 * words.len() as u64) << 48);
            [head].iter().chain(words).flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>()
        };
        let words = [6 | 7 << 32, 1000, 3, 50, 40, 1_000_000, 11, 12];
        let found = parse(&record(SAMPLE, &words), 1, 2).unwrap();
        assert_eq!((found.time_ns, found.thread, found.cpu), (1000, 7, 1));
        assert_eq!(found.counted.unwrap().totals, [11, 12]);
        assert_eq!(parse(&record(SAMPLE, &words[..7]), 1, 2), None);
        assert_eq!(parse(&record(SAMPLE, &words), 1, 3), None);
        let gone = parse(&record(EXIT, &[6 | 1 << 32, 7 | 6 << 32, 2000, 0]), 0, 2).unwrap();
        assert_eq!((gone.thread, gone.time_ns, gone.counted), (7, 2000, None));
        assert_eq!(parse(&record(2, &words), 0, 2), None);
        assert!(!online_cpus().is_empty());
    }
}
