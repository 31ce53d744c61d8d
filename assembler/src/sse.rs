//! SSE2 in its first encoding: vectors of 128 bits on every x86-64 processor, without VEX.
//!
//! **Problem.** What AVX writes as `to ← a what b` has two operands here: the first is also the
//! result. Operands in memory have to be aligned to 16 bytes, those of moves aside.
//!
//! **How.** Mandatory prefix and opcode are those of the VEX form, so the constants of
//! [`crate::vector`] name the instructions; those of the table behind one byte 0x0f have this form
//! too. Registers are 0 to 15. Source: Intel manual, volume 2, chapter 2, and the pages of the
//! instructions.

use crate::code::Assembler;
use crate::instruction::Instruction;
use crate::operand::{Gpr, Memory, Vector};
use crate::vector::{modrm, of, VectorInstruction, VectorOperand};

const MOVDQA_LOAD: VectorInstruction = of(1, 1, 0x6f);
const MOVDQU_LOAD: VectorInstruction = of(2, 1, 0x6f);
const MOVDQU_STORE: VectorInstruction = of(2, 1, 0x7f);
const MOVQ_LOAD: VectorInstruction = of(2, 1, 0x7e);
const SHIFT_WORDS: VectorInstruction = of(1, 1, 0x73);
const PMOVMSKB: VectorInstruction = of(1, 1, 0xd7);

/// How many bits a general register takes part with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Half,
    Whole,
}

/// An instruction without its immediate.
#[inline(always)]
fn legacy(what: VectorInstruction, part: Part, reg: u8, operand: VectorOperand) -> Instruction {
    debug_assert!(what.map == 1, "SSE2 is the table behind 0x0f");
    debug_assert!(reg < 16, "registers are 0 to 15");
    let mut instruction = Instruction::new();
    let (x, b) = match operand {
        VectorOperand::Register(register) => {
            debug_assert!(register.number() < 16, "registers are 0 to 15");
            (0, register.number() >> 3)
        }
        VectorOperand::Memory(memory) => {
            memory.prefixes(&mut instruction);
            (memory.index_high(), memory.base_high())
        }
    };
    // The mandatory prefix stands in front of REX, by its number in VEX.
    match what.prefix {
        0 => {}
        1 => instruction.byte(0x66),
        2 => instruction.byte(0xf3),
        _ => instruction.byte(0xf2),
    }
    let rex = u8::from(part == Part::Whole) << 3 | (reg >> 3) << 2 | x << 1 | b;
    if rex != 0 {
        instruction.byte(0x40 | rex);
    }
    instruction.byte(0x0f);
    instruction.byte(what.opcode);
    modrm(&mut instruction, reg, operand, 1);
    instruction
}

impl Assembler {
    /// `to ← to what from`; memory has to be aligned to 16 bytes.
    ///
    /// ```
    /// use lightfoot_assembler::vector::VPXORQ;
    /// use lightfoot_assembler::{Assembler, Vector};
    /// let mut code = Assembler::default();
    /// let zero = Vector::numbered(0);
    /// code.sse(VPXORQ, zero, zero);
    /// assert_eq!(code.bytes(), [0x66, 0x0f, 0xef, 0xc0]);
    /// ```
    #[inline(always)]
    pub fn sse(&mut self, what: VectorInstruction, to: Vector, from: impl Into<VectorOperand>) {
        self.append(&legacy(what, Part::Half, to.number(), from.into()));
    }

    /// `movdqa` of a register, `movdqu` of memory: loads or copies a whole vector.
    #[inline(always)]
    pub fn sse_load(&mut self, to: Vector, from: impl Into<VectorOperand>) {
        let from = from.into();
        let what = match from {
            VectorOperand::Register(_) => MOVDQA_LOAD,
            VectorOperand::Memory(_) => MOVDQU_LOAD,
        };
        self.append(&legacy(what, Part::Half, to.number(), from));
    }

    /// `movdqu`: stores a whole vector.
    #[inline(always)]
    pub fn sse_store(&mut self, to: Memory, from: Vector) {
        self.append(&legacy(MOVDQU_STORE, Part::Half, from.number(), to.into()));
    }

    /// `movq`: the first word from memory, zeros behind it.
    #[inline(always)]
    pub fn sse_load_word(&mut self, to: Vector, from: Memory) {
        self.append(&legacy(MOVQ_LOAD, Part::Half, to.number(), from.into()));
    }

    /// `psllq`: words to the left.
    #[inline(always)]
    pub fn sse_shift_words_left(&mut self, words: Vector, by: u8) {
        self.sse_shift(6, words, by);
    }

    /// `psrlq`: words to the right.
    #[inline(always)]
    pub fn sse_shift_words_right(&mut self, words: Vector, by: u8) {
        self.sse_shift(2, words, by);
    }

    #[inline(always)]
    fn sse_shift(&mut self, way: u8, words: Vector, by: u8) {
        let mut instruction = legacy(SHIFT_WORDS, Part::Half, way, words.into());
        instruction.byte(by);
        self.append(&instruction);
    }

    /// `pmovmskb`: the sign of each byte.
    #[inline(always)]
    pub fn sse_byte_signs(&mut self, to: Gpr, from: Vector) {
        self.append(&legacy(PMOVMSKB, Part::Half, to.number(), from.into()));
    }
}
