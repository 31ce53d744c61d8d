//! The command line: its commands and options, without their actions.
//!
//! `count` and `cache` take everything after their first non-option as the program and its
//! arguments, with or without `--`, byte for byte (arguments need not be UTF-8). So the program is
//! one trailing list, which clap does not interpret. A word with a dash before the program is an
//! option, and a misspelt option is refused. Values are only parsed here; crate `machine` decides
//! whether a preset or a geometry exists.

mod bench;
mod diff;
mod heap;
pub mod help;
mod libraries;
mod machine_options;
mod merge;
mod objects;
mod refusal;
mod running;
mod shape;
mod show;
mod traces;
mod value;

pub use bench::{Bench, BenchFormat, BenchWorker, Growth, Limit, EVENTS};
use clap::{Args, Parser, Subcommand, ValueEnum};
pub use diff::{Diff, DiffBy};
pub use heap::{Heap, HeapFormat, HeapSort};
pub use libraries::{
    ElementType, Index, IndexAction, IndexBuild, IndexInspect, IndexOp, IndexQuery, Kernel, KeyInput,
    Lookups, Matches, Study, Tile, TileLoop,
};
pub use machine_options::MachineOptions;
pub use merge::{Merge, MergeFormat, Statistic};
pub use objects::ObjectOptions;
pub use refusal::refusal;
pub use running::RunningProgram;
use serde::Serialize;
pub use shape::{DiffFormat, DoctorFormat, Format};
pub use show::{Place, Show, ShowFormat};
use std::ffi::OsString;
use std::path::PathBuf;
pub use traces::{
    Align, FailOn, Perturb, PerturbFormat, Plan, Trace, TraceCollector, TraceEngine, TraceFormat,
};
use value::rows;
pub use value::Replaced;

/// Measures how programs use the memory hierarchy without disturbing them.
#[derive(Debug, Parser)]
#[command(name = "lightfoot", version, max_term_width = 80, arg_required_else_help = true)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Count a program's instructions, blocks, loads and stores
    #[command(
        override_usage = "lightfoot count [OPTIONS] [--] PROGRAM [ARGUMENTS]...\n       lightfoot count [OPTIONS] --pid PID [--for TIME]"
    )]
    Count(Count),
    /// Count a program's misses in a simulated memory hierarchy
    #[command(
        override_usage = "lightfoot cache [OPTIONS] [--] PROGRAM [ARGUMENTS]...\n       lightfoot cache [OPTIONS] --pid PID [--for TIME]"
    )]
    Cache(Cache),
    /// Follow a program's heap blocks: sizes, lifetimes and accesses by place of allocation
    #[command(override_usage = "lightfoot heap [OPTIONS] [--] PROGRAM [ARGUMENTS]...")]
    Heap(Heap),
    /// Count benchmarks of crate lightfoot-bench, and compare them with a baseline
    Bench(Bench),
    /// Count the benchmarks of one program for `bench`
    #[command(hide = true)]
    BenchWorker(BenchWorker),
    /// Compare two reports of `count` or `cache` by function or line
    Diff(Diff),
    /// Merge reports of several runs into one: sum, mean and spread of every number
    Merge(Merge),
    /// Write one file that runs a program instrumented by itself
    Instrument(Instrument),
    /// Make a crate with a tool of your own, ready to run
    NewTool(NewTool),
    /// List the stock tools, or run a program under one
    #[command(override_usage = "lightfoot tool [OPTIONS] [NAME [--] PROGRAM [ARGUMENTS]...]")]
    Tool(Tool),
    /// Run a program and record metrics at a regular interval
    #[command(override_usage = "lightfoot trace [OPTIONS] -o FILE [--] PROGRAM [ARGUMENTS]...")]
    Trace(Trace),
    /// Show a trace: table, page, picture, and formats of other viewers
    Show(Show),
    /// Align two traces, and say how alike they are
    Align(Align),
    /// Say whether instrumentation disturbed a program: traces with it against traces without
    Perturb(Perturb),
    /// Spread software metrics over runs until no run disturbs the program
    #[command(
        override_usage = "lightfoot plan [OPTIONS] --metrics METRICS --budget RUNS [--] PROGRAM [ARGUMENTS]..."
    )]
    Plan(Plan),
    /// Search files for lines that match a pattern, with ripgrep's flags and output
    #[command(disable_help_flag = true)]
    Grep(Grep),
    /// Count in the manner of callgrind, cachegrind, DHAT and Massif, with their options, requests
    /// and files
    #[command(disable_help_flag = true)]
    Valgrind(Valgrind),
    /// Build, query and inspect index files of sorted keys
    Index(Index),
    /// Run the studies that reproduce published experiments on this machine
    Study(Study),
    /// Look items up with one of the paper's algorithms: what `study search-trees` measures
    #[command(hide = true)]
    Lookups(Lookups),
    /// Count a file's matching lines with one engine: what `study regex` measures
    #[command(hide = true)]
    Matches(Matches),
    /// Run one kernel and print its times: what `study cycles` measures
    #[command(hide = true)]
    Kernel(Kernel),
    /// Say what this machine can measure, what it cannot, why, and the fix
    Doctor(Doctor),
    /// List the machines that can be simulated, or show one
    Machines(Machines),
    /// Write completions for a shell
    Completions(Completions),
    /// Write the manual page of lightfoot, or of one of its commands
    Man(Man),
    /// Tile sizes for blocked matrices: two models, simulation and measurement side by side
    Tile(Tile),
    /// Run the paper's loops once, as a program to be measured
    #[command(hide = true)]
    TileLoop(TileLoop),
}

/// Options of `count`.
#[derive(Debug, Args)]
pub struct Count {
    /// The options of every command that runs a program.
    #[command(flatten)]
    pub run: Run,
}

/// Options of `cache`.
#[derive(Debug, Args)]
pub struct Cache {
    /// The machine to simulate.
    #[command(flatten)]
    pub hierarchy: MachineOptions,
    /// Also predict conditional branches; the run takes about five times as long
    #[arg(long)]
    pub branches: bool,
    /// Predictor: gshare (2^14 counters, 12 outcomes) or perceptron (2^9 of 32 outcomes)
    #[arg(long, value_name = "NAME", requires = "branches", default_value = "gshare",
        value_parser = clap::builder::PossibleValuesParser::new(simulate::PREDICTORS.iter().map(|predictor| predictor.name)))]
    pub predictor: String,
    /// Also count the dirty lines that caches write back; every reference is then recorded, so the
    /// run takes about ten times as long
    #[arg(long)]
    pub write_backs: bool,
    /// Also count the misses of twenty data caches of other sizes, from the same pass (in text and
    /// json; the html page always has them)
    #[arg(long)]
    pub curves: bool,
    /// Give each thread a core of its own, whose private levels are kept coherent, and report the
    /// misses that writes of other cores cause: true and false sharing by line of memory, by object
    /// or by the source lines of both sides; threads run one at a time, in turns, and every
    /// reference is recorded
    #[arg(long, value_enum, value_name = "BY", num_args = 0..=1, require_equals = true, default_missing_value = "line")]
    pub coherence: Option<SharedBy>,
    /// With --coherence: threads share N cores and move between them as schedulers move them
    /// [default: each living thread has a core of its own]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=512))]
    pub cores: Option<u16>,
    /// Options for rows of data.
    #[command(flatten)]
    pub objects: ObjectOptions,
    /// The options of every command that runs a program.
    #[command(flatten)]
    pub run: Run,
}

/// Rows of the report of coherent caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SharedBy {
    /// A line of memory
    Line,
    /// A block of the heap by the call that allocated it, or a variable
    Object,
    /// The source line that missed, and the one whose write took the line
    Source,
}

/// Options of `instrument`.
#[derive(Debug, Args)]
pub struct Instrument {
    /// Program to include in the file
    pub program: OsString,
    /// The command or tool that runs it: count, cache, or the name of a stock tool
    #[arg(long, value_name = "TOOL", default_value = "count")]
    pub tool: String,
    /// Option for the tool, such as --with=--by=line; may be repeated
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    pub with: Vec<String>,
    /// File to write
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

/// Options of `new-tool`.
#[derive(Debug, Args)]
pub struct NewTool {
    /// Name of the crate
    pub name: OsString,
    /// Folder to make [default: the name]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Folder of lightfoot's sources [default: where this lightfoot was built]
    #[arg(long, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
}

/// A number of layouts.
fn layouts(text: &str) -> Result<u32, String> {
    text.parse().ok().filter(|count| (2..=1000).contains(count)).ok_or("expected 2 to 1000".into())
}

/// Options of `tool`.
#[derive(Debug, Args)]
pub struct Tool {
    /// File that the tool writes, if it writes one
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Tool to run; without one the tools are listed
    pub name: Option<String>,
    /// The program and its arguments, passed on untouched
    #[arg(trailing_var_arg = true, value_name = "PROGRAM [ARGUMENTS]")]
    pub program: Vec<OsString>,
}

/// The machine that a program is shown.
#[derive(Debug, Args)]
pub struct ShownMachine {
    /// Show the program this processor: x86-64-v2, x86-64-v3, x86-64-v4, haswell, skylake-server,
    /// valgrind (as Valgrind shows it) or host (the machine's own, alone). The instructions that
    /// the program picks are then equal on every machine
    #[arg(long, value_name = "NAME")]
    pub virtual_cpu: Option<String>,
    /// Show the program clocks, random bytes and a machine that are equal in every run, so that
    /// its counts are, too; what differs nevertheless is named. With --virtual-cpu they are equal
    /// on other machines
    #[arg(long)]
    pub repeatable: bool,
    /// With --repeatable: run the program's threads one at a time, so that their order is equal in
    /// every run. A turn ends where a thread may wait; a program whose threads wait for each other
    /// without system calls comes to no end
    #[arg(long, requires = "repeatable")]
    pub turns: bool,
    /// With --turns of count, or --coherence of cache [default: 10000]: end a thread's turn after N
    /// instructions, 100 or more, too; every reference is recorded for it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(100..))]
    pub quantum: Option<u32>,
    /// Run the program K times, each time with its stack at another place, as environments of other
    /// lengths move it natively, and report median and spread of every event; implies --repeatable
    #[arg(long, value_name = "K", value_parser = layouts, conflicts_with_all = ["compare_native", "aslr"])]
    pub layouts: Option<u32>,
}

/// Options of every command that runs a program.
#[derive(Debug, Args)]
pub struct Run {
    /// A program that runs already.
    #[command(flatten)]
    pub running: RunningProgram,
    /// Group rows by one or more comma-separated keys
    #[arg(long, value_enum, value_delimiter = ',', default_value = "function")]
    pub by: Vec<By>,
    /// Column to sort the table by, such as loads or l2_misses; inlined: by the counts of lines
    /// together with all code inlined there [default: instructions, or first-level misses]
    #[arg(long, value_name = "COLUMN")]
    pub sort: Option<String>,
    /// How a repeated string instruction (rep movs ...) counts, in all columns of the report
    #[arg(long, value_enum, default_value_t = Rep::Once)]
    pub rep: Rep,
    /// Count only while the program has this region open (see crate `region`, or its C header)
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
    /// Leave address randomisation on (runs then no longer repeat exactly)
    #[arg(long, conflicts_with = "repeatable")]
    pub aslr: bool,
    /// The machine that the program is shown.
    #[command(flatten)]
    pub shown: ShownMachine,
    /// Count the processes that the program starts as well, and those that they start: one report
    /// for each, and their sum. Processes that the program leaves behind are counted while they
    /// work, for at most ten seconds and until they have waited for a second; then they continue
    /// uncounted, and a warning names them
    #[arg(long)]
    pub follow_children: bool,
    /// With --follow-children: wait for all processes that the program leaves behind, including
    /// daemons, and count them to their ends
    #[arg(long, requires = "follow_children")]
    pub wait_all: bool,
    /// Translate the program anew, and keep nothing for its next run; processes that
    /// --follow-children counts share translations in memory until the run ends [kept in
    /// $LIGHTFOOT_TRANSLATIONS, else in lightfoot/translations of $XDG_CACHE_HOME or ~/.cache;
    /// LIGHTFOOT_TRANSLATIONS=off does the same]
    #[arg(long)]
    pub no_translation_cache: bool,
    /// Run the program a second time, natively and with its output discarded, to report the
    /// slowdown
    #[arg(long)]
    pub compare_native: bool,
    /// Write the report here instead of to standard error
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Shape of the report
    #[arg(long, value_enum, default_value_t = Shape::Text)]
    pub format: Shape,
    /// Rows to show; 0 shows all [default: 20 in text, 200 on pages of data, all elsewhere]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = rows)]
    pub top: Option<usize>,
    /// The program and its arguments, passed on untouched
    #[arg(trailing_var_arg = true, required_unless_present = "pid", value_name = "PROGRAM [ARGUMENTS]")]
    pub program: Vec<OsString>,
}

/// Options of `grep`. It parses them itself, because they override each other in their order.
#[derive(Debug, Args)]
pub struct Grep {
    /// All words behind the command's name
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<OsString>,
}

/// Options of `valgrind`. It parses them itself, because their grammar is Valgrind's.
#[derive(Debug, Args)]
pub struct Valgrind {
    /// All words behind the command's name
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<OsString>,
}

/// Options of `doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Measure sizes and latencies of caches and TLBs, which takes two seconds of a quiet machine,
    /// and keep them as the machine `measured`
    #[arg(long)]
    pub measure: bool,
    /// Shape of the answer
    #[arg(long, value_enum, default_value_t = DoctorFormat::Text)]
    pub format: DoctorFormat,
}

/// Options of `machines`.
#[derive(Debug, Args)]
pub struct Machines {
    /// Machine to show: `host`, `measured`, the name of a preset, or a TOML file
    pub name: Option<OsString>,
    /// Write the description as TOML, as a start for a file of your own
    #[arg(long, requires = "name")]
    pub toml: bool,
}

/// Options of `completions`.
#[derive(Debug, Args)]
pub struct Completions {
    /// Shell to write for
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Options of `man`.
#[derive(Debug, Args)]
pub struct Man {
    /// Command, such as count or index build; without one, the page of lightfoot itself
    pub command: Vec<String>,
}

/// A shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    /// source <(lightfoot completions bash)
    Bash,
    /// lightfoot completions zsh > _lightfoot, in a folder of $fpath
    Zsh,
    /// lightfoot completions fish > ~/.config/fish/completions/lightfoot.fish
    Fish,
    /// lightfoot completions powershell >> $PROFILE
    Powershell,
}

impl From<Shell> for present::completion::Shell {
    fn from(shell: Shell) -> present::completion::Shell {
        match shell {
            Shell::Bash => present::completion::Shell::Bash,
            Shell::Zsh => present::completion::Shell::Zsh,
            Shell::Fish => present::completion::Shell::Fish,
            Shell::Powershell => present::completion::Shell::Powershell,
        }
    }
}

/// Keys of the rows of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// A function of a library
    Function,
    /// An executable or shared library
    Library,
    /// An instruction's mnemonic
    Opcode,
    /// A line of source; for inlined code that of the innermost frame
    Line,
    /// A thread; under `cache` each has its own private levels
    Thread,
    /// Under `cache`: what lies at the addresses that missed: blocks of a place of allocation, a
    /// variable, frames of a function, code of a file
    Object,
    /// Under `cache`: the type of such an object, as far as debug information tells it
    Type,
    /// Under `cache`: the field of such a type
    Field,
    /// A function and one that it calls: how often, and what the calls cost with all that they
    /// call; takes about five times as long
    Call,
}

impl By {
    /// Whether its rows are data and not code.
    pub fn is_data(self) -> bool {
        matches!(self, By::Object | By::Type | By::Field)
    }
}

/// How a repeated string instruction counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Rep {
    /// As one instruction
    Once,
    /// As one instruction per iteration, at least one
    Iterations,
    /// As Valgrind's counters do: N + 1 for movs, stos and lods that repeat N times; for cmps and
    /// scas one per iteration, which is one less than Valgrind's if the count ends them and not the
    /// comparison
    Valgrind,
}

impl Rep {
    /// Instructions that complex references count in addition to their executions.
    pub(crate) fn more(self, complex: &simulate::References) -> u64 {
        self.more_instructions()(complex)
    }

    /// Counts instructions of complex references in addition to their executions.
    pub(crate) fn more_instructions(self) -> fn(&simulate::References) -> u64 {
        match self {
            Rep::Once => |_| 0,
            Rep::Iterations => |complex| complex.iterations.saturating_sub(complex.executions),
            Rep::Valgrind => {
                |complex| complex.iterations.saturating_sub(complex.executions) + complex.counted_down
            }
        }
    }
}

/// Formats of the report of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shape {
    /// A table for people
    Text,
    /// Everything, for programs
    Json,
    /// The table, for spreadsheets
    Csv,
    /// By source line, for `cg_annotate` and `cg_diff`
    Cachegrind,
    /// With calls and inclusive costs, for `callgrind_annotate` and KCachegrind; takes about five
    /// times as long
    Callgrind,
    /// A profile for <https://profiler.firefox.com>, by calling context; takes about five times as
    /// long
    Firefox,
    /// A profile for <https://www.speedscope.app>, by calling context; takes about five times as
    /// long
    Speedscope,
    /// A profile for pprof and what reads its format, by calling context; takes about five times
    /// as long
    Pprof,
    /// OpenTelemetry profiles (protocol buffers, v1development of 1.11.0), by calling context;
    /// takes about five times as long
    Otlp,
    /// A flame graph (SVG) by the column that sorts the report; takes about five times as long
    Flamegraph,
    /// One page that opens offline: time, functions, source, call tree, which takes about five
    /// times as long; with --by object, type or field what lies where in memory
    Html,
}

impl Shape {
    /// Its name on the command line.
    pub fn name(self) -> String {
        self.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned())
    }

    /// Whether it shows source lines for any key of the rows.
    pub fn is_annotated(self) -> bool {
        !matches!(self, Shape::Text | Shape::Json | Shape::Csv)
    }

    /// Whether it shows calls.
    pub fn shows_calls(self) -> bool {
        matches!(self, Shape::Callgrind | Shape::Html) || self.is_of_contexts()
    }

    /// Whether it shows calling contexts and nothing else.
    pub fn is_of_contexts(self) -> bool {
        matches!(self, Shape::Firefox | Shape::Speedscope | Shape::Pprof | Shape::Otlp | Shape::Flamegraph)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(words)
    }

    fn run(words: &[&str]) -> Run {
        match parse(words).expect("a valid command line").command {
            Command::Count(count) => count.run,
            other => panic!("not count: {other:?}"),
        }
    }

    #[test]
    fn the_program_keeps_its_own_options() {
        let run = run(&["lightfoot", "count", "--top", "3", "prog", "--top", "4", "--", "-o", "x"]);
        assert_eq!(run.top, Some(3));
        assert_eq!(run.program, ["prog", "--top", "4", "--", "-o", "x"]);
    }

    #[test]
    fn a_double_dash_ends_our_options() {
        let run = run(&["lightfoot", "count", "--", "-prog", "--help"]);
        assert_eq!(run.program, ["-prog", "--help"]);
    }

    #[test]
    fn a_misspelt_option_is_not_a_program() {
        for words in [["lightfoot", "count", "--tpo", "prog"], ["lightfoot", "tool", "-x", "opcode-mix"]] {
            let said = parse(&words).unwrap_err();
            assert_eq!(said.kind(), clap::error::ErrorKind::UnknownArgument, "{said}");
        }
    }

    #[test]
    fn values_may_be_attached() {
        for words in [
            &["lightfoot", "count", "-oout", "--top=3", "prog", "-oother"] as &[_],
            &["lightfoot", "count", "-o", "out", "--top", "3", "prog", "-oother"],
            &["lightfoot", "count", "-o=out", "--top=3", "--", "prog", "-oother"],
        ] {
            let run = run(words);
            assert_eq!(run.output.as_deref(), Some("out".as_ref()), "{words:?}");
            assert_eq!((run.top, run.program), (Some(3), ["prog", "-oother"].map(OsString::from).to_vec()));
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }
}
