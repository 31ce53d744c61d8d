//! Few records of stubs against all of them: both give the same edges.

use super::batches::{edges, Numbers};
use crate::keys::EdgeTable;
use crate::stack::CalleeKind;
use event::{Record, RecordKind};
use instrument::call::{stub_number, DirectTarget, StubTargets, STUB_CELLS};

const FUNCTIONS: usize = 5;
const FIRST: u64 = 0x9000;
/// Stubs, of which the first two and the last share a cell. Code reaches the last one by
/// conditional jumps alone, which are not recorded.
const STUBS: [u64; 4] = [FIRST, FIRST + 8 * STUB_CELLS as u64, FIRST + 16, FIRST + 16 * STUB_CELLS as u64];
const STUB_BYTES: u64 = 16;
const BLOCKS: u32 = 32;
const TOP: u32 = 0x8000_0000;

/// The size codes of words.
const CALL: u32 = 1;
const JUMP: u32 = 2;
const RETURN: u32 = 3;
const REFERENCES: u32 = 4;
const TARGET: u32 = 5;
const DIRECT_CALL: u32 = 6;
const DIRECT_JUMP: u32 = 7;
const STUB_JUMP: u32 = 8;
const STUB_TARGET: u32 = 9;

/// Functions, and then stubs.
fn targets() -> Vec<u64> {
    (1..=FUNCTIONS as u64).map(|function| 0x1000 * function).chain(STUBS).collect()
}

/// Where the direct transfer of a block leads: not to the last stub.
fn direct(block: u32) -> u64 {
    targets()[block as usize % (targets().len() - 1)]
}

fn table() -> EdgeTable {
    let mut table = EdgeTable::default();
    // The last blocks are those of the stubs.
    for block in 0..BLOCKS + STUBS.len() as u32 {
        for (target, function) in targets().into_iter().zip(1..) {
            let is_stub = STUBS.contains(&target);
            let kind = if is_stub { CalleeKind::Stub } else { CalleeKind::Function };
            table.enter(block, (target, if is_stub { STUB_BYTES } else { 0x100 }), (function, kind));
        }
        table.add_targets(&[DirectTarget { block, target: direct(block) }]);
    }
    table
}

/// A thread that writes all records of its transfers, and those that generated code writes.
struct Writer {
    references: bool,
    sum: u64,
    all: Vec<Record>,
    few: Vec<Record>,
    cells: StubTargets,
    /// Where each stub leads.
    bound: [u64; STUBS.len()],
    slots: Vec<u32>,
}

impl Writer {
    fn words(&self, block: u32, code: u32, stack: u32, target: Option<(u32, u64, u32)>) -> Vec<Record> {
        let what = |code| block << 8 | (RecordKind::Tool as u32) << 4 | code;
        let mut words = vec![Record { address: self.sum, what: what(code), extra: stack }];
        if self.references {
            words.push(Record { address: self.sum / 2, what: what(REFERENCES), extra: self.sum as u32 / 3 });
        }
        words.extend(target.map(|(code, address, extra)| Record { address, what: what(code), extra }));
        words
    }

    /// Writes a transfer that is always recorded.
    fn transfer(&mut self, block: u32, code: u32, stack: u32, target: Option<u64>) {
        let words = self.words(block, code, stack, target.map(|target| (TARGET, target, 0)));
        self.all.extend(&words);
        self.few.extend(words);
    }

    /// Lets stubs jump, from the one at `address`, until a function is reached. `is_direct` says
    /// whether the last record is that of a direct transfer to the stub.
    fn follow_stubs(&mut self, mut address: u64, mut is_direct: bool, numbers: &mut Numbers) {
        for _ in 0..=STUBS.len() {
            let Some(stub) = STUBS.iter().position(|&stub| stub == address) else { return };
            self.sum += 1;
            let target = self.bound[stub];
            let (block, stack) = (BLOCKS + stub as u32, self.slots.last().copied().unwrap_or(TOP));
            let all = self.words(block, JUMP, stack, Some((TARGET, target, 0)));
            self.all.extend(all);
            let number = stub_number(address);
            // A full ring is handed over between two records.
            let is_direct_still = is_direct && numbers.below(10) > 0;
            if !is_direct_still || self.cells.get(number) != Some(target) {
                self.cells.set(number, target);
                let few = self.words(block, STUB_JUMP, stack, Some((STUB_TARGET, target, number)));
                self.few.extend(few);
                is_direct = false;
            }
            address = target;
        }
    }
}

/// Where a stub may lead: to a function, to another stub (in no circle), or to its own second half.
fn binding(stub: usize, numbers: &mut Numbers) -> u64 {
    match numbers.below(12) {
        0 if stub != 2 => STUBS[(stub + 1) % STUBS.len()],
        1 if stub < 3 => STUBS[stub] + 8,
        _ => targets()[numbers.below(FUNCTIONS as u64) as usize],
    }
}

fn written(numbers: &mut Numbers, references: bool) -> Writer {
    let bound = std::array::from_fn(|stub| binding(stub, numbers));
    let (all, few, slots) = (Vec::new(), Vec::new(), Vec::new());
    let mut writer = Writer { references, sum: 0, all, few, cells: StubTargets::default(), bound, slots };
    for _ in 0..600 {
        writer.sum += numbers.below(7);
        let block = numbers.below(BLOCKS.into()) as u32;
        let pointer = writer.slots.last().copied().unwrap_or(TOP) - 16 * numbers.below(3) as u32;
        match numbers.below(12) {
            0..5 => {
                writer.transfer(block, DIRECT_CALL, pointer, None);
                writer.slots.push(pointer - 8);
                writer.follow_stubs(direct(block), true, numbers);
            }
            5 => {
                let target = targets()[numbers.below(targets().len() as u64 - 1) as usize];
                writer.transfer(block, CALL, pointer, Some(target));
                writer.slots.push(pointer - 8);
                writer.follow_stubs(target, false, numbers);
            }
            6 => {
                let slot = writer.slots.last().copied().unwrap_or(TOP);
                writer.transfer(block, DIRECT_JUMP, slot, None);
                writer.follow_stubs(direct(block), true, numbers);
            }
            7 => writer.follow_stubs(STUBS[3], false, numbers),
            8 => {
                let stub = numbers.below(STUBS.len() as u64) as usize;
                writer.bound[stub] = binding(stub, numbers);
            }
            _ => {
                let slot = writer.slots.pop().unwrap_or(TOP);
                writer.transfer(block, RETURN, slot, None);
            }
        }
    }
    // What happened last is told by a record that changes no frame.
    writer.transfer(0, RETURN, TOP + 8, None);
    writer
}

#[test]
fn few_records_of_stubs_say_what_all_of_them_say() {
    let (mut all, mut few) = (0, 0);
    for seed in 0..400 {
        let mut numbers = Numbers(seed);
        let writer = written(&mut numbers, false);
        (all, few) = (all + writer.all.len(), few + writer.few.len());
        let expected = edges::<1>(table(), &writer.all, || usize::MAX);
        assert_eq!(edges::<1>(table(), &writer.few, || usize::MAX), expected, "seed {seed}");
        assert_eq!(edges::<1>(table(), &writer.few, || 1 + numbers.below(5) as usize), expected);
        let writer = written(&mut numbers, true);
        let expected = edges::<9>(table(), &writer.all, || usize::MAX);
        assert_eq!(edges::<9>(table(), &writer.few, || usize::MAX), expected, "seed {seed}");
        assert_eq!(edges::<9>(table(), &writer.few, || 1 + numbers.below(5) as usize), expected);
    }
    assert!(few < all - all / 20, "{few} of {all} words");
}
