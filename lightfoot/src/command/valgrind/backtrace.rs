//! The stack of a thread at a request, also as lines of Valgrind's log.
//!
//! Frames are found by the unwind tables of the files that the program has mapped. An address that
//! a frame returns to belongs to the instruction before it, as in Valgrind. **Leaves out** frames
//! of inlined functions, and what lies behind a frame that no table describes.

use instrument::mark::ProgramMemory;
use instrument::Module;
use std::path::PathBuf;
use symbol::{demangle, CallFrames, FrameRegisters, Symbolizer};

/// The register that holds the address of the code.
const CODE: usize = 16;

/// What is known of the program's files.
#[derive(Default)]
pub(super) struct Backtraces {
    modules: Vec<Module>,
    /// Files and their unwind tables; `None` for a file without one.
    tables: Vec<(PathBuf, Option<CallFrames>)>,
}

impl Backtraces {
    /// Notes a module whose code is about to run.
    pub(super) fn meet(&mut self, module: &Module) {
        self.modules.push(module.clone());
    }

    /// The lines of the stack of a thread with these registers, at most so many.
    pub(super) fn lines(
        &mut self,
        (registers, frames_max): (&FrameRegisters, usize),
        memory: &dyn ProgramMemory,
        symbols: &mut Symbolizer,
    ) -> Vec<String> {
        let stack = self.stack((registers, frames_max), memory);
        let prepositions = std::iter::once("at").chain(std::iter::repeat("by"));
        stack
            .into_iter()
            .zip(prepositions)
            .map(|((module, code), preposition)| {
                let place =
                    module.as_ref().map_or_else(|| "???".to_owned(), |module| place(module, code, symbols));
                format!("   {preposition} 0x{:X}: {place}", code.wrapping_add(1))
            })
            .collect()
    }

    /// The modules and addresses of the stack of a thread with these registers, the innermost
    /// first, at most so many; the last one may lie in no module.
    pub(super) fn stack(
        &mut self,
        (registers, frames_max): (&FrameRegisters, usize),
        memory: &dyn ProgramMemory,
    ) -> Vec<(Option<Module>, u64)> {
        let (mut stack, mut frame) = (Vec::new(), Some(*registers));
        while let Some(registers) = frame.filter(|_| stack.len() < frames_max) {
            let code = registers[CODE].wrapping_sub(1);
            let module = self.module(code);
            frame = module.as_ref().and_then(|module| self.caller(module, code, &registers, memory));
            stack.push((module, code));
        }
        stack
    }

    /// The module that was mapped last of those that hold `address`.
    fn module(&self, address: u64) -> Option<Module> {
        self.modules.iter().rev().find(|module| (module.start..module.end).contains(&address)).cloned()
    }

    fn caller(
        &mut self,
        module: &Module,
        code: u64,
        registers: &FrameRegisters,
        memory: &dyn ProgramMemory,
    ) -> Option<FrameRegisters> {
        let known = self.tables.iter().position(|(path, _)| *path == module.path);
        let index = known.unwrap_or_else(|| {
            self.tables.push((module.path.clone(), CallFrames::read(&module.path)));
            self.tables.len() - 1
        });
        let table = self.tables[index].1.as_ref()?;
        let address = table.link_address(code - module.start + module.file_offset)?;
        table.caller(address, registers, |address| {
            let mut bytes = [0; 8];
            (memory.read(address, &mut bytes) == bytes.len()).then(|| u64::from_le_bytes(bytes))
        })
    }
}

/// The function at an address, with its line or the file that it is in.
fn place(module: &Module, code: u64, symbols: &mut Symbolizer) -> String {
    let function = symbols.function_at(module, code).function;
    let name = demangle(&symbols.functions()[function].name);
    let frame = symbols.frame(module, code);
    // The function's own line, not that of code that was inlined into it.
    let line = frame.and_then(|frame| symbols.sources().chain(frame).last());
    match line {
        Some(line) => {
            let file = &symbols.sources().files()[line.file as usize];
            let file = file.rsplit('/').next().unwrap_or(file);
            format!("{name} ({file}:{})", line.line)
        }
        None => format!("{name} (in {})", module.path.display()),
    }
}
