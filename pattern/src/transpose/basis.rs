//! The eight basis streams of a chunk, and the sizes that transposition and kernels agree on.

/// Most bytes of text that are transposed at once: one chunk. Text, streams and an interpreter's
/// few live values stay in a first-level cache.
pub const CHUNK_BYTES: usize = 4096;
/// Words of a stream of one chunk.
pub const CHUNK_WORDS: usize = CHUNK_BYTES / 64;
/// Words before a stream that remember the previous chunk; only the last one is used, the others
/// keep the alignment.
pub const HISTORY_WORDS: usize = 8;
/// Bytes that are transposed at least, and of which a chunk is a multiple.
pub const BLOCK_BYTES: usize = 512;

/// How far ahead of the block at hand the text is asked for. Much further is slower than not at
/// all: it runs into the next page long before it is needed.
#[cfg(target_arch = "x86_64")]
pub(super) const AHEAD_BYTES: usize = 1024;

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
