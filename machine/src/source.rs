//! The origins of a machine's values.
//!
//! A machine has one list of origins. Its keys are paths such as `cache.L1D.penalty_cycles`; the
//! longest key that is a prefix of a field's path applies. It is a list, and not a wrapper around
//! every field, because computations need the values and only reports show the origins.

#[cfg(feature = "toml")]
use serde::Serialize;

/// How the value of a field became known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "toml", derive(Serialize))]
#[cfg_attr(feature = "toml", serde(rename_all = "lowercase"))]
pub enum Origin {
    /// It was timed on the machine.
    Measured,
    /// The machine reported it by sysfs, procfs or CPUID.
    Reported,
    /// A file, a preset or an option of the command line declares it.
    Declared,
    /// It is a default, because the machine reports nothing.
    Assumed,
}

impl Origin {
    /// All origins, with their names in TOML.
    #[cfg(feature = "toml")]
    pub(crate) const NAMES: &'static [(&'static str, Origin)] = &[
        ("measured", Origin::Measured),
        ("reported", Origin::Reported),
        ("declared", Origin::Declared),
        ("assumed", Origin::Assumed),
    ];
}

/// The origin of a field, or of all fields whose path starts with `field`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "toml", derive(Serialize))]
pub struct FieldSource {
    /// Path: `features`, `cache.L1D`, `cache.L1D.penalty_cycles`, `tlb.L2 TLB`, `cycle`. Whole
    /// segments count.
    pub field: String,
    /// How the value became known.
    pub origin: Origin,
    /// The exact source, or the reason for an assumption.
    pub note: String,
}

impl FieldSource {
    pub(crate) fn new(field: impl Into<String>, origin: Origin, note: impl Into<String>) -> FieldSource {
        FieldSource { field: field.into(), origin, note: note.into() }
    }

    /// Whether the entry applies to the field `path`.
    pub(crate) fn covers(&self, path: &str) -> bool {
        path.strip_prefix(self.field.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }
}
