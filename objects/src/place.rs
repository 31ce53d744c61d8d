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
    /// Frames of the function with code at this address, which makes no call.
    Running(u64),
    /// Code of the page with this number.
    Code(u64),
    /// Memory that allocating functions use beside blocks: headers, free blocks.
    Allocator,
    /// Memory of no object that is known.
    Unknown,
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
