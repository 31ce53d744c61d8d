//! The working set: the numbers of different lines and pages of data that a program touches, in all
//! and in each window of time.
//!
//! A window is a fixed number of references of all threads together; Denning 1968 measures time in
//! references too. The tool uses the full stream. Of references of varying number (repeats,
//! gathers) it counts the first address only, so it slightly underestimates their lines.

use crate::tool::{Batch, Report, Row, Summary, Tool};
use event::{RecordKind, Stream};
use std::collections::HashSet;
use std::io;

/// Number of references in a window.
const WINDOW: u64 = 1 << 20;
/// log2 of the bytes of a line, and of a page.
const LINE_BITS: u32 = 6;
const PAGE_BITS: u32 = 12;
/// The most rows of the table: in longer runs, neighbouring windows share a row, which shows the
/// largest of them.
const ROWS_MAX: usize = 32;

/// The sets of line numbers and page numbers that were touched.
#[derive(Clone, Debug, Default)]
struct Touched {
    lines: HashSet<u64>,
    pages: HashSet<u64>,
}

impl Touched {
    fn touch(&mut self, address: u64, bytes: u64) {
        let last = address.saturating_add(bytes.max(1) - 1);
        self.lines.extend(address >> LINE_BITS..=last >> LINE_BITS);
        self.pages.extend(address >> PAGE_BITS..=last >> PAGE_BITS);
    }

    fn sizes(&self) -> [u64; 2] {
        [self.lines.len() as u64, self.pages.len() as u64]
    }
}

/// Measures working sets.
#[derive(Clone, Debug, Default)]
pub struct WorkingSet {
    /// The lines and pages that the current window has touched.
    window: Touched,
    /// The lines and pages that all completed windows have touched.
    all: Touched,
    /// Number of references so far.
    references: u64,
    /// Lines and pages of each completed window.
    windows: Vec<[u64; 2]>,
}

impl WorkingSet {
    /// Completes the current window.
    fn close(&mut self) {
        self.windows.push(self.window.sizes());
        self.all.lines.extend(self.window.lines.drain());
        self.all.pages.extend(self.window.pages.drain());
    }
}

impl Tool for WorkingSet {
    fn stream(&self) -> Stream {
        Stream::Full
    }

    fn batch(&mut self, batch: &Batch<'_>) {
        use RecordKind::{Complex, Load, Modify, Store};
        for record in batch.records().flatten() {
            if !matches!(record.code().kind(), Load | Store | Modify | Complex) {
                continue;
            }
            self.window.touch(record.address, record.code().size_bytes().into());
            self.references += 1;
            if self.references.is_multiple_of(WINDOW) {
                self.close();
            }
        }
    }

    fn finish(&mut self, _summary: &Summary<'_>) -> io::Result<Report> {
        if !self.references.is_multiple_of(WINDOW) {
            self.close();
        }
        let [lines, pages] = self.all.sizes();
        let most = |column: usize| self.windows.iter().map(|sizes| sizes[column]).max().unwrap_or(0);
        let joined = self.windows.len().div_ceil(ROWS_MAX).max(1);
        let row = |(index, windows): (usize, &[[u64; 2]])| {
            let largest = |column: usize| windows.iter().map(|sizes| sizes[column]).max().unwrap_or(0);
            let name = format!("from reference {}", (index * joined) as u64 * WINDOW);
            Row { name, values: vec![largest(0), largest(1)] }
        };
        let rows: Vec<Row> = self.windows.chunks(joined).enumerate().map(row).collect();
        let report = Report::totals([
            ("references", self.references),
            ("lines of 64 bytes", lines),
            ("pages of 4,096 bytes", pages),
            ("lines of the largest window", most(0)),
            ("pages of the largest window", most(1)),
        ]);
        Ok(report.with_table(["lines", "pages"], rows))
    }
}
