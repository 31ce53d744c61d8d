//! Jumps, calls and returns.
//!
//! A jump ahead is written with room for its displacement and lands later ([`Jump`], or
//! [`ShortJump`] where a byte is enough); a jump back goes to a [`Label`] and takes the shortest
//! form. Jumps that lead out of the code have their displacements patched by the caller that places
//! the code.

use crate::code::Assembler;
use crate::instruction::Instruction;
use crate::operand::{Condition, Memory, Operand};

/// A position in the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label(usize);

impl Label {
    /// The label at that many bytes from the start of the code.
    pub const fn new(position: usize) -> Label {
        Label(position)
    }

    /// How many bytes from the start of the code it lies.
    pub const fn position(self) -> usize {
        self.0
    }
}

/// A jump or call whose target is open, with a displacement of four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Jump {
    displacement: usize,
}

impl Jump {
    /// Where its displacement stands, which counts from four bytes behind that.
    pub const fn displacement(self) -> usize {
        self.displacement
    }
}

/// A jump whose target is open and lies at most 127 bytes ahead.
#[derive(Debug)]
#[must_use]
pub struct ShortJump {
    displacement: usize,
}

impl Assembler {
    /// The position that the next instruction will have.
    #[inline(always)]
    pub fn here(&self) -> Label {
        Label(self.len())
    }

    #[inline(always)]
    fn open(&mut self, opcode: &[u8]) -> Jump {
        let mut instruction = Instruction::new();
        opcode.iter().for_each(|&byte| instruction.byte(byte));
        instruction.dword(0);
        self.append(&instruction);
        Jump { displacement: self.len() - 4 }
    }

    /// `jmp` to an open target.
    #[inline(always)]
    pub fn jump(&mut self) -> Jump {
        self.open(&[0xe9])
    }

    /// `jcc` to an open target.
    ///
    /// ```
    /// use lightfoot_assembler::{Assembler, Condition};
    /// let mut code = Assembler::default();
    /// let over = code.jump_if(Condition::Equal);
    /// code.nop();
    /// code.land(over);
    /// assert_eq!(code.bytes(), [0x0f, 0x84, 1, 0, 0, 0, 0x90]);
    /// ```
    #[inline(always)]
    pub fn jump_if(&mut self, condition: Condition) -> Jump {
        self.open(&[0x0f, 0x80 | condition as u8])
    }

    /// `call` of an open target.
    #[inline(always)]
    pub fn call(&mut self) -> Jump {
        self.open(&[0xe8])
    }

    /// The jump lands at the next instruction.
    #[inline(always)]
    pub fn land(&mut self, jump: Jump) {
        self.land_at(jump, self.here());
    }

    /// The jump lands at `target`.
    #[inline(always)]
    pub fn land_at(&mut self, jump: Jump, target: Label) {
        let at = jump.displacement;
        let distance = (target.0 as i64 - (at as i64 + 4)) as i32;
        self.set_dword(at, distance);
    }

    /// `jmp` with that displacement from the instruction's end.
    #[inline(always)]
    pub fn jump_by(&mut self, displacement: i32) {
        let mut instruction = Instruction::new();
        instruction.byte(0xe9);
        instruction.dword(displacement);
        self.append(&instruction);
    }

    /// `jmp` with a displacement of one byte, to an open target.
    #[inline(always)]
    pub fn short_jump(&mut self) -> ShortJump {
        self.open_short(0xeb)
    }

    /// `jcc` with a displacement of one byte, to an open target.
    #[inline(always)]
    pub fn short_jump_if(&mut self, condition: Condition) -> ShortJump {
        self.open_short(0x70 | condition as u8)
    }

    /// `jrcxz` to an open target: taken where rcx is 0, whatever the flags are.
    #[inline(always)]
    pub fn short_jump_if_rcx_zero(&mut self) -> ShortJump {
        self.open_short(0xe3)
    }

    /// A short jump by the bytes of another one, whose displacement is the last: `jrcxz`, `loop`
    /// and their kin.
    #[inline(always)]
    pub fn short_jump_like(&mut self, jump: &[u8]) -> ShortJump {
        self.extend(jump);
        ShortJump { displacement: self.len() - 1 }
    }

    #[inline(always)]
    fn open_short(&mut self, opcode: u8) -> ShortJump {
        self.extend(&[opcode, 0]);
        ShortJump { displacement: self.len() - 1 }
    }

    /// The short jump lands at the next instruction.
    ///
    /// # Panics
    /// Where that is further than a byte counts.
    #[inline(always)]
    pub fn land_short(&mut self, jump: ShortJump) {
        let at = jump.displacement;
        let distance = i8::try_from(self.len() - at - 1).expect("a short jump reaches 127 bytes");
        self.bytes[at] = distance as u8;
    }

    /// `jmp` back to `target`, as short as can be.
    #[inline(always)]
    pub fn jump_back(&mut self, target: Label) {
        match short_distance(target, self.len()) {
            Some(distance) => self.extend(&[0xeb, distance]),
            None => {
                let jump = self.jump();
                self.land_at(jump, target);
            }
        }
    }

    /// `jcc` back to `target`, as short as can be.
    #[inline(always)]
    pub fn jump_back_if(&mut self, condition: Condition, target: Label) {
        match short_distance(target, self.len()) {
            Some(distance) => self.extend(&[0x70 | condition as u8, distance]),
            None => {
                let jump = self.jump_if(condition);
                self.land_at(jump, target);
            }
        }
    }

    /// `jmp` to the address that a register or memory holds.
    #[inline(always)]
    pub fn jump_through(&mut self, target: impl Into<Operand>) {
        self.through(4, target.into());
    }

    /// `call` of the address that a register or memory holds.
    #[inline(always)]
    pub fn call_through(&mut self, target: impl Into<Operand>) {
        self.through(2, target.into());
    }

    #[inline(always)]
    fn through(&mut self, kind: u8, target: Operand) {
        let mut instruction = Instruction::new();
        let memory = match target {
            Operand::Register(register) => {
                if register.number() > 7 {
                    instruction.byte(0x41);
                }
                instruction.byte(0xff);
                instruction.byte(0xc0 | kind << 3 | (register.number() & 7));
                return self.append(&instruction);
            }
            Operand::Memory(memory) => memory,
        };
        memory.prefixes(&mut instruction);
        let rex = memory.index_high() << 1 | memory.base_high();
        if rex != 0 {
            instruction.byte(0x40 | rex);
        }
        instruction.byte(0xff);
        memory.encode(&mut instruction, kind, 1);
        self.append(&instruction);
    }

    /// `jmp [rip]`, with the target's address in the eight bytes behind it. Gives their position.
    #[inline(always)]
    pub fn jump_to_address(&mut self, address: u64) -> usize {
        self.jump_through(Memory::rip(0));
        self.extend(&address.to_le_bytes());
        self.len() - 8
    }

    /// `ret`
    #[inline(always)]
    pub fn ret(&mut self) {
        self.extend(&[0xc3]);
    }
}

/// The displacement of a jump of two bytes at `from` to `target`, if a byte is enough.
#[inline(always)]
fn short_distance(target: Label, from: usize) -> Option<u8> {
    let distance = target.0 as i64 - (from as i64 + 2);
    i8::try_from(distance).ok().map(|distance| distance as u8)
}
