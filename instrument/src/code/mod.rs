//! Machine code: decoding the program's instructions, encoding generated ones, and the data
//! structures that describe both.
//!
//! `plan` and `emit` decide what is emitted, and `cache` decides where it lies.

pub(crate) mod assembler;
pub(crate) mod buffer;
pub(crate) mod counter;
pub(crate) mod decode;
pub(crate) mod event_request;
pub(crate) mod fragment;
pub(crate) mod hand_over;
pub(crate) mod hash;
pub(crate) mod kept_table;
pub(crate) mod lookup;
pub(crate) mod opcode_name;
pub(crate) mod register_use;
pub(crate) mod resident_pages;
pub(crate) mod state_area;
pub(crate) mod state_map;
pub(crate) mod superblock;
