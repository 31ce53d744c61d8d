//! The heap against a naive twin, on random sequences of allocations, resizes, frees and accesses.

use crate::allocator::Function;
use crate::heap::Heap;
use crate::sites::Site;
use crate::word::{self, tag};
use event::{Code, Record, RecordKind};
use proptest::prelude::*;

/// What a program does.
#[derive(Clone, Debug)]
enum Step {
    /// Allocates this many bytes at a free place, by this call.
    Allocate(u64, u32),
    /// Resizes one of the blocks; moves it if that is said.
    Resize(usize, u64, bool),
    Free(usize),
    /// Accesses a byte of one of the blocks.
    Access(usize, u64, RecordKind),
}

fn step() -> impl Strategy<Value = Step> {
    let kinds = prop::sample::select(vec![RecordKind::Load, RecordKind::Store, RecordKind::Modify]);
    prop_oneof![
        3 => (0u64..3000, 0u32..6).prop_map(|(size, call)| Step::Allocate(size / 8, call)),
        1 => (0usize..64, 0u64..9000, any::<bool>()).prop_map(|(at, size, moves)| Step::Resize(at, size, moves)),
        2 => (0usize..64).prop_map(Step::Free),
        9 => (0usize..64, 0u64..10_000, kinds).prop_map(|(at, byte, kind)| Step::Access(at, byte, kind)),
    ]
}

/// A block of the twin.
#[derive(Clone)]
struct Plain {
    address: u64,
    size: u64,
    call: u32,
    born: u64,
    read: u64,
    written: u64,
    is_counted: bool,
}

/// The twin: a list of blocks, and sums that are made anew each time.
#[derive(Default)]
struct Twin {
    blocks: Vec<Plain>,
    sites: Vec<Site>,
    calls: Vec<u32>,
    /// Sizes that blocks of a place have had; 0 stands for one that was resized.
    sizes: Vec<Vec<u64>>,
    most: u64,
    peak_at: u64,
}

impl Twin {
    fn site(&mut self, call: u32) -> usize {
        self.calls.iter().position(|&known| known == call).unwrap_or_else(|| {
            self.calls.push(call);
            self.sites.push(Site { stack: vec![call], accesses: vec![0; 1024], ..Site::default() });
            self.sizes.push(Vec::new());
            self.calls.len() - 1
        })
    }

    fn living(&self, call: u32) -> (u64, u64) {
        let own = self.blocks.iter().filter(|block| block.call == call);
        own.fold((0, 0), |(bytes, blocks), block| (bytes + block.size, blocks + 1))
    }

    /// Counts an allocation after its block is in the list.
    fn allocated(&mut self, call: u32, size: u64, now: u64) {
        let site = self.site(call);
        self.sites[site].total.bytes += size;
        self.sites[site].total.blocks += 1;
        let (bytes, blocks) = self.living(call);
        if bytes >= self.sites[site].most.bytes {
            self.sites[site].most = crate::Amount { bytes, blocks };
        }
        let all: u64 = self.blocks.iter().map(|block| block.size).sum();
        if all >= self.most {
            (self.most, self.peak_at) = (all, now);
            for site in 0..self.sites.len() {
                let (bytes, blocks) = self.living(self.calls[site]);
                self.sites[site].at_peak = crate::Amount { bytes, blocks };
            }
        }
    }

    fn retire(&mut self, block: &Plain, now: u64) {
        let site = self.site(block.call);
        let site = &mut self.sites[site];
        site.lifetimes += now - block.born;
        site.read_bytes += block.read;
        site.written_bytes += block.written;
        site.untouched += u64::from(block.read + block.written == 0);
    }
}

/// The records of a thread.
#[derive(Default)]
struct Written(Vec<Record>);

const STACK: u64 = 0x7fff_0000;

impl Written {
    fn event(&mut self, tag: u32, value: u64) {
        let what = (RecordKind::Tool as u32) << 4;
        self.0.push(Record { address: value, what, extra: tag });
    }

    /// A call of an allocating function, with what it does and returns.
    fn calls(&mut self, call: u32, function: Function, arguments: [u64; 2], now: u64, result: u64) {
        self.event(tag(word::CALL, call), STACK);
        self.event(tag(word::ENTER, function as u32), STACK - 8);
        self.event(tag(word::FIRST, 0), arguments[0]);
        self.event(tag(word::SECOND, 0), arguments[1]);
        self.event(tag(word::NOW, 0), now);
        // What the function does itself counts for no block.
        self.access(arguments[0], RecordKind::Modify);
        self.event(tag(word::CALL, 99), STACK - 40);
        self.event(tag(word::ENTER, Function::Allocate as u32), STACK - 48);
        self.event(tag(word::FIRST, 0), 77);
        self.event(tag(word::NOW, 0), now);
        self.event(tag(word::LEAVE, 0), STACK - 48);
        self.event(tag(word::RESULT, 0), 0x1234);
        self.event(tag(word::LEAVE, 0), STACK - 8);
        self.event(tag(word::RESULT, 0), result);
    }

    fn access(&mut self, address: u64, kind: RecordKind) {
        let what = u32::from(Code::new(kind, 4).expect("a size").0);
        self.0.push(Record { address, what, extra: 0 });
    }
}

fn check(steps: &[Step]) {
    let (mut twin, mut written) = (Twin::default(), Written::default());
    let mut now = 0;
    let mut fresh = 0x5555_0000_0000u64;
    let mut place = |size: u64| {
        let address = fresh;
        fresh += (size + 40) / 16 * 16;
        address
    };
    for step in steps {
        now += 10;
        match *step {
            Step::Allocate(size, call) => {
                let (address, counted) = (place(size), size.max(1));
                written.calls(call, Function::Allocate, [size, 0], now, address);
                let site = twin.site(call);
                twin.sizes[site].push(counted);
                let block = Plain {
                    address,
                    size: counted,
                    call,
                    born: now,
                    read: 0,
                    written: 0,
                    is_counted: counted <= 1024 && twin.sizes[site].iter().all(|&one| one == counted),
                };
                twin.blocks.push(block);
                twin.allocated(call, counted, now);
            }
            Step::Resize(at, size, moves) if at < twin.blocks.len() && size > 0 => {
                let old = twin.blocks[at].clone();
                let address = if moves || size > old.size { place(size) } else { old.address };
                written.calls(7, Function::Resize, [old.address, size], now, address);
                let kept = old.size.min(size);
                let block = &mut twin.blocks[at];
                (block.address, block.size) = (address, size);
                block.read += kept;
                block.written += kept;
                block.is_counted = false;
                let site = twin.site(old.call);
                twin.sizes[site].push(0);
                twin.allocated(old.call, size, now);
            }
            Step::Free(at) if at < twin.blocks.len() => {
                let block = twin.blocks.remove(at);
                written.calls(8, Function::Free, [block.address, 0], now, 0);
                twin.retire(&block, now);
            }
            Step::Access(at, byte, kind) if at < twin.blocks.len() => {
                let block = &mut twin.blocks[at];
                let offset = byte % block.size;
                written.access(block.address + offset, kind);
                let times = if kind == RecordKind::Modify { 2 } else { 1 };
                block.read += if kind == RecordKind::Store { 0 } else { 4 };
                block.written += if kind == RecordKind::Load { 0 } else { 4 };
                if block.is_counted {
                    let (call, end) = (block.call, (offset + 4).min(block.size));
                    let site = twin.site(call);
                    let counts = &mut twin.sites[site].accesses[offset as usize..end as usize];
                    counts.iter_mut().for_each(|count| *count += times);
                }
            }
            _ => {}
        }
    }
    let mut heap = Heap::new(12);
    for part in written.0.chunks(33) {
        heap.records(1, part);
    }
    heap.ended(now);
    for site in 0..twin.sites.len() {
        let (bytes, blocks) = twin.living(twin.calls[site]);
        twin.sites[site].at_end = crate::Amount { bytes, blocks };
        let sizes = &twin.sizes[site];
        let equal = sizes.first().filter(|first| sizes.iter().all(|size| size == *first) && **first <= 1024);
        twin.sites[site].accesses.truncate(equal.map_or(0, |&size| size as usize));
    }
    for block in std::mem::take(&mut twin.blocks) {
        twin.retire(&block, now);
    }
    assert_eq!((heap.sites.all.most.bytes, heap.sites.peak_at), (twin.most, twin.peak_at));
    let sum = |value: fn(&Site) -> u64| twin.sites.iter().map(value).sum::<u64>();
    let all = heap.sites.all.clone();
    assert_eq!(
        (all.total.bytes, all.total.blocks, all.at_end.bytes, all.read_bytes, all.untouched),
        (
            sum(|site| site.total.bytes),
            sum(|site| site.total.blocks),
            sum(|site| site.at_end.bytes),
            sum(|site| site.read_bytes),
            sum(|site| site.untouched)
        )
    );
    // A place is made when its function begins, and all of these return.
    let found: Vec<Site> = heap.sites.finish().into_iter().filter(|site| site.total.blocks > 0).collect();
    assert_eq!(found, twin.sites);
}

proptest! {
    #[test]
    fn the_heap_agrees_with_a_list_of_blocks(steps in prop::collection::vec(step(), 1..300)) {
        check(&steps);
    }
}

#[test]
fn a_block_at_the_address_of_a_living_one_ends_it() {
    let mut written = Written::default();
    written.calls(1, Function::Allocate, [16, 0], 5, 0x5000);
    written.calls(2, Function::Allocate, [8, 0], 9, 0x5000);
    let mut heap = Heap::new(1);
    heap.records(1, &written.0);
    heap.ended(10);
    assert_eq!((heap.sites.all.at_end.blocks, heap.sites.all.lifetimes), (1, 4 + 1));
}

#[test]
fn an_address_is_seen_where_it_is_stored() {
    let mut heap = Heap::new(1);
    for (stored, lost) in [(Some(0x6000), 0), (None, 1)] {
        let mut written = Written::default();
        written.event(tag(word::ENTER, Function::AllocateAt as u32), STACK);
        written.event(tag(word::FIRST, 0), STACK + 64);
        written.event(tag(word::THIRD, 0), 100);
        written.event(tag(word::NOW, 0), 1);
        if let Some(value) = stored {
            written.event(tag(word::PLACE, 0), STACK + 64);
            written.event(tag(word::STORED, 0), value);
        }
        written.event(tag(word::LEAVE, 0), STACK);
        written.event(tag(word::RESULT, 0), 0);
        heap.records(1, &written.0);
        assert_eq!((heap.lost, heap.sites.all.total.bytes), (lost, 100));
    }
}

#[test]
fn blocks_pass_from_thread_to_thread_in_any_order_of_records() {
    let (mut maker, mut other) = (Written::default(), Written::default());
    for now in 0..3 {
        maker.calls(1, Function::Allocate, [16, 0], now, 0x5000);
        other.calls(2, Function::Free, [0x5000, 0], now, 0);
    }
    let ended = |batches: &[(u32, &[Record])]| {
        let mut heap = Heap::new(1);
        batches.iter().for_each(|(thread, records)| heap.records(*thread, records));
        heap.ended(9);
        let all = &heap.sites.all;
        (all.total.blocks, all.at_end.blocks, heap.unmatched())
    };
    let (first, last) = other.0.split_at(other.0.len() / 3);
    assert_eq!(ended(&[(1, &maker.0), (2, &other.0)]), (3, 0, 0));
    assert_eq!(ended(&[(2, &other.0), (1, &maker.0)]), (3, 0, 0));
    assert_eq!(ended(&[(2, first), (1, &maker.0), (2, last)]), (3, 0, 0));
    assert_eq!(ended(&[(1, &maker.0), (2, first)]), (3, 1, 1), "two ends never came");
    // The maker frees its first block itself, and its second one has that address.
    let begin = maker.0.len() / 3;
    let mut own = Written(maker.0[..begin].to_vec());
    own.calls(1, Function::Free, [0x5000, 0], 1, 0);
    own.calls(1, Function::Allocate, [16, 0], 2, 0x5000);
    assert_eq!(ended(&[(1, &own.0[..begin]), (2, first), (1, &own.0[begin..])]), (2, 0, 0));
    assert_eq!(ended(&[(1, &own.0), (2, first)]), (2, 0, 0));
    assert_eq!(ended(&[(2, first), (1, &own.0)]), (2, 0, 0));
}

#[test]
fn what_one_thread_frees_ends_no_later_block_of_its_own() {
    let mut written = Written::default();
    // The first block was allocated by a function without a symbol, and the third one freed by one.
    written.calls(1, Function::Free, [0x5000, 0], 1, 0);
    for now in 2..5 {
        written.calls(2, Function::Allocate, [16, 0], now, 0x5000);
    }
    let ended = |freed: bool| {
        let mut written = Written(written.0.clone());
        if freed {
            written.calls(3, Function::Free, [0x5000, 0], 6, 0);
        }
        let mut heap = Heap::new(1);
        // Another thread lives, too.
        heap.records(2, &[]);
        heap.records(1, &written.0);
        heap.ended(9);
        heap.sites.all.at_end.blocks
    };
    assert_eq!((ended(false), ended(true)), (1, 0));
}

#[test]
fn what_was_allocated_before_ends_no_block_of_another_thread() {
    let block = 0x5000;
    for (before, lives) in [(0x4000..0x6000, true), (0x6000..0x7000, false)] {
        let mut heap = Heap::new(4);
        heap.before.push(before);
        let mut frees = Written::default();
        frees.calls(1, Function::Free, [block, 0], 10, 0);
        heap.records(1, &frees.0);
        // Without older blocks, the records of this thread would come late.
        let mut allocates = Written::default();
        allocates.calls(2, Function::Allocate, [100, 0], 10, block);
        heap.records(2, &allocates.0);
        assert_eq!(heap.live.find(block + 99).is_some(), lives);
    }
}

#[test]
fn a_forked_heap_without_sums_counts_its_own_allocations() {
    let mut heap = Heap::new(4);
    let mut maker = Written::default();
    maker.calls(1, Function::Allocate, [100, 0], 10, 0x5000);
    maker.calls(1, Function::Allocate, [50, 0], 20, 0x6000);
    maker.calls(2, Function::Free, [0x6000, 0], 30, 0);
    heap.records(0, &maker.0);
    let mut child = heap.forked((0, 1), 40);
    child.forget_sums();
    let mut own = Written::default();
    own.calls(1, Function::Allocate, [8, 0], 10, 0x7000);
    own.calls(2, Function::Free, [0x5000, 0], 20, 0);
    own.calls(2, Function::Free, [0x7000, 0], 25, 0);
    child.records(1, &own.0);
    child.ended(70);
    let site = &child.sites.finish()[0];
    assert_eq!((site.total.bytes, site.total.blocks, site.lifetimes), (8, 1, 15), "{site:?}");
    assert_eq!((site.most.bytes, site.at_end.blocks), (108, 0), "{site:?}");
    heap.ended(50);
    let site = &heap.sites.finish()[0];
    assert_eq!((site.total.blocks, site.lifetimes), (2, 40 + 10), "the maker's go on: {site:?}");
}
