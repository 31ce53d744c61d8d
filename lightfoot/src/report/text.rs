//! Writes a report as text: the program and its end, the totals, and a table of the largest rows.
//!
//! The text has 80 columns unless the terminal is wider. Numbers are whole, with thousands
//! separators. If the table's numbers leave too little room for names, they are shortened
//! (`12.3M`); totals never are.

use super::attached::Attached;
use super::cycles::Branches;
use super::layouts;
use super::measurement::Report;
use super::metric::{short, Kind, Metric, CACHE_METRICS, COUNT_METRICS, L1D};
use super::process::ProcessRow;
use super::row::{Frame, Row};
use super::simulated;
use crate::cli::By;
use crate::run::hierarchy::{Prefetched, Traffic};
use crate::run::tally::Counts;
use cycles::KNOWN_ERROR_PERCENT;
use present::number::{brief, compact, grouped, percent, rate, seconds};
use present::terminal::{beside, middle_cut, printable, Page};
use std::path::Path;
use symbol::UNKNOWN;

/// Numbers are shortened if names would have fewer columns than this.
const NAME_WIDTH_MIN: usize = 30;

/// The report as text.
pub fn show(report: &Report, by: &[By], rows: usize, page: &Page) -> String {
    let mut out = heading(report, page);
    out += &totals(report);
    out += &timing(report);
    let spreads = report.layouts.as_ref();
    out += &spreads.map(|spreads| layouts::text(report.metrics(), spreads)).unwrap_or_default();
    out += &match &report.objects {
        Some(objects) => objects.text(by, rows, page),
        None => table(report, by, rows, page),
    };
    out += &processes(report, page);
    let references = report.totals.loads + report.totals.stores;
    out += &report.curve.as_ref().map(|curve| curve.text(references)).unwrap_or_default();
    for warning in &report.warnings {
        out += &page.sentence("warning: ", &printable(warning));
    }
    out
}

fn heading(report: &Report, page: &Page) -> String {
    let name = match report.kind {
        Kind::Count => "lightfoot count",
        Kind::Cache => "lightfoot cache",
    };
    let within =
        report.region.iter().map(|region| format!("region {} of ", printable(region))).collect::<String>();
    let command = within + &printable(&report.command.join(" "));
    let end = match (report.partial, report.signal) {
        _ if report.attached.is_some() => report.attached.iter().map(Attached::end).collect(),
        (true, _) => "interrupted: partial".to_owned(),
        (_, Some(signal)) => format!("ended by signal {signal}"),
        (_, None) => format!("exit status {}", report.exit_status),
    };
    let room = page.width.saturating_sub(name.len() + end.len() + 4).max(8);
    format!("{}: {}, {end}\n", page.bold(name), middle_cut(&command, room))
}

fn totals(report: &Report) -> String {
    let metrics: Vec<&Metric> = report.metrics().filter(|metric| was_asked_for(report, metric)).collect();
    let values: Vec<String> =
        metrics.iter().map(|metric| (metric.value)(&report.totals).map_or("-".into(), grouped)).collect();
    let width = values.iter().map(String::len).max().unwrap_or(0);
    let mut out = String::new();
    for (metric, value) in metrics.into_iter().zip(&values) {
        let line = format!("  {:<16} {value:>width$}{}", metric.label, remark(report, metric));
        out += line.trim_end();
        out += "\n";
    }
    out + &beside_the_rows(report)
}

/// Whether the user requested a metric. The text does not mention others; JSON says how to request
/// them.
fn was_asked_for(report: &Report, metric: &Metric) -> bool {
    match metric.field {
        "branch_mispredictions" => report.conditional_branches.is_some(),
        "estimated_cycles" => report.cycles.is_some(),
        _ => true,
    }
}

/// Write-backs, which belong to no row, what estimated cycles are spent on, and the simulated
/// machine.
fn beside_the_rows(report: &Report) -> String {
    let mut out = String::new();
    if let Some(write_backs) = &report.write_backs {
        let levels: Vec<String> = write_backs
            .iter()
            .map(|(level, count)| format!("{} {}", level.to_uppercase(), grouped(*count)))
            .collect();
        out += &format!("  {:<16} {}\n", "write-backs", levels.join(", "));
    }
    if let Some(traffic) = &report.traffic {
        let level = |(level, lines): (&String, &Traffic)| {
            let out = grouped(lines.dirty_out + lines.clean_out);
            format!("{} {} in, {out} out", level.to_uppercase(), grouped(lines.lines_in))
        };
        let levels: Vec<String> = traffic.iter().map(level).collect();
        out += &format!("  {:<16} {}\n", "lines moved", levels.join("; "));
    }
    if let Some(prefetched) = &report.prefetched {
        let level = |(level, lines): (&String, &Prefetched)| {
            let late =
                if lines.late > 0 { format!(" ({} late)", grouped(lines.late)) } else { String::new() };
            format!("{} {}{late}", level.to_uppercase(), grouped(lines.lines))
        };
        let levels: Vec<String> = prefetched.iter().map(level).collect();
        out += &format!("  {:<16} {}\n", "prefetched lines", levels.join(", "));
    }
    if let Some(cycles) = &report.cycles {
        let spent = cycles.spent(Branches::of(report.conditional_branches));
        // Lines break between two parts, never inside one.
        let spent =
            beside(&format!("  {:<16} ", "spent on"), &spent.replace(' ', "\u{a0}").replace(",\u{a0}", ", "));
        out += &spent.replace('\u{a0}', " ");
    }
    if report.kind == Kind::Cache {
        out += &simulated::line(&report.machine);
    }
    out + &behaviour(report)
}

/// The machine's behaviour beyond sizes and ways, and how it was simulated; empty for defaults.
fn behaviour(report: &Report) -> String {
    let text = |value: &serde_json::Value, field: &str| value[field].as_str().map(str::to_owned);
    let levels = report.machine["cache"].as_array().into_iter().flatten().filter_map(|cache| {
        let mut words: Vec<String> =
            ["replacement", "inclusion", "prefetch"].iter().filter_map(|field| text(cache, field)).collect();
        words.extend(cache["prefetch_late_touches"].as_u64().map(|touches| format!("late:{touches}")));
        let masks = cache["slice_masks"].as_array();
        words.extend(masks.map(|masks| format!("in {} slices", 1u64 << masks.len())));
        let kind = match cache["kind"].as_str() {
            Some("data") => "D",
            Some("instruction") => "I",
            _ => "",
        };
        (!words.is_empty()).then(|| format!("L{}{kind} {}", cache["level"], words.join(" ")))
    });
    let simulation = &report.machine["simulation"];
    let pages = simulation["huge_pages"].as_array().into_iter().flatten().filter_map(|pages| pages.as_str());
    let placed = text(simulation, "pages").filter(|pages| pages != "virtual");
    let pages =
        pages.map(|pages| format!("pages {pages}")).chain(placed.map(|pages| format!("pages {pages}")));
    let predictor = text(simulation, "predictor").map(|name| format!("branches {name}"));
    let parts: Vec<String> = levels.chain(pages).chain(predictor).collect();
    if parts.is_empty() {
        return String::new();
    }
    format!("  {:<16} {}\n", "simulated as", parts.join(", "))
}

/// The remark beside a total: a miss rate, or why there is no number.
fn remark(report: &Report, metric: &Metric) -> String {
    if let Some(reason) = report.null_reasons.get(metric.field) {
        return format!("  ({reason})");
    }
    let totals = &report.totals;
    let (whole, of) = match metric.field {
        "l1i_misses" => (totals.instructions, "instructions"),
        "l1d_load_misses" => (totals.loads, "loads"),
        "l1d_store_misses" => (totals.stores, "stores"),
        "l2_misses" | "l3_misses" | "dtlb_misses" => (totals.loads + totals.stores, "loads and stores"),
        "branch_mispredictions" => (report.conditional_branches.unwrap_or(0), "conditional branches"),
        "estimated_cycles" => return known_error(),
        _ => return String::new(),
    };
    let part = (metric.value)(totals).unwrap_or(0);
    format!("  {:>8} of {of}", rate(part, whole))
}

/// How far estimates of cycles were off, as text beside one.
fn known_error() -> String {
    format!("  (about ± {KNOWN_ERROR_PERCENT:.0} % in loops, too low elsewhere)")
}

fn timing(report: &Report) -> String {
    let speed = report
        .instructions_per_s
        .map(|rate| format!(", {} instructions/s", compact(rate)))
        .unwrap_or_default();
    let slowdown = match (report.slowdown, report.native_wall_s) {
        (Some(slowdown), Some(native)) => format!("{slowdown:.1}× the native {}", seconds(native)),
        _ => report.null_reasons.get("slowdown").cloned().unwrap_or_default(),
    };
    let wall = format!("  {:<16} {}{speed}\n", "wall time", seconds(report.wall_s));
    match report.attached {
        Some(attached) => wall + &attached.text(),
        None => wall + &format!("  {:<16} {slowdown}\n", "slowdown"),
    }
}

fn table(report: &Report, by: &[By], rows: usize, page: &Page) -> String {
    let all = report.rows(by);
    let shown = &all[..rows.min(all.len())];
    if shown.is_empty() {
        return String::new();
    }
    let label: Vec<&str> = by.iter().map(|by| by_label(*by)).collect();
    let out = lines(report, shown, &label.join(", "), page, |row, room| name(row, by, room));
    let rest = all.len() - shown.len();
    let more = if rest > 0 { format!("{} more with --top 0; ", grouped(rest as u64)) } else { String::new() };
    let inlined = if has_inlined(shown) { "; +inl: with what was inlined there" } else { "" };
    out + &format!("  ({more}share: of {}{inlined})\n", share_of(report))
}

/// Shares, numbers and names of `rows`, under a heading.
fn lines(
    report: &Report,
    rows: &[Row],
    label: &str,
    page: &Page,
    name: impl Fn(&Row, usize) -> String,
) -> String {
    let width = page.width.max(40);
    let columns = columns(report);
    let shares = Shares { report, inlined: has_inlined(rows) };
    let taken = shares.width() + 2;
    let full = Numbers::new(&columns, rows, grouped);
    let fits = full.width() + taken + NAME_WIDTH_MIN <= width;
    let numbers = if fits { full } else { Numbers::new(&columns, rows, brief) };
    let room = width.saturating_sub(numbers.width() + taken).max(NAME_WIDTH_MIN / 2);
    let heading = format!("{}{}  {label}", shares.heading(), numbers.heading);
    let mut out = format!("\n{}\n", page.bold(&heading));
    for (row, cells) in rows.iter().zip(&numbers.lines) {
        out += &format!("{}{cells}  {}\n", shares.of(row), name(row, room));
    }
    out
}

/// Whether the table has a column with the costs of lines including inlined code.
fn has_inlined(rows: &[Row]) -> bool {
    rows.iter().any(|row| row.with_inlined.is_some())
}

/// The first columns of a table, which hold percentages.
struct Shares<'a> {
    report: &'a Report,
    inlined: bool,
}

impl Shares<'_> {
    fn width(&self) -> usize {
        self.heading().len()
    }

    fn heading(&self) -> String {
        format!("{:>7}{}", "share", if self.inlined { "     +inl" } else { "" })
    }

    fn of(&self, row: &Row) -> String {
        let whole = self.report.weight(&self.report.totals).0;
        let share = |counts: &Counts| percent(self.report.weight(counts).0, whole);
        let inlined = row.with_inlined.as_deref().filter(|_| self.inlined).map(share);
        let own = share(&row.counts);
        match self.inlined {
            true => format!("{own:>7}{:>9}", inlined.unwrap_or_default()),
            false => format!("{own:>7}"),
        }
    }
}

/// One line for each process that was followed, in the order of their birth.
fn processes(report: &Report, page: &Page) -> String {
    let Some(processes) = &report.processes else { return String::new() };
    let rows: Vec<Row> = processes.iter().map(process).collect();
    let name = |row: &Row, room: usize| match row.name.char_indices().nth(room.saturating_sub(1)) {
        Some((at, _)) if row.name.chars().count() > room => format!("{}…", row.name[..at].trim_end()),
        _ => row.name.trim_end().to_owned(),
    };
    lines(report, &rows, "process", page, name) + "  (the totals are the sum of these)\n"
}

fn process(process: &ProcessRow) -> Row {
    Row { name: printable(&process.title()), counts: process.counts, ..Row::default() }
}

fn share_of(report: &Report) -> &'static str {
    match (report.sort, report.kind) {
        (Some(metric), _) => metric.label,
        (None, Kind::Count) => "instructions",
        (None, Kind::Cache) => "first-level misses, L1I and L1D",
    }
}

/// The columns of a table, without blocks, which are similar to instructions, and without levels
/// that the machine lacks.
fn columns(report: &Report) -> Vec<&'static Metric> {
    let present = |metric: &&Metric| (metric.value)(&report.totals).is_some();
    match report.kind {
        Kind::Count => COUNT_METRICS.iter().filter(|metric| metric.field != "blocks").collect(),
        Kind::Cache => {
            let other = CACHE_METRICS.iter().filter(|metric| !metric.field.starts_with("l1d"));
            COUNT_METRICS[..1].iter().chain([&L1D]).chain(other.filter(present)).collect()
        }
    }
}

fn by_label(by: By) -> &'static str {
    match by {
        By::Function => "function",
        By::Library => "library",
        By::Opcode => "opcode",
        By::Line => "line",
        By::Thread => "thread",
        By::Object => "object",
        By::Type => "type",
        By::Field => "field",
        By::Call => "call",
    }
}

/// The name of a row, by its key.
fn name(row: &Row, by: &[By], room: usize) -> String {
    match by {
        [By::Function] => function(row, room),
        [By::Call] => {
            let calls = row.calls.unwrap_or(0);
            let calls = format!(" ({} call{})", brief(calls), if calls == 1 { "" } else { "s" });
            middle_cut(&printable(&row.name), room.saturating_sub(calls.len())) + &calls
        }
        [By::Library | By::Opcode | By::Thread | By::Object | By::Type | By::Field] => {
            middle_cut(&printable(&row.name), room)
        }
        _ => combination(row, by, room),
    }
}

/// The name of a row with a combined key, as in `mov file.c:12 function`. The source line is shown
/// in full if it fits; its folder is in JSON only.
fn combination(row: &Row, by: &[By], room: usize) -> String {
    let mut words = Vec::new();
    words.extend(row.opcode.as_deref().filter(|_| row.opcode.as_ref() != Some(&row.name)).map(printable));
    if by.contains(&By::Line) {
        words.push(match (&row.file, row.line) {
            (Some(file), Some(line)) => format!("{}:{line}", printable(file_name(file))),
            _ => UNKNOWN.to_owned(),
        });
    }
    let from = caller(row).filter(|_| by.contains(&By::Line));
    words.extend(from.map(|from| format!("from {}:{}", printable(file_name(&from.file)), from.line)));
    let taken = words.iter().map(|word| word.chars().count() + 1).sum::<usize>();
    if taken + 6 > room {
        return middle_cut(&words.join(" "), room);
    }
    let innermost = from.or(row.frames.first()).filter(|_| !by.contains(&By::Function));
    let known = row.file.is_some() && !by.contains(&By::Library);
    words.push(match innermost {
        Some(frame) => middle_cut(&printable(&frame.function), room - taken),
        None if known => middle_cut(&printable(&row.name), room - taken),
        None => function(row, room - taken),
    });
    words.join(" ")
}

/// Folders of sources that the user did not write.
const FOREIGN: &[&str] = &["/usr/", "/rustc/", "/.cargo/registry/", "/.rustup/", "/go/pkg/mod/"];

/// For inlined library code the nearest frame outside of it, which the user wrote.
fn caller(row: &Row) -> Option<&Frame> {
    let is_foreign = |file: &str| FOREIGN.iter().any(|place| file.contains(place));
    let inner = row.file.as_deref().is_some_and(is_foreign);
    let mut around = row.frames.iter().skip(1).filter(|frame| frame.line > 0);
    around.find(|frame| inner && !is_foreign(&frame.file))
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A function with its library. If both do not fit, the library's version is cut first, and then
/// the middle of both names.
fn function(row: &Row, room: usize) -> String {
    let Some(library) = &row.library else {
        return middle_cut(&printable(&row.name), room);
    };
    let library =
        Path::new(library).file_name().map_or(library.as_str().into(), |name| name.to_string_lossy());
    let function = printable(&row.name);
    let mut library = printable(&library);
    if function == library {
        return middle_cut(&function, room);
    }
    if function.chars().count() + library.chars().count() + 3 > room {
        library.truncate(library.find(".so").unwrap_or(library.len()));
        library = middle_cut(&library, (room / 3).max(6));
    }
    let left = room.saturating_sub(library.chars().count() + 3).max(8);
    // The name that stands for memory without a file has brackets of its own.
    let library = library.trim_matches(['[', ']']);
    format!("{} [{library}]", middle_cut(&function, left))
}

/// The table's numbers, aligned.
struct Numbers {
    heading: String,
    lines: Vec<String>,
}

impl Numbers {
    fn new(columns: &[&Metric], rows: &[Row], format: fn(u64) -> String) -> Numbers {
        let cell = |metric: &Metric, row: &Row| (metric.value)(&row.counts).map_or("-".into(), format);
        let mut numbers = Numbers { heading: String::new(), lines: vec![String::new(); rows.len()] };
        for metric in columns {
            let label = short(metric);
            let cells: Vec<String> = rows.iter().map(|row| cell(metric, row)).collect();
            let width = cells.iter().map(String::len).max().unwrap_or(0).max(label.len()) + 2;
            numbers.heading += &format!("{label:>width$}");
            for (line, cell) in numbers.lines.iter_mut().zip(cells) {
                *line += &format!("{cell:>width$}");
            }
        }
        numbers
    }

    fn width(&self) -> usize {
        self.heading.chars().count()
    }
}
