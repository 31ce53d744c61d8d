//! Batches of words against the same words one by one, which never are whole events of several
//! words, and never show what follows a call.

use crate::batch::Batch;
use crate::jumps::JumpRecords;
use crate::keys::{EdgeTable, Keys};
use crate::stack::{CalleeKind, Collects, Edge, Known};
use crate::thread::{Counting, ThreadCalls};
use event::{Record, RecordKind, StateLayout};
use instrument::call::{is_word, DirectTarget};
use instrument::CallRecords;
use std::collections::BTreeMap;
use symbol::Symbolizer;

const BLOCKS: u32 = 24;
const FUNCTIONS: u32 = 6;
/// Addresses of two stubs of the linkage table.
const STUBS: [u64; 2] = [0x9000, 0x9010];
const TOP: u32 = 0x8000_0000;
/// The size codes of words.
const CALL: u32 = 1;
const JUMP: u32 = 2;
const RETURN: u32 = 3;
const REFERENCES: u32 = 4;
const TARGET: u32 = 5;
const DIRECT_CALL: u32 = 6;
const DIRECT_JUMP: u32 = 7;

fn targets() -> Vec<u64> {
    (0..FUNCTIONS).map(|function| 0x1000 + 0x100 * u64::from(function)).chain(STUBS).collect()
}

/// A table that has the edges of all blocks and targets, and a direct target for every block.
fn table() -> EdgeTable {
    let mut table = EdgeTable::default();
    let targets = targets();
    for block in 0..BLOCKS {
        for (&target, function) in targets.iter().zip(1..) {
            let is_stub = STUBS.contains(&target);
            let kind = if is_stub { CalleeKind::Stub } else { CalleeKind::Function };
            table.enter(block, (target, if is_stub { 0x10 } else { 0x100 }), (function, kind));
        }
        let target = targets[block as usize % targets.len()];
        table.add_targets(&[DirectTarget { block, target }]);
    }
    table
}

pub(super) struct Numbers(pub(super) u64);

impl Numbers {
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// Words of random transfers, as generated code writes them, with other records between.
fn words(numbers: &mut Numbers, references: bool) -> Vec<Record> {
    let word = |block: u32, code, address, extra| Record {
        address,
        what: block << 8 | (RecordKind::Tool as u32) << 4 | code,
        extra,
    };
    let (mut records, mut slots, mut sums) = (Vec::new(), Vec::new(), [0u64; 3]);
    let mut stub = None;
    for _ in 0..300 {
        let block = numbers.below(BLOCKS.into()) as u32;
        sums.iter_mut().for_each(|sum| *sum += numbers.below(7));
        let pointer = slots.last().copied().unwrap_or(TOP) - 16 * numbers.below(3) as u32;
        let mut code = [CALL, JUMP, RETURN, RETURN, DIRECT_CALL, DIRECT_CALL, DIRECT_CALL, DIRECT_JUMP]
            [numbers.below(8) as usize];
        let mut target = targets()[numbers.below(8) as usize];
        // A stub mostly jumps to its own function, where its call has left the stack pointer.
        let jumps_on = std::mem::take(&mut stub).filter(|_| numbers.below(8) > 0);
        if let Some(stub) = jumps_on {
            (code, target) = (JUMP, targets()[stub]);
        }
        let stack = match code {
            RETURN => slots.pop().unwrap_or(TOP) + if numbers.below(12) == 0 { 8 } else { 0 },
            CALL | DIRECT_CALL => {
                slots.push(pointer - 8);
                let direct = block as usize % 8;
                stub = Some(direct % 6).filter(|_| code == DIRECT_CALL && direct >= 6);
                pointer
            }
            _ => slots.last().copied().unwrap_or(TOP),
        };
        records.push(word(block, code, sums[0], stack));
        if references {
            records.push(word(block, REFERENCES, sums[1], sums[2] as u32));
        }
        if matches!(code, CALL | JUMP) {
            records.push(word(block, TARGET, target, 0));
        }
        if numbers.below(4) == 0 {
            records.extend(Record::new(RecordKind::Load, 8, 0, 0x5000));
        }
    }
    records
}

/// The edges of all calls, if the records come in batches of these lengths.
pub(super) fn edges<const N: usize>(
    mut table: EdgeTable,
    records: &[Record],
    mut length: impl FnMut() -> usize,
) -> BTreeMap<u32, Edge<N>> {
    let kind = if N == 1 { CallRecords::Instructions } else { CallRecords::References };
    let counting = Counting { more: |_| 0, layout: StateLayout::default() };
    let (mut symbols, mut batch) = (Symbolizer::new(), Batch::default());
    let mut thread = ThreadCalls::<N>::new((kind, JumpRecords::LeftOut), table.next_binding());
    thread.collect(Collects::Yes);
    let mut rest = records;
    while !rest.is_empty() {
        let (records, behind) = rest.split_at(length().min(rest.len()));
        rest = behind;
        let mut keys = Keys { table: &mut table, symbols: &mut symbols, modules: &[] };
        if N == 1 {
            thread.follow_records(records, &counting, &mut batch, &mut keys);
            let plain = records.iter().filter(|record| !is_word(record));
            assert!(batch.plain().0.iter().eq(plain));
        } else {
            thread.divide(records, &counting, &mut batch);
            thread.follow_steps(records, &batch, &mut keys);
        }
    }
    let now = thread.now();
    thread.stack.clear(&now);
    let edges = thread.stack.take(&now).into_iter().zip(0..).filter(|(edge, _)| !edge.is_empty());
    edges.map(|(edge, number)| (number, edge)).collect()
}

#[test]
fn batches_are_their_words_one_by_one() {
    for seed in 0..200 {
        let mut numbers = Numbers(seed);
        let records = words(&mut numbers, false);
        let single = edges::<1>(table(), &records, || 1);
        assert!(single.len() > 20, "{single:?}");
        assert_eq!(edges::<1>(table(), &records, || usize::MAX), single, "seed {seed}");
        assert_eq!(edges::<1>(table(), &records, || 1 + numbers.below(9) as usize), single, "seed {seed}");
        let records = words(&mut numbers, true);
        let single = edges::<9>(table(), &records, || 1);
        assert_eq!(edges::<9>(table(), &records, || usize::MAX), single, "seed {seed}");
        assert_eq!(edges::<9>(table(), &records, || 1 + numbers.below(9) as usize), single, "seed {seed}");
    }
}

#[test]
fn a_call_through_a_stub_is_one_of_its_function() {
    let known = |edge| Known::new(edge, 1, CalleeKind::Function);
    let mut table = table();
    let mut symbols = Symbolizer::new();
    let keys = Keys { table: &mut table, symbols: &mut symbols, modules: &[] };
    assert_eq!(keys.behind_stub(6, 0x1000), None);
    let mut keys = keys;
    keys.note_behind_stub(6, 0x1000, known(0));
    assert_eq!(keys.behind_stub(6, 0x1000), Some(known(0)));
    assert_eq!(keys.behind_stub(6, 0x1100), None);
}
