//! How soon this machine's card is ready, and how fast it searches text of the host: measured once,
//! and kept in a file.
//!
//! Three searches give four figures: opening the card, compiling a small and a large program, and a
//! text of zeros and line ends that is large enough to hide the start. The file names the driver
//! and the processor for which it was measured; if either changes, rates are measured again.
//! **Leaves out** rates of resident text, which a search of files never has.

use anyhow::{Context, Result};
use pattern::kernel::cuda::{Cuda, CudaOptions};
use pattern::regex::RegexBuilder;
use pattern::Regex;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;
use std::time::Instant;

/// Bytes that are searched to measure the rate.
const TEXT_BYTES: usize = 256 << 20;

/// The name of the file in the folder for caches.
const FILE: &str = "card-rates.json";

/// A pattern with many operations: classes and repetitions.
const LARGE: &str = "(([A-Za-z]{1,10} ){2,3}[a-z]{2,10})+[.]|[0-9]{1,3}([.][0-9]{1,3}){3}|([^ @]+)@([^ @]+)";
const SMALL: &str = "[xy]z";

/// The measured rates.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Rates {
    /// Seconds until the card is open.
    pub(super) start: f64,
    /// Seconds that any compilation takes.
    pub(super) compilation: f64,
    /// Seconds that each operation of a program adds.
    pub(super) operation: f64,
    /// Bytes per second of text that comes from the host.
    pub(super) copy: f64,
}

/// The rates as stored in the file.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    machine: String,
    rates: Rates,
}

impl Rates {
    /// The rates in the file, or rates that are measured now.
    ///
    /// # Errors
    /// When no card works.
    pub(super) fn of_this_machine(folder: Option<&Path>) -> Result<Rates> {
        let machine = machine();
        if let Some(rates) = folder.and_then(|folder| read(&folder.join(FILE), &machine)) {
            return Ok(rates);
        }
        let rates = Rates::measure()?;
        if let Some(folder) = folder {
            // Rates that cannot be stored are measured again next time.
            let _ = keep(folder, &Kept { machine, rates });
        }
        Ok(rates)
    }

    /// Seconds until a card has searched text of the host with a program that is new to it.
    pub(super) fn seconds(&self, bytes: u64, operations: usize) -> f64 {
        self.start + self.compilation + operations as f64 * self.operation + bytes as f64 / self.copy
    }

    fn measure() -> Result<Rates> {
        let started = Instant::now();
        // Without a folder, so that programs are really compiled.
        Cuda::share(CudaOptions::default())?;
        let start = started.elapsed().as_secs_f64();
        let few = timed(SMALL, &[])?;
        let many = timed(LARGE, &[])?;
        let operation = ((many.seconds - few.seconds) / (many.operations - few.operations) as f64).max(0.0);
        let compilation = (few.seconds - few.operations as f64 * operation).max(0.0);
        let text: Vec<u8> = (0..TEXT_BYTES).map(|at| if at % 64 == 63 { b'\n' } else { b'0' }).collect();
        // The first pass allocates memory of the card and of the host, which the second one reuses.
        few.regex.count_lines(&text);
        let searching = Instant::now();
        std::hint::black_box(few.regex.count_lines(&text));
        let copy = TEXT_BYTES as f64 / searching.elapsed().as_secs_f64();
        Ok(Rates { start, compilation, operation, copy })
    }
}

impl fmt::Display for Rates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.2} s to start, {:.2} s to compile and {:.2} ms for each operation, {:.1} GB/s",
            self.start,
            self.compilation,
            self.operation * 1e3,
            self.copy / 1e9
        )
    }
}

/// A pattern on the card, and the time until it was ready.
struct Timed {
    regex: Regex,
    operations: usize,
    seconds: f64,
}

fn timed(pattern: &str, text: &[u8]) -> Result<Timed> {
    let started = Instant::now();
    let regex = RegexBuilder::new().engine("cuda").build(pattern)?;
    if regex.engine() != "cuda" {
        // Tries again only to get the reason.
        regex.on_card()?;
    }
    std::hint::black_box(regex.count_lines(text));
    let seconds = started.elapsed().as_secs_f64();
    let operations = regex.program().map_or(1, |program| program.instructions());
    Ok(Timed { regex, operations, seconds })
}

/// The driver's version and the processor, on which the figures depend.
fn machine() -> String {
    let driver = std::fs::read_to_string("/proc/driver/nvidia/version").unwrap_or_default();
    let processor = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = processor.lines().find(|line| line.starts_with("model name")).unwrap_or_default();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{}; {model}; {threads} threads; lightfoot {}", driver.trim(), env!("CARGO_PKG_VERSION"))
}

fn read(path: &Path, machine: &str) -> Option<Rates> {
    let kept: Kept = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
    let figures = [kept.rates.start, kept.rates.compilation, kept.rates.operation, kept.rates.copy];
    let sound = figures.iter().all(|figure| figure.is_finite() && *figure >= 0.0) && kept.rates.copy > 0.0;
    (kept.machine == machine && sound).then_some(kept.rates)
}

fn keep(folder: &Path, kept: &Kept) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let text = serde_json::to_string_pretty(kept)?;
    present::output::replace(&folder.join(FILE), text)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATES: Rates = Rates { start: 0.5, compilation: 0.1, operation: 0.001, copy: 10e9 };

    #[test]
    fn rates_are_kept_for_the_machine_that_they_are_of() {
        let folder = tempfile::tempdir().unwrap();
        let kept = Kept { machine: machine(), rates: RATES };
        keep(&folder.path().join("new"), &kept).unwrap();
        let path = folder.path().join("new").join(FILE);
        assert_eq!(read(&path, &machine()), Some(RATES));
        assert_eq!(Rates::of_this_machine(Some(&folder.path().join("new"))).unwrap(), RATES);
        assert_eq!(read(&path, "another driver"), None);
        std::fs::write(&path, b"{\"machine\":").unwrap();
        assert_eq!(read(&path, &machine()), None);
    }

    #[test]
    fn a_rate_that_cannot_be_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let kept = Kept { machine: machine(), rates: Rates { copy: 0.0, ..RATES } };
        keep(folder.path(), &kept).unwrap();
        assert_eq!(read(&folder.path().join(FILE), &machine()), None);
    }

    #[test]
    fn seconds_add_up() {
        assert!((RATES.seconds(20_000_000_000, 400) - 3.0).abs() < 1e-9);
    }
}
