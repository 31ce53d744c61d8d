//! Ternary fusion: three-input logic, for machines that have it (`vpternlog`).
//!
//! Each logic operation is a truth table over at most three leaves. Going forward, an operation swallows those of its operands that nobody else uses,
//! as long as the leaves stay three: a conjunction of eight streams becomes four operations. Operations of an outer body are left there, and a negation is
//! swallowed by all of its users, because it costs nothing in a table.

use super::{without_dead_code_same_carries, BitProgram, Instruction, Op, Value};
use std::collections::HashMap;

/// A function of up to three streams: bit `4a + 2b + c` of the table.
#[derive(Clone)]
struct Function {
    table: u8,
    leaves: Vec<Value>,
}

struct Fuser {
    uses: Vec<u32>,
}

/// Fuses logic into [`Op::Ternary`]. Carries keep their numbers.
pub fn with_ternaries(program: &BitProgram) -> BitProgram {
    let mut fuser = Fuser { uses: vec![0; program.values as usize] };
    fuser.count(&program.body);
    fuser.uses[program.output.0 as usize] += 1;
    let body = fuser.body(&program.body);
    without_dead_code_same_carries(BitProgram { body, ..program.clone() })
}

impl Fuser {
    fn count(&mut self, body: &[Instruction]) {
        for one in body {
            one.op.operands(|value| self.uses[value.0 as usize] += 1);
            match &one.op {
                Op::IfAny { yields, .. } => {
                    yields.iter().for_each(|one| self.uses[one.inner.0 as usize] += 1);
                }
                Op::WhileAny { next, .. } => self.uses[next.0 as usize] += 1,
                _ => {}
            }
            self.count(one.op.body().unwrap_or_default());
        }
    }

    fn body(&self, body: &[Instruction]) -> Vec<Instruction> {
        let mut local: HashMap<Value, Function> = HashMap::new();
        body.iter().map(|one| self.instruction(one, &mut local)).collect()
    }

    fn instruction(&self, one: &Instruction, local: &mut HashMap<Value, Function>) -> Instruction {
        let op = match &one.op {
            Op::IfAny { condition, body, yields } => {
                Op::IfAny { condition: *condition, body: self.body(body), yields: yields.clone() }
            }
            Op::WhileAny { initial, frontier, body, next } => {
                Op::WhileAny { initial: *initial, frontier: *frontier, body: self.body(body), next: *next }
            }
            op => match function(op) {
                Some(plain) => {
                    let fused = self.swallow(plain, local);
                    local.insert(one.result, fused.clone());
                    operation(&fused)
                }
                None => op.clone(),
            },
        };
        Instruction { result: one.result, op }
    }

    /// The function with as many of its operands swallowed as three leaves allow.
    fn swallow(&self, plain: Function, local: &HashMap<Value, Function>) -> Function {
        let worth = |value: &Value| match local.get(value) {
            Some(_) if self.uses[value.0 as usize] == 1 => 2,
            Some(inner) if inner.leaves.len() == 1 => 1,
            _ => 0,
        };
        let mut best: Option<(u32, Function)> = None;
        for chosen in 1u32..1 << plain.leaves.len() {
            let parts: Vec<Option<&Function>> = (0..plain.leaves.len())
                .map(|at| (chosen >> at & 1 == 1).then(|| local.get(&plain.leaves[at])).flatten())
                .collect();
            let gain: u32 =
                (0..parts.len()).filter(|&at| chosen >> at & 1 == 1).map(|at| worth(&plain.leaves[at])).sum();
            let useless = (0..parts.len()).any(|at| chosen >> at & 1 == 1 && worth(&plain.leaves[at]) == 0);
            if useless || best.as_ref().is_some_and(|(best, _)| *best >= gain) {
                continue;
            }
            if let Some(fused) = substitute(&plain, &parts) {
                best = Some((gain, fused));
            }
        }
        best.map_or(plain, |(_, fused)| fused)
    }
}

/// An operation as a truth table, if it is pure logic over other streams.
fn function(op: &Op) -> Option<Function> {
    let (a, b, c) = (0xF0u8, 0xCCu8, 0xAAu8);
    let (table, leaves) = match *op {
        Op::Not(x) => (!a, vec![x]),
        Op::And(x, y) => (a & b, vec![x, y]),
        Op::Or(x, y) => (a | b, vec![x, y]),
        Op::Xor(x, y) => (a ^ b, vec![x, y]),
        Op::AndNot(x, y) => (a & !b, vec![x, y]),
        Op::Ternary { table, of } => {
            let mut leaves: Vec<Value> = Vec::new();
            of.iter().for_each(|leaf| {
                if !leaves.contains(leaf) {
                    leaves.push(*leaf);
                }
            });
            let columns = [a, b, c];
            let place = |leaf: Value| columns[leaves.iter().position(|&known| known == leaf).unwrap_or(0)];
            (apply(table, place(of[0]), place(of[1]), place(of[2])), leaves)
        }
        _ => return None,
    };
    Some(Function { table, leaves })
}

/// A truth table applied to three columns of truth values, each over the same eight rows.
fn apply(table: u8, a: u8, b: u8, c: u8) -> u8 {
    (0..8).fold(0, |result, row| {
        let index = (a >> row & 1) << 2 | (b >> row & 1) << 1 | (c >> row & 1);
        result | (table >> index & 1) << row
    })
}

/// `plain` with some leaves replaced by what they compute; nothing if that needs more than three leaves.
fn substitute(plain: &Function, parts: &[Option<&Function>]) -> Option<Function> {
    let mut leaves: Vec<Value> = Vec::new();
    for (leaf, part) in plain.leaves.iter().zip(parts) {
        for &value in part.map_or(std::slice::from_ref(leaf), |part| &part.leaves) {
            if !leaves.contains(&value) {
                leaves.push(value);
            }
        }
    }
    if leaves.len() > 3 {
        return None;
    }
    let column =
        |value: &Value| [0xF0u8, 0xCC, 0xAA][leaves.iter().position(|leaf| leaf == value).unwrap_or(0)];
    let mut columns = [0u8; 3];
    for (at, (leaf, part)) in plain.leaves.iter().zip(parts).enumerate() {
        columns[at] = match part {
            None => column(leaf),
            Some(part) => {
                let of: Vec<u8> = part.leaves.iter().map(column).collect();
                let get = |at: usize| of.get(at).copied().unwrap_or(0);
                apply(part.table, get(0), get(1), get(2))
            }
        };
    }
    Some(Function { table: apply(plain.table, columns[0], columns[1], columns[2]), leaves })
}

/// The simplest operation that computes a function.
fn operation(function: &Function) -> Op {
    let (a, b) = (0xF0u8, 0xCCu8);
    match (function.table, function.leaves.as_slice()) {
        (0x00, _) => Op::Zero,
        (0xFF, _) => Op::Ones,
        (0x0F, &[x]) => Op::Not(x),
        (_, &[x]) => Op::And(x, x),
        (table, &[x, y]) if table == a & b => Op::And(x, y),
        (table, &[x, y]) if table == a | b => Op::Or(x, y),
        (table, &[x, y]) if table == a ^ b => Op::Xor(x, y),
        (table, &[x, y]) if table == a & !b => Op::AndNot(x, y),
        (table, &[x, y]) if table == !a & b => Op::AndNot(y, x),
        (table, &[x, y]) => Op::Ternary { table: apply(table, a, b, b), of: [x, y, y] },
        (table, &[x, y, z]) => Op::Ternary { table, of: [x, y, z] },
        _ => Op::Zero,
    }
}
