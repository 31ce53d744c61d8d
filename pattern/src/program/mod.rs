//! Bit-stream programs: what regular expressions are compiled to, and what kernels run.
//!
//! A stream has one bit per byte of the text. A [`BitProgram`] computes one stream from the eight
//! *basis* streams (stream `k` holds bit `k` of every byte) with bitwise logic and with the two
//! operations that move information along the text: [`Op::Advance`] (later by `n`) and additions
//! ([`Op::MatchStar`] and its relatives), whose carries run from lower to higher positions.
//!
//! **Model.** Streams are unbounded integers, position 0 lowest; [`crate::reference`] evaluates a
//! program in this way. Kernels work block by block: every operation that looks back owns a
//! [`Carry`], and one block hands nothing else to the next.
//!
//! **Form.** Static single assignment, structured: a value is defined once, before its uses, and
//! seen inside the bodies that follow. The two bodies are [`Op::IfAny`], which skips pure logic
//! where its condition has no bit, and [`Op::WhileAny`], the least fixed point that a nested star
//! needs.
//!
//! Every program can be printed ([`std::fmt::Display`]), parsed ([`BitProgram::parse`]) and checked
//! ([`BitProgram::verify`]). **Leaves out** streams of anything but bits, and positions before the
//! current one except by `Advance` and delayed bases. Source: Cameron et al. 2014, sections 2 and
//! 3; the vocabulary (basis, marker, advance, carry) is Parabix's.

mod build;
mod operation;
pub mod pass;
mod text;
mod verify;

pub(crate) use build::Builder;
pub use operation::{BitProgram, Carry, Instruction, Op, Value, Yield, MAX_ADVANCE, MAX_DELAY};
pub use text::ParseError;
pub use verify::Fault;
