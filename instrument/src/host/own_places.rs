//! Calls of the program that change mappings at the addresses of the engine's own memory.
//!
//! **What.** Natively nothing is mapped there. So a call that unmaps, protects or moves such a
//! range is answered as if nothing were mapped, and executed for the parts of the range that are
//! not the engine's. A reservation without access (`PROT_NONE`) is made around the engine's memory.
//! **Why no more.** Generated code names its tables by address and cannot move while threads run
//! it, so a program that maps memory of its own over it (`MAP_FIXED`) is ended with an error.
//! **Leaves out** `MAP_FIXED_NOREPLACE`, to which the kernel answers that something is there
//! (EEXIST), `madvise`, whose advice changes nothing of shared memory, and `shmat` with
//! `SHM_REMAP`.

use super::state::Host;
use crate::image::number;
use crate::target::inject::Injector;
use crate::target::ptrace::Registers;
use crate::target::signal_mask;
use std::ops::Range;

const PAGE: u64 = 4096;
const ENOMEM: i64 = -(libc::ENOMEM as i64);

impl Host<'_> {
    /// Answers a call that changes mappings of the engine's memory; returns whether it did. A
    /// program whose call cannot be answered is refused.
    pub(crate) fn keeps_own(&mut self, tid: i32, registers: &Registers) -> bool {
        let Some(first) = self.own_within(tid, registers.rdi, registers.rsi) else {
            return self.keeps_own_from_moves(tid, registers);
        };
        let range = registers.rdi..end_of(registers.rdi, registers.rsi);
        let result = match registers.rax & 0xffff_ffff {
            number::MUNMAP => self.each_beside(tid, registers, &range),
            // Nothing is mapped there, so nothing can be moved.
            number::MREMAP => -i64::from(libc::EFAULT),
            // The kernel itself answers that the range is not free.
            number::MMAP if is_kept_free(registers) => return false,
            number::MMAP if is_reservation(registers) => match self.each_beside(tid, registers, &range) {
                0 => registers.rdi as i64,
                error => error,
            },
            number::MMAP => {
                self.refuse_mapping(tid, &range, &first);
                return false;
            }
            // Protection changes up to the first page that is not mapped.
            _ => match self.each_beside(tid, registers, &(range.start..first.start.max(range.start))) {
                0 => ENOMEM,
                error => error,
            },
        };
        self.skip(tid, *registers, result);
        true
    }

    /// Refuses an `mremap` onto the engine's memory.
    fn keeps_own_from_moves(&mut self, tid: i32, registers: &Registers) -> bool {
        let moves =
            registers.rax & 0xffff_ffff == number::MREMAP && registers.r10 & libc::MREMAP_FIXED as u64 != 0;
        if let Some(own) = self.own_within(tid, registers.r8, registers.rdx).filter(|_| moves) {
            self.refuse_mapping(tid, &(registers.r8..end_of(registers.r8, registers.rdx)), &own);
        }
        false
    }

    /// The first part of the engine's memory in a range of the program. `None` if there is no such
    /// part, or if the kernel would refuse the range anyway.
    fn own_within(&mut self, tid: i32, start: u64, bytes: u64) -> Option<Range<u64>> {
        if !start.is_multiple_of(PAGE) || bytes == 0 || start.checked_add(bytes).is_none() {
            return None;
        }
        let end = end_of(start, bytes);
        let own = self.image_mut(tid).translator.cache.layout.own();
        own.filter(|own| own.start < end && start < own.end).min_by_key(|own| own.start)
    }

    fn refuse_mapping(&mut self, tid: i32, range: &Range<u64>, own: &Range<u64>) {
        let (start, end) = (range.start, range.end);
        self.image_mut(tid).translator.refusal = Some(format!(
            "it maps memory at {start:#x} to {end:#x}, where lightfoot's own memory lies ({:#x} to {:#x})",
            own.start, own.end
        ));
    }

    /// Executes the system call in `registers` for each part of a range that is not the engine's.
    /// Returns 0 or the first error.
    fn each_beside(&mut self, tid: i32, registers: &Registers, range: &Range<u64>) -> i64 {
        let image = self.image_mut(tid);
        let parts = beside(range, image.translator.cache.layout.own().collect());
        let Ok(mut injector) = Injector::at(tid, image.gadget) else { return ENOMEM };
        let mask = signal_mask::block_for_calls(tid);
        let number = (registers.rax & 0xffff_ffff) as i64;
        let results = parts.into_iter().map(|part| {
            let arguments =
                [part.start, part.end - part.start, registers.rdx, registers.r10, registers.r8, registers.r9];
            injector.call(number, arguments)
        });
        // A call that fails does not stop the others, because the kernel also goes through the
        // whole range.
        let error =
            results
                .filter(|&got| (-4095..0).contains(&got))
                .fold(0, |first, got| if first == 0 { got } else { first });
        injector.finish(None);
        signal_mask::unblock(tid, mask);
        error
    }
}

/// Whether the flags ask the kernel to refuse the mapping if its range is not free.
fn is_kept_free(registers: &Registers) -> bool {
    registers.r10 & libc::MAP_FIXED_NOREPLACE as u64 != 0
}

/// Whether the mapping only reserves addresses.
fn is_reservation(registers: &Registers) -> bool {
    registers.rdx == libc::PROT_NONE as u64 && registers.r10 & libc::MAP_ANONYMOUS as u64 != 0
}

/// The end of a range as the kernel takes it: whole pages.
fn end_of(start: u64, bytes: u64) -> u64 {
    start.saturating_add(bytes).saturating_add(PAGE - 1) & !(PAGE - 1)
}

/// The parts of `range` that lie outside all ranges of `own`, in order.
fn beside(range: &Range<u64>, mut own: Vec<Range<u64>>) -> Vec<Range<u64>> {
    own.sort_unstable_by_key(|own| (own.start, own.end));
    let mut parts = Vec::new();
    let mut start = range.start;
    for own in own.into_iter().filter(|own| own.start < range.end && range.start < own.end) {
        // Take the gap in front of this range, and continue behind it.
        parts.push(start..own.start.max(start));
        start = own.end;
    }
    parts.push(start..range.end.max(start));
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beside_our_memory_is_found() {
        let own = || vec![0x5000..0x6000, 0x2000..0x3000];
        assert_eq!(beside(&(0x1000..0x9000), own()), [0x1000..0x2000, 0x3000..0x5000, 0x6000..0x9000]);
        assert_eq!(beside(&(0x2000..0x3000), own()), []);
        assert_eq!(beside(&(0x2800..0x6800), own()), [0x3000..0x5000, 0x6000..0x6800]);
        assert!(beside(&(0x7000..0x8000), own()).into_iter().eq(std::iter::once(0x7000..0x8000)));
        assert_eq!(end_of(0x1000, 1), 0x2000);
        assert_eq!(end_of(0x1000, u64::MAX - 0x1000), !(PAGE - 1));
    }
}
