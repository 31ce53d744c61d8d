//! The auxiliary vector: facts that the kernel gives to a program at its start.
//!
//! Source: `getauxval(3)`.

use super::memory;
use std::collections::HashMap;

/// Keys of the vector's entries.
pub(crate) struct Key;

impl Key {
    const END: u64 = 0;
    const IGNORE: u64 = 1;
    const PHDR: u64 = 3;
    const ENTRY: u64 = 9;
    pub(crate) const HWCAP: u64 = 16;
    pub(crate) const RANDOM: u64 = 25;
    pub(crate) const HWCAP2: u64 = 26;
    pub(crate) const RSEQ_FEATURE_SIZE: u64 = 27;
    pub(crate) const RSEQ_ALIGN: u64 = 28;
    pub(crate) const SYSINFO_EHDR: u64 = 33;
    pub(crate) const MINSIGSTKSZ: u64 = 51;
}

/// The auxiliary vector of a process. Entries that it lacks read as 0.
pub(crate) struct Auxiliary(HashMap<u64, u64>);

impl Auxiliary {
    /// Reads the vector of process `pid`; it is empty if the process is gone.
    pub(crate) fn of(pid: i32) -> Auxiliary {
        let bytes = std::fs::read(format!("/proc/{pid}/auxv")).unwrap_or_default();
        let word = |half: &[u8]| u64::from_le_bytes(half.try_into().expect("eight bytes"));
        Auxiliary(bytes.chunks_exact(16).map(|pair| (word(&pair[..8]), word(&pair[8..]))).collect())
    }

    fn word(&self, key: u64) -> u64 {
        self.0.get(&key).copied().unwrap_or(0)
    }

    /// Address of the executable's program headers.
    pub(crate) fn headers(&self) -> u64 {
        self.word(Key::PHDR)
    }

    /// Address of the executable's first instruction.
    pub(crate) fn entry(&self) -> u64 {
        self.word(Key::ENTRY)
    }

    /// The second set of the processor's abilities (`AT_HWCAP2`), as bits.
    pub(crate) fn abilities(&self) -> u64 {
        self.word(Key::HWCAP2)
    }

    /// Address of the vdso.
    pub(crate) fn vdso(&self) -> u64 {
        self.word(Key::SYSINFO_EHDR)
    }
}

/// The most bytes of a start block's words that are read: arguments, environment and vector.
const BLOCK_BYTES_MAX: usize = 4 << 20;

/// The words that a program finds at its stack pointer when it starts.
///
/// ```text
///   count │ arguments… │ 0 │ environment… │ 0 │ vector: key, value … │ 0, 0
/// ```
pub(crate) struct StartBlock {
    pid: i32,
    /// Address of the vector.
    vector_at: u64,
    vector: Vec<(u64, u64)>,
}

/// What happens to an entry of the vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Nothing,
    /// The entry gets this value.
    To(u64),
    /// The program ignores the entry.
    Remove,
}

impl StartBlock {
    /// Reads the block of process `pid`, whose stack pointer is `stack`. The vector is empty if the
    /// block cannot be read.
    pub(crate) fn read(pid: i32, stack: u64) -> StartBlock {
        let words = words_from(pid, stack);
        let empty = StartBlock { pid, vector_at: stack, vector: Vec::new() };
        let Some(&count) = words.first() else { return empty };
        // The environment begins behind the arguments and their zero, and ends with a zero.
        let environment = count as usize + 2;
        let Some(rest) = words.get(environment..) else { return empty };
        let Some(end) = rest.iter().position(|&word| word == 0) else { return empty };
        let first = environment + end + 1;
        let pairs = words[first..].chunks_exact(2).map(|pair| (pair[0], pair[1]));
        let vector = pairs.take_while(|&(key, _)| key != Key::END).collect();
        StartBlock { pid, vector_at: stack + 8 * first as u64, vector }
    }

    /// The value of an entry of the vector.
    pub(crate) fn value(&self, key: u64) -> Option<u64> {
        self.vector.iter().find(|entry| entry.0 == key).map(|entry| entry.1)
    }

    /// Changes the vector's entries in the program's memory.
    pub(crate) fn change(&self, how: impl Fn(u64, u64) -> Change) {
        for (index, &(key, value)) in self.vector.iter().enumerate() {
            let (key, value) = match how(key, value) {
                Change::Nothing => continue,
                Change::To(value) => (key, value),
                Change::Remove => (Key::IGNORE, 0),
            };
            let bytes: Vec<u8> = [key, value].iter().flat_map(|word| word.to_le_bytes()).collect();
            memory::write_target(self.pid, self.vector_at + 16 * index as u64, &bytes);
        }
    }
}

/// The words from `address` to the end of the stack, or as many as are read at most.
fn words_from(pid: i32, address: u64) -> Vec<u64> {
    const PAGE: u64 = 4096;
    let mut bytes = Vec::new();
    let mut at = address;
    while bytes.len() < BLOCK_BYTES_MAX {
        let mut page = vec![0u8; (PAGE - at % PAGE) as usize];
        let got = memory::read_target(pid, at, &mut page);
        bytes.extend_from_slice(&page[..got]);
        if got < page.len() {
            break;
        }
        at += got as u64;
    }
    let word = |eight: &[u8]| u64::from_le_bytes(eight.try_into().expect("eight bytes"));
    bytes.chunks_exact(8).map(word).collect()
}

/// Address of a `syscall` instruction in the vdso.
pub(crate) fn system_call_in(pid: i32, vdso: u64) -> Option<u64> {
    let mut code = vec![0u8; 8192];
    let mut got = memory::read_target(pid, vdso, &mut code);
    if got == 0 {
        got = memory::read_target(pid, vdso, &mut code[..4096]);
    }
    let at = code[..got].windows(2).position(|pair| pair == [0x0f, 0x05])?;
    Some(vdso + at as u64)
}
