//! A program that counts lines: how it is started, and what it counted.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
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

impl Dialect {
    /// Whether a pattern of the list means the same in this dialect. A misread pattern may match no
    /// line, as the pattern itself does in some texts.
    fn reads(self, pattern: &str) -> bool {
        let is_of_perl = ["(?", r"\d", r"\p"].iter().any(|part| pattern.contains(part));
        self != Dialect::Extended || !is_of_perl
    }
}

/// Whether a program ends within the time that it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speed {
    Fast,
    Slow,
}

/// What a program said.
pub(crate) struct Counted {
    /// The number of lines; `None` if it was ended because it took too long.
    pub(crate) lines: Option<String>,
    pub(crate) time: Duration,
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
    pub(crate) fn count(&self, dialect: Dialect, pattern: &str, text: &Path, most: Duration) -> Counted {
        let mut command = self.command(dialect, pattern);
        command.arg(text).stdout(Stdio::piped());
        let start = Instant::now();
        let (said, status) = finished(command.spawn().expect("a contender starts"), most);
        let time = start.elapsed();
        let lines = match said.trim() {
            // ripgrep prints nothing for no line.
            "" if status.code() == Some(1) => "0".to_owned(),
            lines => lines.to_owned(),
        };
        Counted { lines: status.code().map(|_| lines), time }
    }

    /// The first dialect in which it counts `lines`; else the first one in which it takes too long.
    pub(crate) fn dialect_for(
        &self,
        pattern: &str,
        text: &Path,
        lines: &str,
        most: Duration,
    ) -> Option<(Dialect, Speed)> {
        let mut slow = None;
        for &dialect in self.dialects.iter().filter(|dialect| dialect.reads(pattern)) {
            match self.count(dialect, pattern, text, most).lines {
                Some(found) if found == lines => return Some((dialect, Speed::Fast)),
                Some(_) => {}
                None => slow = slow.or(Some((dialect, Speed::Slow))),
            }
        }
        slow
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

/// Waits until a program ends, or ends it: what it printed, and how it ended.
fn finished(mut child: Child, most: Duration) -> (String, ExitStatus) {
    let mut output = child.stdout.take().expect("its output is a pipe");
    let (tell, told) = mpsc::channel();
    // The watcher has the child, so that nobody else's process can be ended.
    let watcher = std::thread::spawn(move || {
        if told.recv_timeout(most).is_err() {
            // It may have ended just now.
            let _ = child.kill();
        }
        child.wait().expect("a contender ends")
    });
    let mut said = Vec::new();
    output.read_to_end(&mut said).expect("a contender's output");
    // The watcher may be done already.
    let _ = tell.send(());
    (String::from_utf8_lossy(&said).into_owned(), watcher.join().expect("the watcher ends"))
}
