//! What lies at an address at this time: [`ObjectMap`].
//!
//! ```text
//!   events of calls and allocations ──▶ blocks ─┐
//!   symbols of files in which code runs ──▶ variables ─┼─▶ ObjectMap::at(address) ──▶ Place
//!   stack pointers before calls ──▶ frames ─────┘
//!   debug information ──▶ variables of functions in their frames
//! ```
//!
//! The map is as new as the last event that it got. With one thread it is exact at each record.
//! Records of several threads arrive batch by batch: a block that another thread has allocated
//! lately may be unknown yet, and one that it has freed may still be there.
//!
//! **Leaves out** mappings that a program makes itself, variables of single threads, and stacks of
//! other threads than the one that asks.

use crate::globals::{variables, Globals, Variable};
use crate::locals::{Local, Locals};
use event::Record;
pub(crate) use heap::WARMED;
use heap::{Blocks, CallStack, Found, HeapProfile, StackFrame};
use instrument::tool::Instrumenter;
use instrument::Module;
use std::sync::mpsc::{channel, Receiver};

/// The identity of an object while the program runs. Objects of one site of allocation are one;
/// parts of stacks are named by a call, or an address of code, of the function whose frame they
/// are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectKey {
    /// Blocks of the place of allocation with this number.
    Blocks(u32),
    /// The variable, or section of data, with this number.
    Variable(u32),
    /// The variable of a function with this number, in all of the function's frames.
    Local(u32),
    /// Frames of the function that makes the call with this number.
    Call(u32),
    /// Frames of the function with code at this address, which makes no call.
    Running(u64),
    /// Code of the page with this number.
    Code(u64),
    /// Memory that allocating functions use beside blocks: headers, free blocks.
    Allocator,
    /// Memory of no object that is known.
    Unknown,
}

/// What lies at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The object.
    pub key: ObjectKey,
    /// Where it begins; of memory that is no block and no variable 0.
    pub start: u64,
    /// Its bytes; 0 where `start` is 0.
    pub size_bytes: u64,
}

/// What was found last.
#[derive(Clone, Copy, Debug)]
enum Last {
    Nothing,
    Block(Found),
    /// A variable in whose bytes no block may lie.
    Variable(Place),
}

/// The objects of a program while it runs.
pub struct ObjectMap {
    blocks: Blocks,
    globals: Globals,
    pub(crate) locals: Locals,
    /// What was found last: a block, or a variable that shares bytes with no other one.
    last: Last,
    news: Option<Receiver<Vec<Variable>>>,
}

impl ObjectMap {
    /// A map of nothing; places of allocation are told apart by this many calls.
    pub fn new(frames_max: usize) -> ObjectMap {
        let (globals, locals) = (Globals::default(), Locals::default());
        ObjectMap { blocks: Blocks::new(frames_max), globals, locals, last: Last::Nothing, news: None }
    }

    /// The instrumentation code that asks for the events. Call it once.
    pub fn instrumenter(&mut self) -> Instrumenter {
        let (sender, receiver) = channel();
        self.news = Some(receiver);
        self.blocks.instrumenter(move |module: &Module, listing| {
            // After the run nobody listens any more.
            let _ = sender.send(variables(module, listing));
        })
    }

    /// Takes the calls of a thread, to read a batch of its events; [`ObjectMap::put_back`] ends
    /// that.
    pub fn take(&mut self, thread: u32) -> CallStack {
        while let Some(variables) = self.news.as_ref().and_then(|news| news.try_recv().ok()) {
            self.globals.add(variables);
        }
        self.blocks.take(thread)
    }

    /// Puts the calls of a thread back.
    pub fn put_back(&mut self, thread: u32, calls: CallStack) {
        self.blocks.put_back(thread, calls);
    }

    /// Follows an event of a thread.
    #[inline(always)]
    pub fn event(&mut self, calls: &mut CallStack, event: &Record) {
        self.blocks.event(calls, event);
    }

    /// Brings what [`ObjectMap::at`] will read for the first [`WARMED`] of these addresses into the
    /// host's caches.
    pub fn warm(&self, addresses: impl Iterator<Item = u64>) {
        self.blocks.warm(addresses);
    }

    /// What lies at an address of data that code at address `ip` of a thread refers to.
    #[inline]
    pub fn at(&self, calls: &CallStack, address: u64, ip: impl FnOnce() -> u64) -> Place {
        if let Some(found) = self.blocks.find(address) {
            return block_place(&found);
        }
        self.beside_blocks(calls, address, ip)
    }

    /// What was found last, if it still lies at an address. Cost: a load and some comparisons.
    #[inline(always)]
    pub(crate) fn last_at(&self, address: u64) -> Option<Place> {
        match &self.last {
            Last::Block(found) => self.blocks.still_holds(found, address).then(|| block_place(found)),
            Last::Variable(place) => {
                let lies = address.wrapping_sub(place.start) < place.size_bytes;
                let bytes = place.start..place.start + place.size_bytes;
                (lies && self.blocks.never_reached(&bytes)).then_some(*place)
            }
            Last::Nothing => None,
        }
    }

    /// What lies at an address of data, by variable where it is a frame's: reads debug information
    /// of the files whose functions are met there. Cost: some tens of ns for an address of a stack.
    #[inline]
    pub fn variable_at(&mut self, calls: &CallStack, address: u64, ip: impl Fn() -> u64) -> Place {
        if let Some(found) = self.blocks.find(address) {
            self.last = Last::Block(found);
            return block_place(&found);
        }
        let place = self.beside_blocks(calls, address, &ip);
        match place.key {
            ObjectKey::Call(_) | ObjectKey::Running(_) => self.local_at(calls, address, ip(), place),
            ObjectKey::Variable(number) if self.globals.is_alone(number) => {
                self.last = Last::Variable(place);
                place
            }
            _ => place,
        }
    }

    /// The variable at an address of a frame, or the whole frame's place.
    fn local_at(&mut self, calls: &CallStack, address: u64, ip: u64, place: Place) -> Place {
        let frame = self.blocks.frame_place(calls, address);
        let module = |code| self.blocks.module_at(code);
        match self.locals.at(&frame, address, ip, module) {
            Some((number, start)) => {
                let size_bytes = self.locals.all[number as usize].size_bytes;
                Place { key: ObjectKey::Local(number), start, size_bytes }
            }
            None => place,
        }
    }

    /// What lies at an address that is in no block.
    fn beside_blocks(&self, calls: &CallStack, address: u64, ip: impl FnOnce() -> u64) -> Place {
        let nowhere = |key| Place { key, start: 0, size_bytes: 0 };
        // Most of it is the stack, which a comparison tells.
        match calls.frame(address) {
            Some(StackFrame::Of(call)) => return nowhere(ObjectKey::Call(call)),
            Some(StackFrame::Running) => return nowhere(ObjectKey::Running(ip())),
            None => {}
        }
        if let Some(number) = self.globals.find(address) {
            let range = &self.globals.all[number as usize].range;
            let key = ObjectKey::Variable(number);
            return Place { key, start: range.start, size_bytes: range.end - range.start };
        }
        nowhere(if calls.is_allocating() { ObjectKey::Allocator } else { ObjectKey::Unknown })
    }

    /// The calls that led to a place of allocation, the innermost first: each with the module in
    /// which it lies, and its address.
    pub fn stack(&self, site: u32) -> Vec<(Module, u64)> {
        self.blocks.stack(site)
    }

    /// The variable with this number: its file and its address there.
    pub(crate) fn variable(&self, number: u32) -> &Variable {
        &self.globals.all[number as usize]
    }

    /// The program executes another one: all memory is gone.
    pub fn executes(&mut self) {
        self.blocks.executes();
        self.globals.forget();
        self.last = Last::Nothing;
        self.locals.executes();
    }

    /// Ends the program after this many instructions of all threads.
    pub(crate) fn finish(self, instructions: u64) -> (HeapProfile, Vec<Variable>, Vec<Local>) {
        (self.blocks.finish(instructions), self.globals.all, self.locals.all)
    }
}

#[inline(always)]
fn block_place(found: &Found) -> Place {
    Place { key: ObjectKey::Blocks(found.site), start: found.address, size_bytes: found.size_bytes }
}
