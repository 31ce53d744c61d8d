//! Views of a block for instrumentation code: its instructions, its module, its procedure.
//!
//! A view is made once for each translation of a block, and only in runs with a tool. It offers the
//! facts that the translator has; for everything else it has the instruction's bytes. **Leaves
//! out** an instruction's text, because there are several syntaxes and the tool can choose a
//! formatter.

use crate::code::decode::{number, Decoded};
use crate::code::opcode_name::opcode_name;
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
    /// The name of the function.
    pub name: String,
    /// Addresses of its code in the running program.
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

/// Provides the program's functions and source lines. The engine reads no symbol tables; the caller
/// of [`run_named`](crate::tool::run_named) passes an implementation. Crate `lightfoot-symbol` has
/// one that reads symbol tables and debug information.
pub trait Procedures {
    /// The function that holds `address`, which lies in `module`.
    fn at(&mut self, module: &Module, address: u64) -> Option<Procedure>;

    /// The source line of the instruction at `address`, which lies in `module`.
    fn line(&mut self, _module: &Module, _address: u64) -> Option<SourceLine> {
        None
    }
}

/// Provides no names and no lines.
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
    /// All general registers, by hardware number.
    pub const ALL: [Register; 16] = {
        use Register::*;
        [Rax, Rcx, Rdx, Rbx, Rsp, Rbp, Rsi, Rdi, R8, R9, R10, R11, R12, R13, R14, R15]
    };
}

/// A set of general registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers(pub(crate) u16);

impl Registers {
    /// Whether the set contains `register`.
    pub fn contains(self, register: Register) -> bool {
        self.0 >> register as u8 & 1 != 0
    }

    /// The registers of the set, by hardware number.
    pub fn iter(self) -> impl Iterator<Item = Register> {
        Register::ALL.into_iter().filter(move |&register| self.contains(register))
    }
}

/// One memory reference of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// `Load`, `Store`, `Modify` (a load, then a store) or `Prefetch`.
    pub kind: RecordKind,
    /// Number of bytes that it touches.
    pub size_bytes: u32,
}

/// How an instruction transfers control. A number is the address to which it may lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// To the next instruction only.
    None,
    /// To this address, or to the next instruction.
    Conditional(u64),
    /// To this address.
    Jump(u64),
    /// To an address in a register or in memory.
    IndirectJump,
    /// Into the function at this address.
    Call(u64),
    /// Into a function whose address is in a register or in memory.
    IndirectCall,
    /// Back to the caller.
    Return,
    /// Into the kernel, and then to the next instruction.
    SystemCall,
    /// A trap, or the beginning of a transaction.
    Other,
}

/// What the translator computes about an instruction for its view.
pub(crate) struct InstructionFacts {
    simple: Vec<Template>,
    complex: References,
    reads: u16,
    writes: u16,
}

/// Whether events can carry the addresses of an instruction's references.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum References {
    /// Events can carry all addresses: [`InstructionView::touches`] lists all references.
    Listed,
    /// Events cannot carry them, because the number or size of the references is known only when
    /// they happen: repeats, masks, gathers, state areas, tiles. Only a stream of references
    /// contains these.
    Varying,
}

impl InstructionFacts {
    pub(crate) fn of(
        decoded: &Decoded,
        shapes: &mut ReferenceShapes,
        factory: &mut InstructionInfoFactory,
    ) -> InstructionFacts {
        let shape = shapes.of(&decoded.instruction);
        let shape = shapes.get(shape);
        let uses = register_use::register_use(factory, decoded);
        let complex = if shape.complex.is_some() { References::Varying } else { References::Listed };
        InstructionFacts { simple: shape.simple.clone(), complex, reads: uses.needs, writes: uses.writes }
    }
}

/// A basic block that is being translated.
pub struct BlockView<'a> {
    pub(crate) number: u32,
    pub(crate) instructions: &'a [Decoded],
    pub(crate) facts: &'a [InstructionFacts],
    pub(crate) module: &'a Module,
    pub(crate) procedure: Option<&'a Procedure>,
    /// Returns the source line of an address of the block.
    pub(crate) lines: &'a dyn Fn(u64) -> Option<SourceLine>,
}

impl<'a> BlockView<'a> {
    /// The block's number: its index in the final [`Profile::blocks`](crate::Profile::blocks). Code
    /// that is translated more than once appears as several blocks; each execution counts for
    /// exactly one of them.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Address of the block's first instruction.
    pub fn address(&self) -> u64 {
        self.instructions.first().map_or(0, |first| first.instruction.ip())
    }

    /// The mapped file, or memory with generated code, that holds the block.
    pub fn module(&self) -> &'a Module {
        self.module
    }

    /// The function that holds the block, if the run was given [`Procedures`] that know it.
    pub fn procedure(&self) -> Option<&'a Procedure> {
        self.procedure
    }

    /// The source line of one of the block's instructions, if the run was given [`Procedures`] that
    /// know it. Each call looks it up again.
    pub fn line(&self, instruction: &InstructionView<'_>) -> Option<SourceLine> {
        (self.lines)(instruction.address())
    }

    /// Whether the block is the first of its function.
    pub fn is_entry(&self) -> bool {
        self.procedure.is_some_and(|procedure| procedure.range.start == self.address())
    }

    /// The block's instructions, 1 to 64, in program order.
    pub fn instructions(&self) -> impl DoubleEndedIterator<Item = InstructionView<'a>> + ExactSizeIterator {
        self.instructions
            .iter()
            .zip(self.facts)
            .enumerate()
            .map(|(index, (decoded, facts))| InstructionView { index, decoded, facts })
    }

    /// The block's last instruction, the only one that can be a control transfer.
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
    /// Index of the instruction in its block.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Address of the instruction.
    pub fn address(&self) -> u64 {
        self.decoded.instruction.ip()
    }

    /// The bytes of the instruction.
    pub fn bytes(&self) -> &'a [u8] {
        self.decoded.raw()
    }

    /// Number of the instruction's opcode; [`opcode_name`] gives its name.
    pub fn opcode(&self) -> u16 {
        self.decoded.instruction.code() as u16
    }

    /// The instruction's memory references, loads before stores; see
    /// [`InstructionView::references`].
    pub fn touches(&self) -> impl ExactSizeIterator<Item = Touch> + 'a {
        self.facts
            .simple
            .iter()
            .map(|template| Touch { kind: template.kind, size_bytes: template.size_bytes })
    }

    /// Whether [`InstructionView::touches`] lists all references of the instruction.
    pub fn references(&self) -> References {
        self.facts.complex
    }

    /// Whether a listed reference reads memory.
    pub fn is_load(&self) -> bool {
        self.touches().any(|touch| matches!(touch.kind, RecordKind::Load | RecordKind::Modify))
    }

    /// Whether a listed reference writes memory.
    pub fn is_store(&self) -> bool {
        self.touches().any(|touch| matches!(touch.kind, RecordKind::Store | RecordKind::Modify))
    }

    /// General registers that the instruction reads, addresses included, or writes in part.
    pub fn reads(&self) -> Registers {
        Registers(self.facts.reads)
    }

    /// General registers that the instruction may change.
    pub fn writes(&self) -> Registers {
        Registers(self.facts.writes)
    }

    /// The general register that is operand number `operand` of the instruction, if it is one.
    pub fn register(&self, operand: u32) -> Option<Register> {
        let instruction = &self.decoded.instruction;
        let register = (operand < instruction.op_count()).then(|| instruction.op_register(operand))?;
        number(register).map(|number| Register::ALL[usize::from(number)])
    }

    /// How the instruction transfers control.
    pub fn transfer(&self) -> Transfer {
        let instruction = &self.decoded.instruction;
        if matches!(instruction.code(), Code::Syscall) {
            return Transfer::SystemCall;
        }
        match instruction.flow_control() {
            FlowControl::Next | FlowControl::Exception => Transfer::None,
            FlowControl::ConditionalBranch => Transfer::Conditional(instruction.near_branch_target()),
            FlowControl::UnconditionalBranch => Transfer::Jump(instruction.near_branch_target()),
            FlowControl::IndirectBranch => Transfer::IndirectJump,
            FlowControl::Call if instruction.is_call_near() => {
                Transfer::Call(instruction.near_branch_target())
            }
            FlowControl::IndirectCall => Transfer::IndirectCall,
            FlowControl::Return => Transfer::Return,
            _ => Transfer::Other,
        }
    }

    /// The listed reference with index `nth`.
    pub(crate) fn template(&self, nth: usize) -> Option<&'a Template> {
        self.facts.simple.get(nth)
    }
}

impl fmt::Debug for InstructionView<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} at {:#x}", opcode_name(self.opcode()), self.address())
    }
}
