//! The address of a child in the van Emde Boas layout by one table row per level.
//!
//! Cut a tree of height h above depth d, where the cut belongs to a subtree rooted at depth D:
//! above the cut stands a top tree of T = 2^(d−D) − 1 nodes, below it bottom trees of B nodes each,
//! in order. With the breadth-first number i (root 1) of a node at depth d, its place is
//!
//! ```text
//! place(d) = place(D[d]) + T[d] + (i AND T[d]) · B[d]
//! ```
//!
//! because the low d − D bits of i say which bottom tree it is the root of. T, B and D depend on
//! the depth alone; places of the path's ancestors are kept while walking. Cost: a row, an AND, a
//! multiplication. Source: Brodal, Fagerberg and Jacob 2002, section 2.1.

/// Deepest tree that a table can describe.
pub(crate) const HEIGHT_MAX: usize = 47;

/// One row: what the cut above a depth looks like.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cut {
    /// Nodes of the top tree.
    pub(super) top: usize,
    /// Nodes of each bottom tree.
    pub(super) bottom: usize,
    /// Depth of the top tree's root.
    pub(super) root: usize,
}

/// The table for one height.
#[derive(Clone, Copy, Debug)]
pub struct Cuts {
    height: u32,
    pub(super) rows: [Cut; HEIGHT_MAX + 1],
}

/// A walk from the root down: the breadth-first number reached, and the places of the nodes passed.
#[derive(Clone, Copy, Debug)]
pub struct Walk {
    number: usize,
    slot: usize,
    places: [usize; HEIGHT_MAX + 1],
}

impl Cuts {
    /// The table of a full tree of `height` levels.
    ///
    /// # Panics
    /// When `height` is more than 47.
    pub fn new(height: u32) -> Cuts {
        let mut cuts = Cuts { height, rows: [Cut::default(); HEIGHT_MAX + 1] };
        cuts.cut(0, height as usize);
        cuts
    }

    /// Fills the rows of the subtrees between depths `start` and `start + height`.
    fn cut(&mut self, start: usize, height: usize) {
        if height <= 1 {
            return;
        }
        let (above, below) = (height / 2, height - height / 2);
        self.rows[start + above] = Cut { top: (1 << above) - 1, bottom: (1 << below) - 1, root: start };
        self.cut(start, above);
        self.cut(start + above, below);
    }

    /// Levels of the tree.
    #[inline(always)]
    pub fn height(&self) -> u32 {
        self.height
    }

    /// A walk that stands at the root.
    #[inline(always)]
    pub fn root(&self) -> Walk {
        Walk { number: 1, slot: 0, places: [0; HEIGHT_MAX + 1] }
    }

    /// The slot of the node with in-order position `rank`.
    pub fn slot_of_rank(&self, rank: usize) -> usize {
        let up = (rank + 1).trailing_zeros();
        let depth = self.height - 1 - up;
        let index = (rank + 1) >> (up + 1);
        let mut walk = self.root();
        for d in 0..depth {
            walk.descend(self, d, index >> (depth - 1 - d) & 1);
        }
        walk.slot
    }
}

impl Walk {
    /// The slot of the node reached.
    #[inline(always)]
    pub fn slot(&self) -> usize {
        self.slot
    }

    /// The breadth-first number of the node reached, the root's being 1.
    #[inline(always)]
    pub fn number(&self) -> usize {
        self.number
    }

    /// The path's bits: in a full tree walked to its end, the number of nodes left of the path.
    #[inline(always)]
    pub fn path(&self) -> usize {
        self.number - (1 << (usize::BITS - 1 - self.number.leading_zeros()))
    }

    /// From depth `depth` to the left (0) or right (1) child.
    #[inline(always)]
    pub fn descend(&mut self, cuts: &Cuts, depth: u32, right: usize) {
        let depth = depth as usize + 1;
        let row = &cuts.rows[depth.min(HEIGHT_MAX)];
        self.number = 2 * self.number + right;
        self.slot = self.places[row.root.min(HEIGHT_MAX)] + row.top + (self.number & row.top) * row.bottom;
        self.places[depth.min(HEIGHT_MAX)] = self.slot;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The recursive definition: where the node numbered `number` at `depth` stands in a full tree
    /// of `height`.
    fn place(height: u32, depth: u32, path: usize) -> usize {
        if height <= 1 {
            return 0;
        }
        let (above, below) = (height / 2, height - height / 2);
        if depth < above {
            return place(above, depth, path);
        }
        let which = path >> (depth - above);
        let rest = path & ((1 << (depth - above)) - 1);
        (1 << above) - 1 + which * ((1 << below) - 1) + place(below, depth - above, rest)
    }

    #[test]
    fn the_table_agrees_with_the_recursion_at_every_node_of_every_small_tree() {
        for height in 1..13 {
            let cuts = Cuts::new(height);
            let mut seen = vec![false; (1 << height) - 1];
            for rank in 0..seen.len() {
                let slot = cuts.slot_of_rank(rank);
                let up = (rank + 1).trailing_zeros();
                assert_eq!(
                    slot,
                    place(height, height - 1 - up, (rank + 1) >> (up + 1)),
                    "height {height} rank {rank}"
                );
                assert!(!seen[slot]);
                seen[slot] = true;
            }
        }
    }

    #[test]
    fn a_full_path_is_a_rank() {
        let cuts = Cuts::new(4);
        let mut walk = cuts.root();
        for (depth, right) in [1, 0, 1, 1].into_iter().enumerate() {
            walk.descend(&cuts, depth as u32, right);
        }
        assert_eq!((walk.path(), walk.number()), (0b1011, 0b11011));
    }
}
