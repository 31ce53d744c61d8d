//! Verdicts as a page that opens offline, with the heat map.
//!
//! The page needs no script. The heat map is a picture in the page, so that its own style holds in
//! it and nowhere else.

use super::text::{kind, kinds, with, ORDER};
use measure::perturb::{Comparison, Report, Side, Verdict};
use present::page::{text, Page};
use std::fmt::Write;

const STYLE: &str = "td.disturbed { border-left: 4px solid var(--c1); font-weight: 600; } td.cannot { border-left: 4px solid var(--c3); } \
     td.undisturbed { border-left: 4px solid var(--c0); } th.verdict, td.verdict { text-align: left; } img { max-width: 100%; }\n";

/// The page; `map` is the heat map as SVG.
pub(super) fn page(report: &Report, map: &str) -> String {
    let [baselines, runs] = report.samples;
    let verdict = report.verdict().words();
    let mut body = format!("<h1><small>lightfoot perturb</small> {verdict}</h1>\n<div class=\"tiles\">\n");
    let mut tiles = vec![
        ("baselines", baselines.to_string()),
        ("runs with instrumentation", runs.to_string()),
        ("least p possible", format!("{:.4}", report.smallest_p)),
    ];
    let added =
        report.added_instructions.map(|added| ("instructions added", format!("{:+.3} %", 100.0 * added)));
    tiles.extend(added);
    for (label, value) in tiles {
        let _ = writeln!(body, "<div class=\"tile\"><small>{label}</small><b>{value}</b></div>");
    }
    body += "</div>\n";
    for note in &report.notes {
        let _ = writeln!(body, "<p class=\"warn\">{}</p>", text(note));
    }
    body += "<section><h2>Comparisons</h2><div class=\"scroll\"><table><thead><tr><th class=\"verdict\">verdict</th><th class=\"name\">metrics</th><th class=\"wide\">baseline</th><th class=\"wide\">run</th><th>change</th><th class=\"wide\">p</th><th class=\"name wide\">reason</th></tr></thead><tbody>\n";
    for (verdict, _) in ORDER {
        with(report, verdict).into_iter().for_each(|comparison| body += &row(comparison));
    }
    let _ = writeln!(
        body,
        "</tbody></table></div><p class=\"faint\">Numbers are correlations; {}.</p></section>",
        kinds(report)
    );
    let _ = writeln!(
        body,
        "<section><h2>Correlations</h2><img alt=\"Heat map of the correlations above\" src=\"data:image/svg+xml,{}\"></section>",
        escaped(map)
    );
    Page { title: &format!("lightfoot perturb: {verdict}"), body: &body, style: STYLE, script: None }.html()
}

fn row(comparison: &Comparison) -> String {
    let class = match comparison.verdict {
        Verdict::Disturbed => "disturbed",
        Verdict::CannotTell => "cannot",
        Verdict::Undisturbed => "undisturbed",
    };
    let [one, other] = &comparison.metrics;
    let names = if one == other { text(one) } else { format!("{} and {}", text(one), text(other)) };
    let side = |side: Option<Side>| side.map_or("–".into(), |side| format!("{:.2}", side.mean));
    let change = comparison.difference().map_or("–".into(), |difference| format!("{difference:+.2}"));
    let p = comparison.p.map_or("–".into(), |p| format!("{p:.4}"));
    format!(
        "<tr><td class=\"verdict {class}\">{}</td><td class=\"name\">{names} <small>{}</small></td><td class=\"wide\">{}</td><td class=\"wide\">{}</td><td>{change}</td><td class=\"wide\">{p}</td><td class=\"name wide\">{}</td></tr>\n",
        comparison.verdict.words(),
        kind(comparison.kind),
        side(comparison.baseline),
        side(comparison.run),
        text(&comparison.sentence)
    )
}

/// A picture as part of an address. Source: RFC 3986, section 2.1.
fn escaped(svg: &str) -> String {
    let mut out = String::with_capacity(svg.len() * 3 / 2);
    for byte in svg.bytes() {
        match byte {
            b'a'..=b'z'
            | b'A'..=b'Z'
            | b'0'..=b'9'
            | b' '
            | b'='
            | b':'
            | b'/'
            | b'.'
            | b','
            | b'-'
            | b';'
            | b'('
            | b')' => {
                out.push(char::from(byte));
            }
            _ => _ = write!(out, "%{byte:02x}"),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::text::tests::report;
    use super::*;

    #[test]
    fn the_page_has_every_comparison_and_names_stay_in_their_places() {
        let html = page(&report(), "<svg>\"x\" #%&</svg>");
        assert!(html.contains("<h1><small>lightfoot perturb</small> disturbed</h1>"));
        assert_eq!(html.matches("<tr>").count(), 1 + 4);
        let first = html.find("verdict disturbed").unwrap();
        assert!(first < html.find("verdict cannot").unwrap());
        assert!(html.contains("a and &lt;m>") && html.contains("a &lt;note>") && !html.contains("<m>"));
        assert!(html.contains("src=\"data:image/svg+xml,%3csvg%3e%22x%22 %23%25%26%3c/svg%3e\""));
        assert!(html.contains("script-src 'none'") && html.contains("+1.230 %"));
    }
}
