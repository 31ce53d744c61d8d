//! The row of one of several processes.

use crate::run::tally::Counts;
use serde::Serialize;

/// One process of a run.
#[derive(Clone, Debug, Serialize)]
pub struct ProcessRow {
    /// Its process number in the system.
    pub pid: i32,
    /// Its parent's process number; null for the program itself.
    pub parent: Option<i32>,
    /// Its number among the processes of the report, from 1.
    pub place: usize,
    /// Its parent's number among the processes of the report.
    pub parent_place: Option<usize>,
    /// The program that it executed last; for a child that executed none, that of its parent.
    pub command: Vec<String>,
    /// The exit status as a shell reports it; null if it ran on without being counted.
    pub exit_status: Option<u8>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// Its counts over all programs that it executed.
    #[serde(flatten)]
    pub counts: Counts,
}

impl ProcessRow {
    /// A title with its number, its end and its program, whose folders are omitted to leave room
    /// for arguments.
    pub fn title(&self) -> String {
        let of = self.parent_place.map(|parent| format!(" of #{parent}")).unwrap_or_default();
        let end = match (self.signal, self.exit_status) {
            (Some(signal), _) => format!("signal {signal}"),
            (None, Some(status)) => format!("exit {status}"),
            (None, None) => "not counted to its end".into(),
        };
        let mut words = self.command.clone();
        if let Some(first) = words.first_mut() {
            *first = first.rsplit('/').next().unwrap_or_default().to_owned();
        }
        format!("#{}{of}, {end}: {}", self.place, words.join(" "))
    }
}
