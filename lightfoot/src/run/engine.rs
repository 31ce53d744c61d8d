//! The only module that calls `instrument`: runs a program, and gives failures their exit status.

use anyhow::Result;
use heap::ImageHeaps;
use instrument::mark::SharedMarker;
use instrument::probe::ProbePlan;
use instrument::tool::{Probed, Report, Tool};
use instrument::{Children, Command, Exit, Observer, Options, Outcome, Unobserved};
use machine::{Ability, State};
use objects::ObjectTool;
use present::exit::{Failure, FAILURE};
use present::number::{grouped, seconds};

/// Runs `command` under instrumentation.
///
/// # Errors
/// A [`Failure`] with its exit status: 127 if there is no such program, 126 if it cannot be run,
/// else 125.
pub fn run(command: &Command, options: &Options, observer: &mut dyn Observer) -> Result<Outcome> {
    keep_memory(options);
    instrument::run(command, options, observer).map_err(failure)
}

/// Before a run of many images, each of which needs as much memory as the one before.
fn keep_memory(options: &Options) {
    if options.children != Children::Released {
        instrument::keep_freed_memory();
    }
}

/// Runs `command` with a marker, which divides what is counted.
///
/// # Errors
/// The errors of [`run`].
pub fn run_marked(
    command: &Command,
    options: &Options,
    observer: &mut dyn Observer,
    marker: SharedMarker,
) -> Result<Outcome> {
    keep_memory(options);
    instrument::run_marked(command, options, observer, marker).map_err(failure)
}

/// Runs `command` under a tool.
///
/// # Errors
/// The errors of [`run`]; 125 if the tool itself fails.
pub fn run_tool(command: &Command, options: &Options, tool: &mut dyn Tool) -> Result<(Outcome, Report)> {
    instrument::tool::run_tool(command, options, tool).map_err(failure)
}

/// Follows the objects of `command`, and of what it starts if children are followed, with a marker
/// if one is given.
///
/// # Errors
/// The errors of [`run_tool`].
pub fn run_objects(
    command: &Command,
    options: &Options,
    objects: &mut ObjectTool<'_>,
    marker: Option<SharedMarker>,
) -> Result<Outcome> {
    keep_memory(options);
    instrument::tool::run_observed(command, options, objects.instrumenter(), objects, marker).map_err(failure)
}

/// Follows the heaps of the processes of `command`, with a marker that answers its requests.
///
/// # Errors
/// The errors of [`run_tool`].
pub fn run_heaps(
    command: &Command,
    options: &Options,
    heaps: &mut ImageHeaps,
    marker: SharedMarker,
) -> Result<Outcome> {
    keep_memory(options);
    let options = Options { stream: heaps.stream(), ..options.clone() };
    instrument::tool::run_observed(command, &options, heaps.instrumenter(), heaps, Some(marker))
        .map_err(failure)
}

/// Runs `command` with probes in it under a tool.
///
/// # Errors
/// The errors of [`run_tool`].
pub fn run_probed(
    command: &Command,
    options: &Options,
    tool: &mut dyn Tool,
    plan: ProbePlan,
) -> Result<(Outcome, Probed)> {
    instrument::tool::run_probed(command, options, tool, plan).map_err(failure)
}

/// The signal that ended a program, if one did.
pub fn exit_signal(exit: Exit) -> Option<i32> {
    match exit {
        Exit::Signal(signal) => Some(signal),
        Exit::Code(_) | Exit::RunsOn => None,
    }
}

/// The engine's error with its exit status.
pub(crate) fn failure(error: instrument::Error) -> anyhow::Error {
    let status = u8::try_from(error.exit_status()).unwrap_or(FAILURE);
    Failure { status, sentence: error.to_string() }.into()
}

/// Abilities that a trial of the engine shows on this machine, in addition to those of crate
/// `machine`, which only reads files.
pub fn abilities() -> Vec<Ability> {
    let trial = Command { program: TRIAL.into(), arguments: Vec::new() };
    match run(&trial, &Options::default(), &mut Unobserved) {
        Err(error) => {
            vec![Ability::new(MEASURES, State::No, error.to_string()).with_remedy(
                "allow ptrace: in a container run it with --cap-add=SYS_PTRACE, else see `kernel.yama.ptrace_scope`",
            )]
        }
        Ok(outcome) => {
            let retired = grouped(outcome.profile.instructions_retired());
            let time = seconds(outcome.wall.as_secs_f64());
            let counted = format!("counted {retired} instructions of {TRIAL} in {time}");
            let warnings = outcome
                .warnings
                .into_iter()
                .map(|warning| Ability::new("as natively", State::Partly, warning));
            std::iter::once(Ability::new(MEASURES, State::Yes, counted)).chain(warnings).collect()
        }
    }
}

const TRIAL: &str = "/bin/true";
const MEASURES: &str = "trial: count a program";
