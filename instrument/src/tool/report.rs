//! Reports: the results of a tool, as numbers with names.
//!
//! A report has totals and, for tools that count by something, a table.
//! [`Display`](std::fmt::Display) prints plain text; callers that want another format use the
//! numbers.

use std::fmt;

/// A row of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The name of the row, for example an opcode or a module.
    pub name: String,
    /// One number per column.
    pub values: Vec<u64>,
}

/// The results of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Numbers that describe the whole run, with their names.
    pub totals: Vec<(String, u64)>,
    /// Names of the table's columns of numbers.
    pub columns: Vec<String>,
    /// The rows of the table.
    pub rows: Vec<Row>,
}

impl Report {
    /// A report of totals only.
    pub fn totals<const N: usize>(totals: [(&str, u64); N]) -> Report {
        let totals = totals.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
        Report { totals, ..Report::default() }
    }

    /// Adds a table to the report.
    pub fn with_table<const N: usize>(self, columns: [&str; N], rows: Vec<Row>) -> Report {
        Report { columns: columns.map(str::to_string).to_vec(), rows, ..self }
    }

    /// The total named `name`; 0 if there is none.
    pub fn total(&self, name: &str) -> u64 {
        self.totals.iter().find(|total| total.0 == name).map_or(0, |total| total.1)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.totals {
            writeln!(formatter, "{value:>20}  {name}")?;
        }
        if self.rows.is_empty() {
            return Ok(());
        }
        writeln!(formatter)?;
        for column in &self.columns {
            write!(formatter, "{column:>20}")?;
        }
        writeln!(formatter)?;
        for row in &self.rows {
            for value in &row.values {
                write!(formatter, "{value:>20}")?;
            }
            writeln!(formatter, "  {}", row.name)?;
        }
        Ok(())
    }
}
