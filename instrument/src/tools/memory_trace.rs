//! Writes every reference of the program, in program order, to a file that [`event::file::Reader`]
//! reads.
//!
//! It uses the full stream and not events, because the stream also contains repeats, gathers and
//! masked accesses, whose addresses no single event can carry. The file gets its name when it is
//! complete; an older file of that name stays until then.

use super::setting::Setting;
use crate::tool::{Batch, Report, Summary, Tool};
use event::file::{Header, Writer};
use event::{Counter, RecordKind, Sink, Stream};
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

/// Writes a memory trace.
pub struct MemoryTrace {
    output: PathBuf,
    partial: PathBuf,
    /// `None` when the trace is complete.
    writer: Option<Writer<BufWriter<File>>>,
    failure: Option<io::Error>,
    counter: Counter,
}

impl MemoryTrace {
    /// Begins a trace that will be written to the output of `setting`.
    ///
    /// # Errors
    /// If `setting` names no output, or the file cannot be created.
    pub fn new(setting: &Setting) -> io::Result<MemoryTrace> {
        let none = || io::Error::new(io::ErrorKind::InvalidInput, "a memory trace needs a file to write to");
        let output = setting.output.clone().ok_or_else(none)?;
        if output.metadata().is_ok_and(|about| !about.is_file()) {
            let what = "a memory trace cannot take the place of what is no file";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let partial = partial(&output);
        let header = Header { stream: Stream::Full, layout: crate::code::state_area::state_layout() };
        let writer = Writer::new(BufWriter::new(event::file::begin(&partial)?), &header)?;
        Ok(MemoryTrace { output, partial, writer: Some(writer), failure: None, counter: Counter::default() })
    }

    fn write(&mut self, batch: &Batch<'_>) -> io::Result<()> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        let too_many =
            || io::Error::other("the program has more places that make references than a trace can number");
        let records = batch.records().collect::<Option<Vec<_>>>().ok_or_else(too_many)?;
        writer.tables(batch.sites())?;
        writer.records(batch.thread(), &records)?;
        self.counter.records(batch.thread(), &records);
        Ok(())
    }
}

impl Drop for MemoryTrace {
    /// Removes the partial file of a trace that was not completed.
    fn drop(&mut self) {
        if self.writer.take().is_some() || self.failure.is_some() {
            let _ = std::fs::remove_file(&self.partial);
        }
    }
}

impl Tool for MemoryTrace {
    fn stream(&self) -> Stream {
        Stream::Full
    }

    fn batch(&mut self, batch: &Batch<'_>) {
        if self.failure.is_none() {
            self.failure = self.write(batch).err();
        }
    }

    fn finish(&mut self, _summary: &Summary<'_>) -> io::Result<Report> {
        if let Some(failure) = &self.failure {
            return Err(io::Error::new(failure.kind(), format!("{}: {failure}", self.output.display())));
        }
        if let Some(writer) = self.writer.take() {
            writer.finish()?;
            std::fs::rename(&self.partial, &self.output)?;
        }
        let count = |kind| self.counter.count(kind);
        Ok(Report::totals([
            ("records", self.counter.total()),
            ("blocks", count(RecordKind::Block)),
            ("loads", count(RecordKind::Load) + count(RecordKind::Modify)),
            ("stores", count(RecordKind::Store) + count(RecordKind::Modify)),
            ("references of varying length", count(RecordKind::Complex)),
        ]))
    }
}

/// Path of the partial file, beside the output.
fn partial(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(".part");
    name.into()
}
