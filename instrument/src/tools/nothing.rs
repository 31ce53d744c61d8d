//! The empty tool. It makes no requests, and the engine counts nothing, so the difference of its
//! run's time from that of a native run is the cost of translation.

use crate::tool::{Report, Summary, Tool};
use event::Stream;
use std::io;

/// Makes no requests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nothing;

impl Tool for Nothing {
    fn stream(&self) -> Stream {
        Stream::Nothing
    }

    fn finish(&mut self, summary: &Summary<'_>) -> io::Result<Report> {
        let stats = summary.outcome().stats;
        Ok(Report::totals([("fragments", stats.fragments), ("bytes of code", stats.code_bytes)]))
    }
}
