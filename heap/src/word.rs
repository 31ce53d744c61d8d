//! The tags of the events that the instrumentation asks for.
//!
//! ```text
//!   CALL    stack pointer              before each call
//!   CALL_WITHIN                        before each direct call in a module that allocates
//!   CALL_OUT                           before each other call there
//!   BACK    stack pointer              before a jump that ends a function's frame
//!   ENTER   stack pointer    ┐
//!   FIRST   first argument   │
//!   SECOND  second argument  │         where an allocating function begins
//!   THIRD   third argument   │
//!   NOW     instructions     ┘
//!   PLACE   address          ┐
//!   STORED  value            ┘         before a store of an address where an argument points
//!   LEAVE   stack pointer    ┐
//!   RESULT  rax              ┘         before a return in a module that allocates
//! ```
//!
//! The upper bits of a tag are the number of the call, or of the function.

pub(crate) const CALL: u32 = 0;
pub(crate) const ENTER: u32 = 1;
pub(crate) const FIRST: u32 = 2;
pub(crate) const SECOND: u32 = 3;
pub(crate) const THIRD: u32 = 4;
pub(crate) const NOW: u32 = 5;
pub(crate) const PLACE: u32 = 6;
pub(crate) const STORED: u32 = 7;
pub(crate) const LEAVE: u32 = 8;
pub(crate) const RESULT: u32 = 9;
pub(crate) const BACK: u32 = 10;
pub(crate) const CALL_WITHIN: u32 = 11;
pub(crate) const CALL_OUT: u32 = 12;

/// Bits of a tag that say what the event is.
const BITS: u32 = 4;
/// The largest number of a call.
pub(crate) const NUMBER_MAX: u32 = u32::MAX >> BITS;

/// The tag of an event with a number.
pub(crate) fn tag(word: u32, number: u32) -> u32 {
    number << BITS | word
}

/// What an event is, and its number.
#[inline(always)]
pub(crate) fn of_tag(tag: u32) -> (u32, u32) {
    (tag & ((1 << BITS) - 1), tag >> BITS)
}
