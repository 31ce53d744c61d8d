//! Objects for spreadsheets.

use super::types::Line;
use super::Objects;
use crate::cli::By;
use crate::run::tally::Misses;
use present::csv::field;

const COLUMNS: &str = "kind,name,library,l1i_misses,l1d_load_misses,l1d_store_misses,l2_misses,l3_misses,\
                       dtlb_misses,miss_cycles,footprint_bytes,blocks,lifetime,stack";

impl Objects {
    /// The first `rows` rows as CSV.
    pub fn csv(&self, by: &[By], rows: usize) -> String {
        match by {
            [By::Type] => lines(&self.lines_by_type(), rows),
            [By::Field] => lines(&self.lines_by_field(), rows),
            _ => self.csv_by_object(rows),
        }
    }

    fn csv_by_object(&self, rows: usize) -> String {
        let mut out = format!("{COLUMNS}\r\n");
        for row in self.objects.iter().take(rows) {
            let frames: Vec<String> = row.stack.iter().map(|&frame| self.frames[frame].text()).collect();
            let names = [row.kind, &row.name, row.library.as_deref().unwrap_or_default()].map(field);
            let others = [row.miss_cycles, row.footprint_bytes, row.blocks, row.lifetime];
            let numbers = cells(misses(&row.misses).into_iter().chain(others));
            out += &format!("{},{numbers},{}\r\n", names.join(","), field(&frames.join(" < ")));
        }
        out
    }
}

/// Types or fields as CSV.
fn lines(lines: &[Line], rows: usize) -> String {
    let mut out = String::from(
        "name,l1i_misses,l1d_load_misses,l1d_store_misses,l2_misses,l3_misses,dtlb_misses,size_bytes\r\n",
    );
    for line in lines.iter().take(rows) {
        let numbers = misses(&line.misses).into_iter().chain([line.size_bytes]);
        out += &format!("{},{}\r\n", field(&line.name), cells(numbers));
    }
    out
}

/// Numbers with commas between them; a null number is an empty field.
fn cells(numbers: impl Iterator<Item = Option<u64>>) -> String {
    let numbers: Vec<String> =
        numbers.map(|number| number.map_or(String::new(), |it| it.to_string())).collect();
    numbers.join(",")
}

fn misses(misses: &Misses) -> [Option<u64>; 6] {
    [
        misses.l1i_misses,
        misses.l1d_load_misses,
        misses.l1d_store_misses,
        misses.l2_misses,
        misses.l3_misses,
        misses.dtlb_misses,
    ]
}
