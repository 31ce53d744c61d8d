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
    const PLATFORM: u64 = 15;
    pub(crate) const HWCAP: u64 = 16;
    const RANDOM: u64 = 25;
    pub(crate) const HWCAP2: u64 = 26;
    pub(crate) const RSEQ_FEATURE_SIZE: u64 = 27;
    pub(crate) const RSEQ_ALIGN: u64 = 28;
    const EXECUTABLE: u64 = 31;
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
/// Each string of a rebuilt block begins at a multiple of this, so that no string's length moves
/// the others within their lines.
const STRING_BYTES: u64 = 64;
/// The stack pointer of a rebuilt block is a multiple of this, less what a layout asks for.
const STACK_STEP_BYTES: u64 = 64 << 10;

/// The words that a program finds at its stack pointer when it starts.
///
/// ```text
///   count │ arguments… │ 0 │ environment… │ 0 │ vector: key, value … │ 0, 0
/// ```
pub(crate) struct StartBlock {
    pid: i32,
    stack: u64,
    /// Addresses of the arguments, then of the environment's strings.
    arguments: Vec<u64>,
    environment: Vec<u64>,
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
    /// Reads the block of process `pid`, whose stack pointer is `stack`. `None` if it cannot be
    /// read.
    pub(crate) fn read(pid: i32, stack: u64) -> Option<StartBlock> {
        let words = words_from(pid, stack);
        let count = usize::try_from(*words.first()?).ok()?;
        // The environment begins behind the arguments and their zero, and ends with a zero.
        let arguments = words.get(1..count.checked_add(1)?)?.to_vec();
        let rest = words.get(count + 2..)?;
        let end = rest.iter().position(|&word| word == 0)?;
        let environment = rest[..end].to_vec();
        let pairs = rest[end + 1..].chunks_exact(2).map(|pair| (pair[0], pair[1]));
        let vector = pairs.take_while(|&(key, _)| key != Key::END).collect();
        Some(StartBlock { pid, stack, arguments, environment, vector })
    }

    /// Changes entries of the vector.
    pub(crate) fn change(&mut self, how: impl Fn(u64) -> Change) {
        for entry in &mut self.vector {
            match how(entry.0) {
                Change::Nothing => {}
                Change::To(value) => entry.1 = value,
                Change::Remove => *entry = (Key::IGNORE, 0),
            }
        }
    }

    /// Writes the block where it was; returns the stack pointer.
    pub(crate) fn write_in_place(&self) -> u64 {
        memory::write_target(self.pid, self.stack, &bytes_of(&self.words()));
        self.stack
    }

    /// Writes the block, its strings and these random bytes anew, below the old ones, so that their
    /// addresses do not depend on the strings' lengths. The stack begins `shift` bytes lower.
    /// Returns the new stack pointer, or `None` if there is no room.
    ///
    /// ```text
    ///   stack pointer │ words │ random bytes │ file, platform │ arguments… │ environment… │ old block
    ///   ▲ multiple of 64 KiB, less the shift    each string at a multiple of 64 bytes
    /// ```
    pub(crate) fn rebuild(mut self, random: [u8; 16], shift: u64) -> Option<u64> {
        let in_vector = [Key::EXECUTABLE, Key::PLATFORM].map(|key| self.value(key));
        let strings: Vec<u64> = in_vector.into_iter().flatten().chain(self.strings()).collect();
        let texts: Vec<Vec<u8>> = strings.iter().map(|&at| text_at(self.pid, at)).collect::<Option<_>>()?;
        let aligned = |bytes: u64| bytes.next_multiple_of(STRING_BYTES);
        let words_bytes = aligned(8 * self.words().len() as u64);
        let texts_bytes: u64 = texts.iter().map(|text| aligned(text.len() as u64)).sum();
        let total = words_bytes + STRING_BYTES + texts_bytes;
        let top = self.stack.checked_sub(total + shift)?;
        let stack = (top + shift) / STACK_STEP_BYTES * STACK_STEP_BYTES - shift;
        // All strings go into one piece of memory; each pointer to one follows it.
        let mut piece = random.to_vec();
        let first = stack + words_bytes;
        let mut moved = HashMap::new();
        for (at, text) in strings.iter().zip(&texts) {
            piece.resize(piece.len().next_multiple_of(STRING_BYTES as usize), 0);
            moved.insert(*at, first + piece.len() as u64);
            piece.extend_from_slice(text);
        }
        let all = self.arguments.iter_mut().chain(&mut self.environment);
        all.for_each(|at| *at = moved[at]);
        for (key, value) in &mut self.vector {
            match *key {
                Key::RANDOM => *value = first,
                Key::EXECUTABLE | Key::PLATFORM => *value = moved[value],
                _ => {}
            }
        }
        let mut bytes = bytes_of(&self.words());
        bytes.resize(words_bytes as usize, 0);
        bytes.extend(piece);
        (memory::write_target(self.pid, stack, &bytes) == bytes.len()).then_some(stack)
    }

    fn value(&self, key: u64) -> Option<u64> {
        self.vector.iter().find(|entry| entry.0 == key).map(|entry| entry.1)
    }

    fn strings(&self) -> impl Iterator<Item = u64> + '_ {
        self.arguments.iter().chain(&self.environment).copied()
    }

    /// The block's words.
    fn words(&self) -> Vec<u64> {
        let mut words = vec![self.arguments.len() as u64];
        words.extend(&self.arguments);
        words.push(0);
        words.extend(&self.environment);
        words.push(0);
        words.extend(self.vector.iter().flat_map(|&(key, value)| [key, value]));
        words.extend([Key::END, 0]);
        words
    }
}

fn bytes_of(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The string at an address, with its NUL.
fn text_at(pid: i32, address: u64) -> Option<Vec<u8>> {
    const PIECE: u64 = 4096;
    let mut text = Vec::new();
    loop {
        let at = address + text.len() as u64;
        let mut piece = vec![0u8; (PIECE - at % PIECE) as usize];
        let got = memory::read_target(pid, at, &mut piece);
        if let Some(end) = piece[..got].iter().position(|&byte| byte == 0) {
            text.extend_from_slice(&piece[..=end]);
            return Some(text);
        }
        if got < piece.len() || text.len() > BLOCK_BYTES_MAX {
            return None;
        }
        text.extend(piece);
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
