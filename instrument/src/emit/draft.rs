//! A fragment in the making: its code, what scratch it holds, and which places are to be connected.
//!
//! Scratch registers are a small state machine: a register is *spilled* while its program value waits in its context slot; it comes
//! back when an instruction needs it, at the fragment's end and in side exits. Status flags likewise. A register that is dead is
//! borrowed without saving. The state at every instruction is noted, so that a stop in the middle can be made clean.

use super::looping::{Inner, Turn};
use crate::assemble::{reg, Assembler};
use crate::cache::Exit;
use crate::layout::context;

/// Bit in a spill mask that stands for the status flags (rsp is never spilled).
pub(crate) const FLAGS_BIT: u16 = 1 << reg::RSP;

/// Which half of the code cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Fragments.
    Hot,
    /// Out-of-line code.
    Cold,
}

/// Where a displacement shall lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    /// A position in the hot part of this draft.
    Hot(usize),
    /// A position in the cold part of this draft.
    Cold(usize),
    /// An address in the target.
    Address(u64),
}

/// The state of a fragment at one instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    /// Byte in the zone where the instruction's translation begins.
    pub(crate) at: u32,
    /// Its block.
    pub(crate) block: u32,
    /// Its index in the block.
    pub(crate) index: u8,
    /// Whether the fragment's last counter was incremented before `at`.
    pub(crate) counted: bool,
    /// Whether it was before the program's own instruction executes.
    pub(crate) counted_executing: bool,
    /// Spilled at `at`.
    pub(crate) spilled: u16,
    /// Spilled where the program's own instruction executes.
    pub(crate) executing: u16,
    /// Up to the next bound nothing happens that could not happen again: a stop there counts as one at `at`.
    pub(crate) retreat: bool,
    /// Records behind the ring's position in memory at `at`, and where the program's own instruction executes.
    pub(crate) pending: u8,
    pub(crate) pending_executing: u8,
}

/// Code of one fragment before it has a place.
#[derive(Default)]
pub(crate) struct Draft {
    pub(crate) hot: Assembler,
    pub(crate) cold: Assembler,
    /// Final address of the first hot byte.
    pub(crate) hot_base: u64,
    /// Final address of the first cold byte.
    pub(crate) cold_base: u64,
    pub(crate) links: Vec<(Part, usize, Goal)>,
    /// Linked side exits whose stubs follow the fragment: displacement, exit, target fragment.
    pub(crate) tails: Vec<(usize, Exit, usize)>,
    pub(crate) bounds: Vec<Bound>,
    /// Registers (and flags) whose program value is in the context.
    pub(crate) spilled: u16,
    /// The fragment's last counter was incremented.
    pub(crate) counted: bool,
    /// Dead registers at the current instruction.
    pub(crate) dead: u16,
    /// Registers that the rest of the block touches.
    pub(crate) touched: u16,
    /// Status flags are dead at the current instruction.
    pub(crate) flags_dead: bool,
    /// The register that holds the ring's position, while one does.
    pub(crate) held: Option<u8>,
    /// Records behind the position that it holds.
    pub(crate) pending: u8,
    /// The ring's limit is still to be checked.
    pub(crate) limit_due: bool,
    /// The loop that the fragment is, and its ways back: while they are to be emitted, and then (displacement, stub).
    pub(crate) inner: Option<Inner>,
    pub(crate) turns: Vec<Turn>,
    pub(crate) edges: Vec<(usize, usize)>,
}

impl Draft {
    /// Empties the draft for a fragment that will lie there; its buffers are kept.
    pub(crate) fn begin(&mut self, hot_base: u64, cold_base: u64) {
        self.hot.bytes.clear();
        self.cold.bytes.clear();
        self.links.clear();
        self.tails.clear();
        self.bounds.clear();
        self.inner = None;
        self.turns.clear();
        self.edges.clear();
        (self.hot_base, self.cold_base) = (hot_base, cold_base);
        (self.spilled, self.counted) = (0, false);
        (self.held, self.pending, self.limit_due) = (None, 0, false);
    }

    /// Notes that the displacement at `at` of `part` leads to `goal`.
    pub(crate) fn link(&mut self, part: Part, at: usize, goal: Goal) {
        self.links.push((part, at, goal));
    }

    /// Address of a goal.
    pub(crate) fn resolve(&self, goal: Goal) -> u64 {
        match goal {
            Goal::Hot(at) => self.hot_base + at as u64,
            Goal::Cold(at) => self.cold_base + at as u64,
            Goal::Address(address) => address,
        }
    }

    /// Fills all displacements in. Every goal of a draft lies within 2 GB by construction of the zones.
    pub(crate) fn connect(&mut self) {
        for n in 0..self.links.len() {
            let (part, at, goal) = self.links[n];
            let from = match part {
                Part::Hot => self.hot_base,
                Part::Cold => self.cold_base,
            } + at as u64
                + 4;
            let displacement = self.resolve(goal).wrapping_sub(from) as i64;
            let value = i32::try_from(displacement).expect("a zone is smaller than 2 GB");
            let code = if part == Part::Hot { &mut self.hot } else { &mut self.cold };
            code.bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
    }

    /// A register to use freely until the current program instruction; never one of `avoid`.
    pub(crate) fn scratch(&mut self, avoid: u16) -> u8 {
        let avoid = avoid | 1 << reg::RSP | self.held.map_or(0, |r| 1 << r);
        if let Some(r) = pick(self.dead & !avoid & !FLAGS_BIT) {
            return r;
        }
        if let Some(r) = pick(self.spilled & !avoid & !FLAGS_BIT) {
            return r;
        }
        let r = pick(!self.touched & !avoid & !1).or_else(|| pick(!avoid & !1)).expect("sixteen registers");
        self.hot.store(r, slot(r));
        self.spilled |= 1 << r;
        r
    }

    /// Gives the program its values back in `mask` (registers and flags) before it needs them.
    pub(crate) fn restore(&mut self, mask: u16) {
        if self.spilled == 0 && self.held.is_none() {
            return;
        }
        if self.held.is_some_and(|r| mask >> r & 1 != 0) {
            self.let_go();
        }
        if mask & self.spilled & FLAGS_BIT != 0 {
            self.restore_flags();
        }
        let registers = self.spilled & mask & !FLAGS_BIT;
        restore_registers(&mut self.hot, registers);
        self.spilled &= !registers;
    }

    /// Makes the status flags free for use at the current instruction. They are saved by way of rax, which is a scratch register from
    /// then on: what is asked of it comes back when it is asked for.
    pub(crate) fn free_flags(&mut self) {
        if self.flags_dead || self.spilled & FLAGS_BIT != 0 {
            return;
        }
        if (self.spilled | self.dead) & 1 << reg::RAX == 0 {
            self.hot.store(reg::RAX, slot(reg::RAX));
            self.spilled |= 1 << reg::RAX;
        }
        self.hot.raw(&[0x9f, 0x0f, 0x90, 0xc0]); // lahf; seto al
        self.hot.store(reg::RAX, context::FLAGS);
        self.spilled |= FLAGS_BIT;
    }

    fn restore_flags(&mut self) {
        // rax may be live here even where it was dead before: save it unless its program value is in its slot.
        let rax_free = self.spilled & 1 << reg::RAX != 0;
        if !rax_free {
            self.hot.store(reg::RAX, context::FLAGS_RAX);
        }
        self.hot.load(reg::RAX, context::FLAGS);
        self.hot.raw(&[0x04, 0x7f, 0x9e]); // add al, 7fh; sahf
        if !rax_free {
            self.hot.load(reg::RAX, context::FLAGS_RAX);
        }
        self.spilled &= !FLAGS_BIT;
    }

    /// Whether status flags may be changed here without saving.
    pub(crate) fn flags_free(&self) -> bool {
        self.flags_dead || self.spilled & FLAGS_BIT != 0
    }
}

/// The lowest register of a mask.
pub(crate) fn pick(mask: u16) -> Option<u8> {
    (mask != 0).then(|| mask.trailing_zeros() as u8)
}

/// Context offset of a register's slot.
pub(crate) fn slot(r: u8) -> u32 {
    context::SPILL + 8 * u32::from(r)
}

/// Loads the registers of `mask` from their slots.
pub(crate) fn restore_registers(code: &mut Assembler, mut mask: u16) {
    while let Some(r) = pick(mask) {
        code.load(r, slot(r));
        mask &= mask - 1;
    }
}
