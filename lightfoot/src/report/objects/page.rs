//! The page of a type: its fields as they lie, with what is hot, what is cold, and what is used
//! together, and a better order.

use super::types::{FieldRow, ProposalRow, Together, TypeRow};
use present::number::{brief, grouped, percent};
use present::order::SortRows;
use present::terminal::{middle_cut, printable, Page};

/// The page as text.
pub(super) fn text(row: &TypeRow, page: &Page) -> String {
    let mut out = format!(
        "\n{}\n",
        page.bold(&format!("type {}, {} bytes", printable(&row.name), grouped(row.size_bytes)))
    );
    if !row.told_by.is_empty() {
        out += &page.sentence("  ", &format!("known by: {}", printable(&row.told_by.join(", "))));
    }
    out += &fields(row, page);
    match &row.together {
        Some(together) if together.visits > 0 => out + &used_together(row, together, page),
        _ => out + "  (no field of it was used)\n",
    }
}

/// The fields with their numbers; each line of memory begins with a rule.
fn fields(row: &TypeRow, page: &Page) -> String {
    let heading = format!(
        "{:>7}{:>6}{:>8}{:>8}{:>7}{:>7}{:>7}  field",
        "offset", "bytes", "loads", "stores", "L1D", "L2", "dTLB"
    );
    let mut out = format!("\n{}\n", page.bold(&heading));
    let visits = row.together.as_ref();
    let room = page.width.max(80).saturating_sub(52);
    let mut line = 0;
    let mut holes = row.holes.iter().peekable();
    for (number, field) in row.fields.iter().enumerate() {
        let Some(offset) = field.offset else { continue };
        while let Some(hole) = holes.next_if(|hole| hole.offset < offset) {
            out += &format!("{:>7}{:>6}{:>38}(hole)\n", hole.offset, hole.size_bytes, "");
        }
        if offset / 64 > line {
            line = offset / 64;
            out += &format!("        ---- byte {} ----\n", line * 64);
        }
        let used = visits.and_then(|together| together.visits_by_field.get(number)).copied();
        let note = if used == Some(0) { "  never used" } else { "" };
        let name = middle_cut(&printable(&format!("{} : {}", field.name, field.type_name)), room);
        out +=
            &format!("{:>7}{:>6}{}  {name}{note}\n", offset, field.size_bytes.unwrap_or(0), numbers(field));
    }
    for hole in holes {
        out += &format!("{:>7}{:>6}{:>38}(hole)\n", hole.offset, hole.size_bytes, "");
    }
    for field in row.fields.iter().filter(|field| field.offset.is_none()) {
        out += &format!("{:>13}{}  {}\n", "", numbers(field), field.name);
    }
    out
}

fn numbers(field: &FieldRow) -> String {
    let cell = |value: Option<u64>, width: usize| format!("{:>width$}", value.map_or("-".into(), brief));
    let misses = &field.misses;
    [
        (field.loads, 8),
        (field.stores, 8),
        (Some(misses.l1d()), 7),
        (misses.l2_misses, 7),
        (misses.dtlb_misses, 7),
    ]
    .map(|(value, width)| cell(value, width))
    .concat()
}

fn used_together(row: &TypeRow, together: &Together, page: &Page) -> String {
    let each = |lines: u64| format!("{:.3}", lines as f64 / together.visits as f64);
    let mut out = format!(
        "\n  {} visits of values touch {} lines, {} each\n",
        grouped(together.visits),
        grouped(together.lines),
        each(together.lines)
    );
    if !together.pairs.is_empty() {
        out += "  used together, of all visits:\n";
        for pair in &together.pairs {
            let share = percent(pair.visits, together.visits);
            let names = printable(&pair.fields.join(", "));
            out += &format!("{share:>10}  {}\n", middle_cut(&names, page.width.max(80).saturating_sub(12)));
        }
    }
    match &together.proposal {
        None => out + "  no order of its members that was tried touches fewer lines\n",
        Some(proposal) => out + &proposed(row, together, proposal, page),
    }
}

fn proposed(row: &TypeRow, together: &Together, proposal: &ProposalRow, page: &Page) -> String {
    let saved = together.lines - proposal.lines;
    let mut out = page.sentence(
        "  ",
        &format!(
            "this order would touch {} lines, {} ({}) fewer, in {} of {} bytes:",
            grouped(proposal.lines),
            grouped(saved),
            percent(saved, together.lines),
            proposal.used_bytes,
            row.size_bytes
        ),
    );
    let mut members: Vec<_> = proposal.members.iter().collect();
    members.sort_rows_by_key(|member| member.offset);
    let names: Vec<String> = members.iter().map(|member| printable(&member.name)).collect();
    out += &page.sentence("    ", &names.join(", "));
    out
}
