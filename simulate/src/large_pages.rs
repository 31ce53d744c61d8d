//! Pages of more than one size: their addresses, and the buffers that translate them.

use crate::Geometry;

/// Addresses on larger pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PageRange {
    /// First byte.
    pub start: u64,
    /// Last byte.
    pub last: u64,
    /// Bytes of a page; only pages that lie in the range as a whole are large.
    pub page_bytes: u64,
}

/// A buffer of translations for pages of some sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageBuffer {
    /// The page sizes that it translates, ascending.
    pub page_bytes: Vec<u64>,
    /// Its shape; the line is the smallest page.
    pub geometry: Geometry,
}

/// Large pages, and the buffers for pages of all sizes.
///
/// A translation uses the buffer of a level for the largest size that is not larger than its page:
/// if no buffer takes the whole page, parts of it are translated. If all page sizes of a level are
/// larger, the smallest of them is used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LargePages {
    /// The ranges of large pages; if ranges overlap, the first one counts.
    pub ranges: Vec<PageRange>,
    /// First level, data.
    pub data: Vec<PageBuffer>,
    /// First level, instructions.
    pub instruction: Vec<PageBuffer>,
    /// Second level of data, and of instructions where it is unified.
    pub outer: Vec<PageBuffer>,
    /// Second level of instructions, where they have one of their own.
    pub outer_instruction: Vec<PageBuffer>,
}

impl LargePages {
    /// Bytes of the page that holds `address`, where it is a large one.
    pub(crate) fn page_bytes(&self, address: u64) -> Option<u64> {
        let holds = |range: &&PageRange| {
            let first = address & !(range.page_bytes - 1);
            first >= range.start && first | (range.page_bytes - 1) <= range.last
        };
        self.ranges.iter().find(holds).map(|range| range.page_bytes)
    }
}
