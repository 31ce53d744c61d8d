//! Reasons for which an expression cannot be compiled to a program.

use std::fmt;

/// Why an expression cannot be expressed exactly. Nothing is approximated silently: a caller with
/// another engine can use that instead, or confirm candidates.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompileError {
    /// The program would have more operations than [`super::CompileOptions::operations`] allows.
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// A Unicode word boundary whose next character may or may not be of a word: its class lies
    /// ahead of the marker.
    WordAhead {
        /// The assertion, as it is written.
        look: &'static str,
    },
    /// An assertion that has no counterpart in texts that are read backwards.
    Backwards,
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompileError::TooLarge { limit } => {
                write!(f, "the expression needs more than {limit} bit-stream operations; a higher limit admits it")
            }
            CompileError::WordAhead { look } => write!(
                f,
                "the Unicode assertion {look} stands before something that may or may not be a word character; \
                 (?-u:{look}) has no such bound"
            ),
            CompileError::Backwards => {
                write!(f, "line ends of two bytes cannot be asserted in a text that is read backwards")
            }
        }
    }
}

impl std::error::Error for CompileError {}
