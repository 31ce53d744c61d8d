//! `lightfoot doctor --measure`: what chases over memory say about this machine's caches and TLBs,
//! beside what it reports.
//!
//! The description that results is kept as the machine `measured`. Where the machine is busy
//! nothing is kept, and a former description stays.

use crate::run::named::{keep, MEASURED};
use anyhow::Result;
use machine::{Machine, Origin};
use measure::chase::{self, Described, Findings, Level, Refusal, Spread};
use present::date::today;
use present::terminal::beside;
use serde::Serialize;
use std::path::{Path, PathBuf};

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
        Err(refusal) => Measurement::refused(&refusal),
    }
}

impl Measurement {
    fn refused(refusal: &Refusal) -> Measurement {
        Measurement {
            refused: Some(refusal.to_string()),
            findings: None,
            levels: Vec::new(),
            remarks: Vec::new(),
            machine: None,
        }
    }

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

    /// Keeps the description, where there is one; `None` if nothing was measured.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn keep(&self) -> Result<Option<PathBuf>> {
        self.machine.as_ref().map(keep).transpose()
    }

    /// The answer for people.
    pub(super) fn text(&self) -> String {
        let (Some(findings), Some(machine)) = (&self.findings, &self.machine) else {
            let why = self.refused.as_deref().unwrap_or_default();
            return beside("", &format!("Nothing was measured, and nothing is kept: {why}."));
        };
        let mut out = beside("", &format!("{} in {:.1} s", machine.description, findings.wall_s));
        out += &Row::line("level", "measured", "reported", "ns", "quartiles", "cycles");
        out.extend(self.levels.iter().map(Row::text));
        out += &totals(findings);
        for remark in &self.remarks {
            out += &beside("- ", remark);
        }
        out
    }
}

/// Says where a description was kept.
pub(super) fn kept(path: &Path) -> String {
    beside("", &format!("Kept as --machine {MEASURED}, in {}.", path.display()))
}

impl Row {
    fn line(name: &str, measured: &str, reported: &str, time: &str, quartiles: &str, cycles: &str) -> String {
        let line =
            format!("  {name:<9} {measured:<10} {reported:<20} {time:>7}  {quartiles:<17} {cycles:>7}");
        line.trim_end().to_owned() + "\n"
    }

    fn text(&self) -> String {
        let measured = self.measured.map_or("-".into(), |measure| self.size(measure.size));
        let note = if self.reported_origin == Origin::Assumed { " (assumed)" } else { "" };
        let reported = self.size(self.reported) + note;
        // What a TLB costs is added to what a load takes.
        let sign = if self.is_tlb() { "+" } else { "" };
        let of = |text: &dyn Fn(Spread) -> String| self.nanoseconds.map_or("-".into(), text);
        let time = of(&|time| format!("{sign}{:.2}", time.median));
        let quartiles = of(&|time| format!("{:.2} to {:.2}", time.low, time.high));
        let cycles = self.cycles.map_or("-".into(), |cycles| format!("{sign}{cycles:.1}"));
        Row::line(&self.name, &measured, &reported, &time, &quartiles, &cycles)
    }

    fn is_tlb(&self) -> bool {
        self.name.contains("TLB")
    }

    fn size(&self, size: u64) -> String {
        let kib = size as f64 / 1024.0;
        match self.is_tlb() {
            true => size.to_string(),
            false if kib >= 1024.0 => format!("{} MiB", kib / 1024.0),
            false => format!("{kib} KiB"),
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

#[cfg(test)]
mod tests {
    use super::*;
    use measure::chase::Measure;

    fn row(name: &str, reported: u64, size: Option<u64>, median: f64) -> Row {
        let agrees = size == Some(reported);
        Row {
            name: name.into(),
            reported,
            reported_origin: Origin::Assumed,
            measured: size.map(|size| Measure { size, begins: size, ends: 2 * size, agrees }),
            nanoseconds: Some(Spread { low: median, median, high: 2.0 * median }),
            cycles: Some(4.0 * median),
        }
    }

    #[test]
    fn rows_fit_80_columns_and_say_what_was_reported() {
        let first = row("L1D", 48 << 10, Some(32 << 10), 1.25).text();
        assert_eq!(first, "  L1D       32 KiB     48 KiB (assumed)        1.25  1.25 to 2.50          5.0\n");
        let last = row("L3", 480 << 20, None, 123.456).text();
        assert!(last.contains(" -          480 MiB (assumed) ") && last.chars().count() <= 81, "{last}");
        let tlb = row("L2 DTLB", 2048, Some(4096), 1.5).text();
        assert!(tlb.contains("  4096       2048 (assumed)         +1.50 "), "{tlb}");
    }

    #[test]
    fn a_refusal_is_a_sentence() {
        let busy = Refusal::Busy { why: "so it is".into() };
        let refused = Measurement::refused(&busy);
        let said = refused.text().split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(
            said,
            "Nothing was measured, and nothing is kept: the machine is busy: so it is; measure again when nothing \
             else runs."
        );
        assert!(refused.keep().unwrap().is_none());
    }
}
