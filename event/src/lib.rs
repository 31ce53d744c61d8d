//! What an instrumented program emits, defined precisely enough that "difference 0" has a meaning.
//!
//! **Instruction.** One execution of one x86-64 instruction. A repeated string instruction counts once however
//! many iterations it makes (`Rep::Once`; `Rep::Iterations` counts each). An instruction counts when it retires:
//! an attempt that faults does not count. A system call instruction counts; what the kernel touches does not exist here.
//!
//! **Block.** A dynamic basic block: it starts where control arrives (the first instruction of the program, after any
//! control transfer taken or not, after a system call, where a signal handler starts or returns to) and ends with
//! the first control transfer, system call or [`BLOCK_INSTRUCTIONS_MAX`]th instruction. It is a property of the
//! execution, not of how the engine happens to translate it.
//!
//! **References.** References are emitted when an instruction is *attempted*. Within a block the order is: the instruction
//! lines of the whole block first (each line that its bytes touch, once per block, ascending), then the data references of its
//! instructions in program order; within an instruction loads before stores, otherwise in the order in which the manual's operation
//! touches them (`push [m]`: load m, store stack; `pop [m]`: load stack, store m; `movs`: load source, store destination;
//! `cmps`: load `[rsi]`, load `[rdi]`; read-modify-write: load then store of the same address; `call` stores, `ret` loads,
//! `call [m]`: load m, store stack; `leave` loads `[rbp]`; `enter` stores only).
//!
//! | case | references |
//! |---|---|
//! | access of n bytes at a | one reference (a, n), also when it crosses a line or page; a simulator touches every line it covers, lowest first |
//! | `rep` string instruction | per iteration the references of one iteration, none when the count is 0 |
//! | gather, scatter | one reference per enabled element, element 0 first |
//! | masked vector access | one reference from the first to the last enabled element's last byte; none when no element is enabled |
//! | `xsave`, `xrstor`, `fxsave` … | one reference of the whole area that the requested components occupy (`fxsave` 512 bytes) |
//! | prefetch, `clflush` and kin | one `Prefetch` reference of one byte; neither load nor store, simulators ignore it by default |
//! | `nop` with an operand, `lea` | none |
//! | `fs`/`gs` operands | the linear address, segment base included |
//! | AMX `tileloadd`/`tilestored` | one reference per row |
//!
//! Every reference belongs to the instruction that makes it, and carries its thread and the thread's instruction count
//! (instructions retired before the owning instruction).

#![forbid(unsafe_code)]

mod check;
mod complex;
mod decode;
pub mod file;
mod filter;
mod group;
mod record;
mod shape;
mod sink;
mod sites;
mod state;

pub use check::{Check, Fault, Violation};
pub use complex::{group_shape, masked_reference, Complex};
pub use decode::{Decoder, Reference, ReferenceKind};
pub use filter::{FetchFilter, Filter, SetFilter, StoreFilter, Stream, KEPT_LINES_MAX, KEPT_SETS_MAX};
pub use group::{Groups, Step};
pub use record::{Access, Code, Record, RecordKind, CUT_SITE, SIZES};
pub use shape::{
    AddressWidth, Direction, Malformed, MaskedLayout, Segment, Shape, StateFormat, StringOperation,
    COMPLEX_CODE, PAYLOAD_CODE, VALUES_MAX,
};
pub use sink::{Both, Collector, Counter, Sink};
pub use sites::{Block, Site, Sites};
pub use state::{StateAlignment, StateComponent, StateLayout, STATE_HEADER_BYTES};

/// A block ends after this many instructions even without a control transfer.
pub const BLOCK_INSTRUCTIONS_MAX: usize = 64;
