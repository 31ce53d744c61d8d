//! The empty tool: asks for nothing, and nothing is counted, so that what its run takes longer than
//! a native one is the price of translation.

use crate::tool::{Report, Summary, Tool};
use event::Stream;
use std::io;

/// Asks for nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nothing;

impl Tool for Nothing {
    fn stream(&self) -> Stream {
        Stream::Nothing
    }

    fn finish(&mut self, summary: &Summary<'_>) -> io::Result<Report> {
        let effort = summary.outcome().effort;
        Ok(Report::totals([("fragments", effort.fragments), ("bytes of code", effort.code_bytes)]))
    }
}
