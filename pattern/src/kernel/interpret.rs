//! The interpreter: each operation over a whole chunk of a stream before the next one.
//!
//! A chunk is up to 128 words, so that the price of dispatch is paid once per 16 vectors of 512
//! bits or 32 of 256. Code is plain Rust over slices of words, translated once for each instruction
//! set that [`Isa`] names; the compiler makes vectors of the logic. Values share the memory of
//! those that are no longer needed, so the streams of usual programs stay in the first-level cache.
//!
//! Carries follow the blocks: an advance keeps the last word of its operand, an addition one bit.
//! In a loop every iteration's carries are united into what the next block receives, and only the
//! first iteration receives anything. What it leaves out: three-input logic is slow here, so
//! programs are interpreted before they are fused.

use super::liveness::Uses;
use crate::program::{BitProgram, Carry, Instruction, Op, Value};
use crate::transpose::{Basis, CHUNK_WORDS};

/// The interpreter's loops, translated for one instruction set; [`translate_interpreter`] makes
/// one.
pub(super) type Interpret = fn(&mut Execution<'_>, &[Step]);

#[repr(C, align(64))]
#[derive(Clone)]
struct ChunkStream([u64; CHUNK_WORDS]);

/// An operation on slots: 0 to 7 are the basis streams, the others own memory.
#[derive(Debug)]
pub(super) enum Step {
    Fill {
        to: usize,
        word: u64,
    },
    /// The last bytes of rows.
    RowEnds {
        to: usize,
    },
    Delay {
        to: usize,
        bit: usize,
        by: u32,
    },
    Not {
        to: usize,
        of: usize,
    },
    Two {
        kind: Two,
        to: usize,
        of: [usize; 2],
    },
    Ternary {
        table: u8,
        to: usize,
        of: [usize; 3],
    },
    Advance {
        by: u32,
        to: usize,
        of: usize,
        carry: usize,
    },
    Sum {
        kind: Sum,
        to: usize,
        of: [usize; 2],
        carry: usize,
    },
    If {
        condition: usize,
        body: Vec<Step>,
        yields: Vec<(usize, usize)>,
    },
    While {
        initial: usize,
        frontier: usize,
        to: usize,
        next: usize,
        body: Vec<Step>,
        carries: Vec<usize>,
        outermost: bool,
    },
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Two {
    And,
    Or,
    Xor,
    AndNot,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Sum {
    MatchStar,
    ScanThru,
    Plain,
}

/// A program ready to be interpreted.
#[derive(Debug)]
pub(crate) struct Interpreter {
    steps: Vec<Step>,
    slots: usize,
    output: usize,
    kept: Vec<usize>,
}

/// The streams of one scan. Shapes: a chunk per slot.
pub(crate) struct Arena {
    #[allow(clippy::vec_box, reason = "streams change places with the spare one, by pointer")]
    streams: Vec<Box<ChunkStream>>,
    /// Absent only while it is written.
    spare: Option<Box<ChunkStream>>,
}

impl Arena {
    fn grow(&mut self, slots: usize) {
        self.streams.resize_with(slots.saturating_sub(8).max(self.streams.len()), || {
            Box::new(ChunkStream([0; CHUNK_WORDS]))
        });
    }

    pub(crate) fn new() -> Arena {
        Arena { streams: Vec::new(), spare: None }
    }
}

/// The carries between blocks: for an advance the last word of its operand, for an addition one
/// bit.
#[derive(Clone, Debug)]
pub(crate) struct Carries {
    pub(crate) received: Vec<u64>,
    handed_on: Vec<u64>,
}

impl Carries {
    pub(crate) fn new(program: &BitProgram) -> Carries {
        let received = program.carries.iter().map(|&starts| u64::from(starts) << 63).collect::<Vec<_>>();
        Carries { handed_on: vec![0; received.len()], received }
    }
}

// --- from programs to steps

struct SlotAllocator<'p> {
    uses: &'p Uses,
    slot: Vec<usize>,
    free: Vec<usize>,
    slots: usize,
    at: u32,
    loops: usize,
}

impl Interpreter {
    pub(crate) fn new(program: &BitProgram) -> Interpreter {
        let uses = Uses::of(program);
        let slot = vec![usize::MAX; program.values as usize];
        let mut allocator = SlotAllocator { uses: &uses, slot, free: vec![], slots: 8, at: 0, loops: 0 };
        let steps = allocator.body(&program.body);
        let output = allocator.of(program.output);
        let kept = program.kept.iter().map(|&kept| allocator.of(kept)).collect();
        Interpreter { steps, slots: allocator.slots, output, kept }
    }
}

/// The best number of words to compute at once: loops repeat as often as the longest chain in a
/// chunk, so programs with loops have short chunks.
pub(crate) fn chunk_words(program: &BitProgram) -> usize {
    match program.body.iter().any(|one| matches!(one.op, Op::WhileAny { .. })) {
        true => 16,
        false => CHUNK_WORDS,
    }
}

impl SlotAllocator<'_> {
    fn of(&self, value: Value) -> usize {
        self.slot[value.0 as usize]
    }

    fn take(&mut self, value: Value) -> usize {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots += 1;
            self.slots - 1
        });
        self.slot[value.0 as usize] = slot;
        slot
    }

    /// Frees the memory of a value whose last use is the current instruction.
    fn release(&mut self, value: Value) {
        let slot = self.of(value);
        if self.uses.last(value) <= self.at && slot >= 8 && slot != usize::MAX {
            self.free.push(slot);
            self.slot[value.0 as usize] = usize::MAX;
        }
    }

    fn body(&mut self, body: &[Instruction]) -> Vec<Step> {
        let mut steps = Vec::with_capacity(body.len());
        for one in body {
            self.at += 1;
            steps.extend(self.step(one));
            one.op.operands(|value| self.release(value));
            self.release(one.result);
        }
        steps
    }

    fn step(&mut self, one: &Instruction) -> Option<Step> {
        // Operands are looked up before the result takes a slot. Their own slots are given back
        // behind the step, where this was their last use.
        let carry = one.op.carry().map_or(0, |Carry(number)| number as usize);
        Some(match &one.op {
            Op::Basis { bit, delay: 0 } => {
                self.slot[one.result.0 as usize] = usize::from(*bit);
                return None;
            }
            Op::Zero => Step::Fill { to: self.take(one.result), word: 0 },
            Op::Ones => Step::Fill { to: self.take(one.result), word: u64::MAX },
            Op::RowEnds => Step::RowEnds { to: self.take(one.result) },
            Op::Basis { bit, delay } => {
                Step::Delay { to: self.take(one.result), bit: usize::from(*bit), by: u32::from(*delay) }
            }
            Op::Not(a) => Step::Not { of: self.of(*a), to: self.take(one.result) },
            Op::And(a, b) => self.two(Two::And, *a, *b, one.result),
            Op::Or(a, b) => self.two(Two::Or, *a, *b, one.result),
            Op::Xor(a, b) => self.two(Two::Xor, *a, *b, one.result),
            Op::AndNot(a, b) => self.two(Two::AndNot, *a, *b, one.result),
            Op::Ternary { table, of } => {
                Step::Ternary { table: *table, of: of.map(|value| self.of(value)), to: self.take(one.result) }
            }
            Op::Advance { by, of, .. } => {
                Step::Advance { by: u32::from(*by), of: self.of(*of), to: self.take(one.result), carry }
            }
            Op::MatchStar { markers, class, .. } => {
                self.sum(Sum::MatchStar, *markers, *class, one.result, carry)
            }
            Op::ScanThru { markers, class, .. } => {
                self.sum(Sum::ScanThru, *markers, *class, one.result, carry)
            }
            Op::Add { a, b, .. } => self.sum(Sum::Plain, *a, *b, one.result, carry),
            Op::IfAny { condition, body, yields } => {
                let condition = self.of(*condition);
                let to: Vec<usize> = yields.iter().map(|one| self.take(one.outer)).collect();
                let body = self.body(body);
                self.at += 1;
                let from: Vec<usize> = yields.iter().map(|one| self.of(one.inner)).collect();
                yields.iter().for_each(|one| self.release(one.inner));
                Step::If { condition, body, yields: to.into_iter().zip(from).collect() }
            }
            Op::WhileAny { initial, frontier, body, next } => {
                let initial = self.of(*initial);
                let (to, frontier_slot) = (self.take(one.result), self.take(*frontier));
                let carries = carries(body);
                let outermost = self.loops == 0;
                self.loops += 1;
                let steps = self.body(body);
                self.loops -= 1;
                self.at += 1;
                let next_slot = self.of(*next);
                self.release(*next);
                self.release(*frontier);
                self.release_outside(body);
                Step::While {
                    initial,
                    frontier: frontier_slot,
                    to,
                    next: next_slot,
                    body: steps,
                    carries,
                    outermost,
                }
            }
        })
    }

    /// Frees values from before a loop whose last use is the loop's end.
    fn release_outside(&mut self, body: &[Instruction]) {
        for one in body {
            one.op.operands(|value| {
                if self.uses.last(value) == self.at {
                    self.release(value);
                }
            });
            self.release_outside(one.op.body().unwrap_or_default());
        }
    }

    fn two(&mut self, kind: Two, a: Value, b: Value, result: Value) -> Step {
        Step::Two { kind, of: [self.of(a), self.of(b)], to: self.take(result) }
    }

    fn sum(&mut self, kind: Sum, a: Value, b: Value, result: Value, carry: usize) -> Step {
        Step::Sum { kind, of: [self.of(a), self.of(b)], to: self.take(result), carry }
    }
}

/// The carries of a body, bodies inside included.
fn carries(body: &[Instruction]) -> Vec<usize> {
    let mut all = Vec::new();
    for one in body {
        all.extend(one.op.carry().map(|Carry(number)| number as usize));
        all.extend(one.op.body().map(carries).unwrap_or_default());
    }
    all
}

// --- running

pub(super) struct Execution<'r> {
    basis: &'r Basis,
    arena: &'r mut Arena,
    carries: &'r mut Carries,
    /// The output's place, which holds the last bytes of rows until it is written.
    row_ends: &'r [u64],
    first: usize,
    words: usize,
    in_loop: bool,
}

impl Interpreter {
    /// Computes the output's words `first..first + words` of a chunk, after those before have been
    /// computed, into `output`, which holds the last bytes of rows before; streams that are kept
    /// follow it, a chunk's words apart.
    pub(crate) fn run(
        &self,
        interpret: Interpret,
        basis: &Basis,
        range: std::ops::Range<usize>,
        arena: &mut Arena,
        carries: &mut Carries,
        output: &mut [u64],
    ) {
        arena.grow(self.slots);
        let (first, words) = (range.start, range.len());
        let mut row_ends = [0; CHUNK_WORDS];
        row_ends[..words].copy_from_slice(&output[..words]);
        let row_ends = &row_ends[..words];
        let mut run = Execution { basis, arena, carries, row_ends, first, words, in_loop: false };
        interpret(&mut run, &self.steps);
        let Execution { basis, arena, .. } = run;
        let stream = |slot: usize| stream_of(basis, arena, slot, first, words);
        output[..words].copy_from_slice(stream(self.output));
        for (number, &slot) in self.kept.iter().enumerate() {
            let at = (number + 1) * CHUNK_WORDS;
            output[at..at + words].copy_from_slice(stream(slot));
        }
    }
}

/// The words of a slot.
#[inline(always)]
fn stream_of<'s>(basis: &'s Basis, arena: &'s Arena, slot: usize, first: usize, words: usize) -> &'s [u64] {
    match slot.checked_sub(8) {
        None => &basis.stream(slot)[first..first + words],
        Some(own) => &arena.streams[own].0[..words],
    }
}

impl Execution<'_> {
    /// Begins a loop, whose carries are collected in a second bank; returns whether it is inside
    /// another loop.
    #[inline(always)]
    pub(super) fn enter_loop(&mut self, is_outermost: bool, carries: &[usize]) -> bool {
        if is_outermost {
            carries.iter().for_each(|&carry| self.carries.handed_on[carry] = 0);
        }
        std::mem::replace(&mut self.in_loop, true)
    }

    /// Clears the carries after the first round of a loop, because only that round gets those of
    /// the block before.
    #[inline(always)]
    pub(super) fn forget_received(&mut self, carries: &[usize]) {
        carries.iter().for_each(|&carry| self.carries.received[carry] = 0);
    }

    /// Ends a loop: the carries of all rounds become those for the next block.
    #[inline(always)]
    pub(super) fn leave_loop(&mut self, was_in_loop: bool, is_outermost: bool, carries: &[usize]) {
        self.in_loop = was_in_loop;
        if is_outermost {
            carries.iter().for_each(|&carry| {
                self.carries.received[carry] = self.carries.handed_on[carry];
            });
        }
    }

    #[inline(always)]
    fn stream(&self, slot: usize) -> &[u64] {
        stream_of(self.basis, self.arena, slot, self.first, self.words)
    }

    #[inline(always)]
    pub(super) fn copy_row_ends(&mut self, to: usize) {
        let mut spare = self.spare();
        spare.0[..self.words].copy_from_slice(self.row_ends);
        self.put(to, spare);
    }

    /// Zips streams into `to`: into the spare memory, which then changes places with what `to` had.
    #[inline(always)]
    fn zip(&mut self, to: usize, a: usize, b: usize, f: impl Fn(u64, u64) -> u64) {
        let mut spare = self.spare();
        let (a, b) = (self.stream(a), self.stream(b));
        for ((word, &a), &b) in spare.0[..self.words].iter_mut().zip(a).zip(b) {
            *word = f(a, b);
        }
        self.put(to, spare);
    }

    /// Zips three streams into `to`, through the spare memory.
    #[inline(always)]
    fn zip3(&mut self, to: usize, [a, b, c]: [usize; 3], f: impl Fn(u64, u64, u64) -> u64) {
        let mut spare = self.spare();
        let (a, b, c) = (self.stream(a), self.stream(b), self.stream(c));
        for (((word, &a), &b), &c) in spare.0[..self.words].iter_mut().zip(a).zip(b).zip(c) {
            *word = f(a, b, c);
        }
        self.put(to, spare);
    }

    #[inline(always)]
    fn spare(&mut self) -> Box<ChunkStream> {
        self.arena.spare.take().unwrap_or_else(|| Box::new(ChunkStream([0; CHUNK_WORDS])))
    }

    /// Zips two streams into `to` from the lowest word on, with a carry that goes from one word to
    /// the next; returns the last carry.
    #[inline(always)]
    fn scan(
        &mut self,
        to: usize,
        [a, b]: [usize; 2],
        mut carry: u64,
        f: impl Fn(&mut u64, u64, u64) -> u64,
    ) -> u64 {
        let mut spare = self.spare();
        let (a, b) = (self.stream(a), self.stream(b));
        for ((word, &a), &b) in spare.0[..self.words].iter_mut().zip(a).zip(b) {
            *word = f(&mut carry, a, b);
        }
        self.put(to, spare);
        carry
    }

    #[inline(always)]
    fn put(&mut self, to: usize, written: Box<ChunkStream>) {
        self.arena.spare = Some(std::mem::replace(&mut self.arena.streams[to - 8], written));
    }

    #[inline(always)]
    pub(super) fn copy(&mut self, to: usize, from: usize) {
        self.zip(to, from, from, |word, _| word);
    }

    #[inline(always)]
    pub(super) fn fill(&mut self, to: usize, word: u64) {
        let mut spare = self.spare();
        spare.0[..self.words].fill(word);
        self.put(to, spare);
    }

    #[inline(always)]
    pub(super) fn any(&self, slot: usize) -> bool {
        self.stream(slot).iter().fold(0, |all, word| all | word) != 0
    }

    #[inline(always)]
    fn hand_on(&mut self, carry: usize, word: u64) {
        if self.in_loop {
            self.carries.handed_on[carry] |= word;
        } else {
            self.carries.received[carry] = word;
        }
    }

    /// Ends a round of a loop: new bits become the frontier and join the result. Returns whether
    /// there are any.
    #[inline(always)]
    pub(super) fn advance_frontier(&mut self, all: usize, frontier: usize, next: usize) -> bool {
        self.zip(frontier, next, all, |next, all| next & !all);
        self.zip(all, all, frontier, |all, new| all | new);
        self.any(frontier)
    }

    /// `of` moved by `by`, with the last word of the block before.
    #[inline(always)]
    fn moved(&mut self, to: usize, of: usize, by: u32, before: u64) {
        let mut spare = self.spare();
        let of = self.stream(of);
        let out = &mut spare.0[..self.words];
        out[0] = of[0] << by | before >> (64 - by);
        for (word, pair) in out[1..].iter_mut().zip(of.windows(2)) {
            *word = pair[1] << by | pair[0] >> (64 - by);
        }
        self.put(to, spare);
    }

    #[inline(always)]
    pub(super) fn flat(&mut self, step: &Step) {
        // Logic is a loop over words. What looks back reads the word before the chunk, or its
        // carry.
        match *step {
            Step::Fill { to, word } => self.fill(to, word),
            Step::Delay { to, bit, by } => {
                let before = match self.first.checked_sub(1) {
                    None => self.basis.history(bit),
                    Some(last) => self.basis.stream(bit)[last],
                };
                self.moved(to, bit, by, before);
            }
            Step::RowEnds { to } => self.copy_row_ends(to),
            Step::Not { to, of } => self.zip(to, of, of, |a, _| !a),
            Step::Two { kind: Two::And, to, of: [a, b] } => self.zip(to, a, b, |a, b| a & b),
            Step::Two { kind: Two::Or, to, of: [a, b] } => self.zip(to, a, b, |a, b| a | b),
            Step::Two { kind: Two::Xor, to, of: [a, b] } => self.zip(to, a, b, |a, b| a ^ b),
            Step::Two { kind: Two::AndNot, to, of: [a, b] } => self.zip(to, a, b, |a, b| a & !b),
            Step::Ternary { table: 0xCA, to, of } => self.zip3(to, of, |a, b, c| (a & b) | (!a & c)),
            Step::Ternary { table, to, of } => self.zip3(to, of, |a, b, c| ternary(table, [a, b, c])),
            Step::Advance { by, to, of, carry } => {
                let last = self.stream(of)[self.words - 1];
                self.moved(to, of, by, self.carries.received[carry]);
                self.hand_on(carry, last);
            }
            Step::Sum { kind, to, of, carry } => {
                let received = self.carries.received[carry];
                let carried = match kind {
                    Sum::MatchStar => self.scan(to, of, received, |carry, m, c| add(carry, m & c, c) ^ c | m),
                    Sum::ScanThru => {
                        self.scan(to, of, received, |carry, m, c| (add(carry, m & c, c) | m) & !c)
                    }
                    Sum::Plain => self.scan(to, of, received, add),
                };
                self.hand_on(carry, carried);
            }
            Step::If { .. } | Step::While { .. } => {}
        }
    }
}

/// One digit of a long addition.
#[inline(always)]
fn add(carry: &mut u64, a: u64, b: u64) -> u64 {
    let (sum, first) = a.overflowing_add(b);
    let (sum, second) = sum.overflowing_add(*carry);
    *carry = u64::from(first | second);
    sum
}

/// A truth table on 64 triples of bits: the union of its rows.
#[inline(always)]
fn ternary(table: u8, [a, b, c]: [u64; 3]) -> u64 {
    let row = |index: u8| {
        let literal = |bit: u8, word: u64| if index >> bit & 1 == 1 { word } else { !word };
        let mask = 0u64.wrapping_sub(u64::from(table >> index & 1));
        mask & literal(2, a) & literal(1, b) & literal(0, c)
    };
    (0..8).fold(0, |union, index| union | row(index))
}
