//! The agreement runner: a program on every kernel, held against the lines that the `regex` crate
//! finds.
//!
//! `tests/agree.rs` runs it on what everybody gets; the crate's own tests run it once more, where
//! the family of kernels has its dummy member.

use lightfoot_pattern::compile::{compile, CompileOptions};
use lightfoot_pattern::kernel::{Kernel, Scanner, KERNELS};
use lightfoot_pattern::program::BitProgram;
use regex::bytes::{Regex, RegexBuilder};
use std::ops::ControlFlow;

pub(crate) fn kernels() -> impl Iterator<Item = Kernel> {
    KERNELS.iter().copied().filter(|kernel| kernel.is_available())
}

pub(crate) fn options(terminator: u8) -> CompileOptions {
    CompileOptions { terminator, ..CompileOptions::default() }
}

pub(crate) fn parse(pattern: &str) -> regex_syntax::hir::Hir {
    parse_for(pattern, b'\n')
}

pub(crate) fn parse_for(pattern: &str, terminator: u8) -> regex_syntax::hir::Hir {
    let mut parser = regex_syntax::ParserBuilder::new().utf8(false).line_terminator(terminator).build();
    parser.parse(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"))
}

pub(crate) fn regex(pattern: &str, terminator: u8) -> Regex {
    RegexBuilder::new(pattern)
        .line_terminator(terminator)
        .build()
        .unwrap_or_else(|error| panic!("{pattern}: {error}"))
}

/// Positions of the terminators of matching lines, by the definition.
pub(crate) fn expected(regex: &Regex, text: &[u8], terminator: u8) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive(|&byte| byte == terminator) {
        let end = start + line.len() - usize::from(line.last() == Some(&terminator));
        if regex.is_match(&text[start..end]) {
            ends.push(end);
        }
        start += line.len();
    }
    ends
}

pub(crate) fn line_ends(scanner: &Scanner, text: &[u8]) -> Vec<usize> {
    let mut ends = Vec::new();
    let _ = scanner.for_each_line_end(text, |end| {
        ends.push(end);
        ControlFlow::Continue(())
    });
    ends
}

/// All kernels find the same lines, and say the same in each of their ways.
pub(crate) fn check_kernels(program: &BitProgram, text: &[u8], expected: &[usize], what: &str) {
    for kernel in kernels() {
        let scanner = Scanner::with_kernel(program, kernel).unwrap();
        let what = format!("{what} on {}", kernel.name());
        assert_eq!(line_ends(&scanner, text), expected, "{what}\n{program}");
        assert_eq!(scanner.count_lines(text), expected.len() as u64, "{what}: count");
        assert_eq!(scanner.is_match(text), !expected.is_empty(), "{what}: is_match");
    }
}

pub(crate) fn check(pattern: &str, text: &[u8], terminator: u8) {
    let program = compile(&parse_for(pattern, terminator), &options(terminator))
        .unwrap_or_else(|e| panic!("{pattern}: {e}"));
    let ends = expected(&regex(pattern, terminator), text, terminator);
    check_kernels(
        &program,
        text,
        &ends,
        &format!("{pattern:?} in {:?}", String::from_utf8_lossy(&text[..text.len().min(400)])),
    );
}
