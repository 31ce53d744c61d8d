//! `lightfoot show` as people use it: what it prints of a trace, what it refuses, and how it
//! follows one that is being written.

mod bench;

use bench::{compile, json, lightfoot, unwished, Bench, BINARY};
use measure::trace::{decode, End, Header, Interval, Metric, Record, Source, Trace, Unit, Value, Writer};
use serde_json::Value as Json;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Page faults of a record.
fn faults(sequence: u64) -> u64 {
    40 + sequence % 2
}

/// A trace of 50 ms: misses rise from 100 to 900 at the middle, and faults were once not counted.
fn trace() -> Trace {
    let metrics =
        vec![Metric::new("misses", Source::Pmu, "perf"), Metric::new("page-faults", Source::Kernel, "perf")];
    let interval = Interval { length: 1_000_000, unit: Unit::Nanoseconds };
    let mut trace = Trace::new(Header::new(vec!["./prog".into()], interval, metrics));
    for sequence in 0..50 {
        let level = if sequence < 25 { 100 } else { 900 };
        let faults = if sequence == 7 { None } else { Some(faults(sequence)) };
        let values = vec![Value::whole(level + sequence % 3), Value { delta: faults, share: None }];
        let (start, dt) = (1_000_000 * sequence, 1_000_000);
        trace.records.push(Record { sequence, start, dt, missed_ticks: 0, threads: 1, values });
    }
    trace.end =
        Some(End { totals: vec![trace.sum(0), Some(2025)], exit_status: Some(0), interrupted: false });
    trace
}

/// A trace of a run in which nothing was recorded.
fn empty() -> Trace {
    let end = End { totals: vec![Some(0), Some(0)], exit_status: Some(0), interrupted: false };
    Trace { records: Vec::new(), end: Some(end), ..trace() }
}

fn file(bench: &Bench, name: &str, trace: &Trace) -> PathBuf {
    let path = bench.join(name);
    std::fs::write(&path, trace.encode()).unwrap();
    path
}

/// What the command prints, which must succeed.
fn show(path: &Path, more: &[&str]) -> String {
    let output = unwished(Command::new(BINARY).arg("show").arg(path).args(more)).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{more:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// The sentence with which the command refuses.
fn refused(path: &Path, more: &[&str]) -> String {
    let output = unwished(Command::new(BINARY).arg("show").arg(path).args(more)).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{more:?}: {said}");
    assert!(output.stdout.is_empty());
    said
}

#[test]
fn csv_and_json_have_the_values_of_the_file() {
    let bench = Bench::new();
    let trace = trace();
    let path = file(&bench, "t.lft", &trace);
    let csv = show(&path, &["--format", "csv"]);
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some("sequence,start,dt,missed_ticks,threads,misses,page-faults"));
    for (line, record) in lines.by_ref().zip(&trace.records) {
        let cells: Vec<Option<u64>> = line.split(',').map(|cell| cell.parse().ok()).collect();
        let head = [record.sequence, record.start, record.dt, 0, 1].map(Some);
        let values = record.values.iter().map(|value| value.delta);
        assert_eq!(cells, head.into_iter().chain(values).collect::<Vec<_>>());
    }
    assert_eq!((csv.lines().count(), lines.next()), (51, None));
    let read = json(show(&path, &["--format", "json"]).as_bytes());
    let written = serde_json::to_value(&trace).unwrap();
    for field in ["header", "records", "end", "cut"] {
        assert_eq!(read[field], written[field], "{field}");
    }
    let starts: Vec<&Json> = read["phases"].as_array().unwrap().iter().map(|phase| &phase["start"]).collect();
    assert_eq!(starts, [0, 25_000_000], "the phases are those of the misses");
}

#[test]
fn metrics_ranges_and_rows_are_chosen() {
    let bench = Bench::new();
    let path = file(&bench, "t.lft", &trace());
    let csv = show(&path, &["--format", "csv", "--metrics", "page*", "--from", "10ms", "--to", "50%"]);
    let rows: Vec<&str> = csv.lines().collect();
    assert_eq!(
        (rows[0], rows[1], rows.len()),
        ("sequence,start,dt,missed_ticks,threads,page-faults", "10,10000000,1000000,0,1,40", 16)
    );
    let joined = show(&path, &["--format", "csv", "--every", "25"]);
    let sum = |range: std::ops::Range<u64>| range.map(|n| n % 3).sum::<u64>();
    let rows: Vec<&str> = joined.lines().skip(1).collect();
    // Record 7 has no number of faults, so their sum is unknown.
    assert_eq!(rows[0], format!("0,0,25000000,0,1,{},", 2500 + sum(0..25)));
    assert_eq!(
        rows[1],
        format!("25,25000000,25000000,0,1,{},{}", 22_500 + sum(25..50), (25..50).map(faults).sum::<u64>())
    );
    let top = show(&path, &["--format", "csv", "--top", "2"]);
    assert!(top.lines().skip(1).all(|row| row.contains(",902,")) && top.lines().count() == 3, "{top}");
}

#[test]
fn the_table_says_what_the_trace_is() {
    let bench = Bench::new();
    let path = file(&bench, "t.lft", &trace());
    let out = show(&path, &[]);
    assert!(
        out.starts_with("lightfoot show: ./prog, exit status 0\n  50 records of 1.0 ms, native\n"),
        "{out}"
    );
    let rows = out.lines().filter(|line| line.contains(" ms ") && !line.contains("records")).count();
    assert!(rows >= 25 && out.contains("(a row is 2 records: --every 1 shows each)"), "{out}");
    assert!(out.lines().all(|line| line.chars().count() <= 80), "{out}");
    let words: Vec<&str> =
        out.lines().find(|line| line.contains("page-faults")).unwrap().split_whitespace().collect();
    assert_eq!(words[1..5], ["40", "40", "41", "2,025"]);
}

#[test]
fn every_format_is_written_whole_to_a_file() {
    let bench = Bench::new();
    let path = file(&bench, "t.lft", &trace());
    for (format, begins, ends) in [
        ("html", "<!doctype html>", "</html>\n"),
        ("svg", "<svg", "</svg>\n"),
        ("table", "lightfoot show", "\n"),
        ("csv", "sequence", "\n"),
        ("json", "{", "}\n"),
        ("firefox", "{", "}\n"),
        ("perfetto", "{", "}\n"),
    ] {
        let out = bench.join(format);
        assert_eq!(show(&path, &["--format", format, "-o", out.to_str().unwrap()]), "");
        let text = std::fs::read_to_string(&out).unwrap();
        assert!(text.starts_with(begins) && text.ends_with(ends), "{format}: {text}");
    }
    let perfetto = json(&std::fs::read(bench.join("perfetto")).unwrap());
    let phases =
        perfetto["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X").count();
    assert_eq!(phases, 2);
    let firefox = json(&std::fs::read(bench.join("firefox")).unwrap());
    assert_eq!(firefox["counters"][0]["samples"]["length"], 50);
    assert_eq!(firefox["counters"][1]["samples"]["length"], 49, "what was not counted has no sample");
    // Nothing else is left in the folder.
    assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 8);
}

#[test]
fn bad_input_is_one_sentence() {
    let bench = Bench::new();
    let path = file(&bench, "t.lft", &trace());
    let text = bench.join("text");
    std::fs::write(&text, "a text of some length, which is no trace").unwrap();
    assert!(refused(&text, &[]).contains("not a trace file"));
    assert!(refused(&bench.join("gone"), &[]).contains("No such file"));
    assert!(refused(&bench.join("gone"), &["--follow"]).contains("start lightfoot trace -o"));
    assert!(refused(&path, &["--metrics", "mises"]).contains("did you mean misses?"));
    assert!(refused(&path, &["--metrics", "zzzzzz"]).contains("it has misses, page-faults"));
    assert!(
        refused(&path, &["--from", "1e6instructions"]).contains("the trace counts nanoseconds: give 20ms")
    );
    assert!(refused(&path, &["--from", "1s"]).contains("the trace ends at 50.0 ms"));
    assert!(refused(&path, &["--from", "20ms", "--to", "10ms"]).contains("nothing lies between"));
    assert!(refused(&path, &["--top", "3", "--format", "svg"]).contains("--format table, csv and json"));
    assert!(refused(&path, &["--every", "0"]).contains("--every: expected"));
    let empty = file(&bench, "empty.lft", &empty());
    assert!(refused(&empty, &[]).contains("has no records"));
    std::fs::rename(&path, bench.join("t.lft.partial")).unwrap();
    assert!(refused(&path, &[]).contains("is not finished: show"));
}

#[test]
fn a_cut_trace_is_shown_up_to_the_cut() {
    let bench = Bench::new();
    let bytes = trace().encode();
    let path = bench.join("cut.lft");
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let records = decode(&bytes[..bytes.len() / 2]).unwrap().records.len();
    let output = unwished(Command::new(BINARY).arg("show").arg(&path)).output().unwrap();
    let (out, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains("cut at byte") && said.lines().count() == 1, "{said}");
    assert!(
        out.contains(&format!("\n  {records} records of 1.0 ms")) && out.contains("cut: a part of the run"),
        "{out}"
    );
}

/// A child whose lines are read as they come.
fn following(path: &Path) -> (std::process::Child, std::io::Lines<BufReader<std::process::ChildStdout>>) {
    let mut child = unwished(Command::new(BINARY).arg("show").arg("--follow").arg(path))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, lines)
}

#[test]
fn a_growing_trace_is_followed_to_its_end() {
    let bench = Bench::new();
    let (whole, path, partial) = (trace(), bench.join("t.lft"), bench.join("t.lft.partial"));
    // An older trace in the place of the new one must not be taken for it.
    file(&bench, "t.lft", &empty());
    let growing = File::create(&partial).unwrap();
    growing.try_lock().unwrap();
    let mut writer = Writer::new(growing, &whole.header).unwrap();
    let write = |writer: &mut Writer<File>, range: std::ops::Range<usize>| {
        whole.records[range].iter().for_each(|record| writer.record(record).unwrap());
    };
    write(&mut writer, 0..20);
    let (mut child, mut lines) = following(&path);
    let mut next = || lines.next().unwrap().unwrap();
    assert!(next().contains("misses"));
    // Twenty rows arrive before the others are written.
    let starts: Vec<String> = (0..20).map(|_| next()).collect();
    assert!(starts[19].starts_with("   19.0 ms") && starts[7].ends_with('-'), "{starts:?}");
    write(&mut writer, 20..50);
    assert!((20..50).map(|_| next()).last().unwrap().contains("902") || whole.records[49].sequence % 3 != 2);
    std::fs::write(&path, whole.encode()).unwrap();
    std::fs::remove_file(&partial).unwrap();
    drop(writer);
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert!(rest.contains(&"lightfoot show: ./prog, exit status 0".to_owned()), "{rest:?}");
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_killed_measurement_ends_what_follows_it() {
    let bench = Bench::new();
    let whole = trace();
    let mut writer = Writer::new(File::create(bench.join("t.lft.partial")).unwrap(), &whole.header).unwrap();
    whole.records[..9].iter().for_each(|record| writer.record(record).unwrap());
    // Nobody holds the lock.
    drop(writer);
    let (child, lines) = following(&bench.join("t.lft"));
    let out: Vec<String> = lines.map(Result::unwrap).collect();
    assert!(out.iter().any(|line| line.contains("9 records of 1.0 ms")), "{out:?}");
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("was killed"), "{said}");
}

/// Calls `first` for the first half of its work and `second` for the rest.
const PROGRAM: &str = r#"
static volatile long sum;
__attribute__((noinline)) void first(void) { for (int i = 0; i < 2000; i++) sum += i; }
__attribute__((noinline)) void second(void) { for (int i = 0; i < 2000; i++) sum ^= i; }
int main(void) {
    for (int n = 0; n < 300; n++) first();
    for (int n = 0; n < 300; n++) second();
    return 0;
}
"#;

#[test]
fn functions_of_each_interval_add_up_to_its_instructions() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "prog", &["-g"], PROGRAM) else { return };
    let path = bench.join("t.lft");
    let options =
        ["trace", "--every", "1e5instructions", "--by", "function", "--machine", "cachegrind", "-o"];
    lightfoot().args(options).arg(&path).arg(&program).run().ends_with(0);
    let trace = decode(&std::fs::read(&path).unwrap()).unwrap();
    let functions = trace.functions.as_ref().unwrap();
    assert_eq!(functions.instructions.len(), trace.records.len());
    for (record, row) in trace.records.iter().zip(&functions.instructions) {
        assert_eq!(row.iter().map(|(_, executed)| executed).sum::<u64>(), record.dt, "{record:?}");
    }
    // The engine alone counts the same.
    let counted = bench.join("count.json");
    lightfoot().args(["count", "--format", "json", "-o"]).arg(&counted).arg(&program).run().ends_with(0);
    let report = json(&std::fs::read(&counted).unwrap());
    for wanted in ["first", "second"] {
        let number =
            functions.names.iter().position(|name| *name == format!("{wanted} [prog]")).unwrap() as u32;
        let parts = functions.instructions.iter().flatten().filter(|(function, _)| *function == number);
        let row = report["functions"].as_array().unwrap().iter().find(|row| row["name"] == wanted).unwrap();
        assert_eq!(Some(parts.map(|(_, executed)| executed).sum::<u64>()), row["instructions"].as_u64());
    }
    let out = show(&path, &[]);
    let at =
        |name: &str| out.find(&format!("100 % {name} [prog]")).unwrap_or_else(|| panic!("{name}: {out}"));
    assert!(at("first") < at("second"));
    // What runs by itself has no functions to tell apart.
    let refused = lightfoot().args(["trace", "--by", "function", "-o"]).arg(&path).arg(&program).run();
    refused.ends_with(125);
}
