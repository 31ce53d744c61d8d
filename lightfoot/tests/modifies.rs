//! What a load, a computation and a store at one address count in the two profilers of caches:
//! callgrind takes the store, cachegrind the load, and both keep the load of a locked instruction.
//!
//! The numbers are those of Valgrind 3.19 for the same functions.

mod bench;

use bench::{compile, lightfoot, Bench};
use std::collections::BTreeMap;
use std::path::Path;

/// Loads and stores.
type Data = [u64; 2];

/// An instruction on the word at rdi; its data by callgrind and by cachegrind.
const FORMS: [(&str, &str, Data, Data); 20] = [
    ("plain_load", "movq (%rdi), %rdx", [1, 0], [1, 0]),
    ("plain_store", "movq %rsi, (%rdi)", [0, 1], [0, 1]),
    ("add", "addq %rsi, (%rdi)", [0, 1], [1, 0]),
    ("decrement", "decl (%rdi)", [0, 1], [1, 0]),
    ("negate", "negq (%rdi)", [0, 1], [1, 0]),
    ("with_carry", "adcb $1, (%rdi)", [0, 1], [1, 0]),
    ("shift", "sarl %cl, (%rdi)", [0, 1], [1, 0]),
    ("double_shift", "shldq $3, %rsi, (%rdi)", [0, 1], [1, 0]),
    ("set_bit", "btsq $3, (%rdi)", [0, 1], [1, 0]),
    ("set_bit_behind", "btsq %rsi, (%rdi)", [0, 1], [1, 0]),
    ("exchange_and_add", "xaddq %rsi, (%rdi)", [0, 1], [1, 0]),
    ("compare_and_exchange", "cmpxchgq %rsi, (%rdi)", [0, 1], [1, 0]),
    ("locked_add", "lock addq %rsi, (%rdi)", [1, 1], [2, 0]),
    ("locked_decrement", "lock decl (%rdi)", [1, 1], [2, 0]),
    ("locked_set_bit", "lock btsq $3, (%rdi)", [1, 1], [2, 0]),
    ("locked_set_bit_behind", "lock btsq %rsi, (%rdi)", [1, 1], [2, 0]),
    ("locked_exchange_and_add", "lock xaddq %rsi, (%rdi)", [1, 1], [2, 0]),
    ("exchange", "xchgq %rsi, (%rdi)", [1, 1], [2, 0]),
    ("locked_compare_and_exchange", "lock cmpxchgq %rsi, (%rdi)", [0, 1], [1, 0]),
    ("test_bit_behind", "btq %rsi, (%rdi)", [1, 0], [1, 0]),
];

/// Calls of each function.
const CALLS: u64 = 1000;

/// A program that calls a function of its own for each form. The words are lines apart, so that
/// each function has one miss.
fn program() -> String {
    let mut text = String::from("static long words[64][1024] __attribute__((aligned(4096)));\n");
    let mut calls = String::new();
    for (number, (name, instruction, _, _)) in FORMS.iter().enumerate() {
        text += &format!(
            "__asm__(\".globl {name}\\n .type {name}, @function\\n {name}: {instruction}\\n ret\\n \
             .size {name}, .-{name}\\n\"); void {name}(long *, long);\n"
        );
        calls += &format!("{name}(words[{number}] + {number} * 8, 5);");
    }
    text + &format!("int main(void) {{ for (int i = 0; i < {CALLS}; i++) {{ {calls} }} return 0; }}\n")
}

/// Costs of each function in a file whose events stand as Valgrind's tools write them.
fn costs(path: &Path) -> BTreeMap<String, Vec<u64>> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let mut found = BTreeMap::<String, Vec<u64>>::new();
    let (mut function, mut is_call) = (String::new(), false);
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("fn=") {
            function = name.to_owned();
        } else if line.starts_with("calls=") {
            is_call = true;
        } else if line.starts_with(|first: char| first.is_ascii_digit()) && !std::mem::take(&mut is_call) {
            let sums = found.entry(function.clone()).or_insert_with(|| vec![0; 9]);
            for (sum, number) in sums.iter_mut().zip(line.split(' ').skip(1)) {
                *sum += number.parse::<u64>().unwrap();
            }
        }
    }
    found
}

/// Instructions, loads, stores, and misses of the first level by loads and by stores.
fn counted(bench: &Bench, tool: &str, more: &[&str], order: [usize; 5]) -> BTreeMap<String, [u64; 5]> {
    let program = bench.path().join("program");
    let file = format!("--{tool}-out-file=out.{tool}");
    lightfoot()
        .within(bench.path())
        .args(["valgrind", &format!("--tool={tool}"), &file, "--cache-sim=yes", "--log-file=log"])
        .args(["--I1=32768,8,64", "--D1=32768,8,64", "--LL=8388608,16,64"])
        .args(more)
        .arg(&program)
        .run()
        .ends_with(0);
    let all = costs(&bench.path().join(format!("out.{tool}")));
    all.into_iter().map(|(name, costs)| (name, order.map(|event| costs[event]))).collect()
}

#[test]
fn a_load_and_a_store_at_one_address_are_one_access() {
    let bench = Bench::new();
    if compile(&bench, "program", &["-O1"], &program()).is_none() {
        return;
    }
    // The second run has kept translations.
    for _ in 0..2 {
        for calls in ["--calls=yes", "--calls=no"] {
            let more = ["--compress-strings=no", "--compress-pos=no", calls];
            let callgrind = counted(&bench, "callgrind", &more, [0, 1, 2, 4, 5]);
            for (name, _, [loads, stores], _) in FORMS {
                let data = [CALLS * (loads + 1), CALLS * stores];
                let missed = if loads > 0 { [1, 0] } else { [0, 1] };
                let expected = [2 * CALLS, data[0], data[1], missed[0], missed[1]];
                assert_eq!(callgrind[name], expected, "{name} by callgrind, {calls}");
            }
        }
        let cachegrind = counted(&bench, "cachegrind", &[], [0, 3, 6, 4, 7]);
        for (name, _, _, [loads, stores]) in FORMS {
            let data = [CALLS * (loads + 1), CALLS * stores];
            let missed = if loads > 0 { [1, 0] } else { [0, 1] };
            let expected = [2 * CALLS, data[0], data[1], missed[0], missed[1]];
            assert_eq!(cachegrind[name], expected, "{name} by cachegrind");
        }
    }
}
