//! Programs on a card: the very text that NVRTC gets, executed, against the kernels of the
//! processor and the reference.
//!
//! Every test runs on each of [`cards`](cards::cards): the machine's own where there is one, and an
//! emulated one (`tests/cuda/emulator.c`), whose compiler is the host's and whose threads are
//! fibers that meet at warp and block operations. So lowering, chains, streams of work and their
//! waits are tested without a card. What is not here is said. `PATTERN_CARD_CASES` asks for more
//! random patterns than the few that usual runs have time for.
#![cfg(unix)]

mod asking;
mod cards;
mod columns;
#[path = "../drawn/mod.rs"]
mod drawn;
#[path = "../leaves/mod.rs"]
mod leaves;
mod missing;
mod sets;
mod texts;

use cards::{cards, check, shapes, turn};
use drawn::{random_program, Random};
use lightfoot_pattern::kernel::cuda::lower::{lower, Entry};
use lightfoot_pattern::kernel::cuda::{Cuda, GpuProgram, GpuText, Reach, Width};
use lightfoot_pattern::program::BitProgram;
use lightfoot_pattern::reference;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use texts::{frozen, moderate, program, random_pattern, text, PATTERNS};

#[test]
fn patterns_of_every_kind_agree_on_every_shape() {
    let _turn = turn();
    for (shape, options) in shapes().into_iter().enumerate() {
        for cuda in cards(&options) {
            // Everything on one shape, and something of everything on the others.
            let chosen = PATTERNS.iter().enumerate().filter(|(number, _)| shape == 0 || number % 3 == shape);
            for (number, pattern) in chosen {
                let text = text(40_000, 7 + number as u64);
                let program = program(pattern);
                check(
                    &cuda,
                    &program,
                    Reach::Line,
                    &text,
                    &format!("{pattern:?} on {} with {:?}", cuda.card().name, options.width),
                );
            }
        }
    }
}

#[test]
fn the_frozen_patterns_agree() {
    let _turn = turn();
    let text = text(20_000, 99);
    let mut checked = 0;
    for cuda in cards(&shapes()[0]) {
        for pattern in frozen() {
            if let Some(program) = moderate(&pattern, 6000) {
                check(&cuda, &program, Reach::Line, &text, &pattern);
                checked += 1;
            }
        }
    }
    println!("{checked} patterns");
}

#[test]
fn random_patterns_agree() {
    let _turn = turn();
    let cases = std::env::var("PATTERN_CARD_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(40);
    let cards = cards(&shapes()[0]);
    let mut runner = TestRunner::deterministic();
    let mut checked = 0;
    for number in 0..cases {
        let pattern = random_pattern().new_tree(&mut runner).unwrap().current();
        let Some(program) = moderate(&pattern, 1500) else { continue };
        checked += 1;
        let text = text(6_000, 1000 + number);
        for cuda in &cards {
            check(cuda, &program, Reach::Line, &text, &format!("{pattern:?}, case {number}"));
        }
    }
    println!("{checked} of {cases} patterns have programs of moderate size");
    assert!(checked > cases * 3 / 4);
}

#[test]
fn programs_that_no_expression_has_agree() {
    let _turn = turn();
    for options in shapes() {
        let cards = cards(&options);
        for number in 0..12 {
            let program = random_program(4096 + 100 * u64::from(options.width == Width::WARP) + number);
            let text = text(20_000, 500 + number);
            let bits = reference::evaluate(&program, &reference::terminated(&text, 10));
            let slow: Vec<u64> = (0..bits.len()).filter(|&at| bits[at]).map(|at| at as u64).collect();
            for cuda in &cards {
                let on_card = GpuProgram::new(cuda, &program, Reach::Text).unwrap();
                let resident = GpuText::upload(cuda, &text, 10).unwrap();
                let found = on_card.line_ends(&resident).unwrap();
                assert!(
                    found == slow,
                    "program {number} of {:?}, first difference at {:?}\n{program}",
                    options.width,
                    found.iter().zip(&slow).find(|(a, b)| a != b)
                );
            }
        }
    }
}

/// The paper's case: 64 threads add 4,096 bits, carries running through all of them.
#[test]
fn additions_of_4096_bits_are_schoolbook_additions() {
    let _turn = turn();
    let program = BitProgram::parse(
        "terminator 10\ncarries 0\n%0 = basis 0\n%1 = basis 1\n%2 = add %0 %1 carry 0\nreturn %2\n",
    )
    .unwrap();
    let options = &shapes()[1];
    assert_eq!(options.width.step_bytes(), 4096);
    for cuda in cards(options) {
        let on_card = GpuProgram::new(&cuda, &program, Reach::Text).unwrap();
        for seed in 0..40 {
            let mut random = Random(77 + seed);
            let mut text = Vec::new();
            // Runs in which exactly one addend has a bit pass carries on; others make or end them.
            while text.len() < 12_500 {
                let byte = b"0123"[random.below(4)];
                let run = [1, 1, 63, 64, 65, 2048, 4096, 5000][random.below(8)];
                let mix = random.below(2) == 0;
                text.extend((0..run).map(|at| {
                    if mix && (byte == b'1' || byte == b'2') {
                        b"12"[at % 2]
                    } else {
                        byte
                    }
                }));
            }
            text.truncate(12_500);
            let text = reference::terminated(&text, 10);
            let bits = reference::evaluate(&program, &text);
            let slow: Vec<u64> = (0..bits.len()).filter(|&at| bits[at]).map(|at| at as u64).collect();
            let resident = GpuText::upload(&cuda, &text, 10).unwrap();
            assert!(on_card.line_ends(&resident).unwrap() == slow, "seed {seed}");
        }
    }
}

/// Capabilities that lowered programs must compile for.
const CAPABILITIES: &[u32] = &[80, 90];

#[test]
fn nvrtc_compiles_every_lowered_program() {
    if let Err(error) = Cuda::first_compiler() {
        println!("skipped: {error}");
        return;
    }
    let patterns = PATTERNS.iter().map(|pattern| (program(pattern), Reach::Line));
    let frozen = frozen().into_iter().filter_map(|pattern| Some((moderate(&pattern, 2000)?, Reach::Line)));
    let others = (0..20).map(|seed| (random_program(90 + seed), Reach::Text));
    let mut count = 0;
    for (number, (program, reach)) in patterns.chain(frozen).chain(others).enumerate() {
        let kernels = [(Width::WARP, Entry::Scan), (Width::BLOCK, Entry::Chain), (Width::PAPER, Entry::Scan)];
        let (width, entry) = kernels[number % 3];
        let lowered = lower(&program, reach, width, entry);
        let capability = CAPABILITIES[number / 3 % CAPABILITIES.len()];
        Cuda::compile_only(&lowered.source, capability)
            .unwrap_or_else(|error| panic!("{error}\n{}", lowered.source));
        count += 1;
    }
    println!("{count} programs compiled");
}
