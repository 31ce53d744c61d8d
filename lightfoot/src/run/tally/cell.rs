//! Counts at the grain that a report needs: function, source line and opcode of each instruction
//! together.
//!
//! All tables with lines are sums of cells. Cells cost a look-up for each instruction of the
//! profile, so reports without lines are made without them. Each instruction is looked up once,
//! block by block; later counts find its cell by the instruction's number.

use super::counts::Counts;
use instrument::{Block, Profile};
use std::ops::Range;
use symbol::{ByNumber, Symbolizer};

/// The grain of cells, which are kept in addition to the tables by function, library and opcode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grain {
    /// No cells.
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

/// The key of costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cell {
    /// Index into [`Symbolizer::functions`].
    pub function: usize,
    /// Number of a frame in [`Symbolizer::sources`]; `None` if it is unknown, or not part of the
    /// grain.
    pub frame: Option<u32>,
    /// Mnemonic, if it is part of the grain.
    pub opcode: Option<u16>,
}

/// The cells of a tally that is being made.
#[derive(Default)]
pub(super) struct Cells {
    pub(super) grain: Grain,
    numbers: ByNumber<Cell, u32>,
    /// The cell of the last look-up, which is often that of the next one.
    last: Option<(Cell, u32)>,
    pub(super) all: Vec<(Cell, Counts)>,
    /// By index into [`Profile::instructions`]; [`NONE`] before the instruction's block was looked
    /// up.
    pub(super) of_instruction: Vec<u32>,
    frames: Vec<Option<u32>>,
}

/// The number of an instruction without a cell.
pub(super) const NONE: u32 = u32::MAX;

impl Cells {
    pub(super) fn new(grain: Grain, profile: &Profile) -> Cells {
        let instructions = if grain == Grain::None { 0 } else { profile.instructions.len() };
        Cells { grain, of_instruction: vec![NONE; instructions], ..Cells::default() }
    }

    /// Whether the cell of an instruction is known.
    pub(super) fn knows(&self, instruction: usize) -> bool {
        self.of_instruction[instruction] != NONE
    }

    /// Looks up the cells of the `wanted` instructions of a block; `what` returns function
    /// and mnemonic of each.
    pub(super) fn learn(
        &mut self,
        symbols: &mut Symbolizer,
        (profile, block, wanted): (&Profile, &Block, Range<usize>),
        what: impl Fn(&mut Symbolizer, usize) -> (usize, usize),
        empty: &Counts,
    ) {
        let instructions = &profile.instructions[block.first as usize..][wanted.clone()];
        let mut frames = std::mem::take(&mut self.frames);
        frames.clear();
        if self.grain.keeps_lines() {
            let module = &profile.modules[block.module as usize];
            symbols.frames(
                module,
                block.ip,
                instructions.iter().map(|instruction| instruction.offset),
                &mut frames,
            );
        } else {
            frames.resize(instructions.len(), None);
        }
        for (offset, &frame) in wanted.zip(&frames) {
            let (function, mnemonic) = what(symbols, offset);
            let opcode = self.grain.keeps_opcodes().then_some(mnemonic as u16);
            let number = self.number(Cell { function, frame, opcode }, empty);
            self.of_instruction[block.first as usize + offset] = number;
        }
        self.frames = frames;
    }

    fn number(&mut self, cell: Cell, empty: &Counts) -> u32 {
        let number = match self.last {
            Some((last, number)) if last == cell => number,
            _ => *self.numbers.entry(cell).or_insert_with(|| {
                self.all.push((cell, *empty));
                self.all.len() as u32 - 1
            }),
        };
        self.last = Some((cell, number));
        number
    }

    /// Adds `counts` to the cell of an instruction that has been looked up.
    pub(super) fn add(&mut self, instruction: usize, counts: &Counts) {
        self.all[self.of_instruction[instruction] as usize].1.add(counts);
    }
}
