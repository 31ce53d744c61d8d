//! `lightfoot valgrind`: callgrind, cachegrind, DHAT, Massif and lackey for those who call them.
//!
//! The command line, the names of files, the log and the exit status are Valgrind's; what counts is
//! lightfoot's engine. The same happens where the executable is called `valgrind`. A run is
//! divided by marks ([`requests`]), which costs no more than running it whole; when it has ended,
//! its parts become files ([`files`]). **Leaves out** tools that find errors.

mod backtrace;
mod files;
mod heap;
pub(super) mod help;
mod jumps;
mod lackey;
mod log;
mod names;
mod options;
mod patterns;
mod printed;
mod read;
mod requests;
mod settings;

use super::measure::translations;
use crate::report::parts::Shape;
use crate::run::engine::{self, exit_signal};
use crate::run::sections::{Recorded, Section, Sections};
use crate::run::simulation::Simulation;
use crate::run::tally::{Event, Events};
use anyhow::{Context, Result};
use call_graph::JumpRecords;
use event::{ModifyFilter, Stream};
use files::{Places, Written};
use instrument::{Aslr, CallRecords, Children, Command, Exit, Options, Outcome, Process, Threads};
use machine::Machine;
use present::exit::{of_error, FAILURE, NOT_FOUND};
use read::Asked;
use requests::Requests;
use rustix::process::{getpid, kill_process, setrlimit, Resource, Rlimit, Signal};
use settings::{Settings, Tool};
use simulate::{plan_levels, Geometry, Levels, WriteBacks};
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::Path;
use symbol::Symbolizer;

/// The status of a command line that cannot be run.
const REFUSED: u8 = 1;

/// Whether the executable is called as Valgrind's command.
pub fn is_valgrind(program: Option<&OsString>) -> bool {
    program.is_some_and(|program| settings::is_valgrind(program))
}

/// Runs a command line of Valgrind, and returns the exit status.
pub fn valgrind(words: &[OsString]) -> u8 {
    match answered(words) {
        Ok(status) => status,
        Err(error) => {
            present::tell!("valgrind: {error:#}");
            // Valgrind's own failures have status 1, but that of a missing program.
            match of_error(&error) {
                NOT_FOUND => NOT_FOUND,
                _ => REFUSED,
            }
        }
    }
}

fn answered(words: &[OsString]) -> Result<u8> {
    let (all, program) = match read::read(words).map_err(anyhow::Error::msg)? {
        Asked::Version(version) => {
            present::output::print(&format!("valgrind-{version}\n"))?;
            return Ok(0);
        }
        Asked::Help => {
            present::output::print(&help::text())?;
            return Ok(0);
        }
        Asked::Options => {
            present::output::print(&options::table())?;
            return Ok(0);
        }
        Asked::Install(folder) => return install(&folder),
        Asked::Other(path, configured) => return Err(fall_back(&path, words, &configured)),
        Asked::Run(all, program) => (all, program),
    };
    let tool = all.known_tool().map_err(anyhow::Error::msg)?;
    let Some((first, arguments)) = program.split_first() else {
        anyhow::bail!("no program specified");
    };
    check_folders(tool, &all)?;
    let command = Command { program: first.clone(), arguments: arguments.to_vec() };
    match tool {
        Tool::Dhat | Tool::Massif => heap::run(tool, &all, &command),
        _ => run(tool, &all, &command),
    }
}

/// Makes a link to this executable under Valgrind's name.
fn install(folder: &OsStr) -> Result<u8> {
    let link = Path::new(folder).join("valgrind");
    let this = std::env::current_exe().context("cannot find this executable")?;
    if std::fs::read_link(&link).is_ok_and(|known| known == this) {
        return Ok(0);
    }
    std::os::unix::fs::symlink(&this, &link).with_context(|| {
        format!("cannot link {}: name a folder that exists and has no valgrind", link.display())
    })?;
    present::output::print(&format!("{} is lightfoot\n", link.display()))?;
    Ok(0)
}

/// Becomes the real valgrind with all options but ours; returns why that is impossible. Options of
/// files and of the environment go with the others, because ours may stand among them.
fn fall_back(path: &str, words: &[OsString], configured: &[String]) -> anyhow::Error {
    let theirs = |word: &&OsStr| {
        let name = word.as_encoded_bytes().split(|byte| *byte == b'=').next().unwrap_or_default();
        !options::OURS.iter().any(|ours| ours.as_bytes() == name)
    };
    // What stands behind the program is the program's own.
    let program = words.iter().position(|word| !word.as_encoded_bytes().starts_with(b"-"));
    let (own, rest) = words.split_at(program.unwrap_or(words.len()));
    let options = configured.iter().map(OsStr::new).chain(own.iter().map(OsString::as_os_str)).filter(theirs);
    let mut command = std::process::Command::new(path);
    let error = command.arg("--command-line-only=yes").args(options).args(rest).exec();
    anyhow::Error::from(error).context(format!("cannot run {path}"))
}

/// Refuses names of files in folders that do not exist, before the program runs.
fn check_folders(tool: Tool, all: &Settings) -> Result<()> {
    let costs = match tool {
        Tool::Callgrind => all.callgrind_file.as_deref(),
        Tool::Cachegrind => all.cachegrind_file.as_deref(),
        Tool::Dhat => all.dhat_file.as_deref(),
        Tool::Massif => all.massif_file.as_deref(),
        Tool::Lackey | Tool::Nothing => None,
    };
    for name in [costs, all.log_file.as_deref()].into_iter().flatten() {
        let name = names::expanded(name, 0, 1).map_err(anyhow::Error::msg)?;
        let path = Path::new(&name);
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            anyhow::bail!("cannot write {name}: there is no directory {}", folder.display());
        }
        if path.is_dir() {
            anyhow::bail!("cannot write {name}: it is a directory, give a file");
        }
    }
    Ok(())
}

/// The caches of a run: those that options describe, and the host's in the places of the others.
fn caches(all: &Settings) -> [[u64; 3]; 3] {
    // The host's caches take as long to find out as a short program runs.
    if let [Some(instruction), Some(data), Some(last)] = all.caches {
        return [instruction, data, last];
    }
    let host = Machine::host();
    let shape = |cache: Option<&machine::Cache>| {
        cache
            .map_or([32 << 10, 8, 64], |cache| [cache.size_bytes, cache.ways.into(), cache.line_bytes.into()])
    };
    let of_host = [host.instruction_cache(), host.data_cache(1), host.last_level()].map(shape);
    std::array::from_fn(|index| all.caches[index].unwrap_or(of_host[index]))
}

fn levels([instruction, data, last]: [[u64; 3]; 3]) -> Levels {
    let geometry = |[size, ways, line]: [u64; 3]| Geometry::cache(size, ways as u32, line as u32);
    Levels::two_level(geometry(instruction), geometry(data), geometry(last))
}

fn described([size, ways, line]: [u64; 3]) -> String {
    format!("{size} B, {line} B, {ways}-way associative")
}

/// What a run found.
struct Found {
    outcome: Outcome,
    sections: Vec<Section>,
}

fn run(tool: Tool, all: &Settings, command: &Command) -> Result<u8> {
    let counts_events = matches!(tool, Tool::Callgrind | Tool::Cachegrind);
    let caches = (counts_events && all.simulates_caches()).then(|| caches(all));
    let requests = Requests::new(tool, all);
    let (stream, recorded) = match caches.map(levels) {
        Some(levels) => {
            let mut stream = plan_levels(&levels, WriteBacks::Ignored).stream;
            if let Stream::Filtered(filter) = &mut stream {
                filter.modifies = match tool {
                    Tool::Callgrind => ModifyFilter::StoreAlone,
                    _ => ModifyFilter::LoadAlone,
                };
            }
            let simulation = Simulation::new(&levels, WriteBacks::Ignored)
                .context("these caches cannot be simulated")?
                .from_stream(stream);
            (stream, Recorded::Simulated(Box::new(simulation)))
        }
        None => (Stream::Counts, Recorded::Counted),
    };
    let children = if all.trace_children { Children::Followed } else { Children::Released };
    let translations = translations();
    let threads = Threads::Together;
    let calls = match (tool, &recorded) {
        (Tool::Callgrind, _) if !all.calls => CallRecords::None,
        (Tool::Callgrind, Recorded::Counted) => CallRecords::Instructions,
        (Tool::Callgrind, Recorded::Simulated(_)) => CallRecords::References,
        _ => CallRecords::None,
    };
    let (aslr, machine, running) = (Aslr::Off, all.machine, None);
    let options = Options { aslr, stream, children, translations, threads, calls, machine, running };
    let mut observer = Sections::new(recorded);
    if calls != CallRecords::None {
        let jumps = if all.jumps { JumpRecords::Counted } else { JumpRecords::LeftOut };
        let more = all.rep.more_instructions();
        observer = observer.with_calls(call_graph::of_records(calls, jumps, more));
    }
    if requests.borrow().writes_at_once && !all.quiet {
        requests.borrow_mut().head = Some(log::head(&said(command), (tool, all), None));
    }
    let outcome = engine::run_marked(command, &options, &mut observer, requests.clone())?;
    requests.borrow_mut().end_lines();
    let (sections, _) = observer.finish();
    let unmatched = requests.borrow().unmatched();
    let status = outcome.exit;
    let mut found = Found { outcome, sections };
    for pattern in &unmatched {
        found.outcome.warnings.push(format!("no function that was loaded matches {pattern}"));
    }
    let symbols = std::mem::take(&mut requests.borrow_mut().symbols);
    report(tool, all, command, &mut found, (caches, &requests.borrow(), symbols))?;
    if all.strict && !unmatched.is_empty() {
        anyhow::bail!("no function that was loaded matches {}", unmatched.join(", "));
    }
    Ok(end_as(status))
}

/// Writes the files and the log of each process.
fn report(
    tool: Tool,
    all: &Settings,
    command: &Command,
    found: &mut Found,
    (caches, requests, mut symbols): (Option<[[u64; 3]; 3]>, &Requests, Symbolizer),
) -> Result<()> {
    let Found { outcome, sections } = found;
    let places = match tool {
        Tool::Callgrind | Tool::Cachegrind => {
            let symbols = std::mem::take(&mut symbols);
            Some(Places::new(&mut outcome.profile, sections, all, symbols))
        }
        _ => None,
    };
    let order = if tool == Tool::Cachegrind { Event::CACHEGRIND } else { Event::ALL };
    let events = if caches.is_some() { order.to_vec() } else { vec![Event::Ir] };
    for (number, index, image) in traced(&outcome.processes, all) {
        let process = &outcome.processes[index];
        let words = words_of(index, process, command);
        let (text, said) = (one_line(&words.join(" ")), logged(&words));
        let (mut counted, mut more) = (None, Vec::new());
        let mut dumps = Vec::new();
        let is_own =
            |section: &&Section| section.image == image && !requests.guests.contains(&section.thread);
        let own: Vec<&Section> = sections.iter().filter(is_own).collect();
        if let Some(places) = &places {
            let shape = Shape {
                version: all.version.clone(),
                pid: process.pid,
                command: text.clone(),
                events: events.clone(),
                caches: caches.map_or_else(Default::default, |caches| caches.map(described)),
                addresses: all.addresses,
                lines: all.lines,
                compressed: all.compress_strings,
            };
            let triggers = requests.triggers.get(&image).map_or(&[][..], Vec::as_slice);
            let written = Written { shape, sections: own, triggers, number };
            let sum: Events;
            (sum, dumps) = files::write(&written, (tool, all), (places, &outcome.profile))?;
            counted = Some((&events[..], sum));
        } else if tool == Tool::Lackey && all.basic_counts {
            let counts = lackey::count(&own, &outcome.profile, all, &mut symbols);
            more = lackey::lines(&counts, &all.function, process.exit.unwrap_or(outcome.exit));
        }
        let parent = parent_of(process, &outcome.processes);
        let warnings = if index == 0 { &outcome.warnings[..] } else { &[] };
        let dumped = |cut: usize| match dumps.iter().find(|dump| dump.cut as usize == cut) {
            Some(dump) if all.is_verbose() && tool == Tool::Callgrind => dump.lines(process.pid),
            _ => Vec::new(),
        };
        let printed = match requests.printed.get(&process.pid) {
            Some(printed) if !requests.writes_at_once => printed.with_dumps(image, dumped),
            _ => Vec::new(),
        };
        let entry = log::Entry {
            pid: process.pid,
            parent,
            command: &said,
            warnings,
            counted,
            is_begun: index == 0 && requests.head.is_none() && requests.writes_at_once,
            printed: &printed,
            dumped: dumped(requests.triggers.get(&image).map_or(0, Vec::len)),
            more,
            number,
        };
        log::write(&entry, (tool, all))?;
    }
    Ok(())
}

/// The words of a process's command line.
fn words_of(index: usize, process: &Process, command: &Command) -> Vec<String> {
    let words: Vec<&OsString> = match index == 0 && process.images.len() < 2 {
        true => std::iter::once(&command.program).chain(&command.arguments).collect(),
        false => process.command.iter().collect(),
    };
    words.into_iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// The number of the process that started this one.
fn parent_of(process: &Process, processes: &[Process]) -> u32 {
    process.parent.map_or_else(std::process::id, |parent| processes[parent].pid as u32)
}

/// The program and its arguments, as the log has them.
fn said(command: &Command) -> String {
    let words = std::iter::once(&command.program).chain(&command.arguments);
    logged(&words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>())
}

/// The words of a command, as the log has them: Valgrind's puts a backslash before these letters.
fn logged(words: &[String]) -> String {
    let mut text = words.join("\0");
    for letter in ["\\", " ", "<", ">"] {
        text = text.replace(letter, &format!("\\{letter}"));
    }
    text.replace('\0', " ").replace('\n', "\\n")
}

/// A command in one line.
fn one_line(words: &str) -> String {
    words.replace('\\', "\\\\").replace('\n', "\\n")
}

/// The image of a process whose costs are written: the last program that it executed, or the first
/// where executed programs are not traced.
fn image_of(process: &Process, all: &Settings) -> Option<u32> {
    match all.trace_children {
        true => process.images.last().copied(),
        false => process.images.first().copied(),
    }
}

/// The processes that have files: the number of each one's, its index and its image.
fn traced<'a>(processes: &'a [Process], all: &'a Settings) -> impl Iterator<Item = (usize, usize, u32)> + 'a {
    let is_traced = move |index: &usize| !is_skipped(*index, processes, all);
    let imaged = move |index: usize| Some((index, image_of(&processes[index], all)?));
    let found = (0..processes.len()).filter(is_traced).filter_map(imaged);
    found.zip(1..).map(|((index, image), number)| (number, index, image))
}

/// Whether a process, or one that started it, runs a program that is not traced.
fn is_skipped(index: usize, processes: &[Process], all: &Settings) -> bool {
    let process = &processes[index];
    let program = process.command.first().map(|word| word.to_string_lossy()).unwrap_or_default();
    let matches = |pattern: &String| crate::trace::metric::matches(pattern, &program);
    index > 0 && all.skipped.iter().any(matches)
        || process.parent.is_some_and(|parent| is_skipped(parent, processes, all))
}

/// Ends as the program did: with its status, or by its signal.
fn end_as(exit: Exit) -> u8 {
    if let Some(signal) = exit_signal(exit).and_then(Signal::from_named_raw) {
        // The core would be ours, not the program's.
        let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
        // A handler of the runtime may take the first one.
        for _ in 0..2 {
            let _ = kill_process(getpid(), signal);
        }
    }
    match exit {
        Exit::Code(_) | Exit::RunsOn => exit.status(),
        Exit::Signal(_) => exit.status().max(FAILURE),
    }
}
