//! Flags that replace the search, and flags of messages.

use super::entry::Flag;
use super::entry::Paths::Both;
use crate::arguments::{Generated, Mode, Special};
use anyhow::bail;
use present::completion::Shell;

pub(super) const FLAGS: &[Flag] = &[
    Flag::switch("debug", Both, "Say on standard error how the search is done.", |arguments, _| {
        arguments.debug = true;
        Ok(())
    }),
    Flag::taking(
        "debug-program",
        Both,
        "STAGE",
        "Print a stage of the pattern's bit-stream program, or all of them.",
        |arguments, given| {
            arguments.program_stage = given.text()?;
            arguments.set_mode(Mode::Program);
            Ok(())
        },
    ),
    Flag::switch(
        "explain",
        Both,
        "Say how the pattern would be searched, and search nothing.",
        |arguments, _| {
            arguments.explain = true;
            arguments.set_mode(Mode::Explain);
            Ok(())
        },
    ),
    Flag::switch("files", Both, "Print the paths of the files that would be searched.", |arguments, _| {
        arguments.set_mode(Mode::Files);
        Ok(())
    }),
    Flag::taking(
        "generate",
        Both,
        "KIND",
        "Write a manual page or the completions of a shell.",
        |arguments, given| {
            let kind = match given.text()?.as_str() {
                "man" => Generated::Man,
                "complete-bash" => Generated::Completions(Shell::Bash),
                "complete-zsh" => Generated::Completions(Shell::Zsh),
                "complete-fish" => Generated::Completions(Shell::Fish),
                "complete-powershell" => Generated::Completions(Shell::Powershell),
                other => bail!("choice {other:?} is unrecognized: {}", KINDS.join(", ")),
            };
            arguments.set_mode(Mode::Generate(kind));
            Ok(())
        },
    )
    .choices(KINDS),
    Flag::switch("help", Both, "Print help; -h prints less of it.", |arguments, _| {
        arguments.special = Some(Special::LongHelp);
        Ok(())
    })
    .short('h'),
    Flag::switch("no-config", Both, "Read no configuration file.", |arguments, _| {
        arguments.no_config = true;
        Ok(())
    }),
    Flag::switch("no-ignore-messages", Both, "Do not complain about ignore files.", |arguments, given| {
        arguments.no_ignore.messages = given.on();
        Ok(())
    })
    .negated("ignore-messages"),
    Flag::switch(
        "no-messages",
        Both,
        "Do not complain about files that cannot be read.",
        |arguments, given| {
            arguments.no_messages = given.on();
            Ok(())
        },
    )
    .negated("messages"),
    Flag::switch("pcre2-version", Both, "Print the version of PCRE2.", |arguments, _| {
        arguments.special = Some(Special::Pcre2Version);
        Ok(())
    }),
    Flag::switch("trace", Both, "Equal to --debug.", |arguments, _| {
        arguments.debug = true;
        Ok(())
    }),
    Flag::switch("type-list", Both, "Print the known file types and their globs.", |arguments, _| {
        arguments.set_mode(Mode::Types);
        Ok(())
    }),
    Flag::switch("version", Both, "Print the version.", |arguments, _| {
        arguments.special = Some(Special::Version);
        Ok(())
    })
    .short('V'),
];

const KINDS: &[&str] = &["man", "complete-bash", "complete-zsh", "complete-fish", "complete-powershell"];
