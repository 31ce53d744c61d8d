//! Records of one thread as a tool gets them: events and references, with numbers that are unique
//! over all images of a run.

use crate::instrumentation::instrumenter::Request;
use event::{Record, RecordKind, Sites, CUT_SITE};

/// An event that a tool requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The tag that the request was made with.
    pub tag: u32,
    /// The requested value.
    pub value: u64,
    /// Number of the request, for [`Batch::request`].
    pub request: u32,
}

/// Records of one thread, in program order.
pub struct Batch<'a> {
    pub(super) thread: u32,
    pub(super) records: &'a [Record],
    pub(super) tables: &'a Tables,
}

impl<'a> Batch<'a> {
    /// Number of the thread in the whole run. A program that executes another one continues as a
    /// new thread.
    pub fn thread(&self) -> u32 {
        self.thread
    }

    /// The events that the tool requested.
    pub fn events(&self) -> impl Iterator<Item = Event> + 'a {
        let first = self.tables.first_request as u32;
        self.records.iter().filter(|record| record.code().kind() == RecordKind::Tool).map(move |record| {
            Event { tag: record.extra, value: record.address, request: record.site() as u32 + first }
        })
    }

    /// The request that `event` belongs to.
    pub fn request(&self, event: &Event) -> Option<&'a Request> {
        self.tables.requests.get(event.request as usize)
    }

    /// All records, including the references of the stream. Their sites and blocks are numbered as
    /// in [`Batch::sites`]. A record whose number would exceed 16 million, which can happen after
    /// execs, is `None`.
    pub fn records(&self) -> impl Iterator<Item = Option<Record>> + 'a {
        let tables = self.tables;
        self.records.iter().map(|record| tables.renumber(record))
    }

    /// Divides the records into references of the stream, numbered as in [`Batch::sites`], and the
    /// tool's events. Returns how many records could not be numbered and are missing. Cost: half a
    /// nanosecond a record.
    pub fn divide(&self, into: &mut Divided) -> u64 {
        into.fill(self.records);
        let is_first = self.tables.first_site == 0 && self.tables.first_block == 0;
        if is_first {
            0
        } else {
            into.renumber(|record| self.tables.renumber(record))
        }
    }

    /// All records as the program's code wrote them: sites, blocks and requests have the numbers of
    /// their process image. Tools that need tags, addresses and sizes alone read them fastest so.
    pub fn raw(&self) -> &'a [Record] {
        self.records
    }

    /// The running number of the first site of the process image whose records these are: a site of
    /// [`Batch::raw`] has its own number and this one as its index in [`Batch::sites`] and in the
    /// profile of the run.
    pub fn first_site(&self) -> usize {
        self.tables.first_site
    }

    /// All sites and blocks that were translated so far.
    pub fn sites(&self) -> &'a Sites {
        &self.tables.sites
    }
}

/// A batch that was divided; its memory is used again.
///
/// Whether a record is an event cannot be foreseen, so each is written to the references and its
/// index to the events, and the list goes on that it belongs to.
#[derive(Debug, Default)]
pub struct Divided {
    references: Vec<Record>,
    events: Vec<(usize, Record)>,
    /// Where in the batch its events are.
    at: Vec<u32>,
    /// How many of the references belong to the batch.
    references_len: usize,
}

impl Divided {
    /// The references of the stream.
    pub fn references(&self) -> &[Record] {
        &self.references[..self.references_len]
    }

    /// The tool's events, each with the number of references before it.
    pub fn events(&self) -> &[(usize, Record)] {
        &self.events
    }

    /// A batch without events and references.
    pub fn clear(&mut self) {
        self.events.clear();
        self.references_len = 0;
    }

    /// Divides records, whose numbers stay those of their process image. Cost: half a nanosecond a
    /// record.
    pub fn fill(&mut self, records: &[Record]) {
        const TOOL: u8 = RecordKind::Tool as u8;
        if self.references.len() < records.len() {
            self.references.resize(records.len(), Record::default());
            self.at.resize(records.len(), 0);
        }
        let (references, at) = (&mut self.references[..records.len()], &mut self.at[..records.len()]);
        let (mut referred, mut told) = (0, 0);
        for (index, record) in (0..).zip(records) {
            references[referred] = *record;
            at[told] = index;
            let is_event = usize::from(record.what as u8 >> 4 == TOOL);
            referred += 1 - is_event;
            told += is_event;
        }
        self.events.clear();
        // Before the event with a number among events there are as many events.
        let event = |(number, &at): (usize, &u32)| (at as usize - number, records[at as usize]);
        self.events.extend(at[..told].iter().enumerate().map(event));
        self.references_len = referred;
    }

    /// Gives the references other numbers; those without one leave, and their number is returned.
    fn renumber(&mut self, number: impl Fn(&Record) -> Option<Record>) -> u64 {
        let (mut kept, mut told) = (0, 0);
        for at in 0..self.references_len {
            while told < self.events.len() && self.events[told].0 == at {
                self.events[told].0 = kept;
                told += 1;
            }
            if let Some(record) = number(&self.references[at]) {
                self.references[kept] = record;
                kept += 1;
            }
        }
        self.events[told..].iter_mut().for_each(|(before, _)| *before = kept);
        let lost = self.references_len - kept;
        self.references_len = kept;
        lost as u64
    }
}

/// The sites, blocks and requests of a run so far.
#[derive(Default)]
pub(super) struct Tables {
    pub(super) sites: Sites,
    pub(super) requests: Vec<Request>,
    /// The running numbers of the current image's first site, block and request.
    pub(super) first_site: usize,
    pub(super) first_block: usize,
    pub(super) first_request: usize,
}

impl Tables {
    /// The record with the running number of its site, block or request.
    fn renumber(&self, record: &Record) -> Option<Record> {
        let first = match record.code().kind() {
            RecordKind::Block if record.site() == CUT_SITE => 0,
            RecordKind::Block | RecordKind::Fetch | RecordKind::FetchPage => self.first_block,
            RecordKind::Tool => self.first_request,
            _ => self.first_site,
        };
        let number = record.site() + first;
        let fits = number < CUT_SITE || first == 0;
        fits.then_some(Record { what: (number as u32) << 8 | u32::from(record.code().0), ..*record })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Divided record by record.
    fn one_by_one(
        records: &[Record],
        number: impl Fn(&Record) -> Option<Record>,
    ) -> (Vec<Record>, Vec<(usize, Record)>, u64) {
        let (mut references, mut events, mut lost) = (Vec::new(), Vec::new(), 0);
        for record in records {
            if record.code().kind() == RecordKind::Tool {
                events.push((references.len(), *record));
            } else {
                match number(record) {
                    Some(record) => references.push(record),
                    None => lost += 1,
                }
            }
        }
        (references, events, lost)
    }

    #[test]
    fn batches_are_divided_as_record_by_record() {
        let mut state = 1_u64;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut divided = Divided::default();
        for len in [0, 1, 2, 50, 7, 300, 0, 64] {
            for events_of_8 in [0, 1, 4, 8] {
                let record = |next: &mut dyn FnMut(u64) -> u64| {
                    let is_event = next(8) < events_of_8;
                    let kind = if is_event { RecordKind::Tool } else { RecordKind::Load };
                    let what = (next(1 << 20) as u32) << 8 | (kind as u32) << 4;
                    Record { address: next(1 << 40), what, extra: 0 }
                };
                let records: Vec<Record> = (0..len).map(|_| record(&mut next)).collect();
                divided.fill(&records);
                let (references, events, _) = one_by_one(&records, |record| Some(*record));
                assert_eq!((divided.references(), divided.events()), (&references[..], &events[..]));
                // Every third number does not fit.
                let number = |record: &Record| {
                    let what = record.what + 0x100;
                    (!record.site().is_multiple_of(3)).then_some(Record { what, ..*record })
                };
                let (references, events, lost) = one_by_one(&records, number);
                assert_eq!(divided.renumber(number), lost);
                assert_eq!((divided.references(), divided.events()), (&references[..], &events[..]));
            }
        }
        divided.clear();
        assert!(divided.references().is_empty() && divided.events().is_empty());
    }
}
