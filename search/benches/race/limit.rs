//! The limit: one random cache line per query, as fast as this machine can fetch them.
//!
//! A pass over precomputed random line numbers with a prefetch 64 ahead and one load each (throughput), and a walk along a random cycle of
//! lines (latency), on memory of the array's size with huge pages asked for, as everybody else here.

use search::sample::Random;

/// Memory of a given size, on a 2 MiB boundary, huge pages asked for.
pub(crate) struct Pages {
    base: *mut libc::c_void,
    mapped: usize,
    words: *mut u64,
    count: usize,
}

impl Pages {
    /// At least `bytes` bytes.
    pub(crate) fn new(bytes: usize) -> Pages {
        const HUGE: usize = 2 << 20;
        let mapped = bytes.next_multiple_of(HUGE) + HUGE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a fresh private mapping touches no other memory.
        let base = unsafe {
            libc::mmap(std::ptr::null_mut(), mapped, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
        };
        assert!(base != libc::MAP_FAILED, "no memory for {bytes} bytes");
        let start = base.wrapping_byte_add((base as usize).next_multiple_of(HUGE) - base as usize);
        // SAFETY: the range lies inside the mapping; the call is advice.
        unsafe { libc::madvise(start, mapped - HUGE, libc::MADV_HUGEPAGE) };
        Pages { base, mapped, words: start.cast(), count: bytes.div_ceil(64) * 8 }
    }

    /// The memory as words.
    pub(crate) fn words(&mut self) -> &mut [u64] {
        // SAFETY: `count` words from `words` on lie inside the mapping, zeroed by the system, exclusively borrowed.
        unsafe { std::slice::from_raw_parts_mut(self.words, self.count) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: exactly what was mapped.
        unsafe { libc::munmap(self.base, self.mapped) };
    }
}

/// Lines to be read at random, and a cycle through all of them.
pub(crate) struct Limit {
    pages: Pages,
    picks: Vec<u32>,
    next: usize,
}

impl Limit {
    /// For an array of `bytes` bytes and chunks of `chunk` queries.
    pub(crate) fn new(bytes: usize, chunk: usize) -> Limit {
        let mut random = Random::new(3);
        let mut pages = Pages::new(bytes);
        let words = pages.words();
        let lines = words.len() / 8;
        let mut order: Vec<u32> = (0..lines as u32).collect();
        for i in (1..lines).rev() {
            order.swap(i, random.below(i as u64) as usize);
        }
        for (line, &next) in order.iter().enumerate() {
            words[line * 8] = u64::from(next) * 8;
        }
        let picks = (0..64 * chunk).map(|_| random.below(lines as u64) as u32).collect();
        Limit { pages, picks, next: 0 }
    }

    /// Reads `count` random lines.
    pub(crate) fn read(&mut self, out: &mut [usize]) {
        let start = self.next;
        self.next = (start + out.len()) % (self.picks.len() - out.len() + 1);
        let picks = &self.picks[start..start + out.len()];
        let words = self.pages.words();
        let ahead = picks[AHEAD..].iter().chain(core::iter::repeat_n(&0, AHEAD));
        for ((&pick, &later), answer) in picks.iter().zip(ahead).zip(out) {
            prefetch(words, later as usize * 8);
            *answer = words[pick as usize * 8] as usize;
        }
    }

    /// Follows the cycle for `steps` steps from `from` on.
    pub(crate) fn walk(&mut self, steps: usize) -> usize {
        let words = self.pages.words();
        (0..steps).fold(0, |at, _| words[at] as usize)
    }
}

/// Reads between asking for a line and reading it.
const AHEAD: usize = 64;

#[inline(always)]
fn prefetch(words: &[u64], at: usize) {
    let word = words.as_ptr().wrapping_add(at);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch of any address is harmless.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(word.cast())
    };
    #[cfg(not(target_arch = "x86_64"))]
    let _ = word;
}
