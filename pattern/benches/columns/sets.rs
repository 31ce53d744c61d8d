//! Sets of 8, 64 and 500 patterns over logs: bitmaps by pattern and line from every contender.

use crate::logs::{Random, Rows, NOUNS, VERBS};
use crate::medians;
use crate::vectorscan::{Database, Haystack, Library};
use lightfoot_pattern::column::{Bitmap, Column, ColumnRegexSet};
use lightfoot_pattern::RegexSet;

/// Patterns of classes.
const CLASSES: &[&str] = &[
    r"[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}",
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}",
    r"[a-z0-9._+-]+@[a-z0-9-]+\.[a-z]+",
    r"^2026-[0-9-]+T[0-9:.]+Z (ERROR|WARN)",
    r"[a-z]+ing [a-z]+ing",
    r"https?://[a-z]+\.[a-z.]+/[a-z]+",
    r"latency=[0-9]{4,}ms",
    r"sha256=[0-9a-f]{32}",
    r"status=(4|5)[0-9][0-9] bytes=[0-9]{5,}",
    r"path=/[a-z/]+/[0-9]{3}/",
    r"build=[0-9]{4}$",
    r"uid=[0-9]{4}\)",
    r"attempt [5-7] of 8",
    r"thread (5[0-9][0-9]|4[0-9][0-9]) holding",
    r"\[(alice|bob|carol)\] [a-z]+ failed",
    r"T(00|01|02):[0-9]{2}:[0-9]{2}",
];

/// So many patterns: some of classes, the others of a message each.
pub(crate) fn patterns(count: usize) -> Vec<String> {
    let classes = if count <= 8 { count } else { CLASSES.len() };
    let mut all: Vec<String> = CLASSES.iter().take(classes).map(|pattern| pattern.to_string()).collect();
    let mut random = Random(64);
    while all.len() < count {
        let noun = NOUNS[random.below(NOUNS.len() as u64) as usize];
        let verb = VERBS[random.below(VERBS.len() as u64) as usize];
        let pattern = match random.below(7) {
            0 => format!("{noun} {verb} (while|during|before)"),
            1 => format!("caused by: {verb} of {noun} [0-9]{{3,5}}"),
            2 => format!(r"user=[a-z]+\.{noun}@example\.com"),
            3 => format!(r"path=/var/lib/{noun}/[0-9]+/[a-z]+\.log"),
            4 => format!(r"https://{noun}\.example\.org/[a-z]+\?id=[0-9]+"),
            5 => format!("(ERROR|WARN) {noun}-[0-9]+ .*{verb}"),
            _ => format!("{noun}-[0-9]{{1,2}} .{{7,9}} {noun} {verb}"),
        };
        if !all.contains(&pattern) {
            all.push(pattern);
        }
    }
    all
}

/// The bits of the lines that a set in the library's hands matches.
fn by_library(
    database: &Database<'_>,
    haystack: Haystack,
    lines: &Lines<'_>,
    patterns: usize,
) -> Vec<Bitmap> {
    let mut bitmaps = vec![Bitmap::zeros(lines.ends.len()); patterns];
    match haystack {
        Haystack::Line | Haystack::LineOnce => {
            let mut start = 0;
            for (number, &end) in lines.ends.iter().enumerate() {
                let mut report = |pattern: usize, _: usize| bitmaps[pattern].set(number, true);
                database.scan(&lines.text[start..end], &mut report);
                start = end + 1;
            }
        }
        Haystack::Text => {
            // Matches come nearly in the order of their ends.
            let mut number = 0;
            let mut report = |pattern: usize, end: usize| {
                while lines.ends[number] < end {
                    number += 1;
                }
                while number > 0 && lines.ends[number - 1] >= end {
                    number -= 1;
                }
                bitmaps[pattern].set(number, true);
            };
            database.scan(lines.text, &mut report);
        }
    }
    bitmaps
}

/// A text and the places of its line feeds.
struct Lines<'t> {
    text: &'t [u8],
    ends: Vec<usize>,
}

/// One table for all sizes.
pub(crate) fn sets(rows: &Rows, rounds: usize) {
    let library = Library::open();
    match &library {
        Some(library) => println!("sets over messages; Vectorscan {}", library.version),
        None => println!("sets over messages; Vectorscan skipped: no libhs.so.5 (Debian: libvectorscan5)"),
    }
    println!(
        "{:>8} {:>9} {:>8} {:>8} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "patterns", "bits", "lines", "columns", "regex", "vs lines", "vs once", "vs text", "x regex", "x vs"
    );
    let text = rows.lines();
    // The `regex` crate is asked for the first lines only, as it takes long.
    let few = rows.len() / 16;
    let column = Column::new(&rows.values, &rows.offsets).expect("the offsets are right");
    let ends = memchr::memchr_iter(b'\n', &text).collect();
    let lines = Lines { text: &text, ends };
    for count in [8, 64, 500] {
        let patterns = patterns(count);
        let set = RegexSet::new(&patterns).expect("the patterns parse");
        let column_set = ColumnRegexSet::new(&patterns).expect("the patterns parse");
        let peer = regex::bytes::RegexSetBuilder::new(&patterns)
            .size_limit(1 << 30)
            .dfa_size_limit(1 << 28)
            .build()
            .expect("the patterns parse");
        let by_peer = || {
            let mut bitmaps = vec![Bitmap::zeros(few); count];
            for row in 0..few {
                peer.matches(rows.row(row)).iter().for_each(|pattern| bitmaps[pattern].set(row, true));
            }
            bitmaps
        };
        let databases = library.as_ref().map(|library| {
            [Haystack::Line, Haystack::LineOnce, Haystack::Text]
                .map(|haystack| (library.compile(&patterns, haystack), haystack))
        });
        let answer = set.line_bitmaps(&text);
        assert!(answer == column_set.scan(&column), "columns and lines");
        for (ours, theirs) in answer.iter().zip(by_peer()) {
            assert!((0..few).all(|row| ours.get(row) == theirs.get(row)), "the regex crate");
        }
        for (database, haystack) in databases.iter().flatten() {
            let theirs = by_library(database, *haystack, &lines, count);
            // The library has been seen to miss matches: what differs is counted.
            let differing = |(ours, theirs): (&Bitmap, &Bitmap)| {
                ours.words()
                    .iter()
                    .zip(theirs.words())
                    .map(|(a, b)| (a ^ b).count_ones() as usize)
                    .sum::<usize>()
            };
            let bits: usize = answer.iter().zip(&theirs).map(differing).sum();
            if bits > 0 {
                println!(
                    "{count:>8} Vectorscan by {haystack:?} differs in {bits} bits; the regex crate does not"
                );
            }
        }
        let total = |bitmaps: Vec<Bitmap>| bitmaps.iter().map(Bitmap::count_ones).sum::<usize>();
        let bits: usize = answer.iter().map(Bitmap::count_ones).sum();
        let asked = |at: usize| match &databases {
            Some(databases) => {
                let (database, haystack) = &databases[at];
                total(by_library(database, *haystack, &lines, count))
            }
            None => 0,
        };
        let times = medians(
            rounds,
            &mut [
                &mut || total(set.line_bitmaps(&text)),
                &mut || total(column_set.scan(&column)),
                &mut || total(by_peer()),
                &mut || asked(0),
                &mut || asked(1),
                &mut || asked(2),
            ],
        );
        let few_bytes = rows.offsets[few] as f64;
        let rate = |at: usize| match at {
            2 => few_bytes / times[at] / 1e9,
            3.. if databases.is_none() => f64::NAN,
            _ => rows.values.len() as f64 / times[at] / 1e9,
        };
        println!(
            "{count:>8} {bits:>9} {:>8.2} {:>8.2} {:>8.3} {:>9.3} {:>9.3} {:>9.3} {:>9.1} {:>9.1}",
            rate(0),
            rate(1),
            rate(2),
            rate(3),
            rate(4),
            rate(5),
            rate(0) / rate(2),
            rate(0) / rate(3).max(rate(4)).max(rate(5)),
        );
        println!("{:>8} {}", "", set.explain());
    }
}
