//! Decides the sentences of section 4, by times of this host and by simulation of the shared first
//! level.

use super::simulation::FITS_L1;
use super::{tile, Sentence};
use crate::layout::Spread;
use crate::outcome::Claim;
use crate::tiling::findings::{Findings, TERM};
use crate::tiling::findings::{FOUR_THREADS, SERIAL, TWO_THREADS};
use crate::tiling::variant::{ONE, STRIDE, TWO, TWO_STRIDE};

/// Why two threads decide nothing here.
const TURNS: &str = "this host's cores run one thread at a time, so two threads on a CPU take turns";

/// What "quite larger" and "better" ask for beside noise.
const CLEARLY: f64 = 1.05;

pub(super) fn section_4(findings: &Findings) -> Vec<Claim> {
    let mut claims = speeds(findings);
    claims.extend(best_tiles(findings));
    claims
}

/// The N that were timed.
fn sizes(findings: &Findings) -> Vec<usize> {
    findings.times.iter().map(|times| times.n).collect()
}

/// Median speeds of two crews with one T, the first over the second.
fn ratio(findings: &Findings, over: &str, under: &str, n: usize, tile: usize) -> Option<f64> {
    let speed =
        |crew| findings.rates(crew, n).into_iter().find(|rate| rate.tile == tile).map(|r| r.gflops[1]);
    Some(speed(over)? / speed(under)?)
}

/// Best speeds of two crews, the first over the second, each with its own T.
fn best_ratio(findings: &Findings, over: &str, under: &str, n: usize) -> Option<f64> {
    Some(findings.fastest(over, n)?.gflops[1] / findings.fastest(under, n)?.gflops[1])
}

/// How far the quartiles of the fastest T lie apart.
fn spread(findings: &Findings, crews: &[&str]) -> String {
    let rows = crews.iter().flat_map(|crew| {
        let one = move |n: usize| Some((n, Spread::of(&findings.fastest(crew, n)?.gflops)?));
        sizes(findings).into_iter().filter_map(one).map(move |(n, s)| format!("{crew}, N = {n}: {s}"))
    });
    let rows: Vec<String> = rows.collect();
    if rows.is_empty() {
        return String::new();
    }
    format!("median and quartiles of GFLOP/s at the best T, {}", rows.join("; "))
}

/// Figure 5 and what section 4 says of it.
fn speeds(findings: &Findings) -> Vec<Claim> {
    let sizes = sizes(findings);
    let at_once = findings.host.simultaneous;
    // Two threads of one core can be compared with one only if the core runs both at once.
    let only = |n: usize| (at_once && n > 0).then_some(());
    let beside = |n: usize| best_ratio(findings, TWO_THREADS, SERIAL, n);
    let listed: Vec<String> =
        sizes.iter().filter_map(|&n| Some(format!("N = {n}: {:.2}", beside(n)?))).collect();
    let turns = format!("{TURNS}: two threads have {} of the serial speed", listed.join(", "));
    // On another host the claim stays unmeasured, and its detail gives the speed of taking turns.
    let settle = |claim: Claim| match at_once || sizes.is_empty() {
        true => claim,
        false => Claim { detail: turns.clone(), ..claim },
    };
    // Mispredictions and instructions of one multiply-add; counts of whole products would grow with
    // N.
    let an_end = |tile: usize| {
        let rows = &findings.counted;
        let row = rows.iter().find(|row| {
            row.loops == TERM.0 && row.predictor == TERM.1 && row.tile == tile && row.n == 256.max(tile)
        })?;
        let cube = (row.n as f64).powi(3);
        Some([row.mispredictions as f64 / cube, row.instructions as f64 / cube])
    };
    let parallel = "speed of 4 threads on two CPUs over the serial one, each with its best T; two threads of a CPU run at once only where its core can";
    let mut claims = vec![
        settle(
            Sentence::new(
                "Section 4",
                "For large tile sizes, execution times obtained with the 2threads-MBaLt version are quite larger than those of the serial version.",
                "speed of two threads on one core over the serial one at T = 128 to 512",
            )
            .at(&sizes, |n| {
                only(n)?;
                let ratios: Option<Vec<f64>> =
                    [128, 256, 512].iter().filter(|&&tile| tile < n).map(|&tile| ratio(findings, TWO_THREADS, SERIAL, n, tile)).collect();
                let ratios = ratios?;
                let shown: Vec<String> = ratios.iter().map(|ratio| format!("{ratio:.2}")).collect();
                Some((ratios.iter().all(|ratio| ratio * CLEARLY < 1.0), shown.join(", ")))
            }),
        ),
        Sentence::new(
            "Section 4",
            "Smaller tile sizes lead to more mispredicted branches and loop boundary calculations, thus increasing the overhead of tiling implementation.",
            "mispredictions and instructions of a multiply-add at T = 8, 16, 32 and 64, by `lightfoot cache --branches`",
        )
        .at(&[256], |_| {
            let all: Option<Vec<[f64; 2]>> = [8, 16, 32, 64].into_iter().map(an_end).collect();
            let all = all?;
            let falls = |which: usize| all.windows(2).all(|pair| pair[1][which] < pair[0][which]);
            let shown: Vec<String> = all.iter().map(|[m, i]| format!("{m:.4} and {i:.2}")).collect();
            Some((falls(0) && falls(1), shown.join(", ")))
        }),
        Sentence::new(
            "Section 4",
            "In the case of 2threads-MBaLt, this tiling overhead gets almost doubled, since the two threads are executing the same code in an interleaved fashion.",
            "nothing",
        )
        .undecided("cycles of the overhead alone cannot be told from the rest of the time, and both threads together mispredict as often as one"),
        settle(
            Sentence::new(
                "Section 4, Figure 5",
                "The serial-MaLt version seems to have better performance compared to the 2threads-MBaLt version, as execution time is minimized for small tile sizes.",
                "speed of two threads on one core over the serial one, each with its best T",
            )
            .at(&sizes, |n| {
                only(n)?;
                let ratio = beside(n)?;
                Some((ratio * CLEARLY < 1.0, format!("{ratio:.2}")))
            }),
        ),
        Sentence::new("Section 4, Figure 5", "Execution time is reduced, [\u{2026}]", parallel).at(&sizes, |n| {
            let ratio = best_ratio(findings, FOUR_THREADS, SERIAL, n)?;
            Some((ratio > CLEARLY, format!("{ratio:.2}")))
        }),
        reaches(findings, parallel),
    ];
    // The first three claims are not about the speed at the best T, whose quartiles these are.
    for claim in &mut claims[3..] {
        claim.spread = spread(findings, &[SERIAL, TWO_THREADS, FOUR_THREADS]);
    }
    claims
}

/// The 44 % of Figure 5: the most over all N.
fn reaches(findings: &Findings, measured: &str) -> Claim {
    let all = sizes(findings);
    let ratios = all.iter().filter_map(|&n| Some((n, best_ratio(findings, FOUR_THREADS, SERIAL, n)?)));
    let most = ratios.max_by(|a, b| a.1.total_cmp(&b.1));
    let size: Vec<usize> = most.iter().map(|(n, _)| *n).collect();
    Sentence::new(
        "Section 4, Figure 5",
        "[\u{2026}] and performance speed up reaches 44% compared to the serial-MBaLt version.",
        measured,
    )
    .at(&size, |_| {
        most.map(|(_, ratio)| (ratio >= 1.44, format!("{:+.0} %, the most of all N", 100.0 * (ratio - 1.0))))
    })
}

/// Figures 6, 7 and 8: the T with the best time, and the T of least simulated cost.
fn best_tiles(findings: &Findings) -> Vec<Claim> {
    let timed = sizes(findings);
    let fitting = findings.host.fitting;
    let at_once = findings.host.simultaneous;
    let fastest = |crew: &str, n: usize| findings.fastest(crew, n).map(|rate| rate.tile);
    let one = |n: usize| findings.cheapest(ONE, Some(TERM), n);
    let two = |n: usize| findings.cheapest(TWO, Some(TERM), n);
    // Costs with a prefetcher by stride are shown too, because a prefetcher may move the best T.
    let fetching = |n: usize| {
        let [one, two] = [STRIDE, TWO_STRIDE].map(|variant| tile(findings.cheapest(variant, Some(TERM), n)));
        format!("{one} and {two} with a prefetcher by stride")
    };
    let by_time = |crew: &str, n: usize| {
        let said = if at_once || crew == FOUR_THREADS { "" } else { ", taking turns" };
        findings.fastest(crew, n).map_or(String::new(), |rate| format!("; by time T = {}{said}", rate.tile))
    };
    let shared = "the T of least simulated cost with two threads that share the core's levels (a core of the four threads has the same two, on half of the rows), beside one thread's; the T with the best time";
    // The paper draws the line at N = 2048: below it two threads prefer the smaller T.
    let small: Vec<usize> = findings.sizes(TWO).into_iter().filter(|&n| n < 2048).collect();
    let large: Vec<usize> = findings.sizes(TWO).into_iter().filter(|&n| n >= 2048).collect();
    // The general rule is that of this host: the largest T whose square fits its own first level.
    let mut serial = Sentence::new(
        "Section 4, Figure 6",
        "As far as the optimal tile size is concerned, serial MBaLt obey to the general rule, this is $T_{optimal} = \\sqrt{C_{L1}} = 64$.",
        format!(
            "the T with the best serial time; the largest power of two whose square fits this host's first level is {}",
            fitting.map_or("unknown".into(), |tile| tile.to_string())
        ),
    )
    .at(&timed, |n| {
        let (fitting, rate) = (fitting?, findings.fastest(SERIAL, n)?);
        let there = ratio_of_tiles(findings, n, fitting)?;
        Some((rate.tile == fitting, format!("T = {}, T = {fitting} has {:.0} % of its speed", rate.tile, 100.0 * there)))
    });
    serial.spread = spread(findings, &[SERIAL]);
    vec![
        serial,
        Sentence::new(
            "Section 4, Figures 7 and 8",
            "However, when hyperthreading had been enabled, $T_{optimal}$ seems to be shifted to the just smaller size, in order to make room in the L1 cache for the increased number of concurrently used array elements.",
            shared,
        )
        .at(&small, |n| {
            let (one, two) = (one(n)?, two(n)?);
            Some((2 * two == one, format!("T = {two} for two, T = {one} for one; {}{}", fetching(n), by_time(TWO_THREADS, n))))
        }),
        Sentence::new(
            "Section 4, Figure 8",
            "This behaviour is observed, both when two threads run on the same physical cpu (2threads-MBaLt), as well as in the parallel version (4threads-MBaLt) where $T_{optimal} = 32$ (figures 6, 7 and 8).",
            "the T with the best time of 4 threads on two CPUs; half of the largest that fits this host's first level stands for 32",
        )
        .at(&timed, |n| {
            let (best, fitting) = (fastest(FOUR_THREADS, n)?, fitting?);
            Some((2 * best == fitting, format!("T = {best}; serial T = {}", fastest(SERIAL, n)?)))
        }),
        Sentence::new(
            "Section 4, Figure 7",
            "Note that for the 2threads-MBaLt version $T_{optimal} = 32$ when $N < 2048$.",
            shared,
        )
        .at(&small, |n| {
            let two = two(n)?;
            Some((2 * two == FITS_L1, format!("T = {two}; {}{}", fetching(n), by_time(TWO_THREADS, n))))
        }),
        Sentence::new(
            "Section 4, Figure 7",
            "For larger arrays, the 2threads-MBaLt version behaves similarly to the serial one, filling the whole L1 cache with useful array elements.",
            shared,
        )
        .at(&large, |n| {
            let (one, two) = (one(n)?, two(n)?);
            let figures = format!("T = {two} for two, T = {one} for one; {}{}", fetching(n), by_time(TWO_THREADS, n));
            Some((two == one && two == FITS_L1, figures))
        }),
    ]
}

/// The serial speed of a T over that of the best.
fn ratio_of_tiles(findings: &Findings, n: usize, tile: usize) -> Option<f64> {
    let rates = findings.rates(SERIAL, n);
    let there = rates.iter().find(|rate| rate.tile == tile)?.gflops[1];
    Some(there / findings.fastest(SERIAL, n)?.gflops[1])
}
