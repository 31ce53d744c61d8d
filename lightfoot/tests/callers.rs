//! What callers of Valgrind meet beyond its four profilers: lackey, options that only the other
//! valgrind has, and jumps within functions, which call graphs do not record.

mod bench;

use bench::{compile, lightfoot, Bench, Ran};
use std::collections::BTreeMap;
use std::path::Path;

fn valgrind(bench: &Bench, options: &[&str], program: &Path) -> Ran {
    lightfoot().within(bench.path()).arg("valgrind").args(options).arg(program).run()
}

/// What stands behind `name:` in a log, without the commas of its number.
fn number(log: &str, name: &str) -> u64 {
    let behind =
        log.lines().find_map(|line| line.split_once(name)).unwrap_or_else(|| panic!("{name}\n{log}"));
    let digits = behind.1.trim_start().split(' ').next().unwrap_or_default().replace(',', "");
    digits.parse().unwrap_or_else(|error| panic!("{name}: {error}\n{log}"))
}

const CALLED: &str = "#include <stdlib.h>
    __attribute__((noinline)) int often(int n) { __asm__ volatile(\"\"); return n + 1; }
    int main(int count, char **words) { (void)words;
        for (int i = 0; i < 1234; i++) count = often(count);
        return count == 1235 ? 7 : 0; }";

#[test]
fn lackey_counts_calls_branches_and_the_same_instructions() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "called", &["-O1"], CALLED) else { return };
    let ran = valgrind(
        &bench,
        &["--tool=lackey", "--repeatable=yes", "--fnname=often", "--log-file=log"],
        &program,
    );
    ran.ends_with(7);
    let log = std::fs::read_to_string(bench.path().join("log")).unwrap();
    assert!(log.contains("== Counted 1,234 calls to often()\n"), "{log}");
    assert!(log.contains("== Exit code:       7\n"), "{log}");
    let [total, taken] = ["  total:", "  taken:"].map(|name| number(&log, name));
    assert!((1234..total).contains(&taken), "{log}");
    let [entered, completed] = ["SBs entered:", "SBs completed:"].map(|name| number(&log, name));
    // Each call is a block, and each return.
    assert!(entered > 2 * 1234 && completed + taken <= entered, "{log}");
    assert!(completed + taken + 100 > entered, "few blocks are left in the middle: {log}");

    let options = ["--tool=callgrind", "--repeatable=yes", "--calls=no", "--callgrind-out-file=out"];
    let ran = valgrind(&bench, &[&options[..], &["--log-file=log"]].concat(), &program);
    ran.ends_with(7);
    let costs = std::fs::read_to_string(bench.path().join("log")).unwrap();
    assert_eq!(number(&log, "guest instrs:"), number(&costs, "I refs:"));
}

#[test]
fn lackey_says_what_it_leaves_out() {
    let bench = Bench::new();
    let ran = valgrind(&bench, &["--tool=lackey", "--basic-counts=no"], Path::new("/bin/true"));
    ran.ends_with(0);
    assert!(!String::from_utf8_lossy(&ran.stderr).contains("Counted"));
    for option in ["--detailed-counts=yes", "--trace-mem=yes", "--trace-superblocks=yes"] {
        let ran = valgrind(&bench, &["--tool=lackey", option], Path::new("/bin/true"));
        ran.ends_with(1);
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(said.contains(option) && said.contains("lightfoot tool"), "{said}");
    }
}

#[test]
fn another_valgrind_obeys_the_options_that_this_one_cannot() {
    let bench = Bench::new();
    let other = bench.file("other", b"#!/bin/sh\necho \"$@\"\n", 0o755);
    let fallback = format!("--fallback={}", other.display());
    for option in ["--collect-bus=yes", "--mode=copy", "--time-unit=ms", "--no-such-option=1"] {
        let ran = valgrind(&bench, &[&fallback, "--tool=callgrind", option], Path::new("x"));
        ran.ends_with(0);
        let expected = format!("--command-line-only=yes --tool=callgrind {option} x\n");
        assert_eq!(String::from_utf8_lossy(&ran.stdout), expected);
        // Without another one, it is refused.
        valgrind(&bench, &["--tool=callgrind", option], Path::new("x")).ends_with(1);
    }
    // What is possible is done here, and the other one knows nothing of our own options.
    let ran = valgrind(&bench, &[&fallback, "--tool=none", "-q", "--track-fds=no"], Path::new("/bin/true"));
    assert!(ran.ends_with(0).stdout.is_empty());
    valgrind(&bench, &[&fallback, "--tool=callgrind", "--rep=sometimes"], Path::new("x")).ends_with(1);
}

/// A function whose jumps by a register stay within it, with calls between them.
const DISPATCHES: &str = "#include <stddef.h>
    __attribute__((noinline)) void leaf(void) { __asm__ volatile(\"nop\"); }
    __attribute__((noinline)) long dispatch(const unsigned char *code) {
        static void *const labels[] = { &&calls, &&passes, &&ends };
        goto *labels[*code];
    calls: leaf(); code++; goto *labels[*code];
    passes: code++; goto *labels[*code];
    ends: return *code; }
    int main(void) { static unsigned char code[301];
        for (size_t i = 0; i < 300; i++) code[i] = i % 3 == 0 ? 0 : 1;
        code[300] = 2;
        return (int)dispatch(code); }";

/// A function's own instructions, and number and inclusive instructions of its calls by callee.
#[derive(Debug, Default, PartialEq)]
struct Function {
    own: u64,
    calls: BTreeMap<String, (u64, u64)>,
}

/// The functions of a file of callgrind with names that are not abbreviated.
fn functions(path: &Path) -> BTreeMap<String, Function> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut functions: BTreeMap<String, Function> = BTreeMap::new();
    let (mut name, mut callee, mut times) = (String::new(), String::new(), None);
    for line in text.lines() {
        let instructions = |line: &str| line.split(' ').nth(1).unwrap().parse::<u64>().unwrap();
        if let Some(begins) = line.strip_prefix("fn=") {
            name = begins.to_owned();
        } else if let Some(called) = line.strip_prefix("cfn=") {
            callee = called.to_owned();
        } else if let Some(calls) = line.strip_prefix("calls=") {
            times = calls.split(' ').next().unwrap().parse::<u64>().ok();
        } else if line.starts_with(|first: char| first.is_ascii_digit()) {
            let function = functions.entry(name.clone()).or_default();
            match times.take() {
                Some(times) => {
                    let call = function.calls.entry(callee.clone()).or_default();
                    *call = (call.0 + times, call.1 + instructions(line));
                }
                None => function.own += instructions(line),
            }
        }
    }
    functions
}

#[test]
fn jumps_within_a_function_change_no_call() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "dispatches", &["-O1", "-g"], DISPATCHES) else { return };
    let plain = ["--tool=callgrind", "--compress-strings=no", "--callgrind-out-file=out"];
    // The second run has kept translations.
    for more in [&[][..], &["--cache-sim=yes"], &["--cache-sim=yes"], &[]] {
        valgrind(&bench, &[&plain[..], more].concat(), &program).ends_with(2);
        let functions = functions(&bench.path().join("out"));
        let dispatch = &functions["dispatch"];
        let leaf = &functions["leaf"];
        assert_eq!(dispatch.calls, BTreeMap::from([("leaf".to_owned(), (100, leaf.own))]));
        let whole = dispatch.own + leaf.own;
        assert_eq!(functions["main"].calls["dispatch"], (1, whole), "{more:?}");
    }
}

/// `through(flags)` jumps within itself while flags are live, and returns them.
const FLAGS: &str = "#include <stdio.h>
    long through(long flags);
    __asm__(\".text\\n.globl through\\n.type through,@function\\nthrough: lea 1f(%rip),%rax\\n push %rdi\\n popfq\\n\"
            \" jmp *%rax\\n nop\\n1: pushfq\\n pop %rax\\n ret\\n.size through,.-through\");
    int main(void) { const long all[] = { 1, 4, 16, 64, 128, 2048 }; int wrong = 0;
        for (int set = 0; set < 64; set++) { long flags = 0x202;
            for (int i = 0; i < 6; i++) if (set >> i & 1) flags |= all[i];
            for (int times = 0; times < 9; times++) wrong += ((through(flags) ^ flags) & 0x8d5) != 0; }
        printf(\"%d\\n\", wrong); return 0; }";

#[test]
fn flags_live_through_jumps_within_a_function() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "flags", &["-O1"], FLAGS) else { return };
    for more in [&[][..], &["--cache-sim=yes"]] {
        let options = [&["--tool=callgrind", "--callgrind-out-file=out"], more].concat();
        let ran = valgrind(&bench, &options, &program);
        assert_eq!(ran.ends_with(0).stdout, b"0\n", "{more:?}");
    }
}
