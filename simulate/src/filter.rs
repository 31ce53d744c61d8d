//! A model of the filter that generated code runs inline: which references are recorded, and what
//! the filter remembers.
//!
//! **What.** [`FilterModel::apply`] turns a full stream into the filtered one that the engine would
//! record. **Why this way.** The engine's machine code is hard to read; this is its meaning, and
//! the proof that the meaning is exact is a test over random machines and streams.
//!
//! Per set, the filter remembers the line that was used last in it, so that the line is the most
//! recent one of its cache set:
//!
//! | reference | recorded | afterwards |
//! |---|---|---|
//! | within one line | unless line *and* page are their sets' last | both are last (1) |
//! | over two lines | always | first line and page are last, the second line's set is empty (2) |
//! | over more lines; complex | always | all line and page sets of the data side are empty |
//! | instruction line | unless line *and* page are their sets' last | both are last |
//! | … under `FirstLevel` | line, page: unless among their sets' last `ways` | both are last |
//! | data page under `FirstLevel` | unless among its set's last `ways`; lines as without pages | it is last |
//! | prefetch | never | – |
//!
//! (1) A store under `NeverEnter` that is recorded leaves its line's set empty; its page is
//! entered. (2) Where the two pages differ, the second page's set is empty too; in a filter of one
//! set the second line (page) is that set's last.
//!
//! Emptying more than this, or recording more, is always exact: an empty set remembers nothing, and
//! a recorded reference is simulated. **Source:** Mattson et al. 1970 (a re-reference of a stack's
//! top changes nothing); DESIGN's truth table.

use event::{
    Access, Complex, FetchFilter, Filter, Groups, Record, RecordKind, SetFilter, StateLayout, Step,
    StoreFilter, CUT_SITE, WIDE_BYTES,
};

const EMPTY: u64 = u64::MAX;

/// The last line of each set.
struct Lasts {
    lines: Vec<u64>,
    line_bytes: u64,
}

impl Lasts {
    fn new(shape: SetFilter) -> Lasts {
        assert!(shape.sets.is_power_of_two() && shape.line_bytes.is_power_of_two());
        Lasts { lines: vec![EMPTY; shape.sets as usize], line_bytes: shape.line_bytes.into() }
    }

    fn number(&self, address: u64) -> u64 {
        address / self.line_bytes
    }

    fn last(&mut self, number: u64) -> &mut u64 {
        let set = number as usize & (self.lines.len() - 1);
        &mut self.lines[set]
    }

    /// Makes the line of `address` its set's last; returns whether it already was.
    fn is_last(&mut self, address: u64) -> bool {
        // The line becomes its set's last, whether it was before or not.
        let number = self.number(address);
        std::mem::replace(self.last(number), number) == number
    }

    fn empty(&mut self, address: u64) {
        let number = self.number(address);
        *self.last(number) = EMPTY;
    }

    /// Processes the second line of an access over two lines: that of `address`.
    fn ends_in(&mut self, address: u64) {
        let number = self.number(address);
        // With one set the second line is what was used last; with several it may not be the most
        // recent one of its cache set, so nothing is remembered.
        *self.last(number) = if self.lines.len() == 1 { number } else { EMPTY };
    }

    fn clear(&mut self) {
        self.lines.fill(EMPTY);
    }
}

/// The last lines of each set, most recent first: a cache with true LRU.
struct Kept {
    sets: Vec<Vec<u64>>,
    ways: usize,
    line_bytes: u64,
}

impl Kept {
    fn new(shape: SetFilter, ways: u32) -> Kept {
        Kept {
            sets: vec![Vec::new(); shape.sets as usize],
            ways: ways as usize,
            line_bytes: shape.line_bytes.into(),
        }
    }

    /// Uses the line of `address`; returns the address of its first byte if it missed.
    fn miss(&mut self, address: u64) -> Option<u64> {
        let number = address / self.line_bytes;
        let count = self.sets.len() as u64;
        // A list in recency order: found lines move to the front, the last one leaves.
        let set = &mut self.sets[(number % count) as usize];
        let found = set.iter().position(|&line| line == number);
        found.map(|way| set.remove(way));
        set.insert(0, number);
        set.truncate(self.ways);
        found.is_none().then_some(number * self.line_bytes)
    }
}

/// Whether a reference is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The reference is recorded.
    Recorded,
    /// The reference changes nothing in the hierarchy and is dropped.
    Dropped,
}

/// The instruction side.
enum Fetches {
    LastOfSet { lines: Lasts, pages: Option<Lasts> },
    FirstLevel { lines: Kept, pages: Option<Kept> },
}

impl Fetches {
    fn new(filter: &Filter) -> Fetches {
        let Filter { instruction, instruction_page, fetches, .. } = *filter;
        match fetches {
            FetchFilter::LastOfSet => {
                Fetches::LastOfSet { lines: Lasts::new(instruction), pages: instruction_page.map(Lasts::new) }
            }
            FetchFilter::FirstLevel { line_ways, page_ways } => Fetches::FirstLevel {
                lines: Kept::new(instruction, line_ways),
                pages: instruction_page.map(|shape| Kept::new(shape, page_ways)),
            },
        }
    }

    fn line_bytes(&self) -> u64 {
        match self {
            Fetches::LastOfSet { lines, .. } => lines.line_bytes,
            Fetches::FirstLevel { lines, .. } => lines.line_bytes,
        }
    }

    /// Processes the use of an instruction line: appends its records to `out`.
    fn line(&mut self, address: u64, block: u32, out: &mut Vec<Record>) {
        let record = |kind, address| Record::new(kind, 0, block, address);
        match self {
            Fetches::LastOfSet { lines, pages } => {
                let line = lines.is_last(address);
                let page = pages.as_mut().is_none_or(|pages| pages.is_last(address));
                if !(line && page) {
                    out.extend(record(RecordKind::Fetch, address));
                }
            }
            Fetches::FirstLevel { lines, pages } => {
                out.extend(lines.miss(address).and_then(|line| record(RecordKind::Fetch, line)));
                let page = pages.as_mut().and_then(|pages| pages.miss(address));
                out.extend(page.and_then(|page| record(RecordKind::FetchPage, page)));
            }
        }
    }
}

/// The filter of one thread.
pub struct FilterModel {
    stores: StoreFilter,
    data: Lasts,
    data_page: Option<Lasts>,
    /// The first-level data TLB, if generated code simulates it.
    resident: Option<Kept>,
    layout: StateLayout,
    fetches: Fetches,
    groups: Groups,
    group: Vec<Record>,
}

impl FilterModel {
    /// An empty filter.
    pub fn new(filter: &Filter) -> FilterModel {
        FilterModel {
            stores: filter.stores,
            data: Lasts::new(filter.data),
            data_page: filter.last_pages().map(Lasts::new),
            resident: filter.resident_pages().map(|(shape, ways)| Kept::new(shape, ways)),
            layout: StateLayout::default(),
            fetches: Fetches::new(filter),
            groups: Groups::default(),
            group: Vec::new(),
        }
    }

    /// Appends to `out` the records that the filter leaves of `full`, a full stream of one thread.
    pub fn apply(&mut self, full: &[Record], out: &mut Vec<Record>) {
        for record in full {
            // Records of a group are held until the group is complete; a damaged group is dropped,
            // as in the engine.
            match self.groups.push(record) {
                Step::Plain => self.plain(record, out),
                Step::DamagedBefore(_) => {
                    self.group.clear();
                    self.plain(record, out);
                }
                Step::Part => self.group.push(*record),
                Step::Damaged(_) => self.group.clear(),
                Step::Whole(site, complex) => {
                    out.append(&mut self.group);
                    out.push(*record);
                    self.clear_data();
                    self.complex_pages(site as u32, &complex, out);
                }
            }
        }
    }

    fn plain(&mut self, record: &Record, out: &mut Vec<Record>) {
        match record.code().kind() {
            kind @ (RecordKind::Load | RecordKind::Store | RecordKind::Modify) => {
                let verdict = self.data(kind, record.address, record.code().size_bytes());
                out.extend((verdict == Verdict::Recorded).then_some(*record));
                // A read-modify-write is a load and a store.
                for _ in 0..1 + u32::from(kind == RecordKind::Modify) {
                    self.pages(record.site() as u32, record.address, record.code().size_bytes(), out);
                }
            }
            RecordKind::Block if record.site() != CUT_SITE => self.block(record, out),
            RecordKind::Tool => out.push(*record),
            _ => {}
        }
    }

    /// The pages of a complex reference.
    fn complex_pages(&mut self, site: u32, complex: &Complex, out: &mut Vec<Record>) {
        let Some(page_bytes) = self.resident.as_ref().map(|pages| pages.line_bytes) else { return };
        let layout = self.layout;
        complex.stretches(&layout, page_bytes, |references, _| {
            for &(address, size_bytes, access) in references {
                if access != Access::Prefetch {
                    self.pages(site, address, size_bytes, out);
                }
            }
        });
    }

    /// Records the pages of a data reference that miss a TLB that generated code simulates. Of a
    /// wide reference each line counts by itself, and so does each page.
    fn pages(&mut self, site: u32, address: u64, size_bytes: u32, out: &mut Vec<Record>) {
        let Some(pages) = &mut self.resident else { return };
        let end = address.saturating_add(u64::from(size_bytes.max(1)) - 1);
        let mut before = None;
        for page in address / pages.line_bytes..=end / pages.line_bytes {
            let missed = pages.miss(page * pages.line_bytes);
            match (missed, before) {
                (Some(_), Some(first)) if size_bytes <= WIDE_BYTES => {
                    let first: &mut Record = &mut out[first];
                    first.extra = 1;
                }
                (Some(page), _) => {
                    before = Some(out.len());
                    out.extend(Record::new(RecordKind::DataPage, 0, site, page.max(address)));
                }
                (None, _) => {}
            }
        }
    }

    /// The lines of a block, ascending.
    fn block(&mut self, record: &Record, out: &mut Vec<Record>) {
        let line_bytes = self.fetches.line_bytes();
        let end = record.address.saturating_add(u64::from(record.extra.max(1)) - 1);
        for line in record.address / line_bytes..=end / line_bytes {
            self.fetches.line(line * line_bytes, record.site() as u32, out);
        }
    }

    /// A data reference of `kind` `Load`, `Store` or `Modify` is made.
    pub fn data(&mut self, kind: RecordKind, address: u64, size_bytes: u32) -> Verdict {
        let end = address.saturating_add(u64::from(size_bytes.max(1)) - 1);
        let lines = self.data.number(end) - self.data.number(address) + 1;
        // A long access may touch every set: the whole data side forgets.
        if lines > 2 {
            self.clear_data();
            return Verdict::Recorded;
        }
        // Both tables are updated, whatever the first one answers.
        let line = self.data.is_last(address);
        let page = self.data_page.as_mut().is_none_or(|pages| pages.is_last(address));
        if lines == 1 && line && page {
            return Verdict::Dropped;
        }
        let enters = kind != RecordKind::Store || self.stores == StoreFilter::LikeLoads;
        // A store that bypasses the cache may not be the most recent line of its set.
        if !enters {
            self.data.empty(address);
            self.data.empty(end);
        }
        if lines == 2 {
            if enters {
                self.data.ends_in(end);
            }
            // A second page counts as a second line does.
            if let Some(pages) =
                self.data_page.as_mut().filter(|pages| pages.number(end) != pages.number(address))
            {
                pages.ends_in(end);
            }
        }
        Verdict::Recorded
    }

    /// Forgets all data lines and pages, as after a complex reference.
    pub fn clear_data(&mut self) {
        self.data.clear();
        if let Some(pages) = &mut self.data_page {
            pages.clear();
        }
    }
}
