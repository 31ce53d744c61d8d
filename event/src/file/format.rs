//! The numbers of the format, its header, and the checksum of its chunks. See the parent module for
//! the format.

use crate::{
    FetchFilter, Filter, ModifyFilter, PageFilter, SetFilter, StateAlignment, StateComponent, StateLayout,
    StoreFilter, Stream,
};

pub(super) const MAGIC: [u8; 8] = *b"lfstream";
pub(super) const VERSION: u32 = 1;
/// Payload of a chunk at most; writers split.
pub(super) const PAYLOAD_BYTES_MAX: usize = 1 << 20;
/// Bytes of an entry of any table.
pub(super) const ENTRY_BYTES: usize = 16;
/// Words of 4 bytes of the header behind the version.
pub(super) const HEADER_WORDS: usize = 11 + 64 * 3;

pub(super) const SITE: [u8; 4] = *b"SITE";
pub(super) const BLOCK: [u8; 4] = *b"BLCK";
pub(super) const RECORDS: [u8; 4] = *b"RECS";
pub(super) const DONE: [u8; 4] = *b"DONE";

/// What may be recorded of modifies, by its number in a header.
const MODIFIES: [ModifyFilter; 3] = [ModifyFilter::Both, ModifyFilter::StoreAlone, ModifyFilter::LoadAlone];

/// What stands at a file's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What was recorded.
    pub stream: Stream,
    /// Sizes of the processor's state components.
    pub layout: StateLayout,
}

/// FNV-1a over the 32-bit words of tag, thread and payload, folded.
pub(super) fn checksum(head: &[u8], payload: &[u8]) -> u32 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for word in head.chunks(4).chain(payload.chunks(4)) {
        let mut bytes = [0; 4];
        bytes[..word.len()].copy_from_slice(word);
        hash = (hash ^ u64::from(u32::from_le_bytes(bytes))).wrapping_mul(0x100_0000_01b3);
    }
    (hash ^ hash >> 32) as u32
}

impl Header {
    pub(super) fn words(&self) -> [u32; HEADER_WORDS] {
        let mut words = vec![0; 11];
        match self.stream {
            Stream::Counts => {}
            Stream::Full => words[0] = 2,
            Stream::Nothing => words[0] = 3,
            Stream::Allocated => words[0] = 4,
            Stream::References => words[0] = 5,
            Stream::Filtered(filter) => {
                words[0] = 1;
                // Four pairs of sets and line bytes; a pair of zeros is a filter that is not there.
                let shapes =
                    [Some(filter.data), Some(filter.instruction), filter.data_page, filter.instruction_page];
                for (index, shape) in shapes.into_iter().enumerate() {
                    words[1 + 2 * index] = shape.map_or(0, |shape| shape.sets);
                    words[2 + 2 * index] = shape.map_or(0, |shape| shape.line_bytes);
                }
                let ways = filter.resident_pages().map_or(0, |(_, ways)| ways);
                let modifies = MODIFIES.iter().position(|all| *all == filter.modifies);
                words[9] = u32::from(filter.stores == StoreFilter::NeverEnter)
                    | (modifies.unwrap_or(0) as u32) << 1
                    | ways << 16;
                if let FetchFilter::FirstLevel { line_ways, page_ways } = filter.fetches {
                    words[10] = line_ways | page_ways << 16;
                }
            }
        }
        for component in &self.layout.components {
            let aligned = component.alignment == StateAlignment::Line;
            words.extend([component.size_bytes, component.offset_bytes, u32::from(aligned)]);
        }
        std::array::from_fn(|index| words[index])
    }

    /// The header that `words` says, or `None` where they say nothing that a writer writes.
    pub(super) fn from_words(words: &[u32; HEADER_WORDS]) -> Option<Header> {
        let mut shapes = [None; 4];
        // Sets are powers of two, but for a first level of instructions that is kept whole.
        for (index, shape) in shapes.iter_mut().enumerate() {
            let (sets, line_bytes) = (words[1 + 2 * index], words[2 + 2 * index]);
            let any_number = index % 2 == 1 && words[10] != 0;
            if (sets.is_power_of_two() || any_number && sets > 0) && line_bytes.is_power_of_two() {
                *shape = Some(SetFilter { sets, line_bytes });
            }
        }
        let fetches = match words[10] {
            0 => FetchFilter::LastOfSet,
            ways => FetchFilter::FirstLevel { line_ways: ways & 0xffff, page_ways: ways >> 16 },
        };
        let pages = match words[9] >> 16 {
            0 => PageFilter::LastOfSet,
            _ if shapes[2].is_none() => return None,
            ways => PageFilter::FirstLevel { ways },
        };
        let stream = match words[0] {
            0 => Stream::Counts,
            1 => Stream::Filtered(Filter {
                data: shapes[0]?,
                instruction: shapes[1]?,
                data_page: shapes[2],
                instruction_page: shapes[3],
                stores: if words[9] & 1 == 0 { StoreFilter::LikeLoads } else { StoreFilter::NeverEnter },
                fetches,
                pages,
                modifies: *MODIFIES.get((words[9] >> 1 & 0x7fff) as usize)?,
            }),
            2 => Stream::Full,
            3 => Stream::Nothing,
            4 => Stream::Allocated,
            5 => Stream::References,
            _ => return None,
        };
        let mut layout = StateLayout { components: [StateComponent::default(); 64] };
        for (component, words) in layout.components.iter_mut().zip(words[11..].chunks_exact(3)) {
            let alignment = if words[2] == 0 { StateAlignment::Packed } else { StateAlignment::Line };
            *component = StateComponent { size_bytes: words[0], offset_bytes: words[1], alignment };
        }
        // Written again it must give these words: what no writer writes is refused.
        let header = Header { stream, layout };
        (header.words() == *words).then_some(header)
    }
}
