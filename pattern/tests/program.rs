//! Programs as values: text and back, the verifier's rules, the passes against the reference, and
//! golden programs.
//!
//! Golden files in `data/programs` are rewritten when `PATTERN_BLESS` is set.

use lightfoot_pattern::compile::{compile, CompileOptions};
use lightfoot_pattern::program::pass::{for_ascii, with_ternaries, without_dead_code};
use lightfoot_pattern::program::BitProgram;
use lightfoot_pattern::reference::evaluate;
use lightfoot_pattern::transpose::{Basis, BLOCK_BYTES, CHUNK_BYTES, TRANSPOSERS};
use proptest::prelude::*;

fn program(pattern: &str) -> BitProgram {
    let hir = regex_syntax::ParserBuilder::new().utf8(false).multi_line(true).build().parse(pattern).unwrap();
    compile(&hir, &CompileOptions::default()).unwrap()
}

const PATTERNS: &[&str] = &[
    "[a-z]+ing",
    "x(a|bc)*y",
    "a(b(c|de)*f)*g",
    "[0-9]{1,3}(\\.[0-9]{1,3}){3}",
    r"\bfoo\b",
    r"\w+ \p{Lu}\w+",
    r"(?-u:\b)x{3,9}$",
    "^$",
    "é+.я",
    r"\B",
];

#[test]
fn text_and_back() {
    for pattern in PATTERNS {
        let program = program(pattern);
        for program in [with_ternaries(&program), for_ascii(&program), program] {
            program.verify().unwrap_or_else(|fault| panic!("{pattern}: {fault}\n{program}"));
            assert_eq!(BitProgram::parse(&program.to_string()), Ok(program), "{pattern}");
        }
    }
}

#[test]
fn golden_programs() {
    for (name, pattern) in [
        ("ing", "[a-z]+ing"),
        ("nested", "x(a|bc)*y"),
        ("date", "[0-9]{1,2}/[0-9]{2}"),
        ("word", r"(?-u:\bfoo\b)"),
    ] {
        let path = format!("{}/data/programs/{name}.txt", env!("CARGO_MANIFEST_DIR"));
        let text = format!("# {pattern}\n{}", program(pattern));
        if std::env::var_os("PATTERN_BLESS").is_some() {
            std::fs::create_dir_all(std::path::Path::new(&path).parent().unwrap()).unwrap();
            std::fs::write(&path, &text).unwrap();
        }
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            text,
            "{name}: PATTERN_BLESS=1 accepts the change"
        );
    }
}

#[test]
fn broken_programs_are_refused() {
    let cases = [
        ("carries\n%0 = not %1\nreturn %0\n", "%0: it uses %1, which is not defined before it"),
        ("carries\n%0 = ones\n%0 = zero\nreturn %0\n", "%0: it is defined twice"),
        ("carries\n%0 = basis 8\nreturn %0\n", "%0: a byte has no bit 8"),
        ("carries\n%0 = basis 1 delay 8\nreturn %0\n", "%0: a delay of 8 is more than 7"),
        (
            "carries 0\n%0 = ones\n%1 = advance 64 %0 carry 0\nreturn %1\n",
            "%1: an advance by 64 is not within 1 to 63",
        ),
        ("carries 0\n%0 = ones\n%1 = advance 1 %0 carry 1\nreturn %1\n", "%1: the program has no carry 1"),
        (
            "carries 0\n%0 = ones\n%1 = advance 1 %0 carry 0\n%2 = advance 2 %0 carry 0\nreturn %1\n",
            "%2: carry 0 has an owner already",
        ),
        (
            "carries 0\n%0 = ones\nif %0 {\n%1 = advance 1 %0 carry 0\n} yields %2 = %1\nreturn %2\n",
            "%1: it carries, inside a body that may be skipped",
        ),
        (
            "carries\n%0 = ones\nif %0 {\n%1 = not %0\n} yields %2 = %1\nreturn %1\n",
            "%1: it uses %1, which another body defines",
        ),
    ];
    for (text, expected) in cases {
        let program = BitProgram::parse(&format!("terminator 10\n{text}")).unwrap();
        assert_eq!(program.verify().unwrap_err().to_string(), expected, "{text}");
    }
}

#[test]
fn unreadable_programs_name_the_line() {
    let cases = [
        ("", "line 1: the program ends where `terminator` was expected"),
        ("terminator 300\n", "line 1: `300` is not a number that fits here"),
        ("terminator 10\ncarries 1\n", "line 2: expected carry 0, found `1`"),
        (
            "terminator 10\ncarries\n%0 = frobnicate %1\nreturn %0",
            "line 3: `frobnicate` with 1 words after it is not an operation",
        ),
        ("terminator 10\ncarries\n%0 = ones\n", "line 3: the program ends where `return %…` was expected"),
        ("terminator 10\ncarries\n%0 = ones\nreturn %0\n%1 = ones\n", "line 5: nothing may follow `return`"),
        (
            "terminator 10\ncarries\nx = ones\nreturn %0\n",
            "line 3: `x` is not a value; values are written %0, %1, …",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(BitProgram::parse(text).unwrap_err().to_string(), expected, "{text}");
    }
}

#[test]
fn additions_of_all_kinds_agree_with_the_reference() {
    let text = "terminator 10\ncarries 0 1 2\n%0 = basis 0\n%1 = basis 1\n%2 = add %0 %1 carry 0\n%3 = scan_thru %2 %1 carry 1\n%4 = match_star %3 %0 carry 2\n\
                %5 = ternary 0x96 %4 %2 %0\n%6 = basis 6 delay 5\n%7 = xor %5 %6\nreturn %7\n";
    let program = BitProgram::parse(text).unwrap();
    program.verify().unwrap();
    let bytes: Vec<u8> = (0..3 * CHUNK_BYTES as u64)
        .map(|at| (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 51) as u8 | 32)
        .chain([10])
        .collect();
    let expected: Vec<usize> =
        evaluate(&program, &bytes).iter().enumerate().filter(|(_, bit)| **bit).map(|(at, _)| at).collect();
    for &kernel in lightfoot_pattern::kernel::KERNELS {
        let Some(scanner) = lightfoot_pattern::kernel::Scanner::with_kernel(&program, kernel) else {
            continue;
        };
        let mut ends = Vec::new();
        let _ = scanner.for_each_line_end(&bytes, |end| {
            ends.extend((end < bytes.len()).then_some(end));
            std::ops::ControlFlow::Continue(())
        });
        assert_eq!(ends, expected, "{}", kernel.name());
    }
}

#[test]
fn transpositions_agree() {
    let text: Vec<u8> =
        (0..CHUNK_BYTES as u64).map(|at| (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u8).collect();
    for transposer in TRANSPOSERS.iter().filter(|one| one.is_available()) {
        for length in [BLOCK_BYTES, 5 * BLOCK_BYTES, CHUNK_BYTES] {
            let mut basis = Basis::new(0);
            transposer.run(&text[..length], &mut basis);
            for (at, byte) in text[..length].iter().enumerate() {
                for bit in 0..8 {
                    let found = basis.stream(bit)[at / 64] >> (at % 64) & 1;
                    assert_eq!(
                        found,
                        u64::from(byte >> bit & 1),
                        "{}, byte {at}, bit {bit}",
                        transposer.name
                    );
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn passes_keep_the_meaning(pattern in prop::sample::select(PATTERNS), text in "[a-gx-y0-3.é я\n]{0,80}") {
        let program = program(pattern);
        let expected = evaluate(&program, text.as_bytes());
        prop_assert_eq!(&evaluate(&with_ternaries(&program), text.as_bytes()), &expected);
        prop_assert_eq!(&evaluate(&without_dead_code(program.clone()), text.as_bytes()), &expected);
        if text.is_ascii() {
            prop_assert_eq!(&evaluate(&for_ascii(&program), text.as_bytes()), &expected);
        }
    }
}
