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

    /// Appends the references of the stream to `references`, numbered as in [`Batch::sites`], and
    /// the tool's events to `events`, each with the number of `references` before it. Returns how
    /// many records could not be numbered and are missing. Cost: about a nanosecond a record.
    pub fn divide(&self, references: &mut Vec<Record>, events: &mut Vec<(usize, Record)>) -> u64 {
        const TOOL: u8 = RecordKind::Tool as u8;
        let mut lost = 0;
        let is_first = self.tables.first_site == 0 && self.tables.first_block == 0;
        for record in self.records {
            if record.what as u8 >> 4 == TOOL {
                events.push((references.len(), *record));
            } else if is_first {
                references.push(*record);
            } else {
                match self.tables.renumber(record) {
                    Some(record) => references.push(record),
                    None => lost += 1,
                }
            }
        }
        lost
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
