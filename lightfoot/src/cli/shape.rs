//! Formats of answers.

use clap::ValueEnum;

/// Formats of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table for people
    Text,
    /// Everything, for programs
    Json,
    /// The table, for spreadsheets
    Csv,
}

/// Formats of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DiffFormat {
    /// A table for people
    Text,
    /// Everything, for programs
    Json,
    /// The table, for spreadsheets
    Csv,
    /// The table, for comments on a change
    Markdown,
}

/// Formats of the doctor's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DoctorFormat {
    /// For people
    Text,
    /// For programs
    Json,
}
