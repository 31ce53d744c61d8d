//! Reads the program's code and cuts it into basic blocks.
//!
//! Code is read from the target's memory page by page and kept: program text does not change, and
//! where it may (generated code) the pages are dropped before each reading. A block ends as `event`
//! defines. Leaves out: what the instructions mean.

use crate::target::memory;
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Register};
use std::collections::{HashMap, HashSet};

const PAGE: u64 = 4096;
const READ_AHEAD_PAGES: u64 = 16;

/// Hardware number of a general register of any width.
pub(crate) fn number(r: Register) -> Option<u8> {
    if !r.is_gpr() {
        return None;
    }
    Some((r.full_register() as u32 - Register::RAX as u32) as u8)
}

/// A decoded instruction with its bytes.
#[derive(Clone, Copy)]
pub(crate) struct Decoded {
    pub(crate) i: Instruction,
    pub(crate) bytes: [u8; 16],
    /// Which memory it touches: its number among the translator's shapes.
    pub(crate) shape: u32,
}

impl Decoded {
    /// Its bytes and what follows them, for copies of constant length.
    #[inline(always)]
    pub(crate) fn sixteen(&self) -> [u8; 16] {
        self.bytes
    }

    pub(crate) fn raw(&self) -> &[u8] {
        &self.bytes[..self.i.len()]
    }
}

/// How a block ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// After the largest number of instructions, or before bytes that cannot be read or decoded.
    Limit,
    /// The next bytes are no valid instruction or not mapped: executing them faults.
    Unreadable,
    /// With a control transfer or system call, the last instruction.
    Transfer,
}

/// The pages of code read so far.
#[derive(Default)]
pub(crate) struct CodeReader {
    pub(crate) pid: i32,
    numbers: HashMap<u64, u32>,
    pages: Vec<Box<[u8; PAGE as usize]>>,
    /// Pages that were forgotten, as they were read last.
    former: HashMap<u64, u32>,
    /// Pages that held different bytes at different times.
    changed: HashSet<u64>,
    last: (u64, Option<u32>),
}

impl CodeReader {
    pub(crate) fn new(pid: i32) -> CodeReader {
        CodeReader { pid, last: (u64::MAX, None), ..CodeReader::default() }
    }

    /// A page as it was whenever it was read; `None` where it was not, or held something else
    /// before: nobody can tell which of its bytes was translated.
    pub(crate) fn known_page(&self, page: u64) -> Option<&[u8; PAGE as usize]> {
        if self.changed.contains(&page) {
            return None;
        }
        let number = *self.numbers.get(&page)?;
        Some(&*self.pages[number as usize])
    }

    /// Forgets the pages of `[start, end)`.
    pub(crate) fn forget(&mut self, start: u64, end: u64) {
        self.last = (u64::MAX, None);
        if end - start > 64 * PAGE {
            let former = &mut self.former;
            self.numbers.retain(|&p, &mut number| {
                let stays = p + PAGE <= start || p >= end;
                if !stays {
                    former.insert(p, number);
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

    /// Replaces a byte of a page that was read; whether it was.
    pub(crate) fn mend(&mut self, address: u64, byte: u8) -> bool {
        let Some(&number) = self.numbers.get(&(address & !(PAGE - 1))) else { return false };
        self.pages[number as usize][(address % PAGE) as usize] = byte;
        true
    }

    fn page(&mut self, page: u64) -> Option<&[u8; PAGE as usize]> {
        if self.last.0 != page {
            if !self.numbers.contains_key(&page) {
                self.read_ahead(page);
            }
            // What cannot be read now may be mapped later.
            self.last = (page, Some(*self.numbers.get(&page)?));
        }
        self.last.1.map(|number| &*self.pages[number as usize])
    }

    fn read_ahead(&mut self, page: u64) {
        let mut buffer = vec![0u8; (READ_AHEAD_PAGES * PAGE) as usize];
        let mut got = memory::read_target(self.pid, page, &mut buffer);
        if got == 0 {
            got = memory::read_target(self.pid, page, &mut buffer[..PAGE as usize]);
        }
        for (k, bytes) in buffer[..got].chunks_exact(PAGE as usize).enumerate() {
            let at = page + k as u64 * PAGE;
            if self.numbers.contains_key(&at) {
                continue;
            }
            let mut copy = Box::new([0u8; PAGE as usize]);
            copy.copy_from_slice(bytes);
            if self.former.remove(&at).is_some_and(|former| self.pages[former as usize] != copy) {
                self.changed.insert(at);
            }
            self.pages.push(copy);
            self.numbers.insert(at, self.pages.len() as u32 - 1);
        }
    }

    /// Up to 16 bytes at `address`; fewer where the next page cannot be read.
    pub(crate) fn fetch(&mut self, address: u64) -> ([u8; 16], usize) {
        let mut out = [0u8; 16];
        let at = (address % PAGE) as usize;
        let n = (PAGE as usize - at).min(16);
        match self.page(address & !(PAGE - 1)) {
            Some(page) => out[..n].copy_from_slice(&page[at..at + n]),
            None => return (out, 0),
        }
        if n == 16 {
            return (out, 16);
        }
        match self.page((address & !(PAGE - 1)) + PAGE) {
            Some(page) => out[n..].copy_from_slice(&page[..16 - n]),
            None => return (out, n),
        }
        (out, 16)
    }

    /// Decodes the basic block at `ip` into `into` (cleared first).
    pub(crate) fn block(&mut self, ip: u64, into: &mut Vec<Decoded>) -> End {
        into.clear();
        let mut at = ip;
        loop {
            if let Some(end) = self.within_page(&mut at, into) {
                return end;
            }
            let (bytes, n) = self.fetch(at);
            let i = Decoder::with_ip(64, &bytes[..n], at, DecoderOptions::NONE).decode();
            if n == 0 || i.is_invalid() {
                return if into.is_empty() { End::Unreadable } else { End::Limit };
            }
            into.push(Decoded { i, bytes, shape: 0 });
            at = i.next_ip();
            if let Some(end) = end_behind(into) {
                return end;
            }
        }
    }

    /// Decodes instructions that certainly lie in one page, by one decoder; `None` where the
    /// block may go on at `at`.
    fn within_page(&mut self, at: &mut u64, into: &mut Vec<Decoded>) -> Option<End> {
        let offset = (*at % PAGE) as usize;
        let rest = &self.page(*at & !(PAGE - 1))?[offset..];
        let mut decoder = Decoder::with_ip(64, rest, *at, DecoderOptions::NONE);
        while let Some(bytes) = rest.get(decoder.position()..decoder.position() + 16) {
            let bytes = bytes.try_into().expect("sixteen bytes");
            into.push(Decoded { i: Instruction::default(), bytes, shape: 0 });
            let decoded = into.last_mut().expect("just pushed");
            decoder.decode_out(&mut decoded.i);
            if decoded.i.is_invalid() {
                into.pop();
                return Some(if into.is_empty() { End::Unreadable } else { End::Limit });
            }
            *at = decoded.i.next_ip();
            if let Some(end) = end_behind(into) {
                return Some(end);
            }
        }
        None
    }
}

/// How the block ends with the last instruction of `block`, if it does.
fn end_behind(block: &[Decoded]) -> Option<End> {
    if block.last().is_some_and(|last| ends_block(&last.i)) {
        return Some(End::Transfer);
    }
    (block.len() == event::BLOCK_INSTRUCTIONS_MAX).then_some(End::Limit)
}

/// Whether control may go elsewhere after `i` (faults aside).
fn ends_block(i: &Instruction) -> bool {
    match i.flow_control() {
        FlowControl::Next | FlowControl::Exception => i.code() == Code::Syscall,
        FlowControl::Interrupt => true,
        FlowControl::XbeginXabortXend => i.code() == Code::Xbegin_rel32 || i.code() == Code::Xbegin_rel16,
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
        // Read again as it was, by whatever range it was forgotten.
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
