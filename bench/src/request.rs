//! What a program of benchmarks tells `lightfoot bench`: requests by Valgrind's sequence for amd64.
//!
//! Natively the sequence does nothing. Other tools that know it give codes that they do not know
//! their default answer, 0.

use std::ffi::{CString, NulError};

/// Asks whether `lightfoot bench` runs this process.
const RUNS: u64 = 0x4c46_0000;
/// Names the benchmark that this process is about.
const NAMES: u64 = 0x4c46_0001;
/// Says that the next region `benchmark` counts.
const STARTS: u64 = 0x4c46_0002;

/// Whether `lightfoot bench` runs this process.
pub(crate) fn is_counted() -> bool {
    ask([RUNS, 0, 0, 0, 0, 0]) == 1
}

/// A benchmark as it is announced.
pub(crate) struct Announcement {
    name: CString,
    file: CString,
    line: u32,
}

impl Announcement {
    /// A benchmark with this name, written at this place.
    pub(crate) fn new(name: &str, (file, line): (&str, u32)) -> Result<Announcement, NulError> {
        Ok(Announcement { name: CString::new(name)?, file: CString::new(file)?, line })
    }

    /// Says that this process is about this benchmark.
    pub(crate) fn announce(&self) {
        let (name, file) = (self.name.as_ptr() as u64, self.file.as_ptr() as u64);
        ask([NAMES, name, file, self.line.into(), 0, 0]);
    }
}

/// Says that the next region `benchmark` counts; those before it warm up.
pub(crate) fn start() {
    ask([STARTS, 0, 0, 0, 0, 0]);
}

/// Makes a request; returns its answer, 0 natively.
fn ask(words: [u64; 6]) -> u64 {
    let mut answer = 0u64;
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    // SAFETY: `rdi` is rotated by 128 bits in all, which leaves it as it was, and `rbx` is
    // exchanged with itself. Who knows the sequence reads the words, which live until it is over,
    // and the texts that they point to, and writes `rdx`.
    unsafe {
        std::arch::asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") words.as_ptr(),
            inout("rdx") answer,
            options(nostack)
        );
    }
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    {
        answer = words[0] & answer;
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_answers_natively() {
        assert!(!is_counted());
        Announcement::new("name", ("file", 1)).unwrap().announce();
        start();
        assert!(Announcement::new("na\0me", ("file", 1)).is_err());
    }
}
