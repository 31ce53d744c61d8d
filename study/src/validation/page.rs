//! The study's results as files: a page, data, a table and the plots.

use super::findings::{Compared, Findings, Setting, BAR_EXTENT, BAR_PERCENT, JUDGED, PYCACHESIM, SETTINGS};
use super::plots::plots;
use super::points::{Point, LINK_NAMES, PRODUCT};
use super::processor::{Processor, BLOCK, CACHEGRIND, DESCRIBED, FETCHING, MODELS, PROCESSORS};
use crate::host::{dated, host};
use crate::outcome::write_files;
use anyhow::Result;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Writes all of them; gives their paths and the page.
///
/// # Errors
/// When a file cannot be written.
pub(super) fn write(findings: &Findings, folder: &Path) -> Result<(Vec<PathBuf>, String)> {
    let stem = format!("validation-{}", dated(&findings.date));
    let mut page = page(findings)?;
    let mut files = vec![
        (format!("{stem}.json"), serde_json::to_string(findings)? + "\n"),
        (format!("{stem}.csv"), csv(findings)),
    ];
    page += "\n## Plots\n\n";
    for (name, svg) in plots(findings)? {
        let _ = writeln!(page, "![{name}]({stem}-{name}.svg)\n");
        files.push((format!("{stem}-{name}.svg"), svg));
    }
    files.push((format!("{stem}.md"), page.clone()));
    Ok((write_files(folder, "", files)?, page))
}

fn page(findings: &Findings) -> Result<String> {
    let [points, processors, kernels] = findings.extent();
    let mut out = format!(
        "# lightfoot study validation, {}\n\nSimulated cache traffic beside published counters: {points} points of {processors} processors and \
         {kernels} kernels count on the inner links; {} study, lightfoot {}, simulated on {}. Simulations repeat exactly and do not depend on this machine. Figures are bytes per update; \
         an error is that of load and evict together, relative to the measurement.\n\n",
        findings.date,
        findings.effort,
        findings.version,
        host(),
    );
    out += "Counters: [SC19-likwid-poster-data](https://github.com/RRZE-HPC/SC19-likwid-poster-data) at 9a3e4d3 (product and streams) and \
            [INSPECT](https://github.com/RRZE-HPC/INSPECT) at 98f80f16 (stencils, with pycachesim's predictions). Kernels are rebuilt from their description, \
            a touch of each line for every vector; large sizes are replayed in slices.\n";
    rule(&mut out, findings);
    bar(&mut out, findings);
    errors(&mut out, findings);
    prefetchers(&mut out, findings);
    streams(&mut out, findings);
    largest(&mut out, findings);
    models(&mut out)?;
    Ok(out)
}

/// What counts, as it was decided before anything was simulated.
fn rule(out: &mut String, findings: &Findings) {
    *out += "\n## What counts\n\nDecided before any point was simulated, by what the sources say of their figures:\n\n\
             - L1-L2 and L2-L3 count; L3-memory stands beside them, because real last levels hash addresses, are shared and adapt, so that it checks the regime and not the digits.\n";
    for point in findings.points.iter().filter(|point| point.left_out().is_some()) {
        let reason = point.left_out().unwrap_or_default();
        let _ = writeln!(
            out,
            "- Point {} ({}, n = {}) does not count: {reason}.",
            point.id, point.kernel, point.n
        );
    }
    *out += "- Streams were measured between L3 and memory alone; ThunderX2 avoids write-allocation, which the model does not.\n\
             - Points without prefetchers are judged by the model without, points with prefetchers by the model with.\n";
}

fn bar(out: &mut String, findings: &Findings) {
    let extent = findings.extent();
    let wide = extent.iter().zip(BAR_EXTENT).all(|(is, least)| *is >= least);
    *out += "\n## The bar\n\n| prefetchers | link | allowed mean error | here | |\n|---|---|---:|---:|---|\n";
    for (setting, allowed) in [Setting::Off, Setting::On].into_iter().zip(BAR_PERCENT) {
        for (link, link_name) in LINK_NAMES.into_iter().enumerate().take(JUDGED) {
            let Some(summary) = findings.row(setting, link, setting.judged_by()) else { continue };
            let verdict = if summary.mean <= allowed { "holds" } else { "**fails**" };
            let _ = writeln!(
                out,
                "| {} | {} | {allowed:.0} % | {:.2} % of {} points | {verdict} |",
                setting.shown(),
                link_name,
                summary.mean,
                summary.points
            );
        }
    }
    let [points, processors, kernels] = extent;
    let [p, q, k] = BAR_EXTENT;
    let verdict = if wide { "holds" } else { "**fails**" };
    let _ = writeln!(
        out,
        "| | extent | {p} points, {q} processors, {k} kernels | {points}, {processors}, {kernels} | {verdict} |\n\n\
         The bar without prefetchers rests on one kernel on one processor: no other table of the two collections has them off."
    );
}

fn errors(out: &mut String, findings: &Findings) {
    *out += "\n## Errors by link\n\n| prefetchers | link | model | points | mean | median | ninth decile | largest | bias |\n\
             |---|---|---|---:|---:|---:|---:|---:|---:|\n";
    for row in findings.rows.iter().filter(|row| row.setting != Setting::Streams) {
        let of = row.summary;
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {:.2} % | {:.2} % | {:.1} % | {:.1} % | {:+.2} % |",
            row.setting.shown(),
            LINK_NAMES[row.link],
            row.model,
            of.points,
            of.mean,
            of.median,
            of.ninth_decile,
            of.largest,
            of.bias
        );
    }
    let _ = writeln!(
        out,
        "\n{PYCACHESIM}'s figures are those that INSPECT publishes. {CACHEGRIND} has L1 and a last level, and loads alone; between L2 and L3 it says nothing."
    );
}

/// What prefetchers change in the lines moved: measured where both states were, and simulated.
fn prefetchers(out: &mut String, findings: &Findings) {
    *out += "\n## What prefetchers change\n\nMean change of the bytes moved, prefetchers on against off: measured on the points of the product that have both, and simulated.\n\n\
             | link | points | measured | simulated | without the sign: measured | simulated |\n|---|---:|---:|---:|---:|---:|\n";
    for (link, link_name) in LINK_NAMES.into_iter().enumerate().take(JUDGED) {
        let pairs: Vec<(f64, f64)> =
            findings.counted(Setting::Off).filter_map(|off| pair(findings, off, link)).collect();
        let count = pairs.len().max(1) as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| 100.0 * pairs.iter().map(of).sum::<f64>() / count;
        let _ = writeln!(
            out,
            "| {} | {} | {:+.2} % | {:+.2} % | {:.2} % | {:.2} % |",
            link_name,
            pairs.len(),
            mean(|pair| pair.0),
            mean(|pair| pair.1),
            mean(|pair| pair.0.abs()),
            mean(|pair| pair.1.abs())
        );
    }
    let changes: Vec<f64> = findings
        .counted(Setting::On)
        .filter(|point| point.kernel != PRODUCT)
        .filter_map(|point| {
            let [with, without] = [FETCHING, DESCRIBED].map(|model| findings.compared(point, model, 1));
            Some(with?.predicted / without?.predicted - 1.0)
        })
        .collect();
    if !changes.is_empty() {
        let mean = 100.0 * changes.iter().sum::<f64>() / changes.len() as f64;
        let most = 100.0 * changes.iter().copied().fold(f64::MIN, f64::max);
        let _ = writeln!(
            out,
            "\nOn the {} stencils the simulated prefetchers change L2-L3 by {mean:+.2} % in the mean and {most:+.2} % at most.",
            changes.len()
        );
    }
}

/// Changes of a point of the product, measured and simulated, if it was measured in both states.
fn pair(findings: &Findings, off: &Point, link: usize) -> Option<(f64, f64)> {
    let same = |on: &&Point| on.kernel == off.kernel && on.machine == off.machine && on.n == off.n;
    let on = findings.counted(Setting::On).find(same)?;
    let (without, with) = (findings.compared(off, DESCRIBED, link)?, findings.compared(on, FETCHING, link)?);
    Some((with.measured / without.measured - 1.0, with.predicted / without.predicted - 1.0))
}

fn streams(out: &mut String, findings: &Findings) {
    *out += "\n## Streams, L3-memory\n\n| machine | kernel | measured load + evict | simulated | error of the sum |\n|---|---|---:|---:|---:|\n";
    for point in findings.counted(Setting::Streams) {
        let simulated = findings.simulated(point.id, DESCRIBED).and_then(|one| one.moved(2));
        let (Some(measured), Some(simulated)) = (point.measured[2], simulated) else { continue };
        let error = findings.compared(point, DESCRIBED, 2).and_then(Compared::error);
        let _ = writeln!(
            out,
            "| {} | {} | {:.2} + {:.2} | {:.2} + {:.2} | {} |",
            point.machine,
            point.kernel,
            measured.load,
            measured.evict,
            simulated.load,
            simulated.evict,
            percent(error)
        );
    }
    *out += "\nNaples' counters give read and write as half of the sum each, so that only the sum counts.\n";
}

fn percent(error: Option<f64>) -> String {
    error.map_or("-".into(), |error| format!("{:+.1} %", 100.0 * error))
}

/// The points that are off by more than the stricter bar, on the judged links.
fn largest(out: &mut String, findings: &Findings) {
    *out += "\n## Points that are off by more than 3 %\n\nSpread: the least and the most of the simulated layouts. One block: the error \
             if all pages were neighbours, where that was simulated; a system may give pages of either kind, and another mix in each run.\n\n\
             | point | machine | kernel | N | prefetchers | link | measured | simulated | spread | error | one block | pycachesim |\n|---:|---|---|---:|---|---|---:|---:|---|---:|---:|---:|\n";
    for setting in SETTINGS {
        for point in findings.counted(setting) {
            for (link, link_name) in LINK_NAMES.into_iter().enumerate().take(JUDGED) {
                let model = setting.judged_by();
                let Some(compared) = findings.compared(point, model, link) else { continue };
                if compared.error().is_none_or(|error| error.abs() <= 0.03) {
                    continue;
                }
                let range = findings.simulated(point.id, model).and_then(|one| one.range(link));
                let spread = range.map_or("-".into(), |(least, most)| format!("{least:.2} to {most:.2}"));
                let of = |model| findings.compared(point, model, link).and_then(Compared::error);
                let (block, theirs) = (of(BLOCK), of(PYCACHESIM));
                let _ = writeln!(
                    out,
                    "| {} | {} | {} | {} | {} | {} | {:.2} | {:.2} | {spread} | {} | {} | {} |",
                    point.id,
                    point.machine,
                    point.kernel,
                    point.n,
                    setting.shown(),
                    link_name,
                    compared.measured,
                    compared.predicted,
                    percent(compared.error()),
                    percent(block),
                    percent(theirs)
                );
            }
        }
    }
}

fn models(out: &mut String) -> Result<()> {
    *out += "\n## Models and machines\n\n";
    for model in MODELS {
        let _ = writeln!(out, "- **{}**: {}.", model.name, model.about);
    }
    *out += "\n| machine | description | L1D, L2, L3 |\n|---|---|---|\n";
    for Processor { name, .. } in PROCESSORS {
        let machine = Processor::named(name)?.machine()?;
        let levels: Vec<String> = machine
            .data_path()
            .map(|cache| format!("{} KiB of {} ways", cache.size_bytes >> 10, cache.ways))
            .collect();
        let _ = writeln!(out, "| {name} | {} | {} |", machine.description, levels.join(", "));
    }
    *out += "\nThe files are in `study/src/validation/machines`; each says what its figures rest on.\n";
    Ok(())
}

/// A line for each point, link and model.
fn csv(findings: &Findings) -> String {
    let mut out = String::from(
        "point,source,machine,kernel,n,prefetchers,counts,link,model,measured_load,measured_evict,load,evict,least,most,error_percent\n",
    );
    for point in &findings.points {
        let counts = if point.left_out().is_none() { "yes" } else { "no" };
        let setting = Setting::of(point).shown();
        let head = format!(
            "{},{},{},{},{},{setting},{counts}",
            point.id, point.source, point.machine, point.kernel, point.n
        );
        for (link, link_name) in LINK_NAMES.into_iter().enumerate() {
            let Some(measured) = point.measured[link] else { continue };
            let place = format!("{head},{}", link_name);
            for model in MODELS {
                let Some(one) = findings.simulated(point.id, model.name) else { continue };
                let (Some(moved), Some((least, most))) = (one.moved(link), one.range(link)) else { continue };
                let error = findings.compared(point, model.name, link).and_then(Compared::error);
                let error = error.map_or(String::new(), |error| format!("{:.3}", 100.0 * error));
                let _ = writeln!(
                    out,
                    "{place},{},{},{},{:.4},{:.4},{least:.4},{most:.4},{error}",
                    model.name.replace(',', ""),
                    measured.load,
                    measured.evict,
                    moved.load,
                    moved.evict
                );
            }
            if let Some(theirs) = findings.compared(point, PYCACHESIM, link) {
                let error = theirs.error().map_or(String::new(), |error| format!("{:.3}", 100.0 * error));
                let _ = writeln!(
                    out,
                    "{place},{PYCACHESIM},{},{},{},,,,{error}",
                    measured.load, measured.evict, theirs.predicted
                );
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::findings::tests::findings;
    use super::*;

    #[test]
    fn the_page_shows_verdicts_errors_and_what_was_left_out() {
        let page = page(&findings()).unwrap();
        for part in [
            "Point 1 (mvm, n = 200) does not count",
            "| off | L1-L2 | 3 % | 5.00 % of 1 points | **fails** |",
            "| on | L1-L2 | 10 % | 5.00 % of 1 points | holds |",
            "| off | L1-L2 | cachegrind-like | 1 | 25.00 % |",
            "| 2 | Machine2_CoD | mvm | 400 | off | L1-L2 | 10.00 | 10.50 | 9.50 to 11.50 | +5.0 % | - | +10.0 % |",
            "| SandyBridgeEP_E5-2680 |",
        ] {
            assert!(page.contains(part), "{part} in {page}");
        }
    }

    #[test]
    fn the_table_has_a_line_for_each_prediction() {
        let csv = csv(&findings());
        let columns = csv.lines().next().unwrap().split(',').count();
        assert!(csv.lines().all(|line| line.split(',').count() == columns), "{csv}");
        // Five simulations of the first link, and three predictions that were published.
        assert_eq!(csv.lines().count(), 1 + 5 + 3);
        assert!(
            csv.contains("2,sc19,Machine2_CoD,mvm,400,off,yes,L1-L2,cachegrind-like,8,2,6.0000,"),
            "{csv}"
        );
    }
}
