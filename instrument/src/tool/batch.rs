//! Records of one thread as a tool receives them: events and references, numbered over all images.

use crate::instrumentation::instrumenter::Request;
use event::{Record, RecordKind, Sites, CUT_SITE};

/// Something that a tool asked for happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// As given with the request.
    pub tag: u32,
    /// What was asked for.
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
    /// The thread, numbered over the whole run; a program that executes another goes on as a new
    /// thread.
    pub fn thread(&self) -> u32 {
        self.thread
    }

    /// The events that the tool asked for.
    pub fn events(&self) -> impl Iterator<Item = Event> + 'a {
        let first = self.tables.first_request as u32;
        self.records.iter().filter(|r| r.code().kind() == RecordKind::Tool).map(move |r| Event {
            tag: r.extra,
            value: r.address,
            request: r.site() as u32 + first,
        })
    }

    /// The place that `event` was asked for.
    pub fn request(&self, event: &Event) -> Option<&'a Request> {
        self.tables.requests.get(event.request as usize)
    }

    /// All records, the stream's references among them; sites and blocks are numbered as in
    /// [`Batch::sites`]. `None` stands for one whose number does not fit a record any more (beyond
    /// 16 million, after execs).
    pub fn records(&self) -> impl Iterator<Item = Option<Record>> + 'a {
        let tables = self.tables;
        self.records.iter().map(|r| tables.renumber(r))
    }

    /// What sites and blocks are called, as far as the program was translated.
    pub fn sites(&self) -> &'a Sites {
        &self.tables.sites
    }
}

#[derive(Default)]
pub(super) struct Tables {
    pub(super) sites: Sites,
    pub(super) requests: Vec<Request>,
    /// Numbers of the current image's first ones.
    pub(super) first_site: usize,
    pub(super) first_block: usize,
    pub(super) first_request: usize,
}

impl Tables {
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
