//! A set of patterns for a card: which programs it becomes, and which of its patterns the card's
//! filter can look for.
//!
//! ```text
//! few operations in all             ──▶ one program for all patterns          (whole text)
//! rows of bytes                     ──▶ filter
//! patterns with a row in each match ──▶ filter ──▶ programs of some patterns  (lines that it found)
//! other patterns                    ──▶ programs of some patterns             (whole text)
//! ```
//!
//! A program shares its classes among its patterns, and its streams and carries have to fit a
//! thread's registers: that decides how many patterns one has. **Leaves out** grouping patterns by
//! the classes that they share.

use crate::compile::{compile_any, CompileError, CompileOptions, Haystack, Lines};
use crate::kernel::cuda::{windows, Cuda, CudaError, GpuSet, SetParts};
use crate::plan::expression::letters;
use crate::program::BitProgram;
use regex_syntax::hir::Hir;
use std::sync::Arc;

/// Up to so many operations one program reads the whole text faster than a filter pays.
const ALONE_OPERATIONS: usize = 400;

/// Operations of one of several programs: more have carries that no register holds. Eight pairs of
/// strings are about 510 and take 255 registers of an H100's threads; twelve are 680, of which 118
/// words lie in memory.
const PART_OPERATIONS: usize = 520;

/// Letters of the patterns of one program that is tried: about what a program has room for.
const PART_LETTERS: usize = 180;

impl GpuSet {
    /// Compiles a set of patterns for a card, several at once where there are processors for it.
    ///
    /// # Errors
    /// The options ask for other lines than those that match or for rows, a pattern has no exact
    /// program, or the compiler or the driver refuses one. Cost: some tenths
    /// of a second for each eight patterns that are not rows of bytes, on one processor.
    pub fn new(cuda: &Arc<Cuda>, patterns: &[Hir], options: &CompileOptions) -> Result<GpuSet, CudaError> {
        // The filter finds what matches, and lines end with a byte.
        if options.lines != Lines::Matching || options.haystack != Haystack::Line {
            let reason = "a set on a card finds lines that match, neither other lines nor rows".to_owned();
            return Err(CudaError::NoProgram { reason });
        }
        let parts =
            plan(patterns, options).map_err(|error| CudaError::NoProgram { reason: error.to_string() })?;
        GpuSet::of(cuda, parts, options.terminator)
    }
}

fn plan(hirs: &[Hir], options: &CompileOptions) -> Result<SetParts, CompileError> {
    let alone = CompileOptions { operations: options.operations.min(ALONE_OPERATIONS), ..options.clone() };
    if let Ok(program) = compile_any(hirs, &alone) {
        return Ok(SetParts { whole: vec![program], filtered: Vec::new(), windows: Vec::new() });
    }
    let (mut filtered, mut others, mut all) = (Vec::new(), Vec::new(), Vec::new());
    for hir in hirs {
        match windows(hir, options.terminator) {
            Some(windows) => {
                if !windows.iter().all(|window| window.is_match) {
                    filtered.push(hir);
                }
                all.extend(windows);
            }
            None => others.push(hir),
        }
    }
    Ok(SetParts { whole: parts(&others, options)?, filtered: parts(&filtered, options)?, windows: all })
}

/// Programs that have all patterns together.
fn parts(hirs: &[&Hir], options: &CompileOptions) -> Result<Vec<BitProgram>, CompileError> {
    let small = CompileOptions { operations: options.operations.min(PART_OPERATIONS), ..options.clone() };
    let (mut programs, mut rest) = (Vec::new(), hirs);
    while !rest.is_empty() {
        let mut sum = 0;
        let fits = |hir: &&&Hir| {
            sum += letters(hir);
            sum <= PART_LETTERS
        };
        let mut count = rest.iter().take_while(fits).count().max(1);
        let owned: Vec<Hir> = rest[..count].iter().map(|&hir| hir.clone()).collect();
        let program = loop {
            match compile_any(&owned[..count], &small) {
                Ok(program) => break program,
                // A pattern that is too large for a part is a program of its own.
                Err(_) if count == 1 => break compile_any(&owned[..1], options)?,
                Err(_) => count = (count * 7 / 8).min(count - 1),
            }
        };
        programs.push(program);
        rest = &rest[count..];
    }
    Ok(programs)
}
