//! The options of `merge`.

use super::value::{rows, Replaced};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Options of `merge`.
#[derive(Debug, Args)]
pub struct Merge {
    /// Reports of `count` or `cache`, as --format json wrote them
    #[arg(required = true, value_name = "REPORT")]
    pub reports: Vec<PathBuf>,
    /// What the merged report's numbers are, by which its rows are sorted and diff compares; every
    /// format has the others, too
    #[arg(long = "as", value_enum, value_name = "STATISTIC", default_value_t = Statistic::Sum)]
    pub statistic: Statistic,
    /// Column to sort the rows by, such as loads or l2_misses [default: instructions, or
    /// first-level misses]
    #[arg(long, value_name = "COLUMN")]
    pub sort: Option<String>,
    /// A report's file or folder OLD is NEW in the merged report; may be repeated. Without it,
    /// files that the last report does not have are those whose names fit
    #[arg(long, value_name = "OLD=NEW", value_parser = Replaced::parse)]
    pub map_path: Vec<Replaced>,
    /// OLD in a report's names of functions is NEW in the merged report; may be repeated
    #[arg(long, value_name = "OLD=NEW", value_parser = Replaced::parse)]
    pub map_name: Vec<Replaced>,
    /// Merge reports of different programs
    #[arg(long)]
    pub any_program: bool,
    /// Write here instead of to standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Shape of the answer
    #[arg(long, value_enum, default_value_t = MergeFormat::Text)]
    pub format: MergeFormat,
    /// Rows to show of each table; 0 shows all [default: 20 in text, 200 in html, all elsewhere]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = rows)]
    pub top: Option<usize>,
}

/// What becomes of the numbers of several reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Statistic {
    /// Of all reports together, as for the processes of a build
    Sum,
    /// Of the average report, as for repeated runs
    Mean,
    /// Of the report in the middle; of an even number of reports the lower one of the two there
    Median,
}

/// Formats of a merged report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MergeFormat {
    /// Tables for people
    Text,
    /// Everything, for programs; diff and merge read it
    Json,
    /// The rows, for spreadsheets
    Csv,
    /// One page that opens offline
    Html,
}
