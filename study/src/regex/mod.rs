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

/// The corpus on disk, in parts: a contender that is slow gets a fourth of the bytes or fewer.
///
/// Everything is measured as a difference between a text and its first half. The second half
/// repeats the first, and both are made of pieces from all over the corpus ([`corpus::sample`]): so
/// what is timed and what is counted, on a shorter text, are of one kind, and their quotients mean
/// something.
struct Texts {
    folder: PathBuf,
    /// Bytes of the whole corpus.
    bytes: usize,
    parts: Vec<Part>,
}

/// The texts of the contenders that get a share of the corpus.
struct Part {
    /// The whole corpus over this number.
    number: usize,
    /// Bytes of half of the text that is timed.
    timed_bytes: usize,
    /// Bytes of half of the text whose instructions are counted.
    counted_bytes: usize,
}

impl Texts {
    fn write(folder: &Path, text: &[u8], counted: usize) -> Result<Texts> {
        let save = |name: String, text: &[u8]| {
            let path = folder.join(name);
            std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
        };
        // Writes a text and its half, and gives the length of the half.
        let halves = |name: &str, number: usize, bytes: usize| -> Result<usize> {
            let half = corpus::sample(text, bytes);
            save(format!("half-{name}-{number}"), &half)?;
            save(format!("{name}-{number}"), &half.repeat(2))?;
            Ok(half.len())
        };
        let numbers = present::order::set_of(CONTENDERS.iter().map(|contender| contender.part));
        let part = |number| {
            Ok(Part {
                number,
                timed_bytes: halves("timed", number, text.len() / number / 2)?,
                counted_bytes: halves("counted", number, counted / number)?,
            })
        };
        let parts = numbers.into_iter().map(part).collect::<Result<_>>()?;
        Ok(Texts { folder: folder.to_owned(), bytes: text.len(), parts })
    }

    fn part(&self, number: usize) -> &Part {
        self.parts.iter().find(|part| part.number == number).expect("every contender's part was written")
    }

    /// Half of what is timed for a contender that gets a part, and all of it.
    fn timed(&self, part: usize) -> [PathBuf; 2] {
        ["half-timed", "timed"].map(|name| self.folder.join(format!("{name}-{part}")))
    }

    /// Half of what is counted for a contender that gets a part, and all of it.
    fn counted(&self, part: usize) -> [PathBuf; 2] {
        ["half-counted", "counted"].map(|name| self.folder.join(format!("{name}-{part}")))
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
