//! Encodes the few dozen instruction forms that generated code consists of, into a byte vector.
//!
//! An own encoder because fragments are written millions of times per run: these forms cost a few nanoseconds each, a general
//! encoder fifty. `tests/assembler` in this file decodes every form again with `iced-x86`. Registers are hardware numbers 0–15.
//! All context accesses are `gs:[offset]` with a 32-bit absolute offset and naturally aligned (a program may set EFLAGS.AC).

use crate::decode::Decoded;

/// A growing fragment of machine code.
#[derive(Default)]
pub(crate) struct Assembler {
    /// The bytes so far.
    pub(crate) bytes: Vec<u8>,
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
}

/// Prefix fields of a VEX instruction.
#[derive(Clone, Copy)]
pub(crate) struct Vex {
    pub(crate) map: u8,
    pub(crate) pp: u8,
    pub(crate) w: u8,
    pub(crate) l: u8,
}

/// Which width of a vector register to store.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum VectorWidth {
    Ymm,
    Zmm,
}

impl Assembler {
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes as they are. In line, because nearly all are of a constant number: a store or two instead of a call.
    #[inline(always)]
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// An instruction as the program has it.
    pub(crate) fn copy(&mut self, decoded: &Decoded) {
        let end = self.len() + decoded.i.len();
        self.raw(&decoded.bytes);
        self.bytes.truncate(end);
    }

    #[inline(always)]
    pub(crate) fn imm32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// `op r64, gs:[offset]` for the plain one-byte opcodes (or the store direction).
    fn gs_op(&mut self, opcode: u8, r: u8, offset: u32) {
        self.raw(&[0x65, 0x48 | (r >> 3) << 2, opcode, 0x04 | (r & 7) << 3, 0x25]);
        self.imm32(offset);
    }

    /// `mov gs:[offset], r`
    pub(crate) fn store(&mut self, r: u8, offset: u32) {
        self.gs_op(0x89, r, offset);
    }

    /// `mov r, gs:[offset]`
    pub(crate) fn load(&mut self, r: u8, offset: u32) {
        self.gs_op(0x8b, r, offset);
    }

    /// `cmp r, gs:[offset]`
    pub(crate) fn compare(&mut self, r: u8, offset: u32) {
        self.gs_op(0x3b, r, offset);
    }

    /// `add r, gs:[offset]`
    pub(crate) fn add_context(&mut self, r: u8, offset: u32) {
        self.gs_op(0x03, r, offset);
    }

    /// `and r, sign-extended value`
    pub(crate) fn and_imm(&mut self, r: u8, value: i32) {
        if let Ok(short) = i8::try_from(value) {
            return self.raw(&[0x48 | r >> 3, 0x83, 0xe0 | (r & 7), short as u8]);
        }
        self.raw(&[0x48 | r >> 3, 0x81, 0xe0 | (r & 7)]);
        self.imm32(value as u32);
    }

    /// `cmp r, sign-extended value`
    pub(crate) fn compare_imm(&mut self, r: u8, value: i32) {
        if let Ok(short) = i8::try_from(value) {
            return self.raw(&[0x48 | r >> 3, 0x83, 0xf8 | (r & 7), short as u8]);
        }
        self.raw(&[0x48 | r >> 3, 0x81, 0xf8 | (r & 7)]);
        self.imm32(value as u32);
    }

    /// `sbb r, r`: all bits are the carry flag.
    pub(crate) fn spread_carry(&mut self, r: u8) {
        self.raw(&[0x48 | ((r >> 3) * 5), 0x19, 0xc0 | ((r & 7) * 9)]);
    }

    /// `op to, from` for the plain one-byte opcodes of 64-bit registers.
    pub(crate) fn registers(&mut self, opcode: u8, to: u8, from: u8) {
        self.raw(&[0x48 | (from >> 3) << 2 | to >> 3, opcode, 0xc0 | (from & 7) << 3 | (to & 7)]);
    }

    /// `neg r`
    pub(crate) fn negate(&mut self, r: u8) {
        self.raw(&[0x48 | r >> 3, 0xf7, 0xd8 | (r & 7)]);
    }

    /// `not r` (changes no flags)
    pub(crate) fn not(&mut self, r: u8) {
        self.raw(&[0x48 | r >> 3, 0xf7, 0xd0 | (r & 7)]);
    }

    /// `mov qword gs:[index*8 + offset], 0`
    pub(crate) fn clear_table(&mut self, index: u8, offset: u32) {
        self.raw(&[0x65, 0x48 | (index >> 3) << 1, 0xc7, 0x04, 0xc5 | (index & 7) << 3]);
        self.imm32(offset);
        self.imm32(0);
    }

    /// `mov dword gs:[offset], value`
    pub(crate) fn store_imm32(&mut self, offset: u32, value: u32) {
        self.raw(&[0x65, 0xc7, 0x04, 0x25]);
        self.imm32(offset);
        self.imm32(value);
    }

    /// `mov qword gs:[offset], sign-extended value`
    pub(crate) fn store_imm64(&mut self, offset: u32, value: i32) {
        self.raw(&[0x65, 0x48, 0xc7, 0x04, 0x25]);
        self.imm32(offset);
        self.imm32(value as u32);
    }

    /// `cmp dword gs:[offset], value`
    pub(crate) fn compare_imm32(&mut self, offset: u32, value: u32) {
        self.raw(&[0x65, 0x81, 0x3c, 0x25]);
        self.imm32(offset);
        self.imm32(value);
    }

    /// `test eax, value`
    pub(crate) fn test_eax(&mut self, value: u32) {
        self.raw(&[0xa9]);
        self.imm32(value);
    }

    /// `cmp qword gs:[offset], 0`
    pub(crate) fn compare_zero(&mut self, offset: u32) {
        self.raw(&[0x65, 0x48, 0x83, 0x3c, 0x25]);
        self.imm32(offset);
        self.raw(&[0]);
    }

    /// `add qword gs:[offset], 1`
    pub(crate) fn increment(&mut self, offset: u32) {
        self.raw(&[0x65, 0x48, 0x83, 0x04, 0x25]);
        self.imm32(offset);
        self.raw(&[1]);
    }

    /// `jmp gs:[offset]`
    pub(crate) fn jump_context(&mut self, offset: u32) {
        self.raw(&[0x65, 0xff, 0x24, 0x25]);
        self.imm32(offset);
    }

    /// `mov r, value` in the shortest flag-free form.
    pub(crate) fn mov_imm(&mut self, r: u8, value: u64) {
        if value <= u64::from(u32::MAX) {
            if r >= 8 {
                self.raw(&[0x41]);
            }
            self.raw(&[0xb8 | (r & 7)]);
            self.imm32(value as u32);
        } else {
            self.raw(&[0x48 | r >> 3, 0xb8 | (r & 7)]);
            self.raw(&value.to_le_bytes());
        }
    }

    /// `mov to, from`
    pub(crate) fn mov(&mut self, to: u8, from: u8) {
        self.raw(&[0x48 | (from >> 3) << 2 | to >> 3, 0x89, 0xc0 | (from & 7) << 3 | (to & 7)]);
    }

    /// `lea r, [r + add]`
    pub(crate) fn advance(&mut self, r: u8, add: i8) {
        self.raw(&[0x48 | ((r >> 3) * 5), 0x8d, 0x40 | ((r & 7) * 9)]);
        if r & 7 == 4 {
            self.raw(&[0x24]);
        }
        self.raw(&[add as u8]);
    }

    /// `pext to, from, gs:[offset]` (BMI2; changes no flags)
    pub(crate) fn extract(&mut self, to: u8, from: u8, offset: u32) {
        let inverted = |r: u8| (!r >> 3) & 1;
        self.raw(&[
            0x65,
            0xc4,
            inverted(to) << 7 | 0x62,
            0x82 | (!from & 15) << 3,
            0xf5,
            0x04 | (to & 7) << 3,
            0x25,
        ]);
        self.imm32(offset);
    }

    /// `rorx to32, from32, by` (BMI2; changes no flags)
    pub(crate) fn rotate(&mut self, to: u8, from: u8, by: u8) {
        let inverted = |r: u8| (!r >> 3) & 1;
        self.raw(&[0xc4, inverted(to) << 7 | 0x43 | inverted(from) << 5, 0x7b, 0xf0]);
        self.raw(&[0xc0 | (to & 7) << 3 | (from & 7), by]);
    }

    /// `and r32, value`, at most 127.
    pub(crate) fn and_small(&mut self, r: u8, value: u8) {
        if r >= 8 {
            self.raw(&[0x41]);
        }
        self.raw(&[0x83, 0xe0 | (r & 7), value]);
    }

    /// `pop rsp`
    pub(crate) fn pop_stack(&mut self) {
        self.raw(&[0x5c]);
    }

    /// `op r, gs:[index*8 + offset]` (0x03 add, 0x8b mov, 0x89 store)
    pub(crate) fn table(&mut self, opcode: u8, r: u8, index: u8, offset: u32) {
        let rex = 0x48 | (r >> 3) << 2 | (index >> 3) << 1;
        self.raw(&[0x65, rex, opcode, 0x04 | (r & 7) << 3, 0xc5 | (index & 7) << 3]);
        self.imm32(offset);
    }

    /// `mov gs:[at + displacement], r`
    pub(crate) fn store_at(&mut self, r: u8, at: u8, displacement: u8) {
        self.raw(&[0x65, 0x48 | (r >> 3) << 2 | at >> 3, 0x89]);
        self.memory(r, &Address::based(at, i64::from(displacement)));
    }

    /// `prefetchw gs:[at + displacement]`
    pub(crate) fn prefetch_write(&mut self, at: u8, displacement: i32) {
        self.raw(&[0x65]);
        if at >= 8 {
            self.raw(&[0x41]);
        }
        self.raw(&[0x0f, 0x0d]);
        self.memory(1, &Address::based(at, i64::from(displacement)));
    }

    /// `mov qword gs:[at + displacement], sign-extended value`
    pub(crate) fn store_imm64_at(&mut self, at: u8, displacement: u8, value: i32) {
        self.raw(&[0x65, 0x48 | at >> 3, 0xc7]);
        self.memory(0, &Address::based(at, i64::from(displacement)));
        self.imm32(value as u32);
    }

    /// `mov dword gs:[at + displacement], value`
    pub(crate) fn store_imm_at(&mut self, at: u8, displacement: u8, value: u32) {
        self.raw(&[0x65]);
        if at >= 8 {
            self.raw(&[0x41]);
        }
        self.raw(&[0xc7]);
        self.memory(0, &Address::based(at, i64::from(displacement)));
        self.imm32(value);
    }

    /// `movzx r32, byte/word gs:[offset]` (0xb6 byte, 0xb7 word)
    pub(crate) fn load_narrow(&mut self, opcode: u8, r: u8, offset: u32) {
        self.raw(&[0x65, 0x40 | (r >> 3) << 2, 0x0f, opcode, 0x04 | (r & 7) << 3, 0x25]);
        self.imm32(offset);
    }

    /// `mov r32, gs:[offset]`
    pub(crate) fn load32(&mut self, r: u8, offset: u32) {
        self.raw(&[0x65, 0x40 | (r >> 3) << 2, 0x8b, 0x04 | (r & 7) << 3, 0x25]);
        self.imm32(offset);
    }

    /// `mov dword gs:[at + displacement], r32`
    pub(crate) fn store32_at(&mut self, r: u8, at: u8, displacement: u8) {
        self.raw(&[0x65, 0x40 | (r >> 3) << 2 | at >> 3, 0x89]);
        self.memory(r, &Address::based(at, i64::from(displacement)));
    }

    /// A three-byte VEX instruction between registers: `map` 1–3, `pp` 0–3, W, L as given.
    pub(crate) fn vex_registers(&mut self, spec: Vex, opcode: u8, modrm_reg: u8, modrm_rm: u8) {
        let inverted = |r: u8| (!r >> 3) & 1;
        self.raw(&[0xc4, inverted(modrm_reg) << 7 | 0x40 | inverted(modrm_rm) << 5 | spec.map]);
        self.raw(&[spec.w << 7 | 0x78 | spec.l << 2 | spec.pp, opcode]);
        self.raw(&[0xc0 | (modrm_reg & 7) << 3 | (modrm_rm & 7)]);
    }

    /// Stores vector register `v` whole at `gs:[offset]`: zmm where `wide`, else ymm (VEX, v < 16).
    pub(crate) fn store_vector(&mut self, v: u8, width: VectorWidth, offset: u32) {
        match width {
            VectorWidth::Zmm => {
                let (r, r2) = ((!v >> 3) & 1, (!v >> 4) & 1);
                self.raw(&[0x65, 0x62, r << 7 | 0x60 | r2 << 4 | 1, 0xfe, 0x48, 0x7f]);
            }
            VectorWidth::Ymm => {
                self.raw(&[0x65, 0xc4, ((!v >> 3) & 1) << 7 | 0x61, 0x7e, 0x7f]);
            }
        }
        self.raw(&[0x04 | (v & 7) << 3, 0x25]);
        self.imm32(offset);
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
        if address.short {
            self.raw(&[0x67]);
        }
        let w = if address.short { 0x40 } else { 0x48 };
        let (b, x) = (address.base.unwrap_or(0), address.index.unwrap_or(0));
        self.raw(&[w | (r >> 3) << 2 | (x >> 3) << 1 | b >> 3, 0x8d]);
        self.memory(r, address);
    }

    /// ModRM, SIB and displacement of `address` with `r` in the reg field (REX is the caller's).
    fn memory(&mut self, r: u8, address: &Address) {
        let reg = (r & 7) << 3;
        let displacement = address.displacement as i32;
        let Some(base) = address.base else {
            let index = address.index.map_or(4, |x| x & 7);
            self.raw(&[0x04 | reg, address.scale_log2 << 6 | index << 3 | 5]);
            return self.imm32(displacement as u32);
        };
        let short = i8::try_from(displacement).is_ok();
        let mode = match (displacement, short) {
            (0, _) if base & 7 != 5 => 0x00,
            (_, true) => 0x40,
            _ => 0x80,
        };
        match address.index {
            None if base & 7 != 4 => self.raw(&[mode | reg | (base & 7)]),
            None => self.raw(&[mode | reg | 4, 0x24]),
            Some(x) => self.raw(&[mode | reg | 4, address.scale_log2 << 6 | (x & 7) << 3 | (base & 7)]),
        }
        match mode {
            0x40 => self.raw(&[displacement as u8]),
            0x80 => self.imm32(displacement as u32),
            _ => {}
        }
    }

    /// `mov r, [address]`, an 8-byte load of the program's memory with its segment.
    pub(crate) fn load_program(&mut self, r: u8, address: &Address) {
        if address.fs {
            self.raw(&[0x64]);
        }
        if address.short {
            self.raw(&[0x67]);
        }
        let (b, x) = (address.base.unwrap_or(0), address.index.unwrap_or(0));
        self.raw(&[0x48 | (r >> 3) << 2 | (x >> 3) << 1 | b >> 3, 0x8b]);
        self.memory(r, address);
    }

    /// `jmp rel32` with a displacement to be patched; returns the position of the displacement.
    pub(crate) fn jump(&mut self) -> usize {
        self.raw(&[0xe9, 0, 0, 0, 0]);
        self.len() - 4
    }

    /// `call rel32`; returns the position of the displacement.
    pub(crate) fn call(&mut self) -> usize {
        self.raw(&[0xe8, 0, 0, 0, 0]);
        self.len() - 4
    }

    /// `jcc rel32`; `condition` is the hardware condition code 0–15.
    pub(crate) fn jump_if(&mut self, condition: u8) -> usize {
        self.raw(&[0x0f, 0x80 | condition, 0, 0, 0, 0]);
        self.len() - 4
    }

    /// Points the displacement at `at` to `target` (both positions in this fragment).
    pub(crate) fn patch(&mut self, at: usize, target: usize) {
        let displacement = (target as i64 - (at as i64 + 4)) as i32;
        self.bytes[at..at + 4].copy_from_slice(&displacement.to_le_bytes());
    }

    /// Pads so that the four bytes starting `ahead` bytes from here do not cross a 64-byte line of the final address.
    pub(crate) fn align_patch(&mut self, base: u64, ahead: u64) {
        while (base + self.len() as u64 + ahead) % 64 > 60 {
            self.raw(&[0x90]);
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
        let mut decoder = Decoder::with_ip(64, &a.bytes, 0x1000, DecoderOptions::NONE);
        let instruction = decoder.decode();
        assert_eq!(decoder.position(), a.len(), "one instruction, all bytes used: {:x?}", a.bytes);
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
            assert_eq!(text(|a| a.registers(0x01, r, 3)), format!("add {n}, rbx"));
            assert_eq!(text(|a| a.registers(0x21, 9, r)), format!("and r9, {n}"));
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
                assert_eq!(text(|a| a.table(0x03, 9, r, 0x100)), format!("add r9, gs:[{n}*8+100h]"));
            }
            assert_eq!(text(|a| a.table(0x89, r, 1, 0x100)), format!("mov gs:[rcx*8+100h], {n}"));
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
