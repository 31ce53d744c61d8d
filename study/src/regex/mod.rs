//! `lightfoot study regex`: bit-parallel matching beside other greps, and what it costs per byte.
//!
//! The evaluation of Cameron et al. 2014 in kind: pattern families, time against grep, ripgrep,
//! ugrep and agrep where they are installed, and instructions and branches per byte, counted by
//! lightfoot's own engine and not by hardware. A count is that of the whole process on a text minus
//! that on its first half, over the difference of their lengths, so start-up cancels. Times are
//! wall times of whole commands that count matching lines, one thread, interleaved, output to a
//! file; the corpus is text of this machine, and every contender must count the same lines or is
//! left out. Deliberately absent: branch misses and cycles, which need counters that many machines
//! hide.

mod card;
mod claim;
mod corpus;
mod family;
mod findings;
mod page;
mod width;

use crate::options::{Effort, Options};
use crate::outcome::Outcome;
use crate::race::{median, race, Entrant, Line};
use crate::workshop::workshop;
use anyhow::{Context, Result};
use family::{Family, FAMILIES};
use findings::{Findings, PerByte, Row, Timing};
use present::date;
use present::output::replace;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A grep: its program, and the words before the pattern.
struct Peer {
    name: &'static str,
    words: &'static [&'static str],
}

const PEERS: &[Peer] = &[
    Peer { name: "ripgrep", words: &["rg", "--no-config", "-j1", "-a", "-c", "-e"] },
    Peer { name: "GNU grep", words: &["grep", "-a", "-c", "-E", "-e"] },
    Peer { name: "ugrep", words: &["ugrep", "-J1", "-a", "-c", "-e"] },
    Peer { name: "agrep", words: &["agrep", "-c", "-e"] },
];

/// Runs the study and writes its results.
pub(super) fn run(options: &Options) -> Result<Outcome> {
    let quick = options.effort == Effort::Quick;
    let folder = workshop()?;
    let (bytes, rounds, counted) = if quick { (16 << 20, 3, 128 << 10) } else { (128 << 20, 7, 1 << 20) };
    let text = corpus::collect(bytes);
    let paths = Paths::write(folder.path(), &text, counted)?;
    let mut rows = Vec::new();
    for family in FAMILIES {
        present::tell!("lightfoot: {}", family.name);
        rows.push(row(family, &paths, text.len(), rounds, counted)?);
    }
    let widths = width::measure(&text);
    let findings = Findings {
        schema: 1,
        date: date::today(),
        effort: if quick { "quick" } else { "full" },
        version: env!("CARGO_PKG_VERSION"),
        corpus_bytes: text.len(),
        counted_bytes: counted,
        claims: claim::check(&rows, &widths),
        widths,
        rows,
        card: card::measure(&text, options.effort),
    };
    let files = write(&findings, &options.folder)?;
    Ok(Outcome { summary: page::text(&findings), claims: findings.claims, files })
}

/// The corpus, and a beginning of it of which a half is another.
struct Paths {
    whole: PathBuf,
    half: PathBuf,
    full: PathBuf,
    folder: PathBuf,
}

impl Paths {
    fn write(folder: &Path, text: &[u8], counted: usize) -> Result<Paths> {
        let part = |bytes: usize| &text[..bytes.min(text.len())];
        let save = |name: &str, text: &[u8]| {
            let path = folder.join(name);
            std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
            Ok::<PathBuf, anyhow::Error>(path)
        };
        Ok(Paths {
            whole: save("whole", text)?,
            half: save("half", part(counted))?,
            full: save("full", part(2 * counted))?,
            folder: folder.to_owned(),
        })
    }
}

fn ours(pattern: &str) -> Result<Vec<OsString>> {
    let program = std::env::current_exe().context("cannot tell where lightfoot itself is")?;
    let words = ["grep", "--no-config", "-j1", "-a", "-c", "-e", pattern];
    Ok([program.into()].into_iter().chain(words.map(OsString::from)).collect())
}

fn row(family: &Family, paths: &Paths, bytes: usize, rounds: usize, counted: usize) -> Result<Row> {
    let words = ours(family.pattern)?;
    let lines = count(&words, &paths.whole).unwrap_or(0);
    let mut names = vec!["lightfoot"];
    let mut entrants = vec![entrant(Ok(words.clone()), paths, rounds)];
    for peer in PEERS {
        names.push(peer.name);
        entrants.push(entrant(admitted(peer, family, paths, lines), paths, rounds));
    }
    let times = race(&entrants);
    let timings = names.into_iter().zip(&entrants).zip(times).map(|((contender, entrant), times)| {
        let seconds = times.as_ref().ok().and_then(|times| median(times));
        Timing {
            contender,
            command: entrant.line.as_ref().map_or(String::new(), Line::shown),
            gigabytes_per_second: seconds.map(|seconds| bytes as f64 / seconds / 1e9),
            missing: times.err(),
        }
    });
    let timings = timings.collect();
    let engine =
        pattern::Regex::new(family.pattern).map_or_else(|error| error.to_string(), |r| r.engine().to_owned());
    let per_byte = per_byte(&words, paths, counted);
    Ok(Row { family: family.name, pattern: family.pattern, engine, lines, timings, per_byte })
}

/// The words of a peer that is installed and counts what we count.
fn admitted(peer: &Peer, family: &Family, paths: &Paths, lines: u64) -> Result<Vec<OsString>, String> {
    let words: Vec<OsString> =
        peer.words.iter().copied().chain([family.pattern]).map(OsString::from).collect();
    match count(&words, &paths.whole) {
        Ok(counted) if counted == lines => Ok(words),
        Ok(counted) => Err(format!("counts {counted} lines where we count {lines}")),
        Err(reason) => Err(reason),
    }
}

fn entrant(words: Result<Vec<OsString>, String>, paths: &Paths, rounds: usize) -> Entrant {
    let line = words.map(|mut words| {
        words.push(paths.whole.clone().into());
        // GNU grep stops at its first match when it sees that its output is discarded.
        let words = ["sh", "-c", "exec \"$0\" \"$@\" > counted"]
            .into_iter()
            .map(OsString::from)
            .chain(words)
            .collect();
        Line { words, env: vec![("LC_ALL", "C.UTF-8")], folder: paths.folder.clone() }
    });
    Entrant { line, rounds }
}

/// The number that a grep prints for a text.
fn count(words: &[OsString], text: &Path) -> Result<u64, String> {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).arg(text).stdin(Stdio::null()).env("LC_ALL", "C.UTF-8");
    let output = command.output().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => String::from("not installed"),
        _ => error.to_string(),
    })?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let number = printed.trim().rsplit(':').next().unwrap_or_default().trim();
    number.parse().map_err(|_| format!("refuses the pattern: {}", output.status))
}

fn per_byte(words: &[OsString], paths: &Paths, counted: usize) -> PerByte {
    let difference = |measure: &dyn Fn(&Path) -> Result<f64>| -> Result<f64> {
        Ok((measure(&paths.full)? - measure(&paths.half)?) / counted as f64)
    };
    let instructions = difference(&|text| instructions(words, text, &paths.folder));
    let branches = difference(&|text| branches(words, text));
    let missing = instructions.as_ref().err().or(branches.as_ref().err()).map(|error| format!("{error:#}"));
    PerByte { instructions: instructions.ok(), branches: branches.ok(), missing }
}

fn measured(command: &[&str], words: &[OsString], text: &Path) -> Result<std::process::Output> {
    let mut child = Command::new(&words[0]);
    child.args(command).arg("--").args(words).arg(text).stdin(Stdio::null());
    Ok(child.output()?)
}

fn instructions(words: &[OsString], text: &Path, folder: &Path) -> Result<f64> {
    let report = folder.join("count.json");
    measured(&["count", "--format", "json", "-o", &report.to_string_lossy()], words, text)?;
    let read = std::fs::read(&report).context("lightfoot count wrote no report")?;
    let value: serde_json::Value = serde_json::from_slice(&read)?;
    std::fs::remove_file(&report)?;
    value["totals"]["instructions"].as_f64().context("the report holds no instructions")
}

fn branches(words: &[OsString], text: &Path) -> Result<f64> {
    let output = measured(&["tool", "branch-mix"], words, text)?;
    let report = String::from_utf8_lossy(&output.stderr);
    let number = |line: &str| line.split_whitespace().next()?.parse::<f64>().ok();
    let conditional = report.lines().filter(|line| line.contains("  conditional branches "));
    let all: Vec<f64> = conditional.filter_map(number).collect();
    anyhow::ensure!(all.len() == 2, "the tool branch-mix printed no conditional branches");
    Ok(all.iter().sum())
}

fn write(findings: &Findings, folder: &Path) -> Result<Vec<PathBuf>> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let files = [
        ("md", page::text(findings)),
        ("json", serde_json::to_string_pretty(findings)? + "\n"),
        ("csv", page::csv(findings)),
        ("svg", page::plot(findings)),
    ];
    let mut paths = Vec::new();
    for (extension, content) in files {
        let path = folder.join(format!("regex-{}.{extension}", findings.date));
        replace(&path, &content).with_context(|| format!("cannot write {}", path.display()))?;
        paths.push(path);
    }
    Ok(paths)
}
