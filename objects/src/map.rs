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
pub use crate::place::{ObjectKey, Place};
use crate::recent::{Framed, Last, Recent};
use event::Record;
pub(crate) use heap::WARMED;
use heap::{Blocks, CallStack, Found, HeapProfile, StackFrame, StackPlace};
use instrument::tool::Instrumenter;
use instrument::Module;
use std::sync::mpsc::{channel, Receiver};

/// The objects of a program while it runs.
pub struct ObjectMap {
    blocks: Blocks,
    globals: Globals,
    pub(crate) locals: Locals,
    /// What was found last: a block, or a variable that shares bytes with no other one.
    last: Last,
    /// What each instruction touched last.
    recent: Recent,
    /// The whole frame around the address of a stack that was found last, and the number of what
    /// was in scope.
    whole_and_scope: (Place, Option<u32>),
    news: Option<Receiver<Vec<Variable>>>,
}

impl ObjectMap {
    /// A map of nothing; places of allocation are told apart by this many calls.
    pub fn new(frames_max: usize) -> ObjectMap {
        let (globals, locals) = (Globals::default(), Locals::default());
        let (blocks, recent) = (Blocks::new(frames_max), Recent::default());
        let nowhere = Place { key: ObjectKey::Unknown, start: 0, size_bytes: 0 };
        ObjectMap {
            blocks,
            globals,
            locals,
            last: Last::Nothing,
            recent,
            whole_and_scope: (nowhere, None),
            news: None,
        }
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
            Last::Frame(_) | Last::Nothing => None,
        }
    }

    /// What lies at an address to which the instruction of a site refers, and the number that was
    /// noted for it, if the instruction has touched it before: most touch one object again and
    /// again. Finds what [`ObjectMap::variable_at`] would find. Cost: some ns.
    #[inline]
    pub(crate) fn again(&self, calls: &CallStack, address: u64, site: usize) -> Option<(Place, Option<u32>)> {
        let (last, number) = self.recent.of(site)?;
        let place = match last {
            Last::Block(found) => self.blocks.still_holds(found, address).then(|| block_place(found))?,
            Last::Variable(place) => {
                let lies = address.wrapping_sub(place.start) < place.size_bytes;
                let bytes = place.start..place.start + place.size_bytes;
                (lies && self.blocks.never_reached(&bytes)).then_some(*place)?
            }
            Last::Frame(framed) => {
                let around = calls.place(address).filter(|around| framed.is_of(around))?;
                if !self.blocks.never_reached(&(address..address + 1)) {
                    return None;
                }
                match framed.start_of(&around, address) {
                    Some(start) => Place { start, ..framed.place },
                    None => self.local_of(framed.scope, &around, address).unwrap_or(framed.whole),
                }
            }
            Last::Nothing => return None,
        };
        Some((place, number.filter(|number| number.0 == place.key).map(|number| number.1)))
    }

    /// Notes what [`ObjectMap::variable_at`] has just found for the instruction of a site, and the
    /// number that the caller has for it.
    pub(crate) fn note(
        &mut self,
        calls: &CallStack,
        address: u64,
        site: usize,
        (place, number): (Place, u32),
    ) {
        let last = match (place.key, self.last) {
            (ObjectKey::Blocks(_), Last::Block(found)) => Last::Block(found),
            (ObjectKey::Variable(number), Last::Variable(last))
                if last.key == ObjectKey::Variable(number) =>
            {
                Last::Variable(last)
            }
            (ObjectKey::Call(_) | ObjectKey::Running(_) | ObjectKey::Local(_), _) => {
                let Some(around) = calls.place(address) else { return };
                Last::Frame(Framed::new(self.whole_and_scope, &around, address, place))
            }
            _ => Last::Nothing,
        };
        self.recent.note(site, last, (place.key, number));
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
            ObjectKey::Call(_) | ObjectKey::Running(_) => match calls.place(address) {
                Some(around) => self.local_at(&around, address, ip(), place),
                None => place,
            },
            ObjectKey::Variable(number) if self.globals.is_alone(number) => {
                self.last = Last::Variable(place);
                place
            }
            _ => place,
        }
    }

    /// The variable at an address of a frame, or the whole frame's place.
    fn local_at(&mut self, around: &StackPlace, address: u64, ip: u64, whole: Place) -> Place {
        let call = around.call.and_then(|call| self.blocks.call_address(call));
        let module = |code| self.blocks.module_at(code);
        let scope = self.locals.scope_at(call, ip, module);
        self.whole_and_scope = (whole, scope);
        self.local_of(scope, around, address).unwrap_or(whole)
    }

    /// The variable of a scope at an address of a frame.
    fn local_of(&self, scope: Option<u32>, around: &StackPlace, address: u64) -> Option<Place> {
        let (number, start, size_bytes) = self.locals.find(scope?, around, address)?;
        Some(Place { key: ObjectKey::Local(number), start, size_bytes })
    }

    /// What lies at an address that is in no block.
    fn beside_blocks(&self, calls: &CallStack, address: u64, ip: impl FnOnce() -> u64) -> Place {
        let nowhere = |key| Place { key, start: 0, size_bytes: 0 };
        // Most of it is the stack, which a comparison tells.
        match calls.place(address).map(|around| around.frame) {
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
        self.recent.forget();
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
