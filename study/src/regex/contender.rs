//! Who takes part: greps that are installed, libraries behind programs of our own, and bit streams
//! with each width of vectors.
//!
//! To add one: an entry in [`CONTENDERS`].

use super::family::Family;
use super::matches::{DFA_ENGINE, NFA_ENGINE};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How a contender matches, as the paper sorts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Bit streams.
    Streams,
    /// Simulates an NFA.
    Nfa,
    /// Runs a DFA, if a lazy one.
    Dfa,
    /// Backtracks.
    Backtracking,
    /// Looks for literals first, then something else.
    Filtered,
}

/// How a contender is called.
#[derive(Clone, Copy, Debug)]
pub(super) enum Call {
    /// `lightfoot grep`.
    Grep,
    /// `lightfoot matches` with this engine.
    Engine(&'static str),
    /// A program, with the words before the pattern.
    Program(&'static [&'static str]),
    /// The program beside this file that is compiled against Vectorscan.
    Vectorscan,
}

/// A contender.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contender {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) call: Call,
    /// It gets this part of the text: an engine that is slow whatever the pattern, less.
    pub(super) part: usize,
}

/// Bit streams with the vectors of the paper's measurements.
pub(super) const SSE2: &str = "streams, SSE2";
pub(super) const AVX2: &str = "streams, AVX2";
pub(super) const AVX512: &str = "streams, AVX-512";

const fn of(name: &'static str, kind: Kind, call: Call, part: usize) -> Contender {
    Contender { name, kind, call, part }
}

/// Everybody.
pub(super) const CONTENDERS: &[Contender] = &[
    of("lightfoot grep", Kind::Filtered, Call::Grep, 1),
    of(SSE2, Kind::Streams, Call::Engine("jit-sse2"), 1),
    of(AVX2, Kind::Streams, Call::Engine("jit-avx2"), 1),
    of(AVX512, Kind::Streams, Call::Engine("jit-avx512"), 1),
    of("GNU grep", Kind::Dfa, Call::Program(&["grep", "-a", "-c", "-E", "-e"]), 4),
    of("GNU grep -P", Kind::Backtracking, Call::Program(&["grep", "-a", "-c", "-P", "-e"]), 4),
    of("agrep (TRE)", Kind::Nfa, Call::Program(&["tre-agrep", "-c", "-e"]), 16),
    of("nrgrep", Kind::Nfa, Call::Program(&["nrgrep", "-c"]), 16),
    of("ripgrep", Kind::Filtered, Call::Program(&["rg", "--no-config", "-j1", "-a", "-c", "-e"]), 1),
    of("ugrep", Kind::Filtered, Call::Program(&["ugrep", "-J1", "-a", "-c", "-e"]), 4),
    of("regex's lazy DFA", Kind::Dfa, Call::Engine(DFA_ENGINE), 4),
    of("regex's NFA", Kind::Nfa, Call::Engine(NFA_ENGINE), 16),
    of("Vectorscan", Kind::Filtered, Call::Vectorscan, 1),
];

/// What calls need: lightfoot itself, and the compiled program or why there is none.
pub(super) struct Programs {
    own: PathBuf,
    vectorscan: Result<PathBuf, String>,
}

impl Programs {
    /// Finds lightfoot, and compiles what has to be.
    ///
    /// # Errors
    /// When the system does not say where this executable is.
    pub(super) fn new(folder: &Path) -> std::io::Result<Programs> {
        Ok(Programs { own: std::env::current_exe()?, vectorscan: compile_vectorscan(folder) })
    }

    /// The program that measures the others.
    pub(super) fn own(&self) -> &Path {
        &self.own
    }

    /// The words that count a family's lines in the file that is named behind them.
    pub(super) fn words(&self, contender: &Contender, family: &Family) -> Result<Vec<OsString>, String> {
        let (program, before, pattern): (OsString, Vec<&str>, String) = match contender.call {
            Call::Grep => {
                let words = ["grep", "--no-config", "-j1", "-a", "-c", "-e"];
                (self.own.clone().into(), words.to_vec(), family.pattern.into())
            }
            Call::Engine(engine) => (self.own.clone().into(), vec!["matches", engine], family.pattern.into()),
            Call::Program(words) => (words[0].into(), words[1..].to_vec(), family.pattern.into()),
            // It knows no lines, so that what a negated class may hold has to be said.
            Call::Vectorscan => {
                (self.vectorscan.clone()?.into(), Vec::new(), family.pattern.replace("[^", "[^\\n"))
            }
        };
        let before = before.into_iter().map(OsString::from);
        Ok([program].into_iter().chain(before).chain([pattern.into()]).collect())
    }
}

/// Compiles the program that calls Vectorscan, where its library is installed.
fn compile_vectorscan(folder: &Path) -> Result<PathBuf, String> {
    let (source, program) = (folder.join("vectorscan.c"), folder.join("vectorscan"));
    std::fs::write(&source, include_str!("programs/vectorscan.c")).map_err(|error| error.to_string())?;
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-o"]).arg(&program).arg(&source).arg("-lhs");
    let status = compiler.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(program),
        Ok(_) => Err(String::from("not installed (Debian: libvectorscan-dev)")),
        Err(error) => Err(format!("no C compiler: {error}")),
    }
}
