//! The heap while the program runs: reads records, and keeps blocks and places.

use crate::allocator::Function;
use crate::live::{Block, LiveBlocks, NO_COUNTS};
use crate::sites::Sites;
use crate::thread::{Entered, Thread};
use crate::word;
use event::{masked_reference, Access, Groups, Record, RecordKind, StateLayout, Step, SIZES};
use std::collections::HashMap;

/// Bytes of a page, to which `pvalloc` rounds.
const PAGE_BYTES: u64 = 4096;

/// The heap.
pub(crate) struct Heap {
    frames_max: usize,
    live: LiveBlocks,
    pub(crate) sites: Sites,
    threads: HashMap<u32, (Thread, Groups)>,
    /// Instructions of all threads.
    now: u64,
    layout: StateLayout,
    /// Allocations whose result was not seen.
    pub(crate) lost: u64,
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
            lost: 0,
        }
    }

    /// Reads records of a thread.
    pub(crate) fn records(&mut self, number: u32, records: &[Record]) {
        let (mut thread, mut groups) = self.threads.remove(&number).unwrap_or_default();
        let mut at = 0;
        while let Some(record) = records.get(at) {
            let code = record.what as u8;
            let size_bytes = SIZES[usize::from(code & 15)];
            const LOAD: u8 = RecordKind::Load as u8;
            const STORE: u8 = RecordKind::Store as u8;
            const MODIFY: u8 = RecordKind::Modify as u8;
            const TOOL: u8 = RecordKind::Tool as u8;
            match code >> 4 {
                // What allocating functions do themselves counts for no block.
                LOAD | STORE | MODIFY if thread.inside.is_some() => {}
                LOAD => self.accessed(record.address, size_bytes.into(), Access::Load),
                STORE => self.accessed(record.address, size_bytes.into(), Access::Store),
                MODIFY => {
                    self.accessed(record.address, size_bytes.into(), Access::Load);
                    self.accessed(record.address, size_bytes.into(), Access::Store);
                }
                TOOL => self.event(&mut thread, record.extra, record.address),
                _ => {
                    at += self.complex(&thread, &mut groups, &records[at..]);
                    continue;
                }
            }
            at += 1;
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
                self.accessed(address, size_bytes.into(), access);
            }
            return 2;
        }
        if let Step::Whole(_, complex) = groups.push(&records[0]) {
            let layout = self.layout;
            if is_counted {
                complex.references(&layout, |address, size_bytes, access| {
                    self.accessed(address, size_bytes.into(), access);
                });
            }
        }
        1
    }

    /// Counts an access.
    #[inline(always)]
    fn accessed(&mut self, address: u64, size_bytes: u64, access: Access) {
        let Some(number) = self.live.find(address) else { return };
        let block = self.live.block(number);
        match access {
            Access::Load => block.read_bytes += size_bytes,
            Access::Store => block.written_bytes += size_bytes,
            Access::Prefetch => return,
        }
        if block.counts != NO_COUNTS {
            let offset = address - block.address;
            let bytes = offset..(offset + size_bytes).min(block.size_bytes);
            self.sites.accessed(block.counts, bytes);
        }
    }

    /// Follows an event of a thread.
    #[inline(always)]
    fn event(&mut self, thread: &mut Thread, tag: u32, value: u64) {
        let (kind, number) = word::of_tag(tag);
        match kind {
            word::CALL => thread.calls(value, number),
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
        if thread.is_nested(&entered) {
            return;
        }
        match entered.function {
            Function::Free => self.free(entered.arguments[0]),
            _ => entered.site = self.sites.number(thread.stack_of(&entered, self.frames_max)),
        }
        thread.inside = Some(entered);
    }

    /// Ends an allocating function, which returns `result`.
    fn left(&mut self, left: &Entered, result: u64) {
        let [first, second, third] = left.arguments;
        let (address, size_bytes) = match left.function {
            Function::Free => return,
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
        // It was freed by a function that has no symbol, or by a thread whose records come later.
        self.free(address);
        let counts = self.sites.born(site, size_bytes, self.now);
        let born = self.now;
        self.live.insert(Block { address, size_bytes, site, counts, born, ..Block::default() });
    }

    /// The block at an address is freed, if there is one.
    fn free(&mut self, address: u64) {
        if let Some(block) = self.live.remove(address) {
            self.sites.freed(block.site, block.size_bytes);
            self.sites.retired(&block, self.now);
        }
    }

    /// A block was resized and lies at `result`; it stays a block of the place that allocated it.
    fn resized(&mut self, left: &Entered, result: u64) {
        let [old_address, size_bytes, _] = left.arguments;
        if size_bytes == 0 {
            return self.free(old_address);
        }
        if result == 0 {
            return;
        }
        let Some(number) = self.live.beginning(old_address) else {
            return self.born(left.site, result, size_bytes);
        };
        // What was kept counts as read and written, whether or not it was copied.
        let block = self.live.block(number);
        let old = block.size_bytes;
        let kept = old.min(size_bytes);
        block.read_bytes += kept;
        block.written_bytes += kept;
        block.counts = NO_COUNTS;
        let site = block.site;
        self.live.place(number, result, size_bytes);
        self.sites.resized(site, (old, size_bytes), self.now);
    }

    /// The program executes another one: all memory is gone.
    pub(crate) fn executes(&mut self) {
        self.threads.clear();
        for block in self.live.clear() {
            self.sites.freed(block.site, block.size_bytes);
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
