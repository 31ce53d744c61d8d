//! The race of today's indexes: the planned index, every layout, the standard library, ordsearch
//! and brie-tree. The limit is one random line per query.
//!
//! It measures the throughput of batches and the latency of dependent queries, in interleaved
//! rounds, and reports medians (`search::race`). Keys are `u32` and `u64`, evenly spread or skewed.
//! Queries of evenly spread keys are random numbers; queries of skewed keys are random keys among
//! them.

#[cfg(feature = "race")]
use crate::peer::{PeerOfU64, PeersOfU32};
use search::race::{race, Answers, Chained, Contestant, Figure, Limit, Rounds, CHUNK};
use search::sample::{hits, Distribution, Random, DISTRIBUTIONS};
use search::{Index, Key, Layout, Options, LAYOUTS};
use serde::{Deserialize, Serialize};

/// One contestant's figures at one size.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct IndexFigures {
    /// `u32` or `u64`.
    pub key: String,
    /// How the keys are spread.
    pub distribution: String,
    /// Bytes of all keys.
    pub bytes: usize,
    /// The index, or `limit`.
    pub contestant: String,
    /// Layout and memory of ours.
    pub detail: String,
    /// Time of a query in batches.
    pub throughput_ns: Option<f64>,
    /// Time of a query that waits for the one before.
    pub latency_ns: Option<f64>,
    /// Answers that were not right.
    pub wrong: usize,
}

/// How often a race runs.
#[derive(Clone, Copy, Debug)]
pub struct RaceSettings {
    /// Rounds of throughput and of latency.
    pub rounds: Rounds,
    /// Queries of a round of throughput, in chunks of [`CHUNK`].
    pub chunks: usize,
}

/// Skewed keys are raced at this size.
const SKEWED_BYTES: usize = 4 << 20;

/// Layouts whose building or searching takes too long beyond this size are left out.
const SLOW_BYTES: usize = 64 << 20;

/// Runs all races of one size.
pub fn race_indexes(settings: &RaceSettings, bytes: usize) -> Vec<IndexFigures> {
    let wanted = |distribution| distribution == Distribution::Uniform || bytes == SKEWED_BYTES;
    let mut results = Vec::new();
    for &(distribution, name) in DISTRIBUTIONS.iter().filter(|(distribution, _)| wanted(*distribution)) {
        results.extend(race_u32(settings, bytes, distribution, name));
        results.extend(race_u64(settings, bytes, distribution, name));
    }
    results
}

fn queries(settings: &RaceSettings, keys: &[u64], max: u64, distribution: Distribution) -> Vec<u64> {
    let count = settings.chunks * CHUNK;
    let mut random = Random::new(77);
    match distribution {
        Distribution::Uniform => (0..count).map(|_| random.below(max)).collect(),
        _ => hits(keys, count, 5),
    }
}

fn race_u32(
    settings: &RaceSettings,
    bytes: usize,
    distribution: Distribution,
    name: &'static str,
) -> Vec<IndexFigures> {
    let max = u64::from(u32::MAX) - 1;
    let wide = distribution.keys(bytes / 4, max, 1);
    let queries: Vec<u32> =
        queries(settings, &wide, max, distribution).into_iter().map(|query| query as u32).collect();
    let keys: Vec<u32> = wide.into_iter().map(|key| key as u32).collect();
    let contestants = ours(&keys, bytes);
    #[cfg(feature = "race")]
    let peers = PeersOfU32::new(&keys, if bytes <= SLOW_BYTES { usize::MAX } else { 0 });
    #[cfg(feature = "race")]
    let contestants = contestants.into_iter().chain(peers.contestants()).collect();
    finish("u32", (bytes, name), contestants, &keys, &queries, settings.rounds)
}

fn race_u64(
    settings: &RaceSettings,
    bytes: usize,
    distribution: Distribution,
    name: &'static str,
) -> Vec<IndexFigures> {
    let max = u64::MAX - 1;
    let keys = distribution.keys(bytes / 8, max, 1);
    let queries = queries(settings, &keys, max, distribution);
    let contestants = ours(&keys, bytes);
    #[cfg(feature = "race")]
    let peer = PeerOfU64::new(&keys);
    #[cfg(feature = "race")]
    let contestants = contestants.into_iter().chain([peer.contestant()]).collect();
    finish("u64", (bytes, name), contestants, &keys, &queries, settings.rounds)
}

/// The planned index, the layouts, and the standard library.
fn ours<K: Key + Chained>(keys: &[K], bytes: usize) -> Vec<Contestant<'_, K>> {
    let slow = [Layout::Sorted, Layout::BranchFree, Layout::Kary, Layout::VanEmdeBoas, Layout::Eytzinger];
    let layouts = LAYOUTS.iter().map(|entry| entry.layout);
    let layouts = layouts.filter(|layout| bytes <= SLOW_BYTES || !slow.contains(layout));
    let planned = index("planned", keys, None);
    let named = layouts.filter_map(|layout| index(layout.name(), keys, Some(layout)));
    let std = Contestant::singles("std", Answers::Ranks, move |q: K| keys.partition_point(|key| *key < q));
    planned.into_iter().chain(named).chain([std]).collect()
}

/// An index as a contestant; `None` when the layout refuses the keys.
fn index<'a, K: Key + Chained>(name: &str, keys: &[K], layout: Option<Layout>) -> Option<Contestant<'a, K>> {
    let index = Index::build_with(keys, &Options { layout, ..Options::default() }).ok()?;
    let memory = index.bytes() as f64 / size_of_val(keys) as f64;
    let name = format!("{name}|{}, {memory:.2} of the keys' bytes", index.layout().name());
    let one = index.clone();
    Some(Contestant::new(
        name,
        Answers::Ranks,
        move |qs, out| index.batch(qs, out),
        move |q| one.lower_bound(q),
    ))
}

fn finish<K: Chained>(
    key: &'static str,
    (bytes, distribution): (usize, &'static str),
    mut contestants: Vec<Contestant<'_, K>>,
    keys: &[K],
    queries: &[K],
    rounds: Rounds,
) -> Vec<IndexFigures> {
    // The limit of a batch: independent random lines, as many at a time as a batch has queries. Its
    // answers are meaningless and are not checked.
    let mut limit = Limit::new(bytes, CHUNK);
    contestants.push(Contestant::batches("limit", Answers::Nothing, move |_, out| limit.read(out)));
    let mut figures = race(contestants, keys, queries, rounds);
    // The limit of latency: a walk in which each line names the next. The first walk warms the
    // caches and TLBs and is not timed.
    let walk = Limit::new(bytes, 1);
    std::hint::black_box(walk.walk(rounds.latency_queries));
    let start = std::time::Instant::now();
    std::hint::black_box(walk.walk(rounds.latency_queries));
    // The limit was pushed last, and the race keeps the order of its contestants.
    if let Some(limit) = figures.last_mut() {
        limit.latency_ns = Some(start.elapsed().as_nanos() as f64 / rounds.latency_queries as f64);
    }
    let modern = |figure: Figure| {
        let (contestant, detail) = figure.name.split_once('|').unwrap_or((&figure.name, ""));
        IndexFigures {
            key: key.to_owned(),
            distribution: distribution.to_owned(),
            bytes,
            contestant: contestant.to_owned(),
            detail: detail.to_owned(),
            throughput_ns: figure.throughput_ns,
            latency_ns: figure.latency_ns,
            wrong: figure.wrong,
        }
    };
    figures.into_iter().map(modern).collect()
}
