//! Calls in the files of `lightfoot valgrind --tool=callgrind`: their numbers and inclusive costs,
//! held against functions whose instructions are known.

mod bench;

use bench::{compile, lightfoot, Bench};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// `spin(n)` runs 4 instructions n times, and 3 more; it loads once. `twice` calls it with 10 and
/// 20, and runs 5 instructions; `down(n)` calls itself n times, and runs 5 instructions in each
/// call but the last, which has 3; `leap` runs 2 instructions and jumps to `spin`, with 30.
const FUNCTIONS: &str = r#"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
void spin(long n); void twice(void); void down(long n); void leap(void);
__asm__(".text\n"
  ".globl spin\n.type spin,@function\nspin: mov %rdi,%rax\n1: nop\n nop\n dec %rax\n jnz 1b\n nop\n ret\n.size spin,.-spin\n"
  ".globl twice\n.type twice,@function\ntwice: mov $10,%edi\n call spin\n mov $20,%edi\n call spin\n ret\n.size twice,.-twice\n"
  ".globl down\n.type down,@function\ndown: test %edi,%edi\n jz 1f\n dec %edi\n call down\n1: ret\n.size down,.-down\n"
  ".globl leap\n.type leap,@function\nleap: mov $30,%edi\n jmp spin\n.size leap,.-leap\n");
"#;
/// Instructions of `spin(n)`.
const fn spun(times: u64) -> u64 {
    4 * times + 3
}
/// Instructions of `twice`.
const TWICE: u64 = 5 + spun(10) + spun(20);

fn program(bench: &Bench, name: &str, body: &str) -> Option<PathBuf> {
    compile(bench, name, &["-O1", "-g", "-fno-optimize-sibling-calls"], &format!("{FUNCTIONS}{body}"))
}

/// By caller and callee: number of calls, and inclusive costs in the order of the file's events.
type Calls = BTreeMap<(String, String), (u64, Vec<u64>)>;

/// Runs a program and reads the calls of its file.
fn calls(bench: &Bench, options: &[&str], program: &Path) -> Calls {
    let file = bench.path().join("calls.out");
    let name = format!("--callgrind-out-file={}", file.display());
    let run = lightfoot().within(bench.path());
    let run = run.args(["valgrind", "--tool=callgrind", "--compress-strings=no", &name]);
    run.args(options).arg(program).run().ends_with(0);
    let text = std::fs::read_to_string(&file).unwrap();
    let (mut calls, mut caller, mut callee, mut times) = (Calls::new(), String::new(), String::new(), None);
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("fn=") {
            caller = name.to_owned();
        } else if let Some(name) = line.strip_prefix("cfn=") {
            callee = name.to_owned();
        } else if let Some(number) = line.strip_prefix("calls=") {
            times = Some(number.split(' ').next().unwrap().parse::<u64>().unwrap());
        } else if let Some(number) = times.take() {
            let costs = line.split(' ').skip(1).map(|cost| cost.parse::<u64>().unwrap());
            let (sum, all) = calls.entry((caller.clone(), callee.clone())).or_default();
            *sum += number;
            all.resize(9, 0);
            all.iter_mut().zip(costs).for_each(|(sum, cost)| *sum += cost);
        }
    }
    calls
}

/// The number of calls of an edge, and the instructions between them and their returns.
#[track_caller]
fn edge(calls: &Calls, caller: &str, callee: &str) -> (u64, u64) {
    let edge = calls.get(&(caller.to_owned(), callee.to_owned()));
    let (times, costs) = edge.unwrap_or_else(|| panic!("{caller} does not call {callee}: {calls:?}"));
    (*times, costs[0])
}

#[test]
fn calls_and_their_instructions_are_exact() {
    let bench = Bench::new();
    let body = "int main(void){ for (int i = 0; i < 3; i++) twice(); down(5); leap(); leap(); return 0; }";
    let Some(program) = program(&bench, "exact", body) else { return };
    for options in [&[][..], &["--cache-sim=yes"], &["--separate-threads=no"]] {
        let calls = calls(&bench, options, &program);
        assert_eq!(edge(&calls, "main", "twice"), (3, 3 * TWICE), "{options:?}");
        assert_eq!(edge(&calls, "twice", "spin"), (6, 3 * (spun(10) + spun(20))));
        assert_eq!(edge(&calls, "main", "down"), (1, 5 * 5 + 3));
        assert_eq!(edge(&calls, "down", "down"), (5, 0), "the outermost call has the costs");
        assert_eq!(edge(&calls, "main", "leap"), (2, 2 * (2 + spun(30))));
        assert_eq!(edge(&calls, "leap", "spin"), (2, 2 * spun(30)), "a jump into a function");
        assert!(!calls.contains_key(&("main".into(), "spin".into())));
    }
}

#[test]
fn references_and_misses_belong_to_calls() {
    let bench = Bench::new();
    let body = r#"static char lines[1 << 20];
        __attribute__((noinline)) void touch(int step){ for (int i = 0; i < 1 << 20; i += step) ((volatile char*)lines)[i] = 1; }
        __attribute__((noinline)) void outer(void){ touch(64); }
        int main(void){ outer(); outer(); return 0; }"#;
    let Some(program) = program(&bench, "misses", body) else { return };
    let options = ["--I1=32768,8,64", "--D1=32768,8,64", "--LL=8388608,16,64"];
    let calls = calls(&bench, &options, &program);
    let (times, costs) = &calls[&("outer".into(), "touch".into())];
    let [stores, store_misses, last_store_misses] = [2, 5, 8].map(|event| costs[event]);
    assert_eq!(*times, 2);
    assert_eq!(stores, 2 << 14, "one for each line, and no other");
    assert_eq!(store_misses, 2 << 14, "the first level holds a 32nd of them");
    assert!(
        (1 << 14..(1 << 14) + 4).contains(&last_store_misses),
        "the last level misses once: {last_store_misses}"
    );
}

#[test]
fn a_long_jump_ends_the_calls_that_it_leaves() {
    let bench = Bench::new();
    let body = r#"static jmp_buf back;
        __attribute__((noinline)) void deeper(int n){ if (n == 0) longjmp(back, 1); deeper(n - 1); __asm__ volatile(""); }
        int main(void){ for (int i = 0; i < 4; i++) { if (!setjmp(back)) deeper(3); twice(); } return 0; }"#;
    let Some(program) = program(&bench, "jumps", body) else { return };
    let calls = calls(&bench, &[], &program);
    assert_eq!(edge(&calls, "main", "twice"), (4, 4 * TWICE));
    let (times, costs) = edge(&calls, "main", "deeper");
    assert_eq!((times, edge(&calls, "deeper", "deeper")), (4, (12, 0)));
    // The dynamic linker resolves `longjmp` once.
    assert!(costs < 4000, "it contains nothing of what follows: {costs}");
}

#[test]
fn a_signal_between_leaves_calls_as_they_are() {
    let bench = Bench::new();
    let body = r#"static void handler(int n){ (void)n; twice(); }
        __attribute__((noinline)) void outer(void){ raise(SIGUSR1); spin(5); }
        int main(void){ signal(SIGUSR1, handler); for (int i = 0; i < 3; i++) outer(); return 0; }"#;
    let Some(program) = program(&bench, "signals", body) else { return };
    let calls = calls(&bench, &[], &program);
    assert_eq!(edge(&calls, "outer", "spin"), (3, 3 * spun(5)));
    assert_eq!(edge(&calls, "handler", "twice"), (3, 3 * TWICE));
    assert_eq!(edge(&calls, "main", "outer").0, 3);
}

#[test]
fn each_thread_has_calls_of_its_own() {
    let bench = Bench::new();
    let body = r#"static void *work(void *x){ for (int i = 0; i < 1000; i++) twice(); return x; }
        int main(void){ pthread_t all[4]; for (int i = 0; i < 4; i++) pthread_create(&all[i], 0, work, 0);
        for (int i = 0; i < 4; i++) pthread_join(all[i], 0); return 0; }"#;
    let Some(program) = program(&bench, "threads", body) else { return };
    for options in [&[][..], &["--cache-sim=yes"]] {
        let calls = calls(&bench, options, &program);
        assert_eq!(edge(&calls, "work", "twice"), (4000, 4000 * TWICE));
        assert_eq!(edge(&calls, "twice", "spin"), (8000, 4000 * (spun(10) + spun(20))));
    }
}

#[test]
fn a_toggled_function_has_its_calls_and_nothing_else() {
    let bench = Bench::new();
    let body = "int main(void){ spin(9); for (int i = 0; i < 3; i++) twice(); leap(); return 0; }";
    let Some(program) = program(&bench, "toggled", body) else { return };
    for options in [&["--toggle-collect=twice"][..], &["--toggle-collect=twice", "--cache-sim=yes"]] {
        let calls = calls(&bench, options, &program);
        assert_eq!(edge(&calls, "twice", "spin"), (6, 3 * (spun(10) + spun(20))));
        assert_eq!(edge(&calls, "main", "twice"), (3, 3 * TWICE), "as callgrind has it");
        assert!(!calls.contains_key(&("leap".into(), "spin".into())));
    }
}

#[test]
fn stubs_are_passed_through() {
    let bench = Bench::new();
    let body = r#"int less(const void *a, const void *b){ return *(const int *)a - *(const int *)b; }
        int main(void){ int v[] = {3, 1, 2}; for (int i = 0; i < 5; i++) { qsort(v, 3, sizeof v[0], less); v[0] = 9; } return v[1] > 9; }"#;
    let Some(program) = program(&bench, "stubs", body) else { return };
    let calls = calls(&bench, &[], &program);
    let callees: Vec<&str> =
        calls.keys().filter(|(caller, _)| caller == "main").map(|(_, callee)| callee.as_str()).collect();
    assert!(callees.iter().any(|callee| callee.starts_with("qsort")), "{callees:?}");
    assert!(callees.iter().all(|callee| !callee.contains("@plt")), "{callees:?}");
}
