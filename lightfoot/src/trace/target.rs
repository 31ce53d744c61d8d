//! What metrics mean in a program: looked up in its files before it starts, and placed in its memory while it runs.
//!
//! Columns must be known before the first record, so names are resolved in the executable and in the libraries that it asks for (and those that they ask
//! for), as the dynamic linker would look for them. A name that nobody has is refused with the nearest ones. Where a file lies is known when the
//! program maps it; [`Targets::mapped`] then gives addresses of the running program.

use super::metric::{matches, Named, Spec};
use crate::symbol::{demangle, Kind, Listing};
use anyhow::{bail, Result};
use instrument::Module;
use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

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
    pub place: Place,
}

/// A place in a file, or in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Instructions of file number `file`, each of which counts.
    Code {
        /// Index into [`Targets::files`].
        file: usize,
        /// In the file's own addresses.
        addresses: Vec<u64>,
    },
    /// A variable of file number `file`.
    Data {
        /// Index into [`Targets::files`].
        file: usize,
        /// In the file's own addresses.
        range: Range<u64>,
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
    Data(usize, Range<u64>),
}

/// All metrics of a run.
#[derive(Debug, Default)]
pub struct Targets {
    /// By their place in the trace.
    pub columns: Vec<Column>,
    /// The program, then its libraries.
    pub files: Vec<Listing>,
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
                Spec::Addresses(range) => targets.add(spec.to_string(), Place::Memory(range.clone())),
            }
        }
        Ok(targets)
    }

    /// Whether writes must be watched.
    pub fn has_data(&self) -> bool {
        self.columns.iter().any(|column| !matches!(column.place, Place::Code { .. }))
    }

    /// The metrics that lie in `module`.
    pub fn mapped(&self, module: &Module) -> Vec<Mapped> {
        let Some(file) = self.files.iter().position(|file| file.path == module.path) else {
            return Vec::new();
        };
        let listing = &self.files[file];
        let mapped = |(index, column): (usize, &Column)| match &column.place {
            Place::Code { file: own, addresses } if *own == file => {
                let addresses = addresses.iter().filter_map(|&address| listing.mapped(module, address));
                Some(Mapped::Code(
                    index,
                    addresses.filter(|a| (module.start..module.end).contains(a)).collect(),
                ))
            }
            Place::Data { file: own, range } if *own == file => {
                let start = listing.mapped(module, range.start)?;
                Some(Mapped::Data(index, start..start + (range.end - range.start)))
            }
            _ => None,
        };
        self.columns.iter().enumerate().filter_map(mapped).collect()
    }

    fn add(&mut self, name: String, place: Place) {
        if self.columns.iter().all(|column| column.name != name) {
            self.columns.push(Column { name, place });
        }
    }

    fn functions(&mut self, named: &Named) -> Result<()> {
        let among = self.libraries(named)?;
        let is = |kind| matches!(kind, Kind::Function | Kind::Indirect);
        if named.is_pattern() {
            let among = if named.library.is_some() { &among[..] } else { &among[..1] };
            return self.pattern(named, among);
        }
        for &file in &among {
            let own = |n: &&crate::symbol::Named| {
                is(n.kind) && (n.name == named.name || demangle(&n.name) == named.name)
            };
            let found = self.files[file].names.iter().find(own);
            if let Some(found) = found {
                self.direct(found.kind, &found.name)?;
                let place = Place::Code { file, addresses: vec![found.address] };
                self.add(format!("fn:{named}"), place);
                return Ok(());
            }
        }
        bail!("there is no function {named} in {}{}", self.said(&among), self.nearest(named, &among, is))
    }

    /// A metric for each function that matches; one for several names of an address.
    fn pattern(&mut self, named: &Named, among: &[usize]) -> Result<()> {
        let before = self.columns.len();
        for &file in among {
            let mut seen = HashSet::new();
            let names = self.files[file].names.iter();
            let found: Vec<(String, u64)> = names
                .filter(|n| {
                    n.kind == Kind::Function && matches(&named.name, &n.name) && seen.insert(n.address)
                })
                .map(|n| (n.name.clone(), n.address))
                .collect();
            for (name, address) in found {
                let full = Named { library: named.library.clone(), name };
                self.add(format!("fn:{full}"), Place::Code { file, addresses: vec![address] });
            }
        }
        if self.columns.len() == before {
            bail!("no function of {} matches {}", self.said(among), named.name);
        }
        Ok(())
    }

    fn direct(&self, kind: Kind, name: &str) -> Result<()> {
        if kind == Kind::Indirect {
            bail!(
                "{name} is an indirect function (IFUNC): the processor decides which variant runs; name the variant (in a library with its symbol \
                 table, a pattern such as *{name}* finds them)"
            );
        }
        Ok(())
    }

    fn variable(&mut self, named: &Named) -> Result<()> {
        let among = self.libraries(named)?;
        let is = |kind| kind == Kind::Variable;
        for &file in &among {
            let own = |n: &&crate::symbol::Named| is(n.kind) && n.size_bytes > 0 && n.name == named.name;
            if let Some(found) = self.files[file].names.iter().find(own) {
                let range = found.address..found.address + found.size_bytes;
                self.add(format!("var:{named}"), Place::Data { file, range });
                return Ok(());
            }
        }
        bail!("there is no variable {named} in {}{}", self.said(&among), self.nearest(named, &among, is))
    }

    fn line(&mut self, name: &str, line: u32) -> Result<()> {
        let mut known = false;
        for file in 0..self.files.len() {
            let addresses = self.files[file].lines(name, line);
            known |= addresses.is_some();
            if let Some(addresses) = addresses.filter(|addresses| !addresses.is_empty()) {
                self.add(format!("line:{name}:{line}"), Place::Code { file, addresses });
                return Ok(());
            }
        }
        match known {
            true => bail!("there is no code for line {line} of {name}: another line of the statement may have it"),
            false => bail!("line:{name}:{line} needs debug information, and neither the program nor its libraries have any: compile with -g"),
        }
    }

    /// The files that a name may be of; a library that is not among them is read from its path.
    fn libraries(&mut self, named: &Named) -> Result<Vec<usize>> {
        let Some(library) = &named.library else { return Ok((0..self.files.len()).collect()) };
        let is = |file: &Listing| {
            let name = file.path.file_name().unwrap_or_default().to_string_lossy();
            file.path.ends_with(library) || name.split(".so").next() == Some(library)
        };
        let found = self.files.iter().position(is);
        if let Some(index) = found {
            return Ok(vec![index]);
        }
        match Listing::read(Path::new(library))
            .or_else(|| by_name(library).and_then(|path| Listing::read(&path)))
        {
            Some(listing) => {
                let known = self.files.iter().position(|file| file.path == listing.path);
                if known.is_none() {
                    self.files.push(listing);
                }
                Ok(vec![known.unwrap_or(self.files.len() - 1)])
            }
            None => bail!(
                "there is no library {library} among {}: give the path of a library that is loaded later",
                self.said(&(0..self.files.len()).collect::<Vec<_>>())
            ),
        }
    }

    fn said(&self, files: &[usize]) -> String {
        let names = files.iter().map(|&file| {
            self.files[file].path.file_name().unwrap_or_default().to_string_lossy().into_owned()
        });
        names.collect::<Vec<_>>().join(", ")
    }

    /// A clause with the names that are spelt nearly so: the program's own, else a library's.
    fn nearest(&self, named: &Named, files: &[usize], is: impl Fn(Kind) -> bool) -> String {
        let near = files.iter().map(|&file| {
            let names = self.files[file].names.iter().filter(|n| is(n.kind)).map(|n| n.name.as_str());
            measure::counter::nearest(&named.name, names.collect::<BTreeSet<&str>>())
        });
        let near = near.into_iter().find(|near| !near.is_empty());
        near.map_or_else(String::new, |near| format!(": did you mean {}?", near.join(" or ")))
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
    let mut asked = HashSet::new();
    let mut next = 0;
    while next < files.len() {
        for name in files[next].needed.clone() {
            if !asked.insert(name.clone()) {
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
        let Place::Code { file, addresses } = &found.columns[0].place else { panic!() };
        assert!(*file > 0 && addresses.len() == 1);
        let refused = look("fn:getenw").unwrap_err().to_string();
        assert!(refused.contains("did you mean") && refused.contains("getenv"), "{refused}");
        assert!(look("fn:libc!malloc").unwrap().columns[0].name == "fn:libc!malloc");
        assert!(look("fn:memcpy").unwrap_err().to_string().contains("IFUNC"));
        assert!(look("fn:nosuchlib!x").unwrap_err().to_string().contains("nosuchlib"));
        assert!(look("var:environ").unwrap().has_data());
    }
}
