//! `lightfoot study` without a name: runs every study, one after the other, and writes one page.
//! The page compares what the papers say with what this machine shows.
//!
//! The page has three parts: every sentence with its verdict, the sentences that fail on today's
//! machine, and the plots that readers of the papers recognise.
//!
//! After an interruption the same command takes finished studies from the journal ([`Journal`]).
//! Each study writes into a folder of its own name. The page contains their plots, so that it can
//! be sent as one file. If a study fails, the page says so and the next study begins, because one
//! missing program must not cost an hour of results.

use crate::host::{dated, host};
use crate::journal::Journal;
use crate::options::{Effort, Options};
use crate::outcome::{Claim, Outcome, Verdict, VERDICTS};
use crate::studies::Study;
use anyhow::{Context, Result};
use present::output::replace;
use present::{date, policy};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// One study's run.
struct Run<'s> {
    study: &'s Study,
    took: Duration,
    outcome: Result<Outcome>,
}

/// Runs all of them.
///
/// # Errors
/// When the page cannot be written.
pub fn run_all(studies: &[Study], options: &Options) -> Result<Outcome> {
    std::fs::create_dir_all(&options.folder)
        .with_context(|| format!("cannot make {}", options.folder.display()))?;
    let mut journal = Journal::of(options, "all", 0.0)?;
    let runs: Vec<Run> =
        studies.iter().map(|study| one(study, options, &mut journal)).collect::<Result<_>>()?;
    let path = options.folder.join(format!("studies-{}.html", dated(&date::today())));
    replace(&path, page(&runs, options.effort))
        .with_context(|| format!("cannot write {}", path.display()))?;
    let mut files: Vec<PathBuf> =
        runs.iter().filter_map(|run| run.outcome.as_ref().ok()).flat_map(|o| o.files.clone()).collect();
    files.push(path);
    journal.finish()?;
    let claims =
        runs.iter().filter_map(|run| run.outcome.as_ref().ok()).flat_map(|o| o.claims.clone()).collect();
    Ok(Outcome { summary: overview(&runs), claims, files })
}

/// Runs a study, or takes what an interrupted run of all studies has of it. A study that failed is
/// tried again.
fn one<'s>(study: &'s Study, options: &Options, journal: &mut Journal) -> Result<Run<'s>> {
    if let Some((took, outcome)) = journal.known(study.name) {
        return Ok(Run { study, took, outcome: Ok(outcome) });
    }
    present::tell!("lightfoot: study {}", study.name);
    let started = Instant::now();
    let own = Options { folder: options.folder.join(study.name), ..options.clone() };
    let outcome = (study.run)(&own);
    let took = started.elapsed();
    match &outcome {
        Ok(outcome) => journal.add(study.name, &(took, outcome))?,
        Err(error) => present::tell!("lightfoot: study {}: {error:#}", study.name),
    }
    Ok(Run { study, took, outcome })
}

/// The number of sentences with each verdict, in the order of [`VERDICTS`].
fn tally(claims: &[Claim]) -> [usize; VERDICTS.len()] {
    VERDICTS.map(|verdict| claims.iter().filter(|claim| claim.verdict == verdict).count())
}

/// For the terminal.
fn overview(runs: &[Run]) -> String {
    let mut out = String::from(
        "| study | seconds | sentences that hold | that fail | that depend on layout | not measured |\n|---|---:|---:|---:|---:|---:|\n",
    );
    for run in runs {
        let cells = match &run.outcome {
            Ok(outcome) => tally(&outcome.claims).map(|count| count.to_string()).join(" | "),
            Err(error) => format!("failed: {error:#} | | | "),
        };
        let _ = writeln!(out, "| {} | {:.0} | {cells} |", run.study.name, run.took.as_secs_f64());
    }
    out
}

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#59636e;--paper:#fff;--line:#d5dbe1;--good:#116a35;--bad:#a3341a}\
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ec;--soft:#9aa5b1;--paper:#14181d;--line:#333b45;--good:#5cc98a;--bad:#f0906f}}\
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:64rem;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.7rem;line-height:1.2}h2{margin-top:3rem;border-top:1px solid var(--line);padding-top:1.5rem}\
p.about{color:var(--soft)}a{color:inherit}table{border-collapse:collapse;width:100%;font-size:.92rem}\
th,td{text-align:left;vertical-align:top;padding:.35rem .6rem .35rem 0;border-bottom:1px solid var(--line)}\
td.n{text-align:right;font-variant-numeric:tabular-nums}td.good{color:var(--good);white-space:nowrap}\
td.bad{color:var(--bad);white-space:nowrap}td.none{color:var(--soft);white-space:nowrap}td.figures{color:var(--soft);font-size:.85rem;overflow-wrap:anywhere}\
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(28rem,100%),1fr));gap:1rem;margin-top:1rem}img{width:100%;height:auto}\
@media print{body{max-width:none}h2{break-before:page}img{break-inside:avoid}}";

fn page(runs: &[Run], effort: Effort) -> String {
    let effort = effort.shown();
    let (date, version) = (date::today(), env!("CARGO_PKG_VERSION"));
    let host = host();
    // The page may run no script and fetch nothing, wherever it is sent.
    let policy = policy::element(&[STYLE], &[]);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n{policy}<meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>lightfoot studies, {date}</title>\n<style>{STYLE}</style>\n<h1>What the papers say, and what this machine shows</h1>\n\
         <p class=\"about\">lightfoot {version}, {effort} studies, {date}, on {}. A sentence that fails is a finding about this machine, \
         its compiler or the size of the study.</p>\n",
        escaped(&host)
    );
    out += "<table>\n<tr><th>study<th>what it answers<th>hold<th>fail<th>depend on layout<th>not measured<th>seconds\n";
    for run in runs {
        // The section of a study that failed says why.
        let counts =
            run.outcome.as_ref().map(|outcome| tally(&outcome.claims).map(|count| count.to_string()));
        let [holds, fails, depends, unknown] = counts.unwrap_or_else(|_| ["–"; 4].map(String::from));
        let _ = writeln!(
            out,
            "<tr><td><a href=\"#{0}\">{0}</a><td>{1}<td class=\"n\">{holds}<td class=\"n\">{fails}<td class=\"n\">{depends}<td class=\"n\">{unknown}<td class=\"n\">{2:.0}",
            run.study.name,
            escaped(run.study.about),
            run.took.as_secs_f64()
        );
    }
    out += "</table>\n";
    runs.iter().for_each(|run| section(&mut out, run));
    changed(&mut out, runs);
    runs.iter().for_each(|run| plots(&mut out, run));
    out
}

/// The sentences that do not hold here, with the figures: what today's machine changes.
fn changed(out: &mut String, runs: &[Run]) {
    *out += "<h2 id=\"changed\">What today's machine changes</h2>\n";
    let claims = |run: &Run| run.outcome.as_ref().map_or(Vec::new(), |outcome| outcome.claims.clone());
    let failing = |run: &Run| -> Vec<Claim> {
        claims(run).into_iter().filter(|claim| claim.verdict == Verdict::Fails).collect()
    };
    if runs.iter().all(|run| failing(run).is_empty()) {
        *out += "<p>No sentence fails.</p>\n";
        return;
    }
    *out += "<table>\n<tr><th>study<th>place<th>the paper's sentence<th>where it stops<th>here\n";
    for run in runs {
        for claim in failing(run) {
            let cells = [claim.place, claim.sentence, &claim.extent, &claim.detail].map(escaped);
            let [place, sentence, extent, detail] = cells;
            let _ = writeln!(
                out,
                "<tr><td>{}<td>{place}<td>“{sentence}”<td>{extent}<td class=\"figures\">{detail}",
                run.study.name
            );
        }
    }
    *out += "</table>\n";
}

/// The plots of a study.
fn plots(out: &mut String, run: &Run) {
    let files = run.outcome.as_ref().map_or(&[][..], |outcome| &outcome.files);
    let mut pictures =
        files.iter().filter(|path| path.extension().is_some_and(|kind| kind == "svg")).peekable();
    if pictures.peek().is_none() {
        return;
    }
    let _ = write!(out, "<h2 id=\"{0}-plots\">{0}: plots</h2>\n<div class=\"plots\">\n", run.study.name);
    pictures.for_each(|path| plot(out, path));
    *out += "</div>\n";
}

/// The sentences of a study.
fn section(out: &mut String, run: &Run) {
    let name = run.study.name;
    let _ = write!(out, "<h2 id=\"{name}\">{name}</h2>\n<p class=\"about\">{}", escaped(run.study.about));
    let outcome = match &run.outcome {
        Ok(outcome) => outcome,
        Err(error) => {
            let _ =
                writeln!(out, ".</p>\n<p><strong>Failed:</strong> {}</p>", escaped(&format!("{error:#}")));
            return;
        }
    };
    let pages = outcome.files.iter().filter(|path| path.extension().is_some_and(|kind| kind == "md"));
    for file in pages.filter_map(|path| path.file_name()).map(|file| file.to_string_lossy()) {
        let _ = write!(out, "; all figures: <a href=\"{name}/{0}\">{0}</a>", escaped(&file));
    }
    *out += ".</p>\n";
    claims(out, &outcome.claims);
}

fn claims(out: &mut String, claims: &[Claim]) {
    if claims.is_empty() {
        return;
    }
    *out += "<table>\n<tr><th>place<th>the paper's sentence<th>here<th>where<th>what was measured\n";
    for claim in claims {
        let class = match claim.verdict {
            Verdict::Holds => "good",
            Verdict::Fails => "bad",
            Verdict::DependsOnLayout | Verdict::NotMeasured => "none",
        };
        let (place, sentence) = (escaped(claim.place), escaped(claim.sentence));
        let (verdict, extent) = (claim.verdict.shown(), escaped(&claim.extent));
        let spread = if claim.spread.is_empty() { "" } else { " Spread: " };
        let figures = format!("{}. {}.{spread}{}", claim.measured, claim.detail, claim.spread);
        let _ = writeln!(
            out,
            "<tr><td>{place}<td>“{sentence}”<td class=\"{class}\">{verdict}<td>{extent}<td class=\"figures\">{}",
            escaped(&figures)
        );
    }
    *out += "</table>\n";
}

/// A plot, inside the page. One that cannot be read back is named.
fn plot(out: &mut String, path: &Path) {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let _ = match std::fs::read_to_string(path) {
        Ok(svg) => {
            writeln!(out, "<img alt=\"{}\" src=\"data:image/svg+xml,{}\">", escaped(&name), encoded(&svg))
        }
        Err(error) => writeln!(out, "<p>{}: {}</p>", escaped(&name), escaped(&error.to_string())),
    };
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Text as part of a URL: everything but letters, digits and what is never special is a `%` and two
/// digits.
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    for byte in text.bytes() {
        match byte {
            b'0'..=b'9'
            | b'A'..=b'Z'
            | b'a'..=b'z'
            | b'-'
            | b'.'
            | b'_'
            | b'/'
            | b'='
            | b':'
            | b','
            | b';' => {
                out.push(byte as char);
            }
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::tests::claim;
    use crate::studies::STUDIES;

    fn runs(folder: &Path) -> Vec<Run<'static>> {
        let svg = folder.join("one.svg");
        std::fs::write(&svg, "<svg>\u{e9}</svg>").unwrap();
        let outcome = Outcome {
            summary: String::new(),
            claims: VERDICTS.map(claim).to_vec(),
            files: vec![svg, folder.join("gone.svg"), folder.join("page.md")],
        };
        let took = Duration::from_millis(1600);
        vec![
            Run { study: &STUDIES[0], took, outcome: Ok(outcome) },
            Run { study: &STUDIES[1], took, outcome: Err(anyhow::anyhow!("no <compiler>")) },
        ]
    }

    #[test]
    fn the_page_holds_claims_plots_and_failures() {
        let folder = tempfile::tempdir().unwrap();
        let page = page(&runs(folder.path()), Effort::Quick);
        for part in [
            "a &lt; b",
            "1 &amp; 2",
            "class=\"good\">holds",
            "class=\"bad\">fails",
            "class=\"none\">depends on layout",
            "class=\"none\">not measured",
            "data:image/svg+xml,%3Csvg%3E%C3%A9%3C/svg%3E",
            "<p>gone: ",
            "no &lt;compiler&gt;",
            "page.md</a>",
            "What today's machine changes",
        ] {
            assert!(page.contains(part), "{part} in {page}");
        }
        // Sentences come before plots.
        assert!(page.find("id=\"changed\"") < page.find("data:image"), "{page}");
        assert!(page.find("class=\"good\">holds") < page.find("id=\"changed\""), "{page}");
    }

    #[test]
    fn the_overview_counts() {
        let folder = tempfile::tempdir().unwrap();
        let text = overview(&runs(folder.path()));
        assert!(text.contains("| 2 | 1 | 1 | 1 | 1 |"), "{text}");
        assert!(text.contains("failed: no <compiler>"), "{text}");
    }

    /// What a study needs: an entry. Here it stands in a table of its own.
    const DICE: Study = Study {
        name: "dice",
        about: "whether a die is fair",
        run: |options| {
            std::fs::create_dir_all(&options.folder)?;
            let path = options.folder.join("dice.md");
            std::fs::write(&path, "six")?;
            let claim = Claim { sentence: "six is rare", ..claim(Verdict::Holds) };
            Ok(Outcome { summary: "fair".into(), claims: vec![claim], files: vec![path] })
        },
    };

    #[test]
    fn a_new_study_is_one_entry() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options { effort: Effort::Quick, folder: folder.path().to_owned(), max_bytes: None };
        let studies = [DICE];
        assert_eq!(crate::find(&studies, "dice").unwrap().about, DICE.about);
        let said = crate::find(&studies, "darts").unwrap_err().to_string();
        assert!(said.contains("darts") && said.contains("the studies are dice"), "{said}");
        assert!(crate::list(&studies).contains("  dice  whether a die is fair"));
        let outcome = run_all(&studies, &options).unwrap();
        assert!(outcome.summary.contains("| dice | 0 | 1 | 0 | 0 | 0 |"), "{}", outcome.summary);
        let page = std::fs::read_to_string(outcome.files.last().unwrap()).unwrap();
        assert!(page.contains("six is rare") && page.contains("dice/dice.md"), "{page}");
        assert!(!folder.path().join(".all-quick.journal").exists());
    }

    #[test]
    fn a_finished_study_is_not_run_again_after_an_interruption() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options { effort: Effort::Quick, folder: folder.path().to_owned(), max_bytes: None };
        let lost = Study { name: "lost", run: |_| anyhow::bail!("it was run again"), ..DICE };
        let mut journal = Journal::of(&options, "all", 0.0).unwrap();
        let first = one(&DICE, &options, &mut journal).unwrap();
        assert!(one(&lost, &options, &mut journal).unwrap().outcome.is_err());
        drop(journal);
        let renamed = Study { name: DICE.name, ..lost };
        let mut journal = Journal::of(&options, "all", 0.0).unwrap();
        let again = one(&renamed, &options, &mut journal).unwrap();
        assert_eq!((again.took, again.outcome.unwrap().claims), (first.took, first.outcome.unwrap().claims));
        // One that failed is tried again.
        let healed = Study { name: "lost", ..DICE };
        assert!(one(&healed, &options, &mut journal).unwrap().outcome.is_ok());
    }
}
