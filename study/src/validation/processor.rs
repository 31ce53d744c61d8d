//! The processors of the points, and the models that they are simulated by.
//!
//! Each is a machine file in `machines`, whose origins say what its figures rest on. Points without
//! figures of the last level are simulated without it.

use super::points::{Point, PRODUCT};
use anyhow::{anyhow, Context, Result};
use machine::Machine;
use simulate::{Geometry, Levels, Modelled, Outer, Pages, Policy, Prefetch, Prefetchers, Sharing};

/// A processor by the name that the points give it.
pub(super) struct Processor {
    pub(super) name: &'static str,
    toml: &'static str,
    /// Elements of a vector in its compiled loops.
    pub(super) vector: u64,
}

macro_rules! processor {
    ($name:literal, $file:literal, $vector:literal) => {
        Processor { name: $name, toml: include_str!(concat!("machines/", $file, ".toml")), vector: $vector }
    };
}

pub(super) const PROCESSORS: &[Processor] = &[
    processor!("SandyBridgeEP_E5-2680", "sandy-bridge-ep", 4),
    processor!("IvyBridgeEP_E5-2660v2", "ivy-bridge-ep", 4),
    processor!("HaswellEP_E5-2695v3_CoD", "haswell-ep-cod", 4),
    processor!("BroadwellEP_E5-2697_CoD", "broadwell-ep-cod", 4),
    processor!("BroadwellEP_E5-2697v4", "broadwell-ep", 4),
    processor!("SkylakeSP_Gold-6148_SNC", "skylake-sp-gold-snc", 8),
    processor!("SkylakeSP_Gold-6148", "skylake-sp-gold", 8),
    processor!("CascadeLakeSP_Gold-6248", "cascade-lake-sp-share", 8),
    processor!("Zen_EPYC-7451", "naples-share", 4),
    processor!("ThunderX2", "thunderx2-share", 2),
];

impl Processor {
    /// The processor of that name.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn named(name: &str) -> Result<&'static Processor> {
        let found = PROCESSORS.iter().find(|processor| processor.name == name);
        found.with_context(|| format!("no machine file describes {name}; add one to the study's machines"))
    }

    /// Its description.
    ///
    /// # Errors
    /// When the file cannot be read as a machine.
    pub(super) fn machine(&self) -> Result<Machine> {
        Ok(Machine::from_toml(self.toml, self.name.as_ref())?)
    }

    /// Its levels as the file describes them.
    fn levels(&self) -> Result<Levels> {
        let modelled = Modelled::of(&self.machine()?).map_err(|error| anyhow!("{error}"))?;
        Ok(modelled.context("a machine of the points has no first-level data cache")?.levels)
    }
}

/// A way to simulate a processor.
pub(super) struct Model {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    alter: fn(Levels) -> Levels,
    pages: Where,
    /// The points that it is asked about.
    pub(super) asked: fn(&Point) -> bool,
    /// Nanoseconds that it takes for an update, on one of two cores.
    pub(super) update_ns: f64,
}

/// Where the pages of a model lie.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Where {
    /// One block.
    Block,
    /// Anywhere; another layout has other places.
    Anywhere,
}

/// The processor as its file describes it, without prefetchers.
pub(super) const DESCRIBED: &str = "described";
/// The processor as its file describes it, with its prefetchers.
pub(super) const FETCHING: &str = "described, prefetching";
/// The processor with pages in one block.
pub(super) const BLOCK: &str = "described, one block";
/// What kerncraft's pycachesim simulates too.
pub(super) const LRU: &str = "lru";
/// Two levels, as cachegrind has them.
pub(super) const CACHEGRIND: &str = "cachegrind-like";

pub(super) const MODELS: &[Model] = &[
    Model {
        name: DESCRIBED,
        about: "replacement and inclusion as the machine file has them, no prefetchers, pages of 4 KiB anywhere in memory",
        alter: |levels| levels,
        pages: Where::Anywhere,
        asked: |_| true,
        update_ns: 140.0,
    },
    Model {
        name: FETCHING,
        about: "the same with a prefetcher by stride in L1, a streamer and the adjacent line in L2",
        alter: fetching,
        pages: Where::Anywhere,
        asked: Point::prefetched,
        update_ns: 250.0,
    },
    Model {
        name: BLOCK,
        about: "as described without prefetchers, all pages neighbours; the product alone",
        alter: |levels| levels,
        pages: Where::Block,
        asked: |point| point.kernel == PRODUCT,
        update_ns: 140.0,
    },
    Model {
        name: LRU,
        about: "every level replaces the line used longest ago, independent of the others, all pages neighbours; the product alone, \
                as pycachesim's own figures stand beside the stencils",
        alter: plain,
        pages: Where::Block,
        asked: |point| point.kernel == PRODUCT,
        update_ns: 70.0,
    },
    Model {
        name: CACHEGRIND,
        about: "two levels, L1 and the last one, with LRU, all pages neighbours; misses times 64 are loads, there are no write-backs",
        alter: two_levels,
        pages: Where::Block,
        asked: |point| !point.shows_sums_alone(),
        update_ns: 90.0,
    },
];

impl Model {
    /// The levels of a point's processor in this model and a layout; without the last level where
    /// the point has no figure of it.
    ///
    /// # Errors
    /// When the processor is unknown.
    pub(super) fn levels(&self, point: &Point, layout: usize) -> Result<Levels> {
        let mut levels = Processor::named(&point.machine)?.levels()?;
        if point.measured[2].is_none() {
            levels.outer.truncate(1);
        }
        if self.pages == Where::Anywhere {
            levels.pages = Pages::Random { seed: layout as u64 + 1, page_bytes: 4096 };
        }
        Ok((self.alter)(levels))
    }
}

fn fetching(mut levels: Levels) -> Levels {
    levels.data = levels.data.with_prefetch(Prefetch::Stride);
    let second = &mut levels.outer[0].geometry;
    *second = second.with_prefetch(Prefetch::Streamer).with_prefetch(Prefetch::AdjacentLine);
    levels
}

fn plain(levels: Levels) -> Levels {
    let plain =
        |geometry: Geometry| Geometry { prefetch: Prefetchers::NONE, ..geometry.with_policy(Policy::LRU) };
    let outer = |outer: &Outer| Outer::new(plain(outer.geometry), outer.sharing);
    Levels { outer: levels.outer.iter().map(outer).collect(), ..Levels::data_only(plain(levels.data)) }
}

fn two_levels(levels: Levels) -> Levels {
    let plain = plain(levels);
    let last = plain.outer.last().map(|last| Outer::new(last.geometry, Sharing::AllThreads));
    Levels { outer: last.into_iter().collect(), ..plain }
}

#[cfg(test)]
mod tests {
    use super::super::points::points;
    use super::*;
    use simulate::Inclusion;

    #[test]
    fn every_point_has_a_processor_that_every_model_can_simulate() {
        for point in points().unwrap() {
            for model in MODELS {
                let levels = model.levels(&point, 0).unwrap();
                assert!(levels.check().is_ok(), "{} {}", point.machine, model.name);
                assert_eq!(levels.data.size_bytes(), 32 << 10);
                let simple = matches!(model.name, LRU | CACHEGRIND);
                let (as_file, thunder) = (model.name == BLOCK, point.machine == "ThunderX2");
                // The one machine whose file describes plain levels.
                assert_eq!(
                    levels.is_plain(),
                    simple || as_file && thunder,
                    "{} {}",
                    point.machine,
                    model.name
                );
            }
        }
        let error = Processor::named("Z80").map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("no machine file describes Z80"), "{error}");
    }

    #[test]
    fn victim_caches_are_those_of_skylake_and_its_successor_and_of_naples() {
        for processor in PROCESSORS {
            let victim = processor.levels().unwrap().outer[1].inclusion == Inclusion::Exclusive;
            let expected = ["Skylake", "Cascade", "Zen"].iter().any(|name| processor.name.starts_with(name));
            assert_eq!(victim, expected, "{}", processor.name);
        }
    }
}
