//! The heap while the program runs: reads records, and keeps blocks and places.

use crate::allocator::Function;
use crate::live::{Block, LiveBlocks};
use crate::sites::{Accessed, Sites};
use crate::thread::{Caller, Entered, Thread};
use crate::word;
use event::{masked_reference, Access, Groups, Record, RecordKind, StateLayout, Step, SIZES};
use std::collections::HashMap;
use std::ops::Range;
use symbol::ByNumber;

/// Bytes of a page, to which `pvalloc` rounds.
const PAGE_BYTES: u64 = 4096;
/// No thread of a program has this number.
const NOBODY: u32 = u32::MAX;

impl Accessed {
    const NONE: Accessed = Accessed { size_bytes: 0, read_bytes: 0, written_bytes: 0, times: 0 };

    const fn new(size_bytes: u32, access: Access) -> Accessed {
        let of = Accessed { size_bytes, times: 1, ..Accessed::NONE };
        match access {
            Access::Load => Accessed { read_bytes: size_bytes, ..of },
            Access::Store => Accessed { written_bytes: size_bytes, ..of },
            Access::Prefetch => Accessed::NONE,
        }
    }
}

/// What plain records add, by the low byte of their `what`. One path for loads and stores, because
/// their order is as good as random.
const PLAIN: [Accessed; 256] = {
    let mut all = [Accessed::NONE; 256];
    let mut size = 0;
    while size < SIZES.len() {
        let bytes = SIZES[size];
        if bytes > 0 {
            all[(RecordKind::Load as usize) << 4 | size] = Accessed::new(bytes, Access::Load);
            all[(RecordKind::Store as usize) << 4 | size] = Accessed::new(bytes, Access::Store);
            let both = Accessed { size_bytes: bytes, read_bytes: bytes, written_bytes: bytes, times: 2 };
            all[(RecordKind::Modify as usize) << 4 | size] = both;
        }
        size += 1;
    }
    all
};

/// Ends of blocks at an address whose beginnings were not read yet.
///
/// The records of one thread are in order. Hence only another thread can have recorded what is
/// missing, and a program with one thread never matches anything here.
#[derive(Clone, Copy, Default)]
struct Unmatched {
    /// Negative for blocks that began although the end of the one before was not read yet.
    ends: i64,
    /// The thread whose records showed the last of them.
    thread: u32,
}

/// The heap.
#[derive(Clone)]
pub(crate) struct Heap {
    frames_max: usize,
    pub(crate) live: LiveBlocks,
    pub(crate) sites: Sites,
    pub(crate) threads: HashMap<u32, (Thread, Groups)>,
    /// Instructions of all threads.
    now: u64,
    layout: StateLayout,
    /// The thread whose records are being read.
    reading: u32,
    /// By address: what another thread's records may still complete.
    unmatched: ByNumber<u64, Unmatched>,
    /// Allocations whose result was not seen.
    pub(crate) lost: u64,
    /// Memory in which blocks may lie that were allocated before the heap was followed.
    pub(crate) before: Vec<Range<u64>>,
}

impl Heap {
    pub(crate) fn new(frames_max: usize) -> Heap {
        Heap {
            frames_max,
            live: LiveBlocks::new(),
            sites: Sites::new(),
            threads: HashMap::new(),
            now: 0,
            layout: StateLayout::default(),
            reading: 0,
            unmatched: ByNumber::default(),
            lost: 0,
            before: Vec::new(),
        }
    }

    /// The heap of a forked child, whose first thread `made` goes on as `maker` does, which has run
    /// this many instructions.
    pub(crate) fn forked(&mut self, (maker, made): (u32, u32), instructions: u64) -> Heap {
        let (thread, _) = self.threads.entry(maker).or_default();
        self.now += instructions.saturating_sub(thread.last_instructions);
        thread.last_instructions = instructions;
        let mut own = thread.clone();
        own.last_instructions = 0;
        // The other threads do not exist in the child, nor what they may complete.
        let others = std::mem::take(&mut self.threads);
        let mut child = self.clone();
        self.threads = others;
        child.unmatched.clear();
        child.threads.insert(made, (own, Groups::default()));
        child
    }

    /// Begins all sums anew; blocks that live stay, and their lives count for nothing.
    pub(crate) fn forget_sums(&mut self) {
        self.lost = 0;
        self.sites.forget_sums();
        self.live.forget_births();
    }

    /// Instructions of all threads so far.
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// Reads records of a thread.
    pub(crate) fn records(&mut self, number: u32, records: &[Record]) {
        const TOOL: u8 = RecordKind::Tool as u8;
        let (mut thread, mut groups) = self.threads.remove(&number).unwrap_or_default();
        self.reading = number;
        let mut at = 0;
        while let Some(record) = records.get(at) {
            let plain = PLAIN[usize::from(record.what as u8)];
            at += 1;
            if plain.times > 0 {
                // What allocating functions do themselves counts for no block.
                if thread.inside.is_none() {
                    self.accessed(record.address, &plain);
                }
            } else if record.what as u8 >> 4 == TOOL {
                self.event(&mut thread, record.extra, record.address);
            } else {
                at += self.complex(&thread, &mut groups, &records[at - 1..]) - 1;
            }
        }
        self.threads.insert(number, (thread, groups));
    }

    /// Reads the first of `records`, which belongs to a complex reference, or all of that reference
    /// if it is a masked access; returns how many were read.
    fn complex(&mut self, thread: &Thread, groups: &mut Groups, records: &[Record]) -> usize {
        let is_counted = thread.inside.is_none();
        if let Some((shape, [base, mask])) = groups.masked(records) {
            if let Some((address, size_bytes, access)) =
                masked_reference(shape, base, mask).filter(|_| is_counted)
            {
                self.refers(address, size_bytes, access);
            }
            return 2;
        }
        if let Step::Whole(_, complex) = groups.push(&records[0]) {
            let layout = self.layout;
            if is_counted {
                complex.references(&layout, |address, size_bytes, access| {
                    self.refers(address, size_bytes, access);
                });
            }
        }
        1
    }

    /// Counts a reference, unless it only prefetches.
    #[inline(always)]
    fn refers(&mut self, address: u64, size_bytes: u32, access: Access) {
        let accessed = Accessed::new(size_bytes, access);
        if accessed.times > 0 && size_bytes > 0 {
            self.accessed(address, &accessed);
        }
    }

    /// Counts an access.
    #[inline(always)]
    fn accessed(&mut self, address: u64, access: &Accessed) {
        let Some(touched) = self.live.touch(address) else { return };
        self.sites.accessed(&touched, access);
    }

    /// Follows an event of a thread.
    #[inline(always)]
    pub(crate) fn event(&mut self, thread: &mut Thread, tag: u32, value: u64) {
        let (kind, number) = word::of_tag(tag);
        match kind {
            word::CALL => thread.calls(value, number, Caller::Other),
            word::CALL_WITHIN => thread.calls(value, number, Caller::Allocator),
            word::CALL_OUT => thread.calls(value, number, Caller::AllocatorByAddress),
            word::BACK => thread.returned_below(value),
            word::LEAVE | word::PLACE => thread.first_word = value,
            word::RESULT => {
                if let Some(left) = thread.leaves(thread.first_word) {
                    self.left(&left, value);
                }
            }
            word::STORED => thread.stores(thread.first_word, value),
            word::ENTER => {
                if let Some(function) = Function::of_number(number) {
                    thread.enters(function, value);
                }
            }
            word::FIRST | word::SECOND | word::THIRD => {
                if let Some(entering) = &mut thread.entering {
                    entering.arguments[(kind - word::FIRST) as usize] = value;
                }
            }
            word::NOW => self.entered(thread, value),
            _ => {}
        }
    }

    /// Begins an allocating function, of which all arguments are known.
    #[inline(never)]
    fn entered(&mut self, thread: &mut Thread, instructions: u64) {
        // A context that another thread had before begins with that thread's sum.
        self.now += instructions.saturating_sub(thread.last_instructions);
        thread.last_instructions = instructions;
        let Some(mut entered) = thread.entering.take() else { return };
        if entered.function == Function::Copy {
            let site = self.sites.number(thread.stack_of(&entered, self.frames_max));
            return self.sites.copied(site, entered.arguments[2]);
        }
        if thread.is_nested(&entered) {
            return;
        }
        match entered.function {
            Function::Free => self.free(thread, &entered),
            _ => entered.site = self.sites.number(thread.stack_of(&entered, self.frames_max)),
        }
        thread.inside = Some(entered);
    }

    /// Ends an allocating function, which returns `result`.
    fn left(&mut self, left: &Entered, result: u64) {
        let [first, second, third] = left.arguments;
        let (address, size_bytes) = match left.function {
            Function::Free | Function::Copy => return,
            Function::Resize if first != 0 => return self.resized(left, result),
            Function::Resize | Function::AllocateAligned => (result, second),
            Function::Allocate => (result, first),
            Function::AllocateArray => (result, first.saturating_mul(second)),
            Function::AllocatePages => (result, first.div_ceil(PAGE_BYTES).saturating_mul(PAGE_BYTES)),
            Function::AllocateAt if result as u32 == 0 => (left.stored, third),
            Function::AllocateAt => return,
        };
        if address == 0 {
            self.lost += u64::from(left.function == Function::AllocateAt);
            return;
        }
        self.born(left.site, address, size_bytes.max(1));
    }

    /// A block begins to live.
    fn born(&mut self, site: u32, address: u64, size_bytes: u64) {
        // The block before was freed by another thread, or by a function without a symbol.
        if self.end(address) {
            self.balance(address, -1);
        }
        self.sites.born(site, size_bytes, self.now);
        self.live.insert(Block { address, size_bytes, site, born: self.now, is_touched: false });
        if self.ends_by_others(address) > 0 {
            self.end(address);
            self.balance(address, -1);
        }
    }

    /// A thread frees a block.
    fn free(&mut self, thread: &mut Thread, entered: &Entered) {
        let address = entered.arguments[0];
        if self.ends_by_others(address) < 0 {
            return self.balance(address, 1);
        }
        if !self.end(address) && !thread.is_allocators_own(entered) {
            self.balance(address, 1);
            // Where a block lay and other threads ran, a record of theirs has ended it too early:
            // that end was meant for a block to come, whoever makes it.
            if !self.threads.is_empty() && self.live.lay_at(address) {
                self.unmatched.entry(address).and_modify(|known| known.thread = NOBODY);
            }
        }
    }

    /// Ends the life of the block at an address, if there is one.
    fn end(&mut self, address: u64) -> bool {
        let Some(block) = self.live.remove(address) else { return false };
        self.sites.freed(block.site, block.size_bytes, self.now);
        self.sites.retired(&block, self.now);
        true
    }

    /// Ends without a beginning at an address that this thread may complete.
    fn ends_by_others(&self, address: u64) -> i64 {
        let reading = self.reading;
        self.unmatched.get(&address).filter(|known| known.thread != reading).map_or(0, |known| known.ends)
    }

    /// Notes an end of a block without its beginning, or that one was found.
    fn balance(&mut self, address: u64, more: i64) {
        if address == 0 || (more > 0 && self.is_older(address)) {
            return;
        }
        let known = self.unmatched.entry(address).or_default();
        if known.ends * more >= 0 {
            known.thread = self.reading;
        }
        known.ends += more;
        if known.ends == 0 {
            self.unmatched.remove(&address);
        }
    }

    /// Whether a block that ends at an address was allocated before the heap was followed, because
    /// none has lain there since.
    fn is_older(&self, address: u64) -> bool {
        self.before.iter().any(|memory| memory.contains(&address)) && !self.live.lay_at(address)
    }

    /// A block was resized and lies at `result`; it stays a block of the place that allocated it.
    fn resized(&mut self, left: &Entered, result: u64) {
        let [old_address, size_bytes, _] = left.arguments;
        if size_bytes == 0 {
            self.end(old_address);
            return;
        }
        if result == 0 {
            return;
        }
        let Some(number) = self.live.beginning(old_address) else {
            self.balance(old_address, 1);
            return self.born(left.site, result, size_bytes);
        };
        // What was kept counts as read and written, whether or not it was copied.
        let Block { size_bytes: old, site, .. } = self.live.get(number);
        self.sites.kept(site, old.min(size_bytes));
        self.live.is_touched(number);
        self.live.place(number, result, size_bytes);
        self.sites.resized(site, (old, size_bytes), self.now);
    }

    /// Addresses at which ends or beginnings of blocks are missing.
    #[cfg(test)]
    pub(crate) fn unmatched(&self) -> usize {
        self.unmatched.len()
    }

    /// The program executes another one: all memory is gone.
    pub(crate) fn executes(&mut self) {
        self.threads.clear();
        self.unmatched.clear();
        for block in self.live.clear() {
            self.sites.freed(block.site, block.size_bytes, self.now);
            self.sites.retired(&block, self.now);
        }
    }

    /// The program has ended after this many instructions of all threads.
    pub(crate) fn ended(&mut self, instructions: u64) {
        self.sites.ended();
        self.now = self.now.max(instructions);
        for block in self.live.clear() {
            self.sites.retired(&block, self.now);
        }
    }
}
