//! The events that callgrind and cachegrind count, with the last level told apart by kind.
//!
//! Reports of `count` and `cache` add a level's misses up; files for Valgrind's viewers have
//! instruction fetches, loads and stores of each level in columns of their own.

use simulate::{BlockMisses, SiteMisses};

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Instructions.
    Ir,
    /// Loads.
    Dr,
    /// Stores.
    Dw,
    /// Fetches that missed the first level.
    I1mr,
    /// Loads that missed the first level.
    D1mr,
    /// Stores that missed the first level.
    D1mw,
    /// Fetches that missed the last level.
    ILmr,
    /// Loads that missed the last level.
    DLmr,
    /// Stores that missed the last level.
    DLmw,
}

impl Event {
    /// All events, in callgrind's order.
    pub const ALL: [Event; 9] = [
        Event::Ir,
        Event::Dr,
        Event::Dw,
        Event::I1mr,
        Event::D1mr,
        Event::D1mw,
        Event::ILmr,
        Event::DLmr,
        Event::DLmw,
    ];
    /// All events, in cachegrind's order.
    pub const CACHEGRIND: [Event; 9] = [
        Event::Ir,
        Event::I1mr,
        Event::ILmr,
        Event::Dr,
        Event::D1mr,
        Event::DLmr,
        Event::Dw,
        Event::D1mw,
        Event::DLmw,
    ];
}

/// The level that both tools call the last: the second that is simulated.
const LAST: usize = 1;

/// How often each event happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events([u64; Event::ALL.len()]);

impl Events {
    /// The number of an event.
    pub fn get(&self, event: Event) -> u64 {
        self.0[event as usize]
    }

    /// The number of events.
    pub const COUNT: usize = Event::ALL.len();

    /// The events of which these are the first, in callgrind's order; the others did not happen.
    pub fn of_first(first: &[u64]) -> Events {
        Events(std::array::from_fn(|index| first.get(index).copied().unwrap_or(0)))
    }

    /// Adds the events of `other`.
    pub fn add(&mut self, other: &Events) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, more)| *sum += more);
    }

    /// Instructions, loads and stores.
    pub fn of(counts: [u64; 3]) -> Events {
        let mut events = Events::default();
        events.0[..3].copy_from_slice(&counts);
        events
    }

    /// The misses of a site.
    pub fn of_site(misses: &SiteMisses) -> Events {
        let mut events = Events::default();
        events.0[Event::D1mr as usize] = misses.loads[0];
        events.0[Event::D1mw as usize] = misses.stores[0];
        events.0[Event::DLmr as usize] = misses.loads[LAST];
        events.0[Event::DLmw as usize] = misses.stores[LAST];
        events
    }

    /// The misses of a block's instruction lines.
    pub fn of_block(misses: &BlockMisses) -> Events {
        let mut events = Events::default();
        events.0[Event::I1mr as usize] = misses.fetches[0];
        events.0[Event::ILmr as usize] = misses.fetches[LAST];
        events
    }
}
