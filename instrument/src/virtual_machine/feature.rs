//! Names of features and their places in the answers of CPUID.
//!
//! Source: Intel SDM volume 2, CPUID; names as in Linux's `/proc/cpuinfo`.

use Register::{Eax, Ebx, Ecx, Edx};

/// A register of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Register {
    Eax,
    Ebx,
    Ecx,
    Edx,
}

/// What a feature needs of the machine that runs the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    /// Its instructions.
    Instructions,
    /// Nothing: no program of a user can tell whether it is there, or it concerns speed alone.
    Nothing,
}

/// A feature: its name, and its bit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Feature {
    pub(super) name: &'static str,
    /// Leaf and sub-leaf.
    pub(super) leaf: (u32, u32),
    pub(super) register: Register,
    pub(super) bit: u8,
    pub(super) needs: Needs,
}

const fn has(name: &'static str, leaf: (u32, u32), register: Register, bit: u8) -> Feature {
    Feature { name, leaf, register, bit, needs: Needs::Instructions }
}

const fn silent(name: &'static str, leaf: (u32, u32), register: Register, bit: u8) -> Feature {
    Feature { name, leaf, register, bit, needs: Needs::Nothing }
}

const BASE: (u32, u32) = (1, 0);
const MORE: (u32, u32) = (7, 0);
const STATES: (u32, u32) = (0xd, 1);
const EXTENDED: (u32, u32) = (0x8000_0001, 0);

/// All features that a processor can declare.
pub(super) const FEATURES: &[Feature] = &[
    silent("fpu", BASE, Edx, 0),
    silent("vme", BASE, Edx, 1),
    silent("de", BASE, Edx, 2),
    silent("pse", BASE, Edx, 3),
    has("tsc", BASE, Edx, 4),
    silent("msr", BASE, Edx, 5),
    silent("pae", BASE, Edx, 6),
    silent("mce", BASE, Edx, 7),
    has("cx8", BASE, Edx, 8),
    silent("apic", BASE, Edx, 9),
    silent("sep", BASE, Edx, 11),
    silent("mtrr", BASE, Edx, 12),
    silent("pge", BASE, Edx, 13),
    silent("mca", BASE, Edx, 14),
    has("cmov", BASE, Edx, 15),
    silent("pat", BASE, Edx, 16),
    silent("pse36", BASE, Edx, 17),
    has("clflush", BASE, Edx, 19),
    has("mmx", BASE, Edx, 23),
    has("fxsr", BASE, Edx, 24),
    has("sse", BASE, Edx, 25),
    has("sse2", BASE, Edx, 26),
    has("pni", BASE, Ecx, 0),
    has("pclmulqdq", BASE, Ecx, 1),
    has("ssse3", BASE, Ecx, 9),
    has("fma", BASE, Ecx, 12),
    has("cx16", BASE, Ecx, 13),
    has("sse4_1", BASE, Ecx, 19),
    has("sse4_2", BASE, Ecx, 20),
    has("movbe", BASE, Ecx, 22),
    has("popcnt", BASE, Ecx, 23),
    has("aes", BASE, Ecx, 25),
    has("xsave", BASE, Ecx, 26),
    has("osxsave", BASE, Ecx, 27),
    has("avx", BASE, Ecx, 28),
    has("f16c", BASE, Ecx, 29),
    has("rdrand", BASE, Ecx, 30),
    has("fsgsbase", MORE, Ebx, 0),
    has("bmi1", MORE, Ebx, 3),
    has("avx2", MORE, Ebx, 5),
    has("bmi2", MORE, Ebx, 8),
    silent("erms", MORE, Ebx, 9),
    has("avx512f", MORE, Ebx, 16),
    has("avx512dq", MORE, Ebx, 17),
    has("rdseed", MORE, Ebx, 18),
    has("adx", MORE, Ebx, 19),
    has("avx512ifma", MORE, Ebx, 21),
    has("clflushopt", MORE, Ebx, 23),
    has("clwb", MORE, Ebx, 24),
    has("avx512cd", MORE, Ebx, 28),
    has("sha_ni", MORE, Ebx, 29),
    has("avx512bw", MORE, Ebx, 30),
    has("avx512vl", MORE, Ebx, 31),
    has("avx512vbmi", MORE, Ecx, 1),
    has("avx512_vbmi2", MORE, Ecx, 6),
    has("gfni", MORE, Ecx, 8),
    has("vaes", MORE, Ecx, 9),
    has("vpclmulqdq", MORE, Ecx, 10),
    has("avx512_vnni", MORE, Ecx, 11),
    has("avx512_bitalg", MORE, Ecx, 12),
    has("avx512_vpopcntdq", MORE, Ecx, 14),
    has("rdpid", MORE, Ecx, 22),
    silent("fsrm", MORE, Edx, 4),
    has("xsaveopt", STATES, Eax, 0),
    has("xsavec", STATES, Eax, 1),
    has("xgetbv1", STATES, Eax, 2),
    has("lahf_lm", EXTENDED, Ecx, 0),
    has("abm", EXTENDED, Ecx, 5),
    has("3dnowprefetch", EXTENDED, Ecx, 8),
    has("syscall", EXTENDED, Edx, 11),
    silent("nx", EXTENDED, Edx, 20),
    has("rdtscp", EXTENDED, Edx, 27),
    silent("lm", EXTENDED, Edx, 29),
];

/// What every processor of 64 bits has.
pub(super) const BASELINE: &[&str] = &[
    "fpu", "vme", "de", "pse", "tsc", "msr", "pae", "mce", "cx8", "apic", "sep", "mtrr", "pge", "mca",
    "cmov", "pat", "pse36", "clflush", "mmx", "fxsr", "sse", "sse2", "syscall", "nx", "lm",
];
/// What level 2 of the psABI adds.
pub(super) const LEVEL2: &[&str] = &["cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"];
/// What level 3 of the psABI adds.
pub(super) const LEVEL3: &[&str] =
    &["avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave", "osxsave"];
/// What level 4 of the psABI adds.
pub(super) const LEVEL4: &[&str] = &["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"];

/// The feature of this name; panics if there is none, because the tables above name it.
pub(super) fn named(name: &str) -> &'static Feature {
    FEATURES.iter().find(|feature| feature.name == name).expect("tables name features that exist")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_and_each_bit_stands_once() {
        let mut names: Vec<_> = FEATURES.iter().map(|feature| feature.name).collect();
        let mut bits: Vec<_> =
            FEATURES.iter().map(|feature| (feature.leaf, feature.register as u8, feature.bit)).collect();
        names.sort_unstable();
        bits.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
        assert!(bits.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn levels_name_features() {
        for name in [BASELINE, LEVEL2, LEVEL3, LEVEL4].concat() {
            assert_eq!(named(name).name, name);
        }
    }
}
