//! How much of memory is touched in each window of time, and how much of that for the first time.
//!
//! **What.** A window is a number of steps of some clock, which the caller moves
//! ([`WorkingSet::at`]). Windows start short; where there would be too many, they double in length,
//! so that any run has between half and all of `windows_max`. **Why this way.** Sizes of windows
//! cannot be added when windows are joined: what both touched would count twice. But a line is new
//! to a window exactly where the window of its last use is another one, and how far two windows
//! have to be joined until they are one is known from their numbers: the length of what differs. So
//! each use is counted once, under that length, and the answer is exact for every joining to come.
//! (The working set is Denning's, 1968.)
//!
//! **Which stream.** The full one. Where a filter drops uses of the line that its set used last,
//! each window misses up to as many lines as the filter has sets; first touches are exact all the
//! same. **Leaves out** instructions.

use super::line_times::LineTimes;
use event::{Access, Groups, Record, RecordKind, StateLayout, Step};
use std::collections::HashMap;

/// log2 of the bytes of a page.
const PAGE_SHIFT: u32 = 12;

/// Lengths in bits of the difference of two window numbers, 0 to 32, and an index for lines that
/// were never touched.
const LENGTHS: usize = 34;
const NEVER: usize = LENGTHS - 1;

/// The memory that a window touched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Different lines.
    pub lines: u64,
    /// Different pages of 4 KiB.
    pub pages: u64,
    /// Lines that no window before had touched.
    pub new_lines: u64,
    /// Pages that no window before had touched.
    pub new_pages: u64,
}

/// Measures working sets.
#[derive(Clone)]
pub struct WorkingSet {
    line_shift: u32,
    lines: Touched,
    pages: Touched,
    /// Steps of a window before any were joined, and how often they were.
    first_window: u64,
    joined: u32,
    windows_max: usize,
    /// Number of the window, before any were joined.
    now: u32,
    layout: StateLayout,
    groups: HashMap<u32, Groups>,
}

/// Lines, or pages.
#[derive(Clone)]
struct Touched {
    /// The window of the last use of each, plus one.
    last: LineTimes,
    /// Uses of each window, by length.
    uses: Vec<[u64; LENGTHS]>,
}

impl WorkingSet {
    /// Creates a measurement with lines of `line_bytes` (a power of two), and windows of
    /// `first_window` steps at first, of which there are at most `windows_max` (an even number).
    pub fn new(line_bytes: u32, first_window: u64, windows_max: usize) -> WorkingSet {
        let touched = || Touched { last: LineTimes::new(), uses: vec![[0; LENGTHS]; windows_max] };
        WorkingSet {
            line_shift: line_bytes.trailing_zeros(),
            lines: touched(),
            pages: touched(),
            first_window: first_window.max(1),
            joined: 0,
            windows_max,
            now: 0,
            layout: StateLayout::default(),
            groups: HashMap::new(),
        }
    }

    /// Moves the clock to `step`, which never decreases.
    #[inline]
    pub fn at(&mut self, step: u64) {
        self.now = (step / self.first_window).min(u32::MAX.into()) as u32;
        while (self.now >> self.joined) as usize >= self.windows_max {
            self.joined += 1;
            self.lines.join();
            self.pages.join();
        }
    }

    /// Begins a new address space: a program has been replaced.
    pub fn forget(&mut self) {
        self.lines.last = LineTimes::new();
        self.pages.last = LineTimes::new();
        self.groups.clear();
    }

    /// Takes records of one thread, in program order.
    pub fn records(&mut self, thread: u32, records: &[Record]) {
        let groups = self.groups.entry(thread).or_default();
        let mut groups = std::mem::take(groups);
        records.iter().for_each(|record| self.record(&mut groups, record));
        self.groups.insert(thread, groups);
    }

    fn record(&mut self, groups: &mut Groups, record: &Record) {
        let kind = record.code().kind();
        if !groups.is_open() && matches!(kind, RecordKind::Load | RecordKind::Store | RecordKind::Modify) {
            return self.touch(record.address, record.code().size_bytes());
        }
        match groups.push(record) {
            Step::Whole(_, complex) => {
                let layout = self.layout;
                // Touching a line again within a window changes nothing.
                complex.stretches(&layout, 1 << self.line_shift.min(PAGE_SHIFT), |references, _| {
                    for &(address, size_bytes, access) in references {
                        if access != Access::Prefetch {
                            self.touch(address, size_bytes);
                        }
                    }
                });
            }
            Step::DamagedBefore(_) => self.record(groups, record),
            Step::Plain | Step::Part | Step::Damaged(_) => {}
        }
    }

    #[inline]
    fn touch(&mut self, address: u64, size_bytes: u32) {
        let last = address.saturating_add(u64::from(size_bytes.max(1)) - 1);
        let (now, joined) = (self.now, self.joined);
        for line in address >> self.line_shift..=last >> self.line_shift {
            self.lines.touch(line, now, joined);
        }
        for page in address >> PAGE_SHIFT..=last >> PAGE_SHIFT {
            self.pages.touch(page, now, joined);
        }
    }

    /// Steps of a window.
    pub fn window(&self) -> u64 {
        self.first_window << self.joined
    }

    /// The windows from the start to the one that is open, which may be shorter.
    pub fn windows(&self) -> Vec<Window> {
        let open = (self.now >> self.joined) as usize;
        let window = |number: usize| {
            let [lines, pages] = [&self.lines, &self.pages].map(|touched| touched.uses[number]);
            let sum = |uses: &[u64; LENGTHS]| uses[self.joined as usize + 1..].iter().sum();
            Window {
                lines: sum(&lines),
                pages: sum(&pages),
                new_lines: lines[NEVER],
                new_pages: pages[NEVER],
            }
        };
        (0..=open).map(window).collect()
    }
}

impl Touched {
    #[inline]
    fn touch(&mut self, line: u64, now: u32, joined: u32) {
        let last = self.last.time(line);
        // The last window before 2^32 shares its number with the one before.
        let time = now.saturating_add(1);
        if *last != time {
            let length = match *last {
                0 => NEVER,
                before => (u32::BITS - ((before - 1) ^ (time - 1)).leading_zeros()) as usize,
            };
            *last = time;
            self.uses[(now >> joined) as usize][length] += 1;
        }
    }

    /// Joins neighbouring windows in pairs.
    fn join(&mut self) {
        for number in 0..self.uses.len() / 2 {
            let [mut one, two] = [self.uses[2 * number], self.uses[2 * number + 1]];
            one.iter_mut().zip(two).for_each(|(sum, more)| *sum += more);
            self.uses[number] = one;
        }
        let half = self.uses.len() / 2;
        self.uses[half..].fill([0; LENGTHS]);
    }
}
