//! The words of machine code: instructions as they are read and written, and what translated code
//! is known by.
//!
//! What is emitted, and why, is decided above (`plan`, `emit`); where it lies too (`cache`).

pub(crate) mod address_map;
pub(crate) mod assembler;
pub(crate) mod buffer;
pub(crate) mod counter;
pub(crate) mod decode;
pub(crate) mod event_request;
pub(crate) mod fragment;
pub(crate) mod hash;
pub(crate) mod lookup;
pub(crate) mod register_use;
pub(crate) mod resident_pages;
pub(crate) mod state_area;
pub(crate) mod state_map;
pub(crate) mod superblock;
