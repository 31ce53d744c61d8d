//! Colours of results, as the bytes that a terminal takes for them.

use crate::settings::Settings;
use crate::stdout::is_colored;
use termcolor::{Ansi, ColorSpec, WriteColor};

/// The bytes in front of each kind of field, and those behind them; all empty without colours.
#[derive(Clone, Debug, Default)]
pub(super) struct Paint {
    pub(super) path: Vec<u8>,
    pub(super) line: Vec<u8>,
    pub(super) column: Vec<u8>,
    /// `None` if matches look like the rest of their lines.
    pub(super) matched: Option<Vec<u8>>,
    /// In front of a line with matches, and of what follows each of them; empty for no such colour.
    pub(super) highlight: Vec<u8>,
    pub(super) reset: Vec<u8>,
}

impl Paint {
    pub(super) fn new(settings: &Settings) -> Paint {
        if !is_colored(settings.color) {
            return Paint::default();
        }
        let colors = &settings.colors;
        let if_any = |spec: &ColorSpec| (!spec.is_none()).then(|| bytes_of(spec));
        Paint {
            path: bytes_of(colors.path()),
            line: bytes_of(colors.line()),
            column: bytes_of(colors.column()),
            matched: if_any(colors.matched()),
            highlight: if_any(colors.highlight()).unwrap_or_default(),
            reset: bytes_of(&ColorSpec::new()),
        }
    }

    pub(super) fn is_colored(&self) -> bool {
        !self.reset.is_empty()
    }

    /// The bytes behind a match.
    pub(super) fn behind_match(&self) -> &[u8] {
        match self.highlight.is_empty() {
            true => &self.reset,
            false => &self.highlight,
        }
    }
}

fn bytes_of(spec: &ColorSpec) -> Vec<u8> {
    let mut ansi = Ansi::new(Vec::new());
    // A vector takes whatever is written.
    let _ = ansi.set_color(spec);
    ansi.into_inner()
}
