//! A program that counts lines: how it is started, and what it counted.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How a program reads the pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// As it does without being told.
    Usual,
    /// Extended expressions of POSIX.
    Extended,
    /// Perl's.
    Perl,
}

/// A program in the race.
pub(crate) struct Contender {
    pub(crate) name: String,
    /// The first line of what it says about its version.
    pub(crate) version: String,
    program: PathBuf,
    words: Vec<String>,
    dialects: &'static [Dialect],
}

impl Contender {
    /// This search, with further words.
    pub(crate) fn own(words: &[String]) -> Contender {
        Contender {
            name: "lightfoot-grep".to_owned(),
            version: String::new(),
            program: PathBuf::from(env!("CARGO_BIN_EXE_lightfoot-grep")),
            words: [&["--no-config".to_owned()], words].concat(),
            dialects: &[Dialect::Usual],
        }
    }

    /// Another program; `None`, said on standard output, if it does not start.
    pub(crate) fn peer(name: &str, program: &Path) -> Option<Contender> {
        let said = Command::new(program).arg("--version").output();
        let Some(said) = said.ok().filter(|said| said.status.success()) else {
            println!("{name}: {} does not start, and takes no part", program.display());
            return None;
        };
        let version = String::from_utf8_lossy(&said.stdout).lines().next().unwrap_or_default().to_owned();
        let dialects: &[Dialect] = match version.contains("GNU grep") {
            true => &[Dialect::Extended, Dialect::Perl],
            false => &[Dialect::Usual],
        };
        let words = if name.contains("rg") { vec!["--no-config".to_owned()] } else { Vec::new() };
        Some(Contender { name: name.to_owned(), version, program: program.to_owned(), words, dialects })
    }

    fn command(&self, dialect: Dialect, pattern: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.env("LC_ALL", "C.UTF-8").args(&self.words).stdin(Stdio::null()).stderr(Stdio::null());
        match dialect {
            Dialect::Usual => {}
            Dialect::Extended => drop(command.arg("-E")),
            Dialect::Perl => drop(command.arg("-P")),
        }
        command.args(["-c", "-e", pattern]);
        command
    }

    /// What it prints for the matching lines of a file, and the time from start to end.
    pub(crate) fn count(&self, dialect: Dialect, pattern: &str, text: &Path) -> (String, Duration) {
        let mut command = self.command(dialect, pattern);
        command.arg(text);
        let start = Instant::now();
        let said = command.output().expect("a contender starts");
        let time = start.elapsed();
        let lines = String::from_utf8_lossy(&said.stdout).trim().to_owned();
        // ripgrep prints nothing for no line.
        (if lines.is_empty() && said.status.code() == Some(1) { "0".to_owned() } else { lines }, time)
    }

    /// The first dialect in which it counts `lines`.
    pub(crate) fn dialect_for(&self, pattern: &str, text: &Path, lines: &str) -> Option<Dialect> {
        self.dialects.iter().copied().find(|&dialect| self.count(dialect, pattern, text).0 == lines)
    }

    /// The time that it takes for all files of a folder.
    pub(crate) fn tree(&self, pattern: &str, folder: &Path) -> Duration {
        let mut command = self.command(*self.dialects.last().expect("a dialect"), pattern);
        if self.version.contains("grep") && !self.version.starts_with("ripgrep") {
            command.arg("-r");
        }
        command.arg(folder);
        let start = Instant::now();
        let said = command.output().expect("a contender starts");
        assert!(said.status.code().is_some_and(|code| code < 2), "{} on a folder", self.name);
        start.elapsed()
    }
}
