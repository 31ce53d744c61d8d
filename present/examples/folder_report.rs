//! Reports how many bytes lie in each folder below a path:
//! `cargo run -p lightfoot-present --example folder_report -- PATH [FILE]`.
//!
//! With `FILE` the report replaces that file whole or not at all; without, it goes to standard
//! error. A folder that cannot be written to is refused before the work begins.

use anyhow::Context;
use lightfoot_present::exit::of_error;
use lightfoot_present::number::{compact, percent};
use lightfoot_present::output::Destination;
use lightfoot_present::tell;
use lightfoot_present::terminal::printable;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Bytes of the files in a folder and below it; links are not followed.
fn bytes_below(folder: &Path) -> anyhow::Result<u64> {
    let mut total = 0;
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        let about = entry.metadata()?;
        total += if about.is_dir() { bytes_below(&entry.path())? } else { about.len() };
    }
    Ok(total)
}

fn report(folder: &Path) -> anyhow::Result<String> {
    let mut rows: Vec<(u64, String)> = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let entry = entry?;
        if entry.metadata()?.is_dir() {
            rows.push((bytes_below(&entry.path())?, entry.file_name().to_string_lossy().into_owned()));
        }
    }
    rows.sort_unstable_by(|a, b| b.cmp(a));
    let total = rows.iter().map(|(bytes, _)| bytes).sum();
    let row = |(bytes, name): &(u64, String)| {
        format!("{:>9} {:>7}  {}\n", compact(*bytes), percent(*bytes, total), printable(name))
    };
    Ok(rows.iter().map(row).collect())
}

fn run() -> anyhow::Result<()> {
    let mut words = std::env::args_os().skip(1).map(PathBuf::from);
    let folder = words.next().context("usage: folder_report PATH [FILE]")?;
    let destination = Destination::new(words.next().as_deref())?;
    destination.write(report(&folder)?)
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell!("folder_report: {error:#}");
            ExitCode::from(of_error(&error))
        }
    }
}
