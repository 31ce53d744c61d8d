//! Options of `cache --by object`.

use clap::Args;

/// Options for the rows of data: objects, types and fields.
#[derive(Debug, Args)]
pub struct ObjectOptions {
    /// With --by object, type or field: tell places of allocation apart by this many calls
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = frames)]
    pub frames: usize,
    /// With --by object, type or field: also count loads and stores, and the bytes used of each
    /// line that was fetched; every reference is then recorded, so the run takes some five times as
    /// long
    #[arg(long)]
    pub accesses: bool,
    /// With --by field: one page about this type: its fields in their order with accesses and
    /// misses, holes, fields that are used together, and a better order; implies --accesses
    #[arg(long = "type", value_name = "NAME")]
    pub type_name: Option<String>,
}

impl ObjectOptions {
    /// Whether every reference is wanted.
    pub fn all_references(&self) -> bool {
        self.accesses || self.type_name.is_some()
    }
}

/// A number of frames.
fn frames(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|count| (1..=100).contains(count)).ok_or("expected 1 to 100".into())
}
