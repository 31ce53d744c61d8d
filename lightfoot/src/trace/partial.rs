//! Writes records to disk during a run, so that an interrupted measurement keeps its records.
//!
//! During a run, records are appended to a separate trace file, `FILE.partial`, at most `EVERY`
//! after they were made. When the run is over, the whole trace, with the fields that are known only
//! then, is written to another file, which is renamed to `FILE`. A partial file that remains is a
//! cut trace, and all commands read it. It is locked as long as its writer lives, so that a reader
//! knows whether more will come. A partial file that cannot be created stops the command
//! before the program runs; one that cannot be extended later stops nothing: the trace says so.

use anyhow::{Context, Result};
use measure::trace::{Header, Record, Writer};
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The longest time between the making of a record and its write to the file.
const EVERY: Duration = Duration::from_millis(250);
const BUFFER_BYTES: usize = 1 << 16;

/// The partial file of the trace at `path`.
pub fn partial(path: &Path) -> PathBuf {
    let mut name = path.to_owned().into_os_string();
    name.push(".partial");
    name.into()
}

/// The partial trace file of a run; without a path nothing is written.
#[derive(Debug, Default)]
pub(super) struct Partial {
    open: Option<Open>,
    complaint: Option<String>,
}

#[derive(Debug)]
struct Open {
    path: PathBuf,
    writer: Writer<BufWriter<File>>,
    handed_over: Instant,
}

impl Partial {
    /// Begins the file, if there is a path.
    ///
    /// # Errors
    /// When it cannot be created.
    pub(super) fn new(path: Option<&Path>, header: &Header) -> Result<Partial> {
        let Some(path) = path else { return Ok(Partial::default()) };
        let create = || -> Result<Writer<BufWriter<File>>> {
            let file = event::file::begin(path)?;
            // Where the file system has no locks, readers take the writer for dead.
            let _ = file.try_lock();
            let buffer = BufWriter::with_capacity(BUFFER_BYTES, file);
            let mut writer = Writer::new(buffer, header).map_err(cause)?;
            writer.flush().map_err(cause)?;
            Ok(writer)
        };
        let writer = create().with_context(|| format!("cannot write {}", path.display()))?;
        let open = Open { path: path.to_owned(), writer, handed_over: Instant::now() };
        Ok(Partial { open: Some(open), complaint: None })
    }

    /// Appends a record.
    pub(super) fn record(&mut self, record: &Record) {
        self.append(|open| open.record(record));
    }

    /// Appends new names of functions, and what functions executed in the last record.
    pub(super) fn functions(&mut self, names: &[String], instructions: &[(u32, u64)]) {
        self.append(|open| {
            if !names.is_empty() {
                open.writer.names(names)?;
            }
            open.writer.functions(instructions)
        });
    }

    fn append(&mut self, write: impl FnOnce(&mut Open) -> Result<(), measure::Error>) {
        let Some(open) = &mut self.open else { return };
        if let Err(error) = write(open) {
            let path = open.path.display();
            self.complaint =
                Some(format!("records were not kept in {path} while the program ran: {}", cause(error)));
            self.open = None;
        }
    }

    /// A sentence for the trace's readers if records could not be kept during the run.
    pub(super) fn complaint(&self) -> Option<String> {
        self.complaint.clone()
    }
}

/// The system's message about a failed write; the sentence around it names the file.
fn cause(error: measure::Error) -> anyhow::Error {
    match error {
        measure::Error::Io { error, .. } => error.into(),
        other => other.into(),
    }
}

impl Open {
    fn record(&mut self, record: &Record) -> Result<(), measure::Error> {
        self.writer.record(record)?;
        if self.handed_over.elapsed() < EVERY {
            return Ok(());
        }
        self.handed_over = Instant::now();
        self.writer.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::format::tests::example;
    use measure::trace::decode;

    #[test]
    fn what_was_recorded_can_be_read_before_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.partial");
        let trace = example();
        let mut partial = Partial::new(Some(&path), &trace.header).unwrap();
        assert!(decode(&std::fs::read(&path).unwrap()).unwrap().records.is_empty());
        partial.record(&trace.records[0]);
        std::thread::sleep(EVERY);
        partial.record(&trace.records[1]);
        let read = decode(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(read.records, trace.records);
        assert!(read.cut.unwrap().why.contains("killed"));
    }

    #[test]
    fn a_link_in_its_place_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("t.partial"), folder.path().join("other"));
        std::fs::write(&other, "kept").unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        let trace = example();
        let said = format!("{:#}", Partial::new(Some(&path), &trace.header).unwrap_err());
        assert!(said.contains("t.partial") && said.contains("no file"), "{said}");
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "kept");
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "what an earlier run left, longer than a header by far").unwrap();
        drop(Partial::new(Some(&path), &trace.header).unwrap());
        assert!(decode(&std::fs::read(&path).unwrap()).unwrap().records.is_empty());
    }

    #[test]
    fn a_cause_is_said_once() {
        let full = || std::io::Error::from_raw_os_error(28);
        let failed = || measure::Error::Io { doing: "write the trace", error: full() };
        assert_eq!(format!("{:#}", cause(failed())), full().to_string());
        let chain = format!("{:#}", anyhow::Error::from(failed()).context("cannot write t"));
        assert_eq!(chain, format!("cannot write t: cannot write the trace: {}", full()));
    }

    #[test]
    fn a_full_disk_is_said_and_stops_nothing() {
        let full = Path::new("/dev/full");
        let trace = example();
        assert!(Partial::new(Some(full), &trace.header).is_err());
        let mut partial = Partial::new(None, &trace.header).unwrap();
        partial.record(&trace.records[0]);
        assert_eq!(partial.complaint(), None);
    }
}
