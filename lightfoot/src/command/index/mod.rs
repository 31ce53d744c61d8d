//! `lightfoot index`: index files of sorted keys, built from text or binary keys, queried from a pipe, inspected.
//!
//! What is here chooses the key type and says what is wrong in one sentence; [`keys`] reads keys, [`answer`] streams queries, and `search` does the rest.

mod answer;
mod build;
mod keys;

use crate::cli::{DoctorFormat, Index, IndexAction, IndexInspect};
use crate::exit::{Failure, USAGE};
use crate::report::output::print;
use anyhow::{anyhow, Context, Result};
use search::{BytesIndex, Inspection, KeyType, KEY_TYPES};
use std::path::Path;

pub(super) fn run(options: &Index) -> Result<u8> {
    match &options.action {
        IndexAction::Build(options) => build::run(options)?,
        IndexAction::Query(options) => answer::run(options)?,
        IndexAction::Inspect(options) => inspect(options)?,
    }
    Ok(0)
}

/// Calls `$body` with `$key` standing for the Rust type of a key type; `bytes` and what the command does not take go to `$other`.
macro_rules! with_key {
    ($kind:expr, $key:ident => $body:expr, $other:expr) => {
        with_key!($kind, $key => $body, $other; U32 u32, I32 i32, U64 u64, I64 i64, F32 f32, F64 f64, U128 u128)
    };
    ($kind:expr, $key:ident => $body:expr, $other:expr; $($name:ident $type:ty),*) => {
        match $kind {
            $(KeyType::$name => {
                type $key = $type;
                $body
            })*
            _ => $other,
        }
    };
}
use with_key;

/// The key type called `name`.
fn kind(name: &str) -> Result<KeyType> {
    KeyType::from_name(name).ok_or_else(|| {
        let known: Vec<&str> = KEY_TYPES.iter().map(|(_, name)| *name).collect();
        usage(format!("there is no key type {name}: the types are {}", known.join(", ")))
    })
}

fn usage(sentence: String) -> anyhow::Error {
    Failure { status: USAGE, sentence }.into()
}

/// What a file holds, its checksum verified.
fn facts(path: &Path) -> Result<Inspection> {
    search::inspect_file(path).map_err(|error| named(path, &error))
}

/// An index error with the file's name.
fn named(path: &Path, error: &search::Error) -> anyhow::Error {
    anyhow!("{}: {error}", path.display())
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
