//! What this machine can measure, what it cannot, why, and the fix.
//!
//! The answers come from files and CPUID only; nothing is tried. A row that needs a trial (ptrace,
//! `personality`, `perf_event_open`) is added by a crate that can make one, in the same form; a row
//! here about the same matter then says only what the settings allow. Each row is a small function
//! of the facts that were read, so that recorded machines test it.

mod row;
mod settings;
mod silicon;

pub use row::{Ability, State};

use crate::host::{self, Leaves, Tree};
use crate::{Cache, Origin};
use row::Facts;

/// All rows, in the order of the report.
const ROWS: &[fn(&Facts) -> Ability] = &[
    settings::ptrace,
    settings::fixed_addresses,
    settings::counters,
    settings::counter_permission,
    cache_description,
    tlb_description,
    silicon::vectors,
    silicon::tiles,
    silicon::bit_manipulation,
    silicon::fsgsbase,
    settings::huge_pages,
    settings::transparent_huge_pages,
    settings::processors,
    settings::memory,
    silicon::hypervisor,
];

/// Lists what this machine can measure, what it cannot, and why.
pub fn abilities() -> Vec<Ability> {
    let (tree, leaves) = (Tree::root(), Leaves::of_this_cpu());
    let machine = host::read(&tree, &leaves);
    let allowed = std::thread::available_parallelism().ok().and_then(|cpus| u32::try_from(cpus.get()).ok());
    of(&Facts { tree, leaves, machine, allowed })
}

fn of(facts: &Facts) -> Vec<Ability> {
    ROWS.iter().map(|row| row(facts)).collect()
}

fn cache_description(facts: &Facts) -> Ability {
    let name = "cache sizes of this machine";
    let caches = &facts.machine.caches;
    let sizes: Vec<String> = caches.iter().map(describe).collect();
    let source = facts.machine.source_of("cache");
    let (origin, note) = source.map_or((Origin::Assumed, ""), |source| (source.origin, source.note.as_str()));
    let reason = format!("{} ({note})", sizes.join(", "));
    match origin {
        Origin::Assumed => {
            Ability::new(name, State::No, reason).with_remedy("give --machine FILE or --l1d, --l2, --l3")
        }
        _ => Ability::new(name, State::Yes, reason),
    }
}

fn describe(cache: &Cache) -> String {
    let kilobytes = cache.size_bytes as f64 / 1024.0;
    format!("{} {kilobytes} KiB {}-way {} B", cache.name(), cache.ways, cache.line_bytes)
}

fn tlb_description(facts: &Facts) -> Ability {
    let name = "TLB sizes of this machine";
    let tlbs = facts.machine.tlbs.iter().filter(|tlb| tlb.translates(facts.machine.base_page_bytes()));
    let sizes: Vec<String> = tlbs.map(|tlb| format!("{} {} entries", tlb.name(), tlb.entries)).collect();
    let source = facts.machine.source_of("tlb");
    let (origin, note) = source.map_or((Origin::Assumed, ""), |source| (source.origin, source.note.as_str()));
    let reason = format!("{} ({note})", sizes.join(", "));
    match origin {
        Origin::Assumed => Ability::new(name, State::Partly, reason)
            .with_remedy("describe them in a TOML file and give it to --machine"),
        _ => Ability::new(name, State::Yes, reason),
    }
}

#[cfg(test)]
mod tests;
