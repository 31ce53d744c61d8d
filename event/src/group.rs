//! Puts the records of a complex reference together, also when a batch ends in the middle of a
//! group.
//!
//! **Why this way.** A state machine of one group per thread, fed record by record, so that readers
//! of rings, files and vectors share it. Damage costs one group: the first record that does not
//! continue the group is taken as the start of something new.

use crate::{
    group_shape, Complex, Malformed, Record, RecordKind, Shape, COMPLEX_CODE, PAYLOAD_CODE, VALUES_MAX,
};

/// What a record did to the group in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The record is no part of a group.
    Plain,
    /// The record is part of a group that is not whole yet.
    Part,
    /// The record completes a group of this site.
    Whole(usize, Complex),
    /// The record, or the group before it, is damaged and was dropped.
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
    /// What the last first record said, and its shape: a loop says the same again.
    known: Option<(u32, Shape)>,
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

    /// Takes the group that `records` begin with at once, where no group has begun and it is a
    /// whole one of a masked access: its shape and values. None is taken otherwise, and the caller
    /// takes them record by record.
    pub fn masked(&mut self, records: &[Record]) -> Option<(Shape, [u64; 2])> {
        let [first, second, ..] = records else { return None };
        if self.is_open() || first.code().0 != COMPLEX_CODE {
            return None;
        }
        let shape = self.shape(first).ok()?;
        let continues = first.what & !0xff | u32::from(PAYLOAD_CODE);
        let whole = matches!(shape, Shape::Masked { .. }) && (second.what, second.extra) == (continues, 1);
        whole.then_some((shape, [first.address, second.address]))
    }

    /// The shape that a group's first record names.
    fn shape(&mut self, first: &Record) -> Result<Shape, Malformed> {
        match self.known {
            Some((extra, shape)) if extra == first.extra && first.code().0 == COMPLEX_CODE => Ok(shape),
            _ => {
                let shape = group_shape(first)?;
                self.known = Some((first.extra, shape));
                Ok(shape)
            }
        }
    }

    fn start(&mut self, record: &Record) -> Step {
        let interrupted = (self.have > 0).then_some(Malformed::Values(self.have, self.need));
        self.have = 0;
        match self.shape(record) {
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
