//! Consumers of a stream, and the small ones that every test needs.
//!
//! **What.** A [`Sink`] takes batches of records, each of one thread and in program order; batches
//! may end anywhere, also inside a complex reference's group. **Leaves out** the checker
//! (`check.rs`) and anything that interprets addresses.

use crate::{Code, Record, RecordKind};
use std::collections::BTreeMap;

/// Takes what a program emits.
pub trait Sink {
    /// Records of one thread, in program order.
    fn records(&mut self, thread: u32, records: &[Record]);
}

/// Counts records by kind, one by one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counter {
    by_kind: [u64; 16],
}

impl Counter {
    /// Records of `kind` so far.
    pub fn count(&self, kind: RecordKind) -> u64 {
        self.by_kind[kind as usize]
    }

    /// Adds counts by the upper four bits of a code.
    pub fn add(&mut self, by_code: &[u64; 16]) {
        // Codes without a meaning are of kind `Tool`, as everywhere.
        for (code, count) in (0_u8..16).map(|kind| Code(kind << 4)).zip(by_code) {
            self.by_kind[code.kind() as usize] += count;
        }
    }

    /// All records so far.
    pub fn total(&self) -> u64 {
        self.by_kind.iter().sum()
    }
}

impl Sink for Counter {
    fn records(&mut self, _thread: u32, records: &[Record]) {
        let mut counts = [0; 16];
        for record in records {
            counts[usize::from(record.code().0 >> 4)] += 1;
        }
        self.add(&counts);
    }
}

/// Keeps every record, by thread; cost: 16 bytes each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collector {
    /// Records by thread.
    pub threads: BTreeMap<u32, Vec<Record>>,
}

impl Sink for Collector {
    fn records(&mut self, thread: u32, records: &[Record]) {
        self.threads.entry(thread).or_default().extend_from_slice(records);
    }
}

/// Hands everything to two sinks.
#[derive(Clone, Debug, Default)]
pub struct Both<A, B>(pub A, pub B);

impl<A: Sink, B: Sink> Sink for Both<A, B> {
    fn records(&mut self, thread: u32, records: &[Record]) {
        self.0.records(thread, records);
        self.1.records(thread, records);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_counted_in_batches_of_any_length() {
        let kinds = [RecordKind::Load, RecordKind::Fetch, RecordKind::Load, RecordKind::DataPage];
        let records: Vec<Record> =
            (0..23).map(|index| Record::new(kinds[index % 4], 0, 1, 0x40).unwrap()).collect();
        let mut counter = Counter::default();
        for batch in [&records[..], &records[..3], &[]] {
            counter.records(0, batch);
        }
        let counts = kinds.map(|kind| counter.count(kind));
        assert_eq!((counts, counter.total()), ([14, 7, 14, 5], 26));
        let unknown = Record { what: 0xf0, ..Record::default() };
        counter.records(0, &[unknown]);
        assert_eq!((counter.count(RecordKind::Tool), counter.total()), (1, 27));
    }
}
