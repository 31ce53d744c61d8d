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
//! Each process image has an address space of its own ([`ImageMap`]). Objects have one number in
//! all of them: places of allocation by their calls, variables and code by file and place, so that
//! sums over objects are those of the run.
//!
//! **Leaves out** mappings that a program makes itself, variables of single threads, and stacks of
//! other threads than the one that asks.

use crate::by_image::ByImage;
use crate::globals::{variables, Variable, Variables};
use crate::image::ImageMap;
use crate::locals::{Local, Locals};
use crate::modules::Modules;
pub use crate::place::{Earlier, ObjectKey, Place};
use crate::recent::{Framed, Last};
use crate::run_sites::{RunSite, RunSites};
use event::Record;
pub(crate) use heap::WARMED;
use heap::{Blocks, Call, CallStack, Found, StackFrame, StackPlace};
use instrument::tool::Instrumenter;
use instrument::{Fork, Module};
use std::sync::mpsc::{channel, Receiver};

/// The objects of a program, and of the programs that it starts, while they run.
pub struct ObjectMap {
    /// The image whose records are read.
    image: u32,
    pub(crate) present: ImageMap,
    waiting: ByImage<ImageMap>,
    /// What images begin with.
    blocks: Blocks,
    sites: RunSites,
    modules: Modules,
    variables: Variables,
    pub(crate) locals: Locals,
    news: Option<Receiver<(Module, Vec<Variable>)>>,
    /// Allocations of images that have ended of which it was not seen where the block lies.
    lost: u64,
}

/// What a run knows of its objects.
pub(crate) struct Known {
    /// Places of allocation, variables of files and variables of functions by number.
    pub(crate) sites: Vec<RunSite>,
    pub(crate) variables: Vec<Variable>,
    pub(crate) locals: Vec<Local>,
    /// Calls, and the modules in which they lie.
    pub(crate) calls: Vec<Call>,
    pub(crate) call_modules: Vec<Module>,
    /// Modules by number.
    pub(crate) modules: Vec<Module>,
    pub(crate) has_allocator: bool,
    pub(crate) lost: u64,
}

impl ObjectMap {
    /// A map of nothing; places of allocation are told apart by this many calls.
    pub fn new(frames_max: usize) -> ObjectMap {
        let blocks = Blocks::new(frames_max);
        ObjectMap {
            image: 0,
            present: ImageMap::new(blocks.of_other_image()),
            waiting: ByImage::default(),
            blocks,
            sites: RunSites::default(),
            modules: Modules::default(),
            variables: Variables::default(),
            locals: Locals::default(),
            news: None,
            lost: 0,
        }
    }

    /// The program runs already, in process `pid`: what it has now is memory of which nothing is
    /// known.
    pub fn ran_before(&mut self, pid: i32) {
        self.present.ran_before(pid);
    }

    /// The instrumentation code that asks for the events. Call it once.
    pub fn instrumenter(&mut self) -> Instrumenter {
        let (sender, receiver) = channel();
        self.news = Some(receiver);
        self.blocks.instrumenter(move |module: &Module, listing| {
            // After the run nobody listens any more.
            let _ = sender.send((module.clone(), variables(module, listing)));
        })
    }

    /// Makes an image the one whose records are read.
    pub fn turn_to(&mut self, image: u32) {
        if image == self.image {
            return;
        }
        let next = self.waiting.remove(image).unwrap_or_else(|| ImageMap::new(self.blocks.of_other_image()));
        let former = std::mem::replace(&mut self.present, next);
        self.waiting.insert(std::mem::replace(&mut self.image, image), former);
    }

    /// The map of an image.
    fn of(&mut self, image: u32) -> &mut ImageMap {
        if image == self.image {
            return &mut self.present;
        }
        let blocks = &self.blocks;
        self.waiting.get_or(image, || ImageMap::new(blocks.of_other_image()))
    }

    /// An image has more modules.
    pub fn more_modules(&mut self, image: u32, more: &[Module]) {
        let numbers: Vec<u32> = more.iter().map(|module| self.modules.number(module)).collect();
        let own = self.of(image);
        own.modules.extend(&numbers);
        own.unread.extend(&numbers);
        own.code_pages.clear();
    }

    /// An image has more sites, whose instructions lie at these addresses.
    pub fn more_sites(&mut self, image: u32, more: &[u64]) {
        self.of(image).ips.extend(more);
    }

    /// A thread has forked a child, whose memory is a copy.
    pub fn forked(&mut self, fork: &Fork) {
        let child = self.of(fork.maker.0).forked(fork);
        self.waiting.insert(fork.made.0, child);
    }

    /// Ends an image, whose threads have run this many instructions.
    pub fn ended(&mut self, image: u32, instructions: u64) {
        let blocks = self.blocks.of_other_image();
        let ended = match image == self.image {
            true => Some(std::mem::replace(&mut self.present, ImageMap::new(blocks))),
            false => self.waiting.remove(image),
        };
        let Some(ImageMap { blocks, sites, .. }) = ended else { return };
        let (places, lost) = blocks.finish(instructions);
        self.sites.ended(&sites, &places);
        self.lost += lost;
    }

    /// Takes the calls of a thread, to read a batch of its events; [`ObjectMap::put_back`] ends
    /// that.
    pub fn take(&mut self, thread: u32) -> CallStack {
        while let Some((module, variables)) = self.news.as_ref().and_then(|news| news.try_recv().ok()) {
            let number = self.modules.number(&module);
            self.variables.add(number, variables);
        }
        self.present.read_variables(&self.variables);
        self.present.blocks.take(thread)
    }

    /// Puts the calls of a thread back.
    pub fn put_back(&mut self, thread: u32, calls: CallStack) {
        self.present.blocks.put_back(thread, calls);
    }

    /// Follows an event of a thread.
    #[inline(always)]
    pub fn event(&mut self, calls: &mut CallStack, event: &Record) {
        self.present.blocks.event(calls, event);
    }

    /// Brings what look-ups will read for the first [`WARMED`] of these addresses into the host's
    /// caches.
    pub fn warm(&self, addresses: impl Iterator<Item = u64>) {
        self.present.blocks.warm(addresses);
    }

    /// What lies at an address of data that code at address `ip` of a thread refers to.
    pub fn at(&mut self, calls: &CallStack, address: u64, ip: u64) -> Place {
        match self.present.blocks.find(address) {
            Some(found) => block_place(&found, self.run_site(found.site)),
            None => self.beside_blocks(calls, address, ip),
        }
    }

    /// What was found last, if it still lies at an address. Cost: a load and some comparisons.
    #[inline(always)]
    pub(crate) fn last_at(&self, address: u64) -> Option<Place> {
        self.still(&self.present.last, address)
    }

    /// A block or a variable that was found before, if it still lies at an address.
    #[inline(always)]
    fn still(&self, last: &Last, address: u64) -> Option<Place> {
        let blocks = &self.present.blocks;
        match last {
            Last::Block(found, site) => blocks.still_holds(found, address).then(|| block_place(found, *site)),
            Last::Variable(place) => {
                let lies = address.wrapping_sub(place.start) < place.size_bytes;
                let bytes = place.start..place.start + place.size_bytes;
                (lies && blocks.never_reached(&bytes)).then_some(*place)
            }
            Last::Frame(_) | Last::Nothing => None,
        }
    }

    /// What lies at an address to which the instruction of a site refers, and the number that was
    /// noted for it, if the instruction has touched it before: most touch one object again and
    /// again. Finds what [`ObjectMap::variable_at`] would find. Cost: some ns.
    #[inline]
    pub(crate) fn again(&self, calls: &CallStack, address: u64, site: usize) -> Option<(Place, Option<u32>)> {
        let (last, number) = self.present.recent.of(site)?;
        let place = match last {
            Last::Frame(framed) => {
                let around = calls.place(address).filter(|around| framed.is_of(around))?;
                if !self.present.blocks.never_reached(&(address..address + 1)) {
                    return None;
                }
                match framed.start_of(&around, address) {
                    Some(start) => Place { start, ..framed.place },
                    None => self.local_of(framed.scope, &around, address).unwrap_or(framed.whole),
                }
            }
            last => self.still(last, address)?,
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
        let last = match (place.key, self.present.last) {
            (ObjectKey::Blocks(_), Last::Block(found, of)) => Last::Block(found, of),
            (ObjectKey::Variable(number), Last::Variable(last))
                if last.key == ObjectKey::Variable(number) =>
            {
                Last::Variable(last)
            }
            (ObjectKey::Call(_) | ObjectKey::Running(..) | ObjectKey::Local(_), _) => {
                let Some(around) = calls.place(address) else { return };
                Last::Frame(Framed::new(self.present.whole_and_scope, &around, address, place))
            }
            _ => Last::Nothing,
        };
        self.present.recent.note(site, last, (place.key, number));
    }

    /// What lies at an address of data to which the instruction of a site refers, by variable where
    /// it is a frame's: reads debug information of the files whose functions are met there. Cost:
    /// some tens of ns for an address of a stack.
    pub(crate) fn variable_at(&mut self, calls: &CallStack, address: u64, site: usize) -> Place {
        if let Some(found) = self.present.blocks.find(address) {
            let number = self.run_site(found.site);
            self.present.last = Last::Block(found, number);
            return block_place(&found, number);
        }
        let ip = self.present.ips.get(site).copied().unwrap_or(0);
        let place = self.beside_blocks(calls, address, ip);
        match place.key {
            ObjectKey::Call(_) | ObjectKey::Running(..) => match calls.place(address) {
                Some(around) => self.local_at(&around, address, ip, place),
                None => place,
            },
            ObjectKey::Variable(number) if self.variables.is_alone(number) => {
                self.present.last = Last::Variable(place);
                place
            }
            _ => place,
        }
    }

    /// The module with code at an address.
    pub(crate) fn code_at(&mut self, address: u64) -> Place {
        let module = self.present.module_at(&self.modules, address);
        Place { key: ObjectKey::Code(module), start: 0, size_bytes: 0 }
    }

    /// The number in the run of a place of allocation of the present image.
    #[inline(always)]
    fn run_site(&mut self, site: u32) -> u32 {
        match self.present.sites.get(site as usize) {
            Some(&number) if number != RunSites::NONE => number,
            _ => self.sites.met(&mut self.present.sites, site, self.present.blocks.stack(site)),
        }
    }

    /// The variable at an address of a frame, or the whole frame's place.
    fn local_at(&mut self, around: &StackPlace, address: u64, ip: u64, whole: Place) -> Place {
        let ObjectMap { present, modules, locals, .. } = self;
        let call = around.call.and_then(|call| present.blocks.call_address(call));
        let module = |code| modules.at(&present.modules, code);
        let scope = locals.scope_at(&mut present.scopes, (call, ip), module);
        self.present.whole_and_scope = (whole, scope);
        self.local_of(scope, around, address).unwrap_or(whole)
    }

    /// The variable of a scope at an address of a frame.
    fn local_of(&self, scope: Option<u32>, around: &StackPlace, address: u64) -> Option<Place> {
        let (number, start, size_bytes) = self.locals.find(scope?, around, address)?;
        Some(Place { key: ObjectKey::Local(number), start, size_bytes })
    }

    /// What lies at an address that is in no block.
    fn beside_blocks(&mut self, calls: &CallStack, address: u64, ip: u64) -> Place {
        let nowhere = |key| Place { key, start: 0, size_bytes: 0 };
        // Most of it is the stack, which a comparison tells.
        if let Some(around) = calls.place(address) {
            if around.canonical.is_none() && self.present.had_before(address).is_some() {
                return nowhere(ObjectKey::Earlier(Earlier::Stack));
            }
            return nowhere(match around.frame {
                StackFrame::Of(call) => ObjectKey::Call(call),
                StackFrame::Running => ObjectKey::Running(self.present.module_at(&self.modules, ip), ip),
            });
        }
        if let Some(number) = self.present.globals.find(&self.variables.all, address) {
            let range = &self.variables.all[number as usize].range;
            let key = ObjectKey::Variable(number);
            return Place { key, start: range.start, size_bytes: range.end - range.start };
        }
        if calls.is_allocating() {
            return nowhere(ObjectKey::Allocator);
        }
        nowhere(self.present.had_before(address).map_or(ObjectKey::Unknown, ObjectKey::Earlier))
    }

    /// The calls that led to a place of allocation, the innermost first: each with the module in
    /// which it lies, and its address.
    pub fn stack(&self, site: u32) -> Vec<(Module, u64)> {
        self.blocks.calls(self.sites.stack(site))
    }

    /// The variable with this number: its file and its address there.
    pub(crate) fn variable(&self, number: u32) -> &Variable {
        &self.variables.all[number as usize]
    }

    /// What is known when all images have ended.
    pub(crate) fn finish(self) -> Known {
        let (calls, call_modules, has_allocator) = self.blocks.known();
        Known {
            sites: self.sites.all,
            variables: self.variables.all,
            locals: self.locals.all,
            calls,
            call_modules,
            modules: self.modules.all,
            has_allocator,
            lost: self.lost,
        }
    }
}

#[inline(always)]
fn block_place(found: &Found, site: u32) -> Place {
    Place { key: ObjectKey::Blocks(site), start: found.address, size_bytes: found.size_bytes }
}
