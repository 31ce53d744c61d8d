//! Rates of every kernel on the frozen list of patterns, beside a plain scan of the same bytes.
//!
//! `cargo bench -p pattern -- [--kernel NAME] [--pattern PART] [--megabytes N] [FILE]`. Without a file the texts are composed on the spot: code from this
//! workspace's own sources, English and other scripts from short lists of words. Each figure is the best of several passes, in GB/s of text;
//! counts are held against the `regex` crate on the first megabyte, so that no wrong answer is fast.
//! The last column is the time from a parsed expression to the first line counted, translation included.

use pattern::compile::{compile, CompileOptions};
use pattern::kernel::{Kernel, Scanner, KERNELS};
use serde::Deserialize;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

#[derive(Deserialize)]
struct List {
    pattern: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    name: String,
    text: String,
    classes: bool,
    pattern: String,
}

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
    let list: List =
        toml::from_str(include_str!("../data/patterns.toml")).expect("the list of patterns parses");
    let bytes = arguments.megabytes << 20;
    let mut text: (String, Vec<u8>) = Default::default();
    println!(
        "{:<36} {:>10} {:>9} {:>9} {:>9} {:>11}",
        "pattern", "kernel", "lines", "GB/s", "scan", "ready in µs"
    );
    let mut ratios = Vec::new();
    for entry in list.pattern.iter().filter(|entry| entry.name.contains(&arguments.part)) {
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

// --- texts

fn compose(kind: &str, bytes: usize) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes + (1 << 20));
    if kind == "code" {
        let mut sources = Vec::new();
        collect_sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), &mut sources);
        while text.len() < bytes {
            text.extend_from_slice(&sources);
        }
    } else {
        let words: Vec<&str> = match kind {
            "many" => OTHER_WORDS.split(' ').collect(),
            _ => ENGLISH_WORDS.split(' ').collect(),
        };
        let line_words = if kind == "long" { 200_000 } else { 9 };
        let mut random = 1u64;
        while text.len() < bytes {
            for at in 0..line_words {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let word = words[(random >> 33) as usize % words.len()];
                text.extend_from_slice(word.as_bytes());
                text.extend_from_slice(if at + 1 == line_words { b".\n" } else { b" " });
            }
        }
    }
    text.truncate(bytes);
    text
}

fn collect_sources(folder: &Path, sources: &mut Vec<u8>) {
    let mut entries: Vec<_> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("").to_string();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            collect_sources(&path, sources);
        } else if name.ends_with(".rs") {
            sources.extend(std::fs::read(&path).unwrap_or_default());
        }
    }
}

const ENGLISH_WORDS: &str = "the of and a to in he was that it his is with as had for she not be at on they you have but by from him \
this or which we an were all so one said there been would more when if no out up into them what your could do has time about other some \
their than then who will my two like very after little made over such man before must through years where much way well down should because \
long each just those people how too Mr state good good make world still own see men work life being day here many mountain question Watson \
morning nothing running slowly surprise kitchen gentleman important remember dancing quickly Queen beautiful";

const OTHER_WORDS: &str = "и в не на я быть он с что а по это она этот к но они мы весь который из у то за свой человек Москва Пётр возможность \
новость радость Россия 的 一 是 不 了 在 人 有 我 他 这 个 们 中 来 上 大 为 和 国 中华人民共和国 北京市 时间问题 και το να του η της με που \
την από Αθήνα Ελλάδα the and Berlin été naïve München 😀 😂";
