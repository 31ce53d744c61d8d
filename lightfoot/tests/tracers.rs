//! Programs that trace others, under `--follow-children`: whom they trace runs natively, and a
//! warning names it; output and status are those of a native run.

mod bench;

use bench::{compile, json, lightfoot, Bench};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs `words` natively and followed, and compares; the report, or `None` where this system lacks
/// the program.
fn followed(bench: &Bench, command: &str, words: &[&str]) -> Option<Value> {
    let native =
        Command::new(words[0]).args(&words[1..]).current_dir(bench.path()).stdin(Stdio::null()).output();
    let Ok(native) = native else {
        eprintln!("skipped: there is no {:?} here", words[0]);
        return None;
    };
    let report = bench.join("report.json");
    let ran = lightfoot()
        .args([command, "--follow-children", "--format", "json", "-o"])
        .arg(&report)
        .arg("--")
        .args(words)
        .within(bench.path())
        .run();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(text(&ran.stdout), text(&native.stdout), "{command} {words:?}: {}", ran.said());
    assert_eq!(ran.said(), text(&native.stderr), "{command} {words:?}");
    assert_eq!(Some(ran.status), native.status.code(), "{command} {words:?}");
    Some(json(&std::fs::read(report).unwrap()))
}

#[track_caller]
fn warns(report: &Value, words: &str) {
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains(words), "no \"{words}\" in {warnings}");
}

/// Traces a child that asks for it, by `fork` and by `vfork`; children that run, sleep and have
/// threads, by attaching and seizing; a child that stands in a group stop. Says what it sees.
const TRACER: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile long sink;
static void say(const char *what, int pid) {
    int status = 0, got = waitpid(pid, &status, __WALL);
    printf("%s: %d stopped %d exited %d killed %d event %d\n", what, got == pid,
           WIFSTOPPED(status) ? WSTOPSIG(status) : 0, WIFEXITED(status) ? WEXITSTATUS(status) : -1,
           WIFSIGNALED(status) ? WTERMSIG(status) : 0, status >> 16);
}
static void *turn(void *p) { for (;;) sink++; }
static void handler(int n) { _exit(50 + n); }
int main(void) {
    setbuf(stdout, 0);
    int pid = fork();
    if (!pid) {
        if (ptrace(PTRACE_TRACEME, 0, 0, 0)) _exit(99);
        raise(SIGSTOP);
        for (int i = 0; i < 1000; i++) sink++;
        _exit(11);
    }
    say("traced", pid);
    struct user_regs_struct r;
    printf("registers %ld, gs %llu\n", ptrace(PTRACE_GETREGS, pid, 0, &r), r.gs_base);
    int steps = 0;
    for (; steps < 500; steps++) {
        ptrace(PTRACE_SINGLESTEP, pid, 0, 0);
        int status;
        waitpid(pid, &status, 0);
        if (!WIFSTOPPED(status)) break;
    }
    printf("steps %d\n", steps);
    ptrace(PTRACE_CONT, pid, 0, 0);
    say("goes on", pid);
    if (!(pid = vfork())) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        execl("/bin/sh", "sh", "-c", "exit 12", (char *)0);
        _exit(98);
    }
    say("executed", pid);
    ptrace(PTRACE_CONT, pid, 0, 0);
    say("goes on", pid);
    for (int kind = 0; kind < 3; kind++) {
        signal(SIGUSR1, handler);
        if (!(pid = fork())) {
            pthread_t thread;
            if (kind > 0) pthread_create(&thread, 0, turn, 0);
            if (kind == 0) turn(0);
            for (;;) sleep(1000);
        }
        usleep(20000);
        printf("attached %ld\n", ptrace(PTRACE_ATTACH, pid, 0, 0));
        say("attached", pid);
        printf("poked %ld\n", ptrace(PTRACE_CONT, pid, 0, kind == 2 ? SIGKILL : SIGUSR1));
        say("goes on", pid);
    }
    if (!(pid = fork())) { raise(SIGSTOP); _exit(13); }
    int status;
    waitpid(pid, &status, WUNTRACED);
    printf("stopped %d, seized %ld\n", WIFSTOPPED(status), ptrace(PTRACE_SEIZE, pid, 0, 0));
    kill(pid, SIGCONT);
    do waitpid(pid, &status, __WALL); while (WIFSTOPPED(status) && !ptrace(PTRACE_CONT, pid, 0, WSTOPSIG(status) == SIGTRAP || WSTOPSIG(status) == SIGSTOP ? 0 : WSTOPSIG(status)));
    printf("ended %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    printf("self %ld %d\n", ptrace(PTRACE_ATTACH, getpid(), 0, 0), errno);
    return 9;
}
"#;

#[test]
fn whom_a_followed_program_traces_runs_natively() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "tracer", &[], TRACER) else { return };
    let program = program.to_str().unwrap();
    for command in ["count", "cache"] {
        let report = followed(&bench, command, &[program]).unwrap();
        warns(&report, "other processes of the run trace them");
        assert_eq!(report["partial"], false);
        assert_eq!(report["processes"].as_array().unwrap().len(), 7);
        assert!(report["processes"][0]["instructions"].as_u64().unwrap() > 10_000);
    }
}

#[test]
fn strace_sees_what_it_sees_natively() {
    let bench = Bench::new();
    let words =
        ["strace", "-f", "-e", "trace=exit_group,execve", "-qq", "-o", "log", "sh", "-c", "true; exit 4"];
    let Some(report) = followed(&bench, "count", &words) else { return };
    warns(&report, "(strace)");
    // The native run wrote the file first, and this one over it.
    let log = std::fs::read_to_string(bench.join("log")).unwrap();
    assert!(log.contains("exit_group(4)"), "{log}");
}

#[test]
fn a_debugger_sees_what_it_sees_natively() {
    let bench = Bench::new();
    let source = "int three(int a){return a*3;}int main(void){return three(4);}";
    let Some(program) = compile(&bench, "debugged", &["-g", "-O0"], source) else { return };
    let commands = ["set startup-with-shell off", "break three", "run", "bt", "finish", "continue"];
    let mut words = vec!["gdb", "-batch", "-nx"];
    commands.iter().for_each(|command| words.extend(["-ex", command]));
    words.push(program.to_str().unwrap());
    if Command::new("gdb").arg("--version").output().is_err() {
        return eprintln!("skipped: there is no gdb here");
    }
    let ran =
        lightfoot().args(["count", "--follow-children", "--format", "json", "-o"]).arg(bench.join("report"));
    let ran = ran.arg("--").args(&words).run();
    ran.ends_with(0);
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(
        said.contains("Value returned is $1 = 12") && said.contains("exited with code 014"),
        "{said} {}",
        ran.said()
    );
    warns(&json(&std::fs::read(bench.join("report")).unwrap()), "trace them (ptrace)");
}

/// Whether a process is traced, and what it runs; `None` when it has ended.
fn state(pid: &str) -> Option<(bool, String)> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    if status.contains("State:\tZ") {
        return None;
    }
    let name = status.lines().find_map(|line| line.strip_prefix("Name:"))?.trim().to_owned();
    Some((!status.lines().any(|line| line == "TracerPid:\t0"), name))
}

fn kill(pid: &str, signal: &str) {
    let _ = Command::new("sh").args(["-c", &format!("kill -{signal} {pid}")]).status();
}

#[test]
fn a_daemon_that_is_left_behind_runs_on_natively() {
    let words = ["sh", "-c", "sleep 997 >/dev/null 2>&1 & echo $!; exit 3"];
    for command in ["count", "cache"] {
        let ran =
            lightfoot().args([command, "--follow-children", "--format", "json", "--"]).args(words).run();
        ran.ends_with(3);
        let pid = String::from_utf8_lossy(&ran.stdout).trim().to_owned();
        let found = state(&pid);
        kill(&pid, "KILL");
        assert_eq!(found, Some((false, "sleep".into())), "{command}");
        let report = json(&ran.stderr);
        warns(&report, &format!("process {pid} (sleep) still ran after the program had ended"));
        assert_eq!((&report["exit_status"], &report["partial"]), (&3.into(), &false.into()));
        assert!(report["processes"].as_array().unwrap().iter().any(|p| p["command"][0] == "sleep"));
    }
}

#[test]
fn processes_that_end_soon_are_waited_for_and_all_on_demand() {
    let soon = ["count", "--follow-children", "--", "bash", "-c", "(sleep 0.3; echo late) & exec true"];
    let ran = lightfoot().args(soon).run();
    ran.ends_with(0);
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "late\n");
    assert!(!ran.said().contains("still ran"), "{}", ran.said());
    let later =
        ["count", "--follow-children", "--wait-all", "--", "sh", "-c", "(sleep 3; echo later) & exit 2"];
    let ran = lightfoot().args(later).run();
    ran.ends_with(2);
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "later\n");
    assert!(!ran.said().contains("still ran"), "{}", ran.said());
    lightfoot().args(["count", "--wait-all", "true"]).run().fails_with(125).says("--follow-children");
}

/// A daemon: one thread computes for ever and checks itself, one sleeps, one handles signals that a
/// timer sends. Told so by a signal, it writes whether all was right and ends.
const DAEMON: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static volatile int ends, wrong;
static volatile unsigned rounds, naps;
static volatile long ticks;
static unsigned long chain(void) {
    static volatile unsigned long seed = 88172645463325252ul;
    unsigned long x = seed;
    for (int i = 0; i < 200000; i++) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; }
    return x;
}
static void tick(int n) { ticks++; }
static void end(int n) { ends = 1; }
static void *compute(void *p) {
    unsigned long first = chain();
    while (!ends) { if (chain() != first) wrong = 1; rounds++; }
    return 0;
}
static void *nap(void *p) {
    while (!ends) { struct timespec t = {0, 3000000}; nanosleep(&t, 0); naps++; }
    return 0;
}
int main(int count, char **words) {
    if (fork()) _exit(4);
    setsid();
    // Whoever reads what the program says must not wait for what it leaves behind.
    int nothing = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; fd++) dup2(nothing, fd);
    signal(SIGALRM, tick);
    signal(SIGTERM, end);
    pthread_t a, b;
    pthread_create(&a, 0, compute, 0);
    pthread_create(&b, 0, nap, 0);
    struct itimerval every = {{0, 2000}, {0, 2000}};
    char name[4096];
    snprintf(name, sizeof name, "%s.pid", words[1]);
    int file = open(name, O_CREAT | O_WRONLY, 0644);
    dprintf(file, "%d\n", getpid());
    close(file);
    setitimer(ITIMER_REAL, &every, 0);
    while (!ends) pause();
    pthread_join(a, 0);
    pthread_join(b, 0);
    file = open(words[1], O_CREAT | O_WRONLY, 0644);
    dprintf(file, "wrong %d computed %d napped %d ticked %d\n", wrong, rounds > 0, naps > 0, ticks > 0);
    return 0;
}
"#;

fn daemon_of(program: &Path, command: &str, bench: &Bench) {
    let said = bench.join(command);
    let ran = lightfoot().args([command, "--follow-children", "--"]).arg(program).arg(&said).run();
    ran.ends_with(4).says("daemon) still ran after the program had ended");
    let pid = std::fs::read_to_string(bench.join(&format!("{command}.pid"))).unwrap().trim().to_owned();
    assert_eq!(state(&pid).map(|(traced, _)| traced), Some(false), "{command}");
    std::thread::sleep(std::time::Duration::from_millis(300));
    kill(&pid, "TERM");
    let late = std::time::Instant::now() + bench::PATIENCE;
    while state(&pid).is_some() && std::time::Instant::now() < late {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let text = std::fs::read_to_string(said).unwrap_or_default();
    assert_eq!(text, "wrong 0 computed 1 napped 1 ticked 1\n", "{command}");
}

#[test]
fn a_busy_daemon_with_threads_and_timers_computes_on_rightly() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "daemon", &[], DAEMON) else { return };
    for command in ["count", "cache"] {
        daemon_of(&program, command, &bench);
    }
}
