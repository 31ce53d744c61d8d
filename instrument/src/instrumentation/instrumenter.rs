//! Runs a tool's instrumentation code on each block that is translated, and sends the analysis side
//! the tables that it needs.
//!
//! It runs on the control thread. Table updates go through a channel before the code that they
//! describe can run, so that the analysis never gets a record without its table entries. Images
//! that live at the same time have one tool, and numbers of their own ([`ImageInstrumenter`]);
//! their records are read without tables.

use super::request::{Requests, ToolCounters};
use super::view::{BlockView, InstructionFacts, Procedures};
use crate::code::event_request::{EventRequests, When};
use crate::code::superblock::BasicBlock;
use crate::plan::references::ReferenceShapes;
use crate::profile::{Block, Module, Site};
use event::Stream;
use iced_x86::InstructionInfoFactory;
use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::mpsc::Sender;

/// Instrumentation code. It is called with each block once per translation, before the block runs
/// for the first time, and makes its requests.
pub type Instrumenter = Box<dyn FnMut(&BlockView<'_>, &mut Requests)>;

/// Which running sums each thread keeps for a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sums {
    /// None.
    #[default]
    None,
    /// The number of instructions, for [`Value::Instructions`](crate::tool::Value).
    Instructions,
}

/// A process image of a run: the first program, or one that it executes later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Number of the image: 0 for the first, one more after each exec.
    pub image: u32,
    /// Path of the executable.
    pub path: PathBuf,
}

/// An accepted request for an event: the instruction and the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Address of the instruction.
    pub ip: u64,
    /// Number of the instruction's block.
    pub block: u32,
    /// Index of the instruction in the block.
    pub index: u32,
    /// Whether the event happens before or after the instruction.
    pub when: When,
}

/// A change of the tables by which the analysis side interprets records.
pub(crate) enum TableUpdate {
    /// A process image starts: later updates describe it.
    Starts(Program),
    /// New sites and blocks, and new requests, to append to the tables.
    Grown(event::Sites, Vec<Request>),
}

/// The instrumentation half of a tool during a run.
pub(crate) struct ToolInstrumenter {
    instrument: Instrumenter,
    procedures: Box<dyn Procedures>,
    /// Gets the tables; none where events are read without them.
    updates: Option<Sender<TableUpdate>>,
    /// The running sums of each thread.
    sums: Sums,
    pub(crate) counters: ToolCounters,
    /// Why the run must end: the first request that cannot be fulfilled.
    pub(crate) fault: Option<String>,
}

/// The instrumenter of a run, which its images share.
pub(crate) type SharedInstrumenter = Rc<RefCell<ToolInstrumenter>>;

/// The instrumenter of a run as one of its images uses it.
pub(crate) struct ImageInstrumenter {
    tool: SharedInstrumenter,
    /// Number of blocks of all earlier images.
    first_block: u32,
    /// Number of the image's accepted requests.
    requests: u32,
    /// Number of the image's sites, and of its blocks, that were sent to the analysis side.
    sites: usize,
    blocks: usize,
}

impl ToolInstrumenter {
    pub(crate) fn new(
        instrument: Instrumenter,
        procedures: Box<dyn Procedures>,
        updates: Option<Sender<TableUpdate>>,
        sums: Sums,
    ) -> ToolInstrumenter {
        let counters = ToolCounters::default();
        ToolInstrumenter { instrument, procedures, updates, sums, counters, fault: None }
    }

    /// Whether images may live at the same time.
    pub(crate) fn follows_children(&self) -> bool {
        self.updates.is_none()
    }

    fn send(&self, update: TableUpdate) {
        // The analysis side may have ended.
        let _ = self.updates.as_ref().map(|updates| updates.send(update));
    }
}

impl ImageInstrumenter {
    /// Begins process image number `image`, of process `pid`, which has executed a program. Earlier
    /// images have `blocks` blocks in all.
    pub(crate) fn starts(
        tool: &SharedInstrumenter,
        image: u32,
        pid: i32,
        blocks: usize,
    ) -> ImageInstrumenter {
        let path = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        tool.borrow().send(TableUpdate::Starts(Program { image, path }));
        let tool = tool.clone();
        ImageInstrumenter { tool, first_block: blocks as u32, requests: 0, sites: 0, blocks: 0 }
    }

    /// The instrumenter of the image of a forked child, whose code is shown to the tool again.
    pub(crate) fn of_child(&self) -> ImageInstrumenter {
        let tool = self.tool.clone();
        ImageInstrumenter { tool, first_block: 0, requests: 0, sites: 0, blocks: 0 }
    }

    /// Number of events that were requested in this image.
    pub(crate) fn requests(&self) -> u32 {
        self.requests
    }

    /// The running sums that each thread keeps.
    pub(crate) fn sums(&self) -> Sums {
        self.tool.borrow().sums
    }

    /// Whether a request cannot be fulfilled.
    pub(crate) fn has_fault(&self) -> bool {
        self.tool.borrow().fault.is_some()
    }

    /// Accepts the requests for block `number`: registers its counters, numbers its events and
    /// appends their descriptions to `accepted`. Stores the first fault.
    fn book(
        &mut self,
        tool: &mut ToolInstrumenter,
        number: u32,
        mut requests: Requests,
        accepted: &mut Vec<Request>,
    ) -> EventRequests {
        let mut events = requests.events();
        if tool.follows_children() && !requests.counters.is_empty() {
            requests.fault.get_or_insert("counters, where children are followed".into());
        }
        for (counter, counted) in requests.counters.drain(..) {
            tool.counters.add(number, counter, counted);
        }
        for event in events.iter_mut() {
            event.number = self.requests;
            self.requests += 1;
            accepted.push(Request { block: number, index: event.index as u32, when: event.when, ip: 0 });
        }
        if self.requests as usize > crate::target::layout::SITES_MAX {
            requests.fault.get_or_insert("more events than a record can number".into());
        }
        if let Some(why) = requests.fault {
            tool.fault.get_or_insert(why);
        }
        events
    }

    /// Calls the tool's instrumentation code with each block of a superblock, and stores the
    /// requested events in the block.
    pub(crate) fn show<'m>(
        &mut self,
        superblock: &mut [BasicBlock],
        module_of: impl Fn(u32) -> Option<&'m Module>,
        stream: &Stream,
        (shapes, factory): (&mut ReferenceShapes, &mut InstructionInfoFactory),
    ) {
        let mut accepted = Vec::new();
        let unknown = Module::default();
        let shared = self.tool.clone();
        let tool = &mut *shared.borrow_mut();
        for block in superblock.iter_mut() {
            let instructions = &block.instructions;
            let facts: Vec<InstructionFacts> =
                instructions.iter().map(|decoded| InstructionFacts::of(decoded, shapes, factory)).collect();
            let module = module_of(block.number).unwrap_or(&unknown);
            let procedure = tool.procedures.at(module, block.ip);
            let number = self.first_block + block.number;
            // The tool looks at the block and makes requests. Accepted events stay with the block,
            // for the planner; their description goes to the analysis side.
            let names = RefCell::new(&mut tool.procedures);
            let lines = |address| names.borrow_mut().line(module, address);
            let procedure = procedure.as_ref();
            let view = BlockView { number, instructions, facts: &facts, module, procedure, lines: &lines };
            let mut requests =
                Requests::new(block.ip, instructions.len(), view.last().map(|last| last.transfer()));
            (tool.instrument)(&view, &mut requests);
            if *stream == Stream::Nothing && !requests.counters.is_empty() {
                requests
                    .fault
                    .get_or_insert("counters, where its stream says that nothing is counted".into());
            }
            let from = accepted.len();
            let events = self.book(tool, number, requests, &mut accepted);
            for request in &mut accepted[from..] {
                request.ip = instructions[request.index as usize].instruction.ip();
            }
            block.events = events;
        }
        if !accepted.is_empty() {
            tool.send(TableUpdate::Grown(event::Sites::default(), accepted));
        }
    }

    /// Sends the analysis side the sites and blocks that the last translation has added; `sites`
    /// and `blocks` are those of the whole image.
    pub(crate) fn send_tables(&mut self, sites: &[Site], blocks: &[Block]) {
        let tool = self.tool.borrow();
        if tool.follows_children() {
            return;
        }
        let first_block = self.first_block;
        let new = sites[self.sites..].iter();
        let new =
            new.map(|site| event::Site { ip: site.ip, block: site.block + first_block, index: site.index });
        let more = blocks[self.blocks..].iter();
        let more =
            more.map(|block| event::Block { ip: block.ip, len_bytes: block.len, instructions: block.count });
        let grown = event::Sites { sites: new.collect(), blocks: more.collect() };
        (self.sites, self.blocks) = (sites.len(), blocks.len());
        tool.send(TableUpdate::Grown(grown, Vec::new()));
    }
}
