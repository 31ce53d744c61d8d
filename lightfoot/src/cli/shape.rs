//! Shapes of answers.

use clap::ValueEnum;

/// Shape of an answer.
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
