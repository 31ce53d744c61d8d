//! Shadow stacks: turn the calls, jumps and returns of a thread into edges of a call graph.
//!
//! A frame is opened by a call and has the address of the stack slot that holds its return address.
//! A return closes the frame of its slot, and every frame above it, which `longjmp`, an exception or
//! an exchange of stacks left open. A call closes the frames whose slots lie below its own. A return
//! through a slot that no frame has (a signal handler's, another stack's) closes nothing.
//!
//! A jump into another function opens a frame with the slot of the frame below it, so that the same
//! return closes both; a stub of the linkage table is replaced by the function that it jumps to.
//!
//! An edge's costs are those between the call and its return. While a function is open, its further
//! calls are counted and have no costs of their own, because the outermost call has them. Source:
//! Weidendorfer, Kowarschik and Trinitis 2004 (callgrind).

use crate::run::tally::Events;

/// Most frames that are searched for a return's slot.
const FRAMES_SEARCHED: usize = 4096;
/// Frames that lie further below a call belong to another stack.
const STACK_BYTES_MAX: i32 = 64 << 20;

/// The calls from one block to one address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Edge {
    /// How many there were.
    pub calls: u64,
    /// What happened between the outermost ones and their returns.
    pub costs: Events,
}

/// What is known of an edge's callee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Callee {
    /// The number of its function.
    pub function: u32,
    /// What it is.
    pub kind: CalleeKind,
}

/// What a callee is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CalleeKind {
    /// A function.
    Function,
    /// A stub of the linkage table: the function to which it jumps takes its place.
    Stub,
    /// The dynamic linker's resolver: when it has found a function, its own call is over, and the
    /// function is called in its place.
    Resolver,
}

/// Whether a thread counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Collects {
    /// It does.
    Yes,
    /// It does not.
    #[default]
    No,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    /// The low half of the address of the slot with the return address.
    slot: u32,
    edge: u32,
    callee: Callee,
    /// The thread's costs at the call.
    from: Events,
    is_outermost: bool,
    /// Whether the call was counted.
    is_counted: bool,
}

/// The open calls of a thread, and the edges of all its calls by number.
#[derive(Clone, Debug, Default)]
pub struct ShadowStack {
    frames: Vec<Frame>,
    /// How many frames each function has.
    open: Vec<u32>,
    edges: Vec<Edge>,
}

/// Whether slot `low` lies below `high` on one stack.
fn is_below(low: u32, high: u32) -> bool {
    let distance = high.wrapping_sub(low) as i32;
    distance > 0 && distance < STACK_BYTES_MAX
}

impl ShadowStack {
    /// A call by `edge`, with the stack pointer that it finds.
    pub fn call(&mut self, pointer: u32, (edge, callee): (u32, Callee), now: &Events, collects: Collects) {
        self.abandon(pointer, now);
        self.open(pointer.wrapping_sub(8), (edge, callee), now, collects);
    }

    /// Closes the frames whose slots lie below the stack pointer: they will not return.
    pub fn abandon(&mut self, pointer: u32, now: &Events) {
        while self.frames.last().is_some_and(|top| is_below(top.slot, pointer)) {
            self.close(now);
        }
    }

    /// The edge and callee of the innermost open call.
    pub fn innermost(&self) -> Option<(u32, Callee)> {
        self.frames.last().map(|top| (top.edge, top.callee))
    }

    /// A jump by `edge` into another function than the innermost one.
    pub fn jump(&mut self, (edge, callee): (u32, Callee), now: &Events, collects: Collects) {
        let Some(top) = self.frames.last() else { return };
        let slot = top.slot;
        // Functions that jump at each other have one frame each.
        let chain = self.frames.iter().rev().take_while(|frame| frame.slot == slot);
        let known = chain.take(FRAMES_SEARCHED).position(|frame| frame.callee.function == callee.function);
        match known {
            Some(above) => (0..above).for_each(|_| self.close(now)),
            None => self.open(slot, (edge, callee), now, collects),
        }
    }

    /// The innermost frame, which is a stub's, becomes one of `edge`.
    pub fn replace(&mut self, (edge, callee): (u32, Callee)) {
        let Some(stub) = self.frames.pop() else { return };
        self.open[stub.callee.function as usize] -= 1;
        if stub.is_counted {
            self.edge(stub.edge).calls -= 1;
        }
        let collects = if stub.is_counted { Collects::Yes } else { Collects::No };
        self.open(stub.slot, (edge, callee), &stub.from, collects);
    }

    /// The innermost frame ends, and one of `edge` takes its place on the stack.
    pub fn succeed(&mut self, (edge, callee): (u32, Callee), now: &Events, collects: Collects) {
        let Some(slot) = self.frames.last().map(|top| top.slot) else { return };
        self.close(now);
        self.open(slot, (edge, callee), now, collects);
    }

    /// A return through the slot to which the stack pointer points.
    pub fn give_back(&mut self, pointer: u32, now: &Events) {
        let searched = self.frames.iter().rev().take(FRAMES_SEARCHED);
        let Some(above) = searched.clone().position(|frame| frame.slot == pointer) else { return };
        (0..above).for_each(|_| self.close(now));
        while self.frames.last().is_some_and(|top| top.slot == pointer) {
            self.close(now);
        }
    }

    /// Closes all frames.
    pub fn clear(&mut self, now: &Events) {
        while !self.frames.is_empty() {
            self.close(now);
        }
    }

    /// Takes what the edges have counted so far; frames stay open.
    pub fn take(&mut self, now: &Events) -> Vec<Edge> {
        for index in 0..self.frames.len() {
            let Frame { edge, from, is_outermost, .. } = self.frames[index];
            if is_outermost {
                self.edge(edge).costs.add(&now.since(&from));
                self.frames[index].from = *now;
            }
            // A stub that is replaced from here on has been counted in the part that ends.
            self.frames[index].is_counted = false;
        }
        std::mem::take(&mut self.edges)
    }

    fn edge(&mut self, number: u32) -> &mut Edge {
        let number = number as usize;
        if number >= self.edges.len() {
            self.edges.resize(number + 1, Edge::default());
        }
        &mut self.edges[number]
    }

    fn open(&mut self, slot: u32, (edge, callee): (u32, Callee), now: &Events, collects: Collects) {
        let function = callee.function as usize;
        if function >= self.open.len() {
            self.open.resize(function + 1, 0);
        }
        let is_outermost = self.open[function] == 0;
        self.open[function] += 1;
        let is_counted = collects == Collects::Yes;
        self.edge(edge).calls += u64::from(is_counted);
        self.frames.push(Frame { slot, edge, callee, from: *now, is_outermost, is_counted });
    }

    fn close(&mut self, now: &Events) {
        let Some(frame) = self.frames.pop() else { return };
        self.open[frame.callee.function as usize] -= 1;
        if frame.is_outermost {
            self.edge(frame.edge).costs.add(&now.since(&frame.from));
        }
    }
}
