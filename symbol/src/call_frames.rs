//! From a frame to its caller's: what the unwind table of a file says about each address.
//!
//! **Why.** A stack is walked where a program asks for it once, so tables are read then and nothing
//! is precomputed. **Leaves out** frames that are described by expressions, which are those of
//! linkage stubs and of signal handlers: a walk ends there. Source: DWARF 5, section 6.4; System V
//! ABI, AMD64 supplement, 3.6.2.

use crate::debug_sections::SectionReader;
use crate::elf::{code_segments, Segment};
use crate::sparse::Sparse;
use gimli::{
    BaseAddresses, CfaRule, EhFrame, LittleEndian, Register, RegisterRule, UnwindContext, UnwindSection,
};
use object::{Object, ObjectSection};
use std::path::Path;

/// Registers of amd64 by their DWARF numbers; the last one is the address of the code.
pub type FrameRegisters = [u64; 17];

/// The number of the stack pointer.
const RSP: usize = 7;
/// The number of the return address, which is the address of the caller's code.
const RETURN_ADDRESS: usize = 16;

/// The unwind table of one file.
pub struct CallFrames {
    table: EhFrame<SectionReader>,
    bases: BaseAddresses,
    segments: Vec<Segment>,
}

impl CallFrames {
    /// Reads the unwind table of the file at `path`; `None` if there is none. The table stays in
    /// memory until the process ends.
    pub fn read(path: &Path) -> Option<CallFrames> {
        let mut own = Sparse::open(path)?;
        let file = own.parse()?;
        let address = file.section_by_name(".eh_frame")?.address();
        let segments = code_segments(&file);
        let table = EhFrame::new(own.section(".eh_frame")?.leak(), LittleEndian);
        Some(CallFrames { table, bases: BaseAddresses::default().set_eh_frame(address), segments })
    }

    /// The link address of the code at `offset` of the file.
    pub fn link_address(&self, offset: u64) -> Option<u64> {
        self.segments.iter().find_map(|segment| segment.address_of(offset))
    }

    /// The registers of the caller of the frame whose code is at link address `address`. `read`
    /// gives words of the program's memory. `None` if the table does not say them, or there is no
    /// caller. Cost: the table is read up to the function.
    pub fn caller(
        &self,
        address: u64,
        registers: &FrameRegisters,
        read: impl Fn(u64) -> Option<u64>,
    ) -> Option<FrameRegisters> {
        let mut context = UnwindContext::new();
        let entry = self.table.fde_for_address(&self.bases, address, EhFrame::cie_from_offset).ok()?;
        let row = entry.unwind_info_for_address(&self.table, &self.bases, &mut context, address).ok()?;
        let CfaRule::RegisterAndOffset { register, offset } = row.cfa() else { return None };
        let frame = registers.get(usize::from(register.0))?.wrapping_add_signed(*offset);
        let mut caller = *registers;
        caller[RETURN_ADDRESS] = 0;
        for (number, value) in (0..).zip(&mut caller) {
            match row.register(Register(number)) {
                Some(RegisterRule::Offset(offset)) => *value = read(frame.wrapping_add_signed(offset))?,
                Some(RegisterRule::ValOffset(offset)) => *value = frame.wrapping_add_signed(offset),
                Some(RegisterRule::Expression(_) | RegisterRule::ValExpression(_)) => return None,
                // The function has left the register as it was.
                _ => {}
            }
        }
        caller[RSP] = frame;
        // A thread's outermost frame returns nowhere, and no caller lies deeper in the stack.
        (caller[RETURN_ADDRESS] != 0 && frame > registers[RSP]).then_some(caller)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, Listing};

    #[test]
    fn a_function_that_has_just_been_called_returns_to_the_word_below() {
        let path = std::env::current_exe().unwrap();
        let frames = CallFrames::read(&path).expect("executables have unwind tables");
        let listing = Listing::of_symbols(&path).unwrap();
        let registers: FrameRegisters = std::array::from_fn(|number| 0x7000 + 0x10 * number as u64);
        let stack = registers[RSP];
        let functions = listing.names.iter().filter(|named| named.kind == Kind::Function);
        let mut seen = 0;
        for named in functions.filter(|named| named.name.starts_with("_ZN") || named.name.starts_with("_R")) {
            let read = |address| (address == stack).then_some(0x1234);
            let Some(caller) = frames.caller(named.address, &registers, read) else { continue };
            let mut expected = registers;
            (expected[RSP], expected[RETURN_ADDRESS]) = (stack + 8, 0x1234);
            assert_eq!(caller, expected, "{}", named.name);
            assert_eq!(frames.caller(named.address, &registers, |_| None), None, "unreadable memory");
            seen += 1;
        }
        assert!(seen > 100, "{seen}");
        assert_eq!(frames.caller(u64::MAX - 8, &registers, Some), None, "no function lies there");
    }
}
