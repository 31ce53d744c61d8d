//! Classic binary search: the middle of what remains; one comparison tells equal, left and right.
//!
//! Implicit: a sorted array, the middle is calculated. Explicit: the same comparisons in the same
//! order, but every item carries the places of the two middles that may come next, twelve bytes
//! instead of four. Cost: at most ⌊log2 n⌋ + 1 items. Source: section 4.1 and 4.6.

use super::lookup::{read, Lookup, Touch, Words, NIL};

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

impl ClassicImplicit {
    #[inline(always)]
    fn search<T: Touch>(&self, item: u32, mut touch: T) -> Option<u32> {
        let items = self.items.get();
        let (mut low, mut high) = (0, items.len());
        while low < high {
            let middle = (low + high) / 2;
            // SAFETY: low <= middle < high <= items.len().
            let here = unsafe { read(items, middle, &mut touch) };
            if item == here {
                return Some(middle as u32);
            }
            if item < here {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        None
    }
}

impl Lookup for ClassicImplicit {
    #[inline]
    fn find(&self, item: u32) -> Option<u32> {
        self.search(item, ())
    }

    fn find_touching(&self, item: u32, touched: &mut dyn FnMut(usize)) -> Option<u32> {
        self.search(item, touched)
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
    nodes: Words,
    root: u32,
}

impl BinaryExplicit {
    /// The tree of the middles that the implicit search visits, its nodes in sorted order.
    pub fn in_order(items: &[u32], block_bytes: usize) -> BinaryExplicit {
        let mut nodes = Words::new(3 * items.len(), block_bytes);
        let root = link(items, 0, items.len(), nodes.get_mut());
        BinaryExplicit::new(nodes, root)
    }

    /// A search over `nodes` from `root`. Every pointer is checked here, so that no search has to.
    ///
    /// # Panics
    /// When a pointer leads anywhere but to a node or to `NIL`.
    pub(super) fn new(nodes: Words, root: u32) -> BinaryExplicit {
        let words = nodes.get();
        let leads =
            |to: u32| to == NIL || ((to as usize).is_multiple_of(3) && to as usize + 3 <= words.len());
        let pointers = words.chunks_exact(3).flat_map(|node| &node[1..]);
        assert!(pointers.chain([&root]).all(|&to| leads(to)), "a pointer leads out of the structure");
        BinaryExplicit { nodes, root }
    }

    #[inline(always)]
    fn search<T: Touch>(&self, item: u32, mut touch: T) -> Option<u32> {
        let words = self.nodes.get();
        let mut at = self.root;
        while at != NIL {
            let node = at as usize;
            // SAFETY: `new` has seen that `at`, which is not `NIL`, is where a node of three words
            // starts.
            let here = unsafe { read(words, node, &mut touch) };
            if item == here {
                return Some(at);
            }
            let pointer = if item < here { node + 1 } else { node + 2 };
            // SAFETY: the second or the third word of that node.
            at = unsafe { read(words, pointer, &mut touch) };
        }
        None
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
        self.search(item, ())
    }

    fn find_touching(&self, item: u32, touched: &mut dyn FnMut(usize)) -> Option<u32> {
        self.search(item, touched)
    }

    fn item(&self, slot: u32) -> u32 {
        self.nodes.get()[slot as usize]
    }

    fn bytes(&self) -> usize {
        4 * self.nodes.len
    }
}
