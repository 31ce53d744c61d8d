//! Machine code for the instructions of a program, one block of text at a time.
//!
//! **Problem.** A stream is a number of any length, and a block is one vector of it: 512 bits, 256
//! with AVX2, 128 with SSE2. Logic is one instruction. What moves information along the text has to
//! cross words within the vector, and blocks: an advance shifts the whole number, an addition
//! carries through it. Vectors have no instruction for either.
//!
//! **Advance by n.** Each word needs the top n bits of the word before it; the first word needs
//! those of the block before, which its carry keeps (a whole vector, of which the last word
//! counts):
//!
//! ```text
//! of       w0 w1 w2 … w7          carry    .. .. .. … p7      the operand one block before
//! before   p7 w0 w1 … w6          valignq of both             (AVX2: rotate, replace the first;
//!                                                              SSE2: load p1, unpack w0 behind)
//! result   wi << n | before_i >> (64 - n), in each word       vpshldq
//! carry ←  of
//! ```
//!
//! **Addition.** Words are added by themselves; then the carries between words are one addition of
//! eight bits in a general register (the paper's long-stream addition):
//!
//! ```text
//! g = words that overflowed      b = words that are all ones, through which a carry passes
//! i = (2g + carry-in) + b ⊕ b    bit k: word k gets one more;  bit 8: the block's carry-out
//! ```
//!
//! With AVX-512 g and b are masks and i selects the words to be incremented. AVX2 has no masks: g
//! and b are sign bits, and i chooses one of sixteen vectors of increments. The two words of SSE2
//! are added in general registers, whose addition takes and leaves a carry; they go there and back
//! through the frame.
//!
//! **Bodies.** `IfAny` jumps over code whose streams would have no bit. A body with carries (AVX2
//! and SSE2, see `skips`) also runs while one of them is left over from the block before; it leaves
//! behind whether one is, in a slot of the frame. `WhileAny` runs its body
//! until the frontier has no new bit; only the first round receives what the block before handed
//! on, and what all rounds hand on is collected in a second bank of carries.
//!
//! **Invariants.**
//!
//! 1. carries are read and written in place, each by the one operation that owns it;
//! 2. between two instructions no register is locked, and the two scratch registers hold nothing;
//! 3. results of bodies live in the frame, so that every way through the code agrees on them;
//! 4. an operation whose result nobody reads still moves its carry, as a later block may read it.
//!
//! The targets stand side by side, so that their differences can be seen. Left out: what stands
//! around a block (the loop, constants, asking memory ahead), which the module above has. Source:
//! Cameron et al. 2014, section 3.

mod bodies;

use super::allocate::{basis_address, RegisterAllocator};
use super::encode::*;
use super::registers::Registers;
use super::transpose::{slot, stream_register};
use crate::kernel::liveness::Uses;
use crate::program::pass::{owns_carries, with_bases_first};
use crate::program::{BitProgram, Carry, Instruction, Op, Value};
use crate::transpose::CHUNK_WORDS;

/// `a ? b : c`.
pub(super) const CHOICE: u8 = 0xCA;

/// Emits a program for one block. With AVX-512 basis streams come in their registers, but for
/// programs that look back, which find them in the frame; how many slots of the frame are taken
/// then, from `frames` on.
pub(super) fn emit_program(code: &mut Code, program: &BitProgram, target: Target, frames: u32) -> Emitted {
    // Basis streams that come in registers have to be claimed before anything else wants one: such
    // a program defines them first.
    let in_registers = target == Target::Avx512 && !program.looks_back();
    let ordered = in_registers.then(|| with_bases_first(program));
    let program = ordered.as_ref().unwrap_or(program);
    let uses = Uses::of(program);
    let registers = Registers::of(target);
    let allocator = RegisterAllocator::new(&uses, target, program.values as usize, frames);
    let mut emitter = Emitter {
        code,
        allocator,
        registers,
        target,
        in_registers,
        carries: program.carries.len(),
        loops: 0,
        idle: Vec::new(),
        runs: None,
    };
    emitter.body(&program.body);
    // Streams that are kept follow the output, a chunk's words apart. The output is written last:
    // its place may hold where rows end.
    for (number, &kept) in program.kept.iter().enumerate() {
        let register = emitter.in_register(kept);
        let bytes = ((number + 1) * CHUNK_WORDS * 8) as i32;
        emitter.code.store(Address { base: RDX, bytes }, register);
        emitter.allocator.finish();
    }
    let output = emitter.in_register(program.output);
    emitter.code.store(Address { base: RDX, bytes: 0 }, output);
    Emitted { frames: emitter.allocator.frames(), idle: emitter.idle, runs: emitter.runs }
}

/// What a program's code needs of the frame.
pub(super) struct Emitted {
    /// The slots that are taken.
    pub(super) frames: u32,
    /// Of bodies with carries: all zeros where a carry may be set, for all that is known.
    pub(super) idle: Vec<Address>,
    /// Counts how often such bodies ran.
    pub(super) runs: Option<Address>,
}

struct Emitter<'c, 'p> {
    code: &'c mut Code,
    allocator: RegisterAllocator<'p>,
    registers: Registers,
    target: Target,
    /// Basis streams are in registers at first, and defined before anything else.
    in_registers: bool,
    carries: usize,
    loops: u32,
    idle: Vec<Address>,
    runs: Option<Address>,
}

/// Slots at the start of an SSE2 frame: addends and sum of an addition.
pub(super) const SUMS: [u32; 3] = [0, 1, 2];

/// `(sum ⊕ class) ∨ markers` of sum, class and markers.
const MATCH_STAR: u8 = 0xBE;
/// `(sum ∨ markers) ∧ ¬class`.
const SCAN_THRU: u8 = 0x32;

/// The vector of a carry, and the second one that collects what a loop hands on.
fn received(carry: Carry) -> Address {
    Address { base: RSI, bytes: carry.0 as i32 * 64 }
}

impl Emitter<'_, '_> {
    fn in_register(&mut self, value: Value) -> u8 {
        self.allocator.register(self.code, value)
    }

    fn handed_on(&self, carry: Carry) -> Address {
        Address { base: RSI, bytes: (self.carries as i32 + carry.0 as i32) * 64 }
    }

    fn body(&mut self, body: &[Instruction]) {
        for one in body {
            self.allocator.at += 1;
            self.instruction(one);
            self.allocator.finish();
            one.op.operands(|value| self.allocator.release(value));
            self.allocator.release(one.result);
        }
    }

    fn instruction(&mut self, one: &Instruction) {
        let to = one.result;
        // Logic that nobody reads is no code. An operation that carries is (invariant 4).
        if self.allocator.is_unused(to) && one.op.carry().is_none() && one.op.body().is_none() {
            return;
        }
        match &one.op {
            Op::Basis { bit, delay: 0 } if self.in_registers => {
                self.allocator.hold(stream_register(*bit), to);
            }
            Op::Basis { bit, delay: 0 } => self.allocator.set_basis(to, *bit),
            Op::Basis { bit, delay } => self.delayed(to, *bit, *delay),
            Op::Ones => self.allocator.set_ones(to),
            Op::RowEnds => self.allocator.set_row_ends(to),
            Op::Zero => {
                let register = self.allocator.result(self.code, to);
                self.code.clear(register);
            }
            Op::Not(a) => {
                let operand = self.allocator.operand(*a);
                let register = self.result_over(to, &[*a]);
                self.code.vector(VPXORQ, register, self.registers.ones, operand);
            }
            Op::And(a, b) => self.commutative(VPANDQ, to, *a, *b),
            Op::Or(a, b) => self.commutative(VPORQ, to, *a, *b),
            Op::Xor(a, b) => self.commutative(VPXORQ, to, *a, *b),
            Op::AndNot(a, b) => self.two(VPANDNQ, to, *b, *a),
            Op::Ternary { table, of } => self.ternary(to, *table, *of),
            Op::Advance { by, of, carry } => self.advance(to, *by, *of, *carry),
            Op::MatchStar { markers, class, carry } => {
                let register = self.sum(to, Some(*markers), *class, None, *carry);
                self.combine(register, *markers, *class, MATCH_STAR);
            }
            Op::ScanThru { markers, class, carry } => {
                let register = self.sum(to, Some(*markers), *class, None, *carry);
                self.combine(register, *markers, *class, SCAN_THRU);
            }
            Op::Add { a, b, carry } => {
                self.sum(to, None, *a, Some(*b), *carry);
            }
            Op::IfAny { condition, body, yields } => {
                let pairs: Vec<(Value, Value)> = yields.iter().map(|one| (one.outer, one.inner)).collect();
                self.if_any(*condition, body, &pairs);
            }
            Op::WhileAny { initial, frontier, body, next } => {
                self.while_any(to, *initial, *frontier, body, *next)
            }
        }
    }

    // --- logic

    fn delayed(&mut self, to: Value, bit: u8, delay: u8) {
        let place = basis_address(self.target, bit);
        self.code.load(self.registers.scratch, Operand::Memory(Address { bytes: place.bytes - 8, ..place }));
        let register = self.allocator.result(self.code, to);
        self.code.load(register, Operand::Memory(place));
        self.shift_in(register, register, self.registers.scratch, delay);
    }

    /// `to ← from << by | before >> (64 - by)` in each word; `before` is scratch.
    fn shift_in(&mut self, to: u8, from: u8, before: u8, by: u8) {
        match self.target {
            Target::Avx512 => self.code.vector_immediate(VPSHLDQ, to, from, Operand::Register(before), by),
            Target::Avx2 | Target::Sse2 => {
                self.code.shift_right(before, 64 - by);
                self.code.shift_left(to, from, by);
                self.code.vector(VPORQ, to, to, Operand::Register(before));
            }
        }
    }

    fn commutative(&mut self, what: VectorInstruction, to: Value, a: Value, b: Value) {
        match self.allocator.operand(a) {
            Operand::Register(_) => self.two(what, to, a, b),
            Operand::Memory(_) => self.two(what, to, b, a),
        }
    }

    fn two(&mut self, what: VectorInstruction, to: Value, first: Value, second: Value) {
        let first_register = self.in_register(first);
        let second_operand = self.allocator.operand(second);
        let register = self.result_over(to, &[first, second]);
        self.code.vector(what, register, first_register, second_operand);
    }

    /// A register for the result: that of an operand that dies here, if there is one.
    fn result_over(&mut self, to: Value, operands: &[Value]) -> u8 {
        match operands.iter().find(|&&value| self.allocator.is_last_use_in_register(value)) {
            Some(&value) => self.allocator.take_over(value, to),
            None => self.allocator.result(self.code, to),
        }
    }

    /// The first operand of `vpternlogq` is overwritten: one that dies, or a copy of one in memory,
    /// or of any.
    fn ternary(&mut self, to: Value, table: u8, of: [Value; 3]) {
        if self.target != Target::Avx512 {
            return self.choice(to, of);
        }
        // Best is an operand that dies here: its register becomes the result's. Next best is one in
        // memory, whose load is the copy. An operand that is named twice cannot be overwritten.
        let is_memory = |operand: Operand| matches!(operand, Operand::Memory(_));
        let operands = of.map(|value| self.allocator.operand(value));
        let dying = (0..3).find(|&at| {
            self.allocator.is_last_use_in_register(of[at])
                && (0..3).all(|other| other == at || of[other] != of[at])
        });
        let first = dying.or_else(|| (0..3).find(|&at| is_memory(operands[at]))).unwrap_or(0);
        // Of the other two, one may stay in memory: the last one of the instruction.
        let (mut second, mut third) = ((first + 1) % 3, (first + 2) % 3);
        if is_memory(operands[second]) {
            (second, third) = (third, second);
        }
        let second_register = self.in_register(of[second]);
        let third_operand = self.allocator.operand(of[third]);
        let register = match dying {
            Some(_) => self.allocator.take_over(of[first], to),
            None => {
                let source = self.allocator.operand(of[first]);
                let register = self.allocator.result(self.code, to);
                self.code.load(register, source);
                register
            }
        };
        // Operands changed places, so the table's rows do.
        let table = permuted(table, [first, second, third]);
        self.code.vector_immediate(VPTERNLOGQ, register, second_register, third_operand, table);
    }

    // --- what carries

    fn advance(&mut self, to: Value, by: u8, of: Value, carry: Carry) {
        let source = self.in_register(of);
        let before = self.words_before(source, carry);
        if !self.allocator.is_unused(to) {
            let register = self.result_over(to, &[of]);
            self.shift_in(register, source, before, by);
        }
    }

    /// The words one place earlier, the first one from the block before, in scratch; the last one
    /// is kept for the next block.
    fn words_before(&mut self, source: u8, carry: Carry) -> u8 {
        let Registers { scratch, scratch_2, .. } = self.registers;
        // The words one place further on, with the last word of the block before in front.
        let (before, kept) = match self.target {
            Target::Avx512 => {
                self.code.vector_immediate(VALIGNQ, scratch, source, Operand::Memory(received(carry)), 7);
                (scratch, source)
            }
            Target::Avx2 => {
                self.code.rotate_words(scratch, source);
                self.code.replace_first_word(scratch_2, scratch, received(carry));
                (scratch_2, scratch)
            }
            Target::Sse2 => {
                let place = received(carry);
                self.code.put_word_before(scratch, source, Address { bytes: place.bytes + 8, ..place });
                (scratch, source)
            }
        };
        // Outside of loops the carry is replaced. Within one, rounds are united in the other bank.
        if self.loops == 0 {
            self.code.store(received(carry), kept);
        } else {
            let bank = self.handed_on(carry);
            let united = if before == scratch { scratch_2 } else { scratch };
            self.code.vector(VPORQ, united, kept, Operand::Memory(bank));
            self.code.store(bank, united);
        }
        before
    }

    /// `of[0] ? of[1] : of[2]` without three-input logic: `no ⊕ (condition ∧ (yes ⊕ no))`.
    fn choice(&mut self, to: Value, of: [Value; 3]) {
        let [condition, yes, no] = of;
        let no_register = self.in_register(no);
        let scratch = self.registers.scratch;
        let yes = self.allocator.operand(yes);
        self.code.vector(VPXORQ, scratch, no_register, yes);
        let condition = self.allocator.operand(condition);
        self.code.vector(VPANDQ, scratch, scratch, condition);
        let register = self.result_over(to, &of);
        self.code.vector(VPXORQ, register, scratch, Operand::Register(no_register));
    }

    /// `(markers ∧ a) + a`, or `a + b`, with carry, into a register of the result.
    fn sum(&mut self, to: Value, markers: Option<Value>, a: Value, b: Option<Value>, carry: Carry) -> u8 {
        let addend = self.in_register(a);
        let other =
            markers.or(b).map(|value| self.allocator.operand(value)).expect("an addition has two operands");
        let register = self.allocator.result(self.code, to);
        match self.target {
            Target::Avx512 => self.sum_with_masks(register, addend, other, markers.is_some(), carry),
            Target::Avx2 => self.sum_with_signs(register, addend, other, markers.is_some(), carry),
            Target::Sse2 => self.sum_of_two_words(register, addend, other, markers.is_some(), carry),
        }
        register
    }

    fn sum_with_masks(&mut self, register: u8, addend: u8, other: Operand, within: bool, carry: Carry) {
        let ones = Operand::Register(self.registers.ones);
        // Sums of words by themselves.
        if within {
            self.code.vector(VPANDQ, register, addend, other);
            self.code.vector(VPADDQ, register, register, Operand::Register(addend));
        } else {
            self.code.vector(VPADDQ, register, addend, other);
        }
        // A sum below an addend overflowed; a sum of all ones passes a carry on. Both become bits
        // of general registers, where one addition finds the words that get one more.
        self.code.less(1, register, Operand::Register(addend));
        self.code.equal_mask(2, register, ones);
        self.code.move_from_mask(RAX, 1);
        self.code.move_from_mask(R9, 2);
        self.increments(carry);
        self.code.move_to_mask(1);
        self.code.shift_out_byte();
        self.keep_bit(carry);
        // Minus one is all ones: subtracting it from the words of the mask increments them.
        self.code.vector_masked(VPSUBQ, register, register, ones, 1);
    }

    /// A word overflows where both addends have the high bit, or one has and the sum has not.
    fn sum_with_signs(&mut self, register: u8, addend: u8, other: Operand, within: bool, carry: Carry) {
        let Registers { scratch, scratch_2, ones, .. } = self.registers;
        let sum = Operand::Register(scratch);
        if within {
            // One addend is part of the other: both, either, are that part and the other.
            self.code.vector(VPANDQ, register, addend, other);
            self.code.vector(VPADDQ, scratch, addend, Operand::Register(register));
            self.code.vector(VPANDNQ, scratch_2, scratch, Operand::Register(addend));
        } else {
            self.code.vector(VPADDQ, scratch, addend, other);
            self.code.vector(VPORQ, register, addend, other);
            self.code.vector(VPANDNQ, scratch_2, scratch, Operand::Register(register));
            self.code.vector(VPANDQ, register, addend, other);
        }
        // The sign bits of `both ∨ (either ∧ ¬sum)` are the overflows; words of all ones follow.
        self.code.vector(VPORQ, scratch_2, scratch_2, Operand::Register(register));
        self.code.high_bits(RAX, scratch_2);
        self.code.equal(scratch_2, ones, sum);
        self.code.high_bits(R9, scratch_2);
        self.increments(carry);
        // Four bits choose one of sixteen vectors of increments; the fifth is the carry-out.
        self.code.address_by_nibble();
        self.keep_bit(carry);
        self.code.vector(VPSUBQ, register, scratch, Operand::Memory(Address { base: R9, bytes: 0 }));
    }

    /// Words are added in general registers, the carry between them and between blocks in the flag.
    /// They go there and back through the frame: vector units have other work, memory little.
    fn sum_of_two_words(&mut self, register: u8, addend: u8, other: Operand, within: bool, carry: Carry) {
        let mut other = other;
        if within {
            self.code.vector(VPANDQ, register, addend, other);
            other = Operand::Register(register);
        }
        let [one, two, sum] = SUMS.map(slot);
        self.code.store(one, addend);
        let two = match other {
            Operand::Register(other) => {
                self.code.store(two, other);
                two
            }
            Operand::Memory(place) => place,
        };
        // Moves leave the flag alone.
        self.code.load_carry(received(carry));
        let word = |place: Address, at: i32| Address { bytes: place.bytes + 8 * at, ..place };
        for at in 0..2 {
            self.code.load_word(RAX, word(one, at));
            self.code.add_memory_with_carry(RAX, word(two, at));
            self.code.store_word(word(sum, at), RAX);
        }
        match self.loops {
            0 => self.code.store_carry(received(carry)),
            _ => self.code.unite_carry(self.handed_on(carry)),
        }
        self.code.load_words(register, sum, self.registers.scratch);
    }

    /// `eax ← (2·eax + carry) + r9 ⊕ r9`.
    fn increments(&mut self, carry: Carry) {
        self.code.load_integer(R10, received(carry));
        self.code.double_and_add();
        self.code.add(RAX, R9);
        self.code.xor(RAX, R9);
    }

    /// The carry-out in `eax` goes to the next block.
    fn keep_bit(&mut self, carry: Carry) {
        match self.loops {
            0 => self.code.store_integer(received(carry), RAX),
            _ => self.code.unite_integer(self.handed_on(carry), RAX),
        }
    }

    /// MatchStar or ScanThru (by their tables) from the sum of markers and class.
    fn combine(&mut self, register: u8, markers: Value, class: Value, table: u8) {
        let class = self.in_register(class);
        let markers = self.allocator.operand(markers);
        match (self.target, table) {
            (Target::Avx512, _) => self.code.vector_immediate(VPTERNLOGQ, register, class, markers, table),
            (_, MATCH_STAR) => {
                self.code.vector(VPXORQ, register, register, Operand::Register(class));
                self.code.vector(VPORQ, register, register, markers);
            }
            _ => {
                self.code.vector(VPORQ, register, register, markers);
                self.code.vector(VPANDNQ, register, class, Operand::Register(register));
            }
        }
    }
}

/// The table of the same function with its operands in another order: new operand `k` is old
/// operand `order[k]`.
fn permuted(table: u8, order: [usize; 3]) -> u8 {
    (0..8u8).fold(0, |permuted, index| {
        let mut old = 0;
        for (new_place, &old_place) in order.iter().enumerate() {
            old |= (index >> (2 - new_place) & 1) << (2 - old_place);
        }
        permuted | (table >> old & 1) << index
    })
}
