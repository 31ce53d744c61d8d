//! The race itself: contestants answer the same chunks of queries in interleaved rounds; medians
//! count. A turn begins with an untimed pass: steady state is what is compared.
//!
//! Throughput: chunks of 16,128 queries (a multiple of every batch length in use), answers into
//! memory that is reused. Latency: every query depends on the last answer. In the first round every
//! contestant's answers are compared with the reference; a wrong one is disqualified by name.

mod limit;

pub use limit::Limit;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use std::hint::black_box;
use std::time::Instant;

/// Queries of a chunk.
pub const CHUNK: usize = 16_128;

/// A key that a dependent query can be made of.
pub trait Chained: Copy + Ord + 'static {
    /// Returns `self`, but depends on `answer`; `zero` is 0, which the compiler does not know.
    fn after(self, answer: usize, zero: usize) -> Self;
}

impl Chained for u32 {
    #[inline(always)]
    fn after(self, answer: usize, zero: usize) -> u32 {
        self ^ (answer & zero) as u32
    }
}

impl Chained for u64 {
    #[inline(always)]
    fn after(self, answer: usize, zero: usize) -> u64 {
        self ^ (answer & zero) as u64
    }
}

/// What a contestant returns for a query: most give the rank, some peers the value found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// The number of smaller keys.
    Ranks,
    /// The smallest key that is not less.
    Values,
    /// None: the contestant is a limit, whose results are not compared.
    Nothing,
}

type ManyFunction<'a, K> = Box<dyn FnMut(&[K], &mut [usize]) + 'a>;
type ChainFunction<'a, K> = Box<dyn Fn(&[K]) -> usize + 'a>;

/// One way to answer queries.
#[allow(missing_debug_implementations, reason = "holds functions")]
pub struct Contestant<'a, K> {
    /// Its name in the table.
    pub name: String,
    /// The kind of its answers, with which they are checked.
    pub answers: Answers,
    many: Option<ManyFunction<'a, K>>,
    chain: Option<ChainFunction<'a, K>>,
}

impl<'a, K: Chained> Contestant<'a, K> {
    /// A contestant with a batch function and a single-query function.
    pub fn new(
        name: impl Into<String>,
        answers: Answers,
        many: impl FnMut(&[K], &mut [usize]) + 'a,
        one: impl Fn(K) -> usize + 'a,
    ) -> Contestant<'a, K> {
        Contestant {
            name: name.into(),
            answers,
            many: Some(Box::new(many)),
            chain: Some(Box::new(chain(one))),
        }
    }

    /// A contestant that only answers batches.
    pub fn batches(
        name: impl Into<String>,
        answers: Answers,
        many: impl FnMut(&[K], &mut [usize]) + 'a,
    ) -> Contestant<'a, K> {
        Contestant { name: name.into(), answers, many: Some(Box::new(many)), chain: None }
    }

    /// A contestant that answers one query at a time, in batches too.
    pub fn singles(
        name: impl Into<String>,
        answers: Answers,
        one: impl Fn(K) -> usize + Clone + 'a,
    ) -> Contestant<'a, K> {
        let each = one.clone();
        let many = move |queries: &[K], out: &mut [usize]| {
            queries.iter().zip(out).for_each(|(&query, rank)| *rank = each(query))
        };
        Contestant::new(name, answers, many, one)
    }

    /// A contestant for dependent queries only.
    pub fn chained(name: impl Into<String>, one: impl Fn(K) -> usize + 'a) -> Contestant<'a, K> {
        Contestant {
            name: name.into(),
            answers: Answers::Nothing,
            many: None,
            chain: Some(Box::new(chain(one))),
        }
    }
}

/// A loop of dependent queries.
fn chain<K: Chained>(one: impl Fn(K) -> usize) -> impl Fn(&[K]) -> usize {
    move |queries| {
        let zero = black_box(0);
        queries.iter().fold(0, |answer, &query| one(query.after(answer, zero)))
    }
}

/// A contestant's figures, in nanoseconds per query.
#[derive(Clone, Debug)]
pub struct Figure {
    /// The contestant's name.
    pub name: String,
    /// Median over rounds of batches; `None` when it answers no batches.
    pub throughput_ns: Option<f64>,
    /// Median over rounds of dependent queries; `None` when it answers none.
    pub latency_ns: Option<f64>,
    /// Answers of the first round that were wrong, of those looked at.
    pub wrong: usize,
}

fn median(times: &mut [f64]) -> Option<f64> {
    times.sort_unstable_by(f64::total_cmp);
    times.get(times.len() / 2).copied()
}

/// How long to race.
#[derive(Clone, Copy, Debug)]
pub struct Rounds {
    /// Rounds of batches.
    pub throughput: usize,
    /// Rounds of dependent queries.
    pub latency: usize,
    /// Dependent queries of a round.
    pub latency_queries: usize,
}

/// Races all contestants over `queries`; `keys` are the sorted keys.
pub fn race<K: Chained>(
    contestants: Vec<Contestant<'_, K>>,
    keys: &[K],
    queries: &[K],
    rounds: Rounds,
) -> Vec<Figure> {
    let mut contestants = contestants;
    let mut times = alloc::vec![(Vec::new(), Vec::new(), 0); contestants.len()];
    let mut out = alloc::vec![0; CHUNK];
    for round in 0..=rounds.throughput {
        for (contestant, (throughput, _, wrong)) in contestants.iter_mut().zip(&mut times) {
            let Some(many) = &mut contestant.many else { continue };
            // The other contestants have displaced the caches, so a turn begins with an untimed
            // pass, like the paper's trials.
            for queries in queries.chunks(CHUNK) {
                many(black_box(queries), &mut out[..queries.len()]);
            }
            let (mut total_ns, mut count) = (0, 0);
            for queries in queries.chunks(CHUNK) {
                let out = &mut out[..queries.len()];
                let start = Instant::now();
                many(black_box(queries), out);
                total_ns += start.elapsed().as_nanos();
                count += queries.len();
                if round == 0 {
                    *wrong += count_wrong(contestant.answers, keys, queries, out);
                }
            }
            if round > 0 {
                throughput.push(total_ns as f64 / count as f64);
            }
        }
    }
    let some = &queries[..queries.len().min(rounds.latency_queries)];
    for _ in 0..rounds.latency {
        for (contestant, (_, latency, _)) in contestants.iter().zip(&mut times) {
            let Some(chain) = &contestant.chain else { continue };
            black_box(chain(black_box(some)));
            let start = Instant::now();
            black_box(chain(black_box(some)));
            latency.push(start.elapsed().as_nanos() as f64 / some.len() as f64);
        }
    }
    contestants
        .into_iter()
        .zip(times)
        .map(|(contestant, (mut throughput, mut latency, wrong))| Figure {
            name: contestant.name,
            throughput_ns: median(&mut throughput),
            latency_ns: median(&mut latency),
            wrong,
        })
        .collect()
}

fn count_wrong<K: Chained>(answers: Answers, keys: &[K], queries: &[K], out: &[usize]) -> usize {
    let rank = |query: K| keys.partition_point(|&key| key < query);
    // A sample: checking every query of a large array would take longer than the race.
    let step = if keys.len() > 1 << 22 { 37 } else { 3 };
    let pairs = queries.iter().zip(out).step_by(step);
    match answers {
        Answers::Ranks => pairs.filter(|(&query, &answer)| rank(query) != answer).count(),
        Answers::Values => {
            pairs.filter(|(&query, &answer)| rank(query) != rank_of_value(keys, answer)).count()
        }
        Answers::Nothing => 0,
    }
}

/// The rank of a value that a peer returns, which is truncated to the low word here.
fn rank_of_value<K: Chained>(keys: &[K], value: usize) -> usize {
    // Keys of the race are u32 or u64 and compare as their numbers do.
    let number = |key: &K| -> usize {
        let any: &dyn std::any::Any = key;
        any.downcast_ref::<u32>()
            .map_or_else(|| any.downcast_ref::<u64>().map_or(0, |&k| k as usize), |&k| k as usize)
    };
    keys.partition_point(|key| number(key) < value)
}
