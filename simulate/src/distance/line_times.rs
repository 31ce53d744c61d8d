//! A table with a number for each line, in blocks of 64 neighbours: the time of its last use.
//!
//! **Why this way.** Neighbours are used together, so that one look-up serves a page of lines and
//! sixteen numbers share a line of the host. **Cost.** 256 bytes per page that was touched, 64
//! lines each.

/// Lines of a page.
const PAGE_LINES: usize = 64;
const PAGE_LINES_SHIFT: u32 = PAGE_LINES.trailing_zeros();

/// No page has this number.
const NONE: u64 = u64::MAX;

/// The numbers of lines; 0 for a line without one.
#[derive(Clone)]
pub(super) struct LineTimes {
    /// An open hash table of page numbers and places in `times`; its length is a power of two.
    table: Vec<(u64, u32)>,
    /// Page by page.
    times: Vec<u32>,
    /// The page number of each block of `times`.
    numbers: Vec<u64>,
    /// The page of the last single look-up, and its place.
    last: (u64, u32),
}

impl LineTimes {
    pub(super) fn new() -> LineTimes {
        LineTimes { table: vec![(NONE, 0); 64], times: Vec::new(), numbers: Vec::new(), last: (NONE, 0) }
    }

    /// The number of a line.
    #[inline(always)]
    pub(super) fn time(&mut self, line: u64) -> &mut u32 {
        let page = line >> PAGE_LINES_SHIFT;
        // Neighbouring lines are asked for together: one page is remembered.
        if self.last.0 != page {
            self.last = (page, self.find(page));
        }
        let place = self.last.1 as usize * PAGE_LINES + (line as usize & (PAGE_LINES - 1));
        &mut self.times[place]
    }

    /// The place of a line's number among all ([`LineTimes::times`]), which it keeps.
    #[inline(always)]
    pub(super) fn place(&mut self, line: u64) -> usize {
        self.find(line >> PAGE_LINES_SHIFT) as usize * PAGE_LINES + (line as usize & (PAGE_LINES - 1))
    }

    /// The numbers of all lines.
    #[inline(always)]
    pub(super) fn times(&mut self) -> &mut [u32] {
        &mut self.times
    }

    /// Lines that have room.
    pub(super) fn lines(&self) -> usize {
        self.times.len()
    }

    /// Visits the numbers of all lines of set `set` of `sets`.
    #[inline(always)]
    pub(super) fn of_set(&mut self, set: u64, sets: u64, mut visit: impl FnMut(&mut u32)) {
        if sets == 1 {
            return self.times.iter_mut().for_each(visit);
        }
        for (number, times) in self.numbers.iter().zip(self.times.chunks_exact_mut(PAGE_LINES)) {
            // The first line of the page that belongs to the set; the others follow `sets` lines
            // apart.
            let start = (number << PAGE_LINES_SHIFT) % sets;
            let first = if set >= start { set - start } else { set + sets - start };
            for place in (first as usize..PAGE_LINES).step_by(sets as usize) {
                visit(&mut times[place]);
            }
        }
    }

    #[inline(always)]
    fn find(&mut self, page: u64) -> u32 {
        let mask = self.table.len() - 1;
        let mut at = hash(page, mask);
        loop {
            // Open addressing: the next places are tried until the page or an empty place is found.
            match self.table[at] {
                (number, place) if number == page => return place,
                (NONE, _) => return self.enter(page),
                _ => at = (at + 1) & mask,
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn enter(&mut self, page: u64) -> u32 {
        let place = self.numbers.len() as u32;
        self.numbers.push(page);
        self.times.resize(self.times.len() + PAGE_LINES, 0);
        // At most half full, so that searches stay short: twice as long, and all pages anew.
        if self.numbers.len() * 2 > self.table.len() {
            self.table = vec![(NONE, 0); self.table.len() * 2];
            let numbers = std::mem::take(&mut self.numbers);
            numbers.iter().zip(0..).for_each(|(&number, place)| self.insert(number, place));
            self.numbers = numbers;
        } else {
            self.insert(page, place);
        }
        place
    }

    /// Enters a page into the table, which has room.
    fn insert(&mut self, page: u64, place: u32) {
        let mask = self.table.len() - 1;
        let mut at = hash(page, mask);
        while self.table[at].0 != NONE {
            at = (at + 1) & mask;
        }
        self.table[at] = (page, place);
    }
}

/// Fibonacci hashing: the product's upper half.
#[inline(always)]
fn hash(page: u64, mask: usize) -> usize {
    (page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask
}
