//! Probed runs as a user makes them: whatever the layout, threads, children, programs that are
//! executed and libraries that come later are counted exactly, what cannot be counted is said, and
//! a stopped program shows.

mod bench;

use bench::{compile, lightfoot, signal, Bench};
use instrument::Command;
use lightfoot::run::hierarchy::Hierarchy;
use lightfoot::trace::metric::Spec;
use lightfoot::trace::{run, Engine, Request};
use machine::Machine;
use measure::trace::{check, decode, Interval, Layout, Trace, Unit};
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

fn request(program: &Path, arguments: &[&Path], software: &str, layout: Layout) -> Request {
    let arguments = arguments.iter().map(|path| OsString::from(path.as_os_str())).collect();
    let command = Command { program: program.into(), arguments };
    let interval = Interval { length: 2_000_000, unit: Unit::Nanoseconds };
    let machine = Hierarchy::of(Machine::preset("cachegrind").unwrap()).unwrap();
    let software = Spec::list(software).unwrap();
    Request { engine: Engine::Probe, software, layout, ..Request::simulated(command, interval, machine) }
}

/// The trace, unless the kernel's counters, which go with it, are refused here.
fn traced(request: &Request) -> Option<Trace> {
    match run(request) {
        Ok(trace) => {
            assert_eq!(check(&trace), Vec::<String>::new());
            Some(trace)
        }
        Err(error) if error.to_string().contains("perf_event") => {
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// The total at the end, which is the sum over the records.
fn total(trace: &Trace, name: &str) -> Option<u64> {
    let metric = trace.position(name).unwrap_or_else(|| panic!("no metric {name}"));
    let total = trace.end.as_ref().unwrap().totals[metric];
    assert_eq!(total, trace.sum(metric), "{name}");
    total
}

/// 64 threads, a fork that executes the program again, and one that does not.
const CROWD: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
volatile long sink;
__attribute__((noinline)) void work(void) { sink++; }
__attribute__((noinline)) void rare(void) { sink++; }
__attribute__((noinline)) void never(void) { sink++; }
static void *thread(void *p) { for (int i = 0; i < 20000; i++) work(); rare(); return 0; }
int main(int count, char **words) {
    if (count > 1) {
        for (int i = 0; i < 9; i++) work();
        rare();
        return 0;
    }
    pthread_t all[64];
    for (int i = 0; i < 64; i++) pthread_create(&all[i], 0, thread, 0);
    for (int i = 0; i < 64; i++) pthread_join(all[i], 0);
    if (fork() == 0) execl(words[0], words[0], "again", (char *)0);
    if (fork() == 0) { thread(0); _exit(0); }
    while (wait(0) > 0) {}
    return sink == 0 ? 4 : 3;
}
"#;

#[test]
fn every_layout_counts_threads_children_and_programs_exactly() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "crowd", &["-O1", "-pthread"], CROWD) else { return };
    for layout in [Layout::Packed, Layout::Line, Layout::Page, Layout::Seed(7)] {
        let Some(trace) = traced(&request(&program, &[], "fn:work,fn:rare,fn:never,fn:main", layout)) else {
            return;
        };
        let counts = ["fn:work", "fn:rare", "fn:never", "fn:main"].map(|name| total(&trace, name));
        assert_eq!(counts, [Some(65 * 20_000 + 9), Some(66), Some(0), Some(2)], "{layout:?}");
        assert_eq!(trace.end.as_ref().unwrap().exit_status, Some(3));
        assert_eq!(trace.header.counter_layout, Some(layout));
        assert_eq!(trace.header.notes.iter().filter(|note| note.contains("locked")).count(), 0);
    }
}

#[test]
fn another_program_is_named_by_its_path() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "crowd", &["-O1", "-pthread"], CROWD) else { return };
    let script = format!("for i in 1 2 3; do '{}' again; done", program.display());
    let script = bench.file("script", script.as_bytes(), 0o644);
    let software = format!("fn:{}!work", program.display());
    let Some(trace) = traced(&request(Path::new("/bin/sh"), &[&script], &software, Layout::Packed)) else {
        return;
    };
    assert_eq!(total(&trace, &software), Some(27));
}

#[test]
fn a_library_that_comes_later_is_counted_and_what_cannot_be_is_named() {
    let bench = Bench::new();
    let library = "int later(int x) { return x + 1; } int last(int x) { return later(x) * 2; }";
    let Some(library) = compile(&bench, "later.so", &["-O1", "-shared", "-fPIC"], library) else { return };
    let source = r#"
#include <dlfcn.h>
__asm__(".text\n.globl tiny\n.type tiny,@function\n.p2align 4\ntiny: xor %eax, %eax\n ret\n.size tiny,.-tiny\n.globl behind\n.type behind,@function\n"
        "behind: ret\n.size behind,.-behind\n");
int tiny(void);
int main(int count, char **words) {
    void *handle = dlopen(words[1], RTLD_NOW);
    int (*last)(int) = dlsym(handle, "last");
    int sum = tiny();
    for (int i = 0; i < 100; i++) sum += last(i);
    return sum == 10100 ? 3 : 4;
}
"#;
    let Some(program) = compile(&bench, "opener", &["-O1"], source) else { return };
    let path = library.display();
    let software = format!("fn:{path}!later,fn:{path}!last,fn:tiny");
    let Some(trace) = traced(&request(&program, &[&library], &software, Layout::Packed)) else { return };
    assert_eq!(trace.end.as_ref().unwrap().exit_status, Some(3));
    assert_eq!(total(&trace, &format!("fn:{path}!last")), Some(100));
    assert_eq!(total(&trace, "fn:tiny"), None);
    let notes = trace.header.notes.join("\n");
    assert!(notes.contains("fn:tiny is not counted: too short: 3 bytes"), "{notes}");
}

/// Calls a millisecond apart, until a file is there; the first line tells the process, the second
/// how many calls there were.
const SLOW: &str = r#"
#include <stdio.h>
#include <time.h>
#include <unistd.h>
volatile long sink;
__attribute__((noinline)) void work(void) { sink++; }
int main(int count, char **words) {
    printf("%d\n", getpid());
    fflush(stdout);
    struct timespec pause = { 0, 1000000 };
    while (access(words[1], F_OK)) { work(); nanosleep(&pause, 0); }
    printf("%ld\n", sink);
    return 3;
}
"#;

#[test]
fn a_stop_shows_as_missed_ticks_and_no_call_is_lost() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "slow", &["-O1"], SLOW) else { return };
    let (file, enough) = (bench.join("slow.lft"), bench.join("enough"));
    let job = lightfoot()
        .args(["trace", "--every", "10ms", "--engine", "probe", "--software", "fn:work", "-o"])
        .arg(&file)
        .args([&program, &enough])
        .start_job();
    if job.first_line().is_empty() {
        job.finish().says("perf_event");
        eprintln!("skipped: the kernel's counters are refused here");
        return;
    }
    // All of it, as a terminal stops a job: the collector comes late.
    std::thread::sleep(Duration::from_millis(100));
    job.signal("STOP");
    job.wait_until_stopped(true);
    std::thread::sleep(Duration::from_millis(400));
    job.signal("CONT");
    job.wait_until_stopped(false);
    // The program alone: the collector goes on, and sees that nothing happens.
    std::thread::sleep(Duration::from_millis(100));
    let pid = rustix::process::Pid::from_raw(job.first_line().trim().parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, signal("STOP")).unwrap();
    std::thread::sleep(Duration::from_millis(400));
    rustix::process::kill_process(pid, signal("CONT")).unwrap();
    std::fs::write(enough, "").unwrap();
    let ran = job.finish();
    ran.ends_with(3);
    let calls = String::from_utf8(ran.stdout).unwrap().lines().nth(1).unwrap().parse().unwrap();
    let trace = decode(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!((check(&trace), total(&trace, "fn:work")), (Vec::new(), Some(calls)));
    let late = trace.records.iter().max_by_key(|record| record.missed_ticks).unwrap();
    assert!(late.missed_ticks >= 20 && late.dt >= 200_000_000, "{late:?}");
    let work = trace.position("fn:work").unwrap();
    let mut quiet = (0, 0);
    for record in &trace.records {
        quiet.0 = if record.values[work].delta == Some(0) { quiet.0 + record.dt } else { 0 };
        quiet.1 = quiet.1.max(quiet.0);
    }
    assert!(quiet.1 >= 200_000_000, "{quiet:?}");
}
