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
//!
//! **Arrays of variable length** lie where a pointer says that only the program knows. So memory of
//! a frame that no variable with a place has, and to which code refers by a pointer, is that of the
//! one array of variable length in scope. It begins at the stack pointer of the call that the
//! function makes. **Leaves out** two such arrays in one scope, and frames of the first function of
//! a thread.

use crate::debug::entries::{DebugFile, EntryId};
use crate::debug::function::{
    frame_variables, is_by_pointer, is_in_scope, variable_arrays, FrameBase, FrameVariable, VariableArray,
};
use crate::place::STACK_ALIGN;
use heap::StackPlace;
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
    /// Bytes; 0 of an array of variable length.
    pub(crate) size_bytes: u64,
}

/// The variables in the frame of a function, each with its number.
struct Frame {
    /// Those that have places.
    placed: Vec<(FrameVariable, u32)>,
    /// Arrays of variable length.
    arrays: Vec<(VariableArray, u32)>,
}

/// What is in scope at an address of code.
#[derive(Debug)]
struct Scope {
    /// The number of the function's frame.
    frame: usize,
    /// Places from a base, and numbers of variables.
    variables: Vec<(FrameBase, Range<i64>, u32)>,
    /// How far the stack pointer is below the frame's canonical address, if a variable counts from
    /// it and it is known.
    distance: Option<u64>,
    /// The array of variable length, if the code may refer to one.
    array: Option<Array>,
}

/// An array of variable length.
#[derive(Clone, Copy, Debug)]
struct Array {
    number: u32,
    element_bytes: u64,
}

impl Array {
    /// The array at an address of a frame, with its beginning and its bytes as far as the element
    /// there; 0 and 0 where its beginning is not known.
    fn at(self, place: &StackPlace, address: u64) -> Option<(u32, u64, u64)> {
        // On top lie the return address, and what the function has kept of its caller's `rbp`.
        if address >= place.canonical?.checked_sub(STACK_ALIGN)? {
            return None;
        }
        let element_bytes = self.element_bytes;
        let start = match place.stack {
            Some(stack) => stack.next_multiple_of(STACK_ALIGN),
            // Wherever it begins, elements lie at multiples of their bytes.
            None if STACK_ALIGN.is_multiple_of(element_bytes) => address - address % element_bytes,
            None => return Some((self.number, 0, 0)),
        };
        let elements = address.checked_sub(start)? / element_bytes + 1;
        Some((self.number, start, elements * element_bytes))
    }
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
    /// What was found to be in scope somewhere.
    known: Vec<Scope>,
    /// The number of what is in scope by module and address of code.
    of_modules: Scopes,
}

/// The number of what is in scope, by address of code of one image.
pub(crate) type Scopes = ByNumber<u64, Option<u32>>;

impl Locals {
    /// The number of what is in scope where code at address `ip` refers to a frame whose function
    /// is at its call at address `call`, or runs. `module` tells the file of an address of code,
    /// and its number.
    pub(crate) fn scope_at<'m>(
        &mut self,
        scopes: &mut Scopes,
        (call, ip): (Option<u64>, u64),
        module: impl Fn(u64) -> Option<(u32, &'m Module)>,
    ) -> Option<u32> {
        let own = self.know(scopes, ip, &module);
        let Some(call) = call else { return own };
        let calling = self.know(scopes, call, &module)?;
        let frame = |scope: u32| self.known[scope as usize].frame;
        own.filter(|&own| frame(own) == frame(calling)).or(Some(calling))
    }

    /// The variable of a scope at an address, where it begins, and its bytes.
    pub(crate) fn find(&self, scope: u32, place: &StackPlace, address: u64) -> Option<(u32, u64, u64)> {
        let scope = &self.known[scope as usize];
        let placed = scope.variables.iter().find_map(|(base, range, number)| {
            let base = match *base {
                FrameBase::Canonical(moved) => place.canonical?.wrapping_add_signed(moved),
                // A function that runs has made no call that would tell it.
                FrameBase::StackPointer => {
                    place.stack.or_else(|| place.canonical?.checked_sub(scope.distance?))?
                }
            };
            let offset = address.wrapping_sub(base) as i64;
            let size_bytes = (range.end - range.start) as u64;
            range.contains(&offset).then(|| (*number, base.wrapping_add_signed(range.start), size_bytes))
        });
        placed.or_else(|| scope.array?.at(place, address))
    }

    /// The number of what is in scope at an address of code, if it is known or can be found out.
    fn know<'m>(
        &mut self,
        scopes: &mut Scopes,
        address: u64,
        module: &impl Fn(u64) -> Option<(u32, &'m Module)>,
    ) -> Option<u32> {
        if let Some(known) = scopes.get(&address) {
            return *known;
        }
        let number = module(address).and_then(|(number, module)| self.know_in(module, (number, address)));
        scopes.insert(address, number);
        number
    }

    /// The number of what is in scope at an address of a module, which other images may have met.
    fn know_in(&mut self, module: &Module, (number, address): (u32, u64)) -> Option<u32> {
        // User addresses have 47 bits; a program with so many modules generates code.
        let at = u64::from(number) << 47 | address;
        let is_told_apart = number < 1 << 17;
        if let Some(known) = self.of_modules.get(&at).filter(|_| is_told_apart) {
            return *known;
        }
        let scope = self.scope(module, address).map(|scope| {
            self.known.push(scope);
            self.known.len() as u32 - 1
        });
        if is_told_apart {
            self.of_modules.insert(at, scope);
        }
        scope
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
        let known = &self.frames[frame].placed;
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
        let mut arrays =
            self.frames[frame].arrays.iter().filter(|(array, _)| is_in_scope(&array.scopes, address));
        let array = match (arrays.next(), arrays.next()) {
            (Some((array, number)), None) => {
                Some(Array { number: *number, element_bytes: array.element_bytes })
            }
            _ => None,
        };
        let file = self.files.of(&module.path)?;
        let array = array.filter(|_| is_by_pointer(file, offset, address));
        let distance = counts.then(|| file.stack_distance(address)).flatten();
        Some(Scope { frame, variables, distance, array })
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
        let mut arrays = Vec::new();
        for array in variable_arrays(self.files.of(path)?, function) {
            let (path, name) = (path.to_owned(), array.name.clone());
            self.all.push(Local { path, id: array.id, name, size_bytes: 0 });
            arrays.push((array, self.all.len() as u32 - 1));
        }
        self.frames.push(Frame { placed: variables, arrays });
        self.frame_numbers.insert(key, self.frames.len() - 1);
        Some(self.frames.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::{ObjectKey, Place};
    use crate::recent::Framed;
    use heap::StackFrame;
    use proptest::prelude::*;

    /// Two variables by either base, and perhaps an array of variable length.
    fn scope() -> impl Strategy<Value = Scope> {
        let base = prop::bool::ANY.prop_map(|canonical| match canonical {
            true => FrameBase::Canonical(0),
            false => FrameBase::StackPointer,
        });
        let variable =
            (base, -60..20i64, 1..40i64).prop_map(|(base, start, size)| (base, start..start + size));
        let array = prop::option::of(prop::sample::select(vec![4u64, 8, 24]));
        let distance = prop::option::of(0..80u64);
        (prop::collection::vec(variable, 0..3), array, distance).prop_map(|(variables, array, distance)| {
            let numbered =
                variables.into_iter().zip(0..).map(|((base, range), number)| (base, range, number));
            let array = array.map(|element_bytes| Array { number: 9, element_bytes });
            Scope { frame: 0, variables: numbered.collect(), distance, array }
        })
    }

    /// A frame of one function at one call, and an address near it.
    fn place() -> impl Strategy<Value = (StackPlace, u64)> {
        let stack = prop::option::of(0x1000..0x1040u64);
        let canonical = prop::option::of(0x1040..0x1080u64);
        (stack, canonical, 0xff0..0x10a0u64).prop_map(|(stack, canonical, address)| {
            let (frame, call) = (StackFrame::Of(5), stack.map(|_| 5));
            (StackPlace { frame, call, stack, canonical }, address)
        })
    }

    fn found(locals: &Locals, (place, address): (StackPlace, u64), whole: Place) -> Place {
        let named = |(number, start, size_bytes)| Place { key: ObjectKey::Local(number), start, size_bytes };
        locals.find(0, &place, address).map_or(whole, named)
    }

    proptest! {
        /// What an instruction touched before tells what it touches now as a search tells it.
        #[test]
        fn what_was_touched_last_tells_what_a_search_finds(
            scope in scope(),
            first in place(),
            second in place(),
            is_near in any::<bool>(),
        ) {
            let locals = Locals { known: vec![scope], ..Locals::default() };
            let whole = Place { key: ObjectKey::Call(5), start: 0, size_bytes: 0 };
            let known = Framed::new((whole, Some(0)), &first.0, first.1, found(&locals, first, whole));
            // Half of the frames lie as the first one did, some bytes lower.
            let lower = |base: Option<u64>| base.map(|base| base - 48);
            let moved = StackPlace { stack: lower(first.0.stack), canonical: lower(first.0.canonical), ..first.0 };
            let second = if is_near { (moved, first.1 - 48) } else { second };
            let expected = found(&locals, second, whole);
            if known.is_of(&second.0) {
                if let Some(start) = known.start_of(&second.0, second.1) {
                    prop_assert_eq!(Place { start, ..known.place }, expected);
                }
            }
        }
    }
}
