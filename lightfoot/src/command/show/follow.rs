//! Follows a trace while it is written: `FILE.partial` as it grows, then `FILE`.
//!
//! The writer holds a lock on the partial file. If the lock is free, the writer is dead, and what
//! it has written is all there will be. The whole trace takes the place of `FILE` before the
//! partial file is removed, so that one of the two always exists. An older trace in that place is
//! told from the new one by its records.

use super::{columns, refuse, whole};
use crate::cli::Show;
use crate::trace::partial::partial;
use crate::trace::show::{excerpt, joined, summary, Columns, Shown};
use anyhow::{Context, Result};
use measure::trace::{decode, Record, Trace};
use present::exit::{Failure, USAGE};
use present::terminal::Page;
use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The time between two looks at the file; its writer hands records over as often.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// What there is of a trace.
enum Found {
    /// More may come.
    Growing(Trace),
    /// It is finished.
    Finished(Trace),
    /// Its writer died; this is the partial file.
    Abandoned(Trace, PathBuf),
    /// Neither file exists.
    Nothing,
}

pub(super) fn follow(options: &Show) -> Result<u8> {
    let path = whole(&options.file).unwrap_or_else(|| options.file.clone());
    let mut rows = Rows::new(options);
    loop {
        let (trace, is_last) = match look(&path)? {
            Found::Growing(trace) => (trace, false),
            Found::Finished(trace) => (trace, true),
            Found::Abandoned(trace, partial) => {
                present::tell!(
                    "lightfoot: the measurement was killed: {} has all that it wrote",
                    partial.display()
                );
                (trace, true)
            }
            Found::Nothing if rows.seen.is_empty() => {
                return refuse(format!(
                    "there is neither {} nor {}: start lightfoot trace -o {} first",
                    path.display(),
                    partial(&path).display(),
                    path.display()
                ));
            }
            Found::Nothing => return refuse("the measurement failed: its records were removed".into()),
        };
        if !trace.records.starts_with(&rows.seen) {
            return refuse(format!("the measurement failed: {} is another trace", path.display()));
        }
        // A reader that closed the pipe wants no more.
        if rows.show(trace, is_last)? == Reader::Gone || is_last {
            return Ok(0);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// What there is now.
fn look(path: &Path) -> Result<Found> {
    let partial = partial(path);
    match File::open(&partial) {
        Ok(mut file) => {
            // The lock is asked for before the file is read: if it is free, nothing is added.
            let is_free = !matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).with_context(|| format!("cannot read {}", partial.display()))?;
            // The file was finished and removed while it was being read.
            if is_free && !partial.exists() {
                return look(path);
            }
            let trace = decode(&bytes).map_err(|error| refusal(&partial, &error.to_string()))?;
            Ok(if is_free { Found::Abandoned(trace, partial) } else { Found::Growing(trace) })
        }
        Err(error) if error.kind() == ErrorKind::NotFound => match std::fs::read(path) {
            Ok(bytes) => {
                Ok(Found::Finished(decode(&bytes).map_err(|error| refusal(path, &error.to_string()))?))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Found::Nothing),
            Err(error) => Err(refusal(path, &error.to_string()).into()),
        },
        Err(error) => Err(refusal(&partial, &error.to_string()).into()),
    }
}

fn refusal(path: &Path, reason: &str) -> Failure {
    Failure { status: USAGE, sentence: format!("{}: {reason}", path.display()) }
}

/// Whether anybody reads what is printed.
#[derive(PartialEq)]
enum Reader {
    There,
    Gone,
}

/// What was printed so far.
struct Rows<'a> {
    options: &'a Show,
    page: Page,
    every: usize,
    columns: Option<(Vec<usize>, Columns)>,
    /// Records of the file that were shown.
    seen: Vec<Record>,
}

impl Rows<'_> {
    fn new(options: &Show) -> Rows<'_> {
        let every = options.every.unwrap_or(1) as usize;
        Rows { options, page: Page::of_stdout(), every, columns: None, seen: Vec::new() }
    }

    /// Prints the rows that are complete now, and at the end what the trace is as a whole.
    fn show(&mut self, trace: Trace, is_last: bool) -> Result<Reader> {
        let mut out = String::new();
        if self.columns.is_none() {
            let refuse = |error: anyhow::Error| refusal(&self.options.file, &error.to_string());
            let numbers = columns(self.options, &trace).map_err(refuse)?;
            let part = excerpt(trace.clone(), &numbers, &(0..u64::MAX))?;
            let columns = Columns::new(&part, self.page.width);
            out += &self.page.bold(columns.head(&part.header.metrics, "start").trim_end());
            out += "\n";
            self.columns = Some((numbers, columns));
        }
        let Some((numbers, columns)) = &self.columns else { return Ok(Reader::There) };
        // A row is printed when all its records are there.
        let complete =
            if is_last { trace.records.len() } else { trace.records.len() / self.every * self.every };
        let before = self.seen.len();
        self.seen = trace.records[..complete].to_vec();
        let part = excerpt(trace, numbers, &(0..u64::MAX))?;
        let rows = joined(&part, self.every);
        for row in before.div_ceil(self.every)..complete.div_ceil(self.every) {
            out += &columns.row(&rows, row, "");
        }
        if is_last {
            out += &format!(
                "\n{}",
                summary(&Shown::new(self.options.file.display().to_string(), part), &self.page)
            );
            out += &columns.left_out();
        }
        written(&out)
    }
}

/// Prints at once.
fn written(text: &str) -> Result<Reader> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(Reader::There),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Reader::Gone),
        Err(error) => Err(error).context("cannot write to standard output"),
    }
}
