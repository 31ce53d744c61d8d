//! Errors: each message is complete, and a printed chain says nothing twice.
//!
//! An error's message holds the message of its cause; `source` is what lies below that cause. To
//! add an error type, add an example to the table.

use crate::{code_only, files, text};
use std::collections::BTreeSet;
use std::error::Error;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// An example of an error type, which holds the cause if the type can.
type Example = fn(io::Error) -> Box<dyn Error>;

/// Error types of all crates, by crate and name.
const EXAMPLES: &[(&str, Example)] = &[
    ("event::FileError", |cause| event::file::FileError::Io(cause).into()),
    ("event::Malformed", |_| event::Malformed::NotComplex.into()),
    ("instrument::Error", |_| {
        let ran = instrument::run(&nowhere(), &Default::default(), &mut instrument::Unobserved);
        ran.expect_err("no such program").into()
    }),
    ("instrument::TraceError", |_| {
        instrument::reference::run(&nowhere(), &mut |_| ()).expect_err("no such program").into()
    }),
    ("machine::Error", |cause| {
        machine::Error::Unreadable { path: PathBuf::from("m.toml"), reason: cause.to_string() }.into()
    }),
    ("matrix::Error", |_| matrix::Error::TooLarge { rows: 1, cols: 2 }.into()),
    ("measure::Error", |error| measure::Error::Io { doing: "read the counters", error }.into()),
    ("measure::Refusal", |_| measure::chase::Refusal::Busy { why: "a test runs".into() }.into()),
    ("pattern::ColumnError", |_| pattern::column::ColumnError::NoOffsets.into()),
    ("pattern::CompileError", |_| pattern::compile::CompileError::Backwards.into()),
    ("pattern::CudaError", |_| pattern::kernel::cuda::CudaError::NoCard.into()),
    ("pattern::Error", |_| pattern::Regex::new("(").expect_err("an open group").into()),
    ("pattern::Fault", |_| {
        let value = pattern::program::Value(0);
        pattern::program::Fault { value, reason: "defined twice".into() }.into()
    }),
    ("pattern::ParseError", |_| {
        pattern::program::ParseError { line: 1, reason: "no instruction".into() }.into()
    }),
    ("pattern::UnknownVectors", |_| pattern::vectors::UnknownVectors { value: "mmx".into() }.into()),
    ("present::Failure", |_| present::exit::Failure { status: 2, sentence: "no".into() }.into()),
    ("search::Error", |cause| search::Error::Io(cause).into()),
    ("simulate::GeometryError", |_| {
        let geometry = simulate::Geometry::cache(1024, 2, 64);
        simulate::GeometryError::new("L1D", geometry, "too small").into()
    }),
    ("simulate::SizesError", |_| {
        simulate::distance::CurveSizes::new(64, 1, &[]).expect_err("no sizes").into()
    }),
];

/// Types that hold the system's error itself.
const HOLDERS: &[&str] = &["event::FileError", "measure::Error", "search::Error"];

/// A program that does not exist.
fn nowhere() -> instrument::Command {
    instrument::Command { program: OsString::from("/no/such/program"), arguments: Vec::new() }
}

/// A cause with another one below it.
#[derive(Debug)]
struct Cause {
    message: &'static str,
    below: Option<Box<Cause>>,
}

const MESSAGE: &str = "the disk is full";
const BELOW: &str = "the archive was never emptied";

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message)
    }
}

impl Error for Cause {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.below.as_deref().map(|below| below as &dyn Error)
    }
}

/// The messages of an error and of all that its sources lead to.
fn chain(error: &dyn Error) -> Vec<String> {
    let mut messages = vec![error.to_string()];
    let mut below = error.source();
    while let Some(error) = below {
        messages.push(error.to_string());
        below = error.source();
    }
    messages
}

#[test]
fn a_printed_chain_says_nothing_twice() {
    let mut holders = Vec::new();
    for (name, example) in EXAMPLES {
        let below = Some(Box::new(Cause { message: BELOW, below: None }));
        let messages = chain(&*example(io::Error::other(Cause { message: MESSAGE, below })));
        for pair in messages.windows(2) {
            assert!(!pair[0].contains(&pair[1]), "{name}: {messages:?}");
        }
        if messages.iter().any(|message| message.contains(BELOW)) {
            assert!(messages[0].contains(MESSAGE), "{name} hides its cause: {messages:?}");
            holders.push(*name);
        }
    }
    assert_eq!(holders, HOLDERS);
}

#[test]
fn every_error_type_has_an_example() {
    let mut types = BTreeSet::new();
    for file in files(&["rs"]) {
        let Some((folder, _)) = file.split_once("/src/") else { continue };
        for line in code_only(&text(&file)).lines() {
            let named = line.strip_prefix("impl").and_then(|line| line.split_once("::Error for "));
            if let Some((_, named)) = named {
                let name = named.split([' ', '<', '{']).next().unwrap_or(named);
                types.insert(format!("{folder}::{name}"));
            }
        }
    }
    let examples: BTreeSet<String> = EXAMPLES.iter().map(|(name, _)| name.to_string()).collect();
    assert_eq!(types, examples);
}
