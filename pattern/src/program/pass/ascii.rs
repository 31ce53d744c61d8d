//! The simpler program that suffices where no byte has its high bit set.
//!
//! Unicode classes cost many operations that find nothing in plain ASCII. Kernels test each block
//! and run this program instead where the block and the 64 bytes before it are ASCII. Both programs
//! share their carries.
//!
//! **Why that is exact.** The high basis stream is replaced by zero and constants are folded. A
//! fold may drop an operation that owns a carry only if the carry is known to be zero: a stream
//! that is zero wherever the last `reach` bytes are ASCII carries nothing over a boundary after 64
//! ASCII bytes, as long as reach and distance together stay within 64. Other folds are not made.

use super::renumber::without_dead_code_same_carries;
use crate::program::build::Builder;
use crate::program::operation::Yield;
use crate::program::operation::{BitProgram, Instruction, Op, Value};

/// The bytes before a block that must be ASCII as well.
pub(crate) const LOOK_BACK_BYTES: u32 = 64;

struct Specialise {
    builder: Builder,
    /// The new name of each value and, for constants, how many bytes must be ASCII for it to be
    /// one.
    map: Vec<(Value, u32)>,
    starts: Vec<bool>,
}

/// The program for blocks of ASCII. It uses the carries of `program`, and may leave some unchanged.
pub fn for_ascii(program: &BitProgram) -> BitProgram {
    let mut pass = Specialise {
        builder: Builder::new(program.terminator),
        map: vec![(Value(0), 0); program.values as usize],
        starts: program.carries.clone(),
    };
    pass.body(&program.body);
    let output = pass.map[program.output.0 as usize].0;
    let kept = program.kept.iter().map(|kept| pass.map[kept.0 as usize].0).collect();
    let carries = program.carries.clone();
    without_dead_code_same_carries(BitProgram { carries, kept, ..pass.builder.program(output) })
}

impl Specialise {
    fn body(&mut self, body: &[Instruction]) {
        body.iter().for_each(|one| self.instruction(one));
    }

    fn get(&self, value: Value) -> Value {
        self.map[value.0 as usize].0
    }

    fn set(&mut self, old: Value, new: Value, reach: u32) {
        let is_constant = new == self.builder.zero() || new == self.builder.ones();
        self.map[old.0 as usize] = (new, if is_constant { reach } else { 0 });
    }

    fn reach(&self, op: &Op) -> u32 {
        let mut reach = 0;
        op.operands(|value| reach = reach.max(self.map[value.0 as usize].1));
        reach
    }

    fn instruction(&mut self, one: &Instruction) {
        // The highest bit of every byte is zero, and the builder simplifies logic accordingly. An
        // operation that carries is removed only if nothing that it depends on lies further back
        // than the bytes that are known to be ASCII: then its carry is zero too.
        let mut reach = self.reach(&one.op);
        let new = match &one.op {
            Op::Zero => self.builder.zero(),
            Op::Ones => self.builder.ones(),
            Op::Basis { bit: 7, delay } => {
                reach = u32::from(*delay);
                self.builder.zero()
            }
            Op::Basis { bit, delay } => self.builder.basis(*bit, *delay),
            Op::RowEnds => self.builder.row_ends(),
            Op::Not(a) => {
                let a = self.get(*a);
                self.builder.not(a)
            }
            Op::And(a, b) => self.binary(*a, *b, Builder::and),
            Op::Or(a, b) => self.binary(*a, *b, Builder::or),
            Op::Xor(a, b) => self.binary(*a, *b, Builder::xor),
            Op::AndNot(a, b) => self.binary(*a, *b, Builder::and_not),
            Op::Ternary { table, of } => self.ternary(*table, of.map(|value| self.get(value))),
            Op::Advance { by, of, carry } => {
                reach += u32::from(*by);
                let starts = self.starts[carry.0 as usize];
                let of = self.get(*of);
                if of == self.builder.zero() && !starts && reach <= LOOK_BACK_BYTES {
                    of
                } else {
                    self.builder.with_carry_of(Op::Advance { by: *by, of, carry: *carry })
                }
            }
            Op::MatchStar { markers, class, carry } => {
                let (markers, class) = (self.get(*markers), self.get(*class));
                if class == self.builder.zero() && reach < LOOK_BACK_BYTES {
                    markers
                } else {
                    self.builder.with_carry_of(Op::MatchStar { markers, class, carry: *carry })
                }
            }
            Op::ScanThru { markers, class, carry } => {
                let (markers, class) = (self.get(*markers), self.get(*class));
                if class == self.builder.zero() && reach < LOOK_BACK_BYTES {
                    markers
                } else {
                    self.builder.with_carry_of(Op::ScanThru { markers, class, carry: *carry })
                }
            }
            Op::Add { a, b, carry } => {
                let (a, b) = (self.get(*a), self.get(*b));
                self.builder.with_carry_of(Op::Add { a, b, carry: *carry })
            }
            Op::IfAny { condition, body, yields } => return self.if_any(*condition, body, yields, reach),
            Op::WhileAny { initial, frontier, body, next } => {
                self.while_any(*initial, *frontier, body, *next)
            }
        };
        self.set(one.result, new, reach);
    }

    fn binary(&mut self, a: Value, b: Value, make: fn(&mut Builder, Value, Value) -> Value) -> Value {
        let (a, b) = (self.get(a), self.get(b));
        make(&mut self.builder, a, b)
    }

    /// Simplifies a table by its first constant operand; the rest is a function of two streams,
    /// written as a choice.
    fn ternary(&mut self, table: u8, of: [Value; 3]) -> Value {
        let (zero, ones) = (self.builder.zero(), self.builder.ones());
        let Some(at) = of.iter().position(|&value| value == zero || value == ones) else {
            return self.builder.ternary(table, of);
        };
        let bit = usize::from(of[at] == ones);
        let rest: Vec<Value> = (0..3).filter(|&other| other != at).map(|other| of[other]).collect();
        let value = |x: usize, y: usize| {
            let mut bits = vec![x, y];
            bits.insert(at, bit);
            if table >> (bits[0] << 2 | bits[1] << 1 | bits[2]) & 1 == 1 {
                ones
            } else {
                zero
            }
        };
        let when_set = self.builder.choose(rest[1], value(1, 1), value(1, 0));
        let when_clear = self.builder.choose(rest[1], value(0, 1), value(0, 0));
        self.builder.choose(rest[0], when_set, when_clear)
    }

    fn if_any(&mut self, condition: Value, body: &[Instruction], yields: &[Yield], reach: u32) {
        let condition = self.get(condition);
        if condition == self.builder.zero() {
            yields.iter().for_each(|one| self.set(one.outer, condition, reach));
            return;
        }
        let builder = std::mem::replace(&mut self.builder, Builder::new(0));
        let mut builder = builder;
        let outer = builder.if_any_list(condition, |builder| {
            std::mem::swap(builder, &mut self.builder);
            self.body(body);
            let inner = yields.iter().map(|one| self.get(one.inner)).collect();
            std::mem::swap(builder, &mut self.builder);
            inner
        });
        self.builder = builder;
        let inner_reach = yields.iter().map(|one| self.map[one.inner.0 as usize].1).max().unwrap_or(0);
        for (one, new) in yields.iter().zip(outer) {
            self.set(one.outer, new, reach.max(inner_reach));
        }
    }

    fn while_any(&mut self, initial: Value, frontier: Value, body: &[Instruction], next: Value) -> Value {
        let initial = self.get(initial);
        let mut builder = std::mem::replace(&mut self.builder, Builder::new(0));
        let result = builder.while_any(initial, |builder, new_frontier| {
            std::mem::swap(builder, &mut self.builder);
            self.set(frontier, new_frontier, 0);
            self.body(body);
            let next = self.get(next);
            std::mem::swap(builder, &mut self.builder);
            Ok::<Value, std::convert::Infallible>(next)
        });
        self.builder = builder;
        match result {
            Ok(result) => result,
            Err(never) => match never {},
        }
    }
}
