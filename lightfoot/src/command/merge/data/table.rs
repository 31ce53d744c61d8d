//! A table of several reports whose rows are known by more than their names.
//!
//! A row has a *near* name, which another build of the program keeps, and an *exact* one, which has
//! lines and sizes, too. Rows of one exact name are one row. What is left over is paired by near
//! names where the caller says so ([`Matching`]). What the merged report says of a row besides
//! numbers is what the last report with it says.

use super::super::spread::Spread;
use super::super::text::{statistics, Line, STATISTICS};
use crate::cli::Statistic;
use present::csv::field;
use present::order::SortRows;
use serde_json::{json, Map, Value};
use std::collections::HashMap;

/// What the numbers of a row in several reports are together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Adding {
    /// A count; a report without the row has 0.
    Count,
    /// A size at its greatest, which does not add up: the sum of reports has the greatest one.
    Greatest,
    /// A mean over blocks: the sum of reports has the mean over all their blocks.
    PerBlock,
}

/// A column.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Column {
    pub(in super::super) field: &'static str,
    pub(in super::super) adding: Adding,
}

/// The column whose numbers weigh those of [`Adding::PerBlock`].
const BLOCKS: &str = "blocks";

/// How rows without a row of their exact name find one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Matching {
    /// They are new rows.
    Exact,
    /// They are paired with rows of their near name, in order.
    Nearest,
    /// Like `Nearest`; and where both have equally many rows of a near name, order alone decides:
    /// lines may have moved on to where others stood.
    InOrder,
}

/// A row of a report.
#[derive(Debug, Default)]
pub(in super::super) struct Found {
    /// What another build keeps.
    pub(in super::super) near: String,
    /// What one build has in all runs, besides.
    pub(in super::super) exact: String,
    /// The order among rows of one near name, by the first number that differs.
    pub(in super::super) order: Vec<u64>,
    /// Its name for people.
    pub(in super::super) label: String,
    /// Its fields, numbers included.
    pub(in super::super) fields: Map<String, Value>,
    /// The calls that led to it.
    pub(in super::super) stack: Vec<Value>,
}

/// A row of the merged report.
pub(in super::super) struct DataRow {
    pub(in super::super) label: String,
    /// The number of reports that have the row.
    pub(in super::super) reports: usize,
    pub(in super::super) stack: Vec<Value>,
    /// The order among rows of one near name.
    pub(in super::super) order: Vec<u64>,
    /// The fields that are no numbers.
    head: Map<String, Value>,
    /// The last report that was counted.
    last: usize,
    /// The row of the same near name that was added before it.
    before: Option<usize>,
    /// The numbers: for each column those of all reports; `None` where there is none.
    values: Vec<Option<u64>>,
}

/// The table, while reports are added and afterwards.
pub(in super::super) struct DataTable {
    columns: Vec<Column>,
    reports: usize,
    /// Rows by both names.
    exact: HashMap<String, usize>,
    /// The last row of each near name.
    near: HashMap<String, usize>,
    pub(in super::super) rows: Vec<DataRow>,
}

impl DataTable {
    pub(in super::super) fn new(columns: &[Column], reports: usize) -> DataTable {
        let (exact, near) = (HashMap::new(), HashMap::new());
        DataTable { columns: columns.to_vec(), reports, exact, near, rows: Vec::new() }
    }

    /// Adds the rows of report `report`; the last report comes first. Returns the number of each
    /// row in the table.
    pub(in super::super) fn add(
        &mut self,
        report: usize,
        rows: Vec<Found>,
        matching: Matching,
    ) -> Vec<usize> {
        let found = self.pairs(&rows, matching);
        rows.into_iter().zip(found).map(|(row, number)| self.add_row(report, row, number)).collect()
    }

    /// For each row of a report the row of the table that it is, if there is one.
    fn pairs(&self, rows: &[Found], matching: Matching) -> Vec<Option<usize>> {
        let exact = |row: &Found| self.exact.get(&row.key()).copied();
        let mut found: Vec<Option<usize>> = rows.iter().map(exact).collect();
        if matching == Matching::Exact {
            return found;
        }
        for mut own in groups(rows) {
            let mut others = self.of_near(&rows[own[0]].near);
            if matching == Matching::Nearest || own.len() != others.len() {
                let taken: Vec<Option<usize>> = own.iter().map(|&index| found[index]).collect();
                others.retain(|number| !taken.contains(&Some(*number)));
                own.retain(|&index| found[index].is_none());
            }
            own.sort_rows(|&one, &other| rows[one].order.cmp(&rows[other].order));
            others.sort_rows(|&one, &other| self.rows[one].order.cmp(&self.rows[other].order));
            for (index, number) in own.into_iter().zip(others) {
                found[index] = Some(number);
            }
        }
        found
    }

    /// The rows of a near name.
    fn of_near(&self, near: &str) -> Vec<usize> {
        let last = self.near.get(near).copied();
        std::iter::successors(last, |&number| self.rows[number].before).collect()
    }

    fn add_row(&mut self, report: usize, row: Found, found: Option<usize>) -> usize {
        let key = row.key();
        let Found { near, order, label, mut fields, stack, .. } = row;
        let numbers: Vec<Option<u64>> =
            self.columns.iter().map(|column| fields.get(column.field).and_then(Value::as_u64)).collect();
        // What a merged report says of its own reports is not true of this one.
        for field in ["reports", "spread"] {
            fields.remove(field);
        }
        let new = self.rows.len();
        // Two rows of one report may have one name.
        let number = found.unwrap_or_else(|| *self.exact.entry(key).or_insert(new));
        if number == new {
            let before = self.near.insert(near, new);
            self.rows.push(DataRow {
                label,
                reports: 0,
                stack,
                order,
                head: Map::new(),
                last: usize::MAX,
                before,
                values: vec![None; self.columns.len() * self.reports],
            });
        }
        let merged = &mut self.rows[number];
        if merged.last != report {
            (merged.last, merged.reports) = (report, merged.reports + 1);
        }
        for (column, value) in numbers.iter().enumerate() {
            if let Some(value) = value {
                let sum = &mut merged.values[column * self.reports + report];
                *sum = Some(sum.unwrap_or(0).saturating_add(*value));
            }
        }
        merged.describe(fields);
        number
    }

    /// The statistics of a column of a row; `None` where no report has a number.
    pub(in super::super) fn spread(&self, row: &DataRow, column: usize) -> Option<Spread> {
        let values = &row.values[column * self.reports..][..self.reports];
        if values.iter().all(Option::is_none) {
            return None;
        }
        let is_count = self.columns[column].adding == Adding::Count;
        let counted = values.iter().filter(|value| is_count || value.is_some());
        Some(Spread::of(&counted.map(|value| value.unwrap_or(0)).collect::<Vec<_>>()))
    }

    /// The statistics of the sum of some columns of a row.
    pub(in super::super) fn spread_of_sum(&self, row: &DataRow, fields: &[&str]) -> Spread {
        let columns: Vec<usize> =
            (0..self.columns.len()).filter(|&column| fields.contains(&self.columns[column].field)).collect();
        let of = |report: usize| {
            let values = columns.iter().map(|column| row.values[column * self.reports + report]);
            values.map(|value| value.unwrap_or(0)).fold(0, u64::saturating_add)
        };
        Spread::of(&(0..self.reports).map(of).collect::<Vec<_>>())
    }

    /// The rows, those with the greatest sum of some columns first.
    pub(in super::super) fn order(&self, fields: &[&str], statistic: Statistic) -> Vec<usize> {
        let weights: Vec<u64> =
            self.rows.iter().map(|row| self.spread_of_sum(row, fields).value(statistic)).collect();
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        order.sort_rows(|&one, &other| {
            let names = || self.rows[one].label.cmp(&self.rows[other].label);
            weights[other].cmp(&weights[one]).then_with(names)
        });
        order
    }

    /// A row for people, with the sum of some columns.
    pub(in super::super) fn line(&self, row: &DataRow, fields: &[&str]) -> Line {
        let (name, spread) = (row.label.clone(), self.spread_of_sum(row, fields));
        Line { place: name.clone(), name, code: None, spread, reports: row.reports }
    }

    /// The number that the merged report has.
    fn value(&self, row: &DataRow, column: usize, spread: &Spread, statistic: Statistic) -> u64 {
        match (self.columns[column].adding, statistic) {
            (Adding::Greatest, Statistic::Sum) => spread.most,
            (Adding::PerBlock, Statistic::Sum) => self.per_block(row, column).unwrap_or(spread.median),
            _ => spread.value(statistic),
        }
    }

    /// The mean of a column over the blocks of all reports.
    fn per_block(&self, row: &DataRow, column: usize) -> Option<u64> {
        let blocks = self.columns.iter().position(|column| column.field == BLOCKS)?;
        let of = |column: usize| &row.values[column * self.reports..][..self.reports];
        let pairs = of(column).iter().zip(of(blocks)).filter_map(|(mean, blocks)| mean.zip(*blocks));
        let sums = pairs.fold((0u128, 0u128), |(sum, all), (mean, blocks)| {
            (sum + u128::from(mean) * u128::from(blocks), all + u128::from(blocks))
        });
        sums.0.checked_div(sums.1).map(|mean| mean as u64)
    }

    /// A row as JSON: its fields, the chosen statistic of each column, and the spread of those
    /// columns in which reports differ.
    pub(in super::super) fn json(&self, row: &DataRow, statistic: Statistic) -> Map<String, Value> {
        let mut fields = row.head.clone();
        let mut spreads = Map::new();
        for (column, Column { field, .. }) in self.columns.iter().enumerate() {
            let Some(spread) = self.spread(row, column) else { continue };
            let value = self.value(row, column, &spread, statistic);
            fields.insert((*field).to_owned(), json!(value));
            if !spread.is_equal() {
                spreads.insert((*field).to_owned(), json!(spread));
            }
        }
        fields.insert("reports".to_owned(), json!(row.reports));
        if !spreads.is_empty() {
            fields.insert("spread".to_owned(), spreads.into());
        }
        fields
    }
}

impl Found {
    /// Both names.
    fn key(&self) -> String {
        format!("{}\n\n{}", self.near, self.exact)
    }
}

/// The indices of rows of one near name, for each such name.
fn groups(rows: &[Found]) -> Vec<Vec<usize>> {
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let number = *numbers.entry(row.near.clone()).or_insert(groups.len());
        if number == groups.len() {
            groups.push(Vec::new());
        }
        groups[number].push(index);
    }
    groups
}

impl DataRow {
    /// Takes what another report says and the later ones did not; lists have the entries of all.
    fn describe(&mut self, fields: Map<String, Value>) {
        for (field, value) in fields {
            match (self.head.get_mut(&field), value) {
                (Some(Value::Array(own)), Value::Array(more)) if field == "told_by" => {
                    let new: Vec<Value> = more.into_iter().filter(|entry| !own.contains(entry)).collect();
                    own.extend(new);
                }
                (Some(_), _) => {}
                (None, value) => {
                    self.head.insert(field, value);
                }
            }
        }
    }
}

/// Rows of tables with these columns for spreadsheets.
pub(in super::super) fn csv(rows: &[(&DataTable, &DataRow)], columns: &[Column]) -> String {
    let mut out = String::from("name,reports");
    for Column { field, .. } in columns {
        out += &STATISTICS.map(|statistic| format!(",{field}_{statistic}")).concat();
    }
    out += "\r\n";
    for (table, row) in rows {
        out += &format!("{},{}", field(&row.label), row.reports);
        for column in 0..columns.len() {
            out += &match table.spread(row, column) {
                Some(spread) => statistics(&spread),
                None => ",".repeat(STATISTICS.len()),
            };
        }
        out += "\r\n";
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const COLUMNS: &[Column] = &[
        Column { field: "misses", adding: Adding::Count },
        Column { field: "bytes", adding: Adding::Greatest },
        Column { field: "life", adding: Adding::PerBlock },
        Column { field: "blocks", adding: Adding::Count },
    ];

    fn row(near: &str, line: u64, numbers: [u64; 4]) -> Found {
        let fields = COLUMNS.iter().zip(numbers);
        Found {
            near: near.to_owned(),
            exact: line.to_string(),
            order: vec![line],
            label: format!("{near}:{line}"),
            fields: fields.map(|(column, number)| (column.field.to_owned(), json!(number))).collect(),
            stack: Vec::new(),
        }
    }

    fn merged(reports: Vec<Vec<(&str, u64, u64)>>, matching: Matching) -> Vec<(String, Vec<u64>)> {
        let count = reports.len();
        let mut table = DataTable::new(COLUMNS, count);
        for (report, rows) in reports.into_iter().enumerate().rev() {
            let rows = rows.into_iter().map(|(near, line, misses)| row(near, line, [misses, 1, 1, 1]));
            table.add(report, rows.collect(), matching);
        }
        let values = |row: &DataRow| row.values[..count].iter().map(|value| value.unwrap_or(0)).collect();
        table.rows.iter().map(|row| (row.label.clone(), values(row))).collect()
    }

    #[test]
    fn rows_of_one_build_are_told_apart_by_their_lines() {
        let reports = || vec![vec![("f", 1, 10)], vec![("f", 2, 20)]];
        let apart = [("f:2".to_owned(), vec![0, 20]), ("f:1".to_owned(), vec![10, 0])];
        assert_eq!(merged(reports(), Matching::Exact), apart);
        assert_eq!(merged(reports(), Matching::Nearest), [("f:2".to_owned(), vec![10, 20])]);
    }

    #[test]
    fn lines_that_moved_on_to_others_are_paired_in_order() {
        let reports = || vec![vec![("f", 1, 10), ("f", 2, 20)], vec![("f", 2, 11), ("f", 3, 21)]];
        let in_order = [("f:2".to_owned(), vec![10, 11]), ("f:3".to_owned(), vec![20, 21])];
        assert_eq!(merged(reports(), Matching::InOrder), in_order);
        let nearest = [("f:2".to_owned(), vec![20, 11]), ("f:3".to_owned(), vec![10, 21])];
        assert_eq!(merged(reports(), Matching::Nearest), nearest);
    }

    #[test]
    fn sizes_and_lives_do_not_add_up() {
        let mut table = DataTable::new(COLUMNS, 3);
        table.add(2, vec![row("f", 1, [5, 100, 10, 1])], Matching::Exact);
        table.add(1, vec![row("f", 1, [7, 300, 40, 2])], Matching::Exact);
        table.add(0, vec![row("g", 1, [1, 1, 1, 1])], Matching::Exact);
        let of = |statistic| {
            let json = table.json(&table.rows[0], statistic);
            COLUMNS.iter().map(|column| json[column.field].as_u64().unwrap()).collect::<Vec<_>>()
        };
        // The third report has no such blocks: it counts no misses, and has no life of 0.
        assert_eq!(of(Statistic::Sum), [12, 300, 30, 3]);
        assert_eq!(of(Statistic::Mean), [4, 200, 25, 1]);
        assert_eq!(table.json(&table.rows[0], Statistic::Sum)["reports"], 2);
    }

    proptest! {
        #[test]
        fn no_number_is_lost(
            reports in prop::collection::vec(prop::collection::vec((0usize..3, 0u64..4, 0u64..100), 0..8), 1..5),
            matching in prop::sample::select(vec![Matching::Exact, Matching::Nearest, Matching::InOrder]),
        ) {
            let names = ["f", "g", "h"];
            let named = |rows: &Vec<(usize, u64, u64)>| {
                rows.iter().map(|&(name, line, misses)| (names[name], line, misses)).collect::<Vec<_>>()
            };
            let found = merged(reports.iter().map(named).collect(), matching);
            for (report, rows) in reports.iter().enumerate() {
                for name in names {
                    let expected: u64 =
                        named(rows).iter().filter(|row| row.0 == name).map(|row| row.2).sum();
                    let own = found.iter().filter(|row| row.0.starts_with(name));
                    prop_assert_eq!(own.map(|row| row.1[report]).sum::<u64>(), expected);
                }
            }
        }
    }
}
