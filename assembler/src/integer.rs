//! Instructions on general registers and memory.
//!
//! All of them share one frame: prefixes, REX, opcode, ModRM with its memory operand, immediate.
//! `Form` says what differs. Instructions named `…_from` load from memory, others write to their
//! first operand. Where one instruction has several encodings, the shortest is taken.

use crate::code::Assembler;
use crate::instruction::Instruction;
use crate::operand::{Condition, Gpr, Memory, Mmx, Operand, Size};

/// Arithmetic and logic of two operands, by the number that the opcode holds. All but `cmp` write
/// to the first operand, and all set flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "names of the manual")]
pub enum Alu {
    Add,
    Or,
    Adc,
    Sbb,
    And,
    Sub,
    Xor,
    Cmp,
}

/// Shifts by a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shift {
    /// To the left.
    Left = 4,
    /// To the right, zeros follow.
    Right = 5,
    /// To the right, copies of the sign follow.
    RightSigned = 7,
}

/// Loads and moves of a narrow value into a whole register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extend {
    /// A byte, with zeros.
    ZeroByte,
    /// Two bytes, with zeros.
    ZeroWord,
    /// Two bytes, with copies of the sign.
    SignWord,
    /// Four bytes, with copies of the sign.
    SignDword,
}

/// What memory is asked for ahead of its use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefetch {
    /// To be read, into all levels.
    Read,
    /// To be written.
    Write,
}

/// The tables of opcodes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Map {
    /// One byte.
    One,
    /// A byte behind 0x0f.
    Two,
}

/// What distinguishes an instruction in the common frame.
#[derive(Clone, Copy)]
struct Form {
    map: Map,
    opcode: u8,
    size: Size,
    /// Both registers are bytes, of which some need a REX prefix.
    bytes: bool,
}

impl Form {
    #[inline(always)]
    fn one(opcode: u8, size: Size) -> Form {
        Form { map: Map::One, opcode, size, bytes: matches!(size, Size::Byte) }
    }

    /// The form of an opcode whose lowest bit tells bytes from larger operands.
    #[inline(always)]
    fn sized(opcode: u8, size: Size) -> Form {
        Form::one(opcode | u8::from(size != Size::Byte), size)
    }

    #[inline(always)]
    fn two(opcode: u8, size: Size) -> Form {
        Form { map: Map::Two, opcode, size, bytes: false }
    }
}

/// Prefixes, REX, opcode, ModRM: everything but an immediate.
#[inline(always)]
fn framed(form: Form, reg: u8, operand: Operand) -> Instruction {
    let mut instruction = Instruction::new();
    let (x, b) = match operand {
        Operand::Register(register) => (0, register.number() >> 3),
        Operand::Memory(memory) => {
            memory.prefixes(&mut instruction);
            (memory.index_high(), memory.base_high())
        }
    };
    let wide = u8::from(form.size == Size::Qword);
    let rex = wide << 3 | (reg >> 3) << 2 | x << 1 | b;
    let low_byte = |register: u8| (4..8).contains(&register);
    let named =
        form.bytes && (low_byte(reg) || matches!(operand, Operand::Register(r) if low_byte(r.number())));
    if rex != 0 || named {
        instruction.byte(0x40 | rex);
    }
    if form.map == Map::Two {
        instruction.byte(0x0f);
    }
    instruction.byte(form.opcode);
    match operand {
        Operand::Register(register) => {
            instruction.byte(0xc0 | (reg & 7) << 3 | (register.number() & 7));
        }
        Operand::Memory(memory) => memory.encode(&mut instruction, reg, 1),
    }
    instruction
}

impl Assembler {
    #[inline(always)]
    fn put(&mut self, form: Form, reg: u8, operand: Operand) {
        self.append(&framed(form, reg, operand));
    }

    #[inline(always)]
    fn put_with_byte(&mut self, form: Form, reg: u8, operand: Operand, immediate: u8) {
        let mut instruction = framed(form, reg, operand);
        instruction.byte(immediate);
        self.append(&instruction);
    }

    #[inline(always)]
    fn put_with_dword(&mut self, form: Form, reg: u8, operand: Operand, immediate: i32) {
        let mut instruction = framed(form, reg, operand);
        instruction.dword(immediate);
        self.append(&instruction);
    }

    /// `op to, from`
    #[inline(always)]
    pub fn alu(&mut self, op: Alu, size: Size, to: impl Into<Operand>, from: Gpr) {
        self.put(Form::sized((op as u8) << 3, size), from.number(), to.into());
    }

    /// `op to, [from]`
    #[inline(always)]
    pub fn alu_from(&mut self, op: Alu, size: Size, to: Gpr, from: Memory) {
        self.put(Form::sized((op as u8) << 3 | 2, size), to.number(), from.into());
    }

    /// `op to, value`, the value extended by its sign; of bytes its low eight bits count.
    #[inline(always)]
    pub fn alu_immediate(&mut self, op: Alu, size: Size, to: impl Into<Operand>, value: i32) {
        let (number, to) = (op as u8, to.into());
        if size == Size::Byte {
            if to == Operand::Register(Gpr::RAX) {
                return self.extend(&[number << 3 | 4, value as u8]);
            }
            return self.put_with_byte(Form::one(0x80, size), number, to, value as u8);
        }
        match i8::try_from(value) {
            Ok(short) => self.put_with_byte(Form::one(0x83, size), number, to, short as u8),
            Err(_) => self.put_with_dword(Form::one(0x81, size), number, to, value),
        }
    }

    /// `test operand, value`
    #[inline(always)]
    pub fn test_immediate(&mut self, size: Size, operand: impl Into<Operand>, value: i32) {
        let operand = operand.into();
        let is_accumulator = operand == Operand::Register(Gpr::RAX);
        match (size, is_accumulator) {
            (Size::Byte, true) => self.extend(&[0xa8, value as u8]),
            (Size::Byte, false) => self.put_with_byte(Form::one(0xf6, size), 0, operand, value as u8),
            (Size::Dword, true) => {
                let mut instruction = Instruction::new();
                instruction.byte(0xa9);
                instruction.dword(value);
                self.append(&instruction);
            }
            _ => self.put_with_dword(Form::one(0xf7, size), 0, operand, value),
        }
    }

    /// `test a, b`
    #[inline(always)]
    pub fn test(&mut self, size: Size, a: impl Into<Operand>, b: Gpr) {
        self.put(Form::sized(0x84, size), b.number(), a.into());
    }

    /// `imul to, from, by`
    #[inline(always)]
    pub fn multiply(&mut self, size: Size, to: Gpr, from: impl Into<Operand>, by: i32) {
        debug_assert_ne!(size, Size::Byte);
        self.put_with_dword(Form::one(0x69, size), to.number(), from.into(), by);
    }

    /// `xadd [to], from`: memory becomes the sum, the register what memory was.
    #[inline(always)]
    pub fn exchange_add(&mut self, size: Size, to: Memory, from: Gpr) {
        let opcode = 0xc0 | u8::from(size != Size::Byte);
        self.put(Form { bytes: size == Size::Byte, ..Form::two(opcode, size) }, from.number(), to.into());
    }

    /// `wrgsbase from`
    #[inline(always)]
    pub fn write_gs_base(&mut self, from: Gpr) {
        self.extend(&[0xf3]);
        self.put(Form::two(0xae, Size::Qword), 3, from.into());
    }

    /// `mov to, from`
    #[inline(always)]
    pub fn mov(&mut self, size: Size, to: impl Into<Operand>, from: Gpr) {
        self.put(Form::sized(0x88, size), from.number(), to.into());
    }

    /// `mov to, [from]`
    #[inline(always)]
    pub fn mov_from(&mut self, size: Size, to: Gpr, from: Memory) {
        self.put(Form::sized(0x8a, size), to.number(), from.into());
    }

    /// `mov to, value` in the shortest form; flags stay.
    #[inline(always)]
    pub fn mov_immediate(&mut self, to: Gpr, value: u64) {
        let (high, low) = (to.number() >> 3, to.number() & 7);
        if value > u64::from(u32::MAX) {
            if let Ok(short) = i32::try_from(value as i64) {
                return self.put_with_dword(Form::one(0xc7, Size::Qword), 0, to.into(), short);
            }
            let mut bytes = [0; 16];
            (bytes[0], bytes[1]) = (0x48 | high, 0xb8 | low);
            bytes[2..10].copy_from_slice(&value.to_le_bytes());
            return self.extend_from_sixteen(&bytes, 10);
        }
        let mut instruction = Instruction::new();
        if high != 0 {
            instruction.byte(0x41);
        }
        instruction.byte(0xb8 | low);
        instruction.dword(value as i32);
        self.append(&instruction);
    }

    /// `mov [to], value`, the value extended by its sign. Bytes are left out.
    #[inline(always)]
    pub fn mov_to_immediate(&mut self, size: Size, to: Memory, value: i32) {
        debug_assert_ne!(size, Size::Byte);
        self.put_with_dword(Form::one(0xc7, size), 0, to.into(), value);
    }

    /// `mov rax, [address]`, an address of 64 bits.
    #[inline(always)]
    pub fn mov_rax_from(&mut self, address: u64) {
        let mut bytes = [0; 16];
        (bytes[0], bytes[1]) = (0x48, 0xa1);
        bytes[2..10].copy_from_slice(&address.to_le_bytes());
        self.extend_from_sixteen(&bytes, 10);
    }

    /// `movzx`, `movsx` or `movsxd to, from`: zeros go into 32 bits, which clears all 64, and signs
    /// into 64.
    #[inline(always)]
    pub fn extend_into(&mut self, how: Extend, to: Gpr, from: impl Into<Operand>) {
        let form = match how {
            Extend::ZeroByte => Form { bytes: true, ..Form::two(0xb6, Size::Dword) },
            Extend::ZeroWord => Form::two(0xb7, Size::Dword),
            Extend::SignWord => Form::two(0xbf, Size::Qword),
            Extend::SignDword => Form::one(0x63, Size::Qword),
        };
        self.put(form, to.number(), from.into());
    }

    /// `lea to, from`: the address without its segment's base.
    #[inline(always)]
    pub fn lea(&mut self, size: Size, to: Gpr, from: Memory) {
        debug_assert_ne!(size, Size::Byte);
        self.put(Form::one(0x8d, size), to.number(), from.into());
    }

    /// `cmovcc to, from`
    #[inline(always)]
    pub fn mov_if(&mut self, condition: Condition, size: Size, to: Gpr, from: impl Into<Operand>) {
        debug_assert_ne!(size, Size::Byte);
        self.put(Form::two(0x40 | condition as u8, size), to.number(), from.into());
    }

    /// `setcc to`, one byte.
    #[inline(always)]
    pub fn set_if(&mut self, condition: Condition, to: impl Into<Operand>) {
        let form = Form { bytes: true, ..Form::two(0x90 | condition as u8, Size::Byte) };
        self.put(form, 0, to.into());
    }

    /// `push r`
    #[inline(always)]
    pub fn push(&mut self, register: Gpr) {
        self.one_byte(0x50, register);
    }

    /// `pop r`
    #[inline(always)]
    pub fn pop(&mut self, register: Gpr) {
        self.one_byte(0x58, register);
    }

    #[inline(always)]
    fn one_byte(&mut self, opcode: u8, register: Gpr) {
        let mut instruction = Instruction::new();
        if register.number() > 7 {
            instruction.byte(0x41);
        }
        instruction.byte(opcode | (register.number() & 7));
        self.append(&instruction);
    }

    /// `push value`: eight bytes, extended by the sign.
    #[inline(always)]
    pub fn push_immediate(&mut self, value: i32) {
        let mut instruction = Instruction::new();
        instruction.byte(0x68);
        instruction.dword(value);
        self.append(&instruction);
    }

    /// `push qword [from]`
    #[inline(always)]
    pub fn push_from(&mut self, from: Memory) {
        self.put(Form::one(0xff, Size::Dword), 6, from.into());
    }

    /// `shl`, `shr` or `sar to, by`
    #[inline(always)]
    pub fn shift(&mut self, shift: Shift, size: Size, to: impl Into<Operand>, by: u8) {
        self.put_with_byte(Form::sized(0xc0, size), shift as u8, to.into(), by);
    }

    /// `bsf to, from`: the number of the lowest bit; undefined where there is none.
    #[inline(always)]
    pub fn lowest_bit(&mut self, size: Size, to: Gpr, from: impl Into<Operand>) {
        debug_assert_ne!(size, Size::Byte);
        self.put(Form::two(0xbc, size), to.number(), from.into());
    }

    /// `bsr to, from`: the number of the highest bit; undefined where there is none.
    #[inline(always)]
    pub fn highest_bit(&mut self, size: Size, to: Gpr, from: impl Into<Operand>) {
        debug_assert_ne!(size, Size::Byte);
        self.put(Form::two(0xbd, size), to.number(), from.into());
    }

    /// `popcnt to, from`
    #[inline(always)]
    pub fn count_ones(&mut self, size: Size, to: Gpr, from: impl Into<Operand>) {
        debug_assert_ne!(size, Size::Byte);
        self.extend(&[0xf3]);
        self.put(Form::two(0xb8, size), to.number(), from.into());
    }

    /// `neg operand`
    #[inline(always)]
    pub fn negate(&mut self, size: Size, operand: impl Into<Operand>) {
        self.put(Form::sized(0xf6, size), 3, operand.into());
    }

    /// `not operand`; flags stay.
    #[inline(always)]
    pub fn not(&mut self, size: Size, operand: impl Into<Operand>) {
        self.put(Form::sized(0xf6, size), 2, operand.into());
    }

    /// `inc operand`
    #[inline(always)]
    pub fn increment(&mut self, size: Size, operand: impl Into<Operand>) {
        self.put(Form::sized(0xfe, size), 0, operand.into());
    }

    /// `dec operand`
    #[inline(always)]
    pub fn decrement(&mut self, size: Size, operand: impl Into<Operand>) {
        self.put(Form::sized(0xfe, size), 1, operand.into());
    }

    /// `lock`: makes the next instruction, which has to write to memory, one atomic step.
    #[inline(always)]
    pub fn lock(&mut self) {
        self.extend(&[0xf0]);
    }

    /// `cmpxchg [to], from`: where memory equals the accumulator, it becomes `from`.
    #[inline(always)]
    pub fn compare_exchange(&mut self, size: Size, to: Memory, from: Gpr) {
        let form = Form { bytes: size == Size::Byte, ..Form::two(0xb0 | u8::from(size != Size::Byte), size) };
        self.put(form, from.number(), to.into());
    }

    /// `prefetcht0` or `prefetchw`
    #[inline(always)]
    pub fn prefetch(&mut self, what: Prefetch, from: Memory) {
        let opcode = match what {
            Prefetch::Read => 0x18,
            Prefetch::Write => 0x0d,
        };
        self.put(Form::two(opcode, Size::Dword), 1, from.into());
    }

    /// `lahf`: the low status flags into ah.
    #[inline(always)]
    pub fn flags_to_ah(&mut self) {
        self.extend(&[0x9f]);
    }

    /// `sahf`: ah into the low status flags.
    #[inline(always)]
    pub fn ah_to_flags(&mut self) {
        self.extend(&[0x9e]);
    }

    /// `nop`, one byte.
    #[inline(always)]
    pub fn nop(&mut self) {
        self.extend(&[0x90]);
    }

    /// `int3`
    #[inline(always)]
    pub fn breakpoint(&mut self) {
        self.extend(&[0xcc]);
    }

    /// `ud2`
    #[inline(always)]
    pub fn undefined(&mut self) {
        self.extend(&[0x0f, 0x0b]);
    }

    /// `syscall`
    #[inline(always)]
    pub fn system_call(&mut self) {
        self.extend(&[0x0f, 0x05]);
    }

    /// `pmovmskb to, from`: the highest bit of each byte of an MMX register.
    #[inline(always)]
    pub fn byte_signs_mmx(&mut self, to: Gpr, from: Mmx) {
        self.put(Form::two(0xd7, Size::Dword), to.number(), Gpr::numbered(from.number()).into());
    }
}
