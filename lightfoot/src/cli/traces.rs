//! The options of `trace`, and of the commands that read traces: `align`, `perturb` and `plan`.

use super::machine_options::MachineOptions;
use super::shape::Format;
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// Options of `trace`.
#[derive(Debug, Args)]
pub struct Trace {
    /// Interval: a time (10ms), or instructions or cycles (1e6instructions)
    #[arg(long, value_name = "INTERVAL", default_value = "10ms", value_parser = interval)]
    pub every: measure::trace::Interval,
    /// Comma-separated hardware metrics [default: all that the engine has]
    #[arg(long, value_name = "EVENTS")]
    pub hardware: Option<String>,
    /// Comma-separated software metrics: fn:NAME (all functions of that name; fn:NAME@* each,
    /// fn:FILE!NAME those of a library or source file), var:NAME, addr:START-END, line:FILE:LINE
    #[arg(long, value_name = "METRICS")]
    pub software: Option<String>,
    /// Software metrics that a simulation counts without charging the program
    #[arg(long, alias = "ghost", value_name = "METRICS")]
    pub uncharged: Option<String>,
    /// How the program runs and is counted [default: simulated for an interval of instructions or
    /// cycles, else probe if there are software metrics, else native]
    #[arg(long, value_enum)]
    pub engine: Option<TraceEngine>,
    /// What reads the counters of a native run
    #[arg(long, value_enum, default_value_t = TraceCollector::Host)]
    pub collector: TraceCollector,
    /// Tell records apart by more than metrics: function, the instructions of each function (under
    /// the engine: simulated or jit)
    #[arg(long, value_name = "KEY", value_parser = ["function"])]
    pub by: Option<String>,
    /// Placement of software counters: packed, line, page, or seed:N
    #[arg(long, value_name = "LAYOUT", default_value = "packed", value_parser = layout)]
    pub layout: measure::trace::Layout,
    /// The machine to simulate
    #[command(flatten)]
    pub hierarchy: MachineOptions,
    /// Simulate an operating system's interrupts, placed by this seed
    #[arg(long, value_name = "SEED")]
    pub noise: Option<u64>,
    /// Runs, each into a file of its own
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub runs: u32,
    /// Bind a native run to this processor
    #[arg(long, value_name = "CPU")]
    pub pin: Option<u32>,
    /// Leave address randomisation on
    #[arg(long)]
    pub aslr: bool,
    /// File to write; until it is complete, records are kept in FILE.partial, which remains if the
    /// measurement is killed
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Format of the file
    #[arg(long, value_enum, default_value_t = TraceFormat::Trace)]
    pub format: TraceFormat,
    /// Trace the running process PID instead of starting a program, and leave it as it was
    #[arg(long, value_name = "PID", conflicts_with_all = ["program", "aslr", "pin", "runs"])]
    pub pid: Option<i32>,
    /// With --pid: trace for this time, such as 2s or 500ms [default: until Ctrl-C, or until the
    /// process ends]
    #[arg(long = "for", value_name = "TIME", requires = "pid", value_parser = super::running::time)]
    pub window: Option<std::time::Duration>,
    /// The program and its arguments, passed on untouched
    #[arg(trailing_var_arg = true, required_unless_present = "pid", value_name = "PROGRAM [ARGUMENTS]")]
    pub program: Vec<OsString>,
}

/// Formats of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TraceFormat {
    /// The trace file, which the other commands read
    Trace,
    /// A row per record, for spreadsheets
    Csv,
    /// Everything, for programs
    Json,
    /// Counter tracks for the Firefox Profiler
    Firefox,
}

/// Ways to run and count a program that is traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TraceEngine {
    /// The program runs by itself; the kernel counts
    Native,
    /// The program runs by itself; chosen functions count their calls
    Probe,
    /// The program runs by itself; the kernel's breakpoints count calls of chosen functions, with a
    /// trap for each
    Uprobe,
    /// The engine runs the program, and counts software metrics in translated code
    Jit,
    /// The engine runs the program, with a simulated machine
    Simulated,
}

/// Readers of counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TraceCollector {
    /// Lightfoot, from outside the program
    Host,
    /// The kernel, in the program's threads: no software metrics, and the least cost
    Kernel,
    /// A timer's signal handler in the program, which disturbs it (for comparison)
    Signal,
}

/// A number with its unit, such as 10ms or 1e6instructions.
pub(super) fn amount(text: &str) -> Result<(f64, measure::trace::Unit), String> {
    use measure::trace::Unit;
    let expected = || String::from("expected a number with ns, us, ms, s, instructions or cycles");
    let units = [
        ("instructions", Unit::Instructions, 1.0),
        ("cycles", Unit::Cycles, 1.0),
        ("ns", Unit::Nanoseconds, 1.0),
        ("us", Unit::Nanoseconds, 1e3),
        ("ms", Unit::Nanoseconds, 1e6),
        ("s", Unit::Nanoseconds, 1e9),
    ];
    let unit = units.into_iter().find_map(|(name, unit, each)| Some((text.strip_suffix(name)?, unit, each)));
    let (digits, unit, each) = unit.ok_or_else(expected)?;
    Ok((digits.trim().parse::<f64>().map_err(|_| expected())? * each, unit))
}

/// An interval such as 10ms or 1e6instructions.
fn interval(text: &str) -> Result<measure::trace::Interval, String> {
    let (length, unit) = amount(text)?;
    if !(1.0..=1e18).contains(&length) {
        return Err("expected an interval from 1 to 1e18".into());
    }
    Ok(measure::trace::Interval { length: length.round() as u64, unit })
}

/// The placement of counters.
fn layout(text: &str) -> Result<measure::trace::Layout, String> {
    use measure::trace::Layout;
    let seed = |text: &str| {
        text.strip_prefix("seed").and_then(|rest| rest.trim_start_matches([':', '=', ' ']).parse().ok())
    };
    match text {
        "packed" => Ok(Layout::Packed),
        "line" => Ok(Layout::Line),
        "page" => Ok(Layout::Page),
        _ => seed(text).map(Layout::Seed).ok_or_else(|| "expected packed, line, page or seed:N".into()),
    }
}

/// Options of `align`.
#[derive(Debug, Args)]
pub struct Align {
    /// Trace file
    pub first: PathBuf,
    /// Trace file
    pub second: PathBuf,
    /// Comma-separated metrics to align by [default: all hardware metrics that both have]
    #[arg(long, value_name = "METRICS")]
    pub metrics: Option<String>,
    /// How far the path may deviate from the straight line, as a share of the longer trace; 1 is no
    /// limit
    #[arg(long, value_name = "SHARE", default_value_t = 1.0)]
    pub band: f64,
    /// Write a plot of the path (SVG) here
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// Write the answer here instead of to standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Format of the answer; CSV is the path
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
}

/// Options of `perturb`.
#[derive(Debug, Args)]
pub struct Perturb {
    /// Traces without instrumentation, five or more
    #[arg(long, value_name = "TRACE", num_args = 1.., required = true)]
    pub baseline: Vec<PathBuf>,
    /// Traces with instrumentation, five or more
    #[arg(long, value_name = "TRACE", num_args = 1.., required = true)]
    pub run: Vec<PathBuf>,
    /// How often undisturbed programs may be called disturbed, over all comparisons
    #[arg(long, value_name = "P", default_value_t = 0.05)]
    pub alpha: f64,
    /// Smaller differences of a correlation do not matter
    #[arg(long, value_name = "RHO", default_value_t = 0.1)]
    pub effect: f64,
    /// How far alignments may deviate from the straight line, as a share of the longer trace; 1 is
    /// no limit
    #[arg(long, value_name = "SHARE", default_value_t = 0.1)]
    pub band: f64,
    /// Seed of permutations, if there are too many to list
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Only compare pairs of metrics within runs, and align nothing
    #[arg(long)]
    pub inner: bool,
    /// End with status 1 if this is the verdict, or a worse one
    #[arg(long, value_enum, value_name = "VERDICT")]
    pub fail_on: Option<FailOn>,
    /// Write a heat map (SVG) here
    #[arg(long, value_name = "FILE")]
    pub heat_map: Option<PathBuf>,
    /// Write the answer here instead of to standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Format of the answer
    #[arg(long, value_enum, default_value_t = PerturbFormat::Text)]
    pub format: PerturbFormat,
}

/// Formats of the verdicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PerturbFormat {
    /// For people: what is disturbed comes first
    Text,
    /// Everything, for programs
    Json,
    /// A row a comparison, for spreadsheets
    Csv,
    /// One page that opens offline, with the heat map
    Html,
}

/// Options of `plan`.
#[derive(Debug, Args)]
pub struct Plan {
    /// Comma-separated software metrics: fn:NAME (all functions of that name; fn:NAME@* each,
    /// fn:FILE!NAME those of a library or source file), var:NAME, addr:START-END, line:FILE:LINE
    #[arg(long, value_name = "METRICS")]
    pub metrics: String,
    /// The most runs of the program, including baselines
    #[arg(long, value_name = "RUNS")]
    pub budget: u32,
    /// Runs of each set, and baselines; with fewer than six, pairs cannot be compared
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeats: u32,
    /// Comma-separated counter layouts to try: packed, line, page, seed:N
    #[arg(long, value_name = "LAYOUTS", default_value = "packed,line", value_delimiter = ',', value_parser = layout)]
    pub layouts: Vec<measure::trace::Layout>,
    /// Interval: a time (10ms), or instructions or cycles (1e6instructions)
    #[arg(long, value_name = "INTERVAL", default_value = "1e6instructions", value_parser = interval)]
    pub every: measure::trace::Interval,
    /// Comma-separated hardware metrics [default: all that the engine has]
    #[arg(long, value_name = "EVENTS")]
    pub hardware: Option<String>,
    /// How the program runs and is counted
    #[arg(long, value_enum, default_value_t = TraceEngine::Simulated)]
    pub engine: TraceEngine,
    /// The machine to simulate
    #[command(flatten)]
    pub hierarchy: MachineOptions,
    /// Write the plan here instead of to standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Format of the plan
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// The program and its arguments, passed on untouched
    #[arg(trailing_var_arg = true, required = true, value_name = "PROGRAM [ARGUMENTS]")]
    pub program: Vec<OsString>,
}

/// Verdicts that a script can fail on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// Something was disturbed
    Disturbed,
    /// Something was disturbed, or the runs do not suffice to tell
    CannotTell,
}
