//! The files of a run: which process, part and thread has which file, and what stands in it.

use super::names::expanded;
use super::settings::{Settings, Tool};
use crate::report::parts::{cachegrind, callgrind, CallCosts, Costs, Names, PartHead, Place, Shape};
use crate::run::sections::Section;
use crate::run::tally::{tally, Events, Grain, Part, Tally};
use anyhow::{Context, Result};
use call_graph::Calls;
use instrument::Profile;
use present::output::replace_with;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use symbol::{demangle, Symbolizer, UNKNOWN};

/// Files of costs belong to their user alone, as Valgrind's do.
const MODE: u32 = 0o600;
/// Why the last part of a process was written.
const TERMINATION: &str = "Program termination";

/// The places of instructions in files.
pub(super) struct Places {
    names: Names,
    /// By index into the profile's instructions; `None` where nothing was counted.
    places: Vec<Option<Place>>,
}

/// A process whose costs are written.
pub(super) struct Written<'a> {
    pub(super) shape: Shape,
    pub(super) sections: Vec<&'a Section>,
    pub(super) triggers: &'a [String],
    /// The number of the file, from 1.
    pub(super) number: usize,
}

impl Places {
    /// Finds the names of everything that ran in a part.
    pub(super) fn new(
        profile: &mut Profile,
        sections: &[Section],
        settings: &Settings,
        mut symbols: Symbolizer,
    ) -> Places {
        // What ran outside of all parts needs no names.
        let mut ran: BTreeSet<u32> = sections.iter().flat_map(|section| section.part.ran()).collect();
        let calls = sections.iter().flat_map(|section| &section.calls);
        ran.extend(calls.flat_map(|calls| [calls.block, calls.callee]));
        for (block, number) in profile.blocks.iter_mut().zip(0..) {
            if !ran.contains(&number) {
                block.executions = 0;
            }
        }
        let tally = tally(profile, None, (settings.rep, Grain::Lines), &mut symbols);
        let addresses = if settings.addresses { addresses(profile, &mut symbols) } else { Vec::new() };
        let mut names = Names::default();
        names.objects.extend(symbols.libraries().iter().map(|one| one.path.to_string_lossy().into_owned()));
        names.functions.extend(symbols.functions().iter().map(|one| demangle(&one.name)));
        names.files.push(UNKNOWN.to_owned());
        names.files.extend(symbols.sources().files().iter().cloned());
        let place = |instruction| {
            let place = place(&tally, &symbols, instruction)?;
            let address = addresses.get(instruction).copied().unwrap_or(0);
            Some(Place { address, ..place })
        };
        let places = (0..profile.instructions.len()).map(place).collect();
        Places { names, places }
    }

    /// The costs of some parts together.
    fn costs<'p>(&self, parts: impl Iterator<Item = &'p Part>, profile: &Profile, all: &Settings) -> Costs {
        let mut costs = Costs::new();
        for part in parts {
            for (instruction, events) in part.events(profile, all.rep, |instruction| instruction) {
                if let Some(place) = &self.places[instruction] {
                    let line = if all.lines { place.line } else { 0 };
                    costs.entry(Place { line, ..place.clone() }).or_default().add(&events);
                }
            }
        }
        costs
    }

    /// The calls of some parts together.
    fn calls<'p>(
        &self,
        parts: impl Iterator<Item = &'p Calls>,
        profile: &Profile,
        all: &Settings,
    ) -> CallCosts {
        let mut costs = CallCosts::new();
        let place = |instruction: u32| {
            let place = self.places[instruction as usize].as_ref()?;
            let line = if all.lines { place.line } else { 0 };
            Some(Place { line, ..place.clone() })
        };
        for calls in parts {
            let [block, callee] = [calls.block, calls.callee].map(|number| &profile.blocks[number as usize]);
            let places = (place(block.first + block.count - 1), place(callee.first));
            if let (Some(caller), Some(callee)) = places {
                let (times, events) = costs.entry((caller, callee)).or_default();
                *times += calls.times;
                events.add(&calls.costs);
            }
        }
        costs
    }
}

fn place(tally: &Tally, symbols: &Symbolizer, instruction: usize) -> Option<Place> {
    let cell = tally.cell_of(instruction)?;
    let object = symbols.functions()[cell.function].library;
    let sources = symbols.sources();
    let frame = cell.frame.map(|frame| sources.frame(frame));
    let (file, line) = frame.map_or((0, 0), |frame| (frame.file as usize + 1, frame.line));
    // Inlined code does not show in which file its enclosing function was written.
    let outermost = cell.frame.and_then(|frame| sources.chain(frame).last());
    let home = outermost.map_or(0, |frame| frame.file as usize + 1);
    Some(Place { object, function: cell.function, home, file, address: 0, line })
}

/// The link address of each instruction that ran.
fn addresses(profile: &Profile, symbols: &mut Symbolizer) -> Vec<u64> {
    let mut addresses = vec![0; profile.instructions.len()];
    for block in profile.blocks.iter().filter(|block| block.executions > 0) {
        let module = &profile.modules[block.module as usize];
        let first = block.first as usize;
        for (index, instruction) in profile.instructions[first..][..block.count as usize].iter().enumerate() {
            let ip = block.ip + u64::from(instruction.offset);
            let found = symbols.function_at(module, ip);
            let start = symbols.functions()[found.function].address;
            addresses[first + index] = start.wrapping_add(ip.wrapping_sub(found.range.start));
        }
    }
    addresses
}

/// Writes the files of a process; returns the sum of everything that it counted.
///
/// # Errors
/// When a file cannot be written; an older file stays as it was.
pub(super) fn write(
    written: &Written<'_>,
    (tool, all): (Tool, &Settings),
    (places, profile): (&Places, &Profile),
) -> Result<Events> {
    let Written { shape, sections, triggers, number } = written;
    let named = match tool {
        Tool::Callgrind => all.callgrind_file.as_deref().unwrap_or("callgrind.out.%p"),
        _ => all.cachegrind_file.as_deref().unwrap_or("cachegrind.out.%p"),
    };
    let base = expanded(named, shape.pid, *number).map_err(anyhow::Error::msg)?;
    if tool == Tool::Cachegrind {
        let costs = places.costs(sections.iter().map(|section| &section.part), profile, all);
        put(&base, &cachegrind(shape, &costs, &places.names))?;
        return Ok(crate::report::parts::total(&costs));
    }
    let threads: BTreeSet<u32> = sections.iter().map(|section| section.thread).collect();
    let threads: HashMap<u32, usize> = threads.into_iter().zip(1..).collect();
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    let mut sum = Events::default();
    // Parts in their order; the threads of a part are apart if that was asked for.
    let mut heads: BTreeMap<(u32, Option<usize>), Vec<&Section>> = BTreeMap::new();
    for section in sections {
        let thread = all.separate_threads.then(|| threads[&section.thread]);
        heads.entry((section.cut, thread)).or_default().push(section);
    }
    for ((cut, thread), parts) in heads {
        let trigger = triggers.get(cut as usize);
        let costs = places.costs(parts.iter().map(|section| &section.part), profile, all);
        let calls = places.calls(parts.iter().flat_map(|section| &section.calls), profile, all);
        let mut aside = Events::default();
        for part in &parts {
            part.part.aside().events(profile, all.rep, |_| ()).values().for_each(|events| aside.add(events));
        }
        sum.add(&crate::report::parts::total(&costs));
        let head = PartHead {
            number: cut as usize + 1,
            thread,
            aside,
            trigger: trigger.map_or_else(|| TERMINATION.to_owned(), Clone::clone),
        };
        let part =
            if trigger.is_some() && !all.combine_dumps { format!(".{}", head.number) } else { String::new() };
        let of_thread = match thread.filter(|_| !all.combine_dumps) {
            Some(thread) => format!("-{thread:02}"),
            None => String::new(),
        };
        let file = files.entry(format!("{base}{part}{of_thread}")).or_default();
        *file += &callgrind(shape, &head, file.is_empty(), (&costs, &calls), &places.names);
    }
    // Where threads have files of their own, the name itself stands for an empty one.
    files.entry(base).or_default();
    for (name, text) in &files {
        put(name, text)?;
    }
    Ok(sum)
}

/// Replaces a file as a whole.
pub(super) fn put(name: &str, text: &str) -> Result<()> {
    let path = Path::new(name);
    // Devices and pipes cannot be replaced.
    if path.metadata().is_ok_and(|about| !about.is_file()) {
        return std::fs::write(path, text).with_context(|| format!("cannot write {name}"));
    }
    replace_with(path, text.as_bytes(), &Permissions::from_mode(MODE))
        .with_context(|| format!("cannot write {name}"))
}
