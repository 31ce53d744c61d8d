//! Any pattern over any text: every kernel marks the lines that the `regex` crate matches, and programs survive their text form.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pattern::compile::{compile, CompileOptions};
use pattern::kernel::{Scanner, KERNELS};
use pattern::program::BitProgram;

fuzz_target!(|input: (&str, &[u8])| {
    let (pattern, text) = input;
    let Ok(regex) = regex::bytes::RegexBuilder::new(pattern).size_limit(1 << 20).build() else { return };
    let Ok(hir) = regex_syntax::ParserBuilder::new().utf8(false).build().parse(pattern) else { return };
    let Ok(program) = compile(&hir, &CompileOptions { operations: 5_000, ..CompileOptions::default() }) else { return };
    assert_eq!(BitProgram::parse(&program.to_string()).as_ref(), Ok(&program));
    let lines = text.split_inclusive(|&byte| byte == b'\n');
    let expected = lines.filter(|line| regex.is_match(line.strip_suffix(b"\n").unwrap_or(line))).count() as u64;
    for &kernel in KERNELS {
        if let Some(scanner) = Scanner::with_kernel(&program, kernel) {
            assert_eq!(scanner.count_lines(text), expected, "{pattern:?} on {}", kernel.name());
        }
    }
});
