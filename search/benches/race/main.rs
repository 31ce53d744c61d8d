//! `cargo bench -p lightfoot-search --bench race -- [--kib 16,1024] [--type u32|u64] [--keys
//! uniform] [--rounds N] [--all]`: races the index against what people use today.
//!
//! Everybody answers the same queries in interleaved rounds, alone on a core, huge pages asked for
//! by all who can; medians are printed as a table beside the limit of one random cache line per
//! query. `--all` adds every layout of the family. `--build` instead times building (nanoseconds
//! per key, sorted keys, one thread) and batches on two threads.

use lightfoot_search::race::{race, Answers, Chained, Contestant, Figure, Limit, Rounds, CHUNK};
use lightfoot_search::sample::{Distribution, Random, DISTRIBUTIONS};
use lightfoot_search::{Index, Key, Layout, Options, LAYOUTS};

/// What to race.
struct Arguments {
    kib: Vec<usize>,
    kind: String,
    distribution: Distribution,
    all: bool,
    build: bool,
    rounds: Rounds,
}

fn arguments() -> Arguments {
    let mut parsed = Arguments {
        kib: vec![16, 256, 1024, 4096, 32 << 10],
        kind: String::from("u32"),
        distribution: Distribution::Uniform,
        all: false,
        build: false,
        rounds: Rounds { throughput: 9, latency: 5, latency_queries: 200_000 },
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().unwrap_or_else(|| panic!("{word} needs a value"));
        match word.as_str() {
            "--kib" => {
                parsed.kib = value().split(',').map(|kib| kib.parse().expect("a number of KiB")).collect()
            }
            "--type" => parsed.kind = value(),
            "--keys" => {
                let name = value();
                let known = DISTRIBUTIONS.iter().find(|(_, known)| *known == name);
                parsed.distribution = known.unwrap_or_else(|| panic!("no distribution {name}")).0;
            }
            "--rounds" => parsed.rounds.throughput = value().parse().expect("a number of rounds"),
            "--all" => parsed.all = true,
            "--build" => parsed.build = true,
            _ => {}
        }
    }
    parsed
}

fn main() {
    let arguments = arguments();
    for &kib in &arguments.kib {
        match arguments.kind.as_str() {
            "u32" if arguments.build => build(kib, &keys_u32(kib, arguments.distribution)),
            "u64" if arguments.build => build(kib, &arguments.distribution.keys(kib * 128, u64::MAX / 2, 1)),
            "u32" => race_u32(kib, &arguments),
            "u64" => race_u64(kib, &arguments),
            other => panic!("no such type: {other}"),
        }
    }
}

fn keys_u32(kib: usize, distribution: Distribution) -> Vec<u32> {
    distribution.keys(kib * 256, u64::from(u32::MAX) / 2, 1).into_iter().map(|key| key as u32).collect()
}

/// Medians of building the planned index and the tree, and of a batch on one thread and on two.
fn build<K: Key>(kib: usize, keys: &[K]) {
    // Small arrays take microseconds: as many runs as last some milliseconds.
    let runs = ((1 << 21) / keys.len().max(1)).max(7);
    let median = |mut work: Box<dyn FnMut() + '_>| {
        let mut times: Vec<f64> = (0..runs)
            .map(|_| {
                let start = std::time::Instant::now();
                work();
                start.elapsed().as_nanos() as f64
            })
            .collect();
        times.sort_by(f64::total_cmp);
        times[runs / 2]
    };
    let built = |layout| {
        let options = Options { layout, ..Options::default() };
        median(Box::new(move || drop(std::hint::black_box(Index::build_with(keys, &options)))))
            / keys.len() as f64
    };
    let (planned, tree) = (built(None), built(Some(Layout::Tree)));
    let index = Index::build(keys).expect("sorted keys");
    let queries = lightfoot_search::sample::hits(keys, 512 * CHUNK, 5);
    let mut ranks = vec![0; queries.len()];
    index.batch(&queries, &mut ranks);
    let one = median(Box::new(|| index.batch(&queries, &mut ranks)));
    let two = median(Box::new(|| index.batch_parallel(&queries, &mut ranks, 2)));
    println!(
        "{kib} KiB: planned ({}) built in {planned:.2} ns per key, tree in {tree:.2}; two threads {:.2} times one ({:.2} ns)",
        index.layout().name(),
        one / two,
        one / queries.len() as f64
    );
}

fn queries(max: u64, keys: &[u64], distribution: Distribution) -> Vec<u64> {
    let mut random = Random::new(77);
    match distribution {
        Distribution::Uniform => (0..64 * CHUNK).map(|_| random.below(max)).collect(),
        _ => lightfoot_search::sample::hits(keys, 64 * CHUNK, 5),
    }
}

fn race_u32(kib: usize, arguments: &Arguments) {
    let max = u64::from(u32::MAX) / 2;
    let wide = arguments.distribution.keys(kib * 256, max, 1);
    let queries: Vec<u32> = queries(max, &wide, arguments.distribution).iter().map(|&q| q as u32).collect();
    let keys: Vec<u32> = wide.into_iter().map(|key| key as u32).collect();
    let ordered = ordsearch::OrderedCollection::from_sorted_iter(keys.iter().copied());
    let mut tree = brie_tree::BTree::<nonmax::NonMaxU32, u32>::new();
    for &key in keys.iter().filter(|_| kib <= 64 << 10) {
        tree.insert(nonmax::NonMaxU32::new(key).expect("below MAX"), key);
    }
    let learned = learned(&keys, arguments);
    let mut contestants = ours(&keys, arguments);
    contestants.extend(pgm(&learned, &keys));
    contestants.push(Contestant::singles("ordsearch", Answers::Values, |q: u32| {
        ordered.find_gte(q).map_or(u32::MAX as usize, |&key| key as usize)
    }));
    if kib <= 64 << 10 {
        contestants.push(Contestant::singles("brie-tree", Answers::Values, |q: u32| {
            let from = nonmax::NonMaxU32::new(q).expect("below MAX");
            tree.range(from..).next().map_or(u32::MAX as usize, |(_, &key)| key as usize)
        }));
    }
    finish(kib, contestants, &keys, &queries, arguments);
}

fn race_u64(kib: usize, arguments: &Arguments) {
    let max = u64::MAX / 2;
    let keys = arguments.distribution.keys(kib * 128, max, 1);
    let queries = queries(max, &keys, arguments.distribution);
    let ordered = ordsearch::OrderedCollection::from_sorted_iter(keys.iter().copied());
    let mut tree = brie_tree::BTree::<nonmax::NonMaxU64, u64>::new();
    for &key in keys.iter().filter(|_| kib <= 64 << 10) {
        tree.insert(nonmax::NonMaxU64::new(key).expect("below MAX"), key);
    }
    let learned = learned(&keys, arguments);
    let mut contestants = ours(&keys, arguments);
    contestants.push(Contestant::singles("ordsearch", Answers::Values, |q: u64| {
        ordered.find_gte(q).map_or(u64::MAX as usize, |&key| key as usize)
    }));
    if kib <= 64 << 10 {
        contestants.push(Contestant::singles("brie-tree", Answers::Values, |q: u64| {
            let from = nonmax::NonMaxU64::new(q).expect("below MAX");
            tree.range(from..).next().map_or(u64::MAX as usize, |(_, &key)| key as usize)
        }));
    }
    contestants.extend(pgm(&learned, &keys));
    finish(kib, contestants, &keys, &queries, arguments);
}

/// The PGM index at two bounds of its error, in positions. It walks through equal keys one by one,
/// so it takes no part where half of all keys are one.
fn learned<K: Learnable>(keys: &[K], arguments: &Arguments) -> Vec<(usize, pgm_extra::Static<K>)> {
    if arguments.distribution == Distribution::OneKey {
        return Vec::new();
    }
    [16, 64].map(|error| (error, pgm_extra::Static::new(keys, error, 4).expect("sorted keys"))).into()
}

fn pgm<'a, K: Learnable>(
    learned: &'a [(usize, pgm_extra::Static<K>)],
    keys: &'a [K],
) -> impl Iterator<Item = Contestant<'a, K>> {
    learned.iter().map(move |(error, index)| {
        let name = format!("PGM, error {error}");
        Contestant::singles(name, Answers::Ranks, move |q: K| index.lower_bound(keys, &q))
    })
}

/// A key that is its own key in the PGM index.
trait Learnable: Chained + pgm_extra::index::Indexable<Key = Self> {}
impl<K: Chained + pgm_extra::index::Indexable<Key = K>> Learnable for K {}

/// The planned index, the layouts asked for, and the standard library.
fn ours<'a, K: Key + Chained>(keys: &'a [K], arguments: &Arguments) -> Vec<Contestant<'a, K>> {
    let mut contestants = vec![index("planned", keys, None)];
    for entry in LAYOUTS {
        let always = matches!(
            entry.layout,
            Layout::Tree | Layout::Window | Layout::Split | Layout::Packed | Layout::Eytzinger
        );
        if arguments.all || always {
            contestants.push(index(entry.name, keys, Some(entry.layout)));
        }
    }
    contestants.push(Contestant::singles("std partition_point", Answers::Ranks, move |q: K| {
        keys.partition_point(|key| *key < q)
    }));
    contestants.into_iter().filter(|contestant| contestant.name != "refused").collect()
}

fn index<'a, K: Key + Chained>(name: &str, keys: &[K], layout: Option<Layout>) -> Contestant<'a, K> {
    let Ok(index) = Index::build_with(keys, &Options { layout, ..Options::default() }) else {
        return Contestant::chained("refused", |_| 0);
    };
    let share = index.bytes() as f64 / size_of_val(keys) as f64;
    let name = format!("{name}: {} {share:.2}×", index.layout().name());
    let one = index.clone();
    Contestant::new(name, Answers::Ranks, move |qs, out| index.batch(qs, out), move |q| one.lower_bound(q))
}

fn finish<K: Chained>(
    kib: usize,
    mut contestants: Vec<Contestant<'_, K>>,
    keys: &[K],
    queries: &[K],
    arguments: &Arguments,
) {
    let mut limit = Limit::new(kib << 10, CHUNK);
    contestants
        .push(Contestant::batches("limit: one random line", Answers::Nothing, move |_, out| limit.read(out)));
    let mut figures = race(contestants, keys, queries, arguments.rounds);
    let walk = Limit::new(kib << 10, CHUNK);
    std::hint::black_box(walk.walk(arguments.rounds.latency_queries));
    let start = std::time::Instant::now();
    std::hint::black_box(walk.walk(arguments.rounds.latency_queries));
    if let Some(last) = figures.last_mut() {
        last.latency_ns = Some(start.elapsed().as_nanos() as f64 / arguments.rounds.latency_queries as f64);
    }
    let name =
        DISTRIBUTIONS.iter().find(|(known, _)| *known == arguments.distribution).map_or("", |(_, name)| name);
    print_table(&format!("{} KiB of {name} {} keys", kib, arguments.kind), &figures);
}

/// One table row per contestant.
fn print_table(title: &str, figures: &[Figure]) {
    println!("\n{title}\n\n| contestant | ns per query | dependent, ns |\n|---|---:|---:|");
    for figure in figures {
        let show = |ns: Option<f64>| ns.map_or(String::from("–"), |ns| format!("{ns:.2}"));
        let wrong = if figure.wrong > 0 { format!(" ({} wrong)", figure.wrong) } else { String::new() };
        println!("| {}{wrong} | {} | {} |", figure.name, show(figure.throughput_ns), show(figure.latency_ns));
    }
}
