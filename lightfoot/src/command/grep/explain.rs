//! `--explain` and `--debug-program`: how a pattern is searched.

use super::query::Matching;
use super::settings::Settings;
use crate::report::output::print;
use anyhow::Result;

/// Prints what was chosen for the pattern.
///
/// # Errors
/// The pattern is refused, or output cannot be written.
pub(super) fn run(settings: &Settings) -> Result<()> {
    print(&sentence(&Matching::new(settings)?))
}

/// What was chosen, in lines.
pub(super) fn sentence(matching: &Matching) -> String {
    match matching {
        Matching::Query(query) => query.main().explain(),
        Matching::Pcre2(_) => String::from("engine: pcre2 (compiled to machine code where that is possible)\n"),
    }
}

/// Prints a stage of the pattern's bit-stream program.
///
/// # Errors
/// The pattern is refused, there is no such stage, or output cannot be written.
pub(super) fn program(settings: &Settings) -> Result<()> {
    anyhow::bail!("no program: {}", settings.said.program_stage)
}
