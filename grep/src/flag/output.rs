//! Flags of the output.

use super::entry::Flag;
use super::entry::Paths::{Both, BothWhere, General};
use crate::arguments::{Around, Buffering, Color, Given, Mode, Output, Sort, SortKey};
use crate::settings::Settings;
use anyhow::{bail, Result};
use std::os::unix::ffi::OsStringExt;

fn sort(name: &str, reverse: bool) -> Result<Option<Sort>> {
    let key = match name {
        "none" => return Ok(None),
        "path" => SortKey::Path,
        "modified" => SortKey::Modified,
        "accessed" => SortKey::Accessed,
        "created" => SortKey::Created,
        other => bail!("unrecognized order {other:?}: none, path, modified, accessed or created"),
    };
    Ok(Some(Sort { key, reverse }))
}

/// Whether not all lines are printed, and all matches where lines around them are.
fn some_context(settings: &Settings) -> bool {
    let around = settings.arguments.around;
    !around.all && (settings.arguments.max_count.is_none() || around.lines() == (0, 0))
}

/// Whether replaced matches do not end lines.
fn no_line_feed(settings: &Settings) -> bool {
    settings.arguments.replace.as_ref().is_none_or(|text| memchr::memchr(b'\n', text).is_none())
}

const ORDERS: &[&str] = &["none", "path", "modified", "accessed", "created"];

pub(super) const FLAGS: &[Flag] = &[
    Flag::taking(
        "after-context",
        BothWhere(some_context),
        "N",
        "Print this many lines after a match.",
        |arguments, given| {
            arguments.around = Around { after: Some(given.number()?), ..arguments.around.limited() };
            Ok(())
        },
    )
    .short('A'),
    Flag::taking(
        "before-context",
        BothWhere(some_context),
        "N",
        "Print this many lines before a match.",
        |arguments, given| {
            arguments.around = Around { before: Some(given.number()?), ..arguments.around.limited() };
            Ok(())
        },
    )
    .short('B'),
    Flag::switch("block-buffered", Both, "Write output in blocks.", |arguments, given| {
        arguments.buffering = if given.on() { Buffering::Block } else { Buffering::Auto };
        Ok(())
    })
    .negated("no-block-buffered"),
    Flag::switch("byte-offset", Both, "Print where each line begins, in bytes.", |arguments, given| {
        arguments.byte_offset = given.on();
        Ok(())
    })
    .short('b')
    .negated("no-byte-offset"),
    Flag::taking(
        "color",
        Both,
        "WHEN",
        "When to colour: never, auto, always or ansi.",
        |arguments, given| {
            arguments.color = match given.text()?.as_str() {
                "never" => Color::Never,
                "auto" => Color::Auto,
                "always" => Color::Always,
                "ansi" => Color::Ansi,
                other => bail!("choice {other:?} is unrecognized: never, auto, always or ansi"),
            };
            Ok(())
        },
    )
    .choices(&["never", "auto", "always", "ansi"]),
    Flag::taking(
        "colors",
        Both,
        "SPEC",
        "A colour, such as match:fg:magenta; may be repeated.",
        |arguments, given| {
            arguments.colors.push(given.text()?.parse()?);
            Ok(())
        },
    ),
    Flag::switch("column", Both, "Print the column of a line's first match.", |arguments, given| {
        arguments.column = Some(given.on());
        Ok(())
    })
    .negated("no-column"),
    Flag::taking(
        "context",
        BothWhere(some_context),
        "N",
        "Print this many lines before and after a match.",
        |arguments, given| {
            arguments.around = Around { both: Some(given.number()?), ..arguments.around.limited() };
            Ok(())
        },
    )
    .short('C'),
    Flag::taking(
        "context-separator",
        Both,
        "TEXT",
        "What separates lines that do not follow each other.",
        |arguments, given| {
            arguments.context_separator = Some(if given.on() { Some(given.unescaped()?) } else { None });
            Ok(())
        },
    )
    .negated("no-context-separator"),
    Flag::switch("count", Both, "Print the number of matching lines of each file.", |arguments, _| {
        arguments.set_mode(Mode::Search(Output::Count));
        Ok(())
    })
    .short('c'),
    Flag::switch("count-matches", Both, "Print the number of matches of each file.", |arguments, _| {
        arguments.set_mode(Mode::Search(Output::CountMatches));
        Ok(())
    }),
    Flag::taking(
        "field-context-separator",
        Both,
        "TEXT",
        "What separates fields of lines around a match.",
        |arguments, given| {
            arguments.field_context_separator = Some(given.unescaped()?);
            Ok(())
        },
    ),
    Flag::taking(
        "field-match-separator",
        Both,
        "TEXT",
        "What separates fields of matching lines.",
        |arguments, given| {
            arguments.field_match_separator = Some(given.unescaped()?);
            Ok(())
        },
    ),
    Flag::switch("files-with-matches", Both, "Print the paths of files with a match.", |arguments, _| {
        arguments.set_mode(Mode::Search(Output::Paths));
        Ok(())
    })
    .short('l'),
    Flag::switch("files-without-match", Both, "Print the paths of files without a match.", |arguments, _| {
        arguments.set_mode(Mode::Search(Output::PathsWithout));
        Ok(())
    }),
    Flag::switch("heading", Both, "Print a file's path once, above its lines.", |arguments, given| {
        arguments.heading = Some(given.on());
        Ok(())
    })
    .negated("no-heading"),
    Flag::taking(
        "hostname-bin",
        Both,
        "COMMAND",
        "A command that prints the host's name for hyperlinks.",
        |arguments, given| {
            let path = given.path();
            arguments.hostname_bin = (!path.as_os_str().is_empty()).then_some(path);
            Ok(())
        },
    ),
    Flag::taking(
        "hyperlink-format",
        BothWhere(|settings| settings.arguments.hyperlink_format.is_empty()),
        "FORMAT",
        "How paths become hyperlinks, or a format's name.",
        |arguments, given| {
            arguments.hyperlink_format = given.text()?.parse()?;
            Ok(())
        },
    ),
    Flag::switch("include-zero", Both, "With -c, print files without a match too.", |arguments, given| {
        arguments.include_zero = given.on();
        Ok(())
    })
    .negated("no-include-zero"),
    Flag::switch(
        "json",
        BothWhere(|settings| settings.output != Output::Json),
        "Print results as JSON, one object a line.",
        |arguments, given| {
            arguments.set_mode(Mode::Search(if given.on() { Output::Json } else { Output::Lines }));
            Ok(())
        },
    )
    .negated("no-json"),
    Flag::switch("line-buffered", Both, "Write output line by line.", |arguments, given| {
        arguments.buffering = if given.on() { Buffering::Line } else { Buffering::Auto };
        Ok(())
    })
    .negated("no-line-buffered"),
    Flag::switch("line-number", Both, "Print line numbers (the default on a terminal).", |arguments, _| {
        arguments.line_number = Some(true);
        Ok(())
    })
    .short('n'),
    Flag::taking(
        "max-columns",
        BothWhere(|settings| settings.arguments.max_columns.is_none()),
        "N",
        "Leave out lines longer than this; 0 is no limit.",
        |arguments, given| {
            let most: u64 = given.number()?;
            arguments.max_columns = (most != 0).then_some(most);
            Ok(())
        },
    )
    .short('M'),
    Flag::switch(
        "max-columns-preview",
        Both,
        "Print the beginning of lines that -M leaves out.",
        |arguments, given| {
            arguments.max_columns_preview = given.on();
            Ok(())
        },
    )
    .negated("no-max-columns-preview"),
    Flag::switch("no-filename", Both, "Print no paths with lines.", |arguments, _| {
        arguments.with_filename = Some(false);
        Ok(())
    })
    .short('I'),
    Flag::switch("no-line-number", Both, "Print no line numbers.", |arguments, _| {
        arguments.line_number = Some(false);
        Ok(())
    })
    .short('N'),
    Flag::switch("null", Both, "Print a NUL byte after each path.", |arguments, _| {
        arguments.null = true;
        Ok(())
    })
    .short('0'),
    Flag::switch(
        "only-matching",
        Both,
        "Print each match on a line of its own, and nothing around it.",
        |arguments, _| {
            arguments.only_matching = true;
            Ok(())
        },
    )
    .short('o'),
    Flag::taking(
        "path-separator",
        BothWhere(|settings| settings.arguments.path_separator.is_none_or(|byte| byte == b'/')),
        "BYTE",
        "What separates the parts of a printed path.",
        |arguments, given| {
            let bytes = given.unescaped()?;
            arguments.path_separator = match bytes[..] {
                [] => None,
                [byte] => Some(byte),
                _ => bail!("a path separator is exactly one byte, and {} bytes were given", bytes.len()),
            };
            Ok(())
        },
    ),
    Flag::switch("passthru", BothWhere(some_context), "Print all lines, matching or not.", |arguments, _| {
        arguments.around = Around { all: true, ..Around::default() };
        Ok(())
    })
    .alias(&["passthrough"]),
    Flag::switch("pretty", Both, "Equal to --color=always --heading --line-number.", |arguments, _| {
        arguments.color = Color::Always;
        arguments.heading = Some(true);
        arguments.line_number = Some(true);
        Ok(())
    })
    .short('p'),
    Flag::switch(
        "quiet",
        Both,
        "Print nothing; the exit status says whether there is a match.",
        |arguments, _| {
            arguments.quiet = true;
            Ok(())
        },
    )
    .short('q'),
    Flag::taking(
        "replace",
        BothWhere(no_line_feed),
        "TEXT",
        "Print this in place of each match; $1 and $name are groups.",
        |arguments, given| {
            arguments.replace = match given {
                Given::Value(value) => Some(value.into_vec()),
                _ => None,
            };
            Ok(())
        },
    )
    .short('r'),
    Flag::taking(
        "sort",
        Both,
        "ORDER",
        "Order of files: none, path, modified, accessed or created; one thread.",
        |arguments, given| {
            arguments.sort = sort(&given.text()?, false)?;
            Ok(())
        },
    )
    .choices(ORDERS),
    Flag::switch("sort-files", Both, "Equal to --sort path.", |arguments, given| {
        arguments.sort = if given.on() { sort("path", false)? } else { None };
        Ok(())
    })
    .negated("no-sort-files"),
    Flag::taking("sortr", Both, "ORDER", "As --sort, the other way round.", |arguments, given| {
        arguments.sort = sort(&given.text()?, true)?;
        Ok(())
    })
    .choices(ORDERS),
    Flag::switch(
        "stats",
        BothWhere(|settings| !settings.stats),
        "Print statistics about the search at its end.",
        |arguments, given| {
            arguments.stats = given.on();
            Ok(())
        },
    )
    .negated("no-stats"),
    Flag::switch(
        "trim",
        BothWhere(|settings| !settings.arguments.trim),
        "Leave out white space at the beginning of lines.",
        |arguments, given| {
            arguments.trim = given.on();
            Ok(())
        },
    )
    .negated("no-trim"),
    Flag::switch(
        "vimgrep",
        // A line may be printed thousands of times: the general path holds no piece's results.
        General,
        "Print a line for every match, with path, line and column.",
        |arguments, _| {
            arguments.vimgrep = true;
            Ok(())
        },
    ),
    Flag::switch(
        "with-filename",
        Both,
        "Print the path with each line (the default for more than one file).",
        |arguments, _| {
            arguments.with_filename = Some(true);
            Ok(())
        },
    )
    .short('H'),
];
