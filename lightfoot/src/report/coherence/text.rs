//! Coherent caches for people: misses by cause, and the rows that were asked for.

use super::{runs, CoherenceReport, LineRow, Lying, PairRow};
use crate::cli::SharedBy;
use ::objects::FieldPlace;
use coherence::{LineCounts, Touched};
use present::number::{brief, grouped};
use present::terminal::{middle_cut, printable, Page};

/// Pairs that are shown below a line.
const PAIRS: usize = 3;
/// From so many fields on, not all are named.
const FIELDS: usize = 5;

impl CoherenceReport {
    /// The report with its first `rows` rows as text.
    pub fn text(&self, by: SharedBy, rows: usize, page: &Page) -> String {
        let mut out = self.heading(page) + &self.totals();
        let (count, table) = match by {
            SharedBy::Line => (self.lines.len(), self.lines_table(rows, page)),
            SharedBy::Object => (self.objects.len(), self.objects_table(rows, page)),
            SharedBy::Source => (self.pairs.len(), self.pairs_table(rows, page)),
        };
        out += &match count {
            0 => "\nNo line was taken from one core by another.\n".to_owned(),
            _ => format!("\n{}\n{table}", page.bold(&header(by))),
        };
        if count > rows {
            out += &format!("({} more with --top 0)\n", grouped((count - rows) as u64));
        }
        for warning in &self.warnings {
            out += &page.sentence("warning: ", &printable(warning));
        }
        out
    }

    fn heading(&self, page: &Page) -> String {
        let name = "lightfoot cache --coherence";
        let end = match self.ran.partial {
            true => "interrupted: partial".to_owned(),
            false => format!("exit status {}", self.ran.exit_status),
        };
        let room = page.width.saturating_sub(name.len() + end.len() + 4).max(8);
        let command = printable(&self.ran.command.join(" "));
        let levels = self.ran.levels.iter().map(|(level, bytes)| format!("{level} of {}", size(*bytes)));
        let cores = self.cores.len();
        let machine = format!(
            "{}, {cores} {} with {}; turns of {} instructions",
            self.ran.machine,
            if cores == 1 { "core" } else { "cores" },
            levels.collect::<Vec<_>>().join(" and "),
            grouped(self.ran.quantum.into())
        );
        format!(
            "{}: {}, {end}\n{}",
            page.bold(name),
            middle_cut(&command, room),
            page.sentence("  ", &machine)
        )
    }

    fn totals(&self) -> String {
        let all = &self.total;
        let mut lines = vec![
            ("instructions", self.ran.instructions),
            ("loads", all.loads),
            ("stores", all.stores),
            ("atomics", all.atomics),
            ("  that moved a line", all.atomic_transfers),
            ("L1D misses", all.misses()),
            ("  cold", all.cold),
            ("  capacity", all.capacity),
            ("  conflict", all.conflict),
            ("  true sharing", all.true_sharing),
            ("  false sharing", all.false_sharing),
            ("misses of all private levels", all.private_misses),
            ("upgrades", all.upgrades),
            ("invalidations", all.invalidations),
            ("dirty transfers", all.dirty_transfers),
            ("write-backs", all.write_backs),
        ];
        lines.extend(self.ran.placed.map(|placed| ("migrations of threads", placed.migrations)));
        let width = lines.iter().map(|line| grouped(line.1).len()).max().unwrap_or(0);
        let line = |(label, value): &(&str, u64)| format!("  {label:<30} {:>width$}\n", grouped(*value));
        lines.iter().map(line).collect()
    }

    fn lines_table(&self, rows: usize, page: &Page) -> String {
        let mut out = String::new();
        for line in self.lines.iter().take(rows) {
            let named = format!("{:#x}  {}", line.address, objects_of(line));
            out += &row(&cells(&line.counts), &named, page);
            for touched in &line.touched {
                let text = bytes_of(touched, line, self.line_bytes);
                out += &format!("      {}\n", middle_cut(&text, page.width.saturating_sub(6)));
            }
            for pair in line.pairs.iter().filter(|pair| pair.sharing() > 0).take(PAIRS) {
                out += &pair_lines(pair, page);
            }
        }
        out
    }

    fn objects_table(&self, rows: usize, page: &Page) -> String {
        let line = |object: &super::ObjectRow| {
            let lines = if object.lines == 1 { "line" } else { "lines" };
            let named = format!("{} ({} {lines})", object.name, grouped(object.lines));
            row(&cells(&object.counts), &named, page)
        };
        self.objects.iter().take(rows).map(line).collect()
    }

    fn pairs_table(&self, rows: usize, page: &Page) -> String {
        let line = |pair: &PairRow| {
            let cells = [pair.false_sharing, pair.true_sharing];
            let behind = format!("{:>18}  after {}\n", "", printable(&pair.took.named()));
            row(&cells, &pair.missed.named(), page) + &middle_cut(behind.trim_end(), page.width) + "\n"
        };
        self.pairs.iter().take(rows).map(line).collect()
    }
}

fn header(by: SharedBy) -> String {
    let line = |cells: &[&str]| cells.iter().map(|cell| format!("{cell:>9}")).collect::<String>();
    match by {
        SharedBy::Line => line(&["false", "true", "upgrades", "taken"]) + "  line and what lies there",
        SharedBy::Object => line(&["false", "true", "upgrades", "taken"]) + "  object",
        SharedBy::Source => line(&["false", "true"]) + "  place that missed, after a write at another",
    }
}

fn cells(counts: &LineCounts) -> [u64; 4] {
    [counts.false_sharing, counts.true_sharing, counts.upgrades, counts.invalidations]
}

fn row(cells: &[u64], named: &str, page: &Page) -> String {
    let numbers: String = cells.iter().map(|cell| format!("{:>9}", brief(*cell))).collect();
    let room = page.width.saturating_sub(numbers.len() + 2).max(20);
    format!("{numbers}  {}\n", middle_cut(&printable(named), room))
}

/// The objects of a line, with the bytes of the line in which they lie.
fn objects_of(line: &LineRow) -> String {
    let one = |object: &Lying| match object.address {
        Some(address) if address < line.address => format!("{}+{}", object.name, line.address - address),
        Some(address) if address > line.address => {
            format!("{} from byte {} on", object.name, address - line.address)
        }
        _ => object.name.clone(),
    };
    line.objects.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn bytes_of(touched: &Touched, line: &LineRow, line_bytes: u32) -> String {
    let list = |bits: u64| {
        let fields = fields_of(bits, line, line_bytes);
        let runs = runs(bits, line_bytes);
        let run = |(first, last): &(u32, u32)| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        };
        runs.iter().map(run).collect::<Vec<_>>().join(",") + &fields
    };
    let mut parts = Vec::new();
    if touched.read != 0 {
        parts.push(format!("reads {}", list(touched.read)));
    }
    if touched.written != 0 {
        parts.push(format!("writes {}", list(touched.written)));
    }
    format!("core {}: bytes {}", touched.core, parts.join("; "))
}

/// The names of the fields to which a core's bytes of a line belong, in brackets.
fn fields_of(bits: u64, line: &LineRow, line_bytes: u32) -> String {
    let touched: Vec<(u64, u64)> = runs(bits, line_bytes)
        .into_iter()
        .map(|(first, last)| (line.address + u64::from(first), line.address + u64::from(last)))
        .collect();
    let mut names = Vec::new();
    for object in &line.objects {
        // Blocks of the heap have a place for a name, which stands above.
        let of = if object.name.starts_with("heap block") { "" } else { &object.name };
        let is_touched = |field: &&FieldPlace| {
            touched
                .iter()
                .any(|(first, last)| field.address <= *last && field.address + field.size_bytes > *first)
        };
        names.extend(object.fields.iter().filter(is_touched).map(|field| format!("{of}{}", field.name)));
    }
    match names.len() {
        0 => String::new(),
        more @ FIELDS.. => format!(" ({}, {} more)", names[..FIELDS - 1].join(", "), more - FIELDS + 1),
        _ => format!(" ({})", names.join(", ")),
    }
}

fn pair_lines(pair: &PairRow, page: &Page) -> String {
    let kind = match (pair.false_sharing, pair.true_sharing) {
        (false_sharing, 0) => format!("{} false", brief(false_sharing)),
        (0, true_sharing) => format!("{} true", brief(true_sharing)),
        (false_sharing, true_sharing) => {
            format!("{} false, {} true", brief(false_sharing), brief(true_sharing))
        }
    };
    let room = page.width.saturating_sub(8);
    let missed = format!("{kind}: {}", printable(&pair.missed.named()));
    let took = format!("after {}", printable(&pair.took.named()));
    format!("      {}\n        {}\n", middle_cut(&missed, room), middle_cut(&took, room))
}

fn size(bytes: u64) -> String {
    let kib = bytes as f64 / 1024.0;
    match kib >= 1024.0 {
        true => format!("{} MiB", kib / 1024.0),
        false => format!("{kib} KiB"),
    }
}
