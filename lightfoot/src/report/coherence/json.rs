//! Coherent caches for programs: everything, as `docs/report-schema.json` describes it.

use super::{runs, CoherenceReport, Frame, LineRow, ObjectRow, PairRow, Place};
use crate::report::SCHEMA;
use ::objects::FieldPlace;
use coherence::{Counts, LineCounts, Touched};
use serde_json::{json, Value};

impl CoherenceReport {
    /// The report with its first `rows` rows of each table as JSON.
    pub fn json(&self, rows: usize) -> String {
        let ran = &self.ran;
        let level = |(name, size_bytes): &(String, u64)| json!({ "name": name, "size_bytes": size_bytes });
        let core = |(number, (threads, counts)): (usize, &(Vec<u32>, Counts))| json!({ "core": number, "threads": threads, "counts": counts_json(counts) });
        let lines = self.lines.iter().take(rows).map(|line| line_json(line, self.line_bytes));
        let mut report = json!({
            "schema": SCHEMA,
            "version": env!("CARGO_PKG_VERSION"),
            "kind": "coherence",
            "command": ran.command,
            "exit_status": ran.exit_status,
            "partial": ran.partial,
            "machine": ran.machine,
            "levels": ran.levels.iter().map(level).collect::<Vec<_>>(),
            "line_bytes": self.line_bytes,
            "quantum": ran.quantum,
            "instructions": ran.instructions,
            "wall_s": ran.wall_s,
            "totals": counts_json(&self.total),
            "cores": self.cores.iter().enumerate().map(core).collect::<Vec<_>>(),
            "lines": lines.collect::<Vec<_>>(),
            "objects": self.objects.iter().take(rows).map(object_json).collect::<Vec<_>>(),
            "pairs": self.pairs.iter().take(rows).map(pair_json).collect::<Vec<_>>(),
            "warnings": self.warnings,
        });
        if let Some(placed) = ran.placed {
            report["placed"] = json!(placed);
        }
        format!("{report:#}\n")
    }
}

fn counts_json(counts: &Counts) -> Value {
    json!({
        "loads": counts.loads,
        "stores": counts.stores,
        "atomics": counts.atomics,
        "atomic_transfers": counts.atomic_transfers,
        "l1d_misses": counts.misses(),
        "cold": counts.cold,
        "capacity": counts.capacity,
        "conflict": counts.conflict,
        "true_sharing": counts.true_sharing,
        "false_sharing": counts.false_sharing,
        "private_misses": counts.private_misses,
        "upgrades": counts.upgrades,
        "invalidations": counts.invalidations,
        "dirty_transfers": counts.dirty_transfers,
        "write_backs": counts.write_backs,
    })
}

fn line_counts_json(counts: &LineCounts) -> Value {
    json!({
        "true_sharing": counts.true_sharing,
        "false_sharing": counts.false_sharing,
        "upgrades": counts.upgrades,
        "invalidations": counts.invalidations,
        "dirty_transfers": counts.dirty_transfers,
    })
}

fn line_json(line: &LineRow, line_bytes: u32) -> Value {
    let touched = |touched: &Touched| {
        json!({
            "core": touched.core,
            "read": runs(touched.read, line_bytes),
            "written": runs(touched.written, line_bytes),
        })
    };
    let object = |object: &super::Lying| {
        let field = |field: &FieldPlace| json!({ "name": field.name, "address": field.address, "size_bytes": field.size_bytes });
        json!({
            "name": object.name,
            "address": object.address,
            "size_bytes": object.size_bytes,
            "fields": object.fields.iter().map(field).collect::<Vec<_>>(),
        })
    };
    json!({
        "address": line.address,
        "counts": line_counts_json(&line.counts),
        "touched": line.touched.iter().map(touched).collect::<Vec<_>>(),
        "objects": line.objects.iter().map(object).collect::<Vec<_>>(),
        "pairs": line.pairs.iter().map(pair_json).collect::<Vec<_>>(),
    })
}

fn object_json(object: &ObjectRow) -> Value {
    json!({ "name": object.name, "lines": object.lines, "counts": line_counts_json(&object.counts) })
}

fn pair_json(pair: &PairRow) -> Value {
    json!({
        "missed": place_json(&pair.missed),
        "took": place_json(&pair.took),
        "true_sharing": pair.true_sharing,
        "false_sharing": pair.false_sharing,
    })
}

fn place_json(place: &Place) -> Value {
    let frame = |frame: &Frame| {
        json!({
            "function": frame.function,
            "library": frame.library,
            "file": frame.file,
            "line": frame.line,
        })
    };
    place.frames.iter().map(frame).collect()
}
