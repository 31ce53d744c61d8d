//! Queries with the functions against the same queries without them.
//!
//! Two sessions read one table; only one has the functions and the rule. Patterns are generated, as
//! are rows: null, empty, with line feeds, and with characters of one to four bytes. Rows are
//! repeated until streams are used, which columns of a few bytes are not worth.

use arrow::array::{Array, ArrayRef, LargeStringArray, RecordBatch, StringArray, StringViewArray};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Schema};
use datafusion::datasource::MemTable;
use datafusion::functions::regex::expr_fn::{regexp_count, regexp_like, regexp_replace};
use datafusion::logical_expr::{binary_expr, Expr, Operator};
use datafusion::prelude::*;
use proptest::prelude::*;
use std::sync::Arc;

/// Streams are set up from 4 KiB on.
const TABLE_BYTES: usize = 5000;

type Rows = Vec<Option<String>>;

fn array(rows: &Rows, data_type: &DataType) -> ArrayRef {
    match data_type {
        DataType::Utf8 => Arc::new(StringArray::from_iter(rows)),
        DataType::LargeUtf8 => Arc::new(LargeStringArray::from_iter(rows)),
        DataType::Utf8View => Arc::new(StringViewArray::from_iter(rows)),
        other => panic!("no strings: {other}"),
    }
}

/// A table whose arrays begin in the middle of their buffers.
fn session(rows: &Rows, data_type: &DataType, with_functions: bool) -> SessionContext {
    let schema = Arc::new(Schema::new(vec![Field::new("s", data_type.clone(), true)]));
    let strings = array(rows, data_type);
    let skipped = rows.len().min(3);
    let batch =
        RecordBatch::try_new(schema.clone(), vec![strings.slice(skipped, rows.len() - skipped)]).unwrap();
    let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
    context.register_table("t", Arc::new(MemTable::try_new(schema, vec![vec![batch]]).unwrap())).unwrap();
    if with_functions {
        lightfoot_datafusion::register(&context);
    }
    context
}

/// The result of a selection, or that it fails, and whether a function of ours took part.
async fn select(context: &SessionContext, expressions: &[Expr]) -> (Result<RecordBatch, String>, bool) {
    let frame = context.table("t").await.unwrap();
    let named =
        expressions.iter().enumerate().map(|(at, expression)| expression.clone().alias(format!("c{at}")));
    let frame = match frame.select(named.collect::<Vec<_>>()) {
        Ok(frame) => frame,
        Err(error) => return (Err(error.to_string()), false),
    };
    let schema = Arc::new(frame.schema().as_arrow().clone());
    let Ok(plan) = frame.clone().into_optimized_plan() else { return (Err("no plan".to_owned()), false) };
    let is_ours = plan.to_string().contains("lightfoot_");
    match frame.collect().await {
        Ok(batches) => (Ok(concat_batches(&schema, &batches).unwrap()), is_ours),
        Err(error) => (Err(error.to_string()), is_ours),
    }
}

fn agree(rows: &Rows, data_type: &DataType, expressions: &[Expr]) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut any_is_ours = false;
        for expression in expressions {
            let one = std::slice::from_ref(expression);
            let (theirs, _) = select(&session(rows, data_type, false), one).await;
            let (ours, is_ours) = select(&session(rows, data_type, true), one).await;
            any_is_ours |= is_ours;
            match (theirs, ours) {
                (Ok(theirs), Ok(ours)) => assert_eq!(theirs, ours, "{expression} over {data_type}"),
                (Err(_), Err(_)) => {}
                (theirs, ours) => panic!("{expression}: {theirs:?} and {ours:?}"),
            }
        }
        any_is_ours
    })
}

fn operator(operator: Operator, pattern: &str) -> Expr {
    binary_expr(col("s"), operator, lit(pattern))
}

/// Every expression that the rule rewrites, with one pattern.
fn expressions(pattern: &str, by: &str) -> Vec<Expr> {
    vec![
        operator(Operator::RegexMatch, pattern),
        operator(Operator::RegexIMatch, pattern),
        operator(Operator::RegexNotMatch, pattern),
        operator(Operator::RegexNotIMatch, pattern),
        regexp_like(col("s"), lit(pattern), Some(lit("s"))),
        regexp_count(col("s"), lit(pattern), None, None),
        regexp_count(col("s"), lit(pattern), Some(lit(1i64)), Some(lit("i"))),
        regexp_count(col("s"), lit(pattern), Some(lit(2i64)), None),
        regexp_replace(col("s"), lit(pattern), lit(by), None),
        regexp_replace(col("s"), lit(pattern), lit(by), Some(lit("g"))),
        regexp_replace(col("s"), lit(pattern), lit(by), Some(lit("gi"))),
    ]
}

fn pattern() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        4 => "[abé1 ]{1,3}",
        1 => Just(String::from("error")),
        1 => Just(String::from(".")),
        1 => Just(String::from("(?s:.)")),
        1 => Just(String::from(r"\w+")),
        1 => Just(String::from(r"\d{2}")),
        1 => Just(String::from("[^a]")),
        1 => Just(String::from(r"[a-c]+")),
        1 => Just(String::from(r"\b")),
        1 => Just(String::from(r"\B")),
        1 => Just(String::from("^")),
        1 => Just(String::from("$")),
        1 => Just(String::from("(?m)^")),
        1 => Just(String::from(r"(?m:$)")),
        1 => Just(String::from(r"\n")),
        1 => Just(String::from(r"\pL")),
        1 => Just(String::from("(?i)É")),
        1 => Just(String::from("")),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
            (inner.clone(), inner.clone()).prop_map(|(one, other)| format!("(?:{one}|{other})")),
            inner.clone().prop_map(|part| format!("({part})")),
            inner.clone().prop_map(|part| format!("(?:{part})*")),
            inner.clone().prop_map(|part| format!("(?:{part})+?")),
            inner.prop_map(|part| format!("(?:{part}){{0,2}}")),
        ]
    })
}

fn row() -> impl Strategy<Value = Option<String>> {
    prop_oneof![
        1 => Just(None),
        1 => Just(Some(String::new())),
        6 => "[abcéÉ1 \n]{0,20}".prop_map(Some),
        2 => "[a-z0-9 ]{0,40}error[a-f€😀]{0,10}".prop_map(Some),
        1 => "[a-z]{13,200}".prop_map(Some),
    ]
}

fn rows() -> impl Strategy<Value = Rows> {
    prop::collection::vec(row(), 1..60).prop_flat_map(|rows| {
        let bytes: usize = rows.iter().flatten().map(String::len).sum();
        let times = TABLE_BYTES / bytes.max(50) + 1;
        let tiled: Rows = rows.iter().cloned().cycle().take(times * rows.len()).collect();
        prop_oneof![Just(rows), Just(tiled.clone()), Just(tiled)]
    })
}

fn string_type() -> impl Strategy<Value = DataType> {
    prop_oneof![Just(DataType::Utf8), Just(DataType::LargeUtf8), Just(DataType::Utf8View)]
}

fn like_pattern() -> impl Strategy<Value = String> {
    prop::collection::vec(
        prop_oneof![
            3 => Just("%".to_owned()),
            2 => Just("_".to_owned()),
            4 => "[abcé1.*]{1,3}",
            1 => Just("error".to_owned()),
            1 => Just(r"\%".to_owned()),
            1 => Just(r"\_".to_owned()),
            1 => Just(r"\\".to_owned()),
            1 => Just("\n".to_owned()),
        ],
        0..6,
    )
    .prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn searches_agree(rows in rows(), data_type in string_type(), pattern in pattern(), by in r"[a$]{0,2}(\\1|\$0|\$\{1\}|é)?") {
        let any_is_ours = agree(&rows, &data_type, &expressions(&pattern, &by));
        // `regexp_count` remains a function whatever the simplifier makes of operators.
        prop_assert!(any_is_ours || regex::Regex::new(&pattern).is_err());
    }

    #[test]
    fn like_agrees(rows in rows(), data_type in string_type(), pattern in like_pattern()) {
        let column = || col("s");
        let pattern = || lit(pattern.as_str());
        agree(&rows, &data_type, &[
            column().like(pattern()),
            column().not_like(pattern()),
            column().ilike(pattern()),
            column().not_ilike(pattern()),
        ]);
    }

    #[test]
    fn a_group_is_that_of_regex(rows in rows(), data_type in string_type(), pattern in pattern(), group in 0usize..3) {
        let Ok(regex) = regex::Regex::new(&pattern) else { return Ok(()) };
        let context = session(&rows, &data_type, true);
        let sql = format!("SELECT lightfoot_extract(s, '{pattern}', {group}) AS c0 FROM t");
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let found = runtime.block_on(async { context.sql(&sql).await.unwrap().collect().await });
        if group >= regex.captures_len() {
            let message = found.unwrap_err().to_string();
            prop_assert!(message.contains(&format!("there is no group {group}")), "{message}");
            return Ok(());
        }
        let expected: Rows = rows[rows.len().min(3)..]
            .iter()
            .map(|row| Some(regex.captures(row.as_deref()?)?.get(group)?.as_str().to_owned()))
            .collect();
        let found = found.unwrap();
        let found: Vec<&dyn Array> = found.iter().map(|batch| batch.column(0).as_ref()).collect();
        if !expected.is_empty() {
            prop_assert_eq!(&arrow::compute::concat(&found).unwrap(), &array(&expected, &data_type));
        }
    }
}
