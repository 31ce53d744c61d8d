//! What a thread does: its calls, and the allocating function in which it is.
//!
//! Only calls are recorded, not returns: the stack pointer of the next call tells which of the
//! earlier ones have returned. Of functions that call each other, such as `new` and `malloc`, the
//! outermost counts, and what they do themselves counts for no block.

use crate::allocator::Function;

/// Memory above the outermost call that belongs to the stack: arguments and environment.
const ABOVE_BYTES: u64 = 256 << 10;
/// The outermost function's frame has at most so many bytes.
const FRAME_BYTES_MAX: u64 = 4096;
/// Memory below the innermost call of all that belongs to the stack: frames of functions that call
/// nothing.
const BELOW_BYTES: u64 = 64 << 10;

/// An open call.
#[derive(Clone, Copy, Debug)]
struct Frame {
    /// The stack pointer before the call.
    stack: u64,
    /// The number of the call.
    call: u32,
    caller: Caller,
}

/// The module in which a call lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// One that has allocating functions, which calls a function of its own.
    Allocator,
    /// One that has allocating functions, which calls through a register or memory: also functions
    /// of others.
    AllocatorByAddress,
    Other,
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

/// Whose part of a stack an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackFrame {
    /// Of the function that makes the call with this number.
    Of(u32),
    /// Of the function that runs now, or of what the system put beside the stack.
    Running,
}

/// The frame around an address of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackPlace {
    /// Whose part of the stack it is.
    pub frame: StackFrame,
    /// The number of the call that the frame's function makes; `None` of the one that runs.
    pub call: Option<u32>,
    /// The stack pointer before that call.
    pub stack: Option<u64>,
    /// The stack pointer before the call of the function.
    pub canonical: Option<u64>,
}

/// A thread.
#[derive(Clone, Default)]
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
    /// The least stack pointer of any call, and the greatest one.
    bounds: Option<(u64, u64)>,
}

impl Thread {
    /// Notes a call.
    #[inline(always)]
    pub(crate) fn calls(&mut self, stack: u64, call: u32, caller: Caller) {
        self.returned_below(stack);
        self.frames.push(Frame { stack, call, caller });
        match &mut self.bounds {
            Some((least, greatest)) => (*least, *greatest) = ((*least).min(stack), (*greatest).max(stack)),
            bounds => *bounds = Some((stack, stack)),
        }
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

    /// Whether a function is called by the allocator itself, and by nobody outside of it: when a
    /// thread ends, some C libraries free what the thread has kept of freed blocks. The first
    /// function of a thread, which such a library calls too, may jump to this one.
    pub(crate) fn is_allocators_own(&mut self, entered: &Entered) -> bool {
        self.returned_below(entered.stack);
        self.frames.last().is_some_and(|frame| frame.caller == Caller::Allocator)
            && self.frames.iter().all(|frame| frame.caller != Caller::Other)
    }

    /// The frame around an address; `None` if it lies far from the stack.
    pub(crate) fn place(&self, address: u64) -> Option<StackPlace> {
        let (least, greatest) = self.bounds?;
        let around = least.saturating_sub(BELOW_BYTES)..greatest.saturating_add(ABOVE_BYTES);
        if !around.contains(&address) {
            return None;
        }
        // A function's frame lies between the stack pointer of its call and that of the call that
        // led to it; calls further in have lower ones.
        let outer = self.outer(address);
        let made = self.frames.get(outer);
        let is_above = self.frames.first().is_none_or(|first| address > first.stack + FRAME_BYTES_MAX);
        let frame = match made {
            Some(frame) if outer > 0 || !is_above => StackFrame::Of(frame.call),
            _ => StackFrame::Running,
        };
        let canonical = outer.checked_sub(1).map(|caller| self.frames[caller].stack);
        Some(StackPlace {
            frame,
            call: made.map(|made| made.call),
            stack: made.map(|made| made.stack),
            canonical,
        })
    }

    /// How many open calls were made with the stack pointer above an address. Most addresses are
    /// those of the innermost frames, which are asked first.
    #[inline(always)]
    fn outer(&self, address: u64) -> usize {
        let inner = self.frames.iter().rev().take(2).take_while(|frame| frame.stack <= address).count();
        let rest = &self.frames[..self.frames.len() - inner];
        match inner {
            2 => rest.partition_point(|frame| frame.stack > address),
            _ => rest.len(),
        }
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
    fn a_frame_lies_between_the_call_of_its_function_and_the_one_that_it_makes() {
        let mut thread = Thread::default();
        thread.calls(0x9000, 1, Caller::Other);
        thread.calls(0x8000, 2, Caller::Other);
        let around = |address| {
            let place = thread.place(address).unwrap();
            (place.call, place.stack, place.canonical)
        };
        assert_eq!(around(0x9100), (Some(1), Some(0x9000), None), "of the first function");
        assert_eq!(around(0x8ff8), (Some(2), Some(0x8000), Some(0x9000)));
        assert_eq!(around(0x8000), (Some(2), Some(0x8000), Some(0x9000)));
        assert_eq!(around(0x7ff8), (None, None, Some(0x8000)), "of the function that runs");
    }

    #[test]
    fn calls_that_returned_are_forgotten() {
        let mut thread = Thread::default();
        thread.calls(0x1000, 1, Caller::Other);
        thread.calls(0xf00, 2, Caller::Other);
        thread.calls(0xe00, 3, Caller::Other);
        thread.calls(0xf00, 4, Caller::Other);
        let function = entered(&mut thread, 0xef8);
        assert_eq!(thread.stack_of(&function, 9), [4, 1]);
        assert_eq!(thread.stack_of(&function, 1), [4]);
        assert!(!thread.is_allocators_own(&function));
        thread.returned_below(0xef8);
        thread.calls(0xe00, 5, Caller::Other);
        let jumped = entered(&mut thread, 0xdf8);
        assert_eq!(thread.stack_of(&jumped, 9), [5, 4, 1]);
        thread.returned_below(0xf08);
        let jumped = entered(&mut thread, 0xdf8);
        assert_eq!(thread.stack_of(&jumped, 9), [1]);
    }

    #[test]
    fn an_address_belongs_to_the_function_whose_frame_holds_it() {
        let mut thread = Thread::default();
        let frame = |thread: &Thread, address| thread.place(address).map(|place| place.frame);
        assert_eq!(frame(&thread, 0x1000), None);
        thread.calls(0x9_1000, 1, Caller::Other);
        thread.calls(0x9_0f00, 2, Caller::Other);
        thread.calls(0x9_0e00, 3, Caller::Other);
        for (address, expected) in [
            (0x9_1010, Some(StackFrame::Of(1))),
            (0x9_0f00, Some(StackFrame::Of(2))),
            (0x9_0eff, Some(StackFrame::Of(3))),
            (0x9_0df8, Some(StackFrame::Running)),
            (0x9_3000, Some(StackFrame::Running)),
            (0x7_0000, None),
            (0x20_0000, None),
        ] {
            assert_eq!(frame(&thread, address), expected, "{address:#x}");
        }
    }

    #[test]
    fn the_outermost_function_counts_until_it_returns_or_is_left() {
        let mut thread = Thread::default();
        let outer = entered(&mut thread, 0xef8);
        assert!(!thread.is_nested(&outer));
        thread.inside = Some(outer);
        thread.calls(0xe80, 1, Caller::Other);
        let inner = entered(&mut thread, 0xe78);
        assert!(thread.is_nested(&inner));
        assert_eq!(thread.leaves(0xe78), None);
        assert_eq!(thread.leaves(0xef8), Some(outer));
        thread.inside = Some(outer);
        thread.calls(0xf00, 2, Caller::Other);
        assert_eq!(thread.inside, None, "it was left by an exception");
        thread.calls(0x1000, 3, Caller::Allocator);
        let own = entered(&mut thread, 0xff8);
        assert!(thread.is_allocators_own(&own));
        thread.calls(0xf00, 4, Caller::AllocatorByAddress);
        let jumped_to = entered(&mut thread, 0xef8);
        assert!(!thread.is_allocators_own(&jumped_to), "by the function that was called");
        thread.calls(0xe00, 5, Caller::Allocator);
        let own = entered(&mut thread, 0xdf8);
        assert!(thread.is_allocators_own(&own));
    }
}
