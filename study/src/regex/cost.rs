//! What a byte costs a contender: seconds and cycles by the clock, instructions and mispredicted
//! branches by our own engine.
//!
//! Everything is the difference between a text and its first half, which its second half repeats,
//! over the difference of their lengths, so that starting, compiling the pattern and mapping the
//! file cancel. Times of all
//! contenders are interleaved, medians of rounds. Cycles are those of the time stamp counter, whose
//! rate the kernel knows; a core that runs faster or slower than that rate has done more or fewer.
//! Instructions and branches are those of `lightfoot cache --branches`, for every contender alike.

use super::contender::{Contender, Programs, CONTENDERS};
use super::family::Family;
use super::findings::Cost;
use super::Texts;
use crate::layout::fix_environment;
use crate::race::{median, race, Entrant, Line, Times};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

/// Variables of every contender: text is UTF-8.
const LOCALE: (&str, &str) = ("LC_ALL", "C.UTF-8");

/// What one family costs every contender in instructions.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Counted {
    /// Lines that match, of the text whose instructions are counted.
    pub(super) lines: u64,
    /// Instructions and mispredicted branches a byte of each contender, or why it has none, in the
    /// order of [`CONTENDERS`].
    per_byte: Vec<Result<[f64; 2], String>>,
}

/// The time of every contender, in the order of [`CONTENDERS`].
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Timed(Vec<TimedOne>);

/// The time of one contender.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct TimedOne {
    /// The command as a person would type it; empty where there is none.
    command: String,
    /// Seconds for half of the contender's part of the text, or why there are none.
    seconds: Result<f64, String>,
}

/// Counts instructions and branches of all contenders on one family. The load of the machine does
/// not change them.
pub(super) fn count(family: &Family, programs: &Programs, texts: &Texts) -> Counted {
    let per_byte = admit(family, programs, texts).into_iter().zip(CONTENDERS).map(|(words, contender)| {
        count_one(&words?, programs.own(), texts, contender.part).map_err(|error| format!("{error:#}"))
    });
    let per_byte = per_byte.collect();
    Counted { lines: expected(family, programs, texts, 1).unwrap_or(0), per_byte }
}

/// Times all contenders on one family, interleaved: two entrants each, for its part of the text and
/// for half of that.
pub(super) fn time(family: &Family, programs: &Programs, texts: &Texts, rounds: usize) -> Timed {
    let admitted = admit(family, programs, texts);
    let entrants: Vec<Entrant> = CONTENDERS
        .iter()
        .zip(&admitted)
        .flat_map(|(contender, words)| {
            texts.timed(contender.part).map(|text| entrant(words, &text, texts, rounds))
        })
        .collect();
    let times = race(&entrants);
    let pairs = entrants.chunks_exact(2).zip(times.chunks_exact(2));
    Timed(pairs.map(|(entrants, times)| timed_one(&entrants[1], &times[0], &times[1])).collect())
}

/// The difference of the medians of a text and of its half.
fn timed_one(whole: &Entrant, half_times: &Times, whole_times: &Times) -> TimedOne {
    let middle = |times: &Times| {
        let times = times.as_ref().map_err(Clone::clone)?;
        median(times).ok_or_else(|| String::from("no round was run"))
    };
    let difference = || {
        let seconds = middle(whole_times)? - middle(half_times)?;
        // A difference below nothing is noise, and no speed.
        if seconds > 0.0 {
            Ok(seconds)
        } else {
            Err(String::from("the text takes no longer than half of it"))
        }
    };
    TimedOne { command: whole.line.as_ref().map_or(String::new(), Line::shown), seconds: difference() }
}

/// Counts and times side by side.
pub(super) fn costs(counted: &Counted, timed: &Timed, texts: &Texts, stamp_hertz: Option<f64>) -> Vec<Cost> {
    let both = counted.per_byte.iter().zip(&timed.0);
    let cost = |(contender, (counted, timed)): (&Contender, (&Result<[f64; 2], String>, &TimedOne))| {
        let bytes = texts.part(contender.part).timed_bytes as f64;
        let seconds = timed.seconds.as_ref().ok().copied();
        let counts = counted.as_ref().ok();
        Cost {
            contender: contender.name.into(),
            command: timed.command.clone(),
            gigabytes_per_second: seconds.map(|seconds| bytes / seconds / 1e9),
            cycles_per_byte: seconds.zip(stamp_hertz).map(|(seconds, hertz)| seconds * hertz / bytes),
            instructions_per_byte: counts.map(|counts| counts[0]),
            branch_misses_per_byte: counts.map(|counts| counts[1]),
            missing: counted.as_ref().err().or(timed.seconds.as_ref().err()).cloned(),
        }
    };
    CONTENDERS.iter().zip(both).map(cost).collect()
}

/// The words of every contender that takes part, or why it does not.
fn admit(family: &Family, programs: &Programs, texts: &Texts) -> Vec<Result<Vec<OsString>, String>> {
    let one = |contender: &Contender| {
        let [_, text] = texts.counted(contender.part);
        let expected = expected(family, programs, texts, contender.part)?;
        admitted(programs.words(contender, family)?, &text, expected)
    };
    CONTENDERS.iter().map(one).collect()
}

/// The lines of a sample that match, as `lightfoot grep` counts them.
fn expected(family: &Family, programs: &Programs, texts: &Texts, part: usize) -> Result<u64, String> {
    let [_, text] = texts.counted(part);
    lines(&programs.words(&CONTENDERS[0], family)?, &text)
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
fn count_one(words: &[OsString], own: &Path, texts: &Texts, part: usize) -> Result<[f64; 2]> {
    let [half, whole] = texts.counted(part).map(|text| totals(words, own, &text, &texts.folder));
    let (half, whole) = (half?, whole?);
    Ok([0, 1].map(|which| (whole[which] - half[which]) / texts.part(part).counted_bytes as f64))
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
