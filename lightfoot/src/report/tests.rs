//! Tests every format with reports that are made by hand.

use super::*;
use crate::cli::{By, Rep, Shape};
use crate::run::tally::Counts;
use crate::run::tally::Misses;
use present::terminal::{Page, Style};
use std::collections::BTreeMap;

fn row(name: &str, address: u64, counts: Counts) -> Row {
    Row {
        name: name.into(),
        library: Some("/usr/bin/prog".into()),
        address: Some(address),
        counts,
        ..Row::default()
    }
}

/// A small report of `count`.
pub(crate) fn count_report() -> Report {
    let totals = Counts { instructions: 1_234_567, blocks: 1000, loads: 3000, stores: 400, misses: None };
    let main = Counts { instructions: 1_000_000, blocks: 900, loads: 2900, stores: 300, misses: None };
    let rest = Counts { instructions: 234_567, blocks: 100, loads: 100, stores: 100, misses: None };
    Report {
        attached: None,
        schema: SCHEMA,
        version: "0.0.0",
        kind: Kind::Count,
        command: vec!["prog".into(), "--flag".into()],
        exit_status: 3,
        signal: None,
        partial: false,
        rep: Rep::Once,
        region: None,
        machine: serde_json::json!({"name": "host"}),
        wall_s: 0.5,
        instructions_per_s: Some(2_469_134),
        native_wall_s: None,
        slowdown: None,
        engine: Engine::default(),
        totals,
        cycles: None,
        write_backs: None,
        prefetched: None,
        traffic: None,
        conditional_branches: None,
        curve: None,
        unnamed: 0,
        objects: None,
        null_reasons: BTreeMap::from([("slowdown".into(), "not measured".into())]),
        warnings: vec!["a sentence".into()],
        functions: vec![
            row("main", 0x1139, main),
            row("a_function(with, several, long, arguments)", 0x1200, rest),
        ],
        libraries: Vec::new(),
        opcodes: Vec::new(),
        by: None,
        rows: None,
        sort: None,
        order: Order::Own,
        detail: None,
        processes: None,
        layouts: None,
    }
}

/// A report with a child process.
fn family_report() -> Report {
    let mut report = count_report();
    let process = |place: usize, parent_place: Option<usize>, counts| ProcessRow {
        pid: 4000 + place as i32,
        parent: parent_place.map(|place| 4000 + place as i32),
        place,
        parent_place,
        command: vec!["/usr/lib/a/rather/long/path/to/prog".into(), "--an-argument".into(), "-x\n".repeat(9)],
        exit_status: (place != 2).then_some(0),
        signal: None,
        counts,
    };
    let [main, rest] = [report.functions[0].counts, report.functions[1].counts];
    report.processes = Some(vec![process(1, None, main), process(2, Some(1), rest)]);
    report
}

#[test]
fn each_process_has_a_line_in_every_shape() {
    let report = family_report();
    let text = text::show(&report, &[By::Function], 20, &Page::PLAIN);
    assert!(text.contains("#2 of #1, not counted to its end: "), "{text}");
    assert!(text.contains("#1, exit 0: "), "{text}");
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["processes"][1]["parent"], json["processes"][0]["pid"]);
    assert_eq!(json["processes"][1]["instructions"], 234_567);
    let csv = csv::show(&report, &[By::Function], 1);
    assert!(csv.contains("\r\n(process 2 of 1),/usr/lib/a/rather/long/path/to/prog,,234567,"), "{csv}");
    assert!(serde_json::to_value(count_report()).unwrap().get("processes").is_none());
}

/// A small report of `cache` on a machine without a third level.
pub(crate) fn cache_report() -> Report {
    let mut report = count_report();
    report.kind = Kind::Cache;
    let misses = Misses {
        l1i_misses: Some(10),
        l1d_load_misses: Some(123_456_789),
        l1d_store_misses: Some(7),
        l2_misses: Some(5),
        l3_misses: None,
        dtlb_misses: Some(2),
        branch_mispredictions: None,
        cycles: None,
    };
    report.totals.misses = Some(misses);
    for row in &mut report.functions {
        row.counts.misses = Some(misses);
    }
    report.null_reasons.insert("l3_misses".into(), "the machine has no third level".into());
    report
}

#[test]
fn json_has_the_promised_fields() {
    let view = View { format: Shape::Json, by: &[By::Function], top: None, page: Page::PLAIN };
    let json: serde_json::Value = serde_json::from_slice(&view.show(&cache_report()).unwrap()).unwrap();
    for field in ["schema", "version", "command", "exit_status", "partial", "machine", "totals", "functions"]
    {
        assert!(json.get(field).is_some(), "{field}");
    }
    assert_eq!(json["totals"]["instructions"], 1_234_567);
    assert_eq!(json["totals"]["l1d_load_misses"], 123_456_789);
    assert!(json["totals"]["l3_misses"].is_null());
    assert_eq!(json["null_reasons"]["l3_misses"], "the machine has no third level");
    assert_eq!(json["functions"][0]["name"], "main");
}

#[test]
fn a_count_has_no_misses_at_all() {
    let json = serde_json::to_value(count_report()).unwrap();
    assert!(json["totals"].get("l3_misses").is_none());
}

#[test]
fn text_fits_eighty_columns() {
    for report in [count_report(), cache_report(), family_report()] {
        let text = text::show(&report, &[By::Function], 20, &Page::PLAIN);
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{} columns: {line}", line.chars().count());
            assert_eq!(line, line.trim_end());
        }
        assert!(text.contains("1,234,567"), "{text}");
    }
}

#[test]
fn a_missing_level_says_why() {
    let text = text::show(&cache_report(), &[By::Function], 20, &Page::PLAIN);
    let line = text.lines().find(|line| line.contains("L3 misses")).unwrap();
    assert!(line.contains("- ") && line.contains("(the machine has no third level)"), "{line}");
}

#[test]
fn only_a_terminal_sees_escape_sequences() {
    let plain = text::show(&count_report(), &[By::Function], 20, &Page::PLAIN);
    assert!(!plain.contains('\x1b'));
    let bold = Page { style: Style::Bold, ..Page::PLAIN };
    assert!(text::show(&count_report(), &[By::Function], 20, &bold).contains("\x1b[1m"));
}

#[test]
fn rows_beyond_the_top_are_counted() {
    let text = text::show(&count_report(), &[By::Function], 1, &Page::PLAIN);
    assert!(text.contains("(1 more with --top 0; "), "{text}");
}

#[test]
fn the_table_is_sorted_by_what_it_measures() {
    let (small, large) =
        (Counts { instructions: 1, ..Counts::default() }, Counts { instructions: 2, ..Counts::default() });
    let mut report = count_report();
    assert!(report.weight(&large) > report.weight(&small));
    let missing = Misses { l1d_load_misses: Some(9), ..Misses::default() };
    let few = Counts { misses: Some(missing), ..small };
    report.kind = Kind::Cache;
    assert!(report.weight(&few) > report.weight(&Counts { misses: Some(Misses::default()), ..large }));
    report.sort = Some(sortable(Kind::Cache, "L1D").unwrap());
    assert_eq!(report.weight(&few).0, 9);
}

#[test]
fn a_column_that_is_not_there_is_named() {
    assert_eq!(sortable(Kind::Count, "Stores").unwrap().field, "stores");
    let said = sortable(Kind::Count, "l2_misses").unwrap_err().to_string();
    assert!(said.contains("l2_misses") && said.contains("loads"), "{said}");
}

#[test]
fn a_line_shows_its_innermost_function() {
    let frame = |function: &str, line| Frame { function: function.into(), file: "/src/a.rs".into(), line };
    let counts = Counts { instructions: 5, ..Counts::default() };
    let inlined = Row {
        name: "main".into(),
        library: Some("/bin/prog".into()),
        file: Some("/src/a.rs".into()),
        line: Some(3),
        frames: vec![frame("inner", 3), frame("main", 9)],
        counts,
        ..Row::default()
    };
    let unknown =
        Row { name: "memcpy".into(), library: Some("/lib/libc.so.6".into()), counts, ..Row::default() };
    let report = Report { by: Some(vec![By::Line]), rows: Some(vec![inlined, unknown]), ..count_report() };
    let text = text::show(&report, &[By::Line], 20, &Page::PLAIN);
    assert!(text.contains("  a.rs:3 inner\n") && text.contains("  ??? memcpy [libc.so.6]\n"), "{text}");
    let text = text::show(&report, &[By::Line, By::Function], 20, &Page::PLAIN);
    assert!(text.contains("  a.rs:3 main\n"), "{text}");
    let csv = csv::show(&report, &[By::Line], 20);
    assert!(
        csv.contains("name,library,address,file,line,instructions") && csv.contains(",/src/a.rs,3,5,"),
        "{csv}"
    );
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["rows"][0]["frames"][1]["line"], 9);
}

#[test]
fn inlined_library_code_names_the_line_that_it_was_inlined_into() {
    let frame =
        |file: &str, line, function: &str| Frame { file: file.into(), line, function: function.into() };
    let frames = vec![
        frame("/usr/include/c++/12/bits/hashtable.h", 1930, "std::_Hashtable::find"),
        frame("/usr/include/c++/12/bits/unordered_map.h", 1000, "std::unordered_map::at"),
        frame("/home/me/a.cpp", 13, "visit"),
        frame("/home/me/a.cpp", 27, "main"),
    ];
    let own = frames[2..].to_vec();
    let line = |frames: Vec<Frame>| Row {
        name: "main".into(),
        file: Some(frames[0].file.clone()),
        line: Some(frames[0].line),
        frames,
        ..Row::default()
    };
    let by = [By::Line];
    let report =
        Report { by: Some(by.to_vec()), rows: Some(vec![line(frames), line(own)]), ..count_report() };
    let text = text::show(&report, &by, 20, &Page::PLAIN);
    assert!(text.contains(" hashtable.h:1930 from a.cpp:13 visit\n"), "{text}");
    assert!(text.contains(" a.cpp:13 visit\n"), "{text}");
}
