//! EventRequests that a tool wants recorded at an instruction.

use super::assembler::Address;

/// When an event happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum When {
    /// When the instruction is attempted.
    Before,
    /// When it has retired.
    After,
}

/// Where an event's value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Address(Address),
    /// An address that was formed before the instruction and waits in that place.
    Stashed(Address, u8),
    Register(u8),
    Constant(u64),
}

impl Source {
    /// Registers that must hold the program's values.
    pub(crate) fn registers(&self) -> u16 {
        match self {
            Source::Address(address) | Source::Stashed(address, _) => address.registers(),
            Source::Register(r) => 1 << r,
            Source::Constant(_) => 0,
        }
    }
}

/// An event to be emitted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventRequest {
    pub(crate) index: usize,
    pub(crate) when: When,
    pub(crate) source: Source,
    pub(crate) tag: u32,
    /// Number of the request in the image, once it is accepted.
    pub(crate) number: u32,
}

/// The events of one block, sorted by instruction and time.
#[derive(Debug, Default)]
pub(crate) struct EventRequests(pub(crate) Vec<EventRequest>);

impl EventRequests {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut EventRequest> {
        self.0.iter_mut()
    }

    /// Those before or after instruction `index`.
    pub(crate) fn at(&self, index: usize, when: When) -> &[EventRequest] {
        let from = self.0.partition_point(|a| (a.index, a.when) < (index, when));
        let to = self.0.partition_point(|a| (a.index, a.when) <= (index, when));
        &self.0[from..to]
    }

    /// Registers that must hold the program's values before instruction `index`.
    pub(crate) fn needed_before(&self, index: usize) -> u16 {
        let before = self.at(index, When::Before).iter().map(|a| a.source.registers());
        let stashed = self.at(index, When::After).iter().filter(|a| matches!(a.source, Source::Stashed(..)));
        before.chain(stashed.map(|a| a.source.registers())).fold(0, |all, r| all | r)
    }

    /// Registers that must hold the program's values after instruction `index`.
    pub(crate) fn needed_after(&self, index: usize) -> u16 {
        let after = self.at(index, When::After).iter().filter(|a| !matches!(a.source, Source::Stashed(..)));
        after.fold(0, |all, a| all | a.source.registers())
    }
}
