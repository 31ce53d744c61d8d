//! Which vector instructions kernels may use: those of the processor, at most those that the
//! environment names.
//!
//! Every family of kernels chooses the fastest one that this machine can run. Reports and tests
//! want to see the others as well: with `LIGHTFOOT_VECTORS=avx2` a processor with AVX-512 behaves
//! as one without. The variable is read once, because a choice that was made holds for the life of
//! an expression. **Leaves out** the crates below: `memchr` and `regex-automata` ask the processor
//! themselves, so short texts and the ends of texts may still see wider instructions.

use std::fmt;
use std::sync::OnceLock;

/// The variable that names the widest instructions.
pub const VARIABLE: &str = "LIGHTFOOT_VECTORS";

/// A level of instructions, which includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Vectors {
    /// Plain Rust.
    Portable,
    /// 128 bits: SSE2, and NEON on other processors.
    Sse2,
    /// 256 bits.
    Avx2,
    /// 512 bits.
    Avx512,
}

/// All levels, the widest first.
pub const LEVELS: &[Vectors] = &[Vectors::Avx512, Vectors::Avx2, Vectors::Sse2, Vectors::Portable];

impl Vectors {
    /// The name that the variable takes.
    pub fn name(self) -> &'static str {
        match self {
            Vectors::Portable => "portable",
            Vectors::Sse2 => "sse2",
            Vectors::Avx2 => "avx2",
            Vectors::Avx512 => "avx512",
        }
    }
}

/// A value of the variable that names no level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownVectors {
    /// What the variable holds.
    pub value: String,
}

impl fmt::Display for UnknownVectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = LEVELS.iter().map(|level| level.name()).collect();
        write!(f, "{VARIABLE}={} names no instructions: expected {}", self.value, names.join(", "))
    }
}

impl std::error::Error for UnknownVectors {}

/// The level that the environment names; nothing where it names none.
///
/// ```
/// // Programs report a name that is unknown; kernels take it for no limit.
/// assert!(lightfoot_pattern::vectors::requested().is_ok());
/// ```
///
/// # Errors
/// The variable is set to something else than a level's name.
pub fn requested() -> Result<Option<Vectors>, UnknownVectors> {
    match std::env::var_os(VARIABLE) {
        Some(value) if !value.is_empty() => level_of(&value.to_string_lossy()).map(Some),
        _ => Ok(None),
    }
}

fn level_of(value: &str) -> Result<Vectors, UnknownVectors> {
    let level = LEVELS.iter().copied().find(|level| level.name() == value);
    level.ok_or_else(|| UnknownVectors { value: value.to_owned() })
}

/// Whether kernels may use instructions of this level.
pub(crate) fn allows(level: Vectors) -> bool {
    static WIDEST: OnceLock<Vectors> = OnceLock::new();
    level <= *WIDEST.get_or_init(|| requested().ok().flatten().unwrap_or(Vectors::Avx512))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_have_names_and_an_order() {
        for level in LEVELS {
            assert_eq!(level_of(level.name()), Ok(*level));
        }
        assert!(LEVELS.is_sorted_by(|one, other| one > other));
        let unknown = level_of("avx1024").unwrap_err().to_string();
        assert!(unknown.contains("avx1024") && unknown.contains("avx512, avx2, sse2, portable"), "{unknown}");
    }
}
