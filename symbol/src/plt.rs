//! Finds the stubs of the procedure linkage table and names them after their targets.
//!
//! Every stub has a `jmp *[rip + x]` through a slot of the global offset table, and a dynamic
//! relocation names the symbol that fills the slot. So stubs are found by their jump, whatever the
//! layout of their section (`.plt`, `.plt.sec`, `.plt.got`).

use crate::elf::File;
use crate::table::{Candidate, Name, Size};
use object::read::elf::Sym;
use object::{Object, ObjectSection, ObjectSymbolTable, SymbolIndex};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Opcode and ModRM byte of `jmp qword [rip + disp32]`.
const JUMP: [u8; 2] = [0xff, 0x25];

/// The section of the relocations that fill the slots of stubs.
const OF_STUBS: &str = ".rela.plt";
/// The section of all other dynamic relocations: megabytes in a large library.
const OTHERS: &str = ".rela.dyn";
/// The section of stubs whose slots other relocations fill.
const STUBS_OF_OTHERS: &str = ".plt.got";
/// Bytes of a relocation: offset, kind with symbol, addend.
const RELOCATION_BYTES: usize = 24;

/// The sections of relocations that name the targets of the file's stubs.
pub(crate) fn relocations(file: &File<'_>) -> Vec<&'static str> {
    let has = |name: &str| file.section_by_name(name).is_some();
    let needs_others = has(STUBS_OF_OTHERS) || !has(OF_STUBS);
    [OF_STUBS].into_iter().chain(needs_others.then_some(OTHERS)).collect()
}

/// All stubs of a file, of which these sections of relocations are loaded.
pub(crate) fn stubs(file: &File<'_>, relocations: &[&str]) -> Vec<Candidate> {
    let mut stubs: Vec<(Range<u64>, u64)> = Vec::new();
    for (section, stub_bytes) in [(".plt", 16), (".plt.sec", 16), (".plt.got", 8)] {
        let Some(section) = file.section_by_name(section) else { continue };
        let Ok(bytes) = section.uncompressed_data() else { continue };
        // With control-flow enforcement `.plt.got` has 16-byte stubs too; they then start with
        // `endbr64`.
        let stub_bytes = if bytes.starts_with(&[0xf3, 0x0f, 0x1e, 0xfa]) { 16 } else { stub_bytes };
        for (index, stub) in bytes.chunks(stub_bytes).enumerate() {
            let start = section.address() + (index * stub_bytes) as u64;
            if let Some(slot) = target(stub, start) {
                stubs.push((start..start + stub.len() as u64, slot));
            }
        }
    }
    let names = names(file, relocations, stubs.iter().map(|stub| stub.1).collect());
    let named = stubs.into_iter().filter_map(|(range, slot)| {
        let name = Name::Stub(*names.get(&slot)?);
        Some(Candidate { range, name, rank: 3, size: Size::Stated })
    });
    named.collect()
}

/// The address of the slot that a stub jumps through.
fn target(stub: &[u8], start: u64) -> Option<u64> {
    let at = stub.windows(2).position(|bytes| bytes == JUMP)?;
    let displacement: [u8; 4] = stub.get(at + 2..at + 6)?.try_into().ok()?;
    let next = start + at as u64 + 6;
    Some(next.wrapping_add_signed(i64::from(i32::from_le_bytes(displacement))))
}

/// Where the names of the symbols that fill these slots are in the string table of dynamic symbols.
fn names(file: &File<'_>, relocations: &[&str], slots: HashSet<u64>) -> HashMap<u64, u32> {
    let mut names = HashMap::new();
    let Some(symbols) = file.dynamic_symbol_table().filter(|_| !slots.is_empty()) else { return names };
    for section in relocations.iter().filter_map(|name| file.section_by_name(name)) {
        let Ok(bytes) = section.uncompressed_data() else { continue };
        for relocation in bytes.chunks_exact(RELOCATION_BYTES) {
            let word = |at: usize| {
                relocation[at..at + 8].iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
            };
            // The upper half of the second word is the symbol; relative relocations have none.
            let (slot, symbol) = (word(0), (word(8) >> 32) as usize);
            if symbol == 0 || !slots.contains(&slot) {
                continue;
            }
            if let Ok(symbol) = symbols.symbol_by_index(SymbolIndex(symbol)) {
                names.insert(slot, symbol.elf_symbol().st_name(symbol.endian()));
            }
        }
    }
    names
}
