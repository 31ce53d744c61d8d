//! The description of the machine that this program runs on.
//!
//! Caches come from sysfs, which the kernel fills from CPUID after correcting known mistakes;
//! without sysfs they come from CPUID. TLBs come from CPUID. Virtual machines often hide CPUID leaf
//! 0x18, and no machine reports penalties: then a default of the core's family is used, and the
//! value's origin says so. The same happens if a reported value is impossible (`plausible.rs`). All
//! parts are read from a [`Tree`] and from [`Leaves`], so that tests can use recorded ones.
//!
//! **Leaves out** measuring: nothing here is timed.

mod assumed;
pub(crate) mod cpuid;
mod plausible;
mod sysfs;
mod tree;

pub(crate) use cpuid::Leaves;
pub(crate) use tree::{cpus as tree_cpus, Tree};

use crate::{feature, Cache, FieldSource, Machine, Origin};

impl Machine {
    /// Describes the machine that this program runs on. Never fails: values that the machine does
    /// not report are assumed, and [`Machine::source_of`] says so.
    pub fn host() -> Machine {
        read(&Tree::root(), &Leaves::of_this_cpu())
    }
}

/// Reads a machine from a file tree and CPUID leaves, live or recorded.
pub(crate) fn read(tree: &Tree, leaves: &Leaves) -> Machine {
    let mut sources = Vec::new();
    let (features, source) = features(tree);
    sources.push(source);
    let core = assumed::Core::of(leaves, &features);
    let (frequency_mhz, source) = frequency(tree, leaves);
    sources.extend(source);
    let (page_bytes, source) = pages(tree);
    sources.push(source);
    let threads = tree.text("sys/devices/system/cpu/cpu0/topology/thread_siblings_list");
    let mut machine = Machine {
        name: "host".into(),
        description: description(tree),
        frequency_mhz,
        threads_per_core: threads.map_or(1, |list| tree::cpus(&list).max(1)),
        page_bytes,
        features,
        cycle: Some(core.cycle()),
        caches: Vec::new(),
        tlbs: Vec::new(),
        sources,
    };
    machine.enter_caches(tree, leaves, &core);
    machine.enter_tlbs(leaves, &core);
    machine.sources.push(FieldSource::new("cycle", Origin::Assumed, core.note()));
    machine.distrust(&core);
    machine.repair(&core);
    machine
}

impl Machine {
    fn enter_caches(&mut self, tree: &Tree, leaves: &Leaves, core: &assumed::Core) {
        let reported = [
            (sysfs::caches(tree), Origin::Reported, "/sys/devices/system/cpu/cpu0/cache"),
            (leaves.caches(), Origin::Reported, "CPUID leaf 4 or 0x8000001d"),
            (core.caches(), Origin::Assumed, core.note()),
        ];
        let found = reported.into_iter().find(|(caches, ..)| caches.iter().any(Cache::holds_data));
        let Some((caches, origin, note)) = found else { return };
        self.caches = caches;
        self.sort_caches();
        self.sources.push(FieldSource::new("cache", origin, note));
        for cache in &mut self.caches {
            cache.penalty_cycles = Some(core.miss_cycles(cache.level));
            for (field, note) in [
                ("penalty_cycles", core.note()),
                ("store_miss", "write-allocate, as all current cores"),
                ("write", "write-back, as all current cores"),
            ] {
                let field = format!("cache.{}.{field}", cache.name());
                self.sources.push(FieldSource::new(field, Origin::Assumed, note));
            }
        }
    }

    fn enter_tlbs(&mut self, leaves: &Leaves, core: &assumed::Core) {
        let reported = leaves.tlbs();
        let has_base_page = reported.iter().any(|tlb| tlb.translates(self.base_page_bytes()));
        let (tlbs, origin, note) = if has_base_page {
            (reported, Origin::Reported, "CPUID leaf 0x18, or 0x80000005 and 0x80000006")
        } else {
            (core.tlbs(self.base_page_bytes()), Origin::Assumed, core.note())
        };
        self.tlbs = tlbs;
        self.sources.push(FieldSource::new("tlb", origin, note));
        for tlb in &mut self.tlbs {
            tlb.penalty_cycles = Some(core.translation_cycles(tlb.level));
            let field = format!("tlb.{}.penalty_cycles", tlb.name());
            self.sources.retain(|source| source.field != field);
            self.sources.push(FieldSource::new(field, Origin::Assumed, core.note()));
        }
    }

    /// Replaces all caches and TLBs by the family's defaults if the reported ones are inconsistent.
    fn repair(&mut self, core: &assumed::Core) {
        let Err(error) = self.check() else { return };
        let note = format!("what the system reports does not fit together ({error}); {}", core.note());
        self.caches = core.caches();
        self.tlbs = core.tlbs(self.base_page_bytes());
        self.sources.retain(|source| !source.field.starts_with("cache") && !source.field.starts_with("tlb"));
        for field in ["cache", "tlb"] {
            self.sources.push(FieldSource::new(field, Origin::Assumed, note.clone()));
        }
    }
}

fn features(tree: &Tree) -> (Vec<String>, FieldSource) {
    let info = tree.text("proc/cpuinfo").unwrap_or_default();
    let flags = value(&info, "flags").or_else(|| value(&info, "Features"));
    match flags {
        Some(flags) => {
            (feature::known_flags(flags), FieldSource::new("features", Origin::Reported, "/proc/cpuinfo"))
        }
        None => (feature::detected(), FieldSource::new("features", Origin::Reported, "CPUID")),
    }
}

fn frequency(tree: &Tree, leaves: &Leaves) -> (Option<u32>, Option<FieldSource>) {
    let base_khz = tree.number("sys/devices/system/cpu/cpu0/cpufreq/base_frequency");
    let info = tree.text("proc/cpuinfo").unwrap_or_default();
    let now = || value(&info, "cpu MHz")?.parse::<f64>().ok().map(|mhz| mhz.round() as u32);
    let candidates = [
        (base_khz.map(|khz| (khz / 1000) as u32), "cpufreq base_frequency"),
        (leaves.base_frequency_mhz(), "CPUID leaf 0x16"),
        (now(), "/proc/cpuinfo: the clock at the time of reading"),
    ];
    let found = candidates.into_iter().find(|(mhz, _)| mhz.is_some_and(|mhz| mhz > 0));
    match found {
        Some((mhz, note)) => (mhz, Some(FieldSource::new("frequency_mhz", Origin::Reported, note))),
        None => (None, None),
    }
}

/// The base page, then what `/sys/kernel/mm/hugepages` offers.
fn pages(tree: &Tree) -> (Vec<u64>, FieldSource) {
    let base_bytes = if cfg!(all(target_arch = "aarch64", target_os = "macos")) { 16384 } else { 4096 };
    let huge = tree.names("sys/kernel/mm/hugepages").into_iter().filter_map(|name| {
        let kilobytes: u64 = name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
        kilobytes.checked_mul(1024).filter(|bytes| bytes.is_power_of_two() && *bytes > base_bytes)
    });
    let mut pages: Vec<u64> = std::iter::once(base_bytes).chain(huge).collect();
    pages.sort_unstable();
    pages.dedup();
    let note = "base page of the architecture, huge pages from /sys/kernel/mm/hugepages";
    (pages, FieldSource::new("page_bytes", Origin::Reported, note))
}

fn description(tree: &Tree) -> String {
    let info = tree.text("proc/cpuinfo").unwrap_or_default();
    let model = value(&info, "model name").unwrap_or("this machine");
    model.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The first `key : value` of a procfs file.
pub(crate) fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let mut pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.find(|(name, _)| name.trim() == key).map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests;
