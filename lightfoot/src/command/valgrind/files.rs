//! The files of a run: which process, part and thread has which file, and what stands in it.

use super::super::measure::translations;
use super::jumps::Targets;
use super::names::expanded;
use super::settings::{Settings, Tool};
use crate::report::parts::{cachegrind, callgrind, CallCosts, Costs, Names, PartHead, Place, Placed, Shape};
use crate::run::sections::Section;
use crate::run::tally::{tally, Events, Grain, Part, Tally};
use anyhow::{Context, Result};
use call_graph::Calls;
use instrument::Profile;
use present::order::{set_of, SortRows};
use present::output::replace_with;
use std::collections::{BTreeMap, HashMap};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use symbol::{demangle, Symbolizer, UNKNOWN};

/// Files of costs belong to their user alone, as Valgrind's do.
const MODE: u32 = 0o600;
/// Why the last part of a process was written.
const TERMINATION: &str = "Program termination";
/// The name that the log has for it.
const TERMINATION_IN_LOG: &str = "Prg.Term.";

/// The places of instructions in files.
pub(super) struct Places {
    names: Names,
    /// All places, in their order.
    all: Vec<Place>,
    /// By index into the profile's instructions: the number of the place, or [`NOWHERE`] where
    /// nothing was counted.
    of: Vec<u32>,
    /// Where jumps lead, if they have lines.
    targets: Option<Targets>,
}

/// The number of no place.
const NOWHERE: u32 = u32::MAX;

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
        let beside = without_lines(profile, sections);
        symbols.keep_lines_in(translations());
        let tally = tally(profile, None, (settings.rep, Grain::Lines), &mut symbols);
        let mut places: Vec<Option<Place>> =
            (0..profile.instructions.len()).map(|instruction| place(&tally, &symbols, instruction)).collect();
        for block in beside {
            name(profile, block, &mut symbols, &mut places);
        }
        if settings.addresses {
            set_addresses(profile, &mut symbols, &mut places);
        }
        let mut names = Names::default();
        names.objects.extend(symbols.libraries().iter().map(|one| one.path.to_string_lossy().into_owned()));
        names.functions.extend(symbols.functions().iter().map(|one| demangle(&one.name)));
        names.files.push(UNKNOWN.to_owned());
        names.files.extend(symbols.sources().files().iter().cloned());
        symbols.keep_lines();
        if !settings.lines {
            places.iter_mut().flatten().for_each(|place| place.line = 0);
        }
        let (all, of) = numbered(&places);
        let targets = settings.jumps.then(|| Targets::of(profile));
        Places { names, all, of, targets }
    }

    /// The place of an instruction, by index into the profile's, if anything was counted there.
    fn at(&self, instruction: u32) -> Option<Place> {
        self.all.get(self.of[instruction as usize] as usize).copied()
    }

    /// Everything of some parts that has a place.
    fn placed(&self, parts: &[&Section], profile: &Profile, all: &Settings) -> Placed {
        let costs = self.costs(parts.iter().map(|section| &section.part), profile, all);
        let calls = self.calls(parts.iter().flat_map(|section| &section.calls), profile);
        let jumps = self.targets.as_ref().map(|targets| targets.jumps(parts, profile, |one| self.at(one)));
        Placed { costs, calls, jumps: jumps.unwrap_or_default() }
    }

    /// The costs of some parts together.
    fn costs<'p>(&self, parts: impl Iterator<Item = &'p Part>, profile: &Profile, all: &Settings) -> Costs {
        let mut costs = Costs::new();
        for part in parts {
            let events = part.events(profile, all.rep, |instruction| self.of[instruction]);
            for (number, events) in events.into_iter().filter(|(number, _)| *number != NOWHERE) {
                costs.entry(self.all[number as usize]).or_default().add(&events);
            }
        }
        costs
    }

    /// The calls of some parts together.
    fn calls<'p>(&self, parts: impl Iterator<Item = &'p Calls>, profile: &Profile) -> CallCosts {
        let mut costs: HashMap<(u32, u32), (u64, Events)> = HashMap::new();
        for calls in parts {
            let [block, callee] = [calls.block, calls.callee].map(|number| &profile.blocks[number as usize]);
            let [caller, callee] =
                [block.first + block.count - 1, callee.first].map(|one| self.of[one as usize]);
            if caller != NOWHERE && callee != NOWHERE {
                let (times, events) = costs.entry((caller, callee)).or_default();
                *times += calls.times;
                events.add(&calls.costs);
            }
        }
        let place = |number: u32| self.all[number as usize];
        costs.into_iter().map(|((caller, callee), sums)| ((place(caller), place(callee)), sums)).collect()
    }
}

/// The different places in their order, and for each element its number among them.
fn numbered(places: &[Option<Place>]) -> (Vec<Place>, Vec<u32>) {
    let mut numbers: HashMap<Place, u32> = HashMap::new();
    let mut first_seen: Vec<Place> = Vec::new();
    let mut last = (None, NOWHERE);
    let mut of: Vec<u32> = Vec::with_capacity(places.len());
    for place in places {
        // Neighbours mostly have one place.
        if last.0 != *place {
            last = (*place, NOWHERE);
            if let Some(place) = *place {
                last.1 = *numbers.entry(place).or_insert_with(|| {
                    first_seen.push(place);
                    first_seen.len() as u32 - 1
                });
            }
        }
        of.push(last.1);
    }
    let mut order: Vec<u32> = (0..first_seen.len() as u32).collect();
    order.sort_rows_by_key(|&number| first_seen[number as usize]);
    let mut ranks = vec![0; order.len()];
    order.iter().zip(0..).for_each(|(&number, rank)| ranks[number as usize] = rank);
    of.iter_mut().filter(|number| **number != NOWHERE).for_each(|number| *number = ranks[*number as usize]);
    (order.into_iter().map(|number| first_seen[number as usize]).collect(), of)
}

/// Leaves the executions of what a part counted, and gives the blocks that need a function's name
/// alone.
///
/// What ran outside of all parts needs no names, but who calls from there does. Benchmarks are
/// called by the C library and the loader, of which nothing is counted then: reading their lines
/// would take longer than the benchmark. A library of which anything is counted has its lines read,
/// so that no function stands in two files.
fn without_lines(profile: &mut Profile, sections: &[Section]) -> Vec<usize> {
    let mut counted = vec![false; profile.blocks.len()];
    sections.iter().flat_map(|section| section.part.ran()).for_each(|block| counted[block as usize] = true);
    let calls = sections.iter().flat_map(|section| &section.calls);
    let mut called = vec![false; profile.blocks.len()];
    calls.flat_map(|calls| [calls.block, calls.callee]).for_each(|block| called[block as usize] = true);
    // A library may be mapped by several modules.
    let blocks = || profile.blocks.iter().zip(&counted).zip(&called).enumerate();
    let counted_blocks = blocks().filter(|(_, ((_, counted), _))| **counted);
    let modules = set_of(counted_blocks.map(|(_, ((block, _), _))| block.module));
    let path = |module: u32| profile.modules[module as usize].path.as_path();
    let libraries = set_of(modules.into_iter().map(path));
    let has_lines: Vec<bool> =
        profile.modules.iter().map(|module| libraries.contains(module.path.as_path())).collect();
    let mut beside = Vec::new();
    let mut forgotten = Vec::new();
    for (number, ((block, &counted), &called)) in blocks() {
        match (counted, called) {
            (true, _) => {}
            (false, true) if has_lines[block.module as usize] => {}
            (false, true) => beside.push(number),
            (false, false) => forgotten.push(number),
        }
    }
    for &block in forgotten.iter().chain(&beside) {
        profile.blocks[block].executions = 0;
    }
    beside
}

/// Gives the instructions of a block the names of their functions, and no lines.
fn name(profile: &Profile, block: usize, symbols: &mut Symbolizer, places: &mut [Option<Place>]) {
    let block = &profile.blocks[block];
    let module = &profile.modules[block.module as usize];
    let range = block.first as usize..block.first as usize + block.count as usize;
    for (place, instruction) in places[range.clone()].iter_mut().zip(&profile.instructions[range]) {
        let ip = block.ip + u64::from(instruction.offset);
        let function = symbols.function_at(module, ip).function;
        let object = symbols.functions()[function].library;
        *place = Some(Place { object, function, home: 0, file: 0, address: 0, line: 0 });
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

/// Gives every place the link address of its instruction.
fn set_addresses(profile: &Profile, symbols: &mut Symbolizer, places: &mut [Option<Place>]) {
    for block in &profile.blocks {
        let module = &profile.modules[block.module as usize];
        let range = block.first as usize..block.first as usize + block.count as usize;
        for (place, instruction) in places[range.clone()].iter_mut().zip(&profile.instructions[range]) {
            let Some(place) = place else { continue };
            let ip = block.ip + u64::from(instruction.offset);
            let found = symbols.function_at(module, ip);
            let start = symbols.functions()[found.function].address;
            place.address = start.wrapping_add(ip.wrapping_sub(found.range.start));
        }
    }
}

/// A part that was written, as the log tells of it.
pub(super) struct Dump {
    /// Its number among the cuts of the image, from 0.
    pub(super) cut: u32,
    /// Blocks that ran and were counted until then.
    blocks: u64,
    reason: String,
    files: Vec<String>,
}

impl Dump {
    /// The lines of the log.
    pub(super) fn lines(&self, pid: i32) -> Vec<String> {
        let mut lines = vec![format!("--{pid}-- Start dumping at BB {} ({})...", self.blocks, self.reason)];
        lines.extend(self.files.iter().map(|file| {
            let file = std::env::current_dir().unwrap_or_default().join(file);
            format!("--{pid}-- Dump to {}", file.display())
        }));
        lines.push(format!("--{pid}-- Dumping done."));
        lines
    }
}

/// Writes the files of a process; returns the sum of everything that it counted, and the parts.
///
/// # Errors
/// When a file cannot be written; an older file stays as it was.
pub(super) fn write(
    written: &Written<'_>,
    (tool, all): (Tool, &Settings),
    (places, profile): (&Places, &Profile),
) -> Result<(Events, Vec<Dump>)> {
    let Written { shape, sections, triggers, number } = written;
    let named = match tool {
        Tool::Callgrind => all.callgrind_file.as_deref().unwrap_or("callgrind.out.%p"),
        _ => all.cachegrind_file.as_deref().unwrap_or("cachegrind.out.%p"),
    };
    let base = expanded(named, shape.pid, *number).map_err(anyhow::Error::msg)?;
    if tool == Tool::Cachegrind {
        let costs = places.costs(sections.iter().map(|section| &section.part), profile, all);
        put(&base, &cachegrind(shape, &costs, &places.names))?;
        return Ok((crate::report::parts::total(&costs), Vec::new()));
    }
    let threads = set_of(sections.iter().map(|section| section.thread));
    let threads: HashMap<u32, usize> = threads.into_iter().zip(1..).collect();
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    let (mut sum, mut dumps, mut blocks) = (Events::default(), Vec::<Dump>::new(), 0);
    // Parts in their order; the threads of a part are apart if that was asked for.
    let mut heads: BTreeMap<(u32, Option<usize>), Vec<&Section>> = BTreeMap::new();
    for section in sections {
        let thread = all.separate_threads.then(|| threads[&section.thread]);
        heads.entry((section.cut, thread)).or_default().push(section);
    }
    for ((cut, thread), parts) in heads {
        let trigger = triggers.get(cut as usize);
        let placed = places.placed(&parts, profile, all);
        let mut aside = Events::default();
        for part in &parts {
            part.part.aside().events(profile, all.rep, |_| ()).values().for_each(|events| aside.add(events));
        }
        sum.add(&crate::report::parts::total(&placed.costs));
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
        let name = format!("{base}{part}{of_thread}");
        blocks += parts.iter().map(|section| section.part.entered()).sum::<u64>();
        let reason = trigger.map_or(TERMINATION_IN_LOG, |trigger| trigger).to_owned();
        match dumps.last_mut().filter(|last| last.cut == cut) {
            Some(last) => {
                last.blocks = blocks;
                last.files.push(name.clone());
            }
            None => dumps.push(Dump { cut, blocks, reason, files: vec![name.clone()] }),
        }
        let file = files.entry(name).or_default();
        *file += &callgrind(shape, &head, file.is_empty(), &placed, &places.names);
    }
    // Where threads have files of their own, the name itself stands for an empty one.
    files.entry(base).or_default();
    for (name, text) in &files {
        put(name, text)?;
    }
    Ok((sum, dumps))
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
