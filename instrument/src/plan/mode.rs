//! How a reference is recorded in generated code.

/// How a reference is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RecordMode {
    /// An inline check compares it with the filter; a branch skips the record on a filter hit.
    #[default]
    Checked,
    /// The record is always written; the ring's position advances only on a filter miss, without a
    /// branch.
    Branchless,
    /// Every reference is recorded, without a check.
    Always,
}
