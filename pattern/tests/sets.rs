//! Sets of patterns against the `regex` crate, pattern by pattern: over lines of texts and over
//! rows of columns, on every engine that a set shares its patterns among.

mod delicate;
mod leaves;

use delicate::{pattern, text};
use lightfoot_pattern::column::{Column, ColumnRegexSet};
use lightfoot_pattern::regex::{RegexBuilder, Terminator, Unit};
use lightfoot_pattern::RegexSet;
use proptest::prelude::*;
use regex::bytes::Regex;
use std::ops::{ControlFlow, Range};

fn config(cases: u32) -> ProptestConfig {
    let seed = std::env::var("PATTERN_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(64);
    let rng_seed = proptest::test_runner::RngSeed::Fixed(seed);
    ProptestConfig { cases, rng_seed, failure_persistence: None, ..ProptestConfig::default() }
}

/// The lines of a text without their terminators, and the patterns that match each.
fn naive(patterns: &[String], text: &[u8]) -> Vec<(Range<usize>, Vec<usize>)> {
    let regexes: Vec<Regex> = patterns.iter().map(|pattern| Regex::new(pattern).unwrap()).collect();
    lightfoot_pattern::line::each(text, b'\n')
        .map(|line| {
            let content = line.start + lightfoot_pattern::line::content(&text[line.clone()], b'\n');
            let matches = |number: &usize| regexes[*number].is_match(&text[line.start..content]);
            let found = (0..patterns.len()).filter(matches).collect();
            (line, found)
        })
        .collect()
}

/// A set over lines: bitmaps, lines, and which patterns match at all.
fn check_lines(patterns: &[String], text: &[u8]) {
    let expected = naive(patterns, text);
    let set = RegexSet::new(patterns).unwrap();
    let bitmaps = set.line_bitmaps(text);
    let what = format!("{patterns:?}, {}", set.explain());
    assert_eq!(bitmaps.len(), patterns.len());
    for (pattern, bitmap) in bitmaps.iter().enumerate() {
        assert_eq!(bitmap.len(), expected.len(), "{what}");
        for (line, (place, found)) in expected.iter().enumerate() {
            let is_match = found.contains(&pattern);
            let shown = String::from_utf8_lossy(&text[place.clone()]);
            assert_eq!(bitmap.get(line), is_match, "{:?} in {shown:?} of {what}", patterns[pattern]);
        }
    }
    let mut lines = Vec::new();
    let _ = set.matching_lines(text, |line, found| {
        lines.push((line, found.to_vec()));
        ControlFlow::Continue(())
    });
    let some: Vec<_> = expected.iter().filter(|(_, found)| !found.is_empty()).cloned().collect();
    assert_eq!(lines, some, "{what}");
    let any = |pattern: &usize| some.iter().any(|(_, found)| found.contains(pattern));
    assert_eq!(set.matches(text), (0..patterns.len()).filter(any).collect::<Vec<_>>(), "{what}");
}

/// A set over rows that may hold line ends.
fn check_rows(patterns: &[String], rows: &[Vec<u8>]) {
    let regexes: Vec<Regex> = patterns.iter().map(|pattern| Regex::new(pattern).unwrap()).collect();
    let set = ColumnRegexSet::new(patterns).unwrap();
    let values = rows.concat();
    let mut offsets = vec![0];
    rows.iter().for_each(|row| offsets.push(offsets[offsets.len() - 1] + row.len() as i32));
    let validity = vec![0xfd; rows.len() / 8 + 1];
    let columns = [
        Column::new(&values, &offsets).unwrap(),
        Column::new(&values, &offsets).unwrap().with_validity(&validity, 0).unwrap(),
    ];
    for column in &columns {
        let bitmaps = set.scan(column);
        for (number, regex) in regexes.iter().enumerate() {
            for (row, bytes) in rows.iter().enumerate() {
                let expected = column.row(row).is_some_and(|bytes| regex.is_match(bytes));
                let shown = String::from_utf8_lossy(bytes);
                assert_eq!(
                    bitmaps[number].get(row),
                    expected,
                    "{:?} in {shown:?}, {}",
                    patterns[number],
                    set.explain()
                );
            }
        }
    }
}

/// A pattern with a string that every match holds, so that sets look for strings.
fn with_string() -> impl Strategy<Value = String> {
    let strings = prop::sample::select(vec![
        "zebra",
        "quartz",
        "zeb",
        "bracket",
        "quar",
        "tzeb",
        "(?i)vortex",
        "jumble",
        "zebra quartz",
        "aab zebra",
        "[xy]zebra",
        "vor(tex|tal)",
        "é zebra",
        "(?i)jumbo",
        "bbbb",
    ]);
    let around =
        prop::sample::select(vec!["", "", "a", "[ab]+", r"\w*", r"\b", "^", "$", ".", r"\d?", r"(?-u:\b)"]);
    (around.clone(), strings, around).prop_map(|(before, string, after)| match string.strip_prefix("(?i)") {
        Some(rest) => format!("{before}(?i:{rest}){after}"),
        None => format!("{before}(?:{string}){after}"),
    })
}

/// Texts in which such strings stand now and then, in whole or in part.
fn text_with_strings() -> impl Strategy<Value = Vec<u8>> {
    let word = prop::sample::select(vec![
        "zebra", "quartz", "bracket", "vortex", "VORTEX", "vortal", "jumble", "JumBo", "zeb", "bbbbb",
        "xzebra",
    ]);
    let piece = prop_oneof![3 => text(), 1 => word.prop_map(|word| word.as_bytes().to_vec())];
    prop::collection::vec(piece, 1..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn sets_match_what_each_pattern_matches(
        patterns in prop::collection::vec(pattern(), 0..9),
        text in text(),
    ) {
        check_lines(&patterns, &text);
        check_lines(&patterns, &text.repeat(1 + (6 << 10) / text.len().max(1)));
    }

    #[test]
    fn strings_find_what_each_pattern_matches(
        patterns in prop::collection::vec(with_string(), 24..60),
        others in prop::collection::vec(pattern(), 0..4),
        head in text_with_strings(),
        tail in text_with_strings(),
    ) {
        let patterns = [patterns, others].concat();
        // The sample has few strings; what follows has many.
        let calm = b"nothing to be seen here, move on\n".repeat(400);
        let text = [&head[..], b"\n", &calm, &calm, &tail, &tail.repeat(30)].concat();
        check_lines(&patterns, &text);
        let rows: Vec<Vec<u8>> = text.chunks(37).map(<[u8]>::to_vec).collect();
        check_rows(&patterns, &rows);
    }

    #[test]
    fn sets_over_rows_match_what_each_pattern_matches(
        patterns in prop::collection::vec(pattern(), 0..6),
        rows in prop::collection::vec(text(), 1..20),
    ) {
        check_rows(&patterns, &rows);
        let rows: Vec<Vec<u8>> = (0..40).flat_map(|_| rows.iter().cloned()).collect();
        check_rows(&patterns, &rows);
    }
}

#[test]
fn windows_and_blocks_meet_where_lines_do() {
    let patterns: Vec<String> = ["xa*y", "^a+$", "needle", r"\bend$", "a{100,}", r"[xy]\W"]
        .iter()
        .map(|pattern| pattern.to_string())
        .chain((0..40).map(|number| format!("needle{number:02}\\w")))
        .collect();
    let mut text = Vec::new();
    for number in 0..9000 {
        text.extend_from_slice(&b"a".repeat(number % 150));
        text.extend_from_slice(
            format!("needle{:02}{} x", number % 47, ["", "z", " end"][number % 3]).as_bytes(),
        );
        text.extend_from_slice(if number % 5 == 0 { b"y\n\n" } else { b"\n" });
    }
    text.extend_from_slice(&[&b"x"[..], &b"a".repeat(400_000), b"y"].concat());
    check_lines(&patterns, &text);
    let rows: Vec<Vec<u8>> = text.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
    check_rows(&patterns, &rows);
}

#[test]
fn rows_with_the_separator_are_decided_one_by_one() {
    let mut rows = vec![b"one\x1etwo\x1e".to_vec(), b"\x1e".to_vec(), Vec::new(), b"two\n".to_vec()];
    rows.extend((0..2000).map(|number| format!("row {number}\x1e").into_bytes()));
    let patterns: Vec<String> = ["one.two", r"\x1e$", "^$", "(?m)two$", "[^\x1e]9", r"row 1\d+\x1e"]
        .iter()
        .map(|p| p.to_string())
        .collect();
    check_rows(&patterns, &rows);
}

#[test]
fn sets_of_other_units_answer_as_before() {
    let patterns = ["a\nb".to_owned(), "c".to_owned()];
    let text = [&b"a\nb\nc\n"[..], &b"-\n".repeat(4000)].concat();
    let set =
        RegexSet::with(&RegexBuilder::new().with(|options| options.unit = Unit::Text), &patterns).unwrap();
    assert_eq!(set.matches(&text), [0, 1]);
    let nul = RegexBuilder::new().with(|options| options.terminator = Terminator::Nul);
    let set = RegexSet::with(&nul, &["^b".to_owned(), "x".to_owned()]).unwrap();
    let text = [&b"a\nb\0x\0"[..], &b"-\0".repeat(4000)].concat();
    assert_eq!(set.matches(&text), [0, 1]);
    assert_eq!(set.line_bitmaps(&text)[0].ones().collect::<Vec<_>>(), [0]);
    assert!(RegexSet::new(&[]).unwrap().line_bitmaps(&text).is_empty());
}
