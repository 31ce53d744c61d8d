//! The encoder: the few instructions that translated programs are made of, straight to bytes.
//!
//! AVX-512 in EVEX form on 512-bit registers, mask moves in VEX form, and a handful of integer instructions. A general assembler's tables
//! cost half a millisecond at their first use; this costs nanoseconds per instruction. Its tests decode every form with such an assembler's decoder.
//! Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, sections 2.3, 2.7.

/// A general register by number; `rsp`, `rbp`, `r12` and `r13` as a base would need other forms and are not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gpr(pub(crate) u8);

pub(crate) const RAX: Gpr = Gpr(0);
pub(crate) const RDX: Gpr = Gpr(2);
pub(crate) const RSI: Gpr = Gpr(6);
pub(crate) const RDI: Gpr = Gpr(7);
pub(crate) const R8: Gpr = Gpr(8);
pub(crate) const R9: Gpr = Gpr(9);
pub(crate) const R10: Gpr = Gpr(10);
pub(crate) const R11: Gpr = Gpr(11);

/// A place of 64 bytes in memory: base register plus distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) base: Gpr,
    pub(crate) bytes: i32,
}

/// The operand that may be a vector register or memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    Register(u8),
    Memory(Place),
}

/// An instruction of EVEX form by prefix, map, opcode and W; vectors have 512 bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evex {
    prefix: u8,
    map: u8,
    opcode: u8,
    wide: u8,
}

const fn evex(prefix: u8, map: u8, opcode: u8) -> Evex {
    Evex { prefix, map, opcode, wide: 1 }
}

pub(crate) const VPANDQ: Evex = evex(1, 1, 0xDB);
pub(crate) const VPANDNQ: Evex = evex(1, 1, 0xDF);
pub(crate) const VPORQ: Evex = evex(1, 1, 0xEB);
pub(crate) const VPXORQ: Evex = evex(1, 1, 0xEF);
pub(crate) const VPADDQ: Evex = evex(1, 1, 0xD4);
pub(crate) const VPSUBQ: Evex = evex(1, 1, 0xFB);
pub(crate) const VPTERNLOGQ: Evex = evex(1, 3, 0x25);
pub(crate) const VALIGNQ: Evex = evex(1, 3, 0x03);
pub(crate) const VPSHLDQ: Evex = evex(1, 3, 0x71);
pub(crate) const VPERMB: Evex = Evex { wide: 0, ..evex(1, 2, 0x8D) };
pub(crate) const GF2P8AFFINEQB: Evex = evex(1, 3, 0xCE);
pub(crate) const VPUNPCKLQDQ: Evex = evex(1, 1, 0x6C);
pub(crate) const VPUNPCKHQDQ: Evex = evex(1, 1, 0x6D);
pub(crate) const VSHUFI64X2: Evex = evex(1, 3, 0x43);
const VMOVDQU64_LOAD: Evex = evex(2, 1, 0x6F);
const VMOVDQU64_STORE: Evex = evex(2, 1, 0x7F);
const VPCMPUQ: Evex = evex(1, 3, 0x1E);
const VPCMPEQQ: Evex = evex(1, 2, 0x29);
const VPTESTMQ: Evex = evex(1, 2, 0x27);

/// An instruction of VEX form.
#[derive(Clone, Copy, Debug)]
struct Vex {
    prefix: u8,
    map: u8,
    opcode: u8,
    wide: u8,
}

const VPERMQ: Vex = Vex { prefix: 1, map: 3, opcode: 0x00, wide: 1 };
const VPBLENDD: Vex = Vex { prefix: 1, map: 3, opcode: 0x02, wide: 0 };
const VPTEST: Vex = Vex { prefix: 1, map: 2, opcode: 0x17, wide: 0 };
const SHIFT_WORDS: Vex = Vex { prefix: 1, map: 1, opcode: 0x73, wide: 0 };
const VMOVMSKPD: Vex = Vex { prefix: 1, map: 1, opcode: 0x50, wide: 0 };

/// A jump whose target is not known yet.
#[must_use]
pub(crate) struct Jump(usize);

/// When a jump is taken.
#[derive(Clone, Copy)]
pub(crate) enum When {
    Always,
    Zero,
    NotZero,
}

/// The vectors that code is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Target {
    /// 512 bits, EVEX forms.
    #[default]
    Avx512,
    /// 256 bits, VEX forms.
    Avx2,
}

/// Machine code under construction.
#[derive(Default)]
pub(crate) struct Code {
    bytes: Vec<u8>,
    target: Target,
}

impl Code {
    pub(crate) fn new(target: Target) -> Code {
        Code { bytes: Vec::new(), target }
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub(crate) fn here(&self) -> usize {
        self.bytes.len()
    }

    fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn modrm(&mut self, reg: u8, operand: Operand, scale: i32) {
        let reg = (reg & 7) << 3;
        match operand {
            Operand::Register(register) => self.put(&[0xC0 | reg | register & 7]),
            Operand::Memory(Place { base, bytes }) => match i8::try_from(bytes / scale) {
                Ok(short) if bytes % scale == 0 => self.put(&[0x40 | reg | base.0 & 7, short as u8]),
                _ => {
                    self.put(&[0x80 | reg | base.0 & 7]);
                    self.put(&bytes.to_le_bytes());
                }
            },
        }
    }

    /// The VEX form of the same instruction, on 256 bits.
    fn vex(&mut self, what: Vex, reg: u8, first: u8, second: Operand) {
        let bit = |number: u8| number >> 3 & 1 ^ 1;
        let base = match second {
            Operand::Register(register) => register,
            Operand::Memory(place) => place.base.0,
        };
        let p1 = bit(reg) << 7 | 1 << 6 | bit(base) << 5 | what.map;
        let p2 = what.wide << 7 | (!first & 15) << 3 | 4 | what.prefix;
        self.put(&[0xC4, p1, p2, what.opcode]);
        self.modrm(reg, second, 1);
    }

    fn evex(&mut self, what: Evex, reg: u8, first: u8, second: Operand, mask: u8) {
        if self.target == Target::Avx2 {
            let Evex { prefix, map, opcode, .. } = what;
            return self.vex(Vex { prefix, map, opcode, wide: 0 }, reg, first, second);
        }
        let bit = |number: u8, at: u8| number >> at & 1 ^ 1;
        let (x, b) = match second {
            Operand::Register(register) => (bit(register, 4), bit(register, 3)),
            Operand::Memory(place) => (1, bit(place.base.0, 3)),
        };
        let p0 = bit(reg, 3) << 7 | x << 6 | b << 5 | bit(reg, 4) << 4 | what.map;
        let p1 = what.wide << 7 | (!first & 15) << 3 | 4 | what.prefix;
        let p2 = 2 << 5 | bit(first, 4) << 3 | mask;
        self.put(&[0x62, p0, p1, p2, what.opcode]);
        self.modrm(reg, second, 64);
    }

    /// `to ← first op second`.
    pub(crate) fn vector(&mut self, what: Evex, to: u8, first: u8, second: Operand) {
        self.evex(what, to, first, second, 0);
    }

    /// The same with an immediate.
    pub(crate) fn vector_immediate(&mut self, what: Evex, to: u8, first: u8, second: Operand, immediate: u8) {
        self.evex(what, to, first, second, 0);
        self.put(&[immediate]);
    }

    /// The same where mask register `mask` has a bit; other words stay.
    pub(crate) fn vector_masked(&mut self, what: Evex, to: u8, first: u8, second: Operand, mask: u8) {
        self.evex(what, to, first, second, mask);
    }

    pub(crate) fn load(&mut self, to: u8, from: Operand) {
        self.evex(VMOVDQU64_LOAD, to, 0, from, 0);
    }

    pub(crate) fn store(&mut self, to: Place, from: u8) {
        self.evex(VMOVDQU64_STORE, from, 0, Operand::Memory(to), 0);
    }

    /// Mask `to` ← words of `first` below those of `second`, unsigned.
    pub(crate) fn less(&mut self, to: u8, first: u8, second: Operand) {
        self.evex(VPCMPUQ, to, first, second, 0);
        self.put(&[1]);
    }

    pub(crate) fn equal(&mut self, to: u8, first: u8, second: Operand) {
        self.evex(VPCMPEQQ, to, first, second, 0);
    }

    /// Sets the zero flag when `vector` has no bit. Uses mask register 1.
    pub(crate) fn test_any(&mut self, vector: u8) {
        if self.target == Target::Avx2 {
            return self.vex(VPTEST, vector, 0, Operand::Register(vector));
        }
        self.evex(VPTESTMQ, 1, vector, Operand::Register(vector), 0);
        self.put(&[0xC5, 0xF9, 0x98, 0xC9]); // kortestb k1, k1
    }

    /// Words moved up by one, the last one to the front.
    pub(crate) fn rotate_words(&mut self, to: u8, from: u8) {
        self.vex(VPERMQ, to, 0, Operand::Register(from));
        self.put(&[0x93]);
    }

    /// `to ← from` with its first word from memory.
    pub(crate) fn replace_first_word(&mut self, to: u8, from: u8, first: Place) {
        self.vex(VPBLENDD, to, from, Operand::Memory(first));
        self.put(&[3]);
    }

    /// Each word `<< by`.
    pub(crate) fn shift_left(&mut self, to: u8, from: u8, by: u8) {
        self.vex(SHIFT_WORDS, 6, to, Operand::Register(from));
        self.put(&[by]);
    }

    /// Each word `>> by`.
    pub(crate) fn shift_right(&mut self, to: u8, from: u8, by: u8) {
        self.vex(SHIFT_WORDS, 2, to, Operand::Register(from));
        self.put(&[by]);
    }

    /// The high bits of four words.
    pub(crate) fn high_bits(&mut self, to: Gpr, from: u8) {
        self.vex(VMOVMSKPD, to.0, 0, Operand::Register(from));
    }

    /// `r9 ← r8 + 64·(eax & 15)`, then `eax ← eax >> 4`.
    pub(crate) fn address_by_nibble(&mut self) {
        self.put(&[0x41, 0x89, 0xC1]); // mov r9d, eax
        self.put(&[0x41, 0x83, 0xE1, 0x0F]); // and r9d, 15
        self.put(&[0x41, 0xC1, 0xE1, 0x06]); // shl r9d, 6
        self.put(&[0x4D, 0x01, 0xC1]); // add r9, r8
        self.put(&[0xC1, 0xE8, 0x04]); // shr eax, 4
    }

    /// `to ← mask`, eight bits.
    pub(crate) fn move_from_mask(&mut self, to: Gpr, mask: u8) {
        let r = (to.0 >> 3 ^ 1) << 7;
        self.put(&[0xC5, r | 0x79, 0x93, 0xC0 | (to.0 & 7) << 3 | mask]);
    }

    /// `mask ← eax`, eight bits.
    pub(crate) fn move_to_mask(&mut self, mask: u8) {
        self.put(&[0xC5, 0xF9, 0x92, 0xC0 | mask << 3]);
    }

    fn integer(&mut self, opcode: u8, reg: Gpr, operand: Operand) {
        let base = match operand {
            Operand::Register(register) => register,
            Operand::Memory(place) => place.base.0,
        };
        let rex = 0x40 | (reg.0 >> 3) << 2 | base >> 3;
        if rex != 0x40 {
            self.put(&[rex]);
        }
        self.put(&[opcode]);
        self.modrm(reg.0, operand, 1);
    }

    /// 32 bits from memory.
    pub(crate) fn load_integer(&mut self, to: Gpr, from: Place) {
        self.integer(0x8B, to, Operand::Memory(from));
    }

    /// 32 bits to memory.
    pub(crate) fn store_integer(&mut self, to: Place, from: Gpr) {
        self.integer(0x89, from, Operand::Memory(to));
    }

    /// 32 bits of memory are united with a register.
    pub(crate) fn unite_integer(&mut self, to: Place, from: Gpr) {
        self.integer(0x09, from, Operand::Memory(to));
    }

    pub(crate) fn add(&mut self, to: Gpr, from: Gpr) {
        self.integer(0x03, to, Operand::Register(from.0));
    }

    pub(crate) fn xor(&mut self, to: Gpr, from: Gpr) {
        self.integer(0x33, to, Operand::Register(from.0));
    }

    /// `eax ← 2·eax + r10d`.
    pub(crate) fn double_and_add(&mut self) {
        self.put(&[0x41, 0x8D, 0x04, 0x42]); // lea eax, [r10 + rax*2]
    }

    /// `eax ← eax >> 8`.
    pub(crate) fn shift_out_byte(&mut self) {
        self.put(&[0xC1, 0xE8, 0x08]);
    }

    /// 64 bits of a pointer register.
    pub(crate) fn add_bytes(&mut self, to: Gpr, bytes: u8) {
        self.put(&[0x48, 0x83, 0xC0 | to.0, bytes]);
    }

    /// The same for more bytes than a signed byte counts.
    pub(crate) fn add_many_bytes(&mut self, to: Gpr, bytes: i32) {
        self.put(&[0x48 | to.0 >> 3, 0x81, 0xC0 | to.0 & 7]);
        self.put(&bytes.to_le_bytes());
    }

    /// `r11 ← r9`.
    pub(crate) fn keep_sixth_argument(&mut self) {
        self.put(&[0x4D, 0x89, 0xCB]);
    }

    /// Asks for a line of memory.
    pub(crate) fn prefetch(&mut self, place: Place) {
        self.put(&[0x40 | place.base.0 >> 3, 0x0F, 0x18]);
        self.modrm(1, Operand::Memory(place), 1);
    }

    /// Compares 64 bits of memory with zero.
    pub(crate) fn compare_zero(&mut self, place: Place) {
        self.put(&[0x48 | place.base.0 >> 3, 0x83]);
        self.modrm(7, Operand::Memory(place), 1);
        self.put(&[0]);
    }

    /// Copies 64 bits of memory. Uses `rax`.
    pub(crate) fn copy_word(&mut self, to: Place, from: Place) {
        self.put(&[0x48 | from.base.0 >> 3, 0x8B]);
        self.modrm(RAX.0, Operand::Memory(from), 1);
        self.put(&[0x48 | to.base.0 >> 3, 0x89]);
        self.modrm(RAX.0, Operand::Memory(to), 1);
    }

    /// Counts `rcx` down and sets the zero flag.
    pub(crate) fn count_down(&mut self) {
        self.put(&[0x48, 0xFF, 0xC9]);
    }

    pub(crate) fn jump(&mut self, when: When) -> Jump {
        match when {
            When::Always => self.put(&[0xE9]),
            When::Zero => self.put(&[0x0F, 0x84]),
            When::NotZero => self.put(&[0x0F, 0x85]),
        }
        self.put(&[0; 4]);
        Jump(self.here())
    }

    /// The jump lands here.
    pub(crate) fn land(&mut self, jump: Jump) {
        self.land_at(jump, self.here());
    }

    pub(crate) fn land_at(&mut self, jump: Jump, target: usize) {
        let distance = (target as i64 - jump.0 as i64) as i32;
        self.bytes[jump.0 - 4..jump.0].copy_from_slice(&distance.to_le_bytes());
    }

    pub(crate) fn return_to_caller(&mut self) {
        self.put(&[0xC5, 0xF8, 0x77, 0xC3]); // vzeroupper; ret
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};

    fn decoded(code: Code) -> Vec<String> {
        let bytes = code.into_bytes();
        let mut formatter = IntelFormatter::new();
        formatter.options_mut().set_space_after_operand_separator(true);
        let instructions = Decoder::with_ip(64, &bytes, 0, DecoderOptions::NONE).into_iter();
        let written = instructions.map(|instruction| {
            let mut text = String::new();
            formatter.format(&instruction, &mut text);
            text
        });
        written.collect()
    }

    fn one(emit: impl FnOnce(&mut Code)) -> String {
        let mut code = Code::default();
        emit(&mut code);
        decoded(code).join("; ")
    }

    const NAMED: &[(Evex, &str)] = &[
        (VPANDQ, "vpandq"),
        (VPANDNQ, "vpandnq"),
        (VPORQ, "vporq"),
        (VPXORQ, "vpxorq"),
        (VPADDQ, "vpaddq"),
        (VPSUBQ, "vpsubq"),
    ];

    #[test]
    fn registers_and_places_are_all_encoded() {
        for &(what, name) in NAMED {
            for register in [0, 1, 7, 8, 15, 16, 23, 24, 31] {
                let other = 31 - register;
                let text = one(|code| code.vector(what, register, other, Operand::Register(register)));
                assert_eq!(text, format!("{name} zmm{register}, zmm{other}, zmm{register}"));
            }
        }
        for (base, name) in [(RAX, "rax"), (RDX, "rdx"), (RSI, "rsi"), (RDI, "rdi"), (R8, "r8"), (R9, "r9")] {
            for bytes in [0, 8, -8, 64, -64, 127 * 64, 128 * 64, 1088 * 7 - 8, 1 << 20] {
                let place = Place { base, bytes };
                let sign = if bytes < 0 { "-" } else { "+" };
                let written = match bytes {
                    0 => format!("[{name}]"),
                    _ => format!("[{name}{sign}{}]", hexadecimal(bytes.unsigned_abs())),
                };
                let text = one(|code| code.vector(VPANDQ, 3, 17, Operand::Memory(place)));
                assert_eq!(text, format!("vpandq zmm3, zmm17, {written}"));
                let text = one(|code| code.load(30, Operand::Memory(place)));
                assert_eq!(text, format!("vmovdqu64 zmm30, {written}"));
                let text = one(|code| code.store(place, 9));
                assert_eq!(text, format!("vmovdqu64 {written}, zmm9"));
                let text = one(|code| code.load_integer(R10, place));
                assert_eq!(text, format!("mov r10d, {written}"));
                let text = one(|code| code.compare_zero(place));
                assert_eq!(text, format!("cmp qword ptr {written}, 0"));
                let text = one(|code| {
                    code.store_integer(place, RAX);
                    code.unite_integer(place, RAX);
                });
                assert_eq!(text, format!("mov {written}, eax; or {written}, eax"));
            }
        }
    }

    /// As the decoder writes numbers.
    fn hexadecimal(number: u32) -> String {
        let digits = format!("{number:X}");
        match number {
            0..=9 => digits,
            _ if digits.starts_with(|c: char| c.is_ascii_alphabetic()) => format!("0{digits}h"),
            _ => format!("{digits}h"),
        }
    }

    #[test]
    fn each_form_is_what_it_says() {
        let register = Operand::Register(20);
        let text = Place { base: RDI, bytes: 64 };
        type Case<'c> = (&'c dyn Fn(&mut Code), &'c str);
        let cases: &[Case<'_>] = &[
            (
                &|code| code.vector_immediate(VPTERNLOGQ, 1, 18, register, 0xCA),
                "vpternlogq zmm1, zmm18, zmm20, 0CAh",
            ),
            (&|code| code.vector_immediate(VALIGNQ, 29, 5, register, 7), "valignq zmm29, zmm5, zmm20, 7"),
            (&|code| code.vector_immediate(VPSHLDQ, 2, 3, register, 63), "vpshldq zmm2, zmm3, zmm20, 3Fh"),
            (
                &|code| code.vector_masked(VPSUBQ, 2, 2, Operand::Register(31), 1),
                "vpsubq zmm2{k1}, zmm2, zmm31",
            ),
            (&|code| code.vector(VPERMB, 19, 20, Operand::Memory(text)), "vpermb zmm19, zmm20, [rdi+40h]"),
            (&|code| code.vector(VPERMB, 1, 20, register), "vpermb zmm1, zmm20, zmm20"),
            (
                &|code| code.vector_immediate(GF2P8AFFINEQB, 1, 18, register, 0),
                "vgf2p8affineqb zmm1, zmm18, zmm20, 0",
            ),
            (&|code| code.vector(VPUNPCKLQDQ, 1, 18, register), "vpunpcklqdq zmm1, zmm18, zmm20"),
            (&|code| code.vector(VPUNPCKHQDQ, 30, 2, register), "vpunpckhqdq zmm30, zmm2, zmm20"),
            (
                &|code| code.vector_immediate(VSHUFI64X2, 1, 18, register, 0xDD),
                "vshufi64x2 zmm1, zmm18, zmm20, 0DDh",
            ),
            (&|code| code.less(1, 19, register), "vpcmpltuq k1, zmm19, zmm20"),
            (&|code| code.equal(2, 19, register), "vpcmpeqq k2, zmm19, zmm20"),
            (&|code| code.test_any(30), "vptestmq k1, zmm30, zmm30; kortestb k1, k1"),
            (&|code| code.move_from_mask(RAX, 1), "kmovb eax, k1"),
            (&|code| code.move_from_mask(R9, 2), "kmovb r9d, k2"),
            (&|code| code.move_to_mask(1), "kmovb k1, eax"),
            (&|code| code.add(RAX, R9), "add eax, r9d"),
            (&|code| code.xor(RAX, R9), "xor eax, r9d"),
            (&|code| code.double_and_add(), "lea eax, [r10+rax*2]"),
            (&|code| code.shift_out_byte(), "shr eax, 8"),
            (&|code| code.add_bytes(RDI, 64), "add rdi, 40h"),
            (
                &|code| code.copy_word(Place { base: R8, bytes: 56 }, text),
                "mov rax, [rdi+40h]; mov [r8+38h], rax",
            ),
            (&|code| code.count_down(), "dec rcx"),
            (&|code| code.return_to_caller(), "vzeroupper; ret"),
        ];
        for (emit, expected) in cases {
            assert_eq!(&one(emit), expected);
        }
    }

    #[test]
    fn memory_is_asked_for_ahead() {
        let mut code = Code::default();
        code.keep_sixth_argument();
        code.prefetch(Place { base: R11, bytes: 8256 });
        code.prefetch(Place { base: RDI, bytes: 64 });
        code.add_many_bytes(R11, 512);
        code.add_many_bytes(RDI, -512);
        let text = decoded(code).join("; ");
        let expected = "mov r11, r9; prefetcht0 [r11+2040h]; prefetcht0 [rdi+40h]; add r11, 200h; \
                        add rdi, 0FFFFFFFFFFFFFE00h";
        assert_eq!(text, expected);
    }

    #[test]
    fn the_narrow_forms_are_what_they_say() {
        let mut code = Code::new(Target::Avx2);
        let memory = Operand::Memory(Place { base: R8, bytes: 64 });
        code.vector(VPANDQ, 1, 9, Operand::Register(14));
        code.vector(VPANDNQ, 9, 1, memory);
        code.vector(VPSUBQ, 12, 13, Operand::Memory(Place { base: R9, bytes: 0 }));
        code.load(15, memory);
        code.store(Place { base: RDI, bytes: -8 }, 8);
        code.equal(2, 10, Operand::Register(15));
        code.test_any(13);
        code.rotate_words(13, 4);
        code.replace_first_word(14, 13, Place { base: RSI, bytes: 128 });
        code.shift_left(13, 4, 5);
        code.shift_right(14, 14, 59);
        code.high_bits(RAX, 13);
        code.high_bits(R9, 2);
        code.address_by_nibble();
        let expected = "vpand ymm1, ymm9, ymm14; vpandn ymm9, ymm1, [r8+40h]; vpsubq ymm12, ymm13, [r9]; vmovdqu ymm15, [r8+40h]; \
                        vmovdqu [rdi-8], ymm8; vpcmpeqq ymm2, ymm10, ymm15; vptest ymm13, ymm13; vpermq ymm13, ymm4, 93h; \
                        vpblendd ymm14, ymm13, [rsi+80h], 3; vpsllq ymm13, ymm4, 5; vpsrlq ymm14, ymm14, 3Bh; vmovmskpd eax, ymm13; \
                        vmovmskpd r9d, ymm2; mov r9d, eax; and r9d, 0Fh; shl r9d, 6; add r9, r8; shr eax, 4";
        assert_eq!(decoded(code).join("; "), expected);
    }

    #[test]
    fn jumps_land_where_they_should() {
        let mut code = Code::default();
        let top = code.here();
        let ahead = code.jump(When::Zero);
        let back = code.jump(When::NotZero);
        code.land_at(back, top);
        let over = code.jump(When::Always);
        code.land(ahead);
        code.land(over);
        code.return_to_caller();
        let text = decoded(code).join("; ");
        assert_eq!(text, "je 0000000000000011h; jne 0; jmp 0000000000000011h; vzeroupper; ret");
    }
}
