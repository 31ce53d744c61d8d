//! `merge` of reports with rows of data, miss curves and several processes: sums against a naive
//! twin, sites of a program that was built anew, and what people and spreadsheets see of it.

mod bench;

use bench::{compile, compile_in, json, lightfoot, Bench};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A list of as many nodes as the program has arguments, a thousand times each, and a table.
const PROGRAM: &str = "\
#include <stdlib.h>
struct node { struct node *next; long key; char cold[104]; };
static struct node *head;
static volatile long table[4000];
__attribute__((noinline)) static struct node *make(long key) {
  struct node *node = malloc(sizeof *node);
  node->next = head;
  node->key = key;
  return head = node;
}
__attribute__((noinline)) static long *spare(long count) {
  long *cells = malloc(count * sizeof *cells);
  for (long n = 0; n < count; n++) cells[n] = n;
  return cells;
}
int main(int count, char **values) {
  for (long n = 0; n < 1000L * count; n++) make(n);
  long *cells = count > 2 ? spare(3000) : 0;
  long sum = 0;
  for (struct node *node = head; node; node = node->next) sum += table[node->key * 7 % 4000];
  return values[0] == (char *)(sum + !cells);
}
";

const MISSES: [&str; 6] =
    ["l1i_misses", "l1d_load_misses", "l1d_store_misses", "l2_misses", "l3_misses", "dtlb_misses"];

/// A report of the program with so many arguments.
fn report(bench: &Bench, program: &Path, options: &[&str], arguments: usize) -> PathBuf {
    let kind = program.parent().unwrap().file_name().unwrap().to_string_lossy();
    let out = bench.join(&format!("{kind}{}{arguments}.json", options.concat().replace(['-', ' '], "")));
    let ran = lightfoot().args(["cache", "--machine", "zen4"]).args(options).args(["--format", "json", "-o"]);
    ran.arg(&out).arg("--").arg(program).args(vec!["x"; arguments]).run().ends_with(0);
    out
}

fn merged(options: &[&str], reports: &[&Path]) -> Value {
    let ran = lightfoot().args(["merge", "--format", "json"]).args(options).args(reports).run();
    ran.ends_with(0);
    json(&ran.stdout)
}

fn shown(options: &[&str], reports: &[&Path]) -> String {
    let ran = lightfoot().arg("merge").args(options).args(reports).run();
    ran.ends_with(0);
    String::from_utf8(ran.stdout).unwrap()
}

fn read(path: &Path) -> Value {
    json(&std::fs::read(path).unwrap())
}

fn number(row: &Value, column: &str) -> u64 {
    row[column].as_u64().unwrap_or(0)
}

/// All that names a row of a table: of an object its stack as well.
fn name(report: &Value, row: &Value) -> String {
    let frames = row["stack"].as_array().into_iter().flatten();
    let frames =
        frames.map(|frame| report["objects"]["frames"][frame.as_u64().unwrap() as usize].to_string());
    let fields = ["kind", "name", "library", "size_bytes"].map(|field| row[field].to_string());
    format!("{fields:?} {:?}", frames.collect::<Vec<_>>())
}

/// The naive twin: the rows of a table of all reports, added up by all that names them.
fn added(reports: &[&Path], table: &str, column: &str) -> BTreeMap<String, Vec<u64>> {
    let mut sums: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for (number_of_report, path) in reports.iter().enumerate() {
        let report = read(path);
        for row in report["objects"][table].as_array().into_iter().flatten() {
            let values = sums.entry(name(&report, row)).or_insert(vec![0; reports.len()]);
            values[number_of_report] += number(row, column);
        }
    }
    sums
}

#[test]
fn sums_of_data_are_those_of_a_naive_twin() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "program", &["-g", "-O1"], PROGRAM) else { return };
    let reports = [1, 2, 3].map(|count| report(&bench, &program, &["--by", "field"], count));
    let reports = reports.each_ref().map(PathBuf::as_path);
    let all = merged(&[], &reports);
    for column in MISSES {
        let rows = all["objects"]["objects"].as_array().unwrap();
        let sum: u64 = rows.iter().map(|row| number(row, column)).sum();
        assert_eq!(all["totals"][column], sum, "{column} of objects and of the run");
        for table in ["objects", "types", "untyped"] {
            let rows = all["objects"][table].as_array().unwrap();
            let expected = added(&reports, table, column);
            assert_eq!(rows.len(), expected.len(), "{table}");
            for row in rows {
                let values = &expected[&name(&all, row)];
                assert_eq!(number(row, column), values.iter().sum::<u64>(), "{column} of {row}");
                let ends = [values.iter().min().unwrap(), values.iter().max().unwrap()];
                match row["spread"].get(column) {
                    None => assert_eq!(ends[0], ends[1], "{column} of {row}"),
                    Some(spread) => {
                        assert_eq!([number(spread, "least"), number(spread, "most")], ends.map(|end| *end));
                    }
                }
            }
        }
        let fields = |report: &Value| -> u64 {
            let types = report["objects"]["types"].as_array().unwrap();
            let fields = types.iter().flat_map(|row| row["fields"].as_array().unwrap());
            fields.map(|field| number(field, column)).sum()
        };
        assert_eq!(fields(&all), reports.iter().map(|path| fields(&read(path))).sum::<u64>(), "{column}");
    }
    // Blocks add up; the most that lived at a time does not, and a life is that of a mean block.
    let nodes = |report: &Value| {
        let rows = report["objects"]["objects"].as_array().unwrap();
        let row = rows.iter().find(|row| row["type"] == "node").unwrap_or_else(|| panic!("{rows:?}"));
        ["blocks", "footprint_bytes", "lifetime", "reports"].map(|column| number(row, column))
    };
    let singles = reports.map(|path| nodes(&read(path)));
    let lives: u64 = singles.iter().map(|[blocks, _, life, _]| blocks * life).sum();
    assert_eq!(nodes(&all), [9000, 4000 * 120, lives / 9000, 3]);
    // What one report alone has counts as 0 elsewhere.
    let rows = all["objects"]["objects"].as_array().unwrap();
    let spare = rows.iter().find(|row| row["name"].as_str().unwrap().starts_with("spare ")).unwrap();
    assert_eq!((number(spare, "reports"), number(&spare["spread"]["l1d_store_misses"], "least")), (2, 0));
    // A merged report can be merged with another one.
    let two = bench.file("two.json", merged(&[], &reports[..2]).to_string().as_bytes(), 0o644);
    let again = merged(&[], &[&two, reports[2]]);
    for column in MISSES {
        let sums = |report: &Value| -> BTreeMap<String, u64> {
            let rows = report["objects"]["objects"].as_array().unwrap();
            rows.iter().map(|row| (name(report, row), number(row, column))).collect()
        };
        assert_eq!(sums(&again), sums(&all), "{column}");
    }
    let mean = merged(&["--as", "mean"], &reports[..1]);
    assert_eq!(mean["objects"]["objects"], merged(&[], &reports[..1])["objects"]["objects"]);
}

#[test]
fn sites_of_a_program_that_was_built_anew_are_the_same_sites() {
    let bench = Bench::new();
    let mut reports = Vec::new();
    let more = "static volatile int more;\n__attribute__((noinline)) static void late(void) { more = 1; }\n";
    let changed = PROGRAM.replace("struct node {", &format!("{more}struct node {{ "));
    let changed = changed.replace("  long sum = 0;", "  late();\n  long sum = 0;");
    for (folder, source) in [("one", PROGRAM.to_owned()), ("two", changed)] {
        let Some(program) = compile_in(&bench, folder, &["-g"], &source) else { return };
        reports.push(report(&bench, &program, &["--by", "object"], 2));
    }
    let all = merged(&[], &[&reports[0], &reports[1]]);
    let rows = all["objects"]["objects"].as_array().unwrap();
    let sites: Vec<&Value> = rows.iter().filter(|row| row["kind"] == "heap").collect();
    let own = |word: &str| sites.iter().filter(|row| row["name"].as_str().unwrap().starts_with(word)).count();
    assert_eq!([own("make "), own("spare ")], [1, 1], "{sites:?}");
    for row in sites.iter().filter(|row| row["name"].as_str().unwrap().contains("program.c")) {
        assert_eq!(number(row, "reports"), 2, "{row}");
    }
}

#[test]
fn curves_add_up_if_all_reports_have_one() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "program", &["-O1"], PROGRAM) else { return };
    let reports = [1, 2].map(|count| report(&bench, &program, &["--curves"], count));
    let reports = reports.each_ref().map(PathBuf::as_path);
    let all = merged(&[], &reports);
    let points = |report: &Value| -> Vec<[u64; 4]> {
        let points = report["curve"]["points"].as_array().unwrap().iter();
        points
            .map(|point| {
                ["size_bytes", "ways", "load_misses", "store_misses"].map(|field| number(point, field))
            })
            .collect()
    };
    let [one, two] = reports.map(|path| points(&read(path)));
    let sums = one.iter().zip(&two).map(|(a, b)| [a[0], a[1], a[2] + b[2], a[3] + b[3]]);
    assert_eq!(points(&all), sums.collect::<Vec<_>>());
    assert!(points(&all).len() > 10 && two[0][2] > two[10][2]);
    let text = shown(&["--as", "mean"], &reports);
    assert!(text.contains("data misses of caches of other sizes") && text.contains("32 KiB"), "{text}");
    let without = report(&bench, &program, &[], 1);
    let some = merged(&[], &[reports[0], &without]);
    assert!(some.get("curve").is_none());
    let some = merged(&[], &[&without, reports[0]]);
    assert!(some["warnings"].to_string().contains("make all with --curves"), "{}", some["warnings"]);
}

#[test]
fn processes_are_those_of_equal_commands() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "program", &["-O1"], PROGRAM) else { return };
    let reports = ["1", "2"].map(|first| {
        let out = bench.join(&format!("processes{first}.json"));
        // The second command has another name in each run, as one with a temporary file has.
        let script = format!("{0} x; {0} x x; {0} temporary{first} x x; {0} x; exit 0", program.display());
        let ran = lightfoot().args(["count", "--follow-children", "--format", "json", "-o"]).arg(&out);
        ran.args(["--", "sh", "-c", &script]).run().ends_with(0);
        out
    });
    let reports = reports.each_ref().map(PathBuf::as_path);
    let [one, two] = reports.map(read);
    let all = merged(&["--any-program"], &reports);
    let processes = |report: &Value| report["processes"].as_array().unwrap().clone();
    assert_eq!(processes(&all).len(), processes(&one).len());
    let sum = |report: &Value| processes(report).iter().map(|row| number(row, "instructions")).sum::<u64>();
    assert_eq!(sum(&all), sum(&one) + sum(&two));
    assert_eq!(all["totals"]["instructions"], sum(&all));
    for row in processes(&all) {
        assert_eq!(number(&row, "reports"), 2, "{row}");
    }
    let words = |row: &Value| row["command"].as_array().unwrap().len();
    let of = |report: &Value, count| -> Vec<u64> {
        let rows = processes(report);
        let own = rows.iter().filter(|row| words(row) == count && row["command"][1] != "-c");
        own.map(|row| number(row, "instructions")).collect()
    };
    // The four of the program: twice one argument, then two, then three.
    assert_eq!([2, 3, 4].map(|count| of(&all, count).len()), [2, 1, 1]);
    assert_eq!(of(&all, 4)[0], of(&one, 4)[0] + of(&two, 4)[0]);
    let text = shown(&["--any-program"], &reports);
    assert!(text.contains("reports  process") && text.contains("program x x"), "{text}");
}

#[test]
fn people_and_spreadsheets_see_the_data() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "program", &["-g", "-O1"], PROGRAM) else { return };
    let reports = [1, 2].map(|count| report(&bench, &program, &["--by", "field"], count));
    let reports = reports.each_ref().map(PathBuf::as_path);
    let text = shown(&["--as", "mean"], &reports);
    assert!(text.contains("reports  field") && text.contains("2/2  node."), "{text}");
    let csv = shown(&["--format", "csv"], &reports);
    let mut lines = csv.split("\r\n").filter(|line| !line.is_empty());
    let heading: Vec<&str> = lines.next().unwrap().split(',').collect();
    assert_eq!(heading[..3], ["name", "reports", "l1i_misses_sum"]);
    assert!(lines.all(|line| line.split(',').count() >= heading.len()), "{csv}");
    assert!(csv.contains("\r\nnode.next,2,") && csv.contains("\r\nnode.key,2,"), "{csv}");
    let page = shown(&["--format", "html"], &reports);
    assert!(page.contains("<h2>Rows by field: ") && page.contains(">node."), "{page}");
    // Which fields are used together has no rows to add up.
    let typed = report(&bench, &program, &["--by", "field", "--type", "node"], 1);
    let all = merged(&[], &[&typed, &typed]);
    assert!(all["warnings"].to_string().contains("used together"), "{}", all["warnings"]);
    assert!(all["objects"]["types"][0].get("together").is_none());
}
