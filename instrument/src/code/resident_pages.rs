//! The first-level data TLB that the target keeps beside the program: its shape.
//!
//! A reference that changes the page is a use of the TLB, and in programs whose stack, heap and
//! tables take turns half of all references do. So the pages that a fully associative TLB holds,
//! and when each was used last, stand in the thread's context, as those of the instruction side do
//! (`plan::instruction_cache`); only a miss is recorded. Leaves out the code (`emit::data_pages`,
//! `emit::page_routine`) and the host's twin (`image::resident_pages`).

use crate::target::layout::context;
use event::{Filter, RecordKind};

/// A fully associative first-level data TLB that is kept whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResidentPages {
    /// A power of two.
    pub(crate) page_bytes: u32,
    pub(crate) entries: u32,
}

impl ResidentPages {
    /// What `filter` keeps of data pages.
    pub(crate) fn of(filter: &Filter) -> Option<ResidentPages> {
        let (shape, ways) = filter.resident_pages()?;
        Some(ResidentPages { page_bytes: shape.line_bytes, entries: shape.sets * ways })
    }

    /// Whether a context has room for it.
    pub(crate) fn fits(&self) -> bool {
        (2..=context::RESIDENT_PAGES_MAX).contains(&self.entries) && self.page_bytes.is_power_of_two()
    }

    /// Bits of an address within a page.
    pub(crate) fn shift(&self) -> u8 {
        self.page_bytes.trailing_zeros() as u8
    }
}

/// What a record says of a page of a reference by `site`: the upper bits of `what` are the site's.
pub(crate) fn page_what(what: u32) -> u32 {
    what & !0xff | (RecordKind::DataPage as u32) << 4
}
