//! The machines that can run a target and report: the slow twin and the engine.

use super::child::Report;
use event::{Decoder, Record, ReferenceKind, Sites, StateLayout, Stream};
use lightfoot_instrument::reference::{self, Reference};
use lightfoot_instrument::{Command, Observer, Options};
use std::ffi::OsString;
use std::path::PathBuf;

/// Bytes of an instruction line.
const LINE_BYTES: u32 = 64;

/// Runs `program` under the slow twin.
pub(crate) fn twin(program: OsString) -> Report {
    let command = Command { program, arguments: Vec::new() };
    let (mut references, mut lines, mut owners) = (Vec::new(), Vec::new(), Vec::new());
    let outcome = reference::run(&command, &mut |step| {
        references.extend_from_slice(step.references);
        owners.resize(references.len(), step.ip);
        step.lines(LINE_BYTES.into()).for_each(|line| visit(&mut lines, line));
    })
    .unwrap_or_else(|error| panic!("{error}"));
    Report {
        ends: outcome.exit.into(),
        instructions: outcome.instructions,
        repeats: outcome.repeats,
        blocks: outcome.blocks,
        unmodelled: outcome.unmodelled,
        references,
        lines,
        owners,
    }
}

/// Runs `program` under the engine with the full stream.
pub(crate) fn engine(program: OsString) -> Report {
    let command = Command { program, arguments: Vec::new() };
    let mut seen = Seen::default();
    let options = Options { stream: Stream::Full, ..Options::default() };
    let outcome =
        lightfoot_instrument::run(&command, &options, &mut seen).unwrap_or_else(|error| panic!("{error}"));
    Report {
        ends: outcome.exit.into(),
        instructions: outcome.profile.instructions_retired(),
        repeats: outcome.profile.repeats.iter().map(|&(_, beyond_first)| beyond_first).sum(),
        blocks: seen.blocks,
        unmodelled: seen.damaged,
        references: seen.references,
        lines: seen.lines,
        owners: Vec::new(),
    }
}

/// Runs `program` under the engine, counting only: the instructions that the counters say, and
/// nothing else. Translations may be kept in a folder.
pub(crate) fn counting_engine(program: OsString, translations: Option<PathBuf>) -> Report {
    let command = Command { program, arguments: Vec::new() };
    let options = Options { stream: Stream::Counts, translations, ..Options::default() };
    let outcome = lightfoot_instrument::run(&command, &options, &mut Seen::default())
        .unwrap_or_else(|error| panic!("{error}"));
    Report {
        ends: outcome.exit.into(),
        instructions: outcome.profile.instructions_retired(),
        repeats: outcome.profile.repeats.iter().map(|&(_, beyond_first)| beyond_first).sum(),
        blocks: 0,
        unmodelled: 0,
        references: Vec::new(),
        lines: Vec::new(),
        owners: Vec::new(),
    }
}

/// Notes a line unless it is the last one again.
fn visit(lines: &mut Vec<u64>, line: u64) {
    if lines.last() != Some(&line) {
        lines.push(line);
    }
}

/// What the engine's records amount to.
struct Seen {
    decoder: Decoder,
    /// Empty: addresses and sizes stand in the records themselves.
    sites: Sites,
    references: Vec<Reference>,
    lines: Vec<u64>,
    blocks: u64,
    damaged: u64,
}

impl Default for Seen {
    fn default() -> Seen {
        Seen {
            decoder: Decoder::new(0, LINE_BYTES, StateLayout::default()),
            sites: Sites::default(),
            references: Vec::new(),
            lines: Vec::new(),
            blocks: 0,
            damaged: 0,
        }
    }
}

impl Observer for Seen {
    fn records(&mut self, _thread: u32, records: &[Record]) {
        let (references, lines) = (&mut self.references, &mut self.lines);
        for record in records {
            self.blocks += u64::from(
                record.code().kind() == event::RecordKind::Block && record.site() != event::CUT_SITE,
            );
            let decoded = self.decoder.decode(record, &self.sites, |r| match r.kind {
                ReferenceKind::Fetch => visit(lines, r.address),
                ReferenceKind::Data(access) => {
                    references.push(Reference { access, address: r.address, size_bytes: r.size_bytes });
                }
            });
            self.damaged += u64::from(decoded.is_err());
        }
    }
}
