//! Whether a graphics card would answer sooner: for `--engine auto`, and why, for `--explain`.
//!
//! A text of the host must first be copied, so a card wins only where the processor needs longer for the bytes than the copy does, and where there are enough bytes to
//! repay its start. The rates are declared, not measured here: a study of a machine with a card replaces them. A card is opened only when it would win.

use super::settings::Settings;
use pattern::kernel::cuda::{Cuda, CudaOptions};
use pattern::Regex;
use std::path::PathBuf;

/// Seconds until a card is ready: the driver's start and the compilation of a program.
const START_SECONDS: f64 = 0.5;

/// Bytes per second from files that are cached through pinned buffers to a card.
const COPY_RATE: f64 = 20e9;

/// Bytes per second that one thread reads.
const READ_RATE: f64 = 8e9;

/// Operations on one bit that a thread does in a second: 512 at each of three billion cycles.
const OPERATION_RATE: f64 = 1.5e12;

/// Fewer bytes are not asked about.
const FROM_BYTES: u64 = 1 << 30;

/// A choice and its reason.
pub(super) struct Choice {
    pub(super) wins: bool,
    pub(super) why: String,
}

/// Whether the files that were named are searched sooner by a card.
pub(super) fn choose(settings: &Settings, regex: &Regex) -> Choice {
    let sizes = settings.paths.iter().filter_map(|path| path.metadata().ok().filter(|about| about.is_file()));
    let bytes: u64 = sizes.map(|about| about.len()).sum();
    if bytes < FROM_BYTES {
        let why = format!("{bytes} bytes in files that were named, and its start pays from {FROM_BYTES} on");
        return Choice { wins: false, why };
    }
    let Some(program) = regex.program() else {
        let why = format!("the engine {} runs no program", regex.engine());
        return Choice { wins: false, why };
    };
    let threads =
        settings.file_threads.or_else(|| std::thread::available_parallelism().ok().map(usize::from));
    estimate(bytes, program.instructions(), threads.unwrap_or(1))
}

/// The choice by declared rates.
fn estimate(bytes: u64, operations: usize, threads: usize) -> Choice {
    let here = bytes as f64 * (1.0 / READ_RATE + operations as f64 / OPERATION_RATE) / threads as f64;
    let there = START_SECONDS + bytes as f64 / COPY_RATE;
    let why = format!(
        "{bytes} bytes and {operations} operations take about {here:.2} s on {threads} threads and {there:.2} s there, by declared rates"
    );
    Choice { wins: there < here, why }
}

/// Decides where compiled programs are kept: in the user's folder for caches, where there is one.
pub(super) fn prepare() {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = named("XDG_CACHE_HOME").or_else(|| Some(named("HOME")?.join(".cache")));
    let cache = folder.map(|folder| folder.join("lightfoot"));
    // A card that does not open says so where it is used.
    let _ = Cuda::share(CudaOptions { cache, ..CudaOptions::default() });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_wins_where_the_processor_has_much_to_do() {
        assert!(!estimate(2 << 30, 40, 1).wins, "a start of half a second for a quarter of one");
        assert!(!estimate(100 << 30, 40, 16).wins, "sixteen threads read faster than the link");
        let heavy = estimate(100 << 30, 4000, 1);
        assert!(heavy.wins && heavy.why.contains("4000 operations"), "{}", heavy.why);
    }
}
