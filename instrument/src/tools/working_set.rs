//! The working set: how many different lines and pages of data a program touches, in all and in
//! each window of time.
//!
//! A window is a number of references of all threads together (Denning 1968 measures time so).
//! Takes the full stream; references of varying number (repeats, gathers) count by their first
//! address only, which a table of lines hardly notices.

use crate::tool::{Batch, Report, Row, Summary, Tool};
use event::{RecordKind, Stream};
use std::collections::HashSet;
use std::io;

/// References of a window.
const WINDOW: u64 = 1 << 20;
/// Bytes of a line, and of a page, as powers of two.
const LINE_BITS: u32 = 6;
const PAGE_BITS: u32 = 12;
/// Rows of the table at most: windows are joined, largest first.
const ROWS_MAX: usize = 32;

/// Different lines and pages.
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
    window: Touched,
    all: Touched,
    references: u64,
    windows: Vec<[u64; 2]>,
}

impl WorkingSet {
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
