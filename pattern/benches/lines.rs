//! Rates of a planned [`lightfoot_pattern::Regex`] on a file: counting lines, pushing lines, all
//! spans, matches asked for one by one, and the same by the `regex` crate.
//!
//! `cargo bench -p lightfoot-pattern --bench lines -- TEXT [-i] [--count] [--engine NAME] (-e
//! PATTERN | -f LIST)...`; with `--count` lines are only counted. Each pattern or list of words is
//! one row; a list has a word a line. Figures are the best of five passes in GB/s of text; counts
//! are held against the `regex` crate on the first megabyte. The last column is the time to build
//! the expression.

use lightfoot_pattern::regex::{Case, RegexBuilder};
use lightfoot_pattern::Regex;
use std::hint::black_box;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

struct Row {
    name: String,
    patterns: Vec<String>,
    words: bool,
}

#[derive(Default)]
struct Arguments {
    text: Vec<u8>,
    case: Case,
    only_count: bool,
    engine: Option<&'static str>,
    rows: Vec<Row>,
}

fn read(path: &str) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn arguments() -> Arguments {
    let mut found = Arguments::default();
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    while let Some(word) = words.next() {
        let mut value = || words.next().unwrap_or_else(|| panic!("{word} needs a value"));
        match word.as_str() {
            "-i" => found.case = Case::Insensitive,
            "--count" => found.only_count = true,
            "--engine" => found.engine = Some(value().leak()),
            "-e" => {
                let pattern = value();
                found.rows.push(Row { name: pattern.clone(), patterns: vec![pattern], words: false });
            }
            "-f" => {
                let name = value();
                let list = String::from_utf8(read(&name)).expect("a list is UTF-8");
                let patterns = list.lines().map(str::to_string).collect();
                found.rows.push(Row { name, patterns, words: true });
            }
            _ => found.text = read(&word),
        }
    }
    found
}

fn main() {
    let arguments = arguments();
    println!(
        "{:<36} {:>10} {:>9} {:>8} {:>8} {:>8} {:>8} {:>8} {:>9}",
        "pattern", "engine", "lines", "count", "push", "spans", "single", "regex", "build µs"
    );
    for row in &arguments.rows {
        let start = Instant::now();
        let mut builder = RegexBuilder::new().with(|options| {
            options.case = arguments.case;
            options.fixed_strings = row.words;
        });
        if let Some(engine) = arguments.engine {
            builder = builder.engine(engine);
        }
        let regex = builder.build_many(&row.patterns).expect("the pattern parses");
        let built = start.elapsed().as_secs_f64() * 1e6;
        let other = other(row, arguments.case);
        verify(row, &other, &regex, &arguments.text[..arguments.text.len().min(1 << 20)]);
        let text = &arguments.text[..];
        let lines = regex.count_lines(text);
        let rate = |best: Duration| text.len() as f64 / best.as_secs_f64() / 1e9;
        let count = rate(best(|| regex.count_lines(black_box(text))));
        let [push, spans, single, theirs] = match arguments.only_count {
            true => [f64::NAN; 4],
            false => [
                rate(best(|| pushed(&regex, black_box(text)))),
                rate(best(|| regex.find_iter(black_box(text)).count() as u64)),
                rate(best(|| one_by_one(black_box(text), |text, at| regex.find_at(text, at)))),
                rate(best(|| {
                    one_by_one(black_box(text), |text, at| other.find_at(text, at).map(|found| found.range()))
                })),
            ],
        };
        let name: String = row.name.chars().take(36).collect();
        println!(
            "{name:<36} {:>10} {lines:>9} {count:>8.2} {push:>8.2} {spans:>8.2} {single:>8.2} {theirs:>8.2} \
             {built:>9.0}",
            regex.engine()
        );
    }
}

fn pushed(regex: &Regex, text: &[u8]) -> u64 {
    let mut bytes = 0;
    let _ = regex.matching_lines(text, |line| {
        bytes += line.len() as u64;
        ControlFlow::Continue(())
    });
    bytes
}

/// The number of matches that are not empty, each asked for behind the one before.
fn one_by_one(text: &[u8], next: impl Fn(&[u8], usize) -> Option<std::ops::Range<usize>>) -> u64 {
    let (mut at, mut count) = (0, 0);
    while let Some(found) = next(text, at).filter(|found| !found.is_empty()) {
        at = found.end;
        count += 1;
    }
    count
}

fn best(mut pass: impl FnMut() -> u64) -> Duration {
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        black_box(pass());
        best = best.min(start.elapsed());
    }
    best
}

/// The row as the `regex` crate reads it.
fn other(row: &Row, case: Case) -> regex::bytes::Regex {
    let escaped: Vec<String> = match row.words {
        true => row.patterns.iter().map(|word| regex_syntax::escape(word)).collect(),
        false => row.patterns.clone(),
    };
    regex::bytes::RegexBuilder::new(&escaped.join("|"))
        .case_insensitive(case == Case::Insensitive)
        .multi_line(true)
        .size_limit(1 << 30)
        .build()
        .expect("the pattern parses")
}

fn verify(row: &Row, other: &regex::bytes::Regex, regex: &Regex, text: &[u8]) {
    let lines = text.split_inclusive(|&byte| byte == b'\n');
    let expected = lines.filter(|line| other.is_match(line.strip_suffix(b"\n").unwrap_or(line))).count();
    assert_eq!(regex.count_lines(text), expected as u64, "{}", row.name);
}
