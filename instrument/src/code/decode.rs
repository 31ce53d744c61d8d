//! Reads the program's code and splits it into basic blocks.
//!
//! The host reads code from the target's memory page by page, and caches the pages: program text
//! does not change, and pages of code that may change (generated code) are dropped before each
//! reading. A block ends as crate `event` defines. **Leaves out** the meaning of instructions.

use crate::address_map::AddressMap;
use crate::target::memory;
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Register};
use std::collections::HashSet;

const PAGE: u64 = 4096;
/// Pages that are read together. Compilers jump far, and more at a time took no less time.
const READ_AHEAD_PAGES: usize = 4;

/// Hardware number of a general register of any width.
pub(crate) fn number(register: Register) -> Option<u8> {
    if !register.is_gpr() {
        return None;
    }
    Some((register.full_register() as u32 - Register::RAX as u32) as u8)
}

/// A decoded instruction with its bytes.
#[derive(Clone, Copy)]
pub(crate) struct Decoded {
    pub(crate) instruction: Instruction,
    pub(crate) bytes: [u8; 16],
    /// Number of the shape of its memory references (`plan::references`).
    pub(crate) shape: u32,
}

impl Decoded {
    /// The instruction's bytes and those behind it. A copy of constant length is one vector move.
    #[inline(always)]
    pub(crate) fn sixteen(&self) -> [u8; 16] {
        self.bytes
    }

    /// The instruction's bytes.
    pub(crate) fn raw(&self) -> &[u8] {
        &self.bytes[..self.instruction.len().min(self.bytes.len())]
    }

    /// Whether these are the instructions of a request, which count as one and have no code.
    pub(crate) fn is_mark(&self) -> bool {
        self.instruction.len() >= self.bytes.len()
    }
}

/// Why a block ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The block has the largest number of instructions, or the next bytes cannot be read or
    /// decoded.
    Limit,
    /// The block has no instructions: its first bytes are not mapped or not valid, so executing
    /// them faults.
    Unreadable,
    /// The block's last instruction is a control transfer or a system call.
    Transfer,
}

/// A cache of the pages of code that were read.
#[derive(Default)]
pub(crate) struct CodeReader {
    pub(crate) pid: i32,
    /// For the address of each cached page, its index among all pages of `parts`.
    numbers: AddressMap<u32>,
    /// The bytes that were read together, [`READ_AHEAD_PAGES`] each. They stay where they were
    /// read; not all of their pages have a number.
    parts: Vec<Vec<u8>>,
    /// For the address of each forgotten page, the index of the bytes that were read last.
    former: AddressMap<u32>,
    /// Addresses of pages that held different bytes at different readings.
    changed: HashSet<u64>,
    /// Address and index of the page that was used last, which is nearly always the next one too.
    last: (u64, Option<u32>),
}

impl CodeReader {
    pub(crate) fn new(pid: i32) -> CodeReader {
        CodeReader { pid, last: (u64::MAX, None), ..CodeReader::default() }
    }

    /// The bytes of a page, if all readings agree. `None` if the page was never read, or has
    /// changed between two readings: then it is unknown which bytes were translated.
    pub(crate) fn known_page(&self, page: u64) -> Option<&[u8; PAGE as usize]> {
        if self.changed.contains(&page) {
            return None;
        }
        let number = *self.numbers.get(&page)?;
        Some(self.bytes(number))
    }

    /// The bytes of the page with this index.
    fn bytes(&self, number: u32) -> &[u8; PAGE as usize] {
        let (part, page) = (number as usize / READ_AHEAD_PAGES, number as usize % READ_AHEAD_PAGES);
        self.parts[part].as_chunks().0.get(page).expect("a page that was read")
    }

    /// Forgets the pages of `[start, end)`, so that they are read again.
    pub(crate) fn forget(&mut self, start: u64, end: u64) {
        self.last = (u64::MAX, None);
        // A large range is cheaper to compare with every known page than to walk page by page.
        if end - start > 64 * PAGE {
            let former = &mut self.former;
            self.numbers.retain(|&at, &mut number| {
                let stays = at + PAGE <= start || at >= end;
                if !stays {
                    former.insert(at, number);
                }
                stays
            });
            return;
        }
        let mut page = start & !(PAGE - 1);
        while page < end {
            if let Some(number) = self.numbers.remove(&page) {
                self.former.insert(page, number);
            }
            page += PAGE;
        }
    }

    /// Replaces the byte at `address` in the cache; returns whether its page was cached.
    pub(crate) fn mend(&mut self, address: u64, byte: u8) -> bool {
        let Some(&number) = self.numbers.get(&(address & !(PAGE - 1))) else { return false };
        let (part, page) = (number as usize / READ_AHEAD_PAGES, number as usize % READ_AHEAD_PAGES);
        self.parts[part][page * PAGE as usize + (address % PAGE) as usize] = byte;
        true
    }

    /// The bytes of the page at address `page`, read if necessary; `None` if it cannot be read.
    fn page(&mut self, page: u64) -> Option<&[u8; PAGE as usize]> {
        if self.last.0 != page {
            if !self.numbers.contains_key(&page) {
                self.read_ahead(page);
            }
            // A failure is not cached, because the page may be mapped later.
            self.last = (page, Some(*self.numbers.get(&page)?));
        }
        self.last.1.map(|number| self.bytes(number))
    }

    /// Reads `page` and the pages behind it into the cache: up to [`READ_AHEAD_PAGES`] before the
    /// next one that is known, or that page alone if others fail.
    fn read_ahead(&mut self, page: u64) {
        let is_new = |at: &u64| !self.numbers.contains_key(at);
        let pages = (page..).step_by(PAGE as usize).take(READ_AHEAD_PAGES).take_while(is_new).count();
        let mut read = vec![0u8; pages * PAGE as usize];
        let mut got = memory::read_target(self.pid, page, &mut read);
        if got == 0 {
            got = memory::read_target(self.pid, page, &mut read[..PAGE as usize]);
        }
        if got < PAGE as usize {
            return;
        }
        let first = (self.parts.len() * READ_AHEAD_PAGES) as u32;
        self.parts.push(read);
        for (number, at) in (first..).zip((page..).step_by(PAGE as usize)).take(got / PAGE as usize) {
            if self.former.remove(&at).is_some_and(|former| self.bytes(former) != self.bytes(number)) {
                self.changed.insert(at);
            }
            self.numbers.insert(at, number);
        }
    }

    /// The 16 bytes at `address`, and the number of them that could be read, which is lower at the
    /// end of a mapping.
    pub(crate) fn fetch(&mut self, address: u64) -> ([u8; 16], usize) {
        let mut out = [0u8; 16];
        let at = (address % PAGE) as usize;
        let count = (PAGE as usize - at).min(16);
        match self.page(address & !(PAGE - 1)) {
            Some(page) => out[..count].copy_from_slice(&page[at..at + count]),
            None => return (out, 0),
        }
        if count == 16 {
            return (out, 16);
        }
        match self.page((address & !(PAGE - 1)) + PAGE) {
            Some(page) => out[count..].copy_from_slice(&page[..16 - count]),
            None => return (out, count),
        }
        (out, 16)
    }

    /// Decodes the basic block at `ip` into `into`, which is cleared first.
    pub(crate) fn block(&mut self, ip: u64, into: &mut Vec<Decoded>) -> End {
        into.clear();
        let mut at = ip;
        loop {
            if let Some(end) = self.within_page(&mut at, into) {
                return end;
            }
            let (bytes, count) = self.fetch(at);
            let instruction = Decoder::with_ip(64, &bytes[..count], at, DecoderOptions::NONE).decode();
            if count == 0 || instruction.is_invalid() {
                return if into.is_empty() { End::Unreadable } else { End::Limit };
            }
            into.push(Decoded { instruction, bytes, shape: 0 });
            at = instruction.next_ip();
            if let Some(end) = end_behind(into) {
                return end;
            }
        }
    }

    /// Decodes instructions whose 16 bytes lie in one page, with a single decoder. Returns `None`
    /// if the block continues at `at`, near the end of the page.
    fn within_page(&mut self, at: &mut u64, into: &mut Vec<Decoded>) -> Option<End> {
        let offset = (*at % PAGE) as usize;
        let rest = &self.page(*at & !(PAGE - 1))?[offset..];
        let mut decoder = Decoder::with_ip(64, rest, *at, DecoderOptions::NONE);
        while let Some(bytes) = rest.get(decoder.position()..decoder.position() + 16) {
            let bytes = bytes.try_into().expect("sixteen bytes");
            into.push(Decoded { instruction: Instruction::default(), bytes, shape: 0 });
            let decoded = into.last_mut().expect("just pushed");
            decoder.decode_out(&mut decoded.instruction);
            if decoded.instruction.is_invalid() {
                into.pop();
                return Some(if into.is_empty() { End::Unreadable } else { End::Limit });
            }
            *at = decoded.instruction.next_ip();
            if let Some(end) = end_behind(into) {
                return Some(end);
            }
        }
        None
    }
}

/// How the block ends with the last instruction of `block`, if it does.
fn end_behind(block: &[Decoded]) -> Option<End> {
    if block.last().is_some_and(|last| ends_block(&last.instruction)) {
        return Some(End::Transfer);
    }
    (block.len() == event::BLOCK_INSTRUCTIONS_MAX).then_some(End::Limit)
}

/// Whether control may go elsewhere after `instruction`, apart from faults.
fn ends_block(instruction: &Instruction) -> bool {
    match instruction.flow_control() {
        FlowControl::Next | FlowControl::Exception => instruction.code() == Code::Syscall,
        FlowControl::Interrupt => true,
        FlowControl::XbeginXabortXend => {
            instruction.code() == Code::Xbegin_rel32 || instruction.code() == Code::Xbegin_rel16
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_changed_between_two_readings_is_not_known() {
        let mut room = vec![0u8; 4 * PAGE as usize];
        let at = (room.as_ptr() as u64).next_multiple_of(PAGE);
        let first = (at - room.as_ptr() as u64) as usize;
        room[first] = 0x90;
        let mut reader = CodeReader::new(crate::target::ptrace::own_pid());
        assert_eq!(reader.fetch(at).0[0], 0x90);
        assert_eq!(reader.known_page(at).unwrap()[0], 0x90);
        // The page is read again with the same bytes, after a short and a long range was forgotten.
        for end in [at + 1, at + 100 * PAGE] {
            reader.forget(at, end);
            assert!(reader.known_page(at).is_none());
            reader.fetch(at);
            assert!(reader.known_page(at).is_some());
        }
        // The program changes it and changes it back.
        for byte in [0xcc, 0x90] {
            room[first] = byte;
            reader.forget(at, at + PAGE);
            assert_eq!(reader.fetch(at).0[0], byte);
            assert!(reader.known_page(at).is_none());
        }
        assert!(reader.known_page(at + PAGE).is_some());
    }
}
