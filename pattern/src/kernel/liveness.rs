//! The uses of values, by which the interpreter shares memory and the translator registers.
//!
//! Instructions are numbered in the order in which they are met; a body counts one more at its end,
//! where its results are read. A value from outside a loop that is used inside is used at the
//! loop's end too, because the next iteration needs it again.

use crate::program::{BitProgram, Instruction, Op, Value};

/// The numbers of the instructions that read each value, ascending. The program's output and the
/// streams that it keeps are read at `u32::MAX`.
pub(crate) struct Uses(Vec<Vec<u32>>);

impl Uses {
    /// The first instruction after `at` that reads `value`.
    pub(crate) fn next(&self, value: Value, at: u32) -> Option<u32> {
        let uses = &self.0[value.0 as usize];
        uses.get(uses.partition_point(|&used| used <= at)).copied()
    }
}

struct Walk {
    uses: Vec<Vec<u32>>,
    defined: Vec<u32>,
    at: u32,
}

impl Uses {
    pub(crate) fn of(program: &BitProgram) -> Uses {
        let values = program.values as usize;
        let mut walk = Walk { uses: vec![Vec::new(); values], defined: vec![0; values], at: 0 };
        walk.body(&program.body);
        for value in program.kept.iter().chain([&program.output]) {
            let uses = &mut walk.uses[value.0 as usize];
            if uses.last() != Some(&u32::MAX) {
                uses.push(u32::MAX);
            }
        }
        Uses(walk.uses)
    }

    /// The last instruction that reads `value`; 0 when none does.
    pub(crate) fn last(&self, value: Value) -> u32 {
        self.0[value.0 as usize].last().copied().unwrap_or(0)
    }
}

impl Walk {
    fn uses(&mut self, value: Value) {
        let uses = &mut self.uses[value.0 as usize];
        if uses.last().is_none_or(|&last| last < self.at) {
            uses.push(self.at);
        }
    }

    fn body(&mut self, body: &[Instruction]) {
        for one in body {
            self.at += 1;
            one.op.operands(|value| self.uses(value));
            match &one.op {
                Op::IfAny { body, yields, .. } => {
                    self.body(body);
                    self.at += 1;
                    for one in yields {
                        self.uses(one.inner);
                        self.defined[one.outer.0 as usize] = self.at;
                    }
                }
                Op::WhileAny { frontier, body, next, .. } => {
                    let start = self.at;
                    self.defined[frontier.0 as usize] = start;
                    self.body(body);
                    self.at += 1;
                    self.uses(*frontier);
                    self.uses(*next);
                    self.again(body, start);
                }
                _ => {}
            }
            self.defined[one.result.0 as usize] = self.at;
        }
    }

    /// What `body` reads from before `start` is read once more, here.
    fn again(&mut self, body: &[Instruction], start: u32) {
        for one in body {
            let mut outside = Vec::new();
            one.op.operands(|value| {
                if self.defined[value.0 as usize] < start {
                    outside.push(value);
                }
            });
            if let Op::WhileAny { next: value, .. } = &one.op {
                if self.defined[value.0 as usize] < start {
                    outside.push(*value);
                }
            }
            if let Op::IfAny { yields, .. } = &one.op {
                outside.extend(
                    yields.iter().map(|one| one.inner).filter(|v| self.defined[v.0 as usize] < start),
                );
            }
            outside.into_iter().for_each(|value| self.uses(value));
            self.again(one.op.body().unwrap_or_default(), start);
        }
    }
}
