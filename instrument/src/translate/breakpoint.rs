//! Breakpoints of the kernel's uprobes, which the host finds in program text.
//!
//! **The problem.** To count calls by uprobes, the kernel writes `int3` into every process that
//! maps the file, and so into the target. Natively the kernel executes the replaced instruction
//! itself. It does not do so for a copy of the code, and SIGTRAP would end the program.
//!
//! **The idea.** If text reads as a breakpoint, the decoder takes the original byte from the file:
//!
//! ```text
//!   memory   cc c0 55 cc 04 24 c3        two breakpoints
//!   file     31 c0 55 8b 04 24 c3
//!   decoded  31 c0 55 8b 04 24 c3        xor eax, eax; push rbp; mov eax, [rsp]; ret
//! ```
//!
//! **Invariant.** A breakpoint that the program itself has written stays. To write it the program
//! must change the mapping's protection, and then [`Modules::in_file`] returns no byte. **Leaves
//! out** the uprobe's counts, which do not include a program that runs translated. Source:
//! `Documentation/trace/uprobetracer.rst`.

use crate::code::decode::{Decoded, End};
use crate::target::trust::{Modules, Trust};
use crate::translate::Translator;
use iced_x86::Code;

impl Translator {
    /// Decodes the block at `ip`, with the original instructions in place of uprobes' breakpoints.
    pub(crate) fn decode(
        &mut self,
        ip: u64,
        (trust, module): (Trust, u32),
        into: &mut Vec<Decoded>,
        modules: &impl Modules,
    ) -> End {
        loop {
            let end = self.reader.block(ip, into);
            // A breakpoint ends a block, so it can only be the last instruction.
            let breakpoint =
                into.last().filter(|last| trust == Trust::Text && last.instruction.code() == Code::Int3);
            let Some((at, found)) = breakpoint.map(|last| (last.instruction.ip(), last.bytes[0])) else {
                return end;
            };
            match modules.in_file(at, module).filter(|byte| *byte != found) {
                // The reader's copy gets the file's byte, and the block is decoded again; it may
                // meet another breakpoint.
                Some(byte) if self.reader.mend(at, byte) => {}
                _ => return end,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::CodeCache;
    use crate::code::decode::CodeReader;
    use crate::profile::Module;
    use crate::target::layout::{Layout, ZonePlace};
    use crate::target::memory::Shared;
    use event::Stream;
    use std::sync::Arc;

    /// Text whose file holds other bytes at some addresses.
    struct Patched<'a>(&'a [(u64, u8)]);

    impl Modules for Patched<'_> {
        fn at(&mut self, _pc: u64) -> Option<(Trust, u32)> {
            Some((Trust::Text, 0))
        }

        fn module(&self, _number: u32) -> Option<&Module> {
            None
        }

        fn is_text(&self, _number: u32) -> bool {
            true
        }

        fn in_file(&self, pc: u64, _module: u32) -> Option<u8> {
            self.0.iter().find(|patch| patch.0 == pc).map(|patch| patch.1)
        }
    }

    /// `xor eax, eax; push rbp; mov eax, [rsp]; ret` with breakpoints on `xor` and `mov`, as the
    /// program's memory has it.
    fn code() -> Vec<u8> {
        let mut page = vec![0x90u8; 8192];
        page[4000..4009].copy_from_slice(&[0xcc, 0xc0, 0x55, 0xcc, 0x04, 0x24, 0xc3, 0x90, 0x90]);
        page
    }

    fn decoded(trust: Trust, files: impl Fn(u64) -> Vec<(u64, u8)>) -> Vec<Code> {
        let page = code();
        let ip = page.as_ptr() as u64 + 4000;
        let place = |address| ZonePlace { address, hot_bytes: 2 << 20, cold_bytes: 2 << 20 };
        let zones = vec![place(0x1000_0000_0000), place(0x2000_0000_0000)];
        let layout = Layout { zones, low: 0x6000_0000 };
        let shared = Arc::new(Shared::new(layout.contexts_offset() as usize + (1 << 20)).unwrap());
        let cache = CodeCache::new(shared, layout, None);
        let reader = CodeReader::new(crate::target::ptrace::own_pid());
        let mut translator = Translator::new(cache, reader, Stream::Counts);
        let mut block = Vec::new();
        translator.decode(ip, (trust, 0), &mut block, &Patched(&files(ip)));
        block.iter().map(|decoded| decoded.instruction.code()).collect()
    }

    #[test]
    fn text_is_what_its_file_holds_under_breakpoints() {
        let all = decoded(Trust::Text, |ip| vec![(ip, 0x31), (ip + 3, 0x8b)]);
        assert_eq!(all, [Code::Xor_rm32_r32, Code::Push_r64, Code::Mov_r32_rm32, Code::Retnq]);
    }

    #[test]
    fn breakpoints_of_the_programs_own_stay() {
        // The file holds the breakpoint too; the program has changed its text; the code is
        // generated.
        assert_eq!(decoded(Trust::Text, |ip| vec![(ip, 0xcc)]), [Code::Int3]);
        assert_eq!(decoded(Trust::Text, |_| Vec::new()), [Code::Int3]);
        assert_eq!(decoded(Trust::Generated, |ip| vec![(ip, 0x31)]), [Code::Int3]);
    }
}
