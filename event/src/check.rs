//! The checker: a sink that holds a stream against the definition.
//!
//! **What it demands.** Kinds that the stream may carry; sizes that exist; instruction lines on
//! line boundaries; whole groups; sites and blocks that the tables know; and in a full stream,
//! which shows program order, that every reference belongs to the block it is in and that its
//! instruction does not come before the one of the reference before it. **Why this way.** It is
//! just another sink, so that it runs on live rings and files alike. **Leaves out** what needs the
//! program itself: whether addresses are true. Source: the idea is DynamoRIO's invariant checker.

use crate::{
    FetchFilter, Filter, Groups, Malformed, Record, RecordKind, Sink, Sites, Step, Stream, CUT_SITE, SIZES,
};
use std::collections::HashMap;

/// Violations that are kept in full; more are only counted.
const KEPT: usize = 100;

/// What a record violates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The stream does not carry records of this kind.
    Kind(RecordKind),
    /// The low byte of `what` names no size.
    Size(u8),
    /// An instruction line does not start on a line boundary.
    Unaligned,
    /// A group is damaged.
    Group(Malformed),
    /// The tables have no such site or block.
    Unknown(usize),
    /// The reference's site lies in another block than the one that runs.
    ForeignBlock {
        /// The site's block.
        site: u32,
        /// The block that runs, if any.
        running: Option<u32>,
    },
    /// The reference's instruction comes before that of the reference before it.
    Backwards,
    /// More instructions are taken back than the block has.
    Cut(u64),
}

/// A fault and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The thread.
    pub thread: u32,
    /// Index of the record among the thread's.
    pub index: u64,
    /// The record.
    pub record: Record,
    /// What is wrong.
    pub fault: Fault,
}

#[derive(Default)]
struct Thread {
    records: u64,
    groups: Groups,
    /// Block that runs and the last index in it, in a full stream.
    block: Option<u32>,
    index: u32,
}

/// The checker.
pub struct Check {
    stream: Stream,
    sites: Option<Sites>,
    threads: HashMap<u32, Thread>,
    /// The first violations.
    pub violations: Vec<Violation>,
    /// How many there were.
    pub violation_count: u64,
}

impl Check {
    /// A checker for `stream`; without tables, what needs them is not checked.
    pub fn new(stream: Stream, sites: Option<Sites>) -> Check {
        Check { stream, sites, threads: HashMap::new(), violations: Vec::new(), violation_count: 0 }
    }

    /// Call at the end: groups that are still open are faults.
    pub fn finish(&mut self) {
        let threads = std::mem::take(&mut self.threads);
        for (&number, thread) in threads.iter().filter(|(_, thread)| thread.groups.is_open()) {
            self.violate(number, thread, &Record::default(), Fault::Group(Malformed::Values(0, 0)));
        }
        self.threads = threads;
    }

    fn violate(&mut self, number: u32, thread: &Thread, record: &Record, fault: Fault) {
        self.violation_count += 1;
        if self.violations.len() < KEPT {
            self.violations.push(Violation { thread: number, index: thread.records, record: *record, fault });
        }
    }

    fn check(&self, thread: &mut Thread, record: &Record) -> Result<(), Fault> {
        let kind = record.code().kind();
        match thread.groups.push(record) {
            Step::Damaged(malformed) | Step::DamagedBefore(malformed) => return Err(Fault::Group(malformed)),
            Step::Part => return Ok(()),
            Step::Whole(..) if self.stream == Stream::Nothing => {
                return Err(Fault::Kind(RecordKind::Complex))
            }
            Step::Whole(site, _) => return self.data(thread, site),
            Step::Plain => {}
        }
        // Which kinds a stream carries.
        let carried = match kind {
            RecordKind::Block => self.stream == Stream::Full,
            RecordKind::Fetch => matches!(self.stream, Stream::Filtered(_)),
            RecordKind::FetchPage => {
                let Stream::Filtered(filter) = self.stream else { return Err(Fault::Kind(kind)) };
                filter.instruction_page.is_some() && filter.fetches != FetchFilter::LastOfSet
            }
            RecordKind::DataPage => {
                let Stream::Filtered(filter) = self.stream else { return Err(Fault::Kind(kind)) };
                filter.resident_pages().is_some()
            }
            RecordKind::Tool => true,
            RecordKind::Prefetch if self.stream == Stream::References => false,
            _ => !matches!(self.stream, Stream::Counts | Stream::Nothing),
        };
        if !carried {
            return Err(Fault::Kind(kind));
        }
        // And whether the record itself can be true.
        match kind {
            RecordKind::Block => self.block(thread, record),
            RecordKind::Fetch | RecordKind::FetchPage => self.fetch(record),
            RecordKind::DataPage => self.data_page(thread, record),
            RecordKind::Tool => Ok(()),
            _ if SIZES[(record.code().0 & 15) as usize] == 0 => Err(Fault::Size(record.code().0)),
            _ => self.data(thread, record.site()),
        }
    }

    fn fetch(&self, record: &Record) -> Result<(), Fault> {
        let Stream::Filtered(filter) = self.stream else { return Ok(()) };
        let page = filter.instruction_page.filter(|_| record.code().kind() == RecordKind::FetchPage);
        if !record.address.is_multiple_of(page.unwrap_or(filter.instruction).line_bytes.into()) {
            return Err(Fault::Unaligned);
        }
        self.known_block(record.site())
    }

    fn data_page(&self, thread: &mut Thread, record: &Record) -> Result<(), Fault> {
        let Stream::Filtered(Filter { data_page: Some(page), .. }) = self.stream else { return Ok(()) };
        if !record.address.is_multiple_of(page.line_bytes.into()) {
            return Err(Fault::Unaligned);
        }
        self.data(thread, record.site())
    }

    fn known_block(&self, block: usize) -> Result<(), Fault> {
        let known = self.sites.as_ref().is_none_or(|sites| block < sites.blocks.len());
        known.then_some(()).ok_or(Fault::Unknown(block))
    }

    fn block(&self, thread: &mut Thread, record: &Record) -> Result<(), Fault> {
        if record.site() == CUT_SITE {
            let running = thread.block.take();
            let Some(sites) = &self.sites else { return Ok(()) };
            let block = running.and_then(|block| sites.blocks.get(block as usize));
            let most = block.map_or(0, |block| u64::from(block.instructions));
            return if record.address <= most { Ok(()) } else { Err(Fault::Cut(record.address)) };
        }
        thread.block = Some(record.site() as u32);
        thread.index = 0;
        self.known_block(record.site())
    }

    fn data(&self, thread: &mut Thread, site: usize) -> Result<(), Fault> {
        let Some(sites) = &self.sites else { return Ok(()) };
        let owner = sites.sites.get(site).ok_or(Fault::Unknown(site))?;
        if self.stream != Stream::Full {
            return Ok(());
        }
        if thread.block != Some(owner.block) {
            return Err(Fault::ForeignBlock { site: owner.block, running: thread.block });
        }
        if owner.index < std::mem::replace(&mut thread.index, owner.index) {
            return Err(Fault::Backwards);
        }
        Ok(())
    }
}

impl Sink for Check {
    fn records(&mut self, number: u32, records: &[Record]) {
        let mut thread = self.threads.remove(&number).unwrap_or_default();
        for record in records {
            if let Err(fault) = self.check(&mut thread, record) {
                self.violate(number, &thread, record, fault);
            }
            thread.records += 1;
        }
        self.threads.insert(number, thread);
    }
}
