//! Rows of data in several reports: objects, types, fields, and what has no known type.
//!
//! Blocks of the heap are known by the calls that led to their allocation, variables by name and
//! file. Where the program was built anew, which addresses of functions tell, lines of calls and
//! sizes may differ: rows are then paired by the functions on the stack, in the order of lines.
//! **Leaves out** which fields are used together: a visit has no row.

use super::super::rows::base;
use super::super::text::Line;
use super::count;
use super::table::{csv, Adding, Column, DataRow, DataTable, Found, Matching};
use crate::cli::Statistic;
use crate::command::diff::mapping;
use crate::command::diff::read::{Mapped, Read};
use present::order::{set_of, SortRows};
use serde_json::{json, Map, Value};
use std::collections::{BTreeSet, HashMap};

/// The columns of data.
const COLUMNS: &[Column] = &[
    count("l1i_misses"),
    count("l1d_load_misses"),
    count("l1d_store_misses"),
    count("l2_misses"),
    count("l3_misses"),
    count("dtlb_misses"),
    count("miss_cycles"),
    count("loads"),
    count("stores"),
    count("fetched_bytes"),
    count("used_bytes"),
    count("blocks"),
    Column { field: "footprint_bytes", adding: Adding::Greatest },
    Column { field: "lifetime", adding: Adding::PerBlock },
];

/// What sorts rows of data if the sorting column of the report is none of theirs.
const FIRST_LEVEL: &[&str] = &["l1i_misses", "l1d_load_misses", "l1d_store_misses"];

/// Callers that stand beside the name of an object.
const CALLERS: usize = 2;

/// Addresses of functions by the file's name and their own.
type Addresses = HashMap<String, usize>;

/// Rows of data, while reports are added and afterwards.
pub(in super::super) struct Objects {
    statistic: Statistic,
    /// The columns whose sum sorts the rows.
    sorted_by: Vec<&'static str>,
    objects: DataTable,
    types: DataTable,
    fields: DataTable,
    /// For each row of `types` its rows of `fields`.
    members: Vec<Vec<usize>>,
    untyped: DataTable,
    /// Where the functions of the last report lie.
    addresses: Option<Addresses>,
}

impl Objects {
    pub(in super::super) fn new(reports: usize, statistic: Statistic, sorted_by: &[&str]) -> Objects {
        let named = COLUMNS.iter().map(|column| column.field);
        let sorted_by: Vec<&str> = named.filter(|field| sorted_by.contains(field)).collect();
        let sorted_by = if sorted_by.is_empty() { FIRST_LEVEL.to_vec() } else { sorted_by };
        let table = || DataTable::new(COLUMNS, reports);
        let (objects, types, fields, untyped) = (table(), table(), table(), table());
        let members = Vec::new();
        Objects { statistic, sorted_by, objects, types, fields, members, untyped, addresses: None }
    }

    /// Adds the rows of a report; the last report comes first.
    pub(in super::super) fn add(&mut self, report: usize, read: &Read, mapped: &Mapped<'_>) {
        let Some(data) = &read.objects else { return };
        let rebuilt = self.rebuilt(read, mapped);
        let (mut known, mut moved) = (Vec::new(), Vec::new());
        for row in rows(data, "objects") {
            let frames = data["frames"].as_array().map_or(&[][..], Vec::as_slice);
            let (found, libraries) = object(row, frames, mapped);
            let is_moved = libraries.iter().any(|library| rebuilt.contains(library));
            if is_moved { &mut moved } else { &mut known }.push(found);
        }
        self.objects.add(report, known, Matching::Exact);
        self.objects.add(report, moved, Matching::InOrder);
        let matching = if rebuilt.is_empty() { Matching::Exact } else { Matching::Nearest };
        let (mut types, mut fields) = (Vec::new(), Vec::new());
        for mut row in rows(data, "types") {
            row.remove("together");
            fields.push(row.remove("fields"));
            types.push(of_type(row));
        }
        let types = self.types.add(report, types, matching);
        let mut all = Vec::new();
        let mut owners = Vec::new();
        for (owner, fields) in types.into_iter().zip(fields) {
            let Some(Value::Array(fields)) = fields else { continue };
            for field in fields.into_iter().filter_map(into_map) {
                all.push(of_field(owner, &self.types.rows[owner].label, field));
                owners.push(owner);
            }
        }
        self.members.resize(self.types.rows.len(), Vec::new());
        let before = self.fields.rows.len();
        for (number, owner) in self.fields.add(report, all, matching).into_iter().zip(owners) {
            if number >= before && !self.members[owner].contains(&number) {
                self.members[owner].push(number);
            }
        }
        let untyped = rows(data, "untyped").map(of_kind).collect();
        self.untyped.add(report, untyped, Matching::Exact);
    }

    /// The files whose functions lie elsewhere than in the last report.
    fn rebuilt(&mut self, read: &Read, mapped: &Mapped<'_>) -> BTreeSet<String> {
        let mut own = Addresses::new();
        for row in read.functions.iter().filter(|row| row.counts.has("address")) {
            if let Some(library) = &row.library {
                let name = mapping::name(&row.name, mapped.names);
                let names = format!("{}\n{name}", file_name(library, mapped));
                own.insert(names, row.counts.get("address") as usize);
            }
        }
        let Some(last) = &self.addresses else {
            self.addresses = Some(own);
            return BTreeSet::new();
        };
        let differs = own.iter().filter(|(names, at)| last.get(*names).is_some_and(|other| other != *at));
        set_of(differs.filter_map(|(names, _)| names.split('\n').next()).map(str::to_owned))
    }

    /// The rows as JSON, as a report has them; the first `top` of each table.
    pub(in super::super) fn json(&self, top: usize) -> Value {
        let mut frames: Vec<&Value> = Vec::new();
        let mut numbers: HashMap<String, usize> = HashMap::new();
        let mut objects = Vec::new();
        for index in self.order(&self.objects).into_iter().take(top) {
            let row = &self.objects.rows[index];
            let mut fields = self.objects.json(row, self.statistic);
            let number = |frame| {
                *numbers.entry(format!("{frame}")).or_insert_with(|| {
                    frames.push(frame);
                    frames.len() - 1
                })
            };
            let stack: Vec<usize> = row.stack.iter().map(number).collect();
            fields.insert("stack".into(), json!(stack));
            objects.push(Value::from(fields));
        }
        let mut all = json!({ "objects": objects, "frames": frames });
        if !self.types.rows.is_empty() {
            let types = self.order(&self.types).into_iter().take(top);
            all["types"] = types.map(|index| self.type_json(index)).collect();
        }
        if !self.untyped.rows.is_empty() {
            let row = |index: usize| self.untyped.json(&self.untyped.rows[index], self.statistic);
            all["untyped"] = self.order(&self.untyped).into_iter().map(row).collect();
        }
        all
    }

    fn type_json(&self, index: usize) -> Value {
        let mut fields = self.types.json(&self.types.rows[index], self.statistic);
        let mut own: Vec<&DataRow> =
            self.members[index].iter().map(|&field| &self.fields.rows[field]).collect();
        own.sort_rows(|one, other| one.order.cmp(&other.order));
        let own = own.into_iter().map(|row| Value::from(self.fields.json(row, self.statistic)));
        fields.insert("fields".into(), own.collect());
        fields.into()
    }

    /// The rows that a table by object, type or field has.
    fn shown(&self, by: &str) -> Vec<(&DataTable, &DataRow)> {
        let is_plain = |row: &(usize, &DataRow)| by == "type" || self.members[row.0].is_empty();
        let types = self.types.rows.iter().enumerate().filter(is_plain).map(|row| (&self.types, row.1));
        let fields = self.fields.rows.iter().map(|row| (&self.fields, row));
        let untyped = self.untyped.rows.iter().map(|row| (&self.untyped, row));
        let rows: Vec<(&DataTable, &DataRow)> = match by {
            "type" => types.chain(untyped).collect(),
            "field" => types.chain(fields).chain(untyped).collect(),
            _ => self.objects.rows.iter().map(|row| (&self.objects, row)).collect(),
        };
        let weights: Vec<u64> = rows.iter().map(|(table, row)| self.weight(table, row)).collect();
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_rows(|&one, &other| {
            let names = || rows[one].1.label.cmp(&rows[other].1.label);
            weights[other].cmp(&weights[one]).then_with(names)
        });
        order.into_iter().map(|index| rows[index]).collect()
    }

    /// Rows for people: objects, or with `by` types or fields; the greatest first.
    pub(in super::super) fn lines(&self, by: &str) -> Vec<Line> {
        self.shown(by).into_iter().map(|(table, row)| table.line(row, &self.sorted_by)).collect()
    }

    /// The first `top` rows for spreadsheets: name, reports, and the statistics of each column.
    pub(in super::super) fn csv(&self, by: &str, top: usize) -> String {
        let rows = self.shown(by);
        csv(&rows[..top.min(rows.len())], COLUMNS)
    }

    fn weight(&self, table: &DataTable, row: &DataRow) -> u64 {
        table.spread_of_sum(row, &self.sorted_by).value(self.statistic)
    }

    /// The rows of a table, the greatest first.
    fn order(&self, table: &DataTable) -> Vec<usize> {
        table.order(&self.sorted_by, self.statistic)
    }
}

/// The rows of a table of a report.
fn rows<'a>(data: &'a Value, table: &str) -> impl Iterator<Item = Map<String, Value>> + 'a {
    data[table].as_array().into_iter().flatten().filter_map(|row| into_map(row.clone()))
}

fn into_map(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(fields) => Some(fields),
        _ => None,
    }
}

fn text(fields: &Map<String, Value>, field: &str) -> String {
    fields.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The mapped name of a file, without its folder.
fn file_name(path: &str, mapped: &Mapped<'_>) -> String {
    base(&mapping::path(path, mapped.paths)).to_owned()
}

/// An object, and the files that its name depends on.
fn object(mut fields: Map<String, Value>, frames: &[Value], mapped: &Mapped<'_>) -> (Found, Vec<String>) {
    let stack: Vec<Value> = match fields.remove("stack") {
        Some(Value::Array(stack)) => stack
            .iter()
            .filter_map(|number| frames.get(number.as_u64()? as usize))
            .map(|frame| renamed(frame, mapped))
            .collect(),
        _ => Vec::new(),
    };
    let kind = text(&fields, "kind");
    let name = mapping::name(&text(&fields, "name"), mapped.names);
    let library = fields.get("library").and_then(Value::as_str).map(|path| file_name(path, mapped));
    let of_frame = |frame: &Value, field: &str| frame[field].as_str().unwrap_or_default().to_owned();
    let callers: Vec<String> = stack.iter().map(|frame| of_frame(frame, "function")).collect();
    let title = match (&library, kind.as_str()) {
        (Some(library), "global" | "section" | "stack") => format!("{kind} {name} [{library}]"),
        _ => format!("{kind} {name}"),
    };
    let own = callers.iter().position(|caller| name.starts_with(caller.as_str())).map_or(0, |at| at + 1);
    let shown = std::iter::once(title).chain(callers.iter().skip(own).take(CALLERS).cloned());
    let label = shown.collect::<Vec<_>>().join(" < ");
    fields.insert("name".into(), name.clone().into());
    let mut libraries: Vec<String> = library.into_iter().collect();
    let mut near = kind;
    let (mut exact, mut order) = (String::new(), Vec::new());
    if stack.is_empty() {
        near += &format!("\n{name}\n{}", libraries.first().map_or("", |library| library));
        // Variables of one name in one file.
        let bytes = fields.get("footprint_bytes").and_then(Value::as_u64).unwrap_or(0);
        exact = bytes.to_string();
        order.push(bytes);
    }
    for frame in &stack {
        let library = base(frame["library"].as_str().unwrap_or_default()).to_owned();
        near += &format!("\n{}\n{library}", of_frame(frame, "function"));
        libraries.push(library);
        exact += &format!("{}:{}\n", base(&of_frame(frame, "file")), frame["line"]);
        order.push(frame["line"].as_u64().unwrap_or(0));
    }
    (Found { near, exact, order, label, fields, stack }, libraries)
}

/// A frame with mapped names.
fn renamed(frame: &Value, mapped: &Mapped<'_>) -> Value {
    let mut frame = frame.clone();
    for field in ["library", "file"] {
        if let Some(path) = frame[field].as_str() {
            frame[field] = mapping::path(path, mapped.paths).into();
        }
    }
    if let Some(name) = frame["function"].as_str() {
        frame["function"] = mapping::name(name, mapped.names).into();
    }
    frame
}

fn of_type(fields: Map<String, Value>) -> Found {
    let name = text(&fields, "name");
    let bytes = fields.get("size_bytes").and_then(Value::as_u64).unwrap_or(0);
    Found {
        near: name.clone(),
        exact: bytes.to_string(),
        order: vec![bytes],
        label: name,
        fields,
        stack: Vec::new(),
    }
}

fn of_field(owner: usize, of: &str, fields: Map<String, Value>) -> Found {
    let name = text(&fields, "name");
    // What is no field stands behind all fields.
    let offset = fields.get("offset").and_then(Value::as_u64).unwrap_or(u64::MAX);
    Found {
        label: format!("{of}.{name}"),
        near: format!("{owner}\n{name}"),
        exact: offset.to_string(),
        order: vec![offset],
        fields,
        stack: Vec::new(),
    }
}

fn of_kind(fields: Map<String, Value>) -> Found {
    let kind = text(&fields, "kind");
    let label = format!("({kind} of unknown type)");
    Found { near: kind, label, fields, ..Found::default() }
}

/// Whether a report has a page of a type, which is left out.
pub(in super::super) fn has_page(read: &Read) -> bool {
    let types = read.objects.as_ref().and_then(|data| data["types"].as_array());
    types.into_iter().flatten().any(|row| row.get("together").is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &Value) -> Read {
        let mut report = json!({
            "kind": "cache", "command": ["p"], "partial": false, "rep": "once", "machine": {}, "totals": {},
            "functions": [], "objects": {"objects": [], "frames": []},
        });
        for (field, value) in value.as_object().unwrap() {
            report[field] = value.clone();
        }
        serde_json::from_value(report).unwrap()
    }

    /// A report with one site in `make` at each of these lines, and with `main` at an address.
    fn sites(address: u64, sites: &[(u64, u64)]) -> Read {
        let frame = |(line, _): &(u64, u64)| json!({"function": "make", "library": "/b/p", "file": "/s/p.c", "line": line});
        let object = |(index, (line, misses)): (usize, &(u64, u64))| {
            json!({"kind": "heap", "name": format!("make (p.c:{line})"), "library": null, "stack": [index],
                   "l1d_load_misses": misses, "blocks": 1, "lifetime": 5, "footprint_bytes": 8})
        };
        read(&json!({
            "functions": [{"name": "main", "library": "/b/p", "address": address}],
            "objects": {
                "frames": sites.iter().map(frame).collect::<Vec<_>>(),
                "objects": sites.iter().enumerate().map(object).collect::<Vec<_>>(),
            },
        }))
    }

    fn merged(reports: &[Read]) -> Vec<(String, u64, u64)> {
        let mut all = Objects::new(reports.len(), Statistic::Sum, &[]);
        for (report, read) in reports.iter().enumerate().rev() {
            all.add(report, read, &Mapped::default());
        }
        let lines = all.lines("object");
        lines.into_iter().map(|line| (line.name, line.spread.sum, line.spread.least)).collect()
    }

    #[test]
    fn sites_of_one_build_are_those_of_their_lines() {
        let found = merged(&[sites(16, &[(3, 10), (5, 20)]), sites(16, &[(5, 1), (7, 2)])]);
        let expected =
            [("heap make (p.c:5)", 21, 1), ("heap make (p.c:3)", 10, 0), ("heap make (p.c:7)", 2, 0)];
        assert_eq!(found, expected.map(|(name, sum, least)| (name.to_owned(), sum, least)));
    }

    #[test]
    fn sites_of_another_build_keep_their_order() {
        let found = merged(&[sites(16, &[(3, 10), (5, 20)]), sites(32, &[(5, 1), (7, 2)])]);
        let expected = [("heap make (p.c:7)", 22, 2), ("heap make (p.c:5)", 11, 1)];
        assert_eq!(found, expected.map(|(name, sum, least)| (name.to_owned(), sum, least)));
    }

    #[test]
    fn fields_are_those_of_their_type() {
        let field = |name: &str, offset: u64, misses: u64| json!({"name": name, "type": "int", "offset": offset, "size_bytes": 4, "l1d_load_misses": misses});
        let of_type = |name: &str, size: u64, fields: Value| {
            json!({"name": name, "size_bytes": size, "l1d_load_misses": 9, "fields": fields, "holes": [],
                   "told_by": ["variable n"]})
        };
        let report = |types: Value| read(&json!({"objects": {"objects": [], "frames": [], "types": types}}));
        let mut all = Objects::new(2, Statistic::Mean, &[]);
        let one = [field("a", 0, 4), field("b", 4, 5)];
        all.add(
            1,
            &report(json!([of_type("s", 8, json!(one)), of_type("t", 4, json!([]))])),
            &Mapped::default(),
        );
        all.add(0, &report(json!([of_type("s", 8, json!([field("b", 4, 1)]))])), &Mapped::default());
        let types = &all.json(usize::MAX)["types"];
        assert_eq!(types[0]["fields"][1]["l1d_load_misses"], 3);
        assert_eq!(types[0]["fields"][1]["spread"]["l1d_load_misses"]["most"], 5);
        assert_eq!((&types[0]["fields"][0]["reports"], &types[0]["reports"]), (&json!(1), &json!(2)));
        assert_eq!(types[0]["told_by"], json!(["variable n"]));
        let lines: Vec<String> = all.lines("field").into_iter().map(|line| line.name).collect();
        assert_eq!(lines, ["t", "s.b", "s.a"]);
    }
}
