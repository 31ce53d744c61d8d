//! `lightfoot doctor`: describes this machine, what it can measure, what it cannot, why, and the
//! fix.
//!
//! Rows come from crate `machine`, which reads files and CPUID, and from a trial of the engine. An
//! exit status of 1 means that something that the main commands need is missing; with `--measure`,
//! that nothing could be measured.

use super::machines::levels;
use super::measured::{self, Measurement};
use crate::cli::{Doctor, DoctorFormat};
use crate::run::engine;
use anyhow::Result;
use machine::{Ability, Machine, State};
use pattern::kernel::cuda::Cuda;
use present::exit::NEGATIVE;
use present::output::print;
use present::terminal::beside;
use serde::Serialize;

/// Width in columns of the mark in front of a row.
const INDENT: usize = 8;

/// The result of the command, as JSON has it.
#[derive(Debug, Serialize)]
struct Diagnosis {
    schema: u32,
    version: &'static str,
    machine: Machine,
    abilities: Vec<Ability>,
    trials: Vec<Ability>,
    /// With `--measure`: what was measured, or why nothing was.
    #[serde(skip_serializing_if = "Option::is_none")]
    measurement: Option<Measurement>,
}

pub(super) fn run(options: &Doctor) -> Result<u8> {
    // First of all, while no other thread of ours is there.
    let measurement = options.measure.then(measured::measure);
    if let (Some(measurement), DoctorFormat::Text) = (&measurement, options.format) {
        print(&measurement.text())?;
        let Some(path) = measurement.keep()? else { return Ok(NEGATIVE) };
        print(&measured::kept(&path))?;
        return Ok(0);
    }
    let diagnosis = Diagnosis {
        schema: 1,
        version: env!("CARGO_PKG_VERSION"),
        machine: Machine::host(),
        abilities: machine::abilities().into_iter().chain([card()]).collect(),
        trials: engine::abilities(),
        measurement,
    };
    print(&match options.format {
        DoctorFormat::Json => serde_json::to_string_pretty(&diagnosis)? + "\n",
        DoctorFormat::Text => text(&diagnosis),
    })?;
    if let Some(measurement) = &diagnosis.measurement {
        return Ok(if measurement.keep()?.is_some() { 0 } else { NEGATIVE });
    }
    let cannot_run = diagnosis.trials.iter().any(|row| row.state == State::No);
    Ok(if cannot_run { NEGATIVE } else { 0 })
}

/// Whether programs of expressions can run on a graphics card. None of the main commands needs one.
fn card() -> Ability {
    const NAME: &str = "graphics card (grep --engine cuda)";
    let card = match Cuda::first_card() {
        Ok(card) => card,
        Err(error) => return Ability::new(NAME, State::No, error.to_string()),
    };
    let about = format!(
        "{}, {} multiprocessors, {:.0} GiB, compute capability {}.{}",
        card.name,
        card.multiprocessors,
        card.memory_bytes as f64 / (1u64 << 30) as f64,
        card.capability / 10,
        card.capability % 10
    );
    match Cuda::first_compiler() {
        Ok((path, (major, minor))) => {
            Ability::new(NAME, State::Yes, format!("{about}; NVRTC {major}.{minor} in {}", path.display()))
        }
        Err(error) => Ability::new(NAME, State::Partly, format!("{about}; {error}")),
    }
}

fn text(diagnosis: &Diagnosis) -> String {
    let mut out = levels(&diagnosis.machine);
    out.push('\n');
    for row in diagnosis.abilities.iter().chain(&diagnosis.trials) {
        out += &ability(row);
    }
    out
}

fn ability(row: &Ability) -> String {
    let mark = match row.state {
        State::Yes => "yes",
        State::Partly => "partly",
        State::No => "no",
    };
    let mut out = wrapped(mark, &format!("{}: {}", row.name, row.reason));
    if let Some(remedy) = &row.remedy {
        out += &wrapped("", &format!("fix: {remedy}"));
    }
    out
}

/// A paragraph beside its mark.
fn wrapped(mark: &str, text: &str) -> String {
    beside(&format!("{mark:<INDENT$}"), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_says_yes_or_no_why_and_the_fix() {
        let row = Ability::new("hardware counters", State::No, "no PMU").with_remedy("run on bare metal");
        assert_eq!(ability(&row), "no      hardware counters: no PMU\n        fix: run on bare metal\n");
    }
}
