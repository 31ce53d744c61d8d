//! The auxiliary vector: facts that the kernel gives to a program at its start.
//!
//! Source: `getauxval(3)`.

use super::memory;
use std::collections::HashMap;

const AT_PHDR: u64 = 3;
const AT_ENTRY: u64 = 9;
const AT_HWCAP2: u64 = 26;
const AT_SYSINFO_EHDR: u64 = 33;

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
        self.word(AT_PHDR)
    }

    /// Address of the executable's first instruction.
    pub(crate) fn entry(&self) -> u64 {
        self.word(AT_ENTRY)
    }

    /// The second set of the processor's abilities (`AT_HWCAP2`), as bits.
    pub(crate) fn abilities(&self) -> u64 {
        self.word(AT_HWCAP2)
    }

    /// Address of the vdso.
    pub(crate) fn vdso(&self) -> u64 {
        self.word(AT_SYSINFO_EHDR)
    }
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
