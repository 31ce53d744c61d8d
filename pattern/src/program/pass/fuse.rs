//! Ternary fusion: joins logic operations into functions of three inputs, for machines that have
//! them (`vpternlog`).
//!
//! Each logic operation is a truth table over at most three leaves. In program order, an operation
//! absorbs operands that no other operation uses, as long as it has at most three leaves: a
//! conjunction of eight streams becomes four operations. Operations of an outer body are left
//! there. All users of a negation absorb it, because it costs nothing in a table.

use super::renumber::without_dead_code_same_carries;
use crate::program::operation::{BitProgram, Instruction, Op, Value};

/// A function of up to three streams; its value for bits `a`, `b` and `c` is bit `4a + 2b + c` of
/// the table. It ignores unused leaves.
#[derive(Clone, Copy)]
struct Function {
    table: u8,
    leaves: Leaves,
}

/// Up to three different streams.
#[derive(Clone, Copy)]
struct Leaves {
    values: [Value; 3],
    count: usize,
}

/// Truth values of the three leaves over the eight rows of a table.
const COLUMNS: [u8; 3] = [0xF0, 0xCC, 0xAA];

impl Leaves {
    const NONE: Leaves = Leaves { values: [Value(0); 3], count: 0 };

    fn as_slice(&self) -> &[Value] {
        &self.values[..self.count]
    }

    /// These leaves and `value`; `None` if that would be a fourth one.
    fn with(mut self, value: Value) -> Option<Leaves> {
        if !self.as_slice().contains(&value) {
            *self.values.get_mut(self.count)? = value;
            self.count += 1;
        }
        Some(self)
    }

    fn column(&self, value: Value) -> u8 {
        self.as_slice().iter().position(|&leaf| leaf == value).map_or(0, |at| COLUMNS[at])
    }
}

struct Fuser {
    uses: Vec<u32>,
    /// The functions of logic operations, with the number of the body in which they stand.
    functions: Vec<Option<(u32, Function)>>,
    bodies: u32,
}

/// Fuses logic into [`Op::Ternary`]. Carries keep their numbers.
pub fn with_ternaries(program: &BitProgram) -> BitProgram {
    let values = program.values as usize;
    let mut fuser = Fuser { uses: vec![0; values], functions: vec![None; values], bodies: 0 };
    fuser.count(&program.body);
    fuser.uses[program.output.0 as usize] += 1;
    program.kept.iter().for_each(|kept| fuser.uses[kept.0 as usize] += 1);
    let body = fuser.body(&program.body);
    without_dead_code_same_carries(BitProgram {
        body,
        output: program.output,
        kept: program.kept.clone(),
        values: program.values,
        carries: program.carries.clone(),
        terminator: program.terminator,
    })
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

    fn body(&mut self, body: &[Instruction]) -> Vec<Instruction> {
        self.bodies += 1;
        let own = self.bodies;
        body.iter().map(|one| self.instruction(one, own)).collect()
    }

    fn instruction(&mut self, one: &Instruction, own: u32) -> Instruction {
        let op = match &one.op {
            Op::IfAny { condition, body, yields } => {
                Op::IfAny { condition: *condition, body: self.body(body), yields: yields.clone() }
            }
            Op::WhileAny { initial, frontier, body, next } => {
                Op::WhileAny { initial: *initial, frontier: *frontier, body: self.body(body), next: *next }
            }
            op => match function(op) {
                Some(plain) => {
                    let fused = self.swallow(plain, own);
                    self.functions[one.result.0 as usize] = Some((own, fused));
                    operation(&fused)
                }
                None => op.clone(),
            },
        };
        Instruction { result: one.result, op }
    }

    /// The function of an operand and the gain from absorbing it, if it may be absorbed in this
    /// body.
    fn inner(&self, value: Value, own: u32) -> Option<(u32, Function)> {
        let (body, inner) = self.functions[value.0 as usize]?;
        match () {
            () if body != own => None,
            () if self.uses[value.0 as usize] == 1 => Some((2, inner)),
            () if inner.leaves.count == 1 => Some((1, inner)),
            () => None,
        }
    }

    /// The function with as many operands absorbed as three leaves allow.
    fn swallow(&self, plain: Function, own: u32) -> Function {
        let mut inner = [None; 3];
        for (at, &leaf) in plain.leaves.as_slice().iter().enumerate() {
            inner[at] = self.inner(leaf, own);
        }
        let mut best = (0, plain);
        for chosen in 1u32..8 {
            if (0..3).any(|at| chosen >> at & 1 == 1 && inner[at].is_none()) {
                continue;
            }
            let parts: [Option<(u32, Function)>; 3] =
                std::array::from_fn(|at| inner[at].filter(|_| chosen >> at & 1 == 1));
            let gain = parts.iter().flatten().map(|(worth, _)| worth).sum();
            if gain > best.0 {
                if let Some(fused) = substitute(&plain, &parts) {
                    best = (gain, fused);
                }
            }
        }
        best.1
    }
}

/// An operation as a truth table, if it is pure logic over other streams. Several operands may be
/// one stream.
fn function(op: &Op) -> Option<Function> {
    let of = |values: &[Value]| values.iter().try_fold(Leaves::NONE, |leaves, &value| leaves.with(value));
    let two = |left: Value, right: Value, logic: fn(u8, u8) -> u8| {
        let leaves = of(&[left, right])?;
        Some((logic(leaves.column(left), leaves.column(right)), leaves))
    };
    let (table, leaves) = match *op {
        Op::Not(x) => (!COLUMNS[0], of(&[x])?),
        Op::And(x, y) => two(x, y, |x, y| x & y)?,
        Op::Or(x, y) => two(x, y, |x, y| x | y)?,
        Op::Xor(x, y) => two(x, y, |x, y| x ^ y)?,
        Op::AndNot(x, y) => two(x, y, |x, y| x & !y)?,
        Op::Ternary { table, of: values } => {
            let leaves = of(&values)?;
            let [x, y, z] = values.map(|value| leaves.column(value));
            (apply(table, x, y, z), leaves)
        }
        _ => return None,
    };
    Some(Function { table, leaves })
}

/// The result of a truth table for three columns of truth values over the same eight rows.
fn apply(table: u8, a: u8, b: u8, c: u8) -> u8 {
    (0..8).fold(0, |result, row| {
        let index = (a >> row & 1) << 2 | (b >> row & 1) << 1 | (c >> row & 1);
        result | (table >> index & 1) << row
    })
}

/// `plain` with some leaves replaced by their functions; `None` if that needs more than three
/// leaves.
fn substitute(plain: &Function, parts: &[Option<(u32, Function)>; 3]) -> Option<Function> {
    let mut leaves = Leaves::NONE;
    for (&leaf, part) in plain.leaves.as_slice().iter().zip(parts) {
        match part {
            None => leaves = leaves.with(leaf)?,
            Some((_, part)) => {
                for &value in part.leaves.as_slice() {
                    leaves = leaves.with(value)?;
                }
            }
        }
    }
    let mut columns = [0u8; 3];
    for (at, (&leaf, part)) in plain.leaves.as_slice().iter().zip(parts).enumerate() {
        columns[at] = match part {
            None => leaves.column(leaf),
            Some((_, part)) => {
                let mut of = [0u8; 3];
                for (column, &value) in of.iter_mut().zip(part.leaves.as_slice()) {
                    *column = leaves.column(value);
                }
                apply(part.table, of[0], of[1], of[2])
            }
        };
    }
    Some(Function { table: apply(plain.table, columns[0], columns[1], columns[2]), leaves })
}

/// The simplest operation that computes a function.
fn operation(function: &Function) -> Op {
    let [a, b, _] = COLUMNS;
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
