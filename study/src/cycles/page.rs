//! The study's results as files: a page, data, a table and a plot.

use super::experiment::COMMAND;
use super::findings::{families, Findings, Predictor, Quality, Row, APART, BAR, ESTIMATE, PREDICTORS};
use crate::host::dated;
use crate::outcome::write_files;
use anyhow::Result;
use plot::scatter::{scatter, Cloud, Scatter};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Writes all of them; gives their paths and the page.
///
/// # Errors
/// When a file cannot be written.
pub(super) fn write(findings: &Findings, folder: &Path) -> Result<(Vec<PathBuf>, String)> {
    let stem = format!("cycles-{}", dated(&findings.date));
    let page = page(findings) + &format!("\n![Estimated and measured times]({stem}.svg)\n");
    let files = [
        (".md", page.clone()),
        (".json", serde_json::to_string(findings)? + "\n"),
        (".csv", csv(findings)),
        (".svg", plot(findings)),
    ];
    Ok((write_files(folder, &stem, files)?, page))
}

fn page(findings: &Findings) -> String {
    let mut out = format!(
        "# lightfoot study cycles, {}\n\nEstimated cycles beside the times of {} variants of small kernels; {} study, \
         lightfoot {}, on {}.\n\n",
        findings.date,
        findings.rows.len(),
        findings.effort,
        findings.version,
        findings.host
    );
    let _ = writeln!(
        out,
        "A variant is a process of its own. Natively its time is the least of several rounds of several processes, \
         which take turns with those of the other variants; under the engine one pass of it is counted, by \
         `{COMMAND}`. Both leave preparation and a pass that warms the caches up outside. Values are those of an \
         operation: an element, a look-up.\n"
    );
    let _ = writeln!(
        out,
        "Of each family the first, third, fifth variant and so on are for fitting: constants of the estimate were \
         looked at on them alone, and the one scale of each rule, nanoseconds per predicted unit, is the middle of \
         their ratios. The others judge. Pairs of a family count where their times differ by more than {:.0} %.",
        100.0 * APART
    );
    qualities(&mut out, findings);
    bar(&mut out, findings);
    by_family(&mut out, findings);
    variants(&mut out, findings);
    out
}

fn qualities(out: &mut String, findings: &Findings) {
    *out +=
        "\n## Rules\n\n| rule | half | variants | Spearman | pairs in order | median error | ns per unit |\n\
             |---|---|---:|---:|---:|---:|---:|\n";
    for verdict in &findings.verdicts {
        let halves = [("all", verdict.all), ("fitting", verdict.fitting), ("judging", verdict.judging)];
        for (half, quality) in halves {
            let Some(quality) = quality else { continue };
            let _ = writeln!(
                out,
                "| {} | {half} | {} | {} | {:.4} |",
                verdict.predictor,
                quality.variants,
                figures(&quality),
                verdict.scale_ns
            );
        }
    }
    *out += "\n";
    for predictor in PREDICTORS {
        let _ = writeln!(out, "- **{}**: {}.", predictor.name, predictor.about);
    }
}

fn figures(quality: &Quality) -> String {
    format!(
        "{:.3} | {:.1} % of {} | {:.0} %",
        quality.spearman,
        quality.pairs_percent(),
        quality.pairs,
        quality.median_error_percent
    )
}

fn bar(out: &mut String, findings: &Findings) {
    let verdict = findings.verdicts.iter().find(|verdict| verdict.predictor == ESTIMATE);
    let Some((verdict, all)) = verdict.and_then(|verdict| Some((verdict, verdict.all?))) else { return };
    *out +=
        "\n## The bar\n\n| figure of the estimate | bar | all | judging half | |\n|---|---:|---:|---:|---|\n";
    let judging = verdict.judging.unwrap_or(all);
    let values = |quality: &Quality| {
        [
            format!("{:.3}", quality.spearman),
            format!("{:.1} %", quality.pairs_percent()),
            format!("{:.0} %", quality.median_error_percent),
        ]
    };
    let names = ["Spearman's rank correlation", "pairs of a family in order", "median error"];
    let bars = [format!("≥ {:.2}", BAR[0]), format!("≥ {:.0} %", BAR[1]), format!("≤ {:.0} %", BAR[2])];
    let (of_all, of_judging) = (values(&all), values(&judging));
    for place in 0..names.len() {
        let holds = all.reaches()[place] && judging.reaches()[place];
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} |",
            names[place],
            bars[place],
            of_all[place],
            of_judging[place],
            if holds { "holds" } else { "**fails**" }
        );
    }
}

fn estimate() -> &'static Predictor {
    &PREDICTORS[PREDICTORS.len() - 1]
}

/// Nanoseconds of a unit of the estimate.
fn scale_ns(findings: &Findings) -> f64 {
    let verdict = findings.verdicts.iter().find(|verdict| verdict.predictor == ESTIMATE);
    verdict.map_or(f64::NAN, |verdict| verdict.scale_ns)
}

fn by_family(out: &mut String, findings: &Findings) {
    *out += "\n## Families\n\n| family | variants | pairs | ";
    *out += &PREDICTORS.iter().map(|predictor| predictor.name).collect::<Vec<_>>().join(" | ");
    *out += " |\n|---|---:|---:|";
    *out += &"---:|".repeat(PREDICTORS.len());
    *out += "\n";
    let rows: Vec<&Row> = findings.rows.iter().collect();
    for family in families(&rows) {
        let own: Vec<&Row> = rows.iter().filter(|row| row.family == family).copied().collect();
        let measured: Vec<f64> = own.iter().map(|row| row.measured()).collect();
        let of = |predictor: &Predictor| {
            let predicted: Vec<f64> = own.iter().map(|row| row.predicted(predictor)).collect();
            super::statistics::pairs(&predicted, &measured, APART)
        };
        let right: Vec<String> = PREDICTORS.iter().map(|predictor| of(predictor).0.to_string()).collect();
        let all = of(estimate()).1;
        let _ = writeln!(out, "| {family} | {} | {all} | {} |", own.len(), right.join(" | "));
    }
    *out += "\nNumbers of pairs in the right order.\n";
}

fn variants(out: &mut String, findings: &Findings) {
    let scale = scale_ns(findings);
    *out += "\n## Variants\n\nNanoseconds of an operation; parts of the estimate of at least a tenth.\n\n\
             | variant | half | measured | estimated | error | instructions | parts |\n|---|---|---:|---:|---:|---:|---|\n";
    for row in &findings.rows {
        let (measured, estimated) = (row.measured(), scale * row.predicted(estimate()));
        let whole = row.counted.estimated.max(1.0);
        let share = |(name, cycles): &(String, f64)| {
            (*cycles >= 0.1 * whole).then(|| format!("{name} {:.0} %", 100.0 * cycles / whole))
        };
        let parts: Vec<String> = row.counted.parts.iter().filter_map(share).collect();
        let _ = writeln!(
            out,
            "| {} | {} | {measured:.3} | {estimated:.3} | {:+.0} % | {:.2} | {} |",
            row.name,
            row.half.shown(),
            100.0 * (estimated / measured - 1.0),
            row.counted.instructions / row.operations as f64,
            parts.join(", ")
        );
    }
}

/// A line for each variant; values are those of a pass.
fn csv(findings: &Findings) -> String {
    let mut out = String::from(
        "variant,family,half,operations,least_ns,median_ns,instructions,l1_misses,last_misses,declared,estimated,parts\n",
    );
    for row in &findings.rows {
        let parts: Vec<String> =
            row.counted.parts.iter().map(|(name, cycles)| format!("{name} {cycles:.0}")).collect();
        let counted = &row.counted;
        let _ = writeln!(
            out,
            "{},{},{},{},{:.1},{:.1},{},{},{},{},{},{}",
            present::csv::field(&row.name),
            row.family,
            row.half.shown(),
            row.operations,
            row.timed.least_ns,
            row.timed.median_ns,
            counted.instructions,
            counted.l1_misses,
            counted.last_misses,
            counted.declared,
            counted.estimated,
            parts.join("; ")
        );
    }
    out
}

fn plot(findings: &Findings) -> String {
    let scale = scale_ns(findings);
    let rows: Vec<&Row> = findings.rows.iter().collect();
    let cloud = |family: &str| {
        let own = rows.iter().filter(|row| row.family == family);
        let point = |row: &&Row| (row.measured(), scale * row.predicted(estimate()), row.name.clone());
        Cloud { name: family.to_owned(), points: own.map(point).collect() }
    };
    scatter(&Scatter {
        title: "Estimated and measured time of an operation".into(),
        axes: ["measured, ns".into(), "estimated, ns".into()],
        clouds: families(&rows).into_iter().map(cloud).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::findings::tests::rows;
    use super::super::findings::{verdicts, Half};
    use super::*;

    fn findings() -> Findings {
        let rows = rows();
        Findings {
            schema: 1,
            date: "2026-11-23".into(),
            effort: "quick",
            version: "0",
            host: "a machine".into(),
            verdicts: verdicts(&rows),
            rows,
        }
    }

    #[test]
    fn the_page_shows_rules_families_and_variants() {
        let page = page(&findings());
        for part in [
            "| estimated cycles | all | 4 |",
            "| pairs of a family in order | ≥ 90 % | 100.0 % |",
            "| sort | 2 | 1 | 1 |",
            "| list:0 | fitting | 10.000 | 10.000 | +0 % | 7.00 | base 50 %, memory 50 % |",
        ] {
            assert!(page.contains(part), "{part} in {page}");
        }
    }

    #[test]
    fn the_table_has_a_line_for_each_variant() {
        let csv = csv(&findings());
        let columns = csv.lines().next().unwrap().split(',').count();
        assert!(csv.lines().all(|line| line.split(',').count() == columns), "{csv}");
        assert_eq!(csv.lines().count(), 5);
        assert_eq!(Half::of(0).shown(), "fitting");
        assert_eq!(plot(&findings()).matches("<circle").count(), 4);
    }
}
