//! `lightfoot bench` and crate `lightfoot-bench`, with a package that is made and built here.
//!
//! The package depends on nothing but this workspace, so cargo needs no network. Where there is no
//! cargo the tests say so and pass.

mod bench;

use bench::{compile, json, lightfoot, repeatable, Bench, Lightfoot, Ran};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const MANIFEST: &str = include_str!("benchmarks/manifest.toml.txt");
const SPEED: &str = include_str!("benchmarks/speed.rs.txt");
const THREADS: &str = include_str!("benchmarks/threads.rs.txt");

fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// A package with benchmarks.
struct Package {
    folder: PathBuf,
    /// Where cargo builds it: packages of one kind share what they depend on.
    target: PathBuf,
}

impl Package {
    fn new(bench: &Bench, name: &str) -> Package {
        let folder = bench.join(name);
        std::fs::create_dir_all(folder.join("benches")).unwrap();
        std::fs::create_dir_all(folder.join("src")).unwrap();
        let package = Package { folder, target: Path::new(env!("CARGO_TARGET_TMPDIR")).join(name) };
        package.write("Cargo.toml", &MANIFEST.replace("@WORKSPACE@", workspace().to_str().unwrap()));
        package.write("src/lib.rs", "");
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

    fn cargo(&self, words: &[&str]) -> Command {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
        command.args(words).arg("--offline").current_dir(&self.folder);
        command.env("CARGO_TARGET_DIR", &self.target);
        command
    }

    fn bench(&self) -> Lightfoot {
        let command =
            lightfoot().args(["bench", "--cargo=--offline", "--baselines", "kept"]).within(&self.folder);
        command.env("CARGO_TARGET_DIR", &self.target)
    }

    /// The built program of benchmarks.
    fn program(&self) -> PathBuf {
        let built =
            self.cargo(&["bench", "--no-run", "--bench", "speed", "--message-format=json"]).output().unwrap();
        let text = String::from_utf8(built.stdout).unwrap();
        let executables = text.lines().filter_map(|line| {
            let message: Value = serde_json::from_str(line).unwrap();
            message["executable"].as_str().filter(|_| message["target"]["name"] == "speed").map(PathBuf::from)
        });
        executables.last().expect("cargo says what it built")
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
    let bench = Bench::new();
    let package = Package::new(&bench, "sorting");
    let first = package.bench().args(["--format", "json", "--save-baseline", "main"]).run();
    first.says("warning: other is no program of crate lightfoot-bench");
    let found = counted(&first);
    let names: Vec<&str> = found.iter().map(|(name, _)| &**name).collect();
    assert_eq!(
        names,
        ["sort/small", "sort/large", "sum", "text::split/words", "text::split/none", "later", "bad"]
    );
    let of = |name: &str, event: &str| {
        found.iter().find(|(found, _)| found == name).unwrap().1[event].as_u64().unwrap()
    };
    // Each number is passed through memory once; the rest of a turn takes at least four more.
    assert!((5000..20_000).contains(&of("sum", "instructions")), "{found:?}");
    assert!(of("sort/large", "l1d_misses") > 500 && of("sort/small", "l1d_misses") < 50, "{found:?}");
    assert!(of("sort/large", "estimated_cycles") > of("sort/small", "estimated_cycles"));
    // A second run finds the same, whatever it is compared with.
    let again = package
        .bench()
        .args(["--baseline", "main", "--limit", "instructions=+0%", "--limit", "cycles=+0"])
        .run();
    again.ends_with(0);
    let said = String::from_utf8(again.stdout).unwrap();
    assert!(said.contains("7 benchmarks, caches of zen4, warm; none differs from baseline main"), "{said}");
    // A tenth more is more than a percent, and only the benchmark that grew is named.
    package.speed(1100, false);
    let worse = package
        .bench()
        .args(["--baseline", "main", "--limit", "instructions=+1%", "--format", "github", "--also"])
        .arg(format!("markdown={}", bench.join("summary.md").display()))
        .run();
    worse.ends_with(1);
    let said = String::from_utf8(worse.stdout).unwrap();
    let of_sum: Vec<&str> = said.lines().filter(|line| line.starts_with("worse: ")).collect();
    assert!(matches!(of_sum[..], [one] if one.starts_with("worse: speed sum: ")), "{said}");
    let annotation = said.lines().last().unwrap();
    assert!(annotation.starts_with("::error file=benches/speed.rs,line=13,title=benchmark sum::"), "{said}");
    let summary = std::fs::read_to_string(bench.join("summary.md")).unwrap();
    assert!(
        summary.contains("1 differs from baseline main") && summary.contains("**worse:** speed sum"),
        "{summary}"
    );
}
