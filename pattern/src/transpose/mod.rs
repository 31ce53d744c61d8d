//! Transposition: bytes into eight basis bit streams, the first step of everything.
//!
//! Bit `i % 64` of word `i / 64` of stream `k` is bit `k` of byte `i`. A [`Basis`] holds one chunk of a text, and before each stream a copy of the last
//! vector of the chunk before, so that a stream delayed by some bytes is an unaligned load. A [`Transposer`] fills it; all of
//! [`TRANSPOSERS`] give the same streams, `scalar` is the obvious one.
//! Source: Cameron et al. 2014, section 2.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod backwards;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;
#[cfg(target_arch = "x86_64")]
mod sse2;

pub(crate) use backwards::reverse;

/// Most bytes of text that are transposed at once: one chunk. Text, streams and an interpreter's few live values stay in a first-level cache.
pub const CHUNK_BYTES: usize = 4096;
/// Words of a stream of one chunk.
pub const CHUNK_WORDS: usize = CHUNK_BYTES / 64;
/// Words before a stream that remember the previous chunk; only the last one is used, the others keep the alignment.
pub const HISTORY_WORDS: usize = 8;
/// Bytes that are transposed at least, and of which a chunk is a multiple.
pub const BLOCK_BYTES: usize = 512;

/// How far ahead of the block at hand the text is asked for. Much further is slower than not at all: it runs into the next page long before it is needed.
#[cfg(target_arch = "x86_64")]
const AHEAD_BYTES: usize = 1024;

/// The basis streams of a chunk.
#[repr(C, align(64))]
#[derive(Clone)]
pub struct Basis {
    /// Stream `k`: history, then words.
    pub streams: [[u64; HISTORY_WORDS + CHUNK_WORDS]; 8],
}

impl Basis {
    /// No text yet; before it stand as many bytes `before` as anyone looks back.
    pub fn new(before: u8) -> Box<Basis> {
        let word = |bit: usize| 0u64.wrapping_sub(u64::from(before >> bit & 1));
        Box::new(Basis { streams: std::array::from_fn(|bit| [word(bit); HISTORY_WORDS + CHUNK_WORDS]) })
    }

    /// The words of stream `bit`.
    pub fn stream(&self, bit: usize) -> &[u64] {
        &self.streams[bit][HISTORY_WORDS..]
    }

    /// The last word of stream `bit` in the chunk before.
    pub fn history(&self, bit: usize) -> u64 {
        self.streams[bit][HISTORY_WORDS - 1]
    }

    /// Makes the first `words` words the past.
    pub fn forget(&mut self, words: usize) {
        for stream in &mut self.streams {
            stream[HISTORY_WORDS - 1] = stream[HISTORY_WORDS + words - 1];
        }
    }
}

/// A way to transpose: a name, whether this machine has it, and the function.
#[derive(Clone, Copy)]
pub struct Transposer {
    /// As `--explain` prints it.
    pub name: &'static str,
    is_available: fn() -> bool,
    run: fn(&[u8], &mut Basis),
}

impl std::fmt::Debug for Transposer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Every way, fastest first; not all of them run on one machine.
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
    /// The one called `name`, where this machine can run it.
    pub fn named(name: &str) -> Option<Transposer> {
        TRANSPOSERS.iter().copied().find(|one| one.name == name).filter(|one| one.is_available())
    }

    /// The fastest that this machine can run.
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
    /// When the text is longer than a chunk or not a multiple of [`BLOCK_BYTES`], or the machine cannot run this.
    pub fn run(&self, text: &[u8], basis: &mut Basis) {
        assert!(text.len() <= CHUNK_BYTES && text.len().is_multiple_of(BLOCK_BYTES));
        assert!((self.is_available)(), "{} does not run on this machine", self.name);
        (self.run)(text, basis)
    }
}
