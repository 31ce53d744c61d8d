//! Programs with sanitizers, which divide the address space among themselves: they run as natively,
//! and report what they report natively.
//!
//! Twenty runs each, with translations kept. What this system's compilers lack is named and
//! skipped.

mod bench;

use bench::{unwished, Bench, BINARY};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const RUNS: usize = 20;

/// Threads, memory that comes and goes, a library.
const SOUND: &str = "#include <pthread.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\
    static pthread_mutex_t lock=PTHREAD_MUTEX_INITIALIZER;static long sum;\n\
    static void*work(void*a){for(int i=1;i<300;i++){char*p=malloc(i);memset(p,i,i);pthread_mutex_lock(&lock);sum+=p[i-1];pthread_mutex_unlock(&lock);free(p);}return 0;}\n\
    int main(){pthread_t t[3];for(int i=0;i<3;i++)pthread_create(t+i,0,work,0);for(int i=0;i<3;i++)pthread_join(t[i],0);printf(\"%ld\\n\",sum);return 3;}";
/// Memory that is lost, and memory that only a register of a running thread, and one of a waiting
/// thread, lead to.
const LEAKS: &str = "#include <pthread.h>\n#include <stdlib.h>\n#include <unistd.h>\n\
    static volatile int ready;\n\
    static void*spin(void*a){register char*p=malloc(77);__atomic_add_fetch(&ready,1,__ATOMIC_SEQ_CST);for(;;)__asm__ volatile(\"\":\"+r\"(p));return 0;}\n\
    static void*sleeps(void*a){char*volatile p=malloc(78);(void)p;__atomic_add_fetch(&ready,1,__ATOMIC_SEQ_CST);for(;;)pause();return 0;}\n\
    int main(){pthread_t t;pthread_create(&t,0,spin,0);pthread_create(&t,0,sleeps,0);while(ready<2)usleep(1000);\n\
    volatile char*p=malloc(123);p=malloc(4567);p=0;return 0;}";
const OVERFLOWS: &str =
    "#include <stdlib.h>\nint main(int c,char**v){char*p=malloc(10);p[c+9]=1;free(p);return 0;}";
const RACES: &str = "#include <pthread.h>\n#include <unistd.h>\n#include <stdio.h>\nstatic int x;\n\
    static void*work(void*a){x=1;return 0;}\n\
    int main(){pthread_t t;pthread_create(&t,0,work,0);usleep(100000);x=2;pthread_join(t,0);puts(\"end\");return 0;}";
const UNDEFINED: &str =
    "#include <stdio.h>\nint main(int c,char**v){int n=0x7fffffff;n+=c;printf(\"%d\\n\",n);return 5;}";
const UNSET: &str = "#include <stdio.h>\n#include <stdlib.h>\nint main(int c,char**v){int*p=malloc(8);p[0]=c;if(p[c])puts(\"set\");free(p);return 0;}";

/// A program; `None`, and said, where the compiler lacks what it needs.
fn built(bench: &Bench, compiler: &str, sanitizer: &str, source: &str) -> Option<PathBuf> {
    let (file, program) = (bench.join("source.c"), bench.join("program"));
    std::fs::write(&file, source).unwrap();
    let option = format!("-fsanitize={sanitizer}");
    let ran = Command::new(compiler)
        .args(["-g", "-O0", "-w", "-pthread", &option, "-o"])
        .args([&program, &file])
        .output();
    if !ran.is_ok_and(|ran| ran.status.success()) {
        eprintln!("skipped: no compiler {compiler} with -fsanitize={sanitizer} here");
        return None;
    }
    Some(program)
}

fn output(bench: &Bench, words: &[&str]) -> Output {
    let mut command = Command::new(words[0]);
    unwished(&mut command).args(&words[1..]).current_dir(bench.path()).stdin(Stdio::null());
    // Not in a report, but in the environment, which is on the stack whose addresses are in it.
    command.env("LIGHTFOOT_TRANSLATIONS", bench.join("translations")).output().unwrap()
}

/// Without the numbers of processes and threads.
fn text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut out = String::new();
    for line in text.lines() {
        let numbered = line.strip_prefix("==").and_then(|rest| rest.split_once("=="));
        let line = numbered.map_or(line, |(_, rest)| rest);
        let mut rest = line;
        while let Some(at) =
            ["(pid=", "tid="].into_iter().filter_map(|name| Some(rest.find(name)? + name.len())).min()
        {
            out.push_str(&rest[..at]);
            rest = rest[at..].trim_start_matches(|c: char| c.is_ascii_digit());
        }
        out.push_str(rest);
        out.push('\n');
    }
    out
}

/// Compares runs with a native one that has the same addresses.
fn same(compiler: &str, sanitizer: &str, source: &str, reports: Option<&str>) {
    let bench = Bench::new();
    let Some(program) = built(&bench, compiler, sanitizer, source) else { return };
    if !bench::repeatable() {
        return;
    }
    let program = program.to_str().unwrap();
    let native = output(&bench, &["setarch", "x86_64", "-R", program]);
    let said = text(&native.stderr);
    if let Some(words) = reports {
        assert!(said.contains(words), "natively: {said}");
    }
    let report = bench.join("report.json");
    let report = report.to_str().unwrap();
    for run in 0..RUNS {
        let command = ["count", "cache"][run % 2];
        let measured = output(&bench, &[BINARY, command, "--format", "json", "-o", report, "--", program]);
        assert_eq!(text(&measured.stderr), said, "{sanitizer}, run {run}");
        assert_eq!(text(&measured.stdout), text(&native.stdout), "{sanitizer}, run {run}");
        assert_eq!(measured.status.code(), native.status.code(), "{sanitizer}, run {run}");
        assert!(Path::new(report).exists());
    }
}

#[test]
fn sound_programs_run_as_natively() {
    for sanitizer in ["address", "leak", "thread", "undefined"] {
        same("cc", sanitizer, SOUND, None);
    }
}

#[test]
fn memory_errors_are_reported() {
    same("cc", "address", OVERFLOWS, Some("heap-buffer-overflow"));
}

#[test]
fn leaks_are_reported_and_nothing_else() {
    same("cc", "address", LEAKS, Some("4690 byte(s) leaked in 2 allocation(s)"));
    same("cc", "leak", LEAKS, Some("4690 byte(s) leaked in 2 allocation(s)"));
}

#[test]
fn races_and_undefined_behaviour_are_reported() {
    same("cc", "thread", RACES, Some("data race"));
    same("cc", "undefined", UNDEFINED, Some("signed integer overflow"));
}

#[test]
fn unset_memory_is_reported() {
    same("clang", "memory", SOUND, None);
    same("clang", "memory", UNSET, Some("use-of-uninitialized-value"));
}

#[test]
fn programs_of_another_compiler_run_as_natively() {
    for sanitizer in ["address", "thread"] {
        same("clang", sanitizer, SOUND, None);
    }
}
