//! Processes the records of one thread: stages them as touches, sweeps these level by level, counts
//! misses.
//!
//! **Why a file of its own.** The hierarchy owns levels and tables; this borrows them for one batch
//! of records, and is the only code that runs for every record. Leading records that are touches
//! are staged by vectors; groups (strings, masks, state areas) and wide references are taken apart
//! here, one by one. **Leaves out** what a level does with touches (`bank`) and which reference a
//! group makes (`event`).

use super::{Change, Core, DataPages, FetchRecords, Repeats, Rest, Shared};
use crate::limits::InstructionSide;
use crate::miss_log::Stretch;
use crate::stage::{is_full, FIRST_REFERENCE};
use crate::tally::{LevelId, Tally};
use crate::touch::{Touches, STEP, SWEEP};
use crate::{CACHES_MAX, TLBS_MAX};
use event::{
    masked_reference, Access, Record, RecordKind, StateLayout, Step, Upcoming, CUT_SITE, WIDE_BYTES,
};

/// Separates touches for the caches from touches for the TLBs. Instruction touches are lines in the
/// former and pages in the latter.
fn split(touches: &Touches) -> (Box<Touches>, Box<Touches>) {
    let (mut lines, mut pages) = (Touches::empty(), Touches::empty());
    for n in 0..touches.len {
        let (address, what, reference) = (touches.address[n], touches.what[n], touches.reference[n]);
        // A page touch becomes a fetch for the TLBs; an instruction line is none.
        let kind = (what >> 4) & 15;
        let is = |other: RecordKind| kind == other as u32;
        if !is(RecordKind::FetchPage) {
            lines.push(address, what, reference);
        }
        if is(RecordKind::FetchPage) {
            pages.push(address, what & !0xff | (RecordKind::Fetch as u32) << 4, reference);
        } else if !is(RecordKind::Fetch) {
            pages.push(address, what, reference);
        }
    }
    (lines, pages)
}

/// Processes a batch of records of one thread.
pub(super) struct ThreadRun<'a> {
    pub(super) core: &'a mut Core,
    pub(super) shared: &'a mut Shared,
    pub(super) layout: &'a StateLayout,
    /// Records that the thread receives next.
    pub(super) ahead: Upcoming,
}

impl ThreadRun<'_> {
    pub(super) fn records(&mut self, mut records: &[Record], rest: Rest) {
        let count = records.len();
        while !records.is_empty() {
            if !self.core.groups.is_open() {
                let first = self.core.stage.reference;
                self.shared.log.starts(first, count - records.len(), Stretch::Each);
                // The fast path: leading records that are touches, sixteen at a time.
                let Core { stage, page_misses, data_pages, .. } = &mut *self.core;
                let pages = (*data_pages == DataPages::Misses).then_some(&mut **page_misses);
                let staged = stage.fill(records, pages);
                records = &records[staged..];
                let next = stage.reference;
                if stage.is_full() || is_full(page_misses) {
                    self.drain();
                    continue;
                }
                self.shared.log.starts(next, count - records.len(), Stretch::One);
                // Masked accesses are so frequent in string functions that they skip the group's
                // buffer.
                if let Some((shape, [base, mask])) = self.core.groups.masked(records) {
                    self.masked(records[0].site(), masked_reference(shape, base, mask));
                    records = &records[2..];
                    continue;
                }
            }
            // A record that vectors cannot stage: part of a group, a wide or a special one.
            let Some((record, others)) = records.split_first() else { break };
            self.record(record);
            records = others;
        }
        if rest == Rest::Swept {
            self.drain();
        }
    }

    /// Processes a record that is not simply a touch.
    fn record(&mut self, record: &Record) {
        let kind = record.code().kind();
        if !self.core.groups.is_open() && !matches!(kind, RecordKind::Complex | RecordKind::Payload) {
            return self.plain(record);
        }
        // A record of a group, or one that ends a damaged group.
        match self.core.groups.push(record) {
            Step::Part => {}
            Step::Damaged(_) => self.shared.tally.damaged += 1,
            Step::DamagedBefore(_) => {
                self.shared.tally.damaged += 1;
                self.plain(record);
            }
            Step::Plain => self.plain(record),
            Step::Whole(site, complex) => {
                self.tally().complex(site).execute(&complex);
                let layout = *self.layout;
                let Repeats { line_bytes, change } = self.core.repeats;
                complex.stretches(&layout, line_bytes, |references, times| {
                    self.stretch(site, references, times, change);
                });
            }
        }
    }

    /// Processes the masked access of `site` that makes `reference`.
    fn masked(&mut self, site: usize, reference: Option<(u64, u32, Access)>) {
        let counts = self.tally().complex(site);
        counts.executions += 1;
        counts.iterations += 1;
        if let Some(reference) = reference {
            self.stretch(site, &[reference], 1, Change::Something);
        }
    }

    /// Counts `references` that are made `times` times, and simulates as many of them as can change
    /// anything.
    fn stretch(&mut self, site: usize, references: &[(u64, u32, Access)], times: u64, change: Change) {
        let counts = self.tally().complex(site);
        for (.., access) in references {
            match access {
                Access::Load => counts.loads += times,
                Access::Store => counts.stores += times,
                Access::Prefetch => {}
            }
        }
        // All are counted; repeating them changes the caches only in the cases that `Repeats`
        // names.
        let simulated = if change == Change::Nothing { 1 } else { times };
        for _ in 0..simulated {
            for &(address, size_bytes, access) in references {
                let kind = match access {
                    Access::Load => RecordKind::Load,
                    Access::Store => RecordKind::Store,
                    Access::Prefetch => continue,
                };
                self.data(site as u32, address, size_bytes, kind);
            }
        }
    }

    /// The table of the thread's misses.
    fn tally(&mut self) -> &mut Tally {
        self.core.tally.as_mut().unwrap_or(&mut self.shared.tally)
    }

    fn plain(&mut self, record: &Record) {
        let site = record.site() as u32;
        let size_bytes = record.code().size_bytes();
        match record.code().kind() {
            kind @ (RecordKind::Load | RecordKind::Store) => {
                self.data(site, record.address, size_bytes, kind)
            }
            RecordKind::Modify => {
                // A read-modify-write is a load and a store of one place.
                self.data(site, record.address, size_bytes, RecordKind::Load);
                self.data(site, record.address, size_bytes, RecordKind::Store);
            }
            RecordKind::Fetch => self.fetch(site, record.address, 1),
            RecordKind::FetchPage => self.page(site, record.address),
            RecordKind::DataPage => self.data_page(site, record),
            RecordKind::Block if record.site() != CUT_SITE => self.fetch(site, record.address, record.extra),
            _ => {}
        }
    }

    /// A data reference: its lines, lowest first; each line of a wide one counts by itself.
    fn data(&mut self, site: u32, address: u64, size_bytes: u32, kind: RecordKind) {
        let line_bytes = self.core.stage.line_bytes;
        let what = site << 8 | (kind as u32) << 4;
        let last = address.saturating_add(u64::from(size_bytes.max(1)) - 1);
        // The first line at the address itself, the others at their beginnings.
        self.line(address, what);
        let mut line = address & !(line_bytes - 1);
        while last - line >= line_bytes {
            // Each line of a wide reference counts by itself: it gets a number of its own.
            if size_bytes > WIDE_BYTES {
                self.next_reference();
            }
            line += line_bytes;
            self.line(line, what);
        }
        self.next_reference();
    }

    /// The instruction lines of `len_bytes` at `address`, each a reference.
    fn fetch(&mut self, block: u32, address: u64, len_bytes: u32) {
        if self.core.stage.fetches == InstructionSide::Ignored {
            return;
        }
        let line_bytes = self.core.stage.fetch_line_bytes;
        let what = block << 8 | (RecordKind::Fetch as u32) << 4;
        let last = address.saturating_add(u64::from(len_bytes.max(1)) - 1);
        let mut line = address & !(line_bytes - 1);
        loop {
            self.line(line, what);
            self.next_reference();
            if last - line < line_bytes {
                break;
            }
            line += line_bytes;
        }
    }

    /// A miss of an instruction page.
    fn page(&mut self, block: u32, address: u64) {
        if self.core.data_pages == DataPages::Misses {
            self.page_miss(address, block << 8 | (RecordKind::Fetch as u32) << 4);
            self.next_reference();
        } else if self.core.fetch_records == FetchRecords::Misses {
            self.line(address, block << 8 | (RecordKind::FetchPage as u32) << 4);
            // Page touches go to the TLBs alone; the sweep separates them.
            self.core.page_touches = true;
            self.next_reference();
        }
    }

    /// A miss of a data page, or of two by one reference.
    fn data_page(&mut self, site: u32, record: &Record) {
        if self.core.data_pages == DataPages::Uses {
            return;
        }
        let what = site << 8 | (RecordKind::Load as u32) << 4;
        self.page_miss(record.address, what);
        if record.extra != 0 {
            self.page_miss(record.address.wrapping_add(self.core.page_bytes), what);
        }
        self.next_reference();
    }

    /// Passes a page that missed to the second-level TLB; no cache is involved.
    fn page_miss(&mut self, address: u64, what: u32) {
        if self.core.page_misses.len == SWEEP {
            self.sweep();
        }
        self.core.page_misses.push(address, what, self.core.stage.reference);
    }

    fn line(&mut self, address: u64, what: u32) {
        if self.core.stage.is_full() {
            self.sweep();
        }
        self.core.stage.push(address, what);
    }

    fn next_reference(&mut self) {
        self.core.stage.reference += 1;
        if self.core.stage.is_full() {
            self.drain();
        }
    }

    /// Sweeps all staged touches when no reference is open. Numbers of references start again.
    fn drain(&mut self) {
        // No reference is open: numbers may begin anew, so that they stay small.
        self.sweep();
        self.core.stage.reference = FIRST_REFERENCE;
        self.shared.log.renumber(FIRST_REFERENCE);
        self.core.counted = [0; CACHES_MAX];
        self.core.counted_tlb = [0; TLBS_MAX];
    }

    /// Sweeps all staged touches through all levels.
    fn sweep(&mut self) {
        let Core {
            stage,
            first,
            outer,
            pages,
            outer_tlb,
            traffic,
            scratch,
            counted,
            counted_tlb,
            fetch_records,
            page_misses,
            page_touches,
            tally: own_tally,
            ..
        } = &mut *self.core;
        let Shared { banks, tally, traffic: shared_traffic, log } = &mut *self.shared;
        // Misses count in the thread's own table where it has one.
        let tally = own_tally.as_mut().unwrap_or(tally);
        if let (Some(own), Some(shared)) = (traffic, shared_traffic) {
            // Write-backs are a second simulation of these touches, before the levels overwrite
            // them.
            own.sweep(shared, &stage.touches);
        }
        // Rare: some touches are of pages only, and those of lines are none of the TLBs'.
        let mut sides = std::mem::take(page_touches).then(|| split(&stage.touches));
        if page_misses.len > 0 {
            let misses = &mut **page_misses;
            log.note_pages(0, counted_tlb[0], misses);
            tally.add(LevelId::Tlb(0), &mut counted_tlb[0], misses);
            if let Some(bank) = outer_tlb {
                // Records of pages are records too: their share of the next lines is asked for.
                bank.sweep_reading(scratch, misses, &mut self.ahead);
                log.note_pages(1, counted_tlb[1], misses);
                tally.add(LevelId::Tlb(1), &mut counted_tlb[1], misses);
            }
            misses.len = 0;
        }
        if let Some(pages) = pages {
            if *fetch_records == FetchRecords::Misses {
                pages.fetches =
                    if sides.is_some() { InstructionSide::Simulated } else { InstructionSide::Ignored };
                if sides.is_some() {
                    // A line's page, which is ignored, may be the one that missed.
                    pages.last = [u64::MAX; STEP];
                }
            }
            // TLBs first: they read the touches, which the caches then overwrite by their misses.
            let touches = sides.as_ref().map_or(&*stage.touches, |(_, pages)| pages);
            let misses = pages.sweep(scratch, touches);
            log.note_pages(0, counted_tlb[0], misses);
            tally.add(LevelId::Tlb(0), &mut counted_tlb[0], misses);
            if let Some(bank) = outer_tlb {
                bank.sweep(scratch, misses);
                log.note_pages(1, counted_tlb[1], misses);
                tally.add(LevelId::Tlb(1), &mut counted_tlb[1], misses);
            }
        }
        // A level leaves its misses where the touches were: one buffer stays in the host's first
        // level, several would not.
        let touches = sides.as_mut().map_or(&mut *stage.touches, |(lines, _)| lines);
        first.sweep_reading(scratch, touches, &mut self.ahead);
        log.note(0, counted[0], touches);
        tally.add(LevelId::Cache(0), &mut counted[0], touches);
        for (index, (own, shared)) in outer.iter_mut().zip(banks).enumerate() {
            // Each outer level belongs to the thread or to all threads.
            let Some(bank) = own.as_mut().or(shared.as_mut()) else { continue };
            bank.sweep(scratch, touches);
            log.note(index + 1, counted[index + 1], touches);
            tally.add(LevelId::Cache(index + 1), &mut counted[index + 1], touches);
        }
        stage.touches.len = 0;
    }
}
