//! Times a native run in addition to the measured one, so that the slowdown is measured and not
//! guessed.
//!
//! The output of this run is discarded, because the program has already written it once. If
//! standard input is a file it is read again, else it is empty.

use instrument::Command;
use std::fs::File;
use std::process::Stdio;
use std::time::Instant;

/// Wall seconds of a native run.
///
/// # Errors
/// When the program cannot be started.
pub fn wall_s(command: &Command) -> std::io::Result<f64> {
    let mut native = std::process::Command::new(&command.program);
    native.args(&command.arguments).stdin(input()).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    native.status()?;
    Ok(start.elapsed().as_secs_f64())
}

/// Standard input from its start if it is a file, else nothing.
fn input() -> Stdio {
    let link = "/proc/self/fd/0";
    let regular = std::fs::metadata(link).is_ok_and(|about| about.is_file());
    let file = regular.then(|| File::open(link).ok()).flatten();
    file.map_or_else(Stdio::null, Stdio::from)
}
