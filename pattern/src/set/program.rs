//! A program for several patterns at once: one output stream each, character classes and all other
//! common parts computed once.

use super::window::Window;
use super::SetBits;
use crate::bits::BitKernel;
use crate::compile::{compile_set, CompileError, CompileOptions};
use crate::kernel::Scanner;
use crate::plan::expression::{letters, without_word_boundaries};
use regex_syntax::hir::Hir;
use std::ops::ControlFlow;

/// Programs with more letters do not stay in the first-level cache for instructions.
const MOST_LETTERS: usize = 900;

/// A program, and what its outputs mean.
#[derive(Debug)]
pub(super) struct SetProgram {
    scanner: Scanner,
    /// For each output the number of its pattern, and whether its lines are exactly the matching
    /// ones.
    outputs: Vec<(usize, bool)>,
}

impl SetProgram {
    /// Programs for some patterns of a set, and those patterns that have none.
    pub(super) fn all(
        numbers: &[usize],
        hirs: &[&Hir],
        options: &CompileOptions,
    ) -> (Vec<SetProgram>, Vec<usize>) {
        let (mut programs, mut alone) = (Vec::new(), Vec::new());
        let (mut group, mut sum): (Vec<usize>, usize) = (Vec::new(), 0);
        for &number in numbers {
            let own = letters(hirs[number]);
            if sum + own > MOST_LETTERS && !group.is_empty() {
                SetProgram::compile(&group, hirs, options, &mut programs, &mut alone);
                (group, sum) = (Vec::new(), 0);
            }
            group.push(number);
            sum += own;
        }
        SetProgram::compile(&group, hirs, options, &mut programs, &mut alone);
        (programs, alone)
    }

    /// Compiles a group, or its halves where it is too large.
    fn compile(
        group: &[usize],
        hirs: &[&Hir],
        options: &CompileOptions,
        programs: &mut Vec<SetProgram>,
        alone: &mut Vec<usize>,
    ) {
        let patterns: Vec<Hir> = group.iter().map(|&number| hirs[number].clone()).collect();
        match (compile_set(&patterns, &without_word_boundaries, options), group) {
            (_, []) => {}
            (Ok((program, exact)), _) => {
                let outputs = group.iter().copied().zip(exact).collect();
                programs.push(SetProgram { scanner: Scanner::new(&program), outputs });
            }
            (Err(CompileError::TooLarge { .. }), [_, _, ..]) => {
                let (first, second) = group.split_at(group.len() / 2);
                SetProgram::compile(first, hirs, options, programs, alone);
                SetProgram::compile(second, hirs, options, programs, alone);
            }
            (Err(_), [one]) => alone.push(*one),
            (Err(_), [first, others @ ..]) => {
                SetProgram::compile(&[*first], hirs, options, programs, alone);
                SetProgram::compile(others, hirs, options, programs, alone);
            }
        }
    }

    /// How many patterns it has.
    pub(super) fn patterns(&self) -> usize {
        self.outputs.len()
    }

    /// Marks the lines of a window in the bits of their patterns; candidates are asked `confirm`.
    pub(super) fn run(
        &self,
        window: &Window<'_>,
        bits: &BitKernel,
        out: &mut SetBits,
        confirm: &mut dyn FnMut(usize, &[u8]) -> bool,
    ) {
        let first_line = out.lines;
        let _ = self.scanner.scan_for(window.text.len()).finish_streams(window.text, |offset, streams| {
            let first = offset / 64;
            for (stream, &(pattern, is_exact)) in streams.iter().zip(&self.outputs) {
                if stream.iter().fold(0, |all, word| all | word) == 0 {
                    continue;
                }
                let words = stream.len().min(window.ends.len() - first);
                let (ends, before) = (&window.ends[first..], &window.before[first..]);
                if is_exact {
                    (bits.deposit)(&stream[..words], ends, before, first_line, &mut out.bits[pattern]);
                    continue;
                }
                for (at, &word) in stream[..words].iter().enumerate() {
                    let mut left = word;
                    while left != 0 {
                        let end = offset + 64 * at + left.trailing_zeros() as usize;
                        left &= left - 1;
                        let start = crate::line::start_of(window.text, end, window.terminator);
                        if confirm(pattern, &window.text[start..end]) {
                            out.set(pattern, window.line_number(end));
                        }
                    }
                }
            }
            ControlFlow::Continue(())
        });
    }
}
