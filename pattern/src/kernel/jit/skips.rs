//! Parts of a program that are jumped over while nothing can match there.
//!
//! **Problem.** Most of a program works on markers that few blocks have: behind `mutex` of
//! `mutex_unlock` follow seven more letters, each with its class, its conjunction and its advance.
//!
//! **Idea.** A stream is *governed* by a condition if it has no bit in a block where the condition
//! has none and where no carry of the governed part brings one in. Everything that is governed by
//! one stream of markers, and all logic that only such a part reads, becomes the body of an
//! [`Op::IfAny`]; the translator jumps over it while condition and carries are empty.
//!
//! ```text
//! and(a, b)        a or b is governed             and_not(a, b)         a is
//! or, xor          both are                       choice(c, y, n)       both are, or c and n
//! advance(a)       a is                           match_star, scan_thru the markers are
//! ```
//!
//! **Choice.** How often a block has the condition is estimated: the share of a class by how common
//! bytes are, of a conjunction by the product. A jump costs a test, and where it goes now one way
//! and now the other a misprediction; a part is left out where that is expected to be worth it. A
//! wrong estimate costs time and changes no result: the code counts runs of such parts, and where
//! they are too many for the text, the next texts are searched by code without jumps. The bodies
//! hold carries, and what they yield keeps its name: programs outside of the translator have
//! neither. **Leaves out** conditions within bodies, and least fixed points.

use super::emit::CHOICE;
use crate::literal::commonness::commonness;
use crate::program::pass::owns_carries;
use crate::program::{BitProgram, Instruction, Op, Value, Yield};

/// The cost of one misprediction, in operations.
const MISPREDICTION: f32 = 120.0;
/// The cost of a run that was counted: part of them are mispredictions, as runs come together.
const RUN: f32 = 70.0;
/// The cost of the test and of what a skipped part leaves behind.
const TEST: f32 = 7.0;
/// What a jump has to be worth.
const LEAST_GAIN: f32 = 8.0;
/// Conditions that more blocks have are not tried.
const MOST_CHANCE: f32 = 0.6;
/// Longer programs are left alone: choosing takes the square of their length.
const MOST_INSTRUCTIONS: usize = 1500;
/// The share of bytes that end lines.
const LINE_ENDS: f32 = 0.02;
/// How much more often two bytes stand together than by chance.
const TOGETHER: f32 = 3.0;
/// The share of bytes by how common they are.
const SHARES: [f32; 10] = [0.0, 0.0, 0.0005, 0.0007, 0.001, 0.003, 0.01, 0.02, 0.05, 0.1];

/// The program with the parts that a block of `block_bytes` bytes, a power of two, seldom needs in
/// bodies of their own.
pub(super) fn with_skips(program: BitProgram, block_bytes: i32) -> (BitProgram, Worth) {
    let mut skips = Skips { shares: shares(&program), program, block_bytes };
    let mut worth = Worth::default();
    if skips.program.body.len() <= MOST_INSTRUCTIONS {
        while let Some((saved, part)) = skips.best() {
            worth.parts += 1.0;
            worth.saved += saved;
            skips.move_into_body(part);
        }
    }
    (skips.program, worth)
}

/// What jumps save where none of the parts runs, and their number.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Worth {
    saved: f32,
    parts: f32,
}

impl Worth {
    /// Whether jumps cost more than they saved, after `runs` of parts in `blocks` blocks.
    pub(super) fn is_vain(&self, runs: u64, blocks: u64) -> bool {
        let runs = runs as f32 / blocks as f32;
        self.saved < runs * (RUN + self.saved / self.parts) + TEST * self.parts
    }
}

struct Skips {
    program: BitProgram,
    /// The estimated share of bytes at which a stream has a bit.
    shares: Vec<f32>,
    block_bytes: i32,
}

/// What becomes a body: its condition, for each instruction whether it is part of it, and which
/// values are read outside.
struct Part {
    condition: Value,
    inside: Vec<bool>,
    is_read_outside: Vec<bool>,
}

/// Estimated shares of all streams.
fn shares(program: &BitProgram) -> Vec<f32> {
    let values = program.values as usize;
    let mut classes: Vec<Option<[bool; 256]>> = vec![None; values];
    let mut shares = vec![1.0; values];
    for one in &program.body {
        let class = class_of(&one.op, &classes);
        let share = |value: Value| shares[value.0 as usize];
        let estimated = match (&class, &one.op) {
            (Some(class), _) => {
                let mut sum = 0.0;
                for byte in (0..=255).filter(|&byte| class[usize::from(byte)]) {
                    sum += match byte == program.terminator {
                        true => LINE_ENDS,
                        false => SHARES[commonness(byte) as usize],
                    };
                }
                sum
            }
            (_, &Op::And(a, b)) => (share(a) * share(b) * TOGETHER).min(share(a)).min(share(b)),
            (_, &Op::AndNot(a, _)) => share(a),
            (_, &Op::Or(a, b) | &Op::Xor(a, b)) => share(a) + share(b),
            (_, &Op::Advance { of, .. }) => share(of),
            (_, &Op::ScanThru { markers, .. }) => share(markers),
            (_, &Op::IfAny { condition, .. }) => share(condition),
            // Choices, and stars: every position of a run may be reached.
            _ => 1.0,
        };
        for value in results(one) {
            shares[value.0 as usize] = f32::min(estimated, 1.0);
        }
        classes[one.result.0 as usize] = class;
    }
    shares
}

/// The bytes of a class, where the operation is logic on the bits of one byte.
fn class_of(op: &Op, classes: &[Option<[bool; 256]>]) -> Option<[bool; 256]> {
    if matches!(op, Op::Basis { delay: 1.., .. }) || op.carry().is_some() || op.body().is_some() {
        return None;
    }
    let mut of = [&[false; 256]; 3];
    let mut count = 0;
    let mut is_class = true;
    op.operands(|value| match &classes[value.0 as usize] {
        Some(class) => {
            of[count] = class;
            count += 1;
        }
        None => is_class = false,
    });
    let mut class = [false; 256];
    for (byte, is_member) in class.iter_mut().enumerate() {
        let [a, b, c] = [of[0][byte], of[1][byte], of[2][byte]];
        *is_member = match *op {
            Op::Ones => true,
            Op::Basis { bit, .. } => byte >> bit & 1 == 1,
            Op::Not(_) => !a,
            Op::And(..) => a & b,
            Op::Or(..) => a | b,
            Op::Xor(..) => a ^ b,
            Op::AndNot(..) => a & !b,
            Op::Ternary { table, .. } => table >> (4 * u8::from(a) + 2 * u8::from(b) + u8::from(c)) & 1 == 1,
            _ => false,
        };
    }
    (is_class && !matches!(op, Op::RowEnds)).then_some(class)
}

impl Skips {
    /// The part whose jump is worth most. Conditions are markers: what an operation that carries
    /// moves along.
    fn best(&self) -> Option<(f32, Part)> {
        let mut best: Option<(f32, (f32, Part))> = None;
        for one in &self.program.body {
            let (Op::Advance { of: condition, .. }
            | Op::MatchStar { markers: condition, .. }
            | Op::ScanThru { markers: condition, .. }) = one.op
            else {
                continue;
            };
            let mut none = 1.0 - self.shares[condition.0 as usize];
            for _ in 0..self.block_bytes.trailing_zeros() {
                none *= none;
            }
            let Some(part) = (none > 1.0 - MOST_CHANCE).then(|| self.governed(condition)).flatten() else {
                continue;
            };
            let mut saved = 0.0;
            for (one, _) in self.program.body.iter().zip(&part.inside).filter(|(_, &inside)| inside) {
                saved += cost(&one.op);
            }
            let gain = none * saved - none.min(1.0 - none) * MISPREDICTION - TEST;
            if gain > best.as_ref().map_or(LEAST_GAIN, |best| best.0) {
                best = Some((gain, (saved, part)));
            }
        }
        best.map(|(_, best)| best)
    }

    /// What `condition` governs, and what only that reads; nothing where the body would need what
    /// depends on it.
    fn governed(&self, condition: Value) -> Option<Part> {
        let body = &self.program.body;
        let none = vec![false; self.program.values as usize];
        let mut is_governed = none.clone();
        is_governed[condition.0 as usize] = true;
        let mut inside = vec![false; body.len()];
        for (one, inside) in body.iter().zip(&mut inside) {
            *inside = follows(&one.op, &is_governed);
            for value in results(one) {
                is_governed[value.0 as usize] |= *inside;
            }
        }
        // Logic that only the part reads belongs to it. The condition itself is read outside.
        let (mut is_read, mut is_read_outside) = (none.clone(), none.clone());
        for value in self.program.kept.iter().chain([&self.program.output, &condition]) {
            is_read_outside[value.0 as usize] = true;
        }
        for (one, inside) in body.iter().zip(&mut inside).rev() {
            if !owns_carries(one) {
                let (mut any, mut all) = (false, true);
                for value in results(one) {
                    any |= is_read[value.0 as usize];
                    all &= !is_read_outside[value.0 as usize];
                }
                *inside |= any && all;
            }
            reads(one, &mut |value| {
                is_read[value.0 as usize] = true;
                is_read_outside[value.0 as usize] |= !*inside;
            });
        }
        // What stays outside and reads results of the part comes behind it; the part must not read
        // that in turn. And somebody must read its results.
        let mut is_behind = none;
        let (mut is_circular, mut is_seen) = (false, false);
        for (one, &inside) in body.iter().zip(&inside) {
            let mut depends = false;
            reads(one, &mut |value| {
                let at = value.0 as usize;
                depends |= is_behind[at] || !inside && value != condition && is_governed[at];
            });
            is_circular |= inside && depends;
            for value in results(one) {
                is_behind[value.0 as usize] = depends;
                is_seen |= inside && is_read_outside[value.0 as usize];
            }
        }
        (is_seen && !is_circular).then_some(Part { condition, inside, is_read_outside })
    }

    fn move_into_body(&mut self, part: Part) {
        let (mut body, mut behind) = (Vec::new(), Vec::new());
        let mut yields = Vec::new();
        let mut is_behind = vec![false; self.program.values as usize];
        for (one, inside) in std::mem::take(&mut self.program.body).into_iter().zip(part.inside) {
            let mut depends = inside;
            reads(&one, &mut |value| depends |= is_behind[value.0 as usize]);
            for value in results(&one) {
                is_behind[value.0 as usize] = depends;
                if inside && part.is_read_outside[value.0 as usize] {
                    yields.push(Yield { outer: value, inner: value });
                }
            }
            match (inside, depends) {
                (true, _) => body.push(one),
                (_, true) => behind.push(one),
                _ => self.program.body.push(one),
            }
        }
        let result = yields[0].outer;
        let op = Op::IfAny { condition: part.condition, body, yields };
        self.program.body.push(Instruction { result, op });
        self.program.body.append(&mut behind);
    }
}

/// Whether the operation's result is governed, where some of its operands are.
fn follows(op: &Op, is_governed: &[bool]) -> bool {
    let is = |value: Value| is_governed[value.0 as usize];
    match *op {
        Op::And(a, b) => is(a) || is(b),
        Op::Or(a, b) | Op::Xor(a, b) => is(a) && is(b),
        Op::Ternary { table: CHOICE, of: [condition, yes, no] } => is(no) && (is(condition) || is(yes)),
        Op::AndNot(of, _)
        | Op::Advance { of, .. }
        | Op::MatchStar { markers: of, .. }
        | Op::ScanThru { markers: of, .. }
        | Op::IfAny { condition: of, .. } => is(of),
        _ => false,
    }
}

/// About how many operations an instruction takes.
fn cost(op: &Op) -> f32 {
    match op {
        Op::Zero | Op::Ones | Op::RowEnds | Op::Basis { delay: 0, .. } => 0.0,
        Op::Basis { .. } | Op::Ternary { .. } => 3.0,
        Op::Advance { .. } => 5.0,
        Op::MatchStar { .. } | Op::ScanThru { .. } | Op::Add { .. } => 16.0,
        Op::IfAny { .. } | Op::WhileAny { .. } => TEST,
        _ => 1.0,
    }
}

/// The values that an instruction defines for those behind it.
fn results(one: &Instruction) -> Vec<Value> {
    match &one.op {
        Op::IfAny { yields, .. } => yields.iter().map(|one| one.outer).collect(),
        _ => vec![one.result],
    }
}

/// Calls `visit` with all that an instruction reads, and all that its bodies do.
fn reads(one: &Instruction, visit: &mut dyn FnMut(Value)) {
    one.op.operands(&mut *visit);
    one.op.body().unwrap_or_default().iter().for_each(|one| reads(one, visit));
    match &one.op {
        Op::IfAny { yields, .. } => yields.iter().for_each(|one| visit(one.inner)),
        Op::WhileAny { next, .. } => visit(*next),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
