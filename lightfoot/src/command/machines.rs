//! `lightfoot machines`: lists the machines that can be simulated, or shows one of them.
//!
//! The list is the table of presets of crate `machine`. A machine is shown with the sizes that a
//! simulation uses, and with what was assumed about it; its TOML is a starting point for
//! descriptions of other machines.

use crate::cli::Machines;
use anyhow::Result;
use machine::{Cache, Machine, Origin, Tlb, PRESETS};
use present::output::print;
use present::terminal::beside;
use std::fmt::Write;

pub(super) fn run(options: &Machines) -> Result<u8> {
    let Some(name) = &options.name else {
        print(&list())?;
        return Ok(0);
    };
    let machine = Machine::named(name)?;
    print(&if options.toml { machine.to_toml() } else { levels(&machine) })?;
    Ok(0)
}

/// A line for each machine, `host` first.
fn list() -> String {
    let presets = PRESETS.iter().map(|preset| (preset.name, preset.description));
    let all: Vec<_> = [("host", "This machine")].into_iter().chain(presets).collect();
    let width = all.iter().map(|(name, _)| name.len()).max().unwrap_or(0) + 2;
    all.iter().map(|(name, description)| beside(&format!("{name:<width$}"), description)).collect()
}

/// The description of a machine, and one line for each of its caches and TLBs.
pub(super) fn levels(machine: &Machine) -> String {
    let mut out = format!("{}\n", machine.description);
    let assumed = |field: &str| match machine.source_of(field).map(|source| source.origin) {
        Some(Origin::Assumed) => "  (assumed)",
        _ => "",
    };
    for cache in &machine.caches {
        let assumed = assumed(&format!("cache.{}", cache.name()));
        let _ = writeln!(out, "  {:<8} {}{assumed}", cache.name(), size(cache));
    }
    for tlb in machine.tlbs.iter().filter(|tlb| tlb.translates(machine.base_page_bytes())) {
        let assumed = assumed(&format!("tlb.{}", tlb.name()));
        let _ = writeln!(out, "  {:<8} {}{assumed}", tlb.name(), entries(tlb));
    }
    out
}

fn size(cache: &Cache) -> String {
    let kib = cache.size_bytes as f64 / 1024.0;
    let size = if kib >= 1024.0 { format!("{} MiB", kib / 1024.0) } else { format!("{kib} KiB") };
    format!(
        "{size:>10}, {:>2} ways, {} B lines, shared by {} CPUs",
        cache.ways, cache.line_bytes, cache.shared_by_cpus
    )
}

fn entries(tlb: &Tlb) -> String {
    if tlb.ways == tlb.entries {
        return format!("{:>10} entries, fully associative", tlb.entries);
    }
    format!("{:>10} entries, {} ways", tlb.entries, tlb.ways)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_listed_and_shown() {
        let list = list();
        for preset in PRESETS {
            assert!(list.lines().any(|line| line.split(' ').next() == Some(preset.name)), "{}", preset.name);
            let machine = preset.machine();
            let lines = levels(&machine);
            machine.caches.iter().for_each(|cache| assert!(lines.contains(&cache.name()), "{lines}"));
        }
        assert!(list.starts_with("host "), "{list}");
    }

    #[test]
    fn what_is_assumed_says_so() {
        let zen5 = levels(&Machine::preset("zen5").unwrap());
        assert!(zen5.contains("L1 DTLB          96 entries, fully associative\n"), "{zen5}");
        assert!(zen5.contains("4096 entries, 16 ways"), "{zen5}");
    }
}
