//! One page that opens offline and shows totals, time, functions, annotated source and the call
//! tree.
//!
//! The page has the style of all pages, a script of this folder, and the report's numbers as JSON.
//! The script makes rows when they become visible, so a large profile opens at once. Large parts
//! have a budget: the heaviest lines, the sources that contain them, and the contexts with at least
//! a thousandth of any total. The page says what it omits. **Leaves out** anything that must be
//! fetched, such as fonts and libraries.

use super::curve::Point;
use super::cycles::Branches;
use super::detail::{Detail, Part};
use super::measurement::Report;
use super::metric::{Kind, Metric, COUNT_METRICS};
use crate::run::tally::Counts;
use present::number::{grouped, rate, seconds};
use present::order::{map_of, SortRows};
use present::page::{text, Page as Document};
use present::terminal::printable;
use serde::Serialize;
use serde_json::{json, Value};
use simulate::distance::Window;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// The most lines in the page.
const LINES_MAX: usize = 50_000;
/// The most functions in the page.
const FUNCTIONS_MAX: usize = 20_000;
/// The most bytes of all sources in the page, and of one source.
const SOURCES_BYTES_MAX: usize = 1_500_000;
const SOURCE_BYTES_MAX: u64 = 600_000;
/// The most processes that the page shows separately, and the most lines of all of them.
const PROCESSES_MAX: usize = 100;
const PROCESS_LINES_MAX: usize = 100_000;
/// Contexts with less than one part in this many of every column's total are omitted.
const CONTEXT_SHARE: u64 = 1000;

const SCRIPT: &str = include_str!("page/page.js");

/// Notes about the meaning of the numbers, for readers who have not read LIMITS.md.
const NOTES: &[&str] = &[
    "Misses are those of the described machine, with least-recently-used replacement and no prefetching; real hardware prefetches streams.",
    "Addresses are virtual, and the kernel's own references, page walks and speculation are not seen.",
    "Cycles, where given, are estimated: a sum of events, each times what the machine's description declares for it. Good for comparing two runs, no prediction of seconds.",
    "Counts are exact for the path that this run took; address randomisation was off, so that runs repeat.",
];

/// The processes that the page shows, by index: all, or the heaviest first if they are too many.
pub fn processes_shown(report: &Report, processes: &[Part]) -> Vec<usize> {
    let mut shown: Vec<usize> = (0..processes.len()).collect();
    if shown.len() > PROCESSES_MAX {
        shown.sort_rows_by_key(|process| Reverse(report.weight(&processes[*process].totals)));
        shown.truncate(PROCESSES_MAX);
    }
    shown
}

/// The whole page.
///
/// # Errors
/// When the numbers cannot be put in JSON, which would be a defect.
pub fn show(report: &Report, detail: &Detail) -> anyhow::Result<String> {
    let mut page = Page::new(report, detail);
    let data = serde_json::to_string(&page.data())?;
    let title = report.command.join(" ");
    let notes: String = NOTES.iter().map(|note| format!("<li>{note}</li>")).collect();
    let notes = format!("<section><h2>What the numbers do not say</h2><ul>{notes}</ul></section>\n");
    let body = page.head(&text(&title)) + BODY + &notes;
    let title = format!("lightfoot: {title}");
    Ok(Document { title: &title, body: &body, style: "", script: Some((&data, SCRIPT)) }.html())
}

/// What a page begins with: the program, its end, the machine, totals and warnings.
pub(super) fn head(report: &Report) -> String {
    Page::new(report, &Detail::default()).head(&text(&report.command.join(" ")))
}

/// The parts that the script fills.
const BODY: &str = r#"<section id="process-section"><h2>Processes</h2><div class="bar"><label>functions and source of <select id="process"></select></label></div><p id="process-note" class="faint"></p></section>
<section id="time-section"><h2>Over time, per 1,000 instructions</h2><p class="faint">From left to right, by instructions executed.</p><div id="time"></div></section>
<section id="sets-section"><h2>Working set over time</h2><p id="sets-note" class="faint"></p><div id="sets"></div><h3>Footprint: touched since the start</h3><div id="footprint"></div></section>
<section id="curve-section"><h2>Miss ratio by cache size</h2><p id="curve-note" class="faint"></p><div id="curve"></div>
<details><summary>Numbers</summary><div class="scroll"><table id="sizes"></table></div></details></section>
<section><h2>Functions</h2><div class="bar"><input id="filter" placeholder="Filter by name or library" aria-label="Filter functions"><label>shares of <select id="by"></select></label></div>
<div class="scroll tall"><table id="functions"></table></div><p><button id="more"></button></p></section>
<section id="source-section"><h2>Source</h2><div class="bar"><select id="file" aria-label="Source file"></select></div><p id="source-note" class="faint"></p><p id="cuts" class="faint"></p>
<div class="scroll tall"><table id="source" class="source"></table></div></section>
<section id="tree-section"><h2>Call tree</h2><p class="faint">Share with calls, share by itself. Recursion stands with its outermost call; contexts below a thousandth of everything are left out.</p><div id="tree" class="tall" role="tree"></div></section>
<noscript><p class="warn">The tables of this page are drawn by a script, which is switched off.</p></noscript>
"#;

/// The number of a line, its own costs, and its costs with inlined code, if there is any.
#[derive(Serialize)]
struct Line(u32, Vec<u64>, #[serde(skip_serializing_if = "Option::is_none")] Option<Vec<u64>>);

struct Page<'a> {
    report: &'a Report,
    detail: &'a Detail,
    columns: Vec<&'static Metric>,
    /// The column that shares refer to until the reader chooses another one.
    column: usize,
    inclusive: Vec<Counts>,
    /// Sentences about what was omitted because of the page's size.
    cuts: Vec<String>,
}

impl<'a> Page<'a> {
    fn new(report: &'a Report, detail: &'a Detail) -> Page<'a> {
        let present = |metric: &&Metric| metric.field != "blocks" && (metric.value)(&report.totals).is_some();
        let columns: Vec<&Metric> = report.metrics().filter(present).collect();
        let wanted = match (report.sort, report.kind) {
            (Some(metric), _) => metric.field,
            (None, Kind::Cache) => "l1d_load_misses",
            (None, Kind::Count) => COUNT_METRICS[0].field,
        };
        let column = columns.iter().position(|metric| metric.field == wanted).unwrap_or(0);
        let inclusive = detail.calls.as_ref().map(|calls| calls.inclusive()).unwrap_or_default();
        Page { report, detail, columns, column, inclusive, cuts: Vec::new() }
    }

    fn values(&self, counts: &Counts) -> Vec<u64> {
        self.columns.iter().map(|metric| (metric.value)(counts).unwrap_or(0)).collect()
    }

    fn head(&self, title: &str) -> String {
        let report = self.report;
        let name = if report.kind == Kind::Cache { "lightfoot cache" } else { "lightfoot count" };
        let region =
            report.region.iter().map(|region| format!("region {} of ", text(region))).collect::<String>();
        let end = match (report.partial, report.signal) {
            (true, _) => "interrupted: partial".to_owned(),
            (_, Some(signal)) => format!("ended by signal {signal}"),
            (_, None) => format!("exit status {}", report.exit_status),
        };
        let mut out = format!(
            "<h1><small>{name}</small> {region}{title}</h1>\n<p class=\"faint\">{end}; {}</p>\n",
            self.machine()
        );
        out += "<div class=\"tiles\">\n";
        for (label, value, remark) in self.tiles() {
            out += &format!(
                "<div class=\"tile\"><small>{label}</small><b>{value}</b><small>{remark}</small></div>\n"
            );
        }
        out += "</div>\n";
        for warning in &report.warnings {
            out += &format!("<p class=\"warn\">{}</p>\n", text(warning));
        }
        out
    }

    /// The machine in a line.
    fn machine(&self) -> String {
        let machine = &self.report.machine;
        let name = machine.get("name").and_then(Value::as_str).unwrap_or("unknown");
        let verb = if self.report.kind == Kind::Cache { "simulated machine" } else { "on machine" };
        let caches = machine.get("cache").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let caches: Vec<String> = caches.iter().filter_map(cache).collect();
        let caches = if caches.is_empty() || self.report.kind == Kind::Count {
            String::new()
        } else {
            format!(" ({})", caches.join(", "))
        };
        format!("{verb} <b>{}</b>{caches}", text(name))
    }

    fn tiles(&self) -> Vec<(String, String, String)> {
        let report = self.report;
        let mut tiles: Vec<(String, String, String)> = self
            .columns
            .iter()
            .map(|metric| {
                let value = (metric.value)(&report.totals).unwrap_or(0);
                let (whole, of) = match metric.field {
                    "l1i_misses" => (report.totals.instructions, "of instructions"),
                    "l1d_load_misses" => (report.totals.loads, "of loads"),
                    "l1d_store_misses" => (report.totals.stores, "of stores"),
                    "l2_misses" | "l3_misses" | "dtlb_misses" => {
                        (report.totals.loads + report.totals.stores, "of loads and stores")
                    }
                    "branch_mispredictions" => {
                        (report.conditional_branches.unwrap_or(0), "of conditional branches")
                    }
                    // Other columns are no part of a whole: their tile has no rate.
                    _ => (0, ""),
                };
                let remark = match (&report.cycles, metric.field) {
                    (Some(cycles), "estimated_cycles") => {
                        text(&cycles.spent(Branches::of(report.conditional_branches)))
                    }
                    _ if of.is_empty() => String::new(),
                    _ => format!("{} {of}", rate(value, whole)),
                };
                (metric.label.to_owned(), grouped(value), remark)
            })
            .collect();
        tiles.push(("wall time".into(), seconds(report.wall_s), "of the measured run".into()));
        // Without a native run, the tile gives the reason instead of a number.
        tiles.push(match (report.slowdown, report.native_wall_s) {
            (Some(slowdown), Some(native)) => {
                ("slowdown".into(), format!("{slowdown:.1}×"), format!("of the native {}", seconds(native)))
            }
            _ => (
                "slowdown".into(),
                "–".into(),
                text(report.null_reasons.get("slowdown").map_or("", String::as_str)),
            ),
        });
        tiles
    }

    fn data(&mut self) -> Value {
        let libraries = self.libraries();
        let lines = self.lines();
        let sources = self.sources(&lines);
        let functions = self.functions(&libraries);
        let columns: Vec<Value> = self
            .columns
            .iter()
            .map(|metric| json!({"field": metric.field, "label": metric.label, "short": short(metric)}))
            .collect();
        json!({
            "kind": self.report.kind,
            "columns": columns,
            "column": self.column,
            "totals": self.values(&self.report.totals),
            "libraries": libraries.iter().map(|(_, name)| *name).collect::<Vec<_>>(),
            "files": self.detail.files,
            "functions": functions,
            "lines": lines,
            "sources": sources,
            "calls": self.calls(),
            "processes": self.processes(),
            "slices": self.slices(),
            "sets": self.working_set(),
            "curve": self.curve(),
            "cuts": self.cuts,
        })
    }

    /// Libraries by number.
    fn libraries(&self) -> Vec<(usize, &'a str)> {
        let mut names: Vec<&str> =
            self.detail.functions.iter().map(|function| function.library.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names.into_iter().enumerate().collect()
    }

    /// `[name, library, file, line, own, with calls]` by number. The budget limits them, but never
    /// below the last function of the call tree.
    fn functions(&mut self, libraries: &[(usize, &str)]) -> Vec<Value> {
        let library: HashMap<&str, usize> = libraries.iter().map(|(number, name)| (*name, *number)).collect();
        let files: HashMap<&str, usize> =
            self.detail.files.iter().enumerate().map(|(number, file)| (file.as_str(), number)).collect();
        // Counts with calls, of functions that the call tree contains. Context 0 is the root, which
        // is no function.
        let mut all: Vec<Option<Counts>> = vec![None; self.detail.functions.len()];
        if let Some(calls) = &self.detail.calls {
            for (context, counts) in calls.contexts.iter().zip(&self.inclusive).skip(1) {
                all[context.function as usize].get_or_insert_default().add(counts);
            }
        }
        // The tree names functions by their place in this list, so the list reaches at least to the
        // last function of the tree.
        let functions =
            self.detail.functions.iter().zip(all).take(FUNCTIONS_MAX.max(all_in_tree(self.detail)));
        functions
            .map(|(function, all)| {
                let own = function.lines.values().fold(Counts::default(), |mut sum, counts| {
                    sum.add(counts);
                    sum
                });
                // Number 0 stands for an unknown file.
                let file = files.get(function.file.as_str()).copied().unwrap_or(0);
                let all = all.map_or(json!(0), |all| json!(self.values(&all)));
                json!([
                    function.name,
                    library[function.library.as_str()],
                    file,
                    function.first_line,
                    self.values(&own),
                    all
                ])
            })
            .collect()
    }

    /// Costs by file and line; if there are too many, of the heaviest lines only.
    fn lines(&mut self) -> BTreeMap<u32, Vec<Line>> {
        // Lines at which code was inlined may have no costs of their own.
        let mut lines: BTreeMap<(u32, u32), Counts> =
            map_of(self.detail.inlined.keys().map(|place| (*place, Counts::default())));
        for function in &self.detail.functions {
            for (place, counts) in &function.lines {
                lines.entry(*place).or_default().add(counts);
            }
        }
        let mut kept: Vec<((u32, u32), Counts)> =
            lines.into_iter().filter(|((file, _), _)| *file > 0).collect();
        if kept.len() > LINES_MAX {
            let left_out = kept.len() - LINES_MAX;
            kept.sort_rows_by_key(|(place, counts)| {
                Reverse(self.report.weight(&self.with_inlined(place, counts)))
            });
            kept.truncate(LINES_MAX);
            kept.sort_rows_by_key(|(place, _)| *place);
            self.cuts.push(format!(
                "{} lines with the lowest costs are left out of this page; --format csv has all",
                grouped(left_out as u64)
            ));
        }
        let mut files: BTreeMap<u32, Vec<Line>> = BTreeMap::new();
        for (place, counts) in kept {
            let inlined = self.detail.inlined.contains_key(&place);
            let with_inlined = inlined.then(|| self.values(&self.with_inlined(&place, &counts)));
            files.entry(place.0).or_default().push(Line(place.1, self.values(&counts), with_inlined));
        }
        files
    }

    fn with_inlined(&self, place: &(u32, u32), own: &Counts) -> Counts {
        let mut all = *own;
        self.detail.inlined.get(place).iter().for_each(|inlined| all.add(inlined));
        all
    }

    /// `{name, totals, functions: [[number, own]], lines}` of the heaviest processes, if there are
    /// several.
    fn processes(&mut self) -> Value {
        let processes = &self.detail.processes;
        if processes.len() < 2 {
            return Value::Null;
        }
        let shown = processes_shown(self.report, processes);
        if shown.len() < processes.len() {
            let left_out = grouped((processes.len() - shown.len()) as u64);
            self.cuts.push(format!(
                "{left_out} processes with the lowest costs are not shown separately on this page"
            ));
        }
        let mut room = PROCESS_LINES_MAX;
        let mut part = |part: &Part| {
            let functions: Vec<Value> =
                part.functions.iter().map(|(number, own)| json!([number, self.values(own)])).collect();
            let mut lines: BTreeMap<u32, Vec<Line>> = BTreeMap::new();
            for (place, own) in part.lines.iter().filter(|(place, _)| place.0 > 0).take(room) {
                lines.entry(place.0).or_default().push(Line(place.1, self.values(own), None));
            }
            room = room.saturating_sub(part.lines.len());
            json!({"name": printable(&part.name), "totals": self.values(&part.totals), "functions": functions, "lines": lines})
        };
        shown.iter().map(|process| part(&processes[*process])).collect()
    }

    /// The texts of the heaviest files as far as they fit, and a remark about each file.
    fn sources(&self, lines: &BTreeMap<u32, Vec<Line>>) -> BTreeMap<u32, Value> {
        let weight = |lines: &[Line]| {
            lines
                .iter()
                .map(|Line(_, own, with_inlined)| with_inlined.as_ref().unwrap_or(own))
                .map(|costs| (costs[self.column], costs[0]))
                .fold((0, 0), |sum, next| (sum.0 + next.0, sum.1 + next.1))
        };
        let mut files: Vec<(u32, (u64, u64))> =
            lines.iter().map(|(file, lines)| (*file, weight(lines))).collect();
        files.sort_rows_by_key(|(file, weight)| (Reverse(*weight), *file));
        let built = self.built();
        let mut room = SOURCES_BYTES_MAX;
        files
            .into_iter()
            .map(|(file, _)| {
                (file, source(&self.detail.files[file as usize], built.get(&file).copied(), &mut room))
            })
            .collect()
    }

    /// The library that contains a file's code, by file.
    fn built(&self) -> HashMap<u32, &'a str> {
        let places =
            self.detail.functions.iter().flat_map(|function| {
                function.lines.keys().map(|(file, _)| (*file, function.library.as_str()))
            });
        places.collect()
    }

    /// Contexts as `[parent, function, calls, costs with calls]` by number; small ones are omitted.
    fn calls(&self) -> Value {
        let Some(calls) = &self.detail.calls else { return Value::Null };
        let totals = self.values(&self.report.totals);
        let mut numbers = vec![None; calls.contexts.len()];
        numbers[0] = Some(0);
        let mut rows = vec![json!([0, 0, 1, totals])];
        for (node, context) in calls.contexts.iter().enumerate().skip(1) {
            let values = self.values(&self.inclusive[node]);
            let matters = values.iter().zip(&totals).any(|(value, total)| value * CONTEXT_SHARE > *total);
            let parent = numbers[context.parent as usize].filter(|_| matters);
            if let Some(parent) = parent {
                numbers[node] = Some(rows.len());
                rows.push(json!([parent, context.function, context.calls, values]));
            }
        }
        json!(rows)
    }

    fn slices(&self) -> Value {
        let Some(calls) = &self.detail.calls else { return Value::Null };
        let rows: Vec<Vec<u64>> = calls.slices.iter().map(|counts| self.values(counts)).collect();
        json!({"instructions": calls.slice_instructions, "rows": rows})
    }

    /// The working set as `[lines, pages, new lines, new pages]` by slice.
    fn working_set(&self) -> Value {
        let Some(touched) = &self.detail.touched else { return Value::Null };
        let row = |window: &Window| json!([window.lines, window.pages, window.new_lines, window.new_pages]);
        let rows: Vec<Value> = touched.slices.iter().map(row).collect();
        let (line, uncounted) = (touched.line_bytes, touched.uncounted_lines_max);
        json!({"instructions": touched.slice_instructions, "line": line, "uncounted": uncounted, "rows": rows})
    }

    /// The miss curve as `[bytes, load misses, store misses, ways, level]` by size.
    fn curve(&self) -> Value {
        let Some(curve) = &self.report.curve else { return Value::Null };
        let row = |point: &Point| {
            json!([point.size_bytes, point.load_misses, point.store_misses, point.ways, point.level])
        };
        let rows: Vec<Value> = curve.points.iter().map(row).collect();
        let totals = &self.report.totals;
        json!({"line": curve.line_bytes, "sets": curve.sets, "loads": totals.loads, "stores": totals.stores, "rows": rows})
    }
}

/// The heading of a column; loads and stores have columns of their own.
fn short(metric: &Metric) -> &'static str {
    match metric.field {
        "l1d_load_misses" => "L1D ld",
        "l1d_store_misses" => "L1D st",
        _ => super::metric::short(metric),
    }
}

/// The number of functions that the page needs so that all functions of the call tree are among
/// them.
fn all_in_tree(detail: &Detail) -> usize {
    let contexts = detail.calls.iter().flat_map(|calls| calls.contexts.iter().skip(1));
    contexts.map(|context| context.function as usize + 1).max().unwrap_or(0)
}

/// A cache of the machine's description in words, as in `L1D 48 K`.
fn cache(cache: &Value) -> Option<String> {
    let (level, bytes) = (cache.get("level")?.as_u64()?, cache.get("size_bytes")?.as_u64()?);
    let kind = match cache.get("kind").and_then(Value::as_str) {
        Some("instruction") => "I",
        Some("data") => "D",
        _ => "",
    };
    let size = if bytes >= 1 << 20 { format!("{} MiB", bytes >> 20) } else { format!("{} KiB", bytes >> 10) };
    Some(format!("L{level}{kind} {size}"))
}

/// The text of a source file, or why there is none, and whether it has changed since `library` was
/// built.
fn source(path: &str, library: Option<&str>, room: &mut usize) -> Value {
    let about = match std::fs::metadata(path) {
        Ok(about) if about.is_file() => about,
        _ => return json!({"note": format!("{path} is not here: only lines with costs are shown.")}),
    };
    if about.len() > SOURCE_BYTES_MAX.min(*room as u64) {
        return json!({"note": format!("{path} is left out of this page for its size: only lines with costs are shown.")});
    }
    let Ok(bytes) = std::fs::read(path) else { return json!({"note": format!("{path} cannot be read.")}) };
    *room -= bytes.len().min(*room);
    let text = String::from_utf8_lossy(&bytes);
    let built = library.and_then(|library| Path::new(library).metadata().ok()?.modified().ok());
    let changed = built.zip(about.modified().ok()).is_some_and(|(built, written)| written > built);
    match changed {
        true => {
            json!({"text": text, "note": format!("{path} has changed since the program was built: lines may not match.")})
        }
        false => json!({"text": text}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::detail::Function;
    use crate::report::tests::count_report;

    fn page(command: &str) -> String {
        let report = Report { command: vec![command.into()], ..count_report() };
        let function = Function {
            name: "f</script>".into(),
            library: "/bin/prog".into(),
            lines: BTreeMap::from([((1, 3), report.totals)]),
            ..Function::default()
        };
        let files = vec!["???".into(), "/no/such/file.c".into()];
        show(&report, &Detail { files, functions: vec![function], ..Detail::default() }).unwrap()
    }

    fn data(page: &str) -> Value {
        let (_, rest) = page.split_once("id=\"data\">").unwrap();
        serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
    }

    #[test]
    fn names_cannot_leave_their_place() {
        let page = page("<b>&\"");
        assert!(page.contains("lightfoot: &lt;b>&amp;&quot;</title>"), "{page}");
        assert_eq!(data(&page)["functions"][0][0], "f</script>");
    }

    #[test]
    fn the_page_holds_the_numbers_and_says_what_is_missing() {
        let data = data(&page("prog"));
        assert_eq!(data["totals"], json!([1_234_567, 3000, 400]));
        assert_eq!(data["lines"]["1"], json!([[3, [1_234_567, 3000, 400]]]));
        assert!(data["sources"]["1"]["note"].as_str().unwrap().contains("/no/such/file.c is not here"));
        assert_eq!(data["calls"], Value::Null);
    }

    #[test]
    fn the_page_runs_its_own_script_and_no_other() {
        let page = page("prog");
        let between = |start: &str, end: &str| page.split_once(start).unwrap().1.split_once(end).unwrap().0;
        let policy =
            present::policy::element(&[between("<style>", "</style>")], &[between("<script>", "</script>")]);
        let (head, body) = page.split_once("<style>").unwrap();
        assert!(head.contains(&policy), "{head}");
        assert_eq!(body.matches("<script>").count(), 1);
        for inline in [" style=\"", " onclick=", "javascript:"] {
            assert!(!page.contains(inline), "{inline}");
        }
        assert!(!SCRIPT.contains("setAttribute(\"style\"") && !SCRIPT.contains("innerHTML"));
    }

    #[test]
    fn nothing_is_fetched() {
        let page = page("prog");
        for word in ["http:", "https:", "src=", "@import", "url("] {
            let without = page.replace("http://www.w3.org/2000/svg", "");
            assert!(!without.contains(word), "{word}");
        }
    }
}
