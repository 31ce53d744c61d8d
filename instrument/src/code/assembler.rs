//! The instructions that generated code uses often: accesses to the thread's context at `gs`, the
//! program's operands, and arithmetic that changes no flags.
//!
//! The methods are thin layers over the workspace's encoder. Code that needs an instruction in one
//! place only uses that encoder directly ([`Assembler::code`]). Registers are hardware numbers 0–15
//! here, because sets of them are bit masks. All accesses to the context are `gs:[offset]` with a
//! 32-bit absolute offset, and naturally aligned, because a program may set EFLAGS.AC.

use super::decode::Decoded;
use crate::target::layout::context;
use assembler::vector::Width;
use assembler::{Alu, Condition, Gpr, Memory, Prefetch, Scale, Size, Vector};

/// A growing sequence of machine code.
#[derive(Default)]
pub(crate) struct Assembler {
    code: assembler::Assembler,
}

/// Hardware numbers of the registers that generated code names.
pub(crate) mod reg {
    pub(crate) const RAX: u8 = 0;
    pub(crate) const RCX: u8 = 1;
    pub(crate) const RDX: u8 = 2;
    pub(crate) const RSP: u8 = 4;
}

/// A memory operand of the program, as `lea` needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// Base register, if any.
    pub(crate) base: Option<u8>,
    /// Index register, if any (never rsp).
    pub(crate) index: Option<u8>,
    /// log2 of the scale.
    pub(crate) scale_log2: u8,
    /// The displacement; without base and index, the absolute address.
    pub(crate) displacement: i64,
    /// Whether the address is truncated to 32 bits (0x67 prefix).
    pub(crate) short: bool,
    /// Whether the `fs` base is added.
    pub(crate) fs: bool,
}

impl Address {
    /// `[base + displacement]`.
    pub(crate) fn based(base: u8, displacement: i64) -> Address {
        Address { base: Some(base), index: None, scale_log2: 0, displacement, short: false, fs: false }
    }

    /// Bit mask of the registers that form the address.
    pub(crate) fn registers(&self) -> u16 {
        self.base.map_or(0, |register| 1 << register) | self.index.map_or(0, |register| 1 << register)
    }

    /// The operand without its segment. The displacement has 32 bits.
    #[inline]
    fn operand(&self) -> Memory {
        let displacement = self.displacement as i32;
        let start = match self.base {
            Some(base) => Memory::at(Gpr::numbered(base)).plus(displacement),
            None => Memory::absolute(displacement),
        };
        let indexed = match self.index {
            Some(index) => start.index(Gpr::numbered(index), Scale::power(self.scale_log2)),
            None => start,
        };
        if self.short {
            indexed.truncated()
        } else {
            indexed
        }
    }
}

/// A register by its number.
#[inline(always)]
pub(crate) fn gpr(number: u8) -> Gpr {
    Gpr::numbered(number)
}

/// `gs:[offset]`, a word of the thread's context.
#[inline(always)]
pub(crate) fn in_context(offset: u32) -> Memory {
    Memory::absolute(offset as i32).gs()
}

/// `gs:[register + displacement]`.
#[inline(always)]
fn in_context_at(register: u8, displacement: i32) -> Memory {
    Memory::at(gpr(register)).plus(displacement).gs()
}

/// `gs:[index*8 + offset]`, a word of a table in the thread's context.
#[inline(always)]
pub(crate) fn in_context_table(index: u8, offset: u32) -> Memory {
    in_context(offset).index(gpr(index), Scale::Eight)
}

impl Assembler {
    /// The workspace's encoder, for all other instructions.
    #[inline(always)]
    pub(crate) fn code(&mut self) -> &mut assembler::Assembler {
        &mut self.code
    }

    /// The code so far.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.code.bytes()
    }

    pub(crate) fn clear(&mut self) {
        self.code.clear();
    }

    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.code.len()
    }

    /// Appends bytes that were encoded elsewhere.
    #[inline(always)]
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        self.code.extend(bytes);
    }

    /// Appends a copy of an instruction of the program.
    pub(crate) fn copy(&mut self, decoded: &Decoded) {
        self.code.extend_from_sixteen(&decoded.sixteen(), decoded.instruction.len());
    }

    /// `mov gs:[offset], register`
    pub(crate) fn store(&mut self, register: u8, offset: u32) {
        self.code.mov(Size::Qword, in_context(offset), gpr(register));
    }

    /// `mov register, gs:[offset]`
    pub(crate) fn load(&mut self, register: u8, offset: u32) {
        self.code.mov_from(Size::Qword, gpr(register), in_context(offset));
    }

    /// `cmp register, gs:[offset]`
    pub(crate) fn compare(&mut self, register: u8, offset: u32) {
        self.code.alu_from(Alu::Cmp, Size::Qword, gpr(register), in_context(offset));
    }

    /// `add register, gs:[offset]`
    pub(crate) fn add_context(&mut self, register: u8, offset: u32) {
        self.code.alu_from(Alu::Add, Size::Qword, gpr(register), in_context(offset));
    }

    /// `op register, value`, the value extended by its sign.
    pub(crate) fn alu_imm(&mut self, op: Alu, register: u8, value: i32) {
        self.code.alu_immediate(op, Size::Qword, gpr(register), value);
    }

    /// `and register, value`, the value extended by its sign.
    pub(crate) fn and_imm(&mut self, register: u8, value: i32) {
        self.alu_imm(Alu::And, register, value);
    }

    /// `cmp register, value`, the value extended by its sign.
    pub(crate) fn compare_imm(&mut self, register: u8, value: i32) {
        self.alu_imm(Alu::Cmp, register, value);
    }

    /// `sbb register, register`: every bit becomes the carry flag.
    pub(crate) fn spread_carry(&mut self, register: u8) {
        self.registers(Alu::Sbb, register, register);
    }

    /// `op to, from`
    pub(crate) fn registers(&mut self, op: Alu, to: u8, from: u8) {
        self.code.alu(op, Size::Qword, gpr(to), gpr(from));
    }

    /// `neg register`
    pub(crate) fn negate(&mut self, register: u8) {
        self.code.negate(Size::Qword, gpr(register));
    }

    /// `not register` (changes no flags)
    pub(crate) fn not(&mut self, register: u8) {
        self.code.not(Size::Qword, gpr(register));
    }

    /// `mov qword gs:[index*8 + offset], 0`
    pub(crate) fn clear_table(&mut self, index: u8, offset: u32) {
        self.code.mov_to_immediate(Size::Qword, in_context_table(index, offset), 0);
    }

    /// `mov dword gs:[offset], value`
    pub(crate) fn store_imm32(&mut self, offset: u32, value: u32) {
        self.code.mov_to_immediate(Size::Dword, in_context(offset), value as i32);
    }

    /// `mov qword gs:[offset], value`, the value extended by its sign.
    pub(crate) fn store_imm64(&mut self, offset: u32, value: i32) {
        self.code.mov_to_immediate(Size::Qword, in_context(offset), value);
    }

    /// `cmp dword gs:[offset], value`
    pub(crate) fn compare_imm32(&mut self, offset: u32, value: u32) {
        self.code.alu_immediate(Alu::Cmp, Size::Dword, in_context(offset), value as i32);
    }

    /// `test eax, value`: five bytes, whatever the value is.
    pub(crate) fn test_eax(&mut self, value: u32) {
        self.code.test_immediate(Size::Dword, Gpr::RAX, value as i32);
    }

    /// `cmp qword gs:[offset], 0`
    pub(crate) fn compare_zero(&mut self, offset: u32) {
        self.code.alu_immediate(Alu::Cmp, Size::Qword, in_context(offset), 0);
    }

    /// `add qword gs:[offset], 1`
    pub(crate) fn increment(&mut self, offset: u32) {
        self.code.alu_immediate(Alu::Add, Size::Qword, in_context(offset), 1);
    }

    /// `jmp gs:[offset]`
    pub(crate) fn jump_context(&mut self, offset: u32) {
        self.code.jump_through(in_context(offset));
    }

    /// `mov register, value` in the shortest flag-free form.
    pub(crate) fn mov_imm(&mut self, register: u8, value: u64) {
        self.code.mov_immediate(gpr(register), value);
    }

    /// `mov to, from`
    pub(crate) fn mov(&mut self, to: u8, from: u8) {
        self.code.mov(Size::Qword, gpr(to), gpr(from));
    }

    /// `lea register, [register + add]`
    pub(crate) fn advance(&mut self, register: u8, add: i8) {
        self.code.lea(Size::Qword, gpr(register), Memory::at(gpr(register)).plus(i32::from(add)));
    }

    /// `pext to, from, gs:[offset]` (BMI2; changes no flags)
    pub(crate) fn extract(&mut self, to: u8, from: u8, offset: u32) {
        self.code.extract_bits(gpr(to), gpr(from), in_context(offset));
    }

    /// `rorx to32, from32, by` (BMI2; changes no flags)
    pub(crate) fn rotate(&mut self, to: u8, from: u8, by: u8) {
        self.code.rotate_right(Size::Dword, gpr(to), gpr(from), by);
    }

    /// `and register32, value`, at most 127.
    pub(crate) fn and_small(&mut self, register: u8, value: u8) {
        self.code.alu_immediate(Alu::And, Size::Dword, gpr(register), i32::from(value));
    }

    /// `pop rsp`
    pub(crate) fn pop_stack(&mut self) {
        self.code.pop(Gpr::RSP);
    }

    /// `add register, gs:[index*8 + offset]`
    pub(crate) fn add_table(&mut self, register: u8, index: u8, offset: u32) {
        self.code.alu_from(Alu::Add, Size::Qword, gpr(register), in_context_table(index, offset));
    }

    /// `mov register, gs:[index*8 + offset]`
    pub(crate) fn load_table(&mut self, register: u8, index: u8, offset: u32) {
        self.code.mov_from(Size::Qword, gpr(register), in_context_table(index, offset));
    }

    /// `mov gs:[index*8 + offset], register`
    pub(crate) fn store_table(&mut self, register: u8, index: u8, offset: u32) {
        self.code.mov(Size::Qword, in_context_table(index, offset), gpr(register));
    }

    /// `mov gs:[at + displacement], register`
    pub(crate) fn store_at(&mut self, register: u8, at: u8, displacement: u8) {
        self.code.mov(Size::Qword, in_context_at(at, i32::from(displacement)), gpr(register));
    }

    /// `mov register, gs:[at + displacement]`
    pub(crate) fn load_at(&mut self, register: u8, at: u8, displacement: i32) {
        self.code.mov_from(Size::Qword, gpr(register), in_context_at(at, displacement));
    }

    /// `prefetchw gs:[at + displacement]`
    pub(crate) fn prefetch_write(&mut self, at: u8, displacement: i32) {
        self.code.prefetch(Prefetch::Write, in_context_at(at, displacement));
    }

    /// `mov qword gs:[at + displacement], value`, the value extended by its sign.
    pub(crate) fn store_imm64_at(&mut self, at: u8, displacement: u8, value: i32) {
        self.code.mov_to_immediate(Size::Qword, in_context_at(at, i32::from(displacement)), value);
    }

    /// `mov dword gs:[at + displacement], value`
    pub(crate) fn store_imm_at(&mut self, at: u8, displacement: u8, value: u32) {
        self.code.mov_to_immediate(Size::Dword, in_context_at(at, i32::from(displacement)), value as i32);
    }

    /// `mov register32, gs:[offset]`
    pub(crate) fn load32(&mut self, register: u8, offset: u32) {
        self.code.mov_from(Size::Dword, gpr(register), in_context(offset));
    }

    /// `mov dword gs:[at + displacement], register32`
    pub(crate) fn store32_at(&mut self, register: u8, at: u8, displacement: u8) {
        self.code.mov(Size::Dword, in_context_at(at, i32::from(displacement)), gpr(register));
    }

    /// Stores a vector register of this width at `gs:[offset]`.
    pub(crate) fn store_vector(&mut self, vector: u8, width: Width, offset: u32) {
        self.code.vector_store(width, in_context(offset), Vector::numbered(vector));
    }

    /// `lea register, address` without its segment base.
    pub(crate) fn lea(&mut self, register: u8, address: &Address) {
        let fits = i32::try_from(address.displacement).is_ok();
        if address.base.is_none() && address.index.is_none() && (!fits || address.short) {
            let value =
                if address.short { address.displacement as u32 as u64 } else { address.displacement as u64 };
            return self.mov_imm(register, value);
        }
        assert!(fits, "a displacement beside a register has 32 bits: {address:?}");
        let size = if address.short { Size::Dword } else { Size::Qword };
        self.code.lea(size, gpr(register), address.operand());
    }

    /// Adds the `fs` base to the address in `register`, if the operand has that segment. Needs free
    /// flags.
    pub(crate) fn add_segment(&mut self, register: u8, address: &Address) {
        if address.fs {
            self.add_context(register, context::FS_BASE);
        }
    }

    /// `mov register, [address]`, an 8-byte load of the program's memory with its segment.
    pub(crate) fn load_program(&mut self, register: u8, address: &Address) {
        let operand = address.operand();
        let operand = if address.fs { operand.fs() } else { operand };
        self.code.mov_from(Size::Qword, gpr(register), operand);
    }

    /// `jmp rel32` with a displacement to be patched; returns the position of the displacement.
    pub(crate) fn jump(&mut self) -> usize {
        self.code.jump().displacement()
    }

    /// `call rel32`; returns the position of the displacement.
    pub(crate) fn call(&mut self) -> usize {
        self.code.call().displacement()
    }

    /// `jcc rel32`; returns the position of the displacement.
    pub(crate) fn jump_if(&mut self, condition: Condition) -> usize {
        self.code.jump_if(condition).displacement()
    }

    /// Makes the displacement at `at` lead to `target`; both are positions in this code.
    pub(crate) fn patch(&mut self, at: usize, target: usize) {
        self.set_displacement(at, (target as i64 - (at as i64 + 4)) as i32);
    }

    /// Writes the displacement at `at`.
    pub(crate) fn set_displacement(&mut self, at: usize, value: i32) {
        self.code.set_dword(at, value);
    }

    /// Stops for the host, which reads the reason from the exit number in the context.
    pub(crate) fn stop(&mut self) {
        self.code.breakpoint();
    }

    /// Appends padding, so that the four bytes that begin `ahead` bytes behind it lie within one
    /// line of 64 bytes. `base` is the final address of this code.
    pub(crate) fn align_patch(&mut self, base: u64, ahead: u64) {
        while (base + self.len() as u64 + ahead) % 64 > 60 {
            self.code.nop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};

    fn text(build: impl FnOnce(&mut Assembler)) -> String {
        let mut code = Assembler::default();
        build(&mut code);
        let mut decoder = Decoder::with_ip(64, code.bytes(), 0x1000, DecoderOptions::NONE);
        let instruction = decoder.decode();
        assert_eq!(decoder.position(), code.len(), "one instruction, all bytes used: {:x?}", code.bytes());
        let mut out = String::new();
        let mut formatter = IntelFormatter::new();
        formatter.options_mut().set_space_after_operand_separator(true);
        formatter.format(&instruction, &mut out);
        out
    }

    const NAMES_32: [&str; 16] = [
        "eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "r8d", "r9d", "r10d", "r11d", "r12d", "r13d",
        "r14d", "r15d",
    ];
    const NAMES: [&str; 16] = [
        "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
        "r14", "r15",
    ];

    #[test]
    fn context_forms_decode_to_what_they_say() {
        // Each register is used once in each operand place, because encodings differ by register.
        for register in 0..16u8 {
            let name = NAMES[register as usize];
            assert_eq!(text(|code| code.store(register, 0x40)), format!("mov gs:[40h], {name}"));
            assert_eq!(text(|code| code.load(register, 0x40)), format!("mov {name}, gs:[40h]"));
            assert_eq!(text(|code| code.compare(register, 0x40)), format!("cmp {name}, gs:[40h]"));
            assert_eq!(text(|code| code.mov(register, 3)), format!("mov {name}, rbx"));
            assert_eq!(text(|code| code.spread_carry(register)), format!("sbb {name}, {name}"));
            assert_eq!(text(|code| code.registers(Alu::Add, register, 3)), format!("add {name}, rbx"));
            assert_eq!(text(|code| code.registers(Alu::And, 9, register)), format!("and r9, {name}"));
            assert_eq!(text(|code| code.mov(9, register)), format!("mov r9, {name}"));
            assert_eq!(text(|code| code.advance(register, 16)), format!("lea {name}, [{name}+10h]"));
            assert_eq!(text(|code| code.store_at(register, 13, 8)), format!("mov gs:[r13+8], {name}"));
            assert_eq!(text(|code| code.store_at(2, register, 8)), format!("mov gs:[{name}+8], rdx"));
            assert_eq!(
                text(|code| code.store_imm_at(register, 8, 7)),
                format!("mov dword ptr gs:[{name}+8], 7")
            );
            assert_eq!(text(|code| code.mov_imm(register, 1 << 40)), format!("mov {name}, 10000000000h"));
            assert_eq!(text(|code| code.extract(register, 9, 0x40)), format!("pext {name}, r9, gs:[40h]"));
            assert_eq!(text(|code| code.extract(9, register, 0x40)), format!("pext r9, {name}, gs:[40h]"));
            let (low, r9) =
                (text(|code| code.rotate(register, 9, 6)), text(|code| code.rotate(9, register, 6)));
            let half = NAMES_32[register as usize];
            assert_eq!((low, r9), (format!("rorx {half}, r9d, 6"), format!("rorx r9d, {half}, 6")));
            assert_eq!(text(|code| code.and_small(register, 127)), format!("and {half}, 7Fh"));
            if register != 4 {
                assert_eq!(
                    text(|code| code.add_table(9, register, 0x100)),
                    format!("add r9, gs:[{name}*8+100h]")
                );
            }
            assert_eq!(
                text(|code| code.store_table(register, 1, 0x100)),
                format!("mov gs:[rcx*8+100h], {name}")
            );
        }
    }

    #[test]
    fn a_word_is_compared_with_zero() {
        assert_eq!(text(|code| code.compare_zero(0x40)), "cmp qword ptr gs:[40h], 0");
    }

    #[test]
    fn addresses_decode_to_what_they_say() {
        for base in 0..16u8 {
            for displacement in [0i64, 1, -128, 127, 128, -70000] {
                let plain = Address::based(base, displacement);
                let name = NAMES[base as usize];
                let suffix = match displacement {
                    0 => String::new(),
                    1 => "+1".into(),
                    -128 => "-80h".into(),
                    127 => "+7Fh".into(),
                    128 => "+80h".into(),
                    _ => "-11170h".into(),
                };
                assert_eq!(text(|code| code.lea(10, &plain)), format!("lea r10, [{name}{suffix}]"));
                assert_eq!(text(|code| code.load_program(1, &plain)), format!("mov rcx, [{name}{suffix}]"));
                let indexed = Address { index: Some(12), scale_log2: 2, ..plain };
                assert_eq!(text(|code| code.lea(10, &indexed)), format!("lea r10, [{name}+r12*4{suffix}]"));
            }
        }
        let only_index =
            Address { base: None, index: Some(6), scale_log2: 3, displacement: 0x10, short: false, fs: true };
        assert_eq!(text(|code| code.lea(0, &only_index)), "lea rax, [rsi*8+10h]");
        assert_eq!(text(|code| code.load_program(0, &only_index)), "mov rax, fs:[rsi*8+10h]");
    }
}
