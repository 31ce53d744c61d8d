//! The raw record: 16 bytes that generated code appends to a thread's ring and simulators read in
//! batches.
//!
//! `what` = site << 8 | code. The code says all that a simulator needs (kind and size), so that the
//! hot loop never looks a site up in a table; the site names the owning instruction for
//! attribution. Source: our own; DESIGN.md "data plane".

/// One raw record as generated code writes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Record {
    /// Effective (linear) address, or the payload that the code calls for.
    pub address: u64,
    /// `site << 8 | code`.
    pub what: u32,
    /// A second payload: a block's bytes, a complex reference's shape, a payload's index; otherwise
    /// 0.
    pub extra: u32,
}

impl Record {
    /// A record of `kind` for `site`, or `None` where `size_bytes` has no short form (kinds without
    /// a size: pass 0).
    pub fn new(kind: RecordKind, size_bytes: u32, site: u32, address: u64) -> Option<Record> {
        let code = if size_bytes == 0 { Code((kind as u8) << 4) } else { Code::new(kind, size_bytes)? };
        Some(Record { address, what: site << 8 | u32::from(code.0), extra: 0 })
    }

    /// Number of the site: an index into the engine's table of sites (or of blocks, for `Fetch` and
    /// `Block`).
    pub fn site(self) -> usize {
        (self.what >> 8) as usize
    }

    /// What kind of record this is, and how many bytes it touches.
    pub fn code(self) -> Code {
        Code(self.what as u8)
    }
}

/// The low byte of `what`: 4 bits of kind, 4 bits of size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(pub u8);

/// Upper four bits of a [`Code`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum RecordKind {
    /// `address` is read.
    Load = 0,
    /// `address` is written.
    Store = 1,
    /// `address` is read, then written (one instruction, one location).
    Modify = 2,
    /// `address` is hinted at.
    Prefetch = 3,
    /// An instruction line: `address` is the line's first byte; `site` is the block's number. Only
    /// in filtered streams.
    Fetch = 4,
    /// A block starts: `address` is that of its first instruction, `extra` its bytes, `site` its
    /// number ([`CUT_SITE`]: not a block but a correction; `address` instructions of the block
    /// before did not retire). Only in full streams, which carry no `Fetch`.
    Block = 5,
    /// A reference that needs more words: the following records of kind `Payload` belong to it.
    Complex = 6,
    /// Payload of the preceding `Complex`.
    Payload = 7,
    /// A tool's own event: `address` is the value it asked for.
    Tool = 8,
    /// The page of an instruction line missed the first-level TLB that is kept where the program
    /// runs: `address` is the page's first byte, `site` the block's number. Only in streams under
    /// [`FetchFilter::FirstLevel`](crate::FetchFilter::FirstLevel).
    FetchPage = 9,
    /// The page of a data reference missed the first-level TLB that is kept where the program runs:
    /// `address` is the reference's first byte in the page, `site` the reference's. `extra` is 1
    /// where the reference crosses into the next page, and that one missed too; else 0. Only in
    /// streams under [`PageFilter::FirstLevel`](crate::PageFilter::FirstLevel).
    DataPage = 10,
}

/// The site number, never given to a block, by which a `Block` record takes instructions back after
/// a fault or signal.
pub const CUT_SITE: usize = 0xff_ffff;

/// Direction of a data reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    /// The reference reads.
    Load,
    /// The reference writes.
    Store,
    /// The reference is a hint.
    Prefetch,
}

/// Sizes that the four size bits name; other sizes travel as `Complex`.
pub const SIZES: [u32; 16] = [1, 2, 4, 6, 8, 10, 16, 28, 32, 64, 94, 108, 128, 512, 0, 0];

impl Code {
    /// The code for `kind` and `size_bytes`, or `None` where the size has no short form.
    pub fn new(kind: RecordKind, size_bytes: u32) -> Option<Code> {
        let size = SIZES.iter().position(|&s| s == size_bytes && s != 0)?;
        Some(Code((kind as u8) << 4 | size as u8))
    }

    /// The kind.
    pub fn kind(self) -> RecordKind {
        use RecordKind::*;
        let kinds =
            [Load, Store, Modify, Prefetch, Fetch, Block, Complex, Payload, Tool, FetchPage, DataPage];
        kinds.get(usize::from(self.0 >> 4)).copied().unwrap_or(Tool)
    }

    /// Bytes touched (0 where the kind has none).
    pub fn size_bytes(self) -> u32 {
        SIZES[(self.0 & 15) as usize]
    }
}
