//! Any pattern over any text: every kernel marks the lines that the `regex` crate matches, programs
//! survive their text form, and all matches are those of `regex`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pattern::compile::{compile, CompileOptions};
use pattern::kernel::{Scanner, KERNELS};
use pattern::program::BitProgram;
use pattern::regex::Scratch;

/// All matches by marks, where a pattern has them, against each line by itself.
fn check_matches(pattern: &str, text: &[u8], regex: &regex::bytes::Regex) {
    let Ok(ours) = pattern::Regex::new(pattern) else { return };
    let (mut found, mut expected) = (Vec::new(), Vec::new());
    if ours.each_match(text, &mut Scratch::default(), &mut |spans| found.extend_from_slice(spans)).is_none() {
        return;
    }
    for line in pattern::line::each(text, b'\n') {
        let content = &text[line.start..line.start + pattern::line::content(&text[line.clone()], b'\n')];
        expected.extend(regex.find_iter(content).map(|span| line.start + span.start()..line.start + span.end()));
    }
    assert_eq!(found, expected, "{pattern:?}");
}

fuzz_target!(|input: (&str, &[u8])| {
    let (pattern, text) = input;
    let Ok(regex) = regex::bytes::RegexBuilder::new(pattern).size_limit(1 << 20).build() else { return };
    check_matches(pattern, text, &regex);
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
