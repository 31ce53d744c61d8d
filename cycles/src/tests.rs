//! Dependences of code sequences that are written by hand, and what their misses cost.

use crate::flow::{of_loop, of_sequence, Flow, Origin};
use crate::stall::{cost, Events, Iteration, Role};
use crate::step::{Reader, Step};
use crate::*;
use iced_x86::{Code, Instruction, MemoryOperand, Register};

const WIDTH: f64 = 6.0;

fn steps(instructions: &[Instruction]) -> Vec<Step> {
    let mut reader = Reader::new();
    let mut factory = iced_x86::InstructionInfoFactory::new();
    let mut step = |instruction: &Instruction| {
        let memory = factory.info(instruction).used_memory().to_vec();
        let is = |write: bool| {
            memory
                .iter()
                .filter(|used| format!("{:?}", used.access()).contains(if write { "Write" } else { "Read" }))
                .count()
        };
        reader.step(instruction, is(false) as u8, is(true) as u8)
    };
    instructions.iter().map(&mut step).collect()
}

fn looped(instructions: &[Instruction]) -> Flow {
    of_loop(&steps(instructions), WIDTH)
}

fn at(base: Register) -> MemoryOperand {
    MemoryOperand::with_base(base)
}

fn indexed(base: Register, index: Register, scale: u32) -> MemoryOperand {
    MemoryOperand::with_base_index_scale(base, index, scale)
}

fn load(to: Register, from: MemoryOperand) -> Instruction {
    Instruction::with2(Code::Mov_r64_rm64, to, from).unwrap()
}

fn add(to: Register, constant: i32) -> Instruction {
    Instruction::with2(Code::Add_rm64_imm8, to, constant).unwrap()
}

fn add_from(to: Register, from: MemoryOperand) -> Instruction {
    Instruction::with2(Code::Add_r64_rm64, to, from).unwrap()
}

fn add_float(to: Register, from: MemoryOperand) -> Instruction {
    Instruction::with2(Code::Addsd_xmm_xmmm64, to, from).unwrap()
}

use Register::{RAX, RBX, RCX, RDI, RDX, RSI, RSP, XMM0};

#[test]
fn a_pointer_that_is_followed_is_a_chain_of_loads() {
    let flow = looped(&[add_from(RBX, MemoryOperand::with_base_displ(RAX, 8)), load(RAX, at(RAX))]);
    // Both fields of the node belong to the chain.
    assert_eq!(flow.origins, [Some(Origin::Chained), Some(Origin::Chained)]);
    assert!((flow.chain - 5.0).abs() < 1e-9, "{flow:?}");
    assert!(flow.chain_without_loads <= 1.0, "{flow:?}");
}

#[test]
fn an_index_that_a_load_decides_is_a_chain_too() {
    // The step of a search by halves without branches.
    let flow = looped(&[
        Instruction::with2(Code::Cmp_rm64_r64, indexed(RDI, RAX, 8), RSI).unwrap(),
        Instruction::with2(Code::Cmovb_r64_rm64, RAX, RDX).unwrap(),
    ]);
    assert_eq!(flow.origins[0], Some(Origin::Chained));
    assert!((flow.chain - 7.0).abs() < 1e-9, "a load, a comparison, a choice: {flow:?}");
}

#[test]
fn an_array_is_a_stride_and_its_sum_a_short_chain() {
    let flow = looped(&[add_from(RAX, at(RDI)), add(RDI, 8)]);
    assert_eq!(flow.origins, [Some(Origin::Stride(Some(8))), None]);
    assert!((flow.chain - 1.0).abs() < 1e-9, "{flow:?}");
    let flow = looped(&[add_float(XMM0, indexed(RDI, RCX, 8)), add(RCX, -1)]);
    assert_eq!(flow.origins[0], Some(Origin::Stride(Some(-8))));
    assert!((flow.chain - 2.0).abs() < 1e-9, "{flow:?}");
}

#[test]
fn a_stride_may_stand_in_a_register_or_be_none() {
    let step = Instruction::with2(Code::Add_rm64_r64, RDI, RDX).unwrap();
    assert_eq!(looped(&[add_from(RAX, at(RDI)), step]).origins[0], Some(Origin::Stride(None)));
    assert_eq!(looped(&[add_from(RAX, at(RDI)), add(RCX, 1)]).origins[0], Some(Origin::Constant));
    // A copy of an induction register, moved by a constant, has its stride.
    let copy = Instruction::with2(Code::Lea_r64_m, RDX, MemoryOperand::with_base_displ(RDI, 24)).unwrap();
    let flow = looped(&[copy, add_from(RAX, at(RDX)), add(RDI, 16)]);
    assert_eq!(flow.origins[1], Some(Origin::Stride(Some(16))));
}

#[test]
fn a_gather_needs_a_load_and_is_no_chain() {
    let flow = looped(&[load(RCX, at(RSI)), add_from(RAX, indexed(RDI, RCX, 8)), add(RSI, 8)]);
    assert_eq!(flow.origins, [Some(Origin::Stride(Some(8))), Some(Origin::Loaded), None]);
    assert!((flow.chain - 1.0).abs() < 1e-9, "{flow:?}");
}

#[test]
fn a_value_is_forwarded_from_the_store_to_its_address() {
    let place = MemoryOperand::with_base_displ(RSP, 8);
    let flow = looped(&[
        Instruction::with2(Code::Addsd_xmm_xmmm64, XMM0, place).unwrap(),
        Instruction::with2(Code::Movsd_xmmm64_xmm, place, XMM0).unwrap(),
        Instruction::with2(Code::Xorps_xmm_xmmm128, XMM0, XMM0).unwrap(),
    ]);
    assert!((flow.chain - 7.0).abs() < 1e-9, "forwarding and an addition: {flow:?}");
    // Where the address has changed, nothing is forwarded.
    let flow = looped(&[
        Instruction::with2(Code::Addsd_xmm_xmmm64, XMM0, at(RDI)).unwrap(),
        Instruction::with2(Code::Movsd_xmmm64_xmm, at(RDI), XMM0).unwrap(),
        Instruction::with2(Code::Xorps_xmm_xmmm128, XMM0, XMM0).unwrap(),
        add(RDI, 8),
    ]);
    assert!(flow.chain <= 1.0, "{flow:?}");
}

#[test]
fn a_register_that_is_zeroed_ends_a_chain() {
    let zero = Instruction::with2(Code::Xor_r32_rm32, Register::EAX, Register::EAX).unwrap();
    let multiply = Instruction::with2(Code::Imul_r64_rm64, RAX, RAX).unwrap();
    assert!(looped(&[multiply]).chain > 2.9);
    assert!(looped(&[zero, multiply]).chain < 0.1);
}

#[test]
fn a_branch_knows_the_loads_that_decide_it() {
    let compare = Instruction::with2(Code::Cmp_r64_rm64, RSI, at(RDI)).unwrap();
    let branch = Instruction::with_branch(Code::Jb_rel8_64, 0x1000).unwrap();
    let flow = looped(&[compare, add(RDI, 8), branch]);
    // The addition overwrites the flags: nothing decides the branch but the address.
    assert_eq!(flow.decided_by, [(2, vec![])]);
    let flow = looped(&[compare, branch, add(RDI, 8)]);
    assert_eq!(flow.decided_by, [(1, vec![0])]);
}

#[test]
fn without_a_loop_nothing_is_handed_on() {
    let flow = of_sequence(&steps(&[load(RAX, at(RAX)), load(RCX, at(RAX)), load(RBX, at(RDI))]), WIDTH);
    let origins = [Origin::Computed, Origin::Loaded, Origin::Computed].map(Some);
    assert_eq!((flow.origins.as_slice(), flow.chain), (&origins[..], 0.0));
}

#[test]
fn units_bound_the_throughput() {
    let divide = Instruction::with2(Code::Divsd_xmm_xmmm64, XMM0, Register::XMM1).unwrap();
    assert!((of_sequence(&steps(&[divide]), WIDTH).throughput - 4.0).abs() < 1e-9);
    let loads = [load(RAX, at(RDI)), load(RCX, at(RSI)), load(RBX, at(RDX)), load(RDX, at(RDX))];
    assert!((of_sequence(&steps(&loads), WIDTH).throughput - 2.0).abs() < 1e-9);
    assert!((of_sequence(&steps(&[add(RAX, 1); 12]), WIDTH).throughput - 2.0).abs() < 1e-9);
}

/// A core with round figures.
const CORE: Core = Core {
    width: 4.0,
    window: 200.0,
    parallel: [10.0; 3],
    near: 1.0,
    waits: [10.0, 100.0, 400.0],
    streamed: [1.0, 5.0, 20.0],
    translations: [0.0; 2],
    walks: 1.0,
    misprediction: 20.0,
};

fn from_memory(count: f64) -> Events {
    Events { served: [0.0, 0.0, count], ..Events::default() }
}

/// Cycles of an iteration beyond its base.
fn beyond(iteration: &Iteration, events: &Events, role: Role) -> f64 {
    cost(events, role, &iteration.exposed(&CORE), &CORE).iter().sum()
}

#[test]
fn misses_that_wait_cost_more_than_misses_that_overlap() {
    let one = from_memory(1.0);
    let iteration = Iteration { instructions: 20.0, base: 5.0, again: 1.0, ..Iteration::default() };
    let chained = beyond(&Iteration { chained: one, ..iteration }, &one, Role::Chained);
    assert!((chained - 400.0).abs() < 1e-6, "{chained}");
    // Ten iterations stand in the window, and the tenth part of a wait is each one's.
    let independent = beyond(&Iteration { independent: one, ..iteration }, &one, Role::Independent);
    assert!((independent - 35.0).abs() < 1e-6, "a tenth of 400, of which 5 are hidden: {independent}");
    let streamed = beyond(&Iteration { streams: one, ..iteration }, &one, Role::Streamed);
    assert!((streamed - 15.0).abs() < 1e-6, "20 of bandwidth behind 5 of base: {streamed}");
}

#[test]
fn the_base_hides_streams_and_short_waits() {
    let iteration = Iteration { instructions: 100.0, base: 30.0, again: 1.0, ..Iteration::default() };
    let one = from_memory(1.0);
    assert_eq!(beyond(&Iteration { streams: one, ..iteration }, &one, Role::Streamed), 0.0);
    let near = Events { served: [1.0, 0.0, 0.0], ..Events::default() };
    assert_eq!(beyond(&Iteration { independent: near, ..iteration }, &near, Role::Independent), 0.0);
}

#[test]
fn mispredictions_shorten_the_view_for_chains_and_short_chains_stand_side_by_side() {
    let one = from_memory(1.0);
    let iteration = Iteration { instructions: 20.0, base: 5.0, again: 1.0, ..Iteration::default() };
    // Chains of two iterations: five of them stand in the window.
    let chains = Iteration { again: 0.5, chained: one, ..iteration };
    assert!((beyond(&chains, &one, Role::Chained) - 80.0).abs() < 1e-6);
    // With a mispredicted branch in each, only the next one begins meanwhile.
    let wrong = Iteration { mispredictions: 0.5, ..chains };
    assert!((beyond(&wrong, &one, Role::Chained) - 200.0).abs() < 1e-6);
    // Two lines of one object come together.
    let two = from_memory(2.0);
    let object = Iteration { chained: two, ..iteration };
    assert!((beyond(&object, &two, Role::Chained) - 400.0).abs() < 1e-6);
}
