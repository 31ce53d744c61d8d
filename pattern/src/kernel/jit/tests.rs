//! A translated program holds no instruction that its target lacks.

use super::*;
use crate::compile::{compile, CompileOptions};
use iced_x86::{CpuidFeature, Decoder, DecoderOptions};
use std::collections::BTreeSet;

/// What every x86-64 processor has.
const BASE: [CpuidFeature; 7] = [
    CpuidFeature::INTEL8086,
    CpuidFeature::INTEL186,
    CpuidFeature::INTEL386,
    CpuidFeature::INTEL486,
    CpuidFeature::X64,
    CpuidFeature::SSE,
    CpuidFeature::SSE2,
];

/// Every operation, within loops and outside of them where it may stand there. Thirteen registers
/// do not suffice for the streams that the last logic reads.
const PROGRAM: &str = "
terminator 10
carries 0 1* 2 3 4 5 6
%0 = basis 0
%1 = basis 1
%2 = basis 2
%3 = basis 3 delay 2
%4 = zero
%5 = ones
%6 = not %0
%7 = and %0 %1
%8 = or %1 %2
%9 = xor %2 %3
%10 = and_not %0 %3
%11 = ternary 0xca %0 %8 %9
%12 = advance 1 %7 carry 0
%13 = advance 40 %8 carry 1
%14 = match_star %7 %8 carry 2
%15 = scan_thru %12 %9 carry 3
%16 = add %9 %10 carry 4
if %11 {
  %17 = and %11 %16
} yields %18 = %17
%19 = while %20 from %13 {
  %21 = and %20 %14
  %22 = advance 3 %21 carry 5
  %23 = match_star %22 %8 carry 6
} next %23
%24 = xor %4 %5
%25 = xor %6 %7
%26 = xor %8 %9
%27 = xor %10 %11
%28 = xor %12 %13
%29 = xor %14 %15
%30 = xor %16 %18
%31 = xor %19 %24
%32 = xor %25 %26
%33 = xor %27 %28
%34 = xor %29 %30
%35 = xor %31 %32
%36 = xor %33 %34
%37 = xor %35 %36
return %37
";

/// The program with every operation, and programs that look back and have many streams.
fn programs() -> Vec<BitProgram> {
    let mut all = vec![BitProgram::parse(PROGRAM).unwrap()];
    all[0].verify().unwrap();
    for pattern in [r"\w{4}$", r"^\p{Greek}+\s*\p{Lu}", r"(([A-Za-z]{1,10} ){2,3}[a-z]{2,10})+[.]"] {
        let hir = regex_syntax::parse(pattern).unwrap();
        all.push(compile(&hir, &CompileOptions::default()).unwrap());
    }
    all
}

/// What the code's instructions ask of a processor.
fn features(code: &[u8]) -> BTreeSet<CpuidFeature> {
    let mut all = BTreeSet::new();
    for instruction in Decoder::with_ip(64, code, 0, DecoderOptions::NONE) {
        assert!(!instruction.is_invalid(), "byte {} of the code", instruction.ip());
        all.extend(instruction.cpuid_features());
    }
    all
}

/// What translations ask of a processor beyond what all have.
fn beyond_base(target: Target) -> BTreeSet<CpuidFeature> {
    let mut beyond = BTreeSet::new();
    for program in programs() {
        let ascii = program.looks_back().then(|| for_ascii(&program));
        let (code, slots, _) = translate(&program, ascii.as_ref(), target, Direction::Forwards);
        assert!(slots > 0, "values that lack a register are part of the test");
        beyond.extend(features(&code).into_iter().filter(|feature| !BASE.contains(feature)));
    }
    beyond
}

#[test]
fn sse2_code_runs_on_every_x86_64_processor() {
    assert_eq!(beyond_base(Target::Sse2), BTreeSet::new());
    // The question can be answered otherwise.
    assert!(beyond_base(Target::Avx2).contains(&CpuidFeature::AVX2));
}
