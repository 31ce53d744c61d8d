//! `lightfoot study regex`: the cost per byte of bit-parallel matching, compared with automata and
//! backtracking.
//!
//! It repeats the evaluation of Cameron et al. 2014. For each family of patterns and each contender
//! ([`contender`]) it measures cycles, instructions and branch misses per byte ([`cost`]), as the
//! paper's figures do. It computes the comparison of section 4 ([`analysis`]), and runs one program
//! with vectors of several widths. If the machine has a graphics card, it takes part ([`card`]).
//!
//! The corpus is text of this machine. A contender that counts other lines than lightfoot is left
//! out, and the page says why.

mod analysis;
mod card;
mod claim;
mod contender;
mod corpus;
mod cost;
mod family;
mod findings;
mod matches;
mod page;

pub use matches::{matches, Matches};

use crate::host::{dated, host};
use crate::journal::Journal;
use crate::options::{Effort, Options};
use crate::outcome::{write_files, Outcome};
use crate::workshop::workshop;
use analysis::Analysis;
use anyhow::{Context, Result};
use contender::{Programs, CONTENDERS};
use family::{Family, FAMILIES};
use findings::{Findings, Row};
use present::date;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Seconds in which a family is counted and timed, quick and full.
const COUNT_SECONDS: [f64; 2] = [8.0, 100.0];
const TIME_SECONDS: [f64; 2] = [7.0, 100.0];

/// Runs the study and writes its results.
pub(super) fn run(options: &Options) -> Result<Outcome> {
    let quick = options.effort == Effort::Quick;
    let folder = workshop()?;
    let (bytes, rounds, counted_bytes) = if quick { (64 << 20, 3, 1 << 20) } else { (256 << 20, 7, 4 << 20) };
    let text = corpus::collect(bytes);
    // The contenders are programs, so the corpus must be in files before any of them runs.
    let texts = Texts::write(folder.path(), &text, counted_bytes)?;
    let programs = Programs::new(folder.path()).context("cannot tell where lightfoot itself is")?;
    // Cycles are those of the time-stamp counter: seconds times its rate.
    let stamp_hertz = cost::stamp_hertz();
    let [count_seconds, time_seconds] = [COUNT_SECONDS, TIME_SECONDS].map(|of| of[usize::from(!quick)]);
    let seconds = (count_seconds + time_seconds) * FAMILIES.len() as f64;
    let mut journal = Journal::open(options, "regex", seconds)?;
    // All counts come first: they do not depend on the load of the machine, and the times do.
    let mut counted = Vec::new();
    for family in FAMILIES {
        let step = format!("{}, instructions", family.name);
        counted.push(journal.step(&step, count_seconds, || Ok(cost::count(family, &programs, &texts)))?);
    }
    let mut rows = Vec::new();
    for (family, counted) in FAMILIES.iter().zip(&counted) {
        let step = format!("{}, times", family.name);
        let timed =
            journal.step(&step, time_seconds, || Ok(cost::time(family, &programs, &texts, rounds)))?;
        rows.push(row(family, counted.lines, cost::costs(counted, &timed, &texts, stamp_hertz)));
    }
    // The card comes after the processor's families and is no step of the journal: it is measured
    // again when a study resumes.
    let card = card::measure(&text, options.effort);
    let findings = Findings {
        schema: 2,
        date: date::today(),
        effort: options.effort.shown(),
        version: env!("CARGO_PKG_VERSION"),
        host: host(),
        corpus_bytes: texts.bytes,
        counted_bytes,
        stamp_hertz,
        claims: claim::check(&rows, &card),
        rows,
        card,
    };
    let files = write(&findings, &options.folder)?;
    journal.finish()?;
    Ok(Outcome { summary: page::text(&findings), claims: findings.claims, files })
}

fn row(family: &Family, lines: u64, costs: Vec<findings::Cost>) -> Row {
    let engine =
        pattern::Regex::new(family.pattern).map_or_else(|error| error.to_string(), |r| r.engine().to_owned());
    Row {
        family: family.name.into(),
        pattern: family.pattern.into(),
        engine,
        lines,
        costs,
        analysis: Analysis::of(family.pattern),
    }
}

/// The corpus on disk: for each part of it that some contender gets, the part and its first half to
/// be timed, and a sample of that part's share, twice and once, to be counted by the engine.
struct Texts {
    folder: PathBuf,
    /// Bytes of the whole corpus. Part number P has this length divided by P.
    bytes: usize,
    /// Bytes by which the two texts that are counted differ, for each part.
    counted_bytes: Vec<(usize, usize)>,
}

impl Texts {
    fn write(folder: &Path, text: &[u8], counted: usize) -> Result<Texts> {
        let save = |name: String, text: &[u8]| {
            let path = folder.join(name);
            std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
        };
        let parts: BTreeSet<usize> = CONTENDERS.iter().map(|contender| contender.part).collect();
        // Parts and halves are of whole bytes, so that their differences are exact.
        let largest = parts.last().copied().unwrap_or(1);
        let bytes = text.len() / (2 * largest) * (2 * largest);
        let mut counted_bytes = Vec::new();
        for part in parts {
            save(format!("part-{part}"), &text[..bytes / part])?;
            save(format!("half-{part}"), &text[..bytes / part / 2])?;
            let sample = corpus::sample(&text[..bytes], counted / part);
            save(format!("counted-{part}"), &sample.repeat(2))?;
            save(format!("half-counted-{part}"), &sample)?;
            counted_bytes.push((part, sample.len()));
        }
        Ok(Texts { folder: folder.to_owned(), bytes, counted_bytes })
    }

    /// The first half of a part, and the part.
    fn timed(&self, part: usize) -> [PathBuf; 2] {
        ["half", "part"].map(|name| self.folder.join(format!("{name}-{part}")))
    }

    /// What is counted for a contender that gets a part: half of it, and all.
    fn counted(&self, part: usize) -> [PathBuf; 2] {
        ["half-counted", "counted"].map(|name| self.folder.join(format!("{name}-{part}")))
    }

    /// By how much those two differ.
    fn counted_bytes(&self, part: usize) -> usize {
        let found = self.counted_bytes.iter().find(|(known, _)| *known == part);
        found.map_or(1, |(_, bytes)| *bytes)
    }
}

fn write(findings: &Findings, folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = vec![
        (String::from(".md"), page::text(findings)),
        (String::from(".json"), serde_json::to_string_pretty(findings)? + "\n"),
        (String::from(".csv"), page::csv(findings)),
    ];
    files.extend(page::plots(findings).into_iter().map(|(name, plot)| (format!("-{name}.svg"), plot)));
    write_files(folder, &format!("regex-{}", dated(&findings.date)), files)
}
