//! Misses by object, type or field as a page that opens offline. It needs no script.
//!
//! A type has a section with its picture in memory, its fields by offset, hot, cold and unused ones
//! marked, and, where `--type` asked for it, the fields that are used together and a better order.

use super::picture::{self, Piece};
use super::text::FRAMES;
use super::types::{FieldRow, Line, ProposalRow, Together, TypeRow};
use super::{ObjectRow, Objects, UsesRow};
use crate::cli::By;
use crate::run::tally::Misses;
use present::number::{brief, grouped, percent};
use present::page::{text, Page};
use std::fmt::Write;

/// Types that have a section.
const SECTIONS: usize = 30;
/// Fields with this share of all accesses, in percent, are the hot ones; cold ones have less than
/// a hundredth together.
const HOT_PERCENT: u64 = 90;

const STYLE: &str = "td.part { text-align: left; } .badge { border-radius: 4px; padding: 0 .35em; font-size: .85em; border: 1px solid var(--rule); } \
     .badge.hot { color: var(--c1); border-color: var(--c1); } tr.hole td, tr.unused td { color: var(--faint); } tr.begins td { border-top: 2px solid var(--ink); } \
     svg.share { width: 5rem; height: .7rem; display: inline-block; } .share rect { fill: var(--c1); }\n";

/// What a page begins with: its title, and what stands on top.
#[derive(Clone, Copy, Debug)]
pub struct Top<'a> {
    /// The title, as plain text.
    pub title: &'a str,
    /// Program, machine, totals and warnings, as HTML.
    pub head: &'a str,
}

/// What stands at the end of each page.
const NOTES: &str = "<section><h2>What the numbers do not say</h2><p>Misses are those of the described machine. A miss belongs to the object in which its reference begins. Types are those that debug information tells; what has none stands as unknown. Only <code>--accesses</code> counts loads and stores.</p></section>\n";

impl Objects {
    /// The page with the first `rows` rows of each table.
    pub fn html(&self, top: Top<'_>, by: &[By], rows: usize) -> String {
        let parts = match (self.page.and_then(|at| self.types.get(at)), by) {
            (Some(row), _) => section(row),
            (None, [By::Type]) => lines("Types", &self.lines_by_type(), rows) + &sections(self),
            (None, [By::Field]) => lines("Fields", &self.lines_by_field(), rows) + &sections(self),
            _ => by_object(self, rows),
        };
        let body = [top.head, picture::DEFINITIONS, &parts, NOTES].concat();
        let style = format!("{STYLE}{}", picture::STYLE);
        Page { title: top.title, body: &body, style: &style, script: None }.html()
    }
}

/// A number of a row, with its heading.
type Column = (&'static str, fn(&Misses) -> Option<u64>);

/// Misses of a row.
const MISSES: [Column; 5] = [
    ("L1D", |misses| Some(misses.l1d())),
    ("L1I", |misses| misses.l1i_misses),
    ("L2", |misses| misses.l2_misses),
    ("L3", |misses| misses.l3_misses),
    ("dTLB", |misses| misses.dtlb_misses),
];

/// Headings of misses; a narrow page has room for the first.
fn headings() -> String {
    let heading = |(number, (name, _)): (usize, &Column)| {
        format!("<th{}>{name}</th>", if number == 0 { "" } else { " class=\"wide\"" })
    };
    MISSES.iter().enumerate().map(heading).collect()
}

fn misses(of: &Misses) -> String {
    let one = |(number, (_, value)): (usize, &Column)| cell(value(of), if number == 0 { "" } else { "wide" });
    MISSES.iter().enumerate().map(one).collect()
}

fn cell(value: Option<u64>, class: &str) -> String {
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    match value {
        Some(value) => format!("<td{class} title=\"{}\">{}</td>", grouped(value), brief(value)),
        None => format!("<td{class}>–</td>"),
    }
}

/// A share as a number and a bar.
fn share(part: u64, whole: u64) -> String {
    let width = if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 };
    format!(
        "<td>{}</td><td class=\"wide\"><svg class=\"share\" viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect width=\"{width:.1}\" height=\"10\"/></svg></td>",
        percent(part, whole)
    )
}

fn by_object(objects: &Objects, rows: usize) -> String {
    let whole: u64 = objects.objects.iter().map(ObjectRow::weight).sum();
    let mut out = format!(
        "<section><h2>Objects</h2><div class=\"scroll\"><table><thead><tr><th>share</th><th class=\"wide\"></th>{}<th class=\"wide\">accesses</th><th class=\"wide\">used</th><th class=\"wide\">cost</th><th class=\"wide\">bytes</th><th class=\"wide\">life</th><th class=\"name\">object</th></tr></thead><tbody>\n",
        headings()
    );
    for row in objects.objects.iter().take(rows) {
        let uses = row.uses.as_ref();
        let used = uses.and_then(UsesRow::used_percent);
        let texts: Vec<String> = row.stack.iter().map(|&frame| objects.frames[frame].text()).collect();
        let own = texts.iter().position(|text| *text == row.name).map_or(0, |at| at + 1);
        let callers = texts
            .iter()
            .skip(own)
            .take(FRAMES)
            .map(|caller| format!("<br><small>from {}</small>", text(caller)));
        let _ = writeln!(
            out,
            "<tr>{}{}{}<td class=\"wide\">{}</td>{}{}{}<td class=\"name\">{}{}</td></tr>",
            share(row.weight(), whole),
            misses(&row.misses),
            cell(uses.map(UsesRow::accesses), "wide"),
            used.map_or("–".to_owned(), |used| format!("{used} %")),
            cell(row.miss_cycles, "wide"),
            cell(row.footprint_bytes, "wide"),
            cell(row.lifetime, "wide"),
            text(&row.title()),
            callers.collect::<String>()
        );
    }
    out += "</tbody></table></div><p class=\"faint\">Share: of first-level misses. Used: bytes that were touched of the lines that its misses fetched. Cost: declared cycles of its misses. Bytes: the most that lived at a time. Life: instructions of a block.</p>";
    out + &more(objects.objects.len(), rows) + "</section>\n"
}

fn lines(title: &str, all: &[Line], rows: usize) -> String {
    let whole: u64 = all.iter().map(Line::weight).sum();
    let mut out = format!(
        "<section><h2>{title}</h2><div class=\"scroll tall\"><table><thead><tr><th>share</th><th class=\"wide\"></th>{}<th class=\"wide\">accesses</th><th class=\"wide\">bytes</th><th class=\"name\">{}</th></tr></thead><tbody>\n",
        headings(),
        title.to_lowercase()
    );
    for line in all.iter().take(rows) {
        let _ = writeln!(
            out,
            "<tr>{}{}{}{}<td class=\"name\">{}</td></tr>",
            share(line.weight(), whole),
            misses(&line.misses),
            cell(line.accesses, "wide"),
            cell(line.size_bytes, "wide"),
            text(&line.name)
        );
    }
    out + "</tbody></table></div>" + &more(all.len(), rows) + "</section>\n"
}

fn more(all: usize, rows: usize) -> String {
    match all.saturating_sub(rows) {
        0 => String::new(),
        more => format!("<p class=\"faint\">{} more with --top 0</p>", grouped(more as u64)),
    }
}

/// The sections of the structures with most misses: of those with a thousandth of all misses.
fn sections(objects: &Objects) -> String {
    let whole: u64 = objects.lines_by_type().iter().map(Line::weight).sum();
    let counts = |row: &&TypeRow| !row.fields.is_empty() && row.weight() * 1000 >= whole;
    objects.types.iter().filter(counts).take(SECTIONS).map(section).collect()
}

/// How hot the fields of a type are.
struct Heat {
    /// Accesses of each field, or its first-level misses where accesses are not counted.
    weights: Vec<u64>,
    is_of_accesses: bool,
    /// The least weight of a hot field.
    hot_from: u64,
}

impl Heat {
    fn of(row: &TypeRow) -> Heat {
        let is_of_accesses = row.fields.iter().any(|field| field.accesses().is_some());
        let weight = |field: &FieldRow| match is_of_accesses {
            true => field.accesses().unwrap_or(0),
            false => field.misses.l1d(),
        };
        let weights: Vec<u64> = row.fields.iter().map(weight).collect();
        let whole: u64 = weights.iter().sum();
        let mut sorted = weights.clone();
        sorted.sort_unstable();
        let (mut sum, mut hot_from) = (0, u64::MAX);
        for weight in sorted.into_iter().rev().filter(|weight| *weight > 0) {
            if sum * 100 >= whole * HOT_PERCENT {
                break;
            }
            (sum, hot_from) = (sum + weight, weight);
        }
        Heat { weights, is_of_accesses, hot_from }
    }

    fn is_hot(&self, field: usize) -> bool {
        self.weights[field] >= self.hot_from
    }

    /// Whether no access touched the field, as far as that is known.
    fn is_unused(&self, field: usize) -> bool {
        self.is_of_accesses && self.weights[field] == 0
    }

    /// From 0 to 1.
    fn share(&self, field: usize) -> f64 {
        let most = self.weights.iter().copied().max().unwrap_or(0).max(1);
        self.weights[field] as f64 / most as f64
    }

    fn whole(&self) -> u64 {
        self.weights.iter().sum()
    }
}

/// The page of a type, or its part of a page.
fn section(row: &TypeRow) -> String {
    let heat = Heat::of(row);
    let mut out =
        format!("<section><h2>{} <small>{} bytes</small></h2>\n", text(&row.name), grouped(row.size_bytes));
    let _ = writeln!(out, "<p>{}</p>", summary(row, &heat));
    if !row.told_by.is_empty() {
        let _ = writeln!(out, "<p class=\"faint\">known by: {}</p>", text(&row.told_by.join(", ")));
    }
    let pieces = picture::pieces(row, |field| heat.share(field));
    let label = format!("{} as it lies in memory", row.name);
    out += &picture::svg(&label, &pieces, row.line_bytes());
    out += &fields(row, &heat);
    if let Some(together) = row.together.as_ref().filter(|together| together.visits > 0) {
        out += &used_together(row, together, &heat);
    }
    out + "</section>\n"
}

/// What the fields are like, in a sentence.
fn summary(row: &TypeRow, heat: &Heat) -> String {
    let fields: Vec<usize> =
        (0..row.fields.len()).filter(|&field| row.fields[field].offset.is_some()).collect();
    let bytes = |of: &dyn Fn(usize) -> bool| -> u64 {
        fields.iter().filter(|&&field| of(field)).filter_map(|&field| row.fields[field].size_bytes).sum()
    };
    let hot = fields.iter().filter(|&&field| heat.is_hot(field)).count();
    let holes: u64 = row.holes.iter().map(|hole| hole.size_bytes).sum();
    let of = if heat.is_of_accesses { "accesses" } else { "first-level misses" };
    let mut out = format!(
        "{hot} of {} fields ({} bytes) have {HOT_PERCENT} % of its {of}",
        fields.len(),
        bytes(&|field| heat.is_hot(field))
    );
    if heat.is_of_accesses {
        let _ = write!(out, "; {} bytes of fields are never used", bytes(&|field| heat.is_unused(field)));
    }
    if holes > 0 {
        let _ = write!(out, "; {holes} bytes are holes");
    }
    out + "."
}

fn fields(row: &TypeRow, heat: &Heat) -> String {
    let counted =
        if heat.is_of_accesses { "<th class=\"wide\">loads</th><th class=\"wide\">stores</th>" } else { "" };
    let mut out = format!(
        "<div class=\"scroll tall\"><table><thead><tr><th>offset</th><th>bytes</th><th>share</th><th class=\"wide\"></th>{counted}{}<th class=\"name\">field</th></tr></thead><tbody>\n",
        headings()
    );
    let columns = if heat.is_of_accesses { 10 } else { 8 };
    let hole = |offset: u64, bytes: u64| {
        format!("<tr class=\"hole\"><td>{offset}</td><td>{bytes}</td><td colspan=\"{columns}\" class=\"part\">hole</td></tr>\n")
    };
    let mut holes = row.holes.iter().peekable();
    let mut line = 0;
    for (number, field) in row.fields.iter().enumerate() {
        let offset = field.offset.unwrap_or(u64::MAX);
        while let Some(found) = holes.next_if(|hole| hole.offset < offset) {
            out += &hole(found.offset, found.size_bytes);
        }
        let begins = field.offset.is_some_and(|offset| offset / row.line_bytes() > line);
        line = field.offset.map_or(line, |offset| offset / row.line_bytes());
        out += &field_row(number, field, heat, begins);
    }
    for found in holes {
        out += &hole(found.offset, found.size_bytes);
    }
    let of = if heat.is_of_accesses { "loads and stores" } else { "first-level data misses" };
    out + &format!("</tbody></table></div><p class=\"faint\">Share and colour: of {of}. A heavy rule stands where a line of {} bytes begins, if a value does.</p>\n", row.line_bytes())
}

fn field_row(number: usize, field: &FieldRow, heat: &Heat, begins: bool) -> String {
    let is_field = field.offset.is_some();
    let is_cold = heat.is_of_accesses && heat.weights[number] * 100 < heat.whole();
    let (class, badge) = if is_field && heat.is_hot(number) {
        ("", " <span class=\"badge hot\">hot</span>")
    } else if is_field && heat.is_unused(number) {
        ("unused", " <span class=\"badge\">never used</span>")
    } else if is_field && is_cold {
        ("", " <span class=\"badge\">cold</span>")
    } else {
        ("", "")
    };
    let class = match (class, begins) {
        ("", false) => String::new(),
        (class, begins) => {
            format!(" class=\"{}\"", [class, if begins { "begins" } else { "" }].join(" ").trim())
        }
    };
    let plain = |value: Option<u64>| value.map_or("–".to_owned(), |value| value.to_string());
    let counted = match heat.is_of_accesses {
        true => cell(field.loads, "wide") + &cell(field.stores, "wide"),
        false => String::new(),
    };
    let type_name = match is_field {
        true => format!(" <small>{}</small>", text(&field.type_name)),
        false => String::new(),
    };
    format!(
        "<tr{class}><td>{}</td><td>{}</td>{}{counted}{}<td class=\"name\">{}{type_name}{badge}</td></tr>\n",
        plain(field.offset),
        plain(field.size_bytes),
        share(heat.weights[number], heat.whole()),
        misses(&field.misses),
        text(&field.name)
    )
}

fn used_together(row: &TypeRow, together: &Together, heat: &Heat) -> String {
    let each = |lines: u64| format!("{:.3}", lines as f64 / together.visits as f64);
    let mut out = format!(
        "<h3>Used together</h3><p>{} visits of values touch {} lines, {} each.</p>\n",
        grouped(together.visits),
        grouped(together.lines),
        each(together.lines)
    );
    out += "<div class=\"scroll\"><table><thead><tr><th>of visits</th><th class=\"wide\"></th><th class=\"name\">fields</th></tr></thead><tbody>\n";
    for pair in &together.pairs {
        let _ = writeln!(
            out,
            "<tr>{}<td class=\"name\">{}</td></tr>",
            share(pair.visits, together.visits),
            text(&pair.fields.join(", "))
        );
    }
    out += "</tbody></table></div>\n";
    match &together.proposal {
        None => out + "<p>No order of its members that was tried touches fewer lines.</p>\n",
        Some(proposal) => out + &proposed(row, together, proposal, heat),
    }
}

fn proposed(row: &TypeRow, together: &Together, proposal: &ProposalRow, heat: &Heat) -> String {
    let saved = together.lines - proposal.lines;
    let mut out = format!(
        "<h3>A better order</h3><p>This order would touch {} lines, <b>{} ({}) fewer</b>, in {} of {} bytes.</p>\n",
        grouped(proposal.lines),
        grouped(saved),
        percent(saved, together.lines),
        proposal.used_bytes,
        row.size_bytes
    );
    let pieces = moved(row, proposal, heat);
    let label = format!("{} in the proposed order", row.name);
    out += &picture::svg(&label, &pieces, row.line_bytes());
    let mut names: Vec<(u64, &str)> =
        proposal.members.iter().map(|member| (member.offset, member.name.as_str())).collect();
    names.sort_unstable();
    let names: Vec<String> = names.into_iter().map(|(_, name)| text(name)).collect();
    out + &format!("<p class=\"mono\">{}</p>\n", names.join(", "))
}

/// The fields where the proposal puts their members.
fn moved(row: &TypeRow, proposal: &ProposalRow, heat: &Heat) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for member in &proposal.members {
        let belongs = |name: &str| {
            let rest = name.strip_prefix(member.name.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[', ':']))
        };
        let own: Vec<usize> = (0..row.fields.len())
            .filter(|&field| row.fields[field].offset.is_some() && belongs(&row.fields[field].name))
            .collect();
        let first = own.iter().filter_map(|&field| row.fields[field].offset).min().unwrap_or(0);
        for field in own {
            let FieldRow { name, offset, size_bytes, .. } = &row.fields[field];
            pieces.push(Piece {
                name: name.clone(),
                offset: member.offset + offset.unwrap_or(first) - first,
                size_bytes: size_bytes.unwrap_or(0),
                heat: Some(heat.share(field)),
            });
        }
    }
    pieces
}
