//! Nothing outlives its measurement: whatever ends lightfoot, and whatever the program does to the
//! engine's memory.
//!
//! A program that never ends by itself, with threads that turn, children that sleep and programs
//! that are executed again and again, is measured, and lightfoot is killed at a random moment of
//! it. What is left is found by a variable in its environment. `LIGHTFOOT_KILLS=1000 cargo test
//! --release -p lightfoot --test outlived` is the long version.

mod bench;

use bench::{compile, json, lightfoot, unwished, Bench, BINARY, PATIENCE};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Names a run's processes.
const MARK: &str = "LIGHTFOOT_TEST_OUTLIVED";
/// The program has made all of its processes by then, on an idle machine.
const LONGEST_MS: u64 = 600;

const ENDLESS: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile long sink;
static void *turn(void *p) { for (;;) sink++; }
int main(int count, char **words) {
    if (count > 1) return 3;
    pthread_t thread;
    pthread_create(&thread, 0, turn, 0);
    if (!fork()) turn(0);
    if (!fork()) for (;;) sleep(100);
    if (!fork()) execlp("sleep", "sleep", "1000", (char *)0);
    for (;;) {
        if (!fork()) _exit(1);
        if (!vfork()) { execl(words[0], words[0], "again", (char *)0); _exit(2); }
        while (waitpid(-1, 0, WNOHANG) > 0) {}
    }
}
"#;

/// Calls of probed functions, children, programs that are executed, a library that comes late; it
/// ends by itself.
const PROBED: &str = r#"
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
volatile long sink;
__attribute__((noinline)) void work(void) { sink++; }
static void *thread(void *p) { for (int i = 0; i < 1000; i++) work(); return 0; }
int main(int count, char **words) {
    int rounds = count > 1 ? atoi(words[1]) : 6;
    for (int round = 0; round < rounds; round++) {
        pthread_t other;
        pthread_create(&other, 0, thread, 0);
        void *library = dlopen("libm.so.6", RTLD_NOW);
        if (!fork()) { thread(0); _exit(0); }
        if (!fork()) execl(words[0], words[0], "0", (char *)0);
        pthread_join(other, 0);
        if (library) dlclose(library);
        while (wait(0) > 0) {}
    }
    return 0;
}
"#;

/// Processes that have `value` in their environment, by number and what they run.
fn marked(value: &str) -> Vec<(i32, String)> {
    let wanted = format!("{MARK}={value}");
    let has_it = |pid: &i32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes())
    };
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let all = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let name = |pid: i32| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        (pid, String::from_utf8_lossy(&words).replace('\0', " "))
    };
    all.filter(has_it).map(name).collect()
}

/// Kills everything that is marked; in a loop, because it may be forking.
fn sweep(value: &str) {
    while let left @ [_, ..] = &marked(value)[..] {
        for (pid, _) in left {
            let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
        }
    }
}

fn kills() -> u64 {
    std::env::var("LIGHTFOOT_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(200)
}

/// The next number of a row that looks random.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// Where `ptrace` is this one, lightfoot ends at a call of it that a variable numbers.
const ENDS_ITSELF: &str = r#"
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
long ptrace(long request, long pid, long address, long data) {
    static int calls;
    const char *last = getenv("LIGHTFOOT_TEST_LAST_CALL");
    if (last && ++calls == atoi(last)) kill(getpid(), SIGKILL);
    return syscall(SYS_ptrace, request, pid, address, data);
}
"#;

/// A measurement, with its mark.
fn measurement(words: &[&str], program: &Path, value: &str) -> Command {
    let mut command = Command::new(BINARY);
    unwished(&mut command).args(words).arg("--").arg(program);
    command.env(MARK, value).env("LIGHTFOOT_TRANSLATIONS", "off");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Kills a measurement `after` its start.
fn kill_one(words: &[&str], program: &Path, after: Duration, value: &str) {
    let mut child = measurement(words, program, value).spawn().unwrap();
    std::thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Lets a measurement end at its `last` call of `ptrace`.
fn kill_at(words: &[&str], program: &Path, last: u64, library: &Path, value: &str) {
    let mut command = measurement(words, program, value);
    command.env("LD_PRELOAD", library).env("LIGHTFOOT_TEST_LAST_CALL", last.to_string());
    let mut child = command.spawn().unwrap();
    let late = Instant::now() + PATIENCE;
    while child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < late, "{words:?} makes no {last} calls of ptrace");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Waits until nothing of the runs that are marked so is left.
#[track_caller]
fn until_gone(value: &str, what: &str) {
    let late = Instant::now() + PATIENCE;
    loop {
        let left = marked(value);
        if left.is_empty() {
            return;
        }
        if Instant::now() > late {
            sweep(value);
            panic!("{what}: {left:?} outlived it");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn nothing_outlives_a_killed_measurement() {
    let bench = Bench::new();
    let Some(endless) = compile(&bench, "endless", &[], ENDLESS) else { return };
    let library = compile(&bench, "ends.so", &["-shared", "-fPIC"], ENDS_ITSELF).unwrap();
    let (mut state, own) = (7, std::process::id());
    for n in 0..kills() {
        let words = [["count", "cache"][n as usize % 2], "--follow-children"];
        let value = format!("{own}-{n}");
        let moment = if n % 4 < 2 {
            let after = Duration::from_micros(next(&mut state) % (LONGEST_MS * 1000));
            kill_one(&words, &endless, after, &value);
            format!("after {after:?}")
        } else {
            let last = 1 + next(&mut state) % 500;
            kill_at(&words, &endless, last, &library, &value);
            format!("at call {last} of ptrace")
        };
        until_gone(&value, &format!("{words:?}, killed {moment}"));
    }
}

#[test]
fn a_program_does_not_start_when_its_measurement_ends_before_it_is_traced() {
    let bench = Bench::new();
    let Some(library) = compile(&bench, "ends.so", &["-shared", "-fPIC"], ENDS_ITSELF) else { return };
    let program = bench.file("starts", b"#!/bin/sh\ntouch \"$0.started\"\n", 0o755);
    for words in [&["count"][..], &["cache", "--follow-children"], &["tool", "opcode-mix"]] {
        let value = format!("{}-starts", std::process::id());
        kill_at(words, &program, 1, &library, &value);
        until_gone(&value, "a measurement that ended at once");
        assert!(!bench.join("starts.started").exists(), "{words:?}: it ran without being measured");
    }
    assert!(Command::new(&program).status().unwrap().success() && bench.join("starts.started").exists());
}

/// What has asked for something waits for an answer for a minute; all wait for it together.
#[test]
fn a_probed_program_goes_on_to_its_end_when_its_measurement_is_killed() {
    let bench = Bench::new();
    let Some(probed) = compile(&bench, "probed", &["-ldl"], PROBED) else { return };
    let metrics = "fn:work,fn:libc!malloc";
    let words = ["trace", "--engine", "probe", "--software", metrics, "--every", "2ms", "-o", "/dev/null"];
    let tried = lightfoot().args(words).arg("--").arg(&probed).run();
    if tried.status != 0 && tried.said().contains("perf_event") {
        return eprintln!("skipped: {}", tried.said());
    }
    tried.ends_with(0);
    let (mut state, value) = (11, format!("{}-probed", std::process::id()));
    for _ in 0..kills().div_ceil(4) {
        let after = Duration::from_micros(next(&mut state) % (LONGEST_MS * 1000));
        kill_one(&words, &probed, after, &value);
    }
    until_gone(&value, "a killed measurement by probes");
}

/// Makes children that ask not to be traced, in both ways.
const UNTRACED: &str = r#"
#define _GNU_SOURCE
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile long sink;
static void child(int status) { for (int i = 0; i < 100000; i++) sink++; _exit(status); }
int main(void) {
    int status;
    long pid = syscall(SYS_clone, CLONE_UNTRACED | SIGCHLD, 0, 0, 0, 0);
    if (!pid) child(7);
    waitpid(pid, &status, 0);
    printf("%d %d\n", WEXITSTATUS(status), WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    struct clone_args how = {.flags = CLONE_UNTRACED, .exit_signal = SIGCHLD};
    pid = syscall(SYS_clone3, &how, sizeof how);
    if (!pid) child(8);
    waitpid(pid, &status, 0);
    printf("%d %d\n", WEXITSTATUS(status), WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    return sink ? 1 : 5;
}
"#;

#[test]
fn a_child_that_asks_not_to_be_traced_is_counted() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "untraced", &[], UNTRACED) else { return };
    for options in [&["--follow-children"][..], &[]] {
        let ran = lightfoot().args(["count", "--format", "json"]).args(options).arg("--").arg(&program).run();
        ran.ends_with(5);
        assert_eq!(String::from_utf8_lossy(&ran.stdout), "7 0\n8 0\n", "{options:?}");
        let report = json(&ran.stderr);
        if let Some(processes) = report.get("processes").and_then(|p| p.as_array()) {
            assert_eq!(processes.len(), 3);
            assert!(processes[1..].iter().all(|p| p["instructions"].as_u64().unwrap() > 300_000));
        } else {
            assert_eq!(options.len(), 0);
        }
    }
}

/// Goes, by a call, a return, a handler and a return from one, to where natively nothing is mapped
/// and lightfoot's code lies; says what its own handler saw.
const ASTRAY: &str = r#"
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>
static sigjmp_buf back;
static unsigned long wild;
static int round_, good;
static void fault(int n, siginfo_t *info, void *context) {
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
    good = (unsigned long)info->si_addr == wild && (unsigned long)r[REG_RIP] == wild && info->si_code == SEGV_MAPERR;
    siglongjmp(back, 1);
}
static void away(int n, siginfo_t *info, void *context) {
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] = wild;
}
static unsigned long somewhere(void) {
    unsigned long start, end, found = 0x200000001234;
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps))
        if (strstr(line, "r-x") && strstr(line, "memfd:lightfoot") && sscanf(line, "%lx-%lx", &start, &end) == 2)
            found = start + atoi(getenv("BYTES"));
    fclose(maps);
    return found;
}
int main(int count, char **words) {
    struct sigaction act = {.sa_sigaction = fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
    if (count == 1) sigaction(SIGSEGV, &act, 0);
    wild = somewhere();
    for (round_ = 0; round_ < 4; round_++) {
        if (sigsetjmp(back, 1)) { printf("%d %d\n", round_, good); continue; }
        if (round_ == 0) ((void (*)(void))wild)();
        if (round_ == 1) __asm__ volatile("push %0\n ret" : : "r"(wild) : "memory");
        if (round_ == 2) {
            struct sigaction other = {.sa_handler = (void (*)(int))wild};
            sigaction(SIGUSR1, &other, 0);
            raise(SIGUSR1);
        }
        if (round_ == 3) {
            struct sigaction other = {.sa_sigaction = away, .sa_flags = SA_SIGINFO};
            sigaction(SIGUSR2, &other, 0);
            raise(SIGUSR2);
        }
    }
    return 6;
}
"#;

#[test]
fn a_jump_into_generated_code_faults_as_natively() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "astray", &[], ASTRAY) else { return };
    for bytes in ["0", "5", "77", "4096", "100000"] {
        let native = Command::new(&program).env("BYTES", bytes).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&native.stdout), "0 1\n1 1\n2 1\n3 1\n");
        for command in ["count", "cache"] {
            let ran = lightfoot().args([command, "--"]).arg(&program).env("BYTES", bytes).run();
            ran.ends_with(6);
            assert_eq!(ran.stdout, native.stdout, "{command}, {bytes} bytes into it");
            let ran =
                lightfoot().args([command, "--"]).arg(&program).arg("unhandled").env("BYTES", bytes).run();
            ran.ends_with(139).says("signal 11");
        }
    }
}

/// Calls a function that it wrote into a file, and calls it again when the file has lost that page.
const LOST_PAGE: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
static sigjmp_buf back;
static unsigned char *page;
static int good;
static void fault(int n, siginfo_t *info, void *context) {
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
    good = info->si_addr == page && (unsigned char *)r[REG_RIP] == page && r[REG_RCX] == 1234 && r[REG_RDI] == 99;
    siglongjmp(back, 1);
}
int main(int count, char **words) {
    struct sigaction act = {.sa_sigaction = fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGBUS, &act, 0);
    int file = open(words[1], O_RDWR | O_CREAT, 0700);
    ftruncate(file, 4096);
    page = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED, file, 0);
    memcpy(page, "\x8d\x47\x05\xc3", 4);
    for (int round = 0; round < 3; round++) {
        if (sigsetjmp(back, 1)) { printf("fault %d\n", good); continue; }
        long result;
        __asm__ volatile("mov $1234, %%ecx\n mov $99, %%edi\n call *%1" : "=a"(result) : "r"(page) : "rcx", "rdi", "memory", "cc");
        printf("%ld\n", result);
        ftruncate(file, 0);
    }
    return 0;
}
"#;

#[test]
fn code_that_cannot_be_read_any_more_faults_as_natively() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "lost_page", &[], LOST_PAGE) else { return };
    let file = bench.join("code");
    let native = Command::new(&program).arg(&file).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&native.stdout), "104\nfault 1\nfault 1\n");
    for command in ["count", "cache"] {
        let ran = lightfoot().args([command, "--"]).arg(&program).arg(&file).run();
        ran.ends_with(0);
        assert_eq!(ran.stdout, native.stdout, "{command}");
    }
}

/// Takes away memory of lightfoot's that lies below 4 GB, by system calls of 32-bit programs, and
/// goes on: of code the second part, of tables all.
const DAMAGE: &str = r#"
#include <stdio.h>
#include <string.h>
#include <time.h>
static long call(long number, unsigned long a, unsigned long b) {
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b) : "memory", "r8", "r9", "r10", "r11");
    return result;
}
int main(void) {
    unsigned long starts[8], ends[8];
    int count = 0;
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (count < 8 && fgets(line, sizeof line, maps))
        if (strstr(line, "memfd:lightfoot") && sscanf(line, "%lx-%lx", &starts[count], &ends[count]) == 2 && !(ends[count] >> 32)) {
            if (strstr(line, "r-x")) starts[count] += (ends[count] - starts[count]) / 5 * 3 & ~0xffful;
            count++;
        }
    fclose(maps);
    for (int i = 0; i < count; i++)
        call(91, starts[i], ends[i] - starts[i]);
    printf("%d %d\n", call(20, 0, 0) > 0, (int)strlen(ctime(&(time_t){0})));
    return 0;
}
"#;

#[test]
fn a_fault_that_no_instruction_explains_ends_the_run_with_a_sentence() {
    let bench = Bench::new();
    for (name, options) in [("damage", &[][..]), ("damage_low", &["-static", "-no-pie"])] {
        let Some(program) = compile(&bench, name, options, DAMAGE) else { return };
        if !Command::new(&program).output().unwrap().status.success() {
            return eprintln!("skipped: this system has no system calls for 32-bit programs");
        }
        for command in ["count", "cache"] {
            let ran = lightfoot().args([command, "--"]).arg(&program).run();
            ran.ends_with(125).says("signal 11 stopped generated code").in_one_line();
        }
    }
}
