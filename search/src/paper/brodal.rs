//! Cache-oblivious search whose child addresses come from a table: the pointer calculation that the
//! paper wished it had used. The table is `cuts`.

use super::cuts::{Cut, Cuts};
use super::lookup::{read, Lookup, Touch, Words};
use super::oblivious::{fill_implicit, Full};

/// More depths than a tree has whose slots are four bytes.
const DEPTHS: usize = 64;

/// One row of `cuts` in words of four bytes, as pointers and items are.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    top: u32,
    bottom: u32,
    root: u32,
}

/// The table of a full tree of `height` levels: the row numbered d leads from depth d to the next.
fn rows(height: u32) -> [Row; DEPTHS] {
    let cuts = Cuts::new(height);
    let row = |cut: &Cut| Row { top: cut.top as u32, bottom: cut.bottom as u32, root: cut.root as u32 };
    let mut rows = [Row::default(); DEPTHS];
    rows.iter_mut().zip(&cuts.rows[1..]).for_each(|(to, from)| *to = row(from));
    rows
}

/// Cache-oblivious search with implicit pointers, calculated by table.
#[derive(Debug)]
pub struct ObliviousBrodal {
    slots: Words,
    full: Full,
    rows: [Row; DEPTHS],
}

impl ObliviousBrodal {
    /// Lays the sorted `items` out; `block_bytes` only aligns the first slot, the layout knows no
    /// block.
    pub fn build(items: &[u32], block_bytes: usize) -> ObliviousBrodal {
        let full = Full::new(items.len());
        ObliviousBrodal { slots: fill_implicit(items, &full, block_bytes), full, rows: rows(full.height) }
    }

    /// `places` is for the places of the nodes passed, by depth, and may hold anything.
    #[inline(always)]
    fn search<T: Touch>(&self, item: u32, places: &mut [u32; DEPTHS], mut touch: T) -> Option<u32> {
        let slots = self.slots.get();
        // Row and place of every depth exist; the compiler sees it, and checks none of them.
        let height = (self.full.height as usize).min(DEPTHS - 1);
        let (mut number, mut slot) = (1, 0);
        places[0] = 0;
        for depth in 0..height {
            // SAFETY: depth < full.height, so `slot` is that of a node of the full tree, and
            // `fill_implicit`, which calculates by the same table, has made room for them all.
            let here = unsafe { read(slots, slot, &mut touch) };
            if item == here {
                return self.full.met(slot, number);
            }
            number = 2 * number + usize::from(item > here);
            let row = &self.rows[depth];
            let root = places[row.root as usize % DEPTHS] as usize;
            slot = root + row.top as usize + (number & row.top as usize) * row.bottom as usize;
            places[depth + 1] = slot as u32;
        }
        self.full.find_below(slots, number, item, touch)
    }
}

impl Lookup for ObliviousBrodal {
    #[inline]
    fn find(&self, item: u32) -> Option<u32> {
        self.search(item, &mut [0; DEPTHS], ())
    }

    fn find_touching(&self, item: u32, touched: &mut dyn FnMut(usize)) -> Option<u32> {
        self.search(item, &mut [0; DEPTHS], touched)
    }

    /// The places of the path are written before they are read, so one array serves all lookups.
    fn find_all(&self, queries: &[u32]) -> usize {
        let mut places = [0; DEPTHS];
        queries.iter().filter(|&&query| self.search(query, &mut places, ()).is_some()).count()
    }

    fn item(&self, slot: u32) -> u32 {
        self.slots.get()[slot as usize]
    }

    fn bytes(&self) -> usize {
        4 * self.slots.len
    }
}
