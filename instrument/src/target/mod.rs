//! The program's processes, seen from outside: the host starts, stops, reads and writes them, and
//! maps memory into them.
//!
//! These modules know nothing about generated code.

pub(crate) mod allocator;
pub(crate) mod attach;
pub(crate) mod auxiliary;
pub(crate) mod bell;
pub(crate) mod credentials;
pub(crate) mod executable;
pub(crate) mod file_bytes;
pub(crate) mod handover;
pub(crate) mod in_flight;
pub(crate) mod inherited;
pub(crate) mod inject;
pub(crate) mod interpreter;
pub(crate) mod interrupt;
pub(crate) mod layout;
pub(crate) mod mappings;
pub(crate) mod memory;
pub(crate) mod modules;
pub(crate) mod own_pages;
pub(crate) mod ptrace;
pub(crate) mod pulse;
pub(crate) mod restartable;
pub(crate) mod rights;
pub(crate) mod running;
pub(crate) mod signal_mask;
pub(crate) mod start;
pub(crate) mod trap;
pub(crate) mod trust;
