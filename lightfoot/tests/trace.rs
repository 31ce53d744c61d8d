//! Traces: they repeat, they add up to what the other commands count, and names that do not exist
//! are refused.

mod bench;

use bench::{compile, json, lightfoot, Bench, PATIENCE};
use instrument::Command;
use lightfoot::run::hierarchy::Hierarchy;
use lightfoot::trace::metric::Spec;
use lightfoot::trace::{run, Collector, Engine, Noise, Request};
use machine::Machine;
use measure::trace::{check, decode, Interval, Layout, Record, Source, Trace, Unit};
use std::path::Path;

/// Calls `work` a thousand times, where `CALLS` says no other number, and `rare` once in a hundred
/// of them, in a loop that misses caches; `total` is written once in each call of `work`.
const PROGRAM: &str = r#"
#include <stdio.h>
#ifndef CALLS
#define CALLS 1000
#endif
static char memory[4 << 20];
volatile long total;
__attribute__((noinline)) void work(int n) {
    for (int i = 0; i < 64; i++) memory[(n * 7919u + i * 4099) & (sizeof memory - 1)]++;
    total += n;
}
__attribute__((noinline)) void rare(void) { __asm__ volatile(""); }
int main(void) {
    for (int n = 0; n < CALLS; n++) {
        work(n);
        if (n % 100 == 0) rare();
    }
    printf("%ld\n", total);
    return 3;
}
"#;

fn instructions(length: u64) -> Interval {
    Interval { length, unit: Unit::Instructions }
}

fn request(program: &Path, length: u64) -> Request {
    let command = Command { program: program.into(), arguments: Vec::new() };
    let machine = Hierarchy::of(Machine::preset("cachegrind").unwrap()).unwrap();
    Request::simulated(command, instructions(length), machine)
}

/// The program, if there is a compiler.
fn program(bench: &Bench) -> Option<std::path::PathBuf> {
    compile(bench, "prog", &["-g"], PROGRAM)
}

fn total(trace: &Trace, name: &str) -> u64 {
    let metric = trace.position(name).unwrap_or_else(|| panic!("no metric {name}"));
    let total = trace.end.as_ref().unwrap().totals[metric];
    assert_eq!(total, trace.sum(metric), "{name}");
    total.unwrap()
}

fn sound(trace: &Trace) {
    assert_eq!(check(trace), Vec::<String>::new());
}

#[test]
fn simulated_traces_repeat_and_add_up_to_what_cache_counts() {
    if !bench::repeatable() {
        return;
    }
    let bench = Bench::new();
    let Some(program) = program(&bench) else { return };
    let request = request(&program, 10_000);
    let trace = run(&request).unwrap();
    sound(&trace);
    assert!(trace.encode() == run(&request).unwrap().encode());
    assert_eq!(trace.end.as_ref().unwrap().exit_status, Some(3));
    assert!(trace.records.len() > 10);
    for record in &trace.records[1..trace.records.len() - 1] {
        assert!(record.dt.abs_diff(10_000) < 64, "{record:?}");
        assert_eq!(record.values[0].delta, Some(record.dt));
    }
    // Both by a command: where a program's stack begins depends on how its environment is laid out.
    let file = bench.join("trace.lft");
    let options = ["trace", "--every", "1e4instructions", "--machine", "cachegrind", "-o"];
    lightfoot().args(options).arg(&file).arg(&program).run().ends_with(3);
    let trace = decode(&std::fs::read(&file).unwrap()).unwrap();
    sound(&trace);
    let ran = lightfoot()
        .args(["cache", "--branches", "--machine", "cachegrind", "--format", "json", "-o"])
        .arg(bench.join("cache.json"))
        .arg(&program)
        .run();
    ran.ends_with(3);
    let report = json(&std::fs::read(bench.join("cache.json")).unwrap());
    let counted = |name: &str| {
        report["totals"][name].as_u64().unwrap_or_else(|| panic!("{name}: {}", report["totals"]))
    };
    assert_eq!(total(&trace, "instructions"), counted("instructions"));
    let misses =
        |name: &str| report["totals"]["misses"][name].as_u64().or(report["totals"][name].as_u64()).unwrap();
    assert_eq!(total(&trace, "l1d-misses"), misses("l1d_load_misses") + misses("l1d_store_misses"));
    assert_eq!(total(&trace, "l1i-misses"), misses("l1i_misses"));
    assert_eq!(total(&trace, "branch-misses"), misses("branch_mispredictions"));
}

#[test]
fn an_interval_may_be_of_cycles() {
    let bench = Bench::new();
    let Some(program) = program(&bench) else { return };
    let interval = Interval { length: 50_000, unit: Unit::Cycles };
    let trace = run(&Request { interval, ..request(&program, 1) }).unwrap();
    sound(&trace);
    let cycles = trace.position("cycles").unwrap();
    assert!(trace.records.iter().all(|record| record.values[cycles].delta == Some(record.dt)));
    assert!(trace.records.len() > 5);
}

#[test]
fn uncharged_metrics_count_calls_writes_and_lines_and_change_nothing() {
    if !bench::repeatable() {
        return;
    }
    let bench = Bench::new();
    let Some(program) = program(&bench) else { return };
    let plain = request(&program, 10_000);
    let uncharged = Spec::list("fn:work,fn:rare,fn:main,line:source.c:10").unwrap();
    let observed = run(&Request { uncharged, ..plain.clone() }).unwrap();
    sound(&observed);
    let counts: Vec<u64> =
        ["fn:work", "fn:rare", "fn:main", "line:source.c:10"].map(|name| total(&observed, name)).into();
    assert_eq!(counts, [1000, 10, 1, 1000]);
    assert_eq!(observed.header.metrics.last().unwrap().source, Source::UnchargedMetric);
    let plain = run(&plain).unwrap();
    for (a, b) in plain.records.iter().zip(&observed.records) {
        assert_eq!(a.values[..], b.values[..a.values.len()]);
    }
    // Every reference is looked at now; the caches must not notice.
    let watched =
        Request { uncharged: Spec::list("var:total,fn:work").unwrap(), ..request(&program, 10_000) };
    let watched = run(&watched).unwrap();
    sound(&watched);
    assert_eq!(total(&watched, "var:total"), 1000);
    for metric in &plain.header.metrics {
        assert_eq!(total(&watched, &metric.name), total(&plain, &metric.name), "{}", metric.name);
    }
}

#[test]
fn the_engine_alone_counts_the_same() {
    let bench = Bench::new();
    let Some(program) = program(&bench) else { return };
    let software = Spec::list("fn:work,fn:printf,var:total").unwrap();
    let trace = run(&Request { engine: Engine::Jit, software, ..request(&program, 10_000) }).unwrap();
    sound(&trace);
    assert_eq!((total(&trace, "fn:work"), total(&trace, "var:total")), (1000, 1000));
    assert_eq!(trace.header.metrics[2].source, Source::Software);
    assert!(trace.position("l1d-misses").is_none());
}

#[test]
fn noise_repeats_with_its_seed_and_disturbs() {
    if !bench::repeatable() {
        return;
    }
    let bench = Bench::new();
    let Some(program) = program(&bench) else { return };
    let noisy = |seed| {
        let noise = Some(Noise { period_instructions: 20_000, ..Noise::seeded(seed) });
        run(&Request { noise, ..request(&program, 10_000) }).unwrap()
    };
    let (one, two) = (noisy(1), noisy(2));
    sound(&one);
    assert!(one.encode() == noisy(1).encode());
    assert_eq!(total(&one, "instructions"), total(&two, "instructions"));
    assert_ne!(one.records, two.records);
}

#[test]
fn the_command_writes_every_format_and_passes_the_status_on() {
    let bench = Bench::new();
    let Some(program) = program(&bench) else { return };
    for (format, name) in [("trace", "t.lft"), ("csv", "t.csv"), ("json", "t.json"), ("firefox", "t.profile")]
    {
        let ran = lightfoot()
            .args(["trace", "--every", "1e4instructions", "--uncharged", "fn:work", "--format", format, "-o"])
            .arg(bench.join(name))
            .arg(&program)
            .run();
        ran.ends_with(3);
        assert_eq!(ran.stdout, b"499500\n");
    }
    let trace = decode(&std::fs::read(bench.join("t.lft")).unwrap()).unwrap();
    sound(&trace);
    let rows = std::fs::read_to_string(bench.join("t.csv")).unwrap();
    assert_eq!(rows.lines().count(), trace.records.len() + 1);
    let profile = json(&std::fs::read(bench.join("t.profile")).unwrap());
    assert_eq!(profile["counters"].as_array().unwrap().len(), trace.header.metrics.len());
}

#[test]
fn what_does_not_exist_is_refused_by_name() {
    let bench = Bench::new();
    let Some(program) = program(&bench) else { return };
    let refused = |options: &[&str]| {
        let ran =
            lightfoot().arg("trace").args(options).arg("-o").arg(bench.join("x.lft")).arg(&program).run();
        ran.fails_with(125);
        assert!(ran.stdout.is_empty());
        ran.said()
    };
    let every = "--every=1e4instructions";
    let said = refused(&[every, "--uncharged", "fn:wrok"]);
    assert!(
        said.contains("there is no function wrok") && said.contains("did you mean fn:prog!work"),
        "{said}"
    );
    let said = refused(&[every, "--hardware", "cyles"]);
    assert!(said.contains("no event cyles") && said.contains("cycles"), "{said}");
    let said = refused(&[every, "--uncharged", "line:source.c:9999"]);
    assert!(said.contains("no code for line 9999"), "{said}");
    let said = refused(&["--every", "10ms", "--engine", "simulated"]);
    assert!(said.contains("1e6instructions"), "{said}");
    let said = refused(&["--every", "10ms", "--ghost", "fn:work"]);
    assert!(said.contains("--engine simulated"), "{said}");
    let said = refused(&["--every", "10parsecs"]);
    assert!(said.contains("10parsecs"), "{said}");
    assert!(!bench.join("x.lft").exists());
}

#[test]
fn probes_in_the_simulated_machine_cost_what_they_execute() {
    if !bench::repeatable() {
        return;
    }
    let bench = Bench::new();
    let Some(program) = program(&bench) else { return };
    let plain = run(&request(&program, 10_000)).unwrap();
    let software = Spec::list("fn:work").unwrap();
    let uncharged = Spec::list("fn:rare,fn:main").unwrap();
    let probed = |layout| {
        let software = software.clone();
        run(&Request { software, layout, uncharged: uncharged.clone(), ..request(&program, 10_000) }).unwrap()
    };
    let packed = probed(Layout::Packed);
    sound(&packed);
    assert!(packed.encode() == probed(Layout::Packed).encode());
    let counts = ["fn:work", "fn:rare", "fn:main"].map(|name| total(&packed, name));
    assert_eq!(counts, [1000, 10, 1]);
    let sources: Vec<Source> =
        packed.header.metrics.iter().rev().take(3).map(|metric| metric.source).collect();
    assert_eq!(sources, [Source::UnchargedMetric, Source::UnchargedMetric, Source::Software]);
    // The jump there, the increment, the jump back.
    assert_eq!(total(&packed, "instructions"), total(&plain, "instructions") + 3 * 1000);
    assert!(total(&packed, "cycles") > total(&plain, "cycles"));
    assert_ne!(packed.header.counter_layout, probed(Layout::Seed(3)).header.counter_layout);
}

/// The first processor on which this process may run.
fn allowed_processor() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    list.trim().split([',', '-']).next().unwrap().parse().unwrap()
}

#[test]
fn a_native_run_is_recorded_by_the_kernels_counters() {
    let bench = Bench::new();
    let Some(program) = program(&bench) else { return };
    let interval = Interval { length: 200_000, unit: Unit::Nanoseconds };
    let processor = allowed_processor();
    let native = Request { engine: Engine::Native, interval, pin: Some(processor), ..request(&program, 1) };
    let trace = match run(&native) {
        Ok(trace) => trace,
        Err(error) if error.to_string().contains("perf_event") => {
            eprintln!("skipped: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    sound(&trace);
    assert_eq!(trace.end.as_ref().unwrap().exit_status, Some(3));
    assert_eq!((trace.header.cpu_pin, trace.header.collector.as_str()), (Some(processor), "host"));
    assert!(total(&trace, "page-faults") > 100);
    let refused = |request: Request| run(&request).unwrap_err().to_string();
    let software = Spec::list("fn:work").unwrap();
    assert!(refused(Request { software: software.clone(), ..native.clone() }).contains("--engine probe"));
    // Half a second: the host may come late to a tick, but not to all of them.
    let long = compile(&bench, "long", &["-g", "-DCALLS=1000000"], PROGRAM).unwrap();
    let command = Command { program: long.into(), arguments: Vec::new() };
    let counted = Request { command, interval: instructions(100_000), pin: None, ..native.clone() };
    match run(&counted) {
        // A processor whose counters the system shows.
        Ok(trace) => {
            sound(&trace);
            // What the kernel counts after the last instruction makes a record without any.
            let (_, whole) = trace.records.split_last().unwrap();
            assert!(!whole.is_empty() && whole.iter().all(|record| record.dt > 0));
            assert!(trace.records.iter().all(|record| record.values[0].delta == Some(record.dt)));
        }
        Err(error) => {
            let said = error.to_string();
            assert!(said.contains("instructions") && said.contains("--engine simulated"), "{said}");
        }
    }
    assert!(
        refused(Request { hardware: vec!["page-fault".into()], ..native.clone() }).contains("page-faults")
    );
    assert!(refused(Request { pin: Some(100_000), ..native.clone() }).contains("give one of"));
    let written = Spec::list("var:total").unwrap();
    let probe = Request { engine: Engine::Probe, software: written, ..native };
    assert!(refused(probe).contains("--engine jit"));
}

/// A line of whose code other lines' instructions stand in the middle, as optimisers leave it.
#[test]
fn a_scattered_line_is_counted_once_for_each_execution() {
    const SCATTERED: &str = r#"
volatile long total;
long table[8];
struct { int a, b; } both;
__attribute__((noinline)) void work(int n) {
    total += n;
    table[n & 7] = n;
    if (n % 4 == 0) both.b++;
}
int main(void) {
    for (int n = 0; n < 1000; n++) work(n);
    return 0;
}
"#;
    let bench = Bench::new();
    let Some(program) = compile(&bench, "scattered", &["-O2", "-g"], SCATTERED) else { return };
    let software =
        Spec::list("line:source.c:6,line:source.c:7,fn:work,var:total,var:table,var:both").unwrap();
    let trace = run(&Request { engine: Engine::Jit, software, ..request(&program, 10_000) }).unwrap();
    sound(&trace);
    let counts = ["line:source.c:6", "line:source.c:7", "fn:work", "var:total", "var:table", "var:both"]
        .map(|name| total(&trace, name));
    assert_eq!(counts, [1000, 1000, 1000, 1000, 1000, 250]);
}

/// Calls `work` a hundred thousand times a round, for a second on a processor, and says how often.
const BUSY: &str = r#"
#include <stdio.h>
#include <time.h>
volatile long total;
__attribute__((noinline)) void work(int n) { total += n; }
int main(void) {
    struct timespec begin, now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    long calls = 0;
    do {
        for (int n = 0; n < 100000; n++) work(n);
        calls += 100000;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    } while ((now.tv_sec - begin.tv_sec) * 1e9 + now.tv_nsec - begin.tv_nsec < 1e9);
    printf("%ld\n", calls);
    return 0;
}
"#;

#[test]
fn a_handler_in_the_program_counts_what_the_host_counts() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "busy", &[], BUSY) else { return };
    let traced = |collector: &str| {
        let file = bench.join(collector);
        let ran = lightfoot()
            .args([
                "trace",
                "--every",
                "5ms",
                "--hardware",
                "task-clock,page-faults",
                "--software",
                "fn:work",
            ])
            .args(["--collector", collector, "-o"])
            .arg(&file)
            .arg(&program)
            .run();
        if ran.said().contains("perf_event") {
            eprintln!("skipped: {}", ran.said());
            return None;
        }
        ran.ends_with(0);
        let calls: u64 = String::from_utf8_lossy(&ran.stdout).trim().parse().unwrap();
        let trace = decode(&std::fs::read(&file).unwrap()).unwrap();
        sound(&trace);
        assert_eq!(trace.header.collector, collector);
        assert_eq!(total(&trace, "fn:work"), calls);
        assert!(!file.with_extension("partial").exists());
        Some(trace)
    };
    let (Some(host), Some(signal)) = (traced("host"), traced("signal")) else { return };
    assert!(host.position("collector:handler-ns").is_none());
    // The twin's cost shows: four system calls at each tick.
    assert!(total(&signal, "collector:handler-ns") > 500 * (signal.records.len() as u64 - 2));
    for trace in [&host, &signal] {
        // On a busy machine a program has few moments to itself: intervals in which it ran count.
        let [work, clock] = ["fn:work", "task-clock"].map(|name| trace.position(name).unwrap());
        let ran = |record: &&Record| record.values[clock].delta.unwrap() > 1_000_000;
        let ran: Vec<&Record> = trace.records.iter().filter(ran).collect();
        assert!(ran.len() > 5, "{} of {}", ran.len(), trace.records.len());
        let busy = ran.iter().filter(|record| record.values[work].delta.unwrap() > 0).count();
        assert!(busy * 2 > ran.len(), "{busy} of {}", ran.len());
    }
    let refused = |request: Request| run(&request).unwrap_err().to_string();
    let signal = Request { collector: Collector::Signal, ..request(&program, 1000) };
    assert!(refused(signal.clone()).contains("--engine native"));
    assert!(refused(Request { engine: Engine::Native, ..signal }).contains("10ms"));
}

#[test]
fn the_kernel_samples_what_the_host_then_need_not_read() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "busy", &[], BUSY) else { return };
    let file = bench.join("sampled");
    let traced = |more: &[&str]| {
        let words = ["trace", "--collector", "kernel", "-o"];
        lightfoot().args(words).arg(&file).args(more).arg(&program).run()
    };
    let ran = traced(&["--every", "2ms", "--hardware", "task-clock,page-faults"]);
    if ran.said().contains("perf_event") || ran.said().contains("Linux 6.13") {
        return eprintln!("skipped: {}", ran.said());
    }
    ran.ends_with(0);
    let trace = decode(&std::fs::read(&file).unwrap()).unwrap();
    sound(&trace);
    assert_eq!((trace.header.collector.as_str(), trace.header.engine.as_str()), ("kernel", "native"));
    assert!(total(&trace, "task-clock") > 300_000_000 && total(&trace, "page-faults") > 20);
    assert!(trace.records.len() > 5, "{}", trace.records.len());
    std::fs::remove_file(&file).unwrap();
    traced(&["--software", "fn:work"]).fails_with(125).says("--collector host");
    traced(&["--every", "1e6cycles", "--engine", "native"]).fails_with(125).says("10ms");
    assert!(!file.exists());
}

/// Its own timer goes on while it stands still, and says how often it expired.
#[test]
fn a_stopped_program_misses_the_ticks_of_its_own_collector() {
    let bench = Bench::new();
    let file = bench.join("stopped");
    // Who continues it waits until it stands still.
    let script = "(until grep -q '^State:.T' /proc/$$/status; do :; done; sleep 0.4; kill -CONT $$) & \
                  kill -STOP $$; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
    let ran = lightfoot()
        .args(["trace", "--every", "5ms", "--hardware", "task-clock", "--collector", "signal", "-o"])
        .arg(&file)
        .args(["--", "sh", "-c", script])
        .run();
    if ran.said().contains("perf_event") {
        return eprintln!("skipped: {}", ran.said());
    }
    ran.ends_with(0);
    let trace = decode(&std::fs::read(&file).unwrap()).unwrap();
    sound(&trace);
    let most = trace.records.iter().max_by_key(|record| record.missed_ticks).unwrap();
    assert!(most.missed_ticks >= 20 && most.dt > 200_000_000, "{most:?}");
}

/// What a kill that nobody can catch leaves behind.
fn killed(bench: &Bench, options: &[&str], program: &Path) -> Option<Trace> {
    let file = bench.join("killed.lft");
    let partial = bench.join("killed.lft.partial");
    let mut command = std::process::Command::new(bench::BINARY);
    command.arg("trace").args(options).arg("-o").arg(&file).arg(program);
    let mut child =
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let late = std::time::Instant::now() + PATIENCE;
    let read = || std::fs::read(&partial).ok().and_then(|bytes| decode(&bytes).ok());
    while read().is_none_or(|trace| trace.records.len() < 3) {
        if child.try_wait().unwrap().is_some() {
            let said = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
            assert!(said.contains("perf_event"), "ended too early: {said}");
            eprintln!("skipped: {said}");
            return None;
        }
        assert!(std::time::Instant::now() < late, "no record came");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!file.exists(), "a file appears when it is whole");
    let used = lightfoot().arg("align").args([&partial, &partial]).run();
    used.ends_with(0).says("the measurement was killed").says("records are used");
    let trace = read();
    std::fs::remove_file(&partial).unwrap();
    trace
}

#[test]
fn a_killed_measurement_leaves_what_it_saw() {
    let bench = Bench::new();
    // It ends by itself where nobody ends it: a native program outlives its observer, and then has
    // another parent.
    let source = "#include <unistd.h>\nvolatile long x; \
                  int main(void) { pid_t observer = getppid(); while (getppid() == observer) for (int i = 0; i < 1000000; i++) x++; }";
    let Some(program) = compile(&bench, "endless", &[], source) else { return };
    let simulated = killed(&bench, &["--every", "1e6instructions"], &program).unwrap();
    assert_eq!(simulated.end, None);
    assert!(simulated.records[1].values[0].delta.unwrap() > 900_000);
    for collector in ["host", "signal"] {
        let options = ["--every", "5ms", "--hardware", "task-clock,page-faults", "--collector", collector];
        if let Some(native) = killed(&bench, &options, &program) {
            assert_eq!(native.end, None);
            assert!(native.cut.unwrap().why.contains("no end"));
        }
    }
}
