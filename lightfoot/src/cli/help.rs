//! The command line's help, grouped by subject. Manual pages and completions are made from clap's
//! description of it.
//!
//! `grep` parses its flags itself and provides its own table in this form. Hidden commands are left
//! out.

use super::Cli;
use clap::builder::StyledStr;
use clap::{Arg, ArgAction, Command, CommandFactory, FromArgMatches};
use present::help::{Choice, CommandHelp, Entry, Operand, OperandKind, OptionGroup, OptionHelp};
use present::order::SortRows;
use present::terminal::{beside, ENVIRONMENT};
use std::ffi::OsString;

/// The program's own name.
pub const PROGRAM: &str = "lightfoot";

/// Commands by subject, in the order of help and manual.
pub const SUBJECTS: &[(&str, &[&str])] = &[
    ("Measure", &["count", "cache", "heap", "valgrind", "tool", "instrument", "new-tool"]),
    ("Compare", &["bench", "diff", "merge"]),
    ("Traces", &["trace", "show", "align", "perturb", "plan"]),
    ("Kernels", &["grep", "index", "tile"]),
    ("Papers", &["study"]),
    ("This machine", &["doctor", "machines", "completions", "man", "help"]),
];

/// What lightfoot is, for its manual page.
const DESCRIPTION: &[&str] = &[
    "lightfoot measures how a program uses the memory hierarchy. It runs the program, unmodified and without special \
     rights, as annotated copies of its own machine code: every instruction, load and store is counted exactly, and \
     the same run gives the same numbers again. The program keeps its addresses, its output and its exit status.",
    "lightfoot count says how many instructions, loads and stores each function, line, library or thread executed; \
     lightfoot cache says what they missed in simulated caches, TLBs and branch predictors of this machine or another \
     one. lightfoot diff compares two such reports, and lightfoot merge adds up those of several runs. lightfoot trace records metrics over time, lightfoot show draws \
     them, and lightfoot perturb says whether measuring disturbed what was measured. Tools of one's own see every block \
     before it runs.",
    "The libraries that the measurements led to come along: a search with ripgrep's flags (lightfoot grep), index \
     files of sorted keys (lightfoot index), and tile sizes for blocked matrices (lightfoot tile). lightfoot study \
     repeats the published experiments that all of this comes from, on this machine. lightfoot doctor says what can \
     be measured here.",
];

/// Exit statuses of commands that run a program.
const OF_PROGRAMS: &[Entry] = &[
    ("the program's own", "The program ended by itself."),
    ("128 + N", "Signal N ended the program."),
    ("125", "lightfoot itself failed; the message says how."),
    ("126", "The program cannot be run; the message says why."),
    ("127", "There is no such program."),
    ("130", "Ctrl-C ended the measurement; the report is written and marked partial."),
];

/// Exit statuses of all others.
const OF_OTHERS: &[Entry] = &[
    ("0", "Done."),
    ("1", "A negative answer, where an option asks for one (--fail-above, --fail-on, --limit)."),
    ("2", "The command line or what it names cannot be used; the message says why."),
    ("125", "lightfoot itself failed; the message says how."),
];

/// Variables that are read by commands which run programs.
const TRANSLATIONS: &[Entry] = &[
    ("LIGHTFOOT_TRANSLATIONS", "Folder in which translations are kept for the next run; off keeps none."),
    ("XDG_CACHE_HOME, HOME", "Where that folder lies otherwise."),
];

/// The whole command line. Of `grep` it has only the name, because its flags are not clap's.
pub fn root() -> CommandHelp {
    let mut command = Cli::command();
    command.build();
    let mut root = help_of(&command, vec![PROGRAM.to_owned()]);
    root.description = DESCRIPTION;
    root.commands.sort_rows_by_key(|command| place(command.last()).0);
    for command in &mut root.commands {
        command.subject = place(command.last()).1;
    }
    root
}

/// The place of a command in [`SUBJECTS`], and its subject.
fn place(name: &str) -> ((usize, usize), &'static str) {
    let places = SUBJECTS.iter().enumerate().filter_map(|(subject, (title, names))| {
        names.iter().position(|known| *known == name).map(|at| ((subject, at), *title))
    });
    places.min().unwrap_or(((usize::MAX, 0), ""))
}

/// clap's command, with its commands grouped in `--help`.
fn command() -> Command {
    let command = Cli::command();
    let template = template(&command);
    command.help_template(template)
}

impl Cli {
    /// Reads a command line that begins with the program's own name.
    ///
    /// # Errors
    /// Help or the version if the user requests it; otherwise what is wrong with the command line.
    pub fn read(words: &[OsString]) -> Result<Cli, clap::Error> {
        let matches = command().try_get_matches_from(words)?;
        Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command()))
    }
}

/// clap lists commands one after the other; this template puts them under their subjects.
fn template(command: &Command) -> StyledStr {
    let heading = clap::builder::Styles::styled().get_header().to_owned();
    let mut out =
        format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{heading}Commands:{heading:#}\n");
    for (subject, names) in SUBJECTS {
        out += &format!(" {subject}\n");
        for name in *names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map_or(String::from(HELP), ToString::to_string);
            out += &beside(&format!("  {name:<11}  "), &about);
        }
    }
    out += &format!("\n{heading}Options:{heading:#}\n{{options}}");
    out.into()
}

/// The description of clap's own command.
const HELP: &str = "Print this message, or the help of a command";

fn help_of(command: &Command, words: Vec<String>) -> CommandHelp {
    let inner = |command: &Command| {
        let mut words = words.clone();
        words.push(command.get_name().to_owned());
        help_of(command, words)
    };
    let commands = command.get_subcommands();
    // clap adds a `help` command at every level, which needs no page of its own.
    let commands = commands.filter(|command| !command.is_hide_set() && command.get_name() != "help");
    let commands = commands.map(inner).collect();
    let usage = command.clone().render_usage().to_string();
    let lines = usage.lines().map(|line| line.trim().trim_start_matches("Usage: ").to_owned());
    let arguments: Vec<&Arg> = command.get_arguments().filter(|argument| !argument.is_hide_set()).collect();
    let options = arguments.iter().filter(|argument| !argument.is_positional());
    let operands = arguments.iter().filter(|argument| argument.is_positional());
    let options = OptionGroup {
        title: "Options".to_owned(),
        options: options.map(|argument| option(argument)).collect(),
    };
    let mut help = CommandHelp {
        about: command.get_about().map(ToString::to_string).unwrap_or_default(),
        usage: lines.collect(),
        groups: vec![options],
        operands: operands.map(|argument| operand(argument)).collect(),
        commands,
        words,
        environment: &[ENVIRONMENT, TRANSLATIONS],
        ..CommandHelp::default()
    };
    // A command that takes a program to run passes the program's exit status on.
    help.statuses = if help.before_program().is_some() { OF_PROGRAMS } else { OF_OTHERS };
    help
}

fn option(argument: &Arg) -> OptionHelp {
    let takes = matches!(argument.get_action(), ArgAction::Set | ArgAction::Append);
    let value = argument.get_value_names().filter(|_| takes).map(|names| names.join(" "));
    let defaults = argument.get_default_values().iter().map(|value| value.to_string_lossy().into_owned());
    let defaults = defaults.collect::<Vec<_>>().join(",");
    OptionHelp {
        short: argument.get_short(),
        longs: argument.get_long().into_iter().map(str::to_owned).collect(),
        negated: None,
        value,
        choices: if takes { choices(argument) } else { Vec::new() },
        default: Some(defaults).filter(|value| takes && !value.is_empty()),
        about: about(argument),
    }
}

fn operand(argument: &Arg) -> Operand {
    let names = argument.get_value_names().map(|names| names.join(" "));
    let name = names.unwrap_or_else(|| argument.get_id().to_string().to_uppercase());
    let kind = if argument.is_trailing_var_arg_set() { OperandKind::Program } else { OperandKind::File };
    Operand { name, about: about(argument), kind, choices: choices(argument) }
}

fn about(argument: &Arg) -> String {
    argument.get_help().map(ToString::to_string).unwrap_or_default()
}

fn choices(argument: &Arg) -> Vec<Choice> {
    let shown = argument.get_possible_values().into_iter().filter(|value| !value.is_hide_set());
    let choice = |value: clap::builder::PossibleValue| Choice {
        name: value.get_name().to_owned(),
        about: value.get_help().map(ToString::to_string).unwrap_or_default(),
    };
    shown.map(choice).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_one_subject() {
        let command = Cli::command();
        let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
        let listed: Vec<&str> = SUBJECTS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        for command in shown {
            let times = listed.iter().filter(|name| **name == command.get_name()).count();
            assert_eq!(times, 1, "{}: enter it in SUBJECTS", command.get_name());
        }
        let known = |name: &&str| *name == "help" || command.find_subcommand(name).is_some();
        assert!(listed.iter().all(known), "{listed:?}");
    }
}
