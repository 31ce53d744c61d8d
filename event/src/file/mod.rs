//! Streams in files.
//!
//! **Format, version 1**, little endian throughout:
//!
//! | bytes | what |
//! |---|---|
//! | 8 | magic `lfstream` |
//! | 4 | version |
//! | 44 | stream: eleven numbers of 4 bytes, below |
//! | 768 | 64 state components: size, offset, alignment (0, 1) |
//!
//! The stream's numbers: kind (0 counts, 1 filtered, 2 full, 3 nothing); sets and line bytes of the
//! data, instruction, data page and instruction page filters (0, 0: none); stores (0 like loads, 1
//! never enter), twice what is recorded of modifies (0 both, 1 the store, 2 the load) and 65,536
//! times the entries of a first-level data TLB that is kept whole; ways of the first-level
//! instruction cache and, times 65,536, of its TLB (0: last of set).
//!
//! Then chunks: tag (4), thread (4), payload bytes (4), checksum of tag, thread and payload (4),
//! payload. Tags: `SITE` (ip 8, block 4, index 4), `BLCK` (ip 8, bytes 4, instructions 4), `RECS`
//! (address 8, what 4, extra 4), `DONE` (nothing). Tables grow chunk by chunk, ahead of the records
//! that need them, so that a stream can be written while its program runs.
//!
//! **Why this way.** Every chunk stands for itself: a file that was cut is read up to the last
//! whole chunk, and [`Ending`] says so. A file without `DONE` was not finished. **Leaves out**
//! compression: pipe through `zstd`. Nothing is trusted: lengths and checksums are checked before
//! use.

mod begin;
mod format;
mod read;
mod write;

pub use begin::begin;
pub use format::Header;
pub use read::{Batch, Ending, FileError, Reader};
pub use write::Writer;
