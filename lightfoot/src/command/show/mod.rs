//! `lightfoot show`: shows a trace, or follows one while it is written.

mod follow;

use super::trace_file::read;
use crate::cli::{Place, Show, ShowFormat, TraceFormat};
use crate::trace::format::write;
use crate::trace::partial::partial;
use crate::trace::show::{excerpt, joined, largest, page, perfetto, picture, selected, table, Shown};
use anyhow::Result;
use measure::trace::{Trace, Unit};
use present::exit::{Failure, USAGE};
use present::output::{print, Destination};
use present::terminal::Page;
use std::ops::Range;
use std::path::Path;

/// Rows of a table, unless --every says how many records a row joins.
const ROWS: usize = 40;

pub(super) fn run(options: &Show) -> Result<u8> {
    if options.follow {
        return follow::follow(options);
    }
    let destination = options.output.as_deref().map(|path| Destination::new(Some(path))).transpose()?;
    let shown = shown(options)?;
    let out = match options.format {
        ShowFormat::Table => {
            let page = if destination.is_some() { Page::PLAIN } else { Page::of_stdout() };
            let every = every(options, shown.trace.records.len());
            table(&shown, &rows(options, &shown.trace, every), every, &page)
        }
        ShowFormat::Csv => String::from_utf8(write(&exact(options, &shown.trace), TraceFormat::Csv)?)?,
        ShowFormat::Json => {
            // The fields of the trace, with one more.
            let mut out = String::from_utf8(write(&exact(options, &shown.trace), TraceFormat::Json)?)?;
            out.truncate(out.len() - 1);
            out + &format!(",\"phases\":{}}}\n", serde_json::to_string(&shown.phases)?)
        }
        _ if options.top.is_some() => {
            return refuse("--top picks rows: it is for --format table, csv and json".into());
        }
        ShowFormat::Html => page(&self::every_record(options, shown))?,
        ShowFormat::Svg => picture(&self::every_record(options, shown)),
        ShowFormat::Perfetto => perfetto(&self::every_record(options, shown)).to_string() + "\n",
        ShowFormat::Firefox => {
            String::from_utf8(write(&every_record(options, shown).trace, TraceFormat::Firefox)?)? + "\n"
        }
    };
    match destination {
        Some(destination) => destination.write(out)?,
        None => print(&out)?,
    }
    Ok(0)
}

fn refuse<T>(sentence: String) -> Result<T> {
    Err(Failure { status: USAGE, sentence }.into())
}

/// The part of the file that the options name, with its phases.
fn shown(options: &Show) -> Result<Shown> {
    let path = &options.file;
    let growing = partial(path);
    if !path.exists() && growing.exists() {
        return refuse(format!(
            "{} is not finished: show {} has its records so far, and --follow those to come",
            path.display(),
            growing.display()
        ));
    }
    let trace = read(path)?;
    if trace.records.is_empty() {
        return refuse(format!(
            "{} has no records: nothing was counted, or the file was cut before the first one",
            path.display()
        ));
    }
    let in_file =
        |error: anyhow::Error| Failure { status: USAGE, sentence: format!("{}: {error}", path.display()) };
    let columns = columns(options, &trace).map_err(in_file)?;
    let range = range(options, &trace)?;
    let trace = excerpt(trace, &columns, &range).map_err(in_file)?;
    Ok(Shown::new(path.display().to_string(), trace))
}

/// The metrics that the user named, or all.
fn columns(options: &Show, trace: &Trace) -> Result<Vec<usize>> {
    match &options.metrics {
        Some(list) => selected(trace, list),
        None => Ok((0..trace.header.metrics.len()).collect()),
    }
}

/// The range of --from and --to in the unit of the trace.
fn range(options: &Show, trace: &Trace) -> Result<Range<u64>> {
    let last = trace.records.last().map_or(0, |last| last.start.saturating_add(last.dt));
    let unit = trace.header.interval.unit;
    let at = |option: &str, place: Option<Place>, default: u64| match place {
        None => Ok(default),
        Some(Place::Share(share)) => Ok((share * last as f64) as u64),
        Some(Place::At(at, given)) if given == unit => Ok(at),
        Some(Place::At(..)) => {
            let example = if unit == Unit::Nanoseconds { "20ms" } else { &format!("1e6{}", unit.name()) };
            refuse(format!(
                "{option}: the trace counts {}: give {example}, or a share such as 25%",
                unit.name()
            ))
        }
    };
    let range = at("--from", options.from, 0)?..at("--to", options.to, u64::MAX)?;
    match range.is_empty() {
        true => refuse("--to is not behind --from: nothing lies between".into()),
        false => Ok(range),
    }
}

/// How many records a row of a table joins.
fn every(options: &Show, records: usize) -> usize {
    match options.every {
        Some(every) => every as usize,
        None if options.top.is_some() => 1,
        None => records.div_ceil(ROWS).max(1),
    }
}

/// The rows of a table.
fn rows(options: &Show, trace: &Trace, every: usize) -> Trace {
    let rows = joined(trace, every);
    match options.top {
        Some(top) => largest(&rows, top as usize),
        None => rows,
    }
}

/// The rows of CSV and JSON: each record, unless the user joins them.
fn exact(options: &Show, trace: &Trace) -> Trace {
    match (options.every, options.top) {
        (None | Some(1), None) => trace.clone(),
        (every, _) => rows(options, trace, every.unwrap_or(1) as usize),
    }
}

/// What pages and pictures show: records joined where the user asks for it, and phases of these.
fn every_record(options: &Show, shown: Shown) -> Shown {
    match options.every {
        None | Some(1) => shown,
        Some(every) => Shown::new(shown.file, joined(&shown.trace, every as usize)),
    }
}

/// Whether a path is that of a partial file; then the path of the whole trace.
fn whole(path: &Path) -> Option<std::path::PathBuf> {
    (path.extension()? == "partial").then(|| path.with_extension(""))
}
