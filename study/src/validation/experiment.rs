//! Every point by every model: the simulations, as steps of the journal.

use super::kernel::Kernel;
use super::points::{Moved, Point, LINKS, PRODUCT};
use super::processor::{Model, Processor, CACHEGRIND, MODELS};
use super::product::Product;
use super::slice::{moved, replayed_millions, Extent};
use super::stencil::Stencil;
use super::streams::Streams;
use crate::journal::Journal;
use crate::options::Effort;
use anyhow::{Context, Result};
use present::order::SortRows;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

/// How far arrays begin from each other's place in a page, by layout.
const APART_BYTES: [u64; 4] = [0, 64, 1088, 2112];

/// A point by a model, in several layouts of memory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Simulated {
    pub(super) id: usize,
    pub(super) model: String,
    pub(super) layouts: Vec<[Option<Moved>; LINKS]>,
}

impl Simulated {
    /// The mean over layouts.
    pub(super) fn moved(&self, link: usize) -> Option<Moved> {
        let all: Option<Vec<Moved>> = self.layouts.iter().map(|links| links[link]).collect();
        let all = all.filter(|all| !all.is_empty())?;
        let mean = |of: fn(&Moved) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
        Some(Moved { load: mean(|moved| moved.load), evict: mean(|moved| moved.evict) })
    }

    /// The least and the most bytes of a link among the layouts.
    pub(super) fn range(&self, link: usize) -> Option<(f64, f64)> {
        let totals: Vec<f64> =
            self.layouts.iter().filter_map(|links| links[link]).map(Moved::total).collect();
        let least = totals.iter().copied().min_by(f64::total_cmp)?;
        Some((least, totals.iter().copied().max_by(f64::total_cmp)?))
    }
}

/// How much is simulated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    extent: Extent,
    /// Layouts of stencils and streams.
    layouts: usize,
    /// Of stencils, every so many.
    every: usize,
}

impl Plan {
    pub(super) fn of(effort: Effort) -> Plan {
        let extent = |middle_pieces| Extent { middle_pieces, middle_bytes: 4 << 20 };
        match effort {
            Effort::Quick => Plan { extent: extent(2), layouts: 1, every: 2 },
            Effort::Full => Plan { extent: extent(4), layouts: 3, every: 1 },
        }
    }

    /// The points that are simulated: of the stencils every so many in the order of the table.
    pub(super) fn points(&self, points: Vec<Point>) -> Vec<Point> {
        let stencil = |point: &Point| point.kernel != PRODUCT && !point.is_stream();
        let mut number = 0;
        let taken = |point: &Point| {
            number += usize::from(stencil(point));
            !stencil(point) || (number - 1).is_multiple_of(self.every)
        };
        points.into_iter().filter(taken).collect()
    }

    /// Layouts of a point by a model. Random pages decide the product, whose vector has few of
    /// them, and a replay of it is short.
    fn layouts(&self, point: &Point, model: &Model) -> usize {
        match (point.kernel.as_str(), model.name) {
            (_, CACHEGRIND) => 1,
            (PRODUCT, _) => 8,
            _ => self.layouts,
        }
    }
}

/// The kernel of a point in a layout.
///
/// # Errors
/// When its name or machine is unknown.
pub(super) fn kernel(point: &Point, layout: usize) -> Result<Box<dyn Kernel>> {
    let vector = Processor::named(&point.machine)?.vector;
    let apart = APART_BYTES[layout % APART_BYTES.len()];
    if point.kernel == PRODUCT {
        return Ok(Box::new(Product::new(point.n, point.threads, vector, apart)));
    }
    if let Some(streams) = Streams::named(&point.kernel, vector, apart) {
        return Ok(Box::new(streams));
    }
    let stencil = Stencil::named(&point.kernel, point.n, vector, apart);
    let stencil =
        stencil.with_context(|| format!("no kernel {} of size {} is known", point.kernel, point.n))?;
    Ok(Box::new(stencil))
}

/// Points of one kernel on one machine: a table of a source.
fn tables(points: &[Point]) -> Vec<(String, Vec<&Point>)> {
    let mut tables: Vec<(String, Vec<&Point>)> = Vec::new();
    for point in points {
        let name = format!("{} on {}", point.kernel, point.machine);
        match tables.iter_mut().find(|(other, _)| *other == name) {
            Some((_, points)) => points.push(point),
            None => tables.push((name, vec![point])),
        }
    }
    tables
}

fn seconds(points: &[&Point], model: &Model, plan: &Plan) -> Result<f64> {
    let mut seconds = 0.0;
    for point in points.iter().filter(|point| (model.asked)(point)) {
        let millions = replayed_millions(&*kernel(point, 0)?, &model.levels(point, 0)?, plan.extent);
        seconds += millions * model.update_ns / 1e3 * plan.layouts(point, model) as f64;
    }
    // Two at a time.
    Ok(seconds / 2.0)
}

/// Seconds that all simulations take.
///
/// # Errors
/// When a point cannot be simulated.
pub(super) fn all_seconds(points: &[Point], plan: &Plan) -> Result<f64> {
    let mut sum = 0.0;
    for (_, points) in tables(points) {
        for model in MODELS {
            sum += seconds(&points, model, plan)?;
        }
    }
    Ok(sum)
}

/// All points by all models.
///
/// # Errors
/// When a point cannot be simulated.
pub(super) fn simulate(points: &[Point], plan: &Plan, journal: &mut Journal) -> Result<Vec<Simulated>> {
    let mut all = Vec::new();
    for (table, points) in tables(points) {
        let asked = |model: &&Model| points.iter().any(|point| (model.asked)(point));
        for model in MODELS.iter().filter(asked) {
            let step = format!("{table}, {}", model.name);
            all.extend(journal.step(&step, seconds(&points, model, plan)?, || replay(&points, model, plan))?);
        }
    }
    Ok(all)
}

/// One table by one model, on all CPUs, the largest sizes first.
fn replay(points: &[&Point], model: &Model, plan: &Plan) -> Result<Vec<Simulated>> {
    let layouts = |point: &&Point| 0..plan.layouts(point, model);
    let mut jobs: Vec<(&Point, usize)> = points
        .iter()
        .filter(|point| (model.asked)(point))
        .flat_map(|point| layouts(point).map(|layout| (*point, layout)))
        .collect();
    jobs.sort_rows_by_key(|(point, _)| std::cmp::Reverse(point.n));
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(&(point, layout)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let links = one(point, layout, model, plan);
            done.lock().expect("no worker panics").push((point.id, layout, links));
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(work);
        }
    });
    let mut done = done.into_inner().expect("no worker panics");
    done.sort_rows_by_key(|(id, layout, _)| (*id, *layout));
    let mut simulated: Vec<Simulated> = Vec::new();
    for (id, _, links) in done {
        let links = links.with_context(|| format!("point {id}, model {}", model.name))?;
        match simulated.last_mut().filter(|last| last.id == id) {
            Some(last) => last.layouts.push(links),
            None => simulated.push(Simulated { id, model: model.name.into(), layouts: vec![links] }),
        }
    }
    Ok(simulated)
}

/// A point in one layout. Two levels have no link between L2 and L3: their second one is the
/// link to memory.
fn one(point: &Point, layout: usize, model: &Model, plan: &Plan) -> Result<[Option<Moved>; LINKS]> {
    let kernel = kernel(point, layout)?;
    let links = moved(&*kernel, &model.levels(point, layout)?, plan.extent)?;
    if model.name != CACHEGRIND {
        return Ok(links);
    }
    let loads = |link: Option<Moved>| link.map(|moved| Moved { evict: 0.0, ..moved });
    let memory = loads(links[1]).filter(|_| point.measured[2].is_some());
    Ok([loads(links[0]), None, memory])
}
