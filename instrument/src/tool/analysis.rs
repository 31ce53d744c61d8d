//! The analysis' side of a tool: keeps the tables, and hands batches of records over as events.
//!
//! Lives on the observer's thread, an [`Observer`] like any other. Numbers of sites, blocks and requests start again in every process image; here
//! they are made to run on, as in the final profile.

use super::asking::News;
use super::{Tool, When};
use crate::run::{Observer, Progress};
use event::{Record, RecordKind, Sites, CUT_SITE};
use std::sync::mpsc::Receiver;

/// The place that an event was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Address of the instruction.
    pub ip: u64,
    /// Number of its block.
    pub block: u32,
    /// Its place in the block.
    pub index: u32,
    /// Before or after it.
    pub when: When,
}

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
    thread: u32,
    records: &'a [Record],
    tables: &'a Tables,
}

impl<'a> Batch<'a> {
    /// The thread, numbered over the whole run; a program that executes another goes on as a new thread.
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

    /// All records, the stream's references among them; sites and blocks are numbered as in [`Batch::sites`]. `None` stands for one whose
    /// number does not fit a record any more (beyond 16 million, after execs).
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
struct Tables {
    sites: Sites,
    requests: Vec<Request>,
    /// Numbers of the current image's first ones.
    first_site: usize,
    first_block: usize,
    first_request: usize,
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

/// A tool as the ring's reader sees it.
pub(crate) struct Analysis<'a> {
    tool: &'a mut dyn Tool,
    news: Receiver<News>,
    /// News of an image whose records have not come yet.
    held: Option<News>,
    image: u32,
    tables: Tables,
}

impl<'a> Analysis<'a> {
    pub(crate) fn new(tool: &'a mut dyn Tool, news: Receiver<News>) -> Analysis<'a> {
        Analysis { tool, news, held: None, image: 0, tables: Tables::default() }
    }

    /// Takes the news in, up to those of images after number `image`.
    fn catch_up(&mut self, image: u32) {
        while let Some(news) = self.held.take().or_else(|| self.news.try_recv().ok()) {
            match news {
                News::Starts(program) if program.image > image => {
                    self.held = Some(News::Starts(program));
                    return;
                }
                News::Starts(program) => {
                    let t = &mut self.tables;
                    (t.first_site, t.first_block) = (t.sites.sites.len(), t.sites.blocks.len());
                    t.first_request = t.requests.len();
                    self.tool.start(&program);
                }
                News::Grown(sites, requests) => {
                    self.tables.sites.sites.extend(sites.sites);
                    self.tables.sites.blocks.extend(sites.blocks);
                    self.tables.requests.extend(requests);
                }
            }
        }
    }

    /// The run is over: images without any record start, too.
    pub(crate) fn finish(mut self) {
        self.catch_up(u32::MAX);
    }
}

impl Observer for Analysis<'_> {
    fn records(&mut self, thread: u32, records: &[Record]) {
        self.catch_up(self.image);
        self.tool.batch(&Batch { thread, records, tables: &self.tables });
    }

    fn image(&mut self, number: u32) {
        self.image = number;
    }

    fn progress(&mut self, _progress: &Progress) {
        self.catch_up(self.image);
    }
}
