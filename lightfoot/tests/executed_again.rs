//! Programs that one run executes again and again: a process that takes over what a former one has
//! translated behaves as natively, and counts as the first one did.

mod bench;

use bench::{compile, json, Bench, BINARY};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::process::{Command, Stdio};

const COMMANDS: [&str; 2] = ["count", "cache"];
const COUNTS: [&str; 9] = [
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

/// Does what its first word says: each word leaves other code, other mappings, other counts or
/// another end behind.
const PROGRAM: &str = r#"
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static volatile int signals;
static void handle(int number) { signals += number; }
static int collatz(long n) { int k = 0; while (n != 1) { n = n % 2 ? 3 * n + 1 : n / 2; k++; } return k; }
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static void *work(void *n) { long sum = 0; for (long i = 1; i < (long)n; i++) sum += collatz(i); return (void *)sum; }
static int library(const char *path) {
    void *handle = dlopen(path, RTLD_NOW);
    int value = ((int (*)(void))dlsym(handle, "number"))();
    dlclose(handle);
    return value;
}
static int generated(int value) {
    unsigned char *page = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char code[] = {0xb8, value, 0, 0, 0, 0xc3};
    memcpy(page, code, 6);
    return ((int (*)(void))page)();
}
int main(int count, char **words) {
    const char *what = words[1];
    if (!strcmp(what, "plain")) printf("%d\n", collatz(97));
    else if (!strcmp(what, "sort")) {
        static int all[5000];
        for (int i = 0; i < 5000; i++) all[i] = i * 7919 % 5003;
        qsort(all, 5000, sizeof *all, compare);
        printf("%d %d\n", all[0], all[4999]);
    } else if (!strcmp(what, "signal")) {
        signal(SIGUSR1, handle);
        for (int i = 0; i < 5; i++) raise(SIGUSR1);
        printf("%d\n", signals);
    } else if (!strcmp(what, "libraries")) printf("%d %d\n", library(words[2]), library(words[3]));
    else if (!strcmp(what, "other")) printf("%d\n", library(words[3]));
    else if (!strcmp(what, "generated")) printf("%d %d\n", generated(5), generated(count));
    else if (!strcmp(what, "thread")) {
        pthread_t one;
        void *sum;
        pthread_create(&one, 0, work, (void *)300);
        pthread_join(one, &sum);
        printf("%ld\n", (long)sum);
    } else if (!strcmp(what, "fork")) {
        if (!fork()) _exit(collatz(27) & 63);
        int status;
        wait(&status);
        printf("%d\n", WEXITSTATUS(status));
    } else if (!strcmp(what, "itself")) {
        char *again[] = {words[0], "plain", 0};
        execve(words[0], again, environ);
    } else if (!strcmp(what, "fault")) *(volatile int *)8 = 1;
    else if (!strcmp(what, "killed")) raise(SIGKILL);
    return 0;
}
"#;

/// The order in which the words come: each again after others.
const ORDER: &str =
    "plain plain sort signal plain libraries other generated plain sort thread fork itself plain \
                     fault plain libraries killed thread generated other itself fork signal sort plain";

/// Runs a shell script natively and under `command`, and compares. Returns the report.
fn followed(bench: &Bench, command: &str, script: &str, kept: &OsStr) -> Value {
    let run = |words: &[&str]| {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).args(["sh", "-c", script]).current_dir(bench.path());
        // Every process of a word has the same environment, as natively.
        command.env_clear().env("PATH", "/usr/bin:/bin").env("LIGHTFOOT_TRANSLATIONS", kept);
        command.stdin(Stdio::null()).output().unwrap()
    };
    let native = run(&["env"]);
    let words = [BINARY, command, "--follow-children", "--format", "json", "-o", "report.json", "--"];
    let measured = run(&words);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(text(&measured.stdout), text(&native.stdout), "{command}: output");
    assert_eq!(measured.status.code(), native.status.code(), "{command}: {}", text(&measured.stderr));
    json(&std::fs::read(bench.join("report.json")).unwrap())
}

/// For each command line, the counts of the processes that the shell has made, in their order.
fn counts(report: &Value) -> BTreeMap<String, Vec<Vec<Option<u64>>>> {
    let mut all = BTreeMap::new();
    let processes = report["processes"].as_array().unwrap();
    let shell = &processes[0]["pid"];
    for process in processes.iter().filter(|process| process["parent"] == *shell) {
        let counts = COUNTS.iter().map(|field| process.get(field).and_then(Value::as_u64)).collect();
        let words = process["command"].as_array().unwrap();
        let line: Vec<&str> = words.iter().map(|word| word.as_str().unwrap()).collect();
        all.entry(line.join(" ")).or_insert_with(Vec::new).push(counts);
    }
    all
}

fn compiled(bench: &Bench, name: &str, options: &[&str], source: &str) -> Option<String> {
    compile(bench, name, options, source).map(|path| path.to_str().unwrap().to_owned())
}

fn library(bench: &Bench, name: &str, value: u32) -> Option<String> {
    compiled(bench, name, &["-shared", "-fPIC"], &format!("int number(void){{return {value};}}"))
}

#[test]
fn each_process_of_a_program_counts_as_the_first_one() {
    let bench = Bench::new();
    let (Some(one), Some(two)) = (library(&bench, "one.so", 1), library(&bench, "two.so", 2)) else { return };
    let Some(program) = compiled(&bench, "program", &["-O1", "-ldl", "-pthread"], PROGRAM) else { return };
    let script =
        format!("for word in {ORDER}; do {program} $word {one} {two}; echo $? $word; done 2>/dev/null");
    for command in COMMANDS {
        for kept in [OsStr::new("off"), bench.join("translations").as_os_str()] {
            // With a folder, the second run begins with what the first one has left.
            for _ in 0..2 {
                let report = followed(&bench, command, &script, kept);
                for (line, counts) in counts(&report) {
                    // The shell's own children are forks; what a program counts that is killed or
                    // whose threads race depends on when.
                    if !line.starts_with(&program) || line.contains("killed") || line.contains("thread") {
                        continue;
                    }
                    let differs = counts.iter().position(|other| *other != counts[0]);
                    assert_eq!(differs, None, "{command} {kept:?} {line}: {counts:?}");
                }
            }
        }
    }
}

#[test]
fn a_program_that_is_replaced_runs_as_what_it_is_now() {
    let bench = Bench::new();
    // Equal in their first pages and their lengths, so that only the code tells them apart.
    let options = ["-O1", "-Wl,--build-id=none"];
    let source = |value: u32| {
        format!("#include <stdio.h>\nint main(void){{for(int i=0;i<3;i++)printf(\"%d\\n\",i*{value});return {value};}}")
    };
    let versions = [5, 6, 7].map(|value| compiled(&bench, &format!("v{value}"), &options, &source(value)));
    let [Some(five), Some(six), Some(seven)] = versions else { return };
    // Written in place, and put in its place.
    let script = format!(
        "cp {five} now; ./now; ./now; cat {six} > now; ./now; ./now; cp {seven} new; mv new now; ./now; ./now; cat {five} > now; ./now; {six}; {five}"
    );
    for command in COMMANDS {
        for kept in [OsStr::new("off"), bench.join("translations").as_os_str()] {
            let all = counts(&followed(&bench, command, &script, kept));
            let now = &all["./now"];
            assert_eq!(now.len(), 7);
            for (pair, name) in [(&now[..2], "five"), (&now[2..4], "six"), (&now[4..6], "seven")] {
                assert_eq!(pair[0], pair[1], "{command} {kept:?}: {name}");
            }
            assert_eq!(now[6], now[0], "{command} {kept:?}: five again");
        }
    }
}

/// Several processes of one program live at the same time, and each has counts of its own.
#[test]
fn processes_that_live_together_share_nothing_that_changes() {
    let bench = Bench::new();
    let Some(program) = compiled(&bench, "program", &["-O1", "-ldl", "-pthread"], PROGRAM) else { return };
    // A shell counts its background processes, so only the program's own code counts the same.
    let own = |report: &Value| {
        let libraries = report["libraries"].as_array().unwrap();
        let own = libraries.iter().find(|row| row["name"] == program.as_str()).expect("the program ran");
        ["instructions", "loads", "stores"].map(|field| own[field].as_u64().unwrap())
    };
    let script = format!(
        "for round in 1 2 3; do for k in 1 2 3 4; do {program} sort > out$k & done; wait; cat out1 out2 out3 out4; done"
    );
    for command in COMMANDS {
        let alone = own(&followed(&bench, command, &format!("{program} sort; :"), OsStr::new("off")));
        let together = own(&followed(&bench, command, &script, OsStr::new("off")));
        assert_eq!(together, alone.map(|count| 12 * count), "{command}");
    }
}
