//! C++ exceptions unwind through measured programs as natively.
//!
//! An unwinder zeroes a register and asks `rdssp` whether there is a shadow stack to be unwound as
//! well. Without one that instruction leaves its register alone, so it must not count as a write
//! that makes what was there before unneeded: a tool that borrowed the register would send the
//! program into instructions that it must not execute.

mod bench;

use bench::{compile, lightfoot, Bench};
use std::path::Path;
use std::process::Command;

const THROWS: &str = r#"
#include <cstdio>
#include <stdexcept>
#include <string>
struct Counted { static long alive; Counted() { alive++; } ~Counted() { alive--; } };
long Counted::alive = 0;
static __attribute__((noinline)) long deep(long depth, long what) {
    Counted here;
    if (depth == 0) {
        if (what % 3 == 0) throw what;
        if (what % 3 == 1) throw std::runtime_error(std::to_string(what));
        return what;
    }
    return deep(depth - 1, what) + 1;
}
int main() {
    long sum = 0;
    for (long i = 0; i < 300; i++) {
        try { sum += deep(i % 7, i); }
        catch (long thrown) { sum += 1000 * thrown; }
        catch (const std::exception &error) { sum += 7 * std::stol(error.what()); }
    }
    std::printf("%ld %ld\n", sum, Counted::alive);
    return (int)(sum % 97);
}
"#;

const SHADOW_STACK: &str = r#"
#include <stdio.h>
static __attribute__((noinline)) long shadow_stack(long start) {
    long pointer = start;
    __asm__ volatile("rdsspq %0" : "+r"(pointer));
    return pointer;
}
int main(void) {
    long sum = 0;
    for (long i = 0; i < 3000; i++)
        if (shadow_stack(i) == i)
            sum += i % 5 ? 1 : 2;
    printf("%ld\n", sum);
    return 0;
}
"#;

const COMMANDS: &[&[&str]] = &[
    &["count"],
    &["count", "--rep", "iterations"],
    &["cache"],
    &["cache", "--machine", "zen4"],
    &["cache", "--machine", "cachegrind", "--branches"],
    &["tool", "branch-mix"],
    &["tool", "opcode-mix"],
];

fn compare(program: &Path) {
    let native = Command::new(program).output().unwrap();
    for words in COMMANDS {
        let ran = lightfoot().args(*words).arg("--").arg(program).run();
        assert_eq!(Some(ran.status), native.status.code(), "{words:?}: {}", ran.said());
        let output = String::from_utf8_lossy(&ran.stdout);
        let expected = String::from_utf8_lossy(&native.stdout);
        assert!(output.starts_with(&*expected), "{words:?}: {output} instead of {expected}");
    }
}

#[test]
fn exceptions_are_caught_where_they_are_natively() {
    let bench = Bench::new();
    let source = bench.file("throws.cc", THROWS.as_bytes(), 0o644);
    let program = bench.join("throws");
    match Command::new("g++").args(["-O1", "-o"]).arg(&program).arg(&source).output() {
        Ok(out) => assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr)),
        Err(_) => return eprintln!("skipped: there is no g++ here"),
    }
    compare(&program);
}

#[test]
fn a_register_that_is_asked_for_a_shadow_stack_keeps_what_it_held() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "shadow", &["-O1"], SHADOW_STACK) else { return };
    compare(&program);
}
