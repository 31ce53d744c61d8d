//! What a byte costs a contender: seconds and cycles by the clock, instructions and mispredicted
//! branches by our own engine.
//!
//! Everything is the difference between a text and its first half, over the difference of their
//! lengths, so that starting, compiling the pattern and mapping the file cancel. Times of all
//! contenders are interleaved, medians of rounds. Cycles are those of the time stamp counter, whose
//! rate the kernel knows; a core that runs faster or slower than that rate has done more or fewer.
//! Instructions and branches are those of `lightfoot cache --branches`, for every contender alike.

use super::contender::{Contender, Programs, CONTENDERS};
use super::family::Family;
use super::findings::Cost;
use super::Texts;
use crate::layout::fix_environment;
use crate::race::{median, race, Entrant, Line};
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

/// Variables of every contender: text is UTF-8.
const LOCALE: (&str, &str) = ("LC_ALL", "C.UTF-8");

/// All contenders on one family, and how many lines there are.
pub(super) fn measure(
    family: &Family,
    programs: &Programs,
    texts: &Texts,
    rounds: usize,
    stamp_hertz: Option<f64>,
) -> (u64, Vec<Cost>) {
    let words = |contender: &Contender| programs.words(contender, family);
    let ours = words(&CONTENDERS[0]);
    let expected = |part: usize| -> Result<u64, String> {
        let [_, text] = texts.counted(part);
        lines(ours.as_ref().map_err(Clone::clone)?, &text)
    };
    let admitted: Vec<Result<Vec<OsString>, String>> = CONTENDERS
        .iter()
        .map(|contender| {
            let [_, text] = texts.counted(contender.part);
            admitted(words(contender)?, &text, expected(contender.part)?)
        })
        .collect();
    // Two entrants a contender: its part of the text, and half of that.
    let entrants: Vec<Entrant> = CONTENDERS
        .iter()
        .zip(&admitted)
        .flat_map(|(contender, words)| {
            let [half, whole] = texts.timed(contender.part);
            [entrant(words, &half, texts, rounds), entrant(words, &whole, texts, rounds)]
        })
        .collect();
    let times = race(&entrants);
    let costs = CONTENDERS.iter().zip(&admitted).enumerate().map(|(at, (contender, words))| {
        let mut cost = Cost { contender: contender.name.into(), ..Cost::default() };
        let median = |times: &Result<Vec<f64>, String>| median(times.as_deref().ok()?);
        let bytes = (texts.bytes / contender.part / 2) as f64;
        let seconds = median(&times[2 * at + 1])
            .zip(median(&times[2 * at]))
            .map(|(whole, half)| whole - half)
            // A difference below nothing is noise, and no speed.
            .filter(|seconds| *seconds > 0.0);
        cost.gigabytes_per_second = seconds.map(|seconds| bytes / seconds / 1e9);
        cost.cycles_per_byte = seconds.zip(stamp_hertz).map(|(seconds, hertz)| seconds * hertz / bytes);
        cost.command = entrants[2 * at + 1].line.as_ref().map_or(String::new(), Line::shown);
        cost.missing = times[2 * at + 1].as_ref().err().cloned();
        if let Ok(words) = words {
            match count(words, programs.own(), texts, contender.part) {
                Ok([instructions, branch_misses]) => {
                    cost.instructions_per_byte = Some(instructions);
                    cost.branch_misses_per_byte = Some(branch_misses);
                }
                Err(error) => cost.missing = Some(format!("{error:#}")),
            }
        }
        cost
    });
    (expected(1).unwrap_or(0), costs.collect())
}

/// The words of a contender that counts the lines that we count.
fn admitted(words: Vec<OsString>, text: &Path, expected: u64) -> Result<Vec<OsString>, String> {
    match lines(&words, text)? {
        counted if counted == expected => Ok(words),
        counted => Err(format!("counts {counted} lines where we count {expected}")),
    }
}

fn entrant(words: &Result<Vec<OsString>, String>, text: &Path, texts: &Texts, rounds: usize) -> Entrant {
    let line = words.clone().map(|mut words| {
        words.push(text.into());
        // GNU grep stops at its first match when it sees that its output is discarded.
        let shell = ["sh", "-c", "exec \"$0\" \"$@\" > counted"].into_iter().map(OsString::from);
        Line { words: shell.chain(words).collect(), env: vec![LOCALE], folder: texts.folder.clone() }
    });
    Entrant { line, rounds }
}

/// The number that a contender prints for a text.
fn lines(words: &[OsString], text: &Path) -> Result<u64, String> {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).arg(text).stdin(Stdio::null()).env(LOCALE.0, LOCALE.1);
    let output = command.output().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => String::from("not installed"),
        _ => error.to_string(),
    })?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let number = printed.trim().rsplit(':').next().unwrap_or_default().trim();
    match (number.parse(), output.status.code()) {
        (Ok(lines), _) => Ok(lines),
        // Some print nothing where nothing matches.
        (Err(_), Some(1)) if number.is_empty() => Ok(0),
        _ => Err(format!("refuses the pattern: {}", output.status)),
    }
}

/// Instructions and mispredicted branches a byte.
fn count(words: &[OsString], own: &Path, texts: &Texts, part: usize) -> Result<[f64; 2]> {
    let [half, whole] = texts.counted(part).map(|text| totals(words, own, &text, &texts.folder));
    let (half, whole) = (half?, whole?);
    Ok([0, 1].map(|which| (whole[which] - half[which]) / texts.counted_bytes(part) as f64))
}

/// Instructions and mispredicted branches of one run.
fn totals(words: &[OsString], own: &Path, text: &Path, folder: &Path) -> Result<[f64; 2]> {
    let report = folder.join("count.json");
    let mut command = Command::new(own);
    fix_environment(&mut command, 0);
    command.env(LOCALE.0, LOCALE.1).current_dir(folder);
    command.args(["cache", "--branches", "--machine", "cachegrind", "--format", "json", "--top", "1", "-o"]);
    command.arg(&report).arg("--").args(words).arg(text);
    let output = command.stdin(Stdio::null()).output().context("cannot run lightfoot cache")?;
    let read = std::fs::read(&report).with_context(|| {
        format!("lightfoot cache wrote no report: {}", String::from_utf8_lossy(&output.stderr).trim())
    })?;
    std::fs::remove_file(&report)?;
    let value: serde_json::Value = serde_json::from_slice(&read)?;
    let field =
        |name: &str| value["totals"][name].as_f64().with_context(|| format!("the report holds no {name}"));
    Ok([field("instructions")?, field("branch_mispredictions")?])
}

/// Cycles of the time stamp counter in a second: Linux calibrates its delay loop by it, two turns
/// ("bogomips") a cycle.
pub(super) fn stamp_hertz() -> Option<f64> {
    if !cfg!(target_arch = "x86_64") {
        return None;
    }
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("bogomips")?.split_once(':'))?;
    line.1.trim().parse::<f64>().ok().map(|turns| turns / 2.0 * 1e6)
}
