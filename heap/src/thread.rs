//! What a thread does: its calls, and the allocating function in which it is.
//!
//! Only calls are recorded, not returns: the stack pointer of the next call tells which of the
//! earlier ones have returned. Of functions that call each other, such as `new` and `malloc`, the
//! outermost counts, and what they do themselves counts for no block.

use crate::allocator::Function;

/// An open call.
#[derive(Clone, Copy, Debug)]
struct Frame {
    /// The stack pointer before the call.
    stack: u64,
    /// The number of the call.
    call: u32,
}

/// An allocating function that a thread has entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entered {
    pub(crate) function: Function,
    /// The stack pointer at its first instruction.
    stack: u64,
    pub(crate) arguments: [u64; 3],
    /// What was stored where the first argument points.
    pub(crate) stored: u64,
    /// The place that allocates.
    pub(crate) site: u32,
}

/// A thread.
#[derive(Default)]
pub(crate) struct Thread {
    frames: Vec<Frame>,
    /// The function whose arguments are being read.
    pub(crate) entering: Option<Entered>,
    /// The outermost function that it has entered.
    pub(crate) inside: Option<Entered>,
    /// The stack pointer of the return, or the address of the store, whose value is read next.
    pub(crate) first_word: u64,
    /// The thread's instructions when they were read last.
    pub(crate) last_instructions: u64,
    /// The calls of the last stack that was asked for; the allocation is reused.
    stack: Vec<u32>,
}

impl Thread {
    /// Notes a call.
    #[inline(always)]
    pub(crate) fn calls(&mut self, stack: u64, call: u32) {
        self.returned_below(stack);
        self.frames.push(Frame { stack, call });
        // The function never returned if its caller calls again.
        if self.inside.is_some_and(|inside| stack > inside.stack) {
            self.inside = None;
        }
    }

    /// Forgets calls that have returned before the stack pointer was here.
    #[inline(always)]
    pub(crate) fn returned_below(&mut self, stack: u64) {
        while self.frames.last().is_some_and(|frame| frame.stack <= stack) {
            self.frames.pop();
        }
    }

    /// Begins an allocating function, whose arguments follow.
    pub(crate) fn enters(&mut self, function: Function, stack: u64) {
        self.entering = Some(Entered { function, stack, arguments: [0; 3], stored: 0, site: 0 });
    }

    /// Whether a function that begins now is called by an open one.
    pub(crate) fn is_nested(&mut self, entered: &Entered) -> bool {
        if self.inside.is_some_and(|inside| entered.stack > inside.stack) {
            self.inside = None;
        }
        self.inside.is_some()
    }

    /// The calls that led to a function, the innermost first, at most this many.
    pub(crate) fn stack_of(&mut self, entered: &Entered, frames_max: usize) -> &[u32] {
        self.returned_below(entered.stack);
        self.stack.clear();
        self.stack.extend(self.frames.iter().rev().take(frames_max).map(|frame| frame.call));
        &self.stack
    }

    /// Takes the function that returns here, if the thread leaves it.
    pub(crate) fn leaves(&mut self, stack: u64) -> Option<Entered> {
        self.inside.take_if(|inside| inside.stack == stack)
    }

    /// Notes a store of an address.
    pub(crate) fn stores(&mut self, place: u64, value: u64) {
        if let Some(inside) = self.inside.as_mut().filter(|inside| inside.arguments[0] == place) {
            inside.stored = value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entered(thread: &mut Thread, stack: u64) -> Entered {
        thread.enters(Function::Allocate, stack);
        thread.entering.take().unwrap()
    }

    #[test]
    fn calls_that_returned_are_forgotten() {
        let mut thread = Thread::default();
        thread.calls(0x1000, 1);
        thread.calls(0xf00, 2);
        thread.calls(0xe00, 3);
        thread.calls(0xf00, 4);
        let function = entered(&mut thread, 0xef8);
        assert_eq!(thread.stack_of(&function, 9), [4, 1]);
        assert_eq!(thread.stack_of(&function, 1), [4]);
        thread.returned_below(0xef8);
        thread.calls(0xe00, 5);
        let jumped = entered(&mut thread, 0xdf8);
        assert_eq!(thread.stack_of(&jumped, 9), [5, 4, 1]);
        thread.returned_below(0xf08);
        let jumped = entered(&mut thread, 0xdf8);
        assert_eq!(thread.stack_of(&jumped, 9), [1]);
    }

    #[test]
    fn the_outermost_function_counts_until_it_returns_or_is_left() {
        let mut thread = Thread::default();
        let outer = entered(&mut thread, 0xef8);
        assert!(!thread.is_nested(&outer));
        thread.inside = Some(outer);
        thread.calls(0xe80, 1);
        let inner = entered(&mut thread, 0xe78);
        assert!(thread.is_nested(&inner));
        assert_eq!(thread.leaves(0xe78), None);
        assert_eq!(thread.leaves(0xef8), Some(outer));
        thread.inside = Some(outer);
        thread.calls(0xf00, 2);
        assert_eq!(thread.inside, None, "it was left by an exception");
    }
}
