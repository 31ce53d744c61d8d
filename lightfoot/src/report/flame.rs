//! Draws a flame graph of the calling contexts, as a picture that opens offline.
//!
//! Widths are instructions, first-level misses under `cache`, or the column that sorts the report.
//! Boxes of one caller are in the order of their names. **Leaves out** contexts deeper than
//! `DEPTH_MAX`, whose costs stand with the last one drawn, and what is too narrow to be seen.

use super::detail::Detail;
use super::measurement::Report;
use super::metric::Kind;
use crate::run::calls::Calls;
use plot::flame::{flame, Call};
use present::number::grouped;
use present::terminal::{middle_cut, printable};

/// The most boxes above each other.
const DEPTH_MAX: usize = 250;
/// The most characters of the program in the title.
const TITLE: usize = 100;

/// The picture, as SVG.
pub fn show(report: &Report, detail: &Detail) -> String {
    let none = Calls::default();
    let calls = detail.calls.as_ref().unwrap_or(&none);
    let costs = inclusive(report, calls);
    // Contexts in the order of their names, so that those of one caller are, too.
    let name = |node: usize| detail.functions[calls.contexts[node].function as usize].name.as_str();
    let mut names: Vec<&str> = (1..calls.contexts.len()).map(name).collect();
    names.sort_unstable();
    let mut order: Vec<(u64, usize)> = Vec::new();
    for node in (1..calls.contexts.len()).filter(|node| costs[*node] > 0) {
        order.push((names.partition_point(|other| *other < name(node)) as u64, node));
    }
    order.sort_unstable();
    let mut below: Vec<Vec<usize>> = vec![Vec::new(); calls.contexts.len()];
    for (_, node) in order {
        below[calls.contexts[node].parent as usize].push(node);
    }
    let name = |node: usize| printable(name(node));
    let tree = Tree { below: &below, costs: &costs, name: &name };
    let first = below.first().map(|roots| tree.calls(roots, 1)).unwrap_or_default();
    let whole = first.iter().map(|call| call.inclusive).sum();
    let what = match (report.sort, report.kind) {
        (Some(metric), _) => metric.label,
        (None, Kind::Cache) => "first-level misses",
        (None, Kind::Count) => "instructions",
    };
    let title = format!("{}: {what}", middle_cut(&printable(&report.command.join(" ")), TITLE));
    flame(&title, what, &Call { name: "all".into(), inclusive: whole, calls: first }, grouped)
}

/// The costs of each context with all that it called.
fn inclusive(report: &Report, calls: &Calls) -> Vec<u64> {
    let mut costs = vec![0_u64; calls.contexts.len()];
    for sample in calls.samples.iter().filter(|sample| sample.node > 0) {
        costs[sample.node as usize] += report.weight(&sample.counts).0;
    }
    // Parents come first, so a context is complete when it is added to its parent.
    for node in (1..costs.len()).rev() {
        let parent = calls.contexts[node].parent as usize;
        costs[parent] += costs[node];
    }
    costs
}

/// What boxes are made from.
struct Tree<'a> {
    below: &'a [Vec<usize>],
    costs: &'a [u64],
    name: &'a dyn Fn(usize) -> String,
}

impl Tree<'_> {
    fn calls(&self, nodes: &[usize], depth: usize) -> Vec<Call> {
        let call = |node: &usize| Call {
            name: (self.name)(*node),
            inclusive: self.costs[*node],
            calls: if depth < DEPTH_MAX { self.calls(&self.below[*node], depth + 1) } else { Vec::new() },
        };
        nodes.iter().map(call).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::detail::tests::called;
    use crate::report::tests::{cache_report, count_report};

    #[test]
    fn boxes_have_their_costs_with_calls() {
        let drawn = show(&count_report(), &called());
        assert!(drawn.contains("<title>main: 21 instructions, 100.00 %</title>"), "{drawn}");
        assert!(drawn.contains("<title>leaf: 16 instructions, 76.19 %</title>"), "{drawn}");
        assert_eq!(drawn.matches("<rect class=\"b\"").count(), 3);
        let empty = show(&cache_report(), &Detail::default());
        assert!(empty.ends_with("</svg>\n") && empty.contains("width: first-level misses, 0<"), "{empty}");
    }
}
