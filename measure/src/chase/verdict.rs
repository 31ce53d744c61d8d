//! What several rounds of sweeps say together, or that they say nothing.

use super::curve::{stairs, Point, Riser, Spread, Stairs, Tread, Unclear};
use super::sweep::Watch;
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// The part of its time that the thread may be without a processor.
const LOST_MAX: f64 = 0.1;
/// The part of all trials that may be disturbed.
const DISTURBED_MAX: f64 = 0.1;
/// How much longer a load from another line takes, so that a line ends there.
const NEXT_LINE_RATIO: f64 = 1.12;
/// How far latencies of one tread may differ between rounds, as a factor.
const ROUND_RATIO_MAX: f64 = 1.4;
/// Levels that belong to one core: if the rounds disagree about them, somebody else is there.
const PRIVATE_LEVELS: usize = 2;
/// First and second level: more TLBs are not described.
const TLB_LEVELS: usize = 2;

/// Everything that was timed.
#[derive(Clone, Debug)]
pub(super) struct Sweeps {
    pub(super) cycle: Vec<f64>,
    pub(super) pairs: Vec<Point>,
    pub(super) rounds: Vec<Round>,
    pub(super) read: Vec<f64>,
    pub(super) watch: Watch,
    pub(super) wall: Duration,
    pub(super) used: Duration,
}

/// The curves of one round.
#[derive(Clone, Debug)]
pub(super) struct Round {
    pub(super) lines: Vec<Point>,
    pub(super) packed: Vec<Point>,
    pub(super) pages: Vec<Point>,
    pub(super) sampled: Vec<Point>,
}

/// What was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Findings {
    /// The period of the core's clock, in nanoseconds.
    pub cycle_ns: Spread,
    /// Bytes of a line; `None` if pairs of loads do not tell.
    pub line_bytes: Option<u32>,
    /// Latencies of loads by working set, and where they rise, in bytes.
    pub caches: Stairs,
    /// Latencies of loads by pages, and where they rise, in pages; what caches add is taken away.
    pub tlbs: Stairs,
    /// The largest working set.
    pub largest: WalkedSet,
    /// Bytes that one thread reads a second.
    pub read_bytes_per_s: Spread,
    /// Trials that were made.
    pub trials: usize,
    /// Trials during which the thread lost its processor, which do not count.
    pub disturbed: usize,
    /// Time that the measuring took.
    pub wall_s: f64,
}

/// A working set and the latency of its loads.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WalkedSet {
    /// Its size.
    pub bytes: u64,
    /// The time of a load.
    pub nanoseconds: Spread,
}

/// Why nothing is said.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// Something else used the processor or its caches.
    Busy {
        /// How that shows.
        why: String,
    },
    /// There is no memory for the working sets.
    Memory {
        /// The reason.
        why: String,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Busy { why } => {
                write!(f, "the machine is busy: {why}; measure again when nothing else runs")
            }
            Refusal::Memory { why } => {
                write!(f, "there is no memory to measure in: {why}; measure again when some is free")
            }
        }
    }
}

impl std::error::Error for Refusal {}

/// Reads the sweeps.
pub(super) fn findings(sweeps: &Sweeps) -> Result<Findings, Refusal> {
    check_thread(sweeps)?;
    let (of_lines, of_pages) = (busy("chases over lines"), busy("chases over pages"));
    let mut caches = Vec::new();
    let mut tlbs = Vec::new();
    for round in &sweeps.rounds {
        let lines: Vec<Point> = round.lines.iter().chain(&round.sampled).cloned().collect();
        caches.push(stairs(&lines).map_err(|why| of_lines(&why))?);
        tlbs.push(stairs(&without_caches(&round.pages, &round.packed)).map_err(|why| of_pages(&why))?);
    }
    let caches = agreed(&caches, PRIVATE_LEVELS).map_err(|why| of_lines(&why))?;
    let tlbs = agreed(&tlbs, TLB_LEVELS).map_err(|why| of_pages(&why))?;
    let nothing = || Refusal::Busy { why: Unclear::Disturbed.to_string() };
    Ok(Findings {
        cycle_ns: Spread::of(&sweeps.cycle).ok_or_else(nothing)?,
        line_bytes: line_bytes(&sweeps.pairs),
        caches,
        tlbs,
        largest: largest(&sweeps.rounds).ok_or_else(nothing)?,
        read_bytes_per_s: Spread::of(&sweeps.read).ok_or_else(nothing)?,
        trials: sweeps.watch.trials,
        disturbed: sweeps.watch.disturbed,
        wall_s: sweeps.wall.as_secs_f64(),
    })
}

/// Says what a sweep suffered from.
fn busy(sweep: &'static str) -> impl Fn(&dyn fmt::Display) -> Refusal {
    move |why| Refusal::Busy { why: format!("{sweep}: {why}") }
}

/// Whether the thread had its processor.
fn check_thread(sweeps: &Sweeps) -> Result<(), Refusal> {
    let lost = 1.0 - sweeps.used.as_secs_f64() / sweeps.wall.as_secs_f64();
    if lost > LOST_MAX {
        let why = format!("other programs had the processor for {:.0} % of the time", lost * 100.0);
        return Err(Refusal::Busy { why });
    }
    let Watch { trials, disturbed } = sweeps.watch;
    if disturbed as f64 > DISTURBED_MAX * trials as f64 {
        return Err(Refusal::Busy { why: format!("{disturbed} of {trials} trials were interrupted") });
    }
    Ok(())
}

/// The chase over pages as it would be if every line were in the first level.
fn without_caches(pages: &[Point], packed: &[Point]) -> Vec<Point> {
    let median = |point: &Point| Spread::of(&point.nanoseconds).map(|spread| spread.median);
    let least = packed.iter().filter_map(median).fold(f64::INFINITY, f64::min);
    let of_tlbs = |(page, lines): (&Point, &Point)| {
        let added = median(lines).map_or(0.0, |lines| lines - least);
        let nanoseconds = page.nanoseconds.iter().map(|time| (time - added).max(least / 2.0)).collect();
        Point { size: page.size, nanoseconds }
    };
    pages.iter().zip(packed).map(of_tlbs).collect()
}

/// The stairs that the rounds agree on: risers that most rounds have, at sizes that overlap in all
/// that have them. Rounds that contradict each other about one of the first `sure` risers are no
/// measurement; a riser further out is left out, with all behind it.
fn agreed(rounds: &[Stairs], sure: usize) -> Result<Stairs, String> {
    let most = rounds.iter().map(|round| round.risers.len()).max().unwrap_or(0);
    let mut risers = Vec::new();
    for index in 0..most {
        let found: Vec<Riser> = rounds.iter().filter_map(|round| round.risers.get(index).copied()).collect();
        let (begins, ends) = (found.iter().map(|riser| riser.begins), found.iter().map(|riser| riser.ends));
        let overlap = begins.clone().max() < ends.clone().min();
        if !overlap && index < sure {
            let sizes: Vec<String> = found.iter().map(|riser| riser.fits.to_string()).collect();
            return Err(format!("rounds disagree about level {} ({})", index + 1, sizes.join(", ")));
        }
        // A round in which something else ran may have lost a riser.
        if !overlap || found.len() * 2 <= rounds.len() {
            break;
        }
        let mut fits: Vec<u64> = found.iter().map(|riser| riser.fits).collect();
        fits.sort_unstable();
        let (begins, ends) = (begins.min().unwrap_or(0), ends.max().unwrap_or(0));
        risers.push(Riser { begins, fits: fits[fits.len() / 2], ends });
    }
    let treads =
        (0..=risers.len()).map(|index| agreed_tread(rounds, index, sure)).collect::<Result<_, _>>()?;
    let left_out = rounds.iter().filter_map(|round| round.risers.get(risers.len())).map(|riser| riser.begins);
    let unsettled = rounds.iter().filter_map(|round| round.unsettled_from);
    let outer = risers.last().map_or(0, |riser| riser.ends);
    let unsettled_from = left_out.chain(unsettled).filter(|from| *from >= outer).min();
    Ok(Stairs { treads, risers, unsettled_from })
}

/// A tread of all rounds that have it.
fn agreed_tread(rounds: &[Stairs], index: usize, sure: usize) -> Result<Tread, String> {
    let found: Vec<Tread> = rounds.iter().filter_map(|round| round.treads.get(index).copied()).collect();
    let first = found.first().ok_or("no round was made")?;
    let medians: Vec<f64> = found.iter().map(|tread| tread.nanoseconds.median).collect();
    let least = medians.iter().copied().fold(f64::INFINITY, f64::min);
    let most = medians.iter().copied().fold(0.0, f64::max);
    if most > ROUND_RATIO_MAX * least && index < sure {
        return Err(format!("a load from level {} takes {least:.1} to {most:.1} ns", index + 1));
    }
    let median = Spread::of(&medians).map_or(least, |spread| spread.median);
    let low = found.iter().map(|tread| tread.nanoseconds.low).fold(f64::INFINITY, f64::min);
    let high = found.iter().map(|tread| tread.nanoseconds.high).fold(0.0, f64::max);
    Ok(Tread { nanoseconds: Spread { low, median, high }, ..*first })
}

/// The first distance at which a pair of loads takes two lines.
fn line_bytes(pairs: &[Point]) -> Option<u32> {
    let times: Vec<(u64, f64)> =
        pairs.iter().filter_map(|pair| Some((pair.size, Spread::of(&pair.nanoseconds)?.median))).collect();
    let (_, together) = *times.first()?;
    let apart = |&&(_, time): &&(u64, f64)| time > NEXT_LINE_RATIO * together;
    let (distance, _) = *times.iter().find(apart)?;
    // All larger distances cross a line too.
    let crosses = times.iter().filter(|(other, _)| *other >= distance).all(|pair| apart(&pair));
    u32::try_from(distance).ok().filter(|_| crosses)
}

fn largest(rounds: &[Round]) -> Option<WalkedSet> {
    let last = |round: &Round| round.sampled.last().or(round.lines.last()).cloned();
    let points: Vec<Point> = rounds.iter().filter_map(last).collect();
    let bytes = points.iter().map(|point| point.size).min()?;
    let of_size = points.iter().filter(|point| point.size == bytes);
    let times: Vec<f64> = of_size.flat_map(|point| point.nanoseconds.iter().copied()).collect();
    Some(WalkedSet { bytes, nanoseconds: Spread::of(&times)? })
}

#[cfg(test)]
mod tests;
