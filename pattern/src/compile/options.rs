//! Options of compilation.

/// Which lines the program marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lines {
    /// The lines in which the expression matches.
    #[default]
    Matching,
    /// The lines in which the expression does not match.
    Others,
}

/// Options of compilation.
#[derive(Clone, Debug)]
pub struct CompileOptions {
    /// The byte that ends a line.
    pub terminator: u8,
    /// Which lines are marked.
    pub lines: Lines,
    /// The most operations that a program may have; larger ones are refused.
    pub operations: usize,
}

impl Default for CompileOptions {
    fn default() -> CompileOptions {
        CompileOptions { terminator: b'\n', lines: Lines::Matching, operations: 20_000 }
    }
}
