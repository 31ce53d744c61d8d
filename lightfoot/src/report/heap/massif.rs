//! A heap in the format of Massif, for `ms_print` and massif-visualizer. Source: what `ms_print`
//! reads.

use super::HeapReport;
use heap::{Snapshot, SnapshotKind};
use present::order::SortRows;
use std::cmp::Reverse;
use std::fmt::Write;

/// What Massif's options say about trees.
#[derive(Clone, Debug)]
pub struct MassifShape {
    /// The options, as the file repeats them.
    pub described: String,
    /// Levels of a tree.
    pub depth: usize,
    /// The percents of a snapshot below which places share a line.
    pub threshold_percent: f64,
    /// Functions that allocate for others, by their demangled names.
    pub allocating: Vec<String>,
}

/// A place and its bytes: frames, the innermost first.
type Entry<'a> = (&'a [usize], u64);

impl HeapReport {
    /// The report as a file of Massif.
    pub fn massif(&self, shape: &MassifShape) -> String {
        let command = self.ran.command.join(" ");
        let mut out = format!("desc: {}\ncmd: {command}\ntime_unit: i\n", shape.described);
        for (number, snapshot) in self.snapshots.iter().enumerate() {
            let Snapshot { at, bytes, extra_bytes, kind, sites } = snapshot;
            let tree = match kind {
                SnapshotKind::Plain => "empty",
                SnapshotKind::Detailed => "detailed",
                SnapshotKind::Peak => "peak",
            };
            let _ = writeln!(
                out,
                "#-----------\nsnapshot={number}\n#-----------\ntime={at}\nmem_heap_B={bytes}\n\
                 mem_heap_extra_B={extra_bytes}\nmem_stacks_B=0\nheap_tree={tree}"
            );
            if *kind == SnapshotKind::Plain {
                continue;
            }
            let entry = |&(site, bytes): &(u32, u64)| (self.callers(site as usize, shape), bytes);
            let mut entries: Vec<Entry<'_>> = sites.iter().map(entry).collect();
            entries.sort_rows(Ord::cmp);
            let least = shape.threshold_percent / 100.0 * snapshot.total_bytes() as f64;
            let name = "(heap allocation functions) malloc/new/new[], --alloc-fns, etc.";
            let mut tree = Tree { report: self, threshold_percent: shape.threshold_percent, least, out };
            tree.node(0, (name, *bytes), &entries);
            out = tree.out;
        }
        out
    }

    /// The frames of a place that a tree shows.
    fn callers(&self, site: usize, shape: &MassifShape) -> &[usize] {
        let stack = &self.sites[site].stack[..];
        let allocates = |frame: &&usize| shape.allocating.contains(&self.frames[**frame].function);
        let allocating = stack.iter().take_while(allocates).count();
        // A place has a caller, even where all of its functions allocate for others.
        let stack = &stack[allocating.min(stack.len().saturating_sub(1))..];
        &stack[..stack.len().min(shape.depth)]
    }
}

/// The places of a snapshot, as a tree of callers.
struct Tree<'a> {
    report: &'a HeapReport,
    threshold_percent: f64,
    /// Bytes below which places share a line.
    least: f64,
    out: String,
}

impl Tree<'_> {
    /// Writes a node and what is below it. Entries are sorted and have their first `level` frames
    /// in common.
    fn node(&mut self, level: usize, (name, bytes): (&str, u64), entries: &[Entry<'_>]) {
        // A place whose stack ends here has no children.
        let deeper = entries.iter().position(|(stack, _)| stack.len() > level).unwrap_or(entries.len());
        let (mut children, mut places, mut rest) = (Vec::new(), 0, 0);
        for group in entries[deeper..].chunk_by(|one, other| one.0[level] == other.0[level]) {
            let bytes: u64 = group.iter().map(|entry| entry.1).sum();
            if bytes as f64 >= self.least {
                children.push((bytes, group));
            } else {
                places += 1;
                rest += bytes;
            }
        }
        children.sort_rows_by_key(|child| Reverse(child.0));
        let lines = children.len() + usize::from(places > 0);
        let _ = writeln!(self.out, "{:level$}n{lines}: {bytes} {name}", "");
        for (bytes, group) in children {
            let name = self.report.frames[group[0].0[level]].of_valgrind();
            self.node(level + 1, (&name, bytes), group);
        }
        if places > 0 {
            let (inner, percent) = (level + 1, self.threshold_percent);
            let plural = if places == 1 { "" } else { "s" };
            let _ = writeln!(
                self.out,
                "{:inner$}n0: {rest} in {places} place{plural}, all below massif's threshold ({percent:.2}%)",
                ""
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{tests, HeapFrame, SiteRow};
    use super::*;

    #[test]
    fn trees_join_callers_and_leave_out_what_is_small() {
        let mut report = tests::report();
        let first = report.frames[0].clone();
        let frame =
            |function: &str, line| HeapFrame { function: function.into(), line: Some(line), ..first.clone() };
        report.frames.extend([frame("wrap", 11), frame("other", 12)]);
        let site = |stack: &[usize]| SiteRow { stack: stack.to_vec(), ..SiteRow::default() };
        report.sites = vec![site(&[2, 0, 1]), site(&[0, 3, 1]), site(&[1]), site(&[3, 1])];
        let sites = vec![(0, 600), (1, 300), (2, 90), (3, 2)];
        let snapshot = |kind, sites| Snapshot { at: 5, bytes: 992, extra_bytes: 8, kind, sites };
        report.snapshots =
            vec![snapshot(SnapshotKind::Plain, Vec::new()), snapshot(SnapshotKind::Peak, sites)];
        let shape = MassifShape {
            described: "--depth=2".into(),
            depth: 2,
            threshold_percent: 1.0,
            allocating: vec!["wrap".into()],
        };
        let text = report.massif(&shape);
        let (head, tree) = text.split_once("heap_tree=peak\n").unwrap();
        assert!(head.starts_with("desc: --depth=2\ncmd: a\ntime_unit: i\n#-----------\nsnapshot=0\n"));
        assert!(head.ends_with("time=5\nmem_heap_B=992\nmem_heap_extra_B=8\nmem_stacks_B=0\n"));
        let expected = "\
n3: 992 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.
 n2: 900 0x1005: build (a.c:5)
  n0: 600 0x1009: main (a.c:9)
  n0: 300 0x1005: other (a.c:12)
 n0: 90 0x1009: main (a.c:9)
 n0: 2 in 1 place, all below massif's threshold (1.00%)
";
        assert_eq!(tree, expected);
    }
}
