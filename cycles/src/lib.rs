//! Estimated cycles: what a processor would take, by what it would take them for.
//!
//! ```text
//! profile ─▶ hot blocks ─▶ loops ─▶ base of an iteration, origins of addresses ─┐
//! counts of sites and blocks ───────────────────────────────────────────────────┴▶ parts
//! ```
//!
//! A run has counted everything that is needed: executions and directions of blocks, misses of
//! sites, mispredicted branches. The rest is read from the code of the hot blocks, once, when the
//! run has ended. `graph` finds the loop of each block, `flow` the dependences in it, `stall`
//! what misses cost beside the base. **Units.** Cycles of one core that has everything to itself.
//! **Leaves out** what LIMITS.md lists under estimated cycles.

#![forbid(unsafe_code)]

mod core;
mod flow;
mod graph;
mod parts;
mod rates;
mod stall;
mod step;
mod text;
mod timing;
mod words;

pub use parts::{Parts, PART_NAMES};
pub use text::Text;

use self::core::Core;
use flow::{of_loop, of_sequence, throughput, Flow, Origin};
use graph::{Cycle, Graph};
use instrument::Profile;
use machine::Machine;
use rates::{role, role_of_store, Misses};
use simulate::Counts;
use stall::{cost, Events, Exposed, Iteration, Role, KINDS};
use step::Step;
use words::WordMap;

/// The middle of the errors of estimates, in percent, against the times of those kernels of
/// `lightfoot study cycles` that nothing was fitted to.
pub const KNOWN_ERROR_PERCENT: f64 = 15.0;

/// A loop hands values on if another iteration follows so probably; else it is the way around an
/// inner loop, whose own iterations are the ones that count.
const AGAIN_MIN: f64 = 0.5;

/// Estimated cycles of sites and of blocks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Estimated {
    /// By site: what its references wait for.
    pub by_site: Vec<(u32, Parts)>,
    /// By block: base, fetches and branches.
    pub by_block: Vec<(u32, Parts)>,
}

impl Estimated {
    /// The sum over all sites and blocks.
    pub fn total(&self) -> Parts {
        let mut total = Parts::default();
        self.by_site.iter().chain(&self.by_block).for_each(|(_, parts)| total.add(parts));
        total
    }
}

/// What a run counted.
#[derive(Clone, Copy, Debug)]
pub struct Counted<'a> {
    /// The blocks, with their executions.
    pub profile: &'a Profile,
    /// Misses by site and block.
    pub counts: &'a Counts,
    /// Mispredicted branches by block; empty where none were predicted.
    pub mispredicted: &'a [u64],
    /// The machine's numbers of the simulated levels.
    pub numbers: &'a [u8],
}

/// Estimates the cycles of a run on `machine`.
pub fn estimate(counted: &Counted<'_>, machine: &Machine) -> Estimated {
    let core = Core::of(machine);
    let misses = Misses::of(counted.profile, &counted.counts.sites, counted.numbers);
    let graph = Graph::of(counted.profile);
    // Room that is not used takes no memory, and a list that grows is copied again and again.
    let estimated = Estimated {
        by_site: Vec::with_capacity(counted.profile.sites.len()),
        by_block: Vec::with_capacity(counted.profile.blocks.len()),
    };
    let mut run = Run { counted, misses, core, estimated };
    let mut hot = vec![false; counted.profile.blocks.len()];
    let facts: Vec<Facts> = (0..graph.nodes.len()).map(|node| run.facts(&graph, node)).collect();
    for node in 0..graph.nodes.len() {
        if !graph.nodes[node].steps.is_empty() {
            run.node(&graph, node, &facts);
            graph.nodes[node].blocks.iter().for_each(|&block| hot[block] = true);
        }
    }
    let mut copies = WordMap::default();
    for block in (0..hot.len()).filter(|&block| !hot[block]) {
        run.cold(block, &mut copies);
    }
    run.instruction_side();
    run.estimated
}

struct Run<'a> {
    counted: &'a Counted<'a>,
    misses: Misses<'a>,
    core: Core,
    estimated: Estimated,
}

/// What is known of a node by itself.
struct Facts {
    rates: Vec<[Events; 2]>,
    /// Mispredictions of each execution.
    mispredictions: f64,
    throughput: f64,
}

/// A loop, or a block that is none, with what its flow says of each step.
struct Analysis {
    nodes: Vec<usize>,
    flow: Flow,
    again: f64,
}

impl Analysis {
    fn of(graph: &Graph, node: usize, width: f64) -> Analysis {
        let steps = |nodes: &[usize]| -> Vec<Step> {
            nodes.iter().flat_map(|&node| graph.nodes[node].steps.iter().cloned()).collect()
        };
        match graph.cycle(node) {
            Some(Cycle { nodes, again }) if again > 0.01 => {
                let flow = of_loop(&steps(&nodes), width);
                Analysis { nodes, flow, again }
            }
            _ => Analysis { nodes: vec![node], flow: of_sequence(&steps(&[node]), width), again: 0.0 },
        }
    }
}

impl Run<'_> {
    fn facts(&self, graph: &Graph, node: usize) -> Facts {
        let node = &graph.nodes[node];
        let wrong: u64 = node.blocks.iter().filter_map(|&block| self.counted.mispredicted.get(block)).sum();
        Facts {
            rates: self.misses.of_node(node),
            mispredictions: wrong as f64 / node.executions.max(1) as f64,
            throughput: throughput(&node.steps, self.core.width),
        }
    }

    /// Estimates a node in its loop.
    fn node(&mut self, graph: &Graph, node: usize, facts: &[Facts]) {
        let analysis = Analysis::of(graph, node, self.core.width);
        let (mut iteration, roles) = iteration(graph, &analysis, facts);
        let (throughput, flow) = (analysis.flow.throughput, &analysis.flow);
        // Short chains run side by side, as far as dispatch and units allow.
        let chains = if analysis.again > AGAIN_MIN { iteration.chains(&self.core) } else { f64::INFINITY };
        iteration.base = throughput.max(flow.chain / chains);
        let exposed = iteration.exposed(&self.core);
        let of_all: f64 = analysis.nodes.iter().map(|&node| facts[node].throughput).sum();
        let share = if of_all > 0.0 { facts[node].throughput / of_all } else { 0.0 };
        // What the chain adds to the base is a wait for the first level as far as its loads are.
        let without_loads = throughput.max(flow.chain_without_loads / chains);
        let l1 = share * (iteration.base - without_loads).max(0.0);
        let base = share * iteration.base - l1;
        let times = self.counted.profile;
        let mut copies = Copies::default();
        for &block in &graph.nodes[node].blocks {
            let [base, l1] = copies.next(times.blocks[block].executions, [base, l1]);
            let parts = Parts { base, l1, ..Parts::default() };
            self.estimated.by_block.push((block as u32, parts));
            self.sites(block, &graph.nodes[node].steps, &roles, &exposed);
        }
    }

    /// Estimates the sites of a block whose steps are the first of the flow.
    fn sites(&mut self, block: usize, steps: &[Step], roles: &[Roles], exposed: &Exposed) {
        let sites: Vec<(u32, usize)> = self.misses.of_block(block).collect();
        for (site, index) in sites {
            let [loads, stores] = self.misses.events(site);
            let Some(Roles { load, store, waiting }) = roles.get(index) else { continue };
            let mut kinds = cost(&loads.times(1.0 - waiting), *load, exposed, &self.core);
            let decided = loads.times(*waiting).waits(&self.core);
            let stored = cost(&stores, *store, exposed, &self.core);
            for (kind, (decided, stored)) in kinds.iter_mut().zip(decided.into_iter().zip(stored)) {
                *kind += decided + stored;
            }
            self.estimated.by_site.push((site, waits(kinds)));
        }
        let repeated = self.misses.all_of_block(block).filter_map(|(site, index)| {
            let cycles = self.repeated(site, steps.get(index)?.repeated?);
            Some((site, Parts { base: cycles, ..Parts::default() }))
        });
        let repeated: Vec<(u32, Parts)> = repeated.collect();
        self.estimated.by_site.extend(repeated);
    }

    /// Cycles of a repeated string instruction beside its misses: its start, and what it moves.
    fn repeated(&self, site: u32, element_bytes: usize) -> u64 {
        const START: f64 = 25.0;
        const BYTES_PER_CYCLE: f64 = 32.0;
        self.counted.counts.complex.get(site as usize).map_or(0, |complex| {
            let bytes = (element_bytes as u64 * complex.iterations) as f64;
            whole(START * complex.executions as f64 + bytes / BYTES_PER_CYCLE)
        })
    }

    /// Estimates a block that is not hot, or whose code is not known, by its counts alone.
    fn cold(&mut self, block: usize, copies: &mut WordMap<(u64, u32), Copies>) {
        let known = &self.counted.profile.blocks[block];
        if known.executions == 0 {
            return;
        }
        let executions = known.executions as f64;
        let base = f64::from(known.count) / (0.5 * self.core.width);
        let mut iteration = Iteration { instructions: f64::from(known.count), base, ..Iteration::default() };
        let sites: Vec<(u32, usize)> = self.misses.of_block(block).collect();
        for &(site, _) in &sites {
            let [loads, stores] = self.misses.events(site);
            iteration.independent.add(&loads, 1.0 / executions);
            iteration.streams.add(&stores, 1.0 / executions);
        }
        let exposed = iteration.exposed(&self.core);
        let [base] = copies.entry((known.ip, known.len)).or_default().next(known.executions, [base]);
        let parts = Parts { base, ..Parts::default() };
        self.estimated.by_block.push((block as u32, parts));
        for (site, _) in sites {
            let [loads, stores] = self.misses.events(site);
            let loads = cost(&loads, Role::Independent, &exposed, &self.core);
            let stores = cost(&stores, Role::Streamed, &exposed, &self.core);
            let kinds = std::array::from_fn(|kind| loads[kind] + stores[kind]);
            self.estimated.by_site.push((site, waits(kinds)));
        }
    }

    /// Adds what instruction fetches wait for, and mispredicted branches.
    fn instruction_side(&mut self) {
        for (number, block) in self.counted.counts.blocks.iter().enumerate() {
            let mut events = self.misses.served(&block.fetches);
            events.translated = [block.tlbs[0].saturating_sub(block.tlbs[1]) as f64, block.tlbs[1] as f64];
            let [second, third, memory, tlb] = events.waits(&self.core);
            let parts = Parts { fetch: whole(second + third + memory), tlb: whole(tlb), ..Parts::default() };
            if !parts.is_empty() {
                self.estimated.by_block.push((number as u32, parts));
            }
        }
        for (number, &wrong) in self.counted.mispredicted.iter().enumerate().filter(|(_, wrong)| **wrong > 0)
        {
            let branches = whole(wrong as f64 * self.core.misprediction);
            self.estimated.by_block.push((number as u32, Parts { branches, ..Parts::default() }));
        }
    }
}

/// The copies of a block so far. How often each one ran depends on the order in which code was
/// translated, and their sum does not: so the cycles of a copy are what the sum rounds to with it,
/// less what it rounds to without.
#[derive(Default)]
struct Copies {
    executions: u64,
}

impl Copies {
    /// The cycles of the next copy, for each number of cycles that an execution takes.
    fn next<const N: usize>(&mut self, executions: u64, cycles: [f64; N]) -> [u64; N] {
        let before = self.executions;
        self.executions += executions;
        cycles.map(|cycles| whole(cycles * self.executions as f64) - whole(cycles * before as f64))
    }
}

/// How the misses of a step overlap.
#[derive(Clone, Copy)]
struct Roles {
    load: Role,
    store: Role,
    /// The share of loads that a mispredicted branch waits for in full.
    waiting: f64,
}

/// The misses of an iteration, and the roles of its steps.
fn iteration(graph: &Graph, analysis: &Analysis, facts: &[Facts]) -> (Iteration, Vec<Roles>) {
    let Analysis { nodes, flow, again } = analysis;
    let mut iteration = Iteration {
        instructions: flow.origins.len() as f64,
        base: flow.throughput,
        again: *again,
        mispredictions: nodes.iter().map(|&node| facts[node].mispredictions).sum(),
        ..Iteration::default()
    };
    // Each step with its node and its misses.
    let of_node = |&node: &usize| {
        graph.nodes[node].steps.iter().zip(&facts[node].rates).map(move |(step, rates)| (node, step, rates))
    };
    let steps: Vec<(usize, &Step, &[Events; 2])> = nodes.iter().flat_map(of_node).collect();
    let mut waiting = vec![0.0f64; steps.len()];
    for (branch, loads) in &flow.decided_by {
        for &load in loads.iter().filter(|&&load| flow.origins[load] == Some(Origin::Computed)) {
            waiting[load] = waiting[load].max(facts[steps[*branch].0].mispredictions.min(1.0));
        }
    }
    let mut lines: WordMap<i64, f64> = WordMap::default();
    for ((_, _, rates), origin) in steps.iter().zip(&flow.origins) {
        if let Some(Origin::Stride(Some(stride))) = origin {
            let own: f64 = rates.iter().flat_map(|events| events.served).sum();
            *lines.entry(*stride).or_default() += own;
        }
    }
    let mut roles = Vec::new();
    for (place, (_, step, [loads, stores])) in steps.iter().enumerate() {
        let origin = flow.origins[place];
        let lines = match origin {
            Some(Origin::Stride(Some(stride))) => lines.get(&stride).copied().unwrap_or(0.0),
            _ => 0.0,
        };
        let streamed = step.repeated.map(|_| Role::Streamed);
        let load = streamed.unwrap_or_else(|| role(origin, loads, lines));
        let store = streamed.unwrap_or_else(|| role_of_store(origin, lines));
        let waiting = waiting[place];
        iteration.count(load, loads, 1.0 - waiting);
        iteration.count(store, stores, 1.0);
        roles.push(Roles { load, store, waiting });
    }
    (iteration, roles)
}

fn waits([second, third, memory, tlb]: [f64; KINDS]) -> Parts {
    Parts { l2: whole(second), l3: whole(third), memory: whole(memory), tlb: whole(tlb), ..Parts::default() }
}

fn whole(cycles: f64) -> u64 {
    cycles.round().max(0.0) as u64
}

#[cfg(test)]
mod tests;
