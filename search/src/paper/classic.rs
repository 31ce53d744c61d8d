//! Classic binary search: the middle of what remains, three ways: equal, left, right.
//!
//! Implicit: a sorted array, the middle is calculated. Explicit: the same comparisons in the same order, but every item carries the places of the
//! two middles that may come next, twelve bytes instead of four. Cost: at most ⌊log2 n⌋ + 1 items. Source: section 4.1 and 4.6.

use core::cmp::Ordering;

use super::{Lookup, Words, NIL};

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

/// Nodes of item, left and right in sorted order; a pointer is the word where a node starts.
#[derive(Debug)]
pub struct ClassicExplicit {
    nodes: Words,
    root: u32,
}

impl ClassicExplicit {
    /// Builds the tree of the middles that the implicit search visits.
    pub fn build(items: &[u32], block_bytes: usize) -> ClassicExplicit {
        let mut nodes = Words::new(3 * items.len(), block_bytes);
        let root = link(items, 0, items.len(), nodes.get_mut());
        ClassicExplicit { nodes, root }
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

impl Lookup for ClassicExplicit {
    #[inline]
    fn find(&self, item: u32) -> Option<u32> {
        find_in_nodes(self.nodes.get(), self.root, item)
    }

    fn item(&self, slot: u32) -> u32 {
        self.nodes.get()[slot as usize]
    }

    fn bytes(&self) -> usize {
        4 * self.nodes.len
    }
}

/// Follows the stored pointers of nodes of item, left, right from `root`.
#[inline(always)]
pub(super) fn find_in_nodes(words: &[u32], root: u32, item: u32) -> Option<u32> {
    let mut at = root;
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
