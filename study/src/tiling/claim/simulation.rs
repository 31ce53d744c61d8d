//! Decides the sentences of the abstract and of sections 3 and 5, which are about the paper's
//! simulated Xeon.

use super::Sentence;
use crate::outcome::Claim;
use crate::tiling::findings::{Findings, Formula, TERM};
use crate::tiling::variant::{MODERATE, NEXT_LINE, ONE, STRIDE, WAYS};
use present::number::grouped;

/// The paper's optima: the largest tile that fits L1, the TLB's reach, and L2.
pub(super) const FITS_L1: usize = 64;
const FITS_TLB: usize = 256;
const FITS_L2: usize = 512;
/// The largest tile that fits an L2 of 256 KB.
const FITS_MODERATE: usize = 256;

/// The command whose branches stand in the cost.
const COMMAND: &str = "`lightfoot cache --branches --machine xeon-dp -- lightfoot tile-loop --type f32`";

fn simulated(what: &str) -> String {
    format!("{what}, the loops replayed on the simulated Xeon DP")
}

fn cost(what: &str) -> String {
    format!("{what}: cycles by Table 1's penalties of replayed misses and of the mispredictions that {COMMAND} counts")
}

/// Misses of L1 at one N and T.
fn l1(findings: &Findings, variant: &str, n: usize, tile: usize) -> Option<f64> {
    findings.missed(variant, n, tile).map(|missed| missed.l1 as f64)
}

fn formula(findings: &Findings, n: usize, tile: usize) -> Option<&Formula> {
    findings.formulas.iter().find(|row| row.n == n && row.tile == tile)
}

pub(super) fn abstract_and_section_3(findings: &Findings) -> Vec<Claim> {
    let mut claims = vec![
        Sentence::new(
            "Abstract",
            "Increased self- or/and cross-interference misses can be tolerated through prefetching.",
            simulated("L1 misses at T = 64, which the three arrays overfill, over those at T = 32, with a prefetcher by stride"),
        )
        .at(&findings.sizes(STRIDE), |n| tolerated(findings, n)),
        Sentence::new(
            "Abstract",
            "Such larger tiles also reduce mispredicted branches and, as a result, the lost CPU cycles that arise.",
            format!("mispredictions of the whole product at T = 64 and at every smaller T, by {COMMAND}"),
        )
        .at(&[256], |_| fewer_mispredictions(findings)),
    ];
    claims.extend(interference(findings));
    claims.extend(levels(findings));
    claims.extend(total(findings));
    claims
}

fn tolerated(findings: &Findings, n: usize) -> Option<(bool, String)> {
    let ratio = |variant| Some(l1(findings, variant, n, FITS_L1)? / l1(findings, variant, n, FITS_L1 / 2)?);
    let (with, without) = (ratio(STRIDE)?, ratio(ONE)?);
    let next = ratio(NEXT_LINE).map_or(String::new(), |next| format!(", {next:.2} by next line"));
    Some((with <= 1.0, format!("{with:.2} by stride{next}, {without:.2} without")))
}

fn fewer_mispredictions(findings: &Findings) -> Option<(bool, String)> {
    let an_end = |tile| Some(findings.an_end(TERM, tile)? / tile as f64);
    let chosen = an_end(FITS_L1)?;
    let smaller: Option<Vec<f64>> = [8, 16, 32].into_iter().map(an_end).collect();
    let shown: Vec<String> = [8, 16, 32, 64, 128, 256, 512]
        .into_iter()
        .filter_map(|tile| Some(format!("T = {tile}: {:.2}", 1e3 * an_end(tile)?)))
        .collect();
    let holds = smaller?.iter().all(|&other| chosen < other);
    Some((holds, format!("mispredictions of a thousand multiply-adds: {}", shown.join(", "))))
}

/// Section 3, 3.2: which misses arise beside those of capacity.
fn interference(findings: &Findings) -> Vec<Claim> {
    let sizes = findings.sizes(WAYS[2]);
    // Misses over those of a fully associative cache, the worst T up to the largest that fits.
    let worst = |variant: &str, n: usize| -> Option<(bool, String)> {
        let ratio = |tile| Some(l1(findings, variant, n, tile)? / l1(findings, WAYS[2], n, tile)?);
        let ratios = findings.tiles(variant, n).into_iter().filter_map(|tile| Some((tile, ratio(tile)?)));
        let (tile, most) = ratios.max_by(|a, b| a.1.total_cmp(&b.1))?;
        Some((most <= 1.05, format!("at most {most:.2} times, at T = {tile}")))
    };
    let beside = "L1 misses over those of a fully associative L1 of as many bytes, the worst T";
    vec![
        Sentence::new(
            "Section 3.2",
            "In case of set associative caches, apart from capacity misses, neither self- nor cross-interference misses arise.",
            simulated(&format!("{beside}, 8 ways")),
        )
        .at(&sizes, |n| worst(ONE, n)),
        Sentence::new(
            "Section 3.2",
            "Even 2-way set associativity is enough for kernel codes such as matrix multiplication, where data elements from three different arrays are retrieved.",
            simulated(&format!("{beside}, 2 ways")),
        )
        .at(&sizes, |n| worst(WAYS[1], n)),
    ]
}

/// Figures 1 to 3.
fn levels(findings: &Findings) -> Vec<Claim> {
    let sizes = findings.sizes(ONE);
    let least_at = |level: usize, wanted: usize| {
        move |n: usize| {
            let misses = |tile| {
                let missed = findings.missed(ONE, n, tile)?;
                [Some(missed.l1), missed.l2, missed.tlb][level].map(|misses| misses as f64)
            };
            let found = findings.least(ONE, n, misses)?;
            let (there, fewest) = (misses(wanted)?, misses(found)?);
            let both = (there as u64, fewest as u64);
            Some((
                there <= fewest,
                format!("fewest at T = {found} ({}), {} at T = {wanted}", grouped(both.1), grouped(both.0)),
            ))
        }
    };
    // Arrays that a level holds whole miss alike for every T.
    let beyond =
        |elements: usize| -> Vec<usize> { sizes.iter().copied().filter(|&n| n * n >= elements).collect() };
    let rise = |n: usize, from: usize| Some(l1(findings, ONE, n, 2 * from)? / l1(findings, ONE, n, from)?);
    let three = |n: usize| Some([rise(n, FITS_L1 / 4)?, rise(n, FITS_L1 / 2)?, rise(n, FITS_L1)?]);
    let shown = |[a, b, c]: [f64; 3]| {
        format!("{a:.2} times from T = 16 to 32, {b:.2} from 32 to 64, {c:.2} from 64 to 128")
    };
    vec![
        Sentence::new(
            "Section 3.2, Figure 1",
            "L1 cache misses increase sharply when the working set, reused along the three innermost loops, overwhelms the L1 cache.",
            simulated("L1 misses of T = 128, whose tile overwhelms L1, over the fewest: sharply is twice"),
        )
        .at(&sizes, |n| {
            let fewest = findings.least(ONE, n, |tile| l1(findings, ONE, n, tile))?;
            let factor = l1(findings, ONE, n, 2 * FITS_L1)? / l1(findings, ONE, n, fewest)?;
            Some((factor >= 2.0, format!("{factor:.1} times those at T = {fewest}")))
        }),
        Sentence::new(
            "Section 3.2, Figure 1",
            "That is, the tile size overexceeds the L1 cache capacity (C_{L1}), and no reuse can be exploited for at least one array.",
            simulated("whether the sharpest rise from a T to the next is from 64, the last tile that fits alone, to 128; where it is from 32 to 64, the three arrays share the cache and one tile does not stay"),
        )
        .at(&sizes, |n| {
            let rises = three(n)?;
            Some((rises[2] > rises[1].max(rises[0]), shown(rises)))
        }),
        Sentence::new(
            "Section 3.3",
            "However, the number of misses hardly increases (less than 1%) compared to an equal-sized data cache, when caches are large, like the one of the Xeon platform.",
            "L2 misses of the compiled loops by `lightfoot cache --machine xeon-dp`, with `--l1i 16K,8,64` and without",
        )
        .at(&[512], |_| {
            let unified = findings.unified?;
            let more = unified.both as f64 / unified.data.max(1) as f64 - 1.0;
            Some((more < 0.01, format!("T = {}: {:+.3} % ({} and {})", unified.tile, 100.0 * more, grouped(unified.both), grouped(unified.data))))
        }),
        Sentence::new(
            "Section 3.3, Figure 2",
            "The number of L2 misses, for all array sizes, are minimized for $T^2 = C_{L2}$, when the whole cache is been used and a whole tile fits in the cache so that tile-level reuse can be exploited.",
            simulated("the T with the fewest L2 misses, where N² fills L2; a tile that fills it alone is displaced by the other two arrays"),
        )
        .at(&beyond(FITS_L2 * FITS_L2), least_at(1, FITS_L2)),
        Sentence::new(
            "Section 3.4, Figure 3",
            "The number of TLB misses for all array sizes, for an example of 64 entries (as the TLB size of Xeon is), are minimized when $T = 256$.",
            simulated("the T with the fewest TLB misses, where N² exceeds its reach; a tile whose pages take all entries is displaced by the pages of the other two arrays"),
        )
        .at(&beyond(2 * FITS_TLB * FITS_TLB), least_at(2, FITS_TLB)),
    ]
}

/// Which term of the cost is greatest, and at which T it is not L1's.
fn dominated(findings: &Findings, n: usize, tiles: &[usize]) -> Option<(bool, String)> {
    let mut others = Vec::new();
    for &tile in tiles {
        let [l1, l2, tlb, _] = findings.cycles(ONE, None, n, tile)?;
        if l1 <= l2.max(tlb) {
            others.push(tile.to_string());
        }
    }
    let [l1, l2, tlb, _] = findings.cycles(ONE, None, n, FITS_L1)?;
    let share = 100.0 * l1 / (l1 + l2 + tlb);
    let except = match others.is_empty() {
        true => String::new(),
        false => format!(", another level's is greater at T = {}", others.join(", ")),
    };
    Some((others.is_empty(), format!("L1 has {share:.0} % of the misses' cycles at T = 64{except}")))
}

/// Figure 4.
fn total(findings: &Findings) -> Vec<Claim> {
    let sizes = findings.sizes(ONE);
    // How many times as often L1 misses as L2 and as the TLB, at the paper's best T.
    let ratios = |n: usize| {
        let missed = findings.missed(ONE, n, FITS_L1)?;
        Some([missed.l2?, missed.tlb?].map(|misses| missed.l1 as f64 / misses.max(1) as f64))
    };
    // The ratios that the paper's own formulas give; they are shown beside the simulated ones.
    let formulas = |n: usize| {
        formula(findings, n, FITS_L1).map_or(String::new(), |row| {
            let [l1, l2, tlb] = row.misses;
            format!("; the paper's own formulas give {:.1} and {:.0}", l1 / l2, l1 / tlb)
        })
    };
    let every = |n: usize| dominated(findings, n, &findings.tiles(ONE, n));
    vec![
        Sentence::new(
            "Section 3.3",
            // Sections 3.3 and 3.5 state this ratio twice, with different strength: each is decided
            // on its own.
            "However, L1 misses are 1 order of magnitude more than L2 misses.",
            simulated("L1 misses over L2 misses at T = 64, over the TLB's, and the formulas' ratios"),
        )
        .at(&sizes, |n| {
            let [l2, tlb] = ratios(n)?;
            Some((l2 >= 10.0, format!("{l2:.1} and {tlb:.0}{}", formulas(n))))
        }),
        Sentence::new(
            "Section 3.3",
            "As a result, the L1 misses dominate the total memory behaviour, as illustrated in figure 4.",
            simulated("whether the L1 term is the greatest of L1, L2 and TLB at every T"),
        )
        .at(&sizes, every),
        Sentence::new(
            "Section 3.5, Figure 4",
            "Figure 4 makes clear that L1 misses dominate cache and, as a result, total performance in the Xeon DP architecture.",
            cost("whether the T with the fewest L1 misses costs least"),
        )
        .at(&sizes, |n| l1_decides(findings, ONE, n)),
        Sentence::new(
            "Section 3.5, Figure 4",
            "Maximum performance is achieved when $T = 64$, which is the optimal tile size for L1 cache (the maximum tile that fits in L1 cache).",
            cost("the T of least cost, and for which number of mispredictions an end of an innermost loop, were it the same for all T, T = 64 would cost least"),
        )
        .at(&sizes, |n| {
            // The cost includes mispredictions, which depend on the predictor. The range says for
            // how many of them the answer stays.
            let best = findings.cheapest(ONE, Some(TERM), n)?;
            Some((best == FITS_L1, format!("T = {best}{}", range(findings, n))))
        }),
        Sentence::new(
            "Section 3.5",
            "L1 cache misses are more than one order of magnitude more than L2 misses and three orders of magnitude more than TLB misses.",
            simulated("L1 misses at T = 64 over L2 misses, at least 10, and over TLB misses, at least 1,000"),
        )
        .at(&sizes, |n| {
            let [l2, tlb] = ratios(n)?;
            Some((l2 > 10.0 && tlb >= 1000.0, format!("{l2:.1} and {tlb:.0}{}", formulas(n))))
        }),
        Sentence::new(
            "Section 3.5",
            "Thus, even though L1 misses cost fewer clock cycles, they are still the most weighty factor.",
            simulated("whether the L1 term is the greatest of L1, L2 and TLB at T = 64"),
        )
        .at(&sizes, |n| dominated(findings, n, &[FITS_L1])),
    ]
}

/// For which mispredictions an end the paper's T costs least.
fn range(findings: &Findings, n: usize) -> String {
    match findings.cheapest_between(ONE, n, FITS_L1) {
        Some((low, high)) if high.is_finite() => format!(" (64 between {low:.2} and {high:.2} an end)"),
        Some((low, _)) => format!(" (64 from {low:.2} an end)"),
        None => String::from(" (64 for no number)"),
    }
}

fn l1_decides(findings: &Findings, variant: &str, n: usize) -> Option<(bool, String)> {
    let fewest = findings.least(variant, n, |tile| l1(findings, variant, n, tile))?;
    let best = findings.cheapest(variant, Some(TERM), n)?;
    Some((best == fewest, format!("fewest L1 misses at T = {fewest}, least cost at T = {best}")))
}

pub(super) fn section_5(findings: &Findings) -> Vec<Claim> {
    // The T of least cost with the large L2 and with the moderate one, and both as text.
    let moderate = |n: usize| {
        let (large, small) =
            (findings.cheapest(ONE, Some(TERM), n)?, findings.cheapest(MODERATE, Some(TERM), n)?);
        Some((
            large,
            small,
            format!("T = {small} with 256 KB, T = {large} with 1 MB{}", by_formula(findings, n)),
        ))
    };
    vec![
        Sentence::new(
            "Section 5",
            "We have found theoretically and verified through experiments and simulations that, when such layouts are used, in direct mapped caches, with a large L2 cache, L1 cache misses dominate overall performance.",
            cost("with a direct-mapped L1 and the large L2, whether the T with the fewest L1 misses costs least; the set associative L1 of section 3 stands beside"),
        )
        .at(&findings.sizes(WAYS[0]), |n| {
            let (holds, figures) = l1_decides(findings, WAYS[0], n)?;
            let ways = l1_decides(findings, ONE, n);
            let ways = ways.map_or(String::new(), |(_, figures)| format!(" (8 ways: {figures})"));
            Some((holds, figures + &ways))
        }),
        Sentence::new(
            "Section 5",
            "Prefetching in combination with other code optimization techniques, set optimal tiling to be $T_1 = \\sqrt{C_{L1}}$.",
            cost("the T of least cost with a prefetcher by stride and with one by next line, with either predictor, and with the paper's own innermost loop: 64 in all four"),
        )
        .at(&findings.sizes(STRIDE), |n| {
            // The sentence must hold for both prefetchers, both predictors and both innermost
            // loops.
            let found = [
                findings.cheapest(STRIDE, Some(TERM), n)?,
                findings.cheapest(STRIDE, Some(("MBaLt", "perceptron")), n)?,
                findings.cheapest(STRIDE, Some(("MBaLt-elements", "gshare")), n)?,
                findings.cheapest(NEXT_LINE, Some(TERM), n)?,
            ];
            let [stride, perceptron, elements, next] = found;
            Some((
                found.iter().all(|tile| *tile == FITS_L1),
                format!(
                    "T = {stride} with gshare, {perceptron} with the perceptron, {elements} where the innermost loop takes one element a step; by next line {next}"
                ),
            ))
        }),
        Sentence::new(
            "Section 5",
            "On the other hand, when L2 cache has a moderate capacity, L2 misses weight overall performance to larger tile sizes [\u{2026}]",
            cost("the T of least cost with an L2 of 256 KB: larger than with 1 MB"),
        )
        .at(&findings.sizes(MODERATE), |n| moderate(n).map(|(large, small, figures)| (small > large, figures))),
        Sentence::new(
            "Section 5",
            "[\u{2026}] and determine the optimal tile size to be $T \\leq \\sqrt{C_{L2}}$.",
            cost("the T of least cost with an L2 of 256 KB: at most 256, and larger than the 64 that fits L1"),
        )
        .at(&findings.sizes(MODERATE), |n| {
            // The bound alone would also hold for the T that fits L1, where L2 decides nothing.
            moderate(n).map(|(_, small, figures)| (small > FITS_L1 && small <= FITS_MODERATE, figures))
        }),
    ]
}

/// What the paper's formulas say of the moderate L2, without branches.
fn by_formula(findings: &Findings, n: usize) -> String {
    let rows = findings.formulas.iter().filter(|row| row.n == n);
    let cycles = |row: &&Formula| 4.0 * row.misses[0] + 18.0 * row.moderate_l2 + 30.0 * row.misses[2];
    let least = rows.min_by(|a, b| cycles(a).total_cmp(&cycles(b)));
    least.map_or(String::new(), |row| format!(" (formulas with 256 KB: T = {})", row.tile))
}
