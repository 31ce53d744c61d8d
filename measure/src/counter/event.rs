//! A table of the events that the kernel's perf interface counts, by name.
//!
//! Names are those of the `perf` tool. Numbers are the kernel's ABI (`linux/perf_event.h`): type 0
//! hardware, 1 software, 3 cache; a cache event is cache + operation × 256 + result × 65536.
//! **Leaves out** raw, model-specific events.

use crate::trace::Source;
use crate::Error;

/// An event that the kernel can count.
#[derive(Debug, PartialEq, Eq)]
pub struct Event {
    /// The name in the `perf` tool.
    pub name: &'static str,
    /// `perf_event_attr.type`.
    pub kind: u32,
    /// `perf_event_attr.config`.
    pub config: u64,
    /// Whether the processor or the kernel counts it.
    pub source: Source,
}

const fn hardware(name: &'static str, config: u64) -> Event {
    Event { name, kind: 0, config, source: Source::Pmu }
}

const fn kernel(name: &'static str, config: u64) -> Event {
    Event { name, kind: 1, config, source: Source::Kernel }
}

const fn cache(name: &'static str, cache: u64, operation: u64, result: u64) -> Event {
    Event { name, kind: 3, config: cache | operation << 8 | result << 16, source: Source::Pmu }
}

/// Every event.
pub const EVENTS: &[Event] = &[
    kernel("task-clock", 1),
    kernel("page-faults", 2),
    kernel("context-switches", 3),
    kernel("cpu-migrations", 4),
    kernel("minor-faults", 5),
    kernel("major-faults", 6),
    kernel("alignment-faults", 7),
    kernel("emulation-faults", 8),
    kernel("cgroup-switches", 11),
    hardware("cycles", 0),
    hardware("instructions", 1),
    hardware("cache-references", 2),
    hardware("cache-misses", 3),
    hardware("branches", 4),
    hardware("branch-misses", 5),
    hardware("bus-cycles", 6),
    hardware("stalled-cycles-frontend", 7),
    hardware("stalled-cycles-backend", 8),
    hardware("ref-cycles", 9),
    cache("L1-dcache-loads", 0, 0, 0),
    cache("L1-dcache-load-misses", 0, 0, 1),
    cache("L1-dcache-stores", 0, 1, 0),
    cache("L1-icache-load-misses", 1, 0, 1),
    cache("LLC-loads", 2, 0, 0),
    cache("LLC-load-misses", 2, 0, 1),
    cache("LLC-stores", 2, 1, 0),
    cache("LLC-store-misses", 2, 1, 1),
    cache("dTLB-loads", 3, 0, 0),
    cache("dTLB-load-misses", 3, 0, 1),
    cache("dTLB-stores", 3, 1, 0),
    cache("dTLB-store-misses", 3, 1, 1),
    cache("iTLB-load-misses", 4, 0, 1),
    cache("node-load-misses", 6, 0, 1),
];

/// The names of all events.
pub fn names() -> Vec<&'static str> {
    EVENTS.iter().map(|event| event.name).collect()
}

/// The event with this name, in upper or lower case.
///
/// # Errors
/// [`Error::NoSuchEvent`] with names of similar spelling.
pub fn find(name: &str) -> Result<&'static Event, Error> {
    let found = EVENTS.iter().find(|event| event.name.eq_ignore_ascii_case(name));
    found.ok_or_else(|| Error::NoSuchEvent {
        name: name.into(),
        nearest: nearest(name, names()),
        known: names(),
    })
}

/// Up to three of `names` that differ from `name` by at most a third of its letters, or that
/// contain it; the nearest first.
pub fn nearest<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = name.to_lowercase();
    let allowed = wanted.chars().count().div_ceil(3);
    let mut found: Vec<(usize, &str)> = names
        .into_iter()
        .map(|candidate| {
            let lower = candidate.to_lowercase();
            let inside = wanted.len() >= 3 && lower.contains(&wanted);
            (if inside { 1 } else { distance(&wanted, &lower) }, candidate)
        })
        .filter(|&(distance, _)| distance <= allowed)
        .collect();
    found.sort_unstable();
    found.truncate(3);
    found.into_iter().map(|(_, name)| name).collect()
}

/// Insertions, deletions and replacements that turn one word into the other (Levenshtein 1966).
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (row_number, letter) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], row_number + 1);
        for (at, &wanted) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != wanted);
            diagonal = std::mem::replace(&mut row[at + 1], 0);
            row[at + 1] = replaced.min(diagonal + 1).min(row[at] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_misspelt_ones_explained() {
        assert_eq!(find("Page-Faults").unwrap().config, 2);
        assert_eq!(find("LLC-load-misses").unwrap().config, 0x10002);
        let said = find("page-fualts").unwrap_err().to_string();
        assert!(said.contains("page-fualts") && said.contains("page-faults"), "{said}");
        assert!(nearest("llc", names()).iter().all(|name| name.starts_with("LLC")));
        let said = find("zzzzzz").unwrap_err().to_string();
        assert!(said.contains("the events are task-clock"), "{said}");
    }

    #[test]
    fn distances() {
        for (a, b, expected) in
            [("", "", 0), ("a", "", 1), ("kitten", "sitting", 3), ("abc", "abc", 0), ("ab", "ba", 2)]
        {
            assert_eq!(distance(a, b), expected, "{a} {b}");
            assert_eq!(distance(b, a), expected);
        }
    }

    #[test]
    fn every_event_has_its_own_number() {
        for (index, event) in EVENTS.iter().enumerate() {
            let same = |other: &&Event| (other.kind, other.config) == (event.kind, event.config);
            assert_eq!(EVENTS.iter().position(|other| same(&other)), Some(index), "{}", event.name);
        }
    }
}
