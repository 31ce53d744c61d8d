//! What metrics mean in a program: looked up in its files before it starts, and placed in its
//! memory while it runs.
//!
//! Columns must be known before the first record, so names are resolved in the executable and in
//! the libraries that it asks for (and those that they ask for), as the dynamic linker would look
//! for them. A name that nobody has is refused with the nearest ones. Where a file lies is known
//! when the program maps it (`function.rs` says which functions a name stands for);
//! [`Targets::mapped`] then gives addresses of the running program.

use super::function::Scope;
use super::metric::{Named, Spec};
use anyhow::{bail, Result};
use instrument::Module;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use symbol::Listing;

/// Where libraries are looked for, behind what the file and the environment say.
const FOLDERS: &[&str] = &[
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
    "/usr/local/lib",
];

/// A metric that is to be counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// What the trace calls it.
    pub name: String,
    /// What it is in the files.
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
    /// By their place in the trace.
    pub columns: Vec<Column>,
    /// The program, then its libraries.
    pub files: Vec<Listing>,
    /// What a reader of the trace should know, in sentences.
    pub notes: Vec<String>,
}

impl Targets {
    /// Looks the metrics of a program up.
    ///
    /// # Errors
    /// When there is no such program, or a metric names what it does not have.
    pub fn new(program: &OsStr, specs: &[Spec]) -> Result<Targets> {
        let mut targets = Targets::default();
        if specs.is_empty() {
            return Ok(targets);
        }
        targets.files = files(&interpreted(instrument::locate(program)?)?);
        for spec in specs {
            match spec {
                Spec::Function(named) => targets.functions(named)?,
                Spec::Variable(named) => targets.variable(named)?,
                Spec::Line(file, line) => targets.line(file, *line)?,
                Spec::Addresses(range) => targets.add(spec.to_string(), MetricTarget::Memory(range.clone())),
            }
        }
        Ok(targets)
    }

    /// Whether writes must be watched.
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
                    addresses.filter(|a| (module.start..module.end).contains(a)).collect(),
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

    fn line(&mut self, name: &str, line: u32) -> Result<()> {
        let mut known = false;
        for file in 0..self.files.len() {
            let addresses = self.files[file].lines(name, line);
            known |= addresses.is_some();
            if let Some(addresses) = addresses.filter(|addresses| !addresses.is_empty()) {
                self.add(format!("line:{name}:{line}"), MetricTarget::Code { file, addresses });
                return Ok(());
            }
        }
        match known {
            true => bail!("there is no code for line {line} of {name}: another line of the statement may have it"),
            false => bail!("line:{name}:{line} needs debug information, and neither the program nor its libraries have any: compile with -g"),
        }
    }

    /// Where a name is looked for; a library that is not among the files is read from its path.
    pub(super) fn scope(&mut self, named: &Named) -> Result<Scope> {
        let whole = |files| Ok(Scope { files, source: None });
        let Some(library) = &named.library else { return whole((0..self.files.len()).collect()) };
        let is = |file: &Listing| {
            let name = file.path.file_name().unwrap_or_default().to_string_lossy();
            file.path.ends_with(library) || name.split(".so").next() == Some(library)
        };
        if let Some(index) = self.files.iter().position(is) {
            return whole(vec![index]);
        }
        let sources = |file: &Listing| {
            let of = |source: &String| Path::new(source).ends_with(library);
            file.names.iter().any(|name| name.source.as_ref().is_some_and(of))
        };
        let files: Vec<usize> = (0..self.files.len()).filter(|&file| sources(&self.files[file])).collect();
        if !files.is_empty() {
            return Ok(Scope { files, source: Some(library.clone()) });
        }
        match Listing::read(Path::new(library))
            .or_else(|| by_name(library).and_then(|path| Listing::read(&path)))
        {
            Some(listing) => {
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

/// The program that runs where `path` is a script.
fn interpreted(path: PathBuf) -> Result<PathBuf> {
    let mut head = Vec::new();
    std::fs::File::open(&path)?.take(256).read_to_end(&mut head)?;
    let Some(rest) = head.strip_prefix(b"#!") else { return Ok(path) };
    let line = rest.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    Ok(line.split_whitespace().next().map_or(path, PathBuf::from))
}

/// The program and its libraries, nearest first.
fn files(program: &Path) -> Vec<Listing> {
    let mut files: Vec<Listing> = Listing::read(program).into_iter().collect();
    let mut seen = HashSet::new();
    let mut next = 0;
    while next < files.len() {
        for name in files[next].needed.clone() {
            if !seen.insert(name.clone()) {
                continue;
            }
            let beside =
                files[next].path.parent().map(|folder| folder.join(&name)).filter(|path| path.exists());
            let found = by_name(&name).or(beside).and_then(|path| Listing::read(&path));
            files.extend(found.filter(|found| files.iter().all(|file| file.path != found.path)));
        }
        next += 1;
    }
    files
}

/// A library where the dynamic linker looks.
fn by_name(name: &str) -> Option<PathBuf> {
    let own = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let folders = std::env::split_paths(&own).filter(|folder| !folder.as_os_str().is_empty());
    let folders: Vec<PathBuf> = folders.chain(FOLDERS.iter().map(PathBuf::from)).collect();
    folders.iter().map(|folder| folder.join(name)).find(|path| path.exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_in_the_program_and_in_its_libraries() {
        let program = std::env::current_exe().unwrap();
        let look = |text: &str| Targets::new(program.as_os_str(), &[Spec::parse(text).unwrap()]);
        let found = look("fn:getenv").unwrap();
        let MetricTarget::Code { file, addresses } = &found.columns[0].place else { panic!() };
        assert!(*file > 0 && addresses.len() == 1);
        let refused = look("fn:getenw").unwrap_err().to_string();
        assert!(refused.contains("did you mean") && refused.contains("getenv"), "{refused}");
        assert!(look("fn:libc!malloc").unwrap().columns[0].name == "fn:libc!malloc");
        assert!(look("fn:memcpy").unwrap_err().to_string().contains("IFUNC"));
        assert!(look("fn:nosuchlib!x").unwrap_err().to_string().contains("nosuchlib"));
        assert!(look("var:environ").unwrap().has_data());
    }
}
