//! Errors in patterns, with messages that show the place.

use std::fmt;
use std::ops::Range;

/// Why a pattern was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The pattern does not parse.
    Syntax,
    /// The pattern asks for a byte that ends a line, which no line contains.
    LineEnd(u8),
    /// The pattern asks for a byte that the caller has excluded.
    Excluded(u8),
    /// Compiled, it would exceed this many bytes.
    TooLarge(usize),
}

/// A refused pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The kind of fault.
    pub kind: ErrorKind,
    /// The pattern as it was given.
    pub pattern: String,
    /// The place in the pattern, in bytes, where one can be named.
    pub place: Option<Range<usize>>,
    /// The fault in words, without the pattern.
    pub message: String,
}

impl Error {
    pub(super) fn syntax(pattern: &str, span: &regex_syntax::ast::Span, message: &dyn fmt::Display) -> Error {
        Error {
            kind: ErrorKind::Syntax,
            pattern: pattern.to_owned(),
            place: Some(span.start.offset..span.end.offset),
            message: message.to_string(),
        }
    }

    pub(super) fn too_large(pattern: &str, limit: usize) -> Error {
        let message = format!("compiled, the pattern exceeds the limit of {limit} bytes");
        Error { kind: ErrorKind::TooLarge(limit), pattern: pattern.to_owned(), place: None, message }
    }
}

impl std::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            None => write!(f, "{}", self.message),
            Some(place) => {
                writeln!(f, "regex parse error:")?;
                for (line, carets) in marked(&self.pattern, place) {
                    writeln!(f, "    {line}")?;
                    if let Some(carets) = carets {
                        writeln!(f, "    {carets}")?;
                    }
                }
                write!(f, "error: {}", self.message)
            }
        }
    }
}

/// The pattern's lines, those that `place` touches with carets below.
fn marked<'p>(pattern: &'p str, place: &Range<usize>) -> Vec<(&'p str, Option<String>)> {
    let mut lines = Vec::new();
    let mut start = 0;
    for line in pattern.split('\n') {
        let end = start + line.len();
        let touched = place.start <= end && (place.end > start || place.start >= start);
        let carets = touched.then(|| carets(line, place, start));
        lines.push((line, carets));
        start = end + 1;
    }
    lines
}

/// Spaces up to the place, then a caret for each of its characters, at least one.
fn carets(line: &str, place: &Range<usize>, start: usize) -> String {
    let from = place.start.saturating_sub(start).min(line.len());
    let to = place.end.saturating_sub(start).clamp(from, line.len());
    let before = line.char_indices().filter(|&(at, _)| at < from).count();
    let within = line.char_indices().filter(|&(at, _)| at >= from && at < to).count();
    " ".repeat(before) + &"^".repeat(within.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pattern: &str, place: Range<usize>) -> String {
        let error = Error {
            kind: ErrorKind::Syntax,
            pattern: pattern.into(),
            place: Some(place),
            message: "unclosed group".into(),
        };
        error.to_string()
    }

    #[test]
    fn the_place_is_marked() {
        assert_eq!(shown("ab(c", 2..3), "regex parse error:\n    ab(c\n      ^\nerror: unclosed group");
        assert_eq!(shown("äb(cd", 3..5), "regex parse error:\n    äb(cd\n      ^^\nerror: unclosed group");
        assert_eq!(shown("ab", 2..2), "regex parse error:\n    ab\n      ^\nerror: unclosed group");
    }

    #[test]
    fn only_the_touched_line_is_marked() {
        assert_eq!(
            shown("a\n(b\nc", 2..3),
            "regex parse error:\n    a\n    (b\n    ^\n    c\nerror: unclosed group"
        );
    }
}
