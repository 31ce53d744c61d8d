//! A lower triangle of at most a vector's size, by columns, with the reciprocals of its diagonal.

/// The most lanes of a vector, and so the most rows of a [`SmallTriangle`].
pub(crate) const MOST_LANES: usize = 16;

/// The order in which columns of a vector's height are eliminated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// From the first row to the last.
    Forward,
    /// From the last row to the first: `scaled` holds the triangle with rows and columns reversed,
    /// which is an upper triangle, and so do `reciprocals`.
    Backward,
}

/// A lower triangle with up to 16 rows. Column `k` begins at `entries[16·k]`; above the diagonal
/// lie zeros.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct SmallTriangle<T> {
    /// Rows and columns.
    pub(crate) size: usize,
    /// The order in which `solve::down` eliminates.
    pub(crate) order: Order,
    pub(crate) entries: [T; MOST_LANES * MOST_LANES],
    /// The reciprocals of the diagonal.
    pub(crate) reciprocals: [T; MOST_LANES],
    /// Column `k` of the triangle divided by its diagonal entry; see `solve::down`.
    pub(crate) scaled: [T; MOST_LANES * MOST_LANES],
}

impl<T: Copy> SmallTriangle<T> {
    /// An empty triangle whose memory holds `zero`.
    pub(crate) fn new(zero: T) -> SmallTriangle<T> {
        SmallTriangle {
            size: 0,
            order: Order::Forward,
            entries: [zero; MOST_LANES * MOST_LANES],
            reciprocals: [zero; MOST_LANES],
            scaled: [zero; MOST_LANES * MOST_LANES],
        }
    }
}
