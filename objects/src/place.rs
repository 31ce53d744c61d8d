//! What lies at an address: an object, and where it begins.

/// The identity of an object while the program runs. Objects of one site of allocation are one;
/// parts of stacks are named by a call, or an address of code, of the function whose frame they
/// are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectKey {
    /// Blocks of the place of allocation with this number.
    Blocks(u32),
    /// The variable, or section of data, with this number.
    Variable(u32),
    /// The variable of a function with this number, in all of the function's frames.
    Local(u32),
    /// Frames of the function that makes the call with this number.
    Call(u32),
    /// Frames of the function with code at this address of the module with this number, which makes
    /// no call.
    Running(u32, u64),
    /// Code of the module with this number.
    Code(u32),
    /// Memory of which nothing is known, because the program had it before it was followed.
    Earlier(Earlier),
    /// Memory that allocating functions use beside blocks: headers, free blocks.
    Allocator,
    /// Memory of no object that is known.
    Unknown,
}

/// Memory that a program had before it was followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Earlier {
    /// The heap that grows at the end of the program's data.
    Heap,
    /// Frames of functions that were entered before.
    Stack,
    /// Mappings of no file: other heaps, other threads' stacks.
    Mapped,
}

/// What lies at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The object.
    pub key: ObjectKey,
    /// Where it begins; of memory that is no block and no variable 0.
    pub start: u64,
    /// Its bytes; 0 where `start` is 0.
    pub size_bytes: u64,
}

/// Bytes to which stacks are aligned.
pub(crate) const STACK_ALIGN: u64 = 16;
