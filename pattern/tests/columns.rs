//! Columns against the `regex` crate, row by row: which rows match, on every layout of a column.
//!
//! Programs over rows are held against all kernels in `tests/agree.rs`. Rows hold what is delicate:
//! line feeds, NUL, the separator that blocks of rows have inside, half characters at both ends,
//! and nothing at all.

mod delicate;
mod leaves;

use delicate::{pattern, text};
use lightfoot_pattern::column::{Column, ColumnRegex};
use lightfoot_pattern::regex::{Case, RegexBuilder};
use proptest::prelude::*;
use regex::bytes::Regex;

/// The byte that stands between rows in a block.
const SEPARATOR: u8 = 0x1e;

fn config(cases: u32) -> ProptestConfig {
    let seed = std::env::var("PATTERN_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(2026);
    let rng_seed = proptest::test_runner::RngSeed::Fixed(seed);
    ProptestConfig { cases, rng_seed, failure_persistence: None, ..ProptestConfig::default() }
}

/// Values, offsets, and the validity of rows that are not of a multiple of three.
struct Built {
    values: Vec<u8>,
    offsets: Vec<i32>,
    large: Vec<i64>,
    views: Vec<[u8; 16]>,
    buffers: [Vec<u8>; 2],
    /// Views of the values, and of a buffer with bytes between some rows.
    together: Vec<[u8; 16]>,
    apart: Vec<[u8; 16]>,
    with_gaps: Vec<u8>,
    validity: Vec<u8>,
}

/// The view of a row that lies at a place of a buffer, if it is long.
fn view(row: &[u8], buffer: usize, place: usize) -> [u8; 16] {
    let mut view = [0; 16];
    view[..4].copy_from_slice(&(row.len() as u32).to_le_bytes());
    if row.len() <= 12 {
        view[4..4 + row.len()].copy_from_slice(row);
    } else {
        view[4..8].copy_from_slice(&row[..4]);
        view[8..12].copy_from_slice(&(buffer as u32).to_le_bytes());
        view[12..].copy_from_slice(&(place as u32).to_le_bytes());
    }
    view
}

fn built(rows: &[Vec<u8>]) -> Built {
    // Bytes before the first row and behind the last one are nobody's.
    let mut built = Built {
        values: b"ab\n".to_vec(),
        offsets: vec![3],
        large: vec![3],
        views: Vec::new(),
        buffers: [b"a".to_vec(), b"b".to_vec()],
        together: Vec::new(),
        apart: Vec::new(),
        with_gaps: Vec::new(),
        validity: vec![0; rows.len() / 8 + 2],
    };
    for (number, row) in rows.iter().enumerate() {
        built.together.push(view(row, 0, built.values.len()));
        if number % 11 == 5 {
            built.with_gaps.extend_from_slice(&row[..row.len().min(20)]);
        }
        built.apart.push(view(row, 0, built.with_gaps.len()));
        // Strings in views are in no buffer, as a rule.
        if row.len() > 12 {
            built.with_gaps.extend_from_slice(row);
        }
        built.values.extend_from_slice(row);
        built.offsets.push(built.values.len() as i32);
        built.large.push(built.values.len() as i64);
        let buffer = &mut built.buffers[number % 2];
        built.views.push(view(row, number % 2, buffer.len()));
        if row.len() > 12 {
            buffer.extend_from_slice(row);
        }
        if number % 3 != 0 {
            built.validity[(number + 5) / 8] |= 1 << ((number + 5) % 8);
        }
    }
    if rows.len().is_multiple_of(2) {
        built.values.extend_from_slice(b"ab");
    }
    built
}

fn check_built(regex: &ColumnRegex, expected: &[bool], built: &Built, what: &str) {
    let buffers: Vec<&[u8]> = built.buffers.iter().map(|buffer| &buffer[..]).collect();
    let (values, with_gaps) = ([&built.values[..]], [&built.with_gaps[..]]);
    let columns = [
        ("views together", Column::from_views(&built.together, &values).unwrap()),
        ("views with gaps", Column::from_views(&built.apart, &with_gaps).unwrap()),
        ("offsets", Column::new(&built.values, &built.offsets).unwrap()),
        ("large offsets", Column::with_large_offsets(&built.values, &built.large).unwrap()),
        ("views", Column::from_views(&built.views, &buffers).unwrap()),
    ];
    for (layout, column) in columns {
        let found = regex.scan(&column);
        let rows: Vec<bool> = (0..found.len()).map(|row| found.get(row)).collect();
        assert_eq!(rows, expected, "{what}, {layout}");
        assert_eq!(regex.count(&column), expected.iter().filter(|&&is| is).count(), "{what}, {layout}");
        let column = column.with_validity(&built.validity, 5).unwrap();
        let found = regex.scan(&column);
        for (row, &expected) in expected.iter().enumerate() {
            assert_eq!(found.get(row), expected && row % 3 != 0, "{what}, {layout}, row {row}, nulls");
        }
        assert_eq!(found.count_ones(), found.ones().count(), "{what}, {layout}, nulls");
    }
}

/// A column of these rows, repeated until streams search it.
fn check_column(pattern: &str, rows: &[Vec<u8>]) {
    let truth = Regex::new(pattern).unwrap();
    let once: Vec<bool> = rows.iter().map(|row| truth.is_match(row)).collect();
    let bytes: usize = rows.iter().map(Vec::len).sum();
    let regex = ColumnRegex::new(pattern).unwrap();
    for times in [1, 1 + (5 << 10) / bytes.max(1), 1 + (70 << 10) / bytes.max(100)] {
        let times = times.min(4000);
        let many: Vec<Vec<u8>> = (0..times).flat_map(|_| rows.iter().cloned()).collect();
        let expected: Vec<bool> = (0..times).flat_map(|_| once.iter().copied()).collect();
        let what = format!("{pattern:?} by {} in {times} times {rows:?}", regex.engine());
        check_built(&regex, &expected, &built(&many), &what);
    }
}

proptest! {
    #![proptest_config(config(150))]

    #[test]
    fn columns_match_what_regex_matches(
        pattern in pattern(),
        rows in prop::collection::vec(
            prop_oneof![
                6 => text(),
                1 => text().prop_map(|mut text| { text.insert(text.len() / 2, SEPARATOR); text }),
                1 => prop::collection::vec(any::<u8>(), 0..90),
                1 => text().prop_map(|text| text.repeat(40)),
            ],
            1..12,
        ),
    ) {
        check_column(&pattern, &rows);
    }
}

#[test]
fn line_ends_in_rows_are_no_ends_of_rows() {
    let pieces: &[&[u8]] = &[
        b"", b"\n", b"\r", b"\r\n", b"a", b"b\n", b"\na", b"a\r", b"\n\r", b"\r\r\n", b"\0", b"\xc3", b"\xa9",
    ];
    let rows: Vec<Vec<u8>> =
        pieces.iter().flat_map(|first| pieces.iter().map(move |second| [*first, *second].concat())).collect();
    for pattern in [
        "^a",
        "a$",
        r"\Aa",
        r"a\z",
        "(?m)^a",
        "(?m)a$",
        "(?mR)^a",
        "(?mR)a$",
        "(?mR)^$",
        "(?m)^$",
        "^$",
        "(?mR)^",
        "(?mR)$",
        "(?mR)^\n",
        "(?mR)\r$",
        "(?mR)\n^",
        "(?m)b$",
        "(?m)b\n^",
        "(?s)a.*b",
        "a.*b",
        r"\b",
        r"\B",
        r"\bé\b",
        r"(?-u:\xc3)$",
        r"^(?-u:\xa9)",
        "é",
        "[^a]",
        r"\W$",
        r"^\s*$",
        r"\x00",
        "a\nb?",
    ] {
        check_column(pattern, &rows);
    }
}

#[test]
fn rows_of_any_length_cross_every_boundary() {
    const PATTERNS: [&str; 4] = ["xa*y", "^a*$", r"^x\w*\b", "a{60,64}$"];
    for length in [0, 1, 63, 64, 65, 511, 512, 513, 4095, 4096, 16383, 16384, 16385, 40000] {
        for before in [0, 1, 62, 63, 64, 65, 16300, 16382, 16383, 16384, 16385] {
            let long = b"a".repeat(length);
            let rows: Vec<Vec<u8>> = vec![
                b"-".repeat(before),
                long.clone(),
                [b"x", &long[..], b"y"].concat(),
                Vec::new(),
                [&long[..], &[SEPARATOR], &long].concat(),
                b"xay".to_vec(),
                b"a".to_vec(),
                b"b".repeat(5000),
            ];
            let built = built(&rows);
            for pattern in PATTERNS {
                let regex = ColumnRegex::new(pattern).unwrap();
                let truth = Regex::new(pattern).unwrap();
                let expected: Vec<bool> = rows.iter().map(|row| truth.is_match(row)).collect();
                check_built(&regex, &expected, &built, &format!("{pattern}, {length} behind {before}"));
            }
        }
    }
}

#[test]
fn columns_of_separators_are_searched_all_the_same() {
    for rows in
        [vec![vec![SEPARATOR]; 9000], vec![vec![SEPARATOR; 30]; 900], vec![vec![SEPARATOR; 30_000]; 3]]
    {
        for pattern in [r"\x1e", r"^\x1e$", r"[^\x1e]", r"^$", r"\x1f", "."] {
            check_column(pattern, &rows);
        }
    }
}

#[test]
fn columns_without_rows_or_bytes_have_answers() {
    let regex = ColumnRegex::new("^$").unwrap();
    let none = Column::new(b"abc", &[1]).unwrap();
    assert!(none.is_empty() && regex.scan(&none).is_empty() && regex.count(&none) == 0);
    let offsets = vec![0; 10_001];
    assert_eq!(regex.count(&Column::new(b"", &offsets).unwrap()), 10_000);
}

#[test]
fn options_apply_to_rows() {
    let values = [&b"Error\n".repeat(1000)[..], &b"warn".repeat(10)].concat();
    let offsets: Vec<i32> = (0..=1000).map(|row| 6 * row).chain((1..=10).map(|row| 6000 + 4 * row)).collect();
    let column = Column::new(&values, &offsets).unwrap();
    let count = |change: fn(&mut lightfoot_pattern::regex::Options), pattern: &str| {
        ColumnRegex::with(&RegexBuilder::new().with(change), pattern).unwrap().count(&column)
    };
    assert_eq!(count(|_| (), "error"), 0);
    assert_eq!(count(|options| options.case = Case::Insensitive, "ERROR|Warn"), 1010);
    assert_eq!(count(|_| (), "r$"), 0);
    assert_eq!(count(|options| options.multi_line = true, "r$"), 1000);
    assert_eq!(count(|options| options.dot_matches_new_line = true, "r.$"), 1010);
    assert_eq!(count(|options| options.text_line_end = b'o', "(?m)r$"), 1000);
    assert_eq!(count(|options| options.text_line_end = b'W', "(?m)r$"), 0);
    assert_eq!(count(|options| options.utf8 = true, ""), 1010);
}

// --- what matching rows hold

use lightfoot_pattern::column::{ColumnError, Occurrences, StringColumn};

fn rows_of(column: &StringColumn) -> Vec<Option<Vec<u8>>> {
    (0..column.len()).map(|row| column.row(row).map(<[u8]>::to_vec)).collect()
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn spans_groups_and_replacements_are_those_of_regex(
        before in pattern(),
        within in pattern(),
        rows in prop::collection::vec(text(), 1..12),
        replacement in prop::sample::select(vec!["", "<$0>", "$1-$2", "${name}x", "$$", "plain", "$9"]),
    ) {
        let pattern = format!("(?:{before})(?<name>{within})(b)?");
        let truth = Regex::new(&pattern).unwrap();
        let regex = ColumnRegex::new(&pattern).unwrap();
        let built = built(&rows);
        let column = Column::new(&built.values, &built.offsets).unwrap();
        let counts: Vec<u32> = rows.iter().map(|row| truth.find_iter(row).count() as u32).collect();
        prop_assert_eq!(regex.match_counts(&column), counts, "{}", pattern);
        let spans: Vec<_> = rows.iter().map(|row| truth.find(row).map(|found| found.range())).collect();
        prop_assert_eq!(regex.first_spans(&column), spans, "{}", pattern);
        prop_assert_eq!(regex.groups(), 3);
        prop_assert_eq!(regex.group_index("name"), Some(1));
        for group in 0..3 {
            let expected: Vec<Option<Vec<u8>>> = rows
                .iter()
                .map(|row| Some(truth.captures(row)?.get(group)?.as_bytes().to_vec()))
                .collect();
            let found = regex.extract(&column, group).unwrap();
            prop_assert_eq!(rows_of(&found), expected, "{}, group {}", pattern, group);
            let expected: Vec<_> =
                rows.iter().map(|row| Some(truth.captures(row)?.get(group)?.range())).collect();
            prop_assert_eq!(regex.group_spans(&column, group).unwrap(), expected, "{}, group {}", pattern, group);
        }
        for (occurrences, most) in [(Occurrences::First, 1), (Occurrences::All, 0)] {
            let expected: Vec<Option<Vec<u8>>> = rows
                .iter()
                .map(|row| Some(truth.replacen(row, most, replacement.as_bytes()).into_owned()))
                .collect();
            let found = regex.replace(&column, replacement.as_bytes(), occurrences);
            prop_assert_eq!(rows_of(&found), expected.clone(), "{}, {:?} by {}", pattern, occurrences, replacement);
            let found = regex.replace_matching(&column, replacement.as_bytes(), occurrences);
            let expected: Vec<_> = expected
                .into_iter()
                .zip(&rows)
                .map(|(replaced, row)| replaced.filter(|_| truth.is_match(row)))
                .collect();
            prop_assert_eq!(rows_of(&found), expected, "{}, {:?} by {}", pattern, occurrences, replacement);
        }
    }
}

#[test]
fn null_rows_stay_null() {
    let column = Column::new(b"a1b2c3", &[0, 2, 4, 6]).unwrap().with_validity(&[0b101], 0).unwrap();
    let regex = ColumnRegex::new(r"[a-c](\d)").unwrap();
    assert_eq!(
        rows_of(&regex.extract(&column, 1).unwrap()),
        [Some(b"1".to_vec()), None, Some(b"3".to_vec())]
    );
    let replaced = regex.replace(&column, b"$1", Occurrences::All);
    assert_eq!(rows_of(&replaced), [Some(b"1".to_vec()), None, Some(b"3".to_vec())]);
    assert_eq!(
        (replaced.offsets(), replaced.small_offsets().unwrap()),
        (&[0, 1, 1, 2][..], vec![0, 1, 1, 2])
    );
    assert_eq!(ColumnRegex::new("[13]").unwrap().count(&replaced.as_column()), 2);
    assert_eq!(regex.match_counts(&column), [1, 0, 1]);
    assert_eq!(regex.first_spans(&column), [Some(0..2), None, Some(0..2)]);
    assert_eq!(regex.group_spans(&column, 1).unwrap(), [Some(1..2), None, Some(1..2)]);
    assert_eq!(
        rows_of(&regex.replace_matching(&column, b"$1", Occurrences::All)),
        [Some(b"1".to_vec()), None, Some(b"3".to_vec())]
    );
    assert_eq!(regex.group_spans(&column, 2).unwrap_err(), ColumnError::NoSuchGroup { group: 2, groups: 2 });
    let error = regex.extract(&column, 2).unwrap_err();
    assert_eq!(error, ColumnError::NoSuchGroup { group: 2, groups: 2 });
    assert_eq!(error.to_string(), "there is no group 2; the expression has groups 0 to 1");
}
