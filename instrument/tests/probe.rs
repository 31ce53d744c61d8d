//! Probe mode: no call is lost, nothing that might behave differently is patched, and the same
//! patches run under the engine.
//!
//! Functions are found with `nm` (binutils): the engine itself reads no symbol tables. Programs
//! check themselves by their exit status.

use lightfoot_instrument::probe::{
    launch, Finder, ModuleInfo, Placement, ProbePlan, ProbeRefusal, ProbeRequest, ProbeState,
};
use lightfoot_instrument::tool::{run_probed, Report, Summary, Tool};
use lightfoot_instrument::{Command, Exit, Module, Options};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Finds functions by name in one file.
struct Nm {
    wanted: Vec<&'static str>,
    file: PathBuf,
    known: HashMap<PathBuf, Vec<(String, u64)>>,
}

impl Nm {
    fn functions(&mut self, path: &Path) -> &[(String, u64)] {
        self.known
            .entry(path.to_owned())
            .or_insert_with(|| [&["-D"][..], &[]].iter().flat_map(|o| nm(o, path)).collect())
    }
}

fn nm(options: &[&str], path: &Path) -> Vec<(String, u64)> {
    let output = std::process::Command::new("nm").args(options).arg("--defined-only").arg(path).output();
    let text = String::from_utf8(output.expect("nm is there: apt-get install binutils").stdout).unwrap();
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        let is_code = ["T", "t", "W", "w"].contains(&words.next()?);
        let name = words.next()?.split('@').next()?.to_owned();
        is_code.then_some((name, address))
    };
    text.lines().filter_map(line).collect()
}

/// What is to be added to the file's addresses where `module` maps it.
fn bias(module: &Module) -> u64 {
    let bytes = std::fs::read(&module.path).unwrap();
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let count = u16::from_le_bytes([bytes[56], bytes[57]]) as usize;
    let header =
        (0..count).map(|n| word(32) as usize + 56 * n).find(|&at| bytes[at] == 1 && bytes[at + 4] & 1 != 0);
    let at = header.expect("a module has code");
    module.start - module.file_offset + word(at + 8) - word(at + 16)
}

impl Finder for Nm {
    fn known(&mut self, module: &Module) -> ModuleInfo {
        let (bias, wanted) = (bias(module), self.wanted.clone());
        let own = self.file == module.path;
        let functions = self.functions(&module.path);
        let entry = |name: &str| functions.iter().find(|f| f.0 == name).map(|f| f.1 + bias);
        let found = wanted
            .iter()
            .enumerate()
            .filter_map(|(counter, name)| Some(ProbeRequest { entry: entry(name)?, counter }));
        let wanted = if own { found.collect() } else { Vec::new() };
        let mut starts: Vec<u64> = functions.iter().map(|f| f.1 + bias).collect();
        starts.sort_unstable();
        starts.dedup();
        ModuleInfo { wanted, starts, text: std::iter::once(module.start..module.end).collect() }
    }

    fn entry(&mut self, module: &Module, name: &str) -> Option<u64> {
        let bias = bias(module);
        self.functions(&module.path).iter().find(|f| f.0 == name).map(|f| f.1 + bias)
    }
}

fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("probe");
    std::fs::create_dir_all(&folder).unwrap();
    folder.canonicalize().unwrap()
}

fn compile(name: &str, source: &str, options: &[&str]) -> PathBuf {
    let (file, out) = (folder().join(name).with_extension("c"), folder().join(name));
    std::fs::write(&file, source).unwrap();
    let built = std::process::Command::new("cc")
        .args(["-O1", "-w", "-pthread", "-o"])
        .arg(&out)
        .arg(&file)
        .args(options)
        .output();
    let built = built.expect("the targets need a C compiler named cc: apt-get install gcc libc6-dev");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    out
}

fn plan(file: &Path, wanted: &[&'static str], placement: Placement) -> ProbePlan {
    let finder = Nm { wanted: wanted.to_vec(), file: file.to_owned(), known: HashMap::new() };
    ProbePlan { finder: Box::new(finder), counters: wanted.len(), placement }
}

fn command(program: &Path, arguments: &[&str]) -> Command {
    Command { program: program.into(), arguments: arguments.iter().map(Into::into).collect() }
}

/// Runs `program` natively with probes on functions of itself: what they counted, and why they were
/// locked if they were.
fn locked(program: &Path, arguments: &[&str], wanted: &[&'static str]) -> (Exit, Vec<u64>, Option<String>) {
    let plan = plan(program, wanted, Placement::Packed);
    let held = launch(&command(program, arguments), &Options::default(), Some(plan)).unwrap();
    let counters = held.counters().unwrap();
    let ended = held.release().wait().unwrap();
    assert_eq!(ended.states, vec![ProbeState::Patched; wanted.len()]);
    // A container's filter may refuse that; nothing here depends on it.
    let warnings = ended.warnings.iter().filter(|warning| !warning.contains("address randomisation"));
    assert_eq!(warnings.collect::<Vec<_>>(), Vec::<&String>::new());
    (ended.exit, (0..wanted.len()).map(|n| counters.read(n)).collect(), ended.locked)
}

/// Runs `program` natively with probes on functions of `file`: what they counted.
fn counted(
    program: &Path,
    arguments: &[&str],
    file: &Path,
    wanted: &[&'static str],
    placement: Placement,
) -> (Exit, Vec<u64>, Vec<ProbeState>) {
    let held = launch(&command(program, arguments), &Options::default(), Some(plan(file, wanted, placement)))
        .unwrap();
    let counters = held.counters().unwrap();
    let ended = held.release().wait().unwrap();
    let (exit, states) = (ended.exit, ended.states);
    (exit, (0..wanted.len()).map(|n| counters.read(n)).collect(), states)
}

const THREADS: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
volatile long sink;
__attribute__((noinline)) void work(void) { sink++; }
__attribute__((noinline)) int once(int x) { return x * 3 + sink; }
static void *thread(void *p) { for (int i = 0; i < 200000; i++) work(); return 0; }
int main(int count, char **words) {
    int threads = atoi(words[1]);
    pthread_t all[64];
    for (int i = 0; i < 1000; i++) work();
    for (int i = 3; i < 64; i++) close(i);
    for (int i = 0; i < threads; i++) pthread_create(&all[i], 0, thread, 0);
    for (int i = 0; i < threads; i++) pthread_join(all[i], 0);
    pid_t child = fork();
    for (int i = 0; i < 100000; i++) work();
    if (child == 0) _exit(0);
    int status;
    waitpid(child, &status, 0);
    return once(0) >= 0 ? 7 : 8;
}
"#;

#[test]
fn no_call_is_lost_by_threads_children_or_closed_descriptors() {
    for (name, options) in
        [("threads", &[][..]), ("threads_static", &["-static"]), ("threads_fixed", &["-no-pie"])]
    {
        let program = compile(name, THREADS, options);
        for placement in [Placement::Packed, Placement::Line, Placement::Page, Placement::Seed(5)] {
            let (exit, counts, states) =
                counted(&program, &["8"], &program, &["work", "once", "main"], placement);
            assert_eq!(exit, Exit::Code(7), "{name}");
            assert_eq!(states, vec![ProbeState::Patched; 3], "{name}");
            assert_eq!(counts, [1_801_000, 1, 1], "{name} {placement:?}");
        }
    }
}

#[test]
fn libraries_that_come_later_are_patched_each_time() {
    let library = compile(
        "later.so",
        "int later(int x) { return x + 1; } int last(int x) { return later(x) * 2; }",
        &["-O2", "-shared", "-fPIC"],
    );
    let source = r#"
#include <dlfcn.h>
int main(int count, char **words) {
    int sum = 0;
    for (int round = 0; round < 3; round++) {
        void *handle = dlopen(words[1], RTLD_NOW);
        int (*last)(int) = dlsym(handle, "last");
        for (int i = 0; i < 100; i++) sum += last(i);
        dlclose(handle);
    }
    return sum == 3 * 10100 ? 5 : 6;
}
"#;
    let program = compile("opener", source, &[]);
    let (exit, counts, states) =
        counted(&program, &[library.to_str().unwrap()], &library, &["later", "last"], Placement::Packed);
    assert_eq!((exit, states), (Exit::Code(5), vec![ProbeState::Patched; 2]));
    assert_eq!(counts, [300, 300]);
}

/// Entries of every kind: what each computes is checked by `main`.
const ENTRIES: &str = r#"
__asm__(".text\n.globl relative,branches,calls,shortest,inside,crowded,register_call,jumps,tail\n"
        ".p2align 4\nrelative: mov number(%rip), %eax\n add $1, %eax\n ret\n"
        ".p2align 4\nbranches: test %edi, %edi\n je 1f\n mov $4, %eax\n ret\n1: mov $5, %eax\n ret\n"
        ".p2align 4\ncalls: call relative\n add $10, %eax\n ret\n"
        ".p2align 4\nshortest: ret\n"
        ".p2align 4\ninside: xor %eax, %eax\n2: inc %eax\n cmp %edi, %eax\n jl 2b\n ret\n"
        ".p2align 4\ncrowded: xor %eax, %eax\n ret\nneighbour: mov $1, %eax\n ret\n"
        ".p2align 4\nregister_call: push %rbx\n call *%rdi\n pop %rbx\n ret\n"
        ".p2align 4\njumps: nop\n lea table(%rip), %rax\n jmp *(%rax)\n3: mov $9, %eax\n ret\n"
        ".p2align 4\ntail: jmp relative\n"
        ".data\ntable: .quad 3b\n.text\n");
int number = 40;
int relative(void), branches(int), calls(void), inside(int), crowded(void), neighbour(void), register_call(void *), jumps(void), tail(void);
void shortest(void);
int main(void) {
    int good = 1;
    for (int round = 0; round < 3; round++) {
        good &= relative() == 41 && branches(1) == 4 && branches(0) == 5 && calls() == 51;
        shortest();
        good &= inside(4) == 4 && crowded() == 0 && neighbour() == 1 && register_call(relative) == 41;
        good &= jumps() == 9 && tail() == 41;
    }
    return good ? 3 : 4;
}
"#;

#[test]
fn what_cannot_be_patched_is_left_alone_and_named() {
    let program = compile("entries", ENTRIES, &["-no-pie"]);
    let wanted =
        ["relative", "branches", "calls", "shortest", "tail", "inside", "crowded", "register_call", "jumps"];
    let (exit, counts, states) = counted(&program, &[], &program, &wanted, Placement::Packed);
    assert_eq!(exit, Exit::Code(3));
    assert_eq!(states[..5], vec![ProbeState::Patched; 5]);
    // relative: by itself, from calls, from register_call and from tail.
    assert_eq!(counts[..5], [12, 6, 3, 3, 3]);
    assert_eq!(counts[5..], [0; 4]);
    assert!(matches!(states[5], ProbeState::Refused(ProbeRefusal::JumpInside(_))), "{:?}", states[5]);
    assert!(matches!(states[6], ProbeState::Refused(ProbeRefusal::TooShort(3))), "{:?}", states[6]);
    assert!(
        matches!(&states[7], ProbeState::Refused(ProbeRefusal::Unmovable(_, name)) if name == "call"),
        "{:?}",
        states[7]
    );
    assert_eq!(states[8], ProbeState::Refused(ProbeRefusal::IndirectJump));
}

struct Nothing;

impl Tool for Nothing {
    fn finish(&mut self, _summary: &Summary<'_>) -> std::io::Result<Report> {
        Ok(Report::default())
    }
}

#[test]
fn the_same_patches_run_under_the_engine() {
    let program = compile("entries_engine", ENTRIES, &[]);
    let wanted = ["relative", "branches", "calls", "shortest", "tail", "inside"];
    let native = counted(&program, &[], &program, &wanted, Placement::Line);
    let plan = plan(&program, &wanted, Placement::Line);
    let (outcome, probed) =
        run_probed(&command(&program, &[]), &Options::default(), &mut Nothing, plan).unwrap();
    let counts: Vec<u64> = (0..wanted.len()).map(|n| probed.counters.read(n)).collect();
    assert_eq!((outcome.exit, counts, probed.states), native);
    assert_eq!(native.1, [12, 6, 3, 3, 3, 0]);
}

#[test]
fn a_program_without_probes_is_launched_the_same_way() {
    let program = compile("plain", "int main(void) { return 9; }", &[]);
    let held = launch(&command(&program, &[]), &Options::default(), None).unwrap();
    assert!(held.counters().is_none());
    let ended = held.release().wait().unwrap();
    assert_eq!((ended.exit, ended.states), (Exit::Code(9), Vec::new()));
    let held = launch(&command(&program, &[]), &Options::default(), None).unwrap();
    let pid = held.pid();
    held.kill();
    assert!(!Path::new(&format!("/proc/{pid}/exe")).exists());
    assert!(launch(&command(Path::new("/no/such/program"), &[]), &Options::default(), None).is_err());
}

/// So many threads, of which each calls `work` so often, so many times over; a nested function
/// tells whether r10 and the flags of its caller arrive.
const MANY: &str = r#"
#include <pthread.h>
#include <stdlib.h>
volatile long sink;
static long calls;
__attribute__((noinline)) void work(void) { __asm__ volatile(".fill 8, 1, 0x90"); }
static void *thread(void *p) { for (long i = 0; i < calls; i++) work(); return 0; }
int main(int count, char **words) {
    int threads = atoi(words[1]), rounds = atoi(words[3]);
    calls = atol(words[2]);
    pthread_t *all = calloc(threads, sizeof *all);
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < threads; i++) if (pthread_create(&all[i], 0, thread, 0)) return 1;
        for (int i = 0; i < threads; i++) pthread_join(all[i], 0);
    }
    return 7;
}
"#;

#[test]
fn threads_count_exactly_without_a_lock() {
    let program = compile("many", MANY, &[]);
    // Many calls; many threads at a time; more threads, one after the other, than there are blocks;
    // more at a time than there are.
    for (threads, calls, rounds) in [("8", "10000000", "1"), ("64", "100000", "1"), ("50", "1000", "60")] {
        let (exit, counts, why) = locked(&program, &[threads, calls, rounds], &["work", "main"]);
        let number = |text: &str| text.parse::<u64>().unwrap();
        assert_eq!((exit, why), (Exit::Code(7), None), "{threads} {calls} {rounds}");
        assert_eq!(counts, [number(threads) * number(calls) * number(rounds), 1]);
    }
}

#[test]
fn more_threads_than_blocks_are_locked_and_exact() {
    let source = MANY.replace(
        "work(); return 0; }",
        "work(); pthread_barrier_wait(&all_here); for (int i = 0; i < 2000; i++) work(); return 0; }",
    );
    let source = source.replace("volatile long sink;", "pthread_barrier_t all_here;");
    let source = source.replace(
        "int main(int count, char **words) {",
        "int main(int count, char **words) { pthread_barrier_init(&all_here, 0, atoi(words[1]));",
    );
    let program = compile("crowd", &source, &[]);
    if std::process::Command::new(&program).args(["1100", "1", "1"]).status().unwrap().code() != Some(7) {
        return eprintln!("skipped: this system allows fewer threads");
    }
    let (exit, counts, why) = locked(&program, &["1100", "100", "1"], &["work"]);
    assert_eq!((exit, counts), (Exit::Code(7), vec![1100 * 2100]));
    assert!(why.is_some_and(|why| why.contains("more threads")));
}

/// Calls `work` 10 times itself, and 5 times in each program that it executes in one of many ways.
const EXECS: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
volatile long sink;
__attribute__((noinline)) void work(void) { sink++; }
static char *self;
static void *replace(void *p) { execl(self, self, "leaf", (char *)0); return 0; }
static void *thread(void *p) { for (int i = 0; i < 20000; i++) work(); return 0; }
int main(int count, char **words) {
    self = words[0];
    if (count > 1 && !strcmp(words[1], "leaf")) {
        for (int i = 0; i < 5; i++) work();
        return 0;
    }
    for (int i = 0; i < 10; i++) work();
    pthread_t beside;
    pthread_create(&beside, 0, thread, 0);
    for (int i = 0; i < 6; i++) {
        if (fork() == 0) {
            if (execlp("no-such-program-anywhere", "x", (char *)0) == 0) return 9;
            execl(self, self, "leaf", (char *)0);
            return 9;
        }
    }
    for (int i = 0; i < 3; i++) {
        char *arguments[] = { self, "leaf", 0 };
        pid_t child;
        if (posix_spawn(&child, self, 0, 0, arguments, environ)) return 8;
    }
    if (vfork() == 0) { execl(self, self, "leaf", (char *)0); _exit(9); }
    if (system(words[1])) return 7;
    int status, bad = 0;
    while (wait(&status) > 0) bad |= status;
    if (bad) return 6;
    pthread_join(beside, 0);
    pthread_t last;
    pthread_create(&last, 0, replace, 0);
    for (;;) pause();
}
"#;

#[test]
fn programs_that_are_executed_are_probed_too() {
    for (name, options) in [("execs", &[][..]), ("execs_static", &["-static"]), ("execs_fixed", &["-no-pie"])]
    {
        let program = compile(name, EXECS, options);
        let shell = format!("'{0}' leaf; '{0}' leaf && exec '{0}' leaf", program.display());
        let (exit, counts, why) = locked(&program, &[&shell], &["work", "main"]);
        // Six forks, three spawns, a vfork, three by a shell, and the program's own thread.
        assert_eq!((exit, why), (Exit::Code(0), None), "{name}");
        assert_eq!(counts, [10 + 20_000 + 5 * (6 + 3 + 1 + 3 + 1), 1 + 6 + 3 + 1 + 3 + 1], "{name}");
    }
}

/// Threads made by a system call of the program's own, and a base of gs of its own.
const OWN_CALLS: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
long place[64];
volatile long sink;
__attribute__((noinline)) void work(void) { __asm__ volatile(".fill 8, 1, 0x90"); }
static void *thread(void *p) { for (int i = 0; i < 300000; i++) work(); return 0; }
int main(void) {
    pthread_t other;
    pthread_create(&other, 0, thread, 0);
#ifdef BASE
    place[3] = 77;
    if (syscall(SYS_arch_prctl, 0x1001, place)) return 1;
#endif
    long child;
#ifdef RAW
    __asm__ volatile("syscall" : "=a"(child) : "a"(57) : "rcx", "r11", "memory");
#else
    child = syscall(SYS_clone, SIGCHLD_NUMBER, 0, 0, 0, 0);
#endif
    thread(0);
    if (child == 0) _exit(0);
    wait(0);
    pthread_join(other, 0);
#ifdef BASE
    long read;
    __asm__ volatile("mov %%gs:24, %0" : "=r"(read));
    return read == 77 ? 7 : 8;
#endif
    return 7;
}
"#;

#[test]
fn threads_and_bases_that_nobody_sees_are_counted_with_a_lock() {
    for (name, option) in [("raw", "-DRAW"), ("generic", "-DGENERIC"), ("base", "-DBASE")] {
        let program = compile(name, OWN_CALLS, &[option, "-DSIGCHLD_NUMBER=17"]);
        let (exit, counts, why) = locked(&program, &[], &["work", "main"]);
        assert_eq!((exit, counts), (Exit::Code(7), vec![900_000, 1]), "{name}");
        assert!(why.is_some(), "{name}");
    }
}

/// An argument in every register that a function may be given, r10 and r11 too, and what it
/// returns.
const REGISTERS: &str = r#"
__asm__(".text\n.globl all\n.p2align 4\nall: lea (%rdi,%rsi), %rax\n add %rdx, %rax\n add %rcx, %rax\n add %r8, %rax\n add %r9, %rax\n"
        " add %r10, %rax\n add %r11, %rax\n add -8(%rsp), %rax\n ret\n");
int main(void) {
    long sum = 0;
    for (int i = 0; i < 100; i++) {
        long result = 1000;
        register long r8 __asm__("r8") = 16, r9 __asm__("r9") = 32, r10 __asm__("r10") = 64, r11 __asm__("r11") = 128;
        __asm__ volatile("movq $256, -16(%%rsp)\n call all" : "=a"(result), "+r"(r8), "+r"(r9), "+r"(r10), "+r"(r11)
                         : "D"(1L), "S"(2L), "d"(4L), "c"(8L) : "memory", "cc");
        sum += result;
    }
    return sum == 100 * 511 ? 7 : 8;
}
"#;

#[test]
fn a_probe_touches_no_register_and_nothing_below_the_stack() {
    let program = compile("registers", REGISTERS, &["-mno-red-zone"]);
    let (exit, counts, why) = locked(&program, &[], &["all"]);
    assert_eq!((exit, counts, why), (Exit::Code(7), vec![100], None));
}
