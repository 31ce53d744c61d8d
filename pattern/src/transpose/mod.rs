//! Transposition: turns bytes into eight basis bit streams, which is the first step of every
//! kernel.
//!
//! Bit `i % 64` of word `i / 64` of stream `k` is bit `k` of byte `i`. A [`Basis`] holds one chunk
//! of a text, and before each stream a copy of the last vector of the chunk before, so that a
//! stream delayed by some bytes is an unaligned load. A [`Transposer`] fills it. All of
//! [`TRANSPOSERS`] give the same streams; `scalar` is the obvious one. Source: Cameron et al. 2014,
//! section 2.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod backwards;
mod basis;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;
#[cfg(target_arch = "x86_64")]
mod sse2;

pub(crate) use backwards::reverse;
pub use basis::{Basis, BLOCK_BYTES, CHUNK_BYTES, CHUNK_WORDS, HISTORY_WORDS};

/// A way to transpose: its name, whether this machine can run it, and its function.
#[derive(Clone, Copy)]
pub struct Transposer {
    /// The name that `--explain` prints.
    pub name: &'static str,
    is_available: fn() -> bool,
    run: fn(&[u8], &mut Basis),
}

impl std::fmt::Debug for Transposer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// All transposers, fastest first. No machine runs them all.
///
/// ```
/// use lightfoot_pattern::transpose::{Basis, BLOCK_BYTES, TRANSPOSERS};
/// for transposer in TRANSPOSERS.iter().filter(|transposer| transposer.is_available()) {
///     let mut basis = Basis::new(b'\n');
///     transposer.run(&[b'A'; BLOCK_BYTES], &mut basis);
///     // 'A' is 0x41: bits 0 and 6 are set in every byte.
///     let words = [0, 1, 6].map(|bit| basis.stream(bit)[0]);
///     assert_eq!(words, [u64::MAX, 0, u64::MAX]);
/// }
/// ```
pub const TRANSPOSERS: &[Transposer] = &[
    #[cfg(target_arch = "x86_64")]
    Transposer { name: "avx512", is_available: avx512::is_available, run: avx512::transpose },
    #[cfg(target_arch = "x86_64")]
    Transposer { name: "avx2", is_available: avx2::is_available, run: avx2::transpose },
    #[cfg(target_arch = "x86_64")]
    Transposer { name: "sse2", is_available: sse2::is_available, run: sse2::transpose },
    #[cfg(target_arch = "aarch64")]
    Transposer { name: "neon", is_available: neon::is_available, run: neon::transpose },
    Transposer { name: "scalar", is_available: || true, run: scalar::transpose },
];

impl Transposer {
    /// The transposer called `name`, if this machine can run it.
    pub fn named(name: &str) -> Option<Transposer> {
        TRANSPOSERS.iter().copied().find(|one| one.name == name).filter(|one| one.is_available())
    }

    /// The fastest transposer that this machine can run.
    pub fn detect() -> Transposer {
        TRANSPOSERS
            .iter()
            .copied()
            .find(|one| one.is_available())
            .unwrap_or(TRANSPOSERS[TRANSPOSERS.len() - 1])
    }

    /// Whether this machine can run it.
    pub fn is_available(&self) -> bool {
        (self.is_available)()
    }

    /// Fills the streams from `text`. Cost: reads the text, writes as many bytes.
    ///
    /// # Panics
    /// When the text is longer than a chunk or no multiple of [`BLOCK_BYTES`], or the machine
    /// cannot run this transposer.
    pub fn run(&self, text: &[u8], basis: &mut Basis) {
        assert!(text.len() <= CHUNK_BYTES && text.len().is_multiple_of(BLOCK_BYTES));
        assert!((self.is_available)(), "{} does not run on this machine", self.name);
        (self.run)(text, basis)
    }
}
