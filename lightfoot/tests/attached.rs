//! Running programs: `--pid` enters them, counts what they do meanwhile, and leaves them as they
//! were.

mod bench;

use bench::{compile, json, lightfoot, signal, Bench};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Obeys letters on standard input: `w` works (200,002 instructions in `work`), `f` forks a child
/// that says whether it finds memory that is not the program's, `h` raises a signal with a handler,
/// and `q` ends with status 7.
const SERVER: &str = r#"
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
void work(void);
__asm__(".globl work\n.type work,@function\nwork:\nmov $100000,%ecx\n1:dec %ecx\njnz 1b\nret\n.size work,.-work\n");
static volatile int handled;
static void handle(int s) { handled++; }
static int strangers(void) {
    char line[512]; int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps)) found += strstr(line, "memfd") != 0;
    return found;
}
int main(void) {
    signal(SIGUSR1, handle);
    puts("ready"); fflush(stdout);
    for (char c; read(0, &c, 1) == 1;) {
        if (c == 'q') break;
        if (c == 'w') work();
        if (c == 'h') raise(SIGUSR1);
        int status = 0;
        if (c == 'f') {
            pid_t child = fork();
            if (!child) _exit(strangers());
            waitpid(child, &status, 0);
        }
        printf("%c %d %d\n", c, handled, status); fflush(stdout);
    }
    return 7;
}
"#;

/// Threads that wait in every way, one of which blocks all signals, threads that are born and die,
/// and a timer that interrupts the first one. Says at its end how many waits ended as natively none
/// does.
const WAITERS: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
enum { SLEEP, POLL, EPOLL, PIPE, FUTEX, TIMED, SPIN, BIRTH, SPAWN, KINDS };
static volatile int over;
static int pipes[2], never[2], bad[KINDS];
static volatile long rounds[KINDS], ticks;
static sem_t posted;
static void tick(int s) { ticks++; }
static void *born(void *a) { return (void *)((long)a + 1); }
static long now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000 + t.tv_nsec / 1000000; }
static void *wait_for(void *kind_) {
    int kind = (long)kind_;
    int set = epoll_create1(0);
    struct epoll_event event = { .events = EPOLLIN };
    epoll_ctl(set, EPOLL_CTL_ADD, never[0], &event);
    sigset_t none; sigemptyset(&none); sigaddset(&none, SIGUSR2);
    if (kind == FUTEX) { sigset_t all; sigfillset(&all); pthread_sigmask(SIG_BLOCK, &all, 0); }
    while (!over) {
        struct timespec short_time = { 0, 3000000 };
        char c; void *got; long begun = now();
        switch (kind) {
        case SLEEP: bad[kind] += nanosleep(&short_time, 0) != 0 || now() - begun < 2; break;
        case POLL: { struct pollfd p = { never[0], POLLIN, 0 }; bad[kind] += poll(&p, 1, 3) != 0 || now() - begun < 2; break; }
        case EPOLL: bad[kind] += epoll_wait(set, &event, 1, 3) != 0; break;
        case PIPE: bad[kind] += read(pipes[0], &c, 1) != 1; break;
        case FUTEX: bad[kind] += sem_wait(&posted) != 0; break;
        case TIMED: bad[kind] += sigtimedwait(&none, 0, &short_time) != -1 || errno != EAGAIN; break;
        case SPIN: for (volatile int i = 0; i < 5000; i++); usleep(500); sem_post(&posted); if (write(pipes[1], "x", 1) != 1) bad[kind]++; break;
        case BIRTH: { pthread_t t; bad[kind] += pthread_create(&t, 0, born, (void *)41L) != 0; pthread_join(t, &got); bad[kind] += got != (void *)42L; usleep(300); break; }
        case SPAWN: { pid_t p = fork(); if (!p) _exit(5); int s; bad[kind] += waitpid(p, &s, 0) != p || WEXITSTATUS(s) != 5; usleep(20000); break; }
        }
        rounds[kind]++;
    }
    return 0;
}
int main(void) {
    pthread_t threads[KINDS]; sigset_t set, old; char c;
    if (pipe(pipes) || pipe(never)) return 1;
    sem_init(&posted, 0, 0);
    struct sigaction action = { .sa_handler = tick, .sa_flags = SA_RESTART };
    sigaction(SIGALRM, &action, 0);
    sigemptyset(&set); sigaddset(&set, SIGALRM); sigaddset(&set, SIGUSR2); sigaddset(&set, SIGCHLD);
    pthread_sigmask(SIG_BLOCK, &set, &old);
    for (long kind = 0; kind < KINDS; kind++) pthread_create(threads + kind, 0, wait_for, (void *)kind);
    pthread_sigmask(SIG_SETMASK, &old, 0);
    struct itimerval often = { { 0, 4000 }, { 0, 4000 } };
    setitimer(ITIMER_REAL, &often, 0);
    puts("ready"); fflush(stdout);
    while (read(0, &c, 1) == 1 && c != 'q') {
        printf("%ld", ticks);
        for (int kind = 0; kind < KINDS; kind++) printf(" %ld", rounds[kind]);
        puts(""); fflush(stdout);
    }
    over = 1;
    for (int i = 0; i < 10; i++) { sem_post(&posted); if (write(pipes[1], "xx", 2) != 2) return 2; }
    for (int kind = 0; kind < KINDS; kind++) pthread_join(threads[kind], 0);
    for (int kind = 0; kind < KINDS; kind++) printf("%d ", bad[kind]);
    puts("bad"); fflush(stdout);
    return 0;
}
"#;

/// A program that runs natively, with its standard streams.
struct Running {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Running {
    /// Starts it and waits until it is ready.
    fn start(program: &Path) -> Running {
        let mut command = Command::new(program);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut running = Running { child, input, output };
        assert_eq!(running.line(), "ready\n");
        running
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line
    }

    /// Sends a letter and returns the answer.
    fn ask(&mut self, letter: &str) -> String {
        self.input.write_all(letter.as_bytes()).unwrap();
        self.line()
    }

    /// Ends it; returns what it still says and its status.
    fn quit(mut self) -> (String, Option<i32>) {
        self.input.write_all(b"q").unwrap();
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        (rest, self.child.wait().unwrap().code())
    }

    /// Its mappings.
    fn maps(&self) -> String {
        std::fs::read_to_string(format!("/proc/{}/maps", self.pid())).unwrap()
    }

    /// Its mappings and descriptors, while nothing changes them.
    fn state(&self) -> (String, Vec<String>) {
        let folder = format!("/proc/{}", self.pid());
        let fds = std::fs::read_dir(format!("{folder}/fd")).unwrap().map(|fd| {
            let path = fd.unwrap().path();
            format!("{path:?} {:?}", std::fs::read_link(&path).unwrap())
        });
        let mut fds: Vec<String> = fds.collect();
        fds.sort();
        (self.maps(), fds)
    }

    /// Signals that it blocks, ignores and handles, and who traces it.
    fn signals(&self) -> Vec<String> {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let wanted = |line: &&str| {
            line.starts_with("Sig") && !line.starts_with("SigQ") || line.starts_with("TracerPid")
        };
        text.lines().filter(wanted).map(str::to_owned).collect()
    }
}

/// A measurement that goes on until it is interrupted.
struct Measuring {
    child: Child,
    report: std::path::PathBuf,
}

impl Measuring {
    /// Begins to measure, and waits until the engine is in the program.
    fn begin(bench: &Bench, program: &Running, words: &[&str]) -> Measuring {
        let report = bench.join("report.json");
        let mut command = Command::new("env");
        command.arg("--default-signal=INT").arg(env!("CARGO_BIN_EXE_lightfoot")).args(words);
        command.args(["--format", "json", "--pid", &program.pid(), "-o"]).arg(&report);
        let child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        until(|| program.maps().matches("memfd").count() == 6);
        Measuring { child, report }
    }

    fn interrupt(&self) {
        let pid = rustix::process::Pid::from_raw(self.child.id() as i32).unwrap();
        rustix::process::kill_process(pid, signal("INT")).unwrap();
    }

    fn report(self) -> serde_json::Value {
        let ran = self.child.wait_with_output().unwrap();
        assert_eq!(ran.status.code(), Some(0), "{}", String::from_utf8_lossy(&ran.stderr));
        json(&std::fs::read(&self.report).unwrap())
    }
}

/// Waits until something holds, for at most a minute.
fn until(holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it does not come to pass");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn instructions_of(report: &serde_json::Value, function: &str) -> u64 {
    let all = report["functions"].as_array().unwrap();
    let rows = all.iter().filter(|row| row["name"] == function);
    rows.map(|row| row["instructions"].as_u64().unwrap()).sum()
}

fn server(bench: &Bench) -> Option<Running> {
    compile(bench, "server", &["-O1"], SERVER).map(|program| Running::start(&program))
}

#[test]
fn work_between_entry_and_exit_is_counted_exactly() {
    let bench = Bench::new();
    let Some(mut program) = server(&bench) else { return };
    let before = (program.state(), program.signals());
    for words in [&["count"][..], &["cache", "--machine", "cachegrind"], &["count", "--by", "line"]] {
        assert_eq!(program.ask("w").as_bytes()[0], b'w');
        let measuring = Measuring::begin(&bench, &program, words);
        for letter in ["w", "h", "w", "f", "w"] {
            assert!(program.ask(letter).starts_with(letter));
        }
        // The second request changes nothing.
        measuring.interrupt();
        measuring.interrupt();
        let report = measuring.report();
        assert_eq!(program.ask("w").as_bytes()[0], b'w');
        assert_eq!(instructions_of(&report, "work"), 3 * 200_002, "{words:?}");
        assert_eq!(report["attached"]["runs_on"], true);
        assert_eq!(report["exit_status"], 0);
        assert!(report["command"][0].as_str().unwrap().ends_with("/server"), "{}", report["command"]);
        assert_eq!((program.state(), program.signals()), before, "{words:?}");
    }
    assert_eq!(program.ask("h"), "h 4 0\n", "each signal has come once");
    assert_eq!(program.ask("f"), "f 4 0\n");
    assert_eq!(program.quit(), (String::new(), Some(7)));
}

#[test]
fn a_child_of_the_program_has_nothing_of_the_engine() {
    let bench = Bench::new();
    let Some(mut program) = server(&bench) else { return };
    let measuring = Measuring::begin(&bench, &program, &["count"]);
    assert_eq!(program.ask("f"), "f 0 0\n", "the child finds no memory that is not its own");
    measuring.interrupt();
    measuring.report();
    assert_eq!(program.quit().1, Some(7));
}

#[test]
fn a_program_that_ends_meanwhile_is_measured_to_its_end() {
    let bench = Bench::new();
    let Some(mut program) = server(&bench) else { return };
    let measuring = Measuring::begin(&bench, &program, &["count"]);
    program.ask("w");
    assert_eq!(program.quit(), (String::new(), Some(7)), "its parent gets its status");
    let report = measuring.report();
    assert_eq!(report["attached"]["runs_on"], false);
    assert_eq!(instructions_of(&report, "work"), 200_002);
}

#[test]
fn threads_that_wait_notice_nothing_however_often_they_are_measured() {
    const TIMES: usize = 25;
    let bench = Bench::new();
    let Some(program) = compile(&bench, "waiters", &["-O1", "-pthread"], WAITERS) else { return };
    let mut program = Running::start(&program);
    // All threads have begun.
    while program.ask("s").split_whitespace().any(|rounds| rounds == "0") {
        std::thread::sleep(Duration::from_millis(2));
    }
    let (signals, fds) = (program.signals(), program.state().1);
    let mut before = program.ask("s");
    for time in 0..TIMES {
        let words = if time % 5 == 4 { &["cache", "--machine", "cachegrind"][..] } else { &["count"] };
        let window = format!("{}ms", 5 + 20 * (time % 4));
        let ran = lightfoot().args(words).args(["--pid", &program.pid(), "--for", &window]).run();
        ran.ends_with(0).says("runs on");
        // All threads go on after each measurement.
        let after = program.ask("s");
        let rounds =
            |line: &str| -> Vec<u64> { line.split_whitespace().map(|word| word.parse().unwrap()).collect() };
        let old = rounds(&std::mem::replace(&mut before, after));
        let begun = Instant::now();
        loop {
            let new = rounds(&program.ask("s"));
            if new.iter().zip(&old).all(|(new, old)| new > old) {
                break;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "after {time} measurements: {old:?}, {new:?}");
            std::thread::sleep(Duration::from_millis(2));
        }
        assert!(!program.state().0.contains("memfd"), "after {time} measurements");
    }
    assert_eq!((program.signals(), program.state().1), (signals, fds));
    assert_eq!(program.quit(), ("0 0 0 0 0 0 0 0 0 bad\n".into(), Some(0)));
}

/// A trace of a running program that goes on until it is interrupted.
fn trace(bench: &Bench, program: &mut Running, words: &[&str], work: usize) -> serde_json::Value {
    let file = bench.join("trace.json");
    let before = program.state();
    let mut command = Command::new("env");
    command.arg("--default-signal=INT").arg(env!("CARGO_BIN_EXE_lightfoot")).arg("trace").args(words);
    command.args(["--format", "json", "--pid", &program.pid(), "-o"]).arg(&file);
    let child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    // A native trace begins when its partial file is there, an engine's when it is in the program.
    let native = words.contains(&"native");
    let partial = bench.join("trace.json.partial");
    until(|| partial.exists() && (native || program.maps().matches("memfd").count() == 6));
    (0..work).for_each(|_| assert!(program.ask("w").starts_with('w')));
    let pid = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
    rustix::process::kill_process(pid, signal("INT")).unwrap();
    let ran = child.wait_with_output().unwrap();
    assert_eq!(ran.status.code(), Some(0), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(program.state(), before, "it is left as it was");
    json(&std::fs::read(&file).unwrap())
}

/// The total of a metric of a trace, which is the sum of its records.
fn total(trace: &serde_json::Value, name: &str) -> u64 {
    let metrics = trace["header"]["metrics"].as_array().unwrap();
    let column = metrics.iter().position(|metric| metric["name"] == name).unwrap();
    let total = trace["end"]["totals"][column].as_u64().unwrap();
    let of_record = |record: &serde_json::Value| record["values"][column]["delta"].as_u64().unwrap();
    let records = trace["records"].as_array().unwrap();
    assert_eq!(records.iter().map(of_record).sum::<u64>(), total, "{name}");
    total
}

#[test]
fn a_running_program_is_traced_under_the_engine() {
    let bench = Bench::new();
    let Some(mut program) = server(&bench) else { return };
    for engine in ["jit", "simulated"] {
        let software = if engine == "jit" { "--software" } else { "--uncharged" };
        let words = ["--engine", engine, "--every", "100000instructions", software, "fn:work"];
        let trace = trace(&bench, &mut program, &words, 3);
        assert_eq!(total(&trace, "fn:work"), 3, "{engine}");
        let executed = total(&trace, "instructions");
        assert!((600_006..700_000).contains(&executed), "{engine}: {executed}");
        assert!(trace["records"].as_array().unwrap().len() > 5, "{engine}");
        let notes = trace["header"]["notes"].to_string();
        assert!(notes.contains("stood still"), "{notes}");
    }
    assert_eq!(program.quit().1, Some(7));
}

#[test]
fn a_running_program_is_traced_natively_with_all_its_threads() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "waiters", &["-O1", "-pthread"], WAITERS) else { return };
    let mut program = Running::start(&program);
    while program.ask("s").split_whitespace().any(|rounds| rounds == "0") {
        std::thread::sleep(Duration::from_millis(2));
    }
    let file = bench.join("native.json");
    let words = ["--pid", &program.pid(), "--for", "300ms", "--every", "20ms"];
    let events = ["--hardware", "task-clock,context-switches", "--format", "json", "-o"];
    let ran = lightfoot().arg("trace").args(words).args(events).arg(&file).run();
    if ran.said().contains("kernel.perf_event_paranoid") {
        println!("skipped: the kernel's counters are not allowed here");
        return;
    }
    ran.ends_with(0);
    let trace = json(&std::fs::read(&file).unwrap());
    let records = trace["records"].as_array().unwrap();
    assert!((2..=16).contains(&records.len()), "{} records", records.len());
    // Its threads sleep some hundred times a second each; the first one alone never does.
    assert!(total(&trace, "context-switches") > 30, "{}", trace["end"]);
    assert!(total(&trace, "task-clock") > 0);
    assert_eq!(trace["end"]["exit_status"], 0);
    assert!(program.ask("s").len() > 1, "it runs on");
    assert_eq!(program.quit(), ("0 0 0 0 0 0 0 0 0 bad\n".into(), Some(0)));
}

#[test]
fn a_native_trace_ends_with_its_program() {
    let bench = Bench::new();
    let Some(program) = server(&bench) else { return };
    let file = bench.join("ended.lft");
    let command = lightfoot().args(["trace", "--pid", &program.pid(), "--every", "5ms", "-o"]).arg(&file);
    let ran = std::thread::scope(|scope| {
        let tracing = scope.spawn(move || command.run());
        until(|| bench.join("ended.lft.partial").exists() || tracing.is_finished());
        assert_eq!(program.quit().1, Some(7));
        tracing.join().unwrap()
    });
    if !ran.said().contains("kernel.perf_event_paranoid") {
        ran.ends_with(0).says("has ended");
    }
}

#[test]
fn calls_of_a_running_program_are_followed() {
    let bench = Bench::new();
    let Some(mut program) = server(&bench) else { return };
    let measuring = Measuring::begin(&bench, &program, &["count", "--by", "call"]);
    (0..3).for_each(|_| assert!(program.ask("w").starts_with('w')));
    measuring.interrupt();
    let report = measuring.report();
    let rows = report["rows"].as_array().unwrap();
    let called = |row: &&serde_json::Value| row["name"].as_str().is_some_and(|name| name.ends_with("→ work"));
    let of_work = rows.iter().find(called).unwrap_or_else(|| panic!("{rows:?}"));
    assert_eq!((of_work["calls"].as_u64(), of_work["instructions"].as_u64()), (Some(3), Some(600_006)));
    assert_eq!(program.quit().1, Some(7));
}

#[test]
fn what_a_running_process_has_no_trace_of_is_refused() {
    let own = std::process::id().to_string();
    let refused = |words: &[&str], sentence: &str| {
        lightfoot()
            .args(["trace", "-o", "/dev/null", "--pid", &own])
            .args(words)
            .run()
            .ends_with(125)
            .says(sentence);
    };
    refused(&["--engine", "probe", "--software", "fn:main"], "probes are written before a program starts");
    refused(&["--every", "1e6instructions", "--software", "fn:main"], "--uncharged");
    refused(&["--collector", "signal"], "leave --collector out");
    refused(&["--engine", "native", "--every", "1e6instructions"], "--every 10ms");
    lightfoot()
        .args(["trace", "-o", "/dev/null", "--pid", "0"])
        .run()
        .ends_with(125)
        .says("there is no process 0");
}

#[test]
fn what_cannot_be_measured_is_refused_in_a_sentence() {
    let bench = Bench::new();
    let Some(mut program) = server(&bench) else { return };
    let refused = |pid: &str, words: &str| {
        let ran = lightfoot().args(["count", "--for", "1s", "--pid", pid]).run();
        assert_ne!(ran.status, 0);
        ran.says(words).in_one_line();
    };
    refused("2147483647", "no process has the number 2147483647");
    let data = ["cache", "--by", "object", "--for", "1s", "--pid", "2147483647"];
    lightfoot().args(data).run().says("no process has the number 2147483647").in_one_line();
    // A process that is measured already.
    let measuring = Measuring::begin(&bench, &program, &["count"]);
    refused(&program.pid(), "(lightfoot) traces it already: end that first");
    measuring.interrupt();
    measuring.report();
    // A stopped one, which stays stopped.
    let pid = rustix::process::Pid::from_raw(program.child.id() as i32).unwrap();
    rustix::process::kill_process(pid, signal("STOP")).unwrap();
    let state = || std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap();
    until(|| state().contains(") T "));
    refused(&program.pid(), &format!("'kill -CONT {}'", program.pid()));
    assert!(state().contains(") T "));
    rustix::process::kill_process(pid, signal("CONT")).unwrap();
    assert_eq!(program.ask("w"), "w 0 0\n");
    // One that has ended and was not waited for.
    program.input.write_all(b"q").unwrap();
    until(|| state().contains(") Z "));
    refused(&program.pid(), "only its status is left for its parent");
    assert_eq!(program.child.wait().unwrap().code(), Some(7));
    for words in [
        &["count", "--for", "1s", "true"][..],
        &["count", "--pid", "1", "true"],
        &["count", "--pid", "1", "--for", "2"],
    ] {
        assert_ne!(lightfoot().args(words).run().status, 0, "{words:?}");
    }
}
