//! Flags that ask for something other than a search, and about messages.

use super::entry::Flag;
use super::entry::Paths::Both;
use crate::arguments::{Generated, Mode, Special};
use anyhow::bail;
use present::completion::Shell;

pub(super) const FLAGS: &[Flag] = &[
    Flag::switch("debug", Both, "Say on standard error how the search is done.", |a, _| {
        a.debug = true;
        Ok(())
    }),
    Flag::taking(
        "debug-program",
        Both,
        "STAGE",
        "Print a stage of the pattern's bit-stream program, or all of them.",
        |a, given| {
            a.program_stage = given.text()?;
            a.set_mode(Mode::Program);
            Ok(())
        },
    ),
    Flag::switch("explain", Both, "Say how the pattern would be searched, and search nothing.", |a, _| {
        a.explain = true;
        a.set_mode(Mode::Explain);
        Ok(())
    }),
    Flag::switch("files", Both, "Print the paths of the files that would be searched.", |a, _| {
        a.set_mode(Mode::Files);
        Ok(())
    }),
    Flag::taking(
        "generate",
        Both,
        "KIND",
        "Write a manual page or the completions of a shell.",
        |a, given| {
            let kind = match given.text()?.as_str() {
                "man" => Generated::Man,
                "complete-bash" => Generated::Completions(Shell::Bash),
                "complete-zsh" => Generated::Completions(Shell::Zsh),
                "complete-fish" => Generated::Completions(Shell::Fish),
                "complete-powershell" => Generated::Completions(Shell::Powershell),
                other => bail!("choice {other:?} is unrecognized: {}", KINDS.join(", ")),
            };
            a.set_mode(Mode::Generate(kind));
            Ok(())
        },
    )
    .choices(KINDS),
    Flag::switch("help", Both, "Print help; -h prints less of it.", |a, _| {
        a.special = Some(Special::LongHelp);
        Ok(())
    })
    .short('h'),
    Flag::switch("no-config", Both, "Read no configuration file.", |a, _| {
        a.no_config = true;
        Ok(())
    }),
    Flag::switch("no-ignore-messages", Both, "Do not complain about ignore files.", |a, given| {
        a.no_ignore.messages = given.on();
        Ok(())
    })
    .negated("ignore-messages"),
    Flag::switch("no-messages", Both, "Do not complain about files that cannot be read.", |a, given| {
        a.no_messages = given.on();
        Ok(())
    })
    .negated("messages"),
    Flag::switch("pcre2-version", Both, "Print the version of PCRE2.", |a, _| {
        a.special = Some(Special::Pcre2Version);
        Ok(())
    }),
    Flag::switch("trace", Both, "Equal to --debug.", |a, _| {
        a.debug = true;
        Ok(())
    }),
    Flag::switch("type-list", Both, "Print the known file types and their globs.", |a, _| {
        a.set_mode(Mode::Types);
        Ok(())
    }),
    Flag::switch("version", Both, "Print the version.", |a, _| {
        a.special = Some(Special::Version);
        Ok(())
    })
    .short('V'),
];

const KINDS: &[&str] = &["man", "complete-bash", "complete-zsh", "complete-fish", "complete-powershell"];
