//! The slow twins: programs over unbounded streams, and lines by the `regex` crate's definition of
//! one.
//!
//! [`evaluate`] follows the paper's model to the letter: a stream is a list of bits as long as the
//! text, an advance moves all of it, an addition is done digit by digit from the lowest position.
//! There are no blocks, so there is nothing to carry. Every kernel must agree with it on every
//! program and text.

use crate::program::{BitProgram, Instruction, Op, Value};

/// One bit per byte of the text, position 0 first.
pub type Stream = Vec<bool>;

/// The program's output over the whole text. Cost: time and memory of values times bytes; loops
/// repeat until nothing is new.
///
/// ```
/// use lightfoot_pattern::compile::{compile, CompileOptions};
/// let program = compile(&regex_syntax::parse("b").unwrap(), &CompileOptions::default())?;
/// let output = lightfoot_pattern::reference::evaluate(&program, b"a\nb\n");
/// assert_eq!(output, [false, false, false, true]);
/// # Ok::<(), lightfoot_pattern::compile::CompileError>(())
/// ```
///
/// # Panics
/// When the program breaks a rule of [`BitProgram::verify`].
pub fn evaluate(program: &BitProgram, text: &[u8]) -> Stream {
    evaluate_rows(program, text, &vec![false; text.len()])
}

/// The program's output over the whole text, of which `row_ends` marks the last byte of each row.
///
/// # Panics
/// When the program breaks a rule of [`BitProgram::verify`], or the stream has another length.
pub fn evaluate_rows(program: &BitProgram, text: &[u8], row_ends: &[bool]) -> Stream {
    assert_eq!(text.len(), row_ends.len());
    let mut run = Evaluation { text, row_ends, program, values: vec![None; program.values as usize] };
    run.body(&program.body);
    run.get(program.output).clone()
}

/// How many lines the program marks: bits of its output over the text, to which a terminator is
/// added where its last line has none.
pub fn count_lines(program: &BitProgram, text: &[u8]) -> u64 {
    let text = terminated(text, program.terminator);
    evaluate(program, &text).iter().filter(|&&bit| bit).count() as u64
}

/// The text with a terminator behind its last line.
pub fn terminated(text: &[u8], terminator: u8) -> Vec<u8> {
    let mut text = text.to_vec();
    if text.last().is_some_and(|&last| last != terminator) {
        text.push(terminator);
    }
    text
}

/// `a + b` of two streams of equal length; what is carried out of the last position is lost.
pub fn add(a: &[bool], b: &[bool]) -> Stream {
    let mut carry = false;
    let digits = a.iter().zip(b).map(|(&a, &b)| {
        let sum = u8::from(a) + u8::from(b) + u8::from(carry);
        carry = sum >= 2;
        sum % 2 == 1
    });
    digits.collect()
}

struct Evaluation<'r> {
    text: &'r [u8],
    row_ends: &'r [bool],
    program: &'r BitProgram,
    values: Vec<Option<Stream>>,
}

impl Evaluation<'_> {
    fn get(&self, value: Value) -> &Stream {
        self.values[value.0 as usize].as_ref().expect("a value is defined before it is used")
    }

    fn set(&mut self, value: Value, stream: Stream) {
        self.values[value.0 as usize] = Some(stream);
    }

    fn zip(&self, a: Value, b: Value, f: impl Fn(bool, bool) -> bool) -> Stream {
        self.get(a).iter().zip(self.get(b)).map(|(&a, &b)| f(a, b)).collect()
    }

    fn earlier(&self, stream: &[bool], by: usize, before: bool) -> Stream {
        let bit = |at: usize| match at.checked_sub(by) {
            Some(from) => stream[from],
            None => before && at + 1 == by,
        };
        (0..self.text.len()).map(bit).collect()
    }

    fn body(&mut self, body: &[Instruction]) {
        for one in body {
            let stream = self.operation(one);
            self.set(one.result, stream);
        }
    }

    fn operation(&mut self, one: &Instruction) -> Stream {
        // Each operation is written as its definition says, bit by bit: slow, and plain to see.
        let length = self.text.len();
        match &one.op {
            Op::Zero => vec![false; length],
            Op::Ones => vec![true; length],
            Op::RowEnds => self.row_ends.to_vec(),
            Op::Basis { bit, delay } => {
                let basis: Stream = self.text.iter().map(|byte| byte >> bit & 1 == 1).collect();
                let before = self.program.terminator >> bit & 1 == 1;
                (0..length)
                    .map(|at| at.checked_sub(usize::from(*delay)).map_or(before, |from| basis[from]))
                    .collect()
            }
            Op::Not(a) => self.get(*a).iter().map(|&a| !a).collect(),
            Op::And(a, b) => self.zip(*a, *b, |a, b| a & b),
            Op::Or(a, b) => self.zip(*a, *b, |a, b| a | b),
            Op::Xor(a, b) => self.zip(*a, *b, |a, b| a ^ b),
            Op::AndNot(a, b) => self.zip(*a, *b, |a, b| a & !b),
            Op::Ternary { table, of: [a, b, c] } => {
                let index = |at: usize| {
                    let bit = |value: &Value| usize::from(self.get(*value)[at]);
                    bit(a) << 2 | bit(b) << 1 | bit(c)
                };
                (0..length).map(|at| table >> index(at) & 1 == 1).collect()
            }
            Op::Advance { by, of, carry } => {
                let before = self.program.carries[carry.0 as usize];
                self.earlier(self.get(*of), usize::from(*by), before)
            }
            Op::MatchStar { markers, class, .. } => {
                let sum = add(&self.zip(*markers, *class, |m, c| m & c), self.get(*class));
                let (m, c) = (self.get(*markers), self.get(*class));
                (0..length).map(|at| sum[at] ^ c[at] | m[at]).collect()
            }
            Op::ScanThru { markers, class, .. } => {
                let sum = add(&self.zip(*markers, *class, |m, c| m & c), self.get(*class));
                let (m, c) = (self.get(*markers), self.get(*class));
                (0..length).map(|at| (sum[at] | m[at]) & !c[at]).collect()
            }
            Op::Add { a, b, .. } => add(self.get(*a), self.get(*b)),
            Op::IfAny { condition, body, yields } => {
                self.body(body);
                for one in yields {
                    let inner = self.get(one.inner).clone();
                    let condition = self.get(*condition);
                    assert!(
                        inner.iter().zip(condition).all(|(&bit, &condition)| condition || !bit),
                        "{} yields bits where its condition has none",
                        one.outer
                    );
                    self.set(one.outer, inner);
                }
                self.get(one.result).clone()
            }
            Op::WhileAny { initial, frontier, body, next } => {
                let mut all = self.get(*initial).clone();
                loop {
                    self.set(*frontier, all.clone());
                    self.body(body);
                    let next = self.get(*next);
                    let grown: Stream = all.iter().zip(next).map(|(&a, &b)| a | b).collect();
                    if grown == all {
                        return all;
                    }
                    all = grown;
                }
            }
        }
    }
}
