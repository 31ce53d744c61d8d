//! Batches of records, divided at transfers.
//!
//! Misses belong to the calls that are open when they happen, so a batch is divided before each run
//! of words and behind each complex reference that counts in addition. Its plain records are
//! simulated at once; then steps are followed, each behind the misses of its interval.

use event::{Record, RecordKind};
use instrument::call::is_word;
use simulate::{IntervalMisses, MissIntervals};

/// What a record of a batch means to calls.
#[derive(Clone, Copy, Default)]
pub(super) struct Step {
    /// Where in the batch words of transfers begin; or, with [`MORE`], the number of what a complex
    /// reference has made in addition.
    pub(super) at: u32,
    /// How many plain records lie before it.
    plain: u32,
}

/// The bit of a step that is no word, but a complex reference.
const MORE: u32 = 1 << 31;

/// A batch of records that is divided at its transfers; the allocations are reused.
#[derive(Default)]
pub(super) struct Batch {
    /// The records without words of calls, of which the first `plain_len` are the batch's.
    plain: Vec<Record>,
    plain_len: usize,
    /// The intervals of these records: one before each step, and one behind the last.
    intervals: MissIntervals,
    /// Of these, the first `steps_len` are the batch's.
    steps: Vec<Step>,
    steps_len: usize,
    /// Instructions, loads and stores that complex references have made in addition.
    more: Vec<[u64; 3]>,
}

impl Batch {
    /// Empties it, with room for as many plain records and steps.
    pub(super) fn begin(&mut self, len: usize) {
        if self.plain.len() < len {
            self.plain.resize(len, Record::default());
            self.steps.resize(len, Step::default());
        }
        (self.plain_len, self.steps_len) = (0, 0);
        self.intervals.clear();
        self.more.clear();
    }

    /// Appends a plain record.
    #[inline(always)]
    pub(super) fn push(&mut self, record: &Record) {
        self.plain[self.plain_len] = *record;
        self.plain_len += 1;
    }

    /// Divides `records`; `more_of` says what a complex reference makes in addition, if a record is
    /// its last.
    pub(super) fn divide(
        &mut self,
        records: &[Record],
        mut more_of: impl FnMut(&Record) -> Option<[u64; 3]>,
    ) {
        self.begin(records.len());
        let Batch { plain, steps, more, .. } = self;
        let (mut len, mut count, mut follows_word) = (0, 0, false);
        // Transfers come in no order that a processor would predict, so what is written does not
        // depend on a branch: what the next round writes over was not meant.
        for (record, at) in records.iter().zip(0..) {
            let is_word = is_word(record);
            plain[len] = *record;
            steps[count] = Step { at, plain: len as u32 };
            len += usize::from(!is_word);
            count += usize::from(is_word & !follows_word);
            follows_word = is_word;
            if matches!(record.code().kind(), RecordKind::Complex | RecordKind::Payload) {
                if let Some(counts) = more_of(record) {
                    steps[count] = Step { at: MORE | more.len() as u32, plain: len as u32 };
                    count += 1;
                    more.push(counts);
                }
            }
        }
        self.intervals.divide(steps[..count].iter().map(|step| step.plain));
        (self.plain_len, self.steps_len) = (len, count);
    }

    /// The plain records, with their intervals.
    pub(super) fn plain(&mut self) -> (&[Record], &mut MissIntervals) {
        (&self.plain[..self.plain_len], &mut self.intervals)
    }

    /// The misses before each step, and behind the last.
    pub(super) fn misses(&self) -> &[IntervalMisses] {
        self.intervals.misses()
    }

    pub(super) fn steps(&self) -> &[Step] {
        &self.steps[..self.steps_len]
    }

    /// What a complex reference has made in addition, if the step is one.
    #[inline(always)]
    pub(super) fn more_of(&self, step: &Step) -> Option<[u64; 3]> {
        (step.at & MORE != 0).then(|| self.more[(step.at & !MORE) as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Numbers;

    #[test]
    fn a_batch_is_divided_before_words_and_behind_groups() {
        let record = |kind: RecordKind| Record { address: 9, what: 7 << 8 | (kind as u32) << 4, extra: 5 };
        let mut batch = Batch::default();
        for seed in 0..300 {
            let mut numbers = Numbers(seed);
            let mut records = Vec::new();
            // Where steps lie, and how many plain records before each.
            let (mut expected, mut plain, mut in_words) = (Vec::new(), 0, false);
            for _ in 0..numbers.below(60) {
                let at = records.len() as u32;
                let choice = numbers.below(5);
                match choice {
                    0 | 1 => records.push(record(RecordKind::Tool)),
                    2 | 3 => records.push(record(RecordKind::Load)),
                    _ => records.extend([RecordKind::Complex, RecordKind::Payload].map(record)),
                }
                if choice < 2 && !std::mem::replace(&mut in_words, true) {
                    expected.push((at, plain));
                }
                if choice >= 2 {
                    in_words = false;
                    plain += records.len() as u32 - at;
                }
                if choice == 4 {
                    expected.push((MORE, plain));
                }
            }
            let mut found = 0;
            batch.divide(&records, |record| {
                let is_last = record.code().kind() == RecordKind::Payload;
                found += u64::from(is_last);
                is_last.then_some([found, 1, 0])
            });
            let kinds = batch.steps().iter().map(|step| (step.at.min(MORE), step.plain));
            assert!(kinds.eq(expected.iter().copied()), "seed {seed}");
            let more = batch.steps().iter().filter_map(|step| batch.more_of(step));
            assert!(more.eq((1..=found).map(|number| [number, 1, 0])), "seed {seed}");
            assert_eq!(batch.misses().len(), expected.len() + 1);
            assert!(batch.plain().0.iter().eq(records.iter().filter(|record| !is_word(record))));
        }
    }
}
