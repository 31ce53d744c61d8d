//! The kernels behind the points, as streams of touches: which lines a thread uses, in order.
//!
//! **What.** The loops are rebuilt from their description: a matrix-vector product, stencils over a
//! cube, and streams over arrays ([`stencil`](super::stencil), [`product`](super::product),
//! [`streams`](super::streams)). A step of an innermost loop is one vector wide, as a compiled loop
//! is; each of its references touches every line that it lies in once. **Why so.** Between two
//! vectors of one array the loop uses its other arrays, so the order of touches is that of the
//! compiled loop; two touches of one line in one step are one touch, because nothing comes between
//! them. **Left out:** code, stack, coefficients that stay in registers, page walks.
//!
//! **Where arrays lie.** Each array has a mapping of its own, as large blocks of an allocator have:
//! it begins [`ALIGNED_BYTES`] behind a page, and in other layouts each begins some bytes further.

use event::{Record, RecordKind};

/// Bytes of a line on every machine here.
pub(super) const LINE_BYTES: u64 = 64;
/// Bytes of an element.
pub(super) const ELEMENT_BYTES: u64 = 8;
/// Where an array begins in its first page: an allocator's header, rounded up to a vector.
const ALIGNED_BYTES: u64 = 32;
const PAGE_BYTES: u64 = 4096;
/// The first array's mapping.
const FIRST_BYTE: u64 = 1 << 40;

/// A kernel of one size: sweeps of pieces, pieces of rows.
pub(super) trait Kernel: Sync {
    /// Pieces of a sweep, such as planes: each makes the touches of the piece before, shifted.
    fn pieces(&self) -> usize;
    /// Rows of a piece.
    fn rows(&self) -> usize;
    /// Appends the touches of a row of a piece.
    fn push(&self, piece: usize, row: usize, touches: &mut Touches);
    /// Updates of a piece, in the source's unit.
    fn updates(&self) -> u64;
    /// Bytes of memory that a piece uses for the first time in its sweep.
    fn piece_bytes(&self) -> u64;
    /// How many pieces back a line was used before: 0 where pieces share nothing but small arrays.
    fn reach(&self) -> usize;
}

/// Where arrays of these sizes begin, one mapping after the other; in a layout each array begins
/// `apart_bytes` further behind its page than the one before.
pub(super) fn bases(sizes_bytes: &[u64], apart_bytes: u64) -> Vec<u64> {
    let mut free = FIRST_BYTE;
    let mut bases = Vec::with_capacity(sizes_bytes.len());
    for (array, bytes) in (0..).zip(sizes_bytes) {
        let base = free + ALIGNED_BYTES + array * apart_bytes;
        free = (base + bytes).next_multiple_of(PAGE_BYTES);
        bases.push(base);
    }
    bases
}

/// Touches as records.
#[derive(Default)]
pub(super) struct Touches {
    records: Vec<Record>,
}

impl Touches {
    /// Reads the lines from one byte to another.
    #[inline]
    pub(super) fn load(&mut self, site: u32, first: u64, last: u64) {
        self.lines(RecordKind::Load, site, first, last);
    }

    /// Writes the lines from one byte to another.
    #[inline]
    pub(super) fn store(&mut self, site: u32, first: u64, last: u64) {
        self.lines(RecordKind::Store, site, first, last);
    }

    /// One record for each line: a record that lies in two lines would count as one miss.
    #[inline]
    fn lines(&mut self, kind: RecordKind, site: u32, first: u64, last: u64) {
        let mut line = first & !(LINE_BYTES - 1);
        while line <= last {
            self.records.extend(Record::new(kind, ELEMENT_BYTES as u32, site, line));
            line += LINE_BYTES;
        }
    }

    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    pub(super) fn records(&self) -> &[Record] {
        &self.records
    }

    pub(super) fn clear(&mut self) {
        self.records.clear();
    }
}

/// The steps of a row of elements from `first` to before `end`: the store at `stored` begins at a
/// multiple of the vector, so that the first step may be shorter, and the last.
pub(super) fn steps(first: u64, end: u64, stored: u64, vector: u64) -> impl Iterator<Item = (u64, u64)> {
    let mut at = first;
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let behind = (stored / ELEMENT_BYTES + at) % vector;
        let next = (at + vector - behind).min(end);
        let step = (at, next);
        at = next;
        Some(step)
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Lines of a touch, and whether it writes.
    pub(crate) fn shown(touches: &Touches) -> Vec<(u64, bool)> {
        let shown =
            |record: &Record| (record.address / LINE_BYTES, record.code().kind() == RecordKind::Store);
        touches.records().iter().map(shown).collect()
    }

    #[test]
    fn arrays_lie_in_mappings_of_their_own() {
        let bases = bases(&[4064, 1, 4096], 0);
        assert_eq!(bases, [0, 4096, 8192].map(|page| FIRST_BYTE + page + ALIGNED_BYTES));
        let apart = super::bases(&[4000, 1, 4096], 64);
        let inside: Vec<u64> = apart.iter().map(|base| base % PAGE_BYTES).collect();
        assert_eq!(inside, [32, 96, 160]);
    }

    #[test]
    fn a_reference_touches_each_of_its_lines() {
        let mut touches = Touches::default();
        touches.load(0, 60, 67);
        touches.store(1, 128, 135);
        assert_eq!(shown(&touches), [(0, false), (1, false), (2, true)]);
    }

    #[test]
    fn steps_end_where_the_stored_vector_does() {
        // Element 4 of an array at byte 0 begins a vector of four.
        let all: Vec<(u64, u64)> = steps(1, 10, 0, 4).collect();
        assert_eq!(all, [(1, 4), (4, 8), (8, 10)]);
        let shifted: Vec<(u64, u64)> = steps(0, 6, 16, 4).collect();
        assert_eq!(shifted, [(0, 2), (2, 6)]);
        assert_eq!(steps(3, 3, 0, 4).count(), 0);
    }
}
