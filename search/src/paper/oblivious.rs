//! Cache-oblivious search: the van Emde Boas layout, after Prokop.
//!
//! A tree of height h is cut below its upper ⌊h/2⌋ levels; the top tree is laid out, then the
//! bottom trees from left to right, each by the same rule. Nodes that are visited one after another
//! then stand close together at every scale, whatever the block size.
//!
//! **Any n.** The tree is the complete one: all levels full but the last, which fills from the
//! left. Explicit pointers simply skip the nodes that do not exist. Implicit ones need a full tree
//! to calculate in. When the last level is at least half there, its holes are kept (unused slots,
//! never read); when it is less, the full levels are laid out and the last level follows them in
//! order, at slot `number − 1`. For n = 2^k − 1, the paper's case, both are the paper's layout.
//!
//! **The paper's pointer calculation** keeps the cuts ahead on a stack, each halfway between the
//! node and the next one, as the recursion would. Between two cuts, where at most two levels are
//! left, children stand behind their parent (the paper's intra-cut traversal). Across a cut
//! (inter-cut), within the subtree that it cuts, d levels above the cut and ℓ below, the subtree to
//! enter has index 2s + j − 1 and starts at `(2s + j − 1)(2^ℓ − 1) + 2^(d+1) − 1`, counted from
//! where the cut subtree starts (the paper leaves that out, and so describes the outermost cut). A
//! cut that was crossed is never crossed again, so the stack holds only those ahead. Source:
//! section 4.4.

use alloc::vec::Vec;

use super::classic::BinaryExplicit;
use super::cuts::Cuts;
use super::lookup::{read, Lookup, Touch, Words, NIL};

/// The full tree that implicit pointers calculate in, and what hangs below it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Full {
    /// Items.
    pub(crate) n: usize,
    /// Levels laid out recursively.
    pub(crate) height: u32,
    /// Slots in all.
    slots: usize,
}

impl Full {
    /// The tree for n items.
    pub(crate) fn new(n: usize) -> Full {
        let levels = usize::BITS - n.leading_zeros();
        let width = 1usize << levels >> 1;
        let last = n + 1 - width.max(1);
        if 2 * last >= width {
            Full { n, height: levels, slots: (2 * width).saturating_sub(1) }
        } else {
            Full { n, height: levels - 1, slots: n }
        }
    }

    /// The answer of a search that met `item` in `slot`, at the node numbered `number`: a hole of
    /// the last level, which holds `NIL`, is no item.
    #[inline(always)]
    pub(super) fn met(&self, slot: usize, number: usize) -> Option<u32> {
        (number <= self.n).then_some(slot as u32)
    }

    /// Looks in the level below the full ones, at the node numbered `number`.
    #[inline(always)]
    pub(super) fn find_below<T: Touch>(
        &self,
        slots: &[u32],
        number: usize,
        item: u32,
        mut touch: T,
    ) -> Option<u32> {
        if number > self.n || self.slots != self.n {
            return None;
        }
        touch.word(number - 1);
        (slots[number - 1] == item).then_some((number - 1) as u32)
    }
}

/// The in-order position of each node of a complete tree, given the breadth-first number.
fn in_order(n: usize) -> Vec<usize> {
    let mut order = alloc::vec![0; n + 1];
    let (mut node, mut next, mut stack) = (1, 0, Vec::new());
    while node <= n || !stack.is_empty() {
        while node <= n {
            stack.push(node);
            node *= 2;
        }
        node = stack.pop().expect("a node waits");
        order[node] = next;
        next += 1;
        node = 2 * node + 1;
    }
    order
}

/// The slots of the implicit layout, filled.
pub(super) fn fill_implicit(items: &[u32], full: &Full, block_bytes: usize) -> Words {
    let mut words = Words::new(full.slots, block_bytes);
    let cuts = Cuts::new(full.height);
    let order = in_order(items.len());
    let slots = words.get_mut();
    for number in 1..=items.len() {
        let depth = usize::BITS - 1 - number.leading_zeros();
        let slot = if depth < full.height { slot_of_number(&cuts, number, depth) } else { number - 1 };
        slots[slot] = items[order[number]];
    }
    words
}

/// The slot of the node numbered `number` at `depth`.
fn slot_of_number(cuts: &Cuts, number: usize, depth: u32) -> usize {
    let mut walk = cuts.root();
    for d in 0..depth {
        walk.descend(cuts, d, number >> (depth - 1 - d) & 1);
    }
    walk.slot()
}

/// A subtree whose upper half is being searched: where it starts in memory, and how high it is.
#[derive(Clone, Copy, Debug, Default)]
struct CutFrame {
    base: u32,
    height: u32,
}

/// Room for the cuts ahead of a node: at most one per halving of the height.
type Frames = [CutFrame; 8];

/// The cuts ahead of the current node, the nearest last. How many there are is no word of the
/// array: in a register it costs no store.
struct Stack<'a> {
    frames: &'a mut Frames,
    top: usize,
}

impl Stack<'_> {
    /// Cuts the subtree that starts at `base` until at most two levels are left, and returns how
    /// many are. Every cut waits on the stack.
    #[inline(always)]
    fn narrow(&mut self, base: usize, mut height: u32) -> u32 {
        while height > 2 {
            self.frames[self.top & 7] = CutFrame { base: base as u32, height };
            self.top += 1;
            height /= 2;
        }
        height
    }

    /// Crosses the nearest cut on the way that the bits of `number` say: where the subtree below it
    /// starts, and how high it is. `None` below the last cut.
    #[inline(always)]
    fn cross(&mut self, number: usize) -> Option<(usize, u32)> {
        self.top = self.top.checked_sub(1)?;
        let frame = self.frames[self.top & 7];
        let (above, below) = (frame.height / 2, frame.height - frame.height / 2);
        // The nodes above the cut, and as many bottom trees as the bits since the frame's root say.
        let top_nodes = (1 << above) - 1;
        Some((frame.base as usize + (number & top_nodes) * ((1 << below) - 1) + top_nodes, below))
    }
}

/// Cache-oblivious search with implicit pointers, calculated as the paper does.
#[derive(Debug)]
pub struct ObliviousImplicit {
    slots: Words,
    full: Full,
}

impl ObliviousImplicit {
    /// Lays the sorted `items` out; `block_bytes` only aligns the first slot, the layout knows no
    /// block.
    pub fn build(items: &[u32], block_bytes: usize) -> ObliviousImplicit {
        let full = Full::new(items.len());
        ObliviousImplicit { slots: fill_implicit(items, &full, block_bytes), full }
    }

    /// `frames` may hold anything.
    #[inline(always)]
    fn search<T: Touch>(&self, item: u32, frames: &mut Frames, mut touch: T) -> Option<u32> {
        let slots = self.slots.get();
        let mut stack = Stack { frames, top: 0 };
        let (mut number, mut subtree) = (1, Some((0, self.full.height)));
        while let Some((base, height)) = subtree {
            // Between two cuts stand one or two levels: a root, and its children behind it.
            let mut slot = base;
            for _ in 0..stack.narrow(base, height) {
                // SAFETY: `slot` is that of a node of the full tree, for which `fill_implicit` has
                // made room: a subtree's nodes stand within its parent's, and the first is whole.
                let here = unsafe { read(slots, slot, &mut touch) };
                if item == here {
                    return self.full.met(slot, number);
                }
                let right = usize::from(item > here);
                number = 2 * number + right;
                slot = base + 1 + right;
            }
            subtree = stack.cross(number);
        }
        self.full.find_below(slots, number, item, touch)
    }
}

impl Lookup for ObliviousImplicit {
    #[inline]
    fn find(&self, item: u32) -> Option<u32> {
        self.search(item, &mut Frames::default(), ())
    }

    fn find_touching(&self, item: u32, touched: &mut dyn FnMut(usize)) -> Option<u32> {
        self.search(item, &mut Frames::default(), touched)
    }

    /// One array serves all lookups, as one without initial values does in C.
    fn find_all(&self, queries: &[u32]) -> usize {
        let mut frames = Frames::default();
        queries.iter().filter(|&&query| self.search(query, &mut frames, ()).is_some()).count()
    }

    fn item(&self, slot: u32) -> u32 {
        self.slots.get()[slot as usize]
    }

    fn bytes(&self) -> usize {
        4 * self.slots.len
    }
}

impl BinaryExplicit {
    /// The complete tree, its nodes in van Emde Boas order; `block_bytes` only aligns the first
    /// node.
    pub fn van_emde_boas(items: &[u32], block_bytes: usize) -> BinaryExplicit {
        let n = items.len();
        let mut numbers = Vec::with_capacity(n);
        recurse(1, usize::BITS - n.leading_zeros(), n, &mut numbers);
        let mut place = alloc::vec![NIL; n + 1];
        for (i, &number) in numbers.iter().enumerate() {
            place[number] = 3 * i as u32;
        }
        let mut nodes = Words::new(3 * n, block_bytes);
        let order = in_order(n);
        let at = |number: usize| place.get(number).copied().unwrap_or(NIL);
        for (&number, node) in numbers.iter().zip(nodes.get_mut().chunks_exact_mut(3)) {
            node.copy_from_slice(&[items[order[number]], at(2 * number), at(2 * number + 1)]);
        }
        BinaryExplicit::new(nodes, if n > 0 { 0 } else { NIL })
    }
}

/// The numbers up to n of the subtree at `number`, `height` levels high, in van Emde Boas order.
fn recurse(number: usize, height: u32, n: usize, out: &mut Vec<usize>) {
    if height == 0 || number > n {
        return;
    }
    if height == 1 {
        return out.push(number);
    }
    let (above, below) = (height / 2, height - height / 2);
    recurse(number, above, n, out);
    for i in 0..1 << above {
        recurse((number << above) + i, below, n, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stack_agrees_with_the_table_at_every_node_of_every_small_tree() {
        for height in 1..12u32 {
            let cuts = Cuts::new(height);
            for number in 1..1usize << height {
                let depth = usize::BITS - 1 - number.leading_zeros();
                let mut frames = Frames::default();
                let mut stack = Stack { frames: &mut frames, top: 0 };
                let (mut base, mut subtree_height, mut above) = (0, height, 0);
                // The subtree between two cuts that holds the node, then the node in it.
                let slot = loop {
                    let levels = stack.narrow(base, subtree_height);
                    match depth - above {
                        0 => break base,
                        1 if levels == 2 => break base + 1 + number % 2,
                        _ => above += levels,
                    }
                    (base, subtree_height) = stack.cross(number >> (depth - above)).unwrap();
                };
                let expected = slot_of_number(&cuts, number, depth);
                assert_eq!(slot, expected, "height {height} node {number}");
            }
        }
    }

    #[test]
    fn no_slot_is_wasted_beyond_a_third() {
        for n in 1..5000 {
            let full = Full::new(n);
            assert!(3 * full.slots <= 4 * n + 4, "{n} items, {} slots", full.slots);
        }
    }
}
