//! The first-level data TLB that generated code simulates: its shape.
//!
//! **Problem.** A filter of last pages records each change of the page, and in programs that
//! alternate between stack, heap and tables half of all references change it. **Idea.** The
//! thread's context holds all pages of a fully associative TLB with the times of their last uses,
//! like the lines of the inline instruction cache (`plan::instruction_cache`); only misses are
//! recorded. **Leaves out** the code (`emit::data_pages`, `emit::page_routine`) and the host's twin
//! (`image::resident_pages`).

use crate::target::layout::context;
use event::{Filter, RecordKind};

/// The shape of a fully associative first-level data TLB that generated code simulates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResidentPages {
    /// Bytes of a page, a power of two.
    pub(crate) page_bytes: u32,
    pub(crate) entries: u32,
}

impl ResidentPages {
    /// The TLB that `filter` asks generated code to simulate, if any.
    pub(crate) fn of(filter: &Filter) -> Option<ResidentPages> {
        let (shape, ways) = filter.resident_pages()?;
        Some(ResidentPages { page_bytes: shape.line_bytes, entries: shape.sets * ways })
    }

    /// Whether a thread's context has room for the TLB.
    pub(crate) fn fits(&self) -> bool {
        (2..=context::RESIDENT_PAGES_MAX).contains(&self.entries) && self.page_bytes.is_power_of_two()
    }

    /// The number of groups of entries; the last one may have fewer than the others.
    pub(crate) fn groups(&self) -> u32 {
        self.entries.div_ceil(context::RESIDENT_GROUP)
    }

    /// log2 of the page size.
    pub(crate) fn shift(&self) -> u8 {
        self.page_bytes.trailing_zeros() as u8
    }
}

/// The first word of the record of a page miss, from the first word (`site << 8 | code`) of the
/// reference.
pub(crate) fn page_what(what: u32) -> u32 {
    what & !0xff | (RecordKind::DataPage as u32) << 4
}
