//! The rows of several reports, each once.
//!
//! A row is known by its name, its library without the folder, its file, line and mnemonic, as
//! `diff` knows it. Lines are those of the last report: the lines of another one are aligned with
//! them by what stands there. A line that the last report lacks keeps its own number, and is one
//! row with that of another report only if the same text stands there.

use super::super::diff::align::{agree, aligned, by_number, Lines};
use super::super::diff::mapping;
use super::super::diff::read::{Mapped, Row};
use super::spread::Spread;
use present::order::{map_of, set_of, SortRows};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What tells rows apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    name: String,
    library: Option<String>,
    file: Option<String>,
    line: Option<u32>,
    opcode: Option<String>,
    /// The text of a line that the last report does not have.
    gone: Option<String>,
}

/// A row of the merged report.
pub(super) struct Merged {
    pub(super) name: String,
    /// The path that the last report with this row has.
    pub(super) library: Option<String>,
    pub(super) file: Option<String>,
    pub(super) line: Option<u32>,
    pub(super) text: Option<String>,
    pub(super) opcode: Option<String>,
    /// The number of reports that have the row.
    pub(super) reports: usize,
    /// The last report that was counted among these.
    last: usize,
    /// The numbers: for each column those of all reports.
    values: Vec<u64>,
}

impl Merged {
    /// The statistics of a column.
    pub(super) fn spread(&self, column: usize, reports: usize) -> Spread {
        Spread::of(&self.values[column * reports..][..reports])
    }

    /// The statistics of the sum of several columns.
    pub(super) fn spread_of_sum(&self, columns: &[usize], reports: usize) -> Spread {
        let of = |report: usize| columns.iter().map(move |column| self.values[column * reports + report]);
        let sums: Vec<u64> = (0..reports).map(|report| of(report).fold(0, u64::saturating_add)).collect();
        Spread::of(&sums)
    }

    /// The row's name for people: a line's place, or a function with its library.
    pub(super) fn label(&self) -> String {
        let opcode = self.opcode.iter().map(|opcode| format!("{opcode} "));
        let place = match (&self.file, self.line, &self.library) {
            (Some(file), Some(line), _) => format!("{file}:{line}"),
            (_, _, Some(library)) => format!("{} [{}]", self.name, base(library)),
            _ => self.name.clone(),
        };
        opcode.chain([place]).collect()
    }
}

/// A table of the merged report while reports are added, the last report first.
pub(super) struct Table {
    columns: Vec<String>,
    reports: usize,
    numbers: HashMap<Key, usize>,
    pub(super) rows: Vec<Merged>,
    /// The lines of the last report, by file.
    base: Option<BTreeMap<String, Lines>>,
}

impl Table {
    pub(super) fn new(columns: &[String], reports: usize) -> Table {
        Table { columns: columns.to_vec(), reports, numbers: HashMap::new(), rows: Vec::new(), base: None }
    }

    /// Adds the rows of report `report`. Returns sentences about files that were taken for each
    /// other.
    pub(super) fn add(&mut self, report: usize, rows: &[Row], mapped: &Mapped<'_>) -> Vec<String> {
        let own = lines(rows, mapped);
        let (moved, notes) = match &self.base {
            Some(base) => Moves::new(&own, base),
            None => (Moves::default(), Vec::new()),
        };
        for row in rows {
            let key = key(row, mapped, &moved, &own);
            self.add_row(report, row, key, mapped);
        }
        self.base.get_or_insert(own);
        notes
    }

    fn add_row(&mut self, report: usize, row: &Row, key: Key, mapped: &Mapped<'_>) {
        let number = match self.numbers.get(&key) {
            Some(number) => *number,
            None => {
                self.rows.push(Merged {
                    name: key.name.clone(),
                    library: row.library.as_ref().map(|path| mapping::path(path, mapped.paths)),
                    file: key.file.clone(),
                    line: key.line,
                    text: row.text.clone(),
                    opcode: key.opcode.clone(),
                    reports: 0,
                    last: usize::MAX,
                    values: vec![0; self.columns.len() * self.reports],
                });
                self.numbers.insert(key, self.rows.len() - 1);
                self.rows.len() - 1
            }
        };
        let merged = &mut self.rows[number];
        if merged.last != report {
            (merged.last, merged.reports) = (report, merged.reports + 1);
        }
        for (index, column) in self.columns.iter().enumerate() {
            let value = &mut merged.values[index * self.reports + report];
            *value = value.saturating_add(row.counts.get(column));
        }
    }

    /// Sorts the rows by a number of theirs, the greatest first.
    pub(super) fn sort(&mut self, weight: impl Fn(&Merged) -> u64) {
        let mut rows: Vec<(u64, Merged)> =
            std::mem::take(&mut self.rows).into_iter().map(|row| (weight(&row), row)).collect();
        rows.sort_rows(|(one, row), (other, another)| {
            let names = |row: &Merged| (row.label(), row.name.clone());
            other.cmp(one).then_with(|| names(row).cmp(&names(another)))
        });
        self.rows = rows.into_iter().map(|(_, row)| row).collect();
    }
}

/// Where lines of a report stand in the last one: by file the file there, and by line the line.
#[derive(Default)]
struct Moves {
    files: BTreeMap<String, (String, BTreeMap<u32, Option<u32>>)>,
}

impl Moves {
    fn new(own: &BTreeMap<String, Lines>, base: &BTreeMap<String, Lines>) -> (Moves, Vec<String>) {
        let names = |files: &BTreeMap<String, Lines>| -> BTreeSet<String> { set_of(files.keys().cloned()) };
        let (owns, bases) = (names(own), names(base));
        let (owns, bases) =
            (set_of(owns.iter().map(String::as_str)), set_of(bases.iter().map(String::as_str)));
        let renamed = mapping::moved(&owns, &bases);
        let mut files = BTreeMap::new();
        for (file, lines) in own {
            let there = renamed.get(file.as_str()).copied().unwrap_or(file);
            let Some(others) = base.get(there) else { continue };
            // Files of one path that nothing contradicts are one file, whatever lines of it ran.
            let is_same = there == file && agree(lines, others);
            let pairs = if is_same { by_number(lines, others) } else { aligned(lines, others) };
            let pairs = pairs.into_iter().filter_map(|(was, is)| Some((was?, is)));
            files.insert(file.clone(), (there.to_owned(), map_of(pairs)));
        }
        (Moves { files }, mapping::notes(&renamed))
    }
}

/// The lines of a report's rows, by file.
fn lines(rows: &[Row], mapped: &Mapped<'_>) -> BTreeMap<String, Lines> {
    let mut files: BTreeMap<String, Lines> = BTreeMap::new();
    for row in rows {
        if let (Some(file), Some(line)) = (&row.file, row.line) {
            let file = mapping::path(file, mapped.paths);
            files.entry(file).or_default().insert(line, row.text.clone());
        }
    }
    files
}

fn key(row: &Row, mapped: &Mapped<'_>, moves: &Moves, own: &BTreeMap<String, Lines>) -> Key {
    let library = row.library.as_ref().map(|path| base(&mapping::path(path, mapped.paths)).to_owned());
    let mut key = Key {
        name: mapping::name(&row.name, mapped.names),
        library,
        file: row.file.as_ref().map(|file| mapping::path(file, mapped.paths)),
        line: row.line,
        opcode: row.opcode.clone(),
        gone: None,
    };
    if let (Some(file), Some(line)) = (&key.file, key.line) {
        if let Some((there, lines)) = moves.files.get(file) {
            let text = || own.get(file).and_then(|lines| lines.get(&line).cloned()).flatten();
            match lines.get(&line).copied().flatten() {
                Some(is) => key.line = Some(is),
                None => key.gone = Some(text().unwrap_or_default()),
            }
            key.file = Some(there.clone());
        }
    }
    key
}

/// A path's last name.
pub(super) fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn row(name: &str, place: Option<(&str, u32, &str)>, instructions: u64) -> Row {
        let mut value = json!({"name": name, "library": "/bin/p", "instructions": instructions});
        if let Some((file, line, text)) = place {
            (value["file"], value["line"], value["text"]) = (file.into(), line.into(), text.into());
        }
        serde_json::from_value(value).unwrap()
    }

    fn merged(reports: &[Vec<Row>]) -> Vec<(String, usize, Vec<u64>)> {
        let mut table = Table::new(&["instructions".to_owned()], reports.len());
        for (report, rows) in reports.iter().enumerate().rev() {
            table.add(report, rows, &Mapped::default());
        }
        table.sort(|row| row.spread(0, reports.len()).sum);
        table.rows.into_iter().map(|row| (row.label(), row.reports, row.values)).collect()
    }

    #[test]
    fn functions_of_one_name_are_one_row() {
        let reports =
            [vec![row("f", None, 5), row("g", None, 1)], vec![row("f", None, 7), row("f", None, 100)]];
        assert_eq!(
            merged(&reports),
            [("f [p]".to_owned(), 2, vec![5, 107]), ("g [p]".to_owned(), 1, vec![1, 0])]
        );
    }

    #[test]
    fn lines_are_those_of_the_last_report() {
        let at = |line, text, count| row("f", Some(("/s/a.c", line, text)), count);
        let reports = [
            vec![at(1, "first", 10), at(2, "gone", 20), at(3, "third", 30)],
            vec![at(1, "first", 10), at(2, "gone", 21), at(3, "third", 30)],
            vec![at(2, "first", 11), at(3, "third", 31)],
        ];
        let expected = [
            ("/s/a.c:3".to_owned(), 3, vec![30, 30, 31]),
            ("/s/a.c:2".to_owned(), 2, vec![20, 21, 0]),
            ("/s/a.c:2".to_owned(), 3, vec![10, 10, 11]),
        ];
        assert_eq!(merged(&reports), expected);
    }
}
