//! What Cameron et al. say of bit-parallel matching, each sentence held against this run.
//!
//! The copy of the paper at hand has its figures without numbers, so the sentences are those of its
//! abstract and of what the figures' axes show: instructions and branch misses per byte. Branch
//! misses need counters that many machines hide; conditional branches bound them from above.

use super::findings::Row;
use super::width::Width;
use crate::outcome::{Claim, Verdict};
use crate::race::geometric_mean;

/// Greps of the kinds that the paper names: automata and backtracking.
const TRADITIONAL: &[&str] = &["GNU grep", "agrep"];

/// What the sentences are held against.
const MEASURED: &str = "whole commands that count matching lines";

/// All sentences.
pub(super) fn check(rows: &[Row], widths: &[Width]) -> Vec<Claim> {
    vec![faster(rows), steady(rows), branches(rows), wider(widths)]
}

fn speed(row: &Row, contender: &str) -> Option<f64> {
    row.timings.iter().find(|timing| timing.contender == contender)?.gigabytes_per_second
}

fn faster(rows: &[Row]) -> Claim {
    let mut details = Vec::new();
    let mut means = Vec::new();
    for peer in TRADITIONAL {
        let ratios: Vec<f64> =
            rows.iter().filter_map(|row| Some(speed(row, "lightfoot")? / speed(row, peer)?)).collect();
        match geometric_mean(&ratios) {
            Some(mean) => {
                details.push(format!("{mean:.1} times {peer} over {} patterns", ratios.len()));
                means.push(mean);
            }
            None => details.push(format!("{peer} not measured")),
        }
    }
    Claim {
        place: "Abstract",
        sentence:
            "matching bits in parallel is substantially faster than greps of automata (here: at least twice)",
        measured: MEASURED.into(),
        verdict: Verdict::of((!means.is_empty()).then(|| means.iter().all(|mean| *mean >= 2.0))),
        extent: String::new(),
        spread: String::new(),
        detail: details.join(", "),
    }
}

/// Rows that ran on bit streams, with a figure per byte.
fn per_byte(rows: &[Row], of: impl Fn(&Row) -> Option<f64>) -> Vec<(&str, f64)> {
    rows.iter().filter(|row| row.engine == "streams").filter_map(|row| Some((row.family, of(row)?))).collect()
}

fn extremes(values: &[(&str, f64)]) -> Option<[(String, f64); 2]> {
    let by = |a: &&(&str, f64), b: &&(&str, f64)| a.1.total_cmp(&b.1);
    let owned = |(name, value): &(&str, f64)| ((*name).to_owned(), *value);
    Some([values.iter().min_by(by).map(owned)?, values.iter().max_by(by).map(owned)?])
}

fn steady(rows: &[Row]) -> Claim {
    let found = extremes(&per_byte(rows, |row| row.per_byte.instructions));
    Claim {
        place: "Figure 8",
        sentence: "instructions per byte depend little on the pattern (here: within a factor of three)",
        measured: MEASURED.into(),
        verdict: Verdict::of(found.as_ref().map(|[least, most]| most.1 <= 3.0 * least.1)),
        extent: String::new(),
        spread: String::new(),
        detail: found.map_or(String::from("not counted"), |[least, most]| {
            format!("{:.2} ({}) to {:.2} ({})", least.1, least.0, most.1, most.0)
        }),
    }
}

fn branches(rows: &[Row]) -> Claim {
    let found = extremes(&per_byte(rows, |row| row.per_byte.branches));
    Claim {
        place: "Figure 10",
        sentence: "hardly a branch is mispredicted (here: less than one conditional branch in twenty bytes)",
        measured: MEASURED.into(),
        verdict: Verdict::of(found.as_ref().map(|[_, most]| most.1 < 0.05)),
        extent: String::new(),
        spread: String::new(),
        detail: found.map_or(String::from("not counted"), |[_, most]| {
            format!("at most {:.3} conditional branches per byte ({})", most.1, most.0)
        }),
    }
}

fn wider(widths: &[Width]) -> Claim {
    let ratios: Vec<f64> =
        widths.iter().filter_map(|width| Some(width.wide_gb_per_s? / width.narrow_gb_per_s?)).collect();
    let mean = geometric_mean(&ratios);
    Claim {
        place: "Abstract",
        sentence:
            "the algorithms scale with wider vectors (here: 512 bits at least 1.3 times as fast as 256)",
        measured: MEASURED.into(),
        verdict: Verdict::of(mean.map(|mean| mean >= 1.3)),
        extent: String::new(),
        spread: String::new(),
        detail: mean.map_or(String::from("this machine lacks AVX2 or AVX-512"), |mean| {
            format!("{mean:.2} times, geometric mean over {} patterns in memory", ratios.len())
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::findings::{PerByte, Timing};
    use super::*;

    fn row(ours: f64, theirs: Option<f64>, instructions: f64, branches: f64) -> Row {
        let timing = |contender, speed| Timing {
            contender,
            command: String::new(),
            gigabytes_per_second: speed,
            missing: None,
        };
        Row {
            family: "family",
            pattern: "p",
            engine: "streams".into(),
            lines: 1,
            timings: vec![timing("lightfoot", Some(ours)), timing("GNU grep", theirs)],
            per_byte: PerByte { instructions: Some(instructions), branches: Some(branches), missing: None },
        }
    }

    fn width(narrow: f64, wide: f64) -> Width {
        Width { family: "family", narrow_gb_per_s: Some(narrow), wide_gb_per_s: Some(wide) }
    }

    fn verdicts(rows: &[Row], widths: &[Width]) -> Vec<Verdict> {
        check(rows, widths).iter().map(|claim| claim.verdict).collect()
    }

    #[test]
    fn each_sentence_can_hold_and_can_fail() {
        let good = [row(4.0, Some(1.0), 0.4, 0.01), row(4.0, Some(1.5), 0.8, 0.02)];
        assert_eq!(verdicts(&good, &[width(1.0, 1.5)]), [Verdict::Holds; 4]);
        let bad = [row(1.0, Some(1.0), 0.4, 0.5), row(1.0, Some(1.0), 4.0, 0.5)];
        assert_eq!(verdicts(&bad, &[width(1.0, 1.1)]), [Verdict::Fails; 4]);
    }

    #[test]
    fn what_was_not_measured_decides_nothing() {
        assert_eq!(verdicts(&[], &[]), [Verdict::NotMeasured; 4]);
        assert_eq!(verdicts(&[row(4.0, None, 0.4, 0.01)], &[])[0], Verdict::NotMeasured);
    }
}
