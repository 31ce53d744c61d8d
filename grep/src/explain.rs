//! `--explain` and `--debug-program`: show how a pattern is searched.

use super::arguments::Engine;
use super::card;
use super::matching::Matching;
use super::settings::Settings;
use anyhow::{bail, Result};
use present::output::print;

/// Prints how the pattern is searched.
///
/// # Errors
/// When the pattern is refused, or output cannot be written.
pub(super) fn run(settings: &Settings) -> Result<()> {
    let matching = Matching::new(settings)?;
    let mut out = sentence(&matching);
    if let (Engine::Auto | Engine::Cuda, Matching::Query(query)) = (settings.arguments.engine, &matching) {
        out += &format!("graphics card: {}\n", card::choose(settings, query.main()).why);
    }
    print(&out)
}

/// How the pattern is searched, in lines.
pub(super) fn sentence(matching: &Matching) -> String {
    match matching {
        Matching::Query(query) => query.main().explain(),
        Matching::Pcre2(candidates) => {
            let lines = match candidates.superset() {
                Some(superset) => format!("candidate lines:\n{}", superset.explain()),
                None => String::from("candidate lines: all\n"),
            };
            format!("engine: pcre2 (compiled to machine code where that is possible)\n{lines}")
        }
    }
}

/// The stages that can be printed.
const STAGES: &[&str] = &["hir", "program", "all"];

/// Prints a stage of the pattern's bit-stream program.
///
/// # Errors
/// When the pattern is refused or has no program, the stage does not exist, or output cannot be
/// written.
pub(super) fn program(settings: &Settings) -> Result<()> {
    let stage = settings.arguments.program_stage.as_str();
    if !STAGES.contains(&stage) {
        bail!("there is no stage {stage:?}: the stages are {}", STAGES.join(", "));
    }
    let Matching::Query(query) = Matching::new(settings)? else {
        bail!("PCRE2 runs this pattern, and its programs are not bit-stream programs");
    };
    let mut out = String::new();
    if stage != "program" {
        out += &format!("{:#?}\n", query.main().hir());
    }
    if stage != "hir" {
        match query.main().program() {
            Some(program) => out += &program.to_string(),
            None => bail!("the engine {} runs this pattern, which has no program", query.main().engine()),
        }
    }
    print(&out)
}
