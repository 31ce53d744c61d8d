//! The part of a report that is about data: misses by object.

mod csv;
mod html;
mod page;
mod picture;
mod text;
mod types;

pub use html::Top;
pub use types::{FieldRow, Hole, TypeRow, UntypedRow};

use crate::run::hierarchy::Hierarchy;
use crate::run::tally::Misses;
use anyhow::Result;
use objects::{Frame, Named, Object, ObjectMisses, Uses};
use present::order::SortRows;
use serde::Serialize;
use simulate::CycleModel;

/// Misses by object.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Objects {
    /// The objects, those with most first-level misses first.
    pub objects: Vec<ObjectRow>,
    /// The frames of their stacks.
    pub frames: Vec<FrameRow>,
    /// With --by type and --by field: the types of objects, those with most misses first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<TypeRow>,
    /// With --by type and --by field: sums of objects whose types are not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub untyped: Vec<UntypedRow>,
    /// The type that a page is wanted of.
    #[serde(skip)]
    page: Option<usize>,
}

/// An object.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ObjectRow {
    /// What it is: heap, global, section, stack, code, allocator or unknown.
    pub kind: &'static str,
    /// Its name: of heap blocks the function that allocates them.
    pub name: String,
    /// The file of a variable, section, function or code.
    pub library: Option<String>,
    /// The type of its elements, if it was asked for and is known.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_name: Option<String>,
    /// What told the type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub told_by: Option<String>,
    /// Its misses.
    #[serde(flatten)]
    pub misses: Misses,
    /// Its accesses, with --accesses.
    #[serde(flatten)]
    pub uses: Option<UsesRow>,
    /// What its misses cost by the machine's declared model, in cycles.
    pub miss_cycles: Option<u64>,
    /// Its bytes; of heap blocks the most that lived at a time.
    pub footprint_bytes: Option<u64>,
    /// Blocks that were allocated.
    pub blocks: Option<u64>,
    /// The mean life of a block in instructions.
    pub lifetime: Option<u64>,
    /// The calls that led to the allocation: numbers of frames, the innermost first.
    pub stack: Vec<usize>,
}

/// Accesses.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct UsesRow {
    /// Loads.
    pub loads: u64,
    /// Stores.
    pub stores: u64,
    /// Bytes of lines that its first-level misses fetched.
    pub fetched_bytes: u64,
    /// Bytes of these lines that were touched before they were missed again.
    pub used_bytes: u64,
}

impl UsesRow {
    fn of(uses: &Uses) -> UsesRow {
        let Uses { loads, stores, fetched_bytes, used_bytes } = *uses;
        UsesRow { loads, stores, fetched_bytes, used_bytes }
    }

    /// Loads and stores.
    fn accesses(&self) -> u64 {
        self.loads + self.stores
    }

    /// The share of fetched bytes that was used, in percent; `None` if nothing was fetched.
    fn used_percent(&self) -> Option<u64> {
        (self.used_bytes * 100 + self.fetched_bytes / 2).checked_div(self.fetched_bytes)
    }
}

/// A frame of a stack.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FrameRow {
    /// The function; one that is inlined has a frame of its own.
    pub function: String,
    /// The file that holds the code.
    pub library: String,
    /// The source file, if debug information has it.
    pub file: Option<String>,
    /// The line there.
    pub line: Option<u32>,
}

impl FrameRow {
    fn of(frame: &Frame) -> FrameRow {
        let Frame { function, library, file, line } = frame.clone();
        FrameRow { function, library, file, line }
    }

    /// The function, with its place in the source or the name of its file.
    fn text(&self) -> String {
        let base = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
        match (&self.file, self.line) {
            (Some(file), Some(line)) => format!("{} ({}:{line})", self.function, base(file)),
            _ => format!("{} [{}]", self.function, base(&self.library)),
        }
    }
}

impl ObjectRow {
    fn of(object: &Object, named: &Named, hierarchy: &Hierarchy, model: Option<&CycleModel>) -> ObjectRow {
        let Object { kind, name, library, of_type, misses, uses, footprint_bytes, blocks, lifetime, stack } =
            object.clone();
        ObjectRow {
            type_name: of_type.as_ref().map(|of| named.types[of.0 as usize].layout.name.clone()),
            told_by: of_type.map(|of| of.1),
            kind: kind.name(),
            name,
            library,
            misses: hierarchy.of_object(&misses),
            uses: uses.as_ref().map(UsesRow::of),
            miss_cycles: model.map(|model| cost(model, &misses)),
            footprint_bytes,
            blocks,
            lifetime,
            stack,
        }
    }

    /// First-level misses.
    fn weight(&self) -> u64 {
        self.misses.l1d() + self.misses.l1i_misses.unwrap_or(0)
    }

    /// Its kind and name.
    fn title(&self) -> String {
        let library = self.library.as_deref().map(|path| path.rsplit('/').next().unwrap_or(path));
        match (self.kind, library) {
            ("code" | "unknown", _) | (_, None) => format!("{} {}", self.kind, self.name),
            (kind, Some(library)) => format!("{kind} {} [{library}]", self.name),
        }
    }
}

/// What misses cost by the declared model.
fn cost(model: &CycleModel, misses: &ObjectMisses) -> u64 {
    model.cycles(0, &misses.totals(), 0).total().round() as u64
}

impl Objects {
    /// The objects of a run on this machine.
    pub fn new(named: &Named, hierarchy: &Hierarchy) -> Objects {
        let model = CycleModel::of(&hierarchy.machine);
        let row = |object: &Object| ObjectRow::of(object, named, hierarchy, model.as_ref());
        let mut objects: Vec<ObjectRow> = named.objects.iter().map(row).collect();
        objects.sort_rows(|a, b| {
            let order = (b.weight(), b.misses.dtlb_misses).cmp(&(a.weight(), a.misses.dtlb_misses));
            order.then_with(|| (a.kind, &a.name, &a.library).cmp(&(b.kind, &b.name, &b.library)))
        });
        let frames = named.frames.iter().map(FrameRow::of).collect();
        Objects { objects, frames, ..Objects::default() }
    }

    /// Adds the types of the objects.
    #[must_use]
    pub fn with_types(self, named: &Named, hierarchy: &Hierarchy) -> Objects {
        let model = CycleModel::of(&hierarchy.machine);
        let types = types::types(named, hierarchy, model.as_ref());
        Objects { types, untyped: types::untyped(named, hierarchy), ..self }
    }

    /// The type with this name alone.
    ///
    /// # Errors
    /// If no object has it.
    pub fn of_type(mut self, name: &str) -> Result<Objects> {
        let known: Vec<&str> = self.types.iter().take(5).map(|row| row.name.as_str()).collect();
        let known = if known.is_empty() { "no type".to_owned() } else { known.join(", ") };
        let Some(at) = self.types.iter().position(|row| row.name == name) else {
            anyhow::bail!("no object that missed has type {name}: debug information names {known}");
        };
        let mut row = self.types.swap_remove(at);
        row.weigh();
        self.page = Some(0);
        self.types = vec![row];
        Ok(self)
    }

    /// The objects with the first `rows` of each table.
    pub(super) fn with_at_most(&self, rows: usize) -> Objects {
        let mut cut = self.clone();
        cut.objects.truncate(rows);
        cut.types.truncate(rows);
        cut
    }
}
