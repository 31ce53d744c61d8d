//! The six loops, replayed through the simulated hierarchy.
//!
//! **What.** The references of `MBaLt` in their order: an element of A, then for every line of a
//! row of the tile one load of B and one of C. The store to C touches the line just loaded, which a
//! cache that replaces the least recently used cannot have lost, so it is left out: it cannot miss.
//! With two threads, both run their half of the rows and take turns after every innermost loop, on
//! one core: they share its caches, as two threads of an SMT core do. **Left out.** Code, stack,
//! prefetchers, physical addresses.

use anyhow::{anyhow, Result};
use event::{Record, RecordKind};
use matrix::paper::Masks;
use simulate::{FetchTlb, Hierarchy, Levels};

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
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
    let data = Levels {
        instruction: None,
        instruction_tlb: None,
        outer_tlb: None,
        outer_fetch_tlb: FetchTlb::default(),
        ..levels.clone()
    };
    let mut hierarchy = Hierarchy::new(&data).map_err(|error| anyhow!("{error}"))?;
    let masks = Masks::new(loops.tile, loops.n.div_ceil(loops.tile))
        .ok_or_else(|| anyhow!("tiles of {} cannot be addressed by masks", loops.tile))?;
    let mut records = Records::new(loops, masks);
    let strips = loops.n / loops.tile;
    let threads = loops.threads.clamp(1, strips.max(1));
    let mut parts: Vec<_> =
        (0..threads).map(|i| pieces(loops, strips * i / threads..strips * (i + 1) / threads)).collect();
    let mut running = true;
    while running {
        running = false;
        for part in &mut parts {
            if let Some(piece) = part.next() {
                running = true;
                records.push(piece);
                if records.batch.len() >= BATCH {
                    hierarchy.records(0, &records.batch);
                    records.batch.clear();
                }
            }
        }
    }
    hierarchy.records(0, &records.batch);
    let counts = hierarchy.counts();
    Ok(Missed {
        l1: counts.cache(0).total(),
        l2: (!data.outer.is_empty()).then(|| counts.cache(1).total()),
        tlb: data.data_tlb.is_some().then(|| counts.tlb(0).total()),
    })
}

/// Records that are handed over at once.
const BATCH: usize = 1 << 14;

/// The innermost loops of some strips of rows, in order.
fn pieces(loops: Loops, strips: std::ops::Range<usize>) -> Box<dyn Iterator<Item = Piece>> {
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
}
