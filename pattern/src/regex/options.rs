//! Options of an expression: the unit of matches, line ends, the comparison of letters.

/// What one match lies within.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// A line: the text is many haystacks.
    #[default]
    Line,
    /// The whole text.
    Text,
}

/// What ends a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Terminator {
    /// `\n`
    #[default]
    LineFeed,
    /// `\n`, and a `\r` before it belongs to it: `$` matches in front of both.
    CrLf,
    /// `\0`
    Nul,
}

impl Terminator {
    /// The last byte of a terminated line.
    pub fn byte(self) -> u8 {
        match self {
            Terminator::LineFeed | Terminator::CrLf => b'\n',
            Terminator::Nul => 0,
        }
    }
}

/// Upper and lower case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Case {
    /// An upper-case letter and its lower-case letter differ.
    #[default]
    Sensitive,
    /// An upper-case letter and its lower-case letter match each other.
    Insensitive,
    /// [`Case::Sensitive`] if any pattern holds an upper-case letter, else [`Case::Insensitive`].
    Smart,
}

/// Where a match begins and ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Boundary {
    /// Anywhere.
    #[default]
    None,
    /// Not inside a word at either end.
    Word,
    /// At the ends of a line.
    Line,
}

/// The options of a [`RegexBuilder`](super::RegexBuilder).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// What a match lies within.
    pub unit: Unit,
    /// What ends a line.
    pub terminator: Terminator,
    /// Upper and lower case.
    pub case: Case,
    /// Where a match begins and ends.
    pub boundary: Boundary,
    /// Patterns are strings.
    pub fixed_strings: bool,
    /// Classes, case and boundaries are Unicode's rather than ASCII's.
    pub unicode: bool,
    /// Matches begin and end between characters, and classes match whole ones (only with
    /// [`Unit::Text`]).
    pub utf8: bool,
    /// White space and comments in patterns are skipped.
    pub ignore_whitespace: bool,
    /// `^` and `$` match at line ends (always so with [`Unit::Line`]).
    pub multi_line: bool,
    /// A dot matches line ends (only with [`Unit::Text`]).
    pub dot_matches_new_line: bool,
    /// A byte that no pattern may contain.
    pub excluded: Option<u8>,
    /// Most memory of the compiled expression, in bytes.
    pub size_limit: usize,
    /// Most memory of the automaton's cache, in bytes.
    pub dfa_size_limit: usize,
    /// The byte of [`Unit::Text`] that `(?m)^`, `(?m)$` and a dot take for a line's end.
    pub text_line_end: u8,
}

impl Options {
    /// The byte that a dot does not match.
    pub(super) fn dot_excludes(&self) -> u8 {
        match self.unit {
            Unit::Line => b'\n',
            Unit::Text => self.text_line_end,
        }
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            unit: Unit::Line,
            terminator: Terminator::LineFeed,
            case: Case::Sensitive,
            boundary: Boundary::None,
            fixed_strings: false,
            unicode: true,
            utf8: false,
            ignore_whitespace: false,
            multi_line: false,
            dot_matches_new_line: false,
            excluded: None,
            // Patterns come from a user at a terminal and not from the network, so the limits are
            // far above those of `regex`.
            size_limit: 100 << 20,
            dfa_size_limit: 1000 << 20,
            text_line_end: b'\n',
        }
    }
}
