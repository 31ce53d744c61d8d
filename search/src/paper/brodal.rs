//! Cache-oblivious search whose child addresses come from a table: the pointer calculation that the
//! paper wished it had used. The table is `cuts`.

use core::cmp::Ordering;

use super::cuts::Cuts;
use super::lookup::{Lookup, Words};
use super::oblivious::{fill_implicit, Full};

/// Cache-oblivious search with implicit pointers, calculated by table.
#[derive(Debug)]
pub struct ObliviousBrodal {
    slots: Words,
    full: Full,
    cuts: Cuts,
}

impl ObliviousBrodal {
    /// Lays the sorted `items` out; `block_bytes` only aligns the first slot, the layout knows no
    /// block.
    pub fn build(items: &[u32], block_bytes: usize) -> ObliviousBrodal {
        let full = Full::new(items.len());
        ObliviousBrodal {
            slots: fill_implicit(items, &full, block_bytes),
            full,
            cuts: Cuts::new(full.height),
        }
    }
}

impl ObliviousBrodal {
    /// `places` is scratch: the places of the nodes passed, by depth.
    #[inline(always)]
    fn find_with(&self, item: u32, places: &mut [u32; 32]) -> Option<u32> {
        let slots = self.slots.get();
        let n = self.full.n;
        let (mut number, mut slot) = (1, 0);
        places[0] = 0;
        for depth in 0..self.full.height as usize {
            if number > n {
                return None;
            }
            match item.cmp(&slots[slot]) {
                Ordering::Equal => return Some(slot as u32),
                Ordering::Less => number *= 2,
                Ordering::Greater => number = 2 * number + 1,
            }
            let row = &self.cuts.rows[depth + 1];
            slot = places[row.root & 31] as usize + row.top + (number & row.top) * row.bottom;
            places[(depth + 1) & 31] = slot as u32;
        }
        self.full.find_below(slots, number, item)
    }
}

impl Lookup for ObliviousBrodal {
    #[inline]
    fn find(&self, item: u32) -> Option<u32> {
        self.find_with(item, &mut [0; 32])
    }

    /// The places of the path are written before they are read, so one array serves all lookups.
    fn find_all(&self, queries: &[u32]) -> usize {
        let mut places = [0; 32];
        queries.iter().filter(|&&query| self.find_with(query, &mut places).is_some()).count()
    }

    fn item(&self, slot: u32) -> u32 {
        self.slots.get()[slot as usize]
    }

    fn bytes(&self) -> usize {
        4 * self.slots.len
    }
}
