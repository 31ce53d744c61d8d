//! `lightfoot study tiling`: the figures of Athanasaki et al. 2006.
//!
//! Figures 1 to 4 show the misses of the first level, the second level and the TLB, and the total
//! cost, over N and T. They are simulated for the paper's Xeon ([`variant`]), and the paper's
//! formulas stand beside them. The branch term of the cost is counted by `lightfoot cache
//! --branches` on the compiled loops ([`real`]). Figures 5 to 8 are times of this host, serial and
//! with threads. [`claim`] decides for every sentence of the paper that states a finding whether it
//! holds.

mod claim;
mod findings;
mod page;
mod plots;
mod real;
mod variant;

use crate::host::host;
use crate::journal::Journal;
use crate::options::{Effort, Options};
use crate::outcome::Outcome;
use crate::tile::{powers, timing, POWERS};
use anyhow::{anyhow, Context, Result};
use findings::{Findings, Formula, Host, Times, ELEMENT_BYTES, FOUR_THREADS, LOOPS, SERIAL, TWO_THREADS};
use machine::Machine;
use matrix::paper::{cache_misses, tlb_misses, Level, Loop};
use present::date;
use real::counts;
use simulate::Modelled;
use timing::Crew;
use variant::VARIANTS;

/// All N of the paper's figures.
const SIZES: [usize; 5] = [256, 512, 1024, 2048, 4096];
/// How much is timed.
struct Plan {
    timed: &'static [usize],
    effort: timing::Effort,
}

const QUICK: Plan = Plan { timed: &[256, 512], effort: timing::Effort { passes: 3, seconds: 0.005 } };
const FULL: Plan = Plan { timed: &SIZES, effort: timing::Effort { passes: 5, seconds: 0.05 } };

/// Runs the study and writes its results.
pub(super) fn run(options: &Options) -> Result<Outcome> {
    let quick = options.effort == Effort::Quick;
    let plan = if quick { QUICK } else { FULL };
    let machine = Machine::preset("xeon-dp")?;
    let mut journal = Journal::open(options, "tiling", seconds(&plan, quick))?;
    let (host, crews) = crews();
    let mut findings = Findings {
        schema: 2,
        date: date::today(),
        effort: options.effort.shown(),
        version: env!("CARGO_PKG_VERSION"),
        machine: machine.description.clone(),
        host,
        ..Findings::default()
    };
    findings.formulas = formulas(&machine)?;
    simulate(&machine, quick, &mut journal, &mut findings)?;
    count(&mut journal, &mut findings)?;
    time(&plan, &crews, &mut journal, &mut findings)?;
    findings.claims = claim::check(&findings);
    let files = page::write(&findings, &options.folder)?;
    journal.finish()?;
    Ok(Outcome { summary: page::summary(&findings), claims: findings.claims, files })
}

/// Seconds that the whole study takes.
fn seconds(plan: &Plan, quick: bool) -> f64 {
    let simulated: f64 =
        VARIANTS.iter().flat_map(|variant| variant.sizes(quick).map(|n| variant.seconds(n))).sum();
    let counted: f64 = counts().iter().map(|&(loops, _, n, _)| count_seconds(loops, n)).sum();
    simulated + counted + plan.timed.iter().map(|&n| time_seconds(plan, n)).sum::<f64>()
}

/// Section 3's formulas at every N and T.
fn formulas(machine: &Machine) -> Result<Vec<Formula>> {
    let [l1, l2] = [1, 2].map(|level| Level::cache(machine, level, ELEMENT_BYTES));
    let (l1, l2, tlb) = (l1?, l2?, Level::tlb(machine, ELEMENT_BYTES)?);
    let moderate = Level { capacity: l2.capacity / 4.0, ..l2 };
    let row = |(n, tile)| Formula {
        n,
        tile,
        misses: [
            cache_misses(l1, n, tile).total(),
            cache_misses(l2, n, tile).total(),
            tlb_misses(tlb, n, tile).total(),
        ],
        moderate_l2: cache_misses(moderate, n, tile).total(),
    };
    Ok(SIZES.iter().flat_map(|&n| powers(n).map(move |tile| (n, tile))).map(row).collect())
}

/// Figures 1 to 4.
fn simulate(machine: &Machine, quick: bool, journal: &mut Journal, findings: &mut Findings) -> Result<()> {
    let modelled = Modelled::of(machine).map_err(|error| anyhow!("{error}"))?;
    let levels = modelled.context("the paper's machine has no first-level data cache")?.levels;
    for variant in VARIANTS {
        for n in variant.sizes(quick) {
            let step = format!("simulated: {}, N = {n}", variant.name);
            findings
                .simulated
                .extend(journal.step(&step, variant.seconds(n), || variant.replay(&levels, n))?);
        }
    }
    Ok(())
}

fn count_seconds(loops: &str, n: usize) -> f64 {
    let factor = if loops == LOOPS[0] { 1.0 } else { 5.0 };
    0.3 + 0.1 * factor * (n as f64 / 256.0).powi(3)
}

/// The branch term, and misses of the compiled loops.
fn count(journal: &mut Journal, findings: &mut Findings) -> Result<()> {
    for (loops, predictor, n, tile) in counts() {
        let step = format!("counted: {loops}, {predictor}, N = {n}, T = {tile}");
        let counted = journal.step(&step, count_seconds(loops, n), || {
            Ok(real::count(loops, predictor, n, tile).map_err(|error| format!("{error:#}")))
        })?;
        match counted {
            Ok(counted) => findings.counted.push(counted),
            Err(reason) if !findings.missing.contains(&reason) => findings.missing.push(reason),
            Err(_) => {}
        }
    }
    let unified = journal.step("counted: instructions in L2", 3.0, || {
        Ok(real::unified(512, 64).map_err(|error| format!("{error:#}")))
    })?;
    match unified {
        Ok(unified) => findings.unified = Some(unified),
        Err(reason) => findings.missing.push(reason),
    }
    Ok(())
}

/// Who runs Figures 5 to 8 on this host, and what the host is.
///
/// Where a core runs two threads at once, the crews are the paper's; elsewhere two threads take
/// turns on a CPU, which the page says.
fn crews() -> (Host, Vec<Crew>) {
    let machine = Machine::host();
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let siblings = siblings(0);
    let simultaneous = siblings.len() > 1;
    let other = (0..cpus).find(|cpu| !siblings.contains(cpu));
    let elements = machine.data_cache(1).map(|cache| cache.size_bytes as usize / ELEMENT_BYTES);
    let host = Host {
        name: host(),
        simultaneous,
        fitting: elements.map(|elements| 1 << elements.isqrt().max(1).ilog2()),
    };
    let crew = |name: &str, threads, cpus| Crew { name: name.into(), threads, cpus };
    let mut crews = vec![crew(SERIAL, 1, vec![0]), crew(TWO_THREADS, 2, siblings.clone())];
    if let Some(other) = other {
        let both: Vec<usize> = siblings.into_iter().chain(self::siblings(other)).collect();
        crews.push(crew(FOUR_THREADS, 4, both));
    }
    (host, crews)
}

/// The CPUs of one core, itself among them.
fn siblings(cpu: usize) -> Vec<usize> {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let listed = cpus_of(text.trim());
    if listed.contains(&cpu) {
        listed
    } else {
        vec![cpu]
    }
}

/// `0,64` or `0-1` as numbers.
fn cpus_of(list: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<usize>().ok()?..=last.parse::<usize>().ok()?)
    };
    list.split(',').filter_map(range).flatten().collect()
}

/// Three passes at the paper's largest N, whose runs of half a minute vary little.
fn effort_at(plan: &Plan, n: usize) -> timing::Effort {
    let passes = if n < 4096 { plan.effort.passes } else { plan.effort.passes.min(3) };
    timing::Effort { passes, ..plan.effort }
}

/// Every T, three crews, a run in each pass; short runs are repeated without being measured before
/// each of them, and to calibrate.
fn time_seconds(plan: &Plan, n: usize) -> f64 {
    let run = (2.0 * (n as f64).powi(3) / 6e9).max(plan.effort.seconds);
    let passes = effort_at(plan, n).passes;
    let runs = if run < 0.5 { 2 * passes + 3 } else { passes };
    (POWERS.len() * 3 * runs) as f64 * run * 0.8
}

/// Figures 5 to 8.
fn time(plan: &Plan, crews: &[Crew], journal: &mut Journal, findings: &mut Findings) -> Result<()> {
    let version = Loop::named("MBaLt").expect("the name stands in the list");
    for &n in plan.timed {
        let step = format!("timed: N = {n}");
        let times = journal.step(&step, time_seconds(plan, n), || {
            let tiles: Vec<usize> = powers(n).collect();
            Ok(Times { n, rates: timing::crews::<f32>(version, n, &tiles, crews, effort_at(plan, n))? })
        })?;
        findings.times.push(times);
    }
    if crews.len() < 3 {
        findings.missing.push("four threads on two CPUs: this host has one".into());
    }
    if !findings.host.simultaneous {
        findings.missing.push(
            "two threads at once on one core: this host's cores run one thread each, so two threads of a CPU take turns on it".into(),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_read() {
        assert_eq!(cpus_of("0,64"), [0, 64]);
        assert_eq!(cpus_of("0-1,4"), [0, 1, 4]);
        assert_eq!(cpus_of(""), [] as [usize; 0]);
    }

    #[test]
    fn every_tile_has_its_branch_term() {
        for tile in POWERS {
            assert!(counts().iter().filter(|count| count.3 == *tile && count.2 >= *tile).count() >= 4);
        }
    }

    #[test]
    fn the_formulas_contradict_the_thousand_times_of_section_3_5() {
        let formulas = formulas(&Machine::preset("xeon-dp").unwrap()).unwrap();
        let at = formulas.iter().find(|row| row.n == 4096 && row.tile == 64).unwrap();
        let [l1, l2, tlb] = at.misses;
        assert!((l1 / l2 - 1.5).abs() < 0.05 && (l1 / tlb - 95.0).abs() < 2.0, "{} {}", l1 / l2, l1 / tlb);
    }
}
