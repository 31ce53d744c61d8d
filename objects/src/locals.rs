//! Variables in frames of functions: which one holds an address of a stack.
//!
//! **The problem.** A variable of a function lies at another address in each call, and debug
//! information tells only its distance from the frame's base. **The idea.** The stack pointer
//! before a call is the canonical frame address of the function that is called, and these stack
//! pointers are recorded for allocations anyway. So the call below which an address lies names the
//! function, the call above it gives the base, and the address less the base is looked up among
//! the function's variables.
//!
//! ```text
//!   higher addresses
//!   main calls f    ── stack pointer = base of f's frame
//!     f's variables at fixed distances below it
//!   f calls g       ── stack pointer = base of g's frame
//! ```
//!
//! Variables in inner scopes may share bytes, so those count that are in scope at the instruction
//! that refers to the address, or at the call where another function has the address; then those
//! that share bytes with no other variable of the function. A variable that moves (a location list)
//! counts where the instruction, or the call, finds it in the frame. Of a base that is the stack
//! pointer in a function's body, the unwind table tells the distance from the frame's base.
//! **Leaves out** arrays of variable length, and frames of the first function of a thread.

use crate::debug::entries::{DebugFile, EntryId};
use crate::debug::function::{frame_variables, is_in_scope, FrameBase, FrameVariable};
use heap::FramePlace;
use instrument::Module;
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use symbol::{ByNumber, DebugSections};

/// The debug information of files, which is read when a file is first asked for.
#[derive(Default)]
pub(crate) struct DebugFiles(HashMap<PathBuf, Option<DebugFile>>);

impl DebugFiles {
    /// The debug information of the file at a path; `None` if it has none.
    pub(crate) fn of(&mut self, path: &Path) -> Option<&mut DebugFile> {
        if !self.0.contains_key(path) {
            self.0.insert(path.to_owned(), DebugFile::read(path));
        }
        self.0.get_mut(path)?.as_mut()
    }
}

/// The functions whose variables are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Those of files with debug information of their own. Separate files are those of libraries,
    /// and reading one takes longer than many a program runs.
    #[default]
    OfOwnFiles,
    /// Those of all files, which are read for types anyway.
    All,
}

/// A variable of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Local {
    /// The file with the function's code.
    pub(crate) path: PathBuf,
    pub(crate) id: EntryId,
    /// Its function and its own name.
    pub(crate) name: String,
    pub(crate) size_bytes: u64,
}

/// The variables in the frame of a function, each with its number.
type Frame = Vec<(FrameVariable, u32)>;

/// What is in scope at an address of code.
struct Scope {
    /// The number of the function's frame.
    frame: usize,
    /// Places from a base, and numbers of variables.
    variables: Vec<(FrameBase, Range<i64>, u32)>,
    /// How far the stack pointer is below the frame's canonical address, if a variable counts from
    /// it and it is known.
    distance: Option<u64>,
}

/// All variables of functions that were met.
#[derive(Default)]
pub(crate) struct Locals {
    pub(crate) files: DebugFiles,
    pub(crate) all: Vec<Local>,
    /// Whose variables are wanted.
    pub(crate) wanted: Wanted,
    /// Whether files have their debug information in themselves.
    are_own: HashMap<PathBuf, bool>,
    frames: Vec<Frame>,
    /// Frames by file and function.
    frame_numbers: HashMap<(PathBuf, EntryId), usize>,
    /// What is in scope by address of code.
    scopes: ByNumber<u64, Option<Scope>>,
}

impl Locals {
    /// The variable at an address of a stack that code at address `ip` refers to, and where it
    /// begins. `module` tells the file of an address of code.
    pub(crate) fn at(
        &mut self,
        frame: &FramePlace,
        address: u64,
        ip: u64,
        module: impl Fn(u64) -> Option<Module>,
    ) -> Option<(u32, u64)> {
        self.know(ip, &module);
        let own = self.scopes.get(&ip)?.as_ref();
        let scope = match frame.call {
            None => own?,
            Some(call) => {
                self.know(call, &module);
                let calling = self.scopes.get(&call)?.as_ref()?;
                self.scopes.get(&ip)?.as_ref().filter(|own| own.frame == calling.frame).unwrap_or(calling)
            }
        };
        scope.variables.iter().find_map(|(base, range, number)| {
            let base = match *base {
                FrameBase::Canonical(moved) => frame.canonical?.wrapping_add_signed(moved),
                // A function that runs has made no call that would tell it.
                FrameBase::StackPointer => {
                    frame.stack.or_else(|| frame.canonical?.checked_sub(scope.distance?))?
                }
            };
            let offset = address.wrapping_sub(base) as i64;
            range.contains(&offset).then(|| (*number, base.wrapping_add_signed(range.start)))
        })
    }

    /// Finds out what is in scope at an address of code, if that is not known.
    fn know(&mut self, address: u64, module: &impl Fn(u64) -> Option<Module>) {
        if !self.scopes.contains_key(&address) {
            let scope = module(address).and_then(|module| self.scope(&module, address));
            self.scopes.insert(address, scope);
        }
    }

    fn scope(&mut self, module: &Module, address: u64) -> Option<Scope> {
        let offset = address.wrapping_sub(module.start).wrapping_add(module.file_offset);
        if self.wanted == Wanted::OfOwnFiles {
            let is_known = self.are_own.contains_key(&module.path);
            let is_own = is_known || DebugSections::lie_in(&module.path);
            if !*self.are_own.entry(module.path.clone()).or_insert(is_own) {
                return None;
            }
        }
        let file = self.files.of(&module.path)?;
        let address = file.link_address(offset)?;
        let unit = file.unit_at(address)?;
        let function = file.function_at(unit, address)?;
        let frame = self.frame(&module.path, function)?;
        let known = &self.frames[frame];
        let mut variables = Vec::new();
        for (variable, number) in known.iter().filter(|(known, _)| is_in_scope(&known.scopes, address)) {
            variables.push((variable.base, variable.range(), *number));
        }
        // Values are built before their scope begins, and some are used behind its end.
        for (variable, number) in known.iter().filter(|(known, _)| !is_in_scope(&known.scopes, address)) {
            if !variable.moves && variable.is_alone(known.iter().map(|(variable, _)| variable)) {
                variables.push((variable.base, variable.range(), *number));
            }
        }
        let counts = variables.iter().any(|variable| variable.0 == FrameBase::StackPointer);
        let file = self.files.of(&module.path).filter(|_| counts);
        let distance = file.and_then(|file| file.stack_distance(address));
        Some(Scope { frame, variables, distance })
    }

    /// The number of the frame of a function.
    fn frame(&mut self, path: &Path, function: EntryId) -> Option<usize> {
        let key = (path.to_owned(), function);
        if let Some(known) = self.frame_numbers.get(&key) {
            return Some(*known);
        }
        let mut variables = Vec::new();
        let first = self.all.len();
        for variable in frame_variables(self.files.of(path)?, function) {
            let FrameVariable { id, size_bytes, .. } = variable;
            // Places of one variable stand behind each other.
            if self.all[first..].last().is_none_or(|last| last.id != id) {
                let local = Local { path: path.to_owned(), id, name: variable.name.clone(), size_bytes };
                self.all.push(local);
            }
            variables.push((variable, self.all.len() as u32 - 1));
        }
        self.frames.push(variables);
        self.frame_numbers.insert(key, self.frames.len() - 1);
        Some(self.frames.len() - 1)
    }

    /// The program executes another one: code lies elsewhere.
    pub(crate) fn executes(&mut self) {
        self.scopes.clear();
    }
}
