//! Registers for values, on the way: each block of a program is translated forward, and a value keeps its register until something needed sooner wants it.
//!
//! What has to go is the value whose next use is farthest (Belady); it is stored once, in a frame slot of its own. Basis streams are in memory anyway. Where
//! control flow joins, the registers are brought back to what they were at the fork.

use super::encode::{Code, Gpr, Operand, Place, Target, R8, RDI};
use super::transpose::stream_place;
use crate::kernel::liveness::Uses;
use crate::program::Value;
use crate::transpose::{CHUNK_WORDS, HISTORY_WORDS};

/// The registers of a target: those for values come first, then two that are free between operations, then all ones.
#[derive(Clone, Copy)]
pub(super) struct Registers {
    values: u8,
    pub(super) scratch: u8,
    pub(super) scratch_2: u8,
    pub(super) ones: u8,
}

impl Registers {
    pub(super) fn of(target: Target) -> Registers {
        let count = if target == Target::Avx512 { 32 } else { 16 };
        Registers { values: count - 3, scratch: count - 3, scratch_2: count - 2, ones: count - 1 }
    }
}

/// Most registers that hold values.
const MOST: usize = 29;
const STREAM_BYTES: i32 = ((HISTORY_WORDS + CHUNK_WORDS) * 8) as i32;

/// A basis stream's place in the current block: in what the transposition filled, or in the frame.
pub(super) fn basis_place(target: Target, bit: u8) -> Place {
    if target == Target::Avx512 {
        return stream_place(bit);
    }
    Place { base: RDI, bytes: i32::from(bit) * STREAM_BYTES }
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Memory {
    /// Not in memory.
    #[default]
    None,
    Basis(u8),
    Frame(u32),
    /// No memory needed: all ones.
    Ones,
}

#[derive(Clone, Copy, Default)]
struct Location {
    register: Option<u8>,
    memory: Memory,
}

/// Where everything is at some point of the code.
#[derive(Clone)]
pub(super) struct State {
    locations: Vec<Location>,
    held: [Option<Value>; MOST],
}

pub(super) struct Allocator<'p> {
    uses: &'p Uses,
    target: Target,
    pub(super) registers: Registers,
    state: State,
    locked: u32,
    frame_of: Vec<Option<u32>>,
    frames: u32,
    /// Number of the instruction being translated.
    pub(super) at: u32,
}

const FRAME: Gpr = R8;

impl<'p> Allocator<'p> {
    /// `frames` slots are in use already.
    pub(super) fn new(uses: &'p Uses, target: Target, values: usize, frames: u32) -> Allocator<'p> {
        let state = State { locations: vec![Location::default(); values], held: [None; MOST] };
        let registers = Registers::of(target);
        Allocator { uses, target, registers, state, locked: 0, frame_of: vec![None; values], frames, at: 0 }
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
        self.state.locations[value.0 as usize].memory = Memory::Basis(bit);
    }

    pub(super) fn set_ones(&mut self, value: Value) {
        self.state.locations[value.0 as usize].memory = Memory::Ones;
    }

    fn frame(&mut self, value: Value) -> u32 {
        let frames = &mut self.frames;
        *self.frame_of[value.0 as usize].get_or_insert_with(|| {
            *frames += 1;
            *frames - 1
        })
    }

    /// The value lives in its frame slot from now on; returns the slot's place, to be written.
    pub(super) fn set_frame(&mut self, value: Value) -> Place {
        let frame = self.frame(value);
        self.state.locations[value.0 as usize] = Location { register: None, memory: Memory::Frame(frame) };
        frame_place(frame)
    }

    /// Any operand: a register if it is in one.
    pub(super) fn operand(&mut self, value: Value) -> Operand {
        let location = self.state.locations[value.0 as usize];
        if let Some(register) = location.register {
            self.locked |= 1 << register;
            return Operand::Register(register);
        }
        match location.memory {
            Memory::Ones => Operand::Register(self.registers.ones),
            Memory::Basis(bit) => Operand::Memory(basis_place(self.target, bit)),
            Memory::Frame(frame) => Operand::Memory(frame_place(frame)),
            Memory::None => unreachable!("{value} is nowhere"),
        }
    }

    /// The operand in a register, loaded if need be. It stays until [`Allocator::finish`].
    pub(super) fn register(&mut self, code: &mut Code, value: Value) -> u8 {
        match self.operand(value) {
            Operand::Register(register) => register,
            memory => {
                let register = self.take(code);
                code.load(register, memory);
                self.state.held[register as usize] = Some(value);
                self.state.locations[value.0 as usize].register = Some(register);
                register
            }
        }
    }

    /// Whether the value is in a register that nobody needs after this instruction.
    pub(super) fn is_last_use_in_register(&self, value: Value) -> bool {
        self.is_dead(value) && self.state.locations[value.0 as usize].register.is_some()
    }

    /// A register that holds nothing, locked.
    fn take(&mut self, code: &mut Code) -> u8 {
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
        if let Some(value) = self.state.held[register as usize].take() {
            self.store(code, value, register);
            self.state.locations[value.0 as usize].register = None;
        }
        self.locked |= 1 << register;
        register
    }

    fn store(&mut self, code: &mut Code, value: Value, register: u8) {
        if self.state.locations[value.0 as usize].memory == Memory::None {
            let frame = self.frame(value);
            code.store(frame_place(frame), register);
            self.state.locations[value.0 as usize].memory = Memory::Frame(frame);
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
        let register = self.state.locations[from.0 as usize].register.take().expect("it is in a register");
        self.hold(register, value);
        register
    }

    /// The value is in a register, and nowhere else.
    pub(super) fn hold(&mut self, register: u8, value: Value) {
        self.state.held[register as usize] = Some(value);
        self.state.locations[value.0 as usize] = Location { register: Some(register), memory: Memory::None };
    }

    /// Unlocks operands, and frees the registers of those that nobody reads again.
    pub(super) fn finish(&mut self) {
        self.locked = 0;
    }

    pub(super) fn release(&mut self, value: Value) {
        if self.is_dead(value) {
            if let Some(register) = self.state.locations[value.0 as usize].register.take() {
                self.state.held[register as usize] = None;
            }
        }
    }

    pub(super) fn fork(&self) -> State {
        self.state.clone()
    }

    /// Brings the registers back to what they were at the fork, values that are dead by now left out.
    pub(super) fn join(&mut self, code: &mut Code, fork: &State) {
        for register in 0..self.registers.values {
            let Some(value) = fork.held[register as usize] else { continue };
            if self.state.held[register as usize] == Some(value) || self.is_dead(value) {
                continue;
            }
            // What left its register since the fork was stored then.
            let place = match self.state.locations[value.0 as usize].memory {
                Memory::Basis(bit) => basis_place(self.target, bit),
                Memory::Frame(frame) => frame_place(frame),
                Memory::None | Memory::Ones => unreachable!("{value} was lost"),
            };
            code.load(register, Operand::Memory(place));
        }
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

fn frame_place(frame: u32) -> Place {
    Place { base: FRAME, bytes: frame as i32 * 64 }
}
