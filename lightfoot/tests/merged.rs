//! `merge` of several reports: sums and spreads against a naive twin, lines that moved, what is
//! refused, and what reads the merged report.

mod bench;

use bench::{compile, compile_in, json, lightfoot, Bench, Ran};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const PROGRAM: &str = "\
static volatile unsigned sum;
__attribute__((noinline)) static void work(unsigned times) {
  for (unsigned i = 0; i < times; i++)
    sum += i * i;
}
__attribute__((noinline)) static void more(void) {
  sum ^= 1;
}
int main(int arguments, char **values) {
  work(1000 * arguments);
  if (arguments > 2) more();
  return 0;
}
";

/// A report of the program with so many arguments.
fn report(bench: &Bench, program: &Path, options: &[&str], arguments: usize) -> PathBuf {
    let out = bench.join(&format!("{}{arguments}.json", options.concat().replace(['-', ' ', ','], "")));
    let ran = lightfoot().args(options).args(["--format", "json", "-o"]).arg(&out).arg("--").arg(program);
    ran.args(vec!["x"; arguments]).run().ends_with(0);
    out
}

fn merge(options: &[&str], reports: &[&Path]) -> Ran {
    lightfoot().arg("merge").args(options).args(reports).run()
}

fn merged(options: &[&str], reports: &[&Path]) -> Value {
    let ran = merge(&[options, &["--format", "json"]].concat(), reports);
    ran.ends_with(0);
    json(&ran.stdout)
}

fn read(path: &Path) -> Value {
    json(&std::fs::read(path).unwrap())
}

/// The naive twin: rows of a table added up by name, file of code, and place.
fn added(reports: &[&Path], table: &str, column: &str) -> BTreeMap<String, Vec<u64>> {
    let mut sums: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for (number, path) in reports.iter().enumerate() {
        for row in read(path)[table].as_array().unwrap() {
            let library = row["library"].as_str().map(|path| path.rsplit('/').next().unwrap());
            let name = format!("{} {library:?} {} {}", row["name"], row["file"], row["line"]);
            sums.entry(name).or_insert(vec![0; reports.len()])[number] += row[column].as_u64().unwrap_or(0);
        }
    }
    sums
}

#[test]
fn sums_are_those_of_a_naive_twin() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "program", &["-g", "-O1"], PROGRAM) else { return };
    let command = ["cache", "--by", "line"];
    let reports: Vec<PathBuf> = (0..3).map(|count| report(&bench, &program, &command, count)).collect();
    let reports: Vec<&Path> = reports.iter().map(PathBuf::as_path).collect();
    let all = merged(&[], &reports);
    for column in ["instructions", "loads", "l1d_load_misses", "estimated_cycles"] {
        let totals: Vec<u64> =
            reports.iter().map(|path| read(path)["totals"][column].as_u64().unwrap()).collect();
        let spread = &all["spread"][column];
        assert_eq!(all["totals"][column], totals.iter().sum::<u64>(), "{column}");
        assert_eq!(spread["least"], *totals.iter().min().unwrap());
        assert_eq!(spread["most"], *totals.iter().max().unwrap());
        for table in ["functions", "libraries", "opcodes", "rows"] {
            let expected = added(&reports, table, column);
            let rows = all[table].as_array().unwrap();
            assert_eq!(rows.len(), expected.len(), "{table}");
            for row in rows {
                let library = row["library"].as_str().map(|path| path.rsplit('/').next().unwrap());
                let name = format!("{} {library:?} {} {}", row["name"], row["file"], row["line"]);
                let values = &expected[&name];
                let sum: u64 = values.iter().sum();
                assert_eq!(row[column], sum, "{column} of {name}");
                let (least, most) = (values.iter().min().unwrap(), values.iter().max().unwrap());
                match row["spread"].get(column) {
                    None => assert_eq!(least, most, "{column} of {name}"),
                    Some(spread) => {
                        assert_eq!(spread["least"], *least, "{column} of {name}");
                        assert_eq!(spread["most"], *most, "{column} of {name}");
                        let mean = sum as f64 / values.len() as f64;
                        assert!((spread["mean"].as_f64().unwrap() - mean).abs() < 1e-6 * (mean + 1.0));
                    }
                }
            }
        }
    }
    let more = all["functions"].as_array().unwrap().iter().find(|row| row["name"] == "more").unwrap();
    assert_eq!(more["reports"], 1);
}

#[test]
fn calls_of_several_runs_add_up() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "program", &["-O1"], PROGRAM) else { return };
    let reports = [1, 3].map(|arguments| report(&bench, &program, &["cache", "--by", "call"], arguments));
    let [one, three] = [&reports[0], &reports[1]];
    let call = |report: &Value, name: &str| {
        let rows = report["rows"].as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).cloned().unwrap_or_else(|| panic!("no {name}"))
    };
    // A call has the cost of all that the callee did.
    for (path, turns) in [(one, 1000), (three, 3000)] {
        let read = read(path);
        let work = call(&read, "main → work");
        let own = read["functions"].as_array().unwrap().iter().find(|row| row["name"] == "work").unwrap();
        assert_eq!((&work["calls"], &work["instructions"]), (&1.into(), &own["instructions"]));
        // The program has a name as well, so its count of arguments is one more.
        assert!(work["loads"].as_u64().unwrap() >= turns);
    }
    let all = merged(&[], &[one, three]);
    let expected = added(&[one, three], "rows", "instructions");
    assert_eq!(all["rows"].as_array().unwrap().len(), expected.len());
    let work = call(&all, "main → work");
    let of = |path, column: &str| call(&read(path), "main → work")[column].as_u64().unwrap();
    assert_eq!((&work["calls"], &work["reports"]), (&2.into(), &2.into()));
    assert_eq!(work["instructions"], of(one, "instructions") + of(three, "instructions"));
    let more = call(&all, "main → more");
    assert_eq!((&more["calls"], &more["spread"]["calls"]["least"]), (&1.into(), &0.into()));
    let text = String::from_utf8(merge(&["--top", "0"], &[one, three]).stdout).unwrap();
    assert!(text.contains("main → work"), "{text}");
    let table = merge(&["--format", "csv"], &[one, three]);
    let table = String::from_utf8(table.stdout).unwrap();
    let mut lines = table.lines();
    let columns = lines.next().unwrap().split(',').count();
    assert!(lines.all(|line| line.split(',').count() == columns), "{table}");
    lightfoot()
        .args(["count", "--by", "call,line", "true"])
        .run()
        .fails_with(125)
        .says("--by call stands alone");
}

#[test]
fn equal_reports_have_no_spread() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "program", &["-O1"], PROGRAM) else { return };
    let one = report(&bench, &program, &["count"], 1);
    let all = merged(&["--as", "mean"], &[&one, &one, &one]);
    let single = read(&one);
    assert_eq!(all["totals"]["instructions"], single["totals"]["instructions"]);
    for (column, spread) in all["spread"].as_object().unwrap() {
        assert_eq!(
            (&spread["least"], spread["deviation"].as_f64()),
            (&spread["most"], Some(0.0)),
            "{column}"
        );
    }
    assert!(all["functions"].as_array().unwrap().iter().all(|row| row.get("spread").is_none()));
    // The mean of equal reports is the report, as far as diff sees it.
    let out = bench.file("mean.json", all.to_string().as_bytes(), 0o644);
    let ran = lightfoot().args(["diff", "--format", "json", "--fail-above", "0%"]).arg(&one).arg(&out).run();
    ran.ends_with(0);
    assert_eq!(json(&ran.stdout)["rows"], serde_json::json!([]));
    // A merge is a report, which can be merged.
    let twice = merged(&[], &[&out, &one]);
    assert_eq!(
        twice["totals"]["instructions"].as_u64().unwrap(),
        2 * single["totals"]["instructions"].as_u64().unwrap()
    );
}

#[test]
fn lines_that_moved_are_one_row() {
    let bench = Bench::new();
    let mut reports = Vec::new();
    for (folder, source) in [("one", PROGRAM.to_owned()), ("two", format!("/* a comment */\n{PROGRAM}"))] {
        let Some(program) = compile_in(&bench, folder, &["-g"], &source) else { return };
        let made = report(&bench, &program, &["count", "--by", "line"], 1);
        let kept = bench.join(folder).join("report.json");
        std::fs::rename(made, &kept).unwrap();
        reports.push(kept);
    }
    let [one, two] = [reports[0].as_path(), reports[1].as_path()];
    let all = merged(&[], &[one, two]);
    let own = |row: &&Value| row["file"].as_str().is_some_and(|file| file.ends_with("program.c"));
    let rows: Vec<&Value> = all["rows"].as_array().unwrap().iter().filter(own).collect();
    assert!(rows.len() > 5, "{rows:?}");
    for row in rows {
        // Named as the last report names it, and in both.
        assert!(row["file"].as_str().unwrap().ends_with("two/program.c"), "{row}");
        assert_eq!(row["reports"], 2, "{row}");
        assert!(row["spread"].get("instructions").is_none(), "{row}");
    }
    assert!(all["warnings"].to_string().contains("--map-path"), "{}", all["warnings"]);
    let mapping = format!("{}={}", bench.join("one").display(), bench.join("two").display());
    let mapped = merged(&["--map-path", &mapping], &[one, two]);
    assert_eq!((&mapped["rows"], &mapped["warnings"]), (&all["rows"], &serde_json::json!([])));
}

#[test]
fn reports_that_do_not_add_up_are_refused() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "program", &["-O1"], PROGRAM) else { return };
    let count = report(&bench, &program, &["count"], 1);
    let cache = report(&bench, &program, &["cache"], 1);
    let other = report(&bench, &program, &["cache", "--machine", "cachegrind"], 1);
    let lines = report(&bench, &program, &["count", "--by", "line"], 1);
    let text = std::fs::read_to_string(&count).unwrap();
    let edited = |name: &str, from: &str, to: &str| {
        assert!(text.contains(from));
        bench.file(name, text.replacen(from, to, 1).as_bytes(), 0o644)
    };
    let newer = edited("newer.json", "\"schema\": 1", "\"schema\": 9");
    let bare = edited("bare.json", "\"blocks\"", "\"bricks\"");
    let foreign = edited("foreign.json", "/program\"", "/programme\"");
    for (reports, sentence) in [
        ([&count, &cache], "give reports of one command"),
        ([&cache, &other], "their cache differs: make both on one machine"),
        ([&newer, &count], "has schema 9"),
        ([&lines, &count], "make both with the same --by"),
        ([&bare, &count], "has blocks and"),
        ([&foreign, &count], "add --any-program"),
        ([&bench.join("none.json"), &count], "cannot read"),
    ] {
        let ran = merge(&[], &reports.map(PathBuf::as_path));
        ran.fails_with(2).says(sentence).in_one_line();
    }
    merge(&["--any-program"], &[&foreign, &count]).ends_with(0);
    merge(&["--sort", "l2_misses"], &[&count]).fails_with(2).says("no column l2_misses").in_one_line();
    merge(&[], &[]).fails_with(2).says("REPORT");
}

#[test]
fn people_and_spreadsheets_read_it() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "program", &["-g", "-O1"], PROGRAM) else { return };
    let reports = [1, 2].map(|count| report(&bench, &program, &["count"], count));
    let reports = [reports[0].as_path(), reports[1].as_path()];
    let shown = |options: &[&str]| {
        let ran = merge(options, &reports);
        ran.ends_with(0);
        String::from_utf8(ran.stdout).unwrap()
    };
    let text = shown(&["--as", "mean", "--sort", "stores"]);
    assert!(text.starts_with("lightfoot merge: mean of 2 reports of count, program\n"), "{text}");
    assert!(text.contains("2/2  work [program]") && text.contains("share: of stores"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let csv = shown(&["--format", "csv"]);
    let mut lines = csv.split("\r\n");
    let heading: Vec<&str> = lines.next().unwrap().split(',').collect();
    assert_eq!(heading[..6], ["name", "library", "file", "line", "reports", "instructions_sum"]);
    let total: Vec<&str> = lines.next().unwrap().split(',').collect();
    assert_eq!(total[5], merged(&[], &reports)["totals"]["instructions"].to_string());
    assert!(lines.filter(|line| !line.is_empty()).all(|line| line.split(',').count() >= heading.len()));
    let page = shown(&["--format", "html"]);
    assert!(page.starts_with("<!doctype html>") && page.contains("script-src 'none'"), "{page}");
    assert!(page.contains("work [program]") && page.contains("<h2>Reports</h2>"), "{page}");
    assert!(!page.contains("style=\"") && page.matches("<svg").count() > 8, "{page}");
}
