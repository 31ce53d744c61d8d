//! The six loops, replayed through the simulated hierarchy.
//!
//! **What.** The references of `MBaLt` in their order: an element of A, then for every line of a
//! row of the tile one load of B and one of C. The store to C touches the line just loaded, which a
//! cache that replaces the least recently used cannot have lost, so it is left out: it cannot miss.
//! With two threads, both run their half of the rows and take turns after every innermost loop, on
//! one core: they share its caches, as two threads of an SMT core do. **Left out.** Code, stack,
//! physical addresses.
//!
//! **Slices.** A strip of tile rows (one turn of loop `ii`) makes the references of the strip
//! before, shifted by a row of tiles in A and C. [`slice()`] replays each thread's first two strips
//! and takes the second for every later one. A test holds it against the whole.

use anyhow::{anyhow, Result};
use event::{Record, RecordKind};
use matrix::paper::Masks;
use simulate::{FetchTlb, Levels, Simulator, WriteBacks};
use std::ops::Range;

/// What is replayed.
#[derive(Clone, Copy, Debug)]
pub struct Loops {
    /// N, a multiple of the tile.
    pub n: usize,
    /// T, a power of two.
    pub tile: usize,
    /// Bytes of an element.
    pub element_bytes: usize,
    /// Threads that share the core.
    pub threads: usize,
}

/// Misses by level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Missed {
    /// First-level data cache.
    pub l1: u64,
    /// Second level, where there is one.
    pub l2: Option<u64>,
    /// First data TLB, where there is one.
    pub tlb: Option<u64>,
}

/// An innermost loop: row of A and C, row of B, first column.
type Piece = (usize, usize, usize);

/// Replays the loops.
///
/// # Errors
/// When the levels cannot be simulated, or masks cannot address the tiles.
pub fn replay(levels: &Levels, loops: Loops) -> Result<Missed> {
    let mut replay = Replay::new(levels, loops)?;
    let strips = loops.n / loops.tile;
    let threads = loops.threads.clamp(1, strips.max(1));
    replay.run((0..threads).map(|i| strips * i / threads..strips * (i + 1) / threads));
    Ok(replay.missed())
}

/// Misses of the loops, from the first two strips of each thread.
///
/// Cost: that of [`replay`] times the share of those strips. Where a thread has no more than two
/// strips, or threads have unequal shares, all strips are replayed.
///
/// # Errors
/// When the levels cannot be simulated, or masks cannot address the tiles.
pub fn slice(levels: &Levels, loops: Loops) -> Result<Missed> {
    let strips = loops.n / loops.tile;
    let threads = loops.threads.clamp(1, strips.max(1));
    let own = strips / threads;
    if own <= 2 || !strips.is_multiple_of(threads) {
        return replay(levels, loops);
    }
    let mut replay = Replay::new(levels, loops)?;
    let strip = |which: usize| (0..threads).map(move |i| i * own + which..i * own + which + 1);
    replay.run(strip(0));
    let first = replay.missed();
    replay.run(strip(1));
    let both = replay.missed();
    let later = own as u64 - 1;
    let whole = |first: u64, both: u64| first + later * (both - first);
    let pair = |first: Option<u64>, both: Option<u64>| first.zip(both).map(|(f, b)| whole(f, b));
    Ok(Missed { l1: whole(first.l1, both.l1), l2: pair(first.l2, both.l2), tlb: pair(first.tlb, both.tlb) })
}

/// Loops on their way through a hierarchy.
struct Replay {
    simulator: Simulator,
    records: Records,
    levels: Levels,
}

impl Replay {
    fn new(levels: &Levels, loops: Loops) -> Result<Replay> {
        let data = Levels {
            instruction: None,
            instruction_tlb: None,
            outer_tlb: None,
            outer_fetch_tlb: FetchTlb::default(),
            ..levels.clone()
        };
        let simulator = Simulator::of_stream(&data, &event::Stream::Full, WriteBacks::Ignored)
            .map_err(|error| anyhow!("{error}"))?;
        let masks = Masks::new(loops.tile, loops.n.div_ceil(loops.tile))
            .ok_or_else(|| anyhow!("tiles of {} cannot be addressed by masks", loops.tile))?;
        Ok(Replay { simulator, records: Records::new(loops, masks), levels: data })
    }

    /// Replays the strips of all threads, who take turns after every innermost loop.
    fn run(&mut self, strips: impl Iterator<Item = Range<usize>>) {
        let loops = self.records.loops;
        let mut parts: Vec<_> = strips.map(|strips| pieces(loops, strips)).collect();
        let mut running = true;
        while running {
            running = false;
            for part in &mut parts {
                let Some(piece) = part.next() else { continue };
                running = true;
                self.records.push(piece);
                if self.records.batch.len() >= BATCH {
                    self.hand_over();
                }
            }
        }
        self.hand_over();
    }

    fn hand_over(&mut self) {
        self.simulator.records(0, &self.records.batch);
        self.records.batch.clear();
    }

    fn missed(&self) -> Missed {
        let counts = self.simulator.counts();
        Missed {
            l1: counts.cache(0).total(),
            l2: (!self.levels.outer.is_empty()).then(|| counts.cache(1).total()),
            tlb: self.levels.data_tlb.is_some().then(|| counts.tlb(0).total()),
        }
    }
}

/// Records that are handed over at once.
const BATCH: usize = 1 << 14;

/// The innermost loops of some strips of rows, in order.
fn pieces(loops: Loops, strips: Range<usize>) -> Box<dyn Iterator<Item = Piece>> {
    let Loops { n, tile, .. } = loops;
    let starts = move || (0..n).step_by(tile);
    let tiles = strips
        .map(move |strip| strip * tile)
        .flat_map(move |ii| starts().flat_map(move |jj| starts().map(move |kk| (ii, jj, kk))));
    Box::new(tiles.flat_map(move |(ii, jj, kk)| {
        (ii..ii + tile).flat_map(move |i| (jj..jj + tile).map(move |j| (i, j, kk)))
    }))
}

/// Makes records of pieces.
struct Records {
    loops: Loops,
    masks: Masks,
    /// Where A, B and C start.
    bases: [u64; 3],
    /// Bytes of a load in the innermost loop.
    step: usize,
    batch: Vec<Record>,
}

impl Records {
    fn new(loops: Loops, masks: Masks) -> Records {
        // A page and a line between the arrays: the paper asks for starts that do not coincide in
        // the first level.
        let apart = (masks.len() * loops.element_bytes) as u64 + 4096 + 64;
        let bases = [0, 1, 2].map(|array| (1 << 32) + array * apart);
        let step = (loops.tile * loops.element_bytes).min(64);
        Records { loops, masks, bases, step, batch: Vec::with_capacity(2 * BATCH) }
    }

    fn push(&mut self, (i, j, kk): Piece) {
        let bytes = self.loops.element_bytes;
        let at = |base: u64, offset: usize| base + (offset * bytes) as u64;
        let [a, b, c] = self.bases;
        let a = at(a, self.masks.offset(i, j));
        let (b, c) = (at(b, self.masks.offset(j, kk)), at(c, self.masks.offset(i, kk)));
        self.batch.extend(load(bytes, 0, a));
        for step in (0..self.loops.tile * bytes).step_by(self.step) {
            self.batch.extend(load(self.step, 1, b + step as u64));
            self.batch.extend(load(self.step, 2, c + step as u64));
        }
    }
}

fn load(bytes: usize, site: u32, address: u64) -> Option<Record> {
    Record::new(RecordKind::Load, bytes as u32, site, address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use simulate::Geometry;

    #[test]
    fn small_arrays_miss_once_per_line() {
        let levels = Levels::data_only(Geometry::cache(64 << 10, 16, 64));
        let loops = Loops { n: 32, tile: 8, element_bytes: 8, threads: 1 };
        let missed = replay(&levels, loops).unwrap();
        assert_eq!(missed, Missed { l1: 3 * 32 * 32 / 8, l2: None, tlb: None });
        assert_eq!(replay(&levels, Loops { threads: 2, ..loops }).unwrap(), missed);
    }

    #[test]
    fn the_model_agrees_away_from_the_boundaries() {
        // 1024 doubles, 128 lines: three tiles of 8×8 fit, a row of tiles does not.
        let levels = Levels::data_only(Geometry::cache(8 << 10, 128, 64));
        let missed = replay(&levels, Loops { n: 256, tile: 8, element_bytes: 8, threads: 1 }).unwrap();
        let level = matrix::paper::Level { capacity: 1024.0, line: 8.0 };
        let model = matrix::paper::cache_misses(level, 256, 8).total();
        assert!((model / missed.l1 as f64 - 1.0).abs() < 0.1, "model {model}, simulated {}", missed.l1);
    }

    /// The paper's Xeon.
    fn xeon() -> Levels {
        let machine = machine::Machine::preset("xeon-dp").unwrap();
        simulate::Modelled::of(&machine).unwrap().unwrap().levels
    }

    #[test]
    fn a_slice_counts_what_the_whole_counts() {
        let off = |slice: u64, whole: u64| (slice as f64 / whole as f64 - 1.0).abs();
        for threads in [1, 2] {
            for tile in [8, 16, 32, 64, 128] {
                let loops = Loops { n: 512, tile, element_bytes: 4, threads };
                let (slice, whole) = (slice(&xeon(), loops).unwrap(), replay(&xeon(), loops).unwrap());
                let [(s1, w1), (s2, w2), (st, wt)] = [
                    (slice.l1, whole.l1),
                    (slice.l2.unwrap(), whole.l2.unwrap()),
                    (slice.tlb.unwrap(), whole.tlb.unwrap()),
                ];
                assert!(off(s1, w1) < 0.01, "L1, T = {tile}: {s1} of {w1}");
                assert!(off(s2, w2) < 0.05, "L2, T = {tile}: {s2} of {w2}");
                assert!(off(st, wt) < 0.02, "TLB, T = {tile}: {st} of {wt}");
            }
        }
    }

    #[test]
    fn a_prefetcher_saves_misses_of_lines_in_order() {
        let levels = Levels::data_only(Geometry::cache(4 << 10, 8, 64));
        let fetching =
            Levels { data: levels.data.with_prefetch(simulate::Prefetch::NextLine), ..levels.clone() };
        let loops = Loops { n: 128, tile: 64, element_bytes: 4, threads: 1 };
        let (without, with) = (replay(&levels, loops).unwrap(), replay(&fetching, loops).unwrap());
        assert!(with.l1 * 10 < without.l1 * 7, "{} of {}", with.l1, without.l1);
    }
}
