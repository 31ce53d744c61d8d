//! Consumers of a stream, and the small ones that every test needs.
//!
//! **What.** A [`Sink`] takes batches of records, each of one thread and in program order; batches
//! may end anywhere, also inside a complex reference's group. **Leaves out** the checker
//! (`check.rs`) and anything that interprets addresses.

use crate::{Record, RecordKind};
use std::collections::BTreeMap;

/// Takes what a program emits.
pub trait Sink {
    /// Records of one thread, in program order.
    fn records(&mut self, thread: u32, records: &[Record]);
}

/// Counts records by kind; cost: one table look-up per record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counter {
    by_kind: [u64; 16],
}

impl Counter {
    /// Records of `kind` so far.
    pub fn count(&self, kind: RecordKind) -> u64 {
        self.by_kind[kind as usize]
    }

    /// All records so far.
    pub fn total(&self) -> u64 {
        self.by_kind.iter().sum()
    }
}

impl Sink for Counter {
    fn records(&mut self, _thread: u32, records: &[Record]) {
        for record in records {
            self.by_kind[record.code().kind() as usize] += 1;
        }
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
