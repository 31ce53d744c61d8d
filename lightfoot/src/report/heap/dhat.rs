//! A heap in the format of DHAT's viewer, version 2. Source: the manual of DHAT, and its viewer,
//! which names the fields that it needs.

use super::{HeapReport, SiteRow};
use heap::Follows;
use serde_json::{json, Value};
use std::collections::HashMap;

/// Instructions below which the viewer calls a life short.
const SHORT_LIFE: u64 = 500;

impl HeapReport {
    /// The report as a file of DHAT.
    pub fn dhat(&self) -> String {
        // The table of frames has each text once; its first entry stands for the root.
        let mut table = vec!["[root]".to_owned()];
        let mut known = HashMap::new();
        let mut number = |frame: usize| {
            let text = self.frames[frame].of_valgrind();
            *known.entry(text).or_insert_with_key(|text| {
                table.push(text.clone());
                table.len() - 1
            })
        };
        let stacks: Vec<Vec<usize>> =
            self.sites.iter().map(|site| site.stack.iter().map(|&frame| number(frame)).collect()).collect();
        let points: Vec<Value> =
            self.sites.iter().zip(stacks).map(|(site, stack)| self.point(site, stack)).collect();
        let (mode, verb) = match self.follows {
            Follows::Blocks => ("heap", "Allocated"),
            Follows::Copies => ("copy", "Copied"),
            Follows::Nothing => ("ad-hoc", "Occurred"),
        };
        let has_blocks = self.follows == Follows::Blocks;
        let mut file = json!({
            "dhatFileVersion": 2,
            "mode": mode,
            "verb": verb,
            "bklt": has_blocks,
            "bkacc": has_blocks,
            "tu": "instrs",
            "Mtu": "Minstr",
            "cmd": self.ran.command.join(" "),
            "pid": self.ran.pid,
            "te": self.instructions,
            "pps": points,
            "ftbl": table,
        });
        match self.follows {
            Follows::Blocks => (file["tuth"], file["tg"]) = (SHORT_LIFE.into(), self.peak_at.into()),
            Follows::Copies => {}
            Follows::Nothing => {
                for (field, name) in [("bu", "unit"), ("bsu", "units"), ("bksu", "events")] {
                    file[field] = name.into();
                }
            }
        }
        file.to_string() + "\n"
    }

    /// A place.
    fn point(&self, site: &SiteRow, stack: Vec<usize>) -> Value {
        match self.follows {
            Follows::Blocks => point(site, stack),
            _ => json!({ "tb": site.bytes, "tbk": site.blocks, "fs": stack }),
        }
    }
}

/// A place that allocates.
fn point(site: &SiteRow, stack: Vec<usize>) -> Value {
    let mut point = json!({
        "tb": site.bytes,
        "tbk": site.blocks,
        "tl": site.lifetimes,
        "mb": site.most_bytes,
        "mbk": site.most_blocks,
        "gb": site.peak_bytes,
        "gbk": site.peak_blocks,
        "eb": site.end_bytes,
        "ebk": site.end_blocks,
        "rb": site.read_bytes,
        "wb": site.written_bytes,
        "fs": stack,
    });
    if !site.accesses.is_empty() {
        point["acc"] = run_lengths(&site.accesses).into();
    }
    point
}

/// Counts of which several equal ones are written as their negative number and the count.
fn run_lengths(counts: &[u32]) -> Vec<i64> {
    let mut out = Vec::new();
    for equal in counts.chunk_by(|one, next| one == next) {
        if equal.len() > 1 {
            out.push(-(equal.len() as i64));
        }
        out.push(equal[0].into());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::{tests::report, HeapFrame};
    use super::*;

    #[test]
    fn the_viewer_finds_the_fields_that_it_needs() {
        let file: Value = serde_json::from_str(&report().dhat()).unwrap();
        for field in [
            "dhatFileVersion",
            "mode",
            "verb",
            "bklt",
            "bkacc",
            "tu",
            "Mtu",
            "tuth",
            "cmd",
            "pid",
            "te",
            "tg",
        ] {
            assert!(!file[field].is_null(), "{field}");
        }
        assert_eq!(file["ftbl"][1], "0x1005: build (a.c:5)");
        assert_eq!(file["pps"][0]["fs"], json!([1, 2]));
        assert_eq!(file["pps"][0]["acc"], json!([-3, 1, 5, -4, 0]));
        assert_eq!((&file["pps"][0]["tb"], &file["pps"][0]["ebk"]), (&json!(16), &json!(1)));
    }

    #[test]
    fn copies_and_events_have_their_sums_alone() {
        for (follows, mode, unit) in
            [(Follows::Copies, "copy", &Value::Null), (Follows::Nothing, "ad-hoc", &json!("unit"))]
        {
            let text = HeapReport { follows, ..report() }.dhat();
            let file: Value = serde_json::from_str(&text).unwrap();
            assert_eq!((&file["mode"], &file["bu"], &file["bklt"]), (&json!(mode), unit, &json!(false)));
            assert_eq!(file["pps"], json!([{ "tb": 16, "tbk": 2, "fs": [1, 2] }]));
            assert!(file["tg"].is_null() && file["tuth"].is_null(), "{text}");
        }
    }

    #[test]
    fn code_without_source_names_its_file() {
        let frame = HeapFrame { file: None, line: None, ..report().frames[0].clone() };
        assert_eq!(frame.of_valgrind(), "0x1005: build (in /bin/a)");
    }
}
