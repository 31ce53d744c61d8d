//! The targets of metrics: places in the program's files, and in its memory while it runs.
//!
//! `lookup.rs` finds the places in files by name. The address of a file is known only when the
//! program maps it; then [`Targets::mapped`] returns addresses of the running program.

use super::libraries::by_name;
use super::metric::Named;
use anyhow::{bail, Result};
use instrument::Module;
use std::ops::Range;
use std::path::Path;
use symbol::Listing;

/// A metric to count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name in the trace.
    pub name: String,
    /// Its place in the files.
    pub place: MetricTarget,
}

/// A place in a file, or in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetricTarget {
    /// Instructions of file number `file`, each of which counts.
    Code {
        /// Index into [`Targets::files`].
        file: usize,
        /// In the file's own addresses.
        addresses: Vec<u64>,
    },
    /// Variables of file number `file`.
    Data {
        /// Index into [`Targets::files`].
        file: usize,
        /// In the file's own addresses.
        ranges: Vec<Range<u64>>,
    },
    /// Addresses of the running program.
    Memory(Range<u64>),
}

/// A metric in a running program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mapped {
    /// Each of these instructions counts.
    Code(usize, Vec<u64>),
    /// Each write to these addresses counts.
    Data(usize, Vec<Range<u64>>),
}

/// All metrics of a run.
#[derive(Debug, Default)]
pub struct Targets {
    /// The metrics, in the order of the trace's columns.
    pub columns: Vec<Column>,
    /// The program, then its libraries.
    pub files: Vec<Listing>,
    /// Notes for readers of the trace.
    pub notes: Vec<String>,
}

/// The files in which a name is searched.
pub(super) struct Scope {
    /// Indices into [`Targets::files`].
    pub(super) files: Vec<usize>,
    /// The end of a source file's path.
    pub(super) source: Option<String>,
}

impl Scope {
    pub(super) fn holds(&self, name: &symbol::Named) -> bool {
        let Some(wanted) = &self.source else { return true };
        name.source.as_ref().is_some_and(|source| Path::new(source).ends_with(wanted))
    }
}

impl Targets {
    /// Whether a metric needs the writes of the program.
    pub fn has_data(&self) -> bool {
        self.columns.iter().any(|column| !matches!(column.place, MetricTarget::Code { .. }))
    }

    /// The metrics that lie in `module`.
    pub fn mapped(&self, module: &Module) -> Vec<Mapped> {
        let Some(file) = self.files.iter().position(|file| file.path == module.path) else {
            return Vec::new();
        };
        let listing = &self.files[file];
        let mapped = |(index, column): (usize, &Column)| match &column.place {
            MetricTarget::Code { file: own, addresses } if *own == file => {
                let addresses = addresses.iter().filter_map(|&address| listing.mapped(module, address));
                Some(Mapped::Code(
                    index,
                    addresses.filter(|address| (module.start..module.end).contains(address)).collect(),
                ))
            }
            MetricTarget::Data { file: own, ranges } if *own == file => {
                let mapped = |range: &Range<u64>| {
                    let start = listing.mapped(module, range.start)?;
                    Some(start..start + (range.end - range.start))
                };
                Some(Mapped::Data(index, ranges.iter().filter_map(mapped).collect()))
            }
            _ => None,
        };
        self.columns.iter().enumerate().filter_map(mapped).collect()
    }

    pub(super) fn add(&mut self, name: String, place: MetricTarget) {
        if self.columns.iter().all(|column| column.name != name) {
            self.columns.push(Column { name, place });
        }
    }

    /// The files in which a name is searched. A library that is not among the files is read from
    /// its path.
    pub(super) fn scope(&mut self, named: &Named) -> Result<Scope> {
        let whole = |files| Ok(Scope { files, source: None });
        let Some(library) = &named.library else { return whole((0..self.files.len()).collect()) };
        let is = |file: &Listing| {
            let name = file.path.file_name().unwrap_or_default().to_string_lossy();
            file.path.ends_with(library) || name.split(".so").next() == Some(library)
        };
        // A file that the program links comes first. `libm` also names `libm.so.6`.
        if let Some(index) = self.files.iter().position(is) {
            return whole(vec![index]);
        }
        // Next come source files, which symbol tables name for static functions.
        let sources = |file: &Listing| {
            let of = |source: &String| Path::new(source).ends_with(library);
            file.names.iter().any(|name| name.source.as_ref().is_some_and(of))
        };
        let files: Vec<usize> = (0..self.files.len()).filter(|&file| sources(&self.files[file])).collect();
        if !files.is_empty() {
            return Ok(Scope { files, source: Some(library.clone()) });
        }
        // Last comes a library that the program does not link and may load later: by its path, or
        // by its name where the system looks for libraries.
        match Listing::read(Path::new(library))
            .or_else(|| by_name(library).and_then(|path| Listing::read(&path)))
        {
            Some(listing) => {
                // A symbolic link may lead to a file that is in the list already. Listing it twice
                // would count it twice.
                let known = self.files.iter().position(|file| file.path == listing.path);
                if known.is_none() {
                    self.files.push(listing);
                }
                whole(vec![known.unwrap_or(self.files.len() - 1)])
            }
            None => bail!(
                "there is no library or source file {library} among {}: give the path of a library that is loaded later",
                self.file_names(&(0..self.files.len()).collect::<Vec<_>>())
            ),
        }
    }

    /// Names of files.
    pub(super) fn file_names(&self, files: &[usize]) -> String {
        let names = files.iter().map(|&file| {
            self.files[file].path.file_name().unwrap_or_default().to_string_lossy().into_owned()
        });
        names.collect::<Vec<_>>().join(", ")
    }
}
