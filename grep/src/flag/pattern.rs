//! Flags of the pattern.

use super::entry::Flag;
use super::entry::Paths::{Both, BothWhere};
use crate::arguments::{Boundary, Case, Engine, PatternSource};
use crate::settings::Settings;

/// Whether PCRE2 was not requested by name.
fn no_pcre2(settings: &Settings) -> bool {
    settings.arguments.engine != Engine::Pcre2
}

pub(super) const FLAGS: &[Flag] = &[
    Flag::taking(
        "and",
        Both,
        "PATTERN",
        "Only lines that also match this pattern; may be repeated.",
        |arguments, given| {
            arguments.and.push(given.text()?);
            Ok(())
        },
    ),
    Flag::switch(
        "auto-hybrid-regex",
        BothWhere(no_pcre2),
        "Use PCRE2 where the pattern needs it.",
        |arguments, given| {
            arguments.engine = if given.on() { Engine::Auto } else { Engine::Default };
            Ok(())
        },
    )
    .negated("no-auto-hybrid-regex"),
    Flag::switch("case-sensitive", Both, "Upper and lower case differ (the default).", |arguments, _| {
        arguments.case = Case::Sensitive;
        Ok(())
    })
    .short('s'),
    Flag::switch(
        "crlf",
        BothWhere(|settings| !settings.arguments.crlf),
        "Lines may end with a carriage return and a line feed.",
        |arguments, given| {
            arguments.crlf = given.on();
            arguments.null_data &= !given.on();
            Ok(())
        },
    )
    .negated("no-crlf"),
    Flag::taking(
        "dfa-size-limit",
        Both,
        "SIZE",
        "Most memory for the automaton's cache.",
        |arguments, given| {
            arguments.dfa_size_limit = Some(usize::try_from(given.size()?)?);
            Ok(())
        },
    ),
    Flag::taking(
        "engine",
        BothWhere(no_pcre2),
        "ENGINE",
        "Who matches: default, pcre2, cuda (a graphics card) or auto.",
        |arguments, given| {
            arguments.engine = match given.text()?.as_str() {
                "default" => Engine::Default,
                "pcre2" => Engine::Pcre2,
                "auto" => Engine::Auto,
                "cuda" => Engine::Cuda,
                other => anyhow::bail!("unrecognized engine {other:?}: default, pcre2, cuda or auto"),
            };
            Ok(())
        },
    )
    .choices(&["default", "pcre2", "cuda", "auto"]),
    Flag::taking(
        "file",
        Both,
        "FILE",
        "Take patterns from this file, one a line; - is standard input.",
        |arguments, given| {
            arguments.patterns.push(PatternSource::File(given.path()));
            Ok(())
        },
    )
    .short('f'),
    Flag::switch(
        "fixed-strings",
        Both,
        "Patterns are strings, not regular expressions.",
        |arguments, given| {
            arguments.fixed_strings = given.on();
            Ok(())
        },
    )
    .short('F')
    .negated("no-fixed-strings"),
    Flag::switch("ignore-case", Both, "Upper and lower case do not differ.", |arguments, _| {
        arguments.case = Case::Insensitive;
        Ok(())
    })
    .short('i'),
    Flag::switch("line-regexp", Both, "A match must be a whole line.", |arguments, _| {
        arguments.boundary = Boundary::Line;
        Ok(())
    })
    .short('x'),
    Flag::switch("multiline", Both, "A match may span lines.", |arguments, given| {
        arguments.multiline = given.on();
        Ok(())
    })
    .short('U')
    .negated("no-multiline"),
    Flag::switch(
        "multiline-dotall",
        Both,
        "With -U, a dot matches the end of a line as well.",
        |arguments, given| {
            arguments.multiline_dotall = given.on();
            Ok(())
        },
    )
    .negated("no-multiline-dotall"),
    Flag::switch("no-unicode", Both, "Classes, case and boundaries are ASCII's.", |arguments, given| {
        arguments.no_unicode = given.on();
        Ok(())
    })
    .negated("unicode"),
    Flag::switch("no-pcre2-unicode", Both, "Equal to --no-unicode.", |arguments, given| {
        arguments.no_unicode = given.on();
        Ok(())
    })
    .negated("pcre2-unicode"),
    Flag::taking(
        "not",
        Both,
        "PATTERN",
        "Only lines that do not match this pattern; may be repeated.",
        |arguments, given| {
            arguments.not.push(given.text()?);
            Ok(())
        },
    ),
    Flag::switch(
        "null-data",
        BothWhere(|settings| !settings.arguments.null_data),
        "Lines end with a NUL byte.",
        |arguments, _| {
            arguments.null_data = true;
            arguments.crlf = false;
            Ok(())
        },
    ),
    Flag::switch(
        "pcre2",
        BothWhere(no_pcre2),
        "Match with PCRE2: look-around and back-references.",
        |arguments, given| {
            arguments.engine = if given.on() { Engine::Pcre2 } else { Engine::Default };
            Ok(())
        },
    )
    .short('P')
    .negated("no-pcre2"),
    Flag::taking(
        "regex-size-limit",
        Both,
        "SIZE",
        "Most memory for a compiled pattern.",
        |arguments, given| {
            arguments.regex_size_limit = Some(usize::try_from(given.size()?)?);
            Ok(())
        },
    ),
    Flag::taking(
        "regexp",
        Both,
        "PATTERN",
        "A pattern; may be repeated, and may begin with a dash.",
        |arguments, given| {
            arguments.patterns.push(PatternSource::Given(given.text()?));
            Ok(())
        },
    )
    .short('e'),
    Flag::switch(
        "smart-case",
        Both,
        "Case differs where a pattern has an upper-case letter.",
        |arguments, _| {
            arguments.case = Case::Smart;
            Ok(())
        },
    )
    .short('S'),
    Flag::switch("word-regexp", Both, "A match must begin and end at words' ends.", |arguments, _| {
        arguments.boundary = Boundary::Word;
        Ok(())
    })
    .short('w'),
];
