//! A machine's description from what it reports and what was measured.

use super::curve::{Riser, Spread, Stairs};
use super::verdict::Findings;
use machine::{FieldSource, Machine, Origin, Tlb};
use serde::Serialize;

/// How much nearer a riser must be to another level to be taken for that one's.
const NEARER_OCTAVES: f64 = 1.0;

/// A description with what was measured about each level.
#[derive(Clone, Debug)]
pub struct Described {
    /// The machine `measured`.
    pub machine: Machine,
    /// Each data cache and data TLB, innermost first.
    pub levels: Vec<Level>,
    /// Sentences: what contradicts the report, and what could not be measured.
    pub remarks: Vec<String>,
}

/// A level as reported and as measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// Its name in the description: `L1D`, `L2 TLB`.
    pub name: String,
    /// Bytes or entries that the machine reports, or that were assumed.
    pub reported: u64,
    /// How the reported value is known.
    pub origin: Origin,
    /// What was measured; `None` if nothing tells this level.
    pub measured: Option<Measure>,
    /// The time of a load that the level serves; of a TLB what its use costs beyond the level
    /// inside.
    pub nanoseconds: Option<Spread>,
}

/// The measured size of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Measure {
    /// Bytes or entries.
    pub size: u64,
    /// The largest size at which the latency has hardly risen.
    pub begins: u64,
    /// The smallest size at which it has risen.
    pub ends: u64,
    /// Whether the reported size is possible.
    pub agrees: bool,
}

/// Describes the machine `reported`, with `findings` where there are any. `date` becomes part of
/// the description.
pub fn describe(reported: &Machine, findings: &Findings, date: &str) -> Described {
    let mut machine = reported.clone();
    machine.name = "measured".into();
    machine.description = format!("{}, measured on {date}", reported.description);
    let mut described = Described { machine, levels: Vec::new(), remarks: Vec::new() };
    described.enter_line(findings);
    described.enter_caches(findings);
    described.enter_tlbs(findings);
    if described.machine.check().is_err() {
        // Two corrections that do not fit together: neither is believed.
        let whole = described.machine.check().map_or_else(|error| error.to_string(), |()| String::new());
        described
            .remarks
            .push(format!("what was measured does not fit together ({whole}): sizes stay as reported"));
        let Machine { name, description, .. } = described.machine;
        described.machine = Machine { name, description, ..reported.clone() };
    }
    described
}

impl Described {
    fn enter_line(&mut self, findings: &Findings) {
        let Some(line_bytes) = findings.line_bytes else {
            self.remarks.push("lines: pairs of loads do not tell their length".into());
            return;
        };
        let names: Vec<(String, u32)> =
            self.machine.data_path().map(|cache| (cache.name(), cache.line_bytes)).collect();
        for (name, reported) in names.into_iter().take(1) {
            if reported == line_bytes {
                let field = format!("cache.{name}.line_bytes");
                self.note(field, "pairs of loads: the second costs more from this distance on".into());
            } else {
                self.remarks.push(format!(
                    "{name}: lines of {reported} B reported, {line_bytes} B measured: the report is kept"
                ));
            }
        }
    }

    fn enter_caches(&mut self, findings: &Findings) {
        let stairs = &findings.caches;
        let levels: Vec<(String, u64)> =
            self.machine.data_path().map(|cache| (cache.name(), cache.size_bytes)).collect();
        let matches = matched(stairs, &levels.iter().map(|(_, size)| *size).collect::<Vec<_>>());
        for (index, (name, size)) in levels.iter().enumerate() {
            let found = matches[index];
            let field = format!("cache.{name}.size_bytes");
            let nanoseconds = tread_of(&matches, index).and_then(|tread| stairs.treads.get(tread));
            let nanoseconds = nanoseconds.map(|tread| tread.nanoseconds);
            let measured = found.map(|found| measure(&found.riser, *size));
            self.enter_level(name, &field, *size, measured, nanoseconds, Unit::Bytes);
            if let Some((found, measure)) = found.zip(measured) {
                self.set_cache(name, measure);
                self.enter_cache_penalty(name, found, findings);
            } else {
                self.remarks.push(unmeasured(name, *size, stairs, findings.largest.bytes, Unit::Bytes));
            }
        }
        let taken = |riser: &Riser| matches.iter().flatten().any(|found| found.riser == *riser);
        for riser in stairs.risers.iter().filter(|riser| riser.is_steep() && !taken(riser)) {
            let size = Unit::Bytes.text(riser.fits);
            self.remarks.push(format!("latency rises at {size} too, where no level is reported"));
        }
    }

    fn enter_tlbs(&mut self, findings: &Findings) {
        let stairs = &findings.tlbs;
        let found =
            |level| self.machine.data_tlb(level).map(|tlb| (level, tlb.name(), u64::from(tlb.entries)));
        let levels: Vec<(u8, String, u64)> = [1, 2].into_iter().filter_map(found).collect();
        let matches = matched(stairs, &levels.iter().map(|(.., entries)| *entries).collect::<Vec<_>>());
        for (index, (level, name, entries)) in levels.iter().enumerate() {
            let found = matches[index];
            let field = format!("tlb.{name}.entries");
            // What a first-level TLB costs is part of a load.
            let tread = tread_of(&matches, index).filter(|tread| *tread > 0);
            let nanoseconds = tread.and_then(|tread| added(stairs, tread - 1, tread));
            let measured = found.map(|found| measure(&found.riser, *entries));
            self.enter_level(name, &field, *entries, measured, nanoseconds, Unit::Entries);
            if let Some((found, measure)) = found.zip(measured) {
                self.set_tlb(*level, measure);
                self.enter_tlb_penalty(name, found, findings);
            } else {
                let walked = stairs.treads.last().map_or(0, |tread| tread.to);
                self.remarks.push(unmeasured(name, *entries, stairs, walked, Unit::Entries));
            }
        }
    }

    fn enter_level(
        &mut self,
        name: &str,
        field: &str,
        reported: u64,
        measured: Option<Measure>,
        nanoseconds: Option<Spread>,
        unit: Unit,
    ) {
        let origin = self.machine.source_of(field).map_or(Origin::Assumed, |source| source.origin);
        if let Some(measure) = measured {
            let (begins, ends) = (unit.text(measure.begins), unit.text(measure.ends));
            self.note(field.into(), format!("a chase: latency rises from {begins} to {ends}"));
            if !measure.agrees {
                let word = if origin == Origin::Assumed { "assumed" } else { "reported" };
                self.remarks.push(format!(
                    "{name}: {} {word}, {} measured: latency rises from {begins} to {ends}",
                    unit.text(reported),
                    unit.text(measure.size)
                ));
            }
        }
        self.levels.push(Level { name: name.into(), reported, origin, measured, nanoseconds });
    }

    /// Sets the size of a cache. Its sets are whole, so ways that do not divide it become fewer.
    fn set_cache(&mut self, name: &str, measure: Measure) {
        let Some(cache) = self.machine.caches.iter_mut().find(|cache| cache.name() == name) else { return };
        if measure.agrees {
            return;
        }
        let lines = measure.size / u64::from(cache.line_bytes);
        let ways = divisor(lines, cache.ways);
        cache.size_bytes = lines * u64::from(cache.line_bytes);
        if ways != cache.ways {
            cache.ways = ways;
            let note = "the reported ways do not divide the measured size";
            self.assume(format!("cache.{name}.ways"), note.into());
        }
    }

    fn set_tlb(&mut self, level: u8, measure: Measure) {
        let Some(name) = self.machine.data_tlb(level).map(Tlb::name) else { return };
        let page_bytes = self.machine.base_page_bytes();
        let wanted = |tlb: &&mut Tlb| tlb.name() == name && tlb.translates(page_bytes);
        let Some(tlb) = self.machine.tlbs.iter_mut().find(wanted) else { return };
        if measure.agrees {
            return;
        }
        let entries = u32::try_from(measure.size).unwrap_or(u32::MAX);
        let ways = if tlb.ways == tlb.entries { entries } else { divisor(entries.into(), tlb.ways) };
        let changed = ways != tlb.ways;
        (tlb.entries, tlb.ways) = (entries, ways);
        if changed {
            let note = "the reported ways do not divide the measured entries";
            self.assume(format!("tlb.{name}.ways"), note.into());
        }
    }

    /// What a miss adds: the next tread above this one, in cycles of the core.
    fn enter_cache_penalty(&mut self, name: &str, found: Match, findings: &Findings) {
        let Some(cycles) = added_cycles(&findings.caches, found, findings) else { return };
        let Some(cache) = self.machine.caches.iter_mut().find(|cache| cache.name() == name) else { return };
        cache.penalty_cycles = Some(cycles);
        let note = "a chase: the next level's latency less this one's, in cycles of the core's clock";
        self.note(format!("cache.{name}.penalty_cycles"), note.into());
    }

    fn enter_tlb_penalty(&mut self, name: &str, found: Match, findings: &Findings) {
        let Some(cycles) = added_cycles(&findings.tlbs, found, findings) else { return };
        let page_bytes = self.machine.base_page_bytes();
        let wanted = |tlb: &&mut Tlb| tlb.name() == name && tlb.translates(page_bytes);
        let Some(tlb) = self.machine.tlbs.iter_mut().find(wanted) else { return };
        tlb.penalty_cycles = Some(cycles);
        let note = "a chase over pages: what a miss adds, in cycles of the core's clock";
        self.note(format!("tlb.{name}.penalty_cycles"), note.into());
    }

    fn note(&mut self, field: String, note: String) {
        self.replace(FieldSource { field, origin: Origin::Measured, note });
    }

    fn assume(&mut self, field: String, note: String) {
        self.replace(FieldSource { field, origin: Origin::Assumed, note });
    }

    fn replace(&mut self, source: FieldSource) {
        self.machine.sources.retain(|other| other.field != source.field);
        self.machine.sources.push(source);
    }
}

/// What is counted.
#[derive(Clone, Copy)]
enum Unit {
    Bytes,
    Entries,
}

impl Unit {
    fn text(self, size: u64) -> String {
        match self {
            Unit::Entries => format!("{size} entries"),
            Unit::Bytes if size >= 1 << 20 => format!("{} MiB", rounded(size as f64 / f64::from(1 << 20))),
            Unit::Bytes => format!("{} KiB", rounded(size as f64 / 1024.0)),
        }
    }
}

/// Two digits behind the point, where there are any.
fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

/// The riser of a level, and the treads on both sides of it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Match {
    riser: Riser,
    inside: usize,
    outside: usize,
}

/// For each level of these sizes its riser. A riser that agrees with the level is its own, and
/// those before it are no level's: misses of TLBs make such ones. Else the next riser is, if it is
/// steep and not nearer to another level.
fn matched(stairs: &Stairs, sizes: &[u64]) -> Vec<Option<Match>> {
    let octaves = |riser: &Riser, size: u64| (riser.fits as f64 / size as f64).log2().abs();
    let is_own = |riser: &Riser, index: usize| {
        let others = sizes.iter().enumerate().filter(|(other, _)| *other != index);
        let nearest = others.map(|(_, size)| octaves(riser, *size)).fold(f64::INFINITY, f64::min);
        octaves(riser, sizes[index]) < nearest + NEARER_OCTAVES
    };
    let mut first = 0;
    let mut all = Vec::new();
    for (index, size) in sizes.iter().enumerate() {
        let left = &stairs.risers[first..];
        let agrees = left.iter().position(|riser| riser.is_steep() && riser.agrees_with(*size));
        let next = || left.first().filter(|riser| riser.is_steep() && is_own(riser, index)).map(|_| 0);
        let found = agrees.or_else(next).map(|place| first + place);
        all.push(found.map(|place| Match { riser: stairs.risers[place], inside: first, outside: place + 1 }));
        first = found.map_or(first, |place| place + 1);
    }
    all
}

/// The tread of a level: that of its match, or the one behind the last match if no level outside
/// has one.
fn tread_of(matches: &[Option<Match>], index: usize) -> Option<usize> {
    let behind = || {
        let is_last = matches[index..].iter().all(Option::is_none);
        let next_to = index == 0 || matches[index - 1].is_some();
        let tread = matches[..index].last().copied().flatten().map_or(0, |found| found.outside);
        (is_last && next_to).then_some(tread)
    };
    matches[index].map(|found| found.inside).or_else(behind)
}

fn measure(riser: &Riser, reported: u64) -> Measure {
    let agrees = riser.agrees_with(reported);
    let size = if agrees { reported } else { riser.fits };
    Measure { size, begins: riser.begins, ends: riser.ends, agrees }
}

/// Why a level has no measured size.
fn unmeasured(name: &str, reported: u64, stairs: &Stairs, walked: u64, unit: Unit) -> String {
    let (reported, walked) = (unit.text(reported), unit.text(walked));
    if let Some(soft) = stairs.risers.iter().find(|riser| !riser.is_steep()) {
        let (begins, ends) = (unit.text(soft.begins), unit.text(soft.ends));
        return format!(
            "{name}: not measured, stays {reported}: latency rises slowly from {begins} to {ends}"
        );
    }
    match stairs.unsettled_from {
        Some(from) => format!(
            "{name}: not measured, stays {reported}: latency rises from {} on without an end up to {walked}",
            unit.text(from)
        ),
        None => format!("{name}: not measured, stays {reported}: no clear rise up to {walked}"),
    }
}

/// How much higher an outer tread is than an inner one.
fn added(stairs: &Stairs, inside: usize, outside: usize) -> Option<Spread> {
    let (inner, outer) = (stairs.treads.get(inside)?.nanoseconds, stairs.treads.get(outside)?.nanoseconds);
    let beyond = |time: f64| (time - inner.median).max(0.0);
    Some(Spread { low: beyond(outer.low), median: beyond(outer.median), high: beyond(outer.high) })
}

fn added_cycles(stairs: &Stairs, found: Match, findings: &Findings) -> Option<u32> {
    Some((added(stairs, found.inside, found.outside)?.median / findings.cycle_ns.median).round() as u32)
}

/// The largest divisor of `number` that is at most `ways`.
fn divisor(number: u64, ways: u32) -> u32 {
    (1..=ways.max(1)).rev().find(|ways| number.is_multiple_of(u64::from(*ways))).unwrap_or(1)
}

#[cfg(test)]
mod tests;
