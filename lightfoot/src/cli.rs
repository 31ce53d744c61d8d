//! The command line: what the user may say, and nothing about what it does.
//!
//! `count` and `cache` take everything after their first non-option as the program and its arguments, with or without
//! `--`, byte for byte (arguments need not be UTF-8). That is why the program is one trailing list: clap then never looks at what
//! belongs to the program. The price is that a misspelt option would be taken for a program, so [`refuse_option`] catches it.
//! Values are only shaped here; whether a preset or a geometry exists is said by `machine`.

use clap::{Args, Parser, Subcommand, ValueEnum};
use serde::Serialize;
use std::ffi::OsString;
use std::path::PathBuf;

/// Measures how programs use the memory hierarchy without disturbing them.
#[derive(Debug, Parser)]
#[command(name = "lightfoot", version, max_term_width = 100, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Count a program's instructions, blocks, loads and stores
    #[command(override_usage = "lightfoot count [OPTIONS] [--] PROGRAM [ARGUMENTS]...")]
    Count(Count),
    /// Count a program's misses in a simulated memory hierarchy
    #[command(override_usage = "lightfoot cache [OPTIONS] [--] PROGRAM [ARGUMENTS]...")]
    Cache(Cache),
    /// List the stock tools, or run a program under one
    #[command(override_usage = "lightfoot tool [OPTIONS] [NAME [--] PROGRAM [ARGUMENTS]...]")]
    Tool(Tool),
    /// Search files for lines that match a pattern, with ripgrep's flags and output
    #[command(disable_help_flag = true)]
    Grep(Grep),
    /// Build, query and inspect index files of sorted keys
    Index(Index),
    /// List and run the studies that reproduce published experiments on this machine
    Study(Study),
    /// Look items up with one of the paper's algorithms: what `study search-trees` measures
    #[command(hide = true)]
    Lookups(Lookups),
    /// Say what this machine can measure, what it cannot, why, and the fix
    Doctor(Doctor),
    /// Tile sizes for blocked matrices: two models, simulation and measurement side by side
    Tile(Tile),
    /// Run the paper's loops once, as a program to be measured
    #[command(hide = true)]
    TileLoop(TileLoop),
}

/// Options of `count`.
#[derive(Debug, Args)]
pub struct Count {
    /// What every command that runs a program takes.
    #[command(flatten)]
    pub run: Run,
}

/// Options of `cache`.
#[derive(Debug, Args)]
pub struct Cache {
    /// The machine to simulate.
    #[command(flatten)]
    pub hierarchy: Hierarchy,
    /// Also predict conditional branches (gshare, 2^14 counters, 12 outcomes); the run takes about five times as long
    #[arg(long)]
    pub branches: bool,
    /// Also count the dirty lines that caches write back; every reference is then recorded, so the run takes about ten times as long
    #[arg(long)]
    pub write_backs: bool,
    /// What every command that runs a program takes.
    #[command(flatten)]
    pub run: Run,
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
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM [ARGUMENTS]")]
    pub program: Vec<OsString>,
}

/// The simulated machine.
#[derive(Clone, Debug, Default, Args)]
pub struct Hierarchy {
    /// Machine to simulate: `host`, the name of a preset, or a TOML file
    #[arg(long, value_name = "host|PRESET|FILE", default_value = "host")]
    pub machine: OsString,
    /// First-level instruction cache, e.g. 32K,8,64
    #[arg(long, value_name = "SIZE,WAYS,LINE")]
    pub l1i: Option<String>,
    /// First-level data cache
    #[arg(long, value_name = "SIZE,WAYS,LINE")]
    pub l1d: Option<String>,
    /// Second-level cache
    #[arg(long, value_name = "SIZE,WAYS,LINE")]
    pub l2: Option<String>,
    /// Third-level cache
    #[arg(long, value_name = "SIZE,WAYS,LINE")]
    pub l3: Option<String>,
}

/// Options of every command that runs a program.
#[derive(Debug, Args)]
pub struct Run {
    /// What the rows of the table are
    #[arg(long, value_enum, default_value_t = By::Function)]
    pub by: By,
    /// A repeated string instruction (rep movs ...) counts once, or once per iteration as Valgrind counts
    #[arg(long, value_enum, default_value_t = Rep::Once)]
    pub rep: Rep,
    /// Leave address randomisation on (runs then no longer repeat exactly)
    #[arg(long)]
    pub aslr: bool,
    /// Count the processes that the program starts as well, and those that they start: one report for each, and their sum
    #[arg(long)]
    pub follow_children: bool,
    /// Run the program a second time, natively and with its output discarded, to report the slowdown
    #[arg(long)]
    pub compare_native: bool,
    /// Write the report here instead of to standard error
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Shape of the report
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Rows to show; 0 shows all [default: 20 in text, all elsewhere]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// The program and its arguments, passed on untouched
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required = true,
        value_name = "PROGRAM [ARGUMENTS]"
    )]
    pub program: Vec<OsString>,
}

/// Options of `grep`, which parses them itself: they override each other in their order.
#[derive(Debug, Args)]
pub struct Grep {
    /// Everything behind the command's name
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<OsString>,
}

/// Options of `study`.
#[derive(Debug, Args)]
pub struct Study {
    /// Study to run; without one the studies are listed
    pub name: Option<String>,
    /// Small inputs and few rounds: under two minutes
    #[arg(long)]
    pub quick: bool,
    /// Folder for the results
    #[arg(short, long, value_name = "DIR", default_value = "results")]
    pub output: PathBuf,
    /// Largest array of the studies that scale with memory (bytes, or with K, M or G) [default: 512M, quick 8M]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub max_bytes: Option<usize>,
}

/// A size such as 64M.
fn size(text: &str) -> Result<usize, String> {
    let (digits, shift) = match text.split_at_checked(text.len().saturating_sub(1)) {
        Some((digits, "K" | "k")) => (digits, 10),
        Some((digits, "M" | "m")) => (digits, 20),
        Some((digits, "G" | "g")) => (digits, 30),
        _ => (text, 0),
    };
    let number = digits.parse::<usize>().ok().and_then(|number| number.checked_mul(1 << shift));
    number.ok_or_else(|| String::from("expected bytes, or a number with K, M or G"))
}

/// Options of `lookups`.
#[derive(Debug, Args)]
pub struct Lookups {
    /// The algorithm; `empty` reads the queries and looks nothing up
    pub algorithm: String,
    /// Items in the structure
    #[arg(long)]
    pub items: usize,
    /// Memory block the structure is built for
    #[arg(long, default_value_t = 32)]
    pub block_bytes: usize,
    /// Lookups of a trial
    #[arg(long)]
    pub lookups: usize,
    /// Trials to run
    #[arg(long)]
    pub trials: usize,
}

/// Options of `index`.
#[derive(Debug, Args)]
pub struct Index {
    /// What to do with it.
    #[command(subcommand)]
    pub action: IndexAction,
}

/// What can be done with an index.
#[derive(Debug, Subcommand)]
pub enum IndexAction {
    /// Build an index file from keys
    Build(IndexBuild),
    /// Answer queries from standard input
    Query(IndexQuery),
    /// Say what an index file holds, and check it
    Inspect(IndexInspect),
}

/// Options of `index build`.
#[derive(Debug, Args)]
pub struct IndexBuild {
    /// File of keys; - is standard input
    pub keys: PathBuf,
    /// Index file to write
    #[arg(short, long, value_name = "INDEX")]
    pub output: PathBuf,
    /// Type of the keys: u32, i32, u64, i64, f32, f64 or bytes
    #[arg(long = "type", value_name = "TYPE", default_value = "u64")]
    pub kind: String,
    /// How the keys are given
    #[arg(long, value_enum, default_value_t = KeyInput::Text)]
    pub input: KeyInput,
    /// The keys are sorted already: do not sort them, and refuse them when they are not
    #[arg(long)]
    pub sorted: bool,
    /// A layout other than the planned one (see the library's list)
    #[arg(long, value_name = "NAME")]
    pub layout: Option<String>,
}

/// Options of `index query`.
#[derive(Debug, Args)]
pub struct IndexQuery {
    /// Index file
    pub index: PathBuf,
    /// What to answer about each key
    #[arg(long, value_enum, default_value_t = IndexOp::Rank)]
    pub op: IndexOp,
    /// How keys are given and answers are written
    #[arg(long, value_enum, default_value_t = KeyInput::Text)]
    pub input: KeyInput,
}

/// Options of `index inspect`.
#[derive(Debug, Args)]
pub struct IndexInspect {
    /// Index file
    pub index: PathBuf,
    /// Shape of the answer
    #[arg(long, value_enum, default_value_t = DoctorFormat::Text)]
    pub format: DoctorFormat,
}

/// How keys are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum KeyInput {
    /// One key a line
    Text,
    /// Little-endian numbers; strings behind a 32-bit length
    Binary,
}

/// What is answered about a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum IndexOp {
    /// The number of smaller keys
    Rank,
    /// 1 when the key is there, else 0
    Contains,
    /// For two keys: the ranks of the first key not below the first and of the first not below the second
    Range,
}

/// Options of `doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Shape of the answer
    #[arg(long, value_enum, default_value_t = DoctorFormat::Text)]
    pub format: DoctorFormat,
}

/// Options of `tile`.
#[derive(Clone, Debug, Args)]
pub struct Tile {
    /// Rows and columns of the matrices
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(8..=8192))]
    pub n: u32,
    /// Type of the elements
    #[arg(long = "type", value_enum, default_value_t = ElementType::F64)]
    pub element: ElementType,
    /// Mispredictions for each end of an innermost loop, from 0 to 1: the paper's branch term
    #[arg(long, value_name = "P", default_value_t = 0.0)]
    pub branches: f64,
    /// The machine to plan for and to simulate
    #[command(flatten)]
    pub hierarchy: Hierarchy,
    /// Do not measure: models and simulation only
    #[arg(long)]
    pub no_measure: bool,
    /// Write a plot (SVG) here
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Shape of the answer
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
}

/// Options of `tile-loop`.
#[derive(Clone, Debug, Args)]
pub struct TileLoop {
    /// Version of the loops, by name
    #[arg(long = "loop", default_value = "MBaLt")]
    pub version: String,
    /// Rows and columns
    #[arg(long)]
    pub n: u32,
    /// T
    #[arg(long)]
    pub tile: u32,
    /// Type of the elements
    #[arg(long = "type", value_enum, default_value_t = ElementType::F64)]
    pub element: ElementType,
    /// How often the product is added
    #[arg(long, default_value_t = 1)]
    pub repeat: u32,
}

/// Types of matrix elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ElementType {
    /// Single precision
    F32,
    /// Double precision
    F64,
}

impl ElementType {
    /// Bytes of an element.
    pub fn bytes(self) -> usize {
        match self {
            ElementType::F32 => 4,
            ElementType::F64 => 8,
        }
    }

    /// As the option says it.
    pub fn name(self) -> &'static str {
        match self {
            ElementType::F32 => "f32",
            ElementType::F64 => "f64",
        }
    }
}

/// What a row of the table stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// A function of a library
    Function,
    /// An executable or shared library
    Library,
    /// An instruction's mnemonic
    Opcode,
}

/// How a repeated string instruction counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Rep {
    /// As one instruction
    Once,
    /// As one instruction per iteration
    Iterations,
}

/// Shape of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table for people
    Text,
    /// Everything, for programs
    Json,
    /// The table, for spreadsheets
    Csv,
}

/// Shape of the doctor's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DoctorFormat {
    /// For people
    Text,
    /// For programs
    Json,
}

/// A misspelt option in the place of `program` (with its arguments), said as such: `all` is the whole command line.
///
/// # Errors
/// When the program starts with `-` and no `--` stands before it.
pub fn refuse_option(program: &[OsString], all: &[OsString]) -> anyhow::Result<()> {
    let before = all.len().checked_sub(program.len() + 1).map(|index| all[index].as_os_str());
    let announced = before == Some("--".as_ref());
    if program[0].as_encoded_bytes().starts_with(b"-") && !announced {
        anyhow::bail!(
            "there is no option {}: see 'lightfoot {} --help', or put -- before a program of that name",
            program[0].display(),
            all.get(1).map(|c| c.display().to_string()).unwrap_or_default()
        );
    }
    Ok(())
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
        let all = ["lightfoot", "count", "--", "-prog", "--help"].map(OsString::from);
        assert!(refuse_option(&run.program, &all).is_ok());
    }

    #[test]
    fn a_misspelt_option_is_not_a_program() {
        let words = ["lightfoot", "count", "--tpo", "prog"];
        let run = run(&words);
        let said = refuse_option(&run.program, &words.map(OsString::from)).unwrap_err().to_string();
        assert!(said.contains("--tpo"), "{said}");
    }

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }
}
