//! Sweeps over working sets: the curves that the analysis reads.

use super::arena::Arena;
use super::curve::Point;
use super::walk::{chase, count, stream, timed, Cycle, Timed};
use crate::random::Random;
use std::hint::black_box;

/// Bytes of a word of an arena.
const WORD_BYTES: usize = size_of::<u32>();
/// Bytes between the places of a chase over lines: no shorter than a line of any processor whose
/// lines have 64 bytes, and half one of 128.
const LINE_BYTES: usize = 64;
/// Bytes between the places of a chase over pages.
const PAGE_BYTES: usize = 4096;
/// Pages between the places of a chase over pages. Neighbours in one aligned group could share an
/// entry (AMD joins four pages that lie together); an odd distance uses each set of a TLB.
const PAGE_STRIDE: usize = 5;
/// Sizes in each octave of a sweep.
const PER_OCTAVE: usize = 8;
/// Largest working set whose cycle is walked whole.
pub(super) const WHOLE_BYTES: usize = 4 << 20;
/// Fewest steps of a trial.
const STEPS_MIN: usize = 8192;
/// Steps of a trial in working sets that are not walked whole.
const STEPS_SAMPLED: usize = 12_000;

/// Trials that may stand in for disturbed ones.
const SPARE: usize = 1;

/// What a sweep saw of its own thread.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Watch {
    /// Trials that were made.
    pub(super) trials: usize,
    /// Trials during which the thread lost its processor.
    pub(super) disturbed: usize,
}

impl Watch {
    /// Makes `wanted` trials, and [`SPARE`] more for those that were disturbed; returns nanoseconds
    /// a step.
    fn trials(&mut self, wanted: usize, steps: usize, mut trial: impl FnMut() -> Timed) -> Vec<f64> {
        let mut all = Vec::new();
        for _ in 0..wanted + SPARE {
            if all.len() == wanted {
                break;
            }
            let timed = trial();
            self.trials += 1;
            if timed.was_disturbed {
                self.disturbed += 1;
            } else {
                all.push(timed.seconds * 1e9 / steps as f64);
            }
        }
        all
    }

    /// Makes trials of `steps` steps each of the chase that begins at word `from`; each goes on
    /// where the one before it ended.
    fn chases(&mut self, wanted: usize, steps: usize, words: &[u32], from: u32) -> Vec<f64> {
        let mut at = from;
        self.trials(wanted, steps, || {
            timed(|| {
                at = chase(words, at, steps);
                at
            })
        })
    }
}

/// Sizes from `least` to `most`, so many an octave, in multiples of a fraction of an octave.
pub(super) fn sizes(least: usize, most: usize, per_octave: usize) -> Vec<usize> {
    let octaves = (least.ilog2()..=most.ilog2()).map(|exponent| 1_usize << exponent);
    let all = octaves.flat_map(|base| (0..per_octave).map(move |part| base + base * part / per_octave));
    all.filter(|size| (least..=most).contains(size)).collect()
}

/// The period of the core's clock in nanoseconds: half the time of two operations that wait for
/// each other.
pub(super) fn cycle_ns(watch: &mut Watch, trials: usize) -> Vec<f64> {
    const STEPS: usize = 40_000;
    watch.trials(trials, 2 * STEPS, || timed(|| count(black_box(STEPS))))
}

/// Chases over lines of working sets of up to [`WHOLE_BYTES`].
pub(super) fn lines(
    arena: &mut Arena,
    most_bytes: usize,
    seed: u64,
    trials: usize,
    watch: &mut Watch,
) -> Vec<Point> {
    let words = arena.words();
    let mut cycle = Cycle::new(seed);
    let place = |line: usize| line * (LINE_BYTES / WORD_BYTES);
    let sizes = sizes(4096, most_bytes.min(WHOLE_BYTES), PER_OCTAVE);
    sizes
        .into_iter()
        .map(|bytes| {
            let length = bytes / LINE_BYTES;
            cycle.grow(words, length, place);
            Point { size: bytes as u64, nanoseconds: walk(words, length, trials, watch) }
        })
        .collect()
}

/// Chases over pages, one line of each; `pages` is the number of pages that the arena has room for.
pub(super) fn pages(
    arena: &mut Arena,
    most: usize,
    seed: u64,
    trials: usize,
    watch: &mut Watch,
) -> Vec<Point> {
    let place = |page: usize| {
        // Lines take turns, so that the pages' lines fill all sets of the caches.
        let line = page % (PAGE_BYTES / LINE_BYTES);
        (page * PAGE_STRIDE * PAGE_BYTES + line * LINE_BYTES) / WORD_BYTES
    };
    places(arena, most, seed, trials, watch, place)
}

/// Bytes of an arena for a chase over `pages` pages.
pub(super) fn pages_bytes(pages: usize) -> usize {
    pages * PAGE_STRIDE * PAGE_BYTES
}

/// Chases over as many lines as [`pages`] does, packed: what its curve would be without TLBs.
pub(super) fn packed(
    arena: &mut Arena,
    most: usize,
    seed: u64,
    trials: usize,
    watch: &mut Watch,
) -> Vec<Point> {
    places(arena, most, seed, trials, watch, |line| line * (LINE_BYTES / WORD_BYTES))
}

fn places(
    arena: &mut Arena,
    most: usize,
    seed: u64,
    trials: usize,
    watch: &mut Watch,
    place: impl Fn(usize) -> usize + Copy,
) -> Vec<Point> {
    let words = arena.words();
    let mut cycle = Cycle::new(seed);
    let sizes = sizes(16, most, PER_OCTAVE);
    sizes
        .into_iter()
        .map(|length| {
            cycle.grow(words, length, place);
            Point { size: length as u64, nanoseconds: walk(words, length, trials, watch) }
        })
        .collect()
}

/// Walks a cycle of `length` places once, then in trials of whole rounds.
fn walk(words: &[u32], length: usize, trials: usize, watch: &mut Watch) -> Vec<f64> {
    let steps = (STEPS_MIN.div_ceil(length)).max(1) * length;
    let from = chase(words, 0, length);
    watch.chases(trials, steps, words, from)
}

/// Chases over lines that are drawn from working sets that are too large to be walked whole. All
/// lines are read in order before, so that whatever fits into a cache is there.
pub(super) fn sampled(
    arena: &mut Arena,
    sizes: &[usize],
    seed: u64,
    trials: usize,
    watch: &mut Watch,
) -> Vec<Point> {
    let words = arena.words();
    let mut random = Random::new(seed);
    let mut all = Vec::new();
    for &bytes in sizes {
        let lines = bytes / LINE_BYTES;
        // One line of each of as many equal parts: no line is drawn twice.
        let parts = ((trials + SPARE) * STEPS_SAMPLED).min(lines / 4);
        let mut drawn: Vec<u32> = (0..parts)
            .map(|part| {
                let (from, to) = (part * lines / parts, (part + 1) * lines / parts);
                ((from + random.below(to - from)) * (LINE_BYTES / WORD_BYTES)) as u32
            })
            .collect();
        random.shuffle(&mut drawn);
        for (number, &word) in drawn.iter().enumerate() {
            words[word as usize] = drawn[(number + 1) % parts];
        }
        black_box(stream(&words[..bytes / WORD_BYTES]));
        let steps = parts / (trials + SPARE);
        let nanoseconds = watch.chases(trials, steps, words, drawn[0]);
        all.push(Point { size: bytes as u64, nanoseconds });
    }
    all
}

/// Times of pairs of loads, the second `distance` bytes below the first, in a working set of
/// `bytes`: where both are in one line, the second costs little.
pub(super) fn neighbours(
    arena: &mut Arena,
    bytes: usize,
    seed: u64,
    trials: usize,
    watch: &mut Watch,
) -> Vec<Point> {
    const BLOCK_BYTES: usize = 1024;
    let words = arena.words();
    let blocks = bytes / BLOCK_BYTES;
    let distances = [16, 32, 64, 128, 256, 512];
    distances
        .into_iter()
        .map(|distance| {
            // The last word of a block: what lies 16 bytes below is in its line.
            let upper = |block: usize| (block * BLOCK_BYTES + BLOCK_BYTES) / WORD_BYTES - 1;
            let lower = |block: usize| upper(block) - distance / WORD_BYTES;
            let mut cycle = Cycle::new(seed);
            cycle.grow(words, blocks, upper);
            // Each upper word leads to the lower word of its block, which leads on.
            for block in 0..blocks {
                words[lower(block)] = words[upper(block)];
                words[upper(block)] = lower(block) as u32;
            }
            let steps = 2 * (STEPS_MIN.div_ceil(blocks)).max(1) * blocks;
            let from = chase(words, upper(0) as u32, 2 * blocks);
            let nanoseconds = watch.chases(trials, steps, words, from);
            Point { size: distance as u64, nanoseconds }
        })
        .collect()
}

/// Bytes that one thread reads a second.
pub(super) fn bandwidth(arena: &mut Arena, bytes: usize, trials: usize, watch: &mut Watch) -> Vec<f64> {
    let words = &arena.words()[..bytes / WORD_BYTES];
    let nanoseconds = watch.trials(trials, bytes, || timed(|| stream(words)));
    nanoseconds.into_iter().map(|of_byte| 1e9 / of_byte).collect()
}
