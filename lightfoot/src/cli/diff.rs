//! Options of `diff`.

use super::shape::DiffFormat;
use super::value::{rows, Replaced};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Options of `diff`.
#[derive(Debug, Args)]
pub struct Diff {
    /// Report from before, as --format json wrote it
    pub before: PathBuf,
    /// Report from after
    pub after: PathBuf,
    /// The key of the rows; lines need reports that were made with --by line
    #[arg(long, value_enum, default_value_t = DiffBy::Function)]
    pub by: DiffBy,
    /// Columns to compare [default: instructions; of cache also l1d_misses, l2_misses and
    /// l3_misses]
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    pub metric: Vec<String>,
    /// End with status 1 when a total has grown by more than this, such as 2%
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub fail_above: Option<f64>,
    /// Leave out functions, libraries and files with this in their name, from totals too; may be
    /// repeated
    #[arg(long, value_name = "TEXT")]
    pub ignore: Vec<String>,
    /// The first report's file or folder OLD is NEW in the second one; may be repeated. Without
    /// it, files that only one report has are compared if their names fit
    #[arg(long, value_name = "OLD=NEW", value_parser = Replaced::parse)]
    pub map_path: Vec<Replaced>,
    /// OLD in the first report's names of functions is NEW in the second one's; may be repeated
    #[arg(long, value_name = "OLD=NEW", value_parser = Replaced::parse)]
    pub map_name: Vec<Replaced>,
    /// Leave out rows that have changed by at most this share of the first report's total in every
    /// column, such as 0.1%
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub noise: Option<f64>,
    /// Compare reports of different programs
    #[arg(long)]
    pub any_program: bool,
    /// Shape of the answer
    #[arg(long, value_enum, default_value_t = DiffFormat::Text)]
    pub format: DiffFormat,
    /// Rows to show; 0 shows all [default: 20 in text and Markdown, all elsewhere]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = rows)]
    pub top: Option<usize>,
}

/// Keys of the rows of `diff`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DiffBy {
    /// A function of a library
    Function,
    /// A line of source
    Line,
}

/// A share such as 2% or 0.5.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>();
    let number = number.ok().filter(|share| share.is_finite() && *share >= 0.0);
    number.ok_or_else(|| String::from("expected a percentage such as 2%"))
}
