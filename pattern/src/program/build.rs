//! The builder, by which compilers of expressions make programs.
//!
//! It shares operations while it builds: it never emits a known operation twice (this covers common
//! subexpressions and character classes), it folds constants, and it places operations that do not
//! depend on a loop's frontier before the loop. Bodies of `IfAny` are the exception: operations
//! inside stay inside, because the body would have nothing to skip otherwise.

use super::operation::{BitProgram, Carry, Instruction, Op, Value, Yield, MAX_ADVANCE};
use super::pass::renumber::{owns_carries, without_dead_code};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Outermost,
    If,
    While,
}

struct Scope {
    kind: Kind,
    code: Vec<Instruction>,
    known: HashMap<Op, Value, BuildHasherDefault<Mixer>>,
}

/// A hash for small operations: multiply and rotate. Users could write expressions whose operations
/// collide, which would slow down only their own compilation.
#[derive(Default)]
struct Mixer(u64);

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    fn write_u8(&mut self, number: u8) {
        self.write_u64(u64::from(number));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_isize(&mut self, number: isize) {
        self.write_u64(number as u64);
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x517C_C1B7_2722_0A95);
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

/// A program under construction.
pub(crate) struct Builder {
    scopes: Vec<Scope>,
    ops: Vec<Option<Op>>,
    depth: Vec<usize>,
    carries: Vec<bool>,
    terminator: u8,
}

/// The placeholder for the carry in the key of a known operation.
const ANY_CARRY: Carry = Carry(u32::MAX);
const ZERO: Value = Value(0);
const ONES: Value = Value(1);

impl Builder {
    pub(crate) fn new(terminator: u8) -> Builder {
        let outermost = Scope { kind: Kind::Outermost, code: Vec::new(), known: HashMap::default() };
        let mut new =
            Builder { scopes: vec![outermost], ops: vec![], depth: vec![], carries: vec![], terminator };
        new.place(Op::Zero, 0);
        new.place(Op::Ones, 0);
        new
    }

    /// The number of values so far. It limits the size of a program.
    pub(crate) fn len(&self) -> usize {
        self.ops.len()
    }

    /// The operation that defines a value; `None` for the parameter of a loop.
    pub(crate) fn op(&self, value: Value) -> Option<&Op> {
        self.ops[value.0 as usize].as_ref()
    }

    fn fresh(&mut self, op: Option<Op>, depth: usize) -> Value {
        self.ops.push(op);
        self.depth.push(depth);
        Value(self.ops.len() as u32 - 1)
    }

    fn place(&mut self, op: Op, scope: usize) -> Value {
        let result = self.fresh(Some(op.clone()), scope);
        self.scopes[scope].code.push(Instruction { result, op });
        result
    }

    /// The outermost scope in which `op` may stand.
    fn home(&self, op: &Op) -> usize {
        let mut home = self.scopes.iter().rposition(|scope| scope.kind == Kind::If).unwrap_or(0);
        op.operands(|value| home = home.max(self.depth[value.0 as usize]));
        home
    }

    fn known(&self, key: &Op) -> Option<Value> {
        self.scopes.iter().rev().find_map(|scope| scope.known.get(key).copied())
    }

    fn emit(&mut self, op: Op) -> Value {
        if let Some(known) = self.known(&op) {
            return known;
        }
        let home = self.home(&op);
        let result = self.place(op.clone(), home);
        self.scopes[home].known.insert(op, result);
        result
    }

    /// Emits the operation that `make` returns for a carry of its own, unless the operation is
    /// known already.
    fn emit_carried(&mut self, start: bool, make: impl Fn(Carry) -> Op) -> Value {
        let key = make(if start { Carry(u32::MAX - 1) } else { ANY_CARRY });
        if let Some(known) = self.known(&key) {
            return known;
        }
        self.carries.push(start);
        let op = make(Carry(self.carries.len() as u32 - 1));
        let home = self.home(&op);
        let result = self.place(op, home);
        self.scopes[home].known.insert(key, result);
        result
    }

    pub(crate) fn zero(&self) -> Value {
        ZERO
    }

    pub(crate) fn ones(&self) -> Value {
        ONES
    }

    pub(crate) fn basis(&mut self, bit: u8, delay: u8) -> Value {
        self.emit(Op::Basis { bit, delay })
    }

    pub(crate) fn row_ends(&mut self) -> Value {
        self.emit(Op::RowEnds)
    }

    pub(crate) fn not(&mut self, a: Value) -> Value {
        match (a, self.op(a)) {
            (ZERO, _) => ONES,
            (ONES, _) => ZERO,
            (_, Some(Op::Not(inner))) => *inner,
            _ => self.emit(Op::Not(a)),
        }
    }

    fn are_opposite(&self, a: Value, b: Value) -> bool {
        self.op(a) == Some(&Op::Not(b)) || self.op(b) == Some(&Op::Not(a))
    }

    pub(crate) fn and(&mut self, a: Value, b: Value) -> Value {
        let (a, b) = (a.min(b), a.max(b));
        match (self.op(a), self.op(b)) {
            _ if a == ZERO || self.are_opposite(a, b) => ZERO,
            _ if a == ONES || a == b => b,
            (_, Some(&Op::Not(inner))) => self.and_not(a, inner),
            (Some(&Op::Not(inner)), _) => self.and_not(b, inner),
            _ => self.emit(Op::And(a, b)),
        }
    }

    pub(crate) fn or(&mut self, a: Value, b: Value) -> Value {
        let (a, b) = (a.min(b), a.max(b));
        match (a, b) {
            _ if self.are_opposite(a, b) => ONES,
            (ZERO, b) => b,
            (ONES, _) | (_, ONES) => ONES,
            _ if a == b => a,
            _ => self.emit(Op::Or(a, b)),
        }
    }

    pub(crate) fn xor(&mut self, a: Value, b: Value) -> Value {
        let (a, b) = (a.min(b), a.max(b));
        match (a, b) {
            (ZERO, b) => b,
            (ONES, b) => self.not(b),
            _ if a == b => ZERO,
            _ => self.emit(Op::Xor(a, b)),
        }
    }

    pub(crate) fn and_not(&mut self, a: Value, b: Value) -> Value {
        match (a, b) {
            (ZERO, _) | (_, ONES) => ZERO,
            (a, ZERO) => a,
            (ONES, b) => self.not(b),
            _ if a == b => ZERO,
            _ => match self.op(b) {
                Some(&Op::Not(inner)) => self.and(a, inner),
                _ => self.emit(Op::AndNot(a, b)),
            },
        }
    }

    /// `(condition ∧ yes) ∨ (¬condition ∧ no)`: a node of a decision diagram.
    pub(crate) fn choose(&mut self, condition: Value, yes: Value, no: Value) -> Value {
        match (yes, no) {
            _ if yes == no => yes,
            (ONES, ZERO) => condition,
            (ZERO, ONES) => self.not(condition),
            (_, ZERO) => self.and(condition, yes),
            (ZERO, _) => self.and_not(no, condition),
            (ONES, _) => self.or(condition, no),
            (_, ONES) => {
                let unless = self.not(condition);
                self.or(unless, yes)
            }
            _ => self.emit(Op::Ternary { table: 0xCA, of: [condition, yes, no] }),
        }
    }

    /// An advance by any distance; a long one is made of several.
    pub(crate) fn advance(&mut self, of: Value, by: u32) -> Value {
        let mut moved = of;
        let mut left = by;
        while left > 0 && moved != ZERO {
            let by = left.min(u32::from(MAX_ADVANCE)) as u8;
            moved = self.emit_carried(false, |carry| Op::Advance { by, of: moved, carry });
            left -= u32::from(by);
        }
        moved
    }

    /// An advance by one, as if a bit had stood before the text. It turns ends of lines into starts
    /// of lines.
    pub(crate) fn advance_from_start(&mut self, of: Value) -> Value {
        self.emit_carried(true, |carry| Op::Advance { by: 1, of, carry })
    }

    pub(crate) fn match_star(&mut self, markers: Value, class: Value) -> Value {
        match (markers, class) {
            (ZERO | ONES, _) | (_, ZERO) => markers,
            _ => self.emit_carried(false, |carry| Op::MatchStar { markers, class, carry }),
        }
    }

    /// Calls `body` to build instructions that are skipped where `condition` has no bit, and
    /// returns their streams.
    pub(crate) fn if_any_list(
        &mut self,
        condition: Value,
        body: impl FnOnce(&mut Builder) -> Vec<Value>,
    ) -> Vec<Value> {
        // A body that never runs is built too, because the number of its streams is needed.
        if condition == ZERO {
            let depth = self.scopes.len();
            self.scopes.push(Scope { kind: Kind::If, code: vec![], known: HashMap::default() });
            let none = body(self).len();
            self.scopes.truncate(depth);
            return vec![ZERO; none];
        }
        self.scopes.push(Scope { kind: Kind::If, code: vec![], known: HashMap::default() });
        let inner = body(self);
        let scope = self.scopes.pop().expect("the scope was pushed above");
        let depth = self.scopes.len() - 1;
        // Streams that are equal inside get one name outside, and empty streams get none.
        let mut yields: Vec<Yield> = Vec::new();
        let mut outer = Vec::new();
        for inner in inner {
            let known = yields.iter().find(|one| one.inner == inner).map(|one| one.outer);
            outer.push(match known {
                _ if inner == ZERO => ZERO,
                Some(known) => known,
                None => {
                    let outer = self.fresh(None, depth);
                    yields.push(Yield { outer, inner });
                    outer
                }
            });
        }
        if let Some(first) = yields.first() {
            let result = first.outer;
            let op = Op::IfAny { condition, body: scope.code, yields };
            self.scopes[depth].code.push(Instruction { result, op });
        }
        outer
    }

    /// The least stream that holds `initial` and all that `step` makes of any part of it.
    ///
    /// # Errors
    /// The errors of `step`.
    pub(crate) fn while_any<E>(
        &mut self,
        initial: Value,
        step: impl FnOnce(&mut Builder, Value) -> Result<Value, E>,
    ) -> Result<Value, E> {
        let depth = self.scopes.len();
        self.scopes.push(Scope { kind: Kind::While, code: vec![], known: HashMap::default() });
        let frontier = self.fresh(None, depth);
        let next = step(self, frontier);
        let scope = self.scopes.pop().expect("the scope was pushed above");
        let next = next?;
        if (next == frontier || next == ZERO) && !scope.code.iter().any(owns_carries) {
            return Ok(initial);
        }
        // The loop belongs where its operands are: inside an outer loop if it starts from that
        // loop's frontier.
        let op = Op::WhileAny { initial, frontier, body: scope.code, next };
        let result = self.fresh(None, depth - 1);
        self.scopes[depth - 1].code.push(Instruction { result, op });
        Ok(result)
    }

    /// Emits any operation with the carry that it has in another program.
    pub(crate) fn with_carry_of(&mut self, op: Op) -> Value {
        let home = self.home(&op);
        self.place(op, home)
    }

    /// Any function of three streams that cannot be written as a simpler operation.
    pub(crate) fn ternary(&mut self, table: u8, of: [Value; 3]) -> Value {
        self.emit(Op::Ternary { table, of })
    }

    /// The finished program, without instructions that its output does not need.
    pub(crate) fn finish(self, output: Value) -> BitProgram {
        without_dead_code(self.program(output))
    }

    /// The finished program that keeps these streams, of which the first is its output.
    pub(crate) fn finish_all(self, kept: Vec<Value>) -> BitProgram {
        let output = kept.first().copied().unwrap_or(ZERO);
        without_dead_code(BitProgram { kept, ..self.program(output) })
    }

    /// The program as it was built, including unused values.
    pub(crate) fn program(mut self, output: Value) -> BitProgram {
        let outermost = self.scopes.pop().expect("the outermost scope is never popped");
        assert!(self.scopes.is_empty(), "a body was left open");
        BitProgram {
            body: outermost.code,
            output,
            kept: Vec::new(),
            values: self.ops.len() as u32,
            carries: self.carries,
            terminator: self.terminator,
        }
    }
}
