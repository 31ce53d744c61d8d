//! The blocks that live, found by any address within them.
//!
//! Memory is divided into pages, and a page into granules of eight bytes. A granule has the number
//! of the block that lies there; a page that lies in one block alone has that block's number and no
//! granules. A look-up takes three loads. A block that is freed is not removed: its number finds
//! nothing any more, because the address must lie in the block that has the number.
//!
//! **Leaves out** blocks that begin at no multiple of eight bytes and share a granule, of which the
//! later one is found.

use std::ops::Range;

const PAGE_BITS: u32 = 12;
const PAGE_BYTES: u64 = 1 << PAGE_BITS;
const GRANULE_BITS: u32 = 3;
const GRANULES: usize = 1 << (PAGE_BITS - GRANULE_BITS);
/// Pages of a leaf of the table.
const LEAF_BITS: u32 = 15;
/// User addresses have 47 bits.
const ROOT_BITS: u32 = 47 - PAGE_BITS - LEAF_BITS;
/// More leaves would take a gigabyte: a program that claims to have so much memory lies.
const LEAVES_MAX: usize = 1 << 13;
/// Blocks for which addresses are reserved, 64 MB: a table that grows is copied, because the
/// allocator can move only memory of a lesser alignment in place. Memory is taken as it is used.
const BLOCKS_RESERVED: usize = 1 << 20;
/// Larger blocks have no entries of pages, but stand in a list.
const LARGE_BYTES: u64 = 256 << 20;
/// In the entry of a page: the rest is the number of a block, not of granules.
const WHOLE: u32 = 1 << 31;

/// A block that lives. It fills a line of the cache, so that an access of it takes one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(align(64))]
pub(crate) struct Block {
    pub(crate) address: u64,
    pub(crate) size_bytes: u64,
    /// The place that allocated it.
    pub(crate) site: u32,
    /// Offset of its counts of accesses by byte; [`NO_COUNTS`] without any.
    pub(crate) counts: u32,
    /// When it was allocated.
    pub(crate) born: u64,
    pub(crate) read_bytes: u64,
    pub(crate) written_bytes: u64,
}

/// Addresses that are warmed at once.
pub const WARMED: usize = 64;

/// No counts of accesses by byte.
pub(crate) const NO_COUNTS: u32 = u32::MAX;

/// The blocks that live.
#[derive(Clone)]
pub(crate) struct LiveBlocks {
    /// Leaves of the table of pages; 0 is none.
    root: Vec<u32>,
    /// Entries of pages, leaf by leaf; 0 is a page without blocks.
    leaves: Vec<u32>,
    /// Granules of pages; the first page's are not used.
    granules: Vec<[u32; GRANULES]>,
    /// Blocks by number, from 1; size 0 is none.
    blocks: Vec<Block>,
    free: Vec<u32>,
    /// Blocks of more than [`LARGE_BYTES`].
    large: Vec<u32>,
    /// From the lowest byte to behind the highest one of all blocks that ever were.
    reach: Range<u64>,
}

impl LiveBlocks {
    pub(crate) fn new() -> LiveBlocks {
        let mut blocks = Vec::new();
        // Where so much is refused, the table grows by copies.
        let _ = blocks.try_reserve_exact(BLOCKS_RESERVED);
        blocks.push(Block::default());
        LiveBlocks {
            root: vec![0; 1 << ROOT_BITS],
            leaves: vec![0; 1 << LEAF_BITS],
            granules: vec![[0; GRANULES]],
            blocks,
            free: Vec::new(),
            large: Vec::new(),
            // Of no block yet.
            reach: Range { start: u64::MAX, end: 0 },
        }
    }

    /// The number of the block around an address; `None` if no block lives there.
    #[inline(always)]
    pub(crate) fn find(&self, address: u64) -> Option<u32> {
        let page = address >> PAGE_BITS;
        let leaf = *self.root.get((page >> LEAF_BITS) as usize)?;
        let entry = self.leaves[leaf as usize + (page as usize & ((1 << LEAF_BITS) - 1))];
        if entry == 0 {
            return self.find_large(address);
        }
        let number = match entry & WHOLE {
            0 => self.granules[entry as usize][(address >> GRANULE_BITS) as usize % GRANULES],
            _ => entry & !WHOLE,
        };
        // Where no block ever lay is known without the memory of a block.
        if number == 0 {
            return self.find_large(address);
        }
        match self.holds(number, address) {
            true => Some(number),
            false => self.find_large(address),
        }
    }

    /// Brings what [`LiveBlocks::find`] will read for these addresses into the host's caches: reads
    /// that wait for nothing but their own address go side by side. Returns what was read, so that
    /// it is.
    pub(crate) fn warm(&self, addresses: impl Iterator<Item = u64>) -> u64 {
        let mut numbers = [0u32; WARMED];
        let mut count = 0;
        for (slot, address) in numbers.iter_mut().zip(addresses) {
            let page = address >> PAGE_BITS;
            let leaf = self.root.get((page >> LEAF_BITS) as usize).copied().unwrap_or(0);
            let entry = self.leaves[leaf as usize + (page as usize & ((1 << LEAF_BITS) - 1))];
            *slot = match entry & WHOLE {
                0 => self.granules[entry as usize][(address >> GRANULE_BITS) as usize % GRANULES],
                _ => entry & !WHOLE,
            };
            count += 1;
        }
        numbers[..count].iter().fold(0, |sum, &number| sum ^ self.blocks[number as usize].address)
    }

    /// Whether a block lay at an address that has ended, or another one lies there.
    pub(crate) fn lay_at(&self, address: u64) -> bool {
        let page = address >> PAGE_BITS;
        let leaf = self.root.get((page >> LEAF_BITS) as usize).copied().unwrap_or(0);
        let entry = self.leaves[leaf as usize + (page as usize & ((1 << LEAF_BITS) - 1))];
        match entry & WHOLE {
            0 => self.granules[entry as usize][(address >> GRANULE_BITS) as usize % GRANULES] != 0,
            _ => true,
        }
    }

    /// Whether an address lies in the block with this number.
    #[inline(always)]
    pub(crate) fn holds(&self, number: u32, address: u64) -> bool {
        let block = &self.blocks[number as usize];
        address.wrapping_sub(block.address) < block.size_bytes
    }

    #[inline(always)]
    fn find_large(&self, address: u64) -> Option<u32> {
        self.large.iter().copied().find(|&number| self.holds(number, address))
    }

    /// The block with this number, to read.
    #[inline(always)]
    pub(crate) fn get(&self, number: u32) -> &Block {
        &self.blocks[number as usize]
    }

    /// The block with this number.
    #[inline(always)]
    pub(crate) fn block(&mut self, number: u32) -> &mut Block {
        &mut self.blocks[number as usize]
    }

    /// Adds a block of at least one byte; returns its number.
    pub(crate) fn insert(&mut self, block: Block) -> u32 {
        let number = self.free.pop().unwrap_or(self.blocks.len() as u32);
        if number as usize == self.blocks.len() {
            self.blocks.push(block);
        } else {
            self.blocks[number as usize] = block;
        }
        self.enter(number, block.address, block.address.saturating_add(block.size_bytes));
        number
    }

    /// Removes the block that begins at an address.
    pub(crate) fn remove(&mut self, address: u64) -> Option<Block> {
        let number = self.beginning(address)?;
        self.large.retain(|&large| large != number);
        self.free.push(number);
        Some(std::mem::take(self.block(number)))
    }

    /// The number of the block that begins at an address.
    pub(crate) fn beginning(&self, address: u64) -> Option<u32> {
        self.find(address).filter(|&number| self.blocks[number as usize].address == address)
    }

    /// Moves a block to other bytes.
    pub(crate) fn place(&mut self, number: u32, address: u64, size_bytes: u64) {
        self.large.retain(|&large| large != number);
        let block = self.block(number);
        (block.address, block.size_bytes) = (address, size_bytes);
        self.enter(number, address, address.saturating_add(size_bytes));
    }

    /// Removes all blocks, and returns them.
    pub(crate) fn clear(&mut self) -> Vec<Block> {
        let living = std::mem::replace(self, LiveBlocks::new()).blocks;
        living.into_iter().filter(|block| block.size_bytes > 0).collect()
    }

    /// Blocks that live now were born before anything counted: their lives count for nothing.
    pub(crate) fn forget_births(&mut self) {
        self.blocks.iter_mut().for_each(|block| block.born = u64::MAX);
    }

    /// From the lowest byte to behind the highest one of all blocks that ever were.
    #[inline(always)]
    pub(crate) fn reach(&self) -> &Range<u64> {
        &self.reach
    }

    /// Writes the number of a block to the pages and granules of its bytes.
    fn enter(&mut self, number: u32, start: u64, end: u64) {
        self.reach = self.reach.start.min(start)..self.reach.end.max(end);
        if end - start > LARGE_BYTES {
            return self.large.push(number);
        }
        let mut at = start;
        while at < end {
            let page = at & !(PAGE_BYTES - 1);
            let behind = page.saturating_add(PAGE_BYTES);
            let Some(entry) = self.entry(page >> PAGE_BITS) else { return };
            if at == page && end >= behind {
                self.leaves[entry] = WHOLE | number;
            } else {
                let granules = self.granules_of(entry);
                let first = (at - page) as usize >> GRANULE_BITS;
                let last = (end.min(behind) - 1 - page) as usize >> GRANULE_BITS;
                self.granules[granules][first..=last].fill(number);
            }
            at = behind;
        }
    }

    /// The index in `leaves` of the entry of a page; `None` for no address of a program, and if
    /// there are too many.
    fn entry(&mut self, page: u64) -> Option<usize> {
        let leaf = self.root.get_mut((page >> LEAF_BITS) as usize)?;
        if *leaf == 0 {
            if self.leaves.len() >> LEAF_BITS == LEAVES_MAX {
                return None;
            }
            *leaf = self.leaves.len() as u32;
            self.leaves.resize(self.leaves.len() + (1 << LEAF_BITS), 0);
        }
        Some(*leaf as usize + (page as usize & ((1 << LEAF_BITS) - 1)))
    }

    /// The index of the granules of the page with this entry, which gets some if it has none. A
    /// page that lay in one block keeps that block in all of its granules.
    fn granules_of(&mut self, entry: usize) -> usize {
        let known = self.leaves[entry];
        if known != 0 && known & WHOLE == 0 {
            return known as usize;
        }
        let granules = self.granules.len();
        self.granules.push([known & !WHOLE; GRANULES]);
        self.leaves[entry] = granules as u32;
        granules
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn any_address_finds_the_block_that_a_sorted_list_finds(
            steps in prop::collection::vec((0u64..2048, 1u64..20_000, any::<bool>()), 1..200),
        ) {
            let mut live = LiveBlocks::new();
            // Address to (size, site).
            let mut naive: BTreeMap<u64, (u64, u32)> = BTreeMap::new();
            for (site, (place, size_bytes, frees)) in steps.into_iter().enumerate() {
                let address = 0x5555_0000_0000 + place * 64;
                if frees {
                    let removed = live.remove(address).map(|block| block.size_bytes);
                    prop_assert_eq!(removed, naive.remove(&address).map(|block| block.0));
                    continue;
                }
                let size_bytes = if site % 3 == 0 { size_bytes } else { size_bytes % 300 + 1 };
                let overlaps = naive.range(..address + size_bytes).next_back();
                if overlaps.is_some_and(|(start, (size, _))| start + size > address) {
                    continue;
                }
                live.insert(Block { address, size_bytes, site: site as u32, ..Block::default() });
                naive.insert(address, (size_bytes, site as u32));
                for asked in (0x5555_0000_0000 - 64..0x5555_0003_0000u64).step_by(509) {
                    let expected = naive.range(..=asked).next_back();
                    let expected = expected.filter(|(start, (size, _))| asked - **start < *size);
                    let found = live.find(asked).map(|number| live.block(number).site);
                    prop_assert_eq!(found, expected.map(|(_, (_, site))| *site));
                }
            }
            let left: Vec<u32> = live.clear().iter().map(|block| block.site).collect();
            prop_assert_eq!(left.len(), naive.len());
        }
    }

    #[test]
    fn large_blocks_are_found_without_entries_of_pages() {
        let mut live = LiveBlocks::new();
        let (address, size_bytes) = (0x1000_0000_0000, 1 << 45);
        let number = live.insert(Block { address, size_bytes, ..Block::default() });
        assert_eq!((live.find(address + size_bytes - 1), live.find(address - 1)), (Some(number), None));
        assert_eq!(live.leaves.len(), 1 << LEAF_BITS);
        // A small block beside it, and the large one after it has become small.
        let small = live.insert(Block { address: 0x5000, size_bytes: 8, ..Block::default() });
        live.place(number, address, 100);
        assert_eq!((live.find(address + 99), live.find(address + 100)), (Some(number), None));
        assert_eq!((live.find(0x5007), live.large.len()), (Some(small), 0));
        live.place(number, address, size_bytes);
        assert!(live.remove(address).is_some() && live.find(address + 5).is_none());
    }

    #[test]
    fn no_address_of_a_program_is_asked_without_harm() {
        let mut live = LiveBlocks::new();
        assert_eq!(live.find(u64::MAX), None);
        live.insert(Block { address: u64::MAX - 8, size_bytes: 8, ..Block::default() });
        assert_eq!(live.find(u64::MAX - 4), None);
    }
}
