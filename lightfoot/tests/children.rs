//! Programs that start others, under `--follow-children`: everything is counted, and everybody
//! behaves as natively.
//!
//! Output and exit status come from a native run; counts of a program that makes no use of a
//! library are known from its text. What this system lacks is named and skipped.

mod bench;

use bench::{compile, json, lightfoot, Bench};
use serde_json::Value;
use std::ffi::OsStr;
use std::process::{Command, Stdio};

const COMMANDS: [&str; 2] = ["count", "cache"];
const ADDED: [&str; 9] = [
    "instructions",
    "blocks",
    "loads",
    "stores",
    "l1i_misses",
    "l1d_load_misses",
    "l1d_store_misses",
    "l2_misses",
    "dtlb_misses",
];

/// Runs `words` natively and under `command`, compares, and gives the report; `None` where this
/// system lacks the program.
fn followed(bench: &Bench, command: &str, words: &[&str]) -> Option<Value> {
    let run = |words: &[&OsStr]| {
        Command::new(words[0]).args(&words[1..]).current_dir(bench.path()).stdin(Stdio::null()).output()
    };
    let words: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
    let Ok(native) = run(&words) else {
        eprintln!("skipped: there is no {:?} here", words[0]);
        return None;
    };
    let options =
        [bench::BINARY, command, "--follow-children", "--format", "json", "-o", "report.json", "--"];
    let measured = run(&[&options.map(OsStr::new)[..], &words].concat()).unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(text(&measured.stderr), text(&native.stderr), "{command} {words:?}: standard error");
    assert_eq!(text(&measured.stdout), text(&native.stdout), "{command} {words:?}: output");
    assert_eq!(measured.status.code(), native.status.code(), "{command} {words:?}: exit status");
    let report = json(&std::fs::read(bench.join("report.json")).unwrap());
    adds_up(&report);
    Some(report)
}

fn processes(report: &Value) -> &Vec<Value> {
    report["processes"].as_array().expect("children were followed")
}

/// The totals are the sum of the processes, and of the functions; the first process is the program
/// itself.
#[track_caller]
fn adds_up(report: &Value) {
    let processes = processes(report);
    for field in ADDED {
        let total = report["totals"].get(field).and_then(Value::as_u64).unwrap_or(0);
        for rows in [processes, report["functions"].as_array().unwrap()] {
            let sum: u64 = rows.iter().map(|row| row.get(field).and_then(Value::as_u64).unwrap_or(0)).sum();
            assert_eq!(sum, total, "{field}");
        }
    }
    assert_eq!(report["partial"], false);
    assert_eq!(processes[0]["parent"], Value::Null);
    assert_eq!(processes[0]["exit_status"], report["exit_status"]);
    assert!(processes[1..].iter().all(|process| processes.iter().any(|p| p["pid"] == process["parent"])));
}

/// Processes whose command's first word ends so.
fn named<'a>(report: &'a Value, name: &str) -> Vec<&'a Value> {
    let is_named = |process: &&Value| process["command"][0].as_str().is_some_and(|word| word.ends_with(name));
    processes(report).iter().filter(is_named).collect()
}

fn instructions(process: &Value) -> u64 {
    process["instructions"].as_u64().unwrap()
}

fn compiled(bench: &Bench, name: &str, options: &[&str], source: &str) -> Option<String> {
    compile(bench, name, options, source).map(|path| path.to_str().unwrap().to_owned())
}

/// `_start` makes a child by `call`, which counts down from 1000 and exits with 7; it waits and
/// exits with 5.
fn counting_down(call: &str) -> String {
    format!(
        "__asm__(\".globl _start\\n_start:\\n {call}\\n syscall\\n test %eax,%eax\\n jz 2f\\n mov $-1,%edi\\n xor %esi,%esi\\n\
         xor %edx,%edx\\n xor %r10d,%r10d\\n mov $61,%eax\\n syscall\\n mov $60,%eax\\n mov $5,%edi\\n syscall\\n\
         2: mov $1000,%ebx\\n 3: dec %ebx\\n push %rbx\\n pop %rdx\\n jnz 3b\\n mov $60,%eax\\n mov $7,%edi\\n syscall\");"
    )
}

const DOWN: u64 = 2 + 1 + 4 * 1000 + 3;
const UP: u64 = 2 + 6 + 3;

/// Formats whose calls and time are the program's alone still tell processes apart.
#[test]
fn pages_and_call_files_tell_processes_apart() {
    let bench = Bench::new();
    let run = |format: &str| {
        let options = ["count", "--follow-children", "--format", format, "-o", "out", "--"];
        let words = ["sh", "-c", "cat /dev/null; ls / | cat"];
        let mut command = Command::new(bench::BINARY);
        command.args(options).args(words).current_dir(bench.path()).stdin(Stdio::null()).output().unwrap()
    };
    assert_eq!(run("html").status.code(), Some(0));
    let page = std::fs::read_to_string(bench.join("out")).unwrap();
    assert!(page.contains("calls and time are followed in the program alone"));
    let data = page.split_once("id=\"data\">").unwrap().1.split_once("</script>").unwrap().0;
    let data = json(data.as_bytes());
    let processes = data["processes"].as_array().unwrap();
    assert!(processes.len() >= 4, "{}", processes.len());
    assert!(processes[1]["name"].as_str().unwrap().starts_with("#2 of #1, exit 0: "));
    let first = |costs: &Value| costs[0].as_u64().unwrap();
    let sum: u64 = processes.iter().map(|process| first(&process["totals"])).sum();
    assert_eq!(sum, first(&data["totals"]));
    for process in processes {
        let own: u64 = process["functions"].as_array().unwrap().iter().map(|own| first(&own[1])).sum();
        assert_eq!(own, first(&process["totals"]));
    }
    assert_eq!(run("callgrind").status.code(), Some(0));
    let mut viewer = Command::new("callgrind_annotate");
    match viewer.args(["--inclusive=yes", "--threshold=100"]).arg(bench.join("out")).output() {
        Err(_) => eprintln!("skipped: there is no callgrind_annotate here"),
        Ok(viewed) => {
            let text = String::from_utf8_lossy(&viewed.stdout);
            assert!(viewed.stderr.is_empty() && !text.contains("WARNING"), "{viewed:?}");
            assert!(text.contains("???:#2 of #1, exit 0: "), "{text}");
        }
    }
    let refused = run("firefox");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(125));
    assert!(
        said.contains("--follow-children") && said.contains("callgrind") && said.lines().count() == 1,
        "{said}"
    );
}

#[test]
fn a_forked_child_is_counted_exactly() {
    let bench = Bench::new();
    let options = ["-nostdlib", "-static"];
    // fork; clone and clone without a signal, neither sharing memory.
    for call in ["mov $57,%eax", "mov $56,%eax\\n mov $17,%edi\\n xor %esi,%esi"] {
        let Some(program) = compiled(&bench, "down", &options, &counting_down(call)) else { return };
        let before = call.matches('$').count() as u64 + call.matches("xor").count() as u64 + 1;
        for command in COMMANDS {
            let report = followed(&bench, command, &[&program]).unwrap();
            let counts: Vec<u64> = processes(&report).iter().map(instructions).collect();
            assert_eq!(counts, [before + UP, DOWN], "{command} {call}");
            let child = &processes(&report)[1];
            assert_eq!(
                (&child["loads"], &child["stores"], &child["exit_status"]),
                (&1000.into(), &1000.into(), &7.into())
            );
            assert_eq!(report["exit_status"], 5);
        }
    }
}

/// `_start` forks five times, one after the other; each child counts down from 1000.
const FIVE_TIMES: &str = "__asm__(\".globl _start\\n_start:\\n mov $5,%r12d\\n 9: mov $57,%eax\\n syscall\\n test %eax,%eax\\n jz 2f\\n mov $-1,%edi\\n\
    xor %esi,%esi\\n xor %edx,%edx\\n xor %r10d,%r10d\\n mov $61,%eax\\n syscall\\n dec %r12d\\n jnz 9b\\n mov $60,%eax\\n mov $5,%edi\\n syscall\\n\
    2: mov $1000,%ebx\\n 3: dec %ebx\\n push %rbx\\n pop %rdx\\n jnz 3b\\n mov $60,%eax\\n mov $7,%edi\\n syscall\");";

#[test]
fn each_child_is_counted_as_the_first() {
    let bench = Bench::new();
    let Some(program) = compiled(&bench, "five", &["-nostdlib", "-static"], FIVE_TIMES) else { return };
    for command in COMMANDS {
        let report = followed(&bench, command, &[&program]).unwrap();
        let children = &processes(&report)[1..];
        assert_eq!(children.iter().map(instructions).collect::<Vec<_>>(), [DOWN; 5], "{command}");
        for child in children {
            let differs = |field: &&&str| child.get(**field) != children[0].get(**field);
            assert_eq!(ADDED.iter().find(differs), None, "{command}: {child} {}", children[0]);
        }
    }
}

/// Calls a function of a library, or of a page that it writes, in one child after the other, while
/// libraries and page change in the parent, or in a child.
const CHANGES: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
typedef int (*function)(void);
static function open_library(void **library, const char *path) {
    *library = dlopen(path, RTLD_NOW);
    if (!*library) abort();
    return (function)dlsym(*library, "number");
}
static int in_child(function f) {
    int status;
    if (!fork()) _exit(f());
    wait(&status);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
static const char *other;
static void *library;
static int exchange(void) {
    dlclose(library);
    return open_library(&library, other)();
}
int main(int count, char **names) {
    other = names[2];
    for (int called = 0; called < 2; called++) {
        for (int round = 0; round < 4; round++) {
            function f = open_library(&library, names[1 + round % 2]);
            int own = called ? f() : 0;
            int first = in_child(f), second = in_child(f), changed = in_child(exchange), third = in_child(f);
            printf("%d %d %d %d %d\n", own, first, second, changed, third);
            dlclose(library);
        }
    }
    unsigned char *page = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int value = 20; value < 26; value++) {
        unsigned char code[] = {0xb8, value, 0, 0, 0, 0xc3};
        for (int k = 0; k < 6; k++) page[k] = code[k];
        printf("%d\n", in_child((function)page));
    }
    return 0;
}
"#;

#[test]
fn children_run_the_code_that_they_inherited() {
    let bench = Bench::new();
    let library = |name: &str, value: u32| {
        let source = format!("int number(void){{return {value};}}");
        compiled(&bench, name, &["-shared", "-fPIC"], &source)
    };
    let (Some(one), Some(two)) = (library("one.so", 1), library("two.so", 2)) else { return };
    let Some(program) = compiled(&bench, "changes", &["-ldl"], CHANGES) else { return };
    for command in COMMANDS {
        followed(&bench, command, &[&program, &one, &two]).unwrap();
    }
}

#[test]
fn a_child_that_shares_memory_counts_as_its_parent() {
    let bench = Bench::new();
    let program = compiled(&bench, "down", &["-nostdlib", "-static"], &counting_down("mov $58,%eax"));
    let Some(program) = program else { return };
    for command in COMMANDS {
        let report = followed(&bench, command, &[&program]).unwrap();
        let counts: Vec<u64> = processes(&report).iter().map(instructions).collect();
        assert_eq!(counts, [2 + UP + DOWN, 0], "{command}");
        assert_eq!(processes(&report)[1]["exit_status"], 7);
    }
}

#[test]
fn a_pipeline_is_followed() {
    let bench = Bench::new();
    let words = ["sh", "-c", "printf 'b\\na\\nb\\n' | sort | uniq -c; exit 4"];
    for command in COMMANDS {
        let Some(report) = followed(&bench, command, &words) else { return };
        assert!(processes(&report).len() >= 4, "{}", report["processes"]);
        for name in ["sort", "uniq"] {
            let process = named(&report, name)[0];
            assert!(instructions(process) > 10_000 && process["exit_status"] == 0, "{process}");
        }
        assert_eq!(report["exit_status"], 4);
    }
}

#[test]
fn a_compilation_is_its_compiler() {
    let bench = Bench::new();
    bench.file(
        "small.c",
        b"#include <stdio.h>\nint main(void){for(int i=0;i<9;i++)printf(\"%d\\n\",i);return 0;}",
        0o644,
    );
    for command in COMMANDS {
        let Some(report) = followed(&bench, command, &["gcc", "-O1", "-S", "-o", "-", "small.c"]) else {
            return;
        };
        let compiler: u64 = named(&report, "cc1").into_iter().map(instructions).sum();
        let all = instructions(&report["totals"]);
        assert!(compiler * 10 > all * 9, "{compiler} of {all}");
    }
}

#[test]
fn a_small_project_is_made_by_two_jobs() {
    let bench = Bench::new();
    let makefile = "all: one.s two.s three.s\n\t@cat one.s two.s three.s\n%.s: %.c\n\t@gcc -O1 -S -o $@ $<\n";
    bench.file("Makefile", makefile.as_bytes(), 0o644);
    for name in ["one", "two", "three"] {
        bench.file(&format!("{name}.c"), format!("int {name}(int a){{return a*a;}}").as_bytes(), 0o644);
    }
    for command in COMMANDS {
        let Some(report) = followed(&bench, command, &["make", "-s", "-B", "-j2"]) else { return };
        assert_eq!(named(&report, "cc1").len(), 3);
    }
}

/// Every way of starting a child, and of its ending.
const FAMILY: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static volatile int handled;
static void handler(int n) { handled = n; }
static void end(const char *what, pid_t pid) {
    int status;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR);
    printf("%s %d %d\n", what, WIFEXITED(status) ? WEXITSTATUS(status) : -1, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}
int main(void) {
    setbuf(stdout, 0);
    char *words[] = {"sh", "-c", "exit 6", 0};
    pid_t pid;
    int error = posix_spawn(&pid, "/bin/sh", 0, 0, words, environ);
    printf("spawned %d\n", error);
    end("posix_spawn", pid);
    printf("none to spawn: %d\n", posix_spawn(&pid, "/none/such", 0, 0, words, environ) == ENOENT);
    if (!(pid = vfork())) { execv("/bin/sh", words); _exit(1); }
    end("vfork and exec", pid);
    if (!(pid = vfork())) { execv("/none/such", words); _exit(9); }
    end("vfork and exit", pid);
    if (!(pid = fork())) abort();
    end("abort", pid);
    if (!(pid = fork())) for (;;) pause();
    kill(pid, SIGKILL);
    end("killed", pid);
    if (!(pid = fork())) *(volatile int *)8 = 1;
    end("fault", pid);
    // A handler of the child alone, and one that it inherits.
    struct sigaction act = {.sa_handler = handler};
    sigaction(SIGUSR1, &act, 0);
    if (!(pid = fork())) {
        sigset_t none, usr;
        sigemptyset(&none); sigemptyset(&usr); sigaddset(&usr, SIGUSR1); sigaddset(&usr, SIGUSR2);
        sigprocmask(SIG_BLOCK, &usr, 0);
        sigaction(SIGUSR2, &act, 0);
        kill(getpid(), SIGUSR1); kill(getpid(), SIGUSR2);
        while (!handled) sigsuspend(&none);
        _exit(handled == SIGUSR1 || handled == SIGUSR2 ? 11 : 1);
    }
    end("handled", pid);
    // Stopped and continued: the parent sees both.
    if (!(pid = fork())) { raise(SIGSTOP); _exit(12); }
    int status;
    waitpid(pid, &status, WUNTRACED);
    printf("stopped %d\n", WIFSTOPPED(status) ? WSTOPSIG(status) : -1);
    kill(pid, SIGCONT);
    end("continued", pid);
    // A grandchild whose parent is gone.
    int pipes[2];
    pipe(pipes);
    if (!(pid = fork())) {
        if (!fork()) { usleep(30000); write(pipes[1], "x", 1); _exit(13); }
        _exit(14);
    }
    end("grandparent", pid);
    char byte = 0;
    read(pipes[0], &byte, 1);
    printf("grandchild %c\n", byte);
    return 3;
}
"#;

#[test]
fn every_kind_of_child_behaves_as_natively() {
    let bench = Bench::new();
    let Some(program) = compiled(&bench, "family", &[], FAMILY) else { return };
    for command in COMMANDS {
        let report = followed(&bench, command, &[&program]).unwrap();
        let mut ends: Vec<i64> =
            processes(&report).iter().map(|p| p["exit_status"].as_i64().unwrap()).collect();
        ends.sort_unstable();
        assert_eq!(ends, [3, 6, 6, 9, 11, 12, 13, 14, 127, 134, 137, 139], "{command}");
        assert_eq!(named(&report, "sh").len(), 2);
    }
}

#[test]
fn threads_fork_while_timers_tick() {
    let source = "#include <pthread.h>\n#include <signal.h>\n#include <stdlib.h>\n#include <sys/wait.h>\n#include <unistd.h>\n\
        static void h(int s){}\n\
        static void*w(void*a){for(int i=0;i<8;i++){pid_t p=fork();if(!p){volatile long s=0;for(int k=0;k<2000;k++)s+=k;_exit(i);}\n\
        int st;while(waitpid(p,&st,0)<0);if(WEXITSTATUS(st)!=i)abort();}return 0;}\n\
        int main(){struct sigaction a={0};a.sa_handler=h;a.sa_flags=SA_RESTART;sigaction(SIGALRM,&a,0);sigaction(SIGCHLD,&a,0);\n\
        ualarm(1000,1000);pthread_t t[4];for(int i=0;i<4;i++)pthread_create(t+i,0,w,0);for(int i=0;i<4;i++)pthread_join(t[i],0);return 2;}";
    let bench = Bench::new();
    let Some(program) = compiled(&bench, "threads", &[], source) else { return };
    for command in COMMANDS {
        let report = followed(&bench, command, &[&program]).unwrap();
        assert_eq!(processes(&report).len(), 33);
    }
}

#[test]
fn a_child_that_outlives_the_program_is_followed_to_its_end() {
    let bench = Bench::new();
    for command in COMMANDS {
        let words = ["sh", "-c", "(sleep 0.2; echo late) & echo early; exit 5"];
        let Some(report) = followed(&bench, command, &words) else { return };
        assert_eq!(named(&report, "sleep")[0]["exit_status"], 0);
    }
}

#[test]
fn an_interrupt_leaves_no_orphan() {
    // The child ignores the interrupt, as a shell's background job does.
    let job = lightfoot()
        .args([
            "count",
            "--follow-children",
            "--",
            "sh",
            "-c",
            "trap '' INT; sleep 997 & trap - INT; echo $!; while :; do :; done",
        ])
        .start_job();
    job.signal("INT");
    let ran = job.finish();
    ran.ends_with(130).says("partial").says("#2 of #1, signal 15: ");
    assert!(ran.seconds < 900.0, "{} s", ran.seconds);
    let pid = String::from_utf8_lossy(&ran.stdout).trim().to_owned();
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    assert!(!command.starts_with(b"sleep\x00997"), "process {pid} is left");
}

#[test]
fn without_the_option_children_run_natively() {
    let words = ["count", "--format", "json", "--", "sh", "-c", "sh -c 'echo child; exit 1'; exit 2"];
    let ran = lightfoot().args(words).run();
    ran.ends_with(2);
    let report = json(&ran.stderr);
    assert!(report.get("processes").is_none());
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "child\n");
}

#[test]
fn text_and_csv_name_each_process() {
    let program = ["--", "sh", "-c", "sh -c 'exit 3' ; exit 4"];
    let text = lightfoot().args(["count", "--follow-children"]).args(program).run();
    text.ends_with(4).says("#1, exit 4: sh ").says("#2 of #1, exit 3: sh ").says("the sum of these");
    let csv = lightfoot().args(["cache", "--follow-children", "--format", "csv"]).args(program).run();
    csv.ends_with(4).says("\n(process 2 of 1),sh,,");
}

#[test]
fn branches_of_children_are_refused() {
    let words = ["cache", "--branches", "--follow-children", "--", "true"];
    lightfoot().args(words).run().fails_with(125).says("--follow-children").in_one_line();
}
