//! The miss curve, and memory touched over time, as parts of a report.
//!
//! Both come from the stream from which the hierarchy is simulated. The caches of a curve have the
//! line length of the machine's first level and, if possible, its number of sets; the first level
//! is then a point of the curve, with the misses that the report has for it. Larger caches have
//! more ways. So the curve shows the misses of a larger first level, and not those of an outer
//! level with another number of sets.

use crate::run::hierarchy::Hierarchy;
use event::Stream;
use present::number::{grouped, rate};
use serde::Serialize;
use simulate::distance::{CurveSizes, MissCurve, Window, WorkingSet};

/// Data misses by size; each thread has a cache of its own.
#[derive(Clone, Debug, Serialize)]
pub struct Curve {
    /// Bytes of a line.
    pub line_bytes: u32,
    /// Sets of every cache; replacement is least recently used, stores allocate.
    pub sets: u64,
    /// The points, by ascending size.
    pub points: Vec<Point>,
}

/// The misses of one cache size.
#[derive(Clone, Debug, Serialize)]
pub struct Point {
    /// Bytes of the cache.
    pub size_bytes: u64,
    /// Lines of a set.
    pub ways: u64,
    /// The machine's level of that size, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// Loads that miss.
    pub load_misses: u64,
    /// Stores that miss.
    pub store_misses: u64,
}

impl Point {
    /// Misses of loads and stores.
    pub fn misses(&self) -> u64 {
        self.load_misses + self.store_misses
    }
}

impl Curve {
    /// Makes the curve from the misses of `sizes`, which were measured beside `hierarchy`.
    pub fn new(hierarchy: &Hierarchy, sizes: &CurveSizes, found: &MissCurve) -> Curve {
        // A run without records has no curve.
        let misses = |index: usize| found.points.get(index).map(|point| point.1).unwrap_or_default();
        let points = sizes.bytes().zip(sizes.ways()).enumerate().map(|(index, (size_bytes, &ways))| Point {
            size_bytes,
            ways,
            level: hierarchy.level_of(size_bytes),
            load_misses: misses(index).loads,
            store_misses: misses(index).stores,
        });
        Curve { line_bytes: sizes.line_bytes(), sets: sizes.sets(), points: points.collect() }
    }

    /// The curve as text: sizes, misses, and their ratios to `references`.
    pub(super) fn text(&self, references: u64) -> String {
        let shape = match self.sets {
            1 => "fully associative".to_owned(),
            sets => format!("{} sets", grouped(sets)),
        };
        let mut out = format!(
            "\n  data misses by size: LRU, {shape}, lines of {} B, of loads and stores\n",
            self.line_bytes
        );
        let width = self.points.iter().map(|point| grouped(point.misses()).len()).max().unwrap_or(0);
        for point in &self.points {
            let misses = point.misses();
            let level = point.level.as_ref().map(|level| format!("  {level}")).unwrap_or_default();
            out += &format!(
                "  {:>9}  {:>width$}  {:>8}{level}\n",
                size(point.size_bytes),
                grouped(misses),
                rate(misses, references)
            );
        }
        out
    }
}

/// A size in words, as in `48 KiB`; sizes are whole numbers of their unit.
pub fn size(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units.into_iter().find(|(shift, _)| bytes >= 1 << shift && bytes.is_multiple_of(1 << shift));
    match unit {
        Some((shift, name)) => format!("{} {name}", bytes >> shift),
        None => format!("{bytes} B"),
    }
}

/// Memory touched in each slice of time.
#[derive(Clone, Debug)]
pub struct Touched {
    /// Bytes of a line.
    pub line_bytes: u32,
    /// Instructions of a slice; the last may be shorter.
    pub slice_instructions: u64,
    /// The most lines that a slice may have touched without being counted, because the inline
    /// filter drops uses of its sets' last lines.
    pub uncounted_lines_max: u64,
    /// The memory touched in each slice.
    pub slices: Vec<Window>,
}

impl Touched {
    /// Makes it from the working set that was measured beside `hierarchy` on `stream`.
    pub fn new(touched: &WorkingSet, hierarchy: &Hierarchy, stream: &Stream) -> Touched {
        let uncounted_lines_max = match stream {
            Stream::Filtered(filter) => u64::from(filter.data.sets),
            _ => 0,
        };
        Touched {
            line_bytes: hierarchy.levels.data.line_bytes,
            slice_instructions: touched.window(),
            uncounted_lines_max,
            slices: touched.windows(),
        }
    }
}
