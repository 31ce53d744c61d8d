//! The program of an expression over rows: a row is a haystack by itself, which a separator ends.
//!
//! It is compiled when a column repays that, and at most once. Classes of Unicode are hundreds of
//! operations in each block that holds a character beyond ASCII, so columns with such characters
//! get a small program of bytes first ([`RowProgram::near`]): what it marks in rows of ASCII is
//! right, and other marked rows are decided one by one. So does every column where the expression
//! counts characters, as `.{20}` does: bytes are counted by doubling, characters one after the
//! other. **Leaves out** expressions that no program decides within the limits: the automaton
//! searches their rows one by one.

use super::gather::SEPARATOR;
use crate::compile::{compile, compile_near, CompileError, CompileOptions, Haystack};
use crate::kernel::Scanner;
use crate::plan::expression::{has_long_characters, letters, without_word_boundaries};
use crate::plan::{MOST_LETTERS, MOST_OPERATIONS};
use crate::program::BitProgram;
use crate::regex::ascii::{is_exact_on_ascii, loose, twin};
use crate::regex::Options;
use regex_syntax::hir::Hir;

/// A program, and what its rows are.
#[derive(Debug)]
pub(super) struct RowProgram {
    pub(super) scanner: Scanner,
    pub(super) marks: Marks,
}

/// The rows that a program marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marks {
    /// Those that match.
    Exact,
    /// All of those and perhaps others.
    Candidates,
    /// Of rows of ASCII those that match; of others all of those and perhaps others.
    ExactOnAscii,
    /// Of rows of ASCII those that match; of others any.
    OnlyOnAscii,
}

/// How rows are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowEnd {
    /// A separator stands behind each row.
    Separator,
    /// A stream marks last bytes.
    Marked,
}

impl RowEnd {
    fn options(self, options: &Options) -> CompileOptions {
        match self {
            RowEnd::Separator => compile_options(options),
            RowEnd::Marked => {
                let haystack = Haystack::MarkedRow { line_end: options.text_line_end };
                CompileOptions { haystack, ..compile_options(options) }
            }
        }
    }
}

impl RowProgram {
    /// The program of an expression for any rows, where it has one.
    pub(super) fn any(hir: &Hir, options: &Options, end: RowEnd) -> Option<RowProgram> {
        if !has_program(hir, options) {
            return None;
        }
        let compile_options = end.options(options);
        let (program, marks) = match compile(hir, &compile_options) {
            Ok(program) => (program, Marks::Exact),
            Err(CompileError::WordAhead { .. }) => {
                (compile(&without_word_boundaries(hir), &compile_options).ok()?, Marks::Candidates)
            }
            Err(_) => return None,
        };
        Some(RowProgram { scanner: Scanner::new(&program), marks })
    }

    /// A program of bytes in place of one with characters beyond ASCII, exact on rows of ASCII.
    pub(super) fn near(hir: &Hir, options: &Options, end: RowEnd) -> Option<RowProgram> {
        let twin = twin(hir).filter(|_| has_program(hir, options))?;
        let (program, marks) = match counts_characters(hir) {
            false => (compile_near(&loose(hir), &end.options(options)).ok()?, Marks::ExactOnAscii),
            true => (compile(&twin, &end.options(options)).ok()?, Marks::OnlyOnAscii),
        };
        Some(RowProgram { scanner: Scanner::new(&program), marks })
    }
}

/// Whether an expression counts characters that may be longer than a byte, up to a bound.
pub(super) fn counts_characters(hir: &Hir) -> bool {
    !is_exact_on_ascii(hir)
}

/// The program of an expression for any rows, where it has one that marks those that match and no
/// others.
pub(super) fn exact_program(hir: &Hir, options: &Options, end: RowEnd) -> Option<BitProgram> {
    has_program(hir, options).then(|| compile(hir, &end.options(options)).ok())?
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
