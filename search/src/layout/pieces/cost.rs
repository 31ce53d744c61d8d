//! What the ways through pieces cost on a kind of processor: plans compare these estimates.
//!
//! They were fitted to measured times of every way on every distribution of `sample`, at 256 KiB,
//! 1, 32 and 128 MiB of `u32` keys. What differs between processors is not how fast they compare
//! but how far their third level is: where it is near (AMD EPYC, Zen 5), a table that leaves the
//! second level is asked for too late, and few far lines of a tree count much. Where it is far and
//! lies along a mesh (Intel Xeon, Emerald Rapids), the lines of any way take so long that a table
//! beside them costs little. A processor of neither kind gets the first estimates.

/// Costs of a query in hundredths of a nanosecond. Only their differences decide.
#[derive(Debug)]
pub(super) struct Costs {
    /// Where roots are cut into lines.
    pub(super) direct: usize,
    /// Through a table of cells that is in the first-level cache.
    pub(super) cells: usize,
    /// Bytes of keys from which on blocks are far, and from which on they are farthest.
    far_bytes: [usize; 2],
    /// What each hundredth of queries adds whose line is crowded: a block is read as well, and
    /// found. By distance, as the next two.
    pub(super) crowded: [usize; 3],
    /// Through a root, a directory and a block.
    pub(super) deep: [usize; 3],
    /// What the far lines of a tree cost more than the one of pieces.
    pub(super) far_tree: [usize; 3],
    /// A level of the tree.
    pub(super) level: usize,
    /// Bytes of tables that stay in nearer caches, and what larger ones cost more.
    tables: &'static [(usize, usize)],
    /// Bytes of directories that stay in nearer caches, and what more of them cost.
    directories: &'static [(usize, usize)],
    /// Whether the finest table of roots is always among those that are tried, and crowds are
    /// looked for in all parts of large cells.
    pub(super) looks_closer: bool,
}

/// The third level is near. Measured on AMD EPYC (Zen 5), but for `deep`.
pub(super) static NEAR: Costs = Costs {
    direct: 115,
    cells: 150,
    far_bytes: [4 << 20, 64 << 20],
    crowded: [4, 6, 16],
    deep: [235, 405, 405],
    far_tree: [0, 300, 300],
    level: 50,
    tables: &[(20 << 10, 10), (40 << 10, 15), (128 << 10, 15), (256 << 10, 40), (512 << 10, 400)],
    directories: &[(20 << 10, 2), (40 << 10, 4), (128 << 10, 4), (256 << 10, 10), (512 << 10, 100)],
    looks_closer: false,
};

/// The third level is far. Measured on Intel Xeon (Emerald Rapids).
pub(super) static FAR: Costs = Costs {
    direct: 165,
    cells: 245,
    far_bytes: [2 << 20, 64 << 20],
    crowded: [5, 7, 8],
    deep: [400, 330, 370],
    far_tree: [0, 90, 420],
    level: 75,
    tables: &[(20 << 10, 6), (40 << 10, 8), (128 << 10, 15), (256 << 10, 5), (1 << 20, 25), (3 << 20, 150)],
    directories: &[(3 << 20, 60), (6 << 20, 60), (16 << 20, 120)],
    looks_closer: true,
};

/// What all steps add that `bytes` pass.
fn passed(steps: &[(usize, usize)], bytes: usize) -> usize {
    steps.iter().filter(|(most, _)| bytes > *most).map(|(_, cost)| cost).sum()
}

impl Costs {
    /// The costs where the third level of caches is far, or is not.
    pub(super) fn of(is_third_level_far: bool) -> &'static Costs {
        if is_third_level_far {
            &FAR
        } else {
            &NEAR
        }
    }

    /// How far blocks and leaves are for keys of `bytes`: 0 is near, 2 the farthest.
    pub(super) fn distance(&self, bytes: usize) -> usize {
        self.far_bytes.iter().filter(|far| bytes > **far).count()
    }

    /// What a query costs more because of a table of `bytes`.
    pub(super) fn table(&self, bytes: usize) -> usize {
        passed(self.tables, bytes)
    }

    /// What a query costs more because of directories of `bytes`.
    pub(super) fn directories(&self, bytes: usize) -> usize {
        passed(self.directories, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn larger_tables_and_farther_lines_cost_more() {
        for costs in [&NEAR, &FAR] {
            assert!(costs.table(4096) < costs.table(1 << 16) && costs.table(1 << 16) < costs.table(8 << 20));
            assert!(costs.directories(4096) < costs.directories(32 << 20));
            assert_eq!([1 << 20, 5 << 20, 65 << 20].map(|bytes| costs.distance(bytes)), [0, 1, 2]);
            assert!(costs.far_tree.is_sorted() && costs.crowded.is_sorted());
        }
    }
}
