//! The tool: feeds the caches with what the engine records, and notes what lies in lines that are
//! shared.

use crate::ask::{of_tag, Asker, ATOMIC, LOCK};
use crate::caches::{plain, Access, CoherentCaches, PrivateLevels};
use crate::counts::Results;
use crate::objects::{Allocating, HeapBlock, Objects};
use crate::owners::{Owners, Touched};
use crate::placement::Placement;
use crate::rounds::{Rounds, Simulates, Who};
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
    owners: Owners,
    /// The complex references of the turn that is surveyed.
    surveyed: Groups,
    layout: StateLayout,
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
        let (simulation, rounds) = (Some(Simulation::new(levels)), Rounds::new(Placement::new(cores)));
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
        self.rounds.placement.all_ended();
        simulation.executes();
    }

    fn batch(&mut self, batch: &Batch<'_>) {
        let Some(simulation) = &mut self.simulation else { return };
        self.rounds.records(batch.thread(), batch.raw(), batch.first_site() as u32, simulation);
    }

    fn turn(&mut self, thread: u32, start: TurnStart) {
        if let Some(simulation) = &mut self.simulation {
            self.rounds.turn(thread, start, simulation);
        }
    }

    fn thread_ended(&mut self, thread: u32) {
        if let Some(simulation) = &mut self.simulation {
            self.rounds.end(simulation);
            self.rounds.placement.ended(thread);
            simulation.thread_ended(thread);
        }
    }

    fn finish(&mut self, _summary: &Summary<'_>) -> std::io::Result<Report> {
        let Some(mut simulation) = self.simulation.take() else { return Ok(Report::default()) };
        self.rounds.end(&mut simulation);
        let Simulation { caches, blocks, damaged, .. } = simulation;
        let (threads, migrations) = self.rounds.placement.finish();
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
    pub(crate) fn new(levels: PrivateLevels) -> Simulation {
        Simulation {
            caches: CoherentCaches::new(levels),
            objects: Objects::default(),
            blocks: Vec::new(),
            line_bytes: levels.first.line_bytes.into(),
            threads: Vec::new(),
            owners: Owners::default(),
            surveyed: Groups::default(),
            layout: StateLayout::default(),
            damaged: 0,
        }
    }

    fn executes(&mut self) {
        self.caches.forget();
        self.objects.clear();
        self.threads.clear();
    }

    fn thread_ended(&mut self, thread: u32) {
        if let Some(own) = self.threads.get_mut(thread as usize) {
            *own = Thread::default();
        }
    }

    /// The index of a thread, which has a state from here on.
    #[inline(always)]
    fn index(&mut self, who: Who) -> usize {
        let thread = who.thread as usize;
        if self.threads.len() <= thread {
            self.threads.resize_with(thread + 1, Thread::default);
        }
        thread
    }

    #[inline(always)]
    fn access(&mut self, who: Who, address: u64, size_bytes: u32, access: Access, site: u32) {
        self.caches.access(who.core, address, size_bytes, access, site + who.first_site);
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

    /// Takes a record; returns whether it was a plain reference, or `None` if the thread has to wait
    /// before it.
    #[inline]
    pub(crate) fn one(
        &mut self,
        who: Who,
        records: &[Record],
        at: usize,
        may_lock: &mut impl FnMut(u64) -> bool,
    ) -> Option<bool> {
        let record = &records[at];
        let Some(plain) = plain(record) else {
            return self.other(who, records, at, may_lock).then_some(false);
        };
        let thread = self.index(who);
        let is_atomic = self.threads[thread].is_atomic && plain.access == Access::Modify;
        self.threads[thread].is_atomic &= !is_atomic;
        let access = if is_atomic { Access::Atomic } else { plain.access };
        self.access(who, record.address, plain.size_bytes, access, record.what >> 8);
        Some(true)
    }

    /// Takes a record that is no plain reference; returns whether the thread goes on behind it.
    fn other(
        &mut self,
        who: Who,
        records: &[Record],
        at: usize,
        may_lock: &mut impl FnMut(u64) -> bool,
    ) -> bool {
        let (record, thread) = (&records[at], self.index(who));
        match record.code().kind() {
            RecordKind::Tool => match of_tag(record.extra).0 {
                LOCK if !may_lock(record.address) => return false,
                ATOMIC | LOCK => self.threads[thread].is_atomic = true,
                _ => {
                    let place = (&records[..at], who.first_site);
                    self.objects.event(&mut self.threads[thread].allocating, record, place);
                }
            },
            RecordKind::Complex | RecordKind::Payload => match self.threads[thread].groups.push(record) {
                Step::Whole(site, complex) => self.complex(who, site as u32, &complex),
                Step::Damaged(_) | Step::DamagedBefore(_) => self.damaged += 1,
                Step::Plain | Step::Part => {}
            },
            _ => {}
        }
        true
    }

    /// Makes the references of a complex one. Neighbouring bytes of one line that are read, or
    /// written, one after the other are one reference.
    fn complex(&mut self, who: Who, site: u32, complex: &Complex) {
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
                self.access(who, start, (until - start) as u32, access, site);
            }
        });
        for (start, until, access) in open.into_iter().flatten() {
            self.access(who, start, (until - start) as u32, access, site);
        }
    }
}

impl Simulates for Simulation {
    fn round_begins(&mut self) {
        self.owners.clear();
    }

    fn surveys(&mut self, turn: usize, records: &[Record], mut locks: impl FnMut(u64)) {
        let Simulation { caches, owners, surveyed, layout, .. } = self;
        let mut marks = owners.marks(turn);
        let shift = self.line_bytes.trailing_zeros();
        let mut at = 0;
        while at < records.len() {
            at += caches.marks(&records[at..], &mut marks);
            let Some(record) = records.get(at) else { break };
            at += 1;
            let mut touches = |address: u64, size_bytes: u32, writes: bool| {
                let last = address.saturating_add(u64::from(size_bytes.max(1)) - 1);
                let touched = if writes { Touched::WRITTEN } else { Touched::READ };
                (address >> shift..=last >> shift).for_each(|line| marks.touches(line, touched));
            };
            if let Some(plain) = plain(record) {
                touches(record.address, plain.size_bytes, plain.access.writes());
                continue;
            }
            match record.code().kind() {
                RecordKind::Tool if of_tag(record.extra).0 == LOCK => locks(record.address),
                RecordKind::Complex | RecordKind::Payload => {
                    if let Step::Whole(_, complex) = surveyed.push(record) {
                        complex.references(layout, |address, size_bytes, access| {
                            touches(address, size_bytes, access == event::Access::Store);
                        });
                    }
                }
                _ => {}
            }
        }
    }

    fn ahead(&mut self, turn: usize, who: Who, records: &[Record], from: usize) -> usize {
        let thread = self.index(who);
        if self.threads[thread].is_atomic {
            return 0;
        }
        let owned = self.owners.of(turn);
        let made = self.caches.hits(who.core, &records[from..], |line| owned.has(line));
        if made > 0 && from + made == records.len() {
            self.threads[thread].allocating.reads_on(records);
        }
        made
    }

    fn simulate(
        &mut self,
        who: Who,
        records: &[Record],
        from: usize,
        most: usize,
        may_lock: &mut impl FnMut(u64) -> bool,
    ) -> usize {
        let thread = self.index(who);
        let (mut at, mut left) = (from, most);
        while at < records.len() && left > 0 {
            if !self.threads[thread].is_atomic {
                let most = (records.len() - at).min(left);
                let made = self.caches.hits(who.core, &records[at..at + most], |_| true);
                (at, left) = (at + made, left - made);
                if made == most {
                    continue;
                }
            }
            match self.one(who, records, at, may_lock) {
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
}
