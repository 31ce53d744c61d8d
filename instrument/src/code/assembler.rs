//! The forms that generated code consists of: the thread's context at `gs`, the program's operands,
//! and arithmetic that leaves flags alone.
//!
//! Thin words over the workspace's encoder, which knows how bytes look; what is written once stands
//! at its place and uses that directly ([`Assembler::code`]). Registers are hardware numbers 0–15
//! here, because sets of them are bit masks. All context accesses are `gs:[offset]` with a 32-bit
//! absolute offset and naturally aligned (a program may set EFLAGS.AC).

use super::decode::Decoded;
use crate::target::layout::context;
use assembler::vector::Width;
use assembler::{Alu, Condition, Gpr, Memory, Prefetch, Scale, Size, Vector};

/// A growing fragment of machine code.
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
    /// Displacement (absolute address where there is neither base nor index).
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
        self.base.map_or(0, |r| 1 << r) | self.index.map_or(0, |r| 1 << r)
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

/// `gs:[r + displacement]`.
#[inline(always)]
fn in_context_at(r: u8, displacement: i32) -> Memory {
    Memory::at(gpr(r)).plus(displacement).gs()
}

/// `gs:[index*8 + offset]`, a word of a table in the thread's context.
#[inline(always)]
pub(crate) fn in_context_table(index: u8, offset: u32) -> Memory {
    in_context(offset).index(gpr(index), Scale::Eight)
}

impl Assembler {
    /// The general encoder, for what has no name here.
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

    /// Bytes that something else encoded.
    #[inline(always)]
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        self.code.extend(bytes);
    }

    /// An instruction as the program has it.
    pub(crate) fn copy(&mut self, decoded: &Decoded) {
        self.code.extend_from_sixteen(&decoded.sixteen(), decoded.instruction.len());
    }

    /// `mov gs:[offset], r`
    pub(crate) fn store(&mut self, r: u8, offset: u32) {
        self.code.mov(Size::Qword, in_context(offset), gpr(r));
    }

    /// `mov r, gs:[offset]`
    pub(crate) fn load(&mut self, r: u8, offset: u32) {
        self.code.mov_from(Size::Qword, gpr(r), in_context(offset));
    }

    /// `cmp r, gs:[offset]`
    pub(crate) fn compare(&mut self, r: u8, offset: u32) {
        self.code.alu_from(Alu::Cmp, Size::Qword, gpr(r), in_context(offset));
    }

    /// `add r, gs:[offset]`
    pub(crate) fn add_context(&mut self, r: u8, offset: u32) {
        self.code.alu_from(Alu::Add, Size::Qword, gpr(r), in_context(offset));
    }

    /// `op r, value`, the value extended by its sign.
    pub(crate) fn alu_imm(&mut self, op: Alu, r: u8, value: i32) {
        self.code.alu_immediate(op, Size::Qword, gpr(r), value);
    }

    /// `and r, value`, the value extended by its sign.
    pub(crate) fn and_imm(&mut self, r: u8, value: i32) {
        self.alu_imm(Alu::And, r, value);
    }

    /// `cmp r, value`, the value extended by its sign.
    pub(crate) fn compare_imm(&mut self, r: u8, value: i32) {
        self.alu_imm(Alu::Cmp, r, value);
    }

    /// `sbb r, r`: all bits are the carry flag.
    pub(crate) fn spread_carry(&mut self, r: u8) {
        self.registers(Alu::Sbb, r, r);
    }

    /// `op to, from`
    pub(crate) fn registers(&mut self, op: Alu, to: u8, from: u8) {
        self.code.alu(op, Size::Qword, gpr(to), gpr(from));
    }

    /// `neg r`
    pub(crate) fn negate(&mut self, r: u8) {
        self.code.negate(Size::Qword, gpr(r));
    }

    /// `not r` (changes no flags)
    pub(crate) fn not(&mut self, r: u8) {
        self.code.not(Size::Qword, gpr(r));
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

    /// `mov r, value` in the shortest flag-free form.
    pub(crate) fn mov_imm(&mut self, r: u8, value: u64) {
        self.code.mov_immediate(gpr(r), value);
    }

    /// `mov to, from`
    pub(crate) fn mov(&mut self, to: u8, from: u8) {
        self.code.mov(Size::Qword, gpr(to), gpr(from));
    }

    /// `lea r, [r + add]`
    pub(crate) fn advance(&mut self, r: u8, add: i8) {
        self.code.lea(Size::Qword, gpr(r), Memory::at(gpr(r)).plus(i32::from(add)));
    }

    /// `pext to, from, gs:[offset]` (BMI2; changes no flags)
    pub(crate) fn extract(&mut self, to: u8, from: u8, offset: u32) {
        self.code.extract_bits(gpr(to), gpr(from), in_context(offset));
    }

    /// `rorx to32, from32, by` (BMI2; changes no flags)
    pub(crate) fn rotate(&mut self, to: u8, from: u8, by: u8) {
        self.code.rotate_right(Size::Dword, gpr(to), gpr(from), by);
    }

    /// `and r32, value`, at most 127.
    pub(crate) fn and_small(&mut self, r: u8, value: u8) {
        self.code.alu_immediate(Alu::And, Size::Dword, gpr(r), i32::from(value));
    }

    /// `pop rsp`
    pub(crate) fn pop_stack(&mut self) {
        self.code.pop(Gpr::RSP);
    }

    /// `add r, gs:[index*8 + offset]`
    pub(crate) fn add_table(&mut self, r: u8, index: u8, offset: u32) {
        self.code.alu_from(Alu::Add, Size::Qword, gpr(r), in_context_table(index, offset));
    }

    /// `mov r, gs:[index*8 + offset]`
    pub(crate) fn load_table(&mut self, r: u8, index: u8, offset: u32) {
        self.code.mov_from(Size::Qword, gpr(r), in_context_table(index, offset));
    }

    /// `mov gs:[index*8 + offset], r`
    pub(crate) fn store_table(&mut self, r: u8, index: u8, offset: u32) {
        self.code.mov(Size::Qword, in_context_table(index, offset), gpr(r));
    }

    /// `mov gs:[at + displacement], r`
    pub(crate) fn store_at(&mut self, r: u8, at: u8, displacement: u8) {
        self.code.mov(Size::Qword, in_context_at(at, i32::from(displacement)), gpr(r));
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

    /// `mov r32, gs:[offset]`
    pub(crate) fn load32(&mut self, r: u8, offset: u32) {
        self.code.mov_from(Size::Dword, gpr(r), in_context(offset));
    }

    /// `mov dword gs:[at + displacement], r32`
    pub(crate) fn store32_at(&mut self, r: u8, at: u8, displacement: u8) {
        self.code.mov(Size::Dword, in_context_at(at, i32::from(displacement)), gpr(r));
    }

    /// Stores vector register `v` whole at `gs:[offset]`.
    pub(crate) fn store_vector(&mut self, v: u8, width: Width, offset: u32) {
        self.code.vector_store(width, in_context(offset), Vector::numbered(v));
    }

    /// `lea r, address` without its segment base.
    pub(crate) fn lea(&mut self, r: u8, address: &Address) {
        let fits = i32::try_from(address.displacement).is_ok();
        if address.base.is_none() && address.index.is_none() && (!fits || address.short) {
            let value =
                if address.short { address.displacement as u32 as u64 } else { address.displacement as u64 };
            return self.mov_imm(r, value);
        }
        assert!(fits, "a displacement beside a register has 32 bits: {address:?}");
        let size = if address.short { Size::Dword } else { Size::Qword };
        self.code.lea(size, gpr(r), address.operand());
    }

    /// Adds the `fs` base to an address in `r`, where it has one. Needs free flags.
    pub(crate) fn add_segment(&mut self, r: u8, address: &Address) {
        if address.fs {
            self.add_context(r, context::FS_BASE);
        }
    }

    /// `mov r, [address]`, an 8-byte load of the program's memory with its segment.
    pub(crate) fn load_program(&mut self, r: u8, address: &Address) {
        let operand = address.operand();
        let operand = if address.fs { operand.fs() } else { operand };
        self.code.mov_from(Size::Qword, gpr(r), operand);
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

    /// Points the displacement at `at` to `target` (both positions in this fragment).
    pub(crate) fn patch(&mut self, at: usize, target: usize) {
        self.set_displacement(at, (target as i64 - (at as i64 + 4)) as i32);
    }

    /// Writes the displacement at `at`.
    pub(crate) fn set_displacement(&mut self, at: usize, value: i32) {
        self.code.set_dword(at, value);
    }

    /// Hands over to the host, which knows by the exit number in the context what for.
    pub(crate) fn stop(&mut self) {
        self.code.breakpoint();
    }

    /// Pads so that the four bytes starting `ahead` bytes from here do not cross a 64-byte line of
    /// the final address.
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
        let mut a = Assembler::default();
        build(&mut a);
        let mut decoder = Decoder::with_ip(64, a.bytes(), 0x1000, DecoderOptions::NONE);
        let instruction = decoder.decode();
        assert_eq!(decoder.position(), a.len(), "one instruction, all bytes used: {:x?}", a.bytes());
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
        for r in 0..16u8 {
            let n = NAMES[r as usize];
            assert_eq!(text(|a| a.store(r, 0x40)), format!("mov gs:[40h], {n}"));
            assert_eq!(text(|a| a.load(r, 0x40)), format!("mov {n}, gs:[40h]"));
            assert_eq!(text(|a| a.compare(r, 0x40)), format!("cmp {n}, gs:[40h]"));
            assert_eq!(text(|a| a.mov(r, 3)), format!("mov {n}, rbx"));
            assert_eq!(text(|a| a.spread_carry(r)), format!("sbb {n}, {n}"));
            assert_eq!(text(|a| a.registers(Alu::Add, r, 3)), format!("add {n}, rbx"));
            assert_eq!(text(|a| a.registers(Alu::And, 9, r)), format!("and r9, {n}"));
            assert_eq!(text(|a| a.mov(9, r)), format!("mov r9, {n}"));
            assert_eq!(text(|a| a.advance(r, 16)), format!("lea {n}, [{n}+10h]"));
            assert_eq!(text(|a| a.store_at(r, 13, 8)), format!("mov gs:[r13+8], {n}"));
            assert_eq!(text(|a| a.store_at(2, r, 8)), format!("mov gs:[{n}+8], rdx"));
            assert_eq!(text(|a| a.store_imm_at(r, 8, 7)), format!("mov dword ptr gs:[{n}+8], 7"));
            assert_eq!(text(|a| a.mov_imm(r, 1 << 40)), format!("mov {n}, 10000000000h"));
            assert_eq!(text(|a| a.extract(r, 9, 0x40)), format!("pext {n}, r9, gs:[40h]"));
            assert_eq!(text(|a| a.extract(9, r, 0x40)), format!("pext r9, {n}, gs:[40h]"));
            let (low, r9) = (text(|a| a.rotate(r, 9, 6)), text(|a| a.rotate(9, r, 6)));
            let half = NAMES_32[r as usize];
            assert_eq!((low, r9), (format!("rorx {half}, r9d, 6"), format!("rorx r9d, {half}, 6")));
            assert_eq!(text(|a| a.and_small(r, 127)), format!("and {half}, 7Fh"));
            if r != 4 {
                assert_eq!(text(|a| a.add_table(9, r, 0x100)), format!("add r9, gs:[{n}*8+100h]"));
            }
            assert_eq!(text(|a| a.store_table(r, 1, 0x100)), format!("mov gs:[rcx*8+100h], {n}"));
        }
    }

    #[test]
    fn a_word_is_compared_with_zero() {
        assert_eq!(text(|a| a.compare_zero(0x40)), "cmp qword ptr gs:[40h], 0");
    }

    #[test]
    fn addresses_decode_to_what_they_say() {
        for base in 0..16u8 {
            for displacement in [0i64, 1, -128, 127, 128, -70000] {
                let plain = Address::based(base, displacement);
                let n = NAMES[base as usize];
                let d = match displacement {
                    0 => String::new(),
                    1 => "+1".into(),
                    -128 => "-80h".into(),
                    127 => "+7Fh".into(),
                    128 => "+80h".into(),
                    _ => "-11170h".into(),
                };
                assert_eq!(text(|a| a.lea(10, &plain)), format!("lea r10, [{n}{d}]"));
                assert_eq!(text(|a| a.load_program(1, &plain)), format!("mov rcx, [{n}{d}]"));
                let indexed = Address { index: Some(12), scale_log2: 2, ..plain };
                assert_eq!(text(|a| a.lea(10, &indexed)), format!("lea r10, [{n}+r12*4{d}]"));
            }
        }
        let only_index =
            Address { base: None, index: Some(6), scale_log2: 3, displacement: 0x10, short: false, fs: true };
        assert_eq!(text(|a| a.lea(0, &only_index)), "lea rax, [rsi*8+10h]");
        assert_eq!(text(|a| a.load_program(0, &only_index)), "mov rax, fs:[rsi*8+10h]");
    }
}
