//! The options of `show`.

use super::traces::amount;
use clap::{Args, ValueEnum};
use measure::trace::Unit;
use std::path::PathBuf;

/// Options of `show`.
#[derive(Debug, Args)]
pub struct Show {
    /// Trace file that `lightfoot trace` wrote, or is writing
    pub file: PathBuf,
    /// Comma-separated metrics to show, in this order; * and ? stand for any text and any character
    /// [default: all]
    #[arg(long, value_name = "METRICS")]
    pub metrics: Option<String>,
    /// Begin here: a time, instructions or cycles as the trace has them (20ms, 1e6instructions), or
    /// a share of the trace (25%)
    #[arg(long, value_name = "PLACE", value_parser = place)]
    pub from: Option<Place>,
    /// End here, written as for --from
    #[arg(long, value_name = "PLACE", value_parser = place)]
    pub to: Option<Place>,
    /// Join N records to a row [default: in tables so many that 40 rows suffice; elsewhere 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub every: Option<u32>,
    /// Show only the N rows with the most of the first metric, the most first
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub top: Option<u32>,
    /// Show records while the trace is being written, until it is finished
    #[arg(long, conflicts_with_all = ["from", "to", "top", "output", "format"])]
    pub follow: bool,
    /// Write here instead of to standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Format
    #[arg(long, value_enum, default_value_t = ShowFormat::Table)]
    pub format: ShowFormat,
}

/// Formats of `show`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ShowFormat {
    /// A summary of each metric, the phases, and the records
    Table,
    /// One page that opens offline: a panel for each metric, with phases and numbers
    Html,
    /// The panels as a picture
    Svg,
    /// A row per record, for spreadsheets
    Csv,
    /// Everything, for programs
    Json,
    /// Counter tracks for the Firefox Profiler
    Firefox,
    /// Counters, phases and functions for <https://ui.perfetto.dev>
    Perfetto,
}

/// A place in a trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Place {
    /// In a unit.
    At(u64, Unit),
    /// A share of the trace.
    Share(f64),
}

fn place(text: &str) -> Result<Place, String> {
    let expected = || String::from("expected a place such as 20ms, 1e6instructions or 25%");
    if let Some(percent) = text.strip_suffix('%') {
        let share = percent.trim().parse::<f64>().map_err(|_| expected())? / 100.0;
        return (0.0..=1.0).contains(&share).then_some(Place::Share(share)).ok_or_else(expected);
    }
    let (at, unit) = amount(text).map_err(|_| expected())?;
    (0.0..=1e18).contains(&at).then_some(Place::At(at.round() as u64, unit)).ok_or_else(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_have_a_unit() {
        assert_eq!(place("20ms"), Ok(Place::At(20_000_000, Unit::Nanoseconds)));
        assert_eq!(place("0instructions"), Ok(Place::At(0, Unit::Instructions)));
        assert_eq!(place("25%"), Ok(Place::Share(0.25)));
        for text in ["20", "-1ms", "120%", "x%", "1e30s", ""] {
            assert!(place(text).unwrap_err().contains("25%"), "{text}");
        }
    }
}
