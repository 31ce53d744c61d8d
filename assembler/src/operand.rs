//! Operands: registers by type, memory by base, index, displacement and segment.
//!
//! A register of one kind cannot stand where another kind is meant. Memory operands are values that
//! are built step by step (`Memory::at(Gpr::RDI).plus(8).gs()`), and encode the shortest form
//! unless [`Memory::wide`] asks for one whose displacement can be patched later.

use crate::instruction::Instruction;

/// A general register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gpr(u8);

#[allow(missing_docs, reason = "names of the manual")]
impl Gpr {
    pub const RAX: Gpr = Gpr(0);
    pub const RCX: Gpr = Gpr(1);
    pub const RDX: Gpr = Gpr(2);
    pub const RBX: Gpr = Gpr(3);
    pub const RSP: Gpr = Gpr(4);
    pub const RBP: Gpr = Gpr(5);
    pub const RSI: Gpr = Gpr(6);
    pub const RDI: Gpr = Gpr(7);
    pub const R8: Gpr = Gpr(8);
    pub const R9: Gpr = Gpr(9);
    pub const R10: Gpr = Gpr(10);
    pub const R11: Gpr = Gpr(11);
    pub const R12: Gpr = Gpr(12);
    pub const R13: Gpr = Gpr(13);
    pub const R14: Gpr = Gpr(14);
    pub const R15: Gpr = Gpr(15);
}

impl Gpr {
    /// The register of that hardware number, of which the low four bits count.
    #[inline(always)]
    pub const fn numbered(number: u8) -> Gpr {
        Gpr(number & 15)
    }

    /// The register's hardware number.
    #[inline(always)]
    pub const fn number(self) -> u8 {
        self.0
    }
}

/// A vector register: xmm, ymm or zmm, by the instruction's width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Vector(u8);

impl Vector {
    /// The register of that hardware number, of which the low five bits count.
    #[inline(always)]
    pub const fn numbered(number: u8) -> Vector {
        Vector(number & 31)
    }

    /// The register's hardware number.
    #[inline(always)]
    pub const fn number(self) -> u8 {
        self.0
    }
}

/// A mask register of AVX-512.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mask(u8);

impl Mask {
    /// The register of that hardware number, of which the low three bits count.
    #[inline(always)]
    pub const fn numbered(number: u8) -> Mask {
        Mask(number & 7)
    }

    /// The register's hardware number.
    #[inline(always)]
    pub const fn number(self) -> u8 {
        self.0
    }
}

/// An MMX register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mmx(u8);

impl Mmx {
    /// The register of that hardware number, of which the low three bits count.
    #[inline(always)]
    pub const fn numbered(number: u8) -> Mmx {
        Mmx(number & 7)
    }

    /// The register's hardware number.
    #[inline(always)]
    pub const fn number(self) -> u8 {
        self.0
    }
}

/// How many bits of general registers or of memory an instruction works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// 8 bits. Of rsp, rbp, rsi and rdi the low ones, as of all others.
    Byte,
    /// 32 bits. A register's upper half becomes zero.
    Dword,
    /// 64 bits.
    Qword,
}

/// What an index is multiplied by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// By 1.
    One,
    /// By 2.
    Two,
    /// By 4.
    Four,
    /// By 8.
    Eight,
}

impl Scale {
    /// The scale `2^log2`, of which the low two bits of `log2` count.
    #[inline(always)]
    pub const fn power(log2: u8) -> Scale {
        match log2 & 3 {
            0 => Scale::One,
            1 => Scale::Two,
            2 => Scale::Four,
            _ => Scale::Eight,
        }
    }
}

/// Condition codes, by their hardware numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "names of the manual")]
#[repr(u8)]
pub enum Condition {
    Overflow,
    NotOverflow,
    Below,
    AboveOrEqual,
    Equal,
    NotEqual,
    BelowOrEqual,
    Above,
    Sign,
    NotSign,
    Parity,
    NotParity,
    Less,
    GreaterOrEqual,
    LessOrEqual,
    Greater,
}

impl Condition {
    /// All of them, in the order of their numbers.
    pub const ALL: [Condition; 16] = [
        Condition::Overflow,
        Condition::NotOverflow,
        Condition::Below,
        Condition::AboveOrEqual,
        Condition::Equal,
        Condition::NotEqual,
        Condition::BelowOrEqual,
        Condition::Above,
        Condition::Sign,
        Condition::NotSign,
        Condition::Parity,
        Condition::NotParity,
        Condition::Less,
        Condition::GreaterOrEqual,
        Condition::LessOrEqual,
        Condition::Greater,
    ];

    /// The condition of that hardware number, of which the low four bits count.
    #[inline(always)]
    pub const fn numbered(number: u8) -> Condition {
        Condition::ALL[(number & 15) as usize]
    }
}

/// Which segment's base is added to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Segment {
    None,
    Fs,
    Gs,
}

/// What an address begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    None,
    Register(Gpr),
    /// The address behind the instruction.
    Rip,
}

/// An operand in memory.
///
/// ```
/// use lightfoot_assembler::{Gpr, Memory, Scale};
/// // [rdi + 8·rcx + 16]
/// let third = Memory::at(Gpr::RDI).index(Gpr::RCX, Scale::Eight).plus(16);
/// assert_ne!(third, Memory::at(Gpr::RDI));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    segment: Segment,
    base: Base,
    index: Option<(Gpr, Scale)>,
    displacement: i32,
    wide: bool,
    truncated: bool,
}

impl Memory {
    const NOTHING: Memory = Memory {
        segment: Segment::None,
        base: Base::None,
        index: None,
        displacement: 0,
        wide: false,
        truncated: false,
    };

    /// `[base]`
    #[inline(always)]
    pub const fn at(base: Gpr) -> Memory {
        Memory { base: Base::Register(base), ..Memory::NOTHING }
    }

    /// `[address]`, an address within 2 GB of zero on either side.
    #[inline(always)]
    pub const fn absolute(address: i32) -> Memory {
        Memory { displacement: address, ..Memory::NOTHING }
    }

    /// `[rip + displacement]`, counted from the end of the instruction.
    #[inline(always)]
    pub const fn rip(displacement: i32) -> Memory {
        Memory { base: Base::Rip, displacement, ..Memory::NOTHING }
    }

    /// With `index * scale` added. rsp cannot be an index.
    #[inline(always)]
    pub const fn index(self, index: Gpr, scale: Scale) -> Memory {
        debug_assert!(index.number() != Gpr::RSP.number());
        Memory { index: Some((index, scale)), ..self }
    }

    /// With that many bytes added to the displacement.
    #[inline(always)]
    pub const fn plus(self, bytes: i32) -> Memory {
        Memory { displacement: self.displacement + bytes, ..self }
    }

    /// With the base of `fs` added.
    #[inline(always)]
    pub const fn fs(self) -> Memory {
        Memory { segment: Segment::Fs, ..self }
    }

    /// With the base of `gs` added.
    #[inline(always)]
    pub const fn gs(self) -> Memory {
        Memory { segment: Segment::Gs, ..self }
    }

    /// With the sum of base, index and displacement cut to 32 bits.
    #[inline(always)]
    pub const fn truncated(self) -> Memory {
        Memory { truncated: true, ..self }
    }

    /// With a displacement of four bytes, whatever its value is.
    #[inline(always)]
    pub const fn wide(self) -> Memory {
        Memory { wide: true, ..self }
    }

    /// Segment and address-size prefixes.
    #[inline(always)]
    pub(crate) fn prefixes(&self, instruction: &mut Instruction) {
        match self.segment {
            Segment::None => {}
            Segment::Fs => instruction.byte(0x64),
            Segment::Gs => instruction.byte(0x65),
        }
        if self.truncated {
            instruction.byte(0x67);
        }
    }

    /// Bit 3 of the base's number.
    #[inline(always)]
    pub(crate) fn base_high(&self) -> u8 {
        match self.base {
            Base::Register(base) => base.number() >> 3,
            _ => 0,
        }
    }

    /// Bit 3 of the index' number.
    #[inline(always)]
    pub(crate) fn index_high(&self) -> u8 {
        match self.index {
            Some((index, _)) => index.number() >> 3,
            None => 0,
        }
    }

    /// ModRM, SIB and displacement. A displacement of one byte counts `unit` bytes (EVEX: a
    /// vector).
    #[inline(always)]
    pub(crate) fn encode(&self, instruction: &mut Instruction, reg: u8, unit: i32) {
        let reg = (reg & 7) << 3;
        let (scale, index) = match self.index {
            Some((index, scale)) => ((scale as u8) << 6, (index.number() & 7) << 3),
            None => (0, 4 << 3),
        };
        let base = match self.base {
            Base::Rip => {
                instruction.byte(reg | 5);
                return instruction.dword(self.displacement);
            }
            Base::None => {
                instruction.byte(reg | 4);
                instruction.byte(scale | index | 5);
                return instruction.dword(self.displacement);
            }
            Base::Register(base) => base.number() & 7,
        };
        let mode = self.mode(base, unit);
        // The number of rsp stands for a SIB byte.
        if self.index.is_some() || base == 4 {
            instruction.byte(mode | reg | 4);
            instruction.byte(scale | index | base);
        } else {
            instruction.byte(mode | reg | base);
        }
        match mode {
            0x40 => instruction.byte((self.displacement / unit) as u8),
            0x80 => instruction.dword(self.displacement),
            _ => {}
        }
    }

    /// How long the displacement is, as the mode field says it. Without one, rbp's number means
    /// rip.
    #[inline(always)]
    fn mode(&self, base: u8, unit: i32) -> u8 {
        let counted = self.displacement / unit;
        let fits = counted * unit == self.displacement && i8::try_from(counted).is_ok();
        match (self.displacement, fits) {
            _ if self.wide => 0x80,
            (0, _) if base != 5 => 0,
            (_, true) => 0x40,
            _ => 0x80,
        }
    }
}

/// A general register or memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A register.
    Register(Gpr),
    /// Memory.
    Memory(Memory),
}

impl From<Gpr> for Operand {
    #[inline(always)]
    fn from(register: Gpr) -> Operand {
        Operand::Register(register)
    }
}

impl From<Memory> for Operand {
    #[inline(always)]
    fn from(memory: Memory) -> Operand {
        Operand::Memory(memory)
    }
}
