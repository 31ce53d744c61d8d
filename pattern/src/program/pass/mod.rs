//! Passes: programs into programs that compute the same with less.
//!
//! Common subexpressions and class sharing are the builder's work, done while a program is written. Here are the passes over
//! finished programs: [`without_dead_code`], [`with_ternaries`] (for machines whose logic instructions have three operands) and
//! [`for_ascii`] (the program that is left where no byte has its high bit set).

use super::{BitProgram, Carry, Instruction, Op, Value};

mod ascii;
mod fuse;

pub use ascii::for_ascii;
pub use fuse::with_ternaries;

/// Drops what the output does not need, and numbers values and carries densely again.
pub fn without_dead_code(program: BitProgram) -> BitProgram {
    renumber(only_live(program, Carries::Dense), Carries::Dense)
}

/// The same, but every carry keeps its number, and operations that carry stay even where nobody uses their result: for programs that take
/// turns with another one on the same carries.
fn without_dead_code_same_carries(program: BitProgram) -> BitProgram {
    renumber(only_live(program, Carries::Same), Carries::Same)
}

fn only_live(mut program: BitProgram, carries: Carries) -> BitProgram {
    let mut live = vec![false; program.values as usize];
    live[program.output.0 as usize] = true;
    program.body = live_part(program.body, &mut live, carries);
    program
}

#[derive(Clone, Copy, PartialEq)]
enum Carries {
    Dense,
    Same,
}

/// Values that a body needs are marked in `live`; its instructions are kept when their results are.
fn live_part(body: Vec<Instruction>, live: &mut [bool], carries: Carries) -> Vec<Instruction> {
    let mut kept = Vec::with_capacity(body.len());
    for mut one in body.into_iter().rev() {
        if let Op::IfAny { yields, .. } = &mut one.op {
            yields.retain(|one| live[one.outer.0 as usize]);
            let Some(first) = yields.first() else { continue };
            one.result = first.outer;
        }
        let stays = carries == Carries::Same && owns_carries(&one);
        if !live[one.result.0 as usize] && !stays {
            continue;
        }
        one.op.operands(|value| live[value.0 as usize] = true);
        one.op = match one.op {
            Op::IfAny { condition, body, yields } => {
                yields.iter().for_each(|one| live[one.inner.0 as usize] = true);
                Op::IfAny { condition, body: live_part(body, live, carries), yields }
            }
            Op::WhileAny { initial, frontier, body, next } => {
                live[next.0 as usize] = true;
                Op::WhileAny { initial, frontier, body: live_part(body, live, carries), next }
            }
            op => op,
        };
        kept.push(one);
    }
    kept.reverse();
    kept
}

/// Whether the operation, or one in its body, owns a carry.
pub(super) fn owns_carries(one: &Instruction) -> bool {
    one.op.carry().is_some() || one.op.body().is_some_and(|body| body.iter().any(owns_carries))
}

struct Renumber {
    values: Vec<u32>,
    next: u32,
    carries: Vec<bool>,
    old_carries: Vec<bool>,
    keep: Carries,
}

fn renumber(program: BitProgram, keep: Carries) -> BitProgram {
    let mut renumber = Renumber {
        values: vec![u32::MAX; program.values as usize],
        next: 0,
        carries: if keep == Carries::Same { program.carries.clone() } else { Vec::new() },
        old_carries: program.carries,
        keep,
    };
    let body = program.body.into_iter().map(|one| renumber.instruction(one)).collect();
    let output = renumber.used(program.output);
    let (values, carries, terminator) = (renumber.next, renumber.carries, program.terminator);
    BitProgram { body, output, values, carries, terminator }
}

impl Renumber {
    fn defined(&mut self, value: Value) -> Value {
        self.values[value.0 as usize] = self.next;
        self.next += 1;
        Value(self.next - 1)
    }

    fn used(&self, value: Value) -> Value {
        Value(self.values[value.0 as usize])
    }

    fn carry(&mut self, carry: Carry) -> Carry {
        if self.keep == Carries::Same {
            return carry;
        }
        self.carries.push(self.old_carries[carry.0 as usize]);
        Carry(self.carries.len() as u32 - 1)
    }

    fn instruction(&mut self, one: Instruction) -> Instruction {
        let op = match one.op {
            Op::Not(a) => Op::Not(self.used(a)),
            Op::And(a, b) => Op::And(self.used(a), self.used(b)),
            Op::Or(a, b) => Op::Or(self.used(a), self.used(b)),
            Op::Xor(a, b) => Op::Xor(self.used(a), self.used(b)),
            Op::AndNot(a, b) => Op::AndNot(self.used(a), self.used(b)),
            Op::Ternary { table, of } => Op::Ternary { table, of: of.map(|value| self.used(value)) },
            Op::Advance { by, of, carry } => Op::Advance { by, of: self.used(of), carry: self.carry(carry) },
            Op::MatchStar { markers, class, carry } => Op::MatchStar {
                markers: self.used(markers),
                class: self.used(class),
                carry: self.carry(carry),
            },
            Op::ScanThru { markers, class, carry } => Op::ScanThru {
                markers: self.used(markers),
                class: self.used(class),
                carry: self.carry(carry),
            },
            Op::Add { a, b, carry } => Op::Add { a: self.used(a), b: self.used(b), carry: self.carry(carry) },
            Op::IfAny { condition, body, mut yields } => {
                let condition = self.used(condition);
                let body = body.into_iter().map(|one| self.instruction(one)).collect();
                for one in &mut yields {
                    one.inner = self.used(one.inner);
                    one.outer = self.defined(one.outer);
                }
                let result = yields[0].outer;
                return Instruction { result, op: Op::IfAny { condition, body, yields } };
            }
            Op::WhileAny { initial, frontier, body, next } => {
                let initial = self.used(initial);
                let frontier = self.defined(frontier);
                let body = body.into_iter().map(|one| self.instruction(one)).collect();
                Op::WhileAny { initial, frontier, body, next: self.used(next) }
            }
            op @ (Op::Zero | Op::Ones | Op::Basis { .. }) => op,
        };
        Instruction { result: self.defined(one.result), op }
    }
}
