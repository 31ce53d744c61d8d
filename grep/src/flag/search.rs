//! Flags that control how files are read and searched.

use super::entry::Flag;
use super::entry::Paths::{Both, BothWhere, General};
use crate::arguments::{Binary, Encoding, Given, Mapping};

pub(super) const FLAGS: &[Flag] = &[
    Flag::switch("binary", Both, "Search files with NUL bytes to their first match.", |arguments, given| {
        arguments.binary = if given.on() { Binary::Search } else { Binary::Auto };
        Ok(())
    })
    .negated("no-binary"),
    Flag::taking(
        "encoding",
        BothWhere(|settings| !matches!(settings.arguments.encoding, Encoding::From(_))),
        "ENCODING",
        "The files' encoding: a label, auto or none.",
        |arguments, given| {
            arguments.encoding = match given {
                Given::Value(_) => match given.text()?.as_str() {
                    "auto" => Encoding::Auto,
                    "none" => Encoding::Raw,
                    label => Encoding::From(grep_searcher::Encoding::new(label)?),
                },
                _ => Encoding::Auto,
            };
            Ok(())
        },
    )
    .short('E')
    .negated("no-encoding"),
    Flag::switch("invert-match", Both, "Lines that do not match.", |arguments, given| {
        arguments.invert_match = given.on();
        Ok(())
    })
    .short('v')
    .negated("no-invert-match"),
    Flag::taking(
        "max-count",
        Both,
        "N",
        "Stop after this many matching lines of a file.",
        |arguments, given| {
            arguments.max_count = Some(given.number()?);
            Ok(())
        },
    )
    .short('m'),
    Flag::switch(
        "mmap",
        Both,
        "Map large files that are named, or never: without either, as is quicker.",
        |arguments, given| {
            arguments.mapping = if given.on() { Mapping::Always } else { Mapping::Never };
            Ok(())
        },
    )
    .negated("no-mmap"),
    Flag::taking(
        "pre",
        BothWhere(|settings| settings.arguments.pre.is_none()),
        "COMMAND",
        "Search what this command prints, given a file's path and content.",
        |arguments, given| {
            let path = given.path();
            arguments.pre = (!path.as_os_str().is_empty()).then_some(path);
            if arguments.pre.is_some() {
                arguments.search_zip = false;
            }
            Ok(())
        },
    )
    .negated("no-pre"),
    Flag::taking(
        "pre-glob",
        Both,
        "GLOB",
        "Run --pre only for files of this glob; may be repeated.",
        |arguments, given| {
            arguments.pre_globs.push(given.text()?);
            Ok(())
        },
    ),
    Flag::switch(
        "search-zip",
        BothWhere(|settings| !settings.arguments.search_zip),
        "Search compressed files, by the programs of their formats.",
        |arguments, given| {
            arguments.search_zip = given.on();
            if arguments.search_zip {
                arguments.pre = None;
            }
            Ok(())
        },
    )
    .short('z')
    .negated("no-search-zip"),
    Flag::switch(
        "stop-on-nonmatch",
        General,
        "After a match, stop at the first line that does not match.",
        |arguments, _| {
            arguments.stop_on_nonmatch = true;
            Ok(())
        },
    ),
    Flag::switch("text", Both, "Treat files with NUL bytes as text.", |arguments, given| {
        arguments.binary = if given.on() { Binary::Text } else { Binary::Auto };
        Ok(())
    })
    .short('a')
    .negated("no-text"),
    Flag::taking("threads", Both, "N", "Threads to use; 0 lets the command choose.", |arguments, given| {
        let threads: usize = given.number()?;
        arguments.threads = (threads != 0).then_some(threads);
        Ok(())
    })
    .short('j'),
];
