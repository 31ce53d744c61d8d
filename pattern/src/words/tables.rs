//! The tables that tell whether a word may have a given window of four bytes.
//!
//! There are three sieves, each a set of hashes, and one for processors that cannot compute the
//! first in registers. They are asked in this order. **Filters** of 2,048 bits lie in registers: a
//! linear map over bits gives a row of eight bits and a place in it. There is one filter for few
//! words. For some hundreds there are two with independent maps, because two filters that are each
//! a fifth full pass a twentieth of all windows. For thousands there is none, because it would be
//! full. **Bitmaps** of 8 or 16 KB lie in the first-level cache: two, with different multipliers.
//! **Nibbles** are tables of sixteen entries for the upper and the lower half of each byte of a
//! window, with a bit for each of eight groups of words, after Teddy; they serve few words. If case
//! is folded, all bytes of windows have the case bit set, in the text and in the tables. That
//! unites other bytes too, which costs a few more marks.

/// With more words, one filter passes too much.
const WORDS_OF_ONE_FILTER: usize = 60;
/// With more words, two filters pass too much.
pub(super) const WORDS_OF_TWO_FILTERS: usize = 1200;

/// With more words, the groups of nibbles pass too much.
pub(super) const WORDS_OF_NIBBLES: usize = 64;
/// Groups of words that nibbles tell apart, a bit each.
const GROUPS: usize = 8;

/// Odd multipliers: the first comes from the golden ratio (Knuth 1973, section 6.4).
pub(super) const MULTIPLIERS: [u32; 2] = [0x9e37_79b1, 0x85eb_ca6b];

/// Four linear maps over bits, one for each byte of a window. Each row of eight bits of a map is
/// one byte.
type Map = [u64; 4];

/// The tables that kernels read.
#[derive(Clone, Debug)]
pub(super) struct Tables {
    /// A mask of the bytes that a window has.
    pub(super) mask: u32,
    /// The case bit if case is folded, else 0.
    pub(super) fold: u8,
    /// No filter, one, or two.
    pub(super) filters: Vec<Filter>,
    /// A map to places: the lower half of its result is the place in a row of the first filter, the
    /// upper half that of the second.
    pub(super) places: Map,
    pub(super) bitmaps: [Vec<u32>; 2],
    /// A bitmap has two to the power of this many bits.
    pub(super) bitmap_bits: u32,
    /// For few words.
    pub(super) nibbles: Option<Nibbles>,
    /// Positions of a text that are no multiple of this are not looked at: of the windows of a
    /// word, one stands at another one.
    pub(super) step: usize,
}

/// For each byte of a window and each value of its lower and its upper half, the groups of words
/// whose window has it. Bytes that windows lack have all groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Nibbles {
    pub(super) lower: [[u8; 16]; 4],
    pub(super) upper: [[u8; 16]; 4],
    /// Whether windows have four bytes, all of them ASCII: no other byte passes.
    pub(super) is_ascii: bool,
}

impl Nibbles {
    /// Tables of these windows of `length` bytes, which are folded; bytes of a text are not.
    fn new(windows: &[u32], length: usize, fold: u8) -> Nibbles {
        // Words whose windows look alike share a group, which then passes little else.
        let mut sorted = windows.to_vec();
        sorted.sort_unstable();
        let fill = |at| if at < length { [0; 16] } else { [u8::MAX; 16] };
        let mut nibbles = Nibbles {
            lower: std::array::from_fn(fill),
            upper: std::array::from_fn(fill),
            is_ascii: length == 4 && windows.iter().all(|window| window.to_le_bytes().is_ascii()),
        };
        for (number, window) in sorted.iter().enumerate() {
            let group = 1 << (number * GROUPS / sorted.len());
            for (at, byte) in window.to_le_bytes().into_iter().take(length).enumerate() {
                nibbles.lower[at][usize::from(byte & 15)] |= group;
                nibbles.upper[at][usize::from(byte >> 4)] |= group;
            }
        }
        for upper in &mut nibbles.upper {
            *upper = std::array::from_fn(|half| upper[half | usize::from(fold >> 4)]);
        }
        nibbles
    }

    /// Whether a folded window may be that of a word.
    #[cfg(test)]
    pub(super) fn pass(&self, window: u32) -> bool {
        let bytes = window.to_le_bytes().into_iter().enumerate();
        let groups = bytes.map(|(at, byte)| {
            self.lower[at][usize::from(byte & 15)] & self.upper[at][usize::from(byte >> 4)]
        });
        groups.fold(u8::MAX, |all, groups| all & groups) != 0
    }
}

/// Bit `q` of byte `r` is set if a window is mapped to row `r` and place `q`.
#[derive(Clone, Debug)]
pub(super) struct Filter {
    pub(super) bytes: Box<[u8; 256]>,
    pub(super) rows: Map,
}

impl Tables {
    /// Empty tables for windows of `length` bytes of this many words, `step` of each.
    pub(super) fn new(length: usize, words: usize, fold: u8, step: usize) -> Tables {
        let filters = match words {
            _ if words <= WORDS_OF_ONE_FILTER => 1,
            _ if words <= WORDS_OF_TWO_FILTERS => 2,
            _ => 0,
        };
        let bitmap_bits = if step * words > WORDS_OF_TWO_FILTERS { 17 } else { 16 };
        let filter = |number| Filter { bytes: Box::new([0; 256]), rows: map(number, length) };
        Tables {
            mask: u32::MAX >> (8 * (4 - length)),
            fold,
            filters: (1..=filters).map(filter).collect(),
            places: map(0, length),
            bitmaps: [vec![0; 1 << (bitmap_bits - 5)], vec![0; 1 << (bitmap_bits - 5)]],
            bitmap_bits,
            nibbles: None,
            step,
        }
    }

    /// Makes the tables of nibbles of all windows, if these are few and stand anywhere.
    pub(super) fn add_nibbles(&mut self, windows: &[u32], length: usize) {
        self.nibbles = (self.step == 1 && windows.len() <= WORDS_OF_NIBBLES)
            .then(|| Nibbles::new(windows, length, self.fold));
    }

    /// The window with the case bits set, and without bytes that windows lack.
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

    /// The row and the place of a folded window in a filter.
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
        self.bit::<0>(window) & self.bit::<1>(window) == 1
    }

    /// The bit of a folded window in a bitmap, which is set if a word may have that window.
    #[inline]
    pub(super) fn bit<const NUMBER: usize>(&self, window: u32) -> u32 {
        let hash = window.wrapping_mul(MULTIPLIERS[NUMBER]) >> (32 - self.bitmap_bits);
        self.bitmaps[NUMBER][(hash >> 5) as usize] >> (hash & 31) & 1
    }
}

/// A regular map that looks random, and ignores bytes that a window lacks (splitmix64: Steele et
/// al. 2014).
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

/// The sum of a map's parts, each times a byte of the window.
fn sum(map: &Map, window: u32) -> u8 {
    map.iter().zip(window.to_le_bytes()).fold(0, |sum, (&matrix, byte)| sum ^ affine(matrix, byte))
}

/// A matrix of bits times a byte, as GFNI defines it: bit `i` is the parity of row `7 - i` under
/// the byte.
fn affine(matrix: u64, byte: u8) -> u8 {
    (0..8).fold(0, |sum, at| {
        let row = matrix.to_le_bytes()[7 - at];
        sum | ((row & byte).count_ones() as u8 & 1) << at
    })
}

/// Up to four bytes as a number, the first one lowest.
pub(super) fn value(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u32::from(byte))
}

/// The four bytes from `at` on; bytes behind the text are zero.
pub(super) fn window_at(text: &[u8], at: usize) -> u32 {
    match text[at..].first_chunk() {
        Some(&bytes) => u32::from_le_bytes(bytes),
        None => value(&text[at..]),
    }
}
