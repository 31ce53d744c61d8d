//! Marks: places of a program at which its threads stop, so that a run can begin, end and divide
//! what it counts there.
//!
//! | mark | in the program |
//! |---|---|
//! | request | Valgrind's sequence for amd64, with six words in memory |
//! | region | the `nop` and jump of crate `region`, with a name |
//! | function | its entry, and the return from it, for functions that the marker names |
//!
//! A [`Marker`] is told of each mark that a thread reaches and answers with [`Deed`]s. What a
//! thread counts between them stands in [`PartCounts`], and an observer is told of them in the
//! order of the thread's records. Natively a mark has no effect. **Leaves out** what requests mean,
//! which only a marker knows.

use crate::profile::Module;
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

/// What happens to the counts of threads at a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// This thread counts from here on. Threads begin without counting.
    Open(u32),
    /// This thread counts no longer.
    Close(u32),
    /// What this thread, or every thread of the image, has counted since its last cut becomes a
    /// part.
    Cut(Option<u32>),
    /// What this thread, or every thread of the image, has counted since its last cut is forgotten.
    Drop(Option<u32>),
    /// The simulated caches of the image are emptied.
    Empty,
    /// Caches are not simulated from here on, in all threads of the image.
    Rest,
    /// Caches are simulated again, in all threads of the image.
    Work,
}

/// A mark that a thread has reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Valgrind's client request, with its six words: a code and five arguments. The answer is
    /// `default` unless the marker gives another one.
    Request {
        /// The code and the arguments.
        words: [u64; 6],
        /// The answer if nobody knows the request.
        default: u64,
        /// The thread's registers by their DWARF numbers for amd64: `rax`, `rdx`, `rcx`, `rbx`,
        /// `rsi`, `rdi`, `rbp`, `rsp`, `r8` to `r15`, and the address behind the request.
        registers: [u64; 17],
    },
    /// The function that the last [`Answer::call`] of the thread named has returned.
    Returned,
    /// A region opens.
    RegionOpens(String),
    /// A region closes.
    RegionCloses(String),
    /// A thread enters the function at this address, which has no open call in the thread.
    Enters(u64),
    /// A thread has left the function at this address.
    Leaves(u64),
}

/// How a thread came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Birth {
    /// It is the first thread of a program that was executed.
    Executed,
    /// Its image is a copy of the image of this thread.
    Forked(u32),
    /// A thread of its image made it.
    Cloned,
}

/// A thread at a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkedThread {
    /// Number of the image.
    pub image: u32,
    /// Number of the thread.
    pub thread: u32,
    /// The process's number in the system.
    pub pid: i32,
}

/// The memory of the program whose thread has reached a mark.
pub trait ProgramMemory {
    /// Reads bytes from an address; returns how many could be read.
    fn read(&self, address: u64, bytes: &mut [u8]) -> usize;
    /// Writes bytes to an address; returns how many could be written.
    fn write(&self, address: u64, bytes: &[u8]) -> usize;

    /// The text with a terminating NUL at an address, up to 4096 bytes; `None` if its first byte
    /// cannot be read.
    fn text(&self, address: u64) -> Option<String> {
        let mut bytes = vec![0; 4096];
        let got = self.read(address, &mut bytes);
        bytes.truncate(got);
        let length = bytes.iter().position(|&byte| byte == 0).unwrap_or(got);
        (got > 0).then(|| String::from_utf8_lossy(&bytes[..length]).into_owned())
    }
}

/// A marker's answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The value that a request returns to the program; `None` for its default.
    pub value: Option<u64>,
    /// What happens, in this order.
    pub deeds: Vec<Deed>,
    /// Where the block that ends with a request counts.
    pub block: MarkedBlock,
    /// A function that the thread calls behind a request's deeds. It returns with its value as the
    /// request's answer, and all other registers are those of the request.
    pub call: Option<FunctionCall>,
}

/// A call that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionCall {
    /// The function's address.
    pub function: u64,
    /// Its first four arguments.
    pub arguments: [u64; 4],
}

/// Where the block that ends with a request counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MarkedBlock {
    /// Before the request's deeds, where it ran.
    #[default]
    Before,
    /// Behind the request's deeds, where callgrind's tables have it.
    Behind,
}

/// Decides what happens at marks. It is called on the thread that called the run.
pub trait Marker {
    /// What decides about [`Marker::entries`]: runs whose markers say the same share translations
    /// that are kept on disk.
    fn setting(&self) -> String;
    /// Addresses in `module` at which functions begin whose entries and returns are marks. Called
    /// once for each module, before its code runs.
    fn entries(&mut self, module: &Module) -> Vec<u64>;
    /// Whether a direct jump at `from` to `target`, both in `module`, leads into another function.
    /// Asked where calls are recorded; such jumps are recorded too.
    fn leaves_function(&mut self, _module: &Module, _from: u64, _target: u64) -> bool {
        false
    }
    /// The addresses of the function at `address`, which lies in `module`. Asked where calls are
    /// recorded: jumps by a register or memory within them are not recorded. `None` records all.
    fn function_around(&mut self, _module: &Module, _address: u64) -> Option<Range<u64>> {
        None
    }
    /// Whether the function at `address`, which lies in `module`, is a stub of the linkage table.
    /// Asked where calls are recorded: of the jumps of stubs, few are recorded
    /// ([`StubTargets`](crate::call::StubTargets)).
    fn is_stub(&mut self, _module: &Module, _address: u64) -> bool {
        false
    }
    /// After how many instructions a block ends even without a control transfer, if that is less
    /// than [`event::BLOCK_INSTRUCTIONS_MAX`].
    fn block_instructions_max(&self) -> usize {
        event::BLOCK_INSTRUCTIONS_MAX
    }
    /// A thread begins; the deeds come before everything that it counts.
    fn starts(&mut self, thread: &MarkedThread, birth: Birth) -> Vec<Deed>;
    /// A thread has reached a mark.
    fn reached(&mut self, thread: &MarkedThread, mark: &Mark, memory: &dyn ProgramMemory) -> Answer;
}

/// The marker of a run, which its caller keeps as well.
pub type SharedMarker = Rc<RefCell<dyn Marker>>;

/// What one thread of an image counted between two cuts. Blocks are numbered as in the image's
/// profile; complex references, which only records count, are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartCounts {
    /// Number of the thread.
    pub thread: u32,
    /// The number of cuts of the image before the one that made this part; for what was counted
    /// behind the last cut, the number of all cuts.
    pub cut: u32,
    /// Blocks that ran, and how often.
    pub executions: Vec<(u32, u64)>,
    /// Of these blocks, those whose conditional branch was taken, and how often.
    pub taken: Vec<(u32, u64)>,
    /// As in [`Profile::cut`](crate::Profile::cut).
    pub left_early: Vec<(u32, u32, u64)>,
    /// Blocks that ran and are not among `executions`, because a request closed what the thread
    /// counts and has them behind it ([`MarkedBlock::Behind`]).
    pub aside: Vec<(u32, u64)>,
}
