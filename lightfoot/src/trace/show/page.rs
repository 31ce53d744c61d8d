//! A trace as a page that opens offline: a panel for each metric on one axis of time, its phases,
//! and numbers under the pointer.
//!
//! The page holds the numbers as JSON and a script draws them, as wide as the page is. A trace of
//! more than [`VALUES_MAX`] numbers is joined before; the page says so. **Leaves out**
//! functions with less than a hundredth of a record's instructions, and more than six of a record.

use super::functions::{most, summed};
use super::summary::Summary;
use super::{excerpt::joined, place, Shown};
use anyhow::Result;
use measure::trace::{Trace, Value as Counted};
use present::number::grouped;
use present::page::{text, Page};
use serde_json::{json, Value};

/// The most values in the page.
const VALUES_MAX: usize = 400_000;
/// Functions with less than one part in this many of a record's instructions are left out.
const FUNCTION_SHARE: u64 = 100;
/// The most functions of a record.
const FUNCTIONS: usize = 6;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The page.
///
/// # Errors
/// When the numbers cannot be put in JSON, which would be a defect.
pub fn page(shown: &Shown) -> Result<String> {
    let trace = &shown.trace;
    let every = (trace.records.len() * trace.header.metrics.len()).div_ceil(VALUES_MAX).max(1);
    let rows = joined(trace, every);
    let data = serde_json::to_string(&data(shown, &rows))?;
    let title = format!("lightfoot trace: {}", shown.program());
    let body = body(shown, every);
    Ok(Page { title: &title, body: &body, style: STYLE, script: Some((&data, SCRIPT)) }.html())
}

fn body(shown: &Shown, every: usize) -> String {
    let trace = &shown.trace;
    let mut out = format!(
        "<h1><small>lightfoot trace</small> {}</h1>\n<p class=\"faint\">{}; {}</p>\n",
        text(&shown.program()),
        text(&shown.about()),
        text(&shown.end())
    );
    for note in &trace.header.notes {
        out += &format!("<p class=\"warn\">{}</p>\n", text(note));
    }
    if let Some(cut) = &trace.cut {
        out += &format!(
            "<p class=\"warn\">The file is cut at byte {} of {}: {}.</p>\n",
            cut.at_byte,
            cut.of_bytes,
            text(cut.why)
        );
    }
    if every > 1 {
        out += &format!(
            "<p class=\"faint\">{every} records are joined to one here, so that the page stays small.</p>\n"
        );
    }
    out += include_str!("page.html");
    out + &summaries(shown)
}

/// The table of metrics, which needs no script.
fn summaries(shown: &Shown) -> String {
    let mut out = String::from(
        "<section><h2>Metrics</h2><div class=\"scroll\"><table><thead><tr><th class=\"name\">metric</th><th class=\"wide\">min</th><th>median</th><th class=\"wide\">max</th><th>total</th><th class=\"wide\">counted by</th></tr></thead><tbody>\n",
    );
    for (index, metric) in shown.trace.header.metrics.iter().enumerate() {
        let Summary { min, median, max, total } = Summary::of(&shown.trace, index);
        out += &format!("<tr><td class=\"name\">{}</td>", text(&metric.name));
        // A narrow page has room for two numbers.
        for (value, class) in [(min, "wide"), (median, ""), (max, "wide"), (total, "")] {
            out += &format!("<td class=\"{class}\">{}</td>", value.map_or("–".into(), grouped));
        }
        out += &format!("<td class=\"wide\">{}</td></tr>\n", text(&metric.mechanism));
    }
    out + "</tbody></table></div><p class=\"faint\">Values of whole intervals; the total is that of the run.</p></section>\n"
}

fn data(shown: &Shown, rows: &Trace) -> Value {
    let header = &rows.header;
    let unit = header.interval.unit;
    let ends = |record: &measure::trace::Record| record.start.saturating_add(record.dt);
    let starts = rows.records.iter().map(|record| record.start);
    let edges: Vec<u64> = starts.chain(rows.records.last().map(ends)).collect();
    let metric = |(index, metric): (usize, &measure::trace::Metric)| {
        let value = |value: &Counted| value.scaled().map(|value| value.round() as u64);
        let values: Vec<Option<u64>> =
            rows.records.iter().map(|record| value(&record.values[index])).collect();
        json!({ "name": metric.name, "values": values })
    };
    let metrics: Vec<Value> = header.metrics.iter().enumerate().map(metric).collect();
    let functions = rows.functions.as_ref().map(|functions| {
        let row = |index: usize| -> Vec<(u32, u64)> {
            let row = summed(functions, index..index + 1);
            let whole: u64 = row.iter().map(|(_, executed)| executed).sum();
            let large = |(_, executed): &(u32, u64)| executed.saturating_mul(FUNCTION_SHARE) >= whole;
            let row: Vec<(u32, u64)> = row.into_iter().filter(large).collect();
            most(row, FUNCTIONS)
        };
        let rows: Vec<Vec<(u32, u64)>> = (0..rows.records.len()).map(row).collect();
        let sum = |row: &Vec<(u32, u64)>| row.iter().map(|(_, executed)| executed).sum();
        let all: Vec<u64> = functions.instructions.iter().map(sum).collect();
        json!({ "names": functions.names, "rows": rows, "all": all })
    });
    json!({
        "unit": unit.name(),
        "interval": header.interval.length,
        "edges": edges,
        "metrics": metrics,
        "phases": shown.phases.iter().map(|phase| json!({
            "number": phase.number, "start": phase.start, "end": phase.end, "from": place(unit, phase.start),
            "to": place(unit, phase.end), "records": phase.records.len(), "functions": phase.functions,
        })).collect::<Vec<_>>(),
        "functions": functions,
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{shown, stepped};
    use super::*;

    /// The numbers in a page.
    fn numbers(html: &str) -> Value {
        let (_, rest) = html.split_once("id=\"data\">").unwrap();
        serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
    }

    #[test]
    fn the_page_has_every_number_and_names_cannot_leave_their_places() {
        let html = page(&shown()).unwrap();
        let numbers = numbers(&html);
        for (index, metric) in stepped().header.metrics.iter().enumerate() {
            assert_eq!(numbers["metrics"][index]["name"], metric.name);
            let values = numbers["metrics"][index]["values"].as_array().unwrap();
            let sum: u64 = values.iter().map(|value| value.as_u64().unwrap()).sum();
            assert_eq!(Some(sum), stepped().sum(index));
        }
        assert_eq!(numbers["edges"].as_array().unwrap().len(), 62);
        assert_eq!(numbers["phases"][1]["functions"][0]["name"], "g</script> [prog]");
        assert_eq!(numbers["functions"]["rows"][0], json!([[0, 999]]), "g has less than a hundredth");
        assert_eq!((html.matches("<script").count(), html.matches("</script>").count()), (2, 2));
        assert!(html.contains("<h1><small>lightfoot trace</small> prog &lt;b></h1>"));
        let balanced = |tag: &str| {
            html.matches(&format!("<{tag}")).count() == html.matches(&format!("</{tag}>")).count()
        };
        assert!(["section", "table", "tbody", "tr", "div", "main", "html", "style"]
            .into_iter()
            .all(balanced));
    }

    #[test]
    fn a_long_trace_is_joined_and_says_so() {
        let mut trace = stepped();
        trace.functions = None;
        let one = trace.records[0].clone();
        trace.records = (0..300_000)
            .map(|start| measure::trace::Record { start: 1000 * start, sequence: start, ..one.clone() })
            .collect();
        let html = page(&Shown::new("t".into(), trace)).unwrap();
        assert!(html.contains("3 records are joined") && html.len() < 4_000_000, "{} bytes", html.len());
        assert_eq!(numbers(&html)["metrics"][0]["values"][0], 3000);
    }
}
