//! Cache-aware search: a k-ary tree whose nodes are memory blocks, in breadth-first order.
//!
//! **The child index, derived.** Number the nodes in breadth-first order from the root at 0. Before
//! the first child of node i stand the root and the k children of each of the nodes 0 … i−1, so
//! that child has number `1 + i·k`, and the j-th child (1 ≤ j ≤ k) has `i·k + j`. The paper prints
//! `ik + (j − 1)`, which would make the root its own first child; one scan prints `ik +
//! (k−1)(j+1)`, which skips nodes. With implicit pointers a block of b bytes is b/4 items, so k =
//! b/4 + 1; with explicit pointers k − 1 items and k pointers must fit, so k = ⌊(b/4 + 1)/2⌋ (4 of
//! 32 bytes, one word to spare).
//!
//! Any n: nodes are filled in order, the last one is padded with its own last item, which changes
//! no answer. Cost: ⌈log_k(n+1)⌉ blocks, log2 k items in each. Source: section 4.3.

use super::lookup::{read, Lookup, Touch, Words, NIL};

/// The number of the j-th child (1 ≤ j ≤ k) of node i in a k-ary tree.
#[inline(always)]
pub(super) const fn child(i: usize, j: usize, k: usize) -> usize {
    i * k + j
}

/// Where `items` go when `per` of them share a node with `per + 1` children: `place(node, j, item)`
/// for every slot, padding included.
fn distribute(items: &[u32], per: usize, place: &mut dyn FnMut(usize, usize, u32)) {
    let nodes = items.len().div_ceil(per);
    let mut walk = InOrder { items, per, nodes, next: 0, place };
    walk.visit(0);
}

struct InOrder<'a> {
    items: &'a [u32],
    per: usize,
    nodes: usize,
    next: usize,
    place: &'a mut dyn FnMut(usize, usize, u32),
}

impl InOrder<'_> {
    /// Gives the subtree at `node` its items in order.
    fn visit(&mut self, node: usize) {
        if node >= self.nodes {
            return;
        }
        let held = self.per.min(self.items.len() - node * self.per);
        for j in 0..self.per {
            if j < held {
                self.visit(child(node, j + 1, self.per + 1));
                self.next += 1;
            }
            (self.place)(node, j, self.items[self.next - 1]);
        }
        self.visit(child(node, self.per + 1, self.per + 1));
    }
}

/// Binary search among the items at `low..high`: the place of `item`, or that of the first larger
/// one.
///
/// # Safety
/// `high` must not be more than `words.len()`.
#[inline(always)]
unsafe fn within<T: Touch>(
    words: &[u32],
    (mut low, mut high): (usize, usize),
    item: u32,
    touch: &mut T,
) -> Result<usize, usize> {
    while low < high {
        let middle = (low + high) / 2;
        // SAFETY: low <= middle < high, and the caller says that high <= words.len().
        let here = unsafe { read(words, middle, touch) };
        if item == here {
            return Ok(middle);
        }
        if item < here {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Err(low)
}

/// Blocks full of items; children are calculated.
#[derive(Debug)]
pub struct AwareImplicit {
    blocks: Words,
    /// Items of a block.
    per: usize,
    nodes: usize,
}

impl AwareImplicit {
    /// Fills blocks of `block_bytes` (at least 4) with the sorted `items`.
    pub fn build(items: &[u32], block_bytes: usize) -> AwareImplicit {
        let per = (block_bytes / 4).max(1);
        let nodes = items.len().div_ceil(per);
        let mut blocks = Words::new(nodes * per, block_bytes);
        let words = blocks.get_mut();
        distribute(items, per, &mut |node, j, item| words[node * per + j] = item);
        AwareImplicit { blocks, per, nodes }
    }

    #[inline(always)]
    fn search<T: Touch>(&self, item: u32, mut touch: T) -> Option<u32> {
        let words = self.blocks.get();
        let mut node = 0;
        while node < self.nodes {
            let first = node * self.per;
            // SAFETY: `build` made room for `nodes` blocks of `per` words, and node < nodes.
            match unsafe { within(words, (first, first + self.per), item, &mut touch) } {
                Ok(slot) => return Some(slot as u32),
                Err(larger) => node = child(node, larger - first + 1, self.per + 1),
            }
        }
        None
    }
}

impl Lookup for AwareImplicit {
    #[inline]
    fn find(&self, item: u32) -> Option<u32> {
        self.search(item, ())
    }

    fn find_touching(&self, item: u32, touched: &mut dyn FnMut(usize)) -> Option<u32> {
        self.search(item, touched)
    }

    fn item(&self, slot: u32) -> u32 {
        self.blocks.get()[slot as usize]
    }

    fn bytes(&self) -> usize {
        4 * self.blocks.len
    }
}

/// Blocks of k − 1 items, k pointers and what is left over; a pointer is the word where a block
/// starts.
#[derive(Debug)]
pub struct AwareExplicit {
    blocks: Words,
    /// Items of a block.
    per: usize,
    root: u32,
}

impl AwareExplicit {
    /// Fills blocks of `block_bytes` (at least 12, else 12) with the sorted `items`.
    pub fn build(items: &[u32], block_bytes: usize) -> AwareExplicit {
        let block = (block_bytes / 4).max(3);
        let k = block.div_ceil(2);
        let per = k - 1;
        let nodes = items.len().div_ceil(per);
        let mut blocks = Words::new(nodes * block, block_bytes);
        let words = blocks.get_mut();
        distribute(items, per, &mut |node, j, item| words[node * block + j] = item);
        for node in 0..nodes {
            for j in 1..=k {
                let to = child(node, j, k);
                words[node * block + per + j - 1] = if to < nodes { (to * block) as u32 } else { NIL };
            }
        }
        AwareExplicit::new(blocks, block, per, if nodes > 0 { 0 } else { NIL })
    }

    /// A search over `blocks` of `block` words from `root`. Every pointer is checked here, so that
    /// no search has to.
    fn new(blocks: Words, block: usize, per: usize, root: u32) -> AwareExplicit {
        let words = blocks.get();
        let leads = |to: u32| {
            to == NIL || ((to as usize).is_multiple_of(block) && to as usize + block <= words.len())
        };
        assert!(2 * per < block, "{per} items and a pointer more are no {block} words");
        let pointers = words.chunks_exact(block).flat_map(|node| &node[per..=2 * per]);
        assert!(pointers.chain([&root]).all(|&to| leads(to)), "a pointer leads out of the structure");
        AwareExplicit { blocks, per, root }
    }

    #[inline(always)]
    fn search<T: Touch>(&self, item: u32, mut touch: T) -> Option<u32> {
        let words = self.blocks.get();
        let mut at = self.root;
        while at != NIL {
            let first = at as usize;
            // SAFETY: `new` has seen that a whole block starts at `at`, which is not `NIL`.
            match unsafe { within(words, (first, first + self.per), item, &mut touch) } {
                Ok(slot) => return Some(slot as u32),
                // SAFETY: larger <= first + per, and 2 · per is less than a block's words.
                Err(larger) => at = unsafe { read(words, larger + self.per, &mut touch) },
            }
        }
        None
    }
}

impl Lookup for AwareExplicit {
    #[inline]
    fn find(&self, item: u32) -> Option<u32> {
        self.search(item, ())
    }

    fn find_touching(&self, item: u32, touched: &mut dyn FnMut(usize)) -> Option<u32> {
        self.search(item, touched)
    }

    fn item(&self, slot: u32) -> u32 {
        self.blocks.get()[slot as usize]
    }

    fn bytes(&self) -> usize {
        4 * self.blocks.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_but_the_root_is_the_child_of_exactly_one() {
        for k in 2..20 {
            let mut parents = vec![0; 500 * k];
            for i in 0..400 {
                for j in 1..=k {
                    if let Some(count) = parents.get_mut(child(i, j, k)) {
                        *count += 1;
                    }
                }
            }
            assert_eq!(parents[0], 0);
            assert!(parents[1..=400 * k].iter().all(|&count| count == 1), "k = {k}");
        }
    }

    #[test]
    fn a_block_of_32_bytes_has_fan_out_nine_implicit_and_four_explicit() {
        let items: Vec<u32> = (0..100).collect();
        assert_eq!(AwareImplicit::build(&items, 32).per, 8);
        assert_eq!(AwareExplicit::build(&items, 32).per, 3);
    }
}
