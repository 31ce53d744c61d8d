//! Writes the results: a page with Table 1, the paper's sentences, the verdicts and the controls,
//! and tables for programs.

use super::claim::largest_relation;
use super::findings::{Answer, Curve, Findings, Kind, Measured, Native, Point, Power};
use super::trace::{MACHINE, METRICS};
use crate::host::host;
use crate::layout::Spread;
use crate::options::Effort;
use crate::outcome::{table, Claim};
use std::fmt::Write;

fn effort(findings: &Findings) -> &'static str {
    match findings.effort {
        Effort::Quick => "quick",
        Effort::Full => "full",
    }
}

/// The page.
pub(super) fn page(findings: &Findings, claims: &[Claim], plots: &[String]) -> String {
    let mut out = format!(
        "# lightfoot study perturbation, {}\n\nMytkowicz, Diwan, Hauswirth, Sweeney 2007, again: unmodified programs of Debian on a simulated {MACHINE}; \
         {} study, lightfoot {}, on {}. Metrics: {METRICS}. Functions are counted by probes, one more at a time, from the rarest to the most frequent; \
         counters lie a page apart; {} layouts (environments of different lengths) of every number of metrics. Simulated figures repeat but for the few \
         instructions with which a program prints the time.\n\n",
        findings.date,
        effort(findings),
        env!("CARGO_PKG_VERSION"),
        host(),
        findings.layouts,
    );
    out += "## The paper's sentences\n\n";
    out += &table(claims);
    table_1(&mut out, findings);
    verdicts(&mut out, findings);
    natively(&mut out, findings);
    findings.power.iter().for_each(|found| power(&mut out, found));
    layout_alone(&mut out, findings);
    statistics(&mut out, findings);
    out += "\n## Plots\n\n";
    plots.iter().for_each(|name| out += &format!("![{name}]({name})\n\n"));
    out
}

fn table_1(out: &mut String, findings: &Findings) {
    *out += "\n## Table 1\n\n| program | stands for | what it does | package | input | instructions | interval, cycles | records | \
             median of a record's L1, L2, TLB, branch misses |\n|---|---|---|---|---:|---:|---:|---:|---|\n";
    for curve in &findings.curves {
        let (of, calibration, baseline) = (curve.subject, &curve.calibration, &curve.baseline);
        let medians: Vec<String> =
            // The first metric is the number of instructions; the column is about misses.
            baseline.medians.iter().skip(1).map(|(_, median)| format!("{median:.0}")).collect();
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            of.name,
            of.stands_for,
            of.about,
            of.package,
            curve.size,
            calibration.instructions,
            calibration.interval_cycles,
            baseline.records,
            medians.join(", ")
        );
    }
    findings.missing.iter().for_each(|reason| *out += &format!("\nNot measured: {reason}.\n"));
    *out += "\nMetrics, with their calls in a run without instrumentation:\n\n";
    for curve in &findings.curves {
        let chosen = curve.calibration.chosen.iter();
        let chosen: Vec<String> = chosen
            // A vertical bar in the name of a function would end the cell of the table.
            .map(|called| format!("`{}` {}", called.metric.replace('|', "\\|"), called.calls))
            .collect();
        let _ = writeln!(out, "- {}: {}", curve.subject.name, chosen.join(", "));
    }
    for curve in &findings.curves {
        let mut notes: Vec<&String> = curve.points.iter().flat_map(|point| &point.notes).collect();
        // Many points give the same note, which is written once for each program.
        notes.sort_unstable();
        notes.dedup();
        notes.iter().for_each(|note| *out += &format!("- {}: note: {note}\n", curve.subject.name));
    }
}

fn verdicts(out: &mut String, findings: &Findings) {
    *out += "\n## Verdicts\n\nComparisons (ten inner, five outer) that are disturbed / cannot be told. The last column is \
             about uncharged metrics, which add nothing to the program.\n\n\
             | program | metrics | added instructions | inner | outer | largest inner change | largest change with a software metric |\n\
             |---|---:|---:|---:|---:|---|---|\n";
    for curve in &findings.curves {
        for (point, note) in
            curve.points.iter().map(|p| (p, "")).chain(curve.packed.iter().map(|p| (p, ", packed")))
        {
            *out += &verdict_row(curve, point, note);
        }
    }
}

fn verdict_row(curve: &Curve, point: &Point, note: &str) -> String {
    let both = |kind| {
        format!("{} / {}", point.count(kind, Answer::Disturbed), point.count(kind, Answer::CannotTell))
    };
    let inner = point.kind(Kind::Inner).filter_map(|one| Some((one, one.difference()?)));
    let largest = inner.max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
    let largest =
        largest.map_or(String::new(), |(one, change)| format!("{} {change:+.2}", one.metrics.join(" – ")));
    let software = largest_relation(point).map_or(String::new(), |relation| {
        format!("{} – {} {:+.2}", relation.software, relation.hardware, relation.change())
    });
    format!(
        "| {} | {}{note} | {:+.3} % | {} | {} | {largest} | {software} |\n",
        curve.subject.name,
        point.metrics,
        point.added_percent,
        both(Kind::Inner),
        both(Kind::Outer)
    )
}

fn natively(out: &mut String, findings: &Findings) {
    *out += "\n## Without a simulator\n\nThe same programs with larger inputs, five ways in turns, each in the same layouts. Verdicts compare the \
             metrics of the kernel, and of the processor where it shows them, with the runs that only the kernel observes.\n\n\
             | program | way | seconds | beside the first | records | missed ticks | calls counted | disturbed / cannot be told |\n\
             |---|---|---|---:|---:|---:|---:|---|\n";
    for curve in &findings.curves {
        let Some(native) = &curve.native else { continue };
        native.measured.iter().for_each(|measured| *out += &native_row(curve.subject.name, native, measured));
    }
    *out += "\nRelations between the most frequent software metrics, as each way sees them: median and spread of ρ.\n\n";
    for curve in &findings.curves {
        let Some(native) = &curve.native else { continue };
        let ways = native.measured.iter().filter(|measured| !measured.relations.is_empty());
        for measured in ways {
            let all: Vec<String> =
                measured.relations.iter().map(|(pair, spread)| format!("{pair} {spread:.2}")).collect();
            let _ = writeln!(out, "- {}, {}: {}", curve.subject.name, measured.mechanism, all.join("; "));
        }
    }
}

fn native_row(program: &str, native: &Native, measured: &Measured) -> String {
    if let Some(reason) = &measured.refused {
        return format!("| {program} | {} | {reason} | | | | | |\n", measured.mechanism);
    }
    let first = native.measured.first().and_then(|first| first.seconds);
    let beside = first
        .zip(measured.seconds)
        .map_or(String::new(), |(first, own)| format!("{:+.1} %", 100.0 * (own.median / first.median - 1.0)));
    let verdict = match &measured.compared {
        Err(reason) => reason.clone(),
        Ok(point) => {
            let of = |answer| point.count(Kind::Inner, answer) + point.count(Kind::Outer, answer);
            format!("{} / {} of {}", of(Answer::Disturbed), of(Answer::CannotTell), point.comparisons.len())
        }
    };
    format!(
        "| {program} | {} | {} | {beside} | {} | {} | {} | {verdict} |\n",
        measured.mechanism,
        measured.seconds.map_or(String::new(), |seconds| format!("{seconds:.3}")),
        measured.records,
        measured.missed_ticks,
        measured.calls.values().sum::<u64>(),
    )
}

fn power(out: &mut String, found: &Power) {
    let _ = write!(
        out,
        "\n## Power\n\nReal runs of {} without instrumentation, drawn anew {} times as {} baselines and some runs; in the runs a share of the \
         records has its L2 misses shuffled. Share of the draws that is called disturbed:\n\n| runs |",
        found.program, found.experiments, found.baselines
    );
    let Some(first) = found.curves.first() else { return };
    first.points.iter().for_each(|(change, _)| *out += &format!(" ρ changes by {change:.2} |"));
    *out += "\n|---:|";
    first.points.iter().for_each(|_| *out += "---:|");
    *out += "\n";
    for curve in &found.curves {
        let _ = write!(out, "| {} |", curve.runs);
        curve.points.iter().for_each(|(_, share)| *out += &format!(" {:.0} % |", 100.0 * share));
        *out += "\n";
    }
}

/// The environment's length, which is no instrumentation.
fn layout_alone(out: &mut String, findings: &Findings) {
    *out += "\n## Layout alone\n\nρ of L1 and L2 misses without any instrumentation: median (least to most) over environments of different \
             lengths, and over runs in one layout that differ by simulated noise.\n\n| program | layouts | noise |\n|---|---|---|\n";
    for curve in &findings.curves {
        let shown = |pairs: &[[Option<f64>; 2]]| {
            let known: Option<Vec<f64>> = pairs.iter().map(|pair| pair[0]).collect();
            known
                .and_then(|known| Spread::of(&known))
                .map_or("undefined".into(), |spread| format!("{spread:.3}"))
        };
        let (layouts, noise) = (shown(&curve.baseline.layouts), shown(&curve.baseline.noise));
        let _ = writeln!(out, "| {} | {layouts} | {noise} |", curve.subject.name);
    }
}

/// The statistics on synthetic runs.
fn statistics(out: &mut String, findings: &Findings) {
    let found = &findings.synthetic;
    let percent = |count: usize| 100.0 * count as f64 / found.experiments.max(1) as f64;
    let _ = writeln!(
        out,
        "\n## The statistics\n\nFive synthetic baselines and five runs of 3000 records each, {} times, seed {}. Called disturbed: {:.1} % without an effect (5 % are allowed), {:.1} % where ρ falls from .8 \
         to .2 in a third of the records (95 % are asked for), {:.1} % where it falls to .78 (5 % are allowed).",
        found.experiments,
        found.seed,
        percent(found.without_effect),
        percent(found.planted),
        percent(found.small)
    );
}

/// For programs.
pub(super) fn json(findings: &Findings) -> serde_json::Value {
    let curve = |curve: &Curve| {
        serde_json::json!({
            "program": curve.subject.name,
            "stands_for": curve.subject.stands_for,
            "size": curve.size,
            "calibration": curve.calibration,
            "baseline": curve.baseline,
            "points": curve.points,
            "packed": curve.packed,
            "native": curve.native,
        })
    };
    serde_json::json!({
        "schema": 2,
        "date": findings.date,
        "effort": effort(findings),
        "version": env!("CARGO_PKG_VERSION"),
        "machine": MACHINE,
        "layouts": findings.layouts,
        "programs": findings.curves.iter().map(curve).collect::<Vec<_>>(),
        "missing": findings.missing,
        "power": findings.power,
        "synthetic": findings.synthetic,
    })
}

/// For spreadsheets.
pub(super) fn csv(findings: &Findings) -> String {
    let mut out =
        String::from("program,metrics,spacing,added_percent,kind,metric,with,baseline,run,p,verdict\n");
    for curve in &findings.curves {
        // The column `spacing` tells packed points from the others.
        for point in curve.points.iter().chain(&curve.packed) {
            for one in &point.comparisons {
                let kind = if one.kind == Kind::Inner { "inner" } else { "outer" };
                // What was not measured is an empty field and never 0.
                let number = |x: Option<f64>| x.map_or(String::new(), |x| format!("{x:.6}"));
                let answer = match one.answer {
                    Answer::Undisturbed => "undisturbed",
                    Answer::Disturbed => "disturbed",
                    Answer::CannotTell => "cannot tell",
                };
                let _ = writeln!(
                    out,
                    "{},{},{},{:.5},{kind},{},{},{},{},{},{answer}",
                    curve.subject.name,
                    point.metrics,
                    point.spacing,
                    point.added_percent,
                    one.metrics[0],
                    one.metrics[1],
                    number(one.baseline),
                    number(one.run),
                    number(one.p),
                );
            }
        }
    }
    out
}
