//! How a reference is recorded in generated code.

/// How a reference is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RecordMode {
    /// If a check in line finds that the filter does not know its line.
    #[default]
    Checked,
    /// If the filter does not know its line, decided without a branch.
    Branchless,
    /// Always.
    Always,
}
