//! A miss curve of 20 sizes against one simulated cache, on the same records:
//! `cargo bench -p lightfoot-simulate --bench distance [NAME]`.
//!
//! **What.** Time of [`StackDistances`] for 20 fully associative sizes from 1 KiB to 512 MiB, and
//! of [`Hierarchy`] for one cache: 32 KiB in 8 ways, and a fully associative one of 16 lines; and
//! of a server's three levels and TLBs, which is what `lightfoot cache` simulates. **Streams.**
//! Loops of known locality: `local` walks arrays of several sizes by turns, with a stack and a heap
//! beside them; `random` has no locality but its 256 KiB; `scan` meets no line again. **Units.**
//! Nanoseconds per record, best of interleaved rounds.

use event::{Record, RecordKind};
use lightfoot_simulate::distance::{CurveSizes, StackDistances};
use lightfoot_simulate::{Geometry, Hierarchy, Levels, Modelled, Sharing};
use std::time::Instant;

const RECORDS: usize = 1 << 20;
const ROUNDS: usize = 7;

/// Records by name.
type Stream = (&'static str, fn() -> Vec<Record>);
const STREAMS: &[Stream] = &[("local", local), ("random", random), ("scan", scan)];

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    for (name, stream) in STREAMS {
        if wanted.is_empty() || wanted.iter().any(|wanted| name.contains(wanted.as_str())) {
            race(name, &stream());
        }
    }
}

fn race(name: &str, records: &[Record]) {
    let sizes = CurveSizes::doubling(64, 1 << 10, 512 << 20).expect("20 sizes");
    let sets = sizes.bytes().map(|bytes| 4 * bytes).collect::<Vec<_>>();
    let sets = CurveSizes::new(64, 64, &sets).expect("20 sizes");
    let [one, full] =
        [Geometry::cache(32 << 10, 8, 64), Geometry::cache(1 << 10, 16, 64)].map(Levels::data_only);
    let server = machine::Machine::preset("sapphire-rapids").expect("a preset");
    let server = Modelled::of(&server).expect("it fits").expect("a cache").levels;
    let mut best = [f64::INFINITY; 5];
    for _ in 0..ROUNDS {
        let mut distances = StackDistances::new(&sizes, Sharing::PerThread);
        best[0] = best[0].min(time(records, |batch| distances.records(0, batch)));
        let mut distances = StackDistances::new(&sets, Sharing::PerThread);
        best[3] = best[3].min(time(records, |batch| distances.records(0, batch)));
        let mut hierarchy = Hierarchy::new(&server).expect("a server");
        best[4] = best[4].min(time(records, |batch| hierarchy.records(0, batch)));
        for (levels, best) in [&one, &full].into_iter().zip(&mut best[1..]) {
            let mut hierarchy = Hierarchy::new(levels).expect("a cache");
            *best = best.min(time(records, |batch| hierarchy.records(0, batch)));
        }
    }
    let [curve, one, full, sets, server] = best;
    println!("{name:<8} 20 sizes {curve:>6.2} ns, of 64 sets {sets:>6.2} ns");
    println!(
        "{:8} simulated: 32 KiB in 8 ways {one:.2} ns, 16 lines {full:.2} ns, a server {server:.2} ns",
        ""
    );
}

/// Nanoseconds per record.
fn time(records: &[Record], mut take: impl FnMut(&[Record])) -> f64 {
    let start = Instant::now();
    records.chunks(4096).for_each(&mut take);
    start.elapsed().as_secs_f64() * 1e9 / records.len() as f64
}

fn load(address: u64) -> Record {
    Record::new(RecordKind::Load, 8, (address >> 12) as u32 & 0xfff, address & !7)
        .expect("8 bytes have a code")
}

fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

fn local() -> Vec<Record> {
    let (mut state, mut at) = (1, [0u64; 6]);
    let spans = [4 << 10, 12 << 10, 24 << 10, 64 << 10, 400 << 10, 3 << 20];
    let mut records = Vec::new();
    while records.len() < RECORDS {
        let array = (next(&mut state) % 8).min(5) as usize % spans.len();
        let run = 4 + next(&mut state) % 60;
        for _ in 0..run {
            at[array] = (at[array] + 8) % spans[array];
            records.push(load(((array as u64) << 32) + at[array]));
            records.push(load((9 << 32) + next(&mut state) % 512));
            if next(&mut state).is_multiple_of(8) {
                records.push(load((10 << 32) + (next(&mut state) % 300) * (next(&mut state) % 300) * 8));
            }
        }
    }
    records.truncate(RECORDS);
    records
}

fn random() -> Vec<Record> {
    let mut state = 2;
    (0..RECORDS).map(|_| load(next(&mut state) % (256 << 10))).collect()
}

fn scan() -> Vec<Record> {
    (0..RECORDS as u64).map(|line| load(line * 64)).collect()
}
