//! Source lines, regions, and files for other people's viewers, on programs compiled here.
//!
//! The truth about lines is the program's own loops: how often each runs is written beside them.
//! Viewers that are not installed are said and skipped.

mod bench;

use bench::{compile, json, lightfoot, Bench};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Lines are numbered from 1.
const PROGRAM: &str = "\
#include <stdio.h>
#include \"lightfoot_region.h\"
static volatile unsigned long sum;
static inline __attribute__((always_inline)) void add(unsigned long x)
{
    sum += x;
}
__attribute__((noinline)) void leaf(void)
{
    for (int i = 0; i < 1000; i++)
        add(i);
}
__attribute__((noinline)) void twice(void)
{
    leaf();
    leaf();
}
__attribute__((noinline)) int fib(int n)
{
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}
int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        leaf();
    twice();
    region_begin(\"inner\");
    leaf();
    region_end(\"inner\");
    printf(\"%d\\n\", fib(10));
    region_begin(\"open\");
    return 0;
}
";

fn program(bench: &Bench) -> Option<PathBuf> {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("region/include");
    compile(bench, "prog", &["-g", "-I", include.to_str().unwrap()], PROGRAM)
}

/// The report of a run with these options, as JSON.
fn report(bench: &Bench, program: &Path, options: &[&str]) -> Value {
    let out = bench.join("report.json");
    let ran =
        lightfoot().args(options).args(["--format", "json", "-o"]).arg(&out).arg("--").arg(program).run();
    ran.ends_with(0);
    json(&std::fs::read(out).unwrap())
}

/// Sum of a field over rows of a line of the program.
fn at_line(report: &Value, line: u64, field: &str) -> u64 {
    let rows = report["rows"].as_array().unwrap().iter();
    let here = |row: &&Value| {
        row["line"] == line && row["file"].as_str().is_some_and(|file| file.ends_with("source.c"))
    };
    rows.filter(here).map(|row| row[field].as_u64().unwrap()).sum()
}

#[test]
fn lines_count_what_they_run() {
    let bench = Bench::new();
    let Some(program) = program(&bench) else { return };
    for command in ["count", "cache"] {
        let report = report(&bench, &program, &[command, "--by", "line"]);
        // `sum += x` is inlined: a load and a store each time, on its own line.
        assert_eq!((at_line(&report, 6, "loads"), at_line(&report, 6, "stores")), (3000, 3000));
        let rows = report["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["line"] == 6 && row["name"] == "leaf").unwrap();
        assert_eq!(row["frames"][0]["function"], "add");
        assert_eq!((&row["frames"][1]["function"], &row["frames"][1]["line"]), (&"leaf".into(), &11.into()));
        for field in ["instructions", "loads", "stores"] {
            let sum: u64 = rows.iter().map(|row| row[field].as_u64().unwrap()).sum();
            assert_eq!(sum, report["totals"][field].as_u64().unwrap(), "{field}");
        }
    }
}

#[test]
fn inlined_code_counts_where_it_was_inlined_too() {
    let bench = Bench::new();
    let Some(program) = program(&bench) else { return };
    let report = report(&bench, &program, &["cache", "--by", "line", "--sort", "inlined"]);
    let rows = report["rows"].as_array().unwrap();
    let at = |line: u64| {
        let here = |row: &&Value| row["line"] == line && row["file"].as_str().unwrap().ends_with("source.c");
        rows.iter().find(here).unwrap_or_else(|| panic!("no line {line}"))
    };
    // `add(i)` on line 11 is line 6 without the loop's own.
    for field in ["instructions", "loads", "stores", "l1d_store_misses"] {
        let own = at(11)[field].as_u64().unwrap();
        let expected = own + at(6)[field].as_u64().unwrap();
        assert_eq!(at(11)["with_inlined"][field], expected, "{field}");
    }
    assert!(at(6).get("with_inlined").is_none() && at(10).get("with_inlined").is_none());
    let weight = |row: &Value| {
        let counts = row.get("with_inlined").unwrap_or(row);
        ["l1d_load_misses", "l1d_store_misses", "l1i_misses"]
            .map(|f| counts[f].as_u64().unwrap())
            .iter()
            .sum::<u64>()
    };
    assert!(rows.is_sorted_by_key(|row| std::cmp::Reverse(weight(row))));
    let ran = lightfoot().args(["count", "--by", "line", "--sort", "inlined"]).arg(&program).run();
    ran.ends_with(0).says("+inl").says("with what was inlined there");
    let ran = lightfoot().args(["count", "--sort", "inlined", "true"]).run();
    ran.fails_with(125).says("add --by line").in_one_line();
}

#[test]
fn combinations_add_up_and_columns_sort() {
    let bench = Bench::new();
    let Some(program) = program(&bench) else { return };
    let report = report(&bench, &program, &["count", "--by", "function,line,opcode", "--sort", "stores"]);
    let rows = report["rows"].as_array().unwrap();
    let stores: Vec<u64> = rows.iter().map(|row| row["stores"].as_u64().unwrap()).collect();
    assert!(stores.is_sorted_by(|a, b| a >= b));
    assert_eq!(stores.iter().sum::<u64>(), report["totals"]["stores"].as_u64().unwrap());
    assert_eq!(
        (&rows[0]["name"], &rows[0]["line"], &rows[0]["stores"]),
        (&"leaf".into(), &6.into(), &3000.into())
    );
    let ran = lightfoot().args(["count", "--sort", "misses", "true"]).run();
    ran.fails_with(125).says("no column misses").says("instructions, blocks, loads, stores").in_one_line();
}

#[test]
fn a_region_counts_alone() {
    let bench = Bench::new();
    let Some(program) = program(&bench) else { return };
    for command in ["count", "cache"] {
        let report = report(&bench, &program, &[command, "--by", "line", "--region", "inner"]);
        assert_eq!((at_line(&report, 6, "loads"), at_line(&report, 14, "instructions")), (1000, 0));
        assert_eq!(report["totals"]["stores"], 1001, "the call stores its return address");
        let warnings = report["warnings"].to_string();
        assert!(warnings.contains("region open was still open at the end"), "{warnings}");
    }
    let ran = lightfoot().args(["count", "--region", "outer"]).arg(&program).run();
    ran.ends_with(1).says("region outer never opened").says("the program's regions are inner, open");
    ran.says("lightfoot: nothing was counted: the program never entered region outer");
    for format in ["json", "csv"] {
        let out = bench.join("unopened");
        let ran = lightfoot()
            .args(["cache", "--region", "outer", "--format", format, "-o"])
            .arg(&out)
            .arg(&program);
        ran.run().ends_with(1).in_one_line();
        assert!(!std::fs::read(&out).unwrap().is_empty(), "the report is written all the same");
    }
    let html = ["count", "--region", "inner", "--follow-children", "--format", "html"];
    let ran = lightfoot().args(html).arg(&program).run();
    ran.fails_with(125).says("--region").says("--follow-children").in_one_line();
}

#[test]
fn a_region_of_the_crate_counts_alone() {
    if std::env::var_os("LIGHTFOOT_TEST_REGION").is_some() {
        let _open = region::region!("of a test");
        (0..1000_u64).for_each(|number| assert_eq!(std::hint::black_box(number), number));
        return;
    }
    let (bench, this) = (Bench::new(), std::env::current_exe().unwrap());
    let out = bench.join("report.json");
    let ran = lightfoot()
        .env("LIGHTFOOT_TEST_REGION", "1")
        .args(["count", "--region", "of a test", "--format", "json", "-o"])
        .arg(&out)
        .arg("--")
        .arg(&this)
        .args(["--exact", "a_region_of_the_crate_counts_alone"])
        .run();
    ran.ends_with(0);
    let report = json(&std::fs::read(out).unwrap());
    let instructions = report["totals"]["instructions"].as_u64().unwrap();
    assert!((1000..1_000_000).contains(&instructions), "{instructions}");
    assert_eq!(report["region"], "of a test");
    assert!(!report["warnings"].to_string().contains("region"), "{}", report["warnings"]);
}

/// What a viewer says of a file; `None`, and said, where there is no such viewer.
fn viewed(viewer: &str, options: &[&str], files: &[&Path]) -> Option<String> {
    let ran = Command::new(viewer).args(options).args(files).env("LC_ALL", "C").output();
    let Ok(ran) = ran else {
        eprintln!("skipped: there is no {viewer} here (package valgrind)");
        return None;
    };
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && said.is_empty(), "{viewer}: {said}");
    let text = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(!text.contains("WARNING"), "{text}");
    Some(text)
}

/// The numbers of the line of `text` that ends with `words`, without shares and separators.
fn numbers(text: &str, words: &str) -> Vec<u64> {
    let line =
        text.lines().find(|line| line.ends_with(words)).unwrap_or_else(|| panic!("no {words} in {text}"));
    let plain = line.strip_suffix(words).unwrap().replace(',', "");
    plain.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

const FIELDS: [&str; 5] = ["instructions", "loads", "stores", "l1i_misses", "l1d_load_misses"];

#[test]
fn viewers_open_the_files_and_find_our_totals() {
    if !bench::repeatable() {
        return;
    }
    let bench = Bench::new();
    let Some(program) = program(&bench) else { return };
    // The environment decides what start-up costs, so the totals are read from the file's own run.
    for (format, viewer) in [("cachegrind", "cg_annotate"), ("callgrind", "callgrind_annotate")] {
        let file = bench.join(format);
        let machine = ["cache", "--machine", "cachegrind", "--format", format, "-o"];
        lightfoot().args(machine).arg(&file).arg(&program).run().ends_with(0);
        let report = report(&bench, &program, &["cache", "--machine", "cachegrind"]);
        let Some(text) = viewed(viewer, &[], &[&file]) else { return };
        let totals = numbers(&text, "PROGRAM TOTALS");
        let expected: Vec<u64> =
            FIELDS.iter().map(|field| report["totals"][field].as_u64().unwrap()).collect();
        assert_eq!(totals[..5], expected, "{format}");
        assert!(text.contains("leaf"), "{text}");
    }
    let file = bench.join("cachegrind");
    if let Some(text) = viewed("cg_diff", &[], &[&file, &file]) {
        assert!(text.lines().last().unwrap().split(' ').skip(1).all(|number| number == "0"), "{text}");
    }
}

#[test]
fn calls_have_counts_and_inclusive_costs() {
    let bench = Bench::new();
    let Some(program) = program(&bench) else { return };
    let file = bench.join("callgrind");
    lightfoot().args(["count", "--format", "callgrind", "-o"]).arg(&file).arg(&program).run().ends_with(0);
    let Some(text) =
        viewed("callgrind_annotate", &["--inclusive=yes", "--tree=calling", "--threshold=100"], &[&file])
    else {
        return;
    };
    let file = bench.join("source.c").display().to_string();
    let line = |words: &str| {
        text.lines().find(|line| line.contains(words)).unwrap_or_else(|| panic!("no {words}: {text}"))
    };
    assert!(line(&format!(">   {file}:leaf (2x)")).contains('('), "{text}");
    line(&format!(">   {file}:twice (1x)"));
    line(&format!(">   {file}:fib (176x)"));
    let inclusive =
        |function: &str| numbers(&text, &format!("*  {file}:{function} [{}]", program.display()))[0];
    // Two of three calls of `leaf`, two calls, the frame around them.
    assert!(inclusive("twice") * 3 > inclusive("leaf") * 2 && inclusive("twice") < inclusive("leaf"));
    assert!(inclusive("main") > inclusive("twice") + inclusive("fib"));
}

#[test]
fn a_page_opens_offline_and_holds_the_source() {
    let bench = Bench::new();
    let Some(program) = program(&bench) else { return };
    let out = bench.join("page.html");
    lightfoot().args(["cache", "--format", "html", "-o"]).arg(&out).arg(&program).run().ends_with(0);
    let page = std::fs::read_to_string(&out).unwrap();
    assert!(page.len() < 5_000_000 && page.starts_with("<!doctype html>"));
    let data = page.split_once("id=\"data\">").unwrap().1.split_once("</script>").unwrap().0;
    let data = json(data.as_bytes());
    let text = data["sources"].as_object().unwrap().values().find_map(|source| source["text"].as_str());
    assert_eq!(text, Some(PROGRAM));
    assert_eq!(data["processes"], Value::Null);
    // `leaf` begins at line 8, although line 6 was inlined into it.
    let leaf = data["functions"].as_array().unwrap().iter().find(|function| function[0] == "leaf").unwrap();
    assert!([8, 9].contains(&leaf[3].as_u64().unwrap()), "{leaf}");
    // Line 11 is where line 6 was inlined.
    let lines = data["lines"].as_object().unwrap().values().flat_map(|lines| lines.as_array().unwrap());
    let with_inlined = |line: &&Value| line[0] == 11 && line[2][2].as_u64() >= Some(3000);
    assert_eq!(lines.filter(with_inlined).count(), 1);
    assert!(
        data["calls"].as_array().unwrap().len() > 3 && data["slices"]["rows"].as_array().unwrap().len() > 2
    );
    assert!(data["curve"]["rows"].as_array().unwrap().len() >= 20);
    let (sets, slices) =
        (data["sets"]["rows"].as_array().unwrap(), data["slices"]["rows"].as_array().unwrap());
    assert_eq!((sets.len(), &data["sets"]["instructions"]), (slices.len(), &data["slices"]["instructions"]));
    assert!(sets.iter().all(|row| row[0].as_u64() >= row[2].as_u64()) && sets[0][0].as_u64().unwrap() > 10);
    // A source that is newer than the program is said to be.
    let source = bench.join("source.c");
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
    std::fs::File::options().append(true).open(source).unwrap().set_modified(later).unwrap();
    lightfoot().args(["count", "--format", "html", "-o"]).arg(&out).arg(&program).run().ends_with(0);
    assert!(std::fs::read_to_string(&out).unwrap().contains("has changed since the program was built"));
}

/// The first level is one of the sizes, and what it misses in the curve is what it misses in the
/// hierarchy: filtered, in full, in a region.
#[test]
fn a_curve_agrees_with_the_hierarchy() {
    if !bench::repeatable() {
        return;
    }
    let bench = Bench::new();
    let Some(program) = program(&bench) else { return };
    let ways: &[&[&str]] = &[
        &["--l1d", "32K,8,64"],
        &["--l1d", "4K,1,32"],
        &["--l1d", "32K,8,64", "--write-backs"],
        &["--l1d", "32K,8,64", "--region", "inner"],
        &["--l1d", "32K,8,64", "--branches"],
    ];
    for options in ways {
        let report = report(&bench, &program, &[&["cache", "--curves"], *options].concat());
        let points = report["curve"]["points"].as_array().unwrap();
        let first = points.iter().find(|point| point["level"] == "L1D").expect("the first level's size");
        for kind in ["load_misses", "store_misses"] {
            assert_eq!(first[kind], report["totals"][format!("l1d_{kind}")], "{options:?}: {kind}");
            assert!(points.is_sorted_by_key(|point| std::cmp::Reverse(point[kind].as_u64().unwrap())));
        }
        assert!(points.len() >= 20);
    }
    // The paper's cache lets stores pass: the curve, whose caches do not, still has its sizes.
    let report = report(&bench, &program, &["cache", "--curves", "--machine", "ladner2002"]);
    assert!(report["machine"]["simulation"]["stream"].as_str().unwrap().contains("stores do not enter"));
    assert_eq!(report["curve"]["points"].as_array().unwrap()[0]["size_bytes"], 8192);
    let csv = lightfoot().args(["cache", "--curves", "--format", "csv", "--"]).arg(&program).run();
    csv.fails_with(125).says("--curves has no place in this --format");
    let text = lightfoot().args(["cache", "--curves", "--l1d", "32K,8,64", "--"]).arg(&program).run();
    text.ends_with(0).says("data misses by size: LRU, 64 sets");
}

/// A browser, where there is one, runs the page's script to its end.
#[test]
fn a_browser_draws_the_page() {
    let bench = Bench::new();
    let Some(program) = program(&bench) else { return };
    let out = bench.join("page.html");
    lightfoot().args(["cache", "--format", "html", "-o"]).arg(&out).arg(&program).run().ends_with(0);
    let drawn = |page: &str| {
        let options =
            ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--dump-dom"];
        let mut chromium = Command::new("chromium");
        let ran = chromium.args(options).arg(page).env("HOME", bench.path()).output().ok()?;
        Some(String::from_utf8_lossy(&ran.stdout).into_owned())
    };
    // It wants more of a system than to be installed there.
    let plain = bench.file("plain.html", b"<!doctype html><p>plain</p>", 0o644);
    match drawn(&format!("file://{}", plain.display())) {
        None => return eprintln!("skipped: there is no chromium here"),
        Some(dom) if !dom.contains("<p>plain</p>") => {
            return eprintln!("skipped: chromium draws not even a plain page here");
        }
        Some(_) => (),
    }
    let dom = drawn(&format!("file://{}", out.display())).unwrap();
    assert!(dom.contains("data-ready=\"yes\"") && dom.contains("role=\"treeitem\""), "{dom}");
}

#[test]
fn two_reports_are_compared() {
    let bench = Bench::new();
    let Some(program) = program(&bench) else { return };
    let (plain, longer) = (bench.join("a.json"), bench.join("b.json"));
    for (out, arguments) in [(&plain, &[][..]), (&longer, &["one", "two"][..])] {
        let count = lightfoot().args(["count", "--by", "line", "--format", "json", "-o"]).arg(out);
        count.arg("--").arg(&program).args(arguments).run().ends_with(0);
    }
    let diff = || lightfoot().arg("diff");
    let same = diff().arg(&plain).arg(&plain).args(["--by", "line", "--fail-above", "0%"]).run();
    same.ends_with(0);
    assert!(!String::from_utf8_lossy(&same.stdout).contains("worse"));
    // Arguments are more work for `main` and `leaf`, and a little for the loader.
    let ran = diff().arg(&plain).arg(&longer).args(["--fail-above", "0"]).run();
    ran.ends_with(1);
    let text = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(text.contains("worse: instructions") && text.contains("the arguments differ"), "{text}");
    diff()
        .arg(&plain)
        .arg(&longer)
        .args(["--fail-above", "0", "--ignore", "ld-linux", "--ignore", "libc"])
        .args(["--ignore", "leaf", "--ignore", "main"])
        .run()
        .ends_with(0);
    let text = std::fs::read_to_string(&plain).unwrap();
    let other = |from: &str, to: &str| bench.file("other.json", text.replacen(from, to, 1).as_bytes(), 0o644);
    let refused = |file: &Path| diff().arg(&plain).arg(file).run();
    refused(&other("\"schema\": 1", "\"schema\": 9"))
        .fails_with(2)
        .says("schema 9")
        .says("schema 1")
        .in_one_line();
    refused(&other("/prog\"", "/prague\""))
        .fails_with(2)
        .says("prog")
        .says("prague")
        .says("--any-program")
        .in_one_line();
    let cut = bench.file("cut.json", &text.as_bytes()[..text.len() / 2], 0o644);
    refused(&cut).fails_with(2).says("cut.json").says("truncated").in_one_line();
    refused(&bench.join("none.json")).fails_with(2).says("none.json").in_one_line();
}
