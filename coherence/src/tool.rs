//! The tool: feeds the caches with what the engine records, and notes what lies in lines that are
//! shared.

use crate::ask::{of_tag, Asker, ATOMIC, LOCK};
use crate::caches::{plain, Access, CoherentCaches, PrivateLevels};
use crate::counts::Results;
use crate::objects::{Allocating, HeapBlock, Objects};
use crate::placement::Placement;
use crate::rounds::{Rounds, Simulates};
use crate::turn::Turn;
use event::{Complex, Groups, Record, RecordKind, StateLayout, Step, Stream};
use instrument::tool::{Batch, Instrumenter, Program, Report, Summary, Sums, Tool};
use instrument::{ComplexCounts, TurnStart};
use std::num::NonZeroUsize;

/// The results of a run.
#[derive(Clone, Debug, Default)]
pub struct CoherenceProfile {
    /// What was counted.
    pub results: Results,
    /// For each shared line, the blocks of the heap that lay in it when it was first shared.
    pub blocks: Vec<Vec<HeapBlock>>,
    /// For each core, the threads that ran on it.
    pub threads: Vec<Vec<u32>>,
    /// How often a thread changed its core.
    pub migrations: u64,
    /// Records that could not be read.
    pub damaged: u64,
}

/// The tool that simulates coherent caches.
pub struct CoherenceTool {
    simulation: Option<Simulation>,
    rounds: Rounds,
    is_started: bool,
    profile: Option<CoherenceProfile>,
}

/// The caches, and what feeds them.
pub(crate) struct Simulation {
    pub(crate) caches: CoherentCaches,
    objects: Objects,
    blocks: Vec<Vec<HeapBlock>>,
    line_bytes: u64,
    /// By the thread's number.
    threads: Vec<Thread>,
    placement: Placement,
    layout: StateLayout,
    /// The number in the run of the image's first site.
    first_site: u32,
    damaged: u64,
}

/// A thread.
#[derive(Default)]
struct Thread {
    groups: Groups,
    allocating: Allocating,
    /// The next reference reads and writes in one step.
    is_atomic: bool,
}

impl CoherenceTool {
    /// A tool with empty caches. Threads share `cores` cores; without a number each living thread
    /// has a core of its own.
    pub fn new(levels: PrivateLevels, cores: Option<NonZeroUsize>) -> CoherenceTool {
        let (simulation, rounds) = (Some(Simulation::new(levels, cores)), Rounds::default());
        CoherenceTool { simulation, rounds, is_started: false, profile: None }
    }

    /// The results, if the program has run.
    pub fn into_profile(self) -> Option<CoherenceProfile> {
        self.profile
    }
}

impl Tool for CoherenceTool {
    fn stream(&self) -> Stream {
        Stream::References
    }

    fn sums(&self) -> Sums {
        Sums::Instructions
    }

    fn complex_counts(&self) -> ComplexCounts {
        ComplexCounts::ByEngine
    }

    fn instrumenter(&mut self) -> Instrumenter {
        let mut asker = Asker::default();
        Box::new(move |block, requests| asker.ask(block, requests))
    }

    fn start(&mut self, _program: &Program) {
        let executes = std::mem::replace(&mut self.is_started, true);
        let Some(simulation) = self.simulation.as_mut().filter(|_| executes) else { return };
        self.rounds.end(simulation);
        simulation.executes();
    }

    fn batch(&mut self, batch: &Batch<'_>) {
        let Some(simulation) = &mut self.simulation else { return };
        simulation.first_site = batch.first_site() as u32;
        self.rounds.records(batch.thread(), batch.raw(), simulation);
    }

    fn turn(&mut self, thread: u32, start: TurnStart) {
        if let Some(simulation) = &mut self.simulation {
            self.rounds.turn(thread, start, simulation);
        }
    }

    fn thread_ended(&mut self, thread: u32) {
        if let Some(simulation) = &mut self.simulation {
            self.rounds.end(simulation);
            simulation.thread_ended(thread);
        }
    }

    fn finish(&mut self, _summary: &Summary<'_>) -> std::io::Result<Report> {
        let Some(mut simulation) = self.simulation.take() else { return Ok(Report::default()) };
        self.rounds.end(&mut simulation);
        let Simulation { caches, blocks, placement, damaged, .. } = simulation;
        let (threads, migrations) = placement.finish();
        let results = caches.finish();
        let report = Report::totals([
            ("false sharing misses", results.total.false_sharing),
            ("true sharing misses", results.total.true_sharing),
        ]);
        self.profile = Some(CoherenceProfile { results, blocks, threads, migrations, damaged });
        Ok(report)
    }
}

impl Simulation {
    pub(crate) fn new(levels: PrivateLevels, cores: Option<NonZeroUsize>) -> Simulation {
        Simulation {
            caches: CoherentCaches::new(levels),
            objects: Objects::default(),
            blocks: Vec::new(),
            line_bytes: levels.first.line_bytes.into(),
            threads: Vec::new(),
            placement: Placement::new(cores),
            layout: StateLayout::default(),
            first_site: 0,
            damaged: 0,
        }
    }

    /// The program executes another one, which has other memory.
    fn executes(&mut self) {
        self.caches.forget();
        self.objects.clear();
        self.threads.clear();
        self.placement.all_ended();
    }

    /// A thread has ended, and leaves its core.
    fn thread_ended(&mut self, thread: u32) {
        if let Some(own) = self.threads.get_mut(thread as usize) {
            *own = Thread::default();
        }
        self.placement.ended(thread);
    }

    /// The core of a thread, which has a state from here on.
    #[inline(always)]
    pub(crate) fn core_of(&mut self, thread: u32) -> usize {
        if self.threads.len() <= thread as usize {
            self.threads.resize_with(thread as usize + 1, Thread::default);
        }
        self.placement.core_of(thread)
    }

    #[inline(always)]
    fn access(&mut self, core: usize, address: u64, size_bytes: u32, access: Access, site: u32) {
        self.caches.access(core, address, size_bytes, access, site + self.first_site);
        if self.caches.met().0 > self.blocks.len() {
            self.note_blocks();
        }
    }

    /// Notes the blocks that lie in lines that are shared now.
    #[cold]
    fn note_blocks(&mut self) {
        for shared in self.blocks.len()..self.caches.met().0 {
            let address = self.caches.address(shared);
            self.blocks.push(self.objects.between(address, address + self.line_bytes).collect());
        }
    }

    /// Takes a record; returns whether it was a plain reference, or `None` if the thread has to
    /// wait before it.
    #[inline]
    pub(crate) fn one(
        &mut self,
        (thread, core): (usize, usize),
        records: &[Record],
        at: usize,
        may_lock: &mut impl FnMut(u64) -> bool,
    ) -> Option<bool> {
        let record = &records[at];
        let Some(plain) = plain(record) else {
            return self.other((thread, core), records, at, may_lock).then_some(false);
        };
        let is_atomic = self.threads[thread].is_atomic && plain.access == Access::Modify;
        self.threads[thread].is_atomic &= !is_atomic;
        let access = if is_atomic { Access::Atomic } else { plain.access };
        self.access(core, record.address, plain.size_bytes, access, record.what >> 8);
        Some(true)
    }

    /// Takes a record that is no plain reference; returns whether the thread goes on behind it.
    fn other(
        &mut self,
        (thread, core): (usize, usize),
        records: &[Record],
        at: usize,
        may_lock: &mut impl FnMut(u64) -> bool,
    ) -> bool {
        let record = &records[at];
        match record.code().kind() {
            RecordKind::Tool => match of_tag(record.extra).0 {
                LOCK if !may_lock(record.address) => return false,
                ATOMIC | LOCK => self.threads[thread].is_atomic = true,
                _ => {
                    let place = (&records[..at], self.first_site);
                    self.objects.event(&mut self.threads[thread].allocating, record, place);
                }
            },
            RecordKind::Complex | RecordKind::Payload => match self.threads[thread].groups.push(record) {
                Step::Whole(site, complex) => self.complex(core, site as u32, &complex),
                Step::Damaged(_) | Step::DamagedBefore(_) => self.damaged += 1,
                Step::Plain | Step::Part => {}
            },
            _ => {}
        }
        true
    }

    /// Makes the references of a complex one. Neighbouring bytes of one line that are read, or
    /// written, one after the other are one reference.
    fn complex(&mut self, core: usize, site: u32, complex: &Complex) {
        let mut open: [Option<(u64, u64, Access)>; 2] = [None; 2];
        let (layout, line_bytes) = (self.layout, self.line_bytes);
        complex.references(&layout, |address, size_bytes, kind| {
            let (column, access) = match kind {
                event::Access::Load => (0, Access::Load),
                event::Access::Store => (1, Access::Store),
                event::Access::Prefetch => return,
            };
            let end = address.saturating_add(size_bytes.into());
            if let Some((start, until, _)) = &mut open[column] {
                if *until == address && (end - 1) / line_bytes == *start / line_bytes {
                    *until = end;
                    return;
                }
            }
            let done = open[column].replace((address, end, access));
            if let Some((start, until, access)) = done {
                self.access(core, start, (until - start) as u32, access, site);
            }
        });
        for (start, until, access) in open.into_iter().flatten() {
            self.access(core, start, (until - start) as u32, access, site);
        }
    }
}

impl Simulates for Simulation {
    fn joins(&mut self, thread: u32) -> bool {
        self.placement.joins(thread)
    }

    fn round_over(&mut self) {
        self.placement.round_over();
    }

    fn simulate(
        &mut self,
        number: u32,
        records: &[Record],
        from: usize,
        most: usize,
        may_lock: &mut impl FnMut(u64) -> bool,
    ) -> usize {
        let (core, thread) = (self.core_of(number), number as usize);
        let (mut at, mut left) = (from, most);
        while at < records.len() && left > 0 {
            if !self.threads[thread].is_atomic {
                let most = (records.len() - at).min(left);
                let made = self.caches.hits(core, &records[at..at + most]);
                (at, left) = (at + made, left - made);
                if made == most {
                    continue;
                }
            }
            match self.one((thread, core), records, at, may_lock) {
                Some(plain) => left -= usize::from(plain),
                None => break,
            }
            at += 1;
        }
        if at == records.len() {
            self.threads[thread].allocating.reads_on(records);
        }
        at
    }

    fn core_for_steps(&mut self, thread: u32) -> Option<usize> {
        let core = self.core_of(thread);
        (!self.threads[thread as usize].is_atomic).then_some(core)
    }

    fn steps(&mut self, turns: &mut [Turn], from: usize) -> (usize, usize) {
        self.caches.hits_in_steps(turns, from)
    }
}
