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

/// Valgrind's sequence for amd64, and a request with two arguments.
const REQUEST: &str =
    "#define SEQUENCE \" rol $3,%%rdi\\n rol $13,%%rdi\\n rol $61,%%rdi\\n rol $51,%%rdi\\n\" \\
        \" xchg %%rbx,%%rbx\\n\"
    static long request(long code, const void *first, const void *second) {
        volatile long words[6] = { code, (long)first, (long)second, 0, 0, 0 }; long answer = 0;
        __asm__ volatile(SEQUENCE : \"+d\"(answer) : \"a\"(words) : \"cc\", \"memory\");
        return answer; }\n";

/// Runs 130 instructions between two requests, the second of which ends instrumentation.
const STRAIGHT: &str = "int main(void) {
        static const long start[6] = { 0x43540004 }, stop[6] = { 0x43540005 };
        __asm__ volatile(\" xor %%edx,%%edx\\n\" SEQUENCE \" mov %1,%%rax\\n xor %%edx,%%edx\\n .rept 128\\n nop\\n .endr\\n\"
            SEQUENCE : : \"a\"(start), \"r\"(stop) : \"rdx\", \"cc\", \"memory\");
        return (int)request(0, 0, 0); }";

#[test]
fn blocks_are_as_long_as_valgrinds() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "straight", &["-O1"], &format!("{REQUEST}{STRAIGHT}")) else {
        return;
    };
    let options = ["--tool=callgrind", "--cache-sim=yes", "--instr-atstart=no", "--callgrind-out-file=out"];
    valgrind(&bench, &options, &program).ends_with(0);
    let file = std::fs::read_to_string(bench.path().join("out")).unwrap();
    let count = |name: &str| {
        file.lines()
            .find_map(|line| line.strip_prefix(name))
            .and_then(|rest| rest.trim().split(' ').next()?.parse::<u64>().ok())
    };
    // The block that ends with the request to stop has 11 instructions, and is left out.
    assert_eq!((count("totals:"), count("summary:")), (Some(120), Some(131)), "{file}");
}

/// Prints by requests, and returns the number of bytes of two texts.
const PRINTS: &str = "#include <stdarg.h>
    static long print(const char *format, ...) { va_list all; va_start(all, format);
        long count = request(0x1403, format, &all); va_end(all); return count; }
    int main(void) { long first = print(\"%s is %d of %lu, %.2f, %d %d %d\\n\", \"this\", -3, 1ul << 40, 1.5, 4, 5, 6);
        return (int)(first + print(\"not ended\")) + (int)request(0x1403, (void *)8, (void *)8); }";

#[test]
fn what_a_program_prints_by_requests_stands_in_the_log() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "prints", &["-O1"], &format!("{REQUEST}{PRINTS}")) else { return };
    let line = "** this is -3 of 1099511627776, 1.50, 4 5 6\n";
    let status = line.len() as i32 - "** ".len() as i32 + "not ended".len() as i32;
    let options = ["--tool=callgrind", "--callgrind-out-file=out"];
    for more in [&[][..], &["-q"], &["--log-file=log"], &["-q", "--log-file=log"]] {
        let ran = valgrind(&bench, &[&options[..], more].concat(), &program);
        let error = String::from_utf8_lossy(&ran.ends_with(status).stderr).into_owned();
        let log = match more.contains(&"--log-file=log") {
            true => std::fs::read_to_string(bench.path().join("log")).unwrap(),
            false => error,
        };
        let printed: Vec<usize> = log.match_indices("** ").map(|(at, _)| at).collect();
        assert!(log.contains(line) && log.contains("** not ended\n") && printed.len() == 2, "{log}");
        let [command, counted] = ["Command: ", "Collected : "].map(|word| log.find(word));
        match more.contains(&"-q") {
            true => assert_eq!((command, counted), (None, None), "{log}"),
            false => assert!(command < Some(printed[0]) && Some(printed[1]) < counted, "{log}"),
        }
    }
}
