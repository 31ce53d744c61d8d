//! Code that a program generates has the names that the program writes for profilers.

mod bench;

use bench::{compile, json, lightfoot, Bench};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

fn program(bench: &Bench) -> Option<PathBuf> {
    compile(bench, "program", &["-O1"], include_str!("generated_names/program.c"))
}

/// The report of `command` in which `program` runs with `arguments`.
fn report(bench: &Bench, options: &[&str], program: &Path, arguments: &[&str]) -> Value {
    let file = bench.join("report.json");
    let run = lightfoot().args(options).args(["--format", "json", "-o"]).arg(&file).arg("--");
    // node leaves a log where it runs.
    run.within(bench.path()).arg(program).args(arguments).run().ends_with(0);
    json(&std::fs::read(file).unwrap())
}

/// Name and instructions of each function of generated code.
fn generated(report: &Value) -> Vec<(String, u64)> {
    let functions = report["functions"].as_array().unwrap().iter();
    let generated = functions.filter(|function| function["library"] == "[anonymous]");
    let mut named: Vec<_> = generated
        .map(|function| {
            (function["name"].as_str().unwrap().to_owned(), function["instructions"].as_u64().unwrap())
        })
        .collect();
    named.sort();
    named
}

/// Instructions of a generated loop of that many iterations.
fn loop_of(times: u64) -> u64 {
    2 * times + 2
}

/// What the two functions are expected to count.
fn both() -> Vec<(String, u64)> {
    vec![("JS:*first a.js:1".into(), loop_of(1_000_000)), ("second".into(), loop_of(500_000))]
}

/// Removes the maps of the processes of a run. Their numbers stand in the report.
fn remove_maps(report: &Value) {
    for row in report["processes"].as_array().into_iter().flatten() {
        let _ = std::fs::remove_file(format!("/tmp/perf-{}.map", row["pid"]));
    }
}

#[test]
fn a_map_names_generated_code() {
    let bench = Bench::new();
    let Some(program) = program(&bench) else { return };
    for command in ["count", "cache"] {
        let report = report(&bench, &[command, "--follow-children"], &program, &["map"]);
        remove_maps(&report);
        assert_eq!(generated(&report), both(), "{command}");
        assert_eq!(report["warnings"], Value::Array(Vec::new()));
    }
}

#[test]
fn a_dump_names_generated_code() {
    let bench = Bench::new();
    let Some(program) = program(&bench) else { return };
    let folder = bench.path().to_str().unwrap();
    assert_eq!(generated(&report(&bench, &["count"], &program, &["dump", folder])), both());
}

#[test]
fn each_process_names_its_own_code() {
    let bench = Bench::new();
    let Some(program) = program(&bench) else { return };
    let report = report(&bench, &["count", "--follow-children"], &program, &["children"]);
    remove_maps(&report);
    let expected =
        [("of the first".to_owned(), loop_of(20_000)), ("of the second".to_owned(), loop_of(30_000))];
    assert_eq!(generated(&report), expected);
}

#[test]
fn code_without_names_is_one_function_and_a_warning() {
    let bench = Bench::new();
    let Some(program) = program(&bench) else { return };
    let report = report(&bench, &["count"], &program, &["none"]);
    let sum = loop_of(1_000_000) + loop_of(500_000);
    assert_eq!(generated(&report), [("[anonymous]".to_owned(), sum)]);
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains("3,000,004 instructions") && warnings.contains("without names"), "{warnings}");
    assert!(warnings.contains("/tmp/perf-PID.map"), "{warnings}");
}

/// The share of generated instructions that have a name in a run of a real compiler; `None` if it
/// is not installed.
fn named_share(compiler: &str, options: &[&str], measured: &[&str]) -> Option<f64> {
    if Command::new(compiler).arg("--version").output().is_err() {
        eprintln!("not here: {compiler} (names of its code are not tested)");
        return None;
    }
    let bench = Bench::new();
    let arguments: Vec<&str> = options.iter().chain(measured).copied().collect();
    let report = report(&bench, &["count", "--follow-children"], Path::new(compiler), &arguments);
    remove_maps(&report);
    let all = generated(&report);
    let sum = |named: &dyn Fn(&str) -> bool| -> u64 {
        all.iter().filter(|(name, _)| named(name)).map(|(_, instructions)| instructions).sum()
    };
    Some(sum(&|name| name != "[anonymous]") as f64 / sum(&|_| true) as f64)
}

#[test]
fn node_and_java_name_their_code() {
    let script = "let s=0;for(let i=0;i<3e6;i++)s=(s*31+i)|0;console.log(s)";
    let node = named_share("node", &["--perf-basic-prof"], &["-e", script]);
    let switches = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+DumpPerfMapAtExit"];
    let java = named_share("java", &switches, &["-version"]);
    for share in [node, java].into_iter().flatten() {
        assert!(share >= 0.95, "{share}");
    }
}
