//! Restartable sequences (`rseq`) of a running program.
//!
//! **The problem.** A C library registers an area for each thread, in which the kernel keeps the
//! number of the processor. A program may also name a short sequence there, and the kernel sends
//! the thread to the sequence's abort handler if it is interrupted within it. It recognises the
//! sequence by addresses, and translated code has others. **The idea.** While the engine runs a
//! thread, its area is not registered, as on a kernel without such sequences. A thread that stands
//! in a sequence is sent to its abort handler, as the kernel would do. When the engine leaves, the
//! area is registered again. Source: rseq(2), `include/uapi/linux/rseq.h`.

use super::inject::Injector;
use super::memory;
use super::ptrace::{self, Registers};

const REGISTER: u64 = 0;
const UNREGISTER: u64 = 1;
/// Offset in the area of the pointer to the current sequence's description.
const SEQUENCE: u64 = 8;
/// Offset in a description of the sequence's start, its length and its abort handler.
const START: usize = 8;
const DESCRIPTION_BYTES: usize = 32;

/// The area that a thread has registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Area {
    pub(crate) address: u64,
    pub(crate) bytes: u32,
    pub(crate) signature: u32,
}

impl Area {
    /// The area of a stopped thread, if it has registered one.
    pub(crate) fn of(tid: i32) -> Option<Area> {
        let (address, bytes, signature) = ptrace::restartable_area(tid)?;
        Some(Area { address, bytes, signature })
    }

    /// Ends the registration of the stopped thread that `injector` uses.
    pub(crate) fn unregister(&self, injector: &mut Injector) {
        self.call(injector, UNREGISTER);
    }

    /// Registers the area of the stopped thread that `injector` uses again.
    pub(crate) fn register(&self, injector: &mut Injector) {
        self.call(injector, REGISTER);
    }

    fn call(&self, injector: &mut Injector, flags: u64) {
        let arguments = [self.address, self.bytes.into(), flags, self.signature.into(), 0, 0];
        injector.call(libc::SYS_rseq, arguments);
    }

    /// If a stopped thread stands in a sequence, sends it to the sequence's abort handler.
    pub(crate) fn abort(&self, tid: i32) {
        let Some(registers) = ptrace::registers(tid) else { return };
        let mut word = [0u8; 8];
        let at = self.address + SEQUENCE;
        if memory::read_target(tid, at, &mut word) != word.len() || word == [0; 8] {
            return;
        }
        let mut description = [0u8; DESCRIPTION_BYTES];
        let described = u64::from_le_bytes(word);
        if memory::read_target(tid, described, &mut description) != description.len() {
            return;
        }
        if let Some(handler) = abort_handler(&description, registers.rip) {
            ptrace::set_registers(tid, &Registers { rip: handler, ..registers });
        }
        memory::write_target(tid, at, &[0; 8]);
    }
}

/// The abort handler of the described sequence, if `rip` lies in the sequence.
fn abort_handler(description: &[u8; DESCRIPTION_BYTES], rip: u64) -> Option<u64> {
    let word =
        |index: usize| u64::from_le_bytes(std::array::from_fn(|byte| description[START + 8 * index + byte]));
    let [start, bytes, handler] = [0, 1, 2].map(word);
    (rip.wrapping_sub(start) < bytes).then_some(handler)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_in_the_sequence_are_aborted() {
        let mut description = [0u8; DESCRIPTION_BYTES];
        for (index, value) in [0x1000u64, 0x20, 0x5000].into_iter().enumerate() {
            let at = START + 8 * index;
            description[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        let handler = |rip| abort_handler(&description, rip);
        assert_eq!([0xfff, 0x1000, 0x101f, 0x1020].map(handler), [None, Some(0x5000), Some(0x5000), None]);
    }
}
