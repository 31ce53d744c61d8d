//! A native run beside the measured one, so that a slowdown is measured and not guessed.
//!
//! The program's output is discarded and it reads the same input again where that is a file, else
//! nothing: it has already spoken once.

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

/// Standard input from its start where it is a file.
fn input() -> Stdio {
    let link = "/proc/self/fd/0";
    let regular = std::fs::metadata(link).is_ok_and(|about| about.is_file());
    let file = regular.then(|| File::open(link).ok()).flatten();
    file.map_or_else(Stdio::null, Stdio::from)
}
