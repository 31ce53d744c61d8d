//! Trace files as arguments of commands.

use anyhow::Result;
use measure::align::Band;
use measure::trace::{check, decode, Trace};
use present::exit::{Failure, USAGE};
use std::path::Path;

/// Reads a trace; if it is cut or inconsistent, a warning goes to standard error.
///
/// # Errors
/// If there is no such file, or nothing can be read from it.
pub(super) fn read(path: &Path) -> Result<Trace> {
    let refuse =
        |reason: String| Failure { status: USAGE, sentence: format!("{}: {reason}", path.display()) };
    let bytes = std::fs::read(path).map_err(|error| refuse(error.to_string()))?;
    let trace = decode(&bytes).map_err(|error| refuse(error.to_string()))?;
    if let Some(cut) = &trace.cut {
        let (at, of, why, records) = (cut.at_byte, cut.of_bytes, cut.why, trace.records.len());
        present::tell!(
            "lightfoot: {}: cut at byte {at} of {of} ({why}); {records} records are used",
            path.display()
        );
    }
    if let Some(complaint) = check(&trace).first() {
        present::tell!("lightfoot: {}: {complaint}", path.display());
    }
    Ok(trace)
}

/// The band for a share of the longer trace; from 1 on there is no band.
///
/// # Errors
/// If `share` is not a share.
pub(super) fn band(share: f64) -> Result<Band> {
    match share {
        s if s >= 1.0 => Ok(Band::Whole),
        s if s > 0.0 => Ok(Band::Slanted(s)),
        s => {
            let sentence = format!("--band {s} is no share of a trace: give more than 0, and 1 for no band");
            Err(Failure { status: USAGE, sentence }.into())
        }
    }
}
