//! Measures this machine's caches and TLBs by chases over memory, in about two seconds.
//!
//! What a machine reports about itself need not be true: hypervisors hide TLBs, and give a guest
//! the last level of a whole socket. A chase through a working set of a size takes as long as the
//! innermost level that holds the set; so sizes and latencies are read from curves.
//!
//! ```no_run
//! use lightfoot_measure::chase;
//! use machine::Machine;
//!
//! let findings = chase::measure()?;
//! let described = chase::describe(&Machine::host(), &findings, "2026-11-23");
//! described.levels.iter().for_each(|level| println!("{}: {:?}", level.name, level.measured));
//! # Ok::<(), chase::Refusal>(())
//! ```
//!
//! | sweep | working sets | tells |
//! |---|---|---|
//! | lines of large pages, walked whole | 4 KiB to 4 MiB | sizes and latencies of inner caches |
//! | lines that are drawn, after a read of all | 5 to 256 MiB | the last level, memory |
//! | one line a page, on base pages | 16 to 8,192 pages | entries of data TLBs |
//! | as many lines, packed | 16 to 8,192 lines | what the sweep over pages owes to caches |
//! | pairs of loads at a distance | 512 KiB | bytes of a line |
//!
//! All of it is done three times, and what one time says and another does not is not believed.
//! [`Refusal::Busy`] is the answer where the thread lost its processor, where trials disagree, and
//! where latency falls as sets grow.
//!
//! **Leaves out** associativity, replacement, prefetchers and the instruction side: they stay as
//! reported. A shared level is measured as one thread finds it now.

mod arena;
pub mod curve;
mod describe;
mod sweep;
mod verdict;
mod walk;

pub use curve::{Riser, Spread, Stairs, Tread};
pub use describe::{describe, Described, Level, Measure};
pub use verdict::{Findings, Refusal, WalkedSet};

use arena::{Arena, Pages};
use curve::Point;
use rustix::time::{clock_gettime, ClockId};
use std::time::{Duration, Instant};
use sweep::Watch;
use verdict::{Round, Sweeps};

/// How often everything is measured.
const ROUNDS: u64 = 3;
/// Trials of a point in each round.
const TRIALS: usize = 5;
/// Trials of a point of a set that is too large to be walked whole.
const TRIALS_SAMPLED: usize = 3;
/// The largest working set.
const SET_BYTES_MAX: usize = 256 << 20;
/// The smallest arena that tells anything.
const SET_BYTES_MIN: usize = 8 << 20;
/// Pages of the largest set of the sweep over pages.
const PAGES_MAX: usize = 8192;
/// Sizes in an octave of sets that are too large to be walked whole.
const SAMPLED_PER_OCTAVE: usize = 4;
/// Bytes of the set of pairs: beyond the first level of any processor.
const PAIRS_BYTES: usize = 512 << 10;
/// Bytes that a trial of the bandwidth reads.
const STREAM_BYTES: usize = 128 << 20;

/// Measures this machine.
///
/// # Errors
/// When the machine is busy, or has no memory to spare.
pub fn measure() -> Result<Findings, Refusal> {
    let (start, before) = (Instant::now(), processor_time());
    let memory = |error: std::io::Error| Refusal::Memory { why: error.to_string() };
    let set_bytes = set_bytes(available_bytes());
    if set_bytes < SET_BYTES_MIN {
        return Err(Refusal::Memory { why: "less than 32 MiB are free".into() });
    }
    let mut large = Arena::new(set_bytes, Pages::Large).map_err(memory)?;
    let mut base = Arena::new(sweep::pages_bytes(PAGES_MAX), Pages::Base).map_err(memory)?;
    let mut watch = Watch::default();
    let cycle = sweep::cycle_ns(&mut watch, TRIALS * ROUNDS as usize);
    let pairs = sweep::neighbours(&mut large, PAIRS_BYTES, 0, TRIALS, &mut watch);
    let rounds: Vec<Round> =
        (1..=ROUNDS).map(|seed| round(&mut large, &mut base, set_bytes, seed, &mut watch)).collect();
    let read = sweep::bandwidth(&mut large, STREAM_BYTES.min(set_bytes), TRIALS, &mut watch);
    let (wall, used) = (start.elapsed(), processor_time().saturating_sub(before));
    verdict::findings(&Sweeps { cycle, pairs, rounds, read, watch, wall, used })
}

fn round(large: &mut Arena, base: &mut Arena, set_bytes: usize, seed: u64, watch: &mut Watch) -> Round {
    let lines = sweep::lines(large, set_bytes, seed, TRIALS, watch);
    let packed = sweep::packed(large, PAGES_MAX, seed, TRIALS, watch);
    let pages = sweep::pages(base, PAGES_MAX, seed, TRIALS, watch);
    // On base pages, walks of the page table would pass for a cache.
    let has_large_pages = large.large_bytes().is_some_and(|bytes| bytes >= sweep::WHOLE_BYTES as u64);
    let sizes = sweep::sizes(sweep::WHOLE_BYTES + 1, set_bytes, SAMPLED_PER_OCTAVE);
    let sampled: Vec<Point> = match has_large_pages {
        true => sweep::sampled(large, &sizes, seed, TRIALS_SAMPLED, watch),
        false => Vec::new(),
    };
    Round { lines, packed, pages, sampled }
}

fn processor_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// A quarter of the free memory, within bounds.
fn set_bytes(available_bytes: Option<u64>) -> usize {
    let quarter =
        available_bytes.map_or(SET_BYTES_MAX, |bytes| usize::try_from(bytes / 4).unwrap_or(usize::MAX));
    let octave = 1 << quarter.max(1).ilog2();
    octave.min(SET_BYTES_MAX)
}

fn available_bytes() -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()? << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_taken_with_care() {
        assert_eq!(set_bytes(None), SET_BYTES_MAX);
        assert_eq!(set_bytes(Some(64 << 30)), SET_BYTES_MAX);
        assert_eq!(set_bytes(Some(300 << 20)), 64 << 20);
        assert!(set_bytes(Some(0)) < SET_BYTES_MIN);
        assert!(available_bytes().is_none_or(|bytes| bytes > 1 << 20));
    }
}
