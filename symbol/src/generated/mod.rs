//! Names of code that a program generates while it runs.
//!
//! **Problem.** Such code lies in no file, so no symbol table names it. **What exists.** Run-time
//! compilers write the names for profilers, in two forms: `/tmp/perf-PID.map` with a line for each
//! function ([`perf_map`]), and `jit-PID.dump` with a record for each function that was loaded or
//! moved ([`jit_dump`]). A program maps its dump as executable, so that it stands among the modules
//! of its process. **Rule.** Both forms are read when the program has ended. Where functions
//! overlap, the one that was named last owns the address; a dump, which is more exact, outranks a
//! map. A file that belongs to somebody else than the user or root is not read, because anyone may
//! write files into `/tmp`.
//!
//! **Leaves out** when code was there: of several functions that lay at one address one after the
//! other, the last one gets all counts. Leaves out lines of dumps, too. Source: Linux,
//! `tools/perf/Documentation/jit-interface.txt` and `jitdump-specification.txt`.

mod jit_dump;
mod perf_map;
mod ranges;

use instrument::Module;
use ranges::Ranges;
use rustix::process::geteuid;
use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io::BufReader;
use std::ops::Range;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Folder of the maps.
const MAPS: &str = "/tmp";

/// The names of the generated code of all processes whose names were read.
#[derive(Debug, Default)]
pub(crate) struct GeneratedCode {
    processes: HashMap<u32, Ranges>,
}

impl GeneratedCode {
    /// Reads the names of all processes that have generated code in `modules`.
    pub(crate) fn read(&mut self, modules: &[Module]) {
        let dumps = dumps(modules);
        for process in modules.iter().filter_map(|module| module.process) {
            self.processes.entry(process).or_insert_with(|| {
                let map = Path::new(MAPS).join(format!("perf-{process}.map"));
                names(&map, dumps.get(&process).map(PathBuf::as_path))
            });
        }
    }

    /// The name of the code at `address` in `process`, and the addresses around it that have that
    /// name; no name where none was given. `None` if the names of the process were not read.
    pub(crate) fn find(&self, process: u32, address: u64) -> Option<(Option<&str>, Range<u64>)> {
        Some(self.processes.get(&process)?.find(address))
    }
}

/// The dumps among the modules, by process.
fn dumps(modules: &[Module]) -> HashMap<u32, PathBuf> {
    let process = |path: &Path| {
        let name = path.file_name()?.to_str()?;
        name.strip_prefix("jit-")?.strip_suffix(".dump")?.parse().ok()
    };
    modules.iter().filter_map(|module| Some((process(&module.path)?, module.path.clone()))).collect()
}

/// The names in a map and in a dump. A file that cannot be read, or ends in the middle, gives the
/// names that it has.
fn names(map: &Path, dump: Option<&Path>) -> Ranges {
    let mut ranges = Ranges::default();
    if let Some(file) = trusted(map) {
        perf_map::read(BufReader::new(file), &mut ranges);
    }
    if let Some(file) = dump.and_then(trusted) {
        jit_dump::read(BufReader::new(file), &mut ranges);
    }
    ranges
}

/// Opens a regular file of the user or of root.
fn trusted(path: &Path) -> Option<File> {
    let ours = |about: &Metadata| about.is_file() && [0, geteuid().as_raw()].contains(&about.uid());
    // Neither a pipe, on which opening would wait, nor a link of somebody else.
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOFOLLOW;
    let file = File::options().read(true).custom_flags(flags.bits() as i32).open(path).ok()?;
    file.metadata().is_ok_and(|about| ours(&about)).then_some(file)
}

#[cfg(test)]
mod tests;
