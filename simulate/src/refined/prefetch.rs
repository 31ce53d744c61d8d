//! The prefetchers of a level.
//!
//! **Strides.** A table has 256 entries, chosen by the low bits of the site; another site takes an
//! entry over at once. Source: Chen and Baer 1995, without their transient states.
//!
//! **Streams.** A table has 32 pages, the least recently touched of which makes room. A page has
//! the last line that was touched, the direction of the last steps, and the furthest line that was
//! fetched. Source: Intel's optimization reference manual on the L2 streamer; the two steps before
//! it begins are assumed, and it does not slow down where many requests are outstanding.

use crate::{Prefetch, Prefetchers};

/// Prefetched lines lie in the same page, of this many bytes, as the touched line.
pub(super) const PREFETCH_PAGE_BYTES: u64 = 4096;

/// Entries of a table of strides.
const ENTRIES: usize = 256;

/// The number of equal distances in a row before a line is fetched.
const STEADY: u8 = 2;

/// Pages that a streamer follows.
const PAGES: usize = 32;

/// Steps in one direction before a stream is followed.
const STEPS: u8 = 2;

/// Lines that one touch fetches at most.
const LINES_AT_ONCE: usize = 2;

/// The greatest distance of a fetched line from the touched one.
const LINES_AHEAD: i64 = 20;

#[derive(Clone, Copy)]
struct Entry {
    site: u32,
    last: u64,
    stride: u64,
    equal: u8,
}

/// A page that a streamer follows; lines are numbered from the page's start.
#[derive(Clone, Copy)]
struct Stream {
    page: u64,
    last: i64,
    /// 1 or -1; 0 before the first step.
    direction: i64,
    steps: u8,
    /// The furthest line in this direction that was touched or fetched.
    furthest: i64,
    /// The time of the last touch.
    time: u64,
}

/// What a touch did in the level.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Hit,
    Miss,
}

/// The state of a level's prefetchers.
pub(super) struct Prefetching {
    kinds: Prefetchers,
    line_bytes: u64,
    strides: Vec<Entry>,
    streams: Vec<Stream>,
    time: u64,
}

impl Prefetching {
    pub(super) fn new(kinds: Prefetchers, line_bytes: u32) -> Prefetching {
        let table = |kind| if kinds.has(kind) { ENTRIES } else { 0 };
        Prefetching {
            kinds,
            line_bytes: line_bytes.into(),
            strides: vec![Entry { site: u32::MAX, last: 0, stride: 0, equal: 0 }; table(Prefetch::Stride)],
            streams: Vec::new(),
            time: 0,
        }
    }

    pub(super) fn is_none(&self) -> bool {
        self.kinds.is_none()
    }

    /// Notes a touch of `address`, and hands the addresses that are wanted to `fetch`. An
    /// instruction line has no `site`.
    pub(super) fn touched(
        &mut self,
        site: Option<u32>,
        address: u64,
        outcome: Outcome,
        mut fetch: impl FnMut(u64),
    ) {
        let line = address & !(self.line_bytes - 1);
        if self.kinds.has(Prefetch::NextLine) && outcome == Outcome::Miss {
            line.checked_add(self.line_bytes).into_iter().for_each(&mut fetch);
        }
        if let Some(site) = site.filter(|_| self.kinds.has(Prefetch::Stride)) {
            self.train(site, address).into_iter().for_each(&mut fetch);
        }
        if self.kinds.has(Prefetch::Streamer) && self.line_bytes < PREFETCH_PAGE_BYTES {
            self.stream(address, &mut fetch);
        }
        if self.kinds.has(Prefetch::AdjacentLine) && outcome == Outcome::Miss {
            fetch(line ^ self.line_bytes);
        }
    }

    /// Records that the site refers to `address`. Returns the next address once the distance is
    /// steady.
    fn train(&mut self, site: u32, address: u64) -> Option<u64> {
        let entry = &mut self.strides[site as usize % ENTRIES];
        if entry.site != site {
            *entry = Entry { site, last: address, stride: 0, equal: 0 };
            return None;
        }
        let stride = address.wrapping_sub(std::mem::replace(&mut entry.last, address));
        if stride == entry.stride {
            entry.equal = (entry.equal + 1).min(STEADY);
        } else {
            (entry.stride, entry.equal) = (stride, 0);
        }
        (entry.equal == STEADY && stride != 0).then(|| address.wrapping_add(stride))
    }

    /// The stream of a page; a new one where the page is not followed.
    fn stream_of(&mut self, page: u64, line: i64) -> &mut Stream {
        self.time += 1;
        let new = Stream { page, last: line, direction: 0, steps: 0, furthest: line, time: self.time };
        let place = match self.streams.iter().position(|stream| stream.page == page) {
            Some(place) => place,
            None if self.streams.len() < PAGES => {
                self.streams.push(new);
                self.streams.len() - 1
            }
            None => {
                let ages = self.streams.iter().enumerate().min_by_key(|(_, stream)| stream.time);
                let oldest = ages.map_or(0, |(place, _)| place);
                self.streams[oldest] = new;
                oldest
            }
        };
        self.streams[place].time = self.time;
        &mut self.streams[place]
    }

    fn stream(&mut self, address: u64, fetch: &mut impl FnMut(u64)) {
        let (page, line_bytes) = (address / PREFETCH_PAGE_BYTES, self.line_bytes);
        let lines = (PREFETCH_PAGE_BYTES / line_bytes) as i64;
        let line = (address % PREFETCH_PAGE_BYTES / line_bytes) as i64;
        let stream = self.stream_of(page, line);
        let direction = (line - stream.last).signum();
        if direction == 0 {
            return;
        }
        stream.last = line;
        // A turn begins a new stream at the line that was touched.
        if direction == stream.direction {
            stream.steps = (stream.steps + 1).min(STEPS);
        } else {
            (stream.direction, stream.steps, stream.furthest) = (direction, 1, line);
        }
        if (line - stream.furthest) * direction > 0 {
            stream.furthest = line;
        }
        if stream.steps < STEPS {
            return;
        }
        for _ in 0..LINES_AT_ONCE {
            let next = stream.furthest + direction;
            if (next - line).abs() > LINES_AHEAD || !(0..lines).contains(&next) {
                return;
            }
            stream.furthest = next;
            fetch(page * PREFETCH_PAGE_BYTES + next as u64 * line_bytes);
        }
    }
}
