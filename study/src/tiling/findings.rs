//! What the study of tile sizes measures, and how its parts are looked up.

use crate::outcome::Claim;
use crate::tile::simulation::Missed;
use crate::tile::timing::Rate;
use serde::{Deserialize, Serialize};

/// The paper's data: its T = 64 for 16 KB means elements of 4 bytes.
pub(super) const ELEMENT_BYTES: usize = 4;
/// Table 1's penalties of a miss in L1, L2 and TLB and of a mispredicted branch, in cycles.
pub(super) const PENALTIES_CYCLES: [f64; 4] = [4.0, 18.0, 30.0, 20.0];

/// Loops whose branches are counted, and predictors.
pub(super) const LOOPS: [&str; 2] = ["MBaLt", "MBaLt-elements"];
pub(super) const PREDICTORS: [&str; 2] = ["gshare", "perceptron"];
/// The crews of Figures 5 to 8.
pub(super) const SERIAL: &str = "serial";
pub(super) const TWO_THREADS: &str = "2 threads, one CPU";
pub(super) const FOUR_THREADS: &str = "4 threads, two CPUs";

/// Section 3's formulas for one N and T.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Formula {
    pub(super) n: usize,
    pub(super) tile: usize,
    /// Misses of L1, L2, TLB.
    pub(super) misses: [f64; 3],
    /// Misses of an L2 of 256 KB.
    pub(super) moderate_l2: f64,
}

/// A replay of the loops on the paper's machine, or on one that differs in a point.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Simulated {
    /// A name of `variant::VARIANTS`.
    pub(super) variant: String,
    pub(super) n: usize,
    pub(super) tile: usize,
    pub(super) missed: Missed,
}

/// The compiled loops under `lightfoot cache --branches`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Counted {
    pub(super) loops: String,
    pub(super) predictor: String,
    pub(super) n: usize,
    pub(super) tile: usize,
    pub(super) missed: Missed,
    pub(super) instructions: u64,
    pub(super) mispredictions: u64,
}

impl Counted {
    /// Mispredictions for each end of an innermost loop, of which there are N³/T.
    pub(super) fn an_end(&self) -> f64 {
        self.mispredictions as f64 / ends(self.n, self.tile)
    }
}

/// Misses of L2 with and without instructions in it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Unified {
    pub(super) n: usize,
    pub(super) tile: usize,
    pub(super) data: u64,
    pub(super) both: u64,
}

/// Times of all crews at one N.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Times {
    pub(super) n: usize,
    pub(super) rates: Vec<Rate>,
}

/// What the host's CPUs are.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Host {
    pub(super) name: String,
    /// Whether a core runs two threads at once.
    pub(super) simultaneous: bool,
    /// The largest power of two whose square fits the first level, in elements.
    pub(super) fitting: Option<usize>,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct Findings {
    pub(super) schema: u32,
    pub(super) date: String,
    pub(super) effort: &'static str,
    pub(super) version: &'static str,
    pub(super) machine: String,
    pub(super) host: Host,
    pub(super) formulas: Vec<Formula>,
    pub(super) simulated: Vec<Simulated>,
    pub(super) counted: Vec<Counted>,
    pub(super) unified: Option<Unified>,
    pub(super) times: Vec<Times>,
    pub(super) missing: Vec<String>,
    pub(super) claims: Vec<Claim>,
}

/// A branch term: the loops and the predictor that it was counted with.
pub(super) type Term = (&'static str, &'static str);

/// The term that sentences are judged by: the study's loops, the predictor that is the default.
pub(super) const TERM: Term = ("MBaLt", "gshare");

/// Ends of innermost loops: N³/T.
pub(super) fn ends(n: usize, tile: usize) -> f64 {
    (n as f64).powi(3) / tile as f64
}

impl Findings {
    /// Misses of a variant at one N and T.
    pub(super) fn missed(&self, variant: &str, n: usize, tile: usize) -> Option<Missed> {
        let has = |row: &&Simulated| row.variant == variant && row.n == n && row.tile == tile;
        self.simulated.iter().find(has).map(|row| row.missed)
    }

    /// The N at which a variant was replayed, ascending.
    pub(super) fn sizes(&self, variant: &str) -> Vec<usize> {
        let rows = self.simulated.iter().filter(|row| row.variant == variant);
        present::order::set_of(rows.map(|row| row.n)).into_iter().collect()
    }

    /// The T at which a variant was replayed at one N, ascending.
    pub(super) fn tiles(&self, variant: &str, n: usize) -> Vec<usize> {
        let rows = self.simulated.iter().filter(|row| row.variant == variant && row.n == n);
        rows.map(|row| row.tile).collect()
    }

    /// Counted mispredictions for each end of an innermost loop: they depend on T, hardly on N.
    pub(super) fn an_end(&self, (loops, predictor): Term, tile: usize) -> Option<f64> {
        let has = |row: &&Counted| row.loops == loops && row.predictor == predictor && row.tile == tile;
        self.counted.iter().find(has).map(Counted::an_end)
    }

    /// The cost of section 3.5 in cycles: L1, L2, TLB, branches.
    pub(super) fn cycles(
        &self,
        variant: &str,
        term: Option<Term>,
        n: usize,
        tile: usize,
    ) -> Option<[f64; 4]> {
        let missed = self.missed(variant, n, tile)?;
        let branches = match term {
            Some(term) => self.an_end(term, tile)? * ends(n, tile),
            None => 0.0,
        };
        let counts =
            [missed.l1 as f64, missed.l2.unwrap_or(0) as f64, missed.tlb.unwrap_or(0) as f64, branches];
        Some(std::array::from_fn(|i| counts[i] * PENALTIES_CYCLES[i]))
    }

    /// The T of a variant with the least of something at one N.
    pub(super) fn least(&self, variant: &str, n: usize, of: impl Fn(usize) -> Option<f64>) -> Option<usize> {
        let known = self.tiles(variant, n).into_iter().filter_map(|tile| Some((tile, of(tile)?)));
        known.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(tile, _)| tile)
    }

    /// The T with the least total cost.
    pub(super) fn cheapest(&self, variant: &str, term: Option<Term>, n: usize) -> Option<usize> {
        self.least(variant, n, |tile| self.cycles(variant, term, n, tile).map(|cycles| cycles.iter().sum()))
    }

    /// From how many mispredictions an end of an innermost loop to how many, the same for every T,
    /// a T costs least; `None` when no number makes it so.
    pub(super) fn cheapest_between(&self, variant: &str, n: usize, chosen: usize) -> Option<(f64, f64)> {
        let total = |tile| self.cycles(variant, None, n, tile).map(|cycles| cycles.iter().sum::<f64>());
        let own = total(chosen)?;
        let (mut low, mut high) = (0.0_f64, f64::INFINITY);
        for tile in self.tiles(variant, n).into_iter().filter(|&tile| tile != chosen) {
            // Cycles that the chosen T saves, over the cycles of the ends that it saves.
            let crossing = (own - total(tile)?) / (PENALTIES_CYCLES[3] * (ends(n, tile) - ends(n, chosen)));
            if tile < chosen {
                low = low.max(crossing);
            } else {
                high = high.min(crossing);
            }
        }
        (low < high).then_some((low, high))
    }

    /// The rates of a crew at one N.
    pub(super) fn rates(&self, crew: &str, n: usize) -> Vec<&Rate> {
        let rows = self.times.iter().filter(|times| times.n == n);
        rows.flat_map(|times| &times.rates).filter(|rate| rate.crew == crew).collect()
    }

    /// The fastest T of a crew at one N.
    pub(super) fn fastest(&self, crew: &str, n: usize) -> Option<&Rate> {
        self.rates(crew, n).into_iter().max_by(|a, b| a.gflops[1].total_cmp(&b.gflops[1]))
    }
}
