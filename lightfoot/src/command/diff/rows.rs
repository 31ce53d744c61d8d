//! The rows of two reports, matched.

use super::align::{aligned, Lines};
use super::read::{Mapped, Place, Read};
use super::{mapping, Pairs};
use crate::cli::Diff;
use anyhow::Result;
use present::order::set_of;
use std::collections::{BTreeMap, BTreeSet};

/// A row of the comparison.
pub(super) struct Changed {
    /// Its name in the second report, or in the first one if only that has it.
    pub(super) name: String,
    /// Its name in the first report, if that is another one.
    pub(super) was: Option<String>,
    pub(super) pairs: Pairs,
}

/// All rows of two reports.
pub(super) struct Rows {
    pub(super) rows: Vec<Changed>,
    /// The sums of the rows that the user does not want.
    pub(super) left_out: Pairs,
    pub(super) notes: Vec<String>,
}

/// Texts and values of the lines of a file.
type FileRows = (Lines, BTreeMap<u32, Vec<u64>>);

/// The rows of one report.
#[derive(Default)]
struct Side {
    /// Values of functions, and of lines that are unknown, by name.
    named: BTreeMap<String, Vec<u64>>,
    /// Values and texts of known lines, by file.
    files: BTreeMap<String, FileRows>,
    left_out: Vec<u64>,
}

impl Rows {
    pub(super) fn new(before: &Read, after: &Read, metrics: &[String], options: &Diff) -> Result<Rows> {
        let mapped = Mapped { paths: &options.map_path, names: &options.map_name };
        let mut old = Side::new(before, metrics, options, &mapped)?;
        let new = Side::new(after, metrics, options, &Mapped::default())?;
        let notes = old.move_files(&new);
        let left_out = pairs(Some(&old.left_out), Some(&new.left_out), metrics.len());
        let mut rows: Vec<Changed> = keys(&old.named, &new.named)
            .into_iter()
            .map(|name| {
                let pairs = pairs(old.named.get(name), new.named.get(name), metrics.len());
                Changed { name: name.clone(), was: None, pairs }
            })
            .collect();
        let none = FileRows::default();
        for file in keys(&old.files, &new.files) {
            let (old, new) = (old.files.get(file), new.files.get(file));
            rows.extend(lines_of(file, old.unwrap_or(&none), new.unwrap_or(&none), metrics.len()));
        }
        Ok(Rows { rows, left_out, notes })
    }
}

/// The rows of the lines of a file.
fn lines_of(file: &str, old: &FileRows, new: &FileRows, metrics: usize) -> Vec<Changed> {
    let row = |(was, is): (Option<u32>, Option<u32>)| {
        let values = |line: Option<u32>, rows: &'_ FileRows| line.and_then(|line| rows.1.get(&line).cloned());
        let pairs = pairs(values(was, old).as_ref(), values(is, new).as_ref(), metrics);
        let place = |line: u32| format!("{file}:{line}");
        let name = is.or(was).map_or_else(|| file.to_owned(), place);
        let was = was.filter(|was| is.is_some_and(|is| is != *was)).map(place);
        Changed { name, was, pairs }
    };
    aligned(&old.0, &new.0).into_iter().map(row).collect()
}

impl Side {
    /// The rows of a report, whose names are mapped.
    fn new(report: &Read, metrics: &[String], options: &Diff, mapped: &Mapped<'_>) -> Result<Side> {
        let mut side = Side { left_out: vec![0; metrics.len()], ..Side::default() };
        let none = vec![0; metrics.len()];
        for row in report.rows(options.by)? {
            let values = if options.ignore.iter().any(|text| row.is_about(text)) {
                &mut side.left_out
            } else {
                match row.place(options.by, mapped) {
                    Place::Named(name) => side.named.entry(name).or_insert_with(|| none.clone()),
                    Place::Line(file, line) => {
                        let (lines, values) = side.files.entry(file).or_default();
                        lines.insert(line, row.text.clone());
                        values.entry(line).or_insert_with(|| none.clone())
                    }
                }
            };
            for (value, metric) in values.iter_mut().zip(metrics) {
                *value += row.counts.get(metric);
            }
        }
        Ok(side)
    }

    /// Gives files that only this report has the names of those that they are in the other one.
    /// Returns sentences about it.
    fn move_files(&mut self, other: &Side) -> Vec<String> {
        let names = |side: &Side| set_of(side.files.keys().cloned());
        let (own, others) = (names(self), names(other));
        let borrowed = |names| set_of(<&BTreeSet<String>>::into_iter(names).map(String::as_str));
        let moved = mapping::moved(&borrowed(&own), &borrowed(&others));
        for (old, new) in &moved {
            if let Some(lines) = self.files.remove(*old) {
                self.files.insert((*new).to_owned(), lines);
            }
        }
        mapping::notes(&moved)
    }
}

/// The keys of two maps, each once.
fn keys<'a, V>(one: &'a BTreeMap<String, V>, other: &'a BTreeMap<String, V>) -> BTreeSet<&'a String> {
    set_of(one.keys().chain(other.keys()))
}

/// Values before and after; 0 where there are none.
fn pairs(before: Option<&Vec<u64>>, after: Option<&Vec<u64>>, count: usize) -> Pairs {
    let value = |values: Option<&Vec<u64>>, index: usize| values.map_or(0, |values| values[index]);
    (0..count).map(|index| (value(before, index), value(after, index))).collect()
}
