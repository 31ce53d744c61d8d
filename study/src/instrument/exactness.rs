//! Counts beside themselves and beside cachegrind's.

use super::contender::{Tools, CACHEGRIND, COUNT};
use super::result::{Exactness, Timing};
use crate::race::Line;
use std::path::Path;
use std::process::{Command, Stdio};

/// Counts a program again, and once with iterations; the first count and cachegrind's are those of
/// the race before.
pub(super) fn measure(tools: &Tools, program: &Line, timings: &[Timing]) -> Exactness {
    let mut exactness = Exactness::default();
    let raced = |name| timings.iter().any(|timing| timing.name == name && timing.median_s.is_some());
    let first = raced(COUNT).then(|| instructions(&tools.count_report()).ok()).flatten();
    let mut count = |options: &[&str]| {
        let counted = tools.count(program, options).time().and_then(|_| instructions(&tools.count_report()));
        counted.map_err(|reason| exactness.missing.push(reason)).ok()
    };
    let (second, iterations) = (count(&[]), count(&["--rep", "iterations"]));
    exactness.repeats = first.zip(second).map(|(first, second)| [first, second]);
    exactness.iterations = iterations;
    exactness.same_output = same_output(program, &tools.count(program, &[]));
    exactness.cachegrind = raced(CACHEGRIND).then(|| summary(&tools.cachegrind_out())).flatten();
    exactness
}

/// Whether a program says the same and ends the same natively and counted; `None` if it cannot run.
fn same_output(program: &Line, counted: &Line) -> Option<bool> {
    let run = |line: &Line| {
        let mut command = Command::new(&line.words[0]);
        command.args(&line.words[1..]).envs(line.env.iter().copied()).current_dir(&line.folder);
        command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()
    };
    let (native, counted) = (run(program)?, run(counted)?);
    Some(native.status.code() == counted.status.code() && native.stdout == counted.stdout)
}

fn instructions(report: &Path) -> Result<u64, String> {
    let text = std::fs::read_to_string(report).map_err(|error| error.to_string())?;
    let json: serde_json::Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    json["totals"]["instructions"].as_u64().ok_or_else(|| "the report has no instructions".into())
}

/// The first number of cachegrind's `summary:` line: instructions.
fn summary(path: &Path) -> Option<u64> {
    let text = String::from_utf8_lossy(&std::fs::read(path).ok()?).into_owned();
    let line = text.lines().rev().find_map(|line| line.strip_prefix("summary:"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_output_or_status_is_seen() {
        let line = |script: &str| Line {
            words: ["sh", "-c", script].map(Into::into).to_vec(),
            env: Vec::new(),
            folder: "/".into(),
        };
        assert_eq!(same_output(&line("echo a"), &line("echo a")), Some(true));
        assert_eq!(same_output(&line("echo a"), &line("echo b")), Some(false));
        assert_eq!(same_output(&line("echo a"), &line("echo a; exit 1")), Some(false));
        let missing = Line { words: vec!["/no/such/program".into()], env: Vec::new(), folder: "/".into() };
        assert_eq!(same_output(&missing, &line("echo a")), None);
    }

    #[test]
    fn the_summary_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        std::fs::write(&path, b"fn=\xff\n1 2\nsummary: 123456 7 8\n").unwrap();
        assert_eq!(summary(&path), Some(123_456));
        std::fs::write(&path, "summary:\n").unwrap();
        assert_eq!(summary(&path), None);
    }
}
