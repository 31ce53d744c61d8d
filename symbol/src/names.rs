//! Names for tools of the engine: the functions and source lines of the program that runs, as the
//! programmer wrote them.
//!
//! This is what [`instrument::tool::run_named`] is given. A tool sees each block with its function
//! and may ask for the line of an instruction while it instruments; what it counts by function or
//! line carries the name from there.

use crate::demangle::demangle;
use crate::numbers::ByNumber;
use crate::symbolizer::Symbolizer;
use instrument::tool::{Procedure, Procedures, SourceLine};
use instrument::Module;

/// Names of the program that runs; files are read as their addresses are asked for.
#[derive(Debug, Default)]
pub struct ProgramNames {
    symbols: Symbolizer,
    /// Demangled names by function: blocks of one function come one after the other.
    written: ByNumber<usize, String>,
}

impl ProgramNames {
    /// Nothing read yet.
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

    /// The innermost frame's line, where code was inlined.
    fn line(&mut self, module: &Module, address: u64) -> Option<SourceLine> {
        let frame = self.symbols.frame(module, address)?;
        let sources = self.symbols.sources();
        let innermost = sources.chain(frame).next()?;
        let file = sources.files().get(innermost.file as usize)?.clone();
        Some(SourceLine { file, line: innermost.line })
    }
}
