//! What instrumentation code looks at: a block, its instructions, its procedure.
//!
//! Views are made when a block is translated, once per translation, and only for runs with a tool.
//! They say what the translator itself knows; for anything else there are the instruction's bytes.
//! **Leaves out** an instruction's text (a formatter is the user's choice) and source lines, which
//! need debug information.

use crate::code::decode::{number, Decoded};
use crate::code::register_use;
use crate::plan::references::{ReferenceShapes, Template};
use crate::profile::Module;
use event::RecordKind;
use iced_x86::{Code, FlowControl, InstructionInfoFactory};
use std::fmt;
use std::ops::Range;

/// A function of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Procedure {
    /// Its name.
    pub name: String,
    /// Its code, as addresses of the running program.
    pub range: Range<u64>,
}

/// A line of the program's source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceLine {
    /// Path of the file, as debug information has it.
    pub file: String,
    /// Number of the line, from 1.
    pub line: u32,
}

/// Knows the program's functions and source lines. The engine reads no symbol tables; the caller of
/// [`run_named`](crate::tool::run_named) lends it this. Crate `lightfoot-symbol` has one that reads
/// them.
pub trait Procedures {
    /// The function that holds `address`, which lies in `module`.
    fn at(&mut self, module: &Module, address: u64) -> Option<Procedure>;

    /// The source line of the instruction at `address`, which lies in `module`.
    fn line(&mut self, _module: &Module, _address: u64) -> Option<SourceLine> {
        None
    }
}

/// Knows none.
pub struct Unnamed;

impl Procedures for Unnamed {
    fn at(&mut self, _module: &Module, _address: u64) -> Option<Procedure> {
        None
    }
}

/// A general register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names are the processor's")]
#[repr(u8)]
pub enum Register {
    Rax,
    Rcx,
    Rdx,
    Rbx,
    Rsp,
    Rbp,
    Rsi,
    Rdi,
    R8,
    R9,
    R10,
    R11,
    R12,
    R13,
    R14,
    R15,
}

impl Register {
    /// All of them, by hardware number.
    pub const ALL: [Register; 16] = {
        use Register::*;
        [Rax, Rcx, Rdx, Rbx, Rsp, Rbp, Rsi, Rdi, R8, R9, R10, R11, R12, R13, R14, R15]
    };
}

/// A set of general registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers(pub(crate) u16);

impl Registers {
    /// Whether `register` is among them.
    pub fn contains(self, register: Register) -> bool {
        self.0 >> register as u8 & 1 != 0
    }

    /// Them, by hardware number.
    pub fn iter(self) -> impl Iterator<Item = Register> {
        Register::ALL.into_iter().filter(move |&r| self.contains(r))
    }
}

/// One memory reference of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// `Load`, `Store`, `Modify` (a load, then a store) or `Prefetch`.
    pub kind: RecordKind,
    /// Bytes touched.
    pub size_bytes: u32,
}

/// Where an instruction may lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// To the next one.
    None,
    /// There, or to the next one.
    Conditional(u64),
    /// There.
    Jump(u64),
    /// Through a register or memory.
    IndirectJump,
    /// Into the function there.
    Call(u64),
    /// Into a function, through a register or memory.
    IndirectCall,
    /// To the caller.
    Return,
    /// Into the kernel and back to the next one.
    SystemCall,
    /// Traps and transactions.
    Other,
}

/// What the translator works out about an instruction for its view.
pub(crate) struct InstructionFacts {
    simple: Vec<Template>,
    complex: References,
    reads: u16,
    writes: u16,
}

/// Whether all references of an instruction have addresses that can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum References {
    /// All: [`InstructionView::touches`] lists them.
    Listed,
    /// None, because their number or size is known only as they happen: repeats, masks, gathers,
    /// state areas, tiles. Only the stream of references holds them.
    Varying,
}

impl InstructionFacts {
    pub(crate) fn of(
        decoded: &Decoded,
        shapes: &mut ReferenceShapes,
        factory: &mut InstructionInfoFactory,
    ) -> InstructionFacts {
        let shape = shapes.of(&decoded.i);
        let shape = shapes.get(shape);
        let uses = register_use::register_use(factory, decoded);
        let complex = if shape.complex.is_some() { References::Varying } else { References::Listed };
        InstructionFacts { simple: shape.simple.clone(), complex, reads: uses.needs, writes: uses.writes }
    }
}

/// A basic block about to be translated.
pub struct BlockView<'a> {
    pub(crate) number: u32,
    pub(crate) instructions: &'a [Decoded],
    pub(crate) facts: &'a [InstructionFacts],
    pub(crate) module: &'a Module,
    pub(crate) procedure: Option<&'a Procedure>,
    /// Answers with the source line of an address of the block.
    pub(crate) lines: &'a dyn Fn(u64) -> Option<SourceLine>,
}

impl<'a> BlockView<'a> {
    /// Its number: its place in the final [`Profile::blocks`](crate::Profile::blocks). The same
    /// code may be translated more than once, as several blocks, of which each execution belongs to
    /// exactly one.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Address of the first instruction.
    pub fn address(&self) -> u64 {
        self.instructions.first().map_or(0, |d| d.i.ip())
    }

    /// The file (or generated code) that it lies in.
    pub fn module(&self) -> &'a Module {
        self.module
    }

    /// The function that it belongs to, where the run was given [`Procedures`].
    pub fn procedure(&self) -> Option<&'a Procedure> {
        self.procedure
    }

    /// The source line of one of its instructions, where the run was given [`Procedures`] that know
    /// it. Each call looks it up.
    pub fn line(&self, instruction: &InstructionView<'_>) -> Option<SourceLine> {
        (self.lines)(instruction.address())
    }

    /// Whether it is the first of its function.
    pub fn is_entry(&self) -> bool {
        self.procedure.is_some_and(|p| p.range.start == self.address())
    }

    /// Its instructions, 1 to 64.
    pub fn instructions(&self) -> impl DoubleEndedIterator<Item = InstructionView<'a>> + ExactSizeIterator {
        self.instructions
            .iter()
            .zip(self.facts)
            .enumerate()
            .map(|(index, (decoded, facts))| InstructionView { index, decoded, facts })
    }

    /// The last one, the only one that can be a control transfer.
    pub fn last(&self) -> Option<InstructionView<'a>> {
        self.instructions().next_back()
    }
}

/// An instruction of a block.
#[derive(Clone, Copy)]
pub struct InstructionView<'a> {
    pub(crate) index: usize,
    pub(crate) decoded: &'a Decoded,
    facts: &'a InstructionFacts,
}

impl<'a> InstructionView<'a> {
    /// Its place in the block.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Its address.
    pub fn address(&self) -> u64 {
        self.decoded.i.ip()
    }

    /// Its bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.decoded.raw()
    }

    /// Its opcode; [`opcode_name`] says it in words.
    pub fn opcode(&self) -> u16 {
        self.decoded.i.code() as u16
    }

    /// Its memory references, loads before stores.
    pub fn touches(&self) -> impl ExactSizeIterator<Item = Touch> + 'a {
        self.facts.simple.iter().map(|t| Touch { kind: t.kind, size_bytes: t.size_bytes })
    }

    /// Whether [`InstructionView::touches`] is the whole truth.
    pub fn references(&self) -> References {
        self.facts.complex
    }

    /// Whether it reads memory at a listed address.
    pub fn is_load(&self) -> bool {
        self.touches().any(|t| matches!(t.kind, RecordKind::Load | RecordKind::Modify))
    }

    /// Whether it writes memory at a listed address.
    pub fn is_store(&self) -> bool {
        self.touches().any(|t| matches!(t.kind, RecordKind::Store | RecordKind::Modify))
    }

    /// General registers that it reads, for addresses included, or writes in part.
    pub fn reads(&self) -> Registers {
        Registers(self.facts.reads)
    }

    /// General registers that it may change.
    pub fn writes(&self) -> Registers {
        Registers(self.facts.writes)
    }

    /// The general register that is its operand number `operand`, if it is one.
    pub fn register(&self, operand: u32) -> Option<Register> {
        let i = &self.decoded.i;
        let register = (operand < i.op_count()).then(|| i.op_register(operand))?;
        number(register).map(|n| Register::ALL[usize::from(n)])
    }

    /// Where it may lead.
    pub fn transfer(&self) -> Transfer {
        let i = &self.decoded.i;
        if matches!(i.code(), Code::Syscall) {
            return Transfer::SystemCall;
        }
        match i.flow_control() {
            FlowControl::Next | FlowControl::Exception => Transfer::None,
            FlowControl::ConditionalBranch => Transfer::Conditional(i.near_branch_target()),
            FlowControl::UnconditionalBranch => Transfer::Jump(i.near_branch_target()),
            FlowControl::IndirectBranch => Transfer::IndirectJump,
            FlowControl::Call if i.is_call_near() => Transfer::Call(i.near_branch_target()),
            FlowControl::IndirectCall => Transfer::IndirectCall,
            FlowControl::Return => Transfer::Return,
            _ => Transfer::Other,
        }
    }

    pub(crate) fn template(&self, n: usize) -> Option<&'a Template> {
        self.facts.simple.get(n)
    }
}

impl fmt::Debug for InstructionView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:#x}", opcode_name(self.opcode()), self.address())
    }
}

/// An opcode's name with its operands' kinds, as `Mov_r64_rm64`.
pub fn opcode_name(opcode: u16) -> String {
    Code::try_from(usize::from(opcode)).map_or_else(|_| "invalid".into(), |code| format!("{code:?}"))
}
