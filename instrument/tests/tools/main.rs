//! Tools against the slow twin, the profile and hand-made truth: counters, payloads, traces,
//! refusals.
//!
//! One run at a time: the engine waits for any child of the test's process, as does the twin.

mod probe;

use event::file::{Ending, Reader};
use event::{
    Access, Check, Decoder, FetchFilter, Filter, ModifyFilter, PageFilter, RecordKind, ReferenceKind,
    SetFilter, Sink, StateLayout, StoreFilter, Stream,
};
use lightfoot_instrument::reference::{self, Reference, StepEnding};
use lightfoot_instrument::tool::{
    run_named, run_tool, BlockView, Counter, Event, InstructionView, Instrumenter, Procedure, Procedures,
    References, Register, Report, Requests, Summary, Sums, Tool, Transfer, Value, When,
};
use lightfoot_instrument::tools::{
    find, BranchMix, BuiltinTool, InstructionCount, OpcodeMix, Setting, TOOLS,
};
use lightfoot_instrument::{Command, ErrorKind, Exit, Module, Options, Outcome};
use probe::{build, everything, fixed_addresses, run, true_command, Probe};
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn counting_tools_agree_with_the_profile() {
    let _alone = alone();
    for command in
        [true_command(), build("exit42.s"), build("signals.s"), build("sorting.c"), build("executes.c")]
    {
        let (outcome, report) = run(&command, &mut InstructionCount);
        assert_eq!(report.total("instructions"), outcome.profile.instructions_retired(), "{command:?}");
        let (outcome, report) = run(&command, &mut OpcodeMix);
        assert_eq!(report.total("instructions"), outcome.profile.instructions_retired(), "{command:?}");
        let sum: u64 = report.rows.iter().map(|r| r.values[0]).sum();
        assert_eq!(sum, report.total("instructions"));
    }
    assert_eq!(run(&build("payloads.s"), &mut InstructionCount).1.total("instructions"), 56);
}

#[test]
fn branches_are_those_of_the_twin() {
    if !fixed_addresses() {
        return;
    }
    let _alone = alone();
    for command in [true_command(), build("payloads.s"), build("overlap.s")] {
        let truth = twin_branches(&command);
        let (outcome, report) = run(&command, &mut BranchMix);
        let name = |ip: &u64| format!("{ip:#x}");
        let found: BTreeMap<&str, &[u64]> =
            report.rows.iter().map(|r| (r.name.as_str(), r.values.as_slice())).collect();
        for (ip, outcomes) in &truth {
            assert_eq!(found[name(ip).as_str()], outcomes, "{command:?}: the branch at {ip:#x}");
        }
        let both =
            report.total("conditional branches taken") + report.total("conditional branches not taken");
        assert_eq!(both, conditional_executions(&outcome));
    }
}

/// Times taken and not taken by branch, of those whose target is not what follows anyway.
fn twin_branches(command: &Command) -> BTreeMap<u64, [u64; 2]> {
    let mut branches: BTreeMap<u64, [u64; 2]> = BTreeMap::new();
    let mut pending: Option<(u64, u64)> = None;
    reference::run(command, &mut |step| {
        if let Some((ip, next)) = pending.take() {
            branches.entry(ip).or_default()[usize::from(step.ip == next)] += 1;
        }
        let i = step.instruction;
        let conditional = i.flow_control() == iced_x86::FlowControl::ConditionalBranch;
        pending = (conditional && i.near_branch_target() != i.next_ip()).then(|| (step.ip, i.next_ip()));
    })
    .unwrap();
    branches
}

/// Executions of blocks that end with a conditional branch.
fn conditional_executions(outcome: &Outcome) -> u64 {
    let profile = &outcome.profile;
    let conditional = |b: &&lightfoot_instrument::Block| {
        let last = &profile.instructions[(b.first + b.count - 1) as usize];
        let code = iced_x86::Code::try_from(usize::from(last.code)).unwrap();
        code.flow_control() == iced_x86::FlowControl::ConditionalBranch
    };
    profile.blocks.iter().filter(conditional).map(|b| b.executions).sum()
}

/// The twin's references by those instructions that `wanted` picks.
fn twin_references(
    command: &Command,
    mut wanted: impl FnMut(&reference::SingleStep<'_>) -> bool,
) -> Vec<Reference> {
    let mut references = Vec::new();
    reference::run(command, &mut |step| {
        if wanted(step) {
            references.extend_from_slice(step.references);
        }
    })
    .unwrap();
    references
}

#[test]
fn a_memory_trace_reads_back_as_the_twins_references() {
    if !fixed_addresses() {
        return;
    }
    let _alone = alone();
    for command in [build("refs_string.s"), build("strings.s"), build("payloads.s"), build("signals.s")] {
        let output = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("trace");
        let setting = Setting { output: Some(output.clone()) };
        let (_, report) = run(&command, &mut *(find("memory-trace").unwrap().new)(&setting).unwrap());
        let truth = twin_references(&command, |_| true);
        let found = read_trace(&output);
        assert_eq!(found.len(), truth.len(), "{command:?}");
        assert_eq!(found, truth, "{command:?}");
        assert!(report.total("records") > 0);
    }
    // After an exec the numbers of sites start again in the engine; in the file they run on.
    let output = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("trace");
    let setting = Setting { output: Some(output.clone()) };
    run(&build("executes.c"), &mut *(find("memory-trace").unwrap().new)(&setting).unwrap());
    read_trace(&output);
}

/// The references of a trace file that the checker finds nothing wrong with.
fn read_trace(path: &Path) -> Vec<Reference> {
    let mut reader = Reader::new(std::fs::File::open(path).unwrap()).unwrap();
    assert_eq!(reader.header().stream, Stream::Full);
    let layout: StateLayout = reader.header().layout;
    let mut batches = Vec::new();
    while let Some(batch) = reader.batch().unwrap() {
        batches.push(batch);
    }
    assert_eq!(reader.ending(), Some(Ending::Complete));
    let mut check = Check::new(Stream::Full, Some(reader.sites().clone()));
    let mut decoders: BTreeMap<u32, Decoder> = BTreeMap::new();
    let mut references = Vec::new();
    for batch in batches {
        check.records(batch.thread, &batch.records);
        let decoder = decoders.entry(batch.thread).or_insert_with(|| Decoder::new(batch.thread, 64, layout));
        for record in &batch.records {
            let emit = |r: event::Reference| {
                if let ReferenceKind::Data(access) = r.kind {
                    references.push(Reference { access, address: r.address, size_bytes: r.size_bytes });
                }
            };
            decoder.decode(record, reader.sites(), emit).unwrap();
        }
    }
    check.finish();
    assert_eq!(check.violation_count, 0, "{:?}", check.violations.first());
    references
}

/// Direction and size of a touch as a tag.
fn tag(kind: RecordKind, size_bytes: u32) -> u32 {
    size_bytes << 4 | kind as u32
}

/// What an address event says happened.
fn references_of(event: &Event) -> Vec<Reference> {
    let (address, size_bytes) = (event.value, event.tag >> 4);
    let one = |access| Reference { access, address, size_bytes };
    match event.tag & 15 {
        0 => vec![one(Access::Load)],
        1 => vec![one(Access::Store)],
        2 => vec![one(Access::Load), one(Access::Store)],
        _ => vec![one(Access::Prefetch)],
    }
}

#[test]
fn addresses_are_those_of_the_twin_before_and_after() {
    if !fixed_addresses() {
        return;
    }
    let _alone = alone();
    let listed = |step: &reference::SingleStep<'_>, varying: &HashSet<u64>| !varying.contains(&step.ip);
    for name in ["refs_integer.s", "payloads.s", "stack.s", "riprel.s", "segment.s", "flags.s", "signals.s"] {
        let command = build(name);
        for when in [When::Before, When::After] {
            let varying = Arc::new(Mutex::new(HashSet::new()));
            let noted = varying.clone();
            let mut probe = Probe::new(move |block: &BlockView<'_>, ask: &mut Requests| {
                for i in block.instructions() {
                    if i.references() == References::Varying {
                        noted.lock().unwrap().insert(i.address());
                    }
                    addresses(&i, when, ask);
                }
            });
            run(&command, &mut probe);
            let varying = varying.lock().unwrap().clone();
            let truth = twin_references(&command, |step| match when {
                When::Before => listed(step, &varying),
                When::After => {
                    let next = matches!(
                        step.instruction.flow_control(),
                        iced_x86::FlowControl::Next | iced_x86::FlowControl::Exception
                    );
                    listed(step, &varying) && next && step.ending == StepEnding::Retired
                }
            });
            let found: Vec<Reference> = probe.events.iter().flat_map(references_of).collect();
            let differs = found.iter().zip(&truth).position(|(a, b)| a != b);
            assert_eq!(differs, None, "{name} {when:?}: {:x?}", differs.map(|n| (found[n], truth[n])));
            assert_eq!(found.len(), truth.len(), "{name} {when:?}");
            assert!(!found.is_empty());
        }
    }
}

/// Asks for every listed address of `i`.
fn addresses(i: &InstructionView<'_>, when: When, ask: &mut Requests) {
    for (n, touch) in i.touches().enumerate() {
        let tag = tag(touch.kind, touch.size_bytes);
        match when {
            When::Before => ask.before(i, Value::Address(n), tag),
            When::After if i.transfer() == Transfer::None => ask.after(i, Value::Address(n), tag),
            When::After => {}
        }
    }
}

#[test]
fn registers_and_constants_carry_known_values() {
    let _alone = alone();
    let mut probe = Probe::new(|block: &BlockView<'_>, ask: &mut Requests| {
        ask.at_start(Value::Constant(0xfedc_ba98_7654_3210), 9);
        for i in block.instructions() {
            if i.bytes() == [0x48, 0xff, 0xcb] {
                ask.before(&i, Value::Register(Register::Rbx), 1);
                ask.after(&i, Value::Register(Register::Rbx), 2);
                ask.after(&i, Value::Constant(7), 3);
                ask.before(&i, Value::Register(Register::R12), 4);
            }
            // mov rax, 7: what was loaded before it is dead, and is to be seen all the same.
            if i.register(0) == Some(Register::Rax) && i.bytes().len() == 7 {
                ask.before(&i, Value::Register(Register::Rax), 5);
                ask.after(&i, Value::Register(Register::Rax), 6);
            }
            if i.bytes() == [0x53] {
                ask.before(&i, Value::Register(Register::Rsp), 7);
                ask.after(&i, Value::Register(Register::Rsp), 8);
            }
        }
    });
    let (outcome, _) = run(&build("payloads.s"), &mut probe);
    assert_eq!(outcome.exit, Exit::Code(2));
    let values =
        |tag: u32| -> Vec<u64> { probe.events.iter().filter(|e| e.tag == tag).map(|e| e.value).collect() };
    assert_eq!(values(1), [5, 4, 3, 2, 1]);
    assert_eq!(values(2), [4, 3, 2, 1, 0]);
    assert_eq!(values(3), [7; 5]);
    assert_eq!(values(4), [0x1234_5678_9abc_def0; 5]);
    assert_eq!(values(5), [55, 44, 33, 22, 11]);
    assert_eq!(values(6), [7; 5]);
    assert!(values(7).iter().zip(values(8)).all(|(before, after)| before - 8 == after));
    let blocks: u64 = outcome.profile.blocks.iter().map(|b| b.executions).sum();
    assert_eq!(values(9), vec![0xfedc_ba98_7654_3210; blocks as usize]);
}

#[test]
fn a_register_that_only_an_event_still_wants_is_not_borrowed() {
    let _alone = alone();
    let mut probe = Probe::new(|block: &BlockView<'_>, ask: &mut Requests| {
        for i in block.instructions().filter(|i| i.bytes() == [0x90]) {
            ask.before(&i, Value::Constant(0), 0);
            ask.after(&i, Value::Register(Register::Rax), 1);
        }
    });
    run(&build("payloads.s"), &mut probe);
    let values: Vec<u64> = probe.events.iter().filter(|e| e.tag == 1).map(|e| e.value).collect();
    assert_eq!(values, [55, 44, 33, 22, 11]);
}

#[test]
fn programs_do_not_notice_events_at_every_instruction() {
    let _alone = alone();
    let names = [
        "refs_integer.s",
        "refs_string.s",
        "refs_x87.s",
        "strings.s",
        "flags.s",
        "riprel.s",
        "indirect.s",
        "stack.s",
        "bits.s",
        "overlap.s",
        "x87.s",
        "segment.s",
        "kernel.s",
        "signals.s",
        "rewrite.s",
        "payloads.s",
        "sorting.c",
        "handlers.c",
    ];
    for name in names {
        let command = build(name);
        let native = std::process::Command::new(&command.program).status().unwrap();
        let mut probe = Probe::new(everything);
        let (outcome, _) = run(&command, &mut probe);
        assert_eq!(outcome.exit, Exit::Code(native.code().unwrap()), "{name}");
        let (plain, _) = run(&command, &mut InstructionCount);
        if name != "handlers.c" {
            let (with, without) = (&outcome.profile, &plain.profile);
            assert_eq!(with.instructions_retired(), without.instructions_retired(), "{name}");
        }
        unbroken(&probe, name);
    }
}

/// What an instruction left in the registers is what the next of its block finds.
fn unbroken<F>(probe: &Probe<F>, name: &str) {
    let registers: Vec<_> = probe.events.iter().zip(&probe.places).filter(|(e, _)| e.tag < 16).collect();
    let mut compared = 0;
    for pair in registers.chunks_exact(16).collect::<Vec<_>>().windows(2) {
        let (left, found) = (pair[0], pair[1]);
        let values = |half: &[(&Event, &(u64, When))]| half.iter().map(|(e, _)| e.value).collect::<Vec<_>>();
        let next = left[0].1 .1 == When::After && found[0].1 .1 == When::Before;
        // Signal handlers come in between.
        if next && found[0].1 .0.wrapping_sub(left[0].1 .0) <= 15 {
            assert_eq!(values(left), values(found), "{name}: between {:x?} and {:x?}", left[0].1, found[0].1);
            compared += 1;
        }
    }
    assert!(compared > 0, "{name}");
}

#[test]
fn events_stand_among_a_streams_records() {
    if !fixed_addresses() {
        return;
    }
    let _alone = alone();
    let sets = SetFilter { sets: 64, line_bytes: 64 };
    let filter = Filter {
        data: sets,
        instruction: sets,
        data_page: None,
        instruction_page: None,
        stores: StoreFilter::LikeLoads,
        fetches: FetchFilter::FirstLevel { line_ways: 8, page_ways: 0 },
        pages: PageFilter::LastOfSet,
        modifies: ModifyFilter::Both,
    };
    for name in ["refs_string.s", "strings.s", "signals.s", "flags.s"] {
        let command = build(name);
        let counts = {
            let mut probe = Probe::new(everything);
            run(&command, &mut probe);
            probe.events.len()
        };
        let all_data = Stream::Filtered(Filter { data: SetFilter::NOTHING, ..filter });
        let whole = [Stream::Full, Stream::References, all_data];
        let others = [Stream::Filtered(filter), Stream::Allocated, Stream::Nothing];
        for stream in whole.into_iter().chain(others) {
            let mut probe = Probe { stream, ..Probe::new(everything) };
            let (outcome, _) = run(&command, &mut probe);
            assert_eq!(outcome.exit, Exit::Code(0), "{name} {stream:?}");
            assert_eq!(probe.events.len(), counts, "{name} {stream:?}");
            let mut check = Check::new(stream, Some(probe.sites.clone()));
            check.records(0, &probe.records);
            check.finish();
            assert_eq!(check.violation_count, 0, "{name} {stream:?}: {:?}", check.violations.first());
            if whole.contains(&stream) {
                let truth = twin_references(&command, |_| true);
                assert_eq!(data_references(&probe), truth, "{name}");
            }
            if stream == Stream::Allocated {
                let truth = twin_references(&command, |step| may_be_allocated(step.instruction));
                assert_eq!(data_references(&probe), truth, "{name}");
            }
        }
    }
}

/// Whether the references of an instruction are those of a register other than the stack pointer.
fn may_be_allocated(instruction: &iced_x86::Instruction) -> bool {
    use iced_x86::{OpKind, Register as Named};
    let is_operand = |operand| instruction.op_kind(operand) == OpKind::Memory;
    if instruction.is_stack_instruction() || !(0..instruction.op_count()).any(is_operand) {
        return instruction.is_string_instruction();
    }
    let fixed = [Named::None, Named::RSP, Named::RIP];
    instruction.memory_index() != Named::None || !fixed.contains(&instruction.memory_base())
}

#[test]
fn events_carry_the_number_of_instructions_before_them() {
    if !fixed_addresses() {
        return;
    }
    let _alone = alone();
    for name in ["refs_string.s", "strings.s", "signals.s", "flags.s"] {
        let command = build(name);
        let mut twin = Vec::new();
        reference::run(&command, &mut |step| {
            if !step.continues {
                twin.push((step.ip, step.index));
            }
        })
        .unwrap();
        let ask = |block: &BlockView<'_>, ask: &mut Requests| {
            block.instructions().for_each(|i| ask.before(&i, Value::Instructions, 0));
        };
        let mut probe = Probe { sums: Sums::Instructions, ..Probe::new(ask) };
        run(&command, &mut probe);
        let found: Vec<_> =
            probe.places.iter().zip(&probe.events).map(|(place, event)| (place.0, event.value)).collect();
        assert_eq!(found.len(), twin.len(), "{name}");
        let wrong = found.iter().zip(&twin).position(|(found, twin)| found != twin);
        assert_eq!(wrong.map(|at| (found[at], twin[at])), None, "{name}");
    }
}

fn data_references<F>(probe: &Probe<F>) -> Vec<Reference> {
    let mut decoder = Decoder::new(0, 64, StateLayout::default());
    let mut references = Vec::new();
    for record in &probe.records {
        let emit = |r: event::Reference| {
            if let ReferenceKind::Data(access) = r.kind {
                references.push(Reference { access, address: r.address, size_bytes: r.size_bytes });
            }
        };
        decoder.decode(record, &probe.sites, emit).unwrap();
    }
    references
}

#[test]
fn what_cannot_be_had_is_refused_with_a_sentence() {
    let _alone = alone();
    let refused = |instrument: fn(&BlockView<'_>, &mut Requests), words: &str| {
        let error = run_tool(&true_command(), &Options::default(), &mut Probe::new(instrument)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Tool);
        assert!(error.to_string().contains(words), "{error}");
    };
    refused(|b, ask| ask.after(&b.last().unwrap(), Value::Constant(0), 0), "is a control transfer");
    refused(|b, ask| ask.before(&b.last().unwrap(), Value::Address(9), 0), "has no reference number 9");
    refused(|_, ask| ask.at_start(Value::Address(0), 0), "no instruction with an address");
    refused(|_, ask| (0..65).for_each(|_| ask.at_start(Value::Constant(0), 0)), "more than 64 events");
    refused(|_, ask| ask.count_taken(Counter::default()), "does not end with a conditional branch");
}

/// Every block is a function, named after its file.
struct Everything;

impl Procedures for Everything {
    fn at(&mut self, module: &Module, address: u64) -> Option<Procedure> {
        let range = module.start..module.end;
        assert!(range.contains(&address), "{address:#x} lies in its module");
        Some(Procedure { name: module.path.file_name()?.to_str()?.to_string(), range: address..module.end })
    }
}

#[test]
fn functions_have_the_names_that_the_caller_knows() {
    let _alone = alone();
    let mut probe = Probe::new(|block: &BlockView<'_>, ask: &mut Requests| {
        assert_eq!(block.procedure().map(|p| p.name.as_str()), Some("payloads_s"));
        assert!(block.is_entry());
        ask.count_block(Counter { what: 1, of: 0 });
    });
    let (outcome, report) =
        run_named(&build("payloads.s"), &Options::default(), Box::new(Everything), &mut probe).unwrap();
    assert_eq!(outcome.exit, Exit::Code(2));
    assert_eq!(report.total("1/0x0"), 6);
    assert_eq!(probe.started.len(), 1);
    assert!(probe.started[0].path.ends_with("payloads_s"));
}

#[test]
fn every_program_starts_before_its_events() {
    let _alone = alone();
    let mut probe = Probe::new(|_: &BlockView<'_>, ask: &mut Requests| ask.at_start(Value::Constant(1), 0));
    let (outcome, _) = run(&build("executes.c"), &mut probe);
    let images: Vec<u32> = probe.started.iter().map(|p| p.image).collect();
    assert_eq!(images, [0, 1, 2]);
    assert_eq!(probe.events.len() as u64, outcome.profile.blocks.iter().map(|b| b.executions).sum::<u64>());
}

/// A tool that no list has: blocks entered, as a member of the family.
struct BlocksEntered;

const ENTERED: Counter = Counter { what: 0, of: 0 };

impl Tool for BlocksEntered {
    fn instrumenter(&mut self) -> Instrumenter {
        Box::new(|_, requests| requests.count_block(ENTERED))
    }

    fn finish(&mut self, summary: &Summary<'_>) -> std::io::Result<Report> {
        Ok(Report::totals([("blocks entered", summary.counter(ENTERED))]))
    }
}

/// What holds for every tool that can be named: it runs a program as it runs natively, reports
/// something with a name, or says what it lacks.
fn behaves(tool: &BuiltinTool) {
    let output = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("tools/{}.out", tool.name));
    let mut made = (tool.new)(&Setting { output: Some(output) }).unwrap();
    let (outcome, report) = run(&build("payloads.s"), made.as_mut());
    assert_eq!(outcome.exit, Exit::Code(2), "{}", tool.name);
    let named = report.totals.iter().all(|(name, _)| !name.is_empty());
    assert!(named && (tool.name == "nothing" || !report.totals.is_empty()), "{}", tool.name);
    assert!(!tool.name.is_empty() && !tool.description.is_empty());
}

#[test]
fn a_tool_is_one_file_and_one_entry() {
    let _alone = alone();
    let unlisted = BuiltinTool {
        name: "blocks-entered",
        description: "blocks entered",
        new: |_| Ok(Box::new(BlocksEntered)),
    };
    TOOLS.iter().chain([&unlisted]).for_each(behaves);
    let names: HashSet<&str> = TOOLS.iter().map(|t| t.name).collect();
    assert_eq!(names.len(), TOOLS.len());
    assert!(TOOLS.iter().all(|tool| find(tool.name).is_some_and(|found| found.name == tool.name)));
    assert!(find("memory-trace").is_some_and(|t| (t.new)(&Setting::default()).is_err()));
}
