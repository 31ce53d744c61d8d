//! Registers for values while code is emitted: a value keeps its register until something that is
//! needed sooner wants it.
//!
//! **Problem.** A program is thousands of operations on values that each fill a whole vector
//! register, and there are 29 of those (13 with AVX2 and SSE2). Translation must cost nanoseconds
//! an operation, so there is one pass over the program, no graph and no second look.
//!
//! **Idea.** Programs are straight lines of operations whose uses are all known beforehand
//! (`liveness`). So the choice of what has to leave a register can be the best one: the value whose
//! next use is farthest (Belady). What leaves is stored in a frame slot of its own, once, because a
//! value never changes; loads of basis streams cost nothing extra, as they are in memory anyway.
//!
//! **Where a value is.** Each value has a register, a place in memory ([`Backing`]), both, or
//! neither once it is dead:
//!
//! ```text
//! defined:   register 5, no memory          hold
//! spilled:   no register, frame slot 2      take, by another value that wants the register
//! used:      register 9, frame slot 2       register: loaded again, the slot stays good
//! dead:      nothing; the slot stays its own
//! ```
//!
//! **Invariants.**
//!
//! 1. `held[r] == Some(v)` exactly if `locations[v].register == Some(r)`;
//! 2. a live value that is in no register is in memory;
//! 3. registers that are locked hold operands of the instruction at hand and are not given away;
//! 4. where control flow joins, both ways bring the same values in the same registers: the state at
//!    the fork, values that have died since left out.
//!
//! **Control flow.** A body that may be skipped begins with the state at the fork and ends with it
//! again ([`RegisterAllocator::join`]), so code behind it need not know which way was taken. What
//! lost its register within the body was stored there, while the way around it has it in the
//! register still: the join loads it back.
//!
//! Source: L. A. Belady, A study of replacement algorithms for a virtual-storage computer, 1966.

use super::encode::{Address, Code, Gpr, Operand, Target, R8, RDI, RDX};
use super::registers::Registers;
use super::transpose::stream_address;
use crate::kernel::liveness::Uses;
use crate::program::Value;
use crate::transpose::{CHUNK_WORDS, HISTORY_WORDS};

/// Most registers that hold values.
const MOST: usize = 29;
/// From one basis stream to the next.
pub(super) const STREAM_BYTES: i32 = ((HISTORY_WORDS + CHUNK_WORDS) * 8) as i32;

/// A basis stream's place in the current block: in what the transposition filled, or in the frame.
pub(super) fn basis_address(target: Target, bit: u8) -> Address {
    if target == Target::Avx512 {
        return stream_address(bit);
    }
    Address { base: RDI, bytes: i32::from(bit) * STREAM_BYTES }
}

/// The place in memory from which a value can be read.
#[derive(Clone, Copy, Default, PartialEq)]
enum Backing {
    /// Not in memory.
    #[default]
    None,
    Basis(u8),
    Frame(u32),
    /// No memory needed: all ones.
    Ones,
    /// The last bytes of rows: the output's place, until the output is written.
    RowEnds,
}

/// The register and the memory of a value.
#[derive(Clone, Copy, Default)]
struct Location {
    register: Option<u8>,
    memory: Backing,
}

/// The locations of all values at a point of the code.
#[derive(Clone)]
pub(super) struct AllocationState {
    locations: Vec<Location>,
    held: [Option<Value>; MOST],
}

pub(super) struct RegisterAllocator<'p> {
    uses: &'p Uses,
    target: Target,
    pub(super) registers: Registers,
    state: AllocationState,
    locked: u32,
    frame_of: Vec<Option<u32>>,
    frames: u32,
    /// Number of the instruction being translated.
    pub(super) at: u32,
}

const FRAME: Gpr = R8;

/// The output of this block.
const OUTPUT: Address = Address { base: RDX, bytes: 0 };

impl<'p> RegisterAllocator<'p> {
    /// `frames` slots are in use already.
    pub(super) fn new(uses: &'p Uses, target: Target, values: usize, frames: u32) -> RegisterAllocator<'p> {
        let state = AllocationState { locations: vec![Location::default(); values], held: [None; MOST] };
        let registers = Registers::of(target);
        RegisterAllocator {
            uses,
            target,
            registers,
            state,
            locked: 0,
            frame_of: vec![None; values],
            frames,
            at: 0,
        }
    }

    pub(super) fn frames(&self) -> u32 {
        self.frames
    }

    pub(super) fn is_dead(&self, value: Value) -> bool {
        self.uses.last(value) <= self.at
    }

    pub(super) fn is_unused(&self, value: Value) -> bool {
        self.uses.last(value) == 0
    }

    pub(super) fn set_basis(&mut self, value: Value, bit: u8) {
        self.state.locations[value.0 as usize].memory = Backing::Basis(bit);
    }

    pub(super) fn set_row_ends(&mut self, value: Value) {
        self.state.locations[value.0 as usize].memory = Backing::RowEnds;
    }

    pub(super) fn set_ones(&mut self, value: Value) {
        self.state.locations[value.0 as usize].memory = Backing::Ones;
    }

    fn frame(&mut self, value: Value) -> u32 {
        let frames = &mut self.frames;
        *self.frame_of[value.0 as usize].get_or_insert_with(|| {
            *frames += 1;
            *frames - 1
        })
    }

    /// A slot of the frame that holds no value.
    pub(super) fn slot(&mut self) -> Address {
        self.frames += 1;
        frame_address(self.frames - 1)
    }

    /// The value lives in its frame slot from now on; returns the slot's place, to be written.
    pub(super) fn set_frame(&mut self, value: Value) -> Address {
        let frame = self.frame(value);
        self.state.locations[value.0 as usize] = Location { register: None, memory: Backing::Frame(frame) };
        frame_address(frame)
    }

    /// Any operand: a register if it is in one.
    pub(super) fn operand(&mut self, value: Value) -> Operand {
        let location = self.state.locations[value.0 as usize];
        // A register that an operand is in must not be given to another operand of this
        // instruction.
        if let Some(register) = location.register {
            self.locked |= 1 << register;
            return Operand::Register(register);
        }
        match location.memory {
            Backing::Ones => Operand::Register(self.registers.ones),
            Backing::Basis(bit) => Operand::Memory(basis_address(self.target, bit)),
            Backing::Frame(frame) => Operand::Memory(frame_address(frame)),
            Backing::RowEnds => Operand::Memory(OUTPUT),
            Backing::None => unreachable!("{value} is nowhere"),
        }
    }

    /// The operand in a register, loaded if need be. It stays until [`RegisterAllocator::finish`].
    pub(super) fn register(&mut self, code: &mut Code, value: Value) -> u8 {
        match self.operand(value) {
            Operand::Register(register) => register,
            memory => {
                // The place in memory stays good: a value that is spilled again is not stored
                // again.
                let register = self.take(code);
                code.load(register, memory);
                self.state.held[register as usize] = Some(value);
                self.state.locations[value.0 as usize].register = Some(register);
                register
            }
        }
    }

    /// Whether the value is in a register and not read after this instruction.
    pub(super) fn is_last_use_in_register(&self, value: Value) -> bool {
        self.is_dead(value) && self.state.locations[value.0 as usize].register.is_some()
    }

    /// A register that holds nothing, locked.
    fn take(&mut self, code: &mut Code) -> u8 {
        // A register that is free costs nothing. Else the value that is needed latest gives its
        // own: every other choice would bring the next reload sooner.
        let is_locked = |register: u8| self.locked >> register & 1 == 1;
        let free = (0..self.registers.values)
            .find(|&register| self.state.held[register as usize].is_none() && !is_locked(register));
        let register = free.unwrap_or_else(|| {
            let next = |register: &u8| {
                let value = self.state.held[*register as usize].expect("no register is free");
                self.uses.next(value, self.at).unwrap_or(u32::MAX)
            };
            (0..self.registers.values)
                .filter(|&register| !is_locked(register))
                .max_by_key(next)
                .expect("few are locked")
        });
        // The value that gives its register up is stored, unless it is in memory already.
        if let Some(value) = self.state.held[register as usize].take() {
            self.store(code, value, register);
            self.state.locations[value.0 as usize].register = None;
        }
        self.locked |= 1 << register;
        register
    }

    fn store(&mut self, code: &mut Code, value: Value, register: u8) {
        // A value never changes, so one store in its life is enough; a basis stream and the
        // constant of all ones need not even that.
        if self.state.locations[value.0 as usize].memory == Backing::None {
            let frame = self.frame(value);
            code.store(frame_address(frame), register);
            self.state.locations[value.0 as usize].memory = Backing::Frame(frame);
        }
    }

    /// A register for the result of the current instruction.
    pub(super) fn result(&mut self, code: &mut Code, value: Value) -> u8 {
        let register = self.take(code);
        self.hold(register, value);
        register
    }

    /// The result takes over the register of an operand that dies here.
    pub(super) fn take_over(&mut self, from: Value, value: Value) -> u8 {
        // The operand dies here, so it needs no store and no place any more.
        let register = self.state.locations[from.0 as usize].register.take().expect("it is in a register");
        self.hold(register, value);
        register
    }

    /// The value is in a register, and nowhere else.
    pub(super) fn hold(&mut self, register: u8, value: Value) {
        self.state.held[register as usize] = Some(value);
        self.state.locations[value.0 as usize] = Location { register: Some(register), memory: Backing::None };
    }

    /// Unlocks the operands of the instruction that was translated;
    /// [`RegisterAllocator::release`] frees the registers of those that died.
    pub(super) fn finish(&mut self) {
        self.locked = 0;
    }

    pub(super) fn release(&mut self, value: Value) {
        // A live value keeps its register until another one takes it.
        if self.is_dead(value) {
            if let Some(register) = self.state.locations[value.0 as usize].register.take() {
                self.state.held[register as usize] = None;
            }
        }
    }

    pub(super) fn fork(&self) -> AllocationState {
        self.state.clone()
    }

    /// Brings the registers back to what they were at the fork, values that are dead by now left
    /// out.
    pub(super) fn join(&mut self, code: &mut Code, fork: &AllocationState) {
        for register in 0..self.registers.values {
            // A register that holds another value now may be overwritten: behind the join the
            // fork's state counts alone.
            let Some(value) = fork.held[register as usize] else { continue };
            if self.state.held[register as usize] == Some(value) || self.is_dead(value) {
                continue;
            }
            // The value lost its register since the fork, and was stored when it did. The way
            // around the body has it in the register: so must this one.
            let place = match self.state.locations[value.0 as usize].memory {
                Backing::Basis(bit) => basis_address(self.target, bit),
                Backing::Frame(frame) => frame_address(frame),
                Backing::RowEnds => OUTPUT,
                Backing::None | Backing::Ones => unreachable!("{value} was lost"),
            };
            code.load(register, Operand::Memory(place));
        }
        // From here on the state is that of the fork, without what has died since: on both ways
        // such a register holds something that is not read again.
        let dead: Vec<usize> = (0..MOST)
            .filter(|&register| fork.held[register].is_some_and(|value| self.is_dead(value)))
            .collect();
        self.state = fork.clone();
        for register in dead {
            if let Some(value) = self.state.held[register].take() {
                self.state.locations[value.0 as usize].register = None;
            }
        }
    }
}

fn frame_address(frame: u32) -> Address {
    Address { base: FRAME, bytes: frame as i32 * 64 }
}
