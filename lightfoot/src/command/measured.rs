//! `lightfoot doctor --measure`: what chases over memory say about this machine's caches and TLBs,
//! beside what it reports.
//!
//! The description that results is kept as the machine `measured`. Where the machine is busy
//! nothing is kept, and a former description stays.

use crate::run::named::{keep, MEASURED};
use anyhow::Result;
use machine::{Machine, Origin};
use measure::chase::{self, Described, Findings, Level, Spread};
use present::date::today;
use present::exit::NEGATIVE;
use present::terminal::beside;
use serde::Serialize;
use std::fmt::Write;

/// The answer, as JSON has it.
#[derive(Debug, Serialize)]
pub(super) struct Measurement {
    /// Why nothing was measured; null if it was.
    refused: Option<String>,
    /// What was timed.
    findings: Option<Findings>,
    /// Each data cache and data TLB beside its report.
    levels: Vec<Row>,
    /// Sentences: contradictions, and what could not be measured.
    remarks: Vec<String>,
    /// The description that is kept.
    machine: Option<Machine>,
}

/// A level as reported and as measured.
#[derive(Debug, Serialize)]
struct Row {
    name: String,
    /// Bytes of a cache, entries of a TLB.
    reported: u64,
    reported_origin: Origin,
    measured: Option<chase::Measure>,
    nanoseconds: Option<Spread>,
    cycles: Option<f64>,
}

/// Measures this machine.
pub(super) fn measure() -> Measurement {
    match chase::measure() {
        Ok(findings) => {
            let described = chase::describe(&Machine::host(), &findings, &today());
            Measurement::of(findings, described)
        }
        Err(refusal) => Measurement {
            refused: Some(refusal.to_string()),
            findings: None,
            levels: Vec::new(),
            remarks: Vec::new(),
            machine: None,
        },
    }
}

impl Measurement {
    fn of(findings: Findings, described: Described) -> Measurement {
        let Described { machine, levels, remarks } = described;
        let row = |level: Level| Row {
            cycles: level.nanoseconds.map(|time| time.median / findings.cycle_ns.median),
            name: level.name,
            reported: level.reported,
            reported_origin: level.origin,
            measured: level.measured,
            nanoseconds: level.nanoseconds,
        };
        let levels = levels.into_iter().map(row).collect();
        Measurement { refused: None, findings: Some(findings), levels, remarks, machine: Some(machine) }
    }

    /// Keeps the description, where there is one, and returns the exit status.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn keep(&self) -> Result<u8> {
        let Some(machine) = &self.machine else { return Ok(NEGATIVE) };
        keep(machine)?;
        Ok(0)
    }

    /// The answer for people.
    pub(super) fn text(&self) -> String {
        let (Some(findings), Some(machine)) = (&self.findings, &self.machine) else {
            let why = self.refused.as_deref().unwrap_or_default();
            return beside("", &format!("Nothing was measured, and nothing is kept: {why}."));
        };
        let mut out = beside("", &format!("{} in {:.1} s", machine.description, findings.wall_s));
        for row in &self.levels {
            let _ = writeln!(out, "  {:<9} {}", row.name, row.text().trim_end());
        }
        out += &totals(findings);
        for remark in &self.remarks {
            out += &beside("", remark);
        }
        let kept = format!("Kept as --machine {MEASURED}; lightfoot machines {MEASURED} shows all of it.");
        out + &beside("", &kept)
    }
}

impl Row {
    fn text(&self) -> String {
        let word = if self.reported_origin == Origin::Assumed { "assumed" } else { "reported" };
        let (size, beside) = match self.measured {
            None => (self.reported, format!("{word}, not measured")),
            Some(measure) if measure.agrees => (measure.size, format!("measured, as {word}")),
            Some(measure) => (measure.size, format!("measured, {} {word}", self.size(self.reported))),
        };
        let sign = if self.name.contains("TLB") { "+" } else { "" };
        let time = self.nanoseconds.zip(self.cycles).map(|(time, cycles)| {
            let quartiles = format!("({:.2} to {:.2})", time.low, time.high);
            format!("{sign}{:.2} ns {quartiles}, {cycles:.1} cycles", time.median)
        });
        format!("{:>12} {beside:<23} {}", self.size(size), time.unwrap_or_default())
    }

    fn size(&self, size: u64) -> String {
        if self.name.contains("TLB") {
            return format!("{size} entries");
        }
        let kib = size as f64 / 1024.0;
        if kib >= 1024.0 {
            format!("{} MiB", kib / 1024.0)
        } else {
            format!("{kib} KiB")
        }
    }
}

/// What belongs to no level: the clock, lines, memory, and what one thread reads.
fn totals(findings: &Findings) -> String {
    let Findings { cycle_ns, line_bytes, largest, read_bytes_per_s: read, .. } = findings;
    let line = line_bytes.map_or("not measured".into(), |bytes| format!("{bytes} B"));
    let gigabytes = |bytes: f64| bytes / 1e9;
    let rows = [
        ("clock", format!("{:.2} GHz", 1.0 / cycle_ns.median)),
        ("line", line),
        (
            "memory",
            format!(
                "{:.0} ns ({:.0} to {:.0}) a load from {} MiB",
                largest.nanoseconds.median,
                largest.nanoseconds.low,
                largest.nanoseconds.high,
                largest.bytes >> 20
            ),
        ),
        (
            "reading",
            format!(
                "{:.1} GB/s ({:.1} to {:.1}) by one thread",
                gigabytes(read.median),
                gigabytes(read.low),
                gigabytes(read.high)
            ),
        ),
    ];
    rows.iter().map(|(name, value)| format!("  {name:<9} {value}\n")).collect()
}
