//! What can be wrong with a machine description. Each message names the place and what is accepted
//! there.

use std::fmt;
#[cfg(feature = "toml")]
use std::path::Path;
use std::path::PathBuf;

/// Why a machine cannot be described or read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The file could not be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        reason: String,
    },
    /// The text is not TOML.
    Syntax {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What the parser says.
        reason: String,
    },
    /// A field is missing, unknown or has an impossible value.
    Field {
        /// The file; `None` where the machine did not come from one.
        path: Option<PathBuf>,
        /// Line, from 1; `None` where there is no text.
        line: Option<usize>,
        /// Path of the field: `cache.L1D.ways`.
        field: String,
        /// What is wrong, with the value.
        problem: String,
        /// What would be accepted.
        expected: String,
    },
    /// An override cannot be read.
    Override {
        /// The level that was named.
        level: String,
        /// The text that was given.
        text: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Neither `host`, nor a preset, nor a file.
    Unknown {
        /// What was asked for.
        name: String,
        /// The names of all presets.
        presets: Vec<&'static str>,
    },
}

impl Error {
    /// This error with `file` as its place.
    #[cfg(feature = "toml")]
    pub(crate) fn in_file(self, file: &Path) -> Error {
        match self {
            Error::Field { line, field, problem, expected, .. } => {
                Error::Field { path: Some(file.to_path_buf()), line, field, problem, expected }
            }
            other => other,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Unreadable { path, reason } => write!(f, "{}: cannot be read: {reason}", path.display()),
            Error::Syntax { path, line, reason } => {
                write!(f, "{}:{line}: not valid TOML: {reason}", path.display())
            }
            Error::Field { path, line, field, problem, expected } => {
                // As compilers do, so that editors find the place.
                match (path, line) {
                    (Some(path), Some(line)) => write!(f, "{}:{line}: ", path.display())?,
                    (Some(path), None) => write!(f, "{}: ", path.display())?,
                    _ => (),
                }
                write!(f, "{field}: {problem}; expected {expected}")
            }
            Error::Override { level, text, problem } => {
                write!(
                    f,
                    "--{level} {text}: {problem}; expected SIZE,WAYS,LINE (for example 32K,8,64), full for all \
                     ways, then words such as plru, inclusive or stride; or none"
                )
            }
            Error::Unknown { name, presets } => {
                write!(
                    f,
                    "no machine \"{name}\": expected host, a TOML file, or one of {}",
                    presets.join(", ")
                )
            }
        }
    }
}

impl std::error::Error for Error {}
