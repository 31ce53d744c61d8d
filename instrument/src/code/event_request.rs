//! Events that a tool requests at the instructions of a block.

use super::assembler::Address;

/// When an event happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum When {
    /// Before the instruction executes, even if it then faults.
    Before,
    /// After the instruction has retired.
    After,
}

/// Where an event's value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The linear address of this operand.
    Address(Address),
    /// An operand's address that is computed before the instruction, which may change its
    /// registers, and kept in this slot of the context until the event is recorded after it.
    Stashed(Address, u8),
    /// The general register with this hardware number.
    Register(u8),
    /// A constant value.
    Constant(u64),
    /// The number of instructions that the thread has executed.
    Instructions,
}

impl Source {
    /// Bit set of the registers from which the value is computed.
    pub(crate) fn registers(&self) -> u16 {
        match self {
            Source::Address(address) | Source::Stashed(address, _) => address.registers(),
            Source::Register(number) => 1 << number,
            Source::Constant(_) | Source::Instructions => 0,
        }
    }
}

/// A requested event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventRequest {
    /// Index of the instruction in its block.
    pub(crate) index: usize,
    pub(crate) when: When,
    pub(crate) source: Source,
    /// A number that the tool chose; the event carries it.
    pub(crate) tag: u32,
    /// Number of the request in its image; 0 until the engine has accepted the request.
    pub(crate) number: u32,
}

/// The events of one block, sorted by instruction, those before it first.
#[derive(Debug, Default)]
pub(crate) struct EventRequests(pub(crate) Vec<EventRequest>);

impl EventRequests {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut EventRequest> {
        self.0.iter_mut()
    }

    /// The events before, or after, instruction `index`.
    pub(crate) fn at(&self, index: usize, when: When) -> &[EventRequest] {
        let from = self.0.partition_point(|event| (event.index, event.when) < (index, when));
        let to = self.0.partition_point(|event| (event.index, event.when) <= (index, when));
        &self.0[from..to]
    }

    /// Bit set of the registers that must hold the program's values before instruction `index`.
    pub(crate) fn needed_before(&self, index: usize) -> u16 {
        let before = self.at(index, When::Before).iter().map(|event| event.source.registers());
        let stashed =
            self.at(index, When::After).iter().filter(|event| matches!(event.source, Source::Stashed(..)));
        before.chain(stashed.map(|event| event.source.registers())).fold(0, |all, registers| all | registers)
    }

    /// Bit set of the registers that must hold the program's values after instruction `index`.
    pub(crate) fn needed_after(&self, index: usize) -> u16 {
        let after =
            self.at(index, When::After).iter().filter(|event| !matches!(event.source, Source::Stashed(..)));
        after.fold(0, |all, event| all | event.source.registers())
    }
}
