//! Writes jumps over the entries of functions, and the trampolines that they lead to.
//!
//! **The problem.** Code must change in a process that may be running, and the host is not its
//! tracer.
//!
//! **The idea.** `/proc/PID/mem` can write where the program may only read. A module is patched
//! before any of its code runs: at the exec, or when the dynamic linker has mapped it and not
//! called it yet. The trampoline is written first, then the jump. Trampolines are placed one after
//! the other in two zones, near the executable and near the libraries.
//!
//! **Locking.** To turn an increment of a thread's own block into a locked increment of the common
//! block, the host replaces its two prefixes, one byte after the other:
//!
//! ```text
//!   66 65 inc [counter]     own block             (66 has no effect)
//!   f0 65 inc [counter]     own block, locked
//!   f0 3e inc [counter]     common block, locked  (3e has no effect)
//! ```
//!
//! **Invariants.** Threads may run during these writes: each of the three instructions counts
//! exactly. A jump never leads to an unwritten trampoline. A module that was unmapped and mapped
//! again has lost its jumps, so one of its entries is checked before it counts as patched.

use super::birth::Births;
use super::plan::{Finder, ModuleInfo, ProbeRefusal};
use super::prologue::{jump, Prologue, PATCH_BYTES, READ_BYTES};
use super::sweep::Sweep;
use crate::profile::Module;
use crate::target::memory;
use assembler::{Assembler, Memory, Size};
use std::collections::{BTreeMap, HashMap};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The first prefix of an increment of an own block: operand size, which has no effect with REX.W.
const IDLE: u8 = 0x66;
/// The first prefix of a locked increment: `lock`.
const LOCK: u8 = 0xf0;
/// The second prefix of an increment of an own block: `gs`.
const OWN_BLOCK: u8 = 0x65;
/// The second prefix of an increment of the common block: `ds`, which has no effect in 64-bit code.
const COMMON_BLOCK: u8 = 0x3e;
/// The most modules whose facts are kept, for programs that are executed again and again.
const MODULES_KEPT_MAX: usize = 512;
/// Trampolines begin at multiples of this.
const ALIGN: u64 = 16;
/// An upper bound of a trampoline's length.
const TRAMPOLINE_BYTES_MAX: u64 = 2048;

/// The state of a counter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ProbeState {
    /// The module of the counter's function was never mapped.
    #[default]
    Absent,
    /// The counter's function is patched and counts.
    Patched,
    /// The counter's function cannot be patched, for this reason.
    Refused(ProbeRefusal),
}

/// A range of the target's memory for trampolines.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrampolineZone {
    pub(super) start: u64,
    pub(super) next: u64,
    pub(super) end: u64,
}

/// The kind of increments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Increment {
    /// Increments of the thread's own block.
    Own,
    /// Locked increments of the common block, by any number of threads.
    Locked,
}

/// Facts about a module at its address; found once for all images of a run.
pub(super) struct ModuleFacts {
    pub(super) known: ModuleInfo,
    pub(super) births: OnceLock<Births>,
    sweep: OnceLock<Sweep>,
}

/// The facts about all modules of a run, and the finder.
pub(super) struct ModuleIndex {
    finder: Box<dyn Finder>,
    facts: HashMap<(PathBuf, u64), Arc<ModuleFacts>>,
}

impl ModuleIndex {
    pub(super) fn new(finder: Box<dyn Finder>) -> SharedIndex {
        Arc::new(Mutex::new(ModuleIndex { finder, facts: HashMap::new() }))
    }

    fn facts(&mut self, module: &Module) -> Arc<ModuleFacts> {
        if self.facts.len() > MODULES_KEPT_MAX {
            self.facts.clear();
        }
        let key = (module.path.clone(), module.start);
        let finder = &mut self.finder;
        let read = || {
            let known = finder.known(module);
            Arc::new(ModuleFacts { known, births: OnceLock::new(), sweep: OnceLock::new() })
        };
        self.facts.entry(key).or_insert_with(read).clone()
    }
}

/// The index, shared by the images of a run.
pub(super) type SharedIndex = Arc<Mutex<ModuleIndex>>;

/// All patches of one process image.
pub(super) struct Patcher {
    pub(super) index: SharedIndex,
    /// Address of the counters in the target.
    base: u64,
    /// Offset of each counter.
    offsets: Arc<[u32]>,
    zones: Vec<TrampolineZone>,
    pub(super) states: Vec<ProbeState>,
    pub(super) increment: Increment,
    /// Addresses of the increments of own blocks.
    prefixes: Vec<u64>,
    /// For each module that was patched, one entry that was patched, if any.
    patched: HashMap<(PathBuf, u64), Option<u64>>,
}

impl Patcher {
    pub(super) fn new(index: SharedIndex, offsets: Arc<[u32]>, increment: Increment) -> Patcher {
        let states = vec![ProbeState::Absent; offsets.len()];
        let (zones, prefixes, patched) = (Vec::new(), Vec::new(), HashMap::new());
        Patcher { index, base: 0, offsets, zones, states, increment, prefixes, patched }
    }

    /// Whether the address is in a trampoline.
    pub(super) fn has_trampoline(&self, address: u64) -> bool {
        self.zones.iter().any(|zone| (zone.start..zone.next).contains(&address))
    }

    /// Begins a new address space with counters at `base`.
    pub(super) fn begin(&mut self, base: u64, zones: Vec<TrampolineZone>) {
        (self.base, self.zones) = (base, zones);
        self.prefixes.clear();
        self.patched.clear();
    }

    /// The entry of an exported function of `module`.
    pub(super) fn entry(&mut self, module: &Module, name: &str) -> Option<u64> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner).finder.entry(module, name)
    }

    /// The facts about `module`.
    pub(super) fn facts(&mut self, module: &Module) -> Arc<ModuleFacts> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner).facts(module)
    }

    /// Patches the wanted functions of `module`, unless it is patched already.
    pub(super) fn module(&mut self, pid: i32, module: &Module) {
        let facts = self.facts(module);
        let wanted = &facts.known.wanted;
        let key = (module.path.clone(), module.start);
        let patched = self.patched.get(&key).copied().flatten();
        if wanted.is_empty() || patched.is_some_and(|entry| is_jump(pid, entry)) {
            return;
        }
        let first = match open(pid) {
            Ok(memory) => self.functions(pid, &memory, module, &facts),
            Err(error) => {
                let why = error.to_string();
                wanted
                    .iter()
                    .for_each(|request| self.refuse(request.counter, ProbeRefusal::NotWritable(why.clone())));
                None
            }
        };
        self.patched.insert(key, first);
    }

    /// Patches the functions of one module; returns an entry that was patched.
    fn functions(&mut self, pid: i32, memory: &File, module: &Module, facts: &ModuleFacts) -> Option<u64> {
        let known = &facts.known;
        let mut code = vec![0; (module.end - module.start) as usize];
        let got = memory::read_target(pid, module.start, &mut code);
        code.truncate(got);
        // Functions at one address share a probe, which increments the first one's counter.
        let wanted: BTreeMap<u64, usize> =
            known.wanted.iter().rev().map(|request| (request.entry, request.counter)).collect();
        let entries: Vec<u64> = wanted.keys().copied().collect();
        let sweep = facts.sweep.get_or_init(|| sweep(&code, module, known, &entries));
        let mut first = None;
        for (&entry, &counter) in &wanted {
            let offset = self.offsets[counter];
            let increment = increment(self.increment, self.base + u64::from(offset));
            match self.patch(memory, &code, module, known, sweep, entry, &increment) {
                Ok(trampoline) => {
                    if self.increment == Increment::Own {
                        self.prefixes.push(trampoline);
                    }
                    self.states[counter] = ProbeState::Patched;
                    first = Some(entry);
                }
                Err(reason) => self.refuse(counter, reason),
            }
        }
        first
    }

    fn refuse(&mut self, counter: usize, reason: ProbeRefusal) {
        self.states[counter] = ProbeState::Refused(reason);
    }

    /// Writes one probe; returns the address of its trampoline.
    #[allow(clippy::too_many_arguments, reason = "all of these describe the one function that is patched")]
    fn patch(
        &mut self,
        memory: &File,
        code: &[u8],
        module: &Module,
        known: &ModuleInfo,
        sweep: &Sweep,
        entry: u64,
        before: &[u8],
    ) -> Result<u64, ProbeRefusal> {
        // An entry outside the module's mapped code cannot be patched.
        let at = entry.checked_sub(module.start).map_or(usize::MAX, |at| at as usize);
        let bytes =
            code.get(at..).filter(|bytes| bytes.len() >= PATCH_BYTES).ok_or(ProbeRefusal::OutOfReach)?;
        let mut head = bytes[..bytes.len().min(READ_BYTES)].to_vec();
        head.resize(READ_BYTES, 0);
        let prologue = Prologue::read(&head, entry, room(known, module, entry))?;
        if let Some(&from) = sweep.inside.get(&entry) {
            return Err(ProbeRefusal::JumpInside(from));
        }
        if sweep.indirect.contains(&entry) && !prologue.runs_once {
            return Err(ProbeRefusal::IndirectJump);
        }
        self.redirect(memory, entry, before, &prologue)
    }

    /// Writes a trampoline with the code `before` and the prologue, then the jump to it. Returns
    /// the trampoline's address.
    pub(super) fn redirect(
        &mut self,
        memory: &File,
        entry: u64,
        before: &[u8],
        prologue: &Prologue,
    ) -> Result<u64, ProbeRefusal> {
        let zone = self
            .zones
            .iter_mut()
            .filter(|zone| zone.end - zone.next > TRAMPOLINE_BYTES_MAX)
            .min_by_key(|zone| zone.start.abs_diff(entry));
        let zone = zone.ok_or(ProbeRefusal::OutOfReach)?;
        let trampoline = zone.next;
        let mut out = before.to_vec();
        prologue.emit(&mut out, trampoline)?;
        let mut there = Vec::new();
        jump(&mut there, entry, trampoline)?;
        let failed = |error: std::io::Error| ProbeRefusal::NotWritable(error.to_string());
        // The trampoline comes first, because the jump must never lead to unwritten memory.
        memory.write_all_at(&out, trampoline).map_err(failed)?;
        memory.write_all_at(&there, entry).map_err(failed)?;
        zone.next += (out.len() as u64).next_multiple_of(ALIGN);
        Ok(trampoline)
    }

    /// Turns all increments of process `pid` into locked ones, and makes later ones of the image
    /// locked.
    pub(super) fn lock(&mut self, pid: i32) {
        self.increment = Increment::Locked;
        if let Ok(memory) = open(pid) {
            for &prefix in &self.prefixes {
                // This fails only if the process has ended, and then it counts nothing more.
                let _ = memory.write_all_at(&[LOCK], prefix);
                let _ = memory.write_all_at(&[COMMON_BLOCK], prefix + 1);
            }
        }
    }
}

/// Opens the target's memory, also for writing to pages that the target may only read.
pub(super) fn open(pid: i32) -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).open(format!("/proc/{pid}/mem"))
}

/// Whether a jump stands at `entry`.
fn is_jump(pid: i32, entry: u64) -> bool {
    let mut byte = [0];
    memory::read_target(pid, entry, &mut byte) == 1 && byte == [0xe9]
}

/// The number of bytes from `entry` to the next function, the next section, or the module's end.
/// Between sections there is padding.
fn room(known: &ModuleInfo, module: &Module, entry: u64) -> u64 {
    // The nearest of the three limits.
    let next = known.starts.get(known.starts.partition_point(|&start| start <= entry)).copied();
    let sections = known.text.iter().map(|text| text.start).filter(|&start| start > entry);
    sections.chain(next).min().unwrap_or(module.end) - entry
}

/// Searches each section of code for branches into the first bytes of functions.
fn sweep(code: &[u8], module: &Module, known: &ModuleInfo, entries: &[u64]) -> Sweep {
    let mut all = Sweep::default();
    let end = module.start + code.len() as u64;
    for text in &known.text {
        let (from, to) = (text.start.max(module.start), text.end.min(end));
        if from < to {
            let piece = &code[(from - module.start) as usize..(to - module.start) as usize];
            let found = Sweep::new(piece, from, &known.starts, entries);
            all.inside.extend(found.inside);
            all.indirect.extend(found.indirect);
        }
    }
    all
}

/// `inc qword gs:[address]` or `lock inc qword [address]`, with an address below 2 GB.
fn increment(how: Increment, address: u64) -> Vec<u8> {
    let mut bytes = match how {
        Increment::Own => vec![IDLE, OWN_BLOCK],
        Increment::Locked => vec![LOCK],
    };
    let mut code = Assembler::default();
    code.increment(Size::Qword, Memory::absolute(address as i32));
    bytes.extend(code.into_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, Mnemonic, Register};

    #[test]
    fn an_increment_is_one_instruction_also_while_it_is_being_changed() {
        let decoded = |bytes: &[u8]| {
            let instruction = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE).decode();
            assert_eq!((instruction.len(), instruction.mnemonic()), (bytes.len(), Mnemonic::Inc));
            assert_eq!(
                (instruction.memory_displacement64(), instruction.memory_size().size()),
                (0x5000_1000, 8)
            );
            (instruction.has_lock_prefix(), instruction.segment_prefix() == Register::GS)
        };
        assert_eq!(decoded(&increment(Increment::Locked, 0x5000_1000)), (true, false));
        let mut own = increment(Increment::Own, 0x5000_1000);
        assert_eq!(decoded(&own), (false, true));
        own[0] = LOCK;
        assert_eq!(decoded(&own), (true, true));
        own[1] = COMMON_BLOCK;
        assert_eq!(decoded(&own), (true, false));
    }
}
