//! How a reference is recorded in generated code.

/// How a reference is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RecordMode {
    /// Where the filter does not know its line.
    #[default]
    Checked,
    /// Where the filter does not know its line, without a branch.
    Branchless,
    /// Always.
    Always,
}
