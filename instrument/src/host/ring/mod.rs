//! Hands the rings' segments to the observer's thread and back.
//!
//! A thread of the program appends records to its ring. At a segment's end it stops; the host hands
//! the segment to the observer, and the thread goes on in the next segment. It waits only if the
//! observer still holds the next segment. On a single core the host calls the observer itself,
//! which saves two changes of threads for each segment.
//!
//! ```text
//!   thread ─ appends ─▶ segment 0 │ segment 1 │ …        shared memory
//!                            │ full: a stop, the host lends it to the observer
//!                            ▼
//!       copy, screen and count a part by kind ─▶ count complex references ─▶ observer
//! ```
//!
//! The program could write into a segment that it has handed over. So the observer never reads the
//! ring itself: the consumer copies records part by part into a buffer that stays in the
//! first-level cache, and screens them there ([`screen`]). It also tallies the loads and stores of
//! complex references, so these totals are exact whatever the observer does.

mod kind_counts;
pub(crate) mod screen;
mod wide;

use crate::call::{CallRecords, DirectTarget, Ticks};
use crate::evidence::{Evidence, Forgery};
use crate::mark::{Deed, PartCounts};
use crate::outcome::{ComplexCounts, EndedImage, Fork, Observer, Progress, TurnStart};
use crate::profile::{self, BlocksOfImages, ComplexTally, Descent, JoinedProfile, Module, Profile};
use crate::target::memory::Shared;
use event::{Complex, Record, StateLayout, Stream, Upcoming, PAYLOAD_CODE, VALUES_MAX};
use screen::{Limits, Screen};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A run of records that the observer owns until it returns the segment.
pub(crate) struct Segment {
    pub(crate) shared: Arc<Shared>,
    pub(crate) thread: u32,
    /// Number of the image.
    pub(crate) image: u32,
    /// Byte offset in the shared file.
    pub(crate) offset: usize,
    pub(crate) count: usize,
    /// The highest numbers that its records may name.
    pub(crate) limits: Limits,
    /// Identifies the segment when the observer returns it.
    pub(crate) id: SegmentId,
    /// The marks that its thread reached while it filled the segment, in their order.
    pub(crate) marks: Vec<MarkWithin>,
}

impl Segment {
    /// Takes records away that the observer has already.
    pub(super) fn skip(&mut self, records: usize) {
        self.offset += records * size_of::<Record>();
        self.count = self.count.saturating_sub(records);
    }

    /// A segment of memory of its own.
    #[cfg(test)]
    pub(super) fn of_test(id: SegmentId, offset: usize, count: usize) -> Segment {
        let shared = Arc::new(Shared::new(1 << 16).expect("memory"));
        let limits = Limits { sites: 0, blocks: 0, requests: 0, elapsed: Duration::ZERO };
        Segment { shared, thread: 0, image: id.0, offset, count, limits, id, marks: Vec::new() }
    }
}

/// A mark that a thread has reached, behind some records of a segment.
pub(crate) struct MarkWithin {
    /// Number of records of the segment before it.
    pub(crate) behind: usize,
    /// The thread's running sums there, if calls are recorded.
    pub(crate) ticks: Option<Ticks>,
    pub(crate) deeds: Vec<Deed>,
}

/// A segment's image, context and number.
pub(crate) type SegmentId = (u32, usize, u32);

/// A message to the observer's side.
pub(crate) enum RingMessage {
    /// Records.
    Segment(Segment),
    /// Modules that an image has in addition.
    Modules(u32, Vec<Module>),
    /// Addresses of instructions of sites that an image has in addition.
    Sites(u32, Vec<u64>),
    /// Targets of direct calls and jumps that an image has in addition.
    Targets(u32, Vec<DirectTarget>),
    /// The running sums of this thread of an image, behind the records that it has made so far.
    Ticks { image: u32, thread: u32, ticks: Ticks },
    /// This thread of an image has ended: no more records of it follow. Other threads live.
    ThreadEnded { image: u32, thread: u32 },
    /// The image with this number has ended: no more records of it follow. Its profile and its
    /// parts lack complex references.
    ImageEnded(u32, Box<(Profile, Vec<PartCounts>, Descent)>),
    /// The turn of this thread of an image begins.
    Turn { image: u32, thread: u32, start: TurnStart },
    /// A thread has forked a child, behind the records that it has made so far.
    Forked(Fork),
    /// This thread of an image has reached a mark, behind the records that it has made so far.
    Marked { image: u32, thread: u32, deeds: Vec<Deed> },
}

/// What the observer's side keeps of an image that lives, besides the observer's own work.
#[derive(Default)]
struct ImageTotals {
    /// Loads, stores and repetitions of complex references.
    tally: ComplexTally,
    /// Records of plain references.
    plain: u64,
}

/// Records of a part. They take 16 KiB, which leaves room for the observer's own data in the
/// first-level cache.
const PART_RECORDS: usize = 1024;

/// A part and the payloads that may follow it. It begins a line of the host's cache, so that four
/// records are one line.
#[repr(align(64))]
struct Part([Record; PART_RECORDS + VALUES_MAX]);

/// Takes messages of the host, screens their records and delivers them to the observer.
pub(crate) struct Consumer<'o> {
    observer: &'o mut dyn Observer,
    counts: ComplexCounts,
    layout: StateLayout,
    /// Whether the run counts how often blocks run.
    counts_blocks: bool,
    /// Whether calls are recorded.
    calls: CallRecords,
    living: HashMap<u32, ImageTotals>,
    ended: JoinedProfile,
    evidence: Evidence,
    screen: Screen,
    part: Box<Part>,
    image: u32,
    blocks: Arc<AtomicUsize>,
    started: Instant,
    reported: Instant,
}

/// The least time between two calls of [`Observer::progress`].
const PERIOD: Duration = Duration::from_millis(100);

impl<'o> Consumer<'o> {
    /// The consumer of a run that began at `started`; `blocks` is the number of translated blocks.
    pub(crate) fn new(
        observer: &'o mut dyn Observer,
        (stream, calls, of_images): (&Stream, CallRecords, BlocksOfImages),
        blocks: Arc<AtomicUsize>,
        started: Instant,
        evidence: Evidence,
    ) -> Consumer<'o> {
        Consumer {
            counts: observer.complex_counts(),
            observer,
            layout: crate::code::state_area::state_layout(),
            counts_blocks: *stream != Stream::Nothing,
            calls,
            living: HashMap::new(),
            ended: JoinedProfile::new(of_images),
            evidence,
            screen: Screen::new(),
            part: Box::new(Part([Record::default(); PART_RECORDS + VALUES_MAX])),
            image: 0,
            blocks,
            started,
            reported: Instant::now(),
        }
    }

    /// Delivers a message to the observer. If it was a segment, returns its id, so that the program
    /// can fill it again. After the first forged number nothing more is delivered.
    pub(crate) fn take(&mut self, message: RingMessage) -> Option<SegmentId> {
        let delivers = !self.evidence.exists();
        match message {
            RingMessage::ThreadEnded { image, thread } => {
                if delivers {
                    self.observer.thread_ended(image, thread);
                }
                None
            }
            RingMessage::Modules(image, more) => {
                if delivers {
                    self.observer.modules(image, &more);
                }
                None
            }
            RingMessage::Sites(image, more) => {
                if delivers {
                    self.observer.sites(image, &more);
                }
                None
            }
            RingMessage::Targets(image, more) => {
                if delivers {
                    self.observer.targets(image, &more);
                }
                None
            }
            RingMessage::Ticks { image, thread, ticks } => {
                if delivers {
                    self.observer.ticks(image, thread, ticks);
                }
                None
            }
            RingMessage::ImageEnded(number, ended) => {
                if delivers {
                    self.image_ended(number, *ended);
                }
                None
            }
            RingMessage::Turn { image, thread, start } => {
                if delivers {
                    self.observer.turn(image, thread, start);
                }
                None
            }
            RingMessage::Forked(fork) => {
                if delivers {
                    self.observer.forked(&fork);
                }
                None
            }
            RingMessage::Marked { image, thread, deeds } => {
                if delivers {
                    deeds.into_iter().for_each(|deed| self.observer.marked(image, thread, deed));
                }
                None
            }
            RingMessage::Segment(segment) => {
                if let Some(forgery) = delivers.then(|| self.segment(&segment)).and_then(Result::err) {
                    self.evidence.note(forgery);
                }
                Some(segment.id)
            }
        }
    }

    /// Completes the profile of an image that has ended, shows it to the observer, and adds it to
    /// the profile of the run.
    fn image_ended(
        &mut self,
        number: u32,
        (mut profile, parts, descent): (Profile, Vec<PartCounts>, Descent),
    ) {
        let ImageTotals { tally, plain } = self.living.remove(&number).unwrap_or_default();
        if let Some(forgery) =
            self.counts_blocks.then(|| profile::too_many(&profile, self.calls, plain)).flatten()
        {
            return self.evidence.note(forgery);
        }
        profile::complete(&mut profile, tally);
        let numbering = self.ended.number(&profile, &descent);
        let image = EndedImage { number, profile: &profile, numbering: &numbering, parts: &parts };
        self.observer.image_ended(&image);
        self.ended.add(profile, numbering, &descent);
    }

    /// Delivers the records of a segment, part by part.
    fn segment(&mut self, segment: &Segment) -> Result<(), Forgery> {
        if std::mem::replace(&mut self.image, segment.image) != segment.image {
            self.observer.image(segment.image);
        }
        self.screen.expect(segment.limits);
        let mut at = 0;
        for mark in &segment.marks {
            self.records(segment, at..mark.behind.clamp(at, segment.count))?;
            at = mark.behind.clamp(at, segment.count);
            if let Some(ticks) = mark.ticks {
                self.observer.ticks(segment.image, segment.thread, ticks);
            }
            for &deed in &mark.deeds {
                self.observer.marked(segment.image, segment.thread, deed);
            }
        }
        self.records(segment, at..segment.count)
    }

    /// Delivers some records of a segment, part by part.
    fn records(&mut self, segment: &Segment, range: Range<usize>) -> Result<(), Forgery> {
        let totals = self.living.entry(segment.image).or_default();
        let mut at = range.start;
        while at < range.end {
            let room = self.part.0.len().min(range.end - at);
            let offset = segment.offset + at * size_of::<Record>();
            let copied = self.screen.copy(&segment.shared, offset, &mut self.part.0[..room]);
            let part = &self.part.0[..part_len(&self.part.0[..room])?];
            let plain = self.screen.pass(segment.thread, part, copied)?;
            totals.plain += plain as u64;
            if self.counts == ComplexCounts::ByEngine {
                count_complex(part, &self.layout, &mut totals.tally);
            }
            at += part.len();
            let rest = size_of::<Record>() * (segment.count - at).min(PART_RECORDS);
            let next = segment.shared.address(segment.offset + at * size_of::<Record>(), rest);
            self.observer.records_before(segment.thread, part, Upcoming::at(next, rest));
        }
        Ok(())
    }

    /// Reports the run's progress to the observer, at most once in a [`PERIOD`].
    pub(crate) fn report_progress(&mut self) {
        if self.reported.elapsed() >= PERIOD {
            self.reported = Instant::now();
            let blocks = self.blocks.load(Ordering::Relaxed);
            self.observer.progress(&Progress { wall: self.started.elapsed(), blocks });
        }
    }

    /// What was received, when the run is over.
    pub(crate) fn finish(self) -> Received {
        let mut records = event::Counter::default();
        records.add(self.screen.counts());
        Received { profile: self.ended.finish(), records }
    }
}

/// What the observer's side has received in a run.
#[derive(Default)]
pub(crate) struct Received {
    /// The profile of all images.
    pub(crate) profile: Profile,
    /// Records, by kind.
    pub(crate) records: event::Counter,
}

/// Runs on the observer's thread until the host hangs up, and returns what it received.
pub(crate) fn observe(
    mut consumer: Consumer,
    incoming: &Receiver<RingMessage>,
    done: &Sender<SegmentId>,
) -> Received {
    loop {
        match incoming.recv_timeout(PERIOD) {
            Ok(message) => {
                if let Some(segment) = consumer.take(message) {
                    let _ = done.send(segment);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return consumer.finish(),
        }
        consumer.report_progress();
    }
}

/// The number of records in the next part, at the beginning of `records`. A complex reference and
/// its payloads stay together, so no part begins with a payload.
fn part_len(records: &[Record]) -> Result<usize, Forgery> {
    let is_payload = |record: &Record| record.what as u8 == PAYLOAD_CODE;
    let forged = |record: &Record| Forgery::Record(record.address, record.what, record.extra);
    if let Some(first) = records.first().filter(|first| is_payload(first)) {
        return Err(forged(first));
    }
    let whole = records.len().min(PART_RECORDS);
    let more = records[whole..].iter().take_while(|record| is_payload(record)).count();
    match records[whole..].get(VALUES_MAX - 1) {
        // No reference has this many payloads.
        Some(last) if more == VALUES_MAX => Err(forged(last)),
        _ => Ok(whole + more),
    }
}

/// The first complex record of `records` from `at` on. Complex records are rare, so eight records
/// are tested together, without a branch for each.
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

/// Adds the loads, stores and repetitions of the complex references in `records` to `tally`.
fn count_complex(records: &[Record], layout: &StateLayout, tally: &mut ComplexTally) {
    let mut at = 0;
    while let Some(next) = next_complex(records, at) {
        at = next;
        let first = &records[at];
        let count = event::group_shape(first).map_or(1, |shape| shape.values());
        let end = (at + count).min(records.len());
        if let Ok(complex) = Complex::decode(&records[at..end]) {
            let entry = tally.entry(first.what >> 8).or_default();
            let (loads, stores) = complex.loads_and_stores(layout);
            entry.0 = entry.0.saturating_add(loads);
            entry.1 = entry.1.saturating_add(stores);
            entry.2 = entry.2.saturating_add(complex.iterations().saturating_sub(1));
        }
        at = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_complex_record_is_found() {
        for len in 0..40 {
            for complex in 0..len {
                let code = |index: usize| u32::from(if index == complex { event::COMPLEX_CODE } else { 0 });
                let record = |index: usize| Record { address: 0, what: 0xf00 | code(index), extra: 0 };
                let records: Vec<Record> = (0..len).map(record).collect();
                for at in 0..=len {
                    let expected = (at <= complex).then_some(complex);
                    assert_eq!(next_complex(&records, at), expected, "{len} {at}");
                }
            }
        }
    }

    fn cut(records: &[Record]) -> Result<Vec<Vec<Record>>, Forgery> {
        let (mut parts, mut at) = (Vec::new(), 0);
        while at < records.len() {
            let copied = &records[at..records.len().min(at + PART_RECORDS + VALUES_MAX)];
            let len = part_len(copied)?;
            parts.push(copied[..len].to_vec());
            at += len;
        }
        Ok(parts)
    }

    fn group_at(start: usize, payloads: usize) -> Vec<Record> {
        let code = |index: usize| match index {
            index if index == start => event::COMPLEX_CODE,
            index if index > start && index <= start + payloads => PAYLOAD_CODE,
            _ => 0,
        };
        (0..3000).map(|index| Record { address: index as u64, what: code(index).into(), extra: 0 }).collect()
    }

    #[test]
    fn parts_are_the_whole_and_keep_groups_together() {
        for payloads in 0..VALUES_MAX {
            for start in 1000..1030 {
                let records = group_at(start, payloads);
                let parts = cut(&records).unwrap();
                assert_eq!(parts.concat(), records);
                assert!(parts.iter().all(|part| part[0].what as u8 != PAYLOAD_CODE));
            }
        }
        assert_eq!(cut(&[]), Ok(Vec::new()));
    }

    #[test]
    fn payloads_belong_to_a_group() {
        assert!(cut(&group_at(1023, VALUES_MAX + 1)).is_err(), "no reference has so many values");
        assert!(cut(&group_at(0, 3)[1..]).is_err(), "no segment begins within a group");
    }
}
