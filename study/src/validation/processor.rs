//! The processors of the points, and the models that they are simulated by.
//!
//! Each is a machine file in `machines`, whose origins say what its figures rest on. Points without
//! figures of the last level are simulated without it.

use super::pages::Pages;
use super::points::Point;
use anyhow::{anyhow, Context, Result};
use machine::Machine;
use simulate::{Inclusion, Levels, Modelled, Outer, Policy, Prefetch, Sharing};

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
    random_pages: bool,
}

/// What kerncraft's pycachesim simulates too.
pub(super) const LRU: &str = "lru";
/// The processor as its file describes it; the model that the bar is about.
pub(super) const DESCRIBED: &str = "described";
/// Described, with pages in one block.
pub(super) const BLOCK: &str = "described, one block";
/// Two levels, as cachegrind has them.
pub(super) const CACHEGRIND: &str = "cachegrind-like";

pub(super) const MODELS: &[Model] = &[
    Model {
        name: DESCRIBED,
        about: "replacement and inclusion as the machine file describes them, pages of 4 KiB anywhere in memory",
        alter: |levels| levels,
        random_pages: true,
    },
    Model {
        name: BLOCK,
        about: "replacement and inclusion as described, all pages neighbours",
        alter: |levels| levels,
        random_pages: false,
    },
    Model {
        name: LRU,
        about: "every level replaces the line used longest ago and is independent of the others; all pages neighbours",
        alter: plain,
        random_pages: false,
    },
    Model {
        name: CACHEGRIND,
        about: "two levels, L1 and the last one, with LRU; all pages neighbours; loads only, as cachegrind counts \
                no write-backs",
        alter: two_levels,
        random_pages: false,
    },
];

impl Model {
    /// The levels of a point's processor in this model; without the last level where the point has
    /// no figure of it.
    ///
    /// # Errors
    /// When the processor is unknown.
    pub(super) fn levels(&self, point: &Point) -> Result<Levels> {
        let mut levels = (self.alter)(Processor::named(&point.machine)?.levels()?);
        if point.measured[2].is_none() {
            levels.outer.truncate(1);
        }
        Ok(levels)
    }

    /// The pages of a layout.
    pub(super) fn pages(&self, layout: usize) -> Pages {
        match self.random_pages {
            true => Pages::Random(layout as u64 + 1),
            false => Pages::Contiguous,
        }
    }
}

fn plain(levels: Levels) -> Levels {
    let plain = |geometry: simulate::Geometry| {
        geometry.with_policy(Policy::LRU).with_prefetch(Prefetch::None)
    };
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

    #[test]
    fn every_point_has_a_processor_that_every_model_can_simulate() {
        for point in points().unwrap() {
            for model in MODELS {
                let levels = model.levels(&point).unwrap();
                assert!(levels.check().is_ok(), "{} {}", point.machine, model.name);
                assert_eq!(levels.data.size_bytes(), 32 << 10);
                assert_eq!(levels.is_plain(), !matches!(model.name, DESCRIBED | BLOCK) || {
                    // Machines for memory volumes alone replace by LRU.
                    point.machine == "ThunderX2"
                });
            }
        }
        assert!(Processor::named("Z80").unwrap_err().to_string().contains("no machine file describes Z80"));
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
