//! Provides tools of the engine with the demangled functions and the source lines of the program.
//!
//! [`ProgramNames`] is passed to [`instrument::tool::run_named`]. A tool then sees each block with
//! its function, and can look the line of an instruction up while it instruments. It carries them
//! to its report by its counters' names and its events' tags.

use crate::demangle::demangle;
use crate::numbers::ByNumber;
use crate::symbolizer::Symbolizer;
use instrument::tool::{Procedure, Procedures, SourceLine};
use instrument::Module;

/// Names of the running program; a file is read when the first of its addresses is looked up.
#[derive(Debug, Default)]
pub struct ProgramNames {
    symbols: Symbolizer,
    /// Demangled names by number of the function, because blocks of one function follow each other.
    written: ByNumber<usize, String>,
}

impl ProgramNames {
    /// Names of a program of which nothing has been read yet.
    pub fn new() -> ProgramNames {
        ProgramNames::default()
    }
}

impl Procedures for ProgramNames {
    fn at(&mut self, module: &Module, address: u64) -> Option<Procedure> {
        let found = self.symbols.function_at(module, address);
        let function = &self.symbols.functions()[found.function];
        let name = self.written.entry(found.function).or_insert_with(|| demangle(&function.name)).clone();
        Some(Procedure { name, range: found.range })
    }

    /// The source line of an address; in inlined code that of the innermost frame.
    fn line(&mut self, module: &Module, address: u64) -> Option<SourceLine> {
        let frame = self.symbols.frame(module, address)?;
        let sources = self.symbols.sources();
        let innermost = sources.chain(frame).next()?;
        let file = sources.files().get(innermost.file as usize)?.clone();
        Some(SourceLine { file, line: innermost.line })
    }
}
