//! Rates of every kernel on the frozen list of patterns, beside a plain scan of the same bytes.
//!
//! `cargo bench -p lightfoot-pattern -- [--kernel NAME] [--pattern PART] [--megabytes N] [FILE]`.
//! Without a file the texts are composed on the spot: code from this workspace's own sources,
//! English and other scripts from short lists of words. Each figure is the best of several passes,
//! in GB/s of text; counts are held against the `regex` crate on the first megabyte, so that no
//! wrong answer is fast. The last column is the time from a parsed expression to the first line
//! counted, translation included.

mod composed;

use composed::{compose, frozen, Entry};
use lightfoot_pattern::compile::{compile, CompileOptions};
use lightfoot_pattern::kernel::{Kernel, Scanner, KERNELS};
use std::hint::black_box;
use std::time::{Duration, Instant};

struct Arguments {
    kernel: Option<Kernel>,
    part: String,
    megabytes: usize,
    file: Option<String>,
}

fn arguments() -> Arguments {
    let mut found = Arguments { kernel: None, part: String::new(), megabytes: 64, file: None };
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    while let Some(word) = words.next() {
        let mut value = || words.next().unwrap_or_else(|| panic!("{word} needs a value"));
        match word.as_str() {
            "--kernel" => found.kernel = Kernel::from_name(&value()),
            "--pattern" => found.part = value(),
            "--megabytes" => found.megabytes = value().parse().expect("--megabytes needs a number"),
            _ => found.file = Some(word),
        }
    }
    found
}

fn main() {
    let arguments = arguments();
    let list = frozen();
    let bytes = arguments.megabytes << 20;
    let mut text: (String, Vec<u8>) = Default::default();
    println!(
        "{:<36} {:>10} {:>9} {:>9} {:>9} {:>11}",
        "pattern", "kernel", "lines", "GB/s", "scan", "ready in µs"
    );
    let mut ratios = Vec::new();
    for entry in list.iter().filter(|entry| entry.name.contains(&arguments.part)) {
        if text.0 != entry.text {
            let whole = match &arguments.file {
                Some(file) => std::fs::read(file).unwrap_or_else(|error| panic!("{file}: {error}")),
                None => compose(&entry.text, bytes),
            };
            text = (entry.text.clone(), whole);
        }
        for &kernel in
            KERNELS.iter().filter(|&&kernel| arguments.kernel.is_none_or(|wanted| wanted == kernel))
        {
            if let Some(ratio) = race(entry, kernel, &text.1) {
                ratios.extend(entry.classes.then_some((kernel, ratio)));
            }
        }
    }
    for &kernel in KERNELS {
        let own: Vec<f64> =
            ratios.iter().filter(|(other, _)| *other == kernel).map(|(_, ratio)| ratio.ln()).collect();
        if !own.is_empty() {
            let mean = (own.iter().sum::<f64>() / own.len() as f64).exp();
            println!("classes, {}: geometric mean {mean:.2} of a plain scan", kernel.name());
        }
    }
}

/// One line of the table; the rate relative to a plain scan.
fn race(entry: &Entry, kernel: Kernel, text: &[u8]) -> Option<f64> {
    let hir = regex_syntax::ParserBuilder::new()
        .utf8(false)
        .multi_line(true)
        .build()
        .parse(&entry.pattern)
        .expect("the list's patterns parse");
    let ready = Instant::now();
    let program = match compile(&hir, &CompileOptions::default()) {
        Ok(program) => program,
        Err(error) => {
            println!("{:<36} {:>8} {error}", entry.name, kernel.name());
            return None;
        }
    };
    let scanner = Scanner::with_kernel(&program, kernel)?;
    black_box(scanner.count_lines(b"one line\n"));
    let ready = ready.elapsed().as_secs_f64() * 1e6;
    verify(entry, &scanner, &text[..text.len().min(1 << 20)]);
    let (mut best, mut plain, mut lines) = (Duration::MAX, Duration::MAX, 0);
    for _ in 0..3 {
        let start = Instant::now();
        lines = black_box(scanner.count_lines(black_box(text)));
        best = best.min(start.elapsed());
        let start = Instant::now();
        black_box(scan(black_box(text)));
        plain = plain.min(start.elapsed());
    }
    let rate = |time: Duration| text.len() as f64 / time.as_secs_f64() / 1e9;
    println!(
        "{:<36} {:>10} {lines:>9} {:>9.2} {:>9.2} {ready:>11.0}",
        entry.name,
        kernel.name(),
        rate(best),
        rate(plain)
    );
    Some(rate(best) / rate(plain))
}

fn verify(entry: &Entry, scanner: &Scanner, text: &[u8]) {
    let regex = regex::bytes::RegexBuilder::new(&entry.pattern)
        .multi_line(true)
        .build()
        .expect("the list's patterns parse");
    let lines = text.split_inclusive(|&byte| byte == b'\n');
    let expected = lines.filter(|line| regex.is_match(line.strip_suffix(b"\n").unwrap_or(line))).count();
    assert_eq!(scanner.count_lines(text), expected as u64, "{}", entry.name);
}

/// Reads every byte and does next to nothing with it.
fn scan(text: &[u8]) -> u8 {
    let mut all = [0u8; 256];
    for block in text.chunks_exact(256) {
        for (all, byte) in all.iter_mut().zip(block) {
            *all |= byte;
        }
    }
    all.iter().fold(0, |union, byte| union ^ byte)
}
