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

/// Operations of one of several programs: more have carries that no register holds.
const PART_OPERATIONS: usize = 400;

/// Letters of the patterns of one program: about what such a program has room for.
const PART_LETTERS: usize = 120;

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
    let mut programs = Vec::new();
    let mut rest = hirs;
    while !rest.is_empty() {
        let mut sum = 0;
        let fits = |hir: &&&Hir| {
            sum += letters(hir);
            sum <= PART_LETTERS
        };
        let (part, others) = rest.split_at(rest.iter().take_while(fits).count().max(1));
        program_or_halves(part, options, &mut programs)?;
        rest = others;
    }
    Ok(programs)
}

fn program_or_halves(
    hirs: &[&Hir],
    options: &CompileOptions,
    programs: &mut Vec<BitProgram>,
) -> Result<(), CompileError> {
    let owned: Vec<Hir> = hirs.iter().map(|&hir| hir.clone()).collect();
    let small = CompileOptions { operations: options.operations.min(PART_OPERATIONS), ..options.clone() };
    if let Ok(program) = compile_any(&owned, &small) {
        programs.push(program);
        return Ok(());
    }
    if let [_] = hirs {
        programs.push(compile_any(&owned, options)?);
        return Ok(());
    }
    let (first, second) = hirs.split_at(hirs.len() / 2);
    program_or_halves(first, options, programs)?;
    program_or_halves(second, options, programs)
}
