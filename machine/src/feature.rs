//! The instruction sets that lightfoot's crates ask about, by the kernel's names.
//!
//! The kernel's list is used because it leaves out features that programs must not use (no AMX
//! state, `nofsgsbase`): CPUID alone would report instructions that fault. On other systems the
//! standard library's detection is used, for the features that it knows.

/// Names that a [`crate::Machine`] may list in `features`; they are those of `/proc/cpuinfo`.
pub const FEATURES: &[&str] = &[
    "amx_bf16",
    "amx_int8",
    "amx_tile",
    "avx",
    "avx2",
    "avx512_vbmi2",
    "avx512_vpopcntdq",
    "avx512bw",
    "avx512cd",
    "avx512dq",
    "avx512f",
    "avx512vbmi",
    "avx512vl",
    "bmi1",
    "bmi2",
    "fma",
    "fsgsbase",
    "hypervisor",
    "lzcnt",
    "neon",
    "pclmulqdq",
    "popcnt",
    "sse2",
    "sse4_1",
    "sse4_2",
    "ssse3",
    "vpclmulqdq",
    "xsave",
];

/// The names of [`FEATURES`] among the words of a `flags` line, sorted.
pub(crate) fn known_flags(flags: &str) -> Vec<String> {
    let words: Vec<&str> = flags.split_whitespace().collect();
    let has = |name: &str| words.contains(&alias(name));
    FEATURES.iter().filter(|name| has(name)).map(|name| name.to_string()).collect()
}

/// The kernel's name of a feature that it calls differently; else the name itself.
fn alias(name: &str) -> &str {
    match name {
        "lzcnt" => "abm",
        "neon" => "asimd",
        other => other,
    }
}

/// The features that the standard library detects; used if the kernel lists none.
#[cfg(target_arch = "x86_64")]
pub(crate) fn detected() -> Vec<String> {
    let found = [
        ("avx", is_x86_feature_detected!("avx")),
        ("avx2", is_x86_feature_detected!("avx2")),
        ("avx512bw", is_x86_feature_detected!("avx512bw")),
        ("avx512f", is_x86_feature_detected!("avx512f")),
        ("avx512vl", is_x86_feature_detected!("avx512vl")),
        ("bmi1", is_x86_feature_detected!("bmi1")),
        ("bmi2", is_x86_feature_detected!("bmi2")),
        ("fma", is_x86_feature_detected!("fma")),
        ("pclmulqdq", is_x86_feature_detected!("pclmulqdq")),
        ("popcnt", is_x86_feature_detected!("popcnt")),
        ("sse2", true),
        ("sse4_2", is_x86_feature_detected!("sse4.2")),
        ("ssse3", is_x86_feature_detected!("ssse3")),
    ];
    found.iter().filter(|(_, has)| *has).map(|(name, _)| name.to_string()).collect()
}

/// No features: detection is for x86-64 only.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn detected() -> Vec<String> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_and_without_doubles() {
        assert!(FEATURES.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn whole_words_only() {
        assert_eq!(known_flags("sse2 avx512_bf16 abm avx2foo"), ["lzcnt", "sse2"]);
    }
}
