//! From raw records to references, one by one: the definition of `lib.rs` as code.
//!
//! **What.** A [`Decoder`] holds what one thread's stream needs remembered (the block it is in, how
//! many instructions retired, the group in progress) and emits plain [`Reference`]s. **Why this
//! way.** It is the slow, obvious reader: traces, files, checkers and the naive simulator use it;
//! the fast simulator reads records itself and is held against this one.
//!
//! **Leaves out** instruction counts of filtered streams: their records do not carry them
//! ([`Reference::instruction`] is `None`).

use crate::{Access, Block, Groups, Malformed, Record, RecordKind, Sites, StateLayout, Step, CUT_SITE};

/// What a reference does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReferenceKind {
    /// An instruction line is read; the site is a block's number.
    Fetch,
    /// Data is read, written or hinted at.
    Data(Access),
}

/// One reference of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The thread that makes it.
    pub thread: u32,
    /// Instructions of the thread that retired before the owning one; known in full streams.
    pub instruction: Option<u64>,
    /// Number of the site (data) or block (`Fetch`).
    pub site: u32,
    /// Address of the owning instruction (of the block for `Fetch`); 0 where the tables lack the
    /// site.
    pub ip: u64,
    /// First byte touched.
    pub address: u64,
    /// Bytes touched.
    pub size_bytes: u32,
    /// What it does.
    pub kind: ReferenceKind,
}

/// Decodes the stream of one thread.
#[derive(Clone, Debug)]
pub struct Decoder {
    thread: u32,
    line_bytes: u64,
    layout: StateLayout,
    groups: Groups,
    /// Instructions retired before the current block, and the current block, in full streams.
    before: u64,
    block: Option<Block>,
    /// Groups and records that could not be read.
    pub damaged: u64,
}

impl Decoder {
    /// A decoder for `thread`; instruction lines have `line_bytes` (a power of two).
    pub fn new(thread: u32, line_bytes: u32, layout: StateLayout) -> Decoder {
        assert!(line_bytes.is_power_of_two());
        let groups = Groups::default();
        Decoder { thread, line_bytes: line_bytes.into(), layout, groups, before: 0, block: None, damaged: 0 }
    }

    /// Instructions retired so far, where the stream is a full one, the current block counted as a
    /// whole.
    pub fn instructions(&self) -> u64 {
        self.before + self.block.map_or(0, |block| block.instructions.into())
    }

    /// Decodes the next record and calls `emit` for each of its references.
    ///
    /// # Errors
    /// When the record, or the group before it, is damaged; what is readable was emitted, and
    /// decoding may go on.
    pub fn decode(
        &mut self,
        record: &Record,
        sites: &Sites,
        mut emit: impl FnMut(Reference),
    ) -> Result<(), Malformed> {
        let step = self.groups.push(record);
        let site = record.site() as u32;
        match step {
            Step::Part => {}
            Step::Whole(..) => {
                let Step::Whole(_, complex) = step else { return Ok(()) };
                let owner = self.data(site, sites);
                complex.references(&self.layout, |address, size_bytes, access| {
                    emit(Reference { address, size_bytes, kind: ReferenceKind::Data(access), ..owner });
                });
            }
            Step::Plain | Step::DamagedBefore(_) => self.plain(record, sites, &mut emit),
            Step::Damaged(_) => {}
        }
        match step {
            Step::Damaged(malformed) | Step::DamagedBefore(malformed) => {
                self.damaged += 1;
                Err(malformed)
            }
            _ => Ok(()),
        }
    }

    fn plain(&mut self, record: &Record, sites: &Sites, emit: &mut impl FnMut(Reference)) {
        let site = record.site() as u32;
        let size_bytes = record.code().size_bytes();
        let mut data = |access| {
            let owner = self.data(site, sites);
            emit(Reference {
                address: record.address,
                size_bytes,
                kind: ReferenceKind::Data(access),
                ..owner
            });
        };
        match record.code().kind() {
            RecordKind::Load => data(Access::Load),
            RecordKind::Store => data(Access::Store),
            RecordKind::Modify => {
                data(Access::Load);
                data(Access::Store);
            }
            RecordKind::Prefetch => data(Access::Prefetch),
            RecordKind::Fetch => self.fetch(site, sites, record.address, 1, emit),
            // Instructions that did not retire are taken back, and no block runs.
            RecordKind::Block if record.site() == CUT_SITE => {
                self.before = self.instructions().saturating_sub(record.address);
                self.block = None;
            }
            RecordKind::Block => {
                // The block before has retired as a whole.
                self.before = self.instructions();
                self.block = Some(sites.blocks.get(record.site()).copied().unwrap_or_default());
                self.fetch(site, sites, record.address, record.extra, emit);
            }
            RecordKind::Complex
            | RecordKind::Payload
            | RecordKind::Tool
            | RecordKind::FetchPage
            | RecordKind::DataPage => {}
        }
    }

    /// The lines of `len_bytes` bytes of code at `address`, ascending.
    fn fetch(
        &self,
        site: u32,
        sites: &Sites,
        address: u64,
        len_bytes: u32,
        emit: &mut impl FnMut(Reference),
    ) {
        let ip = sites.blocks.get(site as usize).map_or(0, |block| block.ip);
        let first = address & !(self.line_bytes - 1);
        let last = address.saturating_add(u64::from(len_bytes.max(1)) - 1);
        let mut line = first;
        while line <= last {
            emit(Reference {
                thread: self.thread,
                instruction: self.block.map(|_| self.before),
                site,
                ip,
                address: line,
                size_bytes: self.line_bytes as u32,
                kind: ReferenceKind::Fetch,
            });
            let Some(next) = line.checked_add(self.line_bytes) else { break };
            line = next;
        }
    }

    /// A data reference of `site`, its address and size still to be filled in.
    fn data(&self, site: u32, sites: &Sites) -> Reference {
        let owner = sites.sites.get(site as usize);
        Reference {
            thread: self.thread,
            instruction: self.block.and_then(|_| owner.map(|owner| self.before + u64::from(owner.index))),
            site,
            ip: owner.map_or(0, |owner| owner.ip),
            address: 0,
            size_bytes: 0,
            kind: ReferenceKind::Data(Access::Load),
        }
    }
}
