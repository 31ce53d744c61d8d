//! Counts at the grain that a report asks for: function, source line and opcode of each instruction together.
//!
//! Cells are what every table with lines is added up from. They cost a look-up for each instruction of the profile, so that reports
//! without lines are made without them.

use super::Counts;
use crate::symbol::{ByNumber, Symbolizer};
use instrument::{Module, Profile};

/// How finely costs are kept beside the standing tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grain {
    /// Not at all.
    #[default]
    None,
    /// By function and source line.
    Lines,
    /// By function and opcode.
    Opcodes,
    /// By function, source line and opcode.
    LinesAndOpcodes,
}

impl Grain {
    fn keeps_lines(self) -> bool {
        matches!(self, Grain::Lines | Grain::LinesAndOpcodes)
    }

    fn keeps_opcodes(self) -> bool {
        matches!(self, Grain::Opcodes | Grain::LinesAndOpcodes)
    }
}

/// Where costs are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cell {
    /// Index into [`Symbolizer::functions`].
    pub function: usize,
    /// Number of a place in [`Symbolizer::sources`]; `None` where it is not kept or not known.
    pub spot: Option<u32>,
    /// Mnemonic, where it is kept.
    pub opcode: Option<u16>,
}

/// Cells while they are filled.
#[derive(Default)]
pub(super) struct Cells {
    pub(super) grain: Grain,
    numbers: ByNumber<Cell, usize>,
    /// The cell of the last instruction, which is often that of the next.
    last: Option<(Cell, usize)>,
    pub(super) all: Vec<(Cell, Counts)>,
}

impl Cells {
    pub(super) fn new(grain: Grain) -> Cells {
        Cells { grain, ..Cells::default() }
    }

    /// Adds `counts` to the cell of the instruction at `ip`.
    pub(super) fn add(
        &mut self,
        symbols: &mut Symbolizer,
        module: &Module,
        (function, ip, mnemonic): (usize, u64, usize),
        counts: &Counts,
        empty: &Counts,
    ) {
        let spot = if self.grain.keeps_lines() { symbols.spot(module, ip) } else { None };
        let opcode = self.grain.keeps_opcodes().then_some(mnemonic as u16);
        let cell = Cell { function, spot, opcode };
        let number = match self.last {
            Some((last, number)) if last == cell => number,
            _ => *self.numbers.entry(cell).or_insert_with(|| {
                self.all.push((cell, *empty));
                self.all.len() - 1
            }),
        };
        self.last = Some((cell, number));
        self.all[number].1.add(counts);
    }
}

/// The module that a block lies in.
pub(super) fn module(profile: &Profile, block: usize) -> &Module {
    &profile.modules[profile.blocks[block].module as usize]
}
