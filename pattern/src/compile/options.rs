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

/// What a stretch of text between two terminators is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Haystack {
    /// A line: `(?m)^` and `(?m)$` hold at its two ends, as `^` and `$` do.
    #[default]
    Line,
    /// A row of a column: it may hold line ends, and `(?m)^` and `(?m)$` hold beside those too.
    Row {
        /// The byte that ends a line inside a row.
        line_end: u8,
    },
    /// A row of a column, with no byte between rows: a stream that is given beside the text
    /// ([`crate::program::Op::RowEnds`]) marks the last byte of each. No byte is a terminator; the
    /// program marks the last bytes of rows.
    MarkedRow {
        /// The byte that ends a line inside a row.
        line_end: u8,
    },
}

/// Options of compilation.
#[derive(Clone, Debug)]
pub struct CompileOptions {
    /// The byte that ends a line.
    pub terminator: u8,
    /// What stands between terminators.
    pub haystack: Haystack,
    /// Which lines are marked.
    pub lines: Lines,
    /// The most operations that a program may have; larger ones are refused.
    pub operations: usize,
}

impl Default for CompileOptions {
    fn default() -> CompileOptions {
        CompileOptions {
            terminator: b'\n',
            haystack: Haystack::Line,
            lines: Lines::Matching,
            operations: 20_000,
        }
    }
}
