//! The instructions that translated programs are made of, for each width of vectors.
//!
//! A few words of the translator's own (`test_any`, `rotate_words`, `address_by_nibble`) over the
//! workspace's encoder, so that what a target lacks is decided in one place: SSE2, whose
//! instructions write over their first operand, gets the copies that this takes. Left out: which
//! registers hold what, which the allocator knows.

pub(crate) use assembler::vector::{
    VectorInstruction, GF2P8AFFINEQB, VALIGNQ, VPADDQ, VPANDNQ, VPANDQ, VPERMB, VPORQ, VPSHLDQ, VPSUBQ,
    VPTERNLOGQ, VPUNPCKHQDQ, VPUNPCKLQDQ, VPXORQ, VSHUFI64X2,
};
pub(crate) use assembler::{Gpr, Jump, Label};

use assembler::vector::{MaskSize, VectorOperand, Width, VPCMPEQB, VPCMPEQD, VPCMPEQQ};
use assembler::{Alu, Assembler, Condition, Extend, Mask, Memory, Prefetch, Scale, Shift, Size, Vector};

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
    /// 128 bits, forms without VEX, which every x86-64 processor has.
    Sse2,
}

impl Target {
    /// The width of forms with a prefix of their own; none for SSE2.
    fn width(self) -> Option<Width> {
        match self {
            Target::Avx512 => Some(Width::Bits512),
            Target::Avx2 => Some(Width::Bits256),
            Target::Sse2 => None,
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
        match self.target.width() {
            Some(width) => self.assembler.vector(what, width, to, first, second),
            None => self.over(what, to, first, second),
        }
    }

    /// `to ← first op second` by instructions that write over their first operand.
    fn over(&mut self, what: VectorInstruction, to: Vector, first: Vector, second: Operand) {
        let is_over_second = to != first && second == Operand::Register(to.number());
        if !is_over_second {
            if to != first {
                self.assembler.sse_load(to, first);
            }
            return self.assembler.sse(what, to, second);
        }
        if what == VPANDNQ {
            // ¬first ∧ to = (first ∨ to) ⊕ first.
            self.assembler.sse(VPORQ, to, first);
            return self.assembler.sse(VPXORQ, to, first);
        }
        assert!(what != VPSUBQ, "a difference is not written over what it subtracts");
        self.assembler.sse(what, to, first);
    }

    /// `to ← first op second` with an immediate: AVX-512.
    pub(crate) fn vector_immediate(
        &mut self,
        what: VectorInstruction,
        to: u8,
        first: u8,
        second: Operand,
        immediate: u8,
    ) {
        let (to, first) = (Vector::numbered(to), Vector::numbered(first));
        self.assembler.vector_immediate(what, Width::Bits512, to, first, second, immediate);
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
        match self.target.width() {
            Some(width) => self.assembler.vector_load(width, Vector::numbered(to), from),
            None => self.assembler.sse_load(Vector::numbered(to), from),
        }
    }

    pub(crate) fn store(&mut self, to: Address, from: u8) {
        match self.target.width() {
            Some(width) => self.assembler.vector_store(width, to.into(), Vector::numbered(from)),
            None => self.assembler.sse_store(to.into(), Vector::numbered(from)),
        }
    }

    /// Mask `to` ← words of `first` below those of `second`, unsigned.
    pub(crate) fn less(&mut self, to: u8, first: u8, second: Operand) {
        self.assembler.words_below(Mask::numbered(to), Vector::numbered(first), second);
    }

    /// Mask `to` ← words of `first` that equal those of `second`: AVX-512.
    pub(crate) fn equal_mask(&mut self, to: u8, first: u8, second: Operand) {
        self.assembler.words_equal(Mask::numbered(to), Vector::numbered(first), second);
    }

    /// `to` ← ones in words that are equal, else zeros: AVX2.
    pub(crate) fn equal(&mut self, to: u8, first: u8, second: Operand) {
        let (to, first) = (Vector::numbered(to), Vector::numbered(first));
        self.assembler.vector(VPCMPEQQ, Width::Bits256, to, first, second);
    }

    /// All bits are set.
    pub(crate) fn fill_ones(&mut self, to: u8) {
        let own = Operand::Register(to);
        match self.target {
            Target::Avx512 => self.vector_immediate(VPTERNLOGQ, to, to, own, 0xFF),
            Target::Avx2 => self.equal(to, to, own),
            Target::Sse2 => self.assembler.sse(VPCMPEQD, Vector::numbered(to), own),
        }
    }

    /// No bit is set.
    pub(crate) fn clear(&mut self, to: u8) {
        self.vector(VPXORQ, to, to, Operand::Register(to));
    }

    /// Sets the zero flag when `vector` has no bit. Uses mask register 1, or `rax` and `spare`.
    pub(crate) fn test_any(&mut self, vector: u8, spare: u8) {
        let (vector, mask) = (Vector::numbered(vector), Mask::numbered(1));
        match self.target {
            Target::Avx512 => {
                self.assembler.words_common(mask, vector, vector);
                self.assembler.masks_test(mask, mask);
            }
            Target::Avx2 => self.assembler.vector_test(vector, vector),
            Target::Sse2 => {
                // The zero flag of a comparison: all bytes equal those of zero.
                const ALL_BYTES: i32 = 0xFFFF;
                self.clear(spare);
                self.assembler.sse(VPCMPEQB, Vector::numbered(spare), vector);
                self.assembler.sse_byte_signs(RAX, Vector::numbered(spare));
                self.assembler.alu_immediate(Alu::Cmp, Size::Dword, RAX, ALL_BYTES);
            }
        }
    }

    /// Words moved up by one, the last one to the front: AVX2.
    pub(crate) fn rotate_words(&mut self, to: u8, from: u8) {
        const LAST_FIRST: u8 = 0b10_01_00_11;
        self.assembler.permute_words(Vector::numbered(to), Vector::numbered(from), LAST_FIRST);
    }

    /// `to ← from` with its first word from memory: AVX2.
    pub(crate) fn replace_first_word(&mut self, to: u8, from: u8, first: Address) {
        const FIRST_WORD: u8 = 0b11;
        let (to, from) = (Vector::numbered(to), Vector::numbered(from));
        self.assembler.blend_halves(to, from, Memory::from(first), FIRST_WORD);
    }

    /// `to` ← a word from memory and the first word of `from`: SSE2.
    pub(crate) fn put_word_before(&mut self, to: u8, from: u8, first: Address) {
        self.assembler.sse_load_word(Vector::numbered(to), first.into());
        self.assembler.sse(VPUNPCKLQDQ, Vector::numbered(to), Vector::numbered(from));
    }

    /// Each word `<< by`: AVX2 and SSE2.
    pub(crate) fn shift_left(&mut self, to: u8, from: u8, by: u8) {
        let (to, from) = (Vector::numbered(to), Vector::numbered(from));
        if self.target == Target::Avx2 {
            return self.assembler.shift_words_left(to, from, by);
        }
        if to != from {
            self.assembler.sse_load(to, from);
        }
        self.assembler.sse_shift_words_left(to, by);
    }

    /// Each word `>> by`: AVX2 and SSE2.
    pub(crate) fn shift_right(&mut self, of: u8, by: u8) {
        let of = Vector::numbered(of);
        match self.target {
            Target::Avx2 => self.assembler.shift_words_right(of, of, by),
            _ => self.assembler.sse_shift_words_right(of, by),
        }
    }

    /// The carry flag ← a byte of memory that is 1 or 0. Uses `r10`.
    pub(crate) fn load_carry(&mut self, from: Address) {
        self.assembler.extend_into(Extend::ZeroByte, R10, Memory::from(from));
        self.assembler.alu_immediate(Alu::Add, Size::Dword, R10, -1);
    }

    /// A byte of memory ← the carry flag.
    pub(crate) fn store_carry(&mut self, to: Address) {
        self.assembler.set_if(Condition::Below, Memory::from(to));
    }

    /// A byte of memory is united with the carry flag. Uses `r10`.
    pub(crate) fn unite_carry(&mut self, to: Address) {
        self.assembler.set_if(Condition::Below, R10);
        self.assembler.alu(Alu::Or, Size::Byte, Memory::from(to), R10);
    }

    /// `rax ← rax ∨ a byte of memory`. Uses `r10`.
    pub(crate) fn unite_byte(&mut self, from: Address) {
        self.assembler.extend_into(Extend::ZeroByte, R10, Memory::from(from));
        self.assembler.alu(Alu::Or, Size::Qword, RAX, R10);
    }

    /// A byte of memory ← whether `rax` is zero.
    pub(crate) fn store_if_zero(&mut self, to: Address) {
        self.assembler.alu(Alu::Or, Size::Qword, RAX, RAX);
        self.assembler.set_if(Condition::Equal, Memory::from(to));
    }

    /// A word from memory.
    pub(crate) fn load_word(&mut self, to: Gpr, from: Address) {
        self.assembler.mov_from(Size::Qword, to, from.into());
    }

    /// A word to memory.
    pub(crate) fn store_word(&mut self, to: Address, from: Gpr) {
        self.assembler.mov(Size::Qword, Memory::from(to), from);
    }

    /// `to` ← two words from memory that were stored one by one: SSE2. Uses vector `spare`.
    pub(crate) fn load_words(&mut self, to: u8, from: Address, spare: u8) {
        let second = Address { bytes: from.bytes + 8, ..from };
        self.assembler.sse_load_word(Vector::numbered(to), from.into());
        self.assembler.sse_load_word(Vector::numbered(spare), second.into());
        self.assembler.sse(VPUNPCKLQDQ, Vector::numbered(to), Vector::numbered(spare));
    }

    /// `to ← to + word of memory + carry flag`, 64 bits, which sets the carry flag.
    pub(crate) fn add_memory_with_carry(&mut self, to: Gpr, from: Address) {
        self.assembler.alu_from(Alu::Adc, Size::Qword, to, from.into());
    }

    /// The high bits of four words: AVX2.
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

    /// Adds one to 64 bits of memory.
    pub(crate) fn count(&mut self, place: Address) {
        self.assembler.alu_immediate(Alu::Add, Size::Qword, Memory::from(place), 1);
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
        if self.target != Target::Sse2 {
            self.assembler.zero_upper();
        }
        self.assembler.ret();
    }
}

#[cfg(test)]
mod tests;
