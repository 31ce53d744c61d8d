//! Reads a machine from TOML.
//!
//! The reader is written by hand, because a derived one loses the line of a value that is
//! well-formed but wrong. The line of every field that is read is remembered, so that the final
//! check can name the line too. Unknown fields are errors: a misspelt `store_mis` would otherwise
//! silently simulate another machine.

mod section;

use crate::behaviour::{Prefetches, LATE_TOUCHES_MAX};
use crate::geometry::ways_of;
use crate::source::Origin;
use crate::{
    Behaviour, Cache, CacheKind, CycleModel, Error, FieldSource, Machine, Replacement, StoreMiss, Tlb,
    TlbKind, WritePolicy, INCLUSIONS,
};
use section::{Lines, Section};
use std::path::Path;

/// Reads `text`, which `path` names in errors.
pub(crate) fn machine(text: &str, path: &Path) -> Result<Machine, Error> {
    let mut lines = Lines::default();
    read(text, &mut lines).map_err(|error| match error {
        Error::Syntax { line, reason, .. } => Error::Syntax { path: path.into(), line, reason },
        Error::Field { line: None, field, problem, expected, .. } => {
            let line = lines.of(&field);
            Error::Field { path: Some(path.into()), line, field, problem, expected }
        }
        other => other.in_file(path),
    })
}

fn read(text: &str, lines: &mut Lines) -> Result<Machine, Error> {
    let document = section::parse(text)?;
    let mut top = Section::top(text, document.get_ref());
    let mut machine = Machine {
        name: top.required_text("name")?,
        description: top.text("description")?.unwrap_or_default(),
        frequency_mhz: top.number("frequency_mhz", 1, 1_000_000)?.map(|n| n as u32),
        threads_per_core: top.number("threads_per_core", 1, 1024)?.unwrap_or(1) as u32,
        page_bytes: top.sizes("page_bytes")?.unwrap_or_else(|| vec![4096]),
        features: top.texts("features")?.unwrap_or_default(),
        cycle: top.table("cycle")?.map(|section| cycle(section, lines)).transpose()?,
        caches: Vec::new(),
        tlbs: Vec::new(),
        sources: Vec::new(),
    };
    // Tables come in any order; the machine sorts them.
    for section in top.tables("cache")? {
        machine.caches.push(cache(section, machine.threads_per_core, lines)?);
    }
    for section in top.tables("tlb")? {
        machine.tlbs.push(tlb(section, lines)?);
    }
    for section in top.tables("source")? {
        machine.sources.push(source(section)?);
    }
    // A field that was not read is misspelt.
    top.finish(lines, "")?;
    machine.features.sort_unstable();
    machine.sort_caches();
    machine.check()?;
    Ok(machine)
}

fn cycle(mut section: Section, lines: &mut Lines) -> Result<CycleModel, Error> {
    let model = CycleModel {
        base_cycles_per_instruction: section.required_real("base_cycles_per_instruction")?,
        branch_miss_cycles: section.number("branch_miss_cycles", 0, 1_000_000)?.map(|n| n as u32),
    };
    section.finish(lines, "cycle")?;
    Ok(model)
}

fn cache(mut section: Section, threads_per_core: u32, lines: &mut Lines) -> Result<Cache, Error> {
    let kinds =
        [("data", CacheKind::Data), ("instruction", CacheKind::Instruction), ("unified", CacheKind::Unified)];
    let stores = [("allocate", StoreMiss::Allocate), ("bypass", StoreMiss::Bypass)];
    let writes = [("back", WritePolicy::Back), ("through", WritePolicy::Through)];
    let size_bytes = section.required_size("size_bytes")?;
    let line_bytes = section.required_number("line_bytes", 4, 1 << 20)? as u32;
    let cache = Cache {
        level: section.required_number("level", 1, 4)? as u8,
        kind: section.required_choice("kind", &kinds)?,
        size_bytes,
        ways: section.required_ways("ways", |text| ways_of(text, size_bytes, line_bytes))?,
        line_bytes,
        store_miss: section.choice("store_miss", &stores)?.unwrap_or(StoreMiss::Allocate),
        write: section.choice("write", &writes)?.unwrap_or(WritePolicy::Back),
        penalty_cycles: section.number("penalty_cycles", 0, 1_000_000)?.map(|n| n as u32),
        shared_by_cpus: match section.number("shared_by_cpus", 1, 1 << 20)? {
            Some(cpus) => cpus as u32,
            None => threads_per_core,
        },
        behaviour: Behaviour {
            replacement: section.word("replacement", &Replacement::possible())?.unwrap_or_default(),
            inclusion: section.choice("inclusion", INCLUSIONS)?.unwrap_or_default(),
            prefetch: section.word("prefetch", &Prefetches::possible())?.unwrap_or_default(),
            late_touches: section.number("prefetch_late_touches", 0, LATE_TOUCHES_MAX)?.unwrap_or(0) as u32,
            slices: section.masks("slice_masks")?,
        },
    };
    section.finish(lines, &format!("cache.{}", cache.name()))?;
    Ok(cache)
}

fn tlb(mut section: Section, lines: &mut Lines) -> Result<Tlb, Error> {
    let kinds =
        [("data", TlbKind::Data), ("instruction", TlbKind::Instruction), ("unified", TlbKind::Unified)];
    let entries = section.required_number("entries", 1, 1 << 24)? as u32;
    let tlb = Tlb {
        level: section.required_number("level", 1, 2)? as u8,
        kind: section.required_choice("kind", &kinds)?,
        page_bytes: section.sizes("page_bytes")?.unwrap_or_else(|| vec![4096]),
        entries,
        ways: section.required_ways("ways", |text| ways_of(text, entries.into(), 1))?,
        penalty_cycles: section.number("penalty_cycles", 0, 1_000_000)?.map(|n| n as u32),
        replacement: section.word("replacement", &Replacement::possible())?.unwrap_or_default(),
    };
    section.finish(lines, &format!("tlb.{}", tlb.name()))?;
    Ok(tlb)
}

fn source(mut section: Section) -> Result<FieldSource, Error> {
    let source = FieldSource {
        field: section.required_text("field")?,
        origin: section.required_choice("origin", Origin::NAMES)?,
        note: section.text("note")?.unwrap_or_default(),
    };
    section.finish(&mut Lines::default(), "")?;
    Ok(source)
}

#[cfg(test)]
mod tests;
