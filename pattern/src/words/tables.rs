//! What a kernel asks about a window of four bytes: whether a word may have it.
//!
//! Three sieves, each a set of hashes, in the order in which they are asked. **Filters** of 2,048
//! bits lie in registers: a linear map over bits gives a row of eight bits and a place in it; one
//! for few words, two with independent maps for some hundreds, as two that are each a fifth full
//! pass a twentieth; none for thousands, where they would be full. **Bitmaps** of 8 or 16 KB lie in
//! the first-level cache: two, with different multipliers. With case folded, all bytes of windows
//! have the case bit set, in the text and in the tables; that this joins other bytes too costs
//! nothing but a few more marks.

/// One filter passes too much beyond this many words.
const WORDS_OF_ONE_FILTER: usize = 60;
/// Two filters pass too much beyond this many words.
const WORDS_OF_TWO_FILTERS: usize = 1200;

/// Odd, from the golden ratio (Knuth 1973, section 6.4), and another.
pub(super) const MULTIPLIERS: [u32; 2] = [0x9e37_79b1, 0x85eb_ca6b];

/// Linear maps over bits, one for each byte of a window: a row of eight bits is a byte of it.
type Map = [u64; 4];

/// What kernels read.
#[derive(Clone, Debug)]
pub(super) struct Tables {
    /// Bytes of a window, as a mask.
    pub(super) mask: u32,
    /// The case bit where case is folded, else 0.
    pub(super) fold: u8,
    /// None, one or two.
    pub(super) filters: Vec<Filter>,
    /// Its lower half numbers the place in a row of the first filter, its upper half that of the
    /// second.
    pub(super) places: Map,
    pub(super) bitmaps: [Vec<u32>; 2],
    /// A bitmap has two to the power of this many bits.
    pub(super) bitmap_bits: u32,
}

/// Bit `q` of byte `r` is set for each window that is mapped to row `r` and place `q`.
#[derive(Clone, Debug)]
pub(super) struct Filter {
    pub(super) bytes: Box<[u8; 256]>,
    pub(super) rows: Map,
}

impl Tables {
    /// Tables for windows of `length` bytes of this many words, still empty.
    pub(super) fn new(length: usize, words: usize, fold: u8) -> Tables {
        let filters = match words {
            _ if words <= WORDS_OF_ONE_FILTER => 1,
            _ if words <= WORDS_OF_TWO_FILTERS => 2,
            _ => 0,
        };
        let bitmap_bits = if words > WORDS_OF_TWO_FILTERS { 17 } else { 16 };
        let filter = |number| Filter { bytes: Box::new([0; 256]), rows: map(number, length) };
        Tables {
            mask: u32::MAX >> (8 * (4 - length)),
            fold,
            filters: (1..=filters).map(filter).collect(),
            places: map(0, length),
            bitmaps: [vec![0; 1 << (bitmap_bits - 5)], vec![0; 1 << (bitmap_bits - 5)]],
            bitmap_bits,
        }
    }

    /// A window as the sieves know it.
    pub(super) fn folded(&self, window: u32) -> u32 {
        (window | (u32::from(self.fold) * 0x0101_0101)) & self.mask
    }

    /// Adds a folded window.
    pub(super) fn add(&mut self, window: u32) {
        for number in 0..self.filters.len() {
            let (row, place) = self.filtered(number, window);
            self.filters[number].bytes[row] |= 1 << place;
        }
        for (bitmap, multiplier) in self.bitmaps.iter_mut().zip(MULTIPLIERS) {
            let hash = window.wrapping_mul(multiplier) >> (32 - self.bitmap_bits);
            bitmap[(hash >> 5) as usize] |= 1 << (hash & 31);
        }
    }

    /// Row and place of a folded window in a filter.
    fn filtered(&self, number: usize, window: u32) -> (usize, u32) {
        let row = sum(&self.filters[number].rows, window);
        let place = sum(&self.places, window) >> (4 * number) & 7;
        (usize::from(row), u32::from(place))
    }

    /// Whether the filters let a folded window pass.
    pub(super) fn passes_filters(&self, window: u32) -> bool {
        (0..self.filters.len()).all(|number| {
            let (row, place) = self.filtered(number, window);
            self.filters[number].bytes[row] >> place & 1 == 1
        })
    }

    /// Whether the bitmaps let a folded window pass.
    pub(super) fn passes_bitmaps(&self, window: u32) -> bool {
        self.bitmaps.iter().zip(MULTIPLIERS).all(|(bitmap, multiplier)| {
            let hash = window.wrapping_mul(multiplier) >> (32 - self.bitmap_bits);
            bitmap[(hash >> 5) as usize] >> (hash & 31) & 1 == 1
        })
    }
}

/// A regular map that looks random, with no part for bytes that a window lacks (splitmix64: Steele
/// et al. 2014).
fn map(number: u64, length: usize) -> Map {
    std::array::from_fn(|at| {
        let seed = (4 * number + at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (seed ^ seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        if at < length {
            mixed ^ mixed >> 31
        } else {
            0
        }
    })
}

/// The sum of a map's parts, each times its byte.
fn sum(map: &Map, window: u32) -> u8 {
    map.iter().zip(window.to_le_bytes()).fold(0, |sum, (&matrix, byte)| sum ^ affine(matrix, byte))
}

/// A matrix of bits times a byte: bit `i` is the parity of row `7 - i` and the byte, as GFNI has
/// it.
fn affine(matrix: u64, byte: u8) -> u8 {
    (0..8).fold(0, |sum, at| {
        let row = matrix.to_le_bytes()[7 - at];
        sum | ((row & byte).count_ones() as u8 & 1) << at
    })
}

/// Up to four bytes, the first one lowest.
pub(super) fn value(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u32::from(byte))
}

/// The four bytes from `at` on, zeros behind the text.
pub(super) fn window_at(text: &[u8], at: usize) -> u32 {
    match text[at..].first_chunk() {
        Some(&bytes) => u32::from_le_bytes(bytes),
        None => value(&text[at..]),
    }
}
