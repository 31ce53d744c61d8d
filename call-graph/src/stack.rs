//! Shadow stacks: turn the calls, jumps and returns of a thread into edges of a call graph.
//!
//! A frame is opened by a call and has the address of the stack slot that holds its return
//! address. A return closes the frame of its slot, and every frame above it, which `longjmp`, an
//! exception or an exchange of stacks left open. A call closes the frames whose slots lie below its
//! own. A return through a slot that no frame has (a signal handler's, another stack's) closes
//! nothing.
//!
//! A jump into another function opens a frame with the slot of the frame below it, so that the same
//! return closes both; a stub of the linkage table is replaced by the function that it jumps to.
//! Most of these jumps are not recorded, because they lead where the last one did: the function
//! behind the stub then takes the stub's place at once, and a record that follows corrects it.
//! Where no call is open, a jump to the beginning of a function is a call of it, as that of the
//! dynamic linker to the program's `_start`.
//!
//! An edge's costs are those between the call and its return. While a function is open, its further
//! calls are counted and have no costs of their own, because the outermost call has them. Source:
//! Weidendorfer, Kowarschik and Trinitis 2004 (callgrind).

/// Most frames that are searched for a return's slot.
const FRAMES_SEARCHED: usize = 4096;
/// Most calls that are open at a time; with one more all of them are closed. A stack of 8 MB holds
/// half as many. Whoever writes false records into the ring thus takes no more memory than this.
const FRAMES_MAX: usize = 1 << 20;
/// Instead of the edge to a stub: the call went through none.
pub(super) const NO_STUB: u32 = u32::MAX;
/// Frames that lie further below a call belong to another stack.
const STACK_BYTES_MAX: i32 = 64 << 20;

/// The first `N` events of a thread.
pub(super) type Costs<const N: usize> = [u64; N];

/// The calls from one block to one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edge<const N: usize> {
    /// How many there were, in threads that collected and in others.
    pub(super) calls: u64,
    /// How many of them were made by a thread that did not collect.
    pub(super) uncollected: u64,
    /// What happened between the outermost ones and their returns.
    pub(super) costs: Costs<N>,
}

impl<const N: usize> Edge<N> {
    const NONE: Edge<N> = Edge { calls: 0, uncollected: 0, costs: [0; N] };

    /// Whether nothing was collected: neither costs nor calls.
    pub(super) fn is_empty(&self) -> bool {
        self.calls == self.uncollected && self.costs == [0; N]
    }

    #[inline(always)]
    fn count(&mut self, collects: Collects) {
        self.calls += 1;
        if collects == Collects::No {
            self.uncollected += 1;
        }
    }

    #[inline(always)]
    fn add(&mut self, now: &Costs<N>, from: &Costs<N>) {
        for (sum, (now, from)) in self.costs.iter_mut().zip(now.iter().zip(from)) {
            *sum = sum.wrapping_add(now.wrapping_sub(*from));
        }
    }
}

/// What is known of an edge: its number and its callee. It has eight bytes, which are copied at
/// once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    /// The number of the edge.
    pub(super) edge: u32,
    /// The number of the callee's function, with what the callee is in the upper two bits.
    callee: u32,
}

impl Known {
    /// The lowest bit that says what a callee is.
    const KIND_SHIFT: u32 = 30;
    /// No edge.
    pub(super) const NONE: Known = Known { edge: u32::MAX, callee: 0 };

    pub(super) fn new(edge: u32, function: u32, kind: CalleeKind) -> Known {
        debug_assert!(function >> Known::KIND_SHIFT == 0, "no program has that many functions");
        Known { edge, callee: function | (kind as u32) << Known::KIND_SHIFT }
    }

    /// The number of the callee's function.
    #[inline(always)]
    pub(super) fn function(self) -> u32 {
        self.callee & ((1 << Known::KIND_SHIFT) - 1)
    }

    /// Whether the callee is a stub of the linkage table.
    #[inline(always)]
    pub(super) fn is_stub(self) -> bool {
        self.callee >> Known::KIND_SHIFT == CalleeKind::Stub as u32
    }

    /// What the callee is.
    pub(super) fn kind(self) -> CalleeKind {
        match self.callee >> Known::KIND_SHIFT {
            0 => CalleeKind::Function,
            1 => CalleeKind::Stub,
            _ => CalleeKind::Resolver,
        }
    }
}

/// What a callee is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum CalleeKind {
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
struct Frame<const N: usize> {
    /// The low half of the address of the slot with the return address.
    slot: u32,
    known: Known,
    /// The edge to the stub of the linkage table whose place the call took, or [`NO_STUB`].
    through: u32,
    is_outermost: bool,
    /// Whether the call was counted in the present part.
    is_counted: bool,
    /// Whether the thread collected at the call.
    collects: Collects,
    /// The thread's costs at the call.
    from: Costs<N>,
}

/// The open calls of a thread, and the edges of all its calls by number.
#[derive(Clone, Debug)]
pub(super) struct ShadowStack<const N: usize> {
    frames: Vec<Frame<N>>,
    /// How many frames each function has.
    open: Vec<u32>,
    edges: Vec<Edge<N>>,
}

/// Whether slot `low` lies below `high` on one stack.
#[inline(always)]
fn is_below(low: u32, high: u32) -> bool {
    let distance = high.wrapping_sub(low) as i32;
    distance > 0 && distance < STACK_BYTES_MAX
}

/// The element at `index` of a table, which grows if it is too short.
fn at<T: Clone>(table: &mut Vec<T>, index: u32, empty: T) -> &mut T {
    if index as usize >= table.len() {
        table.resize((index as usize + 1).next_power_of_two(), empty);
    }
    &mut table[index as usize]
}

impl<const N: usize> ShadowStack<N> {
    pub(super) fn new() -> ShadowStack<N> {
        ShadowStack { frames: Vec::new(), open: Vec::new(), edges: Vec::new() }
    }

    /// A call by an edge, with the stack pointer that it finds.
    #[inline(always)]
    pub(super) fn call(&mut self, pointer: u32, known: Known, now: &Costs<N>, collects: Collects) {
        self.call_through(pointer, (NO_STUB, known), now, collects);
    }

    /// A call of a stub, by the edge `through`, that is known to jump on: the edge `known` takes
    /// its place.
    #[inline(always)]
    pub(super) fn call_through(
        &mut self,
        pointer: u32,
        (through, known): (u32, Known),
        now: &Costs<N>,
        collects: Collects,
    ) {
        self.abandon(pointer, now);
        self.open(pointer.wrapping_sub(8), (through, known), now, collects);
    }

    /// Closes the frames whose slots lie below the stack pointer: they will not return.
    #[inline(always)]
    pub(super) fn abandon(&mut self, pointer: u32, now: &Costs<N>) {
        while self.frames.last().is_some_and(|top| is_below(top.slot, pointer)) {
            self.close(now);
        }
    }

    /// The innermost open call.
    #[inline(always)]
    pub(super) fn innermost(&self) -> Option<Known> {
        self.frames.last().map(|top| top.known)
    }

    /// The edge to the stub whose place the innermost call took, or to the stub that it called.
    #[inline(always)]
    pub(super) fn innermost_stub(&self) -> Option<u32> {
        let top = self.frames.last()?;
        match (top.through, top.known.is_stub()) {
            (NO_STUB, true) => Some(top.known.edge),
            (NO_STUB, false) => None,
            (stub, _) => Some(stub),
        }
    }

    /// Whether [`ShadowStack::call_and_return`] may take a call by an edge: nothing has to grow.
    #[inline(always)]
    pub(super) fn has_room_for(&self, known: Known) -> bool {
        self.frames.len() < self.frames.capacity()
            && (known.function() as usize) < self.open.len()
            && (known.edge as usize) < self.edges.len()
    }

    /// A call, behind [`ShadowStack::abandon`], and its own return, between which no other transfer
    /// was: what its frame would count, without the frame. Of all events, instructions, loads and
    /// stores alone have happened meanwhile.
    #[inline(always)]
    pub(super) fn call_and_return(
        &mut self,
        known: Known,
        (from, to): (&Costs<N>, &Costs<N>),
        collects: Collects,
    ) {
        let Some(edge) = self.edges.get_mut(known.edge as usize) else { return };
        edge.count(collects);
        let is_outermost = self.open.get(known.function() as usize) == Some(&0);
        let mask = u64::from(is_outermost).wrapping_neg();
        for (sum, (to, from)) in edge.costs.iter_mut().zip(to.iter().zip(from)).take(3) {
            *sum = sum.wrapping_add(to.wrapping_sub(*from) & mask);
        }
    }

    /// The innermost call, if it took the place of a stub's and was counted in the present part,
    /// with the edge to the stub.
    #[inline(always)]
    pub(super) fn innermost_behind(&self) -> Option<(u32, Known)> {
        let top = self.frames.last()?;
        (top.through != NO_STUB && top.is_counted).then_some((top.through, top.known))
    }

    /// A jump by an edge into another function than the innermost one.
    #[inline(never)]
    pub(super) fn jump(&mut self, known: Known, now: &Costs<N>, collects: Collects) {
        let Some(slot) = self.frames.last().map(|top| top.slot) else { return };
        // Functions that jump at each other have one frame each.
        let chain = self.frames.iter().rev().take_while(|frame| frame.slot == slot);
        let mut chain = chain.take(FRAMES_SEARCHED);
        match chain.position(|frame| frame.known.function() == known.function()) {
            Some(above) => (0..above).for_each(|_| self.close(now)),
            None => self.open(slot, (NO_STUB, known), now, collects),
        }
    }

    /// The innermost frame, which is that of the stub to which the edge `through` leads or took its
    /// place, becomes one of another edge.
    pub(super) fn replace(&mut self, (through, known): (u32, Known)) {
        let Some(stub) = self.frames.pop() else { return };
        *at(&mut self.open, stub.known.function(), 0) -= 1;
        if stub.is_counted {
            let edge = at(&mut self.edges, stub.known.edge, Edge::NONE);
            edge.calls -= 1;
            edge.uncollected -= u64::from(stub.collects == Collects::No);
        }
        self.open(stub.slot, (through, known), &stub.from, stub.collects);
    }

    /// The innermost frame ends, and one of another edge takes its place on the stack.
    pub(super) fn succeed(&mut self, known: Known, now: &Costs<N>, collects: Collects) {
        let Some(slot) = self.frames.last().map(|top| top.slot) else { return };
        self.close(now);
        self.open(slot, (NO_STUB, known), now, collects);
    }

    /// A return through the slot to which the stack pointer points.
    #[inline(always)]
    pub(super) fn give_back(&mut self, pointer: u32, now: &Costs<N>) {
        if self.frames.last().is_none_or(|top| top.slot != pointer) && !self.unwind(pointer, *now) {
            return;
        }
        while self.frames.last().is_some_and(|top| top.slot == pointer) {
            self.close(now);
        }
    }

    /// Closes the frames above the one with this slot; returns whether there is one.
    #[cold]
    #[inline(never)]
    fn unwind(&mut self, pointer: u32, now: Costs<N>) -> bool {
        let mut searched = self.frames.iter().rev().take(FRAMES_SEARCHED);
        let above = searched.position(|frame| frame.slot == pointer);
        (0..above.unwrap_or(0)).for_each(|_| self.close(&now));
        above.is_some()
    }

    /// Closes all frames.
    pub(super) fn clear(&mut self, now: &Costs<N>) {
        while !self.frames.is_empty() {
            self.close(now);
        }
    }

    /// Takes what the edges have counted so far; frames stay open.
    pub(super) fn take(&mut self, now: &Costs<N>) -> Vec<Edge<N>> {
        for frame in &mut self.frames {
            if frame.is_outermost {
                at(&mut self.edges, frame.known.edge, Edge::NONE).add(now, &frame.from);
                frame.from = *now;
            }
            // A stub that is replaced from here on was counted in the part that ends.
            frame.is_counted = false;
        }
        std::mem::take(&mut self.edges)
    }

    #[inline(always)]
    fn open(&mut self, slot: u32, (through, known): (u32, Known), now: &Costs<N>, collects: Collects) {
        if self.frames.len() >= self.frames.capacity() {
            self.make_room(*now);
        }
        let is_outermost = match self.open.get_mut(known.function() as usize) {
            Some(open) => {
                *open += 1;
                *open == 1
            }
            None => self.first_of_function(known.function()),
        };
        match self.edges.get_mut(known.edge as usize) {
            Some(edge) => edge.count(collects),
            None => self.first_of_edge(known.edge, collects),
        }
        let is_counted = true;
        self.frames.push(Frame { slot, known, through, is_outermost, is_counted, collects, from: *now });
    }

    /// Counts a frame of a function that the table does not have; it is an outermost one.
    #[cold]
    #[inline(never)]
    fn first_of_function(&mut self, function: u32) -> bool {
        *at(&mut self.open, function, 0) += 1;
        true
    }

    /// Counts a call by an edge that the table does not have.
    #[cold]
    #[inline(never)]
    fn first_of_edge(&mut self, edge: u32, collects: Collects) {
        at(&mut self.edges, edge, Edge::NONE).count(collects);
    }

    /// Adds the costs of the innermost call, whose edge the table does not have because a part has
    /// ended.
    #[cold]
    #[inline(never)]
    fn end_of_edge(&mut self, now: Costs<N>) {
        if let Some(Frame { known, from, .. }) = self.frames.last() {
            at(&mut self.edges, known.edge, Edge::NONE).add(&now, from);
        }
    }

    /// Makes room for one more frame.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, now: Costs<N>) {
        if self.frames.len() >= FRAMES_MAX {
            self.clear(&now);
        }
        let more = self.frames.len().max(64).min(FRAMES_MAX - self.frames.len());
        self.frames.reserve_exact(more);
    }

    /// How many calls are open.
    #[cfg(test)]
    pub(super) fn depth(&self) -> usize {
        self.frames.len()
    }

    #[inline(always)]
    fn close(&mut self, now: &Costs<N>) {
        // The frame is read where it lies: it was written field by field just before, and a copy of
        // the whole would have to wait until these stores have reached the cache.
        let Some(frame) = self.frames.last() else { return };
        // Its call has entered the function into the table.
        if let Some(open) = self.open.get_mut(frame.known.function() as usize) {
            *open -= 1;
        }
        if frame.is_outermost {
            match self.edges.get_mut(frame.known.edge as usize) {
                Some(edge) => edge.add(now, &frame.from),
                None => self.end_of_edge(*now),
            }
        }
        self.frames.truncate(self.frames.len() - 1);
    }
}
