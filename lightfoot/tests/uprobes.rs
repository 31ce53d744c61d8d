//! Uprobes: the kernel's count of calls is the program's own, across threads, children and programs
//! that it executes; what refuses them is named.

mod bench;

use bench::{compile, lightfoot, Bench};
use instrument::Command;
use lightfoot::run::hierarchy::Hierarchy;
use lightfoot::trace::metric::Spec;
use lightfoot::trace::{run, Engine, Request};
use machine::Machine;
use measure::trace::{check, Interval, Source, Trace, Unit};
use std::path::Path;

/// Eight threads and a forked child call `work`, then the program executes itself, which calls it
/// seven times more.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
volatile long sink;
__attribute__((noinline)) void work(void) { sink++; }
static void *thread(void *p) { for (int i = 0; i < 1000; i++) work(); return 0; }
int main(int count, char **words) {
    if (count > 1) {
        for (int i = 0; i < 7; i++) work();
        return 3;
    }
    pthread_t all[8];
    for (int i = 0; i < 8; i++) pthread_create(&all[i], 0, thread, 0);
    for (int i = 0; i < 8; i++) pthread_join(all[i], 0);
    if (fork() == 0) {
        for (int i = 0; i < 500; i++) work();
        _exit(0);
    }
    wait(0);
    execl(words[0], words[0], "again", (char *)0);
    return 4;
}
"#;

fn request(program: &Path, software: &str, engine: Engine) -> Request {
    let command = Command { program: program.into(), arguments: Vec::new() };
    let interval = Interval { length: 5_000_000, unit: Unit::Nanoseconds };
    let machine = Hierarchy::of(Machine::preset("cachegrind").unwrap()).unwrap();
    Request {
        engine,
        software: Spec::list(software).unwrap(),
        ..Request::simulated(command, interval, machine)
    }
}

/// The trace, unless this system has no uprobes for this user.
fn traced(request: &Request) -> Option<Trace> {
    match run(request) {
        Ok(trace) => Some(trace),
        Err(error) if error.to_string().contains("cannot count") => {
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn total(trace: &Trace, name: &str) -> Option<u64> {
    let metric = trace.position(name).unwrap_or_else(|| panic!("no metric {name}"));
    assert_eq!(trace.header.metrics[metric].source, Source::Software);
    trace.end.as_ref().unwrap().totals[metric]
}

#[test]
fn the_kernel_counts_threads_children_and_what_they_execute() {
    let bench = Bench::new();
    for name in ["prog", "a program"] {
        let Some(program) = compile(&bench, name, &["-pthread"], PROGRAM) else { return };
        let Some(trace) = traced(&request(&program, "fn:work,fn:main,fn:libc!fork", Engine::Uprobe)) else {
            return;
        };
        assert_eq!(check(&trace), Vec::<String>::new());
        assert_eq!(trace.end.as_ref().unwrap().exit_status, Some(3));
        assert_eq!(
            ["fn:work", "fn:main", "fn:libc!fork"].map(|name| total(&trace, name)),
            [Some(8507), Some(2), Some(1)]
        );
        let work = &trace.header.metrics[trace.position("fn:work").unwrap()];
        assert_eq!((work.mechanism.as_str(), trace.header.engine.as_str()), ("uprobe", "uprobe"));
    }
}

#[test]
fn what_the_system_refuses_is_said_with_the_setting_and_the_way_out() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "prog", &["-pthread"], PROGRAM) else { return };
    // A user namespace of its own: root in it, without any right over the kernel.
    let inside = std::process::Command::new("unshare").args(["-Ur", "true"]).output();
    if !inside.is_ok_and(|ran| ran.status.success()) {
        eprintln!("skipped: there is no unshare (util-linux) here, or no user namespaces");
        return;
    }
    let mut command = std::process::Command::new("unshare");
    command.args(["-Ur", bench::BINARY, "trace", "--every", "10ms", "--engine", "uprobe"]);
    command.args(["--software", "fn:work", "-o"]).arg(bench.join("x.lft")).arg(&program);
    let ran = command.output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(125), "{said}");
    let lines = said.lines().count();
    assert!(lines == 1 && said.contains("--engine probe") && said.contains("uprobe"), "{said}");
    let named = said.contains("kernel.perf_event_paranoid") && said.contains("CAP_SYS_ADMIN");
    assert!(named || said.contains("CONFIG_UPROBE_EVENTS"), "{said}");
    assert!(!bench.join("x.lft").exists());
}

#[test]
fn names_are_checked_before_the_kernel_is_asked() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "prog", &["-pthread"], PROGRAM) else { return };
    for engine in ["uprobe", "probe"] {
        let ran = lightfoot()
            .args(["trace", "--every", "10ms", "--engine", engine, "--software", "fn:wrok", "-o"])
            .arg(bench.join("x.lft"))
            .arg(&program)
            .run();
        ran.fails_with(125).in_one_line().says("there is no function wrok").says("did you mean fn:prog!work");
    }
}
