//! Translates arbitrary bytes and decodes the generated code again: it must contain the program's
//! instructions, in order, with their addresses. Nothing may panic.
//!
//! The bytes are random, or cut out of this executable at random places: random bytes reach odd
//! encodings, and real code reaches long blocks. An entry of the state map says where an
//! instruction's translation begins. Without instrumentation the instruction itself stands there;
//! with instrumentation it follows behind its prologue. The numbers are seeded, and
//! `LIGHTFOOT_FUZZ_ROUNDS` sets the number of rounds. **Leaves out** what the prologues do:
//! `tests/agree.rs` runs them.

use super::*;
use crate::cache::CodeCache;
use crate::code::decode::CodeReader;
use crate::code::state_map::StateMapEntry;
use crate::profile::Module;
use crate::target::layout::{Layout, ZonePlace};
use crate::target::memory::Shared;
use crate::target::trust::Modules;
use event::{FetchFilter, Filter, ModifyFilter, PageFilter, SetFilter, StoreFilter, Stream};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};
use std::sync::Arc;

const BYTES: usize = 1 << 14;
const PAGE: usize = 4096;
/// A byte with which no instruction of 64-bit programs begins.
const INVALID: u8 = 0x06;
const STARTS: usize = 120;
/// The most instructions of a prologue: 64 references of a few instructions each.
const PROLOGUE_MAX: usize = 700;

/// Pseudo-random numbers (Marsaglia 2003).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Only the tested bytes are code.
struct Only {
    start: u64,
    trust: Trust,
}

impl Modules for Only {
    fn at(&mut self, pc: u64) -> Option<(Trust, u32)> {
        (pc.wrapping_sub(self.start) < BYTES as u64).then_some((self.trust, 0))
    }

    fn module(&self, _number: u32) -> Option<&Module> {
        None
    }

    fn is_text(&self, _number: u32) -> bool {
        self.trust == Trust::Text
    }
}

/// A translator whose first zone is near `code`, or out of a displacement's reach.
fn translator(code: u64, stream: Stream, near: bool) -> Translator {
    let place =
        |address: u64| ZonePlace { address: address & !0x1f_ffff, hot_bytes: 16 << 20, cold_bytes: 16 << 20 };
    let first = if near { code - (256 << 20) } else { 0x1000_0000_0000 };
    let layout = Layout {
        zones: vec![place(first), place(0x1100_0000_0000), place(0x2000_0000_0000)],
        low: 0x6000_0000,
    };
    let shared = Arc::new(Shared::new(layout.file_bytes() as usize).unwrap());
    let filter = if let Stream::Filtered(filter) = &stream { Some(filter) } else { None };
    // The process reads its own memory as it reads a target's.
    let reader = CodeReader::new(std::process::id() as i32);
    Translator::new(CodeCache::new(shared, layout, filter), reader, stream)
}

fn streams() -> [Stream; 8] {
    let sets = SetFilter { sets: 64, line_bytes: 64 };
    let pages = SetFilter { sets: 4, line_bytes: 4096 };
    let filter = Filter {
        data: sets,
        instruction: sets,
        data_page: Some(pages),
        instruction_page: Some(pages),
        stores: StoreFilter::NeverEnter,
        fetches: FetchFilter::LastOfSet,
        pages: PageFilter::LastOfSet,
        modifies: ModifyFilter::Both,
    };
    let fetches = FetchFilter::FirstLevel { line_ways: 8, page_ways: 6 };
    let whole = Stream::Filtered(Filter { fetches, ..filter });
    let one_set = Some(SetFilter { sets: 1, ..pages });
    let pages = PageFilter::FirstLevel { ways: 72 };
    let resident = Stream::Filtered(Filter { fetches, pages, data_page: one_set, ..filter });
    let all = [Stream::Nothing, Stream::Counts, Stream::Filtered(filter), whole, resident];
    let [nothing, counts, filtered, whole, resident] = all;
    [nothing, counts, filtered, whole, resident, Stream::Full, Stream::Allocated, Stream::References]
}

/// The bytes of a zone from `offset` on.
fn emitted(shared: &Shared, offset: usize, len: usize) -> Vec<u8> {
    let first = offset & !7;
    let words = (first..offset + len).step_by(8).flat_map(|at| shared.read64(at).to_le_bytes());
    words.skip(offset - first).take(len).collect()
}

fn decode(bytes: &[u8], ip: u64) -> Instruction {
    Decoder::with_ip(64, bytes, ip, DecoderOptions::NONE).decode()
}

/// Whether `found`, with these `bytes`, is the translation of the instruction `wanted`, with the
/// bytes `raw`.
fn is_copy(wanted: &Instruction, raw: &[u8], found: &Instruction, bytes: &[u8]) -> bool {
    if !wanted.is_ip_rel_memory_operand() {
        return bytes.starts_with(raw);
    }
    let target = wanted.ip_rel_memory_address();
    // The copy of an operand relative to rip has another displacement, or its address in a
    // register.
    let displaced = found.code() == wanted.code()
        && (found.is_ip_rel_memory_operand() && found.ip_rel_memory_address() == target
            || found.memory_base().is_gpr64() && found.memory_displacement64() == 0);
    // `lea` has become the load of a constant, in its long or its short form.
    let formed = wanted.mnemonic() == Mnemonic::Lea
        && found.code() == iced_x86::Code::Mov_r64_imm64
        && found.immediate64() == target;
    let short = wanted.mnemonic() == Mnemonic::Lea
        && found.mnemonic() == Mnemonic::Mov
        && found.try_immediate(1).is_ok_and(|found| found == target);
    displaced || formed || short
}

/// Whether `found` is an instruction of the rewritten transfer `wanted`: a return pops, a call
/// pushes.
fn is_transfer(wanted: &Instruction, found: &Instruction) -> bool {
    match wanted.flow_control() {
        FlowControl::ConditionalBranch if wanted.is_jcc_short_or_near() => {
            found.is_jcc_near() && found.condition_code() == wanted.condition_code()
        }
        FlowControl::ConditionalBranch => found.mnemonic() == wanted.mnemonic(),
        FlowControl::Call if wanted.is_call_near() => found.mnemonic() == Mnemonic::Push,
        FlowControl::Return => matches!(found.mnemonic(), Mnemonic::Pop | Mnemonic::Ud2),
        FlowControl::Interrupt => found.code() == wanted.code(),
        _ if wanted.code() == iced_x86::Code::Syscall => found.code() == wanted.code(),
        _ => true,
    }
}

/// Looks for the translation of `wanted` in the zone from position `at` on, among `limit`
/// instructions. All bytes on the way must decode.
fn find(
    translator: &Translator,
    zone_index: usize,
    at: u32,
    wanted: &Instruction,
    raw: &[u8],
    limit: usize,
) -> bool {
    let zone = &translator.cache.zones[zone_index];
    // A copy must have the right bytes; a transfer is rewritten, so only its kind is compared.
    let transfer = !matches!(wanted.flow_control(), FlowControl::Next | FlowControl::Exception);
    let system_call = wanted.code() == iced_x86::Code::Syscall;
    let mut at = at as usize;
    for _ in 0..limit {
        let bytes = emitted(&translator.cache.shared, zone.offset + at, 16);
        let found = decode(&bytes, zone.address + at as u64);
        assert!(!found.is_invalid(), "no instruction at {at:#x}: {bytes:x?}");
        let right = if translator.refused.contains_key(&wanted.ip()) {
            // It faults in the cache, and the host ends the run.
            found.mnemonic() == Mnemonic::Ud2
        } else if transfer || system_call {
            is_transfer(wanted, &found)
        } else {
            is_copy(wanted, raw, &found, &bytes)
        };
        if right {
            return true;
        }
        at += found.len();
    }
    false
}

/// Compares every instruction of every fragment with its translation; returns how many it compared.
fn check(translator: &Translator, code: u64, bytes: &[u8], strict: bool) -> usize {
    let mut checked = 0;
    for zone in 0..translator.cache.zones.len() {
        let entries = translator.cache.zones[zone].state_map.to_vec();
        assert!(entries.windows(2).all(|pair| pair[0].at <= pair[1].at), "entries are in order");
        // Within a block, entries are in the order of instructions.
        let in_order = |pair: &[StateMapEntry]| {
            pair[0].block < pair[1].block || pair[0].block == pair[1].block && pair[0].index <= pair[1].index
        };
        assert!(entries.windows(2).all(in_order), "instructions are in order");
        for entry in entries {
            let block = &translator.blocks[entry.block as usize];
            // Entries behind a block's last instruction, and those of guards, belong to no copied
            // instruction.
            if u32::from(entry.index) >= block.count || entry.retreat {
                continue;
            }
            let index = (block.first + u32::from(entry.index)) as usize;
            let instruction = translator.instructions.get(index).unwrap();
            let ip = block.ip + u64::from(instruction.offset);
            let raw = &bytes[(ip - code) as usize..][..usize::from(instruction.len)];
            let wanted = decode(raw, ip);
            let copy = matches!(wanted.flow_control(), FlowControl::Next | FlowControl::Exception);
            // An operand out of reach needs two instructions before the copy.
            let limit = if strict && copy { 3 } else { PROLOGUE_MAX };
            assert!(
                find(translator, zone, entry.at, &wanted, raw, limit),
                "{ip:#x}: {raw:x?} {wanted:?} is not there"
            );
            checked += 1;
        }
    }
    checked
}

/// Random bytes, or pieces of this executable.
fn fill(random: &mut Random, own: &[u8], into: &mut [u8]) {
    for piece in into.chunks_mut(512) {
        // Two of three pieces are code of this executable.
        let real = !random.next().is_multiple_of(3);
        let from = random.next() as usize % (own.len() - piece.len());
        for (index, byte) in piece.iter_mut().enumerate() {
            *byte = if real { own[from + index] } else { random.next() as u8 };
        }
    }
}

#[test]
fn what_is_emitted_decodes_to_the_program() {
    let rounds =
        std::env::var("LIGHTFOOT_FUZZ_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(24u64);
    let own = std::fs::read("/proc/self/exe").unwrap();
    let mut checked = 0;
    for round in 0..rounds {
        let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ (round + 1).wrapping_mul(0xd134_2543_de82_ef95));
        let mut room = vec![0u8; BYTES + PAGE];
        let aligned = room.as_ptr().align_offset(PAGE);
        let bytes = &mut room[aligned..][..BYTES];
        fill(&mut random, &own, bytes);
        // A block ends at these bytes, so none runs past the end.
        bytes[BYTES - 32..].fill(INVALID);
        let code = bytes.as_ptr() as u64;
        for (stream, near) in streams().into_iter().flat_map(|stream| [(stream, true), (stream, false)]) {
            let trust = if random.next().is_multiple_of(4) { Trust::Generated } else { Trust::Text };
            let mut translator = translator(code, stream, near);
            let mut modules = Only { start: code, trust };
            for _ in 0..STARTS {
                // A refusal would end a run; this test goes on with the next start.
                translator.fragment(code + random.next() % BYTES as u64, &mut modules);
                translator.refusal = None;
            }
            checked += check(&translator, code, bytes, stream == Stream::Nothing && trust == Trust::Text);
        }
    }
    assert!(checked > 1000 * rounds as usize, "{checked}");
}
