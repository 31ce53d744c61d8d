//! The options of the commands for the libraries, `index` and `tile`, and of `study`.

use super::machine_options::MachineOptions;
use super::shape::{DoctorFormat, Format};
use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use std::path::PathBuf;

/// Options of `study`.
#[derive(Debug, Args)]
pub struct Study {
    /// Study to run; without a name all of them, and a page with their results
    pub name: Option<String>,
    /// List the studies
    #[arg(long, conflicts_with = "name")]
    pub list: bool,
    /// Small inputs and few rounds: under three minutes each
    #[arg(long)]
    pub quick: bool,
    /// Folder for the results
    #[arg(short, long, value_name = "DIR", default_value = "results")]
    pub output: PathBuf,
    /// Largest array of the studies that scale with memory (bytes, or with K, M or G) [default:
    /// 512M, quick 8M]
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
    /// The algorithm; `empty` reads the queries and looks up nothing
    pub algorithm: String,
    /// Items in the structure
    #[arg(long)]
    pub items: usize,
    /// Memory block size for which the structure is built
    #[arg(long, default_value_t = 32)]
    pub block_bytes: usize,
    /// Lookups of a trial
    #[arg(long)]
    pub lookups: usize,
    /// Trials to run; the first one warms the caches
    #[arg(long)]
    pub trials: usize,
    /// Trials that are left out after the first
    #[arg(long, default_value_t = 0)]
    pub skip: usize,
}

/// Options of `kernel`.
#[derive(Debug, Args)]
pub struct Kernel {
    /// The kernel, such as `sort:radix`
    pub name: String,
    /// Passes of a round
    #[arg(long, default_value_t = 1)]
    pub passes: usize,
    /// Rounds
    #[arg(long, default_value_t = 1)]
    pub rounds: usize,
}

/// Options of `matches`.
#[derive(Debug, Args)]
pub struct Matches {
    /// The engine: a kernel of bit streams, `dfa` or `nfa`
    pub engine: String,
    /// The pattern
    pub pattern: String,
    /// The file that is searched
    pub file: PathBuf,
}

/// Options of `index`.
#[derive(Debug, Args)]
pub struct Index {
    /// The action.
    #[command(subcommand)]
    pub action: IndexAction,
}

/// Actions with an index.
#[derive(Debug, Subcommand)]
pub enum IndexAction {
    /// Build an index file from keys
    Build(IndexBuild),
    /// Answer queries from standard input
    Query(IndexQuery),
    /// Describe an index file, and check it
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
    /// The form of the keys
    #[arg(long, value_enum, default_value_t = KeyInput::Text)]
    pub input: KeyInput,
    /// The keys are sorted already: do not sort them, and refuse them if they are not
    #[arg(long)]
    pub sorted: bool,
    /// A layout instead of the planned one (see the library's list)
    #[arg(long, value_name = "NAME")]
    pub layout: Option<String>,
}

/// Options of `index query`.
#[derive(Debug, Args)]
pub struct IndexQuery {
    /// Index file
    pub index: PathBuf,
    /// What to answer for each key
    #[arg(long, value_enum, default_value_t = IndexOp::Rank)]
    pub op: IndexOp,
    /// The form of keys and answers
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

/// Forms of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum KeyInput {
    /// One key a line
    Text,
    /// Little-endian numbers; strings follow their 32-bit length
    Binary,
}

/// Answers for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum IndexOp {
    /// The number of smaller keys
    Rank,
    /// 1 if the key is in the index, else 0
    Contains,
    /// For two keys: the ranks of the first key not below the first one, and of the first key not
    /// below the second
    Range,
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
    pub hierarchy: MachineOptions,
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

    /// The name as a value of the option.
    pub fn name(self) -> &'static str {
        match self {
            ElementType::F32 => "f32",
            ElementType::F64 => "f64",
        }
    }
}
