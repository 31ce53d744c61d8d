//! The options of `heap`.

use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// Options of `heap`.
#[derive(Debug, Args)]
pub struct Heap {
    /// Column to sort the places by
    #[arg(long, value_enum, default_value_t = HeapSort::Total)]
    pub sort: HeapSort,
    /// Tell places apart by this many calls, the innermost first
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = frames)]
    pub frames: usize,
    /// Write the report here instead of to standard error
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Shape of the report
    #[arg(long, value_enum, default_value_t = HeapFormat::Text)]
    pub format: HeapFormat,
    /// Places to show; 0 shows all [default: 10 in text, all elsewhere]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = super::rows)]
    pub top: Option<usize>,
    /// The program and its arguments, passed on untouched
    #[arg(trailing_var_arg = true, required = true, value_name = "PROGRAM [ARGUMENTS]")]
    pub program: Vec<OsString>,
}

/// Columns by which places are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HeapSort {
    /// Bytes allocated
    Total,
    /// Bytes at the time at which the program had most
    Peak,
    /// Blocks allocated
    Blocks,
    /// Bytes that were read
    Reads,
    /// Bytes that were written
    Writes,
    /// Mean life of a block
    Lifetime,
}

/// Formats of the report of a heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HeapFormat {
    /// A table for people
    Text,
    /// Everything, for programs
    Json,
    /// The table, for spreadsheets
    Csv,
    /// For DHAT's viewer, `dh_view.html`
    Dhat,
}

/// A number of calls.
fn frames(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=500).contains(number));
    number.ok_or_else(|| String::from("expected 1 to 500"))
}
