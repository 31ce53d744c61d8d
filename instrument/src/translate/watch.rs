//! Addresses at which every thread stops for the host.
//!
//! No exit is linked to such an address, and the lookup table does not hold it. So control reaches
//! it only by way of the host, and the fragment behind it is an ordinary one. Entries of functions
//! are known when their module is first decoded. Requests and marks of regions are found where they
//! are decoded: they end their block, and the address behind them is watched.
//!
//! ```text
//!   … setup, request │ …        the block ends with the request, by an exit that waits
//!                    └─▶ host ─▶ fragment behind the request
//! ```
//!
//! The five instructions of a request count as one, as Valgrind counts them, and have no code.
//! **Leaves out** entries that a signal handler or a new thread begins at.

use crate::code::decode::{CodeReader, Decoded, End};
use crate::mark::SharedMarker;
use crate::profile;
use crate::target::trust::{Modules, Trust};
use iced_x86::{Code, Instruction, Register};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// `rol rdi` by 3, 13, 61 and 51 bits, which together change nothing.
const ROTATIONS: [u64; 4] = [3, 13, 61, 51];
/// The instructions of a request: the rotations and the exchange that says what is asked.
const REQUEST_INSTRUCTIONS: usize = 5;
/// No instruction of a processor is longer.
const LONGEST_INSTRUCTION_BYTES: usize = 15;
/// The displacement of the `nop` that opens a region.
const OPENS: u32 = u32::from_le_bytes(*b"LFTB");
/// The displacement of the `nop` that closes a region.
const CLOSES: u32 = u32::from_le_bytes(*b"LFTE");
/// Longer names of regions are cut.
const NAME_BYTES_MAX: u64 = 255;

/// Why an address is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watched {
    /// A block that ends with a mark leads there.
    Behind,
    /// A function begins.
    Entry,
    /// A watched function returns there.
    Return,
}

/// A mark that ends a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// A request in the words to which `rax` points.
    Request,
    /// A question for the address of the function that a wrapper stands for.
    Original,
    /// A call of the function in `rax`.
    Call,
    /// A mark inside of Valgrind, which means nothing in a program.
    Internal,
    /// A region opens, whose name has this address and length.
    Opens(u64, u64),
    /// A region closes, whose name has this address and length.
    Closes(u64, u64),
}

/// The watched addresses of an image.
#[derive(Clone, Default)]
pub(crate) struct Watch {
    marker: Option<SharedMarker>,
    addresses: HashMap<u64, Watched>,
    /// By address behind a block's last instruction: the mark that the block ends with.
    endings: HashMap<u64, Ending>,
    /// Modules that the marker was asked about.
    asked: HashSet<u32>,
    /// The most instructions of a block, if there is a marker.
    length_max: usize,
}

impl Watch {
    /// Watches what `marker` names, and requests and regions.
    pub(crate) fn new(marker: Option<SharedMarker>) -> Watch {
        let length_max = marker.as_ref().map_or(0, |marker| marker.borrow().block_instructions_max());
        Watch { marker, length_max, ..Watch::default() }
    }

    /// The setting of the marker, if there is one.
    pub(crate) fn setting(&self) -> Option<String> {
        self.marker.as_ref().map(|marker| marker.borrow().setting())
    }

    /// Whether the run has a marker.
    pub(crate) fn has_marker(&self) -> bool {
        self.marker.is_some()
    }

    /// Notes the mark that a restored block ends with, if it does; `last` are the block's
    /// instructions.
    pub(crate) fn notes_restored(
        &mut self,
        last: &[profile::Instruction],
        block_ip: u64,
        reader: &mut CodeReader,
    ) {
        let Some(newest) = last.last().filter(|_| self.marker.is_some()) else { return };
        // The last instruction of a request has the length of all five.
        let is_request = usize::from(newest.len) > LONGEST_INSTRUCTION_BYTES;
        let before = last.len().checked_sub(2).map(|index| &last[index]);
        let is_nop = before.is_some_and(|before| before.code == Code::Nop_rm32 as u16);
        if !is_request && !is_nop {
            return;
        }
        let first = if is_request { newest } else { before.unwrap_or(newest) };
        let mut block = Vec::new();
        reader.block(block_ip + u64::from(first.offset), &mut block);
        self.cut(&mut block, End::Transfer);
    }

    /// The mark that a block ends with; `end` is the address behind its last instruction.
    pub(crate) fn ending(&self, end: u64) -> Option<Ending> {
        self.endings.get(&end).copied()
    }

    /// Why `address` is watched.
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

    /// Whether the marker says that a direct jump at `from` to `target` leads into another function
    /// of a module.
    pub(crate) fn leaves_function(&self, module: Option<&profile::Module>, from: u64, target: u64) -> bool {
        let (Some(marker), Some(module)) = (&self.marker, module) else { return false };
        (module.start..module.end).contains(&target)
            && marker.borrow_mut().leaves_function(module, from, target)
    }

    /// The addresses of the function at `address` of a module, as far as the marker knows them and
    /// they lie in the module.
    pub(crate) fn function_around(
        &self,
        module: Option<&profile::Module>,
        address: u64,
    ) -> Option<Range<u64>> {
        let (marker, module) = (self.marker.as_ref()?, module?);
        let function = marker.borrow_mut().function_around(module, address)?;
        let function = function.start.max(module.start)..function.end.min(module.end);
        // Generated code compares with a constant of 31 bits.
        let fits = function.contains(&address) && function.end - function.start <= i32::MAX as u64;
        fits.then_some(function)
    }

    /// Whether the marker says that a stub of the linkage table lies at `address` of a module.
    pub(crate) fn is_stub(&self, module: Option<&profile::Module>, address: u64) -> bool {
        let (Some(marker), Some(module)) = (&self.marker, module) else { return false };
        marker.borrow_mut().is_stub(module, address)
    }

    /// Ends the decoded block with its first mark, or before an entry, and notes them.
    pub(crate) fn cut(&mut self, block: &mut Vec<Decoded>, mut end: End) -> End {
        if self.marker.is_none() {
            return end;
        }
        if block.len() > self.length_max {
            block.truncate(self.length_max);
            end = End::Limit;
        }
        for index in 0..block.len() {
            let rest = &block[index..];
            let is_entry = self.at(rest[0].instruction.ip()) == Some(Watched::Entry);
            // The limit of a block's length may divide a mark, with which the next block begins.
            if index > 0 && (is_entry || end == End::Limit && is_divided(rest)) {
                block.truncate(index);
                return End::Limit;
            }
            if let Some(mark) = request(rest) {
                merge(block, index);
                let behind = block[index].instruction.next_ip();
                self.endings.insert(behind, mark);
                self.addresses.entry(behind).or_insert(Watched::Behind);
                return End::Limit;
            }
        }
        self.note_region(block);
        end
    }

    /// Notes the mark of a region that the block ends with, if it does.
    fn note_region(&mut self, block: &[Decoded]) {
        let [.., nop, jump] = block else { return };
        if let Some(mark) = region(&nop.instruction, &jump.instruction) {
            self.endings.insert(jump.instruction.next_ip(), mark);
            let target = jump.instruction.near_branch_target();
            self.addresses.entry(target).or_insert(Watched::Behind);
        }
    }
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

/// The request with which `block` begins, if any.
fn request(block: &[Decoded]) -> Option<Ending> {
    if block.first()?.instruction.code() != Code::Rol_rm64_imm8 {
        return None;
    }
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
        Register::RBX => Some(Ending::Request),
        Register::RCX => Some(Ending::Original),
        Register::RDX => Some(Ending::Call),
        Register::RDI => Some(Ending::Internal),
        _ => None,
    }
}

/// The region that `nop` and `jump` mark: the name stands between the jump and its target.
fn region(nop: &Instruction, jump: &Instruction) -> Option<Ending> {
    if nop.code() != Code::Nop_rm32
        || nop.memory_base() != Register::RAX
        || nop.memory_displ_size() < 4
        || !jump.is_jmp_short_or_near()
    {
        return None;
    }
    let name = jump.next_ip();
    let length = jump.near_branch_target().checked_sub(name)?.min(NAME_BYTES_MAX);
    match nop.memory_displacement32() {
        OPENS => Some(Ending::Opens(name, length)),
        CLOSES => Some(Ending::Closes(name, length)),
        _ => None,
    }
}

/// Ends `block` with the request at `index`, as one instruction, which is longer than any that a
/// processor has.
fn merge(block: &mut Vec<Decoded>, index: usize) {
    let start = block[index].instruction.ip();
    let mut whole = block[index + REQUEST_INSTRUCTIONS - 1];
    let length = whole.instruction.next_ip() - start;
    whole.instruction.set_len(length as usize);
    block.truncate(index);
    block.push(whole);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mark::{Answer, Birth, Deed, Mark, MarkedThread, Marker, ProgramMemory};
    use crate::profile::Module;
    use iced_x86::{Decoder, DecoderOptions};
    use std::cell::RefCell;
    use std::rc::Rc;

    struct Nothing;

    impl Marker for Nothing {
        fn setting(&self) -> String {
            String::new()
        }
        fn entries(&mut self, _module: &Module) -> Vec<u64> {
            Vec::new()
        }
        fn starts(&mut self, _thread: &MarkedThread, _birth: Birth) -> Vec<Deed> {
            Vec::new()
        }
        fn reached(&mut self, _: &MarkedThread, _: &Mark, _: &dyn ProgramMemory) -> Answer {
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
    fn a_block_ends_with_a_request_which_is_one_instruction() {
        let mut watch = Watch::new(Some(Rc::new(RefCell::new(Nothing))));
        let two = [&[0x90], &REQUEST[..], &[0x90], &REQUEST[..]].concat();
        assert_eq!(cut(&mut watch, &two), (vec![(0x1000, 1), (0x1001, 19)], End::Limit));
        assert_eq!((watch.at(0x1014), watch.ending(0x1014)), (Some(Watched::Behind), Some(Ending::Request)));
        assert!(!watch.has(0x1001) && !watch.has(0x1028), "the second is decoded when it is reached");
        assert_eq!(cut(&mut watch, &REQUEST), (vec![(0x1000, 19)], End::Limit));
    }

    #[test]
    fn a_divided_request_begins_the_next_block() {
        let mut watch = Watch::new(Some(Rc::new(RefCell::new(Nothing))));
        let mut block = decoded(&[&[0x90], &REQUEST[..12]].concat());
        assert_eq!((watch.cut(&mut block, End::Limit), block.len()), (End::Limit, 1));
    }

    #[test]
    fn what_is_no_request_stays_as_it_is() {
        let mut watch = Watch::new(Some(Rc::new(RefCell::new(Nothing))));
        for (at, byte) in [(3, 4), (7, 12), (15, 50), (18, 0xd3), (2, 0xc6)] {
            let mut other = REQUEST;
            other[at] = byte;
            assert_eq!(cut(&mut watch, &other).0.len(), 5);
        }
        assert!(watch.addresses.is_empty());
        assert_eq!(cut(&mut Watch::new(None), &REQUEST).0.len(), 5, "nobody asked for marks");
    }

    #[test]
    fn the_four_exchanges_are_told_apart() {
        let forms = [
            (0xdb, Ending::Request),
            (0xc9, Ending::Original),
            (0xd2, Ending::Call),
            (0xff, Ending::Internal),
        ];
        for (byte, ending) in forms {
            let mut watch = Watch::new(Some(Rc::new(RefCell::new(Nothing))));
            let mut form = REQUEST;
            form[18] = byte;
            cut(&mut watch, &form);
            assert_eq!(watch.ending(0x1013), Some(ending));
        }
    }

    #[test]
    fn a_region_has_its_name_behind_the_jump() {
        let mut watch = Watch::new(Some(Rc::new(RefCell::new(Nothing))));
        let mark = |kind: &[u8]| [&[0x90, 0x0f, 0x1f, 0x80], kind, &[0xeb, 7]].concat();
        assert_eq!(cut(&mut watch, &mark(b"LFTB")).0.len(), 3);
        assert_eq!(watch.ending(0x100a), Some(Ending::Opens(0x100a, 7)));
        assert_eq!(watch.at(0x1011), Some(Watched::Behind));
        cut(&mut watch, &mark(b"LFTE"));
        assert_eq!(watch.ending(0x100a), Some(Ending::Closes(0x100a, 7)));
        let mut watch = Watch::new(Some(Rc::new(RefCell::new(Nothing))));
        cut(&mut watch, &mark(b"LFTX"));
        assert!(watch.addresses.is_empty());
    }
}
