//! Turns records into touches of single lines, so that sweeps need no special cases for sizes and
//! kinds.
//!
//! **The problem.** A record may touch one line, two, or many. A branch that decides this for each
//! record costs more than touching a row.
//!
//! **The idea.** Nearly every record is already a touch of one line: its kind and size determine
//! the highest offset in a line at which it fits ([`TouchLimits`]), and a vector instruction
//! compares sixteen records at once. All sixteen are written behind the touches, and `len` advances
//! over those that are touches. Other records leave the fast loop. Those that only cross into the
//! next line are two touches and return to it at once:
//!
//! ```text
//! sixteen records --all are touches--> len + 16, the next sixteen
//!                 --the n-th is not--> len + n; two lines: two touches, go on; else: to the caller
//! ```
//!
//! A `Modify` within one line is touched once: its store hits the line that its load has just put
//! in front.
//!
//! **Invariants.** Touches keep the order of records; touches of one reference have its number and
//! are never divided between two sweeps. **Leaves out** everything that depends on cache contents.

use crate::kernel::{Kernel, Pass, Vectors};
use crate::limits::{InstructionSide, TouchLimits};
use crate::touch::{Touches, STEP, SWEEP};
use crate::Levels;
use event::{Record, RecordKind};

/// Touches that wait to be swept, and the state that makes them.
pub(crate) struct Stage {
    pub(crate) touches: Box<Touches>,
    /// The number of the next reference.
    pub(crate) reference: u32,
    pub(crate) line_bytes: u64,
    pub(crate) fetch_line_bytes: u64,
    pub(crate) fetches: InstructionSide,
    limits: TouchLimits,
    kernel: Kernel,
}

/// References are numbered from here after every drain.
pub(crate) const FIRST_REFERENCE: u32 = 1;

impl Stage {
    pub(crate) fn new(levels: &Levels) -> Stage {
        let line_bytes = u64::from(levels.data.line_bytes);
        let fetches =
            if levels.instruction.is_some() { InstructionSide::Simulated } else { InstructionSide::Ignored };
        Stage {
            touches: Touches::empty(),
            reference: FIRST_REFERENCE,
            line_bytes,
            fetch_line_bytes: levels.instruction.map_or(1, |geometry| geometry.line_bytes.into()),
            fetches,
            limits: TouchLimits::new(line_bytes, fetches),
            kernel: Kernel::fastest(),
        }
    }

    /// Stages leading `records` that are touches, as many as there is room for, and returns their
    /// number.
    /// Misses of data pages go to `pages`; without it they end the leading records.
    pub(crate) fn fill(&mut self, records: &[Record], pages: Option<&mut Touches>) -> usize {
        let Stage { touches, reference, limits, kernel, .. } = self;
        let count = kernel.pass(StageRecords { records, limits, reference: *reference, touches, pages });
        self.reference = self.reference.wrapping_add(count as u32);
        count
    }

    /// Whether there is no room for a step.
    pub(crate) fn is_full(&self) -> bool {
        is_full(&self.touches)
    }

    /// Stages one touch of the current reference. There must be room.
    pub(crate) fn push(&mut self, address: u64, what: u32) {
        self.touches.push(address, what, self.reference);
    }
}

/// Whether `touches` have no room for a step.
pub(crate) fn is_full(touches: &Touches) -> bool {
    touches.len > SWEEP - STEP
}

/// All records of a step are touches.
const ALL: u32 = (1 << STEP) - 1;

struct StageRecords<'a> {
    records: &'a [Record],
    limits: &'a TouchLimits,
    reference: u32,
    touches: &'a mut Touches,
    pages: Option<&'a mut Touches>,
}

impl Pass for StageRecords<'_> {
    type Output = usize;

    #[inline(always)]
    fn run<K: Vectors>(self, kernel: K) -> usize {
        let StageRecords { records, limits, reference, touches, mut pages } = self;
        let mut count = 0;
        while !is_full(touches) && !pages.as_deref().is_some_and(is_full) {
            let Some(step) = records[count..].first_chunk() else { break };
            let good = kernel.stage(step, limits, reference.wrapping_add(count as u32), touches);
            // The processor predicts this branch, and so begins the next step before it knows that
            // this one is whole.
            if good == ALL {
                touches.len += STEP;
                count += STEP;
                continue;
            }
            if let Some(pages) = pages.as_deref_mut() {
                let leading = stage_pages(kernel, step, good, touches, pages);
                count += leading;
                if leading > 0 {
                    continue;
                }
            }
            // Some record of the step is no touch. Those before it are staged already.
            let leading = good.trailing_ones() as usize;
            touches.len += leading;
            count += leading;
            // The next record is no touch. Often it only crosses into the next line.
            let Some(second) = limits.second_line(&records[count]) else { return count };
            // Two touches of one reference must be in one sweep.
            if touches.len + 2 > SWEEP {
                return count;
            }
            let Record { address, what, .. } = records[count];
            let reference = reference.wrapping_add(count as u32);
            touches.push(address, what, reference);
            touches.push(second, what, reference);
            count += 1;
        }
        if pages.is_some_and(|pages| is_full(pages)) {
            return count;
        }
        // Fewer records than a step are left. They are staged one by one, up to the first that is
        // no touch.
        for record in &records[count..] {
            if touches.len > SWEEP - STEP || !limits.hold(record) {
                break;
            }
            touches.push(record.address, record.what, reference.wrapping_add(count as u32));
            count += 1;
        }
        count
    }
}

/// Divides a step behind the last one of `touches` into its touches, `good`, and its misses of a
/// data page, which move to `pages`. Returns how many leading records of the step are one or the
/// other, or 0 if none of the step is a miss of a page.
#[inline(always)]
fn stage_pages<K: Vectors>(
    kernel: K,
    records: &[Record; STEP],
    good: u32,
    touches: &mut Touches,
    pages: &mut Touches,
) -> usize {
    let step = touches.copied(touches.len);
    // Two pages of one reference are rare, and taken apart elsewhere.
    let missed = kernel.of_kind(step.step().what, RecordKind::DataPage) & kernel.without_extra(records);
    if missed == 0 {
        return 0;
    }
    let leading = (good | missed).trailing_ones();
    let lanes = (1 << leading) - 1;
    kernel.keep(missed & lanes, step.step(), pages);
    kernel.keep(good & lanes, step.step(), touches);
    leading as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The records of a step whose last word is 0.
    struct WithoutExtra<'a>(&'a [Record; STEP]);

    impl Pass for WithoutExtra<'_> {
        type Output = u32;

        #[inline(always)]
        fn run<K: Vectors>(self, kernel: K) -> u32 {
            kernel.without_extra(self.0)
        }
    }

    #[test]
    fn every_kernel_finds_the_records_without_an_extra_word() {
        for expected in 0..=ALL {
            // All other words differ from 0, and are 0, by turns.
            let other = expected % 3;
            let records = std::array::from_fn(|lane| {
                let extra = (!expected >> lane & 1) << (lane + 11);
                Record { address: u64::from(other), what: other, extra }
            });
            for kernel in Kernel::all() {
                assert_eq!(kernel.pass(WithoutExtra(&records)), expected, "{kernel:?}");
            }
        }
    }
}
