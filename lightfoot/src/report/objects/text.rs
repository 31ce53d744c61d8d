//! Objects for people.

use super::page;
use super::types::Line;
use super::{ObjectRow, Objects, UsesRow};
use crate::cli::By;
use crate::run::tally::Misses;
use present::number::{brief, grouped, percent};
use present::terminal::{middle_cut, printable, Page};

/// Frames of a stack that a row shows.
const FRAMES: usize = 3;

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
        let room = page.width.max(80).saturating_sub(9 + cells.width).max(20);
        for (row, cells) in self.objects.iter().zip(&cells.lines).take(rows) {
            let title = middle_cut(&printable(&row.title()), room);
            out += &format!("{:>7}{cells}  {title}\n", percent(row.weight(), whole));
            for &frame in row.stack.iter().skip(1).take(FRAMES) {
                let caller = printable(&self.frames[frame].text());
                let caller = middle_cut(&caller, page.width.max(80).saturating_sub(14));
                out += &format!("          from {caller}\n");
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
    width: usize,
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
        Cells { heading, width: 7 * columns.len(), lines: (0..rows.len()).map(line).collect() }
    }
}

/// A table of types or fields.
fn lines(all: &[Line], label: &str, rows: usize, page: &Page) -> String {
    let cells = Cells::new(all, |line| &line.misses, &OF_TYPES);
    let mut out = format!("\n{}\n", page.bold(&format!("{:>7}{}  {label}", "share", cells.heading)));
    let whole: u64 = all.iter().map(Line::weight).sum();
    let room = page.width.max(80).saturating_sub(9 + cells.width).max(20);
    for (line, cells) in all.iter().zip(&cells.lines).take(rows) {
        let name = middle_cut(&printable(&line.name), room);
        out += &format!("{:>7}{cells}  {name}\n", percent(line.weight(), whole));
    }
    let more = more(all.len(), rows);
    out + &page.sentence("  ", &format!("({more}share: of first-level misses, L1I and L1D; size: bytes)"))
}

/// How many rows are not shown.
fn more(all: usize, rows: usize) -> String {
    match all.saturating_sub(rows) {
        0 => String::new(),
        more => format!("{} more with --top 0; ", grouped(more as u64)),
    }
}
