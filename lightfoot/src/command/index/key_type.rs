//! The types of keys, by name and as Rust types, and the inspection of index files.

use anyhow::{anyhow, Result};
use present::exit::refused;
use search::{Inspection, KeyType, KEY_TYPES};
use std::path::Path;

/// Calls `$body` with `$key` standing for the Rust type of a key type; `bytes`, and types that the
/// command does not take, go to `$other`.
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
pub(super) use with_key;

/// The key type named `name`.
pub(super) fn kind(name: &str) -> Result<KeyType> {
    KeyType::from_name(name).ok_or_else(|| {
        let known: Vec<&str> = KEY_TYPES.iter().map(|(_, name)| *name).collect();
        refused(format!("there is no key type {name}: the types are {}", known.join(", ")))
    })
}

/// Inspects an index file and verifies its checksum.
pub(super) fn facts(path: &Path) -> Result<Inspection> {
    search::inspect_file(path).map_err(|error| named(path, &error))
}

/// Adds the file's name to an index error.
pub(super) fn named(path: &Path, error: &search::Error) -> anyhow::Error {
    anyhow!("{}: {error}", path.display())
}
