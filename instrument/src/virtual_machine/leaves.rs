//! Answers of CPUID: rows of a table, or the machine's own with what differs from run to run fixed.
//!
//! Source: Intel SDM volume 2, CPUID.

use super::feature::{named, Feature, FEATURES};
use std::arch::x86_64::__cpuid_count;

/// The sub-leaves that a row answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sub {
    /// All of them.
    Any,
    /// This one.
    Only(u32),
}

/// A row: the leaf and its sub-leaves, and the answer in eax, ebx, ecx and edx.
pub(crate) type Row = (u32, Sub, [u32; 4]);

/// A cache as leaf 4 declares it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cache {
    pub(crate) level: u32,
    pub(crate) kind: CacheKind,
    pub(crate) bytes: u32,
    pub(crate) ways: u32,
}

/// What a cache holds, as leaf 4 numbers it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CacheKind {
    Data = 1,
    Instructions = 2,
    Both = 3,
}

/// A processor by its properties.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Description {
    /// Family, model and stepping, as leaf 1 encodes them.
    pub(crate) signature: u32,
    pub(crate) brand: &'static str,
    pub(crate) features: &'static [&'static [&'static str]],
    pub(crate) caches: &'static [Cache],
}

/// Bytes of a line of every declared cache.
const LINE_BYTES: u32 = 64;
const VENDOR: &[u8; 12] = b"GenuineIntel";
/// The highest leaves that a described processor answers.
const LEAF_MAX: u32 = 0xd;
const EXTENDED_MAX: u32 = 0x8000_0008;
/// State components of x87, SSE and AVX, and of AVX-512.
const STATES_BASE: u64 = 3;
const STATES_AVX: u64 = 4;
const STATES_AVX512: u64 = 0xe0;

/// The answers of a processor.
#[derive(Clone, Debug)]
pub(crate) enum Leaves {
    /// The machine's own, as one processor that is always the same.
    Host,
    /// A table, and the answer of a leaf that it lacks.
    Table(Vec<Row>, [u32; 4]),
}

impl Leaves {
    /// The answer to a leaf and sub-leaf.
    pub(crate) fn answer(&self, leaf: u32, sub: u32) -> [u32; 4] {
        let (rows, missing) = match self {
            Leaves::Host => return host(leaf, sub),
            Leaves::Table(rows, missing) => (rows, missing),
        };
        let of_leaf = |row: &&Row| row.0 == leaf;
        let exact = rows.iter().filter(of_leaf).find(|row| row.1 == Sub::Any || row.1 == Sub::Only(sub));
        match (exact, rows.iter().find(of_leaf)) {
            (Some(row), _) => row.2,
            // The topology's leaf repeats the number of the sub-leaf and of the processor.
            (None, Some(first)) if leaf == 0xb => [0, 0, sub, first.2[3]],
            (None, Some(_)) => [0; 4],
            (None, None) => *missing,
        }
    }

    /// The value of XCR0: the state components that the system has enabled.
    pub(crate) fn extended_states(&self) -> u64 {
        match self {
            Leaves::Host => machine_states(),
            Leaves::Table(..) => {
                let [low, _, _, high] = self.answer(0xd, 0);
                u64::from(high) << 32 | u64::from(low)
            }
        }
    }

    /// Whether the answers declare a feature.
    pub(super) fn declare(&self, feature: &Feature) -> bool {
        self.answer(feature.leaf.0, feature.leaf.1)[feature.register as usize] >> feature.bit & 1 != 0
    }

    /// The names of all features that the answers declare, as the system lists them.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        FEATURES.iter().filter(|feature| self.declare(feature)).map(|feature| feature.name).collect()
    }
}

/// The bits of XCR0 that this machine supports: one for each state component.
pub(crate) fn machine_states() -> u64 {
    let leaf = __cpuid_count(0xd, 0);
    u64::from(leaf.edx) << 32 | u64::from(leaf.eax)
}

/// The machine's own answer, in which the number and the count of processors are fixed.
fn host(leaf: u32, sub: u32) -> [u32; 4] {
    let got = __cpuid_count(leaf, sub);
    let mut words = [got.eax, got.ebx, got.ecx, got.edx];
    match leaf {
        1 => words[1] = words[1] & 0xff00 | 1 << 16,
        // The numbers of cores and threads that share a cache.
        4 => words[0] &= 0x3fff,
        0xb | 0x1f => {
            words = topology(sub);
        }
        // Numbers of the core and node that AMD's processors tell.
        0x8000_001d => words[0] &= 0x3fff,
        0x8000_001e => words = [0; 4],
        _ => {}
    }
    words
}

/// The topology of a single processor.
fn topology(sub: u32) -> [u32; 4] {
    match sub {
        0 => [0, 1, 0x100, 0],
        1 => [0, 1, 0x201, 0],
        _ => [0, 0, sub, 0],
    }
}

impl Description {
    /// The table of a described processor.
    pub(crate) fn leaves(&self) -> Leaves {
        let text = |bytes: &[u8]| u32::from_le_bytes(std::array::from_fn(|index| bytes[index]));
        let mut rows: Vec<Row> = vec![
            (0, Sub::Any, [LEAF_MAX, text(&VENDOR[..4]), text(&VENDOR[8..]), text(&VENDOR[4..8])]),
            (1, Sub::Any, [self.signature, 1 << 16 | (LINE_BYTES / 8) << 8, 0, 0]),
            // All caches are in leaf 4; lines are fetched in pairs.
            (2, Sub::Any, [0x00fe_ff01, 0xf0, 0, 0]),
            (3, Sub::Any, [0; 4]),
        ];
        rows.extend(self.caches.iter().enumerate().map(|(index, cache)| cache.row(index as u32)));
        rows.extend([5, 6].map(|leaf| (leaf, Sub::Any, [0; 4])));
        rows.push((7, Sub::Only(0), [0; 4]));
        rows.extend((8..=0xa).map(|leaf| (leaf, Sub::Any, [0; 4])));
        rows.extend([0, 1].map(|sub| (0xb, Sub::Only(sub), topology(sub))));
        rows.push((0xc, Sub::Any, [0; 4]));
        rows.push((0xd, Sub::Only(0), [0; 4]));
        rows.push((0xd, Sub::Only(1), [0; 4]));
        rows.push((0x8000_0000, Sub::Any, [EXTENDED_MAX, 0, 0, 0]));
        rows.push((0x8000_0001, Sub::Any, [0; 4]));
        rows.extend(self.brand_rows());
        let second = self.caches.iter().find(|cache| cache.level == 2).map_or(0, |cache| cache.bytes);
        rows.push((0x8000_0006, Sub::Any, [0, 0, second >> 10 << 16 | 6 << 12 | LINE_BYTES, 0]));
        // The time stamp counter runs at one rate; addresses have 48 bits.
        rows.push((0x8000_0007, Sub::Any, [0, 0, 0, 1 << 8]));
        rows.push((0x8000_0008, Sub::Any, [0x3030, 0, 0, 0]));
        for feature in self.features.iter().flat_map(|names| names.iter()).map(|name| named(name)) {
            let (leaf, sub) = feature.leaf;
            let of = |row: &&mut Row| row.0 == leaf && (row.1 == Sub::Any || row.1 == Sub::Only(sub));
            let row = rows.iter_mut().find(of).expect("a feature's leaf has a row");
            row.2[feature.register as usize] |= 1 << feature.bit;
        }
        let states = self.states();
        rows.extend(state_rows(states));
        if let Some(row) = rows.iter_mut().find(|row| (row.0, row.1) == (0xd, Sub::Only(0))) {
            let bytes = area_bytes(states);
            row.2 = [states as u32, bytes, bytes, 0];
        }
        Leaves::Table(rows, [0; 4])
    }

    /// The state components that the processor has: those of its vectors.
    fn states(&self) -> u64 {
        let has = |name: &str| self.features.iter().any(|names| names.contains(&name));
        match (has("xsave"), has("avx"), has("avx512f")) {
            (false, ..) => 0,
            (true, false, _) => STATES_BASE,
            (true, true, false) => STATES_BASE | STATES_AVX,
            (true, true, true) => STATES_BASE | STATES_AVX | STATES_AVX512,
        }
    }

    /// The brand in three leaves of 16 characters.
    fn brand_rows(&self) -> [Row; 3] {
        let mut text = [0u8; 48];
        text[..self.brand.len()].copy_from_slice(self.brand.as_bytes());
        std::array::from_fn(|part| {
            let word = |index: usize| {
                u32::from_le_bytes(std::array::from_fn(|byte| text[16 * part + 4 * index + byte]))
            };
            (0x8000_0002 + part as u32, Sub::Any, std::array::from_fn(word))
        })
    }
}

impl Cache {
    /// Leaf 4's row of the cache with this index: one processor uses it.
    fn row(&self, index: u32) -> Row {
        let sets = self.bytes / self.ways / LINE_BYTES;
        let initialised = 1 << 8;
        let words = [
            self.kind as u32 | self.level << 5 | initialised,
            (self.ways - 1) << 22 | (LINE_BYTES - 1),
            sets - 1,
            0,
        ];
        (4, Sub::Only(index), words)
    }
}

/// The rows of state components: their places in an area are this machine's, because its own
/// instructions write it.
fn state_rows(states: u64) -> impl Iterator<Item = Row> {
    (2..64u32).filter(move |bit| states >> bit & 1 != 0).map(|bit| {
        let own = __cpuid_count(0xd, bit);
        (0xd, Sub::Only(bit), [own.eax, own.ebx, own.ecx, 0])
    })
}

/// The bytes of an area with these components.
fn area_bytes(states: u64) -> u32 {
    const LEGACY_BYTES: u32 = 512 + 64;
    state_rows(states)
        .map(|(_, _, [size, offset, ..])| size + offset)
        .fold(if states == 0 { 0 } else { LEGACY_BYTES }, u32::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::virtual_machine::PROCESSORS;

    #[test]
    fn the_host_is_shown_as_one_processor() {
        assert_eq!(Leaves::Host.answer(0xb, 1), [0, 1, 0x201, 0]);
        assert_eq!(Leaves::Host.answer(1, 0)[1] >> 16, 1);
        assert_eq!(Leaves::Host.answer(0, 0)[1], __cpuid_count(0, 0).ebx);
    }

    #[test]
    fn the_first_cache_of_a_level_is_declared_in_leaf_4() {
        let level = PROCESSORS.iter().find(|processor| processor.name == "x86-64-v3").unwrap().leaves();
        let [kind, shape, sets, _] = level.answer(4, 0);
        assert_eq!((kind & 0x1f, kind >> 5 & 7), (1, 1));
        assert_eq!(((shape >> 22) + 1) * ((shape & 0xfff) + 1) * (sets + 1), 32 << 10);
        assert_eq!(level.answer(4, 9), [0; 4]);
        assert_eq!(level.answer(0x40, 0), [0; 4]);
        let brand: Vec<u8> = (0..3)
            .flat_map(|part| level.answer(0x8000_0002 + part, 0))
            .flat_map(u32::to_le_bytes)
            .take_while(|&byte| byte != 0)
            .collect();
        assert_eq!(String::from_utf8(brand).unwrap(), "x86-64-v3");
    }

    #[test]
    fn levels_declare_what_the_psabi_says() {
        let declares = |level: &str, feature: &str| {
            let processor = PROCESSORS.iter().find(|processor| processor.name == level).unwrap();
            processor.leaves().declare(named(feature))
        };
        assert!(declares("x86-64-v2", "sse4_2") && !declares("x86-64-v2", "avx"));
        assert!(declares("x86-64-v3", "avx2") && !declares("x86-64-v3", "avx512f"));
        assert!(declares("x86-64-v4", "avx512vl"));
    }
}
