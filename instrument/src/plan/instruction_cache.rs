//! Instruction lines and pages: their numbers, and the caches that generated code simulates inline.
//!
//! The lines of code are known when it is translated, so each line gets a number, and generated
//! code handles 4-byte numbers instead of 8-byte addresses. There are two kinds of numbers, and a
//! stream uses one of them: with a filter of last lines, numbers of lines that are compared with
//! the last line of their set; with an inline instruction cache, numbers of lines of a first-level
//! cache that generated code simulates. **Leaves out** the code (`emit::instruction_side`).

use crate::address_map::AddressMap;
use crate::target::layout::context;
use event::{Code, FetchFilter, Filter, RecordKind, SetFilter, Stream};

/// One failed check in this many is counted. Counting all would be slow, because the counter of a
/// block that seldom runs is in no cache.
pub(crate) const COUNTED_EVERY: u8 = 16;

/// The kind of an inline instruction cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// A cache of lines.
    Lines,
    /// A TLB, a cache of pages.
    Pages,
}

/// An instruction cache, or TLB, that generated code simulates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InlineICache {
    pub(crate) side: Side,
    pub(crate) shape: SetFilter,
    pub(crate) ways: u32,
}

impl InlineICache {
    /// The caches that generated code simulates for `filter`: that of lines, and that of pages if
    /// there is a TLB. `None` if it simulates none.
    pub(crate) fn of(filter: &Filter) -> Option<(InlineICache, Option<InlineICache>)> {
        let FetchFilter::FirstLevel { line_ways, page_ways } = filter.fetches else { return None };
        let lines = InlineICache { side: Side::Lines, shape: filter.instruction, ways: line_ways };
        let pages = filter.instruction_page;
        let pages = pages.map(|shape| InlineICache { side: Side::Pages, shape, ways: page_ways });
        Some((lines, pages))
    }

    /// Whether generated code simulates the instruction cache for `stream`.
    pub(crate) fn is_kept(stream: &Stream) -> bool {
        matches!(stream, Stream::Filtered(filter) if InlineICache::of(filter).is_some())
    }

    /// The set of the line, or page, that holds `address`.
    pub(crate) fn set(&self, address: u64) -> u32 {
        (address / u64::from(self.shape.line_bytes) % u64::from(self.shape.sets)) as u32
    }

    /// Context offset of the number of a set's last line.
    pub(crate) fn last(&self, set: u32) -> u32 {
        match self.side {
            Side::Lines => context::INSTRUCTION_LINES + 4 * set,
            Side::Pages => context::INSTRUCTION_PAGES + 4 * set,
        }
    }

    /// Context offset of the numbers of a set's lines, 4 bytes each.
    pub(crate) fn row(&self, set: u32) -> u32 {
        let first = match self.side {
            Side::Lines => context::FETCH_LINES,
            Side::Pages => context::FETCH_PAGES,
        };
        first + 4 * set * self.ways
    }

    /// The code of the record of a miss.
    pub(crate) fn code(&self) -> u8 {
        let kind = match self.side {
            Side::Lines => RecordKind::Fetch,
            Side::Pages => RecordKind::FetchPage,
        };
        let sized = Code::new(kind, self.shape.line_bytes).filter(|_| kind == RecordKind::Fetch);
        sized.map_or((kind as u8) << 4, |code| code.0)
    }
}

/// A line, or page, as the last one of its set. `at` is the context offset of the word that holds
/// the number of the set's last line; `number` is this line's number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastOfSet {
    pub(crate) at: u32,
    pub(crate) number: u32,
}

/// An instruction line, and its page, that a block compares with the last ones of their sets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineCheck {
    /// First byte of the line.
    pub(crate) address: u64,
    pub(crate) line: LastOfSet,
    pub(crate) page: Option<LastOfSet>,
    /// Whether the line must be compared: the fragment has not made it the last of its set already.
    pub(crate) line_is_new: bool,
    /// Whether the page must be compared: the fragment has not made it the last of its set already.
    pub(crate) page_is_new: bool,
}

/// A line, or page, of an inline instruction cache that a block uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineUse {
    pub(crate) cache: InlineICache,
    /// First byte of the line.
    pub(crate) address: u64,
    pub(crate) number: u32,
}

/// A new number of a line, or page, of an inline instruction cache, for the table by which routines
/// find the row of a number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewLine {
    pub(crate) number: u32,
    pub(crate) address: u64,
    /// Context offset of the row of its set.
    pub(crate) row: u32,
}

/// The numbers of instruction lines and pages, from 1. `lines` and `pages` belong to a filter of
/// last lines, `kept_lines` and `kept_pages` to an inline instruction cache.
#[derive(Default)]
pub(crate) struct LineIds {
    lines: AddressMap<u32>,
    pages: AddressMap<u32>,
    kept_lines: AddressMap<u32>,
    kept_pages: AddressMap<u32>,
    /// New numbers that are not in the routines' table yet.
    pub(crate) new: Vec<NewLine>,
    /// For each set, the last line that the fragment being planned has used.
    known_lines: Vec<(u32, u64)>,
    /// For each set, the last page that the fragment being planned has used.
    known_pages: Vec<(u32, u64)>,
}

impl LineIds {
    /// Lines and pages with their numbers: those of the filter of last lines, then those of the
    /// inline instruction caches.
    pub(crate) fn numbered(&self) -> [Vec<(u64, u32)>; 4] {
        [&self.lines, &self.pages, &self.kept_lines, &self.kept_pages]
            .map(|numbers| numbers.iter().map(|(&address, &number)| (address, number)).collect())
    }

    /// Gives lines and pages the numbers that [`LineIds::numbered`] listed.
    pub(crate) fn renumber(&mut self, numbered: &[Vec<(u64, u32)>; 4], stream: &Stream) {
        self.lines.extend(numbered[0].iter().copied());
        self.pages.extend(numbered[1].iter().copied());
        let Stream::Filtered(filter) = stream else { return };
        let Some((line, page)) = InlineICache::of(filter) else { return };
        let of = |cache: Option<InlineICache>, list: &[(u64, u32)]| {
            list.iter().filter_map(|&(address, number)| Some((number, cache?, address))).collect::<Vec<_>>()
        };
        let mut all = of(Some(line), &numbered[2]);
        all.extend(of(page, &numbered[3]));
        // Numbers count up from 1, so handing them out again in their old order restores them.
        all.sort_unstable_by_key(|numbered| numbered.0);
        for (_, cache, address) in all {
            self.kept(&cache, address);
        }
    }

    /// Lists every line and page of the inline instruction caches as a new one, because the
    /// routines' table was cleared.
    pub(crate) fn list_again(&mut self, stream: &Stream) {
        let Stream::Filtered(filter) = stream else { return };
        let Some((line, page)) = InlineICache::of(filter) else { return };
        for (cache, numbers) in [(Some(line), &self.kept_lines), (page, &self.kept_pages)] {
            let Some(cache) = cache else { continue };
            self.new.extend(numbers.iter().map(|(&address, &number)| NewLine {
                number,
                address,
                row: cache.row(cache.set(address)),
            }));
        }
    }

    /// The number of lines and pages of the inline instruction caches.
    pub(crate) fn kept_count(&self) -> usize {
        self.kept_lines.len() + self.kept_pages.len()
    }

    /// Begins a fragment. It may be entered from anywhere, so nothing is known about the last lines
    /// of sets at its head.
    pub(super) fn begin_fragment(&mut self) {
        self.known_lines.clear();
        self.known_pages.clear();
    }

    /// The number of a line, or page, of an inline instruction cache; a new one if it has none.
    fn kept(&mut self, cache: &InlineICache, address: u64) -> u32 {
        let next = self.kept_count() as u32 + 1;
        let numbers = match cache.side {
            Side::Lines => &mut self.kept_lines,
            Side::Pages => &mut self.kept_pages,
        };
        *numbers.entry(address).or_insert_with(|| {
            self.new.push(NewLine { number: next, address, row: cache.row(cache.set(address)) });
            next
        })
    }

    /// Adds the line at `address`, and its page, to `uses`. Leaves out each one that the fragment
    /// has already made the last one of its set.
    pub(super) fn uses(
        &mut self,
        (lines, pages): (InlineICache, Option<InlineICache>),
        address: u64,
        uses: &mut Vec<LineUse>,
    ) {
        let line_is_new = learn(&mut self.known_lines, lines.set(address), address);
        if line_is_new {
            let number = self.kept(&lines, address);
            uses.push(LineUse { cache: lines, address, number });
        }
        let Some(cache) = pages else { return };
        let page = address & !(u64::from(cache.shape.line_bytes) - 1);
        if learn(&mut self.known_pages, cache.set(page), page) {
            let number = self.kept(&cache, page);
            uses.push(LineUse { cache, address: page, number });
        }
    }

    /// The check of the line at `address`, and of its page; `None` if the fragment has already made
    /// both the last ones of their sets.
    pub(super) fn check(&mut self, filter: &Filter, address: u64) -> Option<LineCheck> {
        let set = set_of(&filter.instruction, address);
        let page = filter.instruction_page;
        let page = page.map(|page| (set_of(&page, address), address & !(u64::from(page.line_bytes) - 1)));
        let line_is_new = learn(&mut self.known_lines, set, address);
        let page_is_new = page.is_some_and(|(set, page)| learn(&mut self.known_pages, set, page));
        if !line_is_new && !page_is_new {
            return None;
        }
        let number = number(&mut self.lines, address);
        let line = LastOfSet { at: context::INSTRUCTION_LINES + 4 * set, number };
        let page = page.map(|(set, page)| {
            let number = self::number(&mut self.pages, page);
            LastOfSet { at: context::INSTRUCTION_PAGES + 4 * set, number }
        });
        Some(LineCheck { address, line, page, line_is_new, page_is_new })
    }
}

/// Makes `line` the known last line of `set`; returns whether it was not.
fn learn(known: &mut Vec<(u32, u64)>, set: u32, line: u64) -> bool {
    match known.iter_mut().find(|last| last.0 == set) {
        Some(last) if last.1 == line => false,
        Some(last) => {
            last.1 = line;
            true
        }
        None => {
            known.push((set, line));
            true
        }
    }
}

/// The number of `key`; the next one if it has none.
fn number(numbers: &mut AddressMap<u32>, key: u64) -> u32 {
    let next = numbers.len() as u32 + 1;
    *numbers.entry(key).or_insert(next)
}

/// The set of the line that holds `address`.
fn set_of(filter: &SetFilter, address: u64) -> u32 {
    ((address / u64::from(filter.line_bytes)) as u32) & (filter.sets - 1)
}
