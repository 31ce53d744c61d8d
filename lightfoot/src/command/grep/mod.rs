//! `lightfoot grep`: searches files for lines that match a pattern, with the flags, the output and the exit statuses of ripgrep.
//!
//! `flag` reads the command line into `arguments`, `settings` interprets it, `walk` finds the files, `search` runs workers over them. The
//! engine is the crate `pattern`. The command line is parsed here and not by clap, because flags override each other in their order
//! and a start has a millisecond in all. Exit status: 0 a match, 1 none, 2 an error (an error wins unless `-q`).

mod arguments;
mod card;
mod config;
mod direct;
mod explain;
mod flag;
mod help;
mod list;
mod query;
mod say;
mod search;
mod settings;
mod stdout;
mod walk;
mod worker;

pub(super) use help::page;

use crate::report::output::print;
use anyhow::Result;
use arguments::{Arguments, Generated, Mode, Special};
use settings::Settings;
use std::ffi::OsString;

/// Runs the command with the words behind `grep`; its exit status.
pub fn main(words: &[OsString]) -> u8 {
    match run(words) {
        Ok(status) => status,
        Err(error) if is_broken_pipe(&error) => 0,
        Err(error) => {
            say::configure(true, true);
            say::error(format_args!("{error:#}"));
            2
        }
    }
}

fn run(words: &[OsString]) -> Result<u8> {
    let said = parse(words)?;
    say::configure(!said.no_messages, !said.no_ignore.messages);
    if let Some(special) = said.special {
        print(&special_text(special))?;
        return Ok(0);
    }
    if let Mode::Generate(kind) = said.mode {
        print(&generated(kind)?)?;
        return Ok(0);
    }
    let settings = Settings::new(said)?;
    let matched = match settings.said.mode {
        Mode::Search(_) => search::run(&settings)?,
        Mode::Files => list::files(&settings)?,
        Mode::Types => list::types(&settings)?,
        Mode::Explain => explain::run(&settings).map(|()| true)?,
        Mode::Program => explain::program(&settings).map(|()| true)?,
        Mode::Generate(_) => true,
    };
    Ok(match (matched, say::erred()) {
        (true, true) if settings.said.quiet => 0,
        (_, true) => 2,
        (true, false) => 0,
        (false, false) => 1,
    })
}

/// The command line, behind the words of the configuration file.
fn parse(words: &[OsString]) -> Result<Arguments> {
    let said = flag::parse(words.iter().cloned())?;
    if said.special.is_some() || said.no_config {
        return Ok(said);
    }
    let mut all = config::words();
    if all.is_empty() {
        return Ok(said);
    }
    all.extend(words.iter().cloned());
    flag::parse(all)
}

fn special_text(special: Special) -> String {
    match special {
        Special::ShortHelp => help::short(),
        Special::LongHelp => help::long(),
        Special::Version => help::version(),
        Special::Pcre2Version => help::pcre2_version(),
    }
}

/// As ripgrep writes them; the scripts are those of all commands.
fn generated(kind: Generated) -> Result<String> {
    match kind {
        Generated::Man => super::man::page_of(&["grep".to_owned()]),
        Generated::Completions(shell) => Ok(super::complete::script(shell)),
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let kind =
        error.chain().find_map(|cause| cause.downcast_ref::<std::io::Error>()).map(std::io::Error::kind);
    kind == Some(std::io::ErrorKind::BrokenPipe)
}
