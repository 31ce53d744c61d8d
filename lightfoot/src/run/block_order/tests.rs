//! Compares whole runs with single steps, and with runs without block-order analysis.

use super::*;
use instrument::{reference, Command, Options};
use simulate::{Geometry, Levels, Prediction, Predictor, WriteBacks, PREDICTORS};

/// Outcomes and mispredictions with the same predictor, found by single steps.
fn stepped(command: &Command, mut predictor: Predictor) -> (u64, u64) {
    let mut pending = None::<Branch>;
    let (mut resolved, mut wrong) = (0, 0);
    reference::run(command, &mut |step| {
        if let Some(branch) = pending.take() {
            let outcome = branch.outcome(step.ip).expect("no signals here");
            resolved += 1;
            wrong += u64::from(predictor.branch(branch.ip, outcome) == Prediction::Wrong);
        }
        let instruction = step.instruction;
        let conditional = instruction.flow_control() == iced_x86::FlowControl::ConditionalBranch;
        pending = conditional.then(|| Branch {
            ip: step.ip,
            next: instruction.next_ip(),
            target: instruction.near_branch_target(),
        });
    })
    .unwrap();
    (resolved, wrong)
}

#[test]
fn mispredictions_are_those_of_single_steps() {
    let fixed = std::process::Command::new("setarch").args(["x86_64", "-R", "true"]).status();
    if fixed.is_ok_and(|ran| !ran.success()) {
        return eprintln!(
            "skipped: this system refuses personality(ADDR_NO_RANDOMIZE), which single steps take"
        );
    }
    let command = Command { program: "/bin/true".into(), arguments: Vec::new() };
    let levels = Levels::data_only(Geometry::cache(32 << 10, 8, 64));
    let write_backs = [WriteBacks::Ignored, WriteBacks::Counted];
    for (write_backs, predictor) in write_backs.into_iter().zip(PREDICTORS) {
        let stream = simulate::plan_levels(&levels, write_backs).stream;
        let simulation = Simulation::new(&levels, write_backs).unwrap();
        let mut tool = BlockOrderAnalysis::new(Accumulator::Simulated(Box::new(simulation)), stream)
            .with_branches(predictor.new);
        instrument::tool::run_tool(&command, &Options::default(), &mut tool).unwrap();
        let predicted = tool.finish().predicted.unwrap();
        assert_eq!(
            (predicted.resolved, predicted.mispredicted.iter().sum()),
            stepped(&command, (predictor.new)())
        );
        assert_eq!(predicted.hidden, 0);
    }
}

fn simulation(levels: &Levels) -> Accumulator {
    Accumulator::Simulated(Box::new(Simulation::new(levels, WriteBacks::Ignored).unwrap()))
}

#[test]
fn contexts_add_up_to_the_run() {
    let command = Command { program: "/bin/true".into(), arguments: Vec::new() };
    let levels = Levels::data_only(Geometry::cache(32 << 10, 8, 64));
    let stream = simulate::plan_levels(&levels, WriteBacks::Ignored).stream;
    let mut course = BlockOrderAnalysis::new(simulation(&levels), stream).with_calls(simulation(&levels));
    let (outcome, _) = instrument::tool::run_tool(&command, &Options::default(), &mut course).unwrap();
    let found = course.finish();
    let called = found.called.unwrap();
    let lost: u64 = outcome
        .profile
        .cut
        .iter()
        .map(|&(b, k, n)| u64::from(outcome.profile.blocks[b as usize].count - k) * n)
        .sum();
    let instructions: u64 = called.cells.iter().map(|cell| cell.costs.instructions).sum();
    assert_eq!(instructions, outcome.profile.instructions_retired() + lost);
    assert_eq!(called.counts.cache(0).total(), found.counts.cache(0).total());
    assert!(found.counts.cache(0).total() > 0 && called.nodes().len() > 10);
    let names: Vec<&str> = called.nodes()[1..]
        .iter()
        .map(|node| found.symbols.functions()[node.function as usize].name.as_str())
        .collect();
    assert_eq!(names[0], "_start", "{names:?}");
}
