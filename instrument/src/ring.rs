//! Hands the rings' segments to the observer's thread and back.
//!
//! A thread of the program appends to its ring; at a segment's end it stops, the host passes the segment on and the program
//! goes on in the next one, waiting only when the observer still holds that. On a single core the host shows it to the observer itself: two
//! changes of threads less for each segment. What complex references touched is tallied on the way, so that totals are exact
//! whatever the observer does.

use crate::layout::context;
use crate::memory::Shared;
use crate::run::{ComplexCounts, Observer, Progress};
use event::{Complex, Record, StateLayout};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A stretch of records that is the observer's until it reports back.
pub(crate) struct Segment {
    pub(crate) shared: Arc<Shared>,
    pub(crate) thread: u32,
    /// Number of the image.
    pub(crate) image: u32,
    /// Byte offset in the shared file.
    pub(crate) offset: usize,
    pub(crate) count: usize,
    /// Reported back.
    pub(crate) token: Token,
}

/// A segment's image, context and number.
pub(crate) type Token = (u32, usize, u32);

/// What the observer's side is given.
pub(crate) enum Given {
    /// Records.
    Segment(Segment),
    /// Nothing follows of this image.
    Ended(u32),
}

/// (loads, stores, iterations beyond one per execution) by (image, site).
pub(crate) type Tally = HashMap<(u32, u32), (u64, u64, u64)>;

/// The observer at work.
pub(crate) struct Watch<'o> {
    observer: &'o mut dyn Observer,
    counts: ComplexCounts,
    layout: StateLayout,
    tally: Tally,
    image: u32,
    blocks: Arc<AtomicUsize>,
    started: Instant,
    told: Instant,
}

/// Between two calls of [`Observer::progress`].
const PERIOD: Duration = Duration::from_millis(100);

impl<'o> Watch<'o> {
    /// The observer of a run that began at `started` and has translated so many `blocks`.
    pub(crate) fn new(
        observer: &'o mut dyn Observer,
        blocks: Arc<AtomicUsize>,
        started: Instant,
    ) -> Watch<'o> {
        let (counts, layout) = (observer.complex_counts(), crate::emit::state_layout());
        let told = Instant::now();
        Watch { observer, counts, layout, tally: Tally::new(), image: 0, blocks, started, told }
    }

    /// Shows the observer what is given.
    pub(crate) fn take(&mut self, given: &Given) {
        let Watch { observer, tally, layout, .. } = self;
        let segment = match given {
            Given::Ended(image) => return observer.image_ended(*image),
            Given::Segment(segment) => segment,
        };
        let records = segment.shared.records(segment.offset, segment.count);
        if std::mem::replace(&mut self.image, segment.image) != segment.image {
            observer.image(segment.image);
        }
        match self.counts {
            ComplexCounts::ByObserver => observer.records(segment.thread, records),
            ComplexCounts::ByEngine => parts(records).for_each(|part| {
                count_complex(part, segment.image, layout, tally);
                observer.records(segment.thread, part);
            }),
        }
    }

    /// Tells it how far the run is, if it is time.
    pub(crate) fn tell(&mut self) {
        if self.told.elapsed() >= PERIOD {
            self.told = Instant::now();
            let blocks = self.blocks.load(Ordering::Relaxed);
            self.observer.progress(&Progress { wall: self.started.elapsed(), blocks });
        }
    }

    /// What it tallied.
    pub(crate) fn tally(self) -> Tally {
        self.tally
    }
}

/// Runs on the observer's thread until the host hangs up.
pub(crate) fn observe(mut watch: Watch, incoming: &Receiver<Given>, done: &Sender<Token>) -> Tally {
    loop {
        match incoming.recv_timeout(PERIOD) {
            Ok(given) => {
                watch.take(&given);
                if let Given::Segment(segment) = given {
                    let _ = done.send(segment.token);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return watch.tally(),
        }
        watch.tell();
    }
}

/// Cuts a segment into parts that stay in the first-level cache between the tally's pass and the observer's; a complex reference
/// and its payloads stay together.
fn parts(records: &[Record]) -> impl Iterator<Item = &[Record]> {
    const PART_RECORDS: usize = 1024;
    let mut rest = records;
    std::iter::from_fn(move || {
        let mut end = rest.len().min(PART_RECORDS);
        while end < rest.len() && rest[end].what as u8 == event::PAYLOAD_CODE {
            end += 1;
        }
        let (part, more) = rest.split_at(end);
        rest = more;
        (!part.is_empty()).then_some(part)
    })
}

/// The first complex record of `records` from `at` on. They are rare: eight records are looked at together, without a branch for each.
fn next_complex(records: &[Record], at: usize) -> Option<usize> {
    const STEP: usize = 8;
    let is_complex = |record: &Record| record.what as u8 == event::COMPLEX_CODE;
    let steps = records[at..].chunks(STEP);
    let any = |step: &[Record]| match step.first_chunk::<STEP>() {
        Some(step) => step.iter().fold(0, |any, record| any | u32::from(is_complex(record))) != 0,
        None => step.iter().any(is_complex),
    };
    let skipped = steps.take_while(|step| !any(step)).count() * STEP;
    let rest = records.get(at + skipped..)?;
    rest.iter().position(is_complex).map(|index| at + skipped + index)
}

/// Adds what the complex references of `records` touched to `tally`.
fn count_complex(records: &[Record], image: u32, layout: &StateLayout, tally: &mut Tally) {
    let mut at = 0;
    while let Some(next) = next_complex(records, at) {
        at = next;
        let first = &records[at];
        let count = event::group_shape(first).map_or(1, |s| s.values());
        let end = (at + count).min(records.len());
        if let Ok(complex) = Complex::decode(&records[at..end]) {
            let entry = tally.entry((image, first.what >> 8)).or_default();
            complex.count(layout, entry);
        }
        at = end;
    }
}

/// Counting without walking, where it can be done.
trait Count {
    fn count(&self, layout: &StateLayout, entry: &mut (u64, u64, u64));
}

impl Count for Complex {
    fn count(&self, layout: &StateLayout, entry: &mut (u64, u64, u64)) {
        let iterations = self.iterations();
        let mut one = *self;
        let many = matches!(self.shape, event::Shape::String { .. });
        if many {
            entry.2 += iterations.saturating_sub(1);
            if iterations == 0 {
                return;
            }
            one = first_iteration(self);
        }
        let times = if many { iterations } else { 1 };
        one.references(layout, |_, _, access| match access {
            event::Access::Load => entry.0 += times,
            event::Access::Store => entry.1 += times,
            event::Access::Prefetch => {}
        });
    }
}

/// The same string operation cut down to its first iteration.
fn first_iteration(complex: &Complex) -> Complex {
    let event::Shape::String { operation, element_bytes, .. } = complex.shape else { return *complex };
    let mut one = *complex;
    let source = operation == event::StringOperation::Lods;
    let before = complex.values[usize::from(!source)];
    let backwards = complex.values[2].wrapping_sub(before) as i64;
    let step = if backwards < 0 { -i64::from(element_bytes) } else { i64::from(element_bytes) };
    one.values[2] = before.wrapping_add(step as u64);
    one
}

/// Offset in the shared file of a context's segment.
pub(crate) fn segment_start(context_offset: usize, segment: u32) -> usize {
    context_offset + (context::RING + segment * context::RING_SEGMENT_BYTES) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_complex_record_is_found() {
        for len in 0..40 {
            for complex in 0..len {
                let code = |n: usize| u32::from(if n == complex { event::COMPLEX_CODE } else { 0 });
                let record = |n: usize| Record { address: 0, what: 0xf00 | code(n), extra: 0 };
                let records: Vec<Record> = (0..len).map(record).collect();
                for at in 0..=len {
                    let expected = (at <= complex).then_some(complex);
                    assert_eq!(next_complex(&records, at), expected, "{len} {at}");
                }
            }
        }
    }

    #[test]
    fn parts_are_the_whole_and_keep_groups_together() {
        for payloads in 0..5 {
            let code = |n: usize| {
                let group = n >= 1023 && n < 1024 + payloads;
                u32::from(if n == 1023 {
                    event::COMPLEX_CODE
                } else if group {
                    event::PAYLOAD_CODE
                } else {
                    0
                })
            };
            let record = |n: usize| Record { address: n as u64, what: code(n), extra: 0 };
            let records: Vec<Record> = (0..3000).map(record).collect();
            let joined: Vec<Record> = parts(&records).flatten().copied().collect();
            assert_eq!(joined, records);
            assert!(parts(&records).all(|p| p[0].what as u8 != event::PAYLOAD_CODE));
        }
        assert_eq!(parts(&[]).count(), 0);
    }
}
