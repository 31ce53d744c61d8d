//! Results against those of Polars' own namespace, on generated rows and patterns; chunks that
//! begin in the middle of their buffers, and several of them.

use lightfoot_polars::{Occurrences, Pattern};
use polars_core::prelude::*;
use polars_ops::chunked_array::StringNameSpaceImpl;
use proptest::prelude::*;

/// Streams are set up from 4 KiB on.
const COLUMN_BYTES: usize = 5000;

fn pattern() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        4 => "[abé1 ]{1,3}",
        1 => Just(String::from("error")),
        1 => Just(String::from("(?s:.)")),
        1 => Just(String::from(r"\w+")),
        1 => Just(String::from(r"\d{2}")),
        1 => Just(String::from("[^a]")),
        1 => Just(String::from(r"\b")),
        1 => Just(String::from("^")),
        1 => Just(String::from("$")),
        1 => Just(String::from("(?m)^")),
        1 => Just(String::from(r"\n")),
        1 => Just(String::from("(?i)É")),
        1 => Just(String::new()),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
            (inner.clone(), inner.clone()).prop_map(|(one, other)| format!("(?:{one}|{other})")),
            inner.clone().prop_map(|part| format!("({part})")),
            inner.prop_map(|part| format!("(?:{part})*")),
        ]
    })
}

fn column() -> impl Strategy<Value = StringChunked> {
    let row = prop_oneof![
        1 => Just(None),
        1 => Just(Some(String::new())),
        6 => "[abcéÉ1 \n]{0,20}".prop_map(Some),
        2 => "[a-z0-9 ]{0,40}error[a-f€😀]{0,10}".prop_map(Some),
    ];
    (prop::collection::vec(row, 1..60), 0usize..4, any::<bool>()).prop_map(|(rows, skipped, is_tiled)| {
        let bytes: usize = rows.iter().flatten().map(String::len).sum();
        let times = if is_tiled { COLUMN_BYTES / bytes.max(50) + 1 } else { 1 };
        let tiled = rows.iter().cloned().cycle().take(times * rows.len());
        let whole = StringChunked::from_iter_options("s".into(), tiled);
        let mut column = whole.slice(skipped as i64, whole.len());
        column.append(&whole).unwrap();
        column
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn results_are_those_of_polars(column in column(), text in pattern(), by in r"[a$]{0,2}(\$0|\$\{1\}|é)?") {
        let Ok(theirs) = column.contains(&text, true) else {
            prop_assert!(Pattern::new(&text).is_err());
            return Ok(());
        };
        let pattern = Pattern::new(&text).unwrap();
        let ours = pattern.is_match(&column).unwrap();
        prop_assert!(ours.into_series().equals_missing(&theirs.into_series()), "{}", text);
        let (ours, theirs) = (pattern.count_matches(&column).unwrap(), column.count_matches(&text, false).unwrap());
        prop_assert!(ours.into_series().equals_missing(&theirs.into_series()), "{}", text);
        for (occurrences, theirs) in
            [(Occurrences::First, column.replace(&text, &by)), (Occurrences::All, column.replace_all(&text, &by))]
        {
            let ours = pattern.replace(&column, &by, occurrences).unwrap();
            prop_assert!(ours.into_series().equals_missing(&theirs.unwrap().into_series()), "{} by {}", text, by);
        }
        let groups = regex::Regex::new(&text).unwrap().captures_len();
        let one = StringChunked::new("p".into(), &[text.as_str()]);
        for group in 0..groups {
            let (ours, theirs) = (pattern.extract(&column, group).unwrap(), column.extract(&one, group).unwrap());
            prop_assert!(ours.into_series().equals_missing(&theirs.into_series()), "{} group {}", text, group);
        }
        let error = pattern.extract(&column, groups).unwrap_err().to_string();
        prop_assert!(error.contains(&format!("there is no group {groups}")), "{}", error);
    }
}

#[test]
fn empty_columns_and_names_stay() {
    let empty = StringChunked::full_null("name".into(), 0);
    let pattern = Pattern::new("a").unwrap();
    assert_eq!(pattern.is_match(&empty).unwrap().len(), 0);
    assert_eq!(pattern.extract(&empty, 0).unwrap().name().as_str(), "name");
    let nulls = StringChunked::full_null("n".into(), 70);
    assert_eq!(pattern.count_matches(&nulls).unwrap().null_count(), 70);
    assert_eq!(pattern.replace(&nulls, "b", Occurrences::All).unwrap().null_count(), 70);
}

/// What the `regex` crate refuses is refused with its message.
#[test]
fn refusals_are_those_of_polars() {
    let column = StringChunked::new("s".into(), &["a"]);
    for text in ["(", r"(?-u:\xff)", r"(\pL{1000}){1000}"] {
        let theirs = column.contains(text, true).unwrap_err().to_string();
        assert_eq!(Pattern::new(text).unwrap_err().to_string(), theirs);
    }
}

/// Functions for lazy queries are the pattern's methods.
#[test]
fn functions_of_columns_answer_as_methods() {
    let rows = ["user=ann id=17", "nobody", "user=bert id=4 id=5"];
    let column = Column::new("s".into(), rows);
    let strings = StringChunked::new("s".into(), &rows);
    let pattern = Pattern::new("id=([0-9]+)").unwrap();
    let of = |function: &dyn Fn(Column) -> PolarsResult<Column>| function(column.clone()).unwrap();
    assert_eq!(of(&pattern.clone().match_function()), pattern.is_match(&strings).unwrap().into_column());
    assert_eq!(of(&pattern.clone().count_function()), Column::new("s".into(), [1u32, 0, 2]));
    assert_eq!(
        of(&pattern.clone().extract_function(1)),
        Column::new("s".into(), [Some("17"), None, Some("4")])
    );
    assert_eq!(
        of(&pattern.clone().replace_function("#".into(), Occurrences::First)),
        Column::new("s".into(), ["user=ann #", "nobody", "user=bert # id=5"])
    );
    assert!(pattern.match_function()(Column::new("n".into(), [1i64])).is_err());
}
