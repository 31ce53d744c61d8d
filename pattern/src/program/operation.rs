//! The parts of programs: values, operations on them, and carries from block to block.

/// The number of a stream of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(pub u32);

/// The number of a carry, which one operation passes from block to block: the last 63 bits of its
/// operand, or one bit of an addition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Carry(pub u32);

/// The most that one [`Op::Advance`] moves.
pub const MAX_ADVANCE: u8 = 63;
/// The most by which a basis stream can be delayed: a UTF-8 sequence looks back three bytes.
pub const MAX_DELAY: u8 = 7;

/// An operation that computes a stream. Bit `i` of a stream belongs to byte `i` of the text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// No bit.
    Zero,
    /// Every bit.
    Ones,
    /// Bit `bit` of byte `i - delay`; the bytes before the text count as terminators.
    Basis {
        /// 0 is the lowest bit of a byte.
        bit: u8,
        /// Bytes to look back, at most [`MAX_DELAY`].
        delay: u8,
    },
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
    /// Any function of three bits: bit `4a + 2b + c` of the table.
    Ternary {
        /// The function's values, as the immediate of `vpternlog` has them.
        table: u8,
        /// The operands, the first one most significant.
        of: [Value; 3],
    },
    /// Bit `i` is bit `i - by` of the operand.
    Advance {
        /// 1 to [`MAX_ADVANCE`].
        by: u8,
        /// What is moved.
        of: Value,
        /// The operand's last bits.
        carry: Carry,
    },
    /// `(((m ∧ c) + c) ⊕ c) ∨ m`: every position that `m` reaches through zero or more members of
    /// `c`.
    MatchStar {
        /// Where to start.
        markers: Value,
        /// What may be passed.
        class: Value,
        /// The addition's carry.
        carry: Carry,
    },
    /// `(((m ∧ c) + c) ∨ m) ∧ ¬c`: where each marker arrives that passes all of `c` ahead of it.
    ScanThru {
        /// Where to start; at most one marker in each run of `class`.
        markers: Value,
        /// What is passed.
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
    /// is pure logic, and what it yields has no bit where the condition has none: so any block size
    /// gives the same streams.
    IfAny {
        /// Whether the body runs.
        condition: Value,
        /// Logic and delayed bases only.
        body: Vec<Instruction>,
        /// What the body yields; the instruction's own result is the first, the others are named
        /// here.
        yields: Vec<Yield>,
    },
    /// The least stream that holds `initial` and, with any stream, what the body makes of it. The
    /// body distributes over union.
    WhileAny {
        /// Where to start.
        initial: Value,
        /// The body's parameter.
        frontier: Value,
        /// The instructions of one round, which read `frontier`.
        body: Vec<Instruction>,
        /// What the body makes of the frontier.
        next: Value,
    },
}

/// One result of an [`Op::IfAny`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Yield {
    /// The name after the body.
    pub outer: Value,
    /// The stream inside.
    pub inner: Value,
}

/// One assignment of a stream to a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Instruction {
    /// What is defined. For [`Op::IfAny`] the first of its yields.
    pub result: Value,
    /// The operation that computes it.
    pub op: Op,
}

/// A program over the bit streams of a text. Shapes: `carries` and all values are dense; `output`
/// is a value of the outermost body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BitProgram {
    /// The outermost body.
    pub body: Vec<Instruction>,
    /// The stream that the program is run for.
    pub output: Value,
    /// How many value names are in use.
    pub values: u32,
    /// For each carry, whether it starts as if a bit had come from before the text.
    pub carries: Vec<bool>,
    /// The byte that ends a line: kernels add one where the text ends without.
    pub terminator: u8,
}

impl Op {
    /// Calls `visit` with every operand, bodies left out.
    pub fn operands(&self, mut visit: impl FnMut(Value)) {
        match self {
            Op::Zero | Op::Ones | Op::Basis { .. } => {}
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

    /// The body, for the two operations that have one.
    pub fn body(&self) -> Option<&[Instruction]> {
        match self {
            Op::IfAny { body, .. } | Op::WhileAny { body, .. } => Some(body),
            _ => None,
        }
    }
}

impl BitProgram {
    /// Instructions, those of bodies included.
    pub fn instructions(&self) -> usize {
        fn count(body: &[Instruction]) -> usize {
            body.iter().map(|one| 1 + one.op.body().map_or(0, count)).sum()
        }
        count(&self.body)
    }

    /// Whether the program has delayed bases, as only those of Unicode classes have.
    pub(crate) fn looks_back(&self) -> bool {
        fn any(body: &[Instruction]) -> bool {
            body.iter()
                .any(|one| matches!(one.op, Op::Basis { delay: 1.., .. }) || one.op.body().is_some_and(any))
        }
        any(&self.body)
    }
}
