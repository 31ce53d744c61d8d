//! Classic binary search: the middle of what remains, three ways: equal, left, right.
//!
//! Implicit: a sorted array, the middle is calculated. Explicit: the same comparisons in the same
//! order, but every item carries the places of the two middles that may come next, twelve bytes
//! instead of four. Cost: at most ⌊log2 n⌋ + 1 items. Source: section 4.1 and 4.6.

use core::cmp::Ordering;

use super::lookup::{Lookup, Words, NIL};

/// A sorted array.
#[derive(Debug)]
pub struct ClassicImplicit {
    items: Words,
}

impl ClassicImplicit {
    /// Keeps the sorted `items`.
    pub fn build(items: &[u32], block_bytes: usize) -> ClassicImplicit {
        let mut words = Words::new(items.len(), block_bytes);
        words.get_mut().copy_from_slice(items);
        ClassicImplicit { items: words }
    }
}

impl Lookup for ClassicImplicit {
    #[inline]
    fn find(&self, item: u32) -> Option<u32> {
        let items = self.items.get();
        let (mut low, mut high) = (0, items.len());
        while low < high {
            let middle = (low + high) / 2;
            match item.cmp(&items[middle]) {
                Ordering::Equal => return Some(middle as u32),
                Ordering::Less => high = middle,
                Ordering::Greater => low = middle + 1,
            }
        }
        None
    }

    fn item(&self, slot: u32) -> u32 {
        self.items.get()[slot as usize]
    }

    fn bytes(&self) -> usize {
        4 * self.items.len
    }
}

/// Nodes of item, left and right; a pointer is the word where a node starts. Classic and
/// cache-oblivious search with explicit pointers are this one search: only the order in which nodes
/// stand differs, and with it the constructor.
#[derive(Debug)]
pub struct BinaryExplicit {
    pub(super) nodes: Words,
    pub(super) root: u32,
}

impl BinaryExplicit {
    /// The tree of the middles that the implicit search visits, its nodes in sorted order.
    pub fn in_order(items: &[u32], block_bytes: usize) -> BinaryExplicit {
        let mut nodes = Words::new(3 * items.len(), block_bytes);
        let root = link(items, 0, items.len(), nodes.get_mut());
        BinaryExplicit { nodes, root }
    }
}

/// Writes the nodes of `low..high` and returns the place of their root.
fn link(items: &[u32], low: usize, high: usize, words: &mut [u32]) -> u32 {
    if low >= high {
        return NIL;
    }
    let middle = (low + high) / 2;
    let left = link(items, low, middle, words);
    let right = link(items, middle + 1, high, words);
    words[3 * middle..3 * middle + 3].copy_from_slice(&[items[middle], left, right]);
    3 * middle as u32
}

impl Lookup for BinaryExplicit {
    #[inline]
    fn find(&self, item: u32) -> Option<u32> {
        let words = self.nodes.get();
        let mut at = self.root;
        while at != NIL {
            let node: &[u32; 3] = words[at as usize..].first_chunk()?;
            match item.cmp(&node[0]) {
                Ordering::Equal => return Some(at),
                Ordering::Less => at = node[1],
                Ordering::Greater => at = node[2],
            }
        }
        None
    }

    fn item(&self, slot: u32) -> u32 {
        self.nodes.get()[slot as usize]
    }

    fn bytes(&self) -> usize {
        4 * self.nodes.len
    }
}
