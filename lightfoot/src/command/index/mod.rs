//! `lightfoot index`: builds, queries and inspects index files of sorted keys.
//!
//! This module chooses the key type and turns errors into sentences; [`keys`] reads keys,
//! [`answer`] streams queries, and crate `search` does the rest.

mod answer;
mod build;
mod key_type;
mod keys;

use crate::cli::{DoctorFormat, Index, IndexAction, IndexInspect};
use anyhow::{Context, Result};
use key_type::{facts, named, with_key};
use present::output::print;
use search::{BytesIndex, KeyType};
use std::path::Path;

pub(super) fn run(options: &Index) -> Result<u8> {
    match &options.action {
        IndexAction::Build(options) => build::run(options)?,
        IndexAction::Query(options) => answer::run(options)?,
        IndexAction::Inspect(options) => inspect(options)?,
    }
    Ok(0)
}

fn inspect(options: &IndexInspect) -> Result<()> {
    let path = &options.index;
    let facts = facts(path)?;
    let plan = plan(path, facts.kind)?;
    match options.format {
        DoctorFormat::Text => print(&format!(
            "type     {}\n{plan}file     {} bytes, checksum {:016x} verified\n",
            facts.kind.name(),
            facts.bytes,
            facts.checksum
        )),
        DoctorFormat::Json => {
            let value = serde_json::json!({
                "type": facts.kind.name(),
                "layout": facts.layout.name(),
                "keys": facts.n,
                "bytes": facts.bytes,
                "checksum": format!("{:016x}", facts.checksum),
            });
            print(&(serde_json::to_string_pretty(&value).context("cannot write the answer")? + "\n"))
        }
    }
}

/// The plan of an index file, in words.
fn plan(path: &Path, kind: KeyType) -> Result<String> {
    with_key!(
        kind,
        K => search::Index::<K>::open(path).map(|index| index.explain()),
        BytesIndex::open(path).map(|index| index.explain())
    )
    .map_err(|error| named(path, &error))
}
