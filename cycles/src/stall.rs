//! What the misses of a loop cost, beside its base.
//!
//! The frame is interval analysis (Karkhanis and Smith 2004; Eyerman et al. 2009): a program runs
//! at its base speed but for miss events, and what an event costs depends on what overlaps with it.
//!
//! - A load in a chain waits for every miss in full, unless the chain is so short that the reorder
//!   buffer holds several of them.
//! - Independent misses overlap: those within reach of the reorder buffer share one wait, of which
//!   the time that the buffer covers is hidden.
//! - Lines of streams come ahead of their use and cost what the bandwidth costs, hidden behind the
//!   base. Stores wait for nobody and cost bandwidth too.
//! - A mispredicted branch that a load decides waits for it, where the load's address came by
//!   branches as well; where it did not, the wrong path has asked for the next lines meanwhile.

use crate::core::Core;

/// Kinds of waits: for the second level, the third, memory, and the TLBs.
pub(crate) const KINDS: usize = 4;

/// How far the view reaches for chains, in distances between mispredicted branches.
const BEHIND_BRANCHES: f64 = 2.0;

/// Lines that come for each one of a sparse stream.
const SPARSE_LINES: f64 = 2.0;

/// Lines of a page that miss, at least, for each time that the page itself does.
const NEAR_LINES: f64 = 16.0;

/// How often something waits in an iteration, by kind: served by L2, L3 and memory, and the two
/// levels of translation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Events {
    /// Lines that the second level, the third, and memory had.
    pub(crate) served: [f64; 3],
    /// Translations that the second-level TLB had, and walks.
    pub(crate) translated: [f64; 2],
}

impl Core {
    /// Cycles of one wait of a kind.
    fn longest(&self, kind: usize) -> f64 {
        let [second, third, memory] = self.waits;
        [second, third, memory, self.translations[1].max(1.0)][kind]
    }
}

impl Events {
    pub(crate) fn add(&mut self, other: &Events, times: f64) {
        let pairs = self.served.iter_mut().zip(other.served);
        pairs.for_each(|(sum, more)| *sum += times * more);
        let pairs = self.translated.iter_mut().zip(other.translated);
        pairs.for_each(|(sum, more)| *sum += times * more);
    }

    pub(crate) fn times(&self, factor: f64) -> Events {
        let mut events = Events::default();
        events.add(self, factor);
        events
    }

    /// Cycles of all waits in full, by kind.
    pub(crate) fn waits(&self, core: &Core) -> [f64; KINDS] {
        let near = if self.is_near() { core.near } else { 1.0 };
        let shares = [1.0, near, near];
        let [second, third, memory] =
            [0, 1, 2].map(|place| self.served[place] * core.waits[place] * shares[place]);
        let [inner, outer] = core.translations;
        [second, third, memory, self.translated[0] * inner + self.translated[1] * outer]
    }

    /// Cycles of the bandwidth that prefetched lines take, by kind.
    fn streamed(&self, core: &Core) -> [f64; KINDS] {
        let [second, third, memory] = [0, 1, 2].map(|place| self.served[place] * core.streamed[place]);
        let walks = self.translated[1] * core.translations[1] / core.walks;
        [second, third, memory, walks]
    }

    /// Cycles of independent misses if as many as possible are under way.
    fn crowded(&self, core: &Core) -> [f64; KINDS] {
        let [second, third, memory, translations] = self.waits(core);
        let [of_second, of_third, of_memory] = core.parallel;
        [second / of_second, third / of_third, memory / of_memory, translations / core.walks]
    }

    /// Whether misses mostly stay within a page, as the TLB tells: then the prefetcher that follows
    /// pages has some of their lines already.
    fn is_near(&self) -> bool {
        NEAR_LINES * self.translated.iter().sum::<f64>() <= self.long()
    }

    /// Waits that are long: what the reorder buffer does not cover by itself.
    fn long(&self) -> f64 {
        self.served[1] + self.served[2]
    }
}

/// The misses of an iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Iteration {
    /// Instructions.
    pub(crate) instructions: f64,
    /// Cycles without any miss.
    pub(crate) base: f64,
    /// Mispredicted branches.
    pub(crate) mispredictions: f64,
    /// How probably another iteration follows.
    pub(crate) again: f64,
    /// Misses whose addresses need no chained load.
    pub(crate) independent: Events,
    /// Lines of streams, and of stores.
    pub(crate) streams: Events,
    /// Misses of chained loads.
    pub(crate) chained: Events,
}

/// The share of each wait that costs time, beside what the base hides.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Exposed {
    /// Of an independent miss's wait.
    pub(crate) independent: f64,
    /// Of a stream's bandwidth.
    pub(crate) stream: f64,
    /// Of a chained miss's wait.
    pub(crate) chained: f64,
}

impl Iteration {
    /// Counts events of a step, so often in each iteration.
    pub(crate) fn count(&mut self, role: Role, events: &Events, times: f64) {
        match role {
            Role::Chained => self.chained.add(events, times),
            Role::Independent => self.independent.add(events, times),
            Role::Streamed => self.streams.add(events, times),
            Role::Sparse => self.streams.add(events, SPARSE_LINES * times),
        }
    }

    /// Chains that stand in the reorder buffer together, because each is short. A mispredicted
    /// branch ends the view, but the chain behind it begins before the branch is decided where both
    /// paths lead there.
    pub(crate) fn chains(&self, core: &Core) -> f64 {
        let between = self.instructions / self.mispredictions.max(1e-9);
        let chain = self.instructions.max(1.0) / (1.0 - self.again).max(1e-3);
        (core.window.min(BEHIND_BRANCHES * between) / chain).clamp(1.0, core.parallel[0])
    }

    /// The shares for the loop.
    pub(crate) fn exposed(&self, core: &Core) -> Exposed {
        // A wrong path mostly asks for lines that the right one needs too, so that mispredicted
        // branches do not end the view for addresses that need no branch.
        let (instructions, window) = (self.instructions.max(1.0), core.window);
        let sum = |kinds: [f64; KINDS]| kinds.iter().sum::<f64>();
        let waits = self.independent.waits(core);
        // What is hidden while the window fills.
        let covered = window * self.base / instructions;
        let together = (self.independent.long() * window / instructions).clamp(1.0, core.parallel[0]);
        let exposed = |kind: usize| waits[kind] * (1.0 - covered / core.longest(kind)).max(0.0);
        let by_latency = (0..KINDS).map(exposed).sum::<f64>() / together;
        let waits = sum(waits);
        // Bandwidth is hidden behind the base.
        let (crowded, streamed) = (sum(self.independent.crowded(core)), sum(self.streams.streamed(core)));
        let by_bandwidth = (crowded + streamed - self.base).max(0.0);
        let exposed = by_latency.max(by_bandwidth);
        let weight = by_latency.max(crowded) + streamed;
        let share = if weight > 0.0 { exposed / weight } else { 0.0 };
        let independent = if waits > 0.0 { share * by_latency.max(crowded) / waits } else { 0.0 };
        let chains = self.chains(core);
        // Lines of one object are asked for together.
        let lines = self.chained.served.iter().sum::<f64>().max(1.0);
        Exposed { independent, stream: share, chained: 1.0 / (chains * lines) }
    }
}

/// Cycles of a site's events, by kind.
pub(crate) fn cost(events: &Events, role: Role, exposed: &Exposed, core: &Core) -> [f64; KINDS] {
    match role {
        Role::Chained => events.waits(core).map(|wait| wait * exposed.chained),
        Role::Independent => events.waits(core).map(|wait| wait * exposed.independent),
        Role::Streamed => events.streamed(core).map(|cycles| cycles * exposed.stream),
        Role::Sparse => events.streamed(core).map(|cycles| cycles * exposed.stream * SPARSE_LINES),
    }
}

/// How misses of a site overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// In a chain, each after the other.
    Chained,
    /// Next to others that do not need it.
    Independent,
    /// Ahead of their use, line after line.
    Streamed,
    /// Ahead of their use, with lines between them that nobody asked for.
    Sparse,
}
