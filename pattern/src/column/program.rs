//! The program of an expression over rows: a row is a haystack by itself, which a separator ends.
//!
//! It is compiled when a column repays that, and at most once. **Leaves out** expressions that no
//! program decides within the limits: the automaton searches their rows one by one.

use super::gather::SEPARATOR;
use crate::compile::{compile, CompileError, CompileOptions, Haystack};
use crate::kernel::Scanner;
use crate::plan::expression::{has_long_characters, letters, without_word_boundaries};
use crate::plan::{MOST_LETTERS, MOST_OPERATIONS};
use crate::regex::Options;
use regex_syntax::hir::Hir;

/// A program, and whether its rows are the matching ones; otherwise all of those and perhaps
/// others.
#[derive(Debug)]
pub(super) struct RowProgram {
    pub(super) scanner: Scanner,
    pub(super) is_exact: bool,
}

impl RowProgram {
    /// The program of an expression for rows behind separators, where it has one.
    pub(super) fn with_separators(hir: &Hir, options: &Options) -> Option<RowProgram> {
        RowProgram::new(hir, options, compile_options(options))
    }

    /// The program of an expression for rows whose last bytes are marked, where it has one.
    pub(super) fn in_place(hir: &Hir, options: &Options) -> Option<RowProgram> {
        let haystack = Haystack::MarkedRow { line_end: options.text_line_end };
        RowProgram::new(hir, options, CompileOptions { haystack, ..compile_options(options) })
    }

    fn new(hir: &Hir, options: &Options, compile_options: CompileOptions) -> Option<RowProgram> {
        if !has_program(hir, options) {
            return None;
        }
        let (program, is_exact) = match compile(hir, &compile_options) {
            Ok(program) => (program, true),
            Err(CompileError::WordAhead { .. }) => {
                (compile(&without_word_boundaries(hir), &compile_options).ok()?, false)
            }
            Err(_) => return None,
        };
        Some(RowProgram { scanner: Scanner::new(&program), is_exact })
    }
}

/// Whether a program is worth a try.
pub(super) fn has_program(hir: &Hir, options: &Options) -> bool {
    // Classes of characters behind half a character are decided byte by byte.
    let splits_characters = !hir.properties().is_utf8() && has_long_characters(hir);
    // Between the bytes of a character there is no empty match then, which no program knows.
    let skips_characters = options.utf8 && hir.properties().minimum_len() == Some(0);
    let is_word = options.text_line_end.is_ascii_alphanumeric() || options.text_line_end == b'_';
    !splits_characters && !skips_characters && !is_word && letters(hir) <= MOST_LETTERS
}

/// How rows are compiled.
pub(super) fn compile_options(options: &Options) -> CompileOptions {
    CompileOptions {
        terminator: SEPARATOR,
        haystack: Haystack::Row { line_end: options.text_line_end },
        operations: MOST_OPERATIONS,
        ..CompileOptions::default()
    }
}
