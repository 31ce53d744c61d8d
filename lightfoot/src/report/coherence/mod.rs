//! The report of coherent caches: misses by cause, the lines that cores took from each other, what
//! lies in them, and the places in the program that met there.
//!
//! Names are looked up when the program has ended. Objects are blocks of the heap by the call that
//! allocated them, variables, and the main thread's stack.

mod csv;
mod json;
mod naming;
mod text;

use ::objects::FieldPlace;
use coherence::{CoherenceProfile, Counts, LineCounts, Pair, Touched};
use instrument::Profile;
use naming::Namer;
use present::order::SortRows;
use serde::Serialize;
use std::collections::BTreeMap;

/// The program, its end, and how it was simulated.
#[derive(Clone, Debug, Default)]
pub struct CoherentRun {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The status that a shell would report.
    pub exit_status: u8,
    /// Whether the user interrupted the measurement.
    pub partial: bool,
    /// The machine's name.
    pub machine: String,
    /// The private levels by name, with their sizes in bytes.
    pub levels: Vec<(String, u64)>,
    /// Instructions of a turn.
    pub quantum: u32,
    /// With `--cores`: on what the threads ran.
    pub placed: Option<Placed>,
    /// Instructions of all threads.
    pub instructions: u64,
    /// Seconds from start to end.
    pub wall_s: f64,
}

/// Cores that threads share.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Placed {
    /// How many they are.
    pub cores: usize,
    /// How often a thread changed its core.
    pub migrations: u64,
}

/// The report.
#[derive(Clone, Debug, Default)]
pub struct CoherenceReport {
    /// The program and its end.
    pub ran: CoherentRun,
    /// Bytes of a line.
    pub line_bytes: u32,
    /// Sums over all cores.
    pub total: Counts,
    /// Each core with the threads that ran on it.
    pub cores: Vec<(Vec<u32>, Counts)>,
    /// Lines of which copies were taken, those with most sharing misses first.
    pub lines: Vec<LineRow>,
    /// Objects, those with most sharing misses first.
    pub objects: Vec<ObjectRow>,
    /// Pairs of places, those with most sharing misses first.
    pub pairs: Vec<PairRow>,
    /// Sentences that the user should see.
    pub warnings: Vec<String>,
}

/// A line of memory.
#[derive(Clone, Debug, Default)]
pub struct LineRow {
    /// Its address.
    pub address: u64,
    /// What was counted.
    pub counts: LineCounts,
    /// The bytes that each core touched.
    pub touched: Vec<Touched>,
    /// What lies in it.
    pub objects: Vec<Lying>,
    /// The places that met in it, those with most misses first.
    pub pairs: Vec<PairRow>,
}

/// An object, and where it lies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lying {
    /// What it is.
    pub name: String,
    /// Its address, if its beginning is known.
    pub address: Option<u64>,
    /// Its bytes, if they are known.
    pub size_bytes: Option<u64>,
    /// Its fields in the line, where debug information tells its type.
    pub fields: Vec<FieldPlace>,
}

/// All lines of the objects of one name.
#[derive(Clone, Debug, Default)]
pub struct ObjectRow {
    /// What they are.
    pub name: String,
    /// How many lines of them were shared.
    pub lines: u64,
    /// What was counted in these lines.
    pub counts: LineCounts,
}

/// Two places in the program: the one that missed, and the one whose write took the line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PairRow {
    /// The place that missed.
    pub missed: Place,
    /// The place whose write took the line.
    pub took: Place,
    /// Misses of truly shared bytes.
    pub true_sharing: u64,
    /// Misses of falsely shared bytes.
    pub false_sharing: u64,
}

/// A place in the program.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Its frames: code that is inlined has one of its own, the innermost first.
    pub frames: Vec<Frame>,
}

/// A frame of a place.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Frame {
    /// The function.
    pub function: String,
    /// The file that holds the code.
    pub library: String,
    /// The source file, if debug information has it.
    pub file: Option<String>,
    /// The line there.
    pub line: Option<u32>,
}

impl PairRow {
    /// Misses of both kinds.
    pub fn sharing(&self) -> u64 {
        self.true_sharing + self.false_sharing
    }
}

impl CoherenceReport {
    /// The report of a run; names are looked up here.
    pub fn new(
        ran: CoherentRun,
        found: &CoherenceProfile,
        profile: &Profile,
        warnings: Vec<String>,
    ) -> CoherenceReport {
        let results = &found.results;
        let mut namer = Namer::new(profile);
        let mut of_line: Vec<Vec<&Pair>> = vec![Vec::new(); results.lines.len()];
        results.pairs.iter().for_each(|pair| of_line[pair.line as usize].push(pair));
        let mut lines: Vec<LineRow> = Vec::new();
        for (index, line) in results.lines.iter().enumerate() {
            let blocks = found.blocks.get(index).map_or(&[][..], |blocks| blocks);
            let end = line.address + u64::from(results.line_bytes);
            let pairs = of_line[index].iter().map(|pair| namer.pair(pair));
            let pairs = summed(pairs.collect::<Vec<_>>());
            let (counts, touched) = (line.counts, line.touched.clone());
            let objects = namer.objects(line.address..end, blocks);
            lines.push(LineRow { address: line.address, counts, touched, objects, pairs });
        }
        lines.sort_rows_by_key(|line| std::cmp::Reverse((line.counts.sharing(), line.counts.invalidations)));
        let pairs = summed(lines.iter().flat_map(|line| line.pairs.iter().cloned()));
        let objects = objects(&lines);
        let threads = found.threads.iter().cloned().chain(std::iter::repeat(Vec::new()));
        CoherenceReport {
            ran,
            line_bytes: results.line_bytes,
            total: results.total,
            cores: threads.zip(results.cores.iter().copied()).collect(),
            lines,
            objects,
            pairs,
            warnings,
        }
    }
}

/// One row for each pair of places, those with most misses first.
fn summed(pairs: impl IntoIterator<Item = PairRow>) -> Vec<PairRow> {
    let mut sums: BTreeMap<(Place, Place), (u64, u64)> = BTreeMap::new();
    for PairRow { missed, took, true_sharing, false_sharing } in pairs {
        let sum = sums.entry((missed, took)).or_default();
        (sum.0, sum.1) = (sum.0 + true_sharing, sum.1 + false_sharing);
    }
    let row = |((missed, took), (true_sharing, false_sharing))| PairRow {
        missed,
        took,
        true_sharing,
        false_sharing,
    };
    let mut rows: Vec<PairRow> = sums.into_iter().map(row).collect();
    rows.sort_rows_by_key(|row| std::cmp::Reverse(row.sharing()));
    rows
}

/// One row for each object, those with most misses first. A line counts for each object in it.
fn objects(lines: &[LineRow]) -> Vec<ObjectRow> {
    let mut rows: BTreeMap<&str, ObjectRow> = BTreeMap::new();
    for line in lines {
        let mut names: Vec<&str> = line.objects.iter().map(|object| object.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let row = rows.entry(name).or_default();
            row.lines += 1;
            row.counts.true_sharing += line.counts.true_sharing;
            row.counts.false_sharing += line.counts.false_sharing;
            row.counts.upgrades += line.counts.upgrades;
            row.counts.invalidations += line.counts.invalidations;
            row.counts.dirty_transfers += line.counts.dirty_transfers;
        }
    }
    let named = |(name, row): (&str, ObjectRow)| ObjectRow { name: name.to_owned(), ..row };
    let mut rows: Vec<ObjectRow> = rows.into_iter().map(named).collect();
    rows.sort_rows_by_key(|row| std::cmp::Reverse((row.counts.sharing(), row.counts.invalidations)));
    rows
}

impl Frame {
    /// The function, with its place in the source or the name of its file.
    fn named(&self) -> String {
        let base = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
        match (&self.file, self.line) {
            (Some(file), Some(line)) => format!("{} ({}:{line})", self.function, base(file)),
            _ => format!("{} [{}]", self.function, base(&self.library)),
        }
    }
}

impl Place {
    /// Its frames, the innermost first.
    fn named(&self) -> String {
        let frames: Vec<String> = self.frames.iter().map(Frame::named).collect();
        frames.join(" < ")
    }
}

/// The runs of a line's bytes whose bits are set, as first and last byte.
fn runs(bits: u64, line_bytes: u32) -> Vec<(u32, u32)> {
    let bytes_of_bit = line_bytes.div_ceil(64);
    let is_set = |bit: u32| bit < 64 && bits >> bit & 1 != 0;
    let mut runs = Vec::new();
    for bit in (0..64).filter(|&bit| is_set(bit)) {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == bit * bytes_of_bit => *last += bytes_of_bit,
            _ => runs.push((bit * bytes_of_bit, (bit + 1) * bytes_of_bit - 1)),
        }
    }
    runs
}

#[cfg(test)]
mod tests;
