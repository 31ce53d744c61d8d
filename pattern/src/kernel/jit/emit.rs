//! Machine code for the instructions of a program, one block of text at a time.
//!
//! Values live where the allocator says; carries are read and written in place, and in loops collected in their second bank. Each operation of the
//! program is a handful of vector instructions, for AVX-512 and for AVX2 side by side, so that their difference can be seen.
//! Left out: what stands around a block (the loop, constants, asking memory ahead), which the module above has. Source: Cameron et al. 2014, section 3.

use super::allocate::{basis_place, Allocator, Registers};
use super::encode::*;
use super::transpose::stream_register;
use crate::kernel::liveness::Uses;
use crate::kernel::looks_back;
use crate::program::pass::with_bases_first;
use crate::program::{BitProgram, Carry, Instruction, Op, Value};

/// `a ? b : c`.
pub(super) const CHOICE: u8 = 0xCA;

/// Emits a program for one block. With AVX-512 basis streams come in their registers, but for programs that look back, which find them in the frame; how many slots of the frame are taken then, from `frames` on.
pub(super) fn emit_program(code: &mut Code, program: &BitProgram, target: Target, frames: u32) -> u32 {
    let in_registers = target == Target::Avx512 && !looks_back(program);
    let ordered = in_registers.then(|| with_bases_first(program));
    let program = ordered.as_ref().unwrap_or(program);
    let uses = Uses::of(program);
    let registers = Registers::of(target);
    let allocator = Allocator::new(&uses, target, program.values as usize, frames);
    let mut emitter = Emitter {
        code,
        allocator,
        registers,
        target,
        in_registers,
        carries: program.carries.len(),
        loops: 0,
    };
    emitter.body(&program.body);
    let output = emitter.in_register(program.output);
    emitter.code.store(Place { base: RDX, bytes: 0 }, output);
    emitter.allocator.frames()
}

struct Emitter<'c, 'p> {
    code: &'c mut Code,
    allocator: Allocator<'p>,
    registers: Registers,
    target: Target,
    /// Basis streams are in registers at first, and defined before anything else.
    in_registers: bool,
    carries: usize,
    loops: u32,
}

/// `(sum ⊕ class) ∨ markers` of sum, class and markers.
const MATCH_STAR: u8 = 0xBE;
/// `(sum ∨ markers) ∧ ¬class`.
const SCAN_THRU: u8 = 0x32;

/// The vector of a carry, and the second one that collects what a loop hands on.
fn received(carry: Carry) -> Place {
    Place { base: RSI, bytes: carry.0 as i32 * 64 }
}

impl Emitter<'_, '_> {
    fn in_register(&mut self, value: Value) -> u8 {
        self.allocator.register(self.code, value)
    }

    fn handed_on(&self, carry: Carry) -> Place {
        Place { base: RSI, bytes: (self.carries as i32 + carry.0 as i32) * 64 }
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
            Op::Zero => {
                let register = self.allocator.result(self.code, to);
                self.code.vector(VPXORQ, register, register, Operand::Register(register));
            }
            Op::Not(a) => {
                let a = self.allocator.operand(*a);
                let register = self.allocator.result(self.code, to);
                self.code.vector(VPXORQ, register, self.registers.ones, a);
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
        let place = basis_place(self.target, bit);
        self.code.load(self.registers.scratch, Operand::Memory(Place { bytes: place.bytes - 8, ..place }));
        let register = self.allocator.result(self.code, to);
        self.code.load(register, Operand::Memory(place));
        self.shift_in(register, register, self.registers.scratch, delay);
    }

    /// `to ← from << by | before >> (64 - by)` in each word; `before` is scratch.
    fn shift_in(&mut self, to: u8, from: u8, before: u8, by: u8) {
        match self.target {
            Target::Avx512 => self.code.vector_immediate(VPSHLDQ, to, from, Operand::Register(before), by),
            Target::Avx2 => {
                self.code.shift_right(before, before, 64 - by);
                self.code.shift_left(to, from, by);
                self.code.vector(VPORQ, to, to, Operand::Register(before));
            }
        }
    }

    fn commutative(&mut self, what: Evex, to: Value, a: Value, b: Value) {
        match self.allocator.operand(a) {
            Operand::Register(_) => self.two(what, to, a, b),
            Operand::Memory(_) => self.two(what, to, b, a),
        }
    }

    fn two(&mut self, what: Evex, to: Value, first: Value, second: Value) {
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

    /// The first operand of `vpternlogq` is overwritten: one that dies, or a copy of one in memory, or of any.
    fn ternary(&mut self, to: Value, table: u8, of: [Value; 3]) {
        if self.target == Target::Avx2 {
            return self.choice(to, of);
        }
        let is_memory = |operand: Operand| matches!(operand, Operand::Memory(_));
        let operands = of.map(|value| self.allocator.operand(value));
        let dying = (0..3).find(|&at| {
            self.allocator.is_last_use_in_register(of[at])
                && (0..3).all(|other| other == at || of[other] != of[at])
        });
        let first = dying.or_else(|| (0..3).find(|&at| is_memory(operands[at]))).unwrap_or(0);
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

    /// The words one place earlier, the first one from the block before, in scratch; the last one is kept for the next block.
    fn words_before(&mut self, source: u8, carry: Carry) -> u8 {
        let Registers { scratch, scratch_2, .. } = self.registers;
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
        };
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
        }
        register
    }

    fn sum_with_masks(&mut self, register: u8, addend: u8, other: Operand, within: bool, carry: Carry) {
        let ones = Operand::Register(self.registers.ones);
        if within {
            self.code.vector(VPANDQ, register, addend, other);
            self.code.vector(VPADDQ, register, register, Operand::Register(addend));
        } else {
            self.code.vector(VPADDQ, register, addend, other);
        }
        self.code.less(1, register, Operand::Register(addend));
        self.code.equal(2, register, ones);
        self.code.move_from_mask(RAX, 1);
        self.code.move_from_mask(R9, 2);
        self.increments(carry);
        self.code.move_to_mask(1);
        self.code.shift_out_byte();
        self.keep_bit(carry);
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
        self.code.vector(VPORQ, scratch_2, scratch_2, Operand::Register(register));
        self.code.high_bits(RAX, scratch_2);
        self.code.equal(scratch_2, ones, sum);
        self.code.high_bits(R9, scratch_2);
        self.increments(carry);
        self.code.address_by_nibble();
        self.keep_bit(carry);
        self.code.vector(VPSUBQ, register, scratch, Operand::Memory(Place { base: R9, bytes: 0 }));
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
            (Target::Avx2, MATCH_STAR) => {
                self.code.vector(VPXORQ, register, register, Operand::Register(class));
                self.code.vector(VPORQ, register, register, markers);
            }
            (Target::Avx2, _) => {
                self.code.vector(VPORQ, register, register, markers);
                self.code.vector(VPANDNQ, register, class, Operand::Register(register));
            }
        }
    }

    // --- bodies

    fn if_any(&mut self, condition: Value, body: &[Instruction], yields: &[(Value, Value)]) {
        let condition_register = self.in_register(condition);
        self.code.test_any(condition_register);
        self.allocator.finish();
        let skip = self.code.jump(When::Zero);
        let fork = self.allocator.fork();
        self.body(body);
        self.allocator.at += 1;
        let mut places = Vec::new();
        for &(outer, inner) in yields {
            let register = self.in_register(inner);
            let place = self.allocator.set_frame(outer);
            self.code.store(place, register);
            self.allocator.finish();
            places.push(place);
        }
        self.allocator.join(self.code, &fork);
        let done = self.code.jump(When::Always);
        self.code.land(skip);
        self.code.vector(
            VPXORQ,
            self.registers.scratch,
            self.registers.scratch,
            Operand::Register(self.registers.scratch),
        );
        places.iter().for_each(|&place| self.code.store(place, self.registers.scratch));
        self.code.land(done);
        yields.iter().for_each(|&(outer, _)| {
            self.allocator.set_frame(outer);
        });
    }

    fn while_any(&mut self, to: Value, initial: Value, frontier: Value, body: &[Instruction], next: Value) {
        let carries = carries_of(body);
        let start = self.in_register(initial);
        let (all, front) = (self.allocator.set_frame(to), self.allocator.set_frame(frontier));
        self.code.store(all, start);
        self.code.store(front, start);
        self.allocator.finish();
        if self.loops == 0 {
            self.clear(carries.iter().map(|&carry| self.handed_on(carry)).collect());
        }
        self.loops += 1;
        let head = self.code.here();
        let fork = self.allocator.fork();
        self.body(body);
        self.allocator.at += 1;
        let new = self.in_register(next);
        self.code.load(self.registers.scratch, Operand::Memory(all));
        self.code.vector(VPANDNQ, self.registers.scratch_2, self.registers.scratch, Operand::Register(new));
        self.code.vector(
            VPORQ,
            self.registers.scratch,
            self.registers.scratch,
            Operand::Register(self.registers.scratch_2),
        );
        self.code.store(all, self.registers.scratch);
        self.code.store(front, self.registers.scratch_2);
        self.allocator.finish();
        self.clear(carries.iter().map(|&carry| received(carry)).collect());
        self.code.test_any(self.registers.scratch_2);
        self.allocator.join(self.code, &fork);
        let again = self.code.jump(When::NotZero);
        self.code.land_at(again, head);
        self.loops -= 1;
        if self.loops == 0 {
            for carry in carries {
                self.code.load(self.registers.scratch, Operand::Memory(self.handed_on(carry)));
                self.code.store(received(carry), self.registers.scratch);
            }
        }
        self.allocator.set_frame(to);
    }

    fn clear(&mut self, places: Vec<Place>) {
        self.code.vector(
            VPXORQ,
            self.registers.scratch,
            self.registers.scratch,
            Operand::Register(self.registers.scratch),
        );
        places.into_iter().for_each(|place| self.code.store(place, self.registers.scratch));
    }
}

/// The carries of a body, bodies inside included.
fn carries_of(body: &[Instruction]) -> Vec<Carry> {
    let mut all = Vec::new();
    for one in body {
        all.extend(one.op.carry());
        all.extend(one.op.body().map(carries_of).unwrap_or_default());
    }
    all
}

/// The table of the same function with its operands in another order: new operand `k` is old operand `order[k]`.
fn permuted(table: u8, order: [usize; 3]) -> u8 {
    (0..8u8).fold(0, |permuted, index| {
        let mut old = 0;
        for (new_place, &old_place) in order.iter().enumerate() {
            old |= (index >> (2 - new_place) & 1) << (2 - old_place);
        }
        permuted | (table >> old & 1) << index
    })
}
