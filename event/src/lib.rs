//! What an instrumented program emits, defined precisely enough that "difference 0" has a meaning.
//!
//! A stream is, for each thread, a sequence of [`Record`]s of sixteen bytes in program order, and
//! tables ([`Sites`]) that give their numbers a meaning:
//!
//! ```text
//!  0               8       12      16
//! +---------------+-------+-------+
//! | address       | what  | extra |   what = number of the site << 8 | kind << 4 | size code
//! +---------------+-------+-------+
//! | 0x7ffc_1040   | 7, Load, 8 bytes          site 7 -> instruction 0x401136, block 3, index 2
//! | 0x7ffc_1048   | 8, Store, 8 bytes         site 8 -> ...
//! ```
//!
//! References that one record cannot hold (repeated strings, masks, gathers) are groups of records
//! ([`Complex`]).
//!
//! A stream written to a file, read back, decoded and counted:
//!
//! ```
//! use lightfoot_event::file::{Ending, Header, Reader, Writer};
//! use lightfoot_event::{Access, Decoder, Record, RecordKind, ReferenceKind, StateLayout, Stream};
//!
//! let record = |kind, address| Record::new(kind, 8, 0, address).expect("8 bytes have a code");
//! let records = [record(RecordKind::Load, 0x1000), record(RecordKind::Modify, 0x1008)];
//! let layout = StateLayout::default();
//! let mut writer = Writer::new(Vec::new(), &Header { stream: Stream::Full, layout })?;
//! writer.records(1, &records)?;
//! let file = writer.finish()?;
//!
//! let mut reader = Reader::new(file.as_slice())?;
//! let (mut decoder, mut loads) = (Decoder::new(1, 64, layout), 0);
//! while let Some(batch) = reader.batch()? {
//!     for record in &batch.records {
//!         let decoded = decoder.decode(record, reader.sites(), |reference| {
//!             loads += u32::from(reference.kind == ReferenceKind::Data(Access::Load));
//!         });
//!         decoded.expect("no record is damaged");
//!     }
//! }
//! assert_eq!(loads, 2, "a read-modify-write loads too");
//! assert_eq!(reader.ending(), Some(Ending::Complete));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | you have | you want | call | cost |
//! |---|---|---|---|
//! | records | references, one by one | [`Decoder`] | some ns a reference |
//! | records | a consumer of batches | [`Sink`]: [`Counter`], [`Collector`], your own | your own |
//! | records | to know whether they obey the definition | [`Check`] | a look-up or two a record |
//! | a stream | a file, and back | [`file::Writer`], [`file::Reader`] | 16 bytes a record |
//! | a group's records | the complex reference | [`Groups`], [`Complex`] | nothing is allocated |
//!
//! # The definition
//!
//! **Instruction.** One execution of one x86-64 instruction. A repeated string instruction counts
//! once however many iterations it makes (`Rep::Once`; `Rep::Iterations` counts each). An
//! instruction counts when it retires: an attempt that faults does not count. A system call
//! instruction counts; what the kernel touches does not exist here.
//!
//! **Block.** A dynamic basic block: it starts where control arrives (the first instruction of the
//! program, after any control transfer taken or not, after a system call, where a signal handler
//! starts or returns to) and ends with the first control transfer, system call or
//! [`BLOCK_INSTRUCTIONS_MAX`]th instruction. It is a property of the execution, not of how the
//! engine happens to translate it.
//!
//! **References.** References are emitted when an instruction is *attempted*. Within a block the
//! order is: the instruction lines of the whole block first (each line that its bytes touch, once
//! per block, ascending), then the data references of its instructions in program order; within an
//! instruction loads before stores, otherwise in the order in which the manual's operation touches
//! them (`push [m]`: load m, store stack; `pop [m]`: load stack, store m; `movs`: load source,
//! store destination; `cmps`: load `[rsi]`, load `[rdi]`; read-modify-write: load then store of the
//! same address; `call` stores, `ret` loads, `call [m]`: load m, store stack; `leave` loads
//! `[rbp]`; `enter` stores only).
//!
//! Cases that need a word:
//!
//! * **An access of n bytes at a** is one reference (a, n), also when it crosses a line or page; a
//!   simulator touches every line it covers, lowest first.
//! * **A reference of more than [`WIDE_BYTES`] bytes** (state areas, `fsave`) is one reference; a
//!   simulator counts each of its lines, and each page, that misses, where a smaller reference
//!   counts at most one miss a level.
//! * **A `rep` string instruction** makes per iteration the references of one iteration, none when
//!   the count is 0.
//! * **A gather or scatter** makes one reference per enabled element, element 0 first.
//! * **A masked vector access** is one reference from the first to the last enabled element's last
//!   byte; none when no element is enabled.
//! * **`xsave`, `xrstor`, `fxsave` …** make one reference of the whole area that the requested
//!   components occupy (`fxsave`: 512 bytes).
//! * **A prefetch, `clflush` and kin** make one `Prefetch` reference of one byte; neither load nor
//!   store, simulators ignore it by default.
//! * **`nop` with an operand, `lea`** make none.
//! * **`fs` and `gs` operands** have the linear address, segment base included.
//! * **AMX `tileloadd` and `tilestored`** make one reference per row.
//!
//! Every reference belongs to the instruction that makes it, and carries its thread and the
//! thread's instruction count (instructions retired before the owning instruction).
//!
//! # Stability
//!
//! The file format has a version (1), and readers refuse others; records are in the order and size
//! of this page. A file that was cut is read up to the last whole chunk, and [`file::Ending`] says
//! so.
//!
//! # What it leaves out
//!
//! How references are produced, and what is done with them. No dependencies, no `unsafe` code, any
//! platform.

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
mod upcoming;

pub use check::{Check, Fault, Violation};
pub use complex::{group_shape, masked_reference, Complex};
pub use decode::{Decoder, Reference, ReferenceKind};
pub use filter::{
    FetchFilter, Filter, ModifyFilter, PageFilter, SetFilter, StoreFilter, Stream, FETCH_LINES_MAX,
    FETCH_SETS_MAX, RESIDENT_PAGES_MAX,
};
pub use group::{Groups, Step};
pub use record::{Access, Code, Record, RecordKind, CUT_SITE, SIZES};
pub use shape::{
    AddressWidth, Direction, Malformed, MaskedLayout, Segment, Shape, StateFormat, StringOperation,
    COMPLEX_CODE, PAYLOAD_CODE, VALUES_MAX,
};
pub use sink::{Both, Collector, Counter, Sink};
pub use sites::{Block, Site, Sites};
pub use state::{StateAlignment, StateComponent, StateLayout, STATE_HEADER_BYTES};
pub use upcoming::{Upcoming, RECORDS_OF_LINE};

/// References of more bytes are counted line by line where they miss. No load or store of data is
/// larger; areas of the processor's state are, and cost as much as their lines.
pub const WIDE_BYTES: u32 = 64;

/// A block ends after this many instructions even without a control transfer.
pub const BLOCK_INSTRUCTIONS_MAX: usize = 64;

/// The examples of the README are tested too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
