//! Which programs a set becomes, and which of its patterns a filter can look for.
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

use super::table::Table;
use super::window::windows;
use crate::compile::{compile_any, CompileError, CompileOptions};
use crate::plan::expression::letters;
use crate::program::BitProgram;
use regex_syntax::hir::Hir;

/// Up to so many operations one program reads the whole text faster than a filter pays.
const ALONE_OPERATIONS: usize = 400;

/// Operations of one of several programs: more have carries that no register holds. Eight pairs of
/// strings are about 510 and take 255 registers of an H100's threads; twelve are 680, of which 118
/// words lie in memory.
const PART_OPERATIONS: usize = 520;

/// Letters of the patterns of one program that is tried: about what a program has room for.
const PART_LETTERS: usize = 180;

/// The programs of a set.
pub(super) struct SetPlan {
    /// Programs for the whole text.
    pub(super) whole: Vec<BitProgram>,
    /// Programs for the lines that the filter found.
    pub(super) filtered: Vec<BitProgram>,
    pub(super) filter: Option<Table>,
}

impl SetPlan {
    /// Plans a set for a card whose blocks have so much shared memory.
    pub(super) fn new(
        hirs: &[Hir],
        options: &CompileOptions,
        shared_bytes: usize,
    ) -> Result<SetPlan, CompileError> {
        let alone =
            CompileOptions { operations: options.operations.min(ALONE_OPERATIONS), ..options.clone() };
        if let Ok(program) = compile_any(hirs, &alone) {
            return Ok(SetPlan { whole: vec![program], filtered: Vec::new(), filter: None });
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
        let filter = (!all.is_empty()).then(|| Table::new(&all, shared_bytes));
        Ok(SetPlan { whole: parts(&others, options)?, filtered: parts(&filtered, options)?, filter })
    }
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
