//! VEX and EVEX instructions: vectors of 256 and 512 bits, masks, and BMI2's flag-free integers.
//!
//! An instruction is a constant ([`VPANDQ`] …) with what the prefix has to say of it. Those that
//! both forms have are encoded in either: AVX-512 on zmm registers, AVX2 on ymm registers, which
//! differ by the prefix alone; some have SSE2's form too (`sse`). Source: Intel manual, volume 2,
//! sections 2.3 and 2.7.

use crate::code::Assembler;
use crate::instruction::Instruction;
use crate::operand::{Gpr, Mask, Memory, Size, Vector};

/// How wide vectors are, and by which prefix they are encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Width {
    /// 128 bits, VEX, registers 0 to 15.
    Bits128,
    /// 256 bits, VEX, registers 0 to 15.
    Bits256,
    /// 512 bits, EVEX, registers 0 to 31.
    #[default]
    Bits512,
}

/// An instruction by mandatory prefix, opcode map, opcode and EVEX.W.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VectorInstruction {
    pub(crate) prefix: u8,
    pub(crate) map: u8,
    pub(crate) opcode: u8,
    wide: u8,
    /// VEX.W, which some instructions do not share with EVEX.W.
    vex_wide: u8,
}

pub(crate) const fn of(prefix: u8, map: u8, opcode: u8) -> VectorInstruction {
    VectorInstruction { prefix, map, opcode, wide: 1, vex_wide: 0 }
}

const fn narrow(instruction: VectorInstruction) -> VectorInstruction {
    VectorInstruction { wide: 0, ..instruction }
}

macro_rules! instructions {
    ($($(#[$doc:meta])* $name:ident = $value:expr;)*) => {
        $($(#[$doc])* pub const $name: VectorInstruction = $value;)*
    };
}

instructions! {
    /// `to ← a ∧ b`; in VEX form `vpand`.
    VPANDQ = of(1, 1, 0xdb);
    /// `to ← ¬a ∧ b`; in VEX form `vpandn`.
    VPANDNQ = of(1, 1, 0xdf);
    /// `to ← a ∨ b`; in VEX form `vpor`.
    VPORQ = of(1, 1, 0xeb);
    /// `to ← a ⊕ b`; in VEX form `vpxor`.
    VPXORQ = of(1, 1, 0xef);
    /// Sums of words of 64 bits.
    VPADDQ = of(1, 1, 0xd4);
    /// Differences of words of 64 bits.
    VPSUBQ = of(1, 1, 0xfb);
    /// Any function of three bits, by a table of eight; EVEX only.
    VPTERNLOGQ = of(1, 3, 0x25);
    /// Words of two vectors one behind the other, from a word on; EVEX only.
    VALIGNQ = of(1, 3, 0x03);
    /// Words of two vectors one behind the other, shifted by bits; EVEX only.
    VPSHLDQ = of(1, 3, 0x71);
    /// Bytes by index; EVEX only.
    VPERMB = narrow(of(1, 2, 0x8d));
    /// Bytes times a matrix of bits, plus a constant.
    GF2P8AFFINEQB = of(1, 3, 0xce);
    /// The low words of each lane of two vectors.
    VPUNPCKLQDQ = of(1, 1, 0x6c);
    /// The high words of each lane of two vectors.
    VPUNPCKHQDQ = of(1, 1, 0x6d);
    /// Lanes of two vectors; EVEX only.
    VSHUFI64X2 = of(1, 3, 0x43);
    /// Words that are equal; a mask in EVEX form, a vector in VEX form.
    VPCMPEQQ = of(1, 2, 0x29);
    /// Bytes that are equal; a mask in EVEX form, else a vector.
    VPCMPEQB = narrow(of(1, 1, 0x74));
    /// Halves of words that are equal; a mask in EVEX form, else a vector.
    VPCMPEQD = narrow(of(1, 1, 0x76));
}

const VMOVDQU64_LOAD: VectorInstruction = of(2, 1, 0x6f);
const VMOVDQU64_STORE: VectorInstruction = of(2, 1, 0x7f);
const VPCMPUQ: VectorInstruction = of(1, 3, 0x1e);
const VPTESTMQ: VectorInstruction = of(1, 2, 0x27);
const VPERMQ: VectorInstruction = VectorInstruction { vex_wide: 1, ..of(1, 3, 0x00) };
const VPBLENDD: VectorInstruction = of(1, 3, 0x02);
const VPTEST: VectorInstruction = of(1, 2, 0x17);
const SHIFT_WORDS: VectorInstruction = of(1, 1, 0x73);
const VMOVMSKPS: VectorInstruction = of(0, 1, 0x50);
const VMOVMSKPD: VectorInstruction = of(1, 1, 0x50);
const VPMOVMSKB: VectorInstruction = of(1, 1, 0xd7);
const STTILECFG: VectorInstruction = of(1, 2, 0x49);
const PEXT: VectorInstruction = VectorInstruction { vex_wide: 1, ..of(2, 2, 0xf5) };
const RORX: VectorInstruction = of(3, 3, 0xf0);
const KORTESTB: VectorInstruction = of(1, 1, 0x98);
const KMOVB_TO_MASK: VectorInstruction = of(1, 1, 0x92);

/// How many bits of a mask are moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaskSize {
    /// 8 bits.
    Byte,
    /// 16 bits.
    Word,
    /// 64 bits.
    Qword,
}

/// A vector register or memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VectorOperand {
    /// A register.
    Register(Vector),
    /// Memory.
    Memory(Memory),
}

impl From<Vector> for VectorOperand {
    #[inline(always)]
    fn from(register: Vector) -> VectorOperand {
        VectorOperand::Register(register)
    }
}

impl From<Memory> for VectorOperand {
    #[inline(always)]
    fn from(memory: Memory) -> VectorOperand {
        VectorOperand::Memory(memory)
    }
}

/// Bit `at` of a register's number, inverted as prefixes have it.
#[inline(always)]
fn inverted(number: u8, at: u8) -> u8 {
    number >> at & 1 ^ 1
}

/// A VEX instruction without its immediate. `long`: 1 for 256 bits.
#[inline(always)]
fn vex(what: VectorInstruction, long: u8, reg: u8, first: u8, second: VectorOperand) -> Instruction {
    let mut instruction = Instruction::new();
    let (x, b) = match second {
        VectorOperand::Register(register) => (1, inverted(register.number(), 3)),
        VectorOperand::Memory(memory) => {
            memory.prefixes(&mut instruction);
            (memory.index_high() ^ 1, memory.base_high() ^ 1)
        }
    };
    let third = (!first & 15) << 3 | long << 2 | what.prefix;
    if (x, b, what.map, what.vex_wide) == (1, 1, 1, 0) {
        instruction.byte(0xc5);
        instruction.byte(inverted(reg, 3) << 7 | third);
    } else {
        instruction.byte(0xc4);
        instruction.byte(inverted(reg, 3) << 7 | x << 6 | b << 5 | what.map);
        instruction.byte(what.vex_wide << 7 | third);
    }
    instruction.byte(what.opcode);
    modrm(&mut instruction, reg, second, 1);
    instruction
}

/// An EVEX instruction on 512 bits without its immediate.
#[inline(always)]
fn evex(what: VectorInstruction, reg: u8, first: u8, second: VectorOperand, mask: Mask) -> Instruction {
    let mut instruction = Instruction::new();
    let (x, b) = match second {
        VectorOperand::Register(register) => (inverted(register.number(), 4), inverted(register.number(), 3)),
        VectorOperand::Memory(memory) => {
            memory.prefixes(&mut instruction);
            (memory.index_high() ^ 1, memory.base_high() ^ 1)
        }
    };
    instruction.byte(0x62);
    instruction.byte(inverted(reg, 3) << 7 | x << 6 | b << 5 | inverted(reg, 4) << 4 | what.map);
    instruction.byte(what.wide << 7 | (!first & 15) << 3 | 4 | what.prefix);
    instruction.byte(2 << 5 | inverted(first, 4) << 3 | mask.number());
    instruction.byte(what.opcode);
    modrm(&mut instruction, reg, second, 64);
    instruction
}

#[inline(always)]
pub(crate) fn modrm(instruction: &mut Instruction, reg: u8, operand: VectorOperand, unit: i32) {
    match operand {
        VectorOperand::Register(register) => {
            instruction.byte(0xc0 | (reg & 7) << 3 | (register.number() & 7));
        }
        VectorOperand::Memory(memory) => memory.encode(instruction, reg, unit),
    }
}

const NO_MASK: Mask = Mask::numbered(0);

/// A general or mask register where the encoding has a vector's place.
#[inline(always)]
pub(crate) fn other(number: u8) -> VectorOperand {
    VectorOperand::Register(Vector::numbered(number))
}

impl Assembler {
    #[inline(always)]
    fn wide(
        &mut self,
        what: VectorInstruction,
        width: Width,
        reg: u8,
        first: u8,
        second: VectorOperand,
        immediate: Option<u8>,
    ) {
        let mut instruction = match width {
            Width::Bits128 => vex(what, 0, reg, first, second),
            Width::Bits256 => vex(what, 1, reg, first, second),
            Width::Bits512 => evex(what, reg, first, second, NO_MASK),
        };
        if let Some(immediate) = immediate {
            instruction.byte(immediate);
        }
        self.append(&instruction);
    }

    /// `to ← a what b`
    ///
    /// ```
    /// use lightfoot_assembler::vector::{Width, VPXORQ};
    /// use lightfoot_assembler::{Assembler, Vector};
    /// let mut code = Assembler::default();
    /// let zero = Vector::numbered(0);
    /// code.vector(VPXORQ, Width::Bits256, zero, zero, zero);
    /// assert_eq!(code.bytes(), [0xc5, 0xfd, 0xef, 0xc0]);
    /// ```
    #[inline(always)]
    pub fn vector(
        &mut self,
        what: VectorInstruction,
        width: Width,
        to: Vector,
        a: Vector,
        b: impl Into<VectorOperand>,
    ) {
        self.wide(what, width, to.number(), a.number(), b.into(), None);
    }

    /// `to ← a what b` with an immediate.
    #[inline(always)]
    pub fn vector_immediate(
        &mut self,
        what: VectorInstruction,
        width: Width,
        to: Vector,
        a: Vector,
        b: impl Into<VectorOperand>,
        immediate: u8,
    ) {
        self.wide(what, width, to.number(), a.number(), b.into(), Some(immediate));
    }

    /// `to ← a what b` in the words whose bits `mask` has; other words stay. 512 bits.
    #[inline(always)]
    pub fn vector_masked(
        &mut self,
        what: VectorInstruction,
        to: Vector,
        a: Vector,
        b: impl Into<VectorOperand>,
        mask: Mask,
    ) {
        self.append(&evex(what, to.number(), a.number(), b.into(), mask));
    }

    /// `vmovdqu`: loads or copies a whole vector.
    #[inline(always)]
    pub fn vector_load(&mut self, width: Width, to: Vector, from: impl Into<VectorOperand>) {
        self.wide(VMOVDQU64_LOAD, width, to.number(), 0, from.into(), None);
    }

    /// `vmovdqu`: stores a whole vector.
    #[inline(always)]
    pub fn vector_store(&mut self, width: Width, to: Memory, from: Vector) {
        self.wide(VMOVDQU64_STORE, width, from.number(), 0, to.into(), None);
    }

    /// Mask `to` ← words of `a` below those of `b`, unsigned. 512 bits.
    #[inline(always)]
    pub fn words_below(&mut self, to: Mask, a: Vector, b: impl Into<VectorOperand>) {
        let below = Some(1);
        self.wide(VPCMPUQ, Width::Bits512, to.number(), a.number(), b.into(), below);
    }

    /// Mask `to` ← words of `a` that equal those of `b`. 512 bits.
    #[inline(always)]
    pub fn words_equal(&mut self, to: Mask, a: Vector, b: impl Into<VectorOperand>) {
        self.wide(VPCMPEQQ, Width::Bits512, to.number(), a.number(), b.into(), None);
    }

    /// Mask `to` ← words of `a ∧ b` that are not zero. 512 bits.
    #[inline(always)]
    pub fn words_common(&mut self, to: Mask, a: Vector, b: impl Into<VectorOperand>) {
        self.wide(VPTESTMQ, Width::Bits512, to.number(), a.number(), b.into(), None);
    }

    /// `vptest a, b`: sets the zero flag where they have no bit in common. 256 bits.
    #[inline(always)]
    pub fn vector_test(&mut self, a: Vector, b: impl Into<VectorOperand>) {
        self.wide(VPTEST, Width::Bits256, a.number(), 0, b.into(), None);
    }

    /// `vpermq`: words of 256 bits by four numbers of two bits.
    #[inline(always)]
    pub fn permute_words(&mut self, to: Vector, from: impl Into<VectorOperand>, order: u8) {
        self.wide(VPERMQ, Width::Bits256, to.number(), 0, from.into(), Some(order));
    }

    /// `vpblendd`: halves of words of `b` where the bit of `choice` is set, else of `a`. 256 bits.
    #[inline(always)]
    pub fn blend_halves(&mut self, to: Vector, a: Vector, b: impl Into<VectorOperand>, choice: u8) {
        self.wide(VPBLENDD, Width::Bits256, to.number(), a.number(), b.into(), Some(choice));
    }

    /// `vpsllq`: words of 256 bits to the left.
    #[inline(always)]
    pub fn shift_words_left(&mut self, to: Vector, from: Vector, by: u8) {
        self.wide(SHIFT_WORDS, Width::Bits256, 6, to.number(), from.into(), Some(by));
    }

    /// `vpsrlq`: words of 256 bits to the right.
    #[inline(always)]
    pub fn shift_words_right(&mut self, to: Vector, from: Vector, by: u8) {
        self.wide(SHIFT_WORDS, Width::Bits256, 2, to.number(), from.into(), Some(by));
    }

    /// `vmovmskps`: the sign of each element of four bytes. 128 or 256 bits.
    #[inline(always)]
    pub fn dword_signs(&mut self, width: Width, to: Gpr, from: Vector) {
        self.wide(VMOVMSKPS, width, to.number(), 0, from.into(), None);
    }

    /// `vmovmskpd`: the sign of each element of eight bytes. 128 or 256 bits.
    #[inline(always)]
    pub fn qword_signs(&mut self, width: Width, to: Gpr, from: Vector) {
        self.wide(VMOVMSKPD, width, to.number(), 0, from.into(), None);
    }

    /// `vpmovmskb`: the sign of each byte. 128 or 256 bits.
    #[inline(always)]
    pub fn byte_signs(&mut self, width: Width, to: Gpr, from: Vector) {
        self.wide(VPMOVMSKB, width, to.number(), 0, from.into(), None);
    }

    /// `kortestb a, b`: sets the zero flag where neither has a bit.
    #[inline(always)]
    pub fn masks_test(&mut self, a: Mask, b: Mask) {
        self.append(&vex(KORTESTB, 0, a.number(), 0, other(b.number())));
    }

    /// `kmovb`, `kmovw` or `kmovq to, from`
    #[inline(always)]
    pub fn mask_to_register(&mut self, size: MaskSize, to: Gpr, from: Mask) {
        let what = match size {
            MaskSize::Byte => of(1, 1, 0x93),
            MaskSize::Word => of(0, 1, 0x93),
            MaskSize::Qword => VectorInstruction { vex_wide: 1, ..of(3, 1, 0x93) },
        };
        self.append(&vex(what, 0, to.number(), 0, other(from.number())));
    }

    /// `kmovb to, from`
    #[inline(always)]
    pub fn register_to_mask(&mut self, to: Mask, from: Gpr) {
        self.append(&vex(KMOVB_TO_MASK, 0, to.number(), 0, other(from.number())));
    }

    /// `pext to, from, [mask]`: the bits of `from` that `mask` has, side by side; flags stay.
    #[inline(always)]
    pub fn extract_bits(&mut self, to: Gpr, from: Gpr, mask: Memory) {
        self.append(&vex(PEXT, 0, to.number(), from.number(), mask.into()));
    }

    /// `rorx to, from, by`; flags stay.
    #[inline(always)]
    pub fn rotate_right(&mut self, size: Size, to: Gpr, from: Gpr, by: u8) {
        debug_assert_ne!(size, Size::Byte);
        let what = VectorInstruction { vex_wide: u8::from(size == Size::Qword), ..RORX };
        let mut instruction = vex(what, 0, to.number(), 0, other(from.number()));
        instruction.byte(by);
        self.append(&instruction);
    }

    /// `sttilecfg [to]`: the configuration of tiles, 64 bytes.
    #[inline(always)]
    pub fn store_tile_configuration(&mut self, to: Memory) {
        self.append(&vex(STTILECFG, 0, 0, 0, to.into()));
    }

    /// `vzeroupper`
    #[inline(always)]
    pub fn zero_upper(&mut self) {
        self.extend(&[0xc5, 0xf8, 0x77]);
    }
}
