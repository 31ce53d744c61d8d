//! The memory of probes in the program: counters and trampolines; and [`Probes`], the probes of an
//! image.
//!
//! The shared memory is one file with four parts:
//!
//! ```text
//!   │ mailbox │ common block (locked) │ owners of blocks │ block 1 │ block 2 │ …
//!   ◀────────────── below 2 GB, by 32-bit addresses ────▶◀── anywhere, by the base of gs ──▶
//! ```
//!
//! Each living thread has one of the numbered blocks. Trampolines lie below the executable and
//! 1.5 GB below the libraries: a program would have to map more than a gigabyte before the kernel's
//! search for free memory reached them.

use super::birth::{BaseSetting, CounterBlocks};
use super::mailbox;
use super::patch::{Increment, ModuleIndex, Patcher, ProbeState, TrampolineZone};
use super::plan::ProbePlan;
use crate::error::Error;
use crate::profile::Module;
use crate::target::auxiliary::Auxiliary;
use crate::target::inject::{Injector, WantedMapping};
use crate::target::layout::Range;
use crate::target::mappings;
use crate::target::memory::Shared;
use crate::target::modules::TextWatcher;
use crate::target::ptrace;
use std::cell::RefCell;
use std::collections::HashSet;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

const MB: u64 = 1 << 20;
const ZONE_BYTES: u64 = 16 * MB;
/// Possible addresses of the mailbox and the common block.
const LOW: [u64; 5] = [0x5000_0000, 0x4800_0000, 0x3000_0000, 0x2000_0000, 0x1000_0000];
/// Possible addresses of the trampolines of an executable at a low address.
const NEAR_LOW: [u64; 4] = [0x3800_0000, 0x4000_0000, 0x2800_0000, 0x6800_0000];
/// Possible addresses of the threads' blocks: below executables, where sanitizers map nothing
/// (`layout`), or between executables and libraries.
const FAR: [u64; 3] = [0x5540_0000_0000, 0x2000_0000_0000, 0x3800_0000_0000];
/// The most blocks of threads.
const BLOCKS_MAX: u64 = 1024;
/// Bytes of address space for all blocks, as far as [`BLOCKS_MIN`] and [`BLOCKS_MAX`] allow.
const BLOCKS_BYTES: u64 = 4 << 30;
/// The fewest blocks of threads.
const BLOCKS_MIN: u64 = 128;
const PAGE: u64 = 4096;

/// The parts of the shared memory.
#[derive(Clone, Copy, Debug)]
struct MemoryParts {
    /// Bytes of a block.
    block: u64,
    /// Blocks of threads.
    blocks: u64,
}

impl MemoryParts {
    fn new(offsets: &[u32], increment: Increment) -> MemoryParts {
        let last = offsets.iter().max().copied().unwrap_or(0);
        let block = (u64::from(last) + 8).next_multiple_of(PAGE);
        let blocks = match increment {
            Increment::Own => (BLOCKS_BYTES / block).clamp(BLOCKS_MIN, BLOCKS_MAX),
            Increment::Locked => 0,
        };
        MemoryParts { block, blocks }
    }

    /// Offset of the table of owners.
    fn owners(self) -> u64 {
        mailbox::BYTES as u64 + self.block
    }

    /// Offset of the first thread's block: the end of the part that must lie below 2 GB.
    fn own(self) -> u64 {
        self.owners() + (self.blocks * 4).next_multiple_of(PAGE)
    }

    fn bytes(self) -> u64 {
        self.own() + self.blocks * self.block
    }
}

/// The counters of a run, for reading.
#[derive(Clone)]
pub struct ProbeCounters {
    shared: Arc<Shared>,
    offsets: Arc<[u32]>,
    parts: MemoryParts,
}

impl ProbeCounters {
    /// The number of counters.
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Whether there are no counters.
    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    /// Offset of counter `number` in the common block, from the beginning of the mailbox.
    pub(super) fn offset(&self, number: usize) -> Option<u64> {
        Some(mailbox::BYTES as u64 + u64::from(*self.offsets.get(number)?))
    }

    /// The value of counter `number`: the sum over all blocks. Cost: one load for each block that
    /// ever had an owner.
    pub fn read(&self, number: usize) -> u64 {
        let offset = self.offsets[number] as usize;
        let used = u64::from(self.shared.read32(mailbox::NEXT)).saturating_sub(1).min(self.parts.blocks);
        let block =
            |index: u64| self.shared.read64((self.parts.own() + index * self.parts.block) as usize + offset);
        // The program can overwrite its counters with any values, so the addition wraps.
        (0..used).map(block).fold(self.shared.read64(mailbox::BYTES + offset), u64::wrapping_add)
    }
}

impl std::fmt::Debug for ProbeCounters {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ProbeCounters").field("count", &self.offsets.len()).finish()
    }
}

impl TextWatcher for Probes {
    fn text_mapped(&mut self, pid: i32, module: &Module) {
        self.module(pid, module);
    }
}

/// Probes that the images of a run under the engine share.
pub(crate) type SharedProbes = Rc<RefCell<Probes>>;

/// The probes of a process image.
pub(crate) struct Probes {
    pub(super) patcher: Patcher,
    pub(super) shared: Arc<Shared>,
    offsets: Arc<[u32]>,
    parts: MemoryParts,
    /// Blocks whose owners have ended, for new threads.
    left: Arc<Mutex<Vec<u32>>>,
}

impl Probes {
    /// Probes for a run under the engine, where every increment is locked.
    pub(crate) fn locked(plan: ProbePlan) -> Result<Probes, Error> {
        Probes::new(plan, Increment::Locked)
    }

    /// Probes with increments of the given kind, or with locked ones if there is no address space
    /// for the threads' blocks.
    pub(super) fn new(plan: ProbePlan, increment: Increment) -> Result<Probes, Error> {
        let offsets: Arc<[u32]> = plan.placement.offsets(plan.counters).into();
        let index = ModuleIndex::new(plan.finder);
        let room = |increment| {
            let parts = MemoryParts::new(&offsets, increment);
            Shared::new(parts.bytes() as usize).map(|shared| (increment, parts, Arc::new(shared)))
        };
        let (increment, parts, shared) = room(increment).or_else(|_| room(Increment::Locked))?;
        mailbox::prepare(&shared);
        let patcher = Patcher::new(index, offsets.clone(), increment);
        Ok(Probes { patcher, shared, offsets, parts, left: Arc::default() })
    }

    /// Probes for another image of the run, which count into the same sums.
    pub(super) fn of_another(&self) -> Probes {
        let increment = if self.parts.blocks > 0 { Increment::Own } else { Increment::Locked };
        let patcher = Patcher::new(self.patcher.index.clone(), self.offsets.clone(), increment);
        let (shared, left) = (self.shared.clone(), self.left.clone());
        Probes { patcher, shared, offsets: self.offsets.clone(), parts: self.parts, left }
    }

    pub(crate) fn counters(&self) -> ProbeCounters {
        ProbeCounters { shared: self.shared.clone(), offsets: self.offsets.clone(), parts: self.parts }
    }

    pub(crate) fn states(&self) -> &[ProbeState] {
        &self.patcher.states
    }

    /// Maps the memory into the process, which stands behind its exec. Returns the mailbox's
    /// address, and the blocks of threads if there are any.
    pub(crate) fn install(&mut self, pid: i32) -> Result<(u64, Option<CounterBlocks>), Error> {
        let mapped = mappings::ranges(pid);
        let free = |start: u64, bytes: u64| {
            mapped.iter().all(|range| range.end <= start || range.start >= start + bytes)
        };
        let low_bytes = self.parts.own();
        // Choose addresses before anything is mapped: mailbox and common block below 2 GB,
        // trampolines near the executable and below the libraries.
        let low = LOW.into_iter().find(|&at| free(at, low_bytes));
        let low = low.ok_or_else(|| {
            Error::system("the program's address space below 2 GB has no room for counters")
        })?;
        let vector = Auxiliary::of(pid);
        let entry = vector.entry();
        let mut zones: Vec<u64> =
            near(&mapped, entry).into_iter().filter(|&at| free(at, ZONE_BYTES)).take(1).collect();
        let far = below_libraries(&mapped).filter(|&at| free(at, ZONE_BYTES));
        let far = far.filter(|at| !zones.contains(at));
        zones.extend(far);
        // Then map everything, by system calls that the process executes.
        let mut injector = Injector::new(pid)?;
        let at = injector.scratch();
        let fd = injector.hand_over(&self.shared.files(), at)?[0];
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_FIXED_NOREPLACE | libc::MAP_NORESERVE;
        let low_part = WantedMapping { address: low, bytes: low_bytes, protection, flags, fd, offset: 0 };
        let shared = injector.map(low_part);
        injector.keep_out_of_core(low, low_bytes);
        // Bit 1 says that programs may execute `wrgsbase`.
        let writes = vector.abilities() & 2 != 0;
        let setting = if writes { BaseSetting::Instruction } else { BaseSetting::Call };
        let own = self.blocks(&mut injector, low_part, free, setting);
        // The first thread needs a block now; without one, increments are locked.
        let block = own.and_then(|_| self.owned(pid));
        let own = own.filter(|_| block.is_some());
        injector.close(fd);
        let code = zones.iter().try_for_each(|&at| {
            injector.map(trampolines(at)).map(|()| injector.keep_out_of_core(at, ZONE_BYTES))
        });
        // The base of `gs` selects the first thread's block from its first instruction on.
        injector.finish(own.zip(block).map(|(blocks, block)| blocks.base(block)));
        shared.and(code)?;
        if own.is_none() {
            self.patcher.increment = Increment::Locked;
        }
        let zone = |&start: &u64| TrampolineZone { start, next: start, end: start + ZONE_BYTES };
        self.patcher.begin(low + mailbox::BYTES as u64, zones.iter().map(zone).collect());
        Ok((low, own))
    }

    /// Maps the threads' blocks; `None` if the process has no room for them.
    fn blocks(
        &self,
        injector: &mut Injector,
        low: WantedMapping,
        free: impl Fn(u64, u64) -> bool,
        setting: BaseSetting,
    ) -> Option<CounterBlocks> {
        let bytes = self.parts.blocks * self.parts.block;
        if bytes == 0 || self.patcher.increment == Increment::Locked {
            return None;
        }
        let address = FAR.into_iter().find(|&at| free(at, bytes))?;
        injector.map(WantedMapping { address, bytes, offset: self.parts.own(), ..low }).ok()?;
        injector.keep_out_of_core(address, bytes);
        Some(CounterBlocks {
            count: self.parts.blocks as u32,
            bytes: self.parts.block as u32,
            owners: low.address + self.parts.owners(),
            first_base: address.wrapping_sub(low.address + mailbox::BYTES as u64),
            setting,
        })
    }

    /// Offset of the word that holds the number of a block's owner.
    fn owner(&self, block: u32) -> usize {
        (self.parts.owners() + 4 * u64::from(block - 1)) as usize
    }

    /// The block of a thread: the one that it owns, or a new one. In a PID namespace another thread
    /// may have the same number, so the thread always gets a new block.
    fn owned(&self, tid: i32) -> Option<u32> {
        if let [_, .., own] = ptrace::numbers(tid)[..] {
            return self.take(own);
        }
        let count = self.parts.blocks as u32;
        let used = self.shared.read32(mailbox::NEXT).saturating_sub(1).min(count);
        let own = (1..=used).find(|&block| self.shared.read32(self.owner(block)) == tid as u32);
        own.or_else(|| self.take(tid))
    }

    /// A block for a new thread: one that never had an owner, or one whose owner has ended. Such a
    /// block keeps its counts, because a reader adds up all owners.
    pub(super) fn take(&self, tid: i32) -> Option<u32> {
        let found = self.fresh().or_else(|| self.inherited())?;
        self.shared.write32(self.owner(found), tid as u32);
        Some(found)
    }

    /// A block that never had an owner, if one is left.
    fn fresh(&self) -> Option<u32> {
        loop {
            let next = self.shared.read32(mailbox::NEXT);
            if next > self.parts.blocks as u32 {
                return None;
            }
            // New threads take numbers from this word too, so the exchange may fail.
            if self.shared.exchange32(mailbox::NEXT, next, next + 1) {
                return Some(next);
            }
        }
    }

    /// A block whose owner has ended, if there is one.
    fn inherited(&self) -> Option<u32> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        if left.is_empty() {
            // Owners' numbers are those that threads have in their own PID namespaces.
            let living = living();
            let is_left = |&block: &u32| {
                let tid = self.shared.read32(self.owner(block));
                // If the word is 0, a thread has taken the block and not written its number yet.
                tid != 0 && !living.contains(&(tid as i32))
            };
            *left = (1..=self.parts.blocks as u32).filter(is_left).collect();
        }
        left.pop()
    }

    /// Patches `module`, whose code is about to run. Functions can be found in files only.
    pub(crate) fn module(&mut self, pid: i32, module: &Module) {
        if module.path.is_absolute() {
            self.patcher.module(pid, module);
        }
    }
}

/// The numbers of all living threads, each in its own PID namespace.
fn living() -> HashSet<i32> {
    let numbers = |folder: &Path| -> Vec<i32> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
    };
    let tasks = |pid: i32| numbers(&Path::new("/proc").join(format!("{pid}/task")));
    let all = numbers(Path::new("/proc")).into_iter().flat_map(tasks);
    all.flat_map(|tid| ptrace::numbers(tid).last().copied()).collect()
}

/// The mapping of a zone for trampolines at `address`.
fn trampolines(address: u64) -> WantedMapping {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE | libc::MAP_NORESERVE;
    let protection = libc::PROT_READ | libc::PROT_EXEC;
    WantedMapping { address, bytes: ZONE_BYTES, protection, flags, fd: u64::MAX, offset: 0 }
}

/// Possible addresses of the executable's trampolines.
fn near(mapped: &[Range], entry: u64) -> Vec<u64> {
    let image =
        mapped.iter().filter(|range| range.start <= entry).map(|range| range.start).max().unwrap_or(0);
    if image < 1 << 32 {
        return NEAR_LOW.to_vec();
    }
    vec![(image - 416 * MB) & !(2 * MB - 1)]
}

/// The address for the libraries' trampolines, if there are libraries.
fn below_libraries(mapped: &[Range]) -> Option<u64> {
    let stack = mapped.iter().find(|range| range.stack).map_or(u64::MAX, |range| range.start);
    let top = mapped.iter().filter(|range| range.end <= stack).map(|range| range.end).max();
    top.filter(|&top| top > 1 << 40).map(|top| (top - 1536 * MB) & !(2 * MB - 1))
}
