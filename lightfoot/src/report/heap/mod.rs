//! The report of a heap: places that allocate with the names of their calls, in several formats.
//!
//! Calls are looked up when the program has ended, each once.

mod csv;
mod dhat;
mod massif;
mod text;

pub use massif::MassifShape;

use heap::{Amount, Follows, HeapProfile, Snapshot};
use present::order::SortRows;
use serde_json::{json, Value};
use std::path::Path;
use symbol::{demangle, Symbolizer};

/// A program and its end, as reports of heaps name them.
#[derive(Clone, Debug)]
pub struct Ran {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The process's number.
    pub pid: i32,
    /// The status that a shell would report.
    pub exit_status: u8,
    /// Whether the user interrupted the measurement.
    pub partial: bool,
}

/// The report.
#[derive(Clone, Debug)]
pub struct HeapReport {
    /// The program and its end.
    pub ran: Ran,
    /// Instructions of all threads at the end.
    pub instructions: u64,
    /// Instructions of all threads when the program had most.
    pub peak_at: u64,
    /// Sums over all places.
    pub total: SiteRow,
    /// The places.
    pub sites: Vec<SiteRow>,
    /// The frames of their stacks.
    pub frames: Vec<HeapFrame>,
    /// The heap at some moments, if they were asked for.
    pub snapshots: Vec<Snapshot>,
    /// Which functions were followed. Of copies and of the program's own events, the numbers of
    /// bytes and blocks allocated are those of their bytes or units, and of events.
    pub follows: Follows,
    /// Sentences that the user should see.
    pub warnings: Vec<String>,
}

/// A place that allocates, or all.
#[derive(Clone, Debug, Default)]
pub struct SiteRow {
    /// Bytes allocated.
    pub bytes: u64,
    /// Blocks allocated.
    pub blocks: u64,
    /// The most bytes that lived at a time.
    pub most_bytes: u64,
    /// Their blocks.
    pub most_blocks: u64,
    /// Bytes at the time at which the program had most.
    pub peak_bytes: u64,
    /// Their blocks.
    pub peak_blocks: u64,
    /// Bytes at the end.
    pub end_bytes: u64,
    /// Their blocks.
    pub end_blocks: u64,
    /// Sum of the lives of all blocks, in instructions.
    pub lifetimes: u64,
    /// Bytes that were read.
    pub read_bytes: u64,
    /// Bytes that were written.
    pub written_bytes: u64,
    /// Blocks without one access.
    pub untouched: u64,
    /// Accesses of each byte, if all blocks had one size of at most 1024 bytes.
    pub accesses: Vec<u32>,
    /// Indices of frames, the innermost first.
    pub stack: Vec<usize>,
}

/// A frame of a stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct HeapFrame {
    /// Address of the call.
    pub address: u64,
    /// The function that calls; one that is inlined has a frame of its own.
    pub function: String,
    /// The file that holds the code.
    pub library: String,
    /// The source file, if debug information has it.
    pub file: Option<String>,
    /// The line there.
    pub line: Option<u32>,
}

impl SiteRow {
    fn of(site: &heap::Site) -> SiteRow {
        let both = |amount: Amount| (amount.bytes, amount.blocks);
        let ((bytes, blocks), (most_bytes, most_blocks)) = (both(site.total), both(site.most));
        let ((peak_bytes, peak_blocks), (end_bytes, end_blocks)) = (both(site.at_peak), both(site.at_end));
        SiteRow {
            bytes,
            blocks,
            most_bytes,
            most_blocks,
            peak_bytes,
            peak_blocks,
            end_bytes,
            end_blocks,
            lifetimes: site.lifetimes,
            read_bytes: site.read_bytes,
            written_bytes: site.written_bytes,
            untouched: site.untouched,
            accesses: site.accesses.clone(),
            stack: Vec::new(),
        }
    }

    fn json(&self) -> Value {
        json!({
            "bytes": self.bytes,
            "blocks": self.blocks,
            "most_bytes": self.most_bytes,
            "most_blocks": self.most_blocks,
            "peak_bytes": self.peak_bytes,
            "peak_blocks": self.peak_blocks,
            "end_bytes": self.end_bytes,
            "end_blocks": self.end_blocks,
            "lifetimes": self.lifetimes,
            "read_bytes": self.read_bytes,
            "written_bytes": self.written_bytes,
            "untouched": self.untouched,
            "accesses": self.accesses,
            "stack": self.stack,
        })
    }

    /// The mean life of a block in instructions.
    pub fn life(&self) -> u64 {
        self.lifetimes / self.blocks.max(1)
    }
}

impl HeapReport {
    /// The report of a heap; names are looked up here, in `symbols`.
    pub fn new(ran: Ran, heap: &HeapProfile, warnings: Vec<String>, symbols: &mut Symbolizer) -> HeapReport {
        symbols.name_generated(&heap.modules);
        // Frames of each call, from the innermost inlined function outwards.
        let mut frames = Vec::new();
        let mut of_calls: Vec<Option<(usize, usize)>> = vec![None; heap.calls.len()];
        let mut sites = Vec::new();
        for site in &heap.sites {
            let mut row = SiteRow::of(site);
            for &call in &site.stack {
                let known = of_calls[call as usize];
                let (from, to) = known.unwrap_or_else(|| {
                    let from = frames.len();
                    let heap::Call { module, address } = heap.calls[call as usize];
                    add_frames(&heap.modules[module as usize], address, symbols, &mut frames);
                    (from, frames.len())
                });
                of_calls[call as usize] = Some((from, to));
                row.stack.extend(from..to);
            }
            above_start(&mut row.stack, &frames);
            sites.push(row);
        }
        let (instructions, peak_at) = (heap.instructions, heap.peak_at);
        let (total, snapshots) = (SiteRow::of(&heap.all), heap.snapshots.clone());
        let follows = heap.follows;
        HeapReport { ran, instructions, peak_at, total, sites, frames, snapshots, follows, warnings }
    }

    /// Sorts the places by a column, the largest first.
    pub fn sort_by(&mut self, key: impl Fn(&SiteRow) -> u64) {
        self.sites.sort_rows_by_key(|site| std::cmp::Reverse((key(site), site.bytes, site.blocks)));
    }

    /// The report as JSON.
    pub fn json(&self) -> String {
        let Ran { command, pid, exit_status, partial } = &self.ran;
        let sites: Vec<Value> = self.sites.iter().map(SiteRow::json).collect();
        let frame = |frame: &HeapFrame| {
            json!({
                "address": frame.address,
                "function": frame.function,
                "library": frame.library,
                "file": frame.file,
                "line": frame.line,
            })
        };
        let frames: Vec<Value> = self.frames.iter().map(frame).collect();
        let report = json!({
            "command": command,
            "pid": pid,
            "exit_status": exit_status,
            "partial": partial,
            "instructions": self.instructions,
            "peak_at": self.peak_at,
            "total": self.total.json(),
            "sites": sites,
            "frames": frames,
            "warnings": self.warnings,
        });
        format!("{report:#}\n")
    }
}

/// Adds the frames of a call.
fn add_frames(
    module: &instrument::Module,
    address: u64,
    symbols: &mut Symbolizer,
    frames: &mut Vec<HeapFrame>,
) {
    let function = symbols.function_at(module, address).function;
    let function = demangle(&symbols.functions()[function].name);
    let library = module.path.to_string_lossy().into_owned();
    let bare = HeapFrame { address, function, library, file: None, line: None };
    let Some(innermost) = symbols.frame(module, address) else { return frames.push(bare) };
    let sources = symbols.sources();
    for source in sources.chain(innermost) {
        let inlined = source.inlined.map(|name| demangle(&sources.names()[name as usize]));
        frames.push(HeapFrame {
            function: inlined.unwrap_or_else(|| bare.function.clone()),
            file: sources.files().get(source.file as usize).cloned(),
            line: Some(source.line).filter(|&line| line > 0),
            ..bare.clone()
        });
    }
}

/// Functions that only lead to the program's own.
const STARTS: &[&str] =
    &["_start", "__libc_start_main", "__libc_start_call_main", "__libc_start_main_impl", "_dl_start_user"];

/// Takes the frames below `main` off a stack, or those from where the program starts.
fn above_start(stack: &mut Vec<usize>, frames: &[HeapFrame]) {
    let name = |frame: &usize| frames[*frame].function.as_str();
    if let Some(main) = stack.iter().position(|frame| name(frame) == "main") {
        return stack.truncate(main + 1);
    }
    let start = stack.iter().position(|frame| STARTS.contains(&name(frame)));
    stack.truncate(start.map_or(stack.len(), |start| start.max(1)));
}

impl HeapFrame {
    /// The frame in the form that readers of Valgrind's files expect.
    fn of_valgrind(&self) -> String {
        let place = match (&self.file, self.line) {
            (Some(file), Some(line)) => format!("{}:{line}", base(file)),
            _ => format!("in {}", self.library),
        };
        format!("0x{:X}: {} ({place})", self.address, self.function)
    }

    /// The function, with its place in the source or the name of its file.
    fn named(&self) -> String {
        let library = || Path::new(&self.library).file_name().unwrap_or_default().to_string_lossy();
        match (&self.file, self.line) {
            (Some(file), Some(line)) => format!("{} ({}:{line})", self.function, base(file)),
            _ => format!("{} [{}]", self.function, library()),
        }
    }
}

/// The last part of a path.
fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A report of one place with two blocks of eight bytes.
    pub(crate) fn report() -> HeapReport {
        let frame = |function: &str, line| HeapFrame {
            address: 0x1000 + u64::from(line),
            function: function.into(),
            library: "/bin/a".into(),
            file: Some("/src/a.c".into()),
            line: Some(line),
        };
        let row = SiteRow {
            bytes: 16,
            blocks: 2,
            most_bytes: 16,
            most_blocks: 2,
            peak_bytes: 16,
            peak_blocks: 2,
            end_bytes: 8,
            end_blocks: 1,
            lifetimes: 500,
            read_bytes: 32,
            written_bytes: 8,
            untouched: 1,
            accesses: vec![1, 1, 1, 5, 0, 0, 0, 0],
            stack: vec![0, 1],
        };
        HeapReport {
            ran: Ran { command: vec!["a".into()], pid: 7, exit_status: 0, partial: false },
            instructions: 1000,
            peak_at: 600,
            total: SiteRow { stack: Vec::new(), accesses: Vec::new(), ..row.clone() },
            sites: vec![row],
            frames: vec![frame("build", 5), frame("main", 9)],
            snapshots: Vec::new(),
            follows: Follows::Blocks,
            warnings: Vec::new(),
        }
    }

    #[test]
    fn stacks_end_with_main() {
        let frame = |function: &str| HeapFrame { function: function.into(), ..HeapFrame::default() };
        let frames: Vec<HeapFrame> =
            ["f", "main", "__libc_start_main", "_start", "init"].into_iter().map(frame).collect();
        let cut = |stack: &[usize]| {
            let mut stack = stack.to_vec();
            above_start(&mut stack, &frames);
            stack
        };
        assert_eq!(cut(&[0, 1, 2, 3]), [0, 1]);
        assert_eq!(cut(&[4, 2, 3]), [4]);
        assert_eq!(cut(&[3]), [3], "a place has a frame");
        assert_eq!(cut(&[0, 4, 2, 4]), [0, 4]);
    }
}
