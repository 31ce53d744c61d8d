//! Columns and sets of patterns: rates beside one text of the same bytes, the `regex` crate, and
//! Vectorscan where its library is found.
//!
//! `cargo bench -p lightfoot-pattern --bench columns -- [--rounds N] [--megabytes N] [--only
//! rows|sets]`. Texts are composed on the spot. In each round every contender searches once, one
//! after the other; figures are medians of GB/s of the rows' bytes on one thread. Answers are
//! compared before anything is timed.

mod logs;
mod sets;
mod vectorscan;

use lightfoot_pattern::column::{Column, ColumnRegex};
use lightfoot_pattern::regex::RegexBuilder;
use logs::Rows;
use std::hint::black_box;
use std::time::Instant;

struct Arguments {
    rounds: usize,
    megabytes: usize,
    only: String,
}

fn arguments() -> Arguments {
    let mut found = Arguments { rounds: 9, megabytes: 18, only: String::new() };
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    while let Some(word) = words.next() {
        let mut value = || words.next().unwrap_or_else(|| panic!("{word} needs a value"));
        match word.as_str() {
            "--rounds" => found.rounds = value().parse().expect("--rounds needs a number"),
            "--megabytes" => found.megabytes = value().parse().expect("--megabytes needs a number"),
            "--only" => found.only = value(),
            _ => panic!("{word} is not an option; there are --rounds, --megabytes and --only"),
        }
    }
    found
}

fn main() {
    let arguments = arguments();
    let bytes = arguments.megabytes << 20;
    if arguments.only != "sets" {
        columns("messages", &logs::messages(bytes), MESSAGE_PATTERNS, &arguments);
        columns("requests", &logs::requests(bytes), REQUEST_PATTERNS, &arguments);
    }
    if arguments.only != "rows" {
        sets::sets(&logs::messages(bytes), arguments.rounds);
    }
}

const MESSAGE_PATTERNS: &[(&str, &str)] = &[
    ("IPv4", r"[0-9]{1,3}(\.[0-9]{1,3}){3}"),
    ("hex", r"\b[0-9a-f]{8}-[0-9a-f]{4}\b"),
    ("e-mail", r"[\w.+-]+@[\w-]+\.[\w.-]+"),
    ("anchored", "^2026.*(ERROR|WARN)"),
    ("ing", r"\w+ing\b"),
    ("end", r"[a-z]+=\w+$"),
    ("window", "[ab].{20}[cd].{20}[ef]"),
    ("literal", "caused by"),
];

const REQUEST_PATTERNS: &[(&str, &str)] = &[
    ("digits", r"/[0-9]{5,7}$"),
    ("anchored", "^P[A-Z]+ /[a-m]"),
    ("vowels", "[aeiou]{2}[a-z]/"),
    ("word", r"\b[a-f]\w+/\d{3}\b"),
    ("literal", "/ledger/"),
];

/// Seconds of one call.
fn seconds(call: &mut dyn FnMut() -> usize) -> f64 {
    let start = Instant::now();
    black_box(call());
    start.elapsed().as_secs_f64()
}

/// The medians of contenders that take turns.
pub(crate) fn medians(rounds: usize, contenders: &mut [&mut dyn FnMut() -> usize]) -> Vec<f64> {
    let mut all = vec![Vec::new(); contenders.len()];
    for _ in 0..rounds {
        for (contender, times) in contenders.iter_mut().zip(&mut all) {
            times.push(seconds(contender));
        }
    }
    all.iter_mut()
        .map(|times| {
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        })
        .collect()
}

/// One table: a column beside one text of the same bytes, and the `regex` crate.
fn columns(name: &str, rows: &Rows, patterns: &[(&str, &str)], arguments: &Arguments) {
    let text = rows.lines();
    let views = rows.views();
    let buffers = [&rows.values[..]];
    // In another order than their strings: these are copied.
    let turned: Vec<[u8; 16]> = views.iter().rev().copied().collect();
    println!(
        "{name}: {} rows of {:.0} bytes; GB/s",
        rows.len(),
        rows.values.len() as f64 / rows.len() as f64
    );
    println!(
        "{:<10} {:>8} {:>9} {:>9} {:>7} {:>7} {:>7} {:>8} {:>9}",
        "pattern", "rows", "one text", "offsets", "ratio", "views", "apart", "regex", "x regex"
    );
    let column = Column::new(&rows.values, &rows.offsets).expect("the offsets are right");
    let viewed = Column::from_views(&views, &buffers).expect("the views are right");
    let apart = Column::from_views(&turned, &buffers).expect("the views are right");
    for (name, pattern) in patterns {
        let regex = ColumnRegex::new(pattern).expect("the pattern parses");
        let lines = RegexBuilder::new().engine("streams").build(pattern).expect("the pattern parses");
        let peer = regex::bytes::Regex::new(pattern).expect("the pattern parses");
        let by_peer = || (0..rows.len()).filter(|&row| peer.is_match(rows.row(row))).count();
        let matching = by_peer();
        assert_eq!(regex.count(&column), matching, "{pattern}");
        assert_eq!(regex.count(&viewed), matching, "{pattern}");
        assert_eq!(regex.count(&apart), matching, "{pattern}");
        assert_eq!(lines.count_lines(&text) as usize, matching, "{pattern}");
        let times = medians(
            arguments.rounds,
            &mut [
                &mut || lines.count_lines(&text) as usize,
                &mut || regex.count(&column),
                &mut || regex.count(&viewed),
                &mut || regex.count(&apart),
                &mut || by_peer(),
            ],
        );
        let rate = |at: usize| rows.values.len() as f64 / times[at] / 1e9;
        println!(
            "{name:<10} {matching:>8} {:>9.2} {:>9.2} {:>7.2} {:>7.2} {:>7.2} {:>8.2} {:>9.1}",
            rate(0),
            rate(1),
            rate(1) / rate(0),
            rate(2),
            rate(3),
            rate(4),
            rate(1) / rate(4),
        );
    }
}
