//! Finds the stubs of the procedure linkage table and names them after their targets.
//!
//! Every stub has a `jmp *[rip + x]` through a slot of the global offset table, and a dynamic
//! relocation names the symbol that fills the slot. So stubs are found by their jump, whatever the
//! layout of their section (`.plt`, `.plt.sec`, `.plt.got`).

use crate::elf::File;
use crate::table::{Candidate, Name, Size};
use object::{Object, ObjectSection, ObjectSymbol, ObjectSymbolTable, RelocationTarget};
use std::collections::HashMap;

/// Opcode and ModRM byte of `jmp qword [rip + disp32]`.
const JUMP: [u8; 2] = [0xff, 0x25];

/// All stubs of a file.
pub(crate) fn stubs(file: &File<'_>) -> Vec<Candidate> {
    let slots = slots(file);
    let mut stubs = Vec::new();
    for (section, stub_bytes) in [(".plt", 16), (".plt.sec", 16), (".plt.got", 8)] {
        let Some(section) = file.section_by_name(section) else { continue };
        let Ok(bytes) = section.uncompressed_data() else { continue };
        // With control-flow enforcement `.plt.got` has 16-byte stubs too; they then start with
        // `endbr64`.
        let stub_bytes = if bytes.starts_with(&[0xf3, 0x0f, 0x1e, 0xfa]) { 16 } else { stub_bytes };
        for (index, stub) in bytes.chunks(stub_bytes).enumerate() {
            let start = section.address() + (index * stub_bytes) as u64;
            let name = target(stub, start).and_then(|slot| slots.get(&slot));
            if let Some(name) = name {
                let range = start..start + stub.len() as u64;
                stubs.push(Candidate {
                    range,
                    name: Name::Written(format!("{name}@plt")),
                    rank: 3,
                    size: Size::Stated,
                });
            }
        }
    }
    stubs
}

/// The address of the slot that a stub jumps through.
fn target(stub: &[u8], start: u64) -> Option<u64> {
    let at = stub.windows(2).position(|bytes| bytes == JUMP)?;
    let displacement: [u8; 4] = stub.get(at + 2..at + 6)?.try_into().ok()?;
    let next = start + at as u64 + 6;
    Some(next.wrapping_add_signed(i64::from(i32::from_le_bytes(displacement))))
}

/// The names of the symbols that fill slots, by address of the slot.
fn slots(file: &File<'_>) -> HashMap<u64, String> {
    let mut slots = HashMap::new();
    let (Some(relocations), Some(symbols)) = (file.dynamic_relocations(), file.dynamic_symbol_table()) else {
        return slots;
    };
    for (slot, relocation) in relocations {
        let RelocationTarget::Symbol(index) = relocation.target() else { continue };
        let Ok(symbol) = symbols.symbol_by_index(index) else { continue };
        if let Ok(name) = symbol.name() {
            slots.insert(slot, name.to_owned());
        }
    }
    slots
}
