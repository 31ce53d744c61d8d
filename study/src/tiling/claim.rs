//! What Athanasaki et al. found, each sentence held against the formula, the simulation and the
//! times of this run.
//!
//! Sections 3.2 to 3.5 speak of the paper's Xeon, which is simulated here; section 4 measures it,
//! which a newer machine can only repeat in kind: its best tile is held against its own first
//! level.

use super::findings::{Findings, Point, Times, ELEMENT_BYTES};
use crate::outcome::{Claim, Verdict};
use crate::tile::simulation::Missed;
use machine::Machine;

/// The paper's Table 1: first level, second level and TLB reach, in elements.
const XEON_T1: usize = 64;
const XEON_T2: usize = 512;
const XEON_TLB: usize = 256;
/// Penalties of a miss in L1, L2 and TLB, in cycles: Table 1.
const XEON_PENALTIES: [u64; 3] = [4, 18, 30];

/// What the sentences are held against.
const MEASURED: &str = "the formulas of section 3, simulated replays of the loops, and times of real loops";

/// All sentences.
pub(super) fn check(findings: &Findings) -> Vec<Claim> {
    let mut claims = of_the_formulas(&findings.points);
    claims.extend(of_the_simulation(&findings.points));
    claims.extend(of_the_times(&findings.times));
    claims
}

/// The T with the least of something, of one N.
fn best(points: &[&Point], of: impl Fn(&Point) -> Option<f64>) -> Option<usize> {
    let known = points.iter().filter_map(|point| Some((point.tile, of(point)?)));
    known.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(tile, _)| tile)
}

fn cycles(missed: Missed) -> f64 {
    let misses = [missed.l1, missed.l2.unwrap_or(0), missed.tlb.unwrap_or(0)];
    misses.iter().zip(XEON_PENALTIES).map(|(&misses, penalty)| (misses * penalty) as f64).sum()
}

/// The points of the largest N that satisfies something.
fn largest(points: &[Point], has: impl Fn(&Point) -> bool) -> Vec<&Point> {
    let n = points.iter().filter(|point| has(point)).map(|point| point.n).max();
    points.iter().filter(|point| Some(point.n) == n && has(point)).collect()
}

fn of_the_formulas(points: &[Point]) -> Vec<Claim> {
    let at = largest(points, |_| true);
    let n = at.first().map_or(0, |point| point.n);
    let least = |of: fn(&Point) -> f64| best(&at, |point| Some(of(point)));
    let (l2, tlb, total) = (
        least(|point| point.formula[1]),
        least(|point| point.formula[2]),
        least(|point| point.formula_cycles),
    );
    let chosen = at.iter().find(|point| point.tile == XEON_T1);
    let orders =
        chosen.map(|point| (point.formula[0] / point.formula[1], point.formula[0] / point.formula[2]));
    let tile = |found: Option<usize>, wanted: usize| {
        (found.map(|found| found == wanted), shown(n, "formula", found))
    };
    let claim = |place, sentence, (holds, detail)| Claim {
        place,
        sentence,
        measured: MEASURED.into(),
        verdict: Verdict::of(holds),
        extent: String::new(),
        spread: String::new(),
        detail,
    };
    vec![
        claim("Figure 2", "misses of the second level are fewest when one tile fills it", tile(l2, XEON_T2)),
        claim("Figure 3", "misses of the TLB are fewest when the pages of one tile fill it", tile(tlb, XEON_TLB)),
        claim("Figure 4", "the total cost is least for the largest tile that fits the first level", tile(total, XEON_T1)),
        claim(
            "Figure 4",
            "the first level misses over ten times as often as the second, and a thousand times as often as the TLB",
            (
                orders.map(|(l2, tlb)| l2 > 10.0 && tlb >= 1000.0),
                orders.map_or(String::from("no such tile"), |(l2, tlb)| {
                    format!("formula, N = {n}, T = {XEON_T1}: {l2:.0} times the second level's, {tlb:.0} times the TLB's")
                }),
            ),
        ),
    ]
}

fn shown(n: usize, how: &str, tile: Option<usize>) -> String {
    tile.map_or_else(|| format!("{how}: nothing measured"), |tile| format!("{how}, N = {n}: T = {tile}"))
}

fn of_the_simulation(points: &[Point]) -> Vec<Claim> {
    let at = largest(points, |point| point.simulated.is_some());
    let n = at.first().map_or(0, |point| point.n);
    let single = best(&at, |point| point.simulated.map(cycles));
    let shared = best(&at, |point| point.simulated_shared.map(cycles));
    let misses = |tile: usize| at.iter().find(|point| point.tile == tile)?.simulated.map(|missed| missed.l1);
    let fewest = at.iter().filter_map(|point| point.simulated.map(|missed| missed.l1)).min();
    let rise = misses(2 * XEON_T1).zip(fewest).map(|(beyond, fewest)| beyond as f64 / fewest as f64);
    vec![
        Claim {
            place: "Figure 1",
            sentence: "misses of the first level rise sharply once a tile outgrows it",
            measured: MEASURED.into(),
            verdict: Verdict::of(rise.map(|rise| rise > 5.0)),
            extent: String::new(),
            spread: String::new(),
            detail: rise.map_or(String::from("N is too small"), |rise| {
                format!(
                    "simulated, N = {n}: T = {} misses {rise:.1} times as often as the best T",
                    2 * XEON_T1
                )
            }),
        },
        Claim {
            place: "Section 5",
            sentence: "simulation confirms that the largest tile that fits the first level costs least",
            measured: MEASURED.into(),
            verdict: Verdict::of(single.map(|tile| tile == XEON_T1)),
            extent: String::new(),
            spread: String::new(),
            detail: shown(n, "simulated", single),
        },
        Claim {
            place: "Figure 7",
            sentence: "two threads on one core want the next smaller tile",
            measured: MEASURED.into(),
            verdict: Verdict::of(single.zip(shared).map(|(single, shared)| shared < single)),
            extent: String::new(),
            spread: String::new(),
            detail: format!(
                "{}; {}",
                shown(n, "one thread", single),
                shown(n, "two threads, simulated", shared)
            ),
        },
    ]
}

fn of_the_times(times: &[Times]) -> Vec<Claim> {
    let host = Machine::host();
    let level = host.data_cache(1).map(|cache| cache.size_bytes as usize / ELEMENT_BYTES);
    let fitting = level.map(|elements| elements.isqrt()).map(|root| 1 << root.max(1).ilog2());
    let of = |name: &str, threads: usize| {
        times.iter().filter(|row| row.version == name && row.threads == threads).collect::<Vec<_>>()
    };
    let (serial, linear, four) = (of("MBaLt", 1), of("LaLt", 1), of("MBaLt", 4));
    vec![
        Claim {
            place: "Figure 6",
            sentence: "the best tile is the largest that fits the first level",
            measured: MEASURED.into(),
            verdict: Verdict::of(fitting.filter(|_| !serial.is_empty()).map(|tile| serial.iter().all(|row| fastest(row).0 == tile))),
            extent: String::new(),
            spread: String::new(),
            detail: format!(
                "measured: {}; the largest power of two that fits this host's first level is {}",
                listed(&serial),
                fitting.map_or("unknown".into(), |tile| tile.to_string())
            ),
        },
        compared(
            "Figure 5",
            "blocked arrays with masks are faster than rows and columns in their usual order, each at its best tile",
            &serial,
            &linear,
            1.0,
        ),
        compared("Figure 8", "four threads are up to 1.44 times as fast as one", &four, &serial, 1.2),
    ]
}

/// Tile and speed of the fastest.
fn fastest(row: &Times) -> (usize, f64) {
    let best = row.times.iter().max_by(|a, b| a.gflops.total_cmp(&b.gflops));
    best.map_or((0, 0.0), |timed| (timed.tile, timed.gflops))
}

fn listed(rows: &[&Times]) -> String {
    let each: Vec<String> = rows
        .iter()
        .map(|row| format!("N = {}: T = {} ({:.1} GFLOP/s)", row.n, fastest(row).0, fastest(row).1))
        .collect();
    each.join(", ")
}

/// Whether one set of rows is at least `factor` times as fast as another at every N that both ran.
fn compared(
    place: &'static str,
    sentence: &'static str,
    one: &[&Times],
    other: &[&Times],
    factor: f64,
) -> Claim {
    let pairs: Vec<(usize, f64)> = one
        .iter()
        .filter_map(|row| {
            let beside = other.iter().find(|beside| beside.n == row.n)?;
            Some((row.n, fastest(row).1 / fastest(beside).1))
        })
        .collect();
    let each: Vec<String> = pairs.iter().map(|(n, ratio)| format!("N = {n}: {ratio:.2} times")).collect();
    Claim {
        place,
        sentence,
        measured: MEASURED.into(),
        verdict: Verdict::of((!pairs.is_empty()).then(|| pairs.iter().all(|(_, ratio)| *ratio >= factor))),
        extent: String::new(),
        spread: String::new(),
        detail: if pairs.is_empty() { "too few CPUs here".into() } else { each.join(", ") },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tile::timing::Timed;

    fn point(tile: usize, cycles: f64, simulated: Option<u64>, shared: Option<u64>) -> Point {
        let missed = |l1| Missed { l1, l2: Some(1), tlb: Some(1) };
        Point {
            n: 4096,
            tile,
            formula: [12_000.0, if tile == 512 { 90.0 } else { 100.0 }, if tile == 256 { 9.0 } else { 10.0 }],
            formula_cycles: cycles,
            formula_cycles_branches: cycles,
            simulated: simulated.map(missed),
            simulated_shared: shared.map(missed),
            counted: None,
        }
    }

    fn row(version: &'static str, threads: usize, tile: usize, gflops: f64) -> Times {
        let timed = |tile, gflops| Timed { tile, gflops, share_of_peak: 0.1 };
        Times { figure: "5", version, threads, n: 512, times: vec![timed(8, 0.5), timed(tile, gflops)] }
    }

    fn held(claims: &[Claim], part: &str) -> Verdict {
        claims
            .iter()
            .find(|claim| claim.sentence.contains(part))
            .unwrap_or_else(|| panic!("no {part}"))
            .verdict
    }

    #[test]
    fn the_papers_own_picture_holds() {
        let points = vec![
            point(32, 3.0, Some(200), Some(100)),
            point(64, 1.0, Some(100), Some(150)),
            point(128, 9.0, Some(900), Some(900)),
            point(256, 10.0, None, None),
            point(512, 11.0, None, None),
        ];
        let claims: Vec<Claim> =
            of_the_formulas(&points).into_iter().chain(of_the_simulation(&points)).collect();
        assert!(claims.iter().all(|claim| claim.verdict == Verdict::Holds), "{claims:#?}");
    }

    #[test]
    fn another_picture_is_told_apart() {
        let points = vec![point(32, 1.0, Some(100), Some(90)), point(64, 2.0, Some(120), Some(95))];
        let claims: Vec<Claim> =
            of_the_formulas(&points).into_iter().chain(of_the_simulation(&points)).collect();
        assert_eq!(held(&claims, "the total cost"), Verdict::Fails);
        assert_eq!(held(&claims, "rise sharply"), Verdict::NotMeasured);
        assert_eq!(held(&claims, "simulation confirms"), Verdict::Fails);
        assert_eq!(held(&claims, "next smaller"), Verdict::Fails);
    }

    #[test]
    fn times_that_are_missing_decide_nothing() {
        let claims = of_the_times(&[row("MBaLt", 1, 64, 4.0), row("LaLt", 1, 64, 2.0)]);
        assert_eq!(held(&claims, "blocked arrays"), Verdict::Holds);
        assert_eq!(held(&claims, "four threads"), Verdict::NotMeasured);
        assert_eq!(held(&of_the_times(&[]), "the best tile"), Verdict::NotMeasured);
        let claims =
            of_the_times(&[row("MBaLt", 1, 64, 1.0), row("LaLt", 1, 64, 2.0), row("MBaLt", 4, 64, 1.5)]);
        assert_eq!(held(&claims, "blocked arrays"), Verdict::Fails);
        assert_eq!(held(&claims, "four threads"), Verdict::Holds);
    }
}
