//! `lightfoot machines`: lists the machines that can be simulated, or shows one of them.
//!
//! The list is the table of presets of crate `machine`, with the host as it reports itself and as
//! it was measured. A machine is shown with everything that a simulation uses, and with how each
//! value is known; its TOML is a starting point for descriptions of other machines.

use crate::cli::Machines;
use crate::run::named;
use anyhow::Result;
use machine::{Cache, Inclusion, Machine, Origin, Prefetch, Replacement, StoreMiss, Tlb, WritePolicy};
use present::output::print;
use present::terminal::beside;
use std::fmt::Write;

pub(super) fn run(options: &Machines) -> Result<u8> {
    let Some(name) = &options.name else {
        print(&list())?;
        return Ok(0);
    };
    let machine = named::machine(name)?;
    print(&if options.toml { machine.to_toml() } else { whole(&machine) })?;
    Ok(0)
}

/// A line for each machine, `host` first.
fn list() -> String {
    let all = named::listed();
    let width = all.iter().map(|(name, _)| name.len()).max().unwrap_or(0) + 2;
    all.iter().map(|(name, description)| beside(&format!("{name:<width$}"), description)).collect()
}

/// The description of a machine, and one line for each of its caches and TLBs.
pub(super) fn levels(machine: &Machine) -> String {
    let mut out = beside("", &machine.description);
    for cache in &machine.caches {
        let origin = origin(machine, &format!("cache.{}.size_bytes", cache.name()));
        let _ = writeln!(out, "  {:<8} {}{origin}", cache.name(), size(cache));
    }
    for tlb in machine.tlbs.iter().filter(|tlb| tlb.translates(machine.base_page_bytes())) {
        let origin = origin(machine, &format!("tlb.{}.entries", tlb.name()));
        let _ = writeln!(out, "  {:<8} {}{origin}", tlb.name(), entries(tlb));
    }
    out
}

/// The origin of a field, where it is neither what the machine reports nor what a file declares.
fn origin(machine: &Machine, field: &str) -> &'static str {
    match machine.source_of(field).map(|source| source.origin) {
        Some(Origin::Assumed) => "  (assumed)",
        Some(Origin::Measured) => "  (measured)",
        _ => "",
    }
}

/// All that is known about a machine.
fn whole(machine: &Machine) -> String {
    let mut out = levels(machine);
    let pages: Vec<String> = machine.page_bytes.iter().map(|bytes| short(*bytes)).collect();
    let clock = machine.frequency_mhz.map_or("unknown".into(), |mhz| format!("{mhz} MHz"));
    let mut facts = vec![
        ("clock", clock),
        ("threads", format!("{} of a core", machine.threads_per_core)),
        ("pages", pages.join(", ")),
        ("features", machine.features.join(" ")),
    ];
    if let Some(cycle) = machine.cycle {
        let branches = cycle.branch_miss_cycles.map(|cycles| format!(", {cycles} for a mispredicted branch"));
        let base = format!("{} for an instruction", cycle.base_cycles_per_instruction);
        facts.push(("cycles", base + &branches.unwrap_or_default()));
    }
    let misses = machine.caches.iter().map(|cache| (cache.name(), cache.penalty_cycles));
    let misses = misses.chain(machine.tlbs.iter().map(|tlb| (tlb.name(), tlb.penalty_cycles)));
    let misses: Vec<String> =
        misses.filter_map(|(name, cycles)| Some(format!("{name} +{}", cycles?))).collect();
    facts.push(("misses", misses.join(", ")));
    for (name, text) in facts.iter().filter(|(_, text)| !text.is_empty()) {
        out += &beside(&format!("  {name:<9}"), text);
    }
    for (name, text) in behaviours(machine) {
        out += &beside(&format!("  {name:<9}"), &text);
    }
    out + &sources(machine)
}

/// What levels do beyond LRU, write-allocate and write-back, and the buffers for large pages.
fn behaviours(machine: &Machine) -> Vec<(String, String)> {
    let words = |cache: &Cache| {
        let word = |known: &[(&'static str, bool)]| {
            known.iter().filter(|(_, holds)| *holds).map(|(word, _)| word.to_string()).collect::<Vec<_>>()
        };
        let behaviour = &cache.behaviour;
        let prefetches = |kind| behaviour.prefetch.with(kind) == behaviour.prefetch;
        let mut all = word(&[
            ("stores that miss bypass it", cache.store_miss == StoreMiss::Bypass),
            ("write-through", cache.write == WritePolicy::Through),
        ]);
        all.push(match behaviour.replacement {
            Replacement::Plru => "tree-PLRU".into(),
            Replacement::Random => "random replacement".into(),
            other => other.to_string(),
        });
        all.retain(|word| *word != Replacement::Lru.to_string());
        all.extend(word(&[
            ("inclusive", behaviour.inclusion == Inclusion::Inclusive),
            ("exclusive", behaviour.inclusion == Inclusion::Exclusive),
            ("prefetches the next line", prefetches(Prefetch::NextLine)),
            ("prefetches by stride", prefetches(Prefetch::Stride)),
            ("prefetches streams", prefetches(Prefetch::Streamer)),
            ("prefetches the other line of a pair", prefetches(Prefetch::AdjacentLine)),
        ]));
        let (late, masks) = (behaviour.late_touches, behaviour.slices.masks().len());
        all.extend((late > 0).then(|| format!("prefetched lines late for {late} touches")));
        all.extend((masks > 0).then(|| format!("in {} slices", 1u64 << masks)));
        all
    };
    let caches = machine.caches.iter().map(|cache| (cache.name(), words(cache).join(", ")));
    let base = machine.base_page_bytes();
    let large = machine.tlbs.iter().filter(|tlb| !tlb.translates(base) || tlb.page_bytes.len() > 1);
    let pages = |tlb: &Tlb| {
        let sizes: Vec<String> = tlb.page_bytes.iter().map(|bytes| short(*bytes)).collect();
        format!("{}, pages of {}", entries(tlb).trim(), sizes.join(", "))
    };
    let tlbs = large.map(|tlb| (tlb.name(), pages(tlb)));
    caches.filter(|(_, words)| !words.is_empty()).chain(tlbs).collect()
}

/// How each value is known, and where from.
fn sources(machine: &Machine) -> String {
    let mut out = String::from("\nHow values are known; the longest name speaks for a value:\n");
    for source in &machine.sources {
        let origin = format!("{:?}", source.origin).to_lowercase();
        let note = if source.note.is_empty() { String::new() } else { format!(": {}", source.note) };
        out += &format!("  {}\n", source.field);
        out += &beside("      ", &format!("{origin}{note}"));
    }
    out
}

fn size(cache: &Cache) -> String {
    format!(
        "{:>10}, {:>2} ways, {} B lines, shared by {} CPUs",
        short(cache.size_bytes),
        cache.ways,
        cache.line_bytes,
        cache.shared_by_cpus
    )
}

/// A size with its unit.
fn short(bytes: u64) -> String {
    let kib = bytes as f64 / 1024.0;
    match kib {
        _ if kib >= 1024.0 * 1024.0 => format!("{} GiB", kib / 1024.0 / 1024.0),
        _ if kib >= 1024.0 => format!("{} MiB", kib / 1024.0),
        _ => format!("{kib} KiB"),
    }
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
    use machine::PRESETS;

    #[test]
    fn every_preset_is_listed_and_shown() {
        let list = list();
        for preset in PRESETS {
            assert!(list.lines().any(|line| line.split(' ').next() == Some(preset.name)), "{}", preset.name);
            let machine = preset.machine();
            let lines = levels(&machine);
            machine.caches.iter().for_each(|cache| assert!(lines.contains(&cache.name()), "{lines}"));
        }
        assert!(list.starts_with("host ") && list.contains("\nmeasured "), "{list}");
    }

    #[test]
    fn what_is_assumed_says_so() {
        let zen5 = levels(&Machine::preset("zen5").unwrap());
        assert!(zen5.contains("L1 DTLB          96 entries, fully associative\n"), "{zen5}");
        assert!(zen5.contains("4096 entries, 16 ways"), "{zen5}");
    }

    #[test]
    fn a_machine_is_shown_with_every_value_and_its_source() {
        for preset in PRESETS {
            let machine = preset.machine();
            let shown = whole(&machine);
            let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
            for source in &machine.sources {
                let note = source.note.split_whitespace().collect::<Vec<_>>().join(" ");
                assert!(
                    words.contains(&note) && shown.contains(&source.field),
                    "{}: {source:?}",
                    preset.name
                );
            }
            for cache in &machine.caches {
                let miss = cache.penalty_cycles.map(|cycles| format!("{} +{cycles}", cache.name()));
                assert!(words.contains(&miss.unwrap_or_default()), "{}: {shown}", preset.name);
            }
            assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
        }
        let bridge = whole(&Machine::preset("sandy-bridge").unwrap());
        assert!(bridge.contains("L3       inclusive") && bridge.contains("prefetches by stride"), "{bridge}");
        let ladner = whole(&Machine::preset("ladner2002").unwrap());
        assert!(ladner.contains("stores that miss bypass it"), "{ladner}");
    }
}
