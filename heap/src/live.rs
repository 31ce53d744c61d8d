//! The blocks that live, found by any address within them.
//!
//! Memory is divided into pages, and a page into granules. A granule has the number of the block
//! that lies there; a page that lies in one block alone has that block's number and no granules. A
//! look-up takes three loads. A block that is freed is not removed: its number finds nothing any
//! more, because the address must lie in the block that has the number.
//!
//! **Why this way.** Look-ups wait for memory where a program has many blocks, so what they read is
//! small: the part of a block that an access needs has sixteen bytes, four blocks a line of the
//! host's cache. Granules have sixteen bytes of the program's memory, and eight in pages in which a
//! block began in the middle of sixteen.
//!
//! **Leaves out** blocks that begin at no multiple of eight bytes and share a granule, of which the
//! later one is found.

use std::ops::Range;

const PAGE_BITS: u32 = 12;
const PAGE_BYTES: u64 = 1 << PAGE_BITS;
const COARSE_BITS: u32 = 4;
const COARSE_GRANULES: usize = 1 << (PAGE_BITS - COARSE_BITS);
const FINE_BITS: u32 = 3;
const FINE_GRANULES: usize = 1 << (PAGE_BITS - FINE_BITS);
/// Pages of a leaf of the table.
const LEAF_BITS: u32 = 15;
/// User addresses have 47 bits.
const ROOT_BITS: u32 = 47 - PAGE_BITS - LEAF_BITS;
/// More leaves would take a gigabyte: a program that claims to have so much memory lies.
const LEAVES_MAX: usize = 1 << 13;
/// Larger blocks have no entries of pages, but stand in a list.
const LARGE_BYTES: u64 = 256 << 20;
/// In the entry of a page: the rest is the number of a block, not of granules.
const WHOLE: u32 = 1 << 31;
/// In the entry of a page: the rest is a number of fine granules.
const FINE: u32 = 1 << 30;

/// A block that lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) address: u64,
    pub(crate) size_bytes: u64,
    /// The place that allocated it.
    pub(crate) site: u32,
    /// When it was allocated.
    pub(crate) born: u64,
    /// Whether it was accessed.
    pub(crate) is_touched: bool,
}

/// What an access needs of a block.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(16))]
struct Head {
    address: u64,
    /// 0 if no block has the number, or one of more than [`LARGE_BYTES`].
    size_bytes: u32,
    /// The place that allocated it, and [`TOUCHED`].
    site: u32,
}

/// In the place of a head: the block was accessed.
const TOUCHED: u32 = 1 << 31;

/// The rest of a block.
#[derive(Clone, Copy, Debug, Default)]
struct Tail {
    /// 0 if no block has the number.
    size_bytes: u64,
    born: u64,
}

/// Where in a block an access begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Touched {
    /// The place that allocated the block.
    pub(crate) site: u32,
    pub(crate) offset: u64,
    /// The block's bytes.
    pub(crate) size_bytes: u64,
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
    coarse: Vec<[u32; COARSE_GRANULES]>,
    fine: Vec<[u32; FINE_GRANULES]>,
    /// Blocks by number, from 1.
    heads: Vec<Head>,
    tails: Vec<Tail>,
    free: Vec<u32>,
    /// Blocks of more than [`LARGE_BYTES`].
    large: Vec<u32>,
    /// From the lowest byte to behind the highest one of all blocks that ever were.
    reach: Range<u64>,
}

impl LiveBlocks {
    pub(crate) fn new() -> LiveBlocks {
        LiveBlocks {
            root: vec![0; 1 << ROOT_BITS],
            leaves: vec![0; 1 << LEAF_BITS],
            coarse: vec![[0; COARSE_GRANULES]],
            fine: Vec::new(),
            heads: vec![Head::default()],
            tails: vec![Tail::default()],
            free: Vec::new(),
            large: Vec::new(),
            // Of no block yet.
            reach: Range { start: u64::MAX, end: 0 },
        }
    }

    /// The number of the block around an address; `None` if no block lives there.
    #[inline(always)]
    pub(crate) fn find(&self, address: u64) -> Option<u32> {
        let number = self.number_at(address);
        let head = &self.heads[number as usize];
        match address.wrapping_sub(head.address) < u64::from(head.size_bytes) {
            true => Some(number),
            false => self.find_large(address),
        }
    }

    /// Touches the block around an address; `None` if no block lives there.
    #[inline(always)]
    pub(crate) fn touch(&mut self, address: u64) -> Option<Touched> {
        let number = self.number_at(address);
        // Where no block ever lay is known without the memory of a block.
        if number == 0 {
            return self.touch_large(address);
        }
        let head = &mut self.heads[number as usize];
        let (offset, size_bytes) = (address.wrapping_sub(head.address), head.size_bytes.into());
        if offset >= size_bytes {
            return self.touch_large(address);
        }
        if head.site & TOUCHED == 0 {
            head.site |= TOUCHED;
        }
        Some(Touched { site: head.site & !TOUCHED, offset, size_bytes })
    }

    #[inline(always)]
    fn touch_large(&mut self, address: u64) -> Option<Touched> {
        match self.large.is_empty() {
            true => None,
            false => self.touch_among_large(address),
        }
    }

    #[inline(never)]
    fn touch_among_large(&mut self, address: u64) -> Option<Touched> {
        let number = self.find_among_large(address)?;
        let block = self.get(number);
        self.heads[number as usize].site |= TOUCHED;
        Some(Touched { site: block.site, offset: address - block.address, size_bytes: block.size_bytes })
    }

    /// The entry of the page of an address.
    #[inline(always)]
    fn entry_at(&self, address: u64) -> u32 {
        let page = address >> PAGE_BITS;
        let leaf = self.root.get((page >> LEAF_BITS) as usize).copied().unwrap_or(0);
        self.leaves[leaf as usize + (page as usize & ((1 << LEAF_BITS) - 1))]
    }

    /// The number of the block that was the last one to lie around an address; 0 is none.
    #[inline(always)]
    fn number_at(&self, address: u64) -> u32 {
        let entry = self.entry_at(address);
        if entry & (WHOLE | FINE) == 0 {
            return self.coarse[entry as usize][(address >> COARSE_BITS) as usize % COARSE_GRANULES];
        }
        match entry & WHOLE {
            0 => self.fine[(entry & !FINE) as usize][(address >> FINE_BITS) as usize % FINE_GRANULES],
            _ => entry & !WHOLE,
        }
    }

    /// Brings what [`LiveBlocks::find`] will read for these addresses into the host's caches: reads
    /// that wait for nothing but their own address go side by side. Returns what was read, so that
    /// it is.
    pub(crate) fn warm(&self, addresses: impl Iterator<Item = u64>) -> u64 {
        let mut numbers = [0u32; WARMED];
        let mut count = 0;
        for (slot, address) in numbers.iter_mut().zip(addresses) {
            *slot = self.number_at(address);
            count += 1;
        }
        numbers[..count].iter().fold(0, |sum, &number| sum ^ self.heads[number as usize].address)
    }

    /// Whether a block lay at an address, where one may begin, that has ended, or another one lies
    /// there.
    pub(crate) fn lay_at(&self, address: u64) -> bool {
        let is_fine = self.entry_at(address) & (WHOLE | FINE) != 0;
        // Had one begun in the middle of a coarse granule, the page would have fine ones.
        (is_fine || address.is_multiple_of(1 << COARSE_BITS)) && self.number_at(address) != 0
    }

    #[inline(always)]
    fn find_large(&self, address: u64) -> Option<u32> {
        match self.large.is_empty() {
            true => None,
            false => self.find_among_large(address),
        }
    }

    /// Of the blocks that have no entries of pages the one around an address.
    #[inline(never)]
    fn find_among_large(&self, address: u64) -> Option<u32> {
        let holds = |number: &u32| {
            let block = self.get(*number);
            address.wrapping_sub(block.address) < block.size_bytes
        };
        self.large.iter().copied().find(holds)
    }

    /// The block with this number.
    pub(crate) fn get(&self, number: u32) -> Block {
        let (head, tail) = (&self.heads[number as usize], &self.tails[number as usize]);
        let (site, is_touched) = (head.site & !TOUCHED, head.site & TOUCHED != 0);
        Block { address: head.address, size_bytes: tail.size_bytes, site, born: tail.born, is_touched }
    }

    /// The address, bytes and place of the block with this number.
    #[inline(always)]
    pub(crate) fn place_of(&self, number: u32) -> (u64, u64, u32) {
        let head = &self.heads[number as usize];
        let size_bytes = match head.size_bytes {
            0 => self.tails[number as usize].size_bytes,
            size_bytes => size_bytes.into(),
        };
        (head.address, size_bytes, head.site & !TOUCHED)
    }

    /// Notes that a block was accessed.
    pub(crate) fn is_touched(&mut self, number: u32) {
        self.heads[number as usize].site |= TOUCHED;
    }

    /// Adds a block of at least one byte; returns its number.
    pub(crate) fn insert(&mut self, block: Block) -> u32 {
        let number = self.free.pop().unwrap_or(self.heads.len() as u32);
        if number as usize == self.heads.len() {
            self.heads.push(Head::default());
            self.tails.push(Tail::default());
        }
        self.heads[number as usize].site = block.site | if block.is_touched { TOUCHED } else { 0 };
        self.tails[number as usize].born = block.born;
        self.place(number, block.address, block.size_bytes);
        number
    }

    /// Removes the block that begins at an address.
    pub(crate) fn remove(&mut self, address: u64) -> Option<Block> {
        let number = self.beginning(address)?;
        let block = self.get(number);
        self.leave_large(number);
        self.free.push(number);
        self.heads[number as usize] = Head::default();
        self.tails[number as usize] = Tail::default();
        Some(block)
    }

    /// The number of the block that begins at an address.
    #[inline(never)]
    pub(crate) fn beginning(&self, address: u64) -> Option<u32> {
        self.find(address).filter(|&number| self.heads[number as usize].address == address)
    }

    /// Moves a block to other bytes.
    pub(crate) fn place(&mut self, number: u32, address: u64, size_bytes: u64) {
        self.leave_large(number);
        let in_pages = if size_bytes > LARGE_BYTES { 0 } else { size_bytes as u32 };
        let head = &mut self.heads[number as usize];
        (head.address, head.size_bytes) = (address, in_pages);
        self.tails[number as usize].size_bytes = size_bytes;
        self.enter(number, address, address.saturating_add(size_bytes));
    }

    fn leave_large(&mut self, number: u32) {
        self.large.retain(|&large| large != number);
    }

    /// Removes all blocks, and returns them.
    pub(crate) fn clear(&mut self) -> Vec<Block> {
        let living = std::mem::replace(self, LiveBlocks::new());
        let blocks = (0..living.heads.len() as u32).map(|number| living.get(number));
        blocks.filter(|block| block.size_bytes > 0).collect()
    }

    /// Blocks that live now were born before anything counted: their lives count for nothing.
    pub(crate) fn forget_births(&mut self) {
        self.tails.iter_mut().for_each(|block| block.born = u64::MAX);
    }

    /// From the lowest byte to behind the highest one of all blocks that ever were.
    #[inline(always)]
    pub(crate) fn reach(&self) -> &Range<u64> {
        &self.reach
    }

    /// Writes the number of a block to the pages and granules of its bytes.
    fn enter(&mut self, number: u32, start: u64, end: u64) {
        self.reach = self.reach.start.min(start)..self.reach.end.max(end);
        if self.heads[number as usize].size_bytes == 0 {
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
                let last = end.min(behind) - 1 - page;
                self.granules(entry, at - page, last, number);
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

    /// Writes the number of a block to the granules of the page with this entry, from the byte
    /// `first` to the byte `last` of the page. A page without granules gets some; one that lay in
    /// one block keeps that block in all of them.
    fn granules(&mut self, entry: usize, first: u64, last: u64, number: u32) {
        let known = self.leaves[entry];
        let starts_between = !first.is_multiple_of(1 << COARSE_BITS);
        if known & WHOLE != 0 || known == 0 {
            let block = known & !WHOLE;
            self.leaves[entry] = match starts_between {
                true => self.finer([block; FINE_GRANULES]),
                false => {
                    self.coarse.push([block; COARSE_GRANULES]);
                    self.coarse.len() as u32 - 1
                }
            };
        } else if starts_between && known & FINE == 0 {
            // What lay in the coarse granules lies in the fine ones; the former are not used again.
            let coarse = self.coarse[known as usize];
            self.leaves[entry] =
                self.finer(std::array::from_fn(|at| coarse[at >> (COARSE_BITS - FINE_BITS)]));
        }
        let known = self.leaves[entry];
        let (granules, bits) = match known & FINE {
            0 => (&mut self.coarse[known as usize][..], COARSE_BITS),
            _ => (&mut self.fine[(known & !FINE) as usize][..], FINE_BITS),
        };
        granules[(first >> bits) as usize..=(last >> bits) as usize].fill(number);
    }

    /// Adds fine granules; returns the entry of their page.
    fn finer(&mut self, granules: [u32; FINE_GRANULES]) -> u32 {
        self.fine.push(granules);
        FINE | (self.fine.len() as u32 - 1)
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
                // Some pages get fine granules, before or after blocks lie there.
                let address = 0x5555_0000_0000 + place * 64 + if place % 5 == 0 { 8 } else { 0 };
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
                    let found = live.find(asked).map(|number| live.get(number).site);
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
