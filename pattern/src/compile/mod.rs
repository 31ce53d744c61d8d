//! The compiler: from an expression to a program that marks the lines in which it matches.
//!
//! **Markers.** A marker at position `i` means: what has been matched so far ends before byte `i`.
//! All positions are marked to begin with; each part of the expression moves the markers on. In the
//! end a line matches if any marker stands in it, its terminator included: `MatchStar(m, ¬nl) ∧
//! nl`. No class holds the terminator, so no marker leaves its line.
//!
//! **Only whether, not where.** Since any match will do, what a match may leave out at its end is
//! dropped (`\w+` at the end is `\w`), and from "everywhere" a repetition gives no more than its
//! least count (`[a-z]+ing` starts as `[a-z]ing` would). Both are equalities, not approximations.
//!
//! * a class: `advance(m ∧ c)`, or over characters of several bytes as `utf8` has it;
//! * `c*`: one MatchStar; `c{n}`: runs of `c` by doubling; any other star: a least fixed point;
//! * `^`, `$`, `\b`: masks on markers. A Unicode `\b` needs the character after the marker, whose
//!   class bit lies ahead on its last byte: what follows in the expression decides it, or the
//!   marker is moved to that byte where nothing follows.
//!
//! **Rows without terminators.** The rows of a column lie one behind the other, and a row ends
//! between two bytes. A stream beside the text marks the last byte of each row
//! ([`Haystack::MarkedRow`]). No marker moves from such a byte to the next one, which is another
//! row's: those that would are a stream of their own, on that last byte, which only assertions and
//! the end of the expression look at. A row matches if it has a marker of either kind.
//!
//! **Leaves out** the preference among several matches (greed, order of alternatives) and the start
//! of a match; an engine for spans finds both inside the marked lines. Source: Cameron et al.
//! 2014, section 2.

mod backwards;
mod class;
mod compiler;
mod error;
mod look;
mod options;
mod repeat;
mod utf8;
mod word;

pub use error::CompileError;
pub use options::{CompileOptions, Haystack, Lines};

use crate::program::BitProgram;
use compiler::{Compiler, Follow, Markers, Side, WordAssertions};
use regex_syntax::hir::Hir;

/// Compiles an expression. The program marks the terminator of every line in which the `regex`
/// crate's bytes API, given the line without its terminator, finds a match.
///
/// ```
/// use lightfoot_pattern::compile::{compile, CompileOptions, Lines};
/// use lightfoot_pattern::kernel::Scanner;
/// let hir = regex_syntax::parse("a+").unwrap();
/// let others = CompileOptions { lines: Lines::Others, ..CompileOptions::default() };
/// let program = compile(&hir, &others)?;
/// assert_eq!(Scanner::new(&program).count_lines(b"aa\nbb\ncc\n"), 2);
/// # Ok::<(), lightfoot_pattern::compile::CompileError>(())
/// ```
///
/// # Errors
/// The expression cannot be expressed exactly, or not within the limit. Cost: microseconds for
/// usual expressions, below a millisecond for Unicode classes.
pub fn compile(hir: &Hir, options: &CompileOptions) -> Result<BitProgram, CompileError> {
    compile_any(std::slice::from_ref(hir), options)
}

/// Compiles an expression whose assertions about ASCII words are taken to hold beside a byte beyond
/// ASCII: the program may mark more lines than [`compile`]'s, and marks all of them.
///
/// # Errors
/// The expression cannot be expressed, or not within the limit.
pub(crate) fn compile_near(hir: &Hir, options: &CompileOptions) -> Result<BitProgram, CompileError> {
    compile_with(std::slice::from_ref(hir), options, WordAssertions::Near)
}

/// Compiles a set of expressions: the program marks the lines in which any of them matches, in one
/// pass.
///
/// # Errors
/// An expression cannot be expressed exactly, or not within the limit.
pub fn compile_any(hirs: &[Hir], options: &CompileOptions) -> Result<BitProgram, CompileError> {
    compile_with(hirs, options, WordAssertions::Exact)
}

fn compile_with(
    hirs: &[Hir],
    options: &CompileOptions,
    words: WordAssertions,
) -> Result<BitProgram, CompileError> {
    let mut compiler = Compiler::new(options);
    compiler.words = words;
    compiler.declare(hirs)?;
    let none = compiler.builder.zero();
    let mut union = Markers { at: none, end: none, before: Side::Unknown };
    for hir in hirs {
        let everywhere = compiler.everywhere();
        let markers = compiler.node(hir, everywhere, Follow::END)?;
        union = compiler.either(union, markers);
    }
    let output = compiler.line_ends(union);
    let program = compiler.builder.finish(output);
    debug_assert_eq!(program.verify(), Ok(()));
    Ok(program)
}

/// Compiles a set of expressions to a program that keeps a stream for each: the lines in which it
/// matches. An expression whose lines cannot be decided is replaced by `superset` of it; the answer
/// says which are exact.
///
/// # Errors
/// An expression cannot be expressed, or all together not within the limit.
pub(crate) fn compile_set(
    hirs: &[Hir],
    superset: &dyn Fn(&Hir) -> Hir,
    options: &CompileOptions,
) -> Result<(BitProgram, Vec<bool>), CompileError> {
    let mut compiler = Compiler::new(options);
    compiler.declare(hirs)?;
    let (mut kept, mut exact) = (Vec::with_capacity(hirs.len()), Vec::with_capacity(hirs.len()));
    for hir in hirs {
        let everywhere = compiler.everywhere();
        let (markers, is_exact) = match compiler.node(hir, everywhere, Follow::END) {
            Err(CompileError::WordAhead { .. }) => {
                (compiler.node(&superset(hir), everywhere, Follow::END)?, false)
            }
            markers => (markers?, true),
        };
        kept.push(compiler.line_ends(markers));
        exact.push(is_exact);
    }
    let program = compiler.builder.finish_all(kept);
    debug_assert_eq!(program.verify(), Ok(()));
    Ok((program, exact))
}

/// Compiles an expression to a program that marks where its matches end: position `i` for one whose
/// last byte is the one before `i`. Where an assertion about Unicode words stands at the very end,
/// the mark is on the last byte of the character behind the match, or where what is no UTF-8 breaks
/// off.
///
/// # Errors
/// The expression cannot be expressed exactly, or not within the limit.
pub(crate) fn compile_ends(hir: &Hir, options: &CompileOptions) -> Result<BitProgram, CompileError> {
    let mut compiler = Compiler::new(options);
    compiler.declare(std::slice::from_ref(hir))?;
    let everywhere = compiler.everywhere();
    let markers = compiler.node(hir, everywhere, Follow::END)?;
    let program = compiler.builder.finish(markers.at);
    debug_assert_eq!(program.verify(), Ok(()));
    Ok(program)
}

/// Compiles an expression for texts that are read backwards, last byte first: the program marks
/// position `i` where a match starts whose first byte is the one before `i`, that is `i` bytes from
/// the end of the text. Beside characters beyond ASCII it may mark more; on ASCII it is exact.
///
/// # Errors
/// The expression cannot be expressed, or not within the limit.
pub fn compile_starts(hir: &Hir, options: &CompileOptions) -> Result<BitProgram, CompileError> {
    let reversed = backwards::backwards(hir).ok_or(CompileError::Backwards)?;
    let mut compiler = Compiler::new(options);
    compiler.words = WordAssertions::Near;
    compiler.declare(std::slice::from_ref(&reversed))?;
    let everywhere = compiler.everywhere();
    let markers = compiler.node(&reversed, everywhere, Follow::with(Side::Unknown))?;
    let program = compiler.builder.finish(markers.at);
    debug_assert_eq!(program.verify(), Ok(()));
    Ok(program)
}
