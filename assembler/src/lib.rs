//! Encodes x86-64 instructions into bytes: what the instrumentation engine and the compiler of
//! regular expressions write at run time.
//!
//! ```
//! use lightfoot_assembler::{Alu, Assembler, Condition, Gpr, Memory, Size};
//!
//! // A loop that adds rcx numbers at rdi.
//! let mut code = Assembler::default();
//! code.alu(Alu::Xor, Size::Dword, Gpr::RAX, Gpr::RAX);
//! let top = code.here();
//! code.alu_from(Alu::Add, Size::Qword, Gpr::RAX, Memory::at(Gpr::RDI));
//! code.alu_immediate(Alu::Add, Size::Qword, Gpr::RDI, 8);
//! code.decrement(Size::Qword, Gpr::RCX);
//! code.jump_back_if(Condition::NotEqual, top);
//! code.ret();
//! assert_eq!(code.bytes().len(), 15);
//! ```
//!
//! **Why an encoder of our own.** Fragments of code are written millions of times a run. A general
//! encoder looks forms up in tables and takes some fifty nanoseconds an instruction; here a form is
//! a function that the compiler folds into a few stores. Every form is decoded again in the tests,
//! by a decoder that others wrote.
//!
//! **How.** An instruction is composed in sixteen bytes that stay in registers (`instruction`), and
//! appended to the code by one store of constant length (`code`). `operand` has the operands,
//! `integer` the general instructions, `control` jumps and calls, `vector` the VEX and EVEX forms,
//! `sse` SSE2's.
//!
//! **Leaves out** instructions that neither of the two writes, 16-bit operands but for extending
//! loads, and everything that a reader of existing code needs: `iced-x86` decodes.
//!
//! Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, chapter 2 (the
//! format of instructions) and the pages of the instructions.

#![forbid(unsafe_code)]

mod code;
mod control;
mod instruction;
mod integer;
mod operand;
mod sse;
pub mod vector;

pub use code::Assembler;
pub use control::{Jump, Label, ShortJump};
pub use integer::{Alu, Extend, Prefetch, Shift};
pub use operand::{Condition, Gpr, Mask, Memory, Mmx, Operand, Scale, Size, Vector};
