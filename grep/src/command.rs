//! Runs a search from its command line to its exit status.

use crate::arguments::{Arguments, Generated, Mode, Special};
use crate::flag::FLAGS;
use crate::settings::Settings;
use crate::{config, explain, flag, help, list, say, search};
use anyhow::Result;
use present::completion;
use present::help::CommandHelp;
use present::manual::manual;
use present::output::print;
use std::ffi::OsString;

/// The program that offers the search. It provides its name and, for `--generate`, the whole
/// command line.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// The words before the options, such as `lightfoot grep`.
    pub name: &'static str,
    /// The help of the whole program, which includes that of [`command_help`].
    pub root: fn() -> CommandHelp,
}

/// The help from which the manual page and completions are written. `words` are the words of
/// [`Program::name`].
pub fn command_help(words: &[&str]) -> CommandHelp {
    help::command_help(FLAGS, words)
}

/// Runs the search with the words behind the program's name, and returns its exit status.
pub fn main(program: Program, words: &[OsString]) -> u8 {
    say::name(program.name);
    match run(program, words) {
        Ok(status) => status,
        Err(error) if is_broken_pipe(&error) => 0,
        Err(error) => {
            say::configure(true, true);
            say::error(format_args!("{error:#}"));
            2
        }
    }
}

fn run(program: Program, words: &[OsString]) -> Result<u8> {
    let arguments = Arguments { program: program.name, ..parse(words)? };
    say::configure(!arguments.no_messages, !arguments.no_ignore.messages);
    if let Some(special) = arguments.special {
        print(&special_text(special, program.name))?;
        return Ok(0);
    }
    if let Mode::Generate(kind) = arguments.mode {
        print(&generated(kind, program))?;
        return Ok(0);
    }
    pattern::vectors::requested()?;
    let settings = Settings::new(arguments)?;
    let matched = match settings.arguments.mode {
        Mode::Search(_) => search::run(&settings)?,
        Mode::Files => list::files(&settings)?,
        Mode::Types => list::types(&settings)?,
        Mode::Explain => explain::run(&settings).map(|()| true)?,
        Mode::Program => explain::program(&settings).map(|()| true)?,
        Mode::Generate(_) => true,
    };
    Ok(match (matched, say::erred()) {
        (true, true) if settings.arguments.quiet => 0,
        (_, true) => 2,
        (true, false) => 0,
        (false, false) => 1,
    })
}

/// Parses the words of the configuration file, and then those of the command line.
fn parse(words: &[OsString]) -> Result<Arguments> {
    let arguments = flag::parse(FLAGS, words.iter().cloned())?;
    if arguments.special.is_some() || arguments.no_config {
        return Ok(arguments);
    }
    let mut all = config::words();
    if all.is_empty() {
        return Ok(arguments);
    }
    all.extend(words.iter().cloned());
    flag::parse(FLAGS, all)
}

fn special_text(special: Special, program: &str) -> String {
    match special {
        Special::ShortHelp => help::short(FLAGS, program),
        Special::LongHelp => help::long(FLAGS, program),
        Special::Version => help::version(program),
        Special::Pcre2Version => help::pcre2_version(),
    }
}

/// Generates texts as ripgrep does; completions are those of the whole program.
fn generated(kind: Generated, program: Program) -> String {
    let root = (program.root)();
    match kind {
        Generated::Man => {
            let all = root.all();
            let own = all.into_iter().find(|page| page.name() == program.name).unwrap_or(&root);
            manual(own, &root, env!("CARGO_PKG_VERSION"))
        }
        Generated::Completions(shell) => completion::script(&root, shell),
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let kind =
        error.chain().find_map(|cause| cause.downcast_ref::<std::io::Error>()).map(std::io::Error::kind);
    kind == Some(std::io::ErrorKind::BrokenPipe)
}
