//! One line of a table.

use crate::run::tally::Counts;
use serde::Serialize;
use std::path::Path;
use symbol::{demangle, Symbolizer};

/// A frame of inlined code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Frame {
    /// Demangled.
    pub function: String,
    /// Source file.
    pub file: String,
    /// Line, from 1; 0 where it is not known.
    pub line: u32,
}

/// One line of a table.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Row {
    /// Function (demangled), library or mnemonic.
    pub name: String,
    /// File that a function lies in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub library: Option<String>,
    /// Address of a function in its file, before relocation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<u64>,
    /// Source file, where rows are lines and it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Line of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Mnemonic, where rows tell it apart beside something else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opcode: Option<String>,
    /// Of a line whose code was inlined: the frames that a debugger shows, innermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub frames: Vec<Frame>,
    /// Of a line that code was inlined at: what happened there together with that code. Such rows
    /// overlap, so these numbers add up to more than the totals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub with_inlined: Option<Box<Counts>>,
    /// What happened there.
    #[serde(flatten)]
    pub counts: Counts,
}

impl Row {
    /// What tells it from all other rows of its table.
    pub(super) fn identity(&self) -> impl Ord + '_ {
        (&self.library, &self.name, self.address, &self.file, self.line, &self.opcode)
    }
}

pub(super) fn function_row(symbols: &Symbolizer, index: usize, counts: &Counts) -> Row {
    let function = &symbols.functions()[index];
    let path = &symbols.libraries()[function.library].path;
    Row {
        name: demangle(&function.name),
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
