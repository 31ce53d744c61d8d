//! Help, the manual page and completions: the options that change what is counted or written.
//!
//! The others are accepted for callers that pass them, and stand in `docs/valgrind.md`.

use present::help::{CommandHelp, Entry, Operand, OperandKind, OptionGroup, OptionHelp};
use std::fmt::Write;

const ABOUT: &str =
    "Count in the manner of callgrind, cachegrind, DHAT and Massif, with their options, requests and files";

const DESCRIPTION: &[&str] = &[
    "lightfoot valgrind takes the command lines of callgrind, cachegrind, DHAT and Massif, answers the client requests \
     of the program, and writes their files and their log. A link to lightfoot of the name valgrind does the same, for \
     callers that find valgrind on PATH.",
    "docs/valgrind.md lists every option: which are obeyed, which change no number, which are refused.",
];

const USAGE: &[&str] = &[
    "lightfoot valgrind --tool=callgrind|cachegrind|dhat|massif|lackey|none [OPTIONS] PROGRAM [ARGUMENTS]...",
    "lightfoot valgrind --install DIR",
];

/// Names, values and meanings.
const SHOWN: &[(&str, &str, &str)] = &[
    (
        "tool",
        "NAME",
        "callgrind, cachegrind, dhat, massif, lackey, or none, which runs the program and counts nothing",
    ),
    (
        "toggle-collect",
        "FUNCTION",
        "Count while this function runs; * and ? stand for others; may be repeated",
    ),
    ("collect-atstart", "YES", "no: begin to count at a request"),
    ("instr-atstart", "YES", "no: begin to simulate at a request"),
    ("dump-before", "FUNCTION", "End a part where this function begins"),
    ("dump-after", "FUNCTION", "End a part where this function returns"),
    ("zero-before", "FUNCTION", "Forget what was counted where this function begins"),
    ("cache-sim", "YES", "Simulate caches"),
    ("I1", "SIZE,WAYS,LINE", "First-level instruction cache, in bytes"),
    ("D1", "SIZE,WAYS,LINE", "First-level data cache"),
    ("LL", "SIZE,WAYS,LINE", "Last-level cache"),
    ("separate-threads", "YES", "Write a file for each thread"),
    ("combine-dumps", "YES", "Write all parts into one file"),
    ("trace-children", "YES", "Count the processes that the program starts, with a file for each"),
    ("trace-children-skip", "PATTERNS", "Write nothing of programs with such names"),
    ("callgrind-out-file", "FILE", "%p stands for the process's number, %q{NAME} for a variable"),
    ("cachegrind-out-file", "FILE", "Where cachegrind's file goes"),
    ("dhat-out-file", "FILE", "Where DHAT's file goes"),
    ("num-callers", "N", "Frames by which DHAT tells places apart, that of malloc included"),
    ("massif-out-file", "FILE", "Where Massif's file goes"),
    ("alloc-fn", "FUNCTION", "A function that allocates for others, which Massif's trees leave out"),
    ("fnname", "FUNCTION", "The function whose calls lackey counts, instead of main"),
    ("log-file", "FILE", "Where the log goes, instead of to standard error"),
    ("dump-instr", "YES", "Write addresses of instructions"),
    ("dump-line", "YES", "Write source lines"),
    ("compress-strings", "YES", "Write each name once"),
    ("rep", "HOW", "once, iterations or valgrind: how a repeated string instruction counts"),
    ("virtual-cpu", "NAME", "Show the program this processor: valgrind, x86-64-v3, host ..."),
    ("repeatable", "YES", "Show the program clocks and random bytes that are equal in every run"),
    ("turns", "YES", "Run the program's threads one at a time, as Valgrind does; implies --repeatable"),
    ("calls", "YES", "Write calls with their inclusive costs"),
    ("strict", "YES", "Refuse patterns that match no function"),
    ("version-number", "NUMBER", "The version that --version behind it claims"),
    ("fallback", "PATH", "The valgrind that runs other tools"),
    ("install", "DIR", "Link this executable as DIR/valgrind"),
    ("options", "", "List every option, and what it does here"),
    ("version", "", "Print the version of Valgrind that is claimed"),
    ("help", "", "Print this"),
];

const STATUSES: &[Entry] = &[
    ("the program's own", "The program ended by itself; ended by a signal, this ends by the same."),
    ("1", "The command line cannot be used, or lightfoot failed; the message says how."),
    ("127", "There is no such program."),
];

/// Variables that name options and folders.
const VARIABLES: &[Entry] = &[
    ("VALGRIND_OPTS", "Options, between those of ~/.valgrindrc and ./.valgrindrc."),
    ("HOME", "Where the first is."),
];

/// The text of `--help`.
pub(super) fn text() -> String {
    let mut out = format!("{ABOUT}\n\nUsage:\n");
    USAGE.iter().for_each(|usage| _ = writeln!(out, "  {usage}"));
    out += "\nOptions:\n";
    for (name, value, about) in SHOWN {
        let between = if value.is_empty() { "" } else { "=" };
        let _ = writeln!(out, "  --{name}{between}{value}\n          {about}");
    }
    out + "\ndocs/valgrind.md lists every option: which are obeyed, which change no number, which are refused.\n"
}

/// The manual page's content.
pub(crate) fn page(words: &[&str]) -> CommandHelp {
    let option = |(name, value, about): &(&str, &str, &str)| OptionHelp {
        longs: vec![(*name).to_owned()],
        value: (!value.is_empty()).then(|| (*value).to_owned()),
        about: (*about).to_owned(),
        ..OptionHelp::default()
    };
    let options = SHOWN.iter().map(option).collect();
    CommandHelp {
        words: words.iter().map(|word| (*word).to_owned()).collect(),
        about: ABOUT.to_owned(),
        description: DESCRIPTION,
        usage: USAGE.iter().map(|usage| (*usage).to_owned()).collect(),
        groups: vec![OptionGroup { title: "Options".into(), options }],
        operands: vec![Operand {
            name: "PROGRAM [ARGUMENTS]".into(),
            about: "The program and its arguments, passed on untouched".into(),
            kind: OperandKind::Program,
            choices: Vec::new(),
        }],
        statuses: STATUSES,
        environment: &[VARIABLES],
        ..CommandHelp::default()
    }
}
