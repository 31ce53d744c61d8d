//! Connects a machine's description with the simulated levels, and the results of a simulation with
//! the numbers of a report.
//!
//! The simulator numbers levels by their order, a report by the machine's description: the second
//! level that is simulated may be the machine's third. A level that the machine lacks or that
//! cannot be simulated has null as its number, with a reason, never 0.

use crate::cli;
use crate::run::block_order::branch::Predicted;
use crate::run::estimate::{estimate, Estimate};
use crate::run::named;
use crate::run::tally::{Attribution, Misses, Part};
use anyhow::Result;
use cycles::{Counted, Estimated};
use instrument::Profile;
use machine::Machine;
use objects::ObjectMisses;
use present::order::map_of;
use serde::Serialize;
use simulate::{CycleModel, Levels, Modelled, PageRange};
use std::collections::BTreeMap;

/// What prefetchers brought into a level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Prefetched {
    /// Lines that entered although no reference had asked for them.
    pub lines: u64,
    /// References that found their line on its way.
    pub late: u64,
}

/// Lines that moved into and out of a level; of a first level, the one of data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// Lines that entered.
    pub lines_in: u64,
    /// Lines that an inner level found here.
    pub supplied: u64,
    /// Changed lines that left.
    pub dirty_out: u64,
    /// Unchanged lines that moved to an exclusive level.
    pub clean_out: u64,
}

/// A machine with its simulated levels.
#[derive(Clone, Debug)]
pub struct Hierarchy {
    /// The machine.
    pub machine: Machine,
    /// The simulated levels.
    pub levels: Levels,
    /// Sentences about the parts that are not simulated.
    pub warnings: Vec<String>,
    /// For each simulated level the machine's number of it.
    numbers: Vec<u8>,
}

impl Hierarchy {
    /// The machine that the options name.
    ///
    /// # Errors
    /// When there is no such machine, its file is wrong, or it cannot be simulated.
    pub fn new(options: &cli::MachineOptions) -> Result<Hierarchy> {
        let overrides =
            [("l1i", &options.l1i), ("l1d", &options.l1d), ("l2", &options.l2), ("l3", &options.l3)];
        let overrides: Vec<(&str, &str)> =
            overrides.into_iter().filter_map(|(level, text)| Some((level, text.as_deref()?))).collect();
        let machine = named::machine(&options.machine)?.with_overrides(&overrides)?;
        let ranges = options.huge_pages.iter().map(|text| huge_pages(text)).collect::<Result<Vec<_>>>()?;
        Hierarchy::with_pages(machine, ranges, random_pages(&options.pages)?)
    }

    /// The machine that the options name; an error if its levels are not plain.
    ///
    /// # Errors
    /// The errors of [`Hierarchy::new`], and an error when the levels are not plain.
    pub fn plain(options: &cli::MachineOptions) -> Result<Hierarchy> {
        let hierarchy = Hierarchy::new(options)?;
        if !hierarchy.levels.is_plain() {
            anyhow::bail!(
                "machine {} has a replacement other than lru, inclusion, prefetchers, slices, huge pages or pages \
                 at random, which only 'lightfoot cache' simulates: choose one without them",
                hierarchy.machine.name
            );
        }
        Ok(hierarchy)
    }

    /// The simulated levels of `machine`.
    ///
    /// # Errors
    /// When it cannot be simulated.
    pub fn of(machine: Machine) -> Result<Hierarchy> {
        Hierarchy::with_pages(machine, Vec::new(), None)
    }

    /// The levels of `machine` with large pages at `ranges`, and pages at random for a seed.
    fn with_pages(machine: Machine, ranges: Vec<PageRange>, seed: Option<u64>) -> Result<Hierarchy> {
        let refused = |error| anyhow::anyhow!("machine {} cannot be simulated: {error}", machine.name);
        let modelled = Modelled::of(&machine).map_err(refused)?;
        let placed = |modelled: Modelled| {
            let modelled = modelled.with_large_pages(&machine, ranges)?;
            match seed {
                Some(seed) => modelled.with_random_pages(&machine, seed),
                None => Ok(modelled),
            }
        };
        let modelled = modelled.map(placed).transpose();
        let Some(Modelled { levels, numbers, left_out }) = modelled.map_err(refused)? else {
            anyhow::bail!(
                "machine {} has no first-level data cache to simulate: give one with --l1d",
                machine.name
            )
        };
        Ok(Hierarchy { machine, levels, warnings: left_out, numbers })
    }

    /// The simulator's index of the machine's level `number`.
    pub(crate) fn place(&self, number: u8) -> Option<usize> {
        self.numbers.iter().position(|&level| level == number)
    }

    /// The name of the machine's data or unified level of this size.
    pub(crate) fn level_of(&self, size_bytes: u64) -> Option<String> {
        let bytes = |geometry: simulate::Geometry| {
            geometry.sets * u64::from(geometry.ways) * u64::from(geometry.line_bytes)
        };
        if bytes(self.levels.data) == size_bytes {
            return Some("L1D".into());
        }
        let outer = self.levels.outer.iter().position(|outer| bytes(outer.geometry) == size_bytes)?;
        self.numbers.get(outer + 1).map(|number| format!("L{number}"))
    }

    /// Misses by site and block, with the names of a report.
    pub fn attribution(&self, counts: &simulate::Counts, predicted: Option<&Predicted>) -> Attribution {
        let none = Misses { branch_mispredictions: predicted.map(|_| 0), ..self.none() };
        let mut attribution = Attribution { none, ..Attribution::default() };
        self.each_site(counts, &mut |site, misses| attribution.by_site.push((site, *misses)));
        self.each_block(counts, predicted, &mut |block, misses| attribution.by_block.push((block, *misses)));
        attribution
    }

    /// Calls `add` with the misses of each site that missed.
    pub(crate) fn each_site(&self, counts: &simulate::Counts, add: &mut dyn FnMut(u32, &Misses)) {
        for (number, site) in counts.sites.iter().enumerate().filter(|(_, site)| !site.is_empty()) {
            add(number as u32, &self.of_site(site));
        }
    }

    /// Calls `add` with the misses of each block whose lines missed, and then with the
    /// mispredictions of each block that has some.
    pub(crate) fn each_block(
        &self,
        counts: &simulate::Counts,
        predicted: Option<&Predicted>,
        add: &mut dyn FnMut(u32, &Misses),
    ) {
        for (number, block) in counts.blocks.iter().enumerate().filter(|(_, block)| !block.is_empty()) {
            add(number as u32, &self.of_block(block));
        }
        let mispredicted = predicted.map_or(&[][..], |predicted| &predicted.mispredicted);
        for (number, &wrong) in mispredicted.iter().enumerate().filter(|(_, wrong)| **wrong > 0) {
            let misses = Misses { branch_mispredictions: Some(wrong), ..Misses::default() };
            add(number as u32, &misses);
        }
    }

    /// Estimated cycles by site and block; `None` if the machine declares no costs.
    pub fn estimated(
        &self,
        profile: &Profile,
        counts: &simulate::Counts,
        predicted: Option<&Predicted>,
    ) -> Option<Estimated> {
        self.machine.cycle?;
        let mispredicted = predicted.map_or(&[][..], |predicted| &predicted.mispredicted);
        let counted = Counted { profile, counts, mispredicted, numbers: &self.numbers };
        Some(cycles::estimate(&counted, &self.machine))
    }

    /// Misses of one image by site and block, with the names of a report.
    pub fn attribution_of(&self, part: &Part) -> Attribution {
        Attribution {
            none: self.none(),
            by_site: part.sites.iter().map(|(number, site)| (*number, self.of_site(site))).collect(),
            by_block: part.blocks.iter().map(|(number, block)| (*number, self.of_block(block))).collect(),
        }
    }

    /// 0 misses of each level that exists.
    pub(crate) fn none(&self) -> Misses {
        Misses {
            l1i_misses: self.levels.instruction.map(|_| 0),
            l1d_load_misses: Some(0),
            l1d_store_misses: Some(0),
            l2_misses: self.place(2).map(|_| 0),
            l3_misses: self.place(3).map(|_| 0),
            dtlb_misses: self.levels.data_tlb.map(|_| 0),
            branch_mispredictions: None,
            cycles: None,
        }
    }

    /// Misses of one object, with the names of a report.
    pub fn of_object(&self, object: &ObjectMisses) -> Misses {
        let all = |level: usize| object.caches[level].total();
        Misses {
            l1i_misses: self.levels.instruction.map(|_| object.caches[0].instructions),
            l1d_load_misses: Some(object.caches[0].loads),
            l1d_store_misses: Some(object.caches[0].stores),
            l2_misses: self.place(2).map(all),
            l3_misses: self.place(3).map(all),
            dtlb_misses: self.levels.data_tlb.map(|_| object.tlbs[0].loads),
            branch_mispredictions: None,
            cycles: None,
        }
    }

    fn of_site(&self, site: &simulate::SiteMisses) -> Misses {
        let both = |level: usize| site.loads[level] + site.stores[level];
        Misses {
            l1i_misses: None,
            l1d_load_misses: Some(site.loads[0]),
            l1d_store_misses: Some(site.stores[0]),
            l2_misses: self.place(2).map(both),
            l3_misses: self.place(3).map(both),
            dtlb_misses: self.levels.data_tlb.map(|_| site.tlbs[0]),
            branch_mispredictions: None,
            cycles: None,
        }
    }

    fn of_block(&self, block: &simulate::BlockMisses) -> Misses {
        let fetches = |level: usize| block.fetches[level];
        Misses {
            l1i_misses: self.levels.instruction.map(|_| block.fetches[0]),
            l2_misses: self.place(2).map(fetches),
            l3_misses: self.place(3).map(fetches),
            ..Misses::default()
        }
    }

    /// The number of dirty lines that each level has written back, by the machine's numbers of
    /// levels.
    pub fn write_backs(&self, counts: &simulate::Counts) -> Option<BTreeMap<String, u64>> {
        let counts = counts.write_backs?;
        Some(map_of(self.numbers.iter().zip(counts).map(|(number, count)| (format!("l{number}"), count))))
    }

    /// Lines that prefetchers fetched into each level, by the machine's numbers of levels.
    pub fn prefetched(&self, counts: &simulate::Counts) -> Option<BTreeMap<String, Prefetched>> {
        let counts = counts.prefetched?;
        let level = |(number, count): (&u8, simulate::Prefetched)| {
            (format!("l{number}"), Prefetched { lines: count.lines, late: count.late })
        };
        Some(map_of(self.numbers.iter().zip(counts).map(level)))
    }

    /// Lines that moved into and out of each level, by the machine's numbers of levels.
    pub fn traffic(&self, counts: &simulate::Counts) -> Option<BTreeMap<String, Traffic>> {
        let levels = counts.traffic?.levels;
        let level = |(number, count): (&u8, simulate::LevelTraffic)| {
            let simulate::LevelTraffic { lines_in, supplied, dirty_out, clean_out, .. } = count;
            (format!("l{number}"), Traffic { lines_in, supplied, dirty_out, clean_out })
        };
        Some(map_of(self.numbers.iter().zip(levels).map(level)))
    }

    /// Estimated cycles by the machine's declared model; `None` if it declares none.
    pub fn cycles(
        &self,
        counts: &simulate::Counts,
        instructions: u64,
        wrong: Option<u64>,
    ) -> Option<Estimate> {
        let model = CycleModel::of(&self.machine)?;
        Some(estimate(&model, instructions, counts, &self.numbers, wrong))
    }

    /// The reasons for numbers of the report that are null.
    pub fn null_reasons(&self) -> BTreeMap<String, String> {
        let name = &self.machine.name;
        let missing = [
            ("l1i_misses", self.levels.instruction.is_none(), "L1I"),
            ("l2_misses", self.place(2).is_none(), "L2"),
            ("l3_misses", self.place(3).is_none(), "L3"),
            ("dtlb_misses", self.levels.data_tlb.is_none(), "data TLB"),
        ];
        let missing = missing.into_iter().filter(|(_, missing, _)| *missing);
        map_of(missing.map(|(field, _, what)| (field.into(), format!("machine {name} has no {what}"))))
    }
}

/// Reads addresses on large pages: `2M`, or `2M@0x7ffff7a00000-0x7ffff7bfffff`.
fn huge_pages(text: &str) -> Result<PageRange> {
    let wrong = || {
        anyhow::anyhow!(
            "--huge-pages {text}: expected 2M or 1G, alone for all addresses or with a range of them, such as \
             2M@0x555555600000-0x5555557fffff"
        )
    };
    let (size, range) = text.split_once('@').unwrap_or((text, "0-ffffffffffffffff"));
    let page_bytes = match size.to_ascii_uppercase().as_str() {
        "2M" => 2 << 20,
        "1G" => 1 << 30,
        _ => return Err(wrong()),
    };
    let address = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).map_err(|_| wrong());
    let (start, last) = range.split_once('-').ok_or_else(wrong)?;
    let range = PageRange { start: address(start)?, last: address(last)?, page_bytes };
    if range.start > range.last {
        return Err(wrong());
    }
    Ok(range)
}

/// Reads where pages lie: the seed of `random:SEED`, `None` for `virtual`.
fn random_pages(text: &str) -> Result<Option<u64>> {
    if text == "virtual" {
        return Ok(None);
    }
    let seed = text.strip_prefix("random:").and_then(|seed| seed.parse().ok());
    seed.map(Some).ok_or_else(|| {
        anyhow::anyhow!(
            "--pages {text}: expected virtual, or random:SEED with a whole number from 0 to {}, such as random:1",
            u64::MAX
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preset(name: &str) -> Hierarchy {
        Hierarchy::of(Machine::preset(name).unwrap()).unwrap()
    }

    #[test]
    fn every_preset_and_this_host_can_be_simulated() {
        for preset in machine::PRESETS {
            Hierarchy::of(preset.machine()).unwrap();
        }
        Hierarchy::of(Machine::host()).unwrap();
    }

    #[test]
    fn misses_come_out_under_the_machines_own_level() {
        let hierarchy = preset("cachegrind");
        let mut counts = simulate::Counts::default();
        counts.sites.push(simulate::SiteMisses { loads: [5, 2, 0], stores: [1, 1, 0], tlbs: [0, 0] });
        counts.blocks.resize(3, simulate::BlockMisses::default());
        counts.blocks[2].fetches = [7, 4, 0];
        let attribution = hierarchy.attribution(&counts, None);
        assert_eq!(attribution.by_site.len(), 1);
        assert_eq!(attribution.by_block[0].0, 2);
        let site = attribution.by_site[0].1;
        assert_eq!((site.l1d_load_misses, site.l1d_store_misses), (Some(5), Some(1)));
        let outer = if hierarchy.place(2).is_some() { site.l2_misses } else { site.l3_misses };
        assert_eq!(outer, Some(3));
        assert_eq!(attribution.by_block[0].1.l1i_misses, Some(7));
    }

    #[test]
    fn huge_pages_are_read_or_refused() {
        let range = huge_pages("2m@0x200000-0x3fffff").unwrap();
        assert_eq!((range.start, range.last, range.page_bytes), (2 << 20, (4 << 20) - 1, 2 << 20));
        assert_eq!(huge_pages("1G").unwrap().last, u64::MAX);
        for wrong in ["4K", "2M@", "2M@5", "2M@9-1", "2M@x-y", ""] {
            assert!(huge_pages(wrong).unwrap_err().to_string().starts_with("--huge-pages "), "{wrong}");
        }
    }

    #[test]
    fn places_of_pages_are_read_or_refused() {
        assert_eq!(random_pages("virtual").unwrap(), None);
        assert_eq!(random_pages("random:7").unwrap(), Some(7));
        for wrong in ["physical", "random", "random:", "random:-1", "random:x", ""] {
            let error = random_pages(wrong).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("--pages {wrong}: expected virtual, or random:SEED")),
                "{error}"
            );
        }
    }

    #[test]
    fn what_a_machine_lacks_has_a_reason() {
        let hierarchy = preset("ladner2002");
        let attribution = hierarchy.attribution(&simulate::Counts::default(), None);
        assert_eq!(attribution.none.l3_misses, None);
        assert!(hierarchy.null_reasons()["l3_misses"].contains("has no L3"));
    }
}
