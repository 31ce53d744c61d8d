//! Records per second of the simulator, on streams of known character:
//! `cargo bench -p lightfoot-simulate [NAME]`; with the paths of files of raw records in place of
//! names, nanoseconds per record of what a program recorded.
//!
//! **Shapes.** 2^16 records (a ring of 1 MiB, so that what is timed is not the host's memory), over
//! and over for a fixed time, one thread. `hits` stays within the first level, `mix` resembles the
//! filtered stream of a compiler (a quarter of it fetches, three quarters of all hit the first
//! level), `scan` misses every level, `full` is an unfiltered stream with blocks. A file is
//! replayed as the command does it, for `cachegrind` and the stream that is planned for it: batch
//! after batch in one buffer of a ring's size, whose filling is not timed. **Units.** Millions of
//! records per second of wall time; best of the rounds.

use event::{Record, RecordKind};
use lightfoot_simulate::{
    plan_levels, FetchTlb, Geometry, Hierarchy, Inclusion, Levels, Outer, Pages, Policy, Prefetch, Refined,
    Sharing, Simulator, WriteBacks,
};
use machine::SliceMasks;
use std::path::Path;
use std::time::{Duration, Instant};

/// Records of a stream.
const RECORDS: usize = 1 << 16;
/// Time for one row.
const ROW: Duration = Duration::from_millis(700);

/// Records that the command takes at once.
const BATCH: usize = 61_440;
/// Bytes of a record.
const RECORD_BYTES: usize = size_of::<Record>();

/// A machine and its name.
type Machine = (&'static str, fn() -> Levels);
/// A stream and its name.
type Stream = (&'static str, fn() -> Vec<Record>);

const MACHINES: &[Machine] = &[
    ("cachegrind", cachegrind),
    ("server", server),
    ("atom", atom),
    ("policies", policies),
    ("prefetchers", prefetchers),
    ("victim", victim),
    ("pages", pages),
];
const STREAMS: &[Stream] = &[("hits", hits), ("mix", mix), ("scan", scan), ("full", full)];

fn main() {
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let (files, wanted): (Vec<String>, Vec<String>) = wanted.into_iter().partition(|name| name.contains('/'));
    if !files.is_empty() {
        return files.iter().for_each(|path| replay(Path::new(path)));
    }
    for (stream, records) in STREAMS {
        let records = records();
        for (machine, levels) in MACHINES {
            let name = format!("{stream}/{machine}");
            if wanted.iter().all(|wanted| name.contains(wanted.as_str())) {
                let (rate, hits_percent) = measure(&levels(), &records);
                println!("{name:<20} {rate:>7.0} M records/s   {hits_percent:>5.1} % hit the first level");
            }
        }
    }
}

/// Best rate in 10^6 records per second, and how many records hit the first level.
fn measure(levels: &Levels, records: &[Record]) -> (f64, f64) {
    let mut hierarchy = if levels.is_plain() {
        Simulator::Plain(Box::new(Hierarchy::new(levels).expect("a machine that can be simulated")))
    } else {
        Simulator::Refined(Box::new(Refined::new(levels).expect("a machine that can be simulated")))
    };
    let start = Instant::now();
    let (mut best, mut rounds) = (f64::INFINITY, 0);
    while start.elapsed() < ROW || rounds < 3 {
        let round = Instant::now();
        for batch in records.chunks(4096) {
            hierarchy.records(0, batch);
        }
        best = best.min(round.elapsed().as_secs_f64());
        rounds += 1;
    }
    let misses = hierarchy.counts().cache(0).total() as f64 / (rounds * records.len()) as f64;
    (records.len() as f64 / best / 1e6, 100.0 * (1.0 - misses))
}

/// Prints what a record of the file at `path` costs.
fn replay(path: &Path) {
    let bytes = std::fs::read(path).expect("a file of records");
    let levels = cachegrind();
    let stream = plan_levels(&levels, WriteBacks::Ignored).stream;
    let (mut best, mut misses) = (Duration::MAX, Vec::new());
    for _ in 0..5 {
        let mut hierarchy = Hierarchy::of_stream(&levels, &stream).expect("a machine that can be simulated");
        let mut batch = Vec::with_capacity(BATCH);
        let mut time = Duration::ZERO;
        for raw in bytes.chunks(BATCH * RECORD_BYTES) {
            batch.clear();
            batch.extend(raw.chunks_exact(RECORD_BYTES).map(decode));
            let start = Instant::now();
            hierarchy.records(0, &batch);
            time += start.elapsed();
        }
        best = best.min(time);
        misses = hierarchy.totals().caches.iter().map(|level| level.total()).collect();
    }
    let records = (bytes.len() / RECORD_BYTES) as f64;
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    println!("{name:<20} {:>7.3} ns a record   misses {misses:?}", best.as_nanos() as f64 / records);
}

/// A record as the engine writes it.
fn decode(raw: &[u8]) -> Record {
    let word = |at: usize| u64::from_le_bytes(*raw[at..].first_chunk().expect("a whole record"));
    Record { address: word(0), what: word(8) as u32, extra: (word(8) >> 32) as u32 }
}

fn cachegrind() -> Levels {
    let first = Geometry::cache(32 << 10, 8, 64);
    Levels::two_level(first, first, Geometry::cache(8 << 20, 16, 64))
}

fn server() -> Levels {
    let outer = |size_bytes, ways, sharing| Outer::new(Geometry::cache(size_bytes, ways, 64), sharing);
    Levels {
        instruction: Some(Geometry::cache(32 << 10, 8, 64)),
        data: Geometry::cache(48 << 10, 12, 64),
        outer: vec![outer(2 << 20, 16, Sharing::PerThread), outer(36 << 20, 12, Sharing::AllThreads)],
        instruction_tlb: Some(Geometry::tlb(256, 8, 4096)),
        data_tlb: Some(Geometry::tlb(96, 6, 4096)),
        outer_tlb: Some(Geometry::tlb(2048, 16, 4096)),
        outer_fetch_tlb: FetchTlb::Unified,
        large_pages: None,
        pages: Pages::Virtual,
    }
}

/// The server's levels with the policies that are published for Ice Lake, and a last level in
/// slices that duels.
fn policies() -> Levels {
    let mut levels = server();
    let named = |name: &str| Policy::named(name).expect("a listed name");
    levels.data = levels.data.with_policy(named("lru_plru4"));
    let [second, last] = [0, 1].map(|outer| levels.outer[outer].geometry);
    levels.outer[0].geometry = second.with_policy(named("QLRU_H00_M1_R0_U1"));
    let duel = named("duel:QLRU_H00_M1_R0_U1:QLRU_H00_MR161_R0_U1:32");
    let slices = SliceMasks::new(&[0x1b_5f57_5440, 0x2e_b5fa_a880]).expect("two masks");
    levels.outer[1].geometry = last.with_policy(duel).with_slices(slices);
    levels
}

/// The server's levels with prefetchers whose lines are late.
fn prefetchers() -> Levels {
    let mut levels = server();
    levels.data = levels.data.with_prefetch(Prefetch::Stride).with_late_touches(16);
    let second = levels.outer[0].geometry;
    let second = second.with_prefetch(Prefetch::Streamer).with_prefetch(Prefetch::AdjacentLine);
    levels.outer[0].geometry = second.with_late_touches(16);
    levels
}

/// The server's levels with an inclusive second level and a last level of victims.
fn victim() -> Levels {
    let mut levels = server();
    levels.outer[0].inclusion = Inclusion::Inclusive;
    levels.outer[1].inclusion = Inclusion::Exclusive;
    levels
}

/// The server's levels on pages at random.
fn pages() -> Levels {
    Levels { pages: Pages::Random { seed: 1, page_bytes: 4096 }, ..server() }
}

fn atom() -> Levels {
    Levels::data_only(Geometry::cache(8192, 1, 32).bypassing())
}

/// A small generator, so that streams repeat.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((u128::from(self.0 >> 32) * u128::from(limit)) >> 32) as u64
    }
}

fn record(kind: RecordKind, site: u64, address: u64) -> Record {
    let size_bytes = if kind == RecordKind::Fetch { 0 } else { 8 };
    Record::new(kind, size_bytes, site as u32, address).expect("8 bytes have a code")
}

fn data(random: &mut Random, address: u64) -> Record {
    let kind = match random.below(10) {
        0..=6 => RecordKind::Load,
        7..=8 => RecordKind::Store,
        _ => RecordKind::Modify,
    };
    record(kind, random.below(4096), 0x5555_5555_0000 + (address & !7))
}

fn hits() -> Vec<Record> {
    let mut random = Random(1);
    (0..RECORDS)
        .map(|_| {
            let address = random.below(28 << 10);
            data(&mut random, address)
        })
        .collect()
}

fn mix() -> Vec<Record> {
    let mut random = Random(2);
    (0..RECORDS)
        .map(|_| {
            let region = [16 << 10, 16 << 10, 16 << 10, 16 << 10, 20 << 10, 24 << 10, 256 << 10, 4 << 20];
            let span = region[random.below(8) as usize];
            let address = random.below(span);
            if random.below(4) == 0 {
                record(RecordKind::Fetch, random.below(4096), (0x40_0000 + address / 2) & !63)
            } else {
                data(&mut random, address)
            }
        })
        .collect()
}

fn scan() -> Vec<Record> {
    let mut random = Random(3);
    (0..RECORDS as u64).map(|index| data(&mut random, index * 64)).collect()
}

fn full() -> Vec<Record> {
    let mut random = Random(4);
    (0..RECORDS)
        .map(|index| {
            if index % 5 == 0 {
                let block = random.below(600);
                let start = Record::new(RecordKind::Block, 0, block as u32, 0x40_0000 + block * 40);
                Record { extra: 36, ..start.expect("a block needs no size") }
            } else {
                let span = if random.below(16) == 0 { 1 << 20 } else { 12 << 10 };
                let address = random.below(span);
                data(&mut random, address)
            }
        })
        .collect()
}
