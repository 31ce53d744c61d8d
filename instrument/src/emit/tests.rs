//! Emission of single blocks, without a code cache, a process or samples.

use super::emitter::{EmitSetting, Emitter};
use crate::code::buffer::{ExitForm, Routine, Section};
use crate::code::decode::{Decoded, End};
use crate::code::event_request::EventRequests;
use crate::code::lookup::Hash;
use crate::code::superblock::{BasicBlock, Steps, Superblock};
use crate::plan::block::{BlockPlan, FragmentPlan};
use crate::plan::liveness::{self, Liveness, TargetFacts};
use crate::target::trust::Trust;
use event::Stream;
use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory};

const IP: u64 = 0x40_1000;
const BASES: (u64, u64) = (0x1000_0000, 0x1800_0000);

/// Decodes `code` as one block.
fn block(code: &[u8]) -> BasicBlock {
    let mut padded = code.to_vec();
    // An instruction is kept with sixteen bytes, which may reach beyond the code.
    padded.resize(code.len() + 16, 0);
    let mut decoder = Decoder::with_ip(64, code, IP, DecoderOptions::NONE);
    let mut instructions = Vec::new();
    while decoder.can_decode() {
        let at = decoder.position();
        let bytes = padded[at..at + 16].try_into().unwrap();
        instructions.push(Decoded { instruction: decoder.decode(), bytes, shape: 0 });
    }
    let events = EventRequests::default();
    BasicBlock {
        ip: IP,
        instructions,
        end: End::Transfer,
        number: 0,
        next: None,
        events,
        is_tail_jump: false,
        jumps_within: None,
        is_stub: false,
    }
}

/// An emitter that has emitted `code`; the facts of all its targets are `target`.
fn emitted(code: &[u8], target: TargetFacts) -> Emitter {
    let (hash, lookup_table, system_calls) = (Hash::LowBits, 0x6000_0000, 0x6100_0000);
    let mut emitter = Emitter::new(EmitSetting {
        stream: Stream::Counts,
        hash,
        lookup_table,
        system_calls,
        answered: Default::default(),
    });
    let blocks = [block(code)];
    let mut facts = [Liveness::default()];
    // Every address outside the block has the facts `target`.
    liveness::learn(&blocks, &mut facts, |_| target, |_| true, &mut InstructionInfoFactory::new());
    let plan = FragmentPlan { blocks: vec![BlockPlan::default()], ..FragmentPlan::default() };
    let superblock = Superblock { blocks: &blocks, trust: Trust::Text, words: &[], steps: Steps::Never };
    emitter.emit(&superblock, &facts, &plan, BASES);
    emitter
}

/// `cmp eax, ebx; je +16`
const BRANCH: [u8; 4] = [0x39, 0xd8, 0x74, 0x10];

#[test]
fn an_exit_without_code_waits_by_a_stub() {
    let buffer = emitted(&BRANCH, TargetFacts::default()).buffer;
    let targets: Vec<u64> = buffer.branches().collect();
    // The taken edge first, then the fall-through edge.
    assert_eq!(targets, [IP + 4 + 16, IP + 4]);
    for exit in &buffer.exits {
        let ExitForm::Waiting(number_at) = exit.form else { panic!("{exit:?}") };
        assert_eq!(buffer.cold.bytes()[number_at..number_at + 4], [0; 4], "numbers are the cache's");
    }
    let hand_over = |wanted: &(Section, usize, Routine)| wanted.2 == Routine::HandOver;
    assert_eq!(buffer.routines.iter().filter(|wanted| hand_over(wanted)).count(), 2);
    // The side exit has a counter of its own; the last exit is counted before it.
    assert!(buffer.exits[0].counter.is_some() && buffer.exits[1].counter.is_none());
}

#[test]
fn an_exit_with_code_is_left_to_the_code_cache() {
    let buffer = emitted(&BRANCH, TargetFacts { has_code: true, dead: 0 }).buffer;
    assert!(buffer.exits.iter().all(|exit| exit.form == ExitForm::Linked));
    assert!(buffer.cold.bytes().is_empty() && buffer.routines.is_empty());
}

#[test]
fn a_return_is_looked_up() {
    let buffer = emitted(&[0xc3], TargetFacts::default()).buffer;
    assert!(buffer.exits.is_empty());
    let [(section, at, Routine::Probe)] = buffer.routines[..] else { panic!("{:?}", buffer.routines) };
    assert!(section == Section::Hot && at < buffer.hot.len());
}

#[test]
fn equal_blocks_give_equal_code() {
    let mut code = vec![0x48, 0x8b, 0x05, 0, 1, 0, 0];
    // `mov rax, [rip + 0x100]`, then the branch.
    code.extend(BRANCH);
    let [one, other] = [(); 2].map(|()| emitted(&code, TargetFacts::default()).buffer);
    assert_eq!((one.hot.bytes(), one.cold.bytes()), (other.hot.bytes(), other.cold.bytes()));
    let mut decoder = Decoder::with_ip(64, one.hot.bytes(), BASES.0, DecoderOptions::NONE);
    let load = decoder.iter().find(|instruction| instruction.is_ip_rel_memory_operand()).unwrap();
    assert_eq!(load.ip_rel_memory_address(), IP + 7 + 0x100, "it loads from where it loaded");
}
