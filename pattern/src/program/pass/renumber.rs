//! Removes dead code, and renumbers values and carries densely after other passes.

use crate::program::operation::{BitProgram, Carry, Instruction, Op, Value};

/// Removes instructions that the output does not need, and renumbers values and carries densely.
pub fn without_dead_code(program: BitProgram) -> BitProgram {
    renumber(only_live(program, CarryNumbers::Dense), CarryNumbers::Dense)
}

/// A program that defines every basis stream without delay once, before anything else. Carries keep
/// their numbers.
pub(crate) fn with_bases_first(program: &BitProgram) -> BitProgram {
    let mut renumber = Renumber::new(program, CarryNumbers::Same);
    let mut body = Vec::with_capacity(program.body.len());
    for bit in (0..8).filter(|bit| bases(&program.body) >> bit & 1 == 1) {
        let result = Value(renumber.next);
        renumber.next += 1;
        renumber.shared[bit as usize] = Some(result);
        body.push(Instruction { result, op: Op::Basis { bit, delay: 0 } });
    }
    body.extend(renumber.body(program.body.clone()));
    renumber.finish(body, program.output, &program.kept, program.terminator)
}

/// The bits whose basis streams a body reads without delay.
pub(crate) fn bases(body: &[Instruction]) -> u8 {
    body.iter().fold(0, |bits, one| match one.op {
        Op::Basis { bit, delay: 0 } => bits | 1 << bit,
        _ => bits | one.op.body().map_or(0, bases),
    })
}

/// The program without dead code in which every carry keeps its number, and operations with carries
/// stay even if their result is unused. Programs that share their carries with another program need
/// that.
pub(super) fn without_dead_code_same_carries(program: BitProgram) -> BitProgram {
    renumber(only_live(program, CarryNumbers::Same), CarryNumbers::Same)
}

fn only_live(mut program: BitProgram, carries: CarryNumbers) -> BitProgram {
    let mut live = vec![false; program.values as usize];
    live[program.output.0 as usize] = true;
    program.kept.iter().for_each(|kept| live[kept.0 as usize] = true);
    program.body = live_part(program.body, &mut live, carries);
    program
}

#[derive(Clone, Copy, PartialEq)]
enum CarryNumbers {
    Dense,
    Same,
}

/// Marks values that a body needs in `live`, and keeps the instructions whose results are live.
fn live_part(body: Vec<Instruction>, live: &mut [bool], carries: CarryNumbers) -> Vec<Instruction> {
    let mut kept = Vec::with_capacity(body.len());
    for mut one in body.into_iter().rev() {
        if let Op::IfAny { yields, .. } = &mut one.op {
            yields.retain(|one| live[one.outer.0 as usize]);
            let Some(first) = yields.first() else { continue };
            one.result = first.outer;
        }
        let stays = carries == CarryNumbers::Same && owns_carries(&one);
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
pub(crate) fn owns_carries(one: &Instruction) -> bool {
    one.op.carry().is_some() || one.op.body().is_some_and(|body| body.iter().any(owns_carries))
}

struct Renumber {
    values: Vec<u32>,
    next: u32,
    carries: Vec<bool>,
    old_carries: Vec<bool>,
    keep: CarryNumbers,
    /// The names of basis streams that are already defined.
    shared: [Option<Value>; 8],
}

fn renumber(program: BitProgram, keep: CarryNumbers) -> BitProgram {
    let mut renumber = Renumber::new(&program, keep);
    let body = renumber.body(program.body);
    renumber.finish(body, program.output, &program.kept, program.terminator)
}

impl Renumber {
    fn new(program: &BitProgram, keep: CarryNumbers) -> Renumber {
        Renumber {
            values: vec![u32::MAX; program.values as usize],
            next: 0,
            carries: if keep == CarryNumbers::Same { program.carries.clone() } else { Vec::new() },
            old_carries: program.carries.clone(),
            keep,
            shared: [None; 8],
        }
    }

    fn finish(self, body: Vec<Instruction>, output: Value, kept: &[Value], terminator: u8) -> BitProgram {
        let output = self.used(output);
        let kept = kept.iter().map(|&kept| self.used(kept)).collect();
        BitProgram { body, output, kept, values: self.next, carries: self.carries, terminator }
    }

    fn body(&mut self, body: Vec<Instruction>) -> Vec<Instruction> {
        body.into_iter().filter_map(|one| self.instruction(one)).collect()
    }

    fn defined(&mut self, value: Value) -> Value {
        self.values[value.0 as usize] = self.next;
        self.next += 1;
        Value(self.next - 1)
    }

    fn used(&self, value: Value) -> Value {
        Value(self.values[value.0 as usize])
    }

    fn carry(&mut self, carry: Carry) -> Carry {
        if self.keep == CarryNumbers::Same {
            return carry;
        }
        self.carries.push(self.old_carries[carry.0 as usize]);
        Carry(self.carries.len() as u32 - 1)
    }

    /// The instruction with new names; `None` if it only defines a shared stream again.
    fn instruction(&mut self, one: Instruction) -> Option<Instruction> {
        // Operands are looked up before the result gets its number, so numbers ascend in the order
        // of definition.
        let op = match one.op {
            Op::Basis { bit, delay: 0 } if self.shared[usize::from(bit)].is_some() => {
                let shared = self.shared[usize::from(bit)]?;
                self.values[one.result.0 as usize] = shared.0;
                return None;
            }
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
                let body = self.body(body);
                for one in &mut yields {
                    one.inner = self.used(one.inner);
                    one.outer = self.defined(one.outer);
                }
                let result = yields[0].outer;
                return Some(Instruction { result, op: Op::IfAny { condition, body, yields } });
            }
            Op::WhileAny { initial, frontier, body, next } => {
                let initial = self.used(initial);
                let frontier = self.defined(frontier);
                let body = self.body(body);
                Op::WhileAny { initial, frontier, body, next: self.used(next) }
            }
            op @ (Op::Zero | Op::Ones | Op::Basis { .. } | Op::RowEnds) => op,
        };
        Some(Instruction { result: self.defined(one.result), op })
    }
}
