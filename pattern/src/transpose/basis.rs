//! The eight basis streams of a chunk, and the sizes on which transposition and kernels agree.

/// The most bytes of text that are transposed at once: one chunk. The text, its streams and an
/// interpreter's few live values stay in a first-level cache.
pub const CHUNK_BYTES: usize = 4096;
/// Words of a stream of one chunk.
pub const CHUNK_WORDS: usize = CHUNK_BYTES / 64;
/// Words before a stream that hold the end of the previous chunk. Only the last one is used; the
/// others keep the alignment.
pub const HISTORY_WORDS: usize = 8;
/// The fewest bytes that are transposed at once. A chunk is a multiple of it.
pub const BLOCK_BYTES: usize = 512;

/// How many bytes ahead of the current block the text is prefetched. A much larger distance is
/// slower than no prefetch: it reaches the next page long before that is needed.
#[cfg(target_arch = "x86_64")]
pub(super) const AHEAD_BYTES: usize = 1024;

/// The basis streams of a chunk.
#[repr(C, align(64))]
#[derive(Clone)]
pub struct Basis {
    /// For each bit, the history and then the words of its stream.
    pub streams: [[u64; HISTORY_WORDS + CHUNK_WORDS]; 8],
}

impl Basis {
    /// Streams without text. Kernels that look back see bytes `before` in front of it.
    pub fn new(before: u8) -> Box<Basis> {
        let word = |bit: usize| 0u64.wrapping_sub(u64::from(before >> bit & 1));
        Box::new(Basis { streams: std::array::from_fn(|bit| [word(bit); HISTORY_WORDS + CHUNK_WORDS]) })
    }

    /// The words of stream `bit`.
    pub fn stream(&self, bit: usize) -> &[u64] {
        &self.streams[bit][HISTORY_WORDS..]
    }

    /// The last word of stream `bit` in the previous chunk.
    pub fn history(&self, bit: usize) -> u64 {
        self.streams[bit][HISTORY_WORDS - 1]
    }

    /// Makes the last of the first `words` words the history.
    pub fn forget(&mut self, words: usize) {
        for stream in &mut self.streams {
            stream[HISTORY_WORDS - 1] = stream[HISTORY_WORDS + words - 1];
        }
    }
}
