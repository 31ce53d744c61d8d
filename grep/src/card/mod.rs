//! Decides whether a graphics card would answer sooner, for `--engine auto`, and explains the
//! decision, for `--explain`.
//!
//! A text of the host must first be copied. So a card wins only if the processor takes longer for
//! the bytes than the copy does, and if there are enough bytes to repay the card's start. Both
//! sides are measured on this machine. The processor searches the beginning of the first large file
//! with its engine, which gives its rate for this pattern on this text. The card's rates
//! ([`rates`]) do not depend on the text; they are measured when they first matter and kept in a
//! file. If even the fastest card of today would start too late, no card is opened.

mod rates;

use super::settings::Settings;
use pattern::kernel::cuda::{Cuda, CudaOptions};
use pattern::Regex;
use rates::Rates;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// With fewer bytes no card is considered.
const FROM_BYTES: u64 = 1 << 30;

/// Bytes that the processor searches to measure its rate.
const SAMPLE_BYTES: usize = 32 << 20;

/// If the processor needs less time, no card is considered: drivers take a third of a second to
/// start.
const LEAST_SECONDS: f64 = 0.5;

/// A choice and its reason.
pub(super) struct Choice {
    pub(super) wins: bool,
    pub(super) why: String,
}

impl Choice {
    fn no(why: String) -> Choice {
        Choice { wins: false, why }
    }
}

/// Decides whether a card searches the named files sooner.
pub(super) fn choose(settings: &Settings, regex: &Regex) -> Choice {
    let sizes = settings.paths.iter().filter_map(|path| path.metadata().ok().filter(|about| about.is_file()));
    let bytes: u64 = sizes.map(|about| about.len()).sum();
    if bytes < FROM_BYTES {
        return Choice::no(format!(
            "{bytes} bytes in files that were named, and its start pays from {FROM_BYTES} on"
        ));
    }
    let Some(program) = regex.program() else {
        return Choice::no(format!("the engine {} runs no program", regex.engine()));
    };
    let operations = program.instructions();
    let threads =
        settings.file_threads.or_else(|| std::thread::available_parallelism().ok().map(usize::from));
    let threads = threads.unwrap_or(1);
    // The tests so far cost nothing. This rate takes a measurement, which a small input would not
    // repay.
    let Some(rate) = settings.paths.iter().find_map(|path| processor_rate(regex, path)) else {
        return Choice::no(String::from(
            "no file that was named can be read, so the processor's rate is not known",
        ));
    };
    let processor_seconds = bytes as f64 / rate / threads as f64;
    // The card's rates may have to be measured, which opens the card. A search that ends before any
    // card has started must not get that far.
    if processor_seconds < LEAST_SECONDS {
        return Choice::no(format!(
            "the processor needs about {processor_seconds:.2} s for {bytes} bytes on {threads} threads, at {:.2} GB/s each as measured, and a card longer to start",
            rate / 1e9
        ));
    }
    match Rates::of_this_machine(folder().as_deref()) {
        Ok(rates) => decide(bytes, operations, processor_seconds, &rates),
        Err(error) => Choice::no(error.to_string()),
    }
}

/// Decides by measured rates.
fn decide(bytes: u64, operations: usize, processor_seconds: f64, rates: &Rates) -> Choice {
    let card_seconds = rates.seconds(bytes, operations);
    let why = format!(
        "{bytes} bytes and {operations} operations take about {processor_seconds:.2} s here and {card_seconds:.2} s there, by rates measured on this machine ({rates})"
    );
    Choice { wins: card_seconds < processor_seconds, why }
}

/// Bytes per second that one thread searches at the beginning of a file, after the file was read
/// once.
fn processor_rate(regex: &Regex, path: &Path) -> Option<f64> {
    let mut sample = Vec::with_capacity(SAMPLE_BYTES);
    File::open(path).ok()?.take(SAMPLE_BYTES as u64).read_to_end(&mut sample).ok()?;
    if sample.is_empty() {
        return None;
    }
    let sample = &sample[..];
    regex.count_lines(&sample[..sample.len().min(1 << 20)]);
    let started = Instant::now();
    std::hint::black_box(regex.count_lines(std::hint::black_box(sample)));
    Some(sample.len() as f64 / started.elapsed().as_secs_f64().max(1e-9))
}

/// The user's folder for caches, if there is one.
fn folder() -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = named("XDG_CACHE_HOME").or_else(|| Some(named("HOME")?.join(".cache")));
    folder.map(|folder| folder.join("lightfoot"))
}

/// Sets where compiled programs are kept: in the user's folder for caches, if there is one.
pub(super) fn prepare() {
    // A card that does not open reports that when it is used.
    let _ = Cuda::share(CudaOptions { cache: folder(), ..CudaOptions::default() });
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATES: Rates = Rates { start: 0.4, compilation: 0.1, operation: 0.0005, copy: 15e9 };

    #[test]
    fn a_card_wins_where_the_processor_has_much_to_do() {
        assert!(!decide(2 << 30, 40, 0.25, &RATES).wins, "a start of half a second for a quarter of one");
        assert!(!decide(100 << 30, 40, 3.0, &RATES).wins, "many threads read faster than the link");
        let heavy = decide(100 << 30, 400, 60.0, &RATES);
        assert!(heavy.wins && heavy.why.contains("400 operations"), "{}", heavy.why);
    }

    #[test]
    fn other_rates_choose_otherwise() {
        let slow = Rates { copy: 1e9, ..RATES };
        assert!(decide(10 << 30, 40, 3.0, &RATES).wins);
        assert!(!decide(10 << 30, 40, 3.0, &slow).wins);
    }

    #[test]
    fn the_processor_is_measured_on_the_file_itself() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text");
        std::fs::write(&path, "one line of text\n".repeat(100_000)).unwrap();
        let rate = processor_rate(&Regex::new("[a-z]+ing").unwrap(), &path).unwrap();
        assert!(rate > 1e6 && rate.is_finite(), "{rate}");
        assert!(processor_rate(&Regex::new("a").unwrap(), folder.path()).is_none());
    }
}
