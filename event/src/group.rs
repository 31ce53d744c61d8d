//! Puts the records of a complex reference together, also when a batch ends in the middle of a group.
//!
//! **Why this way.** A state machine of one group per thread, fed record by record, so that readers of rings, files and vectors share
//! it. Damage costs one group: the first record that does not continue the group is taken as the start of something new.

use crate::{group_shape, Complex, Malformed, Record, RecordKind, VALUES_MAX};

/// What a record did to the group in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It is no part of a group.
    Plain,
    /// It is part of a group that is not whole yet.
    Part,
    /// It completes a group of this site.
    Whole(usize, Complex),
    /// It, or the group before it, is damaged and was dropped.
    Damaged(Malformed),
    /// The group before it was damaged and is dropped; the record itself is no part of a group.
    DamagedBefore(Malformed),
}

/// The group in progress of one thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Groups {
    records: [Record; VALUES_MAX],
    have: usize,
    need: usize,
}

impl Groups {
    /// Takes the next record of the thread.
    pub fn push(&mut self, record: &Record) -> Step {
        match record.code().kind() {
            RecordKind::Complex => self.start(record),
            RecordKind::Payload if self.have == 0 => Step::Damaged(Malformed::NotComplex),
            RecordKind::Payload => self.add(record),
            _ if self.have == 0 => Step::Plain,
            _ => {
                let dropped = Malformed::Values(self.have, self.need);
                self.have = 0;
                Step::DamagedBefore(dropped)
            }
        }
    }

    /// Whether a group has begun and is not whole.
    pub fn is_open(&self) -> bool {
        self.have > 0
    }

    fn start(&mut self, record: &Record) -> Step {
        let interrupted = (self.have > 0).then_some(Malformed::Values(self.have, self.need));
        self.have = 0;
        match group_shape(record) {
            Err(malformed) => return Step::Damaged(malformed),
            Ok(shape) => self.need = shape.values(),
        }
        match (self.add(record), interrupted) {
            (Step::Part, Some(malformed)) => Step::Damaged(malformed),
            (step, _) => step,
        }
    }

    fn add(&mut self, record: &Record) -> Step {
        self.records[self.have] = *record;
        self.have += 1;
        if self.have < self.need {
            return Step::Part;
        }
        let group = &self.records[..self.have];
        self.have = 0;
        match Complex::decode(group) {
            Ok(complex) => Step::Whole(record.site(), complex),
            Err(malformed) => Step::Damaged(malformed),
        }
    }
}
