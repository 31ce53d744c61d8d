//! The names of objects, and what is known of them besides their misses.

use crate::debug::layout::TypeLayout;
use crate::fields::{Fields, TypeSums};
use crate::globals::{Variable, VariableKind};
use crate::locals::Local;
use crate::map::{Earlier, Known, ObjectKey};
use crate::order::Visits;
use crate::tally::{Missed, ObjectMisses};
use crate::uses::{AllUses, Uses};
use instrument::Module;
use std::collections::HashMap;
use std::path::Path;
use symbol::{demangle, Symbolizer};

/// All objects of a run.
#[derive(Clone, Debug, Default)]
pub struct Named {
    /// The objects with misses.
    pub objects: Vec<Object>,
    /// The frames of stacks.
    pub frames: Vec<Frame>,
    /// The types of objects, where they were wanted.
    pub types: Vec<FoundType>,
    /// Whether any module had an allocating function that is known.
    pub has_allocator: bool,
    /// Allocations of which it was not seen where the block lies.
    pub lost: u64,
}

/// A type that objects have.
#[derive(Clone, Debug, Default)]
pub struct FoundType {
    /// Its fields.
    pub layout: TypeLayout,
    /// Misses of each field.
    pub fields: Vec<ObjectMisses>,
    /// Misses of bytes between fields; of a type without fields all.
    pub between: ObjectMisses,
    /// Misses of bytes behind the elements of objects.
    pub beyond: ObjectMisses,
    /// Accesses of each field, where all references were wanted.
    pub uses: Vec<Uses>,
    /// Which fields are used together, where all references were wanted.
    pub visits: Vec<Visits>,
}

impl FoundType {
    /// Its misses.
    pub fn total(&self) -> ObjectMisses {
        let mut sum = self.between;
        sum.add(&self.beyond);
        self.fields.iter().for_each(|field| sum.add(field));
        sum
    }
}

/// An object.
#[derive(Clone, Debug, Default)]
pub struct Object {
    /// What it is.
    pub kind: ObjectKind,
    /// Its name: of blocks the function that allocates them.
    pub name: String,
    /// The file of a variable, section or code.
    pub library: Option<String>,
    /// The number of its type in [`Named::types`], and what told the type.
    pub of_type: Option<(u32, String)>,
    /// Its misses.
    pub misses: ObjectMisses,
    /// Its accesses, where all references were wanted.
    pub uses: Option<Uses>,
    /// Bytes: of blocks the most that lived at a time; `None` where nobody knows.
    pub footprint_bytes: Option<u64>,
    /// Blocks that were allocated.
    pub blocks: Option<u64>,
    /// The mean life of a block in instructions.
    pub lifetime: Option<u64>,
    /// Of blocks the calls that led to the allocation: numbers of [`Named::frames`], the innermost
    /// first.
    pub stack: Vec<usize>,
}

/// The kinds of objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectKind {
    /// Blocks of one place of allocation.
    Heap,
    /// A variable.
    Global,
    /// What a section of data holds besides variables with names.
    Section,
    /// A variable of a function, or what else frames of the function hold.
    Stack,
    /// Code of one file.
    Code,
    /// What allocating functions keep beside blocks.
    Allocator,
    /// Memory of no object that is known.
    #[default]
    Unknown,
}

impl ObjectKind {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            ObjectKind::Heap => "heap",
            ObjectKind::Global => "global",
            ObjectKind::Section => "section",
            ObjectKind::Stack => "stack",
            ObjectKind::Code => "code",
            ObjectKind::Allocator => "allocator",
            ObjectKind::Unknown => "unknown",
        }
    }
}

/// A frame of a stack: a function, which may be inlined, at a call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The function.
    pub function: String,
    /// The file that holds the code.
    pub library: String,
    /// The source file.
    pub file: Option<String>,
    /// The line there.
    pub line: Option<u32>,
}

impl Frame {
    /// The function, with its place in the source or the name of its file.
    pub fn text(&self) -> String {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => format!("{} ({}:{line})", self.function, base(file)),
            _ => format!("{} [{}]", self.function, base(&self.library)),
        }
    }
}

/// The last part of a path.
pub(crate) fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Finds the names of objects.
struct Naming<'a> {
    known: &'a Known,
    symbols: Symbolizer,
    frames: Vec<Frame>,
    of_calls: HashMap<u32, (usize, usize)>,
}

/// Names the objects of a run, and joins those that have one name.
pub(crate) fn name(
    found: Vec<(ObjectKey, ObjectMisses)>,
    (fields, uses): (Option<Fields>, Option<AllUses>),
    known: &Known,
) -> Named {
    let mut symbols = Symbolizer::new();
    symbols.name_generated(&known.modules);
    let mut naming = Naming { known, symbols, frames: Vec::new(), of_calls: HashMap::new() };
    let types = fields.as_ref().map(Fields::types_of_objects).unwrap_or_default();
    let mut objects: Vec<Object> = Vec::new();
    let mut places: HashMap<(ObjectKind, String, Option<String>, Vec<usize>), usize> = HashMap::new();
    let (uses, visits) = match uses.map(AllUses::finish) {
        Some((uses, visits)) => (Some(uses), visits),
        None => (None, HashMap::new()),
    };
    for (number, (key, misses)) in found.into_iter().enumerate() {
        let own = uses.as_ref().map(|uses| uses.get(number).copied().unwrap_or_default());
        if misses == ObjectMisses::default() && own.unwrap_or_default() == Uses::default() {
            continue;
        }
        let object = Object { of_type: types.get(&key).cloned(), ..naming.object(key) };
        let place = (object.kind, object.name.clone(), object.library.clone(), object.stack.clone());
        let at = *places.entry(place).or_insert(objects.len());
        if at == objects.len() {
            objects.push(object);
        }
        objects[at].misses.add(&misses);
        if let Some(own) = own {
            objects[at].uses.get_or_insert_with(Uses::default).add(&own);
        }
    }
    let types = fields.map(|fields| types_found(fields, visits)).unwrap_or_default();
    let (frames, has_allocator, lost) = (naming.frames, known.has_allocator, known.lost);
    Named { objects, frames, types, has_allocator, lost }
}

/// The types with their sums.
fn types_found(fields: Fields, mut visits: HashMap<u32, Vec<Visits>>) -> Vec<FoundType> {
    let Fields { typing, mut sums, .. } = fields;
    sums.resize(typing.layouts.len(), TypeSums::default());
    let of = |(number, (layout, sums)): (usize, (TypeLayout, TypeSums))| {
        let TypeSums { fields, between, beyond, mut uses } = sums;
        let mut fields: Vec<ObjectMisses> = fields.iter().map(Missed::by_level).collect();
        let (between, beyond) = (between.by_level(), beyond.by_level());
        fields.resize(layout.fields.len(), ObjectMisses::default());
        uses.resize(layout.fields.len(), Uses::default());
        let visits = visits.remove(&(number as u32)).unwrap_or_default();
        FoundType { layout, fields, between, beyond, uses, visits }
    };
    typing.layouts.into_iter().zip(sums).enumerate().map(of).collect()
}

impl Naming<'_> {
    fn object(&mut self, key: ObjectKey) -> Object {
        match key {
            ObjectKey::Blocks(site) => self.blocks(site),
            ObjectKey::Variable(number) => self.variable(number),
            ObjectKey::Call(call) => {
                let known = self.known;
                let call = known.calls.get(call as usize);
                let module = call.and_then(|call| known.call_modules.get(call.module as usize));
                self.frame(module, call.map_or(0, |call| call.address))
            }
            ObjectKey::Running(module, address) => {
                self.frame(self.known.modules.get(module as usize), address)
            }
            ObjectKey::Local(number) => self.local(number),
            ObjectKey::Code(module) => self.code(module),
            ObjectKey::Earlier(earlier) => {
                let (kind, name) = match earlier {
                    Earlier::Heap => (ObjectKind::Heap, "allocated before the measurement"),
                    Earlier::Stack => (ObjectKind::Stack, "entered before the measurement"),
                    Earlier::Mapped => (ObjectKind::Unknown, "mapped before the measurement"),
                };
                Object { kind, name: name.into(), ..Object::default() }
            }
            ObjectKey::Allocator => {
                Object { kind: ObjectKind::Allocator, name: "beside blocks".into(), ..Object::default() }
            }
            ObjectKey::Unknown => Object { name: "no known object".into(), ..Object::default() },
        }
    }

    fn blocks(&mut self, site: u32) -> Object {
        let Some(known) = self.known.sites.get(site as usize) else { return Object::default() };
        let mut stack = Vec::new();
        for &call in &known.stack {
            let (from, to) = self.frames_of(call);
            stack.extend(from..to);
        }
        above_start(&mut stack, &self.frames);
        // Of functions of libraries the one that calls them is named.
        let is_own = |frame: &&usize| {
            let function = self.frames[**frame].function.trim_start_matches('<');
            !LIBRARIES.iter().any(|start| function.starts_with(start))
        };
        let named = stack.iter().find(is_own).or(stack.first());
        let name = named.map_or_else(|| "before the first call".into(), |&frame| self.frames[frame].text());
        Object {
            kind: ObjectKind::Heap,
            name,
            footprint_bytes: Some(known.most_bytes),
            blocks: Some(known.blocks),
            lifetime: Some(known.lifetimes / known.blocks.max(1)),
            stack,
            ..Object::default()
        }
    }

    fn variable(&self, number: u32) -> Object {
        let Variable { path, name, range, kind, .. } = &self.known.variables[number as usize];
        let kind = match kind {
            VariableKind::Named => ObjectKind::Global,
            VariableKind::Section => ObjectKind::Section,
        };
        Object {
            kind,
            name: demangle(name),
            library: Some(path.to_string_lossy().into_owned()),
            footprint_bytes: Some(range.end - range.start),
            ..Object::default()
        }
    }

    fn local(&self, number: u32) -> Object {
        let Local { path, name, size_bytes, .. } = &self.known.locals[number as usize];
        Object {
            kind: ObjectKind::Stack,
            name: name.clone(),
            library: Some(text(path)),
            footprint_bytes: Some(*size_bytes).filter(|&size| size > 0),
            ..Object::default()
        }
    }

    fn frame(&mut self, module: Option<&Module>, address: u64) -> Object {
        let (name, library) = match module {
            Some(module) => {
                let function = self.symbols.function_at(module, address).function;
                let name = demangle(&self.symbols.functions()[function].name);
                (name, Some(module.path.to_string_lossy().into_owned()))
            }
            None => ("no known function".into(), None),
        };
        Object { kind: ObjectKind::Stack, name, library, ..Object::default() }
    }

    fn code(&self, module: u32) -> Object {
        let library = self.known.modules.get(module as usize).map(|module| text(&module.path));
        let name = library.as_deref().map_or("no known file", base).to_owned();
        Object { kind: ObjectKind::Code, name, library, ..Object::default() }
    }

    /// The frames of a call, from the innermost inlined function outwards.
    fn frames_of(&mut self, call: u32) -> (usize, usize) {
        if let Some(known) = self.of_calls.get(&call) {
            return *known;
        }
        let from = self.frames.len();
        let heap::Call { module, address } = self.known.calls[call as usize];
        let module = &self.known.call_modules[module as usize];
        let function = self.symbols.function_at(module, address).function;
        let function = demangle(&self.symbols.functions()[function].name);
        let bare = Frame { function, library: text(&module.path), file: None, line: None };
        match self.symbols.frame(module, address) {
            None => self.frames.push(bare),
            Some(innermost) => {
                let sources = self.symbols.sources();
                for source in sources.chain(innermost) {
                    let inlined = source.inlined.map(|name| demangle(&sources.names()[name as usize]));
                    self.frames.push(Frame {
                        function: inlined.unwrap_or_else(|| bare.function.clone()),
                        file: sources.files().get(source.file as usize).cloned(),
                        line: Some(source.line).filter(|&line| line > 0),
                        ..bare.clone()
                    });
                }
            }
        }
        self.of_calls.insert(call, (from, self.frames.len()));
        (from, self.frames.len())
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// How names of functions begin that stand between a program and its allocator.
const LIBRARIES: &[&str] =
    &["std::", "__gnu_cxx::", "alloc::", "core::", "hashbrown::", "operator new", "__rust", "__rdl", "__rg_"];

/// Functions that only lead to the program's own.
const STARTS: &[&str] =
    &["_start", "__libc_start_main", "__libc_start_call_main", "__libc_start_main_impl", "_dl_start_user"];

/// Takes the frames below `main` off a stack, or those from where the program starts.
fn above_start(stack: &mut Vec<usize>, frames: &[Frame]) {
    let name = |frame: &usize| frames[*frame].function.as_str();
    if let Some(main) = stack.iter().position(|frame| name(frame) == "main") {
        return stack.truncate(main + 1);
    }
    let start = stack.iter().position(|frame| STARTS.contains(&name(frame)));
    stack.truncate(start.map_or(stack.len(), |start| start.max(1)));
}
