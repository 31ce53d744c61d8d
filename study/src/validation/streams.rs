//! Streams over arrays that no cache holds: load, store, copy, stream, triad, as likwid-bench calls
//! them.
//!
//! One thread's part is simulated; every thread makes the same touches in its own part. A piece is
//! a page of each array.

use super::kernel::{bases, Kernel, Touches, ELEMENT_BYTES};

/// Elements of a piece.
const PIECE: u64 = 512;
/// Pieces of a sweep: 64 MiB of each array, more than any cache here.
const PIECES: u64 = 64 << 20 >> 12;

/// A kernel by its name in the table of points: how many arrays it reads, and whether it writes
/// one.
const FORMS: &[(&str, u64, bool)] = &[
    ("likwid-bench load", 1, false),
    ("likwid-bench store", 0, true),
    ("likwid-bench copy", 1, true),
    ("likwid-bench stream", 2, true),
    ("likwid-bench triad", 3, true),
];

/// Streams over some arrays.
pub(super) struct Streams {
    loads: Vec<u64>,
    store: Option<u64>,
    vector: u64,
}

impl Streams {
    /// The kernel of that name, if there is one.
    pub(super) fn named(name: &str, vector: u64, apart_bytes: u64) -> Option<Streams> {
        let &(_, loads, stores) = FORMS.iter().find(|(form, ..)| *form == name)?;
        let arrays = loads + u64::from(stores);
        let mut bases = bases(&vec![PIECES * PIECE * ELEMENT_BYTES; arrays as usize], apart_bytes);
        let store = if stores { bases.pop() } else { None };
        Some(Streams { loads: bases, store, vector })
    }
}

impl Kernel for Streams {
    fn pieces(&self) -> usize {
        PIECES as usize
    }

    fn rows(&self) -> usize {
        1
    }

    fn push(&self, piece: usize, _row: usize, touches: &mut Touches) {
        let start = piece as u64 * PIECE;
        for element in (start..start + PIECE).step_by(self.vector as usize) {
            let (from, to) = (element * ELEMENT_BYTES, (element + self.vector) * ELEMENT_BYTES - 1);
            for (site, base) in (0..).zip(&self.loads) {
                touches.load(site, base + from, base + to);
            }
            if let Some(base) = self.store {
                touches.store(self.loads.len() as u32, base + from, base + to);
            }
        }
    }

    fn updates(&self) -> u64 {
        PIECE
    }

    fn piece_bytes(&self) -> u64 {
        (self.loads.len() + usize::from(self.store.is_some())) as u64 * PIECE * ELEMENT_BYTES
    }

    fn reach(&self) -> usize {
        1
    }
}
