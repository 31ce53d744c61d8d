//! The study's results as files: a page to read, data, a table for spreadsheets, a plot.

use super::claim::check;
use super::contender::{
    CACHE, CACHEGRIND, CACHEGRIND_SIM, CACHE_FORMER, CONTENDERS, COUNT, COUNT_FORMER, NATIVE,
};
use super::result::{Exactness, Figure, Findings, ProgramFindings};
use crate::host::dated;
use crate::outcome::{table as claims_table, write_files};
use anyhow::Result;
use plot::bars::{bars, Bars, Group};
use present::csv;
use present::number::grouped;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Writes all of them; gives their paths.
pub(super) fn write(findings: &Findings, folder: &Path) -> Result<Vec<PathBuf>> {
    let stem = format!("instrument-{}", dated(&findings.date));
    let files = [
        (".md", markdown(findings, &stem)),
        (".json", serde_json::to_string_pretty(findings)? + "\n"),
        (".csv", table(findings)),
        (".svg", plot(findings)),
    ];
    write_files(folder, &stem, files)
}

/// The page.
fn markdown(findings: &Findings, stem: &str) -> String {
    let plot = format!("\n![Times as long as native]({stem}.svg)\n");
    summary(findings) + &plot + &commands(findings)
}

/// The page without the commands.
pub(super) fn summary(findings: &Findings) -> String {
    let mut out = format!(
        "# lightfoot study instrument, {}\n\nlightfoot {}, {} study, on {}. Wall times, medians of interleaved rounds.\n\n",
        findings.date, findings.version, findings.effort, findings.host
    );
    out += "## Figures\n\n| figure | value | bar | stretch | programs |\n|---|---:|---|---|---:|\n";
    for figure in &findings.figures {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} |",
            figure.name,
            value(figure),
            figure.bar,
            figure.stretch,
            figure.programs
        );
    }
    out += &slowdowns("Seconds natively, and times as long as native", &findings.programs);
    if !findings.steady.is_empty() {
        out += &slowdowns("The same on inputs of at least five seconds", &findings.steady);
    }
    out += &former(&findings.former);
    out += &start_up(findings);
    out += &exactness(findings);
    out += &missing(findings);
    out + "\n## What the paper says\n\n" + &claims_table(&check(findings))
}

fn value(figure: &Figure) -> String {
    figure.value.map_or("not measured".into(), |value| format!("{value:.2} {}", figure.unit))
}

fn slowdowns(title: &str, programs: &[ProgramFindings]) -> String {
    let others: Vec<&str> = CONTENDERS.iter().map(|c| c.name).filter(|name| *name != NATIVE).collect();
    let mut out = format!(
        "\n## {title}\n\n| program | native s | {} |\n|---|---:{}|\n",
        others.join(" | "),
        "|---:".repeat(others.len())
    );
    for program in programs {
        let native =
            program.timings.iter().find(|timing| timing.name == NATIVE).and_then(|timing| timing.median_s);
        let native = native.map_or("-".into(), |seconds| format!("{seconds:.3}"));
        let ratio =
            |name: &&str| program.ratio(name, NATIVE).map_or("-".into(), |ratio| format!("{ratio:.2}"));
        let ratios: Vec<String> = others.iter().map(ratio).collect();
        let _ = writeln!(out, "| {} | {native} | {} |", program.name, ratios.join(" | "));
    }
    out
}

/// This build beside a former one; empty if none was named.
fn former(programs: &[ProgramFindings]) -> String {
    if programs.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "\n## Against a former build\n\nTimes of this build over those of the former one.\n\n\
         | program | count | cache |\n|---|---:|---:|\n",
    );
    for program in programs {
        let ratio =
            |own, former| program.ratio(own, former).map_or("-".into(), |ratio| format!("{ratio:.3}"));
        let (count, cache) = (ratio(COUNT, COUNT_FORMER), ratio(CACHE, CACHE_FORMER));
        let _ = writeln!(out, "| {} | {count} | {cache} |", program.name);
    }
    out
}

fn start_up(findings: &Findings) -> String {
    let mut out = String::from("\n## Start-up: `/bin/true`\n\n| | ms |\n|---|---:|\n");
    for timing in &findings.start_up {
        let ms = timing.median_s.map_or("not measured".into(), |seconds| format!("{:.1}", seconds * 1e3));
        let _ = writeln!(out, "| {} | {ms} |", timing.name);
    }
    out
}

fn exactness(findings: &Findings) -> String {
    let mut out = String::from(
        "\n## Instructions\n\nCachegrind counts each iteration of a repeated string instruction, and its virtual processor lacks \
         AVX-512, so that libraries choose other routines; its own preloaded library runs too.\n\n\
         | program | count | again | with iterations | cachegrind | difference |\n|---|---:|---:|---:|---:|---:|\n",
    );
    let number = |n: Option<u64>| n.map_or("-".into(), grouped);
    for program in &findings.programs {
        let Some(exact) = &program.exactness else { continue };
        let again = exact.repeats.map_or("-".into(), |[first, second]| match first == second {
            true => "identical".into(),
            false => grouped(second),
        });
        let first = number(exact.repeats.map(|[first, _]| first));
        let (iterations, cachegrind) = (number(exact.iterations), number(exact.cachegrind));
        let _ = writeln!(
            out,
            "| {} | {first} | {again} | {iterations} | {cachegrind} | {} |",
            program.name,
            difference(exact)
        );
    }
    out
}

fn difference(exact: &Exactness) -> String {
    match (exact.iterations, exact.cachegrind) {
        (Some(ours), Some(theirs)) if theirs > 0 => {
            let difference = ours as i128 - theirs as i128;
            format!("{difference:+} ({:+.4} %)", difference as f64 / theirs as f64 * 100.0)
        }
        _ => "-".into(),
    }
}

/// Each reason once.
fn missing(findings: &Findings) -> String {
    let mut reasons: Vec<String> = Vec::new();
    for program in findings.programs.iter().chain(&findings.former).chain(&findings.steady) {
        let own = program.missing.iter().map(|reason| format!("{}: {reason}", program.name));
        let timings = program.timings.iter();
        let theirs =
            timings.filter_map(|timing| Some(format!("{}: {}", timing.name, timing.missing.as_ref()?)));
        let counts = program.exactness.iter().flat_map(|exact| &exact.missing);
        let counts = counts.map(|reason| format!("{}: {reason}", program.name));
        for reason in own.chain(theirs).chain(counts) {
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
    }
    if reasons.is_empty() {
        return String::new();
    }
    format!(
        "\n## Not measured\n\n{}",
        reasons.iter().map(|reason| format!("- {reason}\n")).collect::<String>()
    )
}

fn commands(findings: &Findings) -> String {
    let mut out = String::from("\n## Commands\n\n```\n");
    for program in findings.programs.iter().chain(&findings.former).chain(&findings.steady) {
        let _ = writeln!(out, "# {}", program.name);
        for command in program.timings.iter().filter_map(|timing| timing.command.as_ref()) {
            let _ = writeln!(out, "{command}");
        }
    }
    out + "```\n"
}

/// One line per program and contender.
pub(super) fn table(findings: &Findings) -> String {
    let mut out = String::from("input,program,contender,median_s,times_s,missing\r\n");
    let inputs = [("short", &findings.programs), ("former", &findings.former), ("long", &findings.steady)];
    for (input, program) in
        inputs.iter().flat_map(|(input, programs)| programs.iter().map(move |p| (input, p)))
    {
        for timing in &program.timings {
            let times: Vec<String> = timing.times_s.iter().map(|seconds| format!("{seconds:.6}")).collect();
            let fields = [
                (*input).to_owned(),
                program.name.to_owned(),
                timing.name.to_owned(),
                timing.median_s.map(|seconds| format!("{seconds:.6}")).unwrap_or_default(),
                times.join(" "),
                timing.missing.clone().unwrap_or_default(),
            ];
            out += &(fields.map(|text| csv::field(&text)).join(",") + "\r\n");
        }
    }
    out
}

/// Bars: times as long as native, by program.
pub(super) fn plot(findings: &Findings) -> String {
    let series = [COUNT, CACHE, CACHEGRIND, CACHEGRIND_SIM];
    let group = |program: &ProgramFindings| Group {
        label: program.name.clone(),
        values: series.iter().map(|name| program.ratio(name, NATIVE)).collect(),
    };
    bars(&Bars {
        title: format!("Times as long as native ({})", findings.date),
        series: series.map(String::from).into(),
        groups: findings.programs.iter().map(group).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instrument::result::tests::findings;
    use crate::instrument::result::Timing;

    #[test]
    fn the_page_has_every_part() {
        let page = markdown(&findings(), "stem");
        for part in [
            "## Figures",
            "## Start-up",
            "## Instructions",
            "## Commands",
            "## What the paper says",
            "run cachegrind",
            "(stem.svg)",
        ] {
            assert!(page.contains(part), "{part}");
        }
        assert!(page.contains("not measured"));
    }

    #[test]
    fn a_former_build_stands_beside_this_one() {
        assert!(!markdown(&findings(), "stem").contains("former"));
        let mut findings = findings();
        let timing = |name, seconds| Timing::new(name, None, Ok(vec![seconds]));
        findings.former = vec![ProgramFindings {
            name: "a".into(),
            missing: None,
            timings: vec![timing(CACHE, 1.0), timing(CACHE_FORMER, 1.25)],
            exactness: None,
        }];
        findings.conclude();
        let page = markdown(&findings, "stem");
        assert!(page.contains("| a | - | 0.800 |"), "{page}");
        assert!(
            page.contains("| time of cache over cache, former build, most | 0.80 x | <= 1.01 |"),
            "{page}"
        );
    }

    #[test]
    fn all_files_are_written() {
        let folder = tempfile::tempdir().unwrap();
        let paths = write(&findings(), &folder.path().join("new")).unwrap();
        assert_eq!(paths.len(), 4);
        paths.iter().for_each(|path| assert!(path.metadata().unwrap().len() > 50, "{}", path.display()));
    }

    #[test]
    fn a_line_per_program_and_contender() {
        assert_eq!(table(&findings()).lines().count(), 1 + 8);
    }
}
