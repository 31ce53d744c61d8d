//! `lightfoot tile`: chooses tile sizes for blocked matrices by two models, simulation and
//! measurement, and reports the regret of each choice.

use crate::cli::{ElementType, Format, Tile, TileLoop};
use crate::run::hierarchy::Hierarchy;
use anyhow::{Context, Result};
use matrix::paper::{self, Branches, Level, Loop};
use matrix::rate::{self, Rates, Work};
use matrix::tiling::{Problem, GRID};
use matrix::Tiling;
use plot::tiles::{lines, Line};
use present::exit::{Failure, USAGE};
use present::number::grouped;
use present::output::{print, replace};
use serde::Serialize;
use std::fmt::Write;
use study::tile::powers;
use study::tile::simulation::{replay, Loops, Missed};
use study::tile::timing::{grid, regret, Effort, Real, Subject, Timed};

/// The largest N that is simulated: larger ones take minutes and change no case of the model.
const SIMULATED_N: usize = 512;

/// The largest N for which the loops are timed: their grid takes minutes at N = 1024, and ten at
/// 2048. The kernel is timed for the N that was asked for.
const LOOPS_N: usize = 512;

/// The result of the command, as JSON has it.
#[derive(Debug, Default, Serialize)]
struct Answer {
    n: usize,
    element: &'static str,
    machine: String,
    simulated_n: usize,
    loops: Vec<LoopRow>,
    kernel: Vec<KernelRow>,
    choices: Vec<Choice>,
    /// Which values above are null, and why.
    missing: Vec<String>,
}

/// The costs of the paper's loops for one tile size T.
#[derive(Debug, Serialize)]
struct LoopRow {
    tile: usize,
    /// Estimated cycles by the paper's total cost.
    paper_cycles: Option<f64>,
    /// Estimated cycles by the second model.
    plan_cycles: Option<f64>,
    /// First-level misses at `simulated_n` by the paper's formulas.
    model_l1_misses: Option<f64>,
    /// Simulated misses, with those of the outer levels.
    simulated: Option<Missed>,
    measured: Option<Timed>,
}

/// The costs of the kernel for one tile size T.
#[derive(Debug, Serialize)]
struct KernelRow {
    tile: usize,
    rows: usize,
    cols: usize,
    plan_cycles: Option<f64>,
    measured: Option<Timed>,
}

/// The choice of a model.
#[derive(Debug, Serialize)]
struct Choice {
    subject: &'static str,
    model: &'static str,
    tile: usize,
    /// The regret: the time divided by the best one of the grid, less 1; both are timed again.
    regret: Option<f64>,
    best_tile: Option<usize>,
}

pub(super) fn run(options: &Tile) -> Result<u8> {
    if !(0.0..=1.0).contains(&options.branches) {
        let sentence =
            format!("--branches {} is not a probability: give a number from 0 to 1", options.branches);
        return Err(Failure { status: USAGE, sentence }.into());
    }
    let answer = match options.element {
        ElementType::F32 => answer::<f32>(options)?,
        ElementType::F64 => answer::<f64>(options)?,
    };
    if let Some(path) = &options.output {
        let text = plot(&answer);
        replace(path, &text).with_context(|| format!("cannot write the plot to {}", path.display()))?;
    }
    print(&match options.format {
        Format::Text => text(&answer),
        Format::Json => serde_json::to_string_pretty(&answer)? + "\n",
        Format::Csv => csv(&answer),
    })?;
    Ok(0)
}

/// Runs the loops only: this is the program that the study instruments.
pub(super) fn run_loop(options: &TileLoop) -> Result<u8> {
    let Some(version) = Loop::named(&options.version) else {
        let known: Vec<_> = paper::LOOPS.iter().map(|version| version.name).collect();
        let sentence = format!("there is no loop {}: there are {}", options.version, known.join(", "));
        return Err(Failure { status: USAGE, sentence }.into());
    };
    match options.element {
        ElementType::F32 => repeat::<f32>(options, version),
        ElementType::F64 => repeat::<f64>(options, version),
    }
}

fn repeat<T: Real>(options: &TileLoop, version: &Loop) -> Result<u8> {
    let n = options.n as usize;
    let ones = vec![T::ONE; n * n];
    let mut arrays = version.arrays(n, options.tile as usize, &ones, &ones)?;
    for _ in 0..options.repeat {
        version.run(&mut arrays, 1);
    }
    std::hint::black_box(&arrays);
    Ok(0)
}

fn answer<T: Real>(options: &Tile) -> Result<Answer> {
    let hierarchy = Hierarchy::plain(&options.hierarchy)?;
    let machine = &hierarchy.machine;
    let (n, bytes) = (options.n as usize, options.element.bytes());
    let branches = Branches { mispredicted_exits: options.branches };
    let mut answer = Answer {
        n,
        element: options.element.name(),
        machine: machine.name.clone(),
        simulated_n: n.min(SIMULATED_N).next_power_of_two().min(SIMULATED_N),
        ..Answer::default()
    };
    let rates = note(Rates::of(machine), &mut answer.missing);
    let problem = Problem::square(n, bytes);
    let l1 = note(Level::cache(machine, 1, bytes), &mut answer.missing);
    for tile in powers(n) {
        let paper_cycles = paper::cost(machine, n, tile, bytes, branches);
        let paper_cycles = note(paper_cycles, &mut answer.missing).map(|cost| cost.total());
        let plan_cycles = rates.map(|rates| rate::cycles(&rates, problem, Work::MaskedLoops, tile).total());
        // A tile larger than the simulated matrix has no figures there.
        let small = tile <= answer.simulated_n;
        let loops = Loops { n: answer.simulated_n, tile, element_bytes: bytes, threads: 1 };
        let simulated = small.then(|| replay(&hierarchy.levels, loops)).transpose()?;
        let model_l1_misses =
            l1.filter(|_| small).map(|l1| paper::cache_misses(l1, answer.simulated_n, tile).total());
        answer.loops.push(LoopRow {
            tile,
            paper_cycles,
            plan_cycles,
            model_l1_misses,
            simulated,
            measured: None,
        });
    }
    // The kernel also splits columns. Without rates there is no model, and a common width stands in
    // for its choice.
    for &tile in GRID.iter().filter(|&&tile| tile <= n.max(8)) {
        let blocks = rates.map(|rates| rate::blocks(&rates, problem, Work::Kernel, tile));
        let Tiling { rows, cols, .. } = blocks.unwrap_or(Tiling { tile, rows: 1024, cols: 128 });
        let plan_cycles = rates.map(|rates| rate::cycles(&rates, problem, Work::Kernel, tile).total());
        answer.kernel.push(KernelRow { tile, rows, cols, plan_cycles, measured: None });
    }
    if options.no_measure {
        answer.missing.push("measurement: left out by --no-measure".into());
    } else {
        measure::<T>(&mut answer)?;
    }
    // A regret compares a choice with the best of the measured grid, so the grid comes first.
    choose::<T>(&mut answer, options.no_measure)?;
    Ok(answer)
}

/// The value; if there is none, adds the reason to `missing`, each reason once.
fn note<V>(value: Result<V, matrix::Error>, missing: &mut Vec<String>) -> Option<V> {
    value
        .map_err(|error| {
            let error = error.to_string();
            if !missing.contains(&error) {
                missing.push(error);
            }
        })
        .ok()
}

const LOOP_EFFORT: Effort = Effort { passes: 3, seconds: 0.02 };

/// Large products vary less from run to run, and take long.
fn kernel_effort(n: usize) -> Effort {
    Effort { passes: if n > 1024 { 3 } else { 7 }, seconds: 0.01 }
}

fn loops_subject() -> Subject {
    Subject::Loops(Loop::named("MBaLt").expect("it is in the list"), 1)
}

fn square_tiling(tile: usize) -> Tiling {
    Tiling { tile, rows: tile, cols: tile }
}

fn kernel_tiling(row: &KernelRow) -> Tiling {
    Tiling { tile: row.tile, rows: row.rows, cols: row.cols }
}

fn measure<T: Real>(answer: &mut Answer) -> Result<()> {
    let n = answer.n.min(LOOPS_N);
    if n < answer.n {
        answer.missing.push(format!("times of the loops for N = {}: they are those of N = {n}", answer.n));
    }
    let tiles = answer.loops.iter().map(|row| row.tile).filter(|&tile| tile <= n);
    let tiles: Vec<_> = tiles.map(square_tiling).collect();
    let times = grid::<T>(loops_subject(), n, &tiles, LOOP_EFFORT)?;
    answer.loops.iter_mut().zip(times).for_each(|(row, timed)| row.measured = Some(timed));
    let tiles: Vec<_> = answer.kernel.iter().map(kernel_tiling).collect();
    let times = grid::<T>(Subject::Kernel, answer.n, &tiles, kernel_effort(answer.n))?;
    answer.kernel.iter_mut().zip(times).for_each(|(row, timed)| row.measured = Some(timed));
    Ok(())
}

/// Computes the choice of every model and its cost.
fn choose<T: Real>(answer: &mut Answer, no_measure: bool) -> Result<()> {
    let lowest = |cycles: &mut dyn Iterator<Item = (usize, Option<f64>)>| {
        let known = cycles.filter_map(|(tile, cycles)| Some((tile, cycles?)));
        known.min_by(|one, other| one.1.total_cmp(&other.1)).map(|(tile, _)| tile)
    };
    let fastest = |times: &mut dyn Iterator<Item = Option<Timed>>| {
        times.flatten().max_by(|one, other| one.gflops.total_cmp(&other.gflops)).map(|timed| timed.tile)
    };
    let n = answer.n;
    let best_loop = fastest(&mut answer.loops.iter().map(|row| row.measured));
    // The paper's model and the second one each choose a tile for the loops.
    let models = [
        ("paper", lowest(&mut answer.loops.iter().map(|row| (row.tile, row.paper_cycles)))),
        ("plan", lowest(&mut answer.loops.iter().map(|row| (row.tile, row.plan_cycles)))),
    ];
    for (model, tile) in models {
        let Some(tile) = tile else { continue };
        let regret = best_loop
            .filter(|_| !no_measure && tile <= n.min(LOOPS_N))
            .map(|best| {
                let (chosen, best) = (square_tiling(tile), square_tiling(best));
                regret::<T>(loops_subject(), n.min(LOOPS_N), chosen, best, LOOP_EFFORT)
            })
            .transpose()?;
        answer.choices.push(Choice { subject: "loops", model, tile, regret, best_tile: best_loop });
    }
    let best = fastest(&mut answer.kernel.iter().map(|row| row.measured));
    // The paper has no model of the kernel, so there is one choice. Its tiling includes the number
    // of columns that the model chose for that tile.
    if let Some(tile) = lowest(&mut answer.kernel.iter().map(|row| (row.tile, row.plan_cycles))) {
        let of = |tile: usize| answer.kernel.iter().find(|row| row.tile == tile).map(kernel_tiling);
        let pair = of(tile).zip(best.and_then(of)).filter(|_| !no_measure);
        let regret = pair
            .map(|(chosen, best)| regret::<T>(Subject::Kernel, n, chosen, best, kernel_effort(n)))
            .transpose()?;
        answer.choices.push(Choice { subject: "kernel", model: "plan", tile, regret, best_tile: best });
    }
    Ok(())
}

fn millions(cycles: Option<f64>) -> String {
    cycles.map_or("-".into(), |cycles| format!("{:.1}", cycles / 1e6))
}

fn count(misses: Option<u64>) -> String {
    misses.map_or("-".into(), grouped)
}

fn gflops(timed: Option<Timed>) -> String {
    timed.map_or("-".into(), |timed| format!("{:.2}", timed.gflops))
}

fn text(answer: &Answer) -> String {
    let mut out = format!(
        "Tile sizes for C += A*B, N = {}, {}, machine {}\n\nThe paper's loops on blocked arrays (MBaLt); misses for N = {}, times for N = {}\n",
        answer.n, answer.element, answer.machine, answer.simulated_n, answer.n.min(LOOPS_N)
    );
    loop_table(&mut out, &answer.loops);
    out += "\nThe kernel on operands kept blocked\n";
    kernel_table(&mut out, &answer.kernel);
    out += "\nChoices\n";
    answer.choices.iter().for_each(|choice| choice_line(&mut out, choice));
    for missing in &answer.missing {
        let _ = writeln!(out, "missing: {missing}");
    }
    out
}

fn loop_table(out: &mut String, rows: &[LoopRow]) {
    let _ = writeln!(
        out,
        "{:>4} {:>10} {:>9} {:>11} {:>12} {:>11} {:>9} {:>7}",
        "T", "paper Mcyc", "plan Mcyc", "L1 formula", "L1 simulated", "L2 sim.", "TLB sim.", "GFLOP/s"
    );
    for row in rows {
        let simulated = |field: fn(Missed) -> Option<u64>| count(row.simulated.and_then(field));
        let _ = writeln!(
            out,
            "{:>4} {:>10} {:>9} {:>11} {:>12} {:>11} {:>9} {:>7}",
            row.tile,
            millions(row.paper_cycles),
            millions(row.plan_cycles),
            count(row.model_l1_misses.map(|misses| misses.round() as u64)),
            simulated(|missed| Some(missed.l1)),
            simulated(|missed| missed.l2),
            simulated(|missed| missed.tlb),
            gflops(row.measured)
        );
    }
}

fn kernel_table(out: &mut String, rows: &[KernelRow]) {
    let _ = writeln!(
        out,
        "{:>5} {:>6} {:>6} {:>12} {:>9} {:>14}",
        "T", "mc", "nc", "plan Mcyc", "GFLOP/s", "share of peak"
    );
    for row in rows {
        let share = row.measured.map_or("-".into(), |timed| format!("{:.1} %", 100.0 * timed.share_of_peak));
        let _ = writeln!(
            out,
            "{:>5} {:>6} {:>6} {:>12} {:>9} {share:>14}",
            row.tile,
            row.rows,
            row.cols,
            millions(row.plan_cycles),
            gflops(row.measured)
        );
    }
}

fn choice_line(out: &mut String, choice: &Choice) {
    let regret = choice.regret.map_or("not measured".into(), |regret| format!("{:+.1} %", 100.0 * regret));
    let best = choice.best_tile.map_or("-".into(), |tile| tile.to_string());
    let _ = writeln!(
        out,
        "  {:<7} {:<6} T = {:<4} regret {regret} (best of the grid: {best})",
        choice.subject, choice.model, choice.tile
    );
}

fn csv(answer: &Answer) -> String {
    let mut out = String::from(
        "subject,tile,paper_cycles,plan_cycles,l1_misses_formula,l1_misses_simulated,l2_misses_simulated,tlb_misses_simulated,gflops\n",
    );
    let show = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.1}"));
    let whole = |value: Option<u64>| value.map_or(String::new(), |value| value.to_string());
    for row in &answer.loops {
        let _ = writeln!(
            out,
            "loops,{},{},{},{},{},{},{},{}",
            row.tile,
            show(row.paper_cycles),
            show(row.plan_cycles),
            show(row.model_l1_misses),
            whole(row.simulated.map(|missed| missed.l1)),
            whole(row.simulated.and_then(|missed| missed.l2)),
            whole(row.simulated.and_then(|missed| missed.tlb)),
            show(row.measured.map(|timed| timed.gflops))
        );
    }
    for row in &answer.kernel {
        let speed = show(row.measured.map(|timed| timed.gflops));
        let _ = writeln!(out, "kernel,{},,{},,,,,{speed}", row.tile, show(row.plan_cycles));
    }
    out
}

/// A plot of measured and predicted times by T, each relative to its own minimum.
fn plot(answer: &Answer) -> String {
    let relative = |name: &str, points: Vec<(usize, f64)>| {
        let lowest = points.iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
        Line {
            name: name.into(),
            points: points.into_iter().map(|(tile, value)| (tile, value / lowest)).collect(),
        }
    };
    let loops = |field: &dyn Fn(&LoopRow) -> Option<f64>| {
        answer.loops.iter().filter_map(|row| Some((row.tile, field(row)?))).collect::<Vec<_>>()
    };
    let kernel = |field: &dyn Fn(&KernelRow) -> Option<f64>| {
        answer.kernel.iter().filter_map(|row| Some((row.tile, field(row)?))).collect::<Vec<_>>()
    };
    let all = [
        relative("loops, measured", loops(&|row| row.measured.map(|timed| 1.0 / timed.gflops))),
        relative("loops, paper", loops(&|row| row.paper_cycles)),
        relative("loops, plan", loops(&|row| row.plan_cycles)),
        relative("kernel, measured", kernel(&|row| row.measured.map(|timed| 1.0 / timed.gflops))),
        relative("kernel, plan", kernel(&|row| row.plan_cycles)),
    ];
    let title = format!("Time over the best tile, N = {}, {}", answer.n, answer.element);
    lines(&title, "times", &all)
}
