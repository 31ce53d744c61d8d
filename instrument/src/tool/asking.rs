//! The translator's side of a tool: shows each block to the instrumentation code and tells the analysis' side what was translated.
//!
//! Lives on the control thread. News goes through a channel before the code it is about can run, so that the analysis never meets a record
//! whose table entries it lacks.

use super::request::{Counters, Requests};
use super::view::{BlockView, Facts, Procedures};
use super::{Instrumenter, Program, Request};
use crate::translate::{Modules, Piece, Translator};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::mpsc::Sender;

/// What the analysis' side must know before it sees records.
pub(crate) enum News {
    /// A process image starts; what follows is about it.
    Starts(Program),
    /// The tables have grown by these.
    Grown(event::Sites, Vec<Request>),
}

/// The instrumentation half of a tool in a run.
pub(crate) struct Asking {
    instrument: Instrumenter,
    procedures: Box<dyn Procedures>,
    news: Sender<News>,
    pub(crate) counters: Counters,
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
pub(crate) type SharedAsking = Rc<RefCell<Asking>>;

impl Asking {
    pub(crate) fn new(
        instrument: Instrumenter,
        procedures: Box<dyn Procedures>,
        news: Sender<News>,
    ) -> Asking {
        let counters = Counters::default();
        Asking {
            instrument,
            procedures,
            news,
            counters,
            fault: None,
            first_block: 0,
            requests: 0,
            sites: 0,
            blocks: 0,
        }
    }

    /// Process image `image` of process `pid` starts; `blocks` were translated in those before it.
    pub(crate) fn starts(&mut self, image: u32, pid: i32, blocks: usize) {
        self.first_block = blocks as u32;
        (self.requests, self.sites, self.blocks) = (0, 0, 0);
        let path = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        let _ = self.news.send(News::Starts(Program { image, path }));
    }

    fn book(
        &mut self,
        number: u32,
        mut requests: Requests,
        told: &mut Vec<Request>,
    ) -> super::request::Events {
        let mut events = requests.events();
        for (counter, counted) in requests.counters.drain(..) {
            self.counters.add(number, counter, counted);
        }
        for asked in events.iter_mut() {
            asked.number = self.requests;
            self.requests += 1;
            told.push(Request { block: number, index: asked.index as u32, when: asked.when, ip: 0 });
        }
        if self.requests as usize > crate::layout::SITES_MAX {
            requests.fault.get_or_insert("more events than a record can number".into());
        }
        if let Some(why) = requests.fault {
            self.fault.get_or_insert(why);
        }
        events
    }
}

impl Translator {
    /// Shows the pieces of a superblock to the tool, if there is one, and keeps what it asks for.
    pub(crate) fn ask(&mut self, pieces: &mut [Piece], modules: &impl Modules) {
        let Some(asking) = self.asking.clone() else { return };
        let mut asking = asking.borrow_mut();
        let asking = &mut *asking;
        let mut told = Vec::new();
        let unknown = crate::profile::Module::default();
        for piece in pieces.iter_mut() {
            let instructions = &piece.instructions;
            let facts: Vec<Facts> =
                instructions.iter().map(|d| Facts::of(d, &mut self.shapes, &mut self.factory)).collect();
            let module = modules.module(self.blocks[piece.number as usize].module).unwrap_or(&unknown);
            let procedure = asking.procedures.at(module, piece.ip);
            let number = asking.first_block + piece.number;
            let view =
                BlockView { number, instructions, facts: &facts, module, procedure: procedure.as_ref() };
            let mut requests = Requests::new(piece.ip, instructions.len(), view.last().map(|i| i.transfer()));
            (asking.instrument)(&view, &mut requests);
            if !self.events.counts() && !requests.counters.is_empty() {
                requests
                    .fault
                    .get_or_insert("counters, where its stream says that nothing is counted".into());
            }
            let from = told.len();
            let events = asking.book(number, requests, &mut told);
            for request in &mut told[from..] {
                request.ip = instructions[request.index as usize].i.ip();
            }
            piece.events = events;
        }
        if asking.fault.is_some() {
            self.refusal.get_or_insert_with(|| "its instrumentation failed".into());
        }
        if !told.is_empty() {
            let _ = asking.news.send(News::Grown(event::Sites::default(), told));
        }
    }

    /// Tells of the sites and blocks that the last translation has added.
    pub(crate) fn tell(&self) {
        let Some(asking) = &self.asking else { return };
        let mut asking = asking.borrow_mut();
        let first_block = asking.first_block;
        let sites = self.sites[asking.sites..].iter();
        let sites = sites.map(|s| event::Site { ip: s.ip, block: s.block + first_block, index: s.index });
        let blocks = self.blocks[asking.blocks..].iter();
        let blocks = blocks.map(|b| event::Block { ip: b.ip, len_bytes: b.len, instructions: b.count });
        let grown = event::Sites { sites: sites.collect(), blocks: blocks.collect() };
        (asking.sites, asking.blocks) = (self.sites.len(), self.blocks.len());
        let _ = asking.news.send(News::Grown(grown, Vec::new()));
    }
}
