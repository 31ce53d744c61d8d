//! The race of today's indexes: which sizes, and how often. The contestants are a crate of their
//! own, which is compiled for speed.

use crate::options::Effort;
use contenders::{race_indexes, IndexFigures, RaceSettings};
use search::race::Rounds;

/// Sizes from 16 KiB to `max_bytes`, by factors of 16 and 4.
pub(super) fn sizes(max_bytes: usize) -> Vec<usize> {
    [16 << 10, 256 << 10, 1 << 20, 4 << 20, 32 << 20, 128 << 20, 512 << 20, 2 << 30]
        .into_iter()
        .filter(|&bytes| bytes <= max_bytes)
        .collect()
}

/// Runs all races of one size.
pub(super) fn measure(effort: Effort, bytes: usize) -> Vec<IndexFigures> {
    let settings = match effort {
        Effort::Quick => {
            RaceSettings { rounds: Rounds { throughput: 3, latency: 1, latency_queries: 50_000 }, chunks: 8 }
        }
        Effort::Full => RaceSettings {
            rounds: Rounds { throughput: 9, latency: 5, latency_queries: 200_000 },
            chunks: 64,
        },
    };
    race_indexes(&settings, bytes)
}
