//! What a name of a function stands for: all functions of that name, in every engine; spelt as
//! people write it; and how they are told apart.

mod bench;

use bench::{lightfoot, Bench};
use instrument::Command as Program;
use lightfoot::run::hierarchy::Hierarchy;
use lightfoot::trace::metric::Spec;
use lightfoot::trace::{run, Collector, Engine, Request};
use machine::Machine;
use measure::trace::{check, Interval, Trace, Unit};
use std::path::{Path, PathBuf};
use std::process::Command;

const ONE: &str = r#"
extern volatile long sink;
void other(void);
static __attribute__((noinline)) void helper(void) { sink += 3; __asm__ volatile(""); }
volatile long sink;
static volatile long hits;
int main(void) {
    for (int i = 0; i < 1000; i++) helper();
    for (int i = 0; i < 70; i++) hits = i;
    other();
    return 0;
}
"#;

const TWO: &str = r#"
extern volatile long sink;
static volatile long hits;
static __attribute__((noinline)) void helper(void) { sink -= 5; __asm__ volatile(""); }
void other(void) {
    for (int i = 0; i < 500; i++) helper();
    for (int i = 0; i < 7; i++) hits = i;
}
"#;

const CXX: &str = r#"
volatile long sink;
#define ONE __attribute__((noinline))
namespace ns {
    ONE int mk(int a) { sink += a; return a; }
    ONE int mk(double a, int b) { sink -= b; return a; }
    struct S {
        ONE int m() { sink ^= 1; return 1; }
        ONE int c(const char *, unsigned) const { sink ^= 2; return 2; }
    };
    template <typename T> ONE T tmpl(T t) { sink += sizeof t; return t; }
}
int main() {
    ns::S s;
    for (int i = 0; i < 10; i++) ns::mk(i);
    for (int i = 0; i < 20; i++) ns::mk(1.5, i);
    for (int i = 0; i < 30; i++) s.m();
    for (int i = 0; i < 40; i++) s.c("", 1);
    for (int i = 0; i < 50; i++) ns::tmpl<int>(i);
    for (int i = 0; i < 60; i++) ns::tmpl<char>(i);
}
"#;

const RUST: &str = r#"
use std::hint::black_box;
#[inline(never)]
fn generic<T: Copy + std::fmt::Debug>(t: T) -> T { black_box(t); black_box(std::mem::size_of::<T>()); t }
struct S(u64);
trait Touch { fn touch(&self) -> u64; }
impl Touch for S { #[inline(never)] fn touch(&self) -> u64 { black_box(self.0) } }
fn main() {
    for n in 0..3000u32 { generic(black_box(n)); generic(black_box(n as u64)); generic(black_box(n as f32)); }
    for n in 0..9 { black_box(S(n)).touch(); }
}
"#;

/// What a compiler makes of sources; `None`, and said, where there is no such compiler.
fn built(bench: &Bench, compiler: &[&str], sources: &[(&str, &str)]) -> Option<PathBuf> {
    let program = bench.join("program");
    let files = sources.iter().map(|(name, text)| bench.file(name, text.as_bytes(), 0o644));
    let mut command = Command::new(compiler[0]);
    command.args(&compiler[1..]).arg("-o").arg(&program).args(files).current_dir(bench.path());
    match command.output() {
        Ok(out) if out.status.success() => Some(program),
        Ok(out) => panic!("{}", String::from_utf8_lossy(&out.stderr)),
        Err(_) => {
            eprintln!("skipped: there is no {} here", compiler[0]);
            None
        }
    }
}

fn helpers(bench: &Bench) -> Option<PathBuf> {
    built(bench, &["cc", "-O1", "-fno-inline"], &[("one.c", ONE), ("two.c", TWO)])
}

fn request(program: &Path, engine: Engine, software: &str) -> Request {
    let command = Program { program: program.into(), arguments: Vec::new() };
    let native = matches!(engine, Engine::Probe | Engine::Uprobe);
    let unit = if native { Unit::Nanoseconds } else { Unit::Instructions };
    let interval = Interval { length: if native { 5_000_000 } else { 100_000 }, unit };
    let machine = Hierarchy::of(Machine::preset("cachegrind").unwrap()).unwrap();
    let software = Spec::list(software).unwrap();
    Request { engine, software, ..Request::simulated(command, interval, machine) }
}

/// The trace, unless this system refuses the kernel's counters or uprobes.
fn traced(request: &Request) -> Option<Trace> {
    match run(request) {
        Ok(trace) => {
            assert_eq!(check(&trace), Vec::<String>::new());
            Some(trace)
        }
        Err(error) if ["perf_event", "cannot count"].iter().any(|w| error.to_string().contains(w)) => {
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn totals(trace: &Trace) -> Vec<(String, u64)> {
    let software = trace.header.metrics.iter().enumerate().filter(|(_, m)| m.name.contains(':'));
    let software = software.filter(|(_, metric)| !metric.name.starts_with("collector:"));
    let total = |(index, metric): (usize, &measure::trace::Metric)| {
        let total = trace.end.as_ref().unwrap().totals[index];
        assert_eq!(total, trace.sum(index), "{}", metric.name);
        (metric.name.clone(), total.unwrap_or_else(|| panic!("{}: {:?}", metric.name, trace.header.notes)))
    };
    software.map(total).collect()
}

fn pairs(expected: &[(&str, u64)]) -> Vec<(String, u64)> {
    expected.iter().map(|&(name, count)| (name.to_owned(), count)).collect()
}

#[test]
fn two_static_functions_of_one_name_are_both_counted_by_every_engine() {
    let bench = Bench::new();
    let Some(program) = helpers(&bench) else { return };
    let software = "fn:helper,fn:one.c!helper,fn:two.c!helper,fn:main";
    let expected =
        pairs(&[("fn:helper", 1500), ("fn:one.c!helper", 1000), ("fn:two.c!helper", 500), ("fn:main", 1)]);
    for engine in [Engine::Jit, Engine::Simulated, Engine::Probe, Engine::Uprobe] {
        let Some(trace) = traced(&request(&program, engine, software)) else { continue };
        assert_eq!(totals(&trace), expected, "{engine:?}");
        let notes = trace.header.notes.join("\n");
        assert!(notes.contains("fn:helper counts 2 places") && notes.contains("fn:helper@*"), "{notes}");
    }
    let signal = Request { collector: Collector::Signal, ..request(&program, Engine::Probe, software) };
    if let Some(trace) = traced(&signal) {
        assert_eq!(totals(&trace), expected);
    }
    let uncharged = Spec::list(software).unwrap();
    let simulated = Request { uncharged, ..request(&program, Engine::Simulated, "") };
    assert_eq!(totals(&traced(&simulated).unwrap()), expected);
}

/// The link address of a function, as the symbol table states it.
fn address_of(program: &Path, name: &str) -> u64 {
    let listing = symbol::Listing::read(program).unwrap();
    listing.names.iter().find(|named| named.name == name).unwrap().address
}

#[test]
fn a_function_of_a_stripped_program_is_named_by_its_address() {
    let bench = Bench::new();
    let Some(program) = helpers(&bench) else { return };
    let metric = format!("fn:program+{:#x}", address_of(&program, "other"));
    // With its symbol it has its own name and no other.
    let named = run(&request(&program, Engine::Jit, &metric)).unwrap_err().to_string();
    assert!(named.contains("there is no function program+0x"), "{named}");
    match Command::new("strip").arg(&program).status() {
        Ok(status) => assert!(status.success()),
        Err(_) => return eprintln!("skipped: there is no strip here"),
    }
    for engine in [Engine::Jit, Engine::Simulated, Engine::Probe, Engine::Uprobe] {
        let Some(trace) = traced(&request(&program, engine, &metric)) else { continue };
        assert_eq!(totals(&trace), [(metric.clone(), 1)], "{engine:?}");
    }
    // A pattern finds all of them, those that never run as well.
    let all = traced(&request(&program, Engine::Jit, "fn:program+*")).unwrap();
    let calls: Vec<u64> = totals(&all).into_iter().map(|(_, calls)| calls).collect();
    assert!(calls.contains(&1000) && calls.contains(&500), "{calls:?}");
}

#[test]
fn each_function_of_a_name_can_be_asked_for() {
    let bench = Bench::new();
    let Some(program) = helpers(&bench) else { return };
    let each = traced(&request(&program, Engine::Jit, "fn:helper@*")).unwrap();
    assert_eq!(totals(&each), pairs(&[("fn:one.c!helper", 1000), ("fn:two.c!helper", 500)]));
    // By address, with a library that stands for the program.
    let each = traced(&request(&program, Engine::Jit, "fn:program!helper@*")).unwrap();
    let found = totals(&each);
    assert_eq!(found.iter().map(|(_, calls)| *calls).collect::<Vec<_>>(), [1000, 500]);
    let (second, _) = &found[1];
    assert!(second.starts_with("fn:program!helper@0x"), "{second}");
    let one = traced(&request(&program, Engine::Jit, second)).unwrap();
    assert_eq!(totals(&one), vec![(second.clone(), 500)]);
    let pattern = traced(&request(&program, Engine::Jit, "fn:help*")).unwrap();
    assert_eq!(totals(&pattern), pairs(&[("fn:helper", 1500)]));
}

#[test]
fn two_static_variables_of_one_name_are_both_watched() {
    let bench = Bench::new();
    let Some(program) = helpers(&bench) else { return };
    let trace = traced(&request(&program, Engine::Jit, "var:hits,var:two.c!hits")).unwrap();
    assert_eq!(totals(&trace), pairs(&[("var:hits", 77), ("var:two.c!hits", 7)]));
}

#[test]
fn cxx_names_need_no_arguments() {
    let bench = Bench::new();
    let Some(program) = built(&bench, &["g++", "-O1"], &[("names.cc", CXX)]) else { return };
    let software = "fn:ns::mk,fn:ns::S::m,fn:ns::S::c,fn:ns::tmpl,fn:ns::mk(double, int),fn:ns::tmpl<char>";
    let expected = [
        ("fn:ns::mk", 30),
        ("fn:ns::S::m", 30),
        ("fn:ns::S::c", 40),
        ("fn:ns::tmpl", 110),
        ("fn:ns::mk(double, int)", 20),
        ("fn:ns::tmpl<char>", 60),
    ];
    for engine in [Engine::Jit, Engine::Probe] {
        let Some(trace) = traced(&request(&program, engine, software)) else { continue };
        assert_eq!(totals(&trace), pairs(&expected), "{engine:?}");
    }
    let all = traced(&request(&program, Engine::Jit, "fn:ns::*")).unwrap();
    let mut found = totals(&all);
    found.sort();
    let mut expected = pairs(&expected[..4]);
    expected.sort();
    assert_eq!(found, expected);
    let short = traced(&request(&program, Engine::Jit, "fn:ns::S::?")).unwrap();
    assert_eq!(totals(&short).len(), 2);
}

#[test]
fn a_rust_generic_is_counted_in_all_its_instances() {
    let bench = Bench::new();
    for mangling in [&[][..], &["-C", "symbol-mangling-version=v0"]] {
        let compiler = [&["rustc", "-C", "opt-level=1"][..], mangling].concat();
        let Some(program) = built(&bench, &compiler, &[("names.rs", RUST)]) else { return };
        let software = "fn:names::generic,fn:names::S::touch";
        let expected = pairs(&[("fn:names::generic", 9000), ("fn:names::S::touch", 9)]);
        for engine in [Engine::Jit, Engine::Probe] {
            let Some(trace) = traced(&request(&program, engine, software)) else { continue };
            assert_eq!(totals(&trace), expected, "{engine:?} {mangling:?}");
        }
        let each = traced(&request(&program, Engine::Jit, "fn:names::generic@*")).unwrap();
        let calls: Vec<u64> = totals(&each).iter().map(|(_, calls)| *calls).collect();
        assert_eq!(calls, [3000; 3]);
    }
}

#[test]
fn a_name_that_is_not_found_is_answered_with_the_nearest_and_where_to_look() {
    let bench = Bench::new();
    let Some(program) = helpers(&bench) else { return };
    let refused = |name: &str, words: &str| {
        let file = bench.join("refused.lft");
        let options = ["trace", "--engine", "jit", "--every", "1e6instructions", "--software", name, "-o"];
        let ran = lightfoot().args(options).arg(&file).arg(&program).run();
        ran.fails_with(125).says(words).in_one_line();
        assert!(!file.exists());
    };
    refused("fn:helpr", "did you mean fn:program!helper?");
    refused("fn:program!getenv", "did you mean fn:libc.so.6!getenv?");
    refused("fn:libc!helper", "did you mean fn:program!helper?");
    refused("fn:zzqqzzqqzz", "fn:FILE!NAME");
    refused("fn:three.c!helper", "no library or source file three.c");
    refused("fn:helper@0x1", "that name is at one.c!helper, two.c!helper");
    refused("var:hitz", "did you mean var:program!hits?");
}

/// What a user types, and what he reads.
#[test]
fn the_command_counts_all_and_says_so() {
    let bench = Bench::new();
    let Some(program) = helpers(&bench) else { return };
    let options = ["trace", "--engine", "jit", "--every", "1e9instructions", "--format", "csv", "-o"];
    let file = bench.join("trace.csv");
    let ran = lightfoot().args(options).arg(&file).args(["--software", "fn:helper"]).arg(&program).run();
    ran.ends_with(0).says("fn:helper counts 2 places of that name in program (one.c!helper, two.c!helper)");
    let text = std::fs::read_to_string(&file).unwrap();
    let cells: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    let column = cells[0].iter().position(|&name| name == "fn:helper").unwrap();
    assert_eq!(cells[1][column], "1500");
}
