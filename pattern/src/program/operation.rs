//! The parts of programs: values, operations on them, and carries from block to block.

/// The number of a stream of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(pub u32);

/// The number of a carry, which one operation passes from block to block: the last 63 bits of its
/// operand, or one bit of an addition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Carry(pub u32);

/// The largest distance of one [`Op::Advance`].
pub const MAX_ADVANCE: u8 = 63;
/// The largest delay of a basis stream. A UTF-8 sequence looks back three bytes.
pub const MAX_DELAY: u8 = 7;

/// An operation that computes a stream. Bit `i` of a stream belongs to byte `i` of the text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// The empty stream.
    Zero,
    /// The stream of all bits.
    Ones,
    /// Bit `bit` of byte `i - delay`; bytes before the text count as terminators.
    Basis {
        /// 0 is the lowest bit of a byte.
        bit: u8,
        /// How many bytes to look back, at most [`MAX_DELAY`].
        delay: u8,
    },
    /// The last bytes of rows, which are given beside the text; empty where they are not given.
    RowEnds,
    /// `¬a`.
    Not(Value),
    /// `a ∧ b`.
    And(Value, Value),
    /// `a ∨ b`.
    Or(Value, Value),
    /// `a ⊕ b`.
    Xor(Value, Value),
    /// `a ∧ ¬b`.
    AndNot(Value, Value),
    /// Any function of three bits; its value for bits `a`, `b` and `c` is bit `4a + 2b + c` of the
    /// table.
    Ternary {
        /// The function's values, in the form of the immediate of `vpternlog`.
        table: u8,
        /// The operands, the first one most significant.
        of: [Value; 3],
    },
    /// Bit `i` is bit `i - by` of the operand.
    Advance {
        /// 1 to [`MAX_ADVANCE`].
        by: u8,
        /// The stream that is moved.
        of: Value,
        /// The operand's last bits.
        carry: Carry,
    },
    /// `(((m ∧ c) + c) ⊕ c) ∨ m`: every position that `m` reaches through zero or more members of
    /// `c`.
    MatchStar {
        /// Where to start.
        markers: Value,
        /// The positions that may be passed.
        class: Value,
        /// The addition's carry.
        carry: Carry,
    },
    /// `(((m ∧ c) + c) ∨ m) ∧ ¬c`: where each marker arrives after it passes all of `c` ahead of
    /// it.
    ScanThru {
        /// Where to start; at most one marker in each run of `class`.
        markers: Value,
        /// The positions that are passed.
        class: Value,
        /// The addition's carry.
        carry: Carry,
    },
    /// `a + b`.
    Add {
        /// An addend.
        a: Value,
        /// The other addend.
        b: Value,
        /// The addition's carry.
        carry: Carry,
    },
    /// The body's `inner` streams, computed only in blocks where the condition has a bit. The body
    /// is pure logic, and its streams have no bit where the condition has none, so the streams do
    /// not depend on the size of blocks.
    IfAny {
        /// Whether the body runs.
        condition: Value,
        /// Instructions of logic and delayed bases only.
        body: Vec<Instruction>,
        /// The streams of the body that are seen outside. The first is the instruction's own
        /// result.
        yields: Vec<Yield>,
    },
    /// The least stream that holds `initial` and, with any stream, the result of the body for it.
    /// The body distributes over union.
    WhileAny {
        /// Where to start.
        initial: Value,
        /// The body's parameter.
        frontier: Value,
        /// The instructions of one round, which read `frontier`.
        body: Vec<Instruction>,
        /// The result of one round.
        next: Value,
    },
}

/// One result of an [`Op::IfAny`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Yield {
    /// The name outside the body.
    pub outer: Value,
    /// The stream inside the body.
    pub inner: Value,
}

/// One assignment of a stream to a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Instruction {
    /// The value that is defined; for [`Op::IfAny`] the first of its yields.
    pub result: Value,
    /// The operation that computes it.
    pub op: Op,
}

/// A program over the bit streams of a text. The numbers of values and `carries` are dense, and
/// `output` is a value of the outermost body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BitProgram {
    /// The outermost body.
    pub body: Vec<Instruction>,
    /// The stream that the program computes.
    pub output: Value,
    /// Further streams that it computes, for sets of expressions; values of the outermost body.
    pub kept: Vec<Value>,
    /// The number of value names in use.
    pub values: u32,
    /// For each carry, whether it starts as if a bit had come from before the text.
    pub carries: Vec<bool>,
    /// The byte that ends a line. Kernels add one if the text does not end with it.
    pub terminator: u8,
}

impl Op {
    /// Calls `visit` with every operand, except those of bodies.
    pub fn operands(&self, mut visit: impl FnMut(Value)) {
        match self {
            Op::Zero | Op::Ones | Op::Basis { .. } | Op::RowEnds => {}
            Op::Not(a) => visit(*a),
            Op::And(a, b) | Op::Or(a, b) | Op::Xor(a, b) | Op::AndNot(a, b) => {
                visit(*a);
                visit(*b);
            }
            Op::Ternary { of, .. } => of.iter().copied().for_each(visit),
            Op::Advance { of, .. } => visit(*of),
            Op::MatchStar { markers, class, .. } | Op::ScanThru { markers, class, .. } => {
                visit(*markers);
                visit(*class);
            }
            Op::Add { a, b, .. } => {
                visit(*a);
                visit(*b);
            }
            Op::IfAny { condition, .. } => visit(*condition),
            Op::WhileAny { initial, .. } => visit(*initial),
        }
    }

    /// The carry that the operation owns.
    pub fn carry(&self) -> Option<Carry> {
        match self {
            Op::Advance { carry, .. }
            | Op::MatchStar { carry, .. }
            | Op::ScanThru { carry, .. }
            | Op::Add { carry, .. } => Some(*carry),
            _ => None,
        }
    }

    /// The body of an operation that has one.
    pub fn body(&self) -> Option<&[Instruction]> {
        match self {
            Op::IfAny { body, .. } | Op::WhileAny { body, .. } => Some(body),
            _ => None,
        }
    }
}

impl BitProgram {
    /// The number of instructions, including those of bodies.
    pub fn instructions(&self) -> usize {
        fn count(body: &[Instruction]) -> usize {
            body.iter().map(|one| 1 + one.op.body().map_or(0, count)).sum()
        }
        count(&self.body)
    }

    /// Whether the program reads where rows end.
    pub(crate) fn has_row_ends(&self) -> bool {
        fn any(body: &[Instruction]) -> bool {
            body.iter().any(|one| one.op == Op::RowEnds || one.op.body().is_some_and(any))
        }
        any(&self.body)
    }

    /// Whether the program has a least fixed point, which may take a round for every few bytes.
    pub(crate) fn has_loops(&self) -> bool {
        fn any(body: &[Instruction]) -> bool {
            body.iter().any(|one| matches!(one.op, Op::WhileAny { .. }) || one.op.body().is_some_and(any))
        }
        any(&self.body)
    }

    /// Whether the program has delayed bases. Only Unicode classes need them.
    pub(crate) fn looks_back(&self) -> bool {
        fn any(body: &[Instruction]) -> bool {
            body.iter()
                .any(|one| matches!(one.op, Op::Basis { delay: 1.., .. }) || one.op.body().is_some_and(any))
        }
        any(&self.body)
    }
}
