//! The machines that the loops are replayed on: the paper's, and those that differ in one point.

use crate::tile::simulation::{slice, Loops};
use crate::tile::POWERS;
use anyhow::{Context, Result};
use present::order::SortRows;
use simulate::{Geometry, Levels, Prefetch};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

use super::findings::{Simulated, ELEMENT_BYTES};

/// One machine.
pub(super) struct Variant {
    pub(super) name: &'static str,
    /// For the page.
    pub(super) what: &'static str,
    pub(super) threads: usize,
    alter: fn(&mut Levels),
    /// The largest N of a quick study and of a full one.
    largest: [usize; 2],
    /// Seconds of a replay of all T at N = 1,024.
    seconds: f64,
}

pub(super) const ONE: &str = "one thread";
pub(super) const TWO: &str = "two threads";
pub(super) const NEXT_LINE: &str = "next line";
pub(super) const STRIDE: &str = "stride";
pub(super) const TWO_STRIDE: &str = "two threads, stride";
pub(super) const MODERATE: &str = "moderate L2";
pub(super) const WAYS: [&str; 3] = ["L1 of one way", "L1 of two ways", "L1 fully associative"];

pub(super) const VARIANTS: &[Variant] = &[
    Variant {
        name: ONE,
        what: "the paper's Xeon, one thread",
        threads: 1,
        alter: |_| {},
        largest: [1024, 4096],
        seconds: 6.0,
    },
    Variant {
        name: TWO,
        what: "two threads that share its core",
        threads: 2,
        alter: |_| {},
        largest: [1024, 4096],
        seconds: 6.0,
    },
    Variant {
        name: NEXT_LINE,
        what: "L1 and L2 fetch the line behind each that they miss",
        threads: 1,
        alter: |levels| fetch(levels, Prefetch::NextLine),
        largest: [512, 2048],
        seconds: 30.0,
    },
    Variant {
        name: STRIDE,
        what: "L1 and L2 fetch ahead where an instruction keeps its distance",
        threads: 1,
        alter: |levels| fetch(levels, Prefetch::Stride),
        largest: [512, 4096],
        seconds: 35.0,
    },
    Variant {
        name: TWO_STRIDE,
        what: "both: two threads, fetching ahead by stride",
        threads: 2,
        alter: |levels| fetch(levels, Prefetch::Stride),
        largest: [512, 4096],
        seconds: 45.0,
    },
    Variant {
        name: MODERATE,
        what: "an L2 of 256 KB in the place of 1 MB",
        threads: 1,
        alter: |levels| {
            levels.outer[0].geometry =
                Geometry { sets: levels.outer[0].geometry.sets / 4, ..levels.outer[0].geometry }
        },
        largest: [1024, 4096],
        seconds: 6.0,
    },
    Variant {
        name: WAYS[0],
        what: "a direct-mapped L1",
        threads: 1,
        alter: |levels| ways(levels, 1),
        largest: [512, 1024],
        seconds: 6.0,
    },
    Variant {
        name: WAYS[1],
        what: "an L1 of two ways",
        threads: 1,
        alter: |levels| ways(levels, 2),
        largest: [512, 1024],
        seconds: 6.0,
    },
    Variant {
        name: WAYS[2],
        what: "a fully associative L1",
        threads: 1,
        alter: |levels| ways(levels, 256),
        largest: [512, 1024],
        seconds: 20.0,
    },
];

fn fetch(levels: &mut Levels, prefetch: Prefetch) {
    levels.data = levels.data.with_prefetch(prefetch);
    levels.outer[0].geometry = levels.outer[0].geometry.with_prefetch(prefetch);
}

/// As many bytes in another number of ways.
fn ways(levels: &mut Levels, ways: u32) {
    let data = levels.data;
    levels.data = Geometry { sets: data.sets * u64::from(data.ways) / u64::from(ways), ways, ..data };
}

impl Variant {
    /// The sizes of a quick study, or of a full one.
    pub(super) fn sizes(&self, quick: bool) -> impl Iterator<Item = usize> + '_ {
        let largest = self.largest[usize::from(!quick)];
        [256, 512, 1024, 2048, 4096].into_iter().filter(move |&n| n <= largest)
    }

    /// Seconds that [`Self::replay`] takes: two strips of N/T, of N³ references each.
    pub(super) fn seconds(&self, n: usize) -> f64 {
        self.seconds * (n as f64 / 1024.0).powi(2) / 1.6
    }

    /// All T at one N, from the first two strips of each thread; on all CPUs, largest T first.
    ///
    /// # Errors
    /// When a level cannot be simulated.
    pub(super) fn replay(&self, paper: &Levels, n: usize) -> Result<Vec<Simulated>> {
        let mut levels = paper.clone();
        (self.alter)(&mut levels);
        let tiles: Vec<usize> =
            POWERS.iter().rev().copied().filter(|&tile| tile * self.threads <= n).collect();
        let (next, rows) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let work = || {
            while let Some(&tile) = tiles.get(next.fetch_add(1, Ordering::Relaxed)) {
                let loops = Loops { n, tile, element_bytes: ELEMENT_BYTES, threads: self.threads };
                let missed = slice(&levels, loops);
                rows.lock().expect("no worker panics").push((tile, missed));
            }
        };
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(work);
            }
        });
        let mut rows = rows.into_inner().expect("no worker panics");
        rows.sort_rows_by_key(|(tile, _)| *tile);
        let row = |(tile, missed): (usize, Result<_>)| {
            let missed = missed.with_context(|| format!("{}, N = {n}, T = {tile}", self.name))?;
            Ok(Simulated { variant: self.name.into(), n, tile, missed })
        };
        rows.into_iter().map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variant_differs_from_the_paper_in_its_point_alone() {
        let machine = machine::Machine::preset("xeon-dp").unwrap();
        let paper = simulate::Modelled::of(&machine).unwrap().unwrap().levels;
        for variant in VARIANTS {
            let mut levels = paper.clone();
            (variant.alter)(&mut levels);
            assert!(levels.check().is_ok(), "{}", variant.name);
            assert_eq!(levels.data.size_bytes(), 16 << 10, "{}", variant.name);
            let l2 = if variant.name == MODERATE { 256 << 10 } else { 1 << 20 };
            assert_eq!(levels.outer[0].geometry.size_bytes(), l2, "{}", variant.name);
            let alone = variant.name == ONE || variant.name == TWO;
            assert_eq!(levels == paper, alone, "{}", variant.name);
        }
    }

    #[test]
    fn a_replay_has_every_tile_in_order() {
        let machine = machine::Machine::preset("xeon-dp").unwrap();
        let paper = simulate::Modelled::of(&machine).unwrap().unwrap().levels;
        let tiles = |index: usize| -> Vec<usize> {
            VARIANTS[index].replay(&paper, 64).unwrap().iter().map(|row| row.tile).collect()
        };
        assert_eq!(tiles(0), [8, 16, 32, 64]);
        assert_eq!(tiles(1), [8, 16, 32]);
    }
}
