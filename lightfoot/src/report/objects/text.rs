//! Objects for people.

use super::page;
use super::types::Line;
use super::{ObjectRow, Objects, UsesRow};
use crate::cli::By;
use crate::run::tally::Misses;
use present::number::{brief, grouped, percent};
use present::terminal::{middle_cut, printable, Page};

/// Frames of a stack that a row shows.
pub(super) const FRAMES: usize = 3;

impl Objects {
    /// The first `rows` rows as a table.
    pub fn text(&self, by: &[By], rows: usize, page: &Page) -> String {
        if let Some(row) = self.page.and_then(|at| self.types.get(at)) {
            return page::text(row, page);
        }
        match by {
            [By::Type] => lines(&self.lines_by_type(), "type", rows, page),
            [By::Field] => lines(&self.lines_by_field(), "field", rows, page),
            _ => self.by_object(rows, page),
        }
    }

    fn by_object(&self, rows: usize, page: &Page) -> String {
        let cells = Cells::new(&self.objects, |row| &row.misses, &OF_OBJECTS);
        let mut out = format!("\n{}\n", page.bold(&format!("{:>7}{}  object", "share", cells.heading)));
        let whole: u64 = self.objects.iter().map(ObjectRow::weight).sum();
        for (row, numbers) in self.objects.iter().zip(&cells.lines).take(rows) {
            let numbers = format!("{:>7}{numbers}", percent(row.weight(), whole));
            out += &named(&numbers, &row.title(), page);
            // Functions of libraries stand before the one that names the row.
            let texts: Vec<String> = row.stack.iter().map(|&frame| self.frames[frame].text()).collect();
            let own = texts.iter().position(|text| *text == row.name).map_or(0, |at| at + 1);
            for caller in texts.iter().skip(own).take(FRAMES) {
                let caller = middle_cut(&printable(caller), width(page).saturating_sub(INDENT + 5));
                out += &format!("{:INDENT$}from {caller}\n", "");
            }
        }
        let more = more(self.objects.len(), rows);
        out + &page.sentence(
            "  ",
            &format!(
                "({more}share: of first-level misses, L1I and L1D; cost: declared cycles of its misses; bytes: the \
                 most that lived at a time; life: instructions a block)"
            ),
        )
    }
}

/// A number of a row.
type Value<T> = (&'static str, fn(&T) -> Option<u64>);

/// Misses of a row.
const MISSES: [Value<Misses>; 5] = [
    ("L1D", |misses| Some(misses.l1d())),
    ("L1I", |misses| misses.l1i_misses),
    ("L2", |misses| misses.l2_misses),
    ("L3", |misses| misses.l3_misses),
    ("dTLB", |misses| misses.dtlb_misses),
];

const OF_OBJECTS: [Value<ObjectRow>; 5] = [
    ("access", |row| row.uses.as_ref().map(UsesRow::accesses)),
    ("used%", |row| row.uses.as_ref().and_then(UsesRow::used_percent)),
    ("cost", |row| row.miss_cycles),
    ("bytes", |row| row.footprint_bytes),
    ("life", |row| row.lifetime),
];

const OF_TYPES: [Value<Line>; 3] =
    [("access", |line| line.accesses), ("cost", |line| line.miss_cycles), ("size", |line| line.size_bytes)];

/// A table of numbers, without columns that no row has.
struct Cells {
    heading: String,
    lines: Vec<String>,
}

impl Cells {
    fn new<T>(rows: &[T], misses: fn(&T) -> &Misses, more: &[Value<T>]) -> Cells {
        let of_misses = |(name, value): &Value<Misses>| {
            let value = *value;
            (*name, rows.iter().map(|row| value(misses(row))).collect::<Vec<_>>())
        };
        let of_row = |(name, value): &Value<T>| (*name, rows.iter().map(value).collect::<Vec<_>>());
        let columns: Vec<(&str, Vec<Option<u64>>)> =
            MISSES.iter().map(of_misses).chain(more.iter().map(of_row)).collect();
        let columns: Vec<_> =
            columns.into_iter().filter(|(_, values)| values.iter().any(Option::is_some)).collect();
        let heading = columns.iter().map(|(name, _)| format!("{name:>7}")).collect();
        let cell = |value: Option<u64>| format!("{:>7}", value.map_or("-".into(), brief));
        let line = |row: usize| columns.iter().map(|(_, values)| cell(values[row])).collect();
        Cells { heading, lines: (0..rows.len()).map(line).collect() }
    }
}

/// A table of types or fields.
fn lines(all: &[Line], label: &str, rows: usize, page: &Page) -> String {
    let cells = Cells::new(all, |line| &line.misses, &OF_TYPES);
    let mut out = format!("\n{}\n", page.bold(&format!("{:>7}{}  {label}", "share", cells.heading)));
    let whole: u64 = all.iter().map(Line::weight).sum();
    for (line, numbers) in all.iter().zip(&cells.lines).take(rows) {
        let numbers = format!("{:>7}{numbers}", percent(line.weight(), whole));
        out += &named(&numbers, &line.name, page);
    }
    let more = more(all.len(), rows);
    out + &page.sentence("  ", &format!("({more}share: of first-level misses, L1I and L1D; size: bytes)"))
}

/// Columns before a name on a line of its own.
const INDENT: usize = 10;

fn width(page: &Page) -> usize {
    page.width.max(80)
}

/// A row: its numbers, then its name, which stands on the next line where it is too long.
fn named(numbers: &str, name: &str, page: &Page) -> String {
    let name = printable(name);
    let room = width(page).saturating_sub(numbers.chars().count() + 2);
    match name.chars().count() <= room {
        true => format!("{numbers}  {name}\n"),
        false => format!("{numbers}\n{:INDENT$}{}\n", "", middle_cut(&name, width(page) - INDENT)),
    }
}

/// How many rows are not shown.
fn more(all: usize, rows: usize) -> String {
    match all.saturating_sub(rows) {
        0 => String::new(),
        more => format!("{} more with --top 0; ", grouped(more as u64)),
    }
}
