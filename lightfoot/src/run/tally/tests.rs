//! Tests tallies of profiles that are made by hand.

use super::*;
use instrument::mark::PartCounts;
use instrument::{Module, Site};

fn instruction(offset: u16, code: Code, loads: u8, stores: u8) -> Instruction {
    Instruction { offset, len: 1, loads, stores, code: code as u16 }
}

/// One block of `mov r, [m]`; `rep movsb`; `ret`, run ten times.
fn profile() -> Profile {
    Profile {
        modules: vec![Module {
            path: "[anonymous]".into(),
            start: 0x1000,
            end: 0x2000,
            file_offset: 0,
            process: None,
        }],
        blocks: vec![Block { ip: 0x1000, len: 3, module: 0, first: 0, count: 3, executions: 10, taken: 0 }],
        instructions: vec![
            instruction(0, Code::Mov_r64_rm64, 1, 0),
            instruction(1, Code::Movsb_m8_m8, 0, 0),
            instruction(2, Code::Retnq, 1, 0),
        ],
        sites: vec![Site { ip: 0x1001, block: 0, index: 1 }],
        ..Profile::default()
    }
}

fn count(profile: &Profile, rep: Rep) -> Tally {
    tally(profile, None, (rep, Grain::LinesAndOpcodes), &mut Symbolizer::new())
}

fn opcode(tally: &Tally, name: &str) -> Counts {
    tally.opcodes.iter().find(|(opcode, _)| opcode == name).unwrap().1
}

#[test]
fn blocks_times_executions() {
    let tally = count(&profile(), Rep::Once);
    assert_eq!(tally.totals, Counts { instructions: 30, blocks: 10, loads: 20, stores: 0, misses: None });
    assert_eq!(opcode(&tally, "mov").instructions, 10);
    assert_eq!(opcode(&tally, "ret").loads, 10);
    assert_eq!(tally.functions.len(), 1);
}

#[test]
fn what_did_not_retire_does_not_count() {
    let mut profile = profile();
    profile.cut = vec![(0, 1, 2), (0, 2, 1)];
    let tally = count(&profile, Rep::Once);
    assert_eq!(tally.totals.instructions, profile.instructions_retired());
    assert_eq!(tally.totals.instructions, 30 - 2 * 2 - 1);
    assert_eq!(opcode(&tally, "ret").instructions, 7);
    assert_eq!(tally.totals.loads, 17);
}

#[test]
fn iterations_count_only_where_asked_for() {
    let mut profile = profile();
    profile.repeats = vec![(0, 90)];
    profile.complex = vec![(0, 100, 100)];
    assert_eq!(count(&profile, Rep::Once).totals.instructions, 30);
    let tally = count(&profile, Rep::Iterations);
    assert_eq!(tally.totals.instructions, 120);
    assert_eq!((tally.totals.loads, tally.totals.stores), (120, 100));
    assert_eq!(opcode(&tally, "movsb").stores, 100);
    // Ten executions, each of which finds a count of 0 once more.
    let tally = count(&profile, Rep::Valgrind);
    assert_eq!((tally.totals.instructions, opcode(&tally, "movsb").instructions), (130, 110));
    // A comparison ends these instructions.
    profile.instructions[1].code = Code::Cmpsb_m8_m8 as u16;
    assert_eq!(count(&profile, Rep::Valgrind).totals.instructions, 120);
}

#[test]
fn misses_go_where_their_instruction_goes() {
    let none = Misses { l1d_load_misses: Some(0), l1i_misses: Some(0), ..Misses::default() };
    let site = Misses { l1d_load_misses: Some(4), ..Misses::default() };
    let block = Misses { l1i_misses: Some(1), ..Misses::default() };
    let attribution = Attribution { none, by_site: vec![(0, site)], by_block: vec![(0, block)] };
    let tally = tally(&profile(), Some(&attribution), (Rep::Once, Grain::None), &mut Symbolizer::new());
    let both = Misses { l1d_load_misses: Some(4), l1i_misses: Some(1), ..Misses::default() };
    assert_eq!(tally.totals.misses, Some(both));
    assert_eq!(opcode(&tally, "movsb").misses.unwrap().l1d_load_misses, Some(4));
    assert_eq!(opcode(&tally, "mov").misses.unwrap().l1i_misses, Some(1));
    assert_eq!(opcode(&tally, "ret").misses, Some(none));
}

#[test]
fn cells_add_up_to_the_totals() {
    let mut profile = profile();
    profile.repeats = vec![(0, 90)];
    profile.complex = vec![(0, 100, 100)];
    let tally = count(&profile, Rep::Iterations);
    let mut sum = Counts::default();
    tally.cells.iter().for_each(|(_, counts)| sum.add(counts));
    assert_eq!(sum, tally.totals);
    assert_eq!(tally.cells.len(), 3);
    assert!(tally.cells.iter().all(|(cell, _)| cell.frame.is_none() && cell.opcode.is_some()));
}

#[test]
fn a_part_has_branches_of_its_own() {
    let mut profile = profile();
    profile.blocks[0].taken = 9;
    let section = PartCounts { executions: vec![(0, 4)], taken: vec![(0, 1)], ..PartCounts::default() };
    Part::of_section(&section, &simulate::Counts::default()).narrow(&mut profile);
    assert_eq!((profile.blocks[0].executions, profile.blocks[0].taken), (4, 1));
}
