//! What a command line in Valgrind's manner asks for.

use crate::cli::Rep;
use crate::report::heap::MassifShape;
use heap::{Follows, SnapshotPlan};
use instrument::virtual_machine::{Processor, Repeats, ThreadOrder, VirtualMachine};
use std::ffi::OsStr;
use std::path::Path;

/// The version that is claimed unless the caller sets another one.
const VERSION: &str = "3.26.0";

/// A tool of Valgrind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tool {
    /// Instructions and misses by function and line, in parts.
    Callgrind,
    /// Instructions and misses by function and line.
    Cachegrind,
    /// Heap blocks by the place that allocated them.
    Dhat,
    /// Heap blocks at moments of the run, by the place that allocated them.
    Massif,
    /// Branches, blocks, instructions and the calls of one function.
    Lackey,
    /// The program and nothing else.
    Nothing,
}

/// Everything that options set.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) tool: String,
    pub(super) trace_children: bool,
    pub(super) skipped: Vec<String>,
    pub(super) log_file: Option<String>,
    pub(super) quiet: bool,
    pub(super) verbose: bool,
    pub(super) command_line_only: bool,
    pub(super) callgrind_file: Option<String>,
    pub(super) cachegrind_file: Option<String>,
    pub(super) dhat_file: Option<String>,
    pub(super) massif_file: Option<String>,
    /// When Massif looks at the heap.
    pub(super) snapshots: SnapshotPlan,
    /// Whether lackey counts anything.
    pub(super) basic_counts: bool,
    /// The function whose calls lackey counts.
    pub(super) function: String,
    /// What Massif's file shows.
    pub(super) massif: MassifShape,
    /// Frames of a stack, that of the allocating function included.
    pub(super) callers: usize,
    /// What DHAT follows: with nothing, it notes the program's own events.
    pub(super) follows: Follows,
    pub(super) lines: bool,
    pub(super) addresses: bool,
    pub(super) compress_strings: bool,
    pub(super) combine_dumps: bool,
    pub(super) separate_threads: bool,
    pub(super) dump_before: Vec<String>,
    pub(super) dump_after: Vec<String>,
    pub(super) zero_before: Vec<String>,
    pub(super) toggles: Vec<String>,
    pub(super) instruments_at_start: bool,
    pub(super) collects_at_start: bool,
    /// Whether caches are simulated, if an option said so.
    pub(super) simulates: Option<bool>,
    /// Size, ways and bytes of a line of the caches I1, D1 and LL, if options gave them.
    pub(super) caches: [Option<[u64; 3]>; 3],
    pub(super) rep: Rep,
    /// Whether calls are followed.
    pub(super) calls: bool,
    /// Whether jumps have lines.
    pub(super) jumps: bool,
    pub(super) strict: bool,
    /// The machine that the program is shown.
    pub(super) machine: VirtualMachine,
    pub(super) version: String,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            tool: "memcheck".into(),
            trace_children: false,
            skipped: Vec::new(),
            log_file: None,
            quiet: false,
            verbose: false,
            command_line_only: false,
            callgrind_file: None,
            cachegrind_file: None,
            dhat_file: None,
            massif_file: None,
            snapshots: SnapshotPlan { at_most: 100, detailed_every: 10, peak_percent: 1.0, block_bytes: 8 },
            basic_counts: true,
            function: "main".into(),
            massif: MassifShape {
                described: String::new(),
                depth: 30,
                threshold_percent: 1.0,
                allocating: Vec::new(),
            },
            callers: 12,
            follows: Follows::Blocks,
            lines: true,
            addresses: false,
            compress_strings: true,
            combine_dumps: false,
            separate_threads: false,
            dump_before: Vec::new(),
            dump_after: Vec::new(),
            zero_before: Vec::new(),
            toggles: Vec::new(),
            instruments_at_start: true,
            collects_at_start: true,
            simulates: None,
            caches: [None; 3],
            rep: Rep::Valgrind,
            calls: true,
            jumps: false,
            strict: false,
            machine: VirtualMachine::default(),
            version: VERSION.into(),
        }
    }
}

impl Tool {
    /// The tool of this name, if it is one of ours.
    pub(super) fn named(name: &str) -> Option<Tool> {
        match name {
            "callgrind" => Some(Tool::Callgrind),
            "cachegrind" => Some(Tool::Cachegrind),
            "dhat" => Some(Tool::Dhat),
            "massif" => Some(Tool::Massif),
            "lackey" => Some(Tool::Lackey),
            "none" => Some(Tool::Nothing),
            _ => None,
        }
    }
}

impl Settings {
    /// The tool; an error says which ones there are.
    pub(super) fn known_tool(&self) -> Result<Tool, String> {
        Tool::named(&self.tool).ok_or_else(|| {
            format!(
                "lightfoot is no {}: it is callgrind, cachegrind, dhat, massif, lackey and none; name the real valgrind with \
                 --fallback=PATH for other tools, also in $VALGRIND_OPTS",
                self.tool
            )
        })
    }

    /// Whether the log tells of requests and parts.
    pub(super) fn is_verbose(&self) -> bool {
        self.verbose && !self.quiet
    }

    /// Whether the version that is claimed comes before another one.
    pub(super) fn is_before(&self, major: u32, minor: u32) -> bool {
        let mut parts = self.version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
        let mut next = || parts.next().unwrap_or(0);
        (next(), next()) < (major, minor)
    }

    /// Whether the tool simulates caches.
    pub(super) fn simulates_caches(&self) -> bool {
        self.simulates.unwrap_or_else(|| self.caches.iter().any(Option::is_some))
    }
}

/// Notes the tool's name.
pub(super) fn tool(all: &mut Settings, value: &str) -> Result<(), String> {
    all.tool = value.to_owned();
    Ok(())
}

/// Makes the log empty.
pub(super) fn quiet(all: &mut Settings, _value: &str) -> Result<(), String> {
    all.quiet = true;
    Ok(())
}

/// Makes the log tell of requests and parts.
pub(super) fn verbose(all: &mut Settings, _value: &str) -> Result<(), String> {
    all.verbose = true;
    Ok(())
}

/// Reads yes or no.
pub(super) fn yes_no(to: &mut bool, value: &str) -> Result<(), String> {
    *to = match value {
        "yes" => true,
        "no" => false,
        _ => return Err("expected yes or no".into()),
    };
    Ok(())
}

/// Reads yes or no, where it also matters whether it was said.
pub(super) fn choice(to: &mut Option<bool>, value: &str) -> Result<(), String> {
    yes_no(to.get_or_insert(false), value)
}

/// Sets the processor that the program is shown.
pub(super) fn processor(all: &mut Settings, value: &str) -> Result<(), String> {
    all.machine.processor = Some(Processor::named(value).map_err(|error| error.to_string())?);
    Ok(())
}

/// Sets whether the run is to repeat exactly.
pub(super) fn repeatable(all: &mut Settings, value: &str) -> Result<(), String> {
    let mut exactly = false;
    yes_no(&mut exactly, value)?;
    all.machine.repeats = if exactly { Repeats::Exactly } else { Repeats::AsNatively };
    Ok(())
}

/// Sets whether threads run one at a time, in a run that then repeats exactly.
pub(super) fn turns(all: &mut Settings, value: &str) -> Result<(), String> {
    let mut in_turns = false;
    yes_no(&mut in_turns, value)?;
    all.machine.threads = if in_turns { ThreadOrder::OneAtATime } else { ThreadOrder::AsNatively };
    if in_turns {
        all.machine.repeats = Repeats::Exactly;
    }
    Ok(())
}

/// Notes a text that is not empty.
pub(super) fn text(to: &mut Option<String>, value: &str) -> Result<(), String> {
    if value.is_empty() {
        return Err("expected a name behind =".into());
    }
    *to = Some(value.to_owned());
    Ok(())
}

/// Notes the name of a function.
pub(super) fn name(to: &mut String, value: &str) -> Result<(), String> {
    if value.is_empty() {
        return Err("expected the name of a function".into());
    }
    *to = value.to_owned();
    Ok(())
}

/// Adds the elements of a list with commas.
pub(super) fn list(to: &mut Vec<String>, value: &str) -> Result<(), String> {
    to.extend(value.split(',').filter(|word| !word.is_empty()).map(str::to_owned));
    Ok(())
}

/// Adds a pattern of functions.
pub(super) fn function(to: &mut Vec<String>, value: &str) -> Result<(), String> {
    if value.is_empty() {
        return Err("expected the name of a function, in which * and ? stand for others".into());
    }
    to.push(value.to_owned());
    Ok(())
}

/// Adds a pattern of functions that collect; nothing else does from then on.
pub(super) fn toggle(all: &mut Settings, value: &str) -> Result<(), String> {
    all.collects_at_start = false;
    function(&mut all.toggles, value)
}

/// Reads how repeated string instructions count.
pub(super) fn rep(all: &mut Settings, value: &str) -> Result<(), String> {
    all.rep = <Rep as clap::ValueEnum>::from_str(value, false)
        .map_err(|_| String::from("expected once, iterations or valgrind"))?;
    Ok(())
}

/// Reads a number from `least` to `most`.
pub(super) fn number<N>(to: &mut N, (least, most): (u16, u16), value: &str) -> Result<(), String>
where
    N: std::str::FromStr + PartialOrd + From<u16>,
{
    let within = |number: &N| *number >= N::from(least) && *number <= N::from(most);
    *to = value.parse().ok().filter(within).ok_or_else(|| format!("expected {least} to {most}"))?;
    Ok(())
}

/// Reads what Massif counts time by.
pub(super) fn time_unit(_all: &mut Settings, value: &str) -> Result<(), String> {
    match value {
        "i" => Ok(()),
        _ => Err("expected i: time goes by instructions".into()),
    }
}

/// Reads what DHAT follows.
pub(super) fn mode(all: &mut Settings, value: &str) -> Result<(), String> {
    all.follows = match value {
        "heap" => Follows::Blocks,
        "copy" => Follows::Copies,
        "ad-hoc" => Follows::Nothing,
        _ => return Err("expected heap, copy or ad-hoc".into()),
    };
    Ok(())
}

/// Reads a version such as `3.26.0`.
pub(super) fn version(to: &mut String, value: &str) -> Result<(), String> {
    if !value.starts_with(|first: char| first.is_ascii_digit()) {
        return Err("expected a number such as 3.26.0".into());
    }
    *to = value.to_owned();
    Ok(())
}

/// Reads the size, ways and bytes of a line of a cache.
pub(super) fn cache(all: &mut Settings, number: usize, value: &str) -> Result<(), String> {
    let expected = || String::from("expected SIZE,WAYS,LINE in bytes, such as 32768,8,64");
    let numbers: Vec<u64> = value.split(',').map_while(|number| number.parse().ok()).collect();
    let [size, ways, line]: [u64; 3] = numbers.try_into().map_err(|_| expected())?;
    if ways == 0 || !line.is_power_of_two() || !(16..=4096).contains(&line) || size < ways * line {
        return Err(expected());
    }
    all.caches[number] = Some([size, ways, line]);
    Ok(())
}

/// Whether a name is that of Valgrind's command.
pub(super) fn is_valgrind(program: &OsStr) -> bool {
    Path::new(program).file_name().is_some_and(|name| name == "valgrind")
}
