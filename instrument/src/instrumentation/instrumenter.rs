//! The translator's side of a tool: shows each block to the instrumentation code and tells the
//! analysis' side what was translated.
//!
//! Lives on the control thread. News goes through a channel before the code it is about can run, so
//! that the analysis never meets a record whose table entries it lacks.

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

/// Instrumentation code: is shown each block once per translation, before it runs for the first
/// time.
pub type Instrumenter = Box<dyn FnMut(&BlockView<'_>, &mut Requests)>;

/// A program, or the next one that it executes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// 0 for the first, one more after each exec.
    pub image: u32,
    /// The executable.
    pub path: PathBuf,
}

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

/// What the analysis' side must know before it sees records.
pub(crate) enum TableUpdate {
    /// A process image starts; what follows is about it.
    Starts(Program),
    /// The tables have grown by these.
    Grown(event::Sites, Vec<Request>),
}

/// The instrumentation half of a tool in a run.
pub(crate) struct ToolInstrumenter {
    instrument: Instrumenter,
    procedures: Box<dyn Procedures>,
    updates: Sender<TableUpdate>,
    pub(crate) counters: ToolCounters,
    /// Why the run had to end.
    pub(crate) fault: Option<String>,
    /// Blocks of the images before this one.
    first_block: u32,
    /// Requests of this image that were accepted, sites and blocks that were told.
    requests: u32,
    sites: usize,
    blocks: usize,
}

/// Shared by the images of a run, one after the other.
pub(crate) type SharedInstrumenter = Rc<RefCell<ToolInstrumenter>>;

impl ToolInstrumenter {
    pub(crate) fn new(
        instrument: Instrumenter,
        procedures: Box<dyn Procedures>,
        updates: Sender<TableUpdate>,
    ) -> ToolInstrumenter {
        let counters = ToolCounters::default();
        ToolInstrumenter {
            instrument,
            procedures,
            updates,
            counters,
            fault: None,
            first_block: 0,
            requests: 0,
            sites: 0,
            blocks: 0,
        }
    }

    /// Events that this image was asked for.
    pub(crate) fn requests(&self) -> u32 {
        self.requests
    }

    /// Process image `image` of process `pid` starts; `blocks` were translated in those before it.
    pub(crate) fn starts(&mut self, image: u32, pid: i32, blocks: usize) {
        self.first_block = blocks as u32;
        (self.requests, self.sites, self.blocks) = (0, 0, 0);
        let path = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        let _ = self.updates.send(TableUpdate::Starts(Program { image, path }));
    }

    fn book(&mut self, number: u32, mut requests: Requests, told: &mut Vec<Request>) -> EventRequests {
        let mut events = requests.events();
        for (counter, counted) in requests.counters.drain(..) {
            self.counters.add(number, counter, counted);
        }
        for asked in events.iter_mut() {
            asked.number = self.requests;
            self.requests += 1;
            told.push(Request { block: number, index: asked.index as u32, when: asked.when, ip: 0 });
        }
        if self.requests as usize > crate::target::layout::SITES_MAX {
            requests.fault.get_or_insert("more events than a record can number".into());
        }
        if let Some(why) = requests.fault {
            self.fault.get_or_insert(why);
        }
        events
    }

    /// Shows the blocks of a superblock to the tool, and keeps in them what it asks for.
    pub(crate) fn show<'m>(
        &mut self,
        superblock: &mut [BasicBlock],
        module_of: impl Fn(u32) -> Option<&'m Module>,
        stream: &Stream,
        (shapes, factory): (&mut ReferenceShapes, &mut InstructionInfoFactory),
    ) {
        let mut told = Vec::new();
        let unknown = Module::default();
        for block in superblock.iter_mut() {
            let instructions = &block.instructions;
            let facts: Vec<InstructionFacts> =
                instructions.iter().map(|d| InstructionFacts::of(d, shapes, factory)).collect();
            let module = module_of(block.number).unwrap_or(&unknown);
            let procedure = self.procedures.at(module, block.ip);
            let number = self.first_block + block.number;
            // The tool sees the block and asks; what it asked for is numbered and stays with the
            // block.
            let names = RefCell::new(&mut self.procedures);
            let lines = |address| names.borrow_mut().line(module, address);
            let procedure = procedure.as_ref();
            let view = BlockView { number, instructions, facts: &facts, module, procedure, lines: &lines };
            let mut requests = Requests::new(block.ip, instructions.len(), view.last().map(|i| i.transfer()));
            (self.instrument)(&view, &mut requests);
            if *stream == Stream::Nothing && !requests.counters.is_empty() {
                requests
                    .fault
                    .get_or_insert("counters, where its stream says that nothing is counted".into());
            }
            let from = told.len();
            let events = self.book(number, requests, &mut told);
            for request in &mut told[from..] {
                request.ip = instructions[request.index as usize].i.ip();
            }
            block.events = events;
        }
        if !told.is_empty() {
            let _ = self.updates.send(TableUpdate::Grown(event::Sites::default(), told));
        }
    }

    /// Tells of the sites and blocks that the last translation has added to all there are.
    pub(crate) fn tell(&mut self, sites: &[Site], blocks: &[Block]) {
        let first_block = self.first_block;
        let new = sites[self.sites..].iter();
        let new = new.map(|s| event::Site { ip: s.ip, block: s.block + first_block, index: s.index });
        let more = blocks[self.blocks..].iter();
        let more = more.map(|b| event::Block { ip: b.ip, len_bytes: b.len, instructions: b.count });
        let grown = event::Sites { sites: new.collect(), blocks: more.collect() };
        (self.sites, self.blocks) = (sites.len(), blocks.len());
        let _ = self.updates.send(TableUpdate::Grown(grown, Vec::new()));
    }
}
