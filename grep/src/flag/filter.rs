//! Flags that choose the files to search.

use super::entry::Flag;
use super::entry::Paths::Both;
use crate::arguments::{Binary, NoIgnore, TypeChange};

pub(super) const FLAGS: &[Flag] = &[
    Flag::switch("follow", Both, "Follow symbolic links.", |arguments, given| {
        arguments.follow = given.on();
        Ok(())
    })
    .short('L')
    .negated("no-follow"),
    Flag::taking(
        "glob",
        Both,
        "GLOB",
        "Only files of this glob; with ! in front, none of them; may be repeated.",
        |arguments, given| {
            arguments.globs.push(given.text()?);
            Ok(())
        },
    )
    .short('g'),
    Flag::switch("glob-case-insensitive", Both, "Every -g is an --iglob.", |arguments, given| {
        arguments.glob_case_insensitive = given.on();
        Ok(())
    })
    .negated("no-glob-case-insensitive"),
    Flag::switch("hidden", Both, "Search hidden files and folders as well.", |arguments, given| {
        arguments.hidden = given.on();
        Ok(())
    })
    .short('.')
    .negated("no-hidden"),
    Flag::taking("iglob", Both, "GLOB", "As --glob, upper and lower case alike.", |arguments, given| {
        arguments.iglobs.push(given.text()?);
        Ok(())
    }),
    Flag::taking(
        "ignore-file",
        Both,
        "FILE",
        "Another file in the format of .gitignore; may be repeated.",
        |arguments, given| {
            arguments.ignore_files.push(given.path());
            Ok(())
        },
    ),
    Flag::switch(
        "ignore-file-case-insensitive",
        Both,
        "Ignore files are read upper and lower case alike.",
        |arguments, given| {
            arguments.ignore_file_case_insensitive = given.on();
            Ok(())
        },
    )
    .negated("no-ignore-file-case-insensitive"),
    Flag::taking("max-depth", Both, "N", "Descend at most this many folders.", |arguments, given| {
        arguments.max_depth = Some(given.number()?);
        Ok(())
    })
    .short('d')
    .alias(&["maxdepth"]),
    Flag::taking("max-filesize", Both, "SIZE", "Skip larger files.", |arguments, given| {
        arguments.max_filesize = Some(given.size()?);
        Ok(())
    }),
    Flag::switch(
        "no-ignore",
        Both,
        "Honour no ignore files, except those that --ignore-file names.",
        |arguments, given| {
            let off = given.on();
            let NoIgnore { files, messages, .. } = arguments.no_ignore;
            arguments.no_ignore =
                NoIgnore { dot: off, exclude: off, global: off, parent: off, vcs: off, files, messages };
            Ok(())
        },
    )
    .negated("ignore"),
    Flag::switch("no-ignore-dot", Both, "Do not honour .ignore and .rgignore.", |arguments, given| {
        arguments.no_ignore.dot = given.on();
        Ok(())
    })
    .negated("ignore-dot"),
    Flag::switch("no-ignore-exclude", Both, "Do not honour .git/info/exclude.", |arguments, given| {
        arguments.no_ignore.exclude = given.on();
        Ok(())
    })
    .negated("ignore-exclude"),
    Flag::switch("no-ignore-files", Both, "Do not honour --ignore-file.", |arguments, given| {
        arguments.no_ignore.files = given.on();
        Ok(())
    })
    .negated("ignore-files"),
    Flag::switch("no-ignore-global", Both, "Do not honour git's global ignore file.", |arguments, given| {
        arguments.no_ignore.global = given.on();
        Ok(())
    })
    .negated("ignore-global"),
    Flag::switch(
        "no-ignore-parent",
        Both,
        "Do not honour ignore files of parent folders.",
        |arguments, given| {
            arguments.no_ignore.parent = given.on();
            Ok(())
        },
    )
    .negated("ignore-parent"),
    Flag::switch("no-ignore-vcs", Both, "Do not honour .gitignore.", |arguments, given| {
        arguments.no_ignore.vcs = given.on();
        Ok(())
    })
    .negated("ignore-vcs"),
    Flag::switch(
        "no-require-git",
        Both,
        "Honour .gitignore outside of repositories as well.",
        |arguments, given| {
            arguments.no_require_git = given.on();
            Ok(())
        },
    )
    .negated("require-git"),
    Flag::switch("one-file-system", Both, "Do not descend into other file systems.", |arguments, given| {
        arguments.one_file_system = given.on();
        Ok(())
    })
    .negated("no-one-file-system"),
    Flag::taking(
        "type",
        Both,
        "TYPE",
        "Only files of this type; may be repeated (see --type-list).",
        |arguments, given| {
            arguments.type_changes.push(TypeChange::Select(given.text()?));
            Ok(())
        },
    )
    .short('t'),
    Flag::taking("type-add", Both, "TYPE:GLOB", "Add a glob to a type.", |arguments, given| {
        arguments.type_changes.push(TypeChange::Add(given.text()?));
        Ok(())
    }),
    Flag::taking("type-clear", Both, "TYPE", "Forget the globs of a type.", |arguments, given| {
        arguments.type_changes.push(TypeChange::Clear(given.text()?));
        Ok(())
    }),
    Flag::taking("type-not", Both, "TYPE", "No files of this type; may be repeated.", |arguments, given| {
        arguments.type_changes.push(TypeChange::Negate(given.text()?));
        Ok(())
    })
    .short('T'),
    Flag::switch(
        "unrestricted",
        Both,
        "Once: --no-ignore; twice: --hidden too; three times: --binary too.",
        |arguments, _| {
            arguments.unrestricted += 1;
            match arguments.unrestricted {
                1 => {
                    let NoIgnore { files, messages, .. } = arguments.no_ignore;
                    arguments.no_ignore = NoIgnore {
                        dot: true,
                        exclude: true,
                        global: true,
                        parent: true,
                        vcs: true,
                        files,
                        messages,
                    };
                }
                2 => arguments.hidden = true,
                3 => arguments.binary = Binary::Search,
                _ => anyhow::bail!("the flag can be given at most three times"),
            }
            Ok(())
        },
    )
    .short('u'),
];
