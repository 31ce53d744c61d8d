//! `lightfoot valgrind`, as callers of callgrind and cachegrind meet it: requests, toggled
//! functions, parts, threads, processes, files, and what cannot be done.

mod bench;

use bench::{compile, lightfoot, Bench, Ran, BINARY};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What every program here begins with: `spin(n)` runs 4 instructions n times, and 3 more.
const SPIN: &str = r#"
#include "requests.h"
#include <stdio.h>
#include <unistd.h>
#include <pthread.h>
#include <sys/wait.h>
void spin(long n);
__asm__(".text\n.globl spin\n.type spin,@function\nspin: mov %rdi,%rax\n1: nop\n nop\n dec %rax\n"
        " jnz 1b\n nop\n ret\n.size spin,.-spin");
"#;
/// Instructions of `spin(n)`.
const fn spun(times: u64) -> u64 {
    4 * times + 3
}

fn program(bench: &Bench, name: &str, body: &str) -> Option<PathBuf> {
    linked(bench, name, &[], body)
}

/// Compiles a program with options of the linker.
fn linked(bench: &Bench, name: &str, options: &[&str], body: &str) -> Option<PathBuf> {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/valgrind");
    let include = format!("-I{}", include.display());
    compile(bench, name, &[&["-g", &include], options].concat(), &format!("{SPIN}{body}"))
}

fn valgrind(bench: &Bench, options: &[&str], program: &Path) -> Ran {
    lightfoot().within(bench.path()).arg("valgrind").args(options).arg(program).run()
}

/// A file of callgrind: the headers and totals of each part, and costs by function.
#[derive(Debug, Default)]
struct Costs {
    heads: Vec<BTreeMap<String, String>>,
    functions: Vec<BTreeMap<String, u64>>,
}

impl Costs {
    /// Reads a file with names that are not abbreviated.
    fn read(path: &Path) -> Costs {
        let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        let mut costs = Costs::default();
        let (mut function, mut is_call) = (String::new(), false);
        for line in text.lines() {
            if line.starts_with("part:") {
                costs.heads.push(BTreeMap::new());
                costs.functions.push(BTreeMap::new());
            }
            let Some(part) = costs.functions.last_mut() else { continue };
            if let Some(name) = line.strip_prefix("fn=") {
                function = name.to_owned();
            } else if line.starts_with("calls=") {
                is_call = true;
            } else if std::mem::take(&mut is_call) {
                // The inclusive cost of a call is no cost of its function.
            } else if line.starts_with(|first: char| first.is_ascii_digit()) {
                let instructions = line.split(' ').nth(1).unwrap().parse::<u64>().unwrap();
                *part.entry(function.clone()).or_default() += instructions;
            } else if let Some((key, value)) = line.split_once(": ") {
                let key = if key == "desc" { value.split(':').next().unwrap() } else { key };
                costs.heads.last_mut().unwrap().insert(key.trim().into(), value.trim().into());
            }
        }
        costs
    }

    fn totals(&self) -> Vec<Vec<u64>> {
        let numbers = |head: &BTreeMap<String, String>| {
            head["totals"].split(' ').map(|number| number.parse().unwrap()).collect()
        };
        self.heads.iter().map(numbers).collect()
    }

    /// Instructions of a function in each part.
    fn of(&self, function: &str) -> Vec<u64> {
        self.functions.iter().map(|part| part.get(function).copied().unwrap_or(0)).collect()
    }
}

/// Every sum in the file is the sum of its lines.
#[track_caller]
fn adds_up(costs: &Costs) {
    for (part, totals) in costs.functions.iter().zip(costs.totals()) {
        assert_eq!(part.values().sum::<u64>(), totals[0], "{costs:?}");
    }
}

const PLAIN: [&str; 2] = ["--tool=callgrind", "--compress-strings=no"];

#[test]
fn a_program_learns_that_it_is_measured_and_natively_it_is_not() {
    let bench = Bench::new();
    let body = r#"int main(void){ char name[20] = "-"; long needed = ask(0, 0x1004, (long)name, sizeof name);
        printf("%ld %ld %s\n", (long)RUNNING_ON_VALGRIND(), needed, name);
        printf("%ld %ld\n", (long)ask(5, 0x4d430000, 0, 0), (long)ask(6, 0x1201, 0, 0)); return 3; }"#;
    let Some(program) = program(&bench, "asks", body) else { return };
    let natively = Command::new(&program).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&natively.stdout), "0 0 -\n5 6\n");
    for (tool, name) in [("none", "none"), ("callgrind", "callgrind"), ("cachegrind", "cachegrind")] {
        let ran = valgrind(&bench, &[&format!("--tool={tool}")], &program);
        ran.ends_with(3);
        let expected = format!("1 {} {name}\n5 6\n", name.len() + 1);
        assert_eq!(String::from_utf8_lossy(&ran.stdout), expected);
    }
    // Other commands execute the sequence as what it is.
    let ran = lightfoot().args(["count", "-o", "/dev/null"]).arg(&program).run();
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "0 0 -\n5 6\n");
}

#[test]
fn a_request_with_a_bad_pointer_has_its_default_answer() {
    let bench = Bench::new();
    let body = r#"int main(void){ printf("%ld %ld\n", (long)ask_at(7, 8), (long)ask_at(9, -16));
        DUMP_STATS_AT(8); return 0; }"#;
    let Some(program) = program(&bench, "bad", body) else { return };
    let ran = valgrind(&bench, &PLAIN, &program);
    ran.ends_with(0);
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "7 9\n");
}

#[test]
fn a_toggled_region_counts_alone() {
    let bench = Bench::new();
    let body = "int main(void){ spin(1000); TOGGLE_COLLECT(); spin(10); TOGGLE_COLLECT(); spin(500);
        TOGGLE_COLLECT(); spin(20); TOGGLE_COLLECT(); return 0; }";
    let Some(program) = program(&bench, "toggles", body) else { return };
    for (caches, has_last_blocks) in [("--cache-sim=no", true), ("--cache-sim=yes", false)] {
        let out = [caches, "--collect-atstart=no", "--callgrind-out-file=out"];
        valgrind(&bench, &[&PLAIN[..], &out].concat(), &program).ends_with(0);
        let costs = Costs::read(&bench.join("out"));
        adds_up(&costs);
        assert_eq!(costs.of("spin"), [spun(10) + spun(20)]);
        assert_eq!(costs.heads[0]["Trigger"], "Trigger: Program termination");
        // With a simulation the tables leave out the block that ends with a request to stop, as
        // callgrind's do; the summary always has it.
        let number = |key: &str| costs.heads[0][key].split(' ').next().unwrap().parse::<u64>().unwrap();
        assert_eq!(number("totals") == number("summary"), has_last_blocks);
        let calls = 4;
        assert_eq!(number("totals") == spun(10) + spun(20) + calls, !has_last_blocks);
        assert!((1..100).contains(&(number("summary") - spun(10) - spun(20) - calls)), "{costs:?}");
        // Nothing outside of the regions stands in the file.
        let names: Vec<&String> = costs.functions[0].keys().collect();
        assert_eq!(names, ["main", "spin"]);
    }
}

#[test]
fn parts_are_what_was_counted_between_dumps() {
    let bench = Bench::new();
    let body = r#"int main(void){ DUMP_STATS_AT("Metadata: x"); for (long n = 1; n < 4; n++) { ZERO_STATS();
        START_INSTRUMENTATION(); spin(100 * n); STOP_INSTRUMENTATION(); DUMP_STATS_AT(n == 2 ? "two" : "odd");
        spin(7); } return 0; }"#;
    let Some(program) = program(&bench, "parts", body) else { return };
    let options = ["--instr-atstart=no", "--combine-dumps=yes", "--callgrind-out-file=%p.one"];
    valgrind(&bench, &[&PLAIN[..], &options].concat(), &program).ends_with(0);
    let one = std::fs::read_dir(bench.path()).unwrap().map(|entry| entry.unwrap().path());
    let one = one.into_iter().find(|path| path.to_string_lossy().ends_with(".one")).unwrap();
    let costs = Costs::read(&one);
    adds_up(&costs);
    assert_eq!(costs.of("spin"), [0, spun(100), spun(200), spun(300), 0]);
    let triggers: Vec<&str> = costs.heads.iter().map(|head| head["Trigger"].as_str()).collect();
    let request = |text: &str| format!("Trigger: Client Request: {text}");
    let expected = [request("Metadata: x"), request("odd"), request("two"), request("odd")];
    assert_eq!(triggers[..4], expected);
    // Without combining, each part has a file, and the last one has no number.
    let options = ["--instr-atstart=no", "--callgrind-out-file=parts"];
    valgrind(&bench, &[&PLAIN[..], &options].concat(), &program).ends_with(0);
    let parts =
        ["parts.1", "parts.2", "parts.3", "parts.4", "parts"].map(|name| Costs::read(&bench.join(name)));
    let spins: Vec<u64> = parts.iter().flat_map(|part| part.of("spin")).collect();
    assert_eq!(spins, costs.of("spin"));
    let numbers: Vec<&str> = parts.iter().map(|part| part.heads[0]["part"].as_str()).collect();
    assert_eq!(numbers, ["1", "2", "3", "4", "5"]);
}

#[test]
fn parts_add_up_to_the_whole() {
    let bench = Bench::new();
    let body = r#"int main(int n, char **words){ for (long k = 1; k < 30; k++) { spin(k * 37 % 11 + 1);
        if (n > 1) DUMP_STATS(); } return 0; }"#;
    let Some(program) = program(&bench, "sum", body) else { return };
    let caches = ["--cache-sim=yes", "--I1=1024,2,64", "--D1=1024,2,64", "--LL=65536,8,64"];
    let run = |out: &str, word: &[&str]| {
        let out = format!("--callgrind-out-file={out}");
        let options = [&PLAIN[..], &caches, &["--combine-dumps=yes", &out]].concat();
        let ran =
            lightfoot().within(bench.path()).arg("valgrind").args(options).arg(&program).args(word).run();
        ran.ends_with(0);
    };
    run("whole", &[]);
    run("divided", &["divided"]);
    let [whole, divided] = ["whole", "divided"].map(|name| Costs::read(&bench.join(name)));
    adds_up(&divided);
    assert_eq!((whole.heads.len(), divided.heads.len()), (1, 30));
    assert_eq!(divided.of("spin").iter().sum::<u64>(), whole.of("spin")[0]);
    assert_eq!(whole.heads[0]["events"], "Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw");
    // A part has the misses of its own instructions: all parts together have at least as many
    // stores as the runs of the loop, and no part is without a count of its own.
    assert!(divided.totals().iter().all(|part| part.len() == 9 && part[0] > 0 && part[3] <= part[0]));
}

#[test]
fn a_function_collects_while_it_runs() {
    let bench = Bench::new();
    let body = r#"__attribute__((noinline)) long depth(long n){ spin(n); return n < 2 ? 1 : n * depth(n - 1); }
        __attribute__((noinline)) void outer(void){ spin(5); }
        int main(void){ spin(1000); depth(3); spin(300); for (int k = 0; k < 4; k++) outer(); return 0; }"#;
    let Some(program) = program(&bench, "toggled", body) else { return };
    let run = |pattern: &str| {
        let options = [&format!("--toggle-collect={pattern}"), "--callgrind-out-file=out"];
        valgrind(&bench, &[&PLAIN[..], &options].concat(), &program).ends_with(0);
        let costs = Costs::read(&bench.join("out"));
        adds_up(&costs);
        costs
    };
    // A recursive call does not toggle again.
    assert_eq!(run("depth").of("spin"), [spun(3) + spun(2) + spun(1)]);
    let outer = run("out?r");
    assert_eq!(outer.of("spin"), [4 * spun(5)]);
    assert_eq!(outer.of("main"), [0], "the caller counts nothing");
    assert_eq!(run("sp*n").totals(), [[run("spin").of("spin")[0]]]);
}

/// Reading lines takes longer than a short benchmark; names of functions are there at once.
#[test]
fn callers_in_a_library_that_counts_nothing_have_names_and_no_lines() {
    let bench = Bench::new();
    let library = "void call(void (*function)(void)) { function(); }";
    if compile(&bench, "libcaller.so", &["-g", "-O0", "-shared", "-fPIC"], library).is_none() {
        return;
    }
    let body = r#"void call(void (*function)(void));
        __attribute__((noinline)) void inner(void){ spin(5); }
        int main(void){ call(inner); return 0; }"#;
    let folder = bench.path().display();
    let search = [format!("-L{folder}"), format!("-Wl,--no-as-needed,-rpath={folder}")];
    let options = [&search[0], &search[1], "-lcaller"];
    let program = linked(&bench, "calling", &options, body).expect("the library was compiled");
    let options = ["--toggle-collect=inner", "--callgrind-out-file=out"];
    valgrind(&bench, &[&PLAIN[..], &options].concat(), &program).ends_with(0);
    let text = std::fs::read_to_string(bench.join("out")).unwrap();
    let file_of = |function: &str| {
        let before = text.split(&format!("\nfn={function}\n")).next().unwrap();
        assert!(before.len() < text.len(), "no {function} in {text}");
        before.lines().rfind(|line| line.starts_with("fl=")).unwrap().to_owned()
    };
    assert_eq!(file_of("call"), "fl=???", "{text}");
    // In the program something is counted, so it has lines, those of its callers too.
    assert_eq!(file_of("main"), file_of("inner"), "{text}");
    assert!(file_of("main").ends_with(".c"), "{text}");
    assert_eq!(Costs::read(&bench.join("out")).of("spin"), [spun(5)]);
}

#[test]
fn threads_have_files_of_their_own() {
    let bench = Bench::new();
    let body = "static void *f(void *n){ TOGGLE_COLLECT(); spin((long)n); TOGGLE_COLLECT(); return 0; }
        int main(void){ pthread_t t[3]; for (long n = 1; n < 4; n++) pthread_create(&t[n - 1], 0, f, (void *)(100 * n));
        for (int n = 0; n < 3; n++) pthread_join(t[n], 0); TOGGLE_COLLECT(); spin(9); return 0; }";
    let Some(program) = program(&bench, "threads", body) else { return };
    let options = ["--collect-atstart=no", "--separate-threads=yes", "--callgrind-out-file=out"];
    valgrind(&bench, &[&PLAIN[..], &options].concat(), &program).ends_with(0);
    assert_eq!(std::fs::read(bench.join("out")).unwrap(), b"");
    let names = ["out-01", "out-02", "out-03", "out-04"];
    let threads = names.map(|name| Costs::read(&bench.join(name)));
    threads.iter().for_each(adds_up);
    let mut spins: Vec<u64> = threads.iter().flat_map(|thread| thread.of("spin")).collect();
    assert_eq!(spins.remove(0), spun(9));
    spins.sort_unstable();
    assert_eq!(spins, [spun(100), spun(200), spun(300)]);
    assert_eq!(threads[2].heads[0]["thread"], "3");
    // Together they are one file.
    let options = ["--collect-atstart=no", "--callgrind-out-file=all"];
    valgrind(&bench, &[&PLAIN[..], &options].concat(), &program).ends_with(0);
    let all = Costs::read(&bench.join("all"));
    assert_eq!(all.of("spin"), [spun(100) + spun(200) + spun(300) + spun(9)]);
}

#[test]
fn processes_have_files_of_their_own() {
    let bench = Bench::new();
    let body = r#"int main(void){ TOGGLE_COLLECT(); if (!fork()) { spin(50); TOGGLE_COLLECT(); _exit(0); }
        spin(10); TOGGLE_COLLECT(); wait(0); return 0; }"#;
    let Some(program) = program(&bench, "forks", body) else { return };
    let options =
        ["--collect-atstart=no", "--trace-children=yes", "--callgrind-out-file=out.%p", "--log-file=log.%p"];
    valgrind(&bench, &[&PLAIN[..], &options].concat(), &program).ends_with(0);
    let named = |start: &str| {
        let all = std::fs::read_dir(bench.path()).unwrap().map(|entry| entry.unwrap());
        let mut all: Vec<String> = all.map(|entry| entry.file_name().into_string().unwrap()).collect();
        all.retain(|name| name.starts_with(start));
        all.sort();
        all
    };
    let outs = named("out.");
    assert_eq!((outs.len(), named("log.").len()), (2, 2), "{outs:?}");
    let mut spins = Vec::new();
    for name in &outs {
        let costs = Costs::read(&bench.join(name));
        adds_up(&costs);
        let text = std::fs::read_to_string(bench.join(name)).unwrap();
        let pid = name.strip_prefix("out.").unwrap();
        assert!(text.contains(&format!("\npid: {pid}\ncmd:  {}", program.display())), "{text}");
        let log = std::fs::read_to_string(bench.join(&format!("log.{pid}"))).unwrap();
        assert!(log.contains(&format!("=={pid}== Command: ")) && log.contains("Parent PID: "), "{log}");
        spins.extend(costs.of("spin"));
    }
    spins.sort_unstable();
    assert_eq!(spins, [spun(10), spun(50)]);
    // Without the option a child runs natively.
    outs.iter().for_each(|name| std::fs::remove_file(bench.join(name)).unwrap());
    valgrind(&bench, &["--tool=callgrind", "--callgrind-out-file=out.%p"], &program).ends_with(0);
    assert_eq!(named("out.").len(), 1);
}

#[test]
fn regions_are_followed_into_processes_and_threads() {
    let bench = Bench::new();
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../region/include");
    let body = r#"
        #include "lightfoot_region.h"
        static void *f(void *n){ spin(7); region_begin("a"); spin((long)n); region_end("a"); return 0; }
        int main(void){ pthread_t t; region_begin("a"); if (!fork()) { spin(50); region_end("a"); spin(9); _exit(0); }
        spin(10); region_end("a"); pthread_create(&t, 0, f, (void *)300); pthread_join(t, 0); wait(0); return 0; }"#;
    let header = std::fs::read_to_string(include.join("lightfoot_region.h")).unwrap();
    bench.file("lightfoot_region.h", header.as_bytes(), 0o644);
    let Some(program) = program(&bench, "regions", body) else { return };
    for (children, spins) in
        [(&[][..], spun(10) + spun(300)), (&["--follow-children"], spun(10) + spun(300) + spun(50))]
    {
        for command in ["count", "cache"] {
            let options = [&[command, "--region", "a", "--format", "json"], children].concat();
            let ran = lightfoot().args(options).arg(&program).run();
            let report = bench::json(&ran.ends_with(0).stderr);
            let all = report["functions"].as_array().unwrap();
            let spin = all.iter().find(|function| function["name"] == "spin").unwrap();
            assert_eq!(spin["instructions"], spins, "{command} {children:?}");
            let total: u64 = all.iter().map(|function| function["instructions"].as_u64().unwrap()).sum();
            assert_eq!(report["totals"]["instructions"], total);
            if let Some(processes) = report["processes"].as_array() {
                let sum: u64 = processes.iter().map(|one| one["instructions"].as_u64().unwrap()).sum();
                assert_eq!((processes.len(), sum), (2, total), "{report}");
            }
        }
    }
}

#[test]
fn cachegrind_has_its_own_requests_and_file() {
    let bench = Bench::new();
    let body =
        "int main(void){ spin(77); CACHEGRIND_START(); spin(10); CACHEGRIND_STOP(); spin(99); return 0; }";
    let Some(program) = program(&bench, "cg", body) else { return };
    let options =
        ["--tool=cachegrind", "--instr-at-start=no", "--cache-sim=yes", "--cachegrind-out-file=out"];
    valgrind(&bench, &options, &program).ends_with(0);
    let text = std::fs::read_to_string(bench.join("out")).unwrap();
    assert!(text.contains("\nevents: Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw\n"), "{text}");
    let spin = text.split("fn=spin\n").nth(1).unwrap().lines();
    let lines: Vec<Vec<u64>> = text
        .lines()
        .filter(|line| line.starts_with(|first: char| first.is_ascii_digit()))
        .map(|line| line.split(' ').skip(1).map(|number| number.parse().unwrap()).collect())
        .collect();
    let sum = |column: usize| lines.iter().map(|line| line[column]).sum::<u64>();
    let summary = text.lines().last().unwrap().strip_prefix("summary: ").unwrap();
    let expected: Vec<String> = (0..9).map(|column| sum(column).to_string()).collect();
    assert_eq!(summary, expected.join(" "));
    let own = spin.take_while(|line| line.starts_with(|first: char| first.is_ascii_digit()));
    let own: u64 = own.map(|line| line.split(' ').nth(1).unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(own, spun(10));
}

#[test]
fn annotators_read_the_files() {
    let bench = Bench::new();
    let Some(program) = program(&bench, "read", "int main(void){ spin(100000); return 0; }") else { return };
    valgrind(&bench, &["--tool=callgrind", "--cache-sim=yes", "--callgrind-out-file=cl"], &program)
        .ends_with(0);
    valgrind(&bench, &["--tool=cachegrind", "--cachegrind-out-file=cg"], &program).ends_with(0);
    for (annotator, file) in [("callgrind_annotate", "cl"), ("cg_annotate", "cg")] {
        match Command::new(annotator).arg(bench.join(file)).output() {
            Ok(output) => {
                let text = String::from_utf8(output.stdout).unwrap();
                assert!(output.status.success() && text.contains("spin"), "{annotator}: {text}");
            }
            Err(_) => eprintln!("skipped: {annotator} is not installed"),
        }
    }
    // Files of cachegrind can be added up, also those without caches.
    let sum = bench.join("sum");
    match Command::new("cg_merge").arg("-o").arg(&sum).args([bench.join("cg"), bench.join("cg")]).output() {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let totals = |path: &Path| {
                let text = std::fs::read_to_string(path).unwrap();
                let line = text.lines().find_map(|line| line.strip_prefix("summary: "));
                line.unwrap().trim().parse::<u64>().unwrap()
            };
            assert_eq!(totals(&sum), 2 * totals(&bench.join("cg")));
        }
        Err(_) => eprintln!("skipped: cg_merge is not installed"),
    }
}

#[test]
fn it_ends_as_the_program_does() {
    let bench = Bench::new();
    let Some(program) = program(&bench, "dies", "int main(void){ *(volatile int *)8 = 1; }") else { return };
    let ran = valgrind(&bench, &["--tool=callgrind", "--callgrind-out-file=out"], &program);
    assert_eq!(ran.status, -11, "{}", ran.said());
    adds_up(&{
        let options = ["--tool=callgrind", "--compress-strings=no", "--callgrind-out-file=out"];
        valgrind(&bench, &options, &program);
        Costs::read(&bench.join("out"))
    });
}

#[test]
fn a_link_of_valgrinds_name_is_valgrind() {
    let bench = Bench::new();
    lightfoot().args(["valgrind", "--install"]).arg(bench.path()).run().ends_with(0);
    let link = bench.join("valgrind");
    let version = |words: &[&str]| Command::new(&link).args(words).output().unwrap();
    for words in [&["--version"][..], &["--tool=dhat", "--version"]] {
        assert_eq!(version(words).stdout, b"valgrind-3.26.0\n");
    }
    let claimed = version(&["--version-number=3.26.0.codspeed6", "--version"]);
    assert_eq!(claimed.stdout, b"valgrind-3.26.0.codspeed6\n");
    let ran = Command::new(&link).args(["--tool=none", "-q", "sh", "-c", "exit 4"]).output().unwrap();
    assert_eq!((ran.status.code(), ran.stderr.len()), (Some(4), 0));
    // A folder that has a valgrind keeps it.
    let again = lightfoot().args(["valgrind", "--install"]).arg(bench.path()).run();
    again.ends_with(0);
    std::fs::remove_file(&link).unwrap();
    std::fs::write(&link, "another").unwrap();
    let refused = lightfoot().args(["valgrind", "--install"]).arg(bench.path()).run();
    refused.ends_with(1).says("has no valgrind");
    assert_eq!(std::fs::read(&link).unwrap(), b"another");
}

#[test]
fn options_come_from_files_and_the_environment_too() {
    let bench = Bench::new();
    bench.file(".valgrindrc", b"# mine\n--tool=callgrind\n--callgrind-out-file=named\n", 0o644);
    let run = |words: &[&str], variable: &str| {
        let command =
            lightfoot().within(bench.path()).env("VALGRIND_OPTS", variable).env("HOME", "/nonexistent");
        command.arg("valgrind").args(words).arg("true").run()
    };
    run(&[], "--quiet").ends_with(0);
    assert!(bench.join("named").is_file());
    run(&["--command-line-only=yes"], "").ends_with(1).says("lightfoot is no memcheck");
}

#[test]
fn what_cannot_be_done_is_said_in_a_sentence() {
    let bench = Bench::new();
    let refused = |words: &[&str], status: i32, sentence: &str| {
        let ran = lightfoot().within(bench.path()).arg("valgrind").args(words).run();
        ran.fails_with(status).says(sentence);
        assert!(ran.said().starts_with("valgrind: ") && ran.said().lines().count() == 1, "{}", ran.said());
    };
    for tool in ["memcheck", "helgrind", "drd", "exp-bbv", "nosuch"] {
        refused(&[&format!("--tool={tool}"), "true"], 1, &format!("lightfoot is no {tool}"));
    }
    refused(&["true"], 1, "lightfoot is no memcheck");
    refused(&["--tool=callgrind", "--togle-collect=f", "true"], 1, "did you mean --toggle-collect?");
    refused(&["--tool=callgrind"], 1, "no program specified");
    refused(&["--tool=callgrind", "/no/such/program"], 127, "/no/such/program");
    refused(&["--tool=callgrind", "--branch-sim=yes", "true"], 1, "lightfoot cache --branches");
    refused(&["--tool=massif", "--xtree-memory=full", "true"], 1, "no tree of calls");
    refused(
        &["--tool=callgrind", "--callgrind-out-file=/no/such/x", "true"],
        1,
        "there is no directory /no/such",
    );
    refused(&["--tool=callgrind", "--log-file=%q{NO_SUCH_NAME}", "true"], 1, "has no variable NO_SUCH_NAME");
    refused(&["--tool=callgrind", "--LL=77", "true"], 1, "expected SIZE,WAYS,LINE");
    // A toggle that matches nothing: a warning and no costs, or an error.
    let words = ["--tool=callgrind", "--toggle-collect=no_such", "--callgrind-out-file=out", "true"];
    let ran = lightfoot().within(bench.path()).arg("valgrind").args(words).run();
    ran.ends_with(0).says("warning: no function that was loaded matches no_such");
    assert_eq!(Costs::read(&bench.join("out")).totals(), [[0]]);
    let words = [&["--strict=yes"][..], &words].concat();
    lightfoot().within(bench.path()).arg("valgrind").args(words).run().ends_with(1).says("no_such");
}

#[test]
fn command_lines_of_known_callers_run() {
    const CACHES: &str = "--I1=32768,8,64 --D1=32768,8,64 --LL=8388608,16,64";
    let lines = [
        // gungraun
        format!(
            "--tool=callgrind --error-exitcode=0 --trace-children=yes --fair-sched=try --vgdb=no {CACHES} --cache-sim=yes \
             --compress-strings=no --compress-pos=no --dump-line=yes --dump-instr=no --combine-dumps=no \
             --separate-threads=yes --toggle-collect=*::x::* --callgrind-out-file=out#%p --log-file=log#%p"
        ),
        // CodSpeed
        format!(
            "-q --trace-children=yes --cache-sim=yes {CACHES} --instr-atstart=no --collect-systime=nsec --read-inline-info=yes \
             --tool=callgrind --compress-strings=no --combine-dumps=yes --dump-line=no --cycle-estimation=yes \
             --trace-children-skip=*esbuild,*x --obj-skip=/usr/bin/x --callgrind-out-file=%p.out --log-file=%p.log"
        ),
        // rustls
        "--tool=callgrind --collect-atstart=no --cache-sim=no --log-file=l --callgrind-out-file=c".into(),
        // rustc-perf
        "--tool=cachegrind --cache-sim=no --branch-sim=no --cachegrind-out-file=cgout --log-file=l".into(),
        "--tool=callgrind --cache-sim=no --branch-sim=no --instr-atstart=no --callgrind-out-file=clgout".into(),
        "--tool=massif --heap-admin=0 --depth=15 --threshold=0.2 --massif-out-file=m --alloc-fn=__rdl_alloc".into(),
        // php-src, SQLite
        "--tool=callgrind --dump-instr=yes --callgrind-out-file=p -- ".into(),
        "--tool=cachegrind --cachegrind-out-file=s".into(),
    ];
    for line in lines {
        let bench = Bench::new();
        let ran =
            lightfoot().within(bench.path()).arg("valgrind").args(line.split_whitespace()).arg("true").run();
        ran.ends_with(0);
        assert!(std::fs::read_dir(bench.path()).unwrap().count() > 0, "{line}");
    }
}

#[test]
fn kept_translations_have_the_same_marks() {
    let bench = Bench::new();
    let body = "__attribute__((noinline)) void outer(long n){ spin(n); }
        int main(void){ for (long n = 1; n <= 200; n++) { spin(3); TOGGLE_COLLECT(); spin(10); TOGGLE_COLLECT(); outer(n); }
        return 0; }";
    let Some(program) = program(&bench, "kept", body) else { return };
    let folder = bench.join("translations");
    let run = |options: &[&str]| {
        let command = lightfoot().within(bench.path()).env("LIGHTFOOT_TRANSLATIONS", &folder);
        let out = ["--callgrind-out-file=out"];
        command.arg("valgrind").args(PLAIN).args(options).args(out).arg(&program).run().ends_with(0);
        Costs::read(&bench.join("out")).of("spin")
    };
    let of_outer: u64 = (1..=200).map(spun).sum();
    // The first run leaves its translations, the second one begins with them.
    for _ in 0..3 {
        assert_eq!(run(&["--collect-atstart=no"]), [200 * spun(10)]);
        assert_eq!(run(&["--collect-atstart=no", "--cache-sim=yes"]), [200 * spun(10)]);
        // Requests and the function toggle the same thing: it counts in the function, which is
        // called behind two requests, and between the requests.
        assert_eq!(run(&["--toggle-collect=out*"]), [200 * spun(10) + of_outer]);
        let both = ["--collect-atstart=no", "--dump-before=outer", "--combine-dumps=yes"];
        assert_eq!(run(&both).iter().sum::<u64>(), 200 * spun(10));
    }
    assert!(std::fs::read_dir(&folder).unwrap().count() >= 3);
}

#[test]
fn another_valgrind_runs_what_this_one_is_not() {
    let bench = Bench::new();
    let other = bench.file("other", b"#!/bin/sh\necho \"$@\"\n", 0o755);
    let fallback = format!("--fallback={}", other.display());
    let ran = lightfoot().args(["valgrind", &fallback, "--tool=memcheck", "-q", "x"]).run();
    ran.ends_with(0);
    assert_eq!(ran.stdout, b"--command-line-only=yes --tool=memcheck -q x\n");
    // Callers that find it on PATH name the other one in a variable or a file, which may have more
    // options; those that Valgrind does not know stay here.
    bench.file(".valgrindrc", b"--leak-check=full --rep=once\n", 0o644);
    let mut named = lightfoot().within(bench.path()).env("HOME", "/nonexistent");
    named = named.env("VALGRIND_OPTS", format!("{fallback} --error-limit=no"));
    let ran = named.args(["valgrind", "--tool=memcheck", "-q", "x", "--rep=y"]).run();
    ran.ends_with(0);
    let theirs = "--error-limit=no --leak-check=full --tool=memcheck -q x --rep=y\n";
    assert_eq!(String::from_utf8_lossy(&ran.stdout), format!("--command-line-only=yes {theirs}"));
    // Its own tools it runs itself.
    let ran = lightfoot().args(["valgrind", &fallback, "--tool=none", "-q", "echo", "here"]).run();
    assert_eq!((ran.ends_with(0).stdout.as_slice()), b"here\n");
}

#[test]
fn the_table_of_options_is_in_the_documents() {
    let ran = Command::new(BINARY).args(["valgrind", "--options"]).output().unwrap();
    let rows = String::from_utf8(ran.stdout).unwrap();
    let page =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/valgrind.md")).unwrap();
    assert!(rows.lines().count() > 100);
    for row in rows.lines() {
        assert!(page.contains(row), "docs/valgrind.md lacks, as `lightfoot valgrind --options` says:\n{row}");
    }
    let listed = page.lines().filter(|line| line.starts_with("| `-")).count();
    assert_eq!(listed, rows.lines().filter(|line| line.starts_with("| `-")).count());
}
