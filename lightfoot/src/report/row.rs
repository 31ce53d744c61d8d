//! A row of a table.

use crate::run::tally::Counts;
use serde::Serialize;
use std::path::Path;
use symbol::Symbolizer;

/// A frame of inlined code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Frame {
    /// The demangled function.
    pub function: String,
    /// Source file.
    pub file: String,
    /// Line, from 1; 0 if it is unknown.
    pub line: u32,
}

/// A row of a table.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Row {
    /// Function (demangled), library or mnemonic; of a call the caller, an arrow and the callee.
    pub name: String,
    /// The library that holds the function.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub library: Option<String>,
    /// Link address of the function.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<u64>,
    /// Source file, if rows are lines and it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Line in the source file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// What stands in that line, without the space around it, if the file can be read and is not
    /// newer than the library. By it `diff` aligns lines of two versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Mnemonic, if the key of rows combines it with something else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opcode: Option<String>,
    /// For calls: how many there were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// For a line of inlined code: the frames that a debugger shows, innermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub frames: Vec<Frame>,
    /// For a line at which code was inlined: its counts together with those of that code. Such rows
    /// overlap, so these numbers add up to more than the totals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub with_inlined: Option<Box<Counts>>,
    /// The row's own counts.
    #[serde(flatten)]
    pub counts: Counts,
}

impl Row {
    /// The values that identify the row in its table.
    pub(super) fn identity(&self) -> impl Ord + '_ {
        (&self.library, &self.name, self.address, &self.file, self.line, &self.opcode)
    }
}

/// The row of a function, without its name, which takes longer to read than all else.
pub(super) fn function_row(symbols: &Symbolizer, index: usize, counts: &Counts) -> Row {
    let function = &symbols.functions()[index];
    let path = &symbols.libraries()[function.library].path;
    Row {
        library: Some(plain(path)),
        address: (function.address != 0).then_some(function.address),
        counts: *counts,
        ..Row::default()
    }
}

pub(super) fn library_row(symbols: &Symbolizer, index: usize, counts: &Counts) -> Row {
    Row { name: plain(&symbols.libraries()[index].path), counts: *counts, ..Row::default() }
}

pub(super) fn plain(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
