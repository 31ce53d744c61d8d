//! Addresses at which every thread stops for the host.
//!
//! A mark is an address to which no exit is linked and which the lookup table does not hold. So
//! control reaches it only by way of the host, and the fragment behind it is an ordinary one.
//! Entries of functions are known when their module is first decoded; requests and marks of regions
//! are found where they are decoded, which ends the block before them.
//!
//! ```text
//!   … block │ request          the block ends before the request, by an exit that waits
//!           └─▶ host ─▶ fragment of the request, which has no effect
//! ```
//!
//! The five instructions of a request count as one, as Valgrind counts them, and have no code.
//! **Leaves out** entries that a signal handler or a new thread begins at.

use crate::code::decode::{Decoded, End};
use crate::mark::SharedMarker;
use crate::target::trust::{Modules, Trust};
use iced_x86::{Code, Instruction, Register};
use std::collections::{HashMap, HashSet};

/// `rol rdi` by 3, 13, 61 and 51 bits, which together change nothing.
const ROTATIONS: [u64; 4] = [3, 13, 61, 51];
/// The instructions of a request: the rotations and the exchange that says what is asked.
const REQUEST_INSTRUCTIONS: usize = 5;
/// The displacement of the `nop` that opens a region.
const OPENS: u32 = u32::from_le_bytes(*b"LFTB");
/// The displacement of the `nop` that closes a region.
const CLOSES: u32 = u32::from_le_bytes(*b"LFTE");
/// Longer names of regions are cut.
const NAME_BYTES_MAX: u64 = 255;

/// What is watched at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watched {
    /// A request in the words to which `rax` points.
    Request,
    /// A question for the address of the function that a wrapper stands for.
    Original,
    /// A call of the function in `rax`; execution returns to this address.
    Call(u64),
    /// A mark inside of Valgrind, which means nothing in a program.
    Internal,
    /// A region opens, whose name has this address and length.
    Opens(u64, u64),
    /// A region closes, whose name has this address and length.
    Closes(u64, u64),
    /// A function begins.
    Entry,
    /// An address to which a watched function returns.
    Return,
}

/// The watched addresses of an image.
#[derive(Clone, Default)]
pub(crate) struct Watch {
    marker: Option<SharedMarker>,
    addresses: HashMap<u64, Watched>,
    /// Modules that the marker was asked about.
    asked: HashSet<u32>,
}

impl Watch {
    /// Watches what `marker` names, and requests and regions.
    pub(crate) fn new(marker: Option<SharedMarker>) -> Watch {
        Watch { marker, ..Watch::default() }
    }

    /// What is watched at `address`.
    pub(crate) fn at(&self, address: u64) -> Option<Watched> {
        self.addresses.get(&address).copied()
    }

    /// Whether `address` is watched.
    pub(crate) fn has(&self, address: u64) -> bool {
        !self.addresses.is_empty() && self.addresses.contains_key(&address)
    }

    /// Watches an address to which a function returns; returns whether it is new. What is watched
    /// there already stays.
    pub(crate) fn returns_to(&mut self, address: u64) -> bool {
        let new = !self.addresses.contains_key(&address);
        self.addresses.entry(address).or_insert(Watched::Return);
        new
    }

    /// Asks the marker about a module that is met for the first time.
    pub(crate) fn meets(&mut self, (trust, number): (Trust, u32), modules: &impl Modules) {
        let Some(marker) = &self.marker else { return };
        if trust != Trust::Text || !self.asked.insert(number) {
            return;
        }
        let Some(module) = modules.module(number) else { return };
        let entries = marker.borrow_mut().entries(module);
        let inside = entries.into_iter().filter(|entry| (module.start..module.end).contains(entry));
        self.addresses.extend(inside.map(|entry| (entry, Watched::Entry)));
    }

    /// Ends the decoded block before the first mark behind its head, and notes its marks.
    pub(crate) fn cut(&mut self, block: &mut Vec<Decoded>, end: End) -> End {
        if self.marker.is_none() {
            return end;
        }
        let mut index = 0;
        while index < block.len() {
            let at = block[index].instruction.ip();
            let rest = &block[index..];
            if let Some(mark) = mark(rest) {
                self.addresses.insert(at, mark);
            }
            let is_watched = matches!(self.at(at), Some(watched) if watched != Watched::Return);
            // The limit of a block's length may divide a mark, which the next block then begins with.
            if index > 0 && (is_watched || end == End::Limit && is_divided(rest)) {
                block.truncate(index);
                return End::Limit;
            }
            // A request at the head is one instruction; what follows it may hold another mark.
            if index == 0 && is_request(self.at(at)) {
                merge(block);
            }
            index += 1;
        }
        end
    }
}

fn is_request(watched: Option<Watched>) -> bool {
    use Watched::{Call, Internal, Original, Request};
    matches!(watched, Some(Request | Original | Call(_) | Internal))
}

/// Whether `rest`, the end of a block, may be the beginning of a mark.
fn is_divided(rest: &[Decoded]) -> bool {
    let first = &rest[0].instruction;
    match first.code() {
        Code::Rol_rm64_imm8 => rest.len() < REQUEST_INSTRUCTIONS && first.op0_register() == Register::RDI,
        Code::Nop_rm32 => rest.len() == 1,
        _ => false,
    }
}

/// The mark with which `block` begins, if any.
fn mark(block: &[Decoded]) -> Option<Watched> {
    let first = &block.first()?.instruction;
    match first.code() {
        Code::Rol_rm64_imm8 => request(block),
        Code::Nop_rm32 => region(first, &block.get(1)?.instruction),
        _ => None,
    }
}

fn request(block: &[Decoded]) -> Option<Watched> {
    let (rotations, exchange) = block.get(..REQUEST_INSTRUCTIONS)?.split_at(ROTATIONS.len());
    let rotates = |(decoded, bits): (&Decoded, u64)| {
        let instruction = &decoded.instruction;
        instruction.code() == Code::Rol_rm64_imm8
            && instruction.op0_register() == Register::RDI
            && instruction.immediate(1) == bits
    };
    if !rotations.iter().zip(ROTATIONS).all(rotates) {
        return None;
    }
    let exchange = &exchange[0].instruction;
    let register = exchange.op0_register();
    if exchange.code() != Code::Xchg_rm64_r64 || exchange.op1_register() != register {
        return None;
    }
    match register {
        Register::RBX => Some(Watched::Request),
        Register::RCX => Some(Watched::Original),
        Register::RDX => Some(Watched::Call(exchange.next_ip())),
        Register::RDI => Some(Watched::Internal),
        _ => None,
    }
}

/// The region that `nop` and `jump` mark: the name stands between the jump and its target.
fn region(nop: &Instruction, jump: &Instruction) -> Option<Watched> {
    if nop.memory_base() != Register::RAX || nop.memory_displ_size() < 4 || !jump.is_jmp_short_or_near() {
        return None;
    }
    let name = jump.next_ip();
    let length = jump.near_branch_target().checked_sub(name)?.min(NAME_BYTES_MAX);
    match nop.memory_displacement32() {
        OPENS => Some(Watched::Opens(name, length)),
        CLOSES => Some(Watched::Closes(name, length)),
        _ => None,
    }
}

/// Makes the request at the head of `block` one instruction, which is longer than any that a
/// processor has.
fn merge(block: &mut Vec<Decoded>) {
    let start = block[0].instruction.ip();
    let mut whole = block[REQUEST_INSTRUCTIONS - 1];
    let length = whole.instruction.next_ip() - start;
    whole.instruction.set_len(length as usize);
    block.splice(..REQUEST_INSTRUCTIONS, [whole]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mark::{Answer, Birth, Deed, Mark, MarkedThread, Marker};
    use crate::profile::Module;
    use iced_x86::{Decoder, DecoderOptions};
    use std::cell::RefCell;
    use std::rc::Rc;

    struct Nothing;

    impl Marker for Nothing {
        fn entries(&mut self, _module: &Module) -> Vec<u64> {
            Vec::new()
        }
        fn starts(&mut self, _thread: &MarkedThread, _birth: Birth) -> Vec<Deed> {
            Vec::new()
        }
        fn reached(&mut self, _thread: &MarkedThread, _mark: &Mark) -> Answer {
            Answer::default()
        }
    }

    const REQUEST: [u8; 19] = [
        0x48, 0xc1, 0xc7, 3, 0x48, 0xc1, 0xc7, 13, 0x48, 0xc1, 0xc7, 61, 0x48, 0xc1, 0xc7, 51, 0x48, 0x87,
        0xdb,
    ];

    fn decoded(bytes: &[u8]) -> Vec<Decoded> {
        let mut decoder = Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE);
        let mut block = Vec::new();
        while decoder.can_decode() {
            let instruction = decoder.decode();
            block.push(Decoded { instruction, bytes: [0; 16], shape: 0 });
        }
        block
    }

    fn cut(watch: &mut Watch, bytes: &[u8]) -> (Vec<(u64, usize)>, End) {
        let mut block = decoded(bytes);
        let end = watch.cut(&mut block, End::Transfer);
        (block.iter().map(|one| (one.instruction.ip(), one.instruction.len())).collect(), end)
    }

    #[test]
    fn a_block_ends_before_a_request_and_a_request_is_one_instruction() {
        let mut watch = Watch::new(Some(Rc::new(RefCell::new(Nothing))));
        let behind = [&[0x90], &REQUEST[..], &[0x90], &REQUEST[..]].concat();
        assert_eq!(cut(&mut watch, &behind), (vec![(0x1000, 1)], End::Limit));
        assert_eq!(watch.at(0x1001), Some(Watched::Request));
        assert!(!watch.has(0x1015), "it is decoded when it is reached");
        let at_head = &behind[1..];
        assert_eq!(cut(&mut watch, at_head), (vec![(0x1000, 19), (0x1013, 1)], End::Limit));
        assert_eq!(watch.at(0x1014), Some(Watched::Request));
    }

    #[test]
    fn what_is_no_request_stays_as_it_is() {
        let mut watch = Watch::new(Some(Rc::new(RefCell::new(Nothing))));
        for (at, byte) in [(3, 4), (7, 12), (15, 50), (18, 0xd3), (2, 0xc6)] {
            let mut other = REQUEST;
            other[at] = byte;
            assert_eq!(cut(&mut watch, &other).0.len(), 5);
        }
        assert!(!watch.has(0x1000));
        assert_eq!(cut(&mut Watch::new(None), &REQUEST).0.len(), 5, "nobody asked for marks");
    }

    #[test]
    fn the_four_exchanges_are_told_apart() {
        let forms = [(0xdb, Watched::Request), (0xc9, Watched::Original), (0xff, Watched::Internal)];
        for (byte, watched) in forms.into_iter().chain([(0xd2, Watched::Call(0x1013))]) {
            let mut watch = Watch::new(Some(Rc::new(RefCell::new(Nothing))));
            let mut form = REQUEST;
            form[18] = byte;
            cut(&mut watch, &form);
            assert_eq!(watch.at(0x1000), Some(watched));
        }
    }

    #[test]
    fn a_region_has_its_name_behind_the_jump() {
        let mut watch = Watch::new(Some(Rc::new(RefCell::new(Nothing))));
        let mark = |kind: &[u8]| [&[0x90, 0x0f, 0x1f, 0x80], kind, &[0xeb, 7]].concat();
        assert_eq!(cut(&mut watch, &mark(b"LFTB")), (vec![(0x1000, 1)], End::Limit));
        assert_eq!(watch.at(0x1001), Some(Watched::Opens(0x100a, 7)));
        let mut watch = Watch::new(Some(Rc::new(RefCell::new(Nothing))));
        cut(&mut watch, &mark(b"LFTE"));
        assert_eq!(watch.at(0x1001), Some(Watched::Closes(0x100a, 7)));
        cut(&mut watch, &mark(b"LFTX"));
        assert_eq!(watch.addresses.len(), 1);
    }
}
