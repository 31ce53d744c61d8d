//! What the rule rewrites and what it leaves, by the plans that sessions show; what is refused, and
//! what is left to DataFusion's own functions.

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use datafusion::prelude::*;

const TABLE: &str = "CREATE TABLE t AS SELECT * FROM (VALUES \
    (1, 'GET https://www.example.org/a?id=17', '[a-z]+'), (2, NULL, 'x'), (3, 'köln \u{1F600}', '\\w'), (4, '', '^$')) \
    AS v(n, s, p)";

async fn session(with_functions: bool) -> SessionContext {
    let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
    if with_functions {
        lightfoot_datafusion::register(&context);
    }
    context.sql(TABLE).await.unwrap().collect().await.unwrap();
    context
}

async fn run(context: &SessionContext, sql: &str) -> Vec<RecordBatch> {
    context.sql(sql).await.unwrap().collect().await.unwrap()
}

async fn plan(context: &SessionContext, sql: &str) -> String {
    context.sql(sql).await.unwrap().into_optimized_plan().unwrap().display_indent().to_string()
}

/// Runs a query in both sessions, and says whether the one with functions used them.
async fn is_rewritten(sql: &str) -> bool {
    let (ours, theirs) = (session(true).await, session(false).await);
    assert_eq!(run(&ours, sql).await, run(&theirs, sql).await, "{sql}");
    assert!(!plan(&theirs, sql).await.contains("lightfoot"));
    plan(&ours, sql).await.contains("lightfoot_")
}

#[tokio::test]
async fn searches_are_rewritten() {
    for sql in [
        "SELECT n FROM t WHERE s ~ 'id=[0-9]+'",
        "SELECT n FROM t WHERE s ~* 'ID=[0-9]+' AND n < 3",
        "SELECT n FROM t WHERE s !~ 'id=[0-9]+'",
        "SELECT s !~* '[w-z]+' FROM t",
        "SELECT regexp_like(s, 'K.LN', 'i') FROM t",
        "SELECT regexp_like(s, 'k.*n', 's') AS hit, count(*) FROM t GROUP BY hit ORDER BY hit",
        "SELECT n FROM t WHERE s LIKE '%example%'",
        "SELECT n FROM t WHERE s NOT LIKE '%example%org%' OR s IS NULL",
        "SELECT n FROM t WHERE s ILIKE '%EXAMPLE%'",
        "SELECT regexp_count(s, '[a-z]') FROM t",
        "SELECT sum(regexp_count(s, '[A-Z]', 1, 'i')) FROM t",
        r"SELECT regexp_replace(s, '^.*https?://(?:www\.)?([^/]+)/.*$', '\1') AS host FROM t ORDER BY host",
        "SELECT regexp_replace(s, '[aeiou]', '', 'g') FROM t",
        "SELECT regexp_match(s, 'id=([0-9]+)')[1] FROM t",
        "SELECT t.n FROM t JOIN t AS u ON t.n = u.n AND t.s ~ '[0-9]'",
        "SELECT n FROM t WHERE n IN (SELECT n FROM t WHERE s ~ '[0-9]')",
    ] {
        assert!(is_rewritten(sql).await, "{sql}");
    }
}

#[tokio::test]
async fn others_are_left() {
    for sql in [
        "SELECT n FROM t WHERE s LIKE 'GET%'",
        "SELECT n FROM t WHERE s LIKE '%17'",
        "SELECT n FROM t WHERE s = 'x'",
        "SELECT n FROM t WHERE s ~ p",
        "SELECT n FROM t WHERE s LIKE p",
        "SELECT regexp_count(s, 'e', 3) FROM t",
        "SELECT regexp_match(s, '(i)(d)')[1] FROM t",
        "SELECT regexp_like(s, NULL) FROM t",
    ] {
        assert!(!is_rewritten(sql).await, "{sql}");
    }
}

/// Rows that are not empty are found by their lengths, and null rows are in neither half.
#[tokio::test]
async fn rows_that_are_not_empty_are_found_by_length() {
    let (ours, theirs) = (session(true).await, session(false).await);
    for strings in ["s", "arrow_cast(s, 'LargeUtf8')", "arrow_cast(s, 'Utf8View')", "lower(s)"] {
        for (comparison, is_rewritten) in [("<> ''", true), ("= ''", false), ("<> 'x'", false)] {
            for sql in [
                format!("SELECT n FROM t WHERE {strings} {comparison}"),
                format!("SELECT n FROM t WHERE NOT ({strings} {comparison}) OR n > 3"),
                format!("SELECT {strings} {comparison} FROM t"),
            ] {
                assert_eq!(run(&ours, &sql).await, run(&theirs, &sql).await, "{sql}");
            }
            let sql = format!("SELECT n FROM t WHERE {strings} {comparison}");
            assert_eq!(plan(&ours, &sql).await.contains("octet_length"), is_rewritten, "{sql}");
        }
    }
    let sql = "SELECT n FROM t WHERE '' <> s";
    assert_eq!(run(&ours, sql).await, run(&theirs, sql).await);
    assert!(plan(&ours, sql).await.contains("octet_length"));
}

#[tokio::test]
async fn names_of_columns_stay() {
    let (ours, theirs) = (session(true).await, session(false).await);
    let sql = "SELECT s ~ 'id=[0-9]', regexp_count(s, 'e'), s LIKE '%a%' FROM t";
    assert_eq!(run(&ours, sql).await[0].schema(), run(&theirs, sql).await[0].schema());
}

async fn failure(context: &SessionContext, sql: &str) -> String {
    match context.sql(sql).await {
        Ok(frame) => frame.collect().await.unwrap_err().to_string(),
        Err(error) => error.to_string(),
    }
}

/// A pattern of more than 10 MiB and one for bytes, which the engine refuses as the `regex` crate
/// does: messages are DataFusion's.
#[tokio::test]
async fn refused_patterns_are_left_to_datafusion() {
    let (ours, theirs) = (session(true).await, session(false).await);
    for pattern in [r"(\pL{1000}){1000}", r"(?-u:\xff)x"] {
        for call in ["regexp_count", "regexp_like"] {
            let sql = format!("SELECT {call}(s, '{pattern}') FROM t");
            assert_eq!(failure(&ours, &sql).await, failure(&theirs, &sql).await, "{sql}");
        }
    }
}

/// Calls by name with what the engine does not search.
#[tokio::test]
async fn calls_by_name_fall_back() {
    let context = session(true).await;
    for (ours, theirs) in [
        ("lightfoot_match(s, p)", "regexp_like(s, p)"),
        ("lightfoot_match(s, p, 'i')", "regexp_like(s, p, 'i')"),
        ("lightfoot_match('abc', 'b')", "regexp_like('abc', 'b')"),
        ("lightfoot_match(s, NULL)", "CAST(NULL AS BOOLEAN)"),
        ("lightfoot_count(s, p)", "regexp_count(s, p)"),
        ("lightfoot_count(s, 'L', 'i')", "regexp_count(s, 'L', 1, 'i')"),
        ("lightfoot_count('abcb', 'b')", "regexp_count('abcb', 'b')"),
        ("lightfoot_replace(s, p, '-')", "regexp_replace(s, p, '-')"),
        ("lightfoot_replace(s, 'e', p, 'g')", "regexp_replace(s, 'e', p, 'g')"),
        ("lightfoot_extract('ab1', '[0-9]')", "regexp_match('ab1', '[0-9]')[1]"),
        ("lightfoot_extract(arrow_cast(s, 'LargeUtf8'), '(e)(x)', 2)", "regexp_match(s, 'e(x)')[1]"),
    ] {
        let sql = format!("SELECT n FROM t WHERE ({ours}) IS DISTINCT FROM ({theirs})");
        let rows: usize = run(&context, &sql).await.iter().map(RecordBatch::num_rows).sum();
        assert_eq!(rows, 0, "{sql}");
    }
}

#[tokio::test]
async fn misuse_is_named() {
    let context = session(true).await;
    for (sql, message) in [
        (
            "SELECT lightfoot_extract(s, 'a', 1) FROM t",
            "there is no group 1; the expression has groups 0 to 0",
        ),
        ("SELECT lightfoot_extract(s, 'a', -1) FROM t", "there is no group -1"),
        ("SELECT lightfoot_extract(s, p) FROM t", "takes one pattern and one group for all rows"),
        ("SELECT lightfoot_match(s, '(') FROM t", "unclosed group"),
        ("SELECT lightfoot_match(s, 'a', 'g') FROM t", "does not support the \"global\" option"),
        ("SELECT lightfoot_match(n, 'a') FROM t", "lightfoot_match"),
    ] {
        let error = failure(&context, sql).await;
        assert!(error.contains(message), "{sql}: {error}");
    }
}

/// A second registration is no second rule.
#[tokio::test]
async fn registration_may_be_repeated() {
    let context = session(true).await;
    lightfoot_datafusion::register(&context);
    let rules = context.state().optimizers().iter().filter(|rule| rule.name() == "lightfoot_search").count();
    assert_eq!(rules, 1);
    let counts = run(&context, "SELECT count(*) FROM t WHERE s ~ '[0-9]{2}'").await;
    assert_eq!(counts[0].column(0).as_primitive::<Int64Type>().value(0), 1);
}
