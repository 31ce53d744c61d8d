//! What lies at an address: the blocks of the heap that live, by the call that allocated them.
//!
//! The call is found without a shadow stack: when an allocating function begins, or a stub that
//! leads there, the last store to where the stack pointer points was that of the call. Of functions
//! that call each other (`operator new`, `malloc`) the outermost counts. **Leaves out** stacks and
//! variables, which have names for as long as the program runs: the report knows them by their
//! addresses.

use crate::ask::{of_tag, ENTER, FIRST, LEAVE, PLACE, RESULT, SECOND, STORED, STUB, THIRD};
use event::{Record, RecordKind};
use heap::Function;
use std::collections::BTreeMap;

/// Records before an allocating function's beginning among which its call is looked for.
const LOOKED_BACK: usize = 64;

/// Stubs that are remembered.
const STUBS: usize = 4;

/// A block of the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeapBlock {
    /// Its address.
    pub address: u64,
    /// Bytes that the program asked for.
    pub size_bytes: u64,
    /// The site of the call that allocated it, if it was found.
    pub call: Option<u32>,
}

/// The blocks that live.
#[derive(Clone, Debug, Default)]
pub(crate) struct Objects {
    blocks: BTreeMap<u64, HeapBlock>,
}

/// An allocating function that a thread has entered.
#[derive(Clone, Copy, Debug)]
struct Entered {
    function: Function,
    stack: u64,
    arguments: [u64; 3],
    /// What was stored where the first argument points.
    stored: u64,
    call: Option<u32>,
}

/// What a thread does in allocating functions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Allocating {
    inside: Option<Entered>,
    /// Whether the function whose arguments follow is called by another one.
    is_nested: bool,
    first_word: u64,
    /// The last stubs: the stack pointer, and the call that led there. The loader, which binds a
    /// function at its first call, goes through stubs of its own.
    stubs: [(u64, Option<u32>); STUBS],
    /// The last store before the records that are read now: its address and site.
    last_store: Option<(u64, u32)>,
}

impl Allocating {
    /// Notes what later records may ask for of those that have been read.
    pub(crate) fn reads_on(&mut self, read: &[Record]) {
        let stores = |record: &&Record| record.code().kind() == RecordKind::Store;
        let last = read.iter().rev().take(LOOKED_BACK).find(stores);
        self.last_store = last.map(|record| (record.address, record.what >> 8));
    }

    /// The site of the call that stored its return address where the stack pointer points.
    fn call_that_pushed(&self, before: &[Record], stack: u64) -> Option<u32> {
        let pushes = |record: &&Record| record.code().kind() == RecordKind::Store && record.address == stack;
        let found = before.iter().rev().take(LOOKED_BACK).find(pushes).map(|record| record.what >> 8);
        let earlier = self.last_store.filter(|store| store.0 == stack).map(|store| store.1);
        found.or(earlier)
    }
}

impl Objects {
    /// Forgets all blocks.
    pub(crate) fn clear(&mut self) {
        self.blocks.clear();
    }

    /// The blocks that have bytes from `address` to `end`.
    pub(crate) fn between(&self, address: u64, end: u64) -> impl Iterator<Item = HeapBlock> + '_ {
        let first = self.blocks.range(..=address).next_back().map_or(address, |found| *found.0);
        let blocks = self.blocks.range(first..end).map(|found| *found.1);
        blocks.filter(move |block| block.address.saturating_add(block.size_bytes.max(1)) > address)
    }

    /// Takes an event of a thread; `before` are the records that it has made before, and sites of
    /// calls are numbered from `first_site`.
    pub(crate) fn event(
        &mut self,
        own: &mut Allocating,
        record: &Record,
        (before, first_site): (&[Record], u32),
    ) {
        let (word, function) = of_tag(record.extra);
        let value = record.address;
        match word {
            ENTER => {
                let Some(function) = Function::of_number(function) else { return };
                own.is_nested = own.inside.is_some_and(|inside| value < inside.stack);
                if !own.is_nested {
                    let known = own.stubs.iter().find(|stub| stub.0 == value).and_then(|stub| stub.1);
                    let call = known.or_else(|| own.call_that_pushed(before, value));
                    let call = call.map(|site| site + first_site);
                    let arguments = [0; 3];
                    own.inside = Some(Entered { function, stack: value, arguments, stored: 0, call });
                }
            }
            FIRST | SECOND | THIRD if !own.is_nested => {
                let Some(inside) = &mut own.inside else { return };
                inside.arguments[(word - FIRST) as usize] = value;
                if word == FIRST && inside.function == Function::Free {
                    self.blocks.remove(&value);
                }
            }
            STUB => {
                let call = own.call_that_pushed(before, value);
                own.stubs.rotate_right(1);
                own.stubs[0] = (value, call);
            }
            PLACE | LEAVE => own.first_word = value,
            STORED => {
                let place = own.first_word;
                if let Some(inside) = own.inside.as_mut().filter(|inside| inside.arguments[0] == place) {
                    inside.stored = value;
                }
            }
            RESULT => {
                let stack = own.first_word;
                if let Some(left) = own.inside.take_if(|inside| inside.stack == stack) {
                    self.left(&left, value);
                }
            }
            _ => {}
        }
    }

    /// An allocating function returns.
    fn left(&mut self, left: &Entered, result: u64) {
        let [first, second, third] = left.arguments;
        let (address, size_bytes) = match left.function {
            Function::Allocate | Function::AllocatePages => (result, first),
            Function::AllocateArray => (result, first.saturating_mul(second)),
            Function::AllocateAligned => (result, second),
            Function::AllocateAt => (if result == 0 { left.stored } else { 0 }, third),
            Function::Resize if result == 0 && second > 0 => return,
            Function::Resize => {
                self.blocks.remove(&first);
                (result, second)
            }
            Function::Free | Function::Copy => return,
        };
        if address != 0 {
            self.blocks.insert(address, HeapBlock { address, size_bytes, call: left.call });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Thread {
        objects: Objects,
        own: Allocating,
    }

    impl Thread {
        fn event(&mut self, word: u32, function: Function, value: u64, before: &[Record]) {
            let record = Record { address: value, what: 0, extra: (function as u32) << 4 | word };
            self.objects.event(&mut self.own, &record, (before, 100));
        }

        fn allocate(&mut self, function: Function, arguments: &[u64], result: u64) {
            let push = Record::new(RecordKind::Store, 8, 7, 0x700).unwrap();
            self.event(ENTER, function, 0x700, &[push]);
            let words = [FIRST, SECOND, THIRD];
            words.iter().zip(arguments).for_each(|(&word, &value)| self.event(word, function, value, &[]));
            // A function that it calls.
            self.event(ENTER, Function::Allocate, 0x600, &[]);
            self.event(FIRST, Function::Allocate, 9999, &[]);
            self.event(LEAVE, function, 0x600, &[]);
            self.event(RESULT, function, 0x9000, &[]);
            self.event(LEAVE, function, 0x700, &[]);
            self.event(RESULT, function, result, &[]);
        }

        fn at(&self, address: u64) -> Vec<(u64, u64, Option<u32>)> {
            let all = self.objects.between(address, address + 1);
            all.map(|block| (block.address, block.size_bytes, block.call)).collect()
        }
    }

    #[test]
    fn blocks_live_from_their_allocation_to_their_end() {
        let mut thread = Thread { objects: Objects::default(), own: Allocating::default() };
        thread.allocate(Function::Allocate, &[24], 0x1000);
        thread.allocate(Function::AllocateArray, &[4, 8], 0x1020);
        assert_eq!(thread.at(0x1017), [(0x1000, 24, Some(107))]);
        assert_eq!((thread.at(0x1018), thread.at(0x103f).len()), (vec![], 1));
        assert_eq!(thread.objects.between(0x1000, 0x1040).count(), 2);
        thread.allocate(Function::Resize, &[0x1000, 64], 0x2000);
        assert_eq!((thread.at(0x1000), thread.at(0x203f)), (vec![], vec![(0x2000, 64, Some(107))]));
        thread.allocate(Function::Free, &[0x2000], 0);
        assert_eq!(thread.at(0x2000), []);
    }
}
