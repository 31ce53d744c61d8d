//! The options of `bench`, and of the processes that it counts benchmarks in.

use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// Options of `bench`.
#[derive(Debug, Args)]
pub struct Bench {
    /// Parts of the names of benchmarks to count [default: all]
    #[arg(value_name = "NAME")]
    pub filters: Vec<String>,
    /// Names are whole names
    #[arg(long)]
    pub exact: bool,
    /// List the benchmarks instead of counting them
    #[arg(long)]
    pub list: bool,
    /// Package whose benchmarks are built; may be repeated
    #[arg(short, long, value_name = "PACKAGE")]
    pub package: Vec<String>,
    /// Program of benchmarks to build, as in [[bench]]; may be repeated [default: all]
    #[arg(long, value_name = "NAME")]
    pub bench: Vec<String>,
    /// Features to build with
    #[arg(long, value_name = "FEATURES")]
    pub features: Option<String>,
    /// Cargo.toml of the package or workspace
    #[arg(long, value_name = "FILE")]
    pub manifest_path: Option<PathBuf>,
    /// Another option for cargo bench, such as --cargo=--offline; may be repeated
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    pub cargo: Vec<String>,
    /// Program that is built already: one of benchmarks, or any with marked regions, each of which
    /// is a benchmark; may be repeated. Nothing is built
    #[arg(long, value_name = "FILE", conflicts_with_all = ["package", "bench", "features", "manifest_path", "cargo"])]
    pub program: Vec<PathBuf>,
    /// Machine whose caches are simulated: a name that `lightfoot machines` lists, or a TOML file;
    /// `host` differs between machines
    #[arg(long, value_name = "PRESET|FILE|host", default_value = "zen4")]
    pub machine: OsString,
    /// Count instructions, loads and stores alone, which takes less time
    #[arg(long)]
    pub no_caches: bool,
    /// Show the programs this processor, as count does: routines that are picked by the processor
    /// are then the same on every machine
    #[arg(long, value_name = "NAME")]
    pub virtual_cpu: Option<String>,
    /// Leave out the call that warms up, and begin each benchmark with empty caches
    #[arg(long)]
    pub cold: bool,
    /// Compare with this baseline [default: the last run]
    #[arg(long, value_name = "NAME")]
    pub baseline: Option<String>,
    /// Save the results as a baseline of this name
    #[arg(long, value_name = "NAME")]
    pub save_baseline: Option<String>,
    /// Folder of baselines [default: lightfoot-bench in cargo's target folder]
    #[arg(long, value_name = "DIR")]
    pub baselines: Option<PathBuf>,
    /// End with status 1 when an event of a benchmark grows beyond this, such as instructions=+1%
    /// or l1d=+50; may be repeated
    #[arg(long, value_name = "EVENT=+GROWTH", value_parser = limit)]
    pub limit: Vec<Limit>,
    /// Processes that count at a time; no number depends on it [default: one for each processor]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=512))]
    pub jobs: Option<u16>,
    /// Shape of the answer
    #[arg(long, value_enum, default_value_t = BenchFormat::Text)]
    pub format: BenchFormat,
    /// File for the answer [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Also write the answer in another shape, such as markdown=summary.md; may be repeated
    #[arg(long, value_name = "FORMAT=FILE", value_parser = also)]
    pub also: Vec<(BenchFormat, PathBuf)>,
    /// Folder for an HTML page of each benchmark: functions, source, calls; each is run once more,
    /// at a fifth of the speed
    #[arg(long, value_name = "DIR")]
    pub html: Option<PathBuf>,
    /// Write the headers for C and C++ to this folder instead of counting
    #[arg(long, value_name = "DIR")]
    pub headers: Option<PathBuf>,
}

/// Formats of the answer of `bench`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BenchFormat {
    /// A line for each benchmark
    Text,
    /// All events of each benchmark, for people
    Details,
    /// Everything, for programs
    Json,
    /// A table for a pull request: what changed, then everything
    Markdown,
    /// The lines, and annotations for GitHub's checks
    Github,
}

/// How much an event may grow.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// As it was given.
    pub text: String,
    /// The event's field in reports, such as `l1d_misses`.
    pub event: &'static str,
    /// The growth that is allowed.
    pub growth: Growth,
}

/// An allowed growth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Growth {
    /// Percent of the count before.
    Percent(f64),
    /// Events.
    Events(u64),
}

/// Events by the names that limits take: the short one, and the field in reports.
pub const EVENTS: &[(&str, &str)] = &[
    ("instructions", "instructions"),
    ("loads", "loads"),
    ("stores", "stores"),
    ("l1i", "l1i_misses"),
    ("l1d", "l1d_misses"),
    ("l2", "l2_misses"),
    ("l3", "l3_misses"),
    ("dtlb", "dtlb_misses"),
    ("cycles", "estimated_cycles"),
];

/// Reads `instructions=+1%`.
fn limit(text: &str) -> Result<Limit, String> {
    let expected = "expected EVENT=+GROWTH such as instructions=+1% or l1d=+50";
    let (name, growth) = text.split_once('=').ok_or(expected)?;
    let found = EVENTS.iter().find(|(short, field)| *short == name || *field == name);
    let Some((_, event)) = found else {
        let known: Vec<&str> = EVENTS.iter().map(|(short, _)| *short).collect();
        return Err(format!("expected an event before the =, one of {}", known.join(", ")));
    };
    let number = growth.strip_prefix('+').ok_or(expected)?;
    let growth = match number.strip_suffix('%') {
        Some(percent) => percent
            .trim()
            .parse()
            .ok()
            .filter(|share: &f64| share.is_finite() && *share >= 0.0)
            .map(Growth::Percent),
        None => number.parse().ok().map(Growth::Events),
    };
    Ok(Limit { text: text.to_owned(), event, growth: growth.ok_or(expected)? })
}

/// Reads `markdown=summary.md`.
fn also(text: &str) -> Result<(BenchFormat, PathBuf), String> {
    let expected =
        "expected FORMAT=FILE with text, details, json, markdown or github, such as markdown=summary.md";
    let (name, file) = text.split_once('=').filter(|(_, file)| !file.is_empty()).ok_or(expected)?;
    let format = BenchFormat::from_str(name, false).map_err(|_| expected)?;
    Ok((format, file.into()))
}

/// Options of `bench-worker`.
#[derive(Debug, Args)]
pub struct BenchWorker {
    /// The machine, as for bench
    #[arg(long)]
    pub machine: Option<OsString>,
    /// The processor, as for bench
    #[arg(long)]
    pub virtual_cpu: Option<String>,
    /// Whether caches are emptied before each benchmark
    #[arg(long)]
    pub cold: bool,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, required = true)]
    pub program: Vec<OsString>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_or_refused() {
        let read = |text: &str| limit(text).map(|limit| (limit.event, limit.growth));
        assert_eq!(read("instructions=+1%"), Ok(("instructions", Growth::Percent(1.0))));
        assert_eq!(read("l1d=+0.5%"), Ok(("l1d_misses", Growth::Percent(0.5))));
        assert_eq!(read("estimated_cycles=+20"), Ok(("estimated_cycles", Growth::Events(20))));
        for wrong in ["", "instructions", "instructions=1%", "l1d=+x", "l1d=+-1%", "l1d=+infinity%"] {
            assert!(read(wrong).unwrap_err().contains("expected "), "{wrong}");
        }
        assert!(read("l1=+1%").unwrap_err().contains("l1i, l1d"));
    }

    #[test]
    fn further_shapes_are_read_or_refused() {
        assert_eq!(also("markdown=a=b"), Ok((BenchFormat::Markdown, "a=b".into())));
        for wrong in ["markdown", "markdown=", "html=x"] {
            assert!(also(wrong).unwrap_err().starts_with("expected FORMAT=FILE"), "{wrong}");
        }
    }
}
