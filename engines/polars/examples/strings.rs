//! Patterns over a log and a column of addresses, by Polars and by this crate, in one process.
//!
//! `cargo run --release --manifest-path engines/Cargo.toml -p lightfoot-polars --example strings`
//! `[-- ROWS ROUNDS PART]`: medians of interleaved rounds and their ratio, of searches with PART in
//! their names.

use lightfoot_polars::{Occurrences, Pattern};
use polars_core::prelude::*;
use polars_ops::chunked_array::StringNameSpaceImpl;
use std::time::Instant;

/// SplitMix64 of a number.
fn mixed(number: u64) -> u64 {
    let mut bits = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ bits >> 31
}

fn line(row: usize) -> String {
    let bits = mixed(row as u64);
    let pick = |shift: u32, of: &[&'static str]| of[(bits >> shift) as usize % of.len()];
    let message = match bits % 7 {
        0 => format!(
            "connection from 10.{}.{}.{} port {}",
            bits >> 8 & 255,
            bits >> 16 & 255,
            bits >> 24 & 255,
            bits >> 48
        ),
        1 => format!("request {:08x}-{:04x} took {} ms", bits >> 32, bits >> 16 & 0xFFFF, bits >> 8 & 1023),
        _ => format!(
            "{} {} {}",
            pick(8, &["reading", "sent", "queue"]),
            pick(16, &["header", "body", "missing page"]),
            pick(24, &["from upstream server", "in worker", "of köln"])
        ),
    };
    format!(
        "2026-{:02}-{:02}T12:{:02}:07.{:03}Z {} server[{}]: {message}",
        1 + (bits >> 5) % 12,
        1 + (bits >> 9) % 28,
        (bits >> 14) % 60,
        (bits >> 20) % 1000,
        pick(30, &["INFO", "INFO", "DEBUG", "WARN", "ERROR"]),
        bits >> 40 & 32767
    )
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn race(name: &str, rounds: usize, theirs: &dyn Fn() -> Series, ours: &dyn Fn() -> Series) {
    if std::env::args().nth(3).is_some_and(|part| !name.contains(&part)) {
        return;
    }
    assert!(ours().equals_missing(&theirs()), "{name}");
    let timed = |run: &dyn Fn() -> Series| {
        let started = Instant::now();
        let result = run();
        let seconds = started.elapsed().as_secs_f64();
        drop(result);
        seconds
    };
    let (mut their_times, mut our_times) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        their_times.push(timed(theirs));
        our_times.push(timed(ours));
    }
    let (their, our) = (median(&mut their_times), median(&mut our_times));
    println!("| {name} | {:.1} | {:.1} | {:.2} |", 1e3 * their, 1e3 * our, their / our);
}

fn main() -> PolarsResult<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |at: usize, default: usize| arguments.get(at).map_or(default, |text| text.parse().expect("a number"));
    let (rows, rounds) = (number(0, 400_000), number(1, 7));
    let column = StringChunked::from_iter_values("line".into(), (0..rows).map(line));
    println!("{rows} rows, medians of {rounds} rounds\n| search | Polars, ms | lightfoot, ms | ratio |\n|---|---:|---:|---:|");
    for (name, text) in [
        ("contains address", r"\b[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\b"),
        ("contains identifier", r"\b[0-9a-f]{8}-[0-9a-f]{4}\b"),
        ("contains word ending", r"\w+ing\b"),
        ("contains date and level", "^2026-[0-9-]+T.*(ERROR|WARN)"),
        ("contains words, any case", "(?i)missing|refused|unreachable"),
        ("contains string", "upstream server"),
    ] {
        let pattern = Pattern::new(text)?;
        race(name, rounds, &|| column.contains(text, true).unwrap().into_series(), &|| {
            pattern.is_match(&column).unwrap().into_series()
        });
    }
    let text = "[0-9a-f]{8}-[0-9a-f]{4}";
    let pattern = Pattern::new(text)?;
    race("count identifiers", rounds, &|| column.count_matches(text, false).unwrap().into_series(), &|| {
        pattern.count_matches(&column).unwrap().into_series()
    });
    race("replace identifiers", rounds, &|| column.replace_all(text, "-").unwrap().into_series(), &|| {
        pattern.replace(&column, "-", Occurrences::All).unwrap().into_series()
    });
    let text = r"took ([0-9]+) ms";
    let (pattern, one) = (Pattern::new(text)?, StringChunked::new("p".into(), &[text]));
    race("extract duration", rounds, &|| column.extract(&one, 1).unwrap().into_series(), &|| {
        pattern.extract(&column, 1).unwrap().into_series()
    });
    Ok(())
}
