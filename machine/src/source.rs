//! Where a field's value comes from.
//!
//! One list per machine, keyed by a path such as `cache.L1D.penalty_cycles`; the longest entry that
//! is a prefix of the asked path answers. A list and not a wrapper around every field, because
//! consumers compute with the values and only reports show the origin.

#[cfg(feature = "toml")]
use serde::Serialize;

/// How a value is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "toml", derive(Serialize))]
#[cfg_attr(feature = "toml", serde(rename_all = "lowercase"))]
pub enum Origin {
    /// Timed on the machine.
    Measured,
    /// Said by the machine itself: sysfs, procfs or CPUID.
    Reported,
    /// Written down by somebody: a file, a preset, an option of the command line.
    Declared,
    /// A default for lack of anything better.
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
    /// How it is known.
    pub origin: Origin,
    /// From where, or why it had to be assumed.
    pub note: String,
}

impl FieldSource {
    pub(crate) fn new(field: impl Into<String>, origin: Origin, note: impl Into<String>) -> FieldSource {
        FieldSource { field: field.into(), origin, note: note.into() }
    }

    /// Whether this entry speaks about `path`.
    pub(crate) fn covers(&self, path: &str) -> bool {
        path.strip_prefix(self.field.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }
}
