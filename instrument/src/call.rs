//! Records of calls, returns and jumps, and how they are read.
//!
//! A run whose options ask for it records each call, each return and each jump by a register or
//! memory, behind all records that the thread made before it. A record says where the stack pointer
//! stood and what the thread's running sums were, the transferring instruction included. What
//! happened between two records of a thread is the difference of their sums.
//!
//! | words | `address` | `extra` |
//! |---|---|---|
//! | call, jump, return | instructions | low half of the stack pointer |
//! | loads and stores, if they are counted | loads | low half of the number of stores |
//! | target, of calls and jumps by a register or memory | target | 0 |
//! | target, of the jump of a stub | target | eighth of the stub's address |
//!
//! **Stubs.** Half of the transfers of some programs are jumps of stubs of the linkage table, which
//! lead to the same function again and again. Each thread has [`STUB_CELLS`] cells with the targets
//! of such jumps. A stub's jump is recorded if its target is not that of the stub's cell, or if
//! another record than that of the transfer to the stub precedes it; the record makes its target
//! the cell's. An observer that keeps equal cells therefore knows where jumps without a record
//! lead, even where two stubs share a cell ([`StubTargets`]).
//!
//! A direct call or jump has one target, which the observer learns once, as a [`DirectTarget`].
//!
//! All words have the kind [`RecordKind::Tool`] and the number of the block that ends with the
//! transfer; simulators pass over them.

use event::{Record, RecordKind};

/// Whether calls, returns and jumps by a register or memory are recorded, and with which running
/// sums of their thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallRecords {
    /// They are not recorded.
    #[default]
    None,
    /// They are recorded with the number of instructions.
    Instructions,
    /// They are recorded with the numbers of instructions, loads and stores.
    References,
}

impl CallRecords {
    /// The most words that the record of a transfer has.
    pub(crate) fn words_max(self) -> u64 {
        match self {
            CallRecords::None => 0,
            CallRecords::Instructions => 2,
            CallRecords::References => 3,
        }
    }
}

/// The size code of a word that begins the record of a call by a register or memory.
pub(crate) const CALL: u32 = 1;
/// The size code of a word that begins the record of a jump by a register or memory.
pub(crate) const JUMP: u32 = 2;
/// The size code of a word that begins a return's record.
pub(crate) const RETURN: u32 = 3;
/// The size code of the word with loads and stores.
pub(crate) const REFERENCES: u32 = 4;
/// The size code of the word with the target.
pub(crate) const TARGET: u32 = 5;
/// The size code of a word that begins a direct call's record.
pub(crate) const DIRECT_CALL: u32 = 6;
/// The size code of a word that begins a direct jump's record.
pub(crate) const DIRECT_JUMP: u32 = 7;

/// The size code of a word that begins the record of a stub's jump.
pub(crate) const STUB_JUMP: u32 = 8;
/// The size code of the word with the target of a stub's jump.
pub(crate) const STUB_TARGET: u32 = 9;

/// How many cells a thread has for targets of stubs.
pub const STUB_CELLS: usize = 4096;

/// The cell of the stub with this number, an eighth of its address.
pub(crate) fn stub_cell(number: u32) -> usize {
    number as usize % STUB_CELLS
}

/// The number of the stub at `address`: an eighth of it. Stubs have 8 or 16 bytes and begin at
/// multiples of that.
pub fn stub_number(address: u64) -> u32 {
    (address >> 3) as u32
}

/// What the cells of a thread hold: where stubs jumped last.
#[derive(Clone, Debug, Default)]
pub struct StubTargets(Vec<u64>);

impl StubTargets {
    /// Where the stub with this number jumps, if no other record says so.
    #[inline(always)]
    pub fn get(&self, number: u32) -> Option<u64> {
        self.0.get(stub_cell(number)).copied().filter(|&target| target != 0)
    }

    /// Follows the record of a stub's jump.
    pub fn set(&mut self, number: u32, target: u64) {
        if self.0.is_empty() {
            self.0 = vec![0; STUB_CELLS];
        }
        self.0[stub_cell(number)] = target;
    }

    /// Follows a record, if it has the target of a stub's jump; every other record is passed over.
    pub fn follow(&mut self, record: &Record) {
        if record.what & 0xff == what(0, STUB_TARGET) {
            self.set(record.extra, record.address);
        }
    }
}

/// The word `what` of a record of block `block`.
pub(crate) fn what(block: u32, code: u32) -> u32 {
    block << 8 | (RecordKind::Tool as u32) << 4 | code
}

/// Running sums of a thread since its beginning. Complex references are left out: only records
/// count them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ticks {
    /// Instructions retired; a repeated string instruction counts once.
    pub instructions: u64,
    /// Loads, if they are counted.
    pub loads: u64,
    /// Stores, if they are counted.
    pub stores: u64,
}

/// How control was transferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// A call of the code at this address.
    Call(u64),
    /// A jump to this address.
    Jump(u64),
    /// The jump of a stub of the linkage table.
    StubJump {
        /// The stub's number ([`stub_number`]).
        stub: u32,
        /// Where it leads.
        target: u64,
    },
    /// A call of the block's only target.
    DirectCall,
    /// A jump to the block's only target.
    DirectJump,
    /// A return.
    Return,
}

/// Where the direct call or jump of a block leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectTarget {
    /// Number of the block, in its image.
    pub block: u32,
    /// The address.
    pub target: u64,
}

/// A transfer that was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallEvent {
    /// The kind of the transfer, with its target.
    pub transfer: Transfer,
    /// Number of the block that it ends, in its image.
    pub block: u32,
    /// The low half of the stack pointer before the transfer.
    pub stack: u32,
    /// The thread's running sums behind the transferring instruction.
    pub ticks: Ticks,
}

/// Whether a record is a word of a call, a return or a jump.
#[inline(always)]
pub fn is_word(record: &Record) -> bool {
    record.what as u8 >> 4 == RecordKind::Tool as u8
}

/// Reads the words of one thread.
#[derive(Clone, Debug)]
pub struct CallReader {
    records: CallRecords,
    open: Option<CallEvent>,
    /// The number of stores at the last event, of which words have the low half.
    stores: u64,
}

impl CallReader {
    /// A reader for a thread of a run with this option.
    pub fn new(records: CallRecords) -> CallReader {
        CallReader { records, open: None, stores: 0 }
    }

    /// Whether the words of an event have begun and not ended.
    pub fn is_within(&self) -> bool {
        self.open.is_some()
    }

    /// Reads the event with which `words` begin, if all of its words are there; returns it with
    /// their number. [`CallReader::read`] reads everything else. `REFERENCES` says whether words
    /// have loads and stores. Call it between two events.
    #[inline(always)]
    pub fn read_whole<const REFERENCES: bool>(&mut self, words: &[Record]) -> Option<(CallEvent, usize)> {
        let code = |word: &Record| word.what & 15;
        let first = words.first()?;
        let mut ticks = Ticks { instructions: first.address, loads: 0, stores: 0 };
        let mut count = 1;
        if REFERENCES {
            let word = words.get(1).filter(|word| code(word) == self::REFERENCES)?;
            (ticks.loads, ticks.stores) = self.references(word);
            count = 2;
        }
        let transfer = match code(first) {
            RETURN => Transfer::Return,
            DIRECT_CALL => Transfer::DirectCall,
            DIRECT_JUMP => Transfer::DirectJump,
            STUB_JUMP => {
                let word = words.get(count).filter(|word| code(word) == STUB_TARGET)?;
                count += 1;
                Transfer::StubJump { stub: word.extra, target: word.address }
            }
            kind @ (CALL | JUMP) => {
                let target = words.get(count).filter(|word| code(word) == TARGET)?.address;
                count += 1;
                if kind == CALL {
                    Transfer::Call(target)
                } else {
                    Transfer::Jump(target)
                }
            }
            _ => return None,
        };
        if REFERENCES {
            self.stores = ticks.stores;
        }
        Some((CallEvent { transfer, block: first.what >> 8, stack: first.extra, ticks }, count))
    }

    /// Reads the word with loads and stores of an event of two words, of which `first` is the other
    /// one.
    #[inline(always)]
    pub fn read_sums(&mut self, first: &Record, second: &Record) -> Ticks {
        let (loads, stores) = self.references(second);
        self.stores = stores;
        Ticks { instructions: first.address, loads, stores }
    }

    /// The loads and stores that a word says, of which it has the low half of the stores.
    #[inline(always)]
    fn references(&self, word: &Record) -> (u64, u64) {
        let more = word.extra.wrapping_sub(self.stores as u32);
        (word.address, self.stores.wrapping_add(more.into()))
    }

    /// Reads the next word; returns the event if the word is its last. Words without a beginning
    /// are passed over.
    pub fn read(&mut self, word: &Record) -> Option<CallEvent> {
        let ticks = Ticks { instructions: word.address, loads: 0, stores: self.stores };
        let block = word.site() as u32;
        let begins = |transfer| CallEvent { transfer, block, stack: word.extra, ticks };
        match u32::from(word.code().0) & 15 {
            CALL => self.open = Some(begins(Transfer::Call(0))),
            JUMP => self.open = Some(begins(Transfer::Jump(0))),
            STUB_JUMP => self.open = Some(begins(Transfer::StubJump { stub: 0, target: 0 })),
            RETURN => self.open = Some(begins(Transfer::Return)),
            DIRECT_CALL => self.open = Some(begins(Transfer::DirectCall)),
            DIRECT_JUMP => self.open = Some(begins(Transfer::DirectJump)),
            REFERENCES => {
                let (loads, stores) = self.references(word);
                self.stores = stores;
                let open = self.open.as_mut()?;
                (open.ticks.loads, open.ticks.stores) = (loads, stores);
            }
            TARGET => match &mut self.open.as_mut()?.transfer {
                Transfer::Call(target) | Transfer::Jump(target) => *target = word.address,
                _ => {}
            },
            STUB_TARGET => {
                if let Transfer::StubJump { stub, target } = &mut self.open.as_mut()?.transfer {
                    (*stub, *target) = (word.extra, word.address);
                }
            }
            _ => return None,
        }
        let has_references = self.records == CallRecords::References;
        let last = match self.open?.transfer {
            Transfer::Call(_) | Transfer::Jump(_) => TARGET,
            Transfer::StubJump { .. } => STUB_TARGET,
            _ if has_references => REFERENCES,
            Transfer::DirectCall => DIRECT_CALL,
            Transfer::DirectJump => DIRECT_JUMP,
            Transfer::Return => RETURN,
        };
        if u32::from(word.code().0) & 15 == last {
            self.open.take()
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(block: u32, code: u32, address: u64, extra: u32) -> Record {
        Record { address, what: what(block, code), extra }
    }

    #[test]
    fn words_become_events() {
        let mut reader = CallReader::new(CallRecords::References);
        let words = [
            word(7, CALL, 100, 0x1000),
            word(7, REFERENCES, 30, 10),
            word(7, TARGET, 0x5555, 0),
            word(9, RETURN, 120, 0xff8),
            word(9, REFERENCES, 40, 15),
            word(4, DIRECT_JUMP, 130, 0xff8),
            word(4, REFERENCES, 41, 15),
            word(5, STUB_JUMP, 135, 0xff8),
            word(5, REFERENCES, 42, 16),
            word(5, STUB_TARGET, 0x7777, 0x88),
        ];
        let events: Vec<CallEvent> = words.iter().filter_map(|word| reader.read(word)).collect();
        let mut whole = CallReader::new(CallRecords::References);
        assert_eq!(whole.read_whole::<true>(&words), Some((events[0], 3)));
        assert_eq!(whole.read_whole::<true>(&words[3..]), Some((events[1], 2)));
        assert_eq!(whole.read_whole::<true>(&words[5..]), Some((events[2], 2)));
        assert_eq!(whole.read_whole::<true>(&words[7..]), Some((events[3], 3)));
        assert_eq!(whole.read_whole::<true>(&words[7..9]), None, "its target follows later");
        assert_eq!(whole.read_whole::<true>(&words[..2]), None, "its target follows later");
        assert_eq!(whole.read_whole::<false>(&words[2..]), None, "it has no beginning");
        let ticks = |instructions, loads, stores| Ticks { instructions, loads, stores };
        let call = CallEvent {
            transfer: Transfer::Call(0x5555),
            block: 7,
            stack: 0x1000,
            ticks: ticks(100, 30, 10),
        };
        let back =
            CallEvent { transfer: Transfer::Return, block: 9, stack: 0xff8, ticks: ticks(120, 40, 15) };
        let jump =
            CallEvent { transfer: Transfer::DirectJump, block: 4, stack: 0xff8, ticks: ticks(130, 41, 15) };
        let stub = Transfer::StubJump { stub: 0x88, target: 0x7777 };
        let stub = CallEvent { transfer: stub, block: 5, stack: 0xff8, ticks: ticks(135, 42, 16) };
        assert_eq!(events, [call, back, jump, stub]);
    }

    #[test]
    fn stores_go_on_beyond_their_low_half() {
        let mut reader = CallReader::new(CallRecords::References);
        let mut stores = Vec::new();
        for low in [u32::MAX, 4, 4] {
            reader.read(&word(1, RETURN, 0, 0));
            stores.extend(reader.read(&word(1, REFERENCES, 0, low)).map(|event| event.ticks.stores));
        }
        assert_eq!(stores, [u64::from(u32::MAX), (1 << 32) + 4, (1 << 32) + 4]);
    }

    #[test]
    fn instructions_alone_need_fewer_words() {
        let mut reader = CallReader::new(CallRecords::Instructions);
        assert_eq!(reader.read(&word(1, TARGET, 5, 0)), None, "it has no beginning");
        assert!(reader.read(&word(1, RETURN, 5, 0)).is_some());
        assert_eq!(
            reader.read(&word(1, DIRECT_CALL, 6, 0)).map(|event| event.transfer),
            Some(Transfer::DirectCall)
        );
        assert_eq!(reader.read(&word(1, JUMP, 5, 0)), None);
        assert_eq!(reader.read(&word(1, TARGET, 6, 0)).map(|event| event.transfer), Some(Transfer::Jump(6)));
    }
}
