//! What callers of Valgrind meet beyond its four profilers: lackey, options that only the other
//! valgrind has, jumps within functions, which call graphs do not record, and requests that print
//! or call.

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
    assert_eq!(number(&log, "guest instrs:"), number(&costs, "I   refs:"));
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
    for option in ["--collect-bus=yes", "--mode=stack", "--time-unit=ms", "--no-such-option=1"] {
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

/// Everything that happened in the functions of this name of one object and in their calls, in the
/// order of events, and what happened in the whole program.
fn with_calls(path: &Path, object: &str, name: &str) -> (Vec<u64>, Vec<u64>) {
    let text = std::fs::read_to_string(path).unwrap();
    let numbers =
        |line: &str| -> Vec<u64> { line.split(' ').skip(1).map(|word| word.parse().unwrap()).collect() };
    let (mut is_object, mut is_meant) = (false, false);
    let (mut sums, mut whole) = (Vec::new(), Vec::new());
    for line in text.lines() {
        if let Some(begins) = line.strip_prefix("ob=") {
            is_object = begins.contains(object);
        } else if let Some(begins) = line.strip_prefix("fn=") {
            is_meant = is_object && begins == name;
        } else if line.starts_with("summary:") {
            whole = numbers(line);
        } else if line.starts_with(|first: char| first.is_ascii_digit()) {
            // A call's costs stand where the caller's own do, so both are added alike.
            let more = numbers(line);
            if is_meant {
                sums.resize(more.len().max(sums.len()), 0);
                sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
            }
        }
    }
    (sums, whole)
}

#[test]
fn the_function_that_begins_contains_everything() {
    let bench = Bench::new();
    for (name, link, object) in [("dynamic", "-rdynamic", "ld-linux"), ("static", "-static", "/static")] {
        let Some(program) = compile(&bench, name, &["-O1", link], DISPATCHES) else { continue };
        for more in [&[][..], &["--cache-sim=yes"]] {
            let plain = ["--tool=callgrind", "--compress-strings=no", "--callgrind-out-file=out"];
            valgrind(&bench, &[&plain[..], more].concat(), &program).ends_with(2);
            let (start, whole) = with_calls(&bench.path().join("out"), object, "_start");
            assert!(whole[0] > 10_000, "{whole:?}");
            assert_eq!(start, whole, "{name} {more:?}");
        }
    }
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

/// `touches(n)` loads n words and runs 3 instructions for each, and 2 more. Thousands of marks lie
/// in one segment of records, before a second thread begins, while it runs, and behind its end.
const TOUCHES: &str = "#include <pthread.h>
    static long memory[64];
    void touches(long times, const long *from);
    __asm__(\".text\\n.globl touches\\n.type touches,@function\\ntouches: nop\\n1: mov (%rsi),%rax\\n dec %rdi\\n\"
            \" jnz 1b\\n ret\\n.size touches,.-touches\");
    static void toggle(void) { request(0x43540002, 0, 0); }
    static void *other(void *nothing) { touches(100, memory); toggle(); touches(1000, memory); toggle(); return nothing; }
    static void turns(int times) {
        for (int i = 0; i < times; i++) { toggle(); touches(10, memory); toggle(); touches(3, memory + 8); } }
    int main(void) { pthread_t thread; turns(3000); toggle(); touches(5, memory);
        pthread_create(&thread, 0, other, 0); touches(7, memory); toggle(); turns(50);
        pthread_join(thread, 0); turns(3000); return 0; }";

#[test]
fn marks_within_a_segment_divide_its_records() {
    let bench = Bench::new();
    let source = format!("{REQUEST}{TOUCHES}");
    let Some(program) = compile(&bench, "touches", &["-O1", "-g", "-pthread"], &source) else { return };
    let plain = ["--tool=callgrind", "--compress-strings=no", "--callgrind-out-file=out"];
    let plain = [&plain[..], &["--collect-atstart=no"]].concat();
    // Loops of 10 in `turns`, of 5 and 7 in `main`, of 1000 in the other thread.
    let (calls, loads) = (6050 + 2 + 1, 6050 * 10 + 5 + 7 + 1000);
    for more in [&["--calls=no"][..], &[], &["--cache-sim=yes"], &["--cache-sim=yes", "--calls=no"]] {
        valgrind(&bench, &[&plain[..], more].concat(), &program).ends_with(0);
        let path = bench.path().join("out");
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(functions(&path)["touches"].own, 3 * loads + 2 * calls, "{more:?}");
        if more.contains(&"--cache-sim=yes") {
            // Of the two lines that all loads read, the first is counted and the second never.
            let mut sums = [0; 9];
            let mut is_meant = false;
            for line in text.lines() {
                is_meant = line.strip_prefix("fn=").map_or(is_meant, |name| name == "touches");
                if is_meant && line.starts_with(|first: char| first.is_ascii_digit()) {
                    let numbers = line.split(' ').skip(1).map(|word| word.parse::<u64>().unwrap());
                    sums.iter_mut().zip(numbers).for_each(|(sum, more)| *sum += more);
                }
            }
            let [instructions, reads, writes, _, missed, ..] = sums;
            assert_eq!((instructions, reads, writes), (3 * loads + 2 * calls, loads + calls, 0), "{more:?}");
            assert!((1..100).contains(&missed), "{more:?}: {missed}");
        }
    }
}

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

/// Prints with a backtrace, once at the end of a line and once within one.
const TRACES: &str = "#include <stdarg.h>
    static long print(const char *format, ...) { va_list all; va_start(all, format);
        long count = request(0x1404, format, &all); va_end(all); return count; }
    __attribute__((noinline)) long inner(const char *format) { long sum = print(format, 3); return sum + 1; }
    __attribute__((noinline)) long outer(const char *format) { long sum = inner(format); return sum + 1; }
    int main(void) { return (int)(outer(\"first %d\\n\") + outer(\"second %d\")); }";

#[test]
fn a_backtrace_stands_behind_the_text() {
    let bench = Bench::new();
    // Without frame pointers, and with them.
    for frames in ["-fomit-frame-pointer", "-fno-omit-frame-pointer"] {
        let options = ["-O1", "-g", "-fno-optimize-sibling-calls", frames];
        let Some(program) = compile(&bench, "traces", &options, &format!("{REQUEST}{TRACES}")) else {
            return;
        };
        let ran = valgrind(&bench, &["--tool=callgrind", "-q", "--callgrind-out-file=out"], &program);
        let log = String::from_utf8_lossy(&ran.ends_with(8 + 8 + 4).stderr).into_owned();
        let lines: Vec<&str> = log.lines().collect();
        let second = lines.iter().position(|line| line.contains("** second 3   at 0x")).unwrap();
        let is_frame = |line: &str, preposition: &str, function: &str| {
            let frame = line.split_once(preposition).and_then(|(_, frame)| frame.split_once(": "));
            frame.is_some_and(|(_, place)| place.starts_with(&format!("{function} (source.c:")))
        };
        for (start, preposition) in [(1, "==    at 0x"), (second, "   at 0x")] {
            assert!(is_frame(lines[start], preposition, "print"), "{log}");
            let callers = ["inner", "outer", "main"];
            for (line, function) in lines[start + 1..].iter().zip(callers) {
                assert!(is_frame(line, "==    by 0x", function), "{log}");
            }
        }
        assert!(lines[0].ends_with("** first 3"), "{log}");
    }
}

/// Calls functions by requests. `numbers` spoils every register that a function may change; `call`
/// returns its answer only if no register but the answer's has changed.
const CALLS: &str = "
    long numbers(long thread, long first, long second, long third);
    long call(long *words);
    __asm__(\".text\\n.type call,@function\\n.type numbers,@function\\nnumbers: xor %eax,%eax\\n lea (%rsi,%rsi,4),%rax\\n lea (%rdx,%rax,2),%rax\\n\"
        \" lea (%rax,%rax,4),%rax\\n lea (%rcx,%rax,2),%rax\\n mov $1000,%ecx\\n1: dec %rcx\\n jnz 1b\\n\"
        \" movaps %xmm0,-24(%rsp)\\n pxor %xmm3,%xmm3\\n xor %esi,%esi\\n xor %edi,%edi\\n xor %r8,%r8\\n\"
        \" xor %r9,%r9\\n xor %r10,%r10\\n xor %r11,%r11\\n xor %edx,%edx\\n ret\\n\"
        \"call: mov %rdi,%rax\\n mov %rdi,%r8\\n movq %rdi,%xmm3\\n mov %rdi,%rcx\\n mov %rdi,%rsi\\n mov %rdi,%r9\\n\"
        \" mov %rdi,%r10\\n mov %rdi,%r11\\n mov $99,%edx\\n mov %rdi,-8(%rsp)\\n\"
        \" rol $3,%rdi\\n rol $13,%rdi\\n rol $61,%rdi\\n rol $51,%rdi\\n xchg %rbx,%rbx\\n\"
        \" cmp %rdi,%rax\\n jne 2f\\n cmp %rdi,%r8\\n jne 2f\\n cmp %rdi,%rcx\\n jne 2f\\n cmp %rdi,%rsi\\n jne 2f\\n\"
        \" cmp %rdi,%r9\\n jne 2f\\n cmp %rdi,%r10\\n jne 2f\\n cmp %rdi,%r11\\n jne 2f\\n cmp %rdi,-8(%rsp)\\n jne 2f\\n\"
        \" movq %xmm3,%rcx\\n cmp %rdi,%rcx\\n jne 2f\\n mov %rdx,%rax\\n ret\\n2: mov $-1,%rax\\n ret\\n\");
    static long nested(long thread) {
        long words[6] = {0x1104, (long)numbers, 0, 1, 2, 0}; return thread == 1 ? call(words) : -2; }
    int main(void) {
        long three[6] = {0x1104, (long)numbers, 1, 2, 3, 0}, none[6] = {0x1101, (long)nested, 7, 7, 7, 0};
        if (call(three) == 99) return 0;
        return call(three) != 123 ? 1 : call(none) != 12 ? 2 : call(three) != 123 ? 3 : 42; }";

#[test]
fn a_request_calls_a_function_and_keeps_all_registers() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "calls", &["-O1"], CALLS) else { return };
    assert_eq!(std::process::Command::new(&program).status().unwrap().code(), Some(0), "natively");
    for tool in ["callgrind", "cachegrind", "lackey", "dhat", "none"] {
        let options = [&format!("--tool={tool}"), "--callgrind-out-file=out", "--compress-strings=no"];
        let options = if tool == "callgrind" { &options[..] } else { &options[..1] };
        valgrind(&bench, options, &program).ends_with(42);
    }
    let file = std::fs::read_to_string(bench.path().join("out")).unwrap();
    assert!(!file.contains("fn=numbers") && file.contains("fn=call\n"), "it runs uncounted: {file}");
}

/// Requests of callgrind with a line printed before the first.
const TOLD: &str = "#include <stdarg.h>
    static long print(const char *format, ...) { va_list all; va_start(all, format);
        long count = request(0x1403, format, &all); va_end(all); return count; }
    int main(void) { print(\"begins\\n\"); request(0x43540001, 0, 0); request(0x43540003, \"here\", 0);
        request(0x43540005, 0, 0); request(0x43540005, 0, 0); request(0x43540004, 0, 0);
        request(0x43540000, 0, 0); return 0; }";

#[test]
fn a_verbose_log_tells_of_requests_and_parts() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "told", &["-O1"], &format!("{REQUEST}{TOLD}")) else { return };
    let options = ["--tool=callgrind", "-v", "--callgrind-out-file=out"];
    for more in [&[][..], &["--log-file=log"], &["--separate-threads=yes"]] {
        let ran = valgrind(&bench, &[&options[..], more].concat(), &program);
        let error = String::from_utf8_lossy(&ran.ends_with(0).stderr).into_owned();
        let log = match more == ["--log-file=log"] {
            true => std::fs::read_to_string(bench.path().join("log")).unwrap(),
            false => error,
        };
        let (_, told) = log.split_once("** begins\n").unwrap();
        let mut blocks = Vec::new();
        let told = told.lines().map(|line| {
            let (_, text) = line[2..].split_once(['=', '-']).unwrap();
            let text = text.get(2..).unwrap_or_default();
            if let Some((_, rest)) = text.split_once("Start dumping at BB ") {
                let (number, why) = rest.split_once(' ').unwrap();
                blocks.push(number.parse::<u64>().unwrap());
                return format!("dumps {why}");
            }
            match text.strip_prefix("Dump to ") {
                Some(file) => {
                    assert!(Path::new(file).is_file(), "{file}");
                    format!("to {}", Path::new(file).file_name().unwrap().to_string_lossy())
                }
                None => text.to_owned(),
            }
        });
        let told: Vec<String> = told.collect();
        let of_thread = if more == ["--separate-threads=yes"] { "-01" } else { "" };
        let file = |part: &str| format!("to out{part}{of_thread}");
        let expected = [
            "  Zeroing costs...",
            "  ...done",
            "dumps (Client Request: here)...",
            &file(".1"),
            "Dumping done.",
            "Client Request: instrumentation switched OFF",
            "Client Request: instrumentation switched ON",
            "dumps (Client Request)...",
            &file(".2"),
            "Dumping done.",
            "",
            "dumps (Prg.Term.)...",
            &file(""),
            "Dumping done.",
        ];
        assert_eq!(told[..expected.len()], expected, "{log}");
        assert!(told[expected.len()].starts_with("Events    : Ir"), "{log}");
        assert!(blocks.is_sorted() && blocks[0] > 0, "{log}");
    }
}

#[test]
fn the_table_of_caches_has_valgrinds_columns() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "table", &["-O1"], "int main(void) { return 0; }") else { return };
    let caches = ["--cache-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64", "--LL=8388608,16,64"];
    let log = |first: &[&str]| {
        let ran = valgrind(&bench, &[first, &caches, &["--log-file=log"]].concat(), &program);
        ran.ends_with(0);
        let log = std::fs::read_to_string(bench.path().join("log")).unwrap();
        let lines: Vec<String> =
            log.lines().filter_map(|line| Some(line.split_once("== ")?.1.to_owned())).collect();
        lines
    };
    let line = |lines: &[String], name: &str| {
        lines.iter().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name} {lines:?}")).clone()
    };
    let callgrind = log(&["--tool=callgrind", "--callgrind-out-file=out"]);
    let (refs, misses) = (line(&callgrind, "D   refs:      "), line(&callgrind, "D1  misses:    "));
    let rates = line(&callgrind, "D1  miss rate: ");
    // Numbers end in the same columns, and a rate's unit stands behind them.
    for part in ["  (", " rd + ", " wr)"] {
        assert_eq!(refs.find(part), misses.find(part), "{refs}\n{misses}");
    }
    assert_eq!(rates.find("% ("), refs.find("  ("), "{refs}\n{rates}");
    assert_eq!(rates.find("%   + "), refs.find(" rd + "), "{refs}\n{rates}");
    line(&callgrind, "I   refs:      ");
    let cachegrind = ["--tool=cachegrind", "--cachegrind-out-file=out"];
    line(&log(&cachegrind), "I refs:        ");
    let former = log(&[&["--version-number=3.19.0"], &cachegrind[..]].concat());
    assert!(line(&former, "D   refs:      ").contains(" rd   + "), "{former:?}");
}

#[test]
fn a_process_that_borrows_memory_is_no_thread() {
    const SOURCE: &str = "#include <spawn.h>
        #include <sys/wait.h>
        int main(void) { pid_t child; char *words[] = { \"true\", 0 }, *none[] = { 0 }; int status = 1;
            if (posix_spawn(&child, \"/bin/true\", 0, 0, words, none)) return 1;
            waitpid(child, &status, 0); return status; }";
    let bench = Bench::new();
    let Some(program) = compile(&bench, "spawns", &["-O1"], SOURCE) else { return };
    let options = ["--tool=callgrind", "--separate-threads=yes", "--callgrind-out-file=out.%p"];
    for (children, files) in [("--trace-children=yes", 2), ("--trace-children=no", 1)] {
        let run = bench.join(children);
        std::fs::create_dir(&run).unwrap();
        let words = [&options[..], &[children]].concat();
        lightfoot().within(&run).arg("valgrind").args(&words).arg(&program).run().ends_with(0);
        let names: Vec<String> = std::fs::read_dir(&run)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        let of_threads = names.iter().filter(|name| name.ends_with("-01")).count();
        // Each process has a file of its only thread, and an empty one.
        assert_eq!((of_threads, names.len()), (files, 2 * files), "{children}: {names:?}");
    }
}

#[test]
fn a_log_that_nobody_reads_changes_no_exit_status() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "called", &["-O1"], CALLED) else { return };
    for options in [&["--tool=none"][..], &["--tool=none", "-v"], &["--tool=lackey", "--fnname=often"]] {
        let mut child = std::process::Command::new(bench::BINARY)
            .current_dir(bench.path())
            .arg("valgrind")
            .args(options)
            .arg(&program)
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stderr.take());
        assert_eq!(child.wait().unwrap().code(), Some(7), "{options:?}");
    }
}

#[test]
fn spaces_in_words_of_the_command_are_marked() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "called", &["-O1"], CALLED) else { return };
    let ran = lightfoot()
        .within(bench.path())
        .args(["valgrind", "--tool=none", "--log-file=log"])
        .arg(&program)
        .args(["a b", "c"])
        .run();
    assert_ne!(ran.status, 125);
    let log = std::fs::read_to_string(bench.path().join("log")).unwrap();
    assert!(log.lines().any(|line| line.ends_with(" a\\ b c") && line.contains("Command: ")), "{log}");
}

/// Two threads count one word up, each by compare and swap, so that turns decide how often each
/// tries again.
const RIVALS: &str = "#include <pthread.h>
    #include <stdatomic.h>
    static atomic_long word;
    static void *count(void *unused) {
        for (int i = 0; i < 20000; i++) {
            long old = word;
            while (!atomic_compare_exchange_weak(&word, &old, old + 1)) {}
        }
        return unused; }
    int main(void) {
        pthread_t rival;
        pthread_create(&rival, 0, count, 0);
        count(0);
        pthread_join(rival, 0);
        return word == 40000 ? 3 : 4; }";

#[test]
fn turns_make_runs_of_threads_equal() {
    let bench = Bench::new();
    let Some(program) = compile(&bench, "rivals", &["-O1", "-pthread"], RIVALS) else { return };
    let counted = || {
        let options = ["--tool=callgrind", "--repeatable=yes", "--turns=yes", "--calls=no"];
        let ran = valgrind(
            &bench,
            &[&options[..], &["--callgrind-out-file=out", "--log-file=log"]].concat(),
            &program,
        );
        ran.ends_with(3);
        number(&std::fs::read_to_string(bench.path().join("log")).unwrap(), "Collected :")
    };
    let first = counted();
    assert!((0..4).all(|_| counted() == first));
}
