//! How repeated instructions count: one convention for all columns of a report, and one that agrees
//! with Valgrind's counters.

mod bench;

use bench::{json, lightfoot, Bench};
use std::path::{Path, PathBuf};
use std::process::Command;

/// `_start` calls `fill` a thousand times, which has one `rep stosb` of 100 and nothing else that
/// repeats.
const FILL: &str = "
.bss
room: .skip 256
.text
.globl _start, fill
.type fill, @function
fill:
    lea room(%rip), %rdi
    mov $100, %ecx
    rep stosb
    ret
.size fill, .-fill
.type _start, @function
_start:
    mov $1000, %ebx
1:  call fill
    dec %ebx
    jnz 1b
    mov $60, %eax
    xor %edi, %edi
    syscall
.size _start, .-_start
";

/// Each case once: `rep stosb` of 0, 1 and 100, `rep movsq` of 7, and comparisons that
/// end by their comparison: `repe cmpsb` at the third byte, `repne scasb` at the fifth, both of 0.
const CASES: &str = "
.data
one: .ascii \"abXdefgh\"
two: .ascii \"abYdefgh\"
.bss
room: .skip 256
.text
.globl _start
.type _start, @function
_start:
    lea room(%rip), %rdi
    mov $0, %ecx
    rep stosb
    mov $1, %ecx
    rep stosb
    mov $100, %ecx
    rep stosb
    lea one(%rip), %rsi
    lea room(%rip), %rdi
    mov $7, %ecx
    rep movsq
    lea one(%rip), %rsi
    lea two(%rip), %rdi
    mov $8, %ecx
    repe cmpsb
    mov $0, %ecx
    repe cmpsb
    lea one(%rip), %rdi
    mov $'e', %eax
    mov $8, %ecx
    repne scasb
    mov $0, %ecx
    repne scasb
    mov $60, %eax
    xor %edi, %edi
    syscall
.size _start, .-_start
";

/// Instructions of `CASES` that do not repeat, and passes of those that do, in Valgrind's way.
const CASES_PLAIN: u64 = 18;
const CASES_PASSES: u64 = 1 + 2 + 101 + 8 + 3 + 1 + 5 + 1;

/// A program without a C library; `None`, and said, where there is no compiler.
fn assembled(bench: &Bench, text: &str) -> Option<PathBuf> {
    let (source, program) = (bench.file("program.s", text.as_bytes(), 0o644), bench.join("program"));
    let built = Command::new("cc").args(["-nostdlib", "-static", "-o"]).arg(&program).arg(&source).output();
    match built {
        Ok(out) if out.status.success() => Some(program),
        Ok(out) => panic!("{}", String::from_utf8_lossy(&out.stderr)),
        Err(_) => {
            eprintln!("skipped: there is no C compiler (cc) here");
            None
        }
    }
}

fn instructions(program: &Path, options: &[&str]) -> u64 {
    let ran = lightfoot().args(options).args(["--format", "json"]).arg(program).run();
    json(&ran.ends_with(0).stderr)["totals"]["instructions"].as_u64().unwrap()
}

#[test]
fn each_way_counts_what_it_says() {
    let bench = Bench::new();
    let Some(program) = assembled(&bench, CASES) else { return };
    for command in ["count", "cache"] {
        let count = |rep| instructions(&program, &[command, "--rep", rep]);
        assert_eq!(count("once"), CASES_PLAIN + 8, "{command}");
        // At least one each.
        let iterations = 1 + 1 + 100 + 7 + 3 + 1 + 5 + 1;
        assert_eq!(count("iterations"), CASES_PLAIN + iterations, "{command}");
        assert_eq!(count("valgrind"), CASES_PLAIN + CASES_PASSES, "{command}");
    }
}

/// What cachegrind counts of a program; `None`, and said, where it is not installed.
fn valgrind(bench: &Bench, program: &Path) -> Option<u64> {
    let file = bench.join("valgrind.out");
    let out = Command::new("valgrind")
        .args(["--tool=cachegrind", "--cache-sim=no"])
        .arg(format!("--cachegrind-out-file={}", file.display()))
        .arg(program)
        .output();
    match out {
        Ok(out) if out.status.success() => {
            let text = std::fs::read_to_string(&file).unwrap();
            let total = text.lines().find_map(|line| line.strip_prefix("summary: ")).unwrap();
            Some(total.trim().parse().unwrap())
        }
        Ok(out) => panic!("{}", String::from_utf8_lossy(&out.stderr)),
        Err(_) => {
            eprintln!("skipped: valgrind is not installed");
            None
        }
    }
}

#[test]
fn valgrind_counts_the_same() {
    let bench = Bench::new();
    for text in [CASES, FILL] {
        let Some(program) = assembled(&bench, text) else { return };
        let Some(theirs) = valgrind(&bench, &program) else { return };
        assert_eq!(instructions(&program, &["count", "--rep", "valgrind"]), theirs);
    }
}

/// Self and inclusive costs of `fill` in a callgrind file.
fn costs(bench: &Bench, program: &Path, rep: &str) -> (u64, u64) {
    let file = bench.join("out");
    let options = ["cache", "--format", "callgrind", "--rep", rep, "-o"];
    lightfoot().args(options).arg(&file).arg(program).run().ends_with(0);
    let text = std::fs::read_to_string(&file).unwrap();
    let cost = |line: &str| line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap();
    let (mut own, mut inclusive, mut function) = (0, 0, "");
    // A function has its name where its number comes first, which may be in a call.
    let number_of_fill = |name: &str| {
        let named = text.lines().find_map(|line| line.split_once("fn=")?.1.strip_suffix(" fill"));
        Some(name.split(' ').next().unwrap()) == named
    };
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(name) = line.strip_prefix("fn=") {
            function = name;
        } else if line.starts_with("calls=") {
            inclusive += cost(lines.next().unwrap());
        } else if number_of_fill(function) && line.starts_with(|c: char| c.is_ascii_digit()) {
            own += cost(line);
        }
    }
    (own, inclusive)
}

/// `fill` calls nothing: what it cost with its calls is what it cost by itself.
#[test]
fn inclusive_costs_follow_the_same_convention() {
    let bench = Bench::new();
    let Some(program) = assembled(&bench, FILL) else { return };
    for (rep, each) in [("once", 4), ("iterations", 103), ("valgrind", 104)] {
        assert_eq!(costs(&bench, &program, rep), (1000 * each, 1000 * each), "{rep}");
    }
}

#[test]
fn threads_follow_the_same_convention() {
    let bench = Bench::new();
    let Some(program) = assembled(&bench, FILL) else { return };
    for command in ["count", "cache"] {
        for rep in ["once", "iterations", "valgrind"] {
            let options = [command, "--by", "thread", "--rep", rep, "--format", "json"];
            let ran = lightfoot().args(options).arg(&program).run();
            let report = json(&ran.ends_with(0).stderr);
            let total = &report["totals"]["instructions"];
            assert_eq!(&report["rows"][0]["instructions"], total, "{command} {rep}: {}", report["rows"]);
        }
    }
}

#[test]
fn help_says_what_is_counted() {
    let help = lightfoot().args(["cache", "--help"]).run();
    let text = String::from_utf8(help.stdout).unwrap();
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("N + 1 for movs, stos and lods that repeat N times"), "{text}");
    assert!(!words.contains("once per iteration as Valgrind counts"), "{text}");
}
