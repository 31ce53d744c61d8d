//! The points: what counters measured, read from `points.csv`.
//!
//! The table holds figures of two public collections, which its first lines name with their
//! commits. The reader refuses a line that it does not understand whole: a figure that slid into
//! the next column would still look like a figure. Left out: quoting, which no field needs.

use anyhow::{bail, ensure, Context, Result};
use serde::{Deserialize, Serialize};

/// The table that ships.
const TABLE: &str = include_str!("points.csv");

const COLUMNS: &str =
    "id,source,machine,kernel,n,threads,prefetchers,l1l2_load,l1l2_evict,l2l3_load,l2l3_evict,\
                       l3mem_load,l3mem_evict,pycachesim_l1l2,pycachesim_l2l3,pycachesim_l3mem";

/// The links between levels: L1 and L2, L2 and L3, L3 and memory.
pub(super) const LINKS: usize = 3;
/// Their names, from the core outwards.
pub(super) const LINK_NAMES: [&str; LINKS] = ["L1-L2", "L2-L3", "L3-memory"];

/// The matrix-vector product's name.
pub(super) const PRODUCT: &str = "mvm";
/// How the names of streams begin.
const STREAMS: &str = "likwid-bench";

/// Bytes per update on a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Moved {
    /// Towards the core.
    pub(super) load: f64,
    /// Away from it.
    pub(super) evict: f64,
}

impl Moved {
    pub(super) fn total(self) -> f64 {
        self.load + self.evict
    }
}

/// What the source says of the prefetchers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Prefetchers {
    /// They were off.
    Off,
    /// They were on.
    On,
    /// The host's set-up turned them on; the table of figures itself does not say so.
    SetUp,
    /// Nothing is said.
    Unknown,
}

impl Prefetchers {
    fn named(name: &str) -> Option<Prefetchers> {
        match name {
            "off" => Some(Prefetchers::Off),
            "on" => Some(Prefetchers::On),
            "set-up" => Some(Prefetchers::SetUp),
            "unknown" => Some(Prefetchers::Unknown),
            _ => None,
        }
    }
}

/// One kernel of one size on one machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Point {
    pub(super) id: usize,
    /// `sc19` or `inspect`.
    pub(super) source: String,
    /// The source's name of the machine.
    pub(super) machine: String,
    pub(super) kernel: String,
    pub(super) n: usize,
    pub(super) threads: usize,
    pub(super) prefetchers: Prefetchers,
    /// By link; `None` was not measured.
    pub(super) measured: [Option<Moved>; LINKS],
    /// Load and evict together as pycachesim predicted them.
    pub(super) pycachesim: [Option<f64>; LINKS],
}

impl Point {
    /// Whether prefetchers ran, as far as anyone says.
    pub(super) fn prefetched(&self) -> bool {
        matches!(self.prefetchers, Prefetchers::On | Prefetchers::SetUp)
    }

    /// Whether its load and evict are each half of a sum, as that machine's counters give it.
    pub(super) fn shows_sums_alone(&self) -> bool {
        self.machine == "Zen_EPYC-7451"
    }

    /// Whether it is a stream over arrays that no cache holds.
    pub(super) fn is_stream(&self) -> bool {
        self.kernel.starts_with(STREAMS)
    }

    /// Why its errors do not count, by what the source says of its figures and not by the errors.
    pub(super) fn left_out(&self) -> Option<&'static str> {
        (self.kernel == PRODUCT && self.n < 400).then_some(
            "start-up and tails are inside the counted region, so that figures below n = 400 are rough",
        )
    }
}

/// All points.
///
/// # Errors
/// When the table has a line that is none of its own.
pub(super) fn points() -> Result<Vec<Point>> {
    read(TABLE)
}

fn read(table: &str) -> Result<Vec<Point>> {
    let lines = (1..).zip(table.lines());
    let mut lines = lines.filter(|(_, line)| !line.starts_with('#'));
    let head = lines.next().map_or("", |(_, line)| line);
    ensure!(head == COLUMNS, "the table of points begins with {head:?} instead of its columns: {COLUMNS}");
    let mut points: Vec<Point> = Vec::new();
    for (number, line) in lines {
        let read = point(line).with_context(|| format!("line {number} of the table of points: {line}"))?;
        ensure!(
            points.iter().all(|other| other.id != read.id),
            "line {number} of the table of points has the number {} of an earlier line; give it one of its own",
            read.id
        );
        points.push(read);
    }
    Ok(points)
}

fn point(line: &str) -> Result<Point> {
    let fields: Vec<&str> = line.split(',').collect();
    let expected = COLUMNS.split(',').count();
    ensure!(fields.len() == expected, "{} fields instead of {expected}", fields.len());
    let whole = |at: usize, what: &str| -> Result<usize> {
        let number = fields[at].parse().ok().filter(|&number: &usize| number > 0);
        number.with_context(|| format!("{what} {:?} is no whole number above 0", fields[at]))
    };
    let text = |at: usize, what: &str| -> Result<String> {
        ensure!(!fields[at].is_empty(), "{what} is empty");
        Ok(fields[at].to_owned())
    };
    let mut measured = [None; LINKS];
    for (link, moved) in measured.iter_mut().enumerate() {
        let (load, evict) = (figure(fields[7 + 2 * link])?, figure(fields[8 + 2 * link])?);
        *moved = match (load, evict) {
            (Some(load), Some(evict)) => Some(Moved { load, evict }),
            (None, None) => None,
            _ => bail!("{} has one of load and evict; give both or neither", LINK_NAMES[link]),
        };
    }
    let mut pycachesim = [None; LINKS];
    for (link, total) in pycachesim.iter_mut().enumerate() {
        *total = figure(fields[13 + link])?;
    }
    let prefetchers = Prefetchers::named(fields[6])
        .with_context(|| format!("prefetchers {:?}: expected off, on, set-up or unknown", fields[6]))?;
    Ok(Point {
        id: whole(0, "the number")?,
        source: text(1, "the source")?,
        machine: text(2, "the machine")?,
        kernel: text(3, "the kernel")?,
        n: whole(4, "the size")?,
        threads: whole(5, "the number of threads")?,
        prefetchers,
        measured,
        pycachesim,
    })
}

/// Bytes per update, or nothing where the field is empty.
fn figure(field: &str) -> Result<Option<f64>> {
    if field.is_empty() {
        return Ok(None);
    }
    let figure: f64 = field.parse().with_context(|| format!("{field:?} is no number"))?;
    ensure!(figure.is_finite() && figure >= 0.0, "{field} is no number of bytes");
    Ok(Some(figure))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "7,sc19,B,mvm,200,4,off,8.3,0.1,0.07,0.002,,,,,";

    fn table(lines: &[&str]) -> String {
        let lines: Vec<&str> = ["# where from", COLUMNS].iter().chain(lines).copied().collect();
        lines.join("\n")
    }

    #[test]
    fn the_table_has_the_points_of_five_processors_and_seven_kernels() {
        let points = points().unwrap();
        assert_eq!(points.len(), 148);
        let distinct = |of: fn(&Point) -> &str, moved: usize| {
            let measured = points.iter().filter(|point| point.measured[moved].is_some());
            present::order::set_of(measured.map(of)).len()
        };
        assert_eq!(distinct(|point| &point.kernel, 0), 7);
        // Broadwell with and without cluster on die, Skylake with and without sub-NUMA clusters.
        assert_eq!(distinct(|point| &point.machine, 0), 7);
        assert_eq!(points.iter().filter(|point| point.prefetchers == Prefetchers::Off).count(), 15);
    }

    #[test]
    fn a_line_is_read_field_by_field() {
        let points = read(&table(&[LINE])).unwrap();
        let point = &points[0];
        assert_eq!((point.id, point.n, point.threads, point.prefetched()), (7, 200, 4, false));
        let links = [Some(Moved { load: 8.3, evict: 0.1 }), Some(Moved { load: 0.07, evict: 0.002 }), None];
        assert_eq!(point.measured, links);
        assert_eq!(point.pycachesim, [None; LINKS]);
    }

    #[test]
    fn a_malformed_line_is_refused_and_named() {
        for (line, sentence) in [
            ("7,sc19,B,mvm,200,4,off,8.3,0.1,0.07,0.002,,,,", "15 fields instead of 16"),
            ("7,sc19,B,mvm,200,4,off,8.3,,0.07,0.002,,,,,", "L1-L2 has one of load and evict"),
            ("7,sc19,B,mvm,0,4,off,8.3,0.1,0.07,0.002,,,,,", "the size \"0\" is no whole number above 0"),
            ("x,sc19,B,mvm,200,4,off,8.3,0.1,0.07,0.002,,,,,", "the number \"x\""),
            ("7,sc19,,mvm,200,4,off,8.3,0.1,0.07,0.002,,,,,", "the machine is empty"),
            ("7,sc19,B,mvm,200,4,perhaps,8.3,0.1,0.07,0.002,,,,,", "expected off, on, set-up or unknown"),
            ("7,sc19,B,mvm,200,4,off,8.3,-0.1,0.07,0.002,,,,,", "-0.1 is no number of bytes"),
            ("7,sc19,B,mvm,200,4,off,8.3,NaN,0.07,0.002,,,,,", "NaN is no number of bytes"),
            ("7,sc19,B,mvm,200,4,off,8.3 ,0.1,0.07,0.002,,,,,", "\"8.3 \" is no number"),
        ] {
            let error = format!("{:#}", read(&table(&[line])).unwrap_err());
            assert!(error.contains(sentence) && error.contains("line 3"), "{error}");
        }
        let twice = read(&table(&[LINE, LINE])).unwrap_err().to_string();
        assert!(twice.contains("line 4") && twice.contains("number 7"), "{twice}");
        assert!(read("id,source\n").unwrap_err().to_string().contains("instead of its columns"));
    }
}
