//! The analysis side of a tool: maintains its tables and passes records to it in batches.
//!
//! It is an [`Observer`] and runs on the observer's thread. Every process image numbers its sites,
//! blocks and requests from 0; here they get running numbers, as in the final profile.

use super::batch::{Batch, Tables};
use super::interface::Tool;
use crate::instrumentation::instrumenter::TableUpdate;
use crate::outcome::{ComplexCounts, Observer, Progress, TurnStart};
use event::Record;
use std::sync::mpsc::Receiver;

/// The observer that passes records to a tool.
pub(crate) struct Analysis<'a> {
    tool: &'a mut dyn Tool,
    updates: Receiver<TableUpdate>,
    /// A table update for an image whose records have not arrived yet.
    held: Option<TableUpdate>,
    image: u32,
    tables: Tables,
}

impl<'a> Analysis<'a> {
    pub(crate) fn new(tool: &'a mut dyn Tool, updates: Receiver<TableUpdate>) -> Analysis<'a> {
        Analysis { tool, updates, held: None, image: 0, tables: Tables::default() }
    }

    /// Applies the updates of all images up to number `image`.
    fn catch_up(&mut self, image: u32) {
        while let Some(updates) = self.held.take().or_else(|| self.updates.try_recv().ok()) {
            match updates {
                TableUpdate::Starts(program) if program.image > image => {
                    self.held = Some(TableUpdate::Starts(program));
                    return;
                }
                TableUpdate::Starts(program) => {
                    let tables = &mut self.tables;
                    (tables.first_site, tables.first_block) =
                        (tables.sites.sites.len(), tables.sites.blocks.len());
                    tables.first_request = tables.requests.len();
                    self.tool.start(&program);
                }
                TableUpdate::Grown(sites, requests) => {
                    self.tables.sites.sites.extend(sites.sites);
                    self.tables.sites.blocks.extend(sites.blocks);
                    self.tables.requests.extend(requests);
                }
            }
        }
    }

    /// Ends the run: applies all updates that are left, also those of images without records.
    pub(crate) fn finish(mut self) {
        self.catch_up(u32::MAX);
    }
}

impl Observer for Analysis<'_> {
    fn records(&mut self, thread: u32, records: &[Record]) {
        self.catch_up(self.image);
        self.tool.batch(&Batch { thread, records, tables: &self.tables });
    }

    fn complex_counts(&self) -> ComplexCounts {
        self.tool.complex_counts()
    }

    fn image(&mut self, number: u32) {
        self.image = number;
    }

    fn thread_ended(&mut self, _image: u32, thread: u32) {
        self.tool.thread_ended(thread);
    }

    fn turn(&mut self, _image: u32, thread: u32, start: TurnStart) {
        self.tool.turn(thread, start);
    }

    fn progress(&mut self, _progress: &Progress) {
        self.catch_up(self.image);
    }
}
