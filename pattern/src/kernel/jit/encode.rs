//! The instructions that translated programs are made of, for either width of vectors.
//!
//! A few words of the translator's own (`test_any`, `rotate_words`, `address_by_nibble`) over the
//! workspace's encoder, so that what a target lacks is decided in one place. Left out: which
//! registers hold what, which the allocator knows.

pub(crate) use assembler::vector::{
    VectorInstruction, GF2P8AFFINEQB, VALIGNQ, VPADDQ, VPANDNQ, VPANDQ, VPERMB, VPORQ, VPSHLDQ, VPSUBQ,
    VPTERNLOGQ, VPUNPCKHQDQ, VPUNPCKLQDQ, VPXORQ, VSHUFI64X2,
};
pub(crate) use assembler::{Gpr, Jump, Label};

use assembler::vector::{MaskSize, VectorOperand, Width, VPCMPEQQ};
use assembler::{Alu, Assembler, Condition, Mask, Memory, Prefetch, Scale, Shift, Size, Vector};

pub(crate) const RAX: Gpr = Gpr::RAX;
pub(crate) const RDX: Gpr = Gpr::RDX;
pub(crate) const RSI: Gpr = Gpr::RSI;
pub(crate) const RDI: Gpr = Gpr::RDI;
pub(crate) const R8: Gpr = Gpr::R8;
pub(crate) const R9: Gpr = Gpr::R9;
pub(crate) const R10: Gpr = Gpr::R10;
pub(crate) const R11: Gpr = Gpr::R11;

/// A place of 64 bytes in memory: base register plus distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) base: Gpr,
    pub(crate) bytes: i32,
}

impl From<Address> for Memory {
    fn from(place: Address) -> Memory {
        Memory::at(place.base).plus(place.bytes)
    }
}

/// The operand that may be a vector register or memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    Register(u8),
    Memory(Address),
}

impl From<Operand> for VectorOperand {
    fn from(operand: Operand) -> VectorOperand {
        match operand {
            Operand::Register(register) => Vector::numbered(register).into(),
            Operand::Memory(place) => Memory::from(place).into(),
        }
    }
}

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

impl Target {
    fn width(self) -> Width {
        match self {
            Target::Avx512 => Width::Bits512,
            Target::Avx2 => Width::Bits256,
        }
    }
}

/// Machine code under construction.
#[derive(Default)]
pub(crate) struct Code {
    assembler: Assembler,
    target: Target,
}

impl Code {
    pub(crate) fn new(target: Target) -> Code {
        Code { assembler: Assembler::default(), target }
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.assembler.into_bytes()
    }

    pub(crate) fn here(&self) -> Label {
        self.assembler.here()
    }

    /// `to ← first op second`.
    pub(crate) fn vector(&mut self, what: VectorInstruction, to: u8, first: u8, second: Operand) {
        let (to, first) = (Vector::numbered(to), Vector::numbered(first));
        self.assembler.vector(what, self.target.width(), to, first, second);
    }

    /// `to ← first op second` with an immediate.
    pub(crate) fn vector_immediate(
        &mut self,
        what: VectorInstruction,
        to: u8,
        first: u8,
        second: Operand,
        immediate: u8,
    ) {
        let (to, first) = (Vector::numbered(to), Vector::numbered(first));
        self.assembler.vector_immediate(what, self.target.width(), to, first, second, immediate);
    }

    /// `to ← first op second` where mask register `mask` has a bit; other words stay.
    pub(crate) fn vector_masked(
        &mut self,
        what: VectorInstruction,
        to: u8,
        first: u8,
        second: Operand,
        mask: u8,
    ) {
        let (to, first) = (Vector::numbered(to), Vector::numbered(first));
        self.assembler.vector_masked(what, to, first, second, Mask::numbered(mask));
    }

    pub(crate) fn load(&mut self, to: u8, from: Operand) {
        self.assembler.vector_load(self.target.width(), Vector::numbered(to), from);
    }

    pub(crate) fn store(&mut self, to: Address, from: u8) {
        self.assembler.vector_store(self.target.width(), to.into(), Vector::numbered(from));
    }

    /// Mask `to` ← words of `first` below those of `second`, unsigned.
    pub(crate) fn less(&mut self, to: u8, first: u8, second: Operand) {
        self.assembler.words_below(Mask::numbered(to), Vector::numbered(first), second);
    }

    /// Words that are equal: a mask with AVX-512, a vector of ones and zeros with AVX2.
    pub(crate) fn equal(&mut self, to: u8, first: u8, second: Operand) {
        let first = Vector::numbered(first);
        match self.target {
            Target::Avx512 => self.assembler.words_equal(Mask::numbered(to), first, second),
            Target::Avx2 => {
                self.assembler.vector(VPCMPEQQ, Width::Bits256, Vector::numbered(to), first, second);
            }
        }
    }

    /// Sets the zero flag when `vector` has no bit. Uses mask register 1.
    pub(crate) fn test_any(&mut self, vector: u8) {
        let (vector, mask) = (Vector::numbered(vector), Mask::numbered(1));
        if self.target == Target::Avx2 {
            return self.assembler.vector_test(vector, vector);
        }
        self.assembler.words_common(mask, vector, vector);
        self.assembler.masks_test(mask, mask);
    }

    /// Words moved up by one, the last one to the front.
    pub(crate) fn rotate_words(&mut self, to: u8, from: u8) {
        const LAST_FIRST: u8 = 0b10_01_00_11;
        self.assembler.permute_words(Vector::numbered(to), Vector::numbered(from), LAST_FIRST);
    }

    /// `to ← from` with its first word from memory.
    pub(crate) fn replace_first_word(&mut self, to: u8, from: u8, first: Address) {
        const FIRST_WORD: u8 = 0b11;
        let (to, from) = (Vector::numbered(to), Vector::numbered(from));
        self.assembler.blend_halves(to, from, Memory::from(first), FIRST_WORD);
    }

    /// Each word `<< by`.
    pub(crate) fn shift_left(&mut self, to: u8, from: u8, by: u8) {
        self.assembler.shift_words_left(Vector::numbered(to), Vector::numbered(from), by);
    }

    /// Each word `>> by`.
    pub(crate) fn shift_right(&mut self, to: u8, from: u8, by: u8) {
        self.assembler.shift_words_right(Vector::numbered(to), Vector::numbered(from), by);
    }

    /// The high bits of four words.
    pub(crate) fn high_bits(&mut self, to: Gpr, from: u8) {
        self.assembler.qword_signs(Width::Bits256, to, Vector::numbered(from));
    }

    /// `r9 ← r8 + 64·(eax & 15)`, then `eax ← eax >> 4`.
    pub(crate) fn address_by_nibble(&mut self) {
        let code = &mut self.assembler;
        code.mov(Size::Dword, R9, RAX);
        code.alu_immediate(Alu::And, Size::Dword, R9, 15);
        code.shift(Shift::Left, Size::Dword, R9, 6);
        code.alu(Alu::Add, Size::Qword, R9, R8);
        code.shift(Shift::Right, Size::Dword, RAX, 4);
    }

    /// `to ← mask`, eight bits.
    pub(crate) fn move_from_mask(&mut self, to: Gpr, mask: u8) {
        self.assembler.mask_to_register(MaskSize::Byte, to, Mask::numbered(mask));
    }

    /// `mask ← eax`, eight bits.
    pub(crate) fn move_to_mask(&mut self, mask: u8) {
        self.assembler.register_to_mask(Mask::numbered(mask), RAX);
    }

    /// 32 bits from memory.
    pub(crate) fn load_integer(&mut self, to: Gpr, from: Address) {
        self.assembler.mov_from(Size::Dword, to, from.into());
    }

    /// 32 bits to memory.
    pub(crate) fn store_integer(&mut self, to: Address, from: Gpr) {
        self.assembler.mov(Size::Dword, Memory::from(to), from);
    }

    /// 32 bits of memory are united with a register.
    pub(crate) fn unite_integer(&mut self, to: Address, from: Gpr) {
        self.assembler.alu(Alu::Or, Size::Dword, Memory::from(to), from);
    }

    pub(crate) fn add(&mut self, to: Gpr, from: Gpr) {
        self.assembler.alu(Alu::Add, Size::Dword, to, from);
    }

    pub(crate) fn xor(&mut self, to: Gpr, from: Gpr) {
        self.assembler.alu(Alu::Xor, Size::Dword, to, from);
    }

    /// `eax ← 2·eax + r10d`.
    pub(crate) fn double_and_add(&mut self) {
        self.assembler.lea(Size::Dword, RAX, Memory::at(R10).index(RAX, Scale::Two));
    }

    /// `eax ← eax >> 8`.
    pub(crate) fn shift_out_byte(&mut self) {
        self.assembler.shift(Shift::Right, Size::Dword, RAX, 8);
    }

    /// Adds to 64 bits of a pointer register.
    pub(crate) fn add_bytes(&mut self, to: Gpr, bytes: i32) {
        self.assembler.alu_immediate(Alu::Add, Size::Qword, to, bytes);
    }

    /// `r11 ← r9`.
    pub(crate) fn keep_sixth_argument(&mut self) {
        self.assembler.mov(Size::Qword, R11, R9);
    }

    /// Asks for a line of memory.
    pub(crate) fn prefetch(&mut self, place: Address) {
        self.assembler.prefetch(Prefetch::Read, place.into());
    }

    /// Compares 64 bits of memory with zero.
    pub(crate) fn compare_zero(&mut self, place: Address) {
        self.assembler.alu_immediate(Alu::Cmp, Size::Qword, Memory::from(place), 0);
    }

    /// Copies 64 bits of memory. Uses `rax`.
    pub(crate) fn copy_word(&mut self, to: Address, from: Address) {
        self.assembler.mov_from(Size::Qword, RAX, from.into());
        self.assembler.mov(Size::Qword, Memory::from(to), RAX);
    }

    /// Counts `rcx` down and sets the zero flag.
    pub(crate) fn count_down(&mut self) {
        self.assembler.decrement(Size::Qword, Gpr::RCX);
    }

    pub(crate) fn jump(&mut self, when: When) -> Jump {
        match when {
            When::Always => self.assembler.jump(),
            When::Zero => self.assembler.jump_if(Condition::Equal),
            When::NotZero => self.assembler.jump_if(Condition::NotEqual),
        }
    }

    /// The jump lands here.
    pub(crate) fn land(&mut self, jump: Jump) {
        self.assembler.land(jump);
    }

    pub(crate) fn land_at(&mut self, jump: Jump, target: Label) {
        self.assembler.land_at(jump, target);
    }

    pub(crate) fn return_to_caller(&mut self) {
        self.assembler.zero_upper();
        self.assembler.ret();
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

    const NAMED: &[(VectorInstruction, &str)] = &[
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
                let place = Address { base, bytes };
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
        let text = Address { base: RDI, bytes: 64 };
        type Encoded<'c> = (&'c dyn Fn(&mut Code), &'c str);
        let cases: &[Encoded<'_>] = &[
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
                &|code| code.copy_word(Address { base: R8, bytes: 56 }, text),
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
        code.prefetch(Address { base: R11, bytes: 8256 });
        code.prefetch(Address { base: RDI, bytes: 64 });
        code.add_bytes(R11, 512);
        code.add_bytes(RDI, -512);
        let text = decoded(code).join("; ");
        let expected = "mov r11, r9; prefetcht0 [r11+2040h]; prefetcht0 [rdi+40h]; add r11, 200h; \
                        add rdi, 0FFFFFFFFFFFFFE00h";
        assert_eq!(text, expected);
    }

    #[test]
    fn the_narrow_forms_are_what_they_say() {
        let mut code = Code::new(Target::Avx2);
        let memory = Operand::Memory(Address { base: R8, bytes: 64 });
        code.vector(VPANDQ, 1, 9, Operand::Register(14));
        code.vector(VPANDNQ, 9, 1, memory);
        code.vector(VPSUBQ, 12, 13, Operand::Memory(Address { base: R9, bytes: 0 }));
        code.load(15, memory);
        code.store(Address { base: RDI, bytes: -8 }, 8);
        code.equal(2, 10, Operand::Register(15));
        code.test_any(13);
        code.rotate_words(13, 4);
        code.replace_first_word(14, 13, Address { base: RSI, bytes: 128 });
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
