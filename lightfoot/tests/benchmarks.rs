//! `lightfoot bench` and crate `lightfoot-bench`, with a package that is made and built here.
//!
//! The package depends on nothing but this workspace, so cargo needs no network. Where there is no
//! cargo the tests say so and pass.

mod bench;

use bench::{compile, json, lightfoot, repeatable, Bench, Lightfoot, Ran};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const MANIFEST: &str = include_str!("benchmarks/manifest.toml.txt");
const SPEED: &str = include_str!("benchmarks/speed.rs.txt");
const MANY: &str = include_str!("benchmarks/many.rs.txt");

fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// A package with benchmarks. Its folder is the same in every run, so that cargo's does not grow.
struct Package {
    folder: PathBuf,
}

impl Package {
    fn new(name: &str) -> Package {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("benchmarks").join(name);
        std::fs::create_dir_all(folder.join("benches")).unwrap();
        std::fs::create_dir_all(folder.join("src")).unwrap();
        let _ = std::fs::remove_dir_all(folder.join("kept"));
        let package = Package { folder };
        package.write("Cargo.toml", &MANIFEST.replace("@WORKSPACE@", workspace().to_str().unwrap()));
        package.write("src/lib.rs", "");
        package.write("benches/many.rs", MANY);
        package.write("benches/other.rs", "fn main() { println!(\"no benchmark of ours\"); }");
        package.speed(1000, false);
        package
    }

    fn write(&self, file: &str, text: &str) {
        std::fs::write(self.folder.join(file), text).unwrap();
    }

    /// Writes the benchmarks: one of them sums so many numbers, another one may panic.
    fn speed(&self, count: u64, fails: bool) {
        let text = SPEED.replace("@COUNT@", &count.to_string()).replace("@FAILS@", &fails.to_string());
        self.write("benches/speed.rs", &text);
    }

    /// `lightfoot bench` of one of the programs.
    fn bench(&self, program: &str) -> Lightfoot {
        self.of_cargo(lightfoot()).args(["--baselines", "kept", "--bench", program])
    }

    fn of_cargo(&self, command: Lightfoot) -> Lightfoot {
        let command = command.args(["bench", "--cargo=--offline"]).within(&self.folder);
        command.env("CARGO_TARGET_DIR", self.folder.join("target"))
    }

    /// A program of benchmarks, run natively.
    fn natively(&self, program: &str, words: &[&str]) -> Output {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
        command.args(["bench", "--offline", "--bench", program, "--"]).args(words);
        command.current_dir(&self.folder).env("CARGO_TARGET_DIR", self.folder.join("target"));
        command.output().unwrap()
    }
}

fn has_cargo() -> bool {
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let found = Command::new(cargo).arg("--version").output().is_ok_and(|ran| ran.status.success());
    if !found {
        eprintln!("skipped: there is no cargo here");
    }
    found
}

/// The events of all benchmarks by their names.
fn events(answer: &Value) -> Vec<(String, Value)> {
    let rows = answer["benchmarks"].as_array().unwrap().iter();
    rows.map(|row| (row["name"].as_str().unwrap().to_owned(), row["events"].clone())).collect()
}

fn counted(ran: &Ran) -> Vec<(String, Value)> {
    ran.ends_with(0);
    events(&json(&ran.stdout))
}

#[test]
fn a_package_is_built_counted_and_compared() {
    if !has_cargo() || !repeatable() {
        return;
    }
    let (bench, package) = (Bench::new(), Package::new("compared"));
    let first = package.bench("speed").args(["--format", "json", "--save-baseline", "main"]).run();
    let found = counted(&first);
    let names: Vec<&str> = found.iter().map(|(name, _)| &**name).collect();
    let all = ["sort/small", "sort/large", "sum", "text::split/words", "text::split/none", "later", "bad"];
    assert_eq!(names, all);
    let of = |name: &str, event: &str| {
        found.iter().find(|(found, _)| found == name).unwrap().1[event].as_u64().unwrap()
    };
    // Each number passes through memory once; the rest of a turn takes at least three more.
    assert!((4000..20_000).contains(&of("sum", "instructions")), "{found:?}");
    assert!(of("sort/large", "l1d_misses") > 500 && of("sort/small", "l1d_misses") < 50, "{found:?}");
    assert!(of("sort/large", "estimated_cycles") > of("sort/small", "estimated_cycles"));
    // A second run finds the same, whatever it is compared with.
    let limits = ["--baseline", "main", "--limit", "instructions=+0%", "--limit", "cycles=+0"];
    let again = package.bench("speed").args(limits).run();
    again.ends_with(0);
    let said = String::from_utf8(again.stdout).unwrap();
    assert!(
        said.ends_with("7 benchmarks, caches of zen4, warm; none differs from baseline main\n"),
        "{said}"
    );
    // A tenth more is more than a percent, and only the benchmark that grew is named.
    package.speed(1100, false);
    let worse = package
        .bench("speed")
        .args(["--baseline", "main", "--limit", "instructions=+1%", "--format", "github", "--also"])
        .arg(format!("markdown={}", bench.join("summary.md").display()))
        .run();
    worse.ends_with(1);
    let said = String::from_utf8(worse.stdout).unwrap();
    let of_sum: Vec<&str> = said.lines().filter(|line| line.starts_with("worse: ")).collect();
    assert!(matches!(of_sum[..], [one] if one.starts_with("worse: speed sum: ")), "{said}");
    let annotation = said.lines().last().unwrap();
    assert!(annotation.starts_with("::error file=benches/speed.rs,line=13,title=benchmark sum::"), "{said}");
    // What exceeded a limit is not what the next run is compared with.
    let last = String::from_utf8(package.bench("speed").run().stdout).unwrap();
    assert!(last.ends_with("; 1 differs from baseline last\n"), "{last}");
    let summary = std::fs::read_to_string(bench.join("summary.md")).unwrap();
    assert!(summary.contains("1 differs from baseline main"), "{summary}");
    assert!(summary.contains("**worse:** speed sum"), "{summary}");
}

#[test]
fn numbers_depend_on_nothing_but_the_benchmark() {
    if !has_cargo() || !repeatable() {
        return;
    }
    let package = Package::new("alone");
    let of = |words: &[&str]| package.bench("many").args(["--format", "json"]).args(words.iter().copied());
    let all = counted(&of(&["--jobs", "1", "sort"]).run());
    assert_eq!(all.len(), 100);
    assert_eq!(counted(&of(&["--jobs", "3", "sort"]).run()), all, "several processes");
    let moved = of(&["--jobs", "1", "sort"]).env("A_LONG_VARIABLE", "x".repeat(5000));
    assert_eq!(counted(&moved.env("LIGHTFOOT_TRANSLATIONS", "off").run()), all, "another stack");
    assert_eq!(counted(&of(&["--exact", "sort 71"]).run()), all[71..72], "a filter");
    // The seeds of hash maps are equal in every run and every copy of the program.
    let whole = counted(&of(&["--jobs", "3"]).run());
    assert_eq!(counted(&of(&["--exact", "hash map"]).run())[..], whole[102..]);
    // Without the call that warms up, caches are empty and more is missed; what runs is the same.
    let cold = counted(&of(&["--cold", "sort 71"]).run());
    let event = |events: &[(String, Value)], name: &str| events[0].1[name].as_u64().unwrap();
    assert!(event(&cold, "l3_misses") > event(&all[71..], "l3_misses"), "{cold:?}");
    // All threads count: each of them sums a thousand numbers.
    let threads = counted(&of(&["--no-caches", "threads"]).run());
    assert!(event(&threads[1..], "instructions") > event(&threads, "instructions") + 2 * 4000, "{threads:?}");
    assert!(threads[0].1.get("l1d_misses").is_none());
}

#[test]
fn a_benchmark_that_panics_ends_nothing_else() {
    if !has_cargo() {
        return;
    }
    let (bench, package) = (Bench::new(), Package::new("failing"));
    package.speed(1000, true);
    let also = bench.join("annotations");
    let shapes = ["--format", "json", "--also", &format!("github={}", also.display())];
    let ran = package.bench("speed").args(shapes).args(["sum", "bad", "later"]).run();
    let annotated = std::fs::read_to_string(also).unwrap();
    assert!(
        annotated.ends_with("not counted::benchmark bad of speed: it ended with status 101\n"),
        "{annotated}"
    );
    ran.ends_with(1).says("lightfoot: benchmark bad of speed: it ended with status 101");
    let answer = json(&ran.stdout);
    let names: Vec<String> = events(&answer).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["sum", "later"]);
    assert_eq!(answer["failed"], serde_json::json!(["benchmark bad of speed: it ended with status 101"]));
    let natively = package.natively("speed", &[]);
    let said = String::from_utf8_lossy(&natively.stdout).into_owned();
    assert!(!natively.status.success() && said.contains("sort/large ... ok"), "{said}");
    assert!(said.contains("6 of 7 benchmarks ran"), "{said}");
    let said = package.natively("speed", &["--save-baseline", "main"]).stderr;
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(said.contains("there is no option --save-baseline"), "{said}");
}

#[test]
fn what_cannot_be_used_is_named() {
    if !has_cargo() {
        return;
    }
    let (bench, package) = (Bench::new(), Package::new("misused"));
    let refused = |words: &[&str], said: &str| {
        package.bench("speed").args(words.iter().copied()).run().fails_with(2).says(said);
    };
    refused(&["--baseline", "main"], "there is no baseline main in kept: none is kept");
    refused(&["--limit", "instructions=+1%"], "--limit compares with a baseline, and kept has none");
    refused(&["--limit", "ins=+1%"], "expected an event before the =, one of instructions, loads");
    refused(&["--limit", "instructions=1"], "such as instructions=+1% or l1d=+50, got instructions=1");
    refused(&["--save-baseline", "a/b"], "baseline a/b: expected a name of letters");
    refused(&["--machine", "zen9"], "zen9");
    refused(&["--jobs", "0"], "--jobs: expected 1 to 512, got 0");
    refused(&["--also", "html=x"], "expected FORMAT=FILE with text");
    refused(&["-o", "/no/such/folder/x"], "/no/such/folder");
    refused(&["nothing like that"], "no benchmark is called nothing like that");
    package.bench("speed").args(["--save-baseline", "main", "sum"]).run().ends_with(0);
    refused(&["--baseline", "mian"], "those kept are main");
    refused(&["--baseline", "main", "--cold"], "baseline main was counted with --machine zen4, and this run");
    package.bench("absent").run().fails_with(2).says("cargo cannot build the benchmarks");
    package
        .bench("other")
        .run()
        .fails_with(2)
        .says("there are no benchmarks of crate lightfoot-bench: those of other");
    let program = |file: &str| lightfoot().args(["bench", "--program", file]).within(bench.path()).run();
    program("absent").fails_with(2).says("cannot read program absent");
    program("/bin/true").says("/bin/true passes no mark of a region");
}

/// Wrong attributes, and what the compiler then says.
const WRONG: &[(&str, &str)] = &[
    ("#[bench] fn a(x: u32) {}", "benchmark a takes an input: give it one with setup"),
    ("#[bench(args(one = 1))] fn b() {}", "benchmark b takes no input: give it a parameter"),
    ("#[bench(arg(one = 1))] fn c(x: u32) {}", "arg is no setting of a benchmark: write #[bench]"),
    ("#[bench(args(1))] fn d(x: u32) {}", "an input has a name: write args(name = value)"),
    ("#[bench(args(one = 1, one = 2))] fn e(x: u32) {}", "two inputs are called one: rename one"),
    ("#[bench(args(one =))] fn f(x: u32) {}", "input one has no value"),
    ("#[bench] struct G;", "a benchmark is a function: write #[bench] fn name"),
    ("#[bench] fn h<T>() {}", "benchmark h is generic"),
    ("#[bench(setup = x, setup = y)] fn i(x: u32) {}", "setup is given twice"),
    ("#[group] fn j() {}", "a group is a module with its contents"),
    ("#[group(all)] mod k {}", "a group has no settings"),
];

#[test]
fn what_is_wrong_in_an_attribute_is_a_sentence() {
    if !has_cargo() {
        return;
    }
    let package = Package::new("wrong");
    let items: Vec<&str> = WRONG.iter().map(|(item, _)| *item).collect();
    package.write(
        "benches/speed.rs",
        &format!("use lightfoot_bench::{{bench, group}};\n{}\nfn main() {{}}", items.join("\n")),
    );
    let ran = package.bench("speed").run();
    ran.fails_with(2).says("cargo cannot build the benchmarks: see what it says above");
    for (_, sentence) in WRONG {
        ran.says(sentence);
    }
    package.write(
        "benches/speed.rs",
        "#[lightfoot_bench::bench]\nfn twice() {}\nlightfoot_bench::main!(twice, twice);",
    );
    package.bench("speed").run().fails_with(2).says("two benchmarks of speed are called twice: rename one");
}

#[test]
fn cargo_finds_the_command_and_each_benchmark_has_a_page() {
    if !has_cargo() {
        return;
    }
    let (bench, package) = (Bench::new(), Package::new("pages"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-lightfoot"));
    command.args(["lightfoot", "bench", "--cargo=--offline", "--bench", "speed", "sum", "--html"]);
    command.arg(bench.join("pages")).current_dir(&package.folder);
    let ran = command.env("CARGO_TARGET_DIR", package.folder.join("target")).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let page = std::fs::read_to_string(bench.join("pages/speed-sum.html")).unwrap();
    assert!(page.contains("<html") && page.contains("speed::sum"), "the page shows the function");
    assert!(package.folder.join("target/lightfoot-bench/last.json").is_file());
}

/// The first block of C in a document.
fn program_of(document: &str) -> String {
    let text = std::fs::read_to_string(workspace().join(document)).unwrap();
    let block = text.split_once("```c\n").and_then(|(_, rest)| rest.split_once("```\n"));
    block.expect("the document has a program").0.to_owned()
}

#[test]
fn the_program_of_the_documentation_is_counted() {
    if !repeatable() {
        return;
    }
    let bench = Bench::new();
    lightfoot().args(["bench", "--headers"]).arg(bench.path()).run().ends_with(0);
    let include = format!("-I{}", bench.path().display());
    let source = program_of("docs/benchmarks.md");
    let Some(program) = compile(&bench, "list", &[&include], &source) else { return };
    let of = |words: &[&str]| {
        let command = lightfoot().args(["bench", "--format", "json", "--program"]).arg(&program);
        counted(&command.within(bench.path()).args(words.iter().copied()).run())
    };
    let all = of(&[]);
    assert_eq!(all.iter().map(|(name, _)| &**name).collect::<Vec<_>>(), ["walk", "build"]);
    // A turn of the walk takes two loads: of the value, and of the next cell.
    let loads = all[0].1["loads"].as_u64().unwrap();
    assert!((2000..2100).contains(&loads), "{all:?}");
    assert_eq!(of(&["--exact", "walk"]), all[..1]);
    let moved = lightfoot().args(["bench", "--format", "json", "--program"]).arg(&program);
    let moved = moved.within(bench.path()).env("A_LONG_VARIABLE", "x".repeat(5000));
    assert_eq!(counted(&moved.run()), all);
    let natively = Command::new(&program).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&natively.stdout), "walk ... ok\nbuild ... ok\n");
    lightfoot().args(["bench", "--headers", "/no/such/folder"]).run().says("name a folder that exists");
}

#[test]
fn the_headers_are_those_of_cpp_too() {
    let bench = Bench::new();
    let (include, source) =
        (workspace().join("region/include"), workspace().join("region/examples/benchmarks.c"));
    let program = bench.join("benchmarks");
    let mut compiler = Command::new("c++");
    compiler.args(["-x", "c++", "-O2", "-Wall", "-Wextra", "-Werror", "-I"]).arg(include).arg(source);
    let Ok(built) = compiler.arg("-o").arg(&program).output() else {
        return eprintln!("skipped: there is no C++ compiler (c++) here");
    };
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let ran =
        lightfoot().args(["bench", "--no-caches", "--program"]).arg(&program).within(bench.path()).run();
    ran.ends_with(0);
    let said = String::from_utf8(ran.stdout).unwrap();
    assert!(said.contains("  sort ") && said.contains("  sum "), "{said}");
}

#[test]
fn regions_of_any_program_are_benchmarks() {
    let bench = Bench::new();
    let source = std::fs::read_to_string(workspace().join("region/examples/two_regions.c")).unwrap();
    // A hundred keys suffice: each is a region that opens and closes.
    let source = source.replace("key < 100000", "key < 100");
    let include = format!("-I{}", workspace().join("region/include").display());
    let Some(program) = compile(&bench, "two", &[&include], &source) else { return };
    let counts = |region: &str| {
        let report = bench.join("report.json");
        let command = lightfoot().args(["count", "--region", region, "--format", "json", "-o"]).arg(&report);
        command.arg(&program).run().ends_with(0);
        json(&std::fs::read(&report).unwrap())["totals"]["instructions"].as_u64().unwrap()
    };
    let ran =
        lightfoot().args(["bench", "--format", "json", "--program"]).arg(&program).within(bench.path()).run();
    let found = counted(&ran);
    assert_eq!(found.iter().map(|(name, _)| &**name).collect::<Vec<_>>(), ["fill", "lookup"]);
    for (name, events) in &found {
        assert_eq!(events["instructions"], counts(name), "{name}");
    }
}

/// With a region around it, a program says which processor it is shown.
const ABILITIES: &str = r#"
#include <cpuid.h>
#include "lightfoot_region.h"
int main(void) {
    unsigned a, b = 0, c, d;
    static volatile int wide;
    __get_cpuid_count(7, 0, &a, &b, &c, &d);
    region_begin("chosen");
    if (b & bit_AVX2) for (int k = 0; k < 1000; k++) wide += k;
    region_end("chosen");
    return 0;
}
"#;

#[test]
fn benchmarks_are_shown_the_processor_that_is_asked_for() {
    let bench = Bench::new();
    lightfoot().args(["bench", "--headers", "."]).within(bench.path()).run().ends_with(0);
    let headers = bench.path().to_str().unwrap().to_owned();
    let Some(_) = compile(&bench, "program", &["-I", &headers], ABILITIES) else { return };
    let run = |words: &[&str]| {
        let command =
            lightfoot().args(["bench", "--program", "./program", "--no-caches", "--format", "json"]);
        command.args(words).within(bench.path()).run()
    };
    let instructions = |words: &[&str]| {
        let chosen = counted(&run(words)).into_iter().find(|(name, _)| name == "chosen");
        chosen.expect("a region of the program").1["instructions"].as_u64().unwrap()
    };
    assert!(instructions(&["--virtual-cpu", "x86-64-v2"]) < 100);
    assert!(instructions(&["--virtual-cpu", "x86-64-v3", "--save-baseline", "wide"]) > 3000);
    // Results of different processors are not compared.
    let other = run(&["--virtual-cpu", "x86-64-v2", "--baseline", "wide"]);
    other.ends_with(2).says("--virtual-cpu x86-64-v3");
    run(&["--virtual-cpu", "pentium"]).ends_with(2).says("x86-64-v3");
}
