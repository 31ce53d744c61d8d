//! Errors: keys that are not sorted, and files that are no valid index. Queries cannot fail.

use alloc::string::String;
use core::fmt;

use crate::format::{KeyType, VERSION};

/// Why an index could not be built, written or opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// Keys promised sorted are not: the key at this position is smaller than the one before it.
    Unsorted {
        /// Zero-based position of the first key that is too small.
        position: usize,
    },
    /// The requested layout cannot hold these keys.
    Refused {
        /// The layout's name.
        layout: &'static str,
        /// Why, as a clause.
        reason: &'static str,
    },
    /// This machine lacks the requested instruction set.
    NoSuchIsa {
        /// The set's name.
        isa: &'static str,
    },
    /// The bytes do not begin like an index file.
    Foreign,
    /// The file was written by a newer version of this library.
    Newer {
        /// The file's format version.
        version: u32,
    },
    /// The file holds keys of another type.
    OtherType {
        /// What the file holds.
        found: KeyType,
        /// What was asked for.
        expected: KeyType,
    },
    /// The file holds values of another type.
    OtherValues {
        /// The name of the type that the file holds; empty where it holds no values.
        found: String,
        /// The name of the type that was asked for.
        expected: &'static str,
    },
    /// The file ends before what its header promises.
    Truncated {
        /// Bytes that the header promises.
        expected: u64,
        /// Bytes that are there.
        found: u64,
    },
    /// The bytes do not start on a 64-byte boundary, so they cannot be searched where they stand.
    Misaligned,
    /// The file's contents contradict its header or its checksum.
    Damaged {
        /// What was found wrong.
        what: &'static str,
    },
    /// Files are little endian, and this machine is not.
    BigEndian,
    /// The system refused to read or write.
    #[cfg(feature = "std")]
    Io(std::io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Unsorted { position } => {
                write!(
                    f,
                    "keys are not sorted: the key at position {position} is smaller than the one before it"
                )
            }
            Error::Refused { layout, reason } => {
                write!(f, "layout {layout} cannot hold these keys: {reason}")
            }
            Error::NoSuchIsa { isa } => write!(f, "this machine has no {isa}"),
            Error::Foreign => write!(f, "not an index file"),
            Error::Newer { version } => {
                write!(f, "index file of format {version}, newer than this program understands ({})", VERSION)
            }
            Error::OtherType { found, expected } => {
                write!(f, "index file holds {} keys, not {}", found, expected)
            }
            Error::OtherValues { found, expected } if found.is_empty() => {
                write!(f, "index file holds no values beside its keys, and {expected} were asked for")
            }
            Error::OtherValues { found, expected } => {
                write!(f, "index file holds values of type {found}, not {expected}")
            }
            Error::Truncated { expected, found } => {
                write!(f, "index file is truncated: {found} bytes of {expected}")
            }
            Error::Misaligned => write!(f, "index bytes do not start on a 64-byte boundary"),
            Error::Damaged { what } => write!(f, "index file is damaged: {what}"),
            Error::BigEndian => write!(f, "index files are little endian and this machine is not"),
            #[cfg(feature = "std")]
            Error::Io(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for Error {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            // The message is the system's: a printed chain would repeat it.
            #[cfg(feature = "std")]
            Error::Io(error) => error.source(),
            _ => None,
        }
    }
}

#[cfg(feature = "std")]
impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Error {
        Error::Io(error)
    }
}
